"""Parquet: reading, and writing as the source was written, with its codecs, dictionaries,
statistics and row groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.documents.batch import BLOCK_BYTES, Columns, DocumentBatch, Reject, lost_file
from neardup.documents.nested import ColumnTypes, column_of, with_column
from neardup.documents.sources import Source, Stretch, check_columns
from neardup.documents.stretches import STRETCH_BYTES, cut
from neardup.documents.texts import documents_of, replace_column, slices_of
from neardup.documents.views import without_views
from neardup.errors import InputError
from neardup.executor import Encoders, InOrder
from neardup.formats.parquet_footer import JoinedFile
from neardup.formats.registry import Handler

# Larger batches fall out of the cache: 520 MB of text decode in 0.6 CPU seconds with 512 to 2,048
# rows.
_MIN_ROWS, _MAX_ROWS = 64, 16384
# A dictionary hides how long its rows are: ten texts can fill a million rows. So fewer are decoded
# at once, and once they exceed this many bytes, the rest of the file is read as a dictionary and
# decoded piece by piece.
_MAX_DICTIONARY_ROWS, _MAX_DECODED_BYTES = 512, 64 << 20

_READ_BYTES = 1 << 18
_DAMAGE = (pa.ArrowException, OSError, ValueError)

# A row group is in memory while its rows are gathered; a source with larger ones is written in
# smaller ones.
_MAX_GROUP_BYTES = 64 << 20
_DEFAULT_GROUP_ROWS = 1 << 20
# pyarrow has no name for the two deprecated framings of LZ4, that of Hadoop and an undocumented
# one, which it reads and does not write. What it writes by the name LZ4 is LZ4_RAW of the format.
_CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4", "UNKNOWN": "LZ4", "LZO": "SNAPPY"}
# Indices into a dictionary and their run lengths need no more; text stored plainly needs more.
_MAX_INDEX_BYTES_PER_VALUE = 4
# Arrow checks the size of a page, and ends it at 1 MiB, only after this many values.
_MAX_VALUES, _MIN_VALUES, _BYTES_BETWEEN_LOOKS = 1024, 16, 1 << 19


def column_types(source: Source) -> ColumnTypes:
    """Return name and type of each column."""
    with source.open_file() as file:
        schema = pq.read_schema(file)
    check_columns(len(schema.names))
    return dict(zip(schema.names, schema.types, strict=True))


def num_rows(source: Source) -> int:
    """Return how many rows the metadata name."""
    with source.open_file() as file:
        return int(pq.read_metadata(file).num_rows)


def stretches(source: Source) -> list[Stretch]:
    """Return stretches of some STRETCH_BYTES, whole row groups."""
    with source.open_file() as file:
        metadata = pq.read_metadata(file)
    starts, num_bytes = [], 0
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
        If a column that is only to be copied is damaged: without the payload, the documents can be
        read.
    """
    wanted = columns.names
    first_row = 0
    try:
        for batch in _record_batches(source, None if with_payload else wanted, columns.text):
            rows = np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)
            first_row += batch.num_rows
            yield documents_of(
                batch, rows, columns, source.name, reject, payload=batch if with_payload else None
            )
    except _DamagedFile as error:
        if with_payload and _readable_rows(source, wanted) > first_row:
            raise InputError(
                f"A column of {source.name} other than {', '.join(wanted)} is damaged after "
                f"row {first_row}, so "
                f"its rows cannot be copied: {error}. Replace the file, or leave it out."
            ) from error
        reason = f"the Parquet file cannot be read: {error}"
        reject(lost_file(source.name, reason))
    if source.stretch is not None:
        source.stretch.rows, source.stretch.reached = first_row, source.stretch.end


class _DamagedFile(Exception):
    """An error of pyarrow while decoding, as opposed to errors of the code that uses the rows."""


