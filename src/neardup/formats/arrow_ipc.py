"""Arrow IPC, the file format (also named Feather V2) and the stream format: reading, and writing in
the same layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_file
from neardup.documents.added_columns import append_columns, widened_schema
from neardup.documents.batch import BLOCK_BYTES, Columns, DocumentBatch, Reject, lost_file
from neardup.documents.nested import ColumnTypes
from neardup.documents.sinks import RowSink
from neardup.documents.sources import Source
from neardup.documents.texts import documents_of, replace_column, slices_of
from neardup.documents.views import replace_types
from neardup.formats.registry import Handler, Widening

_DAMAGE = (pa.ArrowException, OSError, ValueError)
_FILE_MAGIC = b"ARROW1"
_BINARY = {  # of the same layout
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
_FRAMES = {b"\x04\x22\x4d\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}


def column_types(source: Source) -> ColumnTypes:
    """Return name and type of each column."""
    with source.open_file() as file:
        schema = open_reader(file).schema
    return dict(zip(schema.names, schema.types, strict=True))


def is_file_format(file: pa.NativeFile) -> bool:
    """Return whether a file has the IPC file format, not the stream format."""
    magic = file.read(len(_FILE_MAGIC))
    # pyarrow's readers begin at the position of the file.
    file.seek(0)
    return bool(magic == _FILE_MAGIC)


def open_reader(file: pa.NativeFile) -> Any:
    """Return pyarrow's reader of a file in either format."""
    return pa.ipc.open_file(file) if is_file_format(file) else pa.ipc.open_stream(file)


def _record_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchFileReader):
        # One by one; pyarrow's reader of the file format cannot be iterated.
        return map(reader.get_batch, range(reader.num_record_batches))
    return iter(reader)


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of an Arrow IPC file; damage is one rejection, and rows read before it
    remain.

    All columns are read and checked, even without payload, so that damage is found at the same row
    with and without it.
    """
    first_row = 0
    for batch in _checked_batches(source, reject):
        for piece in slices_of(batch, columns.sliced_by, BLOCK_BYTES):
            rows = np.arange(first_row, first_row + piece.num_rows, dtype=np.int64)
            first_row += piece.num_rows
            payload = piece if with_payload else None
            yield documents_of(piece, rows, columns, source.name, reject, payload=payload)


def _checked_batches(source: Source, reject: Reject) -> Iterator[pa.RecordBatch]:
    with source.open_file() as file:
        try:
            for batch in _record_batches(open_reader(file)):
                # Offsets come from the file; unchecked, wrong offsets would read foreign memory.
                _check_offsets(batch)
                yield batch
        except _DAMAGE as error:
            reason = f"the Arrow file cannot be read: {error}"
            reject(lost_file(source.name, reason))


def _check_offsets(batch: pa.RecordBatch) -> None:
    """Raise ArrowInvalid if a buffer is too short or an offset wrong. Text may be invalid UTF-8,
    which is checked by row later.
    """
    for column in batch.columns:
        kind = replace_types(column.type, _BINARY)
        if kind != column.type:  # Arrow has no view of some types
            column = column.view(kind)
        column.validate(full=True)


class ArrowLayout(NamedTuple):
    """Layout of an Arrow IPC file."""

    schema: pa.Schema
    is_stream: bool
    codec: str | None


def arrow_layout(source: Source) -> ArrowLayout:
    """Return the layout of an Arrow IPC file."""
    with source.open_file() as file:
        is_stream = not is_file_format(file)
        schema = open_reader(file).schema
        # In the file format, the messages of the stream format follow the magic, padded to 8 bytes.
        file.seek(0 if is_stream else 8)
        return ArrowLayout(schema=schema, is_stream=is_stream, codec=_codec(file))


def _codec(file: pa.NativeFile) -> str | None:
    """Return the codec of the first record batch, which pyarrow does not report.

    A compressed buffer is its length in 8 bytes, then a frame, which begins with the magic number
    of its codec.
    """
    with suppress(*_DAMAGE):
        for message in pa.ipc.MessageReader.open_stream(file):
            if message.type == "record batch":
                magic = message.body.slice(8, 4).to_pybytes()
                return _FRAMES.get(magic)
    return None


class ArrowSink(RowSink):
    """An Arrow IPC file or stream to write."""

    def __init__(self, path: str, layout: ArrowLayout) -> None:
        self._dictionaries: dict[int, pa.Array] | None = None if layout.is_stream else {}
        options = pa.ipc.IpcWriteOptions(
            compression=layout.codec, use_threads=False, emit_dictionary_deltas=True
        )
        make = pa.ipc.new_stream if layout.is_stream else pa.ipc.new_file
        super().__init__(arrow_file(path, "wb"), layout.schema, partial(make, options=options))

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if self._dictionaries is not None:
            rows = self._with_deltas(rows, self._dictionaries)
        super().write(rows)

    def _with_deltas(self, rows: pa.RecordBatch, written: dict[int, pa.Array]) -> pa.RecordBatch:
        """Return rows with dictionaries that begin with the dictionaries written before: a file can
        extend a dictionary, not replace it.
        """
        for index, column in enumerate(rows.columns):
            if not pa.types.is_dictionary(column.type):
                continue
            # The first dictionary of a column is written as it is.
            before = written.setdefault(index, column.dictionary)
            if not column.dictionary.equals(before):
                no_rows = pa.DictionaryArray.from_arrays(
                    column.indices.slice(0, 0), before, ordered=column.type.ordered
                )
                # Unified after the former dictionary, the new one begins with it.
                column = pa.chunked_array([no_rows, column]).unify_dictionaries().chunk(1)
                rows = rows.set_column(index, rows.schema.field(index), column)
                written[index] = column.dictionary
        return rows


def _make_sink(source: Source) -> Callable[[str], ArrowSink]:
    return partial(ArrowSink, layout=arrow_layout(source))


def _make_wider_sink(source: Source, added: pa.Schema) -> Callable[[str], ArrowSink]:
    layout = arrow_layout(source)
    schema = widened_schema(layout.schema, added)
    return partial(ArrowSink, layout=layout._replace(schema=schema))


def _read_table(source: Source, _: Sequence[str]) -> pa.Table:
    with source.open_file() as file:
        return open_reader(file).read_all()


HANDLER = Handler(
    read,
    _make_sink,
    column_types,
    read_table=_read_table,
    replace_texts=replace_column,
    widening=Widening(_make_wider_sink, append_columns),
)
