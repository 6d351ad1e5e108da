"""Reading Arrow IPC, as a file or as a stream (Feather V2 is such a file)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.documents.sources import CannotOpen, Source
from neardup.documents.texts import documents_of, slices_of
from neardup.formats import BLOCK_BYTES

_DAMAGE = (pa.ArrowException, OSError, ValueError)


def column_types(source: Source) -> dict[str, pa.DataType]:
    """Return name and type of each column; none when the file is damaged, which `read` will report."""
    try:
        with source.open_file() as file:
            schema = open_reader(file).schema
    except (*_DAMAGE, CannotOpen):
        return {}
    return dict(zip(schema.names, schema.types, strict=True))


def is_file_format(file: pa.NativeFile) -> bool:
    """Whether the bytes are the IPC file format (else: the stream format)."""
    magic = file.read(6)
    file.seek(0)
    return bool(magic == b"ARROW1")


def open_reader(file: pa.NativeFile) -> Any:
    """Return pyarrow's reader for either of the two formats."""
    return pa.ipc.open_file(file) if is_file_format(file) else pa.ipc.open_stream(file)


def _record_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchFileReader):
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)
    else:
        yield from reader


def read(
    source: Source, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of an Arrow IPC file; damage is one rejection, what was read before it stays.

    All columns are read and checked in any case, so that damage shows in the same place with or without payload.
    """
    with source.open_file() as file:
        first_row = 0
        batches: Iterator[pa.RecordBatch] | None = None
        while True:
            try:
                if batches is None:
                    batches = _record_batches(open_reader(file))
                batch = next(batches, None)
                if batch is not None:
                    # Offsets come from the file as they are; unchecked, wrong ones read foreign memory.
                    _check_offsets(batch)
            except _DAMAGE as error:
                reason = f"the Arrow file is damaged: {error}"
                reject(Rejected(source.name, None, None, None, reason, rest_of_file=True))
                return
            if batch is None:
                return
            for piece in slices_of(batch, columns.text, BLOCK_BYTES):
                rows = np.arange(first_row, first_row + piece.num_rows, dtype=np.int64)
                first_row += piece.num_rows
                yield documents_of(piece, rows, columns, source.name, reject, with_payload=with_payload)


def _check_offsets(batch: pa.RecordBatch) -> None:
    """Raise ArrowInvalid if a buffer is too short or an offset wrong; text that is not UTF-8 passes."""
    for column in batch.columns:
        kind = column.type
        if pa.types.is_string(kind):
            column = column.view(pa.binary())
        elif pa.types.is_large_string(kind):
            column = column.view(pa.large_binary())
        column.validate(full=True)
