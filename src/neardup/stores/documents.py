"""The documents of a store in chunks of rows, in memory or in mapped files; and the times that changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schemas
from neardup.arrays import arrow_of, view_strings

Rows = npt.NDArray[np.int64]
EMPTY_SCHEMA = schemas.indexed_schema((schemas.SIMILARITY, schemas.DISTANCE, schemas.STRUCTURE, schemas.EXACT))
"""The columns of a store without documents, whatever its method measures."""
_FAN_IN, _MAX_COMBINED = 16, 1 << 15  # small chunks are combined sixteen at a time, up to so many rows
_ROWS_A_SCAN = 1 << 14
_WORD = 8
_GROWTH = 2


class Sketched(NamedTuple):
    """What documents are first compared by, row by row.

    content : uint64 (num_rows, 2). featured : bool (num_rows,). sketch : uint8 (num_rows, width).
    """

    content: npt.NDArray[np.uint64]
    featured: npt.NDArray[np.bool_]
    sketch: npt.NDArray[np.uint8]

    def take(self, rows: Rows) -> Sketched:
        """Return some of the rows."""
        return Sketched(self.content[rows], self.featured[rows], self.sketch[rows])


SKETCHED = Sketched._fields
"""The columns of the same names."""


def sketched_of(table: pa.Table) -> Sketched:
    """Return SKETCHED of a table as numbers."""
    content, featured, sketch = (_array_of(table.column(name)) for name in SKETCHED)
    return Sketched(
        _fixed_bytes(content).view(np.uint64), np.asarray(featured.to_numpy(zero_copy_only=False), np.bool_),
        _fixed_bytes(sketch),
    )  # fmt: skip


def _array_of(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _fixed_bytes(column: pa.Array) -> npt.NDArray[np.uint8]:
    """Return a column of bytes, whose rows have one length, as uint8 (num_rows, length), aligned for numbers."""
    size = len(column)
    if pa.types.is_fixed_size_binary(column.type):
        width, first, buffer = column.type.byte_width, column.offset * column.type.byte_width, column.buffers()[1]
        data = np.frombuffer(buffer, np.uint8, size * width, first) if size else np.empty(0, np.uint8)
    else:
        data, offsets = view_strings(column)
        data = data[int(offsets[0]) : int(offsets[-1])]
    data = data if data.ctypes.data % _WORD == 0 else data.copy()
    return data.reshape(size, len(data) // max(1, size))


@dataclass(frozen=True, eq=False)
class Chunk:
    """The documents of the rows from `first` to `stop`, some of which may be gone.

    batch : columns of the documents. One that is missing has nulls only, but for `row`, which counts on from `first`,
    and `last_seen`, which is `first_seen`. name : of the file that contains the chunk, if any.
    """

    first: int
    stop: int
    batch: pa.RecordBatch
    name: str | None = None

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """The columns by name, without a `row` that counts on, with a `last_seen`."""
        columns = dict(zip(self.batch.schema.names, self.batch.columns, strict=True))
        if self.batch.num_rows == self.stop - self.first:
            columns.pop("row", None)
        if "last_seen" not in columns:
            columns["last_seen"] = columns["first_seen"]
        return columns

    @cached_property
    def _numbers(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8], int, npt.NDArray[np.uint8]]:
        """The columns of `Sketched`, without a copy: those that are bits as bytes, and where these begin."""
        content, featured, sketch = (self.columns[name] for name in SKETCHED)
        bits = np.frombuffer(featured.buffers()[1], np.uint8)
        return _fixed_bytes(content).view(np.uint64), bits, featured.offset, _fixed_bytes(sketch)

    def sketched(self, positions: Rows) -> Sketched:
        """Return what documents at some positions are compared by."""
        content, bits, offset, sketch = self._numbers
        at = positions + offset
        featured = (bits[at >> 3] >> (at & 7).astype(np.uint8)) & 1
        return Sketched(content[positions], featured.view(np.bool_), sketch[positions])

    def rows(self, begin: int, end: int) -> Rows:
        """Return the rows at the positions from `begin` to `end`."""
        if "row" not in self.columns:
            return np.arange(self.first + begin, self.first + end)
        rows: Rows = self.columns["row"].to_numpy()[begin:end].astype(np.int64)
        return rows

    def positions(self, rows: Rows) -> Rows:
        """Return where rows are in the chunk. Requires: they are there."""
        if "row" not in self.columns:
            return rows - self.first
        return np.searchsorted(self.columns["row"].to_numpy(), rows.astype(np.uint32))

    def select(self, positions: Rows, schema: pa.Schema) -> list[pa.Array]:
        """Return columns at some positions."""
        first, size = int(positions[0]) if len(positions) else 0, len(positions)
        if size == 1 or bool((positions == np.arange(first, first + size)).all()):
            # A slice takes a tenth of the time of `take`.
            return [self._column(field, positions, lambda column: column.slice(first, size)) for field in schema]
        where = arrow_of(positions)
        return [self._column(field, positions, lambda column: column.take(where)) for field in schema]

    def _column(self, field: pa.Field, positions: Rows, take: Callable[[pa.Array], pa.Array]) -> pa.Array:
        column = self.columns.get(field.name)
        if column is None:
            if field.name == "row":
                return arrow_of((positions + self.first).astype(np.uint32))
            return pa.nulls(len(positions), field.type)
        return widen(take(column), field.type)


def widen(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column of strings or bytes with offsets of 64 bits, over the same bytes; others as they are.

    A cast of one row takes 40 microseconds, ten times as long.
    """
    if column.type == kind:
        return column
    if column.null_count or not len(column):
        return column.cast(kind)
    size, first, buffers = len(column), column.offset, column.buffers()
    if pa.types.is_fixed_size_binary(column.type):
        offsets = np.arange(first, first + size + 1, dtype=np.int64) * column.type.byte_width
    else:
        offsets = np.frombuffer(buffers[1], np.int32, size + 1, 4 * first).astype(np.int64)
    return pa.Array.from_buffers(kind, size, [None, pa.py_buffer(offsets), buffers[-1]])


