"""The documents of a store in chunks of rows, in memory or in mapped files; and the times that
changed since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Bytes,
    Mask,
    Rows,
    Uint32s,
    Words,
    find_in,
    flatten_strings,
    grow,
    join_arrays,
)
from neardup.errors import StoreError
from neardup.stores.damage import damaged

_FAN_IN, _MAX_COMBINED = (
    16,
    1 << 12,
)  # small chunks are combined sixteen at a time, up to so many rows: some ms
_ROWS_A_SCAN = 1 << 14
_WORD = 8
_GROWTH = 2
_BOOL = pa.bool_()
_NULLS, _BEGIN, _ENDS = range(3)  # of kernels.gather
_LEAST_TIME, _GREATEST_TIME = (
    -62_135_596_800_000_000,
    253_402_300_799_999_999,
)  # of Python, microseconds since 1970
NARROW = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
"""Types of files instead of those of the index, besides bytes of one length."""


class Binaries(NamedTuple):
    """Bytes of any length, row by row; those of a null are none.

    data : uint8, aligned for numbers. offsets : int64 (num_rows + 1,); row i is data[offsets[i] :
    offsets[i + 1]].
    """

    data: Bytes
    offsets: Rows


@dataclass(eq=False)
class Chunk:
    """The documents of the rows from `first` to `stop`, some of which may be gone.

    batch : columns of the documents. One that is missing has nulls only, but for `row`, which
    counts on from `first`, and `last_seen`, which is `first_seen`. name : of the file that contains
    the chunk, if any.
    """

    first: int
    stop: int
    batch: pa.RecordBatch
    name: str | None = None
    _fields: list[Rows] = field(default_factory=list, repr=False)

    @property
    def listed(self) -> Uint32s | None:
        """The rows that are there, None if all are."""
        return (
            None
            if self.batch.num_rows == self.stop - self.first
            else self.batch.column("row").to_numpy()
        )

    def rows(self, begin: int, end: int) -> Rows:
        """Return the rows at the positions from `begin` to `end`. Raises StoreError if they are
        damaged.
        """
        if self.listed is None:
            return np.arange(self.first + begin, self.first + end)
        rows = self.listed[begin:end].astype(np.int64)
        if (np.diff(rows, prepend=self.first - 1, append=self.stop) <= 0).any():
            raise self.damaged
        return rows

    @property
    def damaged(self) -> StoreError:
        """The error of documents that are not as the index lists them."""
        return damaged(
            self.name or "of documents",
            "a document is not where the index lists it, or its bytes are not",
        )

    @property
    def place(self) -> tuple[int, ...]:
        """The numbers of the chunk for `gather_rows`, without the address of those of its
        fields.
        """
        return (
            self.first,
            0 if self.listed is None else self.listed.ctypes.data,
            self.batch.num_rows,
            0,
        )

    def locate(self, schema: pa.Schema) -> int:
        """Return the address of the numbers of the columns of the schema of the store, which stay
        with the chunk.

        Raises StoreError if columns are of other types.
        """
        if self._fields:
            return self._fields[0].ctypes.data
        columns = dict(zip(self.batch.schema.names, self.batch.columns, strict=True))
        if not all(
            name in schema.names and _fits(columns[name].type, schema.field(name).type)
            for name in columns
        ):
            raise self.damaged
        if self.listed is None:
            columns["row"] = None
        columns.setdefault("last_seen", columns.get("first_seen"))
        fields = np.array([_numbers_of(name, columns.get(name)) for name in schema.names], np.int64)
        self._fields.append(fields)  # of two threads at once, both may
        return self._fields[0].ctypes.data


def _numbers_of(name: str, column: pa.Array | None) -> tuple[int, ...]:
    """Return the numbers of a column for `gather_rows`."""
    codes = kernels.gather
    if column is None or column.null_count == len(column):
        return (codes.NUMBERED if name == "row" else codes.MISSING, 0, 0, 0, 0, 0, 0)
    buffers, first = column.buffers(), column.offset
    valid = buffers[0].address if column.null_count else 0
    data = buffers[-1]
    address, size = (0, 0) if data is None else (data.address, data.size)
    code, width = _code_of(column.type)
    if code == codes.BITS:
        return code, width, address, size, 0, valid, first
    if code == codes.FIXED:
        return code, width, address + width * first, size - width * first, 0, valid, first
    return code, 0, address, size, buffers[1].address + width * first, valid, first


def _fits(stored: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether a column may have a type in a file, given that of the index."""
    is_fixed = kind == pa.large_binary() and pa.types.is_fixed_size_binary(stored)
    return stored in (kind, NARROW.get(kind)) or is_fixed


