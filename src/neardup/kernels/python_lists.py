"""Read Python's lists of strings where they lie: their hashes, or their bytes side by side.

Through functions of Python's stable interface, so that nothing here depends on how a version lays out its objects.
These kernels keep the interpreter to themselves while they run, as the interface asks: hand them a few thousand
strings at once. They return False at the first thing that is not a list of strings with UTF-8, or where the lists grew
since they were counted; what was written until then means nothing.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from neardup.kernels.compiled import kernel
from neardup.kernels.machine import address_of, load_at, load_byte_at, prefetch, store_u64
from neardup.kernels.strings import hash_at

_AHEAD = 32  # strings: what is hashed while one comes from memory; 10 ns a string with none, 8.5 with these
_HEADER = 64  # bytes; a string without a buffer of its own begins within so many of its object

_list_size: Any = types.ExternalFunction("PyList_Size", types.intp(types.intp))
_list_item: Any = types.ExternalFunction("PyList_GetItem", types.intp(types.intp, types.intp))
_utf8: Any = types.ExternalFunction("PyUnicode_AsUTF8AndSize", types.intp(types.intp, types.intp))
_clear: Any = types.ExternalFunction("PyErr_Clear", types.void())


def list_size(address: int) -> int:
    """Return the length of the list at an address."""
    return len(_object_at(address))


def list_item(address: int, index: int) -> int:
    """Return the address of an element of the list at an address."""
    return id(_object_at(address)[index])


def utf8(address: int, size: np.ndarray) -> int:
    """Return where the UTF-8 of the string at an address is, and write its length to size[0]; 0 if it has none.

    Python makes and keeps that of a string that is not ASCII when it is first asked for.
    """
    function = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_void_p]
    try:
        return int(function(_object_at(address), size.ctypes.data) or 0)
    except (TypeError, UnicodeError):
        return 0


def _object_at(address: int) -> Any:
    return ctypes.cast(int(address), ctypes.py_object).value


overload(list_size)(lambda address: lambda address: _list_size(address))
overload(list_item)(lambda address, index: lambda address, index: _list_item(address, index))


@overload(utf8)
def _compiled_utf8(address: Any, size: Any) -> Any:
    def find(address: Any, size: Any) -> Any:
        place = _utf8(address, address_of(size))
        if place == 0:
            _clear()
        return place

    return find


@kernel(nogil=False)
def hash_lists(lists, hashes, offsets):
    """Write the hashes of the strings of each list, as kernels/strings.py has them, empty strings left out.

    lists : address of a list of lists; hashes : uint64, as many as there are strings; offsets : int64 (num_lists + 1,),
    where the hashes of each list begin and end.
    """
    count, size, last = 0, np.zeros(1, np.int64), len(offsets) - 2
    offsets[0] = 0
    for one in range(last + 1):
        row, following = list_item(lists, one), list_item(lists, min(one + 1, last))
        length, more = list_size(row), list_size(following)
        if count + length > len(hashes):
            return False
        for i in range(length):
            later = i + _AHEAD
            if later < length:
                prefetch(list_item(row, later))
            elif later - length < more:
                prefetch(list_item(following, later - length))
            token = list_item(row, i)
            place = utf8(token, size)
            if place == 0:
                return False
            if size[0] > 0:
                hashes[count] = hash_at(place, size[0], 7 if place - token < _HEADER else 0)
                count += 1
        offsets[one + 1] = count
    return True


@kernel(nogil=False)
def measure_lists(lists, limits, offsets):
    """Write where the strings of each list, and the bytes of each string, would begin and end side by side.

    lists : address of a list of lists; limits : int64 (num_lists + 1,); offsets : int64 (num_strings + 1,).
    """
    count, size = 0, np.zeros(1, np.int64)
    limits[0] = offsets[0] = 0
    for one in range(len(limits) - 1):
        row = list_item(lists, one)
        length = list_size(row)
        if count + length >= len(offsets):
            return False
        for i in range(length):
            if utf8(list_item(row, i), size) == 0:
                return False
            offsets[count + 1] = offsets[count] + size[0]
            count += 1
        limits[one + 1] = count
    return count == len(offsets) - 1


@kernel(nogil=False)
def copy_lists(lists, limits, offsets, data):
    """Write the bytes of the strings of each list, as measured. data : uint8 (offsets[-1],)."""
    size = np.zeros(1, np.int64)
    for one in range(len(limits) - 1):
        row = list_item(lists, one)
        if list_size(row) != limits[one + 1] - limits[one]:
            return False
        for i in range(limits[one], limits[one + 1]):
            place = utf8(list_item(row, i - limits[one]), size)
            if place == 0 or size[0] != offsets[i + 1] - offsets[i]:
                return False
            start, rest = offsets[i], size[0]
            while rest >= 8:
                store_u64(data, start, load_at(place))
                start, place, rest = start + 8, place + 8, rest - 8
            for byte in range(rest):
                data[start + byte] = load_byte_at(place + byte)
    return True