class Seen(NamedTuple):
    """Times that replace `last_seen`, by row. rows : uint32, rising; times : int64, microseconds since 1970.

    name : of the file that contains them, if any.
    """

    rows: npt.NDArray[np.uint32]
    times: Rows
    name: str | None = None


def add_seen(runs: tuple[Seen, ...], added: Seen) -> tuple[Seen, ...]:
    """Return the runs with a later one, merged so that each in memory is at least twice as long as the next."""
    runs = (*runs, added)
    while len(runs) > 1 and runs[-2].name is None and len(runs[-2].rows) < _GROWTH * len(runs[-1].rows):
        runs = (*runs[:-2], merge_seen(runs[-2:]))
    return runs


def seen_at(rows: Rows, times: npt.NDArray[np.int64]) -> Seen:
    """Return times of rows, in any order; of repeats, the last counts."""
    return merge_seen([Seen(rows.astype(np.uint32), times)])


def merge_seen(runs: Sequence[Seen]) -> Seen:
    """Return runs as one: of each row the latest time."""
    rows = np.concatenate([run.rows for run in runs])
    times = np.concatenate([run.times for run in runs])
    order = np.argsort(rows, kind="stable")
    rows, times = rows[order], times[order]
    last = np.append(rows[1:] != rows[:-1], True)[: len(rows)]
    return Seen(rows[last], times[last])


class DocumentsView(NamedTuple):
    """The documents at one moment.

    starts : int64, the first row of each chunk. selected : the schema of columns that were taken before.
    """

    schema: pa.Schema
    chunks: tuple[Chunk, ...]
    starts: Rows
    seen: tuple[Seen, ...]
    selected: dict[tuple[str, ...], pa.Schema]

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        """Return columns of rows, in this order. Requires: they are there."""
        schema = self._select(columns)
        if not len(rows):
            return schema.empty_table()
        which = self._chunks_of(rows)
        if len(which) == 1 or which.min() == which.max():
            chunk = self.chunks[which[0]]
            arrays = chunk.select(chunk.positions(rows), schema)
            return self._with_times(pa.Table.from_arrays(arrays, schema=schema), rows)
        order = np.argsort(which, kind="stable")
        edges = np.flatnonzero(np.diff(which[order], prepend=-1, append=len(self.chunks)))
        parts = []
        for begin, end in pairwise(edges):
            chunk = self.chunks[which[order[begin]]]
            parts.append(chunk.select(chunk.positions(rows[order[begin:end]]), schema))
        joined = [pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True)]
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        back = arrow_of(inverse)
        return self._with_times(pa.Table.from_arrays([array.take(back) for array in joined], schema=schema), rows)

    def sketched(self, rows: Rows) -> Sketched:
        """Return what documents are compared by. Requires: they are there."""
        which = self._chunks_of(rows)
        if len(which) == 1 or (len(which) and which.min() == which.max()):
            chunk: Chunk = self.chunks[which[0]]
            return chunk.sketched(chunk.positions(rows))
        return sketched_of(self.take(rows, SKETCHED))

    def scan(self, columns: Sequence[str], forgotten: npt.NDArray[np.uint64]) -> Iterator[pa.Table]:
        """Yield columns of all rows that were not forgotten, some thousand at a time."""
        schema = self._select(columns)
        for chunk in self.chunks:
            for begin in range(0, chunk.batch.num_rows, _ROWS_A_SCAN):
                rows = chunk.rows(begin, min(begin + _ROWS_A_SCAN, chunk.batch.num_rows))
                alive = np.flatnonzero(~bits_at(forgotten, rows))
                if len(alive):
                    table = pa.Table.from_arrays(chunk.select(alive + begin, schema), schema=schema)
                    yield self._with_times(table, rows[alive])

    def _select(self, columns: Sequence[str]) -> pa.Schema:
        names = tuple(columns)
        found = self.selected.get(names)
        if found is None:
            found = self.selected[names] = pa.schema([self.schema.field(name) for name in names])
        return found

    def _chunks_of(self, rows: Rows) -> Rows:
        """Return the number of the chunk of each row."""
        found: Rows = self.starts.searchsorted(rows, "right") - 1
        return found

    def _with_times(self, table: pa.Table, rows: Rows) -> pa.Table:
        """Return a table in which `last_seen`, if it is there, has the times that changed."""
        index = table.schema.get_field_index("last_seen")
        if index < 0 or not self.seen:
            return table
        times = np.array(table.column(index).cast(pa.int64()).to_numpy())
        wanted = rows.astype(np.uint32)
        for run in self.seen:
            if len(run.rows):
                at = np.minimum(np.searchsorted(run.rows, wanted), len(run.rows) - 1)
                times = np.where(run.rows[at] == wanted, run.times[at], times)
        return table.set_column(index, table.schema.field(index), arrow_of(times).cast(schemas.TIME))


