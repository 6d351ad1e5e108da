"""Between Arrow and the flat arrays that kernels read: nulls, slices and chunks of strings end here.

`pa.array` loads pandas wherever it is installed, 0.25 s, and looks for it at each call where it is not. What every run
does goes through `arrow_of` and `arrow_of_strings` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def flatten_strings(strings: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of an Arrow string array and where each string begins and ends, without a copy of the bytes.

    Parameters
    ----------
    strings : string, large_string, binary or large_binary array; a null is an empty string.

    Returns
    -------
    data : read-only uint8 array, all bytes that the strings refer to.
    offsets : int64 array of shape (len(strings) + 1,); string i is data[offsets[i]:offsets[i + 1]].
    """
    data, found = view_strings(strings)
    offsets = found.astype(np.int64)
    data = data[offsets[0] : offsets[-1]]
    offsets -= offsets[0]
    return data, offsets


def view_strings(strings: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32 | np.int64]]:
    """Return what `flatten_strings` does, read-only and as Arrow holds it, without any copy.

    The offsets have Arrow's type, and the first of them need not be 0: the bytes are those of the whole buffer.
    """
    if pa.types.is_string(strings.type) or pa.types.is_binary(strings.type):
        width: type[np.int32 | np.int64] = np.int32
    elif pa.types.is_large_string(strings.type) or pa.types.is_large_binary(strings.type):
        width = np.int64
    else:
        raise TypeError(f"Strings are wanted: got {strings.type}. Cast it first.")
    if strings.null_count:
        strings = strings.fill_null(b"" if pa.types.is_binary(strings.type) else "")
    _, offsets_buffer, data_buffer = strings.buffers()
    if offsets_buffer is None or len(strings) == 0:
        offsets = np.zeros(len(strings) + 1, width)
    else:
        offsets = np.frombuffer(offsets_buffer, width, len(strings) + 1, strings.offset * np.dtype(width).itemsize)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return _read_only(data), _read_only(offsets)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def arrow_of(values: npt.NDArray[Any]) -> pa.Array:
    """Return numbers or truths, an array of one dimension, as an Arrow array; numbers without a copy."""
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(data)])


def arrow_of_strings(strings: list[str]) -> pa.LargeStringArray:
    """Return a list of strings as an Arrow array."""
    return arrow_of_utf8([one.encode() for one in strings])


def arrow_of_utf8(strings: Sequence[bytes]) -> pa.LargeStringArray:
    """Return strings in UTF-8, which is not checked, as an Arrow array."""
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(one) for one in strings], out=offsets[1:])
    return pa.LargeStringArray.from_buffers(len(strings), pa.py_buffer(offsets), pa.py_buffer(b"".join(strings)))