def _record_batches(
    source: Source, wanted: list[str] | None, text: str
) -> Iterator[pa.RecordBatch]:
    num_rows = 0
    with source.open_file() as handle:
        for batch in _decoded_batches(handle, source, wanted, None):
            column = column_of(batch, text)
            if column is not None and column.nbytes > _MAX_DECODED_BYTES:
                break
            yield batch
            num_rows += batch.num_rows
        else:
            return
        del batch, column
        for batch in _decoded_batches(handle, source, wanted, text):
            fresh = batch.slice(min(num_rows, batch.num_rows))
            num_rows -= batch.num_rows - fresh.num_rows
            for piece in slices_of(fresh, text, BLOCK_BYTES):
                column = column_of(piece, text)
                if column is not None and pa.types.is_dictionary(column.type):
                    piece = with_column(piece, text, column.dictionary_decode())
                yield piece


def _decoded_batches(
    handle: pa.NativeFile, source: Source, wanted: list[str] | None, dictionary: str | None
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file; dictionary : a column that is left as a dictionary."""
    try:
        handle.seek(0)
        # A column chunk is read piece by piece, not whole: half the memory, the same speed.
        buffer_size = _READ_BYTES if source.is_local else 0
        kept = [] if dictionary is None else [dictionary]
        file = pq.ParquetFile(
            handle, pre_buffer=not source.is_local, buffer_size=buffer_size, read_dictionary=kept
        )
        check_columns(file.metadata.num_columns)
        stretch = source.stretch or cut([], file.metadata.num_row_groups)[0]
        groups = range(stretch.begin, stretch.end)
        if not groups:  # pyarrow 18 reads none as the one before the first.
            return
        for batch in file.iter_batches(
            _rows_per_batch(file.metadata), groups, wanted, use_threads=False
        ):
            yield without_views(batch)
    except _DAMAGE as error:
        raise _DamagedFile(error) from error


def _readable_rows(source: Source, wanted: list[str]) -> int:
    """Return how many rows can be read of the columns wanted."""
    count = 0
    with suppress(_DamagedFile):
        for batch in _record_batches(source, wanted, wanted[0]):
            count += batch.num_rows
    return count


def _rows_per_batch(metadata: pq.FileMetaData) -> int:
    """Return how many rows hold about `BLOCK_BYTES`.

    All columns count, also if few are read: batches that end elsewhere would make damage cost other
    rows.
    """
    chunks = [chunk for group in _chunks(metadata) for chunk in group]
    per_row = max(
        1,
        sum(max(0, chunk.total_uncompressed_size) for chunk in chunks) // max(1, metadata.num_rows),
    )
    ceiling = (
        _MAX_DICTIONARY_ROWS if any(chunk.has_dictionary_page for chunk in chunks) else _MAX_ROWS
    )
    return int(min(ceiling, max(_MIN_ROWS, BLOCK_BYTES // per_row)))


def _chunks(metadata: pq.FileMetaData) -> list[list[Any]]:
    """Return the metadata of the column chunks of each row group."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return [[group.column(index) for index in range(group.num_columns)] for group in groups]


@dataclass(frozen=True)
class ParquetLayout:
    """How a Parquet file is laid out; by column path where it differs between columns."""

    schema: pa.Schema
    group_rows: int = _DEFAULT_GROUP_ROWS
    values_between_looks: int = _MAX_VALUES
    codecs: dict[str, str] = field(default_factory=dict)
    dictionaries: list[str] = field(default_factory=list)
    statistics: list[str] = field(default_factory=list)
    has_int96: bool = False


def parquet_layout(file: Source) -> ParquetLayout:
    """Return the layout of a Parquet file, from its footer."""
    with file.open_file() as handle:
        parquet = pq.ParquetFile(handle)
        metadata, schema = parquet.metadata, parquet.schema_arrow
    groups = _chunks(metadata)
    if not groups:
        return ParquetLayout(schema)
    chunks = groups[0]
    in_all = [all(map(_stayed_dictionary, same)) for same in zip(*groups, strict=True)]
    return ParquetLayout(
        schema,
        max(1, max(metadata.row_group(index).num_rows for index in range(len(groups)))),
        _values_between_looks(groups),
        {
            chunk.path_in_schema: _CODECS.get(chunk.compression, chunk.compression)
            for chunk in chunks
        },
        [chunk.path_in_schema for chunk, stayed in zip(chunks, in_all, strict=True) if stayed],
        [chunk.path_in_schema for chunk in chunks if chunk.is_stats_set],
        any(chunk.physical_type == "INT96" for chunk in chunks),
    )


def _stayed_dictionary(chunk: Any) -> bool:
    """Whether all pages of a chunk are dictionary indices; writers fall back to plain pages
    halfway.

    The encodings in the footer do not show this: PLAIN is listed for the dictionary page too. The
    size of the data behind the dictionary does.
    """
    start = chunk.dictionary_page_offset
    if not chunk.has_dictionary_page or start is None:
        return False
    data_bytes = chunk.total_compressed_size - (chunk.data_page_offset - start)
    return bool(data_bytes <= 64 + _MAX_INDEX_BYTES_PER_VALUE * chunk.num_values)


def _values_between_looks(groups: list[list[Any]]) -> int:
    """Return how many values of the widest column make half a page.

    With Arrow's 1,024, pages of texts grow to several MiB, which costs fresh memory and leaves the
    cache: writing 520 MB of text took 1.2 x as long.
    """
    sizes = [
        chunk.total_uncompressed_size / max(1, chunk.num_values)
        for group in groups
        for chunk in group
    ]
    widest = max(sizes, default=0.0)
    return int(min(_MAX_VALUES, max(_MIN_VALUES, _BYTES_BETWEEN_LOOKS / max(1.0, widest))))


class ParquetSink:
    """A Parquet file; rows are gathered into row groups, which other threads may encode side by
    side.
    """

    def __init__(self, path: str, layout: ParquetLayout) -> None:
        self._layout = layout
        self._stream = open(path, "wb")  # noqa: SIM115
        try:
            self._writer = self._open(self._stream)
        except BaseException:
            self._stream.close()
            raise
        self._joined: JoinedFile | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0

    def encode_on(self, encoders: Encoders) -> None:
        """As of ParallelSink."""
        self._joined = JoinedFile(self._stream)
        self._jobs = InOrder(self._joined.append)
        self._jobs.encoders = encoders

    def _open(self, stream: Any) -> pq.ParquetWriter:
        layout = self._layout
        return pq.ParquetWriter(
            stream,
            layout.schema,
            compression=layout.codecs or "SNAPPY",
            use_dictionary=layout.dictionaries if layout.codecs else True,
            write_statistics=layout.statistics if layout.codecs else True,
            use_deprecated_int96_timestamps=layout.has_int96,
            write_batch_size=layout.values_between_looks,
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows; write a row group when there are enough of them."""
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        while self._waiting_rows >= self._layout.group_rows:
            self._take_group()
        if self._waiting_bytes >= _MAX_GROUP_BYTES:
            self._take_group()

    def _take_group(self) -> None:
        """Write a row group of the waiting rows."""
        table = pa.Table.from_batches(self._waiting, self._waiting[0].schema)
        group = table.slice(0, self._layout.group_rows)
        if self._joined is None:
            self._write_group(self._writer, group)
        else:
            self._jobs.put(partial(self._encode, group), group.nbytes)
        rest = table.slice(group.num_rows)
        self._waiting = rest.to_batches()
        self._waiting_rows, self._waiting_bytes = rest.num_rows, rest.nbytes

    def _write_group(self, writer: pq.ParquetWriter, group: pa.Table) -> None:
        writer.write_table(group.cast(self._layout.schema), row_group_size=self._layout.group_rows)

    def _encode(self, group: pa.Table | None) -> pa.Buffer:
        """Return a Parquet file of one row group, or of none."""
        stream = pa.BufferOutputStream()
        with self._open(stream) as writer:
            if group is not None:
                self._write_group(writer, group)
        return stream.getvalue()

    def close(self) -> None:
        """Write the last row group, then the footer."""
        if self._waiting_rows:
            self._take_group()
        if self._joined is None:
            self._writer.close()
        else:
            self._jobs.finish()
            self._joined.close(self._encode(None))
        self.discard()

    def discard(self) -> None:
        """Release the file, without a footer."""
        self._writer.is_open = False
        self._stream.close()


def _make_sink(file: Source) -> Callable[[str], ParquetSink]:
    return partial(ParquetSink, layout=parquet_layout(file))


def _read_table(file: Source, _: Sequence[str]) -> pa.Table:
    with file.open_file() as handle:
        return pq.read_table(handle)


HANDLER = Handler(
    read, _make_sink, column_types, num_rows, _read_table, replace_column, stretches=stretches
)
