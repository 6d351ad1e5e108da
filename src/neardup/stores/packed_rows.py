"""Arrow tables as packed rows, and back: documents on their way to a server and from it.

compact : the rows of `kernels.packed_rows` with varints, and little-endian numbers of the least
width, for Redis; otherwise the binary formats of PostgreSQL, whose integers are wider and
big-endian.
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
)

EPOCH_2000 = 946_684_800_000_000
"""The microseconds from 1970 to 2000, from which PostgreSQL counts time."""
_WIDER = {
    "uint8": "int16",
    "uint16": "int32",
    "uint32": "int64",
}  # PostgreSQL has no unsigned types


class Packed(NamedTuple):
    """Rows one after the other. data : uint8. offsets : int64 (num_rows + 1,), where each
    begins.
    """

    data: Bytes
    offsets: Rows


def pack_table(table: pa.Table, compact: bool) -> Packed:
    """Return the rows of a table, with all its columns in order."""
    table = table.combine_chunks()
    shape = (table.num_columns, table.num_rows)
    starts, lengths, parts, total = np.empty(shape, np.int64), np.empty(shape, np.int64), [], 0
    for i, column in enumerate(table.columns):
        array = column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
        data, starts[i], lengths[i] = _fields_of(array, compact)
        starts[i] += total
        total += len(data)
        parts.append(data)
    offsets = np.zeros(table.num_rows + 1, np.int64)
    kernels.packed_rows.size_rows(lengths, compact, offsets[1:])
    np.cumsum(offsets, out=offsets)
    packed = np.empty(offsets[-1], np.uint8)
    kernels.packed_rows.pack_rows(
        np.concatenate([*parts, np.empty(0, np.uint8)]), starts, lengths, compact, packed
    )
    return Packed(packed, offsets)


def unpack_table(
    packed: Bytes,
    num_rows: int,
    fields: Sequence[pa.Field],
    compact: bool,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return the table of packed rows, which have these fields; only some columns, if these are
    named.

    Raises
    ------
    ValueError
        If the bytes are not so many rows of these fields.
    """
    starts, lengths = (
        np.empty((len(fields), num_rows), np.int64),
        np.empty((len(fields), num_rows), np.int64),
    )
    packed = read_only(packed)
    damaged = kernels.packed_rows.find_fields(packed, compact, starts, lengths)
    if damaged >= 0:
        raise ValueError(f"row {damaged} of {num_rows} packed rows is damaged")
    position = {field.name: i for i, field in enumerate(fields)}
    wanted = range(len(fields)) if columns is None else [position[name] for name in columns]
    arrays = [_column_of(packed, starts[i], lengths[i], fields[i].type, compact) for i in wanted]
    return pa.Table.from_arrays(arrays, schema=pa.schema([fields[i] for i in wanted]))


def _number_type(dtype: pa.DataType, compact: bool) -> np.dtype[Any] | None:
    """Return the type of the numbers of a column as they are packed; None for strings and bytes of
    any length.
    """
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


def _fields_of(array: pa.Array, compact: bool) -> tuple[Bytes, Rows, Rows]:
    """Return the bytes of a column, where the value of each row begins, and its length; -1 for a
    null.
    """
    if array.null_count == len(array):
        return (
            np.empty(0, np.uint8),
            np.zeros(len(array), np.int64),
            np.full(len(array), -1, np.int64),
        )
    number = _number_type(array.type, compact)
    if number is None:
        data, offsets = flatten_strings(array)
        starts, lengths = offsets[:-1], np.diff(offsets)
    else:
        data = _numbers_of(array, number).view(np.uint8)
        lengths = np.full(len(array), number.itemsize, np.int64)
        starts = np.arange(len(array), dtype=np.int64) * number.itemsize
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return data, starts, lengths


def _numbers_of(array: pa.Array, number: np.dtype[Any]) -> Array:
    """Return the values of a column, any value for a null, as they are packed."""
    if pa.types.is_boolean(array.type):
        return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), np.uint8)
    if number.kind == "V":
        return np.frombuffer(array.buffers()[1] or b"", number)[array.offset :][: len(array)]
    numbers = array.view(pa.int64()) if pa.types.is_timestamp(array.type) else array
    values = numbers.fill_null(0).to_numpy()
    if pa.types.is_timestamp(array.type) and number.byteorder == ">":
        values = values - EPOCH_2000
    return np.ascontiguousarray(values.astype(number))


def _column_of(
    packed: Bytes, starts: Rows, lengths: Rows, dtype: pa.DataType, compact: bool
) -> pa.Array:
    number = _number_type(dtype, compact)
    valid = lengths >= 0
    nulls = int(len(valid) - valid.sum())
    mask = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    offsets = offsets_from_lengths(np.maximum(lengths, 0))
    data = np.empty(offsets[-1], np.uint8)
    kernels.packed_rows.gather(packed, starts, lengths, data)
    if number is None:
        return pa.Array.from_buffers(
            dtype, len(lengths), [mask, pa.py_buffer(offsets), pa.py_buffer(data)], nulls
        )
    if np.any(lengths[valid] != number.itemsize):
        raise ValueError(
            f"a value of {int(lengths[valid].max())} bytes where {dtype} has {number.itemsize}"
        )
    values = np.zeros(len(lengths), number)
    values[valid] = data.view(number)
    if pa.types.is_boolean(dtype):
        values = np.packbits(values.view(np.uint8) != 0, bitorder="little")
    elif number.kind != "V":
        values = values.astype("<i8" if pa.types.is_timestamp(dtype) else numpy_type(dtype))
        if pa.types.is_timestamp(dtype) and number.byteorder == ">":
            values += EPOCH_2000
    return pa.Array.from_buffers(dtype, len(lengths), [mask, pa.py_buffer(values)], nulls)


def encode_table(table: pa.Table) -> bytes:
    """Return a table, of any schema, as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def decode_table(data: bytes) -> pa.Table:
    """Return the table of an Arrow IPC stream."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()