@cache
def _code_of(kind: pa.DataType) -> tuple[int, int]:
    """Return the kind of a column for `gather_rows`, and the bytes of a value, or else of an
    offset.
    """
    codes = kernels.gather
    if kind == _BOOL:
        return codes.BITS, 1
    is_short, is_long = kind in NARROW.values(), kind in NARROW
    return (
        (codes.SHORT, 4)
        if is_short
        else (codes.LONG, 8)
        if is_long
        else (codes.FIXED, kind.bit_width // 8)
    )


class Selection(NamedTuple):
    """Some columns as `gather_rows` takes them.

    schema : of these columns. wanted : their numbers in the schema of the store. widths : as
    returned. kinds : the types. last_seen : its number among them, or -1.
    """

    schema: pa.Schema
    wanted: Rows
    widths: Rows
    kinds: tuple[pa.DataType, ...]
    last_seen: int


def selection_of(schema: pa.Schema, names: Sequence[str]) -> Selection:
    """Return the selection of columns by name."""
    chosen = pa.schema([schema.field(name) for name in names])
    wanted = np.array([schema.get_field_index(name) for name in names], np.int64)
    kinds = tuple(chosen.types)
    widths = [
        1 if kind == _BOOL else 0 if kind in NARROW else kind.bit_width // 8 for kind in kinds
    ]
    last_seen = names.index("last_seen") if "last_seen" in names else -1
    return Selection(chosen, wanted, np.array(widths, np.int64), kinds, last_seen)


class Gathered(NamedTuple):
    """Columns of rows: the arrays that `gather_rows` returns."""

    selection: Selection
    data: Bytes
    numbers: Rows
    there: Mask

    def bytes_of(self, column: int) -> Bytes:
        """Return the bytes of a column."""
        begin, width = self.numbers.item(column, _BEGIN), self.selection.widths.item(column)
        size = self.there.shape[1] * width if width else self.numbers.item(column, -1)
        return self.data[begin : begin + size]

    def binaries(self, column: int) -> Binaries:
        """Return a column of bytes of any length."""
        return Binaries(self.bytes_of(column), self.numbers[column, _ENDS:])

    def has_values(self, column: int) -> bool:
        """Return whether a column has more than nulls."""
        return bool(self.numbers.item(column, _NULLS) < self.there.shape[1])

    def arrays(self, first: int = 0) -> list[pa.Array]:
        """Return the columns from number `first` on.

        Raises
        ------
        StoreError
            If a text is not UTF-8, or a time is none that Python has.
        """
        selection, size, arrays = self.selection, self.there.shape[1], []
        for column in range(first, len(selection.kinds)):
            kind, nulls = selection.kinds[column], self.numbers.item(column, _NULLS)
            if nulls and not selection.schema.field(column).nullable:
                raise damaged(
                    "of documents",
                    f"the {selection.schema.field(column).name} of a document is missing",
                )
            if nulls == size:
                arrays.append(pa.nulls(size, kind))
                continue
            values = self.bytes_of(column)
            buffers = [
                pa.py_buffer(np.packbits(values, bitorder="little") if kind == _BOOL else values)
            ]
            if not selection.widths.item(column):
                buffers.insert(0, pa.py_buffer(self.numbers[column, _ENDS:]))
            valid = (
                pa.py_buffer(np.packbits(self.there[column], bitorder="little")) if nulls else None
            )
            arrays.append(pa.Array.from_buffers(kind, size, [valid, *buffers], nulls))
            if not _is_whole(arrays[-1], values):
                raise damaged("of documents", "a text is not UTF-8, or a time is out of range")
        return arrays

    def table(self) -> pa.Table:
        """Return all columns."""
        return pa.Table.from_arrays(self.arrays(), schema=self.selection.schema)


def _is_whole(array: pa.Array, values: Bytes) -> bool:
    """Return whether Python can read a column: a fifth of a microsecond for a text. values : its
    bytes.
    """
    if pa.types.is_timestamp(array.type):
        times = values.view(np.int64)
        return bool(times.min() >= _LEAST_TIME and times.max() <= _GREATEST_TIME)
    try:
        array.validate(full=pa.types.is_large_string(array.type))
    except pa.ArrowException:
        return False
    return True


def gather(rows: Rows, chunks: Sequence[Chunk], places: Rows, selection: Selection) -> Gathered:
    """Return columns of rows, in this order.

    chunks : by rows. places : of the chunks, located.

    Raises
    ------
    StoreError
        If a row is in no chunk, or its bytes in no file.
    """
    *gathered, damaged = kernels.gather.gather_rows(
        rows, places, selection.wanted, selection.widths
    )
    if damaged >= 0:
        raise chunks[damaged].damaged
    return Gathered(selection, *gathered)


def without(chunk: Chunk, forgotten: Words, schema: pa.Schema) -> Chunk:
    """Return a chunk in memory, with all columns, without the documents of forgotten rows; itself
    if none are.
    """
    rows = chunk.rows(0, chunk.batch.num_rows)
    alive = rows[~bits_at(forgotten, rows)]
    if len(alive) == len(rows):
        return chunk
    return Chunk(chunk.first, chunk.stop, as_batch(take_of(chunk, alive, schema)))


def all_of(chunk: Chunk, schema: pa.Schema) -> pa.Table:
    """Return a chunk with all columns of a schema."""
    if chunk.batch.schema == schema:
        return pa.Table.from_batches([chunk.batch])
    return take_of(chunk, chunk.rows(0, chunk.batch.num_rows), schema)


def take_of(chunk: Chunk, rows: Rows, schema: pa.Schema) -> pa.Table:
    """Return rows of a chunk with all columns of a schema."""
    places = np.array([chunk.place])
    places[0, kernels.gather.FIELDS] = chunk.locate(schema)
    return gather(rows, [chunk], places, selection_of(schema, schema.names)).table()


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch."""
    batches = table.to_batches()
    if len(batches) > 1:
        batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def bits_at(bits: Words, rows: Rows) -> Mask:
    """Return the bit of each row."""
    found: Mask = (bits[rows >> 6] >> (rows & 63).astype(np.uint64)) & np.uint64(1) != 0
    return found


def array_of(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return join_arrays(column.chunks or [pa.nulls(0, column.type)])


def contents_of(column: pa.ChunkedArray) -> Words:
    """Return a column of binary(16) as uint64 (n, 2)."""
    array = array_of(column)
    return np.frombuffer(
        array.buffers()[1] or b"", np.uint64, 2 * len(array), 16 * array.offset
    ).reshape(-1, 2)


class Sketched(NamedTuple):
    """What documents are compared by, row by row.

    content : uint64 (num_rows, 2). featured : bool (num_rows,). sketch : uint8 (num_rows, width).
    details : more columns, by name, without those of nulls.
    """

    content: Words
    featured: Mask
    sketch: Bytes
    details: dict[str, Binaries]


SKETCHED = ("content", "featured", "sketch")
"""The columns of the same names."""


def sketched_of(table: pa.Table, details: Sequence[str] = ()) -> Sketched:
    """Return SKETCHED of a table, and other columns of bytes, as numbers."""
    featured, sketch = (array_of(table.column(name)) for name in SKETCHED[1:])
    is_featured = np.asarray(featured.to_numpy(zero_copy_only=False), np.bool_)
    sketches = _rows_of(_binaries(sketch).data, len(sketch))
    columns = {name: table.column(name) for name in details}
    more = {
        name: _binaries(array_of(column))
        for name, column in columns.items()
        if column.null_count < len(table)
    }
    return Sketched(contents_of(table.column("content")), is_featured, sketches, more)


def _binaries(array: pa.Array) -> Binaries:
    data, offsets = flatten_strings(array)
    return Binaries(data if data.ctypes.data % _WORD == 0 else data.copy(), offsets)


def _rows_of(data: Bytes, size: int) -> Bytes:
    """Return bytes as rows of one length."""
    return data.reshape(size, len(data) // max(1, size))


class Seen(NamedTuple):
    """Times that replace `last_seen`, by row. rows : uint32, rising; times : int64, microseconds
    since 1970.

    name : of the file that contains them, if any.
    """

    rows: Uint32s
    times: Rows
    name: str | None = None


def add_seen(runs: tuple[Seen, ...], added: Seen) -> tuple[Seen, ...]:
    """Return the runs with a later one, merged so that each in memory is at least twice as long as
    the next.
    """
    runs = (*runs, added)
    while (
        len(runs) > 1
        and runs[-2].name is None
        and len(runs[-2].rows) < _GROWTH * len(runs[-1].rows)
    ):
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

    places : of the chunks, for `gather_rows`; the fields of the last ones may not be located yet.
    selected : columns that were taken before, by their names.
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
        """Return the features that comparisons read, and columns. Requires: the documents are
        there.
        """
        gathered = self._gather(rows, (*SKETCHED, *details, *columns))
        content, featured, sketch = gathered.bytes_of(0), gathered.bytes_of(1), gathered.bytes_of(2)
        first = len(SKETCHED) + len(details)
        more = {
            name: gathered.binaries(i)
            for i, name in enumerate(details, len(SKETCHED))
            if gathered.has_values(i)
        }
        contents, sketches = content.view(np.uint64).reshape(-1, 2), _rows_of(sketch, len(rows))
        return Sketched(contents, featured.view(np.bool_), sketches, more), gathered.arrays(first)

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
            self._correct_times(
                gathered.bytes_of(selection.last_seen).view(np.int64), rows.astype(np.uint32)
            )
        return gathered

    def _locate(self) -> None:
        """Locate the fields of the last chunks, if they are not: in order, so that all are where
        the last ones are.
        """
        number = len(self.chunks)
        while number and not self.places.item(number - 1, kernels.gather.FIELDS):
            number -= 1
        for chunk in self.chunks[number:]:
            self.places[number, kernels.gather.FIELDS] = chunk.locate(self.schema)
            number += 1

    def _correct_times(self, times: Rows, rows: Uint32s) -> None:
        """Replace the times of rows that changed."""
        for run in self.seen:
            at, changed = find_in(run.rows, rows)
            times[changed] = run.times[at[changed]]


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
        """Append documents of the rows from `first` on; combine small chunks that begin at
        `least_row` or later.
        """
        self.chunks.append(Chunk(first, first + len(documents), as_batch(documents)))
        while (begin := self._first_to_combine(least_row)) is not None:
            combined = self.chunks[begin:]
            table = pa.Table.from_batches([chunk.batch for chunk in combined])
            self._put(
                begin,
                len(self.chunks),
                [Chunk(combined[0].first, combined[-1].stop, as_batch(table))],
            )

    def restore(self, chunks: Sequence[Chunk], seen: Sequence[Seen]) -> None:
        """Begin with these chunks of all rows, and times."""
        self._put(0, len(self.chunks), chunks)
        self.seen = tuple(seen)

    def drop(self, forgotten: Words) -> None:
        """Drop the documents of forgotten rows."""
        self._put(
            0, len(self.chunks), [without(chunk, forgotten, self.schema) for chunk in self.chunks]
        )

    def replace(self, chunk: Chunk) -> None:
        """Put a chunk instead of those whose rows it covers."""
        inside = [
            i
            for i, old in enumerate(self.chunks)
            if chunk.first <= old.first and old.stop <= chunk.stop
        ]
        self._put(inside[0], inside[-1] + 1, [chunk])

    def view(self) -> DocumentsView:
        """Return the documents of this moment."""
        size = len(self.chunks)
        self._places = grow(self._places, size)
        for number in range(self._num_placed, size):
            self._places[number] = self.chunks[number].place
        self._num_placed = size
        return DocumentsView(
            self.schema, tuple(self.chunks), self._places[:size], self.seen, self._selected
        )

    def _put(self, begin: int, end: int, chunks: Sequence[Chunk]) -> None:
        """Replace the chunks from `begin` to `end`."""
        self.chunks[begin:end] = chunks
        if begin < self._num_placed:
            self._places = self._places.copy()  # views have the old one
            self._num_placed = begin

    def _first_to_combine(self, least_row: int) -> int | None:
        """Return the first of the last sixteen chunks if all of them are about as small as the
        last.
        """
        last = self.chunks[-_FAN_IN:]
        if len(last) < _FAN_IN or last[0].first < least_row:
            return None
        most = min(_MAX_COMBINED // _FAN_IN, _FAN_IN * last[-1].batch.num_rows)
        return (
            len(self.chunks) - _FAN_IN
            if all(chunk.batch.num_rows < most for chunk in last)
            else None
        )
