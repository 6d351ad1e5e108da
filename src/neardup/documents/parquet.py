"""Reading Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.documents.sources import Source
from neardup.documents.texts import documents_of
from neardup.formats import BLOCK_BYTES

# Larger batches fall out of the cache: 520 MB of text decode in 0.6 CPU seconds with 512 to 2,048 rows.
_MIN_ROWS, _MAX_ROWS = 64, 16384
# A dictionary hides how long its rows are (ten texts can fill a million rows): fewer are decoded at once.
_MAX_DICTIONARY_ROWS = 2048

_DAMAGE = (pa.ArrowException, OSError, ValueError)


def column_types(source: Source) -> dict[str, pa.DataType]:
    """Return name and type of each column; none when the file is damaged, which `read` will report."""
    try:
        with source.open_file() as file:
            schema = pq.read_schema(file)
    except (pa.ArrowException, OSError):
        return {}
    return dict(zip(schema.names, schema.types, strict=True))


def num_rows(source: Source) -> int | None:
    """Return how many rows the metadata name; None when the file is damaged, which `read` will report."""
    try:
        with source.open_file() as file:
            return int(pq.read_metadata(file).num_rows)
    except _DAMAGE:
        return None


def read(
    source: Source, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of a Parquet file; damage is one rejection, what was read before it stays."""
    wanted = None if with_payload else [name for name in dict.fromkeys(columns) if name is not None]
    with source.open_file() as handle:
        try:
            file = pq.ParquetFile(handle, pre_buffer=not source.is_local)
            batches = file.iter_batches(
                _rows_per_batch(file.metadata, wanted), columns=wanted, use_threads=False
            )
        except _DAMAGE as error:
            reject(_damaged(source, error))
            return
        first_row = 0
        while True:
            try:
                batch = next(batches, None)
            except _DAMAGE as error:
                reject(_damaged(source, error))
                return
            if batch is None:
                return
            rows = np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)
            first_row += batch.num_rows
            yield documents_of(batch, rows, columns, source.name, reject, with_payload=with_payload)


def _rows_per_batch(metadata: pq.FileMetaData, wanted: list[str] | None) -> int:
    """Return how many rows hold about `BLOCK_BYTES` in the columns that are read."""
    size, dictionary = 0, False
    for group_index in range(metadata.num_row_groups):
        group = metadata.row_group(group_index)
        for index in range(group.num_columns):
            chunk = group.column(index)
            if wanted is None or chunk.path_in_schema in wanted:
                size += max(0, chunk.total_uncompressed_size)
                dictionary |= bool(chunk.has_dictionary_page)
    per_row = max(1, size // max(1, metadata.num_rows))
    ceiling = _MAX_DICTIONARY_ROWS if dictionary else _MAX_ROWS
    return int(min(ceiling, max(_MIN_ROWS, BLOCK_BYTES // per_row)))


def _damaged(source: Source, error: Exception) -> Rejected:
    return Rejected(source.name, None, None, None, f"the Parquet file is damaged: {error}")
