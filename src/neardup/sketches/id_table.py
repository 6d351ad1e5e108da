"""The ids of an index, all strings or all integers, and the row of each, without an object for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels
from neardup.arrays import arrow_of, arrow_of_strings, flatten_strings
from neardup.errors import InputError

if TYPE_CHECKING:
    from neardup.kernels.ids import Ids

_LEAST_SLOTS = 1 << 10
_FREE = 0xFFFFFFFF
_REMOVED = 0xFFFFFFFE

IdsLike: TypeAlias = Sequence[str] | Sequence[int] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray


class IdTable:
    """Ids by row, and rows by id.

    An integer is kept as the eight bytes of an int64, a string as its UTF-8: 16 bytes a row and the string, and four to
    sixteen more in a table of rows.
    """

    def __init__(self) -> None:
        self.kind: pa.DataType | None = None
        self.forgotten = np.zeros(_LEAST_SLOTS // 64, np.uint64)  # bits of rows
        self.num_rows = self.num_alive = 0
        self._data = np.zeros(_LEAST_SLOTS, np.uint8)
        self._offsets = np.zeros(_LEAST_SLOTS + 1, np.int64)
        self._slots = np.full(_LEAST_SLOTS, _FREE, np.uint32)
        self._used = 0  # slots that are not free

    def to_array(self, ids: IdsLike) -> pa.Array:
        """Return ids as an Arrow array of int64 or large_string, or raise InputError."""
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks()
        if not isinstance(ids, pa.Array):
            if not isinstance(ids, np.ndarray) and any(isinstance(id, bool) for id in ids):
                raise InputError("An id is a string or an integer: got a bool. Pass strings or integers.")
            try:
                ids = _from_list(ids) if isinstance(ids, list) else pa.array(ids)
            except (pa.ArrowException, OverflowError, ValueError) as error:
                raise InputError(
                    f"Ids are all strings, or all integers from -2^63 to 2^63 - 1: {error}. Pass them as strings."
                ) from error
        kind = pa.int64() if pa.types.is_integer(ids.type) else pa.large_string()
        texts = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type) or pa.types.is_string_view(ids.type)
        if len(ids) == 0:
            return pa.array([], self.kind or pa.large_string())
        if not (pa.types.is_integer(ids.type) or texts) or ids.null_count:
            raise InputError(
                f"An id is a string or an integer: got {ids.type} with {ids.null_count} nulls. Give every row an id."
            )
        if self.kind is not None and kind != self.kind:
            names = {pa.int64(): "integers", pa.large_string(): "strings"}
            raise InputError(
                f"The ids of this index are {names[self.kind]}: got {ids[0].as_py()!r}. Pass {names[self.kind]}."
            )
        try:
            return ids if ids.type == kind else ids.cast(kind)
        except pa.ArrowException as error:
            raise InputError(f"An id is an integer below 2^63: {error}. Pass ids as strings.") from error

    def append(self, ids: pa.Array) -> None:
        """Give each id the next row, in order. Raises InputError, and changes nothing, if one is there already."""
        if len(ids) == 0:
            return
        added = _flatten(ids)
        first, stop = self.num_rows, self.num_rows + len(ids)
        self._reserve(stop, int(self._offsets[first]) + len(added.data))
        start = int(self._offsets[first])
        self._data[start : start + len(added.data)] = added.data
        self._offsets[first : stop + 1] = added.offsets + start
        self.num_rows = stop
        repeated = kernels.ids.enter_rows(self._stored(), first, stop, self.forgotten, self._slots)
        if repeated >= 0:
            self.num_rows = first
            self._rebuild(first)
            raise InputError(
                f"The id {ids[repeated - first].as_py()!r} is already in the index, or twice in the new rows: got it "
                f"at row {repeated - first}. Remove it first, or give each row an id of its own."
            )
        self.kind = ids.type
        self.num_alive += len(ids)
        self._used += len(ids)

    def find(self, ids: pa.Array) -> npt.NDArray[np.int64]:
        """Return the row of each id, or -1."""
        slots = self._find_slots(ids)
        return np.where(slots >= 0, self._slots[slots].astype(np.int64), -1)

    def __contains__(self, id: object) -> bool:
        """Return whether an id has a row; what could be no id has none."""
        if isinstance(id, bool) or not isinstance(id, (str, int, np.integer)):
            return False
        try:
            return bool(self.find(self.to_array([id]))[0] >= 0)
        except InputError:
            return False

    def remove(self, ids: pa.Array) -> None:
        """Forget ids. Requires: each has a row, and occurs once."""
        slots = self._find_slots(ids)
        kernels.key_tables.set_bits(self.forgotten, self._slots[slots].astype(np.int64))
        self._slots[slots] = _REMOVED
        self.num_alive -= len(ids)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> pa.Array:
        """Return the ids of some rows: int64, or large_string."""
        if self.kind is None:
            return pa.array([], pa.large_string())
        stored = self._stored()
        if self.kind == pa.int64():
            return pa.array(stored.data[: 8 * self.num_rows].view(np.int64)[rows])
        buffers = [None, pa.py_buffer(stored.offsets), pa.py_buffer(stored.data)]
        return pa.Array.from_buffers(pa.large_string(), self.num_rows, buffers).take(pa.array(rows))

    def _stored(self) -> Ids:
        return kernels.ids.Ids(self._data, self._offsets[: self.num_rows + 1])

    def _find_slots(self, ids: pa.Array) -> npt.NDArray[np.int64]:
        found = np.full(len(ids), -1, np.int64)
        if self.kind is not None and len(ids):
            kernels.ids.find_ids(_flatten(ids), self._stored(), self._slots, found)
        return found

    def _reserve(self, num_rows: int, num_bytes: int) -> None:
        """Grow every array to hold so many rows and bytes, and the table to be at most two thirds full."""
        self._data = grow(self._data, num_bytes)
        self._offsets = grow(self._offsets, num_rows + 1)
        self.forgotten = grow(self.forgotten, (num_rows >> 6) + 1)
        added = num_rows - self.num_rows
        if 3 * (self._used + added) > 2 * len(self._slots):
            self._rebuild(self.num_rows, self.num_alive + added)

    def _rebuild(self, num_rows: int, num_expected: int = 0) -> None:
        """Enter all rows that were not removed in a new table."""
        num_slots = max(len(self._slots) if not num_expected else 0, _LEAST_SLOTS)
        while num_slots < 2 * num_expected:
            num_slots *= 2
        self._slots = np.full(num_slots, _FREE, np.uint32)
        kernels.ids.enter_rows(self._stored(), 0, num_rows, self.forgotten, self._slots)
        self._used = self.num_alive


def _from_list(ids: list[Any]) -> pa.Array:
    """Return a list as an Arrow array."""
    if all(type(id) is int for id in ids):
        return arrow_of(np.array(ids, np.int64))
    if all(type(id) is str for id in ids):
        return arrow_of_strings(ids)
    return pa.array(ids)


def grow(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return an array of at least `size` rows that begins as the one given, the rest zeros."""
    if size <= len(array):
        return array
    grown = np.zeros((max(size, len(array) + len(array) // 2), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def _flatten(ids: pa.Array) -> Ids:
    """Return ids as bytes; copies, so that the compiler meets one type of array."""
    if ids.type == pa.int64():
        data = np.array(ids.to_numpy(zero_copy_only=False), np.int64).view(np.uint8)
        return kernels.ids.Ids(data, np.arange(0, len(data) + 1, 8, dtype=np.int64))
    data, offsets = flatten_strings(ids)
    return kernels.ids.Ids(data.copy(), offsets)
