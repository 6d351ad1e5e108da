"""Parquet: reading, and writing with the codecs, dictionaries, statistics and row groups of the
source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.documents.added_columns import append_columns, widened_schema
from neardup.documents.batch import BLOCK_BYTES, Columns, DocumentBatch, Reject, lost_file
from neardup.documents.limits import check_columns
from neardup.documents.nested import ELEMENTS, ColumnTypes, column_of, path_of, with_column
from neardup.documents.sources import Source, Stretch
from neardup.documents.stretches import STRETCH_BYTES, cut
from neardup.documents.texts import documents_of, is_turns, replace_column, slices_of
from neardup.documents.turns import role_columns
from neardup.documents.views import without_views
from neardup.errors import InputError
from neardup.executor import Encoders, InOrder
from neardup.formats.parquet_footer import JoinedFile, has_encrypted_columns
from neardup.formats.registry import Handler, Widening

# Rows of a batch. Larger batches fall out of the cache: 520 MB of text decode in 0.6 CPU seconds
# with 512 to 2,048 rows.
_MIN_ROWS = 64
_MAX_ROWS = 16384
# A dictionary hides the length of its rows: ten texts can fill a million rows. So fewer rows are
# decoded at once, and after a batch with more bytes, the rest of the file is read as a dictionary
# and decoded piece by piece.
_MAX_DICTIONARY_ROWS = 512
_MAX_DECODED_BYTES = 64 << 20

_READ_BYTES = 1 << 18
_DAMAGE = (pa.ArrowException, OSError, ValueError)

# A row group is in memory while its rows are collected: larger groups of a source are written as
# several.
_MAX_GROUP_BYTES = 64 << 20
_DEFAULT_GROUP_ROWS = 1 << 20
# pyarrow reads, but does not write and cannot name, two deprecated framings of LZ4: Hadoop's and an
# undocumented one. Its LZ4 is LZ4_RAW of the format.
_CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4", "UNKNOWN": "LZ4", "LZO": "SNAPPY"}
# Indices into a dictionary and their run lengths need no more; plain text needs more.
_MAX_INDEX_BYTES_PER_VALUE = 4
_PAGE_HEAD_BYTES = 64  # the header of a page, which counts in a chunk of few values
# Arrow writes values in batches, and ends a page of more than 1 MiB only between two batches.
_MAX_WRITE_BATCH = 1024  # values; Arrow's default
_MIN_WRITE_BATCH = 16
_WRITE_BATCH_BYTES = 1 << 19  # half a page


def column_types(source: Source) -> ColumnTypes:
    """Return name and type of each column."""
    with source.open_file() as file:
        schema = pq.read_schema(file)
    check_columns(len(schema.names))
    return dict(zip(schema.names, schema.types, strict=True))


def num_rows(source: Source) -> int:
    """Return the number of rows in the metadata."""
    with source.open_file() as file:
        return int(pq.read_metadata(file).num_rows)


def stretches(source: Source) -> list[Stretch]:
    """Return stretches of about STRETCH_BYTES, whole row groups."""
    with source.open_file() as file:
        metadata = pq.read_metadata(file)
    starts = []
    num_bytes = 0
    for group in range(metadata.num_row_groups):
        if num_bytes >= STRETCH_BYTES:
            starts.append(group)
            num_bytes = 0
        num_bytes += metadata.row_group(group).total_byte_size
    return cut(starts, metadata.num_row_groups)


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of a Parquet file; damage is one rejection, and rows read before it
    remain.

    Raises
    ------
    InputError
        If a column of the payload alone is damaged: the documents can be read, but not copied.
    """
    wanted = columns.names
    first_row = 0
    try:
        read_columns = None if with_payload else [*wanted, *_roles_of(columns)]
        for batch in _record_batches(source, read_columns, columns.sliced_by):
            rows = np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)
            first_row += batch.num_rows
            payload = batch if with_payload else None
            yield documents_of(batch, rows, columns, source.name, reject, payload=payload)
    except _DamagedFile as error:
        # More rows have a readable text: the damage is in a column that is only copied, and to go
        # on would drop these rows.
        if with_payload and _readable_rows(source, wanted) > first_row:
            raise InputError(
                f"A column of {source.name} other than {', '.join(wanted)} is damaged after row "
                f"{first_row}, so its rows cannot be copied: {error}. Replace the file, or leave "
                "it out."
            ) from error
        reason = f"the Parquet file cannot be read: {error}"
        reject(lost_file(source.name, reason))
    if source.stretch is not None:
        source.stretch.rows = first_row
        source.stretch.reached = source.stretch.end


