"""The payload of a batch: its documents as they are in their file, to be copied to the kept files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import arrow_of, arrow_of_bytes, offsets_from_lengths


class RawLines(NamedTuple):
    """The lines of a batch, line ends included.

    data : bytes (or an Arrow buffer) of the lines, one after the other; offsets : int64 array of shape
    (num_rows + 1,), line i is data[offsets[i]:offsets[i + 1]].
    """

    data: bytes | pa.Buffer
    offsets: np.ndarray


@dataclass(frozen=True)
class Pages:
    """Web pages as they are in their file, to be copied, and as rows of a table.

    records : the bytes of each page, of a WARC its record. A record with a gzip member to itself is that member; others
    are not compressed.
    metadata_records : records about the file, each with the number of pages of this batch before it.
    rows : returns a row for each page.
    """

    records: list[bytes]
    metadata_records: list[tuple[int, bytes]]
    rows: Callable[[], pa.RecordBatch]

    def select(self, mask: np.ndarray) -> Pages:
        """Return the pages where `mask` is true, with all metadata records."""
        before = offsets_from_lengths(mask)
        records = [record for record, chosen in zip(self.records, mask, strict=True) if chosen]
        others = [(int(before[index]), record) for index, record in self.metadata_records]
        return Pages(records, others, lambda: filter_rows(self.rows(), pa.array(mask, pa.bool_())))


Payload: TypeAlias = "pa.RecordBatch | RawLines | Pages"
"""All columns of a table, or lines of a text format, or pages."""


def select_payload(payload: Payload, mask: np.ndarray) -> Payload:
    """Return the documents of a payload where `mask` (bool, shape (num_rows,)) is true; of lines, contiguous data."""
    if isinstance(payload, RawLines):
        return RawLines(*select_lines(payload.data, payload.offsets, mask))
    if isinstance(payload, Pages):
        return payload.select(mask)
    return payload if mask.all() else filter_rows(payload, arrow_of(mask))


def select_lines(data: bytes | pa.Buffer, offsets: np.ndarray, mask: np.ndarray) -> tuple[pa.Buffer, np.ndarray]:
    """Return data and offsets of the lines where `mask` is true; the data are contiguous."""
    if bool(mask.all()):
        begin, end = int(offsets[0]), int(offsets[-1])
        return pa.py_buffer(data).slice(begin, end - begin), offsets - begin
    chosen = arrow_of_bytes(data, offsets).filter(arrow_of(mask))
    _, offset_buffer, data_buffer = chosen.buffers()
    chosen_offsets = np.frombuffer(offset_buffer, dtype=np.int64)[: len(chosen) + 1]
    return (pa.py_buffer(b"") if data_buffer is None else data_buffer), chosen_offsets


def filter_rows(rows: Any, mask: Any) -> Any:
    """Return the rows of a RecordBatch or Table where `mask` is true. Arrow has no filter for runs: plain ones have."""
    if not any(map(pa.types.is_run_end_encoded, rows.schema.types)):
        return rows.filter(mask)
    columns = [_filter_column(column, mask) for column in rows.columns]
    return type(rows).from_arrays(columns, schema=rows.schema)


def _filter_column(column: Any, mask: Any) -> Any:
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        plain = pc.run_end_decode(column).filter(mask)
        return pc.run_end_encode(plain, run_end_type=kind.run_end_type)
    return column.filter(mask)
