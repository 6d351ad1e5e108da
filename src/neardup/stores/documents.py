"""The documents of a store in chunks of rows, in memory or in mapped files; and the times that changed since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Mask, Rows, Words, flatten_strings
from neardup.stores.chunks import (
    Binaries,
    Chunk,
    Gathered,
    Selection,
    array_of,
    as_batch,
    bits_at,
    gather,
    selection_of,
    without,
)

_FAN_IN, _MAX_COMBINED = 16, 1 << 12  # small chunks are combined sixteen at a time, up to so many rows: some ms
_ROWS_A_SCAN = 1 << 14
_WORD = 8
_GROWTH = 2


class Sketched(NamedTuple):
    """What documents are compared by, row by row.

    content : uint64 (num_rows, 2). featured : bool (num_rows,). sketch : uint8 (num_rows, width). details : more
    columns, by name, without those of nulls.
    """

    content: Words
    featured: Mask
    sketch: Bytes
    details: dict[str, Binaries]


SKETCHED = ("content", "featured", "sketch")
"""The columns of the same names."""


def sketched_of(table: pa.Table, details: Sequence[str] = ()) -> Sketched:
    """Return SKETCHED of a table, and other columns of bytes, as numbers."""
    content, featured, sketch = (array_of(table.column(name)) for name in SKETCHED)
    more = {name: array_of(table.column(name)) for name in details if table.column(name).null_count < len(table)}
    words = np.frombuffer(content.buffers()[1] or b"", np.uint64)[2 * content.offset :][: 2 * len(content)]
    return Sketched(
        words.reshape(-1, 2),
        np.asarray(featured.to_numpy(zero_copy_only=False), np.bool_),
        _rows_of(_binaries(sketch).data, len(sketch)),
        {name: _binaries(array) for name, array in more.items()},
    )


def _binaries(array: pa.Array) -> Binaries:
    data, offsets = flatten_strings(array)
    return Binaries(data if data.ctypes.data % _WORD == 0 else data.copy(), offsets)


def _rows_of(data: Bytes, size: int) -> Bytes:
    """Return bytes as rows of one length."""
    return data.reshape(size, len(data) // max(1, size))


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


def seen_at(rows: Rows, times: Rows) -> Seen:
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

    places : of the chunks, for `gather_rows`; the fields of the last ones may not be located yet. selected : columns
    that were taken before, by their names.
    """

    schema: pa.Schema
    chunks: tuple[Chunk, ...]
    places: Rows
    seen: tuple[Seen, ...]
    selected: dict[tuple[str, ...], Selection]

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        """Return columns of rows, in this order. Requires: they are there."""
        return self._gather(rows, tuple(columns)).table()

    def take_sketched(
        self, rows: Rows, details: Sequence[str], columns: Sequence[str]
    ) -> tuple[Sketched, list[pa.Array]]:
        """Return the features that comparisons read, and columns. Requires: the documents are there."""
        gathered = self._gather(rows, (*SKETCHED, *details, *columns))
        content, featured, sketch = gathered.bytes_of(0), gathered.bytes_of(1), gathered.bytes_of(2)
        first = len(SKETCHED) + len(details)
        more = {name: gathered.binaries(i) for i, name in enumerate(details, len(SKETCHED)) if gathered.has_values(i)}
        sketched = Sketched(
            content.view(np.uint64).reshape(-1, 2), featured.view(np.bool_), _rows_of(sketch, len(rows)), more
        )
        return sketched, gathered.arrays(first)

    def scan(self, columns: Sequence[str], forgotten: Words) -> Iterator[pa.Table]:
        """Yield columns of all rows that were not forgotten, some thousand at a time."""
        for chunk in self.chunks:
            for begin in range(0, chunk.batch.num_rows, _ROWS_A_SCAN):
                rows = chunk.rows(begin, min(begin + _ROWS_A_SCAN, chunk.batch.num_rows))
                alive = rows[~bits_at(forgotten, rows)]
                if len(alive):
                    yield self.take(alive, columns)

    def _gather(self, rows: Rows, names: tuple[str, ...]) -> Gathered:
        selection = self.selected.get(names)
        if selection is None:
            selection = self.selected[names] = selection_of(self.schema, names)
        self._locate()
        gathered = gather(rows, self.chunks, self.places, selection)
        if self.seen and selection.last_seen >= 0:
            self._correct_times(gathered.bytes_of(selection.last_seen).view(np.int64), rows.astype(np.uint32))
        return gathered

    def _locate(self) -> None:
        """Locate the fields of the last chunks, if they are not: in order, so that all are where the last ones are."""
        number = len(self.chunks)
        while number and not self.places.item(number - 1, kernels.gather.FIELDS):
            number -= 1
        for chunk in self.chunks[number:]:
            self.places[number, kernels.gather.FIELDS] = chunk.locate(self.schema)
            number += 1

    def _correct_times(self, times: Rows, rows: npt.NDArray[np.uint32]) -> None:
        """Replace the times of rows that changed."""
        for run in self.seen:
            if len(run.rows):
                at = np.minimum(np.searchsorted(run.rows, rows), len(run.rows) - 1)
                np.copyto(times, run.times[at], where=run.rows[at] == rows)


