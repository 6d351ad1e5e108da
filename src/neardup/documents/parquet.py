"""Reading Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.documents.sources import CannotOpen, Source
from neardup.documents.texts import documents_of, slices_of
from neardup.errors import InputError
from neardup.formats import BLOCK_BYTES

# Larger batches fall out of the cache: 520 MB of text decode in 0.6 CPU seconds with 512 to 2,048 rows.
_MIN_ROWS, _MAX_ROWS = 64, 16384
# A dictionary hides how long its rows are: ten texts can fill a million rows. So fewer are decoded at once, and once
# they come to more than so many bytes, the rest of the file is read as a dictionary and decoded piece by piece.
_MAX_DICTIONARY_ROWS, _MAX_DECODED_BYTES = 512, 64 << 20

_READ_BYTES = 1 << 18
_DAMAGE = (pa.ArrowException, OSError, ValueError)


def column_types(source: Source) -> dict[str, pa.DataType]:
    """Return name and type of each column; none when the file is damaged, which `read` will report."""
    try:
        with source.open_file() as file:
            schema = pq.read_schema(file)
    except (*_DAMAGE, CannotOpen):
        return {}
    return dict(zip(schema.names, schema.types, strict=True))


def num_rows(source: Source) -> int | None:
    """Return how many rows the metadata name; None when the file is damaged, which `read` will report."""
    try:
        with source.open_file() as file:
            return int(pq.read_metadata(file).num_rows)
    except (*_DAMAGE, CannotOpen):
        return None


def read(
    source: Source, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of a Parquet file; damage is one rejection, what was read before it stays.

    Raises
    ------
    InputError
        If a column that is only to be copied is damaged: without the payload, the documents can be read.
    """
    wanted = [name for name in dict.fromkeys(columns) if name is not None]
    first_row = 0
    try:
        for batch in _record_batches(source, None if with_payload else wanted, columns.text):
            rows = np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)
            first_row += batch.num_rows
            yield documents_of(batch, rows, columns, source.name, reject, with_payload=with_payload)
    except _DamagedFile as error:
        if with_payload and _readable_rows(source, wanted) > first_row:
            raise InputError(
                f"A column of {source.name} other than {', '.join(wanted)} is damaged after row {first_row}, so "
                f"its rows cannot be copied: {error}. Replace the file, or leave it out."
            ) from error
        reason = f"the Parquet file is damaged: {error}"
        reject(Rejected(source.name, None, None, None, reason, rest_of_file=True))


class _DamagedFile(Exception):
    """What pyarrow raised while decoding; apart from what reading the rows raises."""


def _record_batches(source: Source, wanted: list[str] | None, text: str) -> Iterator[pa.RecordBatch]:
    num_rows = 0
    with source.open_file() as handle:
        for batch in _decoded_batches(handle, source, wanted, None):
            index = batch.schema.get_field_index(text)
            if index >= 0 and batch.column(index).nbytes > _MAX_DECODED_BYTES:
                break
            yield batch
            num_rows += batch.num_rows
        else:
            return
        del batch
        for batch in _decoded_batches(handle, source, wanted, text):
            fresh = batch.slice(min(num_rows, batch.num_rows))
            num_rows -= batch.num_rows - fresh.num_rows
            for piece in slices_of(fresh, text, BLOCK_BYTES):
                column = piece.column(index)
                if pa.types.is_dictionary(column.type):
                    piece = piece.set_column(index, text, column.dictionary_decode())
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
        file = pq.ParquetFile(handle, pre_buffer=not source.is_local, buffer_size=buffer_size, read_dictionary=kept)
        size = _rows_per_batch(file.metadata)
        batches = file.iter_batches(size, columns=wanted, use_threads=False)
    except _DAMAGE as error:
        raise _DamagedFile(error) from error
    while True:
        try:
            batch = next(batches, None)
        except _DAMAGE as error:
            raise _DamagedFile(error) from error
        if batch is None:
            return
        yield batch


def _readable_rows(source: Source, wanted: list[str]) -> int:
    """Return how many rows can be read of the columns wanted."""
    count = 0
    try:
        for batch in _record_batches(source, wanted, wanted[0]):
            count += batch.num_rows
    except _DamagedFile:
        pass
    return count


def _rows_per_batch(metadata: pq.FileMetaData) -> int:
    """Return how many rows hold about `BLOCK_BYTES`.

    All columns count, also if few are read: batches that end elsewhere would make damage cost other rows.
    """
    size, dictionary = 0, False
    for group_index in range(metadata.num_row_groups):
        group = metadata.row_group(group_index)
        for index in range(group.num_columns):
            chunk = group.column(index)
            size += max(0, chunk.total_uncompressed_size)
            dictionary |= bool(chunk.has_dictionary_page)
    per_row = max(1, size // max(1, metadata.num_rows))
    ceiling = _MAX_DICTIONARY_ROWS if dictionary else _MAX_ROWS
    return int(min(ceiling, max(_MIN_ROWS, BLOCK_BYTES // per_row)))