class Documents:
    """Growing chunks of documents. Not for use by several threads at once, except for the views."""

    def __init__(self) -> None:
        self.schema: pa.Schema | None = None
        self.chunks: list[Chunk] = []
        self.seen: tuple[Seen, ...] = ()
        self._selected: tuple[pa.Schema, dict[tuple[str, ...], pa.Schema]] = (EMPTY_SCHEMA, {})

    def append(self, documents: pa.Table, first: int, least_row: int) -> None:
        """Append documents of the rows from `first` on; combine small chunks that begin at `least_row` or later."""
        self.schema = self.schema or documents.schema
        self.chunks.append(Chunk(first, first + len(documents), as_batch(documents)))
        while (begin := self._first_to_combine(least_row)) is not None:
            combined = self.chunks[begin:]
            table = pa.Table.from_batches([chunk.batch for chunk in combined])
            self.chunks[begin:] = [Chunk(combined[0].first, combined[-1].stop, as_batch(table))]

    def drop(self, forgotten: npt.NDArray[np.uint64]) -> None:
        """Drop the documents of forgotten rows."""
        self.chunks = [without(chunk, forgotten, self.schema) for chunk in self.chunks]

    def replace(self, chunk: Chunk) -> None:
        """Put a chunk instead of those whose rows it covers."""
        inside = [i for i, old in enumerate(self.chunks) if chunk.first <= old.first and old.stop <= chunk.stop]
        self.chunks[inside[0] : inside[-1] + 1] = [chunk]

    def view(self) -> DocumentsView:
        """Return the documents of this moment."""
        starts = np.array([chunk.first for chunk in self.chunks], np.int64)
        schema = self.schema or EMPTY_SCHEMA
        if schema is not self._selected[0]:
            self._selected = (schema, {})
        return DocumentsView(schema, tuple(self.chunks), starts, self.seen, self._selected[1])

    def _first_to_combine(self, least_row: int) -> int | None:
        """Return the first of the last sixteen chunks if all of them are about as small as the last."""
        last = self.chunks[-_FAN_IN:]
        if len(last) < _FAN_IN or last[0].first < least_row:
            return None
        most = min(_MAX_COMBINED // _FAN_IN, _FAN_IN * last[-1].batch.num_rows)
        return len(self.chunks) - _FAN_IN if all(chunk.batch.num_rows < most for chunk in last) else None


def without(chunk: Chunk, forgotten: npt.NDArray[np.uint64], schema: pa.Schema) -> Chunk:
    """Return a chunk in memory, with all columns, without the documents of forgotten rows; itself if none are."""
    alive = ~bits_at(forgotten, chunk.rows(0, chunk.batch.num_rows))
    if alive.all():
        return chunk
    arrays = chunk.select(np.flatnonzero(alive), schema)
    return Chunk(chunk.first, chunk.stop, pa.RecordBatch.from_arrays(arrays, schema=schema))


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def bits_at(bits: npt.NDArray[np.uint64], rows: Rows) -> npt.NDArray[np.bool_]:
    """Return the bit of each row."""
    found: npt.NDArray[np.bool_] = (bits[rows >> 6] >> (rows & 63).astype(np.uint64)) & np.uint64(1) != 0
    return found
