"""Convert Arrow tables to packed rows, and packed rows to tables: documents on their way to and
from a server.

compact : whether rows have the format of Redis: varint lengths, and little-endian numbers of the
smallest width. Otherwise they have PostgreSQL's binary formats, wider integers, big-endian: a table
becomes the rows of COPY, and a table is read from records. Only compact rows can be read again as
they were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Array,
    Bytes,
    Rows,
    flatten_strings,
    numpy_type,
    offsets_from_lengths,
    read_only,
    stream_of,
)
from neardup.stores.documents import array_of, bitmap_of

EPOCH_2000 = 946_684_800_000_000
"""The microseconds from 1970 to 2000, from which PostgreSQL counts time."""
_WIDER = {"uint8": "int16", "uint16": "int32", "uint32": "int64"}
"""PostgreSQL's types for unsigned ones, which it lacks."""


class Packed(NamedTuple):
    """Rows one after the other.

    data : uint8. offsets : int64 (num_rows + 1,); row i is data[offsets[i] : offsets[i + 1]].
    """

    data: Bytes
    offsets: Rows


class _Fields(NamedTuple):
    """The values of a column: data, uint8; starts and lengths of values, int64, length -1 for a
    null.
    """

    data: Bytes
    starts: Rows
    lengths: Rows


def pack_table(table: pa.Table, compact: bool) -> Packed:
    """Return the rows of a table, with all its columns in order.

    Requires: columns of strings and bytes are large ones, with offsets of 64 bits.
    """
    starts = np.empty((table.num_columns, table.num_rows), np.int64)
    lengths = np.empty_like(starts)
    parts = [np.empty(0, np.uint8)]
    num_bytes = 0
    for i, column in enumerate(table.columns):
        fields = _fields_of(array_of(column), compact)
        starts[i] = num_bytes + fields.starts
        lengths[i] = fields.lengths
        parts.append(fields.data)
        num_bytes += len(fields.data)
    data = np.concatenate(parts)

    offsets = np.zeros(table.num_rows + 1, np.int64)
    # The kernel writes the size of each row in place of the offset after it; the sum turns sizes
    # into offsets.
    kernels.packed_rows.size_rows(lengths, compact, offsets[1:])
    np.cumsum(offsets, out=offsets)
    packed = np.empty(offsets[-1], np.uint8)
    kernels.packed_rows.pack_rows(data, starts, lengths, compact, packed)
    return Packed(packed, offsets)


