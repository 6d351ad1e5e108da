"""The documents of a store in chunks of rows, in memory or in mapped files, and times that changed
later.

`Documents` grows, and `DocumentsView` reads it at one moment. Below are the times, the chunks, the
gathered rows of chunks, and columns as arrays.
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
    Array,
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

_FAN_IN = 16  # small chunks that are combined at a time
_MAX_COMBINED = 1 << 12  # rows of a chunk that is combined in memory, which takes milliseconds
_ROWS_PER_SCAN = 1 << 14
_WORD = 8  # bytes
_GROWTH = 2
_BOOL = pa.bool_()
_NULLS, _BEGIN, _ENDS = range(3)  # of kernels.gather
# The range of Python's datetime, in microseconds since 1970.
_MIN_TIME = np.int64(-62_135_596_800_000_000).astype(np.uint64)
_TIMES = np.uint64(253_402_300_799_999_999 + 62_135_596_800_000_000)
NARROW = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
"""The narrower types of files, besides fixed_size_binary."""
SKETCHED = ("content", "featured", "sketch")
"""The columns by which documents are compared, the first fields of `Sketched`."""


class Documents:
    """Growing chunks of documents. Only views may be used by several threads at once."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.chunks: list[Chunk] = []
        self.seen: tuple[Seen, ...] = ()
        self._selections: dict[tuple[str, ...], Selection] = {}
        # Of the first chunks; views have parts of the array.
        self._addresses = np.zeros((0, len(ChunkAddress._fields)), np.int64)
        self._num_addresses = 0

    def append(self, batch: pa.RecordBatch, first: int, min_row: int) -> None:
        """Append documents of the rows from `first` on; combine small chunks that begin at
        `min_row` or later.
        """
        self.chunks.append(Chunk(first, first + batch.num_rows, batch))
        while (begin := self._first_to_combine(min_row)) is not None:
            chunks = self.chunks[begin:]
            table = pa.Table.from_batches([chunk.batch for chunk in chunks])
            combined = Chunk(chunks[0].first, chunks[-1].stop, as_batch(table))
            self._put(begin, len(self.chunks), [combined])

    def restore(self, chunks: Sequence[Chunk], seen: Sequence[Seen]) -> None:
        """Begin with these chunks of all rows, and times."""
        self._put(0, len(self.chunks), chunks)
        self.seen = tuple(seen)

    def drop(self, forgotten: Words) -> None:
        """Drop the documents of forgotten rows."""
        chunks = [without(chunk, forgotten, self.schema) for chunk in self.chunks]
        self._put(0, len(self.chunks), chunks)

    def replace(self, chunk: Chunk) -> None:
        """Replace the chunks whose rows a chunk covers by this chunk."""
        covered = [
            i
            for i, old in enumerate(self.chunks)
            if chunk.first <= old.first and old.stop <= chunk.stop
        ]
        self._put(covered[0], covered[-1] + 1, [chunk])

    def view(self) -> DocumentsView:
        """Return the current documents; later changes do not affect the view."""
        num_chunks = len(self.chunks)
        self._addresses = grow(self._addresses, num_chunks)
        for number in range(self._num_addresses, num_chunks):
            self._addresses[number] = self.chunks[number].address
        self._num_addresses = num_chunks
        return DocumentsView(
            schema=self.schema,
            chunks=tuple(self.chunks),
            addresses=self._addresses[:num_chunks],
            seen=self.seen,
            selections=self._selections,
        )

    def _put(self, begin: int, end: int, chunks: Sequence[Chunk]) -> None:
        """Replace the chunks from `begin` to `end`."""
        self.chunks[begin:end] = chunks
        if begin < self._num_addresses:
            self._addresses = self._addresses.copy()  # because views have the old array
            self._num_addresses = begin

    def _first_to_combine(self, min_row: int) -> int | None:
        """Return the first of the last `_FAN_IN` chunks if all are small; None if one is not."""
        last = self.chunks[-_FAN_IN:]
        if len(last) < _FAN_IN or last[0].first < min_row:
            return None
        # Sixteen chunks below the first bound combine to at most _MAX_COMBINED rows. The second one
        # keeps a chunk that is much larger than the last from being copied with each small one.
        limit = min(_MAX_COMBINED // _FAN_IN, _FAN_IN * last[-1].batch.num_rows)
        if any(chunk.batch.num_rows >= limit for chunk in last):
            return None
        return len(self.chunks) - _FAN_IN


class DocumentsView(NamedTuple):
    """The documents at one moment.

    addresses : int64 (num_chunks, 4), `ChunkAddress`; some may be without fields.
    selections : of columns that were taken before, by their names.
    """

    schema: pa.Schema
    chunks: tuple[Chunk, ...]
    addresses: Rows
    seen: tuple[Seen, ...]
    selections: dict[tuple[str, ...], Selection]

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        """Return columns of rows, in this order. Requires: none of them was forgotten."""
        return self._gather(rows, tuple(columns)).table()

    def take_sketched(
        self, rows: Rows, details: Sequence[str], columns: Sequence[str]
    ) -> tuple[Sketched, list[pa.Array]]:
        """Return the columns that comparisons read, and other columns.

        Requires: none of the rows was forgotten.
        """
        gathered = self._gather(rows, (*SKETCHED, *details, *columns))
        first_detail = len(SKETCHED)
        content, featured, sketch = map(gathered.bytes_of, range(first_detail))
        sketched = Sketched(
            content=content.view(np.uint64).reshape(-1, 2),
            featured=featured.view(np.bool_),
            sketch=_rows_of(sketch, len(rows)),
            details={
                name: gathered.binaries(column)
                for column, name in enumerate(details, first_detail)
                if gathered.has_values(column)
            },
        )
        return sketched, gathered.arrays(first_detail + len(details))

    def scan(self, columns: Sequence[str], forgotten: Words) -> Iterator[pa.Table]:
        """Yield columns of all rows that were not forgotten, some thousand at a time."""
        for chunk in self.chunks:
            for begin in range(0, chunk.batch.num_rows, _ROWS_PER_SCAN):
                rows = chunk.rows(begin, min(begin + _ROWS_PER_SCAN, chunk.batch.num_rows))
                alive = rows[~bits_at(forgotten, rows)]
                if len(alive):
                    yield self.take(alive, columns)

    def _gather(self, rows: Rows, names: tuple[str, ...]) -> Gathered:
        selection = self.selections.get(names)
        if selection is None:
            selection = selection_of(self.schema, names)
            self.selections[names] = selection
        self._locate(rows)
        gathered = gather(rows, self.chunks, self.addresses, selection)
        if self.seen and selection.last_seen is not None:
            # A view: the kernel's copy of the times is corrected in place.
            times = gathered.bytes_of(selection.last_seen).view(np.int64)
            self._correct_times(times, rows.astype(np.uint32))
        return gathered

    def _locate(self, rows: Rows) -> None:
        """Locate the fields of the chunks of rows.

        Not of all chunks: each call that adds documents makes one, and most are combined with
        others before a lookup finds their rows. To locate one takes 70 microseconds.
        """
        codes = kernels.gather
        # The last chunk that begins at a row or before it.
        numbers = self.addresses[:, codes.START].searchsorted(rows, "right") - 1
        missing = numbers[self.addresses[numbers, codes.FIELDS] == 0]
        # Threads that share a view may both do this: they write the same addresses.
        for number in missing.tolist():
            self.addresses[number, codes.FIELDS] = self.chunks[number].locate(self.schema)

    def _correct_times(self, times: Rows, rows: Uint32s) -> None:
        """Replace the times of rows that changed."""
        for run in self.seen:
            positions, is_changed = find_in(run.rows, rows)
            times[is_changed] = run.times[positions[is_changed]]


class Sketched(NamedTuple):
    """The columns by which documents are compared, row by row.

    content : uint64 (num_rows, 2). featured : bool (num_rows,). sketch : uint8 (num_rows, width).
    details : more columns by name, without columns that have nulls only.
    """

    content: Words
    featured: Mask
    sketch: Bytes
    details: dict[str, Binaries]


def sketched_of(table: pa.Table, details: Sequence[str] = ()) -> Sketched:
    """Return the columns of a table by which documents are compared."""
    featured = array_of(table.column("featured")).to_numpy(zero_copy_only=False)
    sketch = array_of(table.column("sketch"))
    columns = {name: table.column(name) for name in details}
    return Sketched(
        content=contents_of(table.column("content")),
        featured=np.asarray(featured, np.bool_),
        sketch=_rows_of(_binaries(sketch).data, len(sketch)),
        details={
            name: _binaries(array_of(column))
            for name, column in columns.items()
            if column.null_count < len(table)
        },
    )


class Seen(NamedTuple):
    """Times that replace `last_seen`, by row.

    rows : uint32, rising. times : int64, microseconds since 1970. name : of the file that contains
    them, if any.
    """

    rows: Uint32s
    times: Rows
    name: str | None = None


def add_seen(runs: tuple[Seen, ...], added: Seen) -> tuple[Seen, ...]:
    """Return the runs with a later one.

    Runs in memory are merged until each is at least `_GROWTH` times as long as the next.
    """
    earlier = list(runs)
    last = added
    # A run with a name is in a file, or is being written to one (its name is empty then).
    while earlier and earlier[-1].name is None:
        if len(earlier[-1].rows) >= _GROWTH * len(last.rows):
            break
        last = merge_seen([earlier.pop(), last])
    return (*earlier, last)


def seen_at(rows: Rows, times: Rows | int) -> Seen:
    """Return times of rows, in any order, or one time of all; the last time of a row counts."""
    return merge_seen([Seen(rows.astype(np.uint32), np.full(len(rows), times, np.int64))])


def merge_seen(runs: Sequence[Seen]) -> Seen:
    """Return runs as one, with the latest time of each row."""
    rows = np.concatenate([run.rows for run in runs])
    times = np.concatenate([run.times for run in runs])
    # Stable: the times of one row stay in the order of the runs, so the last one is the latest.
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    times = times[order]
    # The slice is for no rows, where `append` would still return one value.
    is_last = np.append(rows[1:] != rows[:-1], True)[: len(rows)]
    return Seen(rows[is_last], times[is_last])


@dataclass(eq=False)
class Chunk:
    """The documents of the rows from `first` to `stop`; some rows may be missing.

    batch : columns of the documents. A missing column has nulls only, except for `row`, which
    counts on from `first`, and `last_seen`, which equals `first_seen`. name : of the file that
    contains the chunk, if any.
    """

    first: int
    stop: int
    batch: pa.RecordBatch
    name: str | None = None
    _fields: list[Rows] = field(default_factory=list, repr=False)

    @property
    def listed(self) -> Uint32s | None:
        """The rows in the batch, None if they are all rows."""
        if self.batch.num_rows == self.stop - self.first:
            return None
        rows: Uint32s = self.batch.column("row").to_numpy()
        return rows

    def rows(self, begin: int, end: int) -> Rows:
        """Return the rows at the positions from `begin` to `end`.

        Raises StoreError if they are damaged.
        """
        if self.listed is None:
            return np.arange(self.first + begin, self.first + end)
        rows = self.listed[begin:end].astype(np.int64)
        # Rows rise strictly within [first, stop). The bounds are added as neighbors, so that a step
        # below 1 also finds a row outside of them.
        steps = np.diff(rows, prepend=self.first - 1, append=self.stop)
        if (steps <= 0).any():
            raise self.damaged
        return rows

    @property
    def damaged(self) -> StoreError:
        """The error of documents that differ from the lists of the index."""
        return damaged(
            self.name or "of documents",
            "a document is not where the index lists it, or its bytes are not",
        )

    @property
    def address(self) -> ChunkAddress:
        """The address of the chunk, without its fields."""
        rows = 0 if self.listed is None else self.listed.ctypes.data
        return ChunkAddress(start=self.first, rows=rows, size=self.batch.num_rows)

    def locate(self, schema: pa.Schema) -> int:
        """Return the address of the fields for the columns of the schema of the store.

        Raises StoreError if columns are of other types.
        """
        if self._fields:
            return self._fields[0].ctypes.data
        stored = self.batch.schema
        names = schema.names
        columns = dict(zip(stored.names, self.batch.columns, strict=True))
        if not stored.equals(schema):
            for name, column in columns.items():
                if name not in names or not _fits(column.type, schema.field(name).type):
                    raise self.damaged
        if self.listed is None:
            columns["row"] = None
        columns.setdefault("last_seen", columns.get("first_seen"))
        fields = [_address_of(name, columns.get(name)) for name in names]
        # Two threads may both append; all use the first array, which lives as long as the chunk.
        self._fields.append(np.array(fields, np.int64))
        return self._fields[0].ctypes.data


class ChunkAddress(NamedTuple):
    """A chunk for `kernels.gather`: the numbers START, ROWS, SIZE and FIELDS.

    rows : the address of the rows, uint32; 0 if they count on from `start`. fields : the address of
    the `FieldAddress` of each column of the schema of the store, int64; 0 until they are located.
    """

    start: int
    rows: int
    size: int
    fields: int = 0


class FieldAddress(NamedTuple):
    """A column of a chunk for `kernels.gather`: the numbers KIND to FIRST.

    width : bytes of a value, 1 for bits, 0 for variable-length values. values, offsets, valid :
    addresses; valid is 0 without nulls. first : the bit of the first value.
    """

    kind: int
    width: int = 0
    values: int = 0
    num_bytes: int = 0
    offsets: int = 0
    valid: int = 0
    first: int = 0


def _fits(stored: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether a file may store a column of the index in a type."""
    is_fixed = kind == pa.large_binary() and pa.types.is_fixed_size_binary(stored)
    return stored in (kind, NARROW.get(kind)) or is_fixed


def _address_of(name: str, column: pa.Array | None) -> FieldAddress:
    """Return the address of a column, None if it is missing."""
    codes = kernels.gather
    if column is None or column.null_count == len(column):
        return FieldAddress(codes.NUMBERED if name == "row" else codes.MISSING)
    # Buffers of Arrow: validity, offsets (of variable-length values only), values.
    valid, *offsets, data = column.buffers()
    first = column.offset
    kind, width = _code_of(column.type)
    skipped = width * first
    is_fixed = kind == codes.FIXED
    skipped_values = skipped if is_fixed else 0
    return FieldAddress(
        kind=kind,
        width=0 if offsets else width,
        values=0 if data is None else data.address + skipped_values,
        num_bytes=0 if data is None else data.size - skipped_values,
        offsets=offsets[0].address + skipped if offsets else 0,
        valid=valid.address if column.null_count else 0,
        first=first,
    )


@cache
def _code_of(kind: pa.DataType) -> tuple[int, int]:
    """Return the kind of a column in `kernels.gather`, and the bytes of a value or of an offset; a
    bit is returned as a byte.
    """
    codes = kernels.gather
    if kind == _BOOL:
        return codes.BITS, 1
    if kind in NARROW.values():
        return codes.SHORT, 4
    if kind in NARROW:
        return codes.LONG, 8
    return codes.FIXED, kind.bit_width // 8


def without(chunk: Chunk, forgotten: Words, schema: pa.Schema) -> Chunk:
    """Return a chunk without the documents of forgotten rows.

    The result is in memory and has all columns; if no row is forgotten, it is the chunk itself.
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
    address = chunk.address._replace(fields=chunk.locate(schema))
    selection = selection_of(schema, schema.names)
    return gather(rows, [chunk], np.array([address]), selection).table()


def gather(rows: Rows, chunks: Sequence[Chunk], addresses: Rows, selection: Selection) -> Gathered:
    """Return columns of rows, in this order.

    chunks : by rows. addresses : int64 (num_chunks, 4), `ChunkAddress` with fields.

    Raises
    ------
    StoreError
        If a row is in no chunk, or its bytes in no file.
    """
    *gathered, damaged_chunk = kernels.gather.gather_rows(
        rows, addresses, selection.wanted, selection.widths
    )
    if damaged_chunk >= 0:
        raise chunks[damaged_chunk].damaged
    return Gathered(selection, *gathered)


class Selection(NamedTuple):
    """Some columns of the schema of the store.

    schema, fields : of these columns. wanted : int64, their positions in the schema of the store.
    widths : int64, bytes of a value as it is returned, 0 for variable-length values. last_seen :
    the position of this column in the selection, None if it is not selected.
    """

    schema: pa.Schema
    fields: tuple[pa.Field, ...]
    wanted: Rows
    widths: Rows
    last_seen: int | None


def selection_of(schema: pa.Schema, names: Sequence[str]) -> Selection:
    """Return the selection of columns by name."""
    selected = pa.schema([schema.field(name) for name in names])
    return Selection(
        schema=selected,
        fields=tuple(selected),
        wanted=np.array([schema.get_field_index(name) for name in names], np.int64),
        widths=np.array([_width_of(kind) for kind in selected.types], np.int64),
        last_seen=names.index("last_seen") if "last_seen" in names else None,
    )


def _width_of(kind: pa.DataType) -> int:
    """Return the bytes of a value of a column of the index, 0 for variable-length values."""
    return 0 if kind in NARROW else _code_of(kind)[1]


class Gathered(NamedTuple):
    """Columns of rows, as `kernels.gather.gather_rows` returns them.

    data : the bytes of all columns. numbers : int64 (num_columns, 3 + num_rows), see below. valid :
    bool (num_columns, num_rows).

        | nulls | first byte in `data` | num_rows + 1 offsets of values |
          _NULLS  _BEGIN                 _ENDS
    """

    selection: Selection
    data: Bytes
    numbers: Rows
    valid: Mask

    def bytes_of(self, column: int) -> Bytes:
        """Return the bytes of a column."""
        begin = self.numbers.item(column, _BEGIN)
        width = self.selection.widths.item(column)
        num_bytes = self.valid.shape[1] * width if width else self.numbers.item(column, -1)
        return self.data[begin : begin + num_bytes]

    def binaries(self, column: int) -> Binaries:
        """Return a column of variable-length bytes."""
        return Binaries(self.bytes_of(column), self.numbers[column, _ENDS:])

    def has_values(self, column: int) -> bool:
        """Return whether a column has more than nulls."""
        return bool(self.numbers.item(column, _NULLS) < self.valid.shape[1])

    def arrays(self, first: int = 0) -> list[pa.Array]:
        """Return the columns from number `first` on.

        Raises
        ------
        StoreError
            If a text is not UTF-8, a time is outside of Python's range, or a value is missing.
        """
        return [self._array(column) for column in range(first, len(self.selection.fields))]

    def _array(self, column: int) -> pa.Array:
        field = self.selection.fields[column]
        num_rows = self.valid.shape[1]
        num_nulls = self.numbers.item(column, _NULLS)
        if num_nulls and not field.nullable:
            raise damaged("of documents", f"the {field.name} of a document is missing")
        if num_nulls == num_rows:
            return pa.nulls(num_rows, field.type)
        values = self.bytes_of(column)
        buffers = [bitmap_of(values) if field.type == _BOOL else pa.py_buffer(values)]
        if not self.selection.widths.item(column):
            buffers.insert(0, pa.py_buffer(self.numbers[column, _ENDS:]))
        valid = bitmap_of(self.valid[column]) if num_nulls else None
        array = pa.Array.from_buffers(field.type, num_rows, [valid, *buffers], num_nulls)
        if not _is_readable(array, values):
            raise damaged("of documents", "a text is not UTF-8, or a time is out of range")
        return array

    def table(self) -> pa.Table:
        """Return all columns."""
        return pa.Table.from_arrays(self.arrays(), schema=self.selection.schema)


def _is_readable(array: pa.Array, values: Bytes) -> bool:
    """Return whether Python can read a column. values : the bytes of the column.

    The check takes a fifth of a microsecond for each text.
    """
    if pa.types.is_timestamp(array.type):
        # As unsigned numbers, times before the first one are greater than the range: one
        # comparison finds both ends.
        offsets = values.view(np.uint64) - _MIN_TIME
        return bool(offsets.max() <= _TIMES)
    try:
        # Only text needs a look at every byte, for UTF-8; for other types the lengths are enough.
        array.validate(full=pa.types.is_large_string(array.type))
    except pa.ArrowException:
        return False
    return True


class Binaries(NamedTuple):
    """Variable-length bytes; a null is empty.

    data : uint8, aligned for numbers. offsets : int64 (num_rows + 1,); row i is data[offsets[i] :
    offsets[i + 1]].
    """

    data: Bytes
    offsets: Rows


def _binaries(array: pa.Array) -> Binaries:
    data, offsets = flatten_strings(array)
    # Kernels read these bytes as words, and a slice of a buffer may begin anywhere.
    return Binaries(data if data.ctypes.data % _WORD == 0 else data.copy(), offsets)


def _rows_of(data: Bytes, size: int) -> Bytes:
    """Return bytes as rows of one length."""
    return data.reshape(size, len(data) // max(1, size))


def contents_of(column: pa.ChunkedArray) -> Words:
    """Return a column of binary(16) as uint64 (n, 2)."""
    return content_words(array_of(column))


def content_words(array: pa.Array) -> Words:
    """Return an array of binary(16) as uint64 (n, 2)."""
    return np.frombuffer(
        # An array without rows may have no buffer of values.
        array.buffers()[1] or b"",
        np.uint64,
        2 * len(array),
        16 * array.offset,
    ).reshape(-1, 2)


def array_of(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return join_arrays(column.chunks or [pa.nulls(0, column.type)])


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch."""
    batches = table.to_batches()
    if len(batches) > 1:
        batches = table.combine_chunks().to_batches()
    # A table without rows has no batches in pyarrow.
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def bitmap_of(bools: Array) -> pa.Buffer:
    """Return booleans, or bytes of 0 and 1, as the bits of Arrow."""
    return pa.py_buffer(np.packbits(bools, bitorder="little"))


def bits_at(bits: Words, rows: Rows) -> Mask:
    """Return the bit of each row."""
    # Row r is bit r % 64, from the lowest, of word r // 64.
    found: Mask = (bits[rows >> 6] >> (rows & 63).astype(np.uint64)) & np.uint64(1) != 0
    return found
