"""Documents in chunks of rows, in memory or in mapped files, and their rows gathered from many chunks at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Mask, Rows, Words
from neardup.errors import StoreError
from neardup.stores.damage import damaged

_BOOL = pa.bool_()
_NULLS, _BEGIN, _ENDS = range(3)  # of kernels.gather
_LEAST_TIME, _GREATEST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999  # of Python, microseconds since 1970
_NARROW = {pa.large_string(): (pa.string(),), pa.large_binary(): (pa.binary(),)}
"""Types of files instead of those of the index, besides bytes of one length."""


class Binaries(NamedTuple):
    """Bytes of any length, row by row; those of a null are none.

    data : uint8, aligned for numbers. offsets : int64 (num_rows + 1,); row i is data[offsets[i] : offsets[i + 1]].
    """

    data: Bytes
    offsets: Rows


@dataclass(eq=False)
class Chunk:
    """The documents of the rows from `first` to `stop`, some of which may be gone.

    batch : columns of the documents. One that is missing has nulls only, but for `row`, which counts on from `first`,
    and `last_seen`, which is `first_seen`. name : of the file that contains the chunk, if any.
    """

    first: int
    stop: int
    batch: pa.RecordBatch
    name: str | None = None
    _fields: list[Rows] = field(default_factory=list, repr=False)

    @property
    def listed(self) -> npt.NDArray[np.uint32] | None:
        """The rows that are there, None if all are."""
        return None if self.batch.num_rows == self.stop - self.first else self.batch.column("row").to_numpy()

    def rows(self, begin: int, end: int) -> Rows:
        """Return the rows at the positions from `begin` to `end`. Raises StoreError if they are damaged."""
        if self.listed is None:
            return np.arange(self.first + begin, self.first + end)
        rows = self.listed[begin:end].astype(np.int64)
        if (np.diff(rows, prepend=self.first - 1, append=self.stop) <= 0).any():
            raise self.damaged
        return rows

    @property
    def damaged(self) -> StoreError:
        """The error of documents that are not as the index lists them."""
        return damaged(self.name or "of documents", "a document is not where the index lists it, or its bytes are not")

    @property
    def place(self) -> tuple[int, ...]:
        """The numbers of the chunk for `gather_rows`, without the address of those of its fields."""
        return self.first, 0 if self.listed is None else self.listed.ctypes.data, self.batch.num_rows, 0

    def locate(self, schema: pa.Schema) -> int:
        """Return the address of the numbers of the columns of the schema of the store, which stay with the chunk.

        Raises StoreError if columns are of other types.
        """
        if self._fields:
            return self._fields[0].ctypes.data
        columns = dict(zip(self.batch.schema.names, self.batch.columns, strict=True))
        if not all(name in schema.names and _fits(columns[name].type, schema.field(name).type) for name in columns):
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
    return stored == kind or stored in _NARROW.get(kind, ()) or is_fixed


@cache
def _code_of(kind: pa.DataType) -> tuple[int, int]:
    """Return the kind of a column for `gather_rows`, and the bytes of a value, or else of an offset."""
    codes = kernels.gather
    if pa.types.is_boolean(kind):
        return codes.BITS, 1
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return codes.SHORT, 4
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return codes.LONG, 8
    return codes.FIXED, kind.bit_width // 8


class Selection(NamedTuple):
    """Some columns as `gather_rows` takes them.

    schema : of these columns. wanted : their numbers in the schema of the store. widths : as returned. kinds : the
    types. last_seen : its number among them, or -1.
    """

    schema: pa.Schema
    wanted: Rows
    widths: Rows
    kinds: tuple[pa.DataType, ...]
    last_seen: int


def selection_of(schema: pa.Schema, names: Sequence[str]) -> Selection:
    """Return the selection of columns by name."""
    kinds = tuple(schema.field(name).type for name in names)
    return Selection(
        pa.schema([schema.field(name) for name in names]),
        np.array([schema.get_field_index(name) for name in names], np.int64),
        np.array([_width_of(kind) for kind in kinds], np.int64),
        kinds,
        names.index("last_seen") if "last_seen" in names else -1,
    )


def _width_of(kind: pa.DataType) -> int:
    """Return the bytes of a value of a column, 0 if they vary."""
    if pa.types.is_boolean(kind):
        return 1
    return 0 if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else kind.bit_width // 8


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
                raise damaged("of documents", f"the {selection.schema.field(column).name} of a document is missing")
            if nulls == size:
                arrays.append(pa.nulls(size, kind))
                continue
            values = self.bytes_of(column)
            buffers = [pa.py_buffer(np.packbits(values, bitorder="little") if kind == _BOOL else values)]
            if not selection.widths.item(column):
                buffers.insert(0, pa.py_buffer(self.numbers[column, _ENDS:]))
            valid = pa.py_buffer(np.packbits(self.there[column], bitorder="little")) if nulls else None
            arrays.append(pa.Array.from_buffers(kind, size, [valid, *buffers], nulls))
            if not _is_whole(arrays[-1], values):
                raise damaged("of documents", "a text is not UTF-8, or a time is out of range")
        return arrays

    def table(self) -> pa.Table:
        """Return all columns."""
        return pa.Table.from_arrays(self.arrays(), schema=self.selection.schema)


def _is_whole(array: pa.Array, values: Bytes) -> bool:
    """Return whether Python can read a column: a fifth of a microsecond for a text. values : its bytes."""
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
    *gathered, damaged = kernels.gather.gather_rows(rows, places, selection.wanted, selection.widths)
    if damaged >= 0:
        raise chunks[damaged].damaged
    return Gathered(selection, *gathered)


def without(chunk: Chunk, forgotten: Words, schema: pa.Schema) -> Chunk:
    """Return a chunk in memory, with all columns, without the documents of forgotten rows; itself if none are."""
    alive = ~bits_at(forgotten, chunk.rows(0, chunk.batch.num_rows))
    if alive.all():
        return chunk
    rows = chunk.rows(0, chunk.batch.num_rows)[alive]
    return Chunk(chunk.first, chunk.stop, as_batch(take_of(chunk, rows, schema)))


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
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])
