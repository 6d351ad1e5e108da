"""Convert between Arrow and the flat arrays of kernels; resolve nulls, slices and chunks of
strings.

`pa.array` loads pandas if it is installed (0.25 s), and otherwise searches for it at each call. The
code of every run uses `arrow_of` and `arrow_of_strings` instead.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# The arrays of most signatures, by their type; docstrings give the shapes.
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Uint16s = npt.NDArray[np.uint16]
Int32s = npt.NDArray[np.int32]
Uint32s = npt.NDArray[np.uint32]
Float32s = npt.NDArray[np.float32]
Positions = Uint32s  # of documents, in their order
Words = npt.NDArray[np.uint64]  # hashes, keys, fingerprints
Ints = npt.NDArray[np.int64]  # offsets, counts
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]  # of any width
Array = npt.NDArray[Any]


def flatten_strings(strings: pa.Array) -> tuple[Bytes, Ints]:
    """Return the bytes of an Arrow string array and the offsets of the strings, without a copy of
    the bytes.

    Parameters
    ----------
    strings : string, large_string, binary or large_binary array; a null is an empty string.

    Returns
    -------
    data : read-only uint8 array, all bytes that the strings refer to.
    offsets : int64 array of shape (len(strings) + 1,); string i is data[offsets[i]:offsets[i + 1]].
    """
    data, offsets = view_strings(strings)
    data = data[offsets[0] : offsets[-1]]
    offsets -= offsets[0]
    return data, offsets


def view_strings(strings: pa.Array) -> tuple[Bytes, Ints]:
    """Return the same as `flatten_strings`, but all bytes of the buffer, so that the first offset
    may differ from 0.
    """
    if strings.type.id not in _OFFSET_BYTES:
        raise TypeError(f"Strings are required: got {strings.type}. Cast the array first.")
    if strings.null_count:  # the bytes under a null are undefined
        strings = strings.fill_null(b"" if pa.types.is_binary(strings.type) else "")
    data_buffer = strings.buffers()[2]
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return read_only(data), string_offsets(strings)


def string_offsets(strings: pa.Array) -> Ints:
    """Return the offsets of strings in their buffer, int64 (size + 1,), as they are there."""
    size = len(strings)
    buffer = strings.buffers()[1]
    if buffer is None or size == 0:
        return np.zeros(size + 1, np.int64)
    width = _OFFSET_BYTES[strings.type.id]
    return np.frombuffer(buffer, f"i{width}", size + 1, strings.offset * width).astype(np.int64)


_OFFSET_BYTES = {
    pa.string().id: 4,
    pa.binary().id: 4,
    pa.large_string().id: 8,
    pa.large_binary().id: 8,
}
"""The bytes of an offset, by the types of strings."""


def read_only(array: Array) -> Array:
    """Return a view of an array that may not be written to, the type for which kernels that read
    bytes are compiled.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def writable(array: Array, dtype: Any = None) -> Array:
    """Return an array in the layout that kernels are compiled for, of its own type or another.

    An array in this layout is returned itself: `np.require` alone takes five times as long.
    """
    if array.flags.carray and (dtype is None or array.dtype == dtype):
        return array
    return np.require(array, dtype, ["C", "W"])


def arrow_of(values: Array) -> pa.Array:
    """Return a one-dimensional array of numbers or booleans as an Arrow array; numbers without a
    copy.
    """
    data = (
        np.packbits(values, bitorder="little")
        if values.dtype == np.bool_
        else np.ascontiguousarray(values)
    )
    return pa.Array.from_buffers(_arrow_type(values.dtype), len(values), [None, pa.py_buffer(data)])


_arrow_type = cache(pa.from_numpy_dtype)


@cache
def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    """Return the type of an Arrow number or bool in NumPy. Arrow's own `to_pandas_dtype` needs
    pandas for this.
    """
    return np.dtype({"double": "float64", "float": "float32"}.get(str(kind), str(kind)))


def is_real(value: object) -> bool:
    """Return whether a value is a real number of Python or NumPy; True and False are none."""
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    # A time difference is an integer for NumPy.
    return is_number and not isinstance(value, (bool, np.timedelta64))