def _roles_of(columns: Columns) -> list[str]:
    """Return the columns that may have the roles of turns."""
    return [role for name in columns.texts for role in role_columns(name)] if columns.roles else []


class _DamagedFile(Exception):
    """An error of pyarrow while it decodes; errors of the code that uses the rows are not
    caught.
    """


def _record_batches(
    source: Source, wanted: list[str] | None, text: str
) -> Iterator[pa.RecordBatch]:
    """Yield the rows. wanted : the columns, None for all; text : the column of the text."""
    num_done = 0
    with source.open_file() as handle:
        # First without a dictionary; after a batch that is too large, the rest with one (see
        # _MAX_DICTIONARY_ROWS). Turns always with one: a single row may repeat a text a million
        # times.
        if ELEMENTS not in text:
            for batch in _decoded_batches(handle, source, wanted, None):
                column = column_of(batch, text)
                if column is not None and column.nbytes > _MAX_DECODED_BYTES:
                    break
                yield batch
                num_done += batch.num_rows
            else:
                return
            del batch, column  # the memory of a large batch
        kind = _type_of_turns(handle, text)
        for batch in _decoded_batches(handle, source, wanted, text):
            # Batches of another reading may have other limits, so rows are counted.
            fresh = batch.slice(min(num_done, batch.num_rows))
            num_done -= batch.num_rows - fresh.num_rows
            for piece in slices_of(fresh, text, BLOCK_BYTES):
                yield _without_dictionary(piece, text, kind)


def _type_of_turns(handle: pa.NativeFile, name: str) -> pa.DataType | None:
    """Return the type of the values of a column inside lists; None for any other column."""
    if ELEMENTS not in name:
        return None
    try:
        fields: Any = pq.read_schema(handle)
    except _DAMAGE as error:
        raise _DamagedFile(error) from error
    for index in path_of(fields, name) or ():
        fields = fields.field(index).type
    return None if isinstance(fields, pa.Schema) else fields


def _without_dictionary(
    rows: pa.RecordBatch, name: str, kind: pa.DataType | None
) -> pa.RecordBatch:
    """Return rows with the values of a column in place of a dictionary of them.

    kind : see `_type_of_turns`. Turns that are a dictionary in the file stay so.
    """
    column = column_of(rows, name)
    if column is None or (kind is not None and pa.types.is_dictionary(kind)):
        return rows
    values = column.flatten() if is_turns(column.type) else column
    if not pa.types.is_dictionary(values.type):
        return rows
    decoded = values.dictionary_decode()
    return with_column(rows, name, decoded if kind is None else decoded.cast(kind))