class Documents:
    """Growing chunks of documents. Not for use by several threads at once, except for the views."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.chunks: list[Chunk] = []
        self.seen: tuple[Seen, ...] = ()
        self._selected: dict[tuple[str, ...], Selection] = {}
        self._places = np.zeros((0, 4), np.int64)  # of the first chunks, views have parts of it
        self._num_placed = 0

    def append(self, documents: pa.Table, first: int, least_row: int) -> None:
        """Append documents of the rows from `first` on; combine small chunks that begin at `least_row` or later."""
        self.chunks.append(Chunk(first, first + len(documents), as_batch(documents)))
        while (begin := self._first_to_combine(least_row)) is not None:
            combined = self.chunks[begin:]
            table = pa.Table.from_batches([chunk.batch for chunk in combined])
            self._put(begin, len(self.chunks), [Chunk(combined[0].first, combined[-1].stop, as_batch(table))])

    def restore(self, chunks: Sequence[Chunk], seen: Sequence[Seen]) -> None:
        """Begin with these chunks of all rows, and times."""
        self._put(0, len(self.chunks), chunks)
        self.seen = tuple(seen)

    def drop(self, forgotten: Words) -> None:
        """Drop the documents of forgotten rows."""
        self._put(0, len(self.chunks), [without(chunk, forgotten, self.schema) for chunk in self.chunks])

    def replace(self, chunk: Chunk) -> None:
        """Put a chunk instead of those whose rows it covers."""
        inside = [i for i, old in enumerate(self.chunks) if chunk.first <= old.first and old.stop <= chunk.stop]
        self._put(inside[0], inside[-1] + 1, [chunk])

    def view(self) -> DocumentsView:
        """Return the documents of this moment."""
        size = len(self.chunks)
        if len(self._places) < size:
            longer = np.zeros((2 * size, 4), np.int64)
            longer[: self._num_placed] = self._places[: self._num_placed]
            self._places = longer
        for number in range(self._num_placed, size):
            self._places[number] = self.chunks[number].place
        self._num_placed = size
        return DocumentsView(self.schema, tuple(self.chunks), self._places[:size], self.seen, self._selected)

    def _put(self, begin: int, end: int, chunks: Sequence[Chunk]) -> None:
        """Replace the chunks from `begin` to `end`."""
        self.chunks[begin:end] = chunks
        if begin < self._num_placed:
            self._places = self._places.copy()  # views have the old one
            self._num_placed = begin

    def _first_to_combine(self, least_row: int) -> int | None:
        """Return the first of the last sixteen chunks if all of them are about as small as the last."""
        last = self.chunks[-_FAN_IN:]
        if len(last) < _FAN_IN or last[0].first < least_row:
            return None
        most = min(_MAX_COMBINED // _FAN_IN, _FAN_IN * last[-1].batch.num_rows)
        return len(self.chunks) - _FAN_IN if all(chunk.batch.num_rows < most for chunk in last) else None