def offsets_from_lengths(lengths: npt.ArrayLike) -> Ints:
    """Return the offsets of consecutive ranges: int64, one more than there are lengths, from 0."""
    counts = np.asarray(lengths)
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def stream_of(rows: pa.Table | pa.RecordBatch) -> pa.Buffer:
    """Return rows, of any schema, as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return sink.getvalue()


def mask_of(rows: Array, size: int) -> Mask:
    """Return a mask of `size` values, true at some rows."""
    mask = np.zeros(size, np.bool_)
    mask[rows] = True
    return mask


def join_arrays(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return one Arrow array or more as one, without a copy if there is but one."""
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def join_tables(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Return tables of a schema as one, without rows if there are none."""
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def arrow_of_bytes(data: Any, offsets: Ints) -> pa.LargeBinaryArray:
    """Return strings of bytes, string i being data[offsets[i]:offsets[i + 1]], as an Arrow array,
    without a copy.
    """
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def arrow_of_strings(strings: list[str]) -> pa.LargeStringArray:
    """Return a list of strings as an Arrow array."""
    return arrow_of_utf8([text.encode() for text in strings])


def arrow_of_optional(strings: Sequence[str | None]) -> pa.StringArray:
    """Return a list of strings, less than 2 GiB of them, as an Arrow array; None is null."""
    encoded = [b"" if text is None else text.encode() for text in strings]
    offsets = offsets_from_lengths([len(text) for text in encoded]).astype(np.int32)
    is_there = np.array([text is not None for text in strings], np.bool_)
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(strings), buffers)


def arrow_of_utf8(strings: Sequence[bytes]) -> pa.LargeStringArray:
    """Return strings in UTF-8 as an Arrow array. The encoding is not checked."""
    # For a few strings, `np.cumsum` would take longer than all the rest.
    offsets = np.array(list(accumulate(map(len, strings), initial=0)), np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(strings))]
    return pa.Array.from_buffers(_LARGE_STRING, len(strings), buffers)


_LARGE_STRING = pa.large_string()


def grow(array: Array, size: int) -> Array:
    """Return an array of at least `size` rows that begins as the one given, the rest zeros; itself
    if it is so long.
    """
    if size <= len(array):
        return array
    grown = np.zeros((max(size, len(array) + len(array) // 2), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def filled(size: int, value: Any, dtype: Any) -> Array:
    """Return an array of one value. `np.full` takes four times as long for a short one."""
    array = np.empty(size, dtype)
    array[:] = value
    return array


def ranges(starts: Integers | int, sizes: Integers) -> Ints:
    """Return consecutive numbers from each start, as many as its size, one list after the other."""
    ends = np.cumsum(sizes, dtype=np.int64)
    numbers = np.repeat(starts - ends + sizes, sizes)
    numbers += np.arange(len(numbers))
    return numbers


def find_in(known: Array, values: Array) -> tuple[Ints, Mask]:
    """Return the index of each value in a rising array, and whether the array contains it; the
    index of other values has no meaning.
    """
    if not len(known):
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    index = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return index, known[index] == values


def begins_run(*columns: Array) -> Mask:
    """Return whether each row differs from the row before it. columns : one or more, of one length,
    any types.
    """
    begins = np.ones(len(columns[0]), np.bool_)
    begins[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        begins[1:] |= column[1:] != column[:-1]
    return begins


def sort_distinct(values: Array) -> Array:
    """Return the distinct values, rising; the array is sorted in place.

    np.unique collects them in a hash table, which takes ten times as long for millions of values.
    """
    values.sort()
    return values[begins_run(values)]


def rank_in_run(*columns: Array) -> Ints:
    """Return the number of rows before each row in its run of equal rows.

    columns : see `begins_run`.
    """
    rows = np.arange(len(columns[0]))
    first_rows = np.maximum.accumulate(np.where(begins_run(*columns), rows, 0))
    return np.subtract(rows, first_rows)


def arrow_file(path: str | os.PathLike[str], mode: Literal["rb", "wb"] = "rb") -> pa.NativeFile:
    """Open a local file for Arrow, which would take a path as text for an address, or fail if it is
    not UTF-8.
    """
    return pa.OSFile(os.fsencode(path), mode)