def _decoded_batches(
    handle: pa.NativeFile, source: Source, wanted: list[str] | None, dictionary: str | None
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file. dictionary : a column to keep as a dictionary."""
    try:
        # The same handle may have been read before, without a dictionary.
        handle.seek(0)
        dictionaries = [] if dictionary is None else _dictionaries(handle, dictionary)
        # A column chunk is read piece by piece, not whole: half the memory, the same speed.
        file = pq.ParquetFile(
            handle,
            # From a remote storage, a few large requests ahead; see `pre_buffer` of pyarrow.
            pre_buffer=not source.is_local,
            buffer_size=_READ_BYTES if source.is_local else 0,
            read_dictionary=dictionaries,
        )
        check_columns(file.metadata.num_columns)
        _refuse_encrypted(handle)
        if wanted is not None:
            wanted = [name for column in wanted for name in _leaves_of(file, column)]
        stretch = source.stretch or cut([], file.metadata.num_row_groups)[0]
        groups = range(stretch.begin, stretch.end)
        if not groups:  # pyarrow 18 would read row group -1
            return
        batch_rows = _rows_per_batch(file.metadata)
        for joined_groups in _groups_to_join(groups, dictionary):
            for batch in file.iter_batches(batch_rows, joined_groups, wanted, use_threads=False):
                yield without_views(batch)
    except _DAMAGE as error:
        raise _DamagedFile(error) from error


def _dictionaries(handle: pa.NativeFile, name: str) -> list[str]:
    """Return a column to keep as a dictionary, by the names of Parquet."""
    if ELEMENTS not in name:
        return [name]
    found = _leaves_of(pq.ParquetFile(handle), name)
    handle.seek(0)
    return found


def _groups_to_join(groups: range, dictionary: str | None) -> list[Sequence[int]]:
    """Return the row groups in lists: a batch may span the groups of one list."""
    # Arrow cannot join the dictionaries of two row groups inside lists.
    if dictionary is not None and ELEMENTS in dictionary:
        return [[group] for group in groups]
    return [groups]


def _leaves_of(file: pq.ParquetFile, name: str) -> list[str]:
    """Return the columns of a file that have a column of Arrow, by the names of Parquet.

    Inside lists, writers name the elements as they like: messages[].content may be
    messages.list.element.content. Columns without lists have the same name in both.
    """
    if ELEMENTS not in name:
        return [name]
    path = path_of(file.schema_arrow, name)
    leaves = _leaf_paths(file.schema_arrow)
    return [file.schema.column(number).path for number, leaf in enumerate(leaves) if leaf == path]


def _leaf_paths(schema: pa.Schema) -> list[tuple[int, ...]]:
    """Return the paths of the fields with values, in the order of Parquet: depth first."""
    found: list[tuple[int, ...]] = []
    # A stack, because a file may nest deeper than Python calls; its last field comes first.
    waiting: list[tuple[tuple[int, ...], pa.DataType]] = [((), pa.struct(list(schema)))]
    while waiting:
        path, kind = waiting.pop()
        if pa.types.is_nested(kind):
            inside = reversed(range(kind.num_fields))
            waiting += [((*path, index), kind.field(index).type) for index in inside]
        else:
            found.append(path)
    return found


def _refuse_encrypted(handle: pa.NativeFile) -> None:
    """Raise OSError if columns are encrypted, also if the column of the text is not."""
    if has_encrypted_columns(handle):
        raise OSError("it has encrypted columns, and no key is used. Write it without encryption")


def _readable_rows(source: Source, wanted: list[str]) -> int:
    """Return the number of rows that can be read of the wanted columns."""
    count = 0
    with suppress(_DamagedFile):
        for batch in _record_batches(source, wanted, wanted[0]):
            count += batch.num_rows
    return count


def _rows_per_batch(metadata: pq.FileMetaData) -> int:
    """Return the number of rows with about `BLOCK_BYTES`.

    All columns count, even if few are read: the rows that are lost with a damage depend on the ends
    of batches, and must be the same with and without payload.
    """
    chunks = list(chain.from_iterable(_chunks(metadata)))
    # Sizes come from the file: a damaged one may be negative.
    num_bytes = sum(max(0, chunk.total_uncompressed_size) for chunk in chunks)
    bytes_per_row = max(1, num_bytes // max(1, metadata.num_rows))
    has_dictionary = any(chunk.has_dictionary_page for chunk in chunks)
    max_rows = _MAX_DICTIONARY_ROWS if has_dictionary else _MAX_ROWS
    return int(min(max_rows, max(_MIN_ROWS, BLOCK_BYTES // bytes_per_row)))


def _chunks(metadata: pq.FileMetaData) -> list[list[Any]]:
    """Return the metadata of the column chunks of each row group."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return [[group.column(index) for index in range(group.num_columns)] for group in groups]


@dataclass(frozen=True)
class ParquetLayout:
    """Layout of a Parquet file.

    group_rows : rows of a row group. write_batch : values that Arrow writes at a time. codecs : by
    column path. dictionaries, statistics : the paths of the columns that have them. has_int96 :
    whether times are in the old type INT96.
    """

    schema: pa.Schema
    group_rows: int = _DEFAULT_GROUP_ROWS
    write_batch: int = _MAX_WRITE_BATCH
    codecs: dict[str, str] = field(default_factory=dict)
    dictionaries: list[str] = field(default_factory=list)
    statistics: list[str] = field(default_factory=list)
    has_int96: bool = False

    def widened(self, added: pa.Schema) -> ParquetLayout:
        """Return the layout of rows with further columns, which have dictionaries and statistics,
        and the codec of the last column.
        """
        schema = widened_schema(self.schema, added)
        if not self.codecs:
            return replace(self, schema=schema)
        codec = list(self.codecs.values())[-1]
        paths = [_path_of(column) for column in added]
        return replace(
            self,
            schema=schema,
            codecs=self.codecs | dict.fromkeys(paths, codec),
            dictionaries=[*self.dictionaries, *paths],
            statistics=[*self.statistics, *paths],
        )


def _path_of(column: pa.Field) -> str:
    """Return the path of the values of a column: numbers, strings, or lists of them."""
    return f"{column.name}.list.element" if pa.types.is_list(column.type) else str(column.name)


def parquet_layout(file: Source) -> ParquetLayout:
    """Return the layout of a Parquet file, from its footer."""
    with file.open_file() as handle:
        parquet = pq.ParquetFile(handle)
        _refuse_encrypted(handle)
        metadata = parquet.metadata
        schema = parquet.schema_arrow
    chunks_by_group = _chunks(metadata)
    if not chunks_by_group:
        return ParquetLayout(schema)
    max_rows = max(metadata.row_group(index).num_rows for index in range(metadata.num_row_groups))
    first_chunks = chunks_by_group[0]
    dictionaries = [
        column_chunks[0].path_in_schema
        for column_chunks in zip(*chunks_by_group, strict=True)
        if all(_is_dictionary(chunk) for chunk in column_chunks)
    ]
    return ParquetLayout(
        schema=schema,
        group_rows=max(1, max_rows),
        write_batch=_values_per_batch(chunks_by_group),
        codecs={
            chunk.path_in_schema: _CODECS.get(chunk.compression, chunk.compression)
            for chunk in first_chunks
        },
        dictionaries=dictionaries,
        statistics=[chunk.path_in_schema for chunk in first_chunks if chunk.is_stats_set],
        has_int96=any(chunk.physical_type == "INT96" for chunk in first_chunks),
    )


def _is_dictionary(chunk: Any) -> bool:
    """Return whether all pages of a chunk are dictionary indices; writers may change to plain pages
    halfway.

    The encodings in the footer do not show this: PLAIN is listed for the dictionary page too. The
    size of the data after the dictionary shows it.
    """
    start = chunk.dictionary_page_offset
    if not chunk.has_dictionary_page or start is None:
        return False
    # The chunk without its dictionary page, which comes first.
    data_bytes = chunk.total_compressed_size - (chunk.data_page_offset - start)
    max_index_bytes = _PAGE_HEAD_BYTES + _MAX_INDEX_BYTES_PER_VALUE * chunk.num_values
    return bool(data_bytes <= max_index_bytes)


def _values_per_batch(chunks_by_group: list[list[Any]]) -> int:
    """Return the number of values of the widest column that fill half a page.

    With Arrow's 1,024, pages of texts grow to several MiB, which costs fresh memory and leaves the
    cache: writing 520 MB of text took 1.2 times as long.
    """
    chunks = chain.from_iterable(chunks_by_group)
    value_bytes = [chunk.total_uncompressed_size / max(1, chunk.num_values) for chunk in chunks]
    max_value_bytes = max(value_bytes, default=0.0)
    num_values = _WRITE_BATCH_BYTES / max(1.0, max_value_bytes)
    return int(min(_MAX_WRITE_BATCH, max(_MIN_WRITE_BATCH, num_values)))


class _Joining(NamedTuple):
    """A file of row groups that threads encode, and the jobs that append them in order."""

    file: JoinedFile
    jobs: InOrder[pa.Buffer]


class ParquetSink:
    """A Parquet file to write. Rows are collected into row groups, which other threads may encode
    side by side.
    """

    def __init__(self, path: str, layout: ParquetLayout) -> None:
        self._layout = layout
        self._stream = open(path, "wb")  # noqa: SIM115
        try:
            self._writer = self._open(self._stream)
        except BaseException:
            self._stream.close()
            raise
        self._joining: _Joining | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0

    def encode_on(self, encoders: Encoders) -> None:
        """Use the threads, before anything is written (see ParallelSink)."""
        file = JoinedFile(self._stream)
        jobs = InOrder(file.append)
        jobs.encoders = encoders
        self._joining = _Joining(file, jobs)

    def _open(self, stream: Any) -> pq.ParquetWriter:
        layout = self._layout
        return pq.ParquetWriter(
            stream,
            layout.schema,
            # A source without row groups shows no codecs: pyarrow's defaults then.
            compression=layout.codecs or "SNAPPY",
            use_dictionary=layout.dictionaries if layout.codecs else True,
            write_statistics=layout.statistics if layout.codecs else True,
            use_deprecated_int96_timestamps=layout.has_int96,
            write_batch_size=layout.write_batch,
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows; write a row group when there are enough of them."""
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        while self._waiting_rows >= self._layout.group_rows:
            self._end_group()
        if self._waiting_bytes >= _MAX_GROUP_BYTES:
            self._end_group()

    def _end_group(self) -> None:
        """Write the first waiting rows as a row group, or have a thread encode it."""
        table = pa.Table.from_batches(self._waiting, self._waiting[0].schema)
        group = table.slice(0, self._layout.group_rows)
        if self._joining is None:
            self._write_group(self._writer, group)
        else:
            self._joining.jobs.put(partial(self._encode, group), group.nbytes)
        rest = table.slice(group.num_rows)
        self._waiting = rest.to_batches()
        self._waiting_rows = rest.num_rows
        self._waiting_bytes = rest.nbytes

    def _write_group(self, writer: pq.ParquetWriter, group: pa.Table) -> None:
        writer.write_table(group.cast(self._layout.schema), row_group_size=self._layout.group_rows)

    def _encode(self, group: pa.Table | None) -> pa.Buffer:
        """Return a Parquet file of one row group, or without row groups."""
        stream = pa.BufferOutputStream()
        with self._open(stream) as writer:
            if group is not None:
                self._write_group(writer, group)
        return stream.getvalue()

    def close(self) -> None:
        """Write the last row group, then the footer."""
        if self._waiting_rows:
            self._end_group()
        if self._joining is None:
            self._writer.close()
        else:
            self._joining.jobs.finish()
            self._joining.file.close(self._encode(None))
        self.discard()

    def discard(self) -> None:
        """Release the file, without a footer."""
        # pyarrow's writer, if open, writes a footer when it is garbage-collected. It must not: the
        # file is incomplete, or joined from the files of other writers.
        self._writer.is_open = False
        self._stream.close()


def _make_sink(file: Source) -> Callable[[str], ParquetSink]:
    return partial(ParquetSink, layout=parquet_layout(file))


def _make_wider_sink(file: Source, added: pa.Schema) -> Callable[[str], ParquetSink]:
    return partial(ParquetSink, layout=parquet_layout(file).widened(added))


def _read_table(file: Source, _: Sequence[str]) -> pa.Table:
    with file.open_file() as handle:
        return pq.read_table(handle)


HANDLER = Handler(
    read=read,
    make_sink=_make_sink,
    column_types=column_types,
    num_rows=num_rows,
    read_table=_read_table,
    replace_texts=replace_column,
    stretches=stretches,
    widening=Widening(_make_wider_sink, append_columns),
)
