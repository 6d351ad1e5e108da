"""Hashes as binary columns of Arrow, little-endian: the form in stores and between workers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup.arrays import Array, Bytes, Words, arrow_of_bytes, flatten_strings
from neardup.features.described import Lists


def binary_rows(values: Array) -> pa.Array:
    """Return the rows of a two-dimensional array as large_binary, little-endian."""
    data = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    num_columns = data.shape[1] if data.ndim == 2 else 1
    offsets = np.arange(len(data) + 1, dtype=np.int64) * (data.itemsize * num_columns)
    return arrow_of_bytes(data, offsets)


def binary_lists(lists: Lists) -> pa.Array:
    """Return each list of hashes as a row of large_binary."""
    return arrow_of_bytes(np.ascontiguousarray(lists.hashes, "<u8"), lists.offsets * 8)


def flat_numbers(array: pa.Array, kind: type) -> Array:
    """Return the bytes of all rows of a binary column as numbers of one kind."""
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        # The buffer is the buffer of the whole array, also for a slice.
        start = array.offset * width
        stop = start + len(array) * width
        data = np.frombuffer(array.buffers()[1], np.uint8)[start:stop]
    else:
        data, _ = flatten_strings(array)
    return _numbers(data, kind)


def rows_of(array: pa.Array) -> Words:
    """Return a binary column with rows of equal length as uint64 (num_rows, width)."""
    words: Words = flat_numbers(array, np.uint64)
    width = len(words) // max(1, len(array))
    return words.reshape(len(array), width)


def lists_of(array: pa.Array) -> Lists:
    """Return a column of hashes as lists; a null is an empty list."""
    if array.null_count == len(array):
        return Lists(np.empty(0, np.uint64), np.zeros(len(array) + 1, np.int64))
    data, offsets = flatten_strings(array)
    return Lists(_numbers(data, np.uint64), offsets // 8)


def _numbers(data: Bytes, kind: type) -> Array:
    """Return bytes as little-endian numbers, without a copy if they are aligned."""
    dtype = np.dtype(kind)
    if data.ctypes.data % dtype.itemsize:
        data = data.copy()
    return data.view(dtype.newbyteorder("<")).astype(dtype, copy=False)