def unpack_table(
    packed: Bytes,
    num_rows: int,
    fields: Sequence[pa.Field],
    compact: bool,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return the table of packed rows.

    fields : of the rows; strings and bytes are large ones, with offsets of 64 bits. columns : names
    of the fields to return, None for all.

    Raises
    ------
    ValueError
        If the bytes are not `num_rows` rows of these fields.
    """
    starts = np.empty((len(fields), num_rows), np.int64)
    lengths = np.empty_like(starts)
    packed = read_only(packed)
    damaged_row = kernels.packed_rows.find_fields(packed, compact, starts, lengths)
    if damaged_row >= 0:
        raise ValueError(f"row {damaged_row} of {num_rows} packed rows is damaged")
    positions = {field.name: i for i, field in enumerate(fields)}
    wanted = range(len(fields)) if columns is None else [positions[name] for name in columns]
    arrays = []
    for i in wanted:
        values = _Fields(packed, starts[i], lengths[i])
        arrays.append(_column_of(values, fields[i].type, compact))
    return pa.Table.from_arrays(arrays, schema=pa.schema([fields[i] for i in wanted]))


def _number_type(dtype: pa.DataType, compact: bool) -> np.dtype[Any] | None:
    """Return the packed type of the values of a column, None for variable-length values."""
    if pa.types.is_fixed_size_binary(dtype):
        return np.dtype(f"V{dtype.byte_width}")
    if pa.types.is_boolean(dtype):
        return np.dtype(np.uint8)
    if pa.types.is_timestamp(dtype):
        return np.dtype("<i8" if compact else ">i8")
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype):
        name = numpy_type(dtype).name
        stored = np.dtype(name if compact else _WIDER.get(name, name))
        return np.dtype(f"{'<' if compact else '>'}{stored.kind}{stored.itemsize}")
    return None


def _fields_of(array: pa.Array, compact: bool) -> _Fields:
    num_rows = len(array)
    if array.null_count == num_rows:
        return _Fields(
            data=np.empty(0, np.uint8),
            starts=np.zeros(num_rows, np.int64),
            lengths=np.full(num_rows, -1, np.int64),
        )
    number = _number_type(array.type, compact)
    if number is None:
        data, offsets = flatten_strings(array)
        starts = offsets[:-1]
        lengths = np.diff(offsets)
    else:
        data = _numbers_of(array, number).view(np.uint8)
        lengths = np.full(num_rows, number.itemsize, np.int64)
        starts = np.arange(num_rows, dtype=np.int64) * number.itemsize
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return _Fields(data, starts, lengths)


def _numbers_of(array: pa.Array, number: np.dtype[Any]) -> Array:
    """Return the values of a column in their packed type; a null has any value."""
    if pa.types.is_boolean(array.type):
        return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), np.uint8)
    if number.kind == "V":
        return np.frombuffer(array.buffers()[1] or b"", number)[array.offset :][: len(array)]
    is_time = pa.types.is_timestamp(array.type)
    numbers = array.view(pa.int64()) if is_time else array
    values = numbers.fill_null(0).to_numpy()
    if is_time and number.byteorder == ">":
        values = values - EPOCH_2000
    return np.ascontiguousarray(values.astype(number))


def _column_of(fields: _Fields, dtype: pa.DataType, compact: bool) -> pa.Array:
    """Return the column whose values lie in packed rows. Raises ValueError for a wrong length."""
    is_valid = fields.lengths >= 0
    num_rows = len(is_valid)
    num_nulls = num_rows - int(is_valid.sum())
    mask = bitmap_of(is_valid) if num_nulls else None
    data, offsets = _gather(fields)
    number = _number_type(dtype, compact)
    if number is None:
        buffers = [mask, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(dtype, num_rows, buffers, num_nulls)
    lengths = fields.lengths[is_valid]
    if np.any(lengths != number.itemsize):
        raise ValueError(
            f"a value of {int(lengths.max())} bytes where {dtype} has {number.itemsize}"
        )
    numbers = np.zeros(num_rows, number)
    numbers[is_valid] = data.view(number)
    values = pa.py_buffer(_values_of(numbers, dtype))
    return pa.Array.from_buffers(dtype, num_rows, [mask, values], num_nulls)


def _gather(fields: _Fields) -> tuple[Bytes, Rows]:
    """Return values one after the other, and their offsets."""
    offsets = offsets_from_lengths(np.maximum(fields.lengths, 0))
    data = np.empty(offsets[-1], np.uint8)
    kernels.packed_rows.gather(*fields, data)
    return data, offsets


def _values_of(numbers: Array, dtype: pa.DataType) -> Array:
    """Return packed numbers as the values of an Arrow column: the reverse of `_numbers_of`."""
    if pa.types.is_boolean(dtype):
        return np.packbits(numbers.view(np.uint8) != 0, bitorder="little")
    if numbers.dtype.kind == "V":
        return numbers
    if not pa.types.is_timestamp(dtype):
        return numbers.astype(numpy_type(dtype))
    times = numbers.astype("<i8")
    return times + EPOCH_2000 if numbers.dtype.byteorder == ">" else times


def encode_table(table: pa.Table) -> bytes:
    """Return a table, of any schema, as an Arrow IPC stream."""
    return bytes(stream_of(table))


def decode_table(data: bytes) -> pa.Table:
    """Return the table of an Arrow IPC stream."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()
