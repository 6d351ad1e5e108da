"""Turn Arrow strings into the flat arrays that kernels read: nulls, slices and chunks end here."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def flatten_strings(strings: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of an Arrow string array and where each string begins and ends, without a copy.

    Parameters
    ----------
    strings : string, large_string, binary or large_binary array; a null is an empty string.

    Returns
    -------
    data : read-only uint8 array, all bytes that the strings refer to.
    offsets : int64 array of shape (len(strings) + 1,); string i is data[offsets[i]:offsets[i + 1]].
    """
    if pa.types.is_string(strings.type) or pa.types.is_binary(strings.type):
        width: type[np.signedinteger] = np.int32
    elif pa.types.is_large_string(strings.type) or pa.types.is_large_binary(strings.type):
        width = np.int64
    else:
        raise TypeError(f"flatten_strings takes an array of strings: got {strings.type}. Cast it first.")
    if strings.null_count:
        strings = strings.fill_null(b"" if pa.types.is_binary(strings.type) else "")
    _, offsets_buffer, data_buffer = strings.buffers()
    stop = strings.offset + len(strings) + 1
    if offsets_buffer is None or len(strings) == 0:
        return _read_only(np.empty(0, np.uint8)), np.zeros(len(strings) + 1, np.int64)
    offsets = np.frombuffer(offsets_buffer, width, count=stop)[strings.offset :].astype(np.int64, copy=True)
    if data_buffer is None:
        return _read_only(np.empty(0, np.uint8)), offsets
    data = np.frombuffer(data_buffer, np.uint8)[offsets[0] : offsets[-1]]
    offsets -= offsets[0]
    return _read_only(data), offsets


def _read_only(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    array.flags.writeable = False
    return array
