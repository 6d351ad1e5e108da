"""The rows of an index in memory, by number: ids, and signatures or fingerprints of one scheme."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Array,
    Integers,
    Ints,
    Words,
    arrow_of,
    arrow_of_strings,
    flatten_strings,
    grow,
)
from neardup.errors import InputError, SchemeError
from neardup.fingerprints.fingerprints import Fingerprints
from neardup.fingerprints.signatures import Signatures, unknown_scheme
from neardup.fingerprints.simhash import num_words
from neardup.fingerprints.sketches import UNKNOWN, Scheme, Sketches, require_same
from neardup.settings.constraints import check_kind, shown

_MIN_SLOTS = 1 << 10
_FREE = 0xFFFFFFFF  # a slot without a row
_REMOVED = 0xFFFFFFFE  # a slot whose row was removed: searches for other ids continue

IdsLike: TypeAlias = Sequence[str] | Sequence[int] | Array | pa.Array | pa.ChunkedArray


class IdTable:
    """Ids by row, and rows by id.

    An integer is stored as the eight bytes of an int64, a string as its UTF-8: 16 bytes a row and
    the string, and 4 to 16 more in a hash table of rows.

    Attributes
    ----------
    kind : int64 or large_string; None until an id was added.
    forgotten : uint64, a bit for each row that was removed, the lowest first.
    """

    def __init__(self) -> None:
        self.kind: pa.DataType | None = None
        self.forgotten = np.zeros(_MIN_SLOTS // 64, np.uint64)
        self.num_rows = 0
        self.num_alive = 0
        # The bytes of id i are data[offsets[i]:offsets[i + 1]].
        self._data = np.zeros(_MIN_SLOTS, np.uint8)
        self._offsets = np.zeros(_MIN_SLOTS + 1, np.int64)
        self._slots = np.full(_MIN_SLOTS, _FREE, np.uint32)  # rows, by the hash of their ids
        self._num_used = 0  # slots that are not free

    def to_array(self, ids: IdsLike) -> pa.Array:
        """Return ids as an Arrow array of int64 or large_string. Raises InputError."""
        array = _arrow_ids(ids)
        if len(array) == 0:
            return pa.array([], self.kind or pa.large_string())
        is_integer = pa.types.is_integer(array.type)
        if not (is_integer or _is_text(array.type)) or array.null_count:
            raise InputError(
                f"An id is a string or an integer: got {array.type} with {array.null_count} nulls. "
                "Give every row an id."
            )
        kind = pa.int64() if is_integer else pa.large_string()
        if self.kind is not None and kind != self.kind:
            names = {pa.int64(): "integers", pa.large_string(): "strings"}
            raise InputError(
                f"The ids of this index are {names[self.kind]}: got {array[0].as_py()!r}. Pass "
                f"{names[self.kind]}."
            )
        try:
            return array if array.type == kind else array.cast(kind)
        except pa.ArrowException as error:
            raise InputError(
                f"An id is an integer below 2^63: {error}. Pass ids as strings."
            ) from error

    def append(self, ids: pa.Array) -> None:
        """Give each id the next row, in order.

        Raises InputError, and changes nothing, if an id is repeated or has a row already.
        """
        if len(ids) == 0:
            return
        # The new ids are written after the others first: the kernel compares stored ids.
        added = _flatten(ids)
        first = self.num_rows
        stop = first + len(ids)
        start = int(self._offsets[first])
        end = start + len(added.data)
        self._reserve(stop, end)
        self._data[start:end] = added.data
        self._offsets[first : stop + 1] = added.offsets + start
        self.num_rows = stop
        repeated = kernels.ids.enter_rows(self._stored(), first, stop, self.forgotten, self._slots)
        if repeated >= 0:
            num_entered = repeated - first
            self._undo(added, num_entered)
            self.num_rows = first
            raise _is_taken(ids[num_entered].as_py(), num_entered)
        self.kind = ids.type
        self.num_alive += len(ids)
        self._num_used += len(ids)

    def _undo(self, added: kernels.ids.Ids, num_entered: int) -> None:
        """Remove the first ids, which were just entered, from their slots; O(num_entered)."""
        entered = kernels.ids.Ids(added.data, added.offsets[: num_entered + 1])
        slots = np.empty(num_entered, np.int64)
        kernels.ids.find_ids(entered, self._stored(), self._slots, slots)
        self._slots[slots] = _REMOVED  # not _FREE, which would end the search for other ids
        self._num_used += num_entered

    def find(self, ids: pa.Array) -> Ints:
        """Return the row of each id, or -1."""
        slots = self._find_slots(ids)
        return np.where(slots >= 0, self._slots[slots].astype(np.int64), -1)

    def __contains__(self, id: object) -> bool:
        """Return whether an id has a row; a value of another type has none."""
        if isinstance(id, bool) or not isinstance(id, (str, int, np.integer)):  # a bool is an int
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

    def take(self, rows: Integers) -> pa.Array:
        """Return the ids of some rows: int64, or large_string."""
        if self.kind is None:
            return pa.array([], "large_string")
        stored = self._stored()
        if self.kind == pa.int64():  # each is eight bytes, one after the other
            integers = stored.data[: 8 * self.num_rows].view(np.int64)
            return pa.array(integers[rows])
        buffers = [None, pa.py_buffer(stored.offsets), pa.py_buffer(stored.data)]
        strings = pa.Array.from_buffers(pa.large_string(), self.num_rows, buffers)
        return strings.take(pa.array(rows))

    def _stored(self) -> kernels.ids.Ids:
        return kernels.ids.Ids(self._data, self._offsets[: self.num_rows + 1])

    def _find_slots(self, ids: pa.Array) -> Ints:
        found = np.full(len(ids), -1, np.int64)
        if self.kind is not None and len(ids):
            kernels.ids.find_ids(_flatten(ids), self._stored(), self._slots, found)
        return found

    def _reserve(self, num_rows: int, num_bytes: int) -> None:
        """Grow the arrays for all rows and bytes, and the table to be at most two thirds full."""
        self._data = grow(self._data, num_bytes)
        self._offsets = grow(self._offsets, num_rows + 1)
        self.forgotten = grow(self.forgotten, (num_rows >> 6) + 1)
        num_added = num_rows - self.num_rows
        if 3 * (self._num_used + num_added) > 2 * len(self._slots):
            self._rebuild(self.num_alive + num_added)

    def _rebuild(self, num_expected: int) -> None:
        """Enter all rows that were not removed in a new table, at most half full."""
        # A power of two, as the kernels take a slot by the lower bits of a hash.
        num_slots = _MIN_SLOTS
        while num_slots < 2 * num_expected:
            num_slots *= 2
        self._slots = np.full(num_slots, _FREE, np.uint32)
        kernels.ids.enter_rows(self._stored(), 0, self.num_rows, self.forgotten, self._slots)
        self._num_used = self.num_alive


def _is_taken(id: str | int, row: int) -> InputError:
    return InputError(
        f"The id {id!r} is already in the index, or twice in the new rows: got it at row {row}. "
        "Remove it first, or give each row an id of its own."
    )


def _arrow_ids(ids: IdsLike) -> pa.Array:
    """Return ids as an Arrow array of any type. Raises InputError."""
    if isinstance(ids, pa.ChunkedArray):
        return ids.combine_chunks()
    if isinstance(ids, pa.Array):
        return ids
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise InputError(
            f"Ids are a list, a NumPy or an Arrow array: got {type(ids).__name__} {shown(ids)}. "
            "Put a single one in a list."
        )
    if not isinstance(ids, np.ndarray):
        ids = list(ids)  # a generator can be read only once
        if any(isinstance(id, bool) for id in ids):
            raise InputError(
                "An id is a string or an integer: got a bool. Pass strings or integers."
            )
    try:
        return _from_list(ids) if isinstance(ids, list) else pa.array(ids)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise InputError(
            f"Ids are all strings, or all integers from -2^63 to 2^63 - 1: {error}. Pass them as "
            "strings."
        ) from error


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _from_list(ids: list[Any]) -> pa.Array:
    """Return a list as an Arrow array."""
    if all(type(id) is int for id in ids):
        return arrow_of(np.array(ids, np.int64))
    if all(type(id) is str for id in ids):
        return arrow_of_strings(ids)
    return pa.array(ids)


def _flatten(ids: pa.Array) -> kernels.ids.Ids:
    """Return ids as bytes. Copies, so that kernels are compiled for one type of array."""
    if ids.type == pa.int64():
        data = np.array(ids.to_numpy(zero_copy_only=False), np.int64).view(np.uint8)
        return kernels.ids.Ids(data, np.arange(0, len(data) + 1, 8, dtype=np.int64))
    data, offsets = flatten_strings(ids)
    return kernels.ids.Ids(data.copy(), offsets)


_MIN_ROWS_TO_COMPACT = 4096
_BATCH_ROWS = 1 << 16


class Rows(NamedTuple):
    """Some rows. ids : int64 or large_string (num_rows,). values : (num_rows, width)."""

    ids: pa.Array
    values: Array


class RowStore(ABC):
    """Ids and values by row number.

    Rows are only appended; a removed row is marked until `compact` drops it. A searcher refers to
    rows by these numbers, and reads `values` and `forgotten` in place.

    Attributes
    ----------
    values : array (num_rows or more, width), the signature or fingerprint of each row.
    scheme : the scheme of the values; None until values with a scheme are added. Arrays have no
        scheme, and are assumed to have this one.
    """

    noun: ClassVar[str]
    max_rows: ClassVar[int]

    def __init__(self, width: int | None, dtype: type, scheme: Scheme | None) -> None:
        if scheme is not None:
            check_kind(
                "scheme", scheme, Mapping, "a mapping, such as that of Signatures.scheme, or None"
            )
        self.width = width
        self.scheme = None if scheme is None else dict(scheme)
        self.values: Array = np.zeros((0, width or 0), dtype)
        self._ids = IdTable()

    def __len__(self) -> int:
        """Return the number of rows that were not removed."""
        return self._ids.num_alive

    def __contains__(self, id: object) -> bool:
        """Return whether an id has a row."""
        return id in self._ids

    @property
    def num_rows(self) -> int:
        """The number of rows, removed ones included."""
        return self._ids.num_rows

    @property
    def forgotten(self) -> Words:
        """Bits of the removed rows, the lowest first."""
        return self._ids.forgotten

    @abstractmethod
    def to_values(self, sketches: Any) -> Array:
        """Return the argument of a user as an array (n, width).

        Raises InputError or SchemeError if it cannot be stored.
        """

    @abstractmethod
    def to_sketches(self, rows: Rows) -> Sketches:
        """Return some rows in the form that is saved."""

    def check_new(self, id: str | int) -> None:
        """Raise InputError if an id has a row, or cannot be an id; O(1)."""
        if self._ids.find(self._ids.to_array([id]))[0] >= 0:
            raise _is_taken(id, row=0)

    def append(self, ids: IdsLike, sketches: Any) -> int:
        """Add rows, all or none; return the number of the first.

        Raises
        ------
        InputError
            If an id is already in the index, occurs twice, or has another type than the others; if
            the numbers of rows differ.
        SchemeError
            If the scheme or the length differs.
        """
        new_ids = self._ids.to_array(ids)
        values = self.to_values(sketches)
        if len(new_ids) != len(values):
            raise InputError(
                f"Ids and {self.noun}s go together: got {len(new_ids)} ids and {len(values)} "
                f"{self.noun}s. Pass equal numbers."
            )
        first = self.num_rows
        stop = first + len(new_ids)
        if stop >= self.max_rows:
            raise InputError(
                f"An index has fewer than {self.max_rows:,} {self.noun}s: got {stop:,}. Use two "
                "indexes."
            )
        if not len(new_ids):
            return first
        # Raises before anything is changed: the ids are the last check.
        self._ids.append(new_ids)
        if self.width is None:
            self.width = values.shape[1]
            self.values = np.zeros((0, self.width), values.dtype)
        if self.scheme is None:
            self.scheme = _scheme_of(sketches)
        self.values = grow(self.values, stop)
        self.values[first:stop] = values
        return first

    def remove(self, id: str | int) -> None:
        """Mark the row of an id as removed. Raises InputError if there is none."""
        if id not in self._ids:
            raise InputError(
                f"The index has no {self.noun} with the id {id!r}. Check with `id in index` first."
            )
        self._ids.remove(self._ids.to_array([id]))

    @property
    def is_sparse(self) -> bool:
        """True if more than half of the rows were removed, and `compact` is worth its time."""
        return self.num_rows > max(_MIN_ROWS_TO_COMPACT, 2 * len(self))

    def compact(self) -> None:
        """Drop the removed rows and renumber the others, in their order."""
        rows = self.take(self.alive_rows())
        self._ids = IdTable()
        self.values = self.values[:0]
        self.append(rows.ids, rows.values)

    def ids_of(self, rows: Integers) -> pa.Array:
        """Return the ids of some rows: int64, or large_string."""
        return self._ids.take(rows)

    def stored(self) -> kernels.matches.Stored:
        """Return the values and the bits of removed rows for kernels."""
        return kernels.matches.Stored(self.values, self.forgotten)

    def take(self, rows: Ints) -> Rows:
        """Return some rows."""
        return Rows(self.ids_of(rows), self.values[rows])

    def batches(self) -> Iterator[Rows]:
        """Yield the rows that were not removed in batches, at least one."""
        alive = self.alive_rows()
        for start in range(0, max(1, len(alive)), _BATCH_ROWS):
            yield self.take(alive[start : start + _BATCH_ROWS])

    def alive_rows(self) -> Ints:
        """Return the rows that were not removed."""
        data = self.forgotten.view(np.uint8)
        is_removed = np.unpackbits(data, count=self.num_rows, bitorder="little")
        return np.flatnonzero(is_removed == 0)


def _scheme_of(sketches: Any) -> dict[str, Any] | None:
    """Return the scheme of sketches, None if it is unknown."""
    if isinstance(sketches, Sketches) and sketches.scheme.get("name") != UNKNOWN:
        return dict(sketches.scheme)
    return None


class SignatureRows(RowStore):
    """Rows of MinHash signatures. width : the length of a signature, at least `min_hashes`."""

    noun = "signature"
    max_rows = 2**31

    def __init__(self, num_hashes: int | None, min_hashes: int, scheme: Scheme | None) -> None:
        super().__init__(num_hashes, np.uint32, scheme)
        self._min_hashes = min_hashes

    def to_values(self, sketches: Any) -> Array:
        """Return Signatures, or a uint32 array of shape (n, num_hashes), as the array."""
        if isinstance(sketches, Signatures):
            if self.scheme is not None:
                require_same(
                    self.scheme, sketches.scheme, "the index", "what is given", kind="Signatures"
                )
            sketches = sketches.values
        is_array = isinstance(sketches, np.ndarray)
        if not is_array or sketches.dtype != np.uint32 or sketches.ndim != 2:
            shown = f"{sketches.dtype} {sketches.shape}" if is_array else type(sketches).__name__
            raise InputError(
                "Signatures are Signatures, or a uint32 array with a row for each; a single one "
                f"is one row: got {shown}. Sign texts with neardup.sign(texts, method=...), or "
                "convert with numpy.asarray(values, numpy.uint32)."
            )
        signatures: Array = sketches
        length = signatures.shape[1]
        if self.width is not None and length != self.width:
            raise SchemeError(
                f"Signatures of {self.width} and of {length} hashes cannot be compared: the index "
                f"has {self.width}, those given have {length}. Sign with "
                f"MinHash(num_hashes={self.width})."
            )
        if length < self._min_hashes:
            raise SchemeError(
                f"This index needs signatures of {self._min_hashes} hashes or more: got {length}. "
                "Sign with more (num_hashes), or make an index that needs fewer."
            )
        return signatures

    def to_sketches(self, rows: Rows) -> Sketches:
        values = rows.values if self.width else np.zeros((0, 1), np.uint32)
        return Signatures(values, self.scheme or unknown_scheme(values.shape[1]), rows.ids)


class FingerprintRows(RowStore):
    """Rows of SimHash fingerprints. bits : the length of a fingerprint."""

    noun = "fingerprint"
    max_rows = _REMOVED

    def __init__(self, bits: int, scheme: Scheme | None) -> None:
        super().__init__(num_words(bits), np.uint64, scheme)
        self.bits = bits

    def to_values(self, sketches: Any) -> Array:
        """Return Fingerprints, a uint64 array (n,) or (n, num_words), or integers as an array."""
        if isinstance(sketches, Fingerprints):
            return self._checked(sketches)
        if not isinstance(sketches, np.ndarray):
            return self._from_integers(sketches)
        words = num_words(self.bits)
        shape = (*sketches.shape[:1], words)  # an array without dimensions has no length
        is_flat = words == 1 and sketches.ndim == 1
        if sketches.dtype != np.uint64 or not (is_flat or sketches.shape == shape):
            raise InputError(
                f"Fingerprints of {self.bits} bits are integers or a uint64 array of shape (n, "
                f"{words}): got {sketches.dtype} {sketches.shape}. Split them into words of 64 "
                "bits, the lowest first."
            )
        if self.bits == 32 and len(sketches) and int(sketches.max()) >> 32:
            values = sketches.ravel()
            row = int(np.flatnonzero(values >> np.uint64(32))[0])
            raise self._refuse(int(values[row]), row)
        return np.array(sketches, np.uint64, order="C").reshape(shape)

    def _checked(self, fingerprints: Fingerprints) -> Words:
        ours = {"bits": self.bits} if self.scheme is None else self.scheme
        theirs = {"bits": fingerprints.bits} if self.scheme is None else fingerprints.scheme
        require_same(ours, theirs, "the index", "what is given")
        if fingerprints.empty.any():
            raise InputError(
                f"{int(fingerprints.empty.sum()):,} of {len(fingerprints):,} documents have no "
                "features, and so no fingerprint. Leave them out: "
                "fingerprints[~fingerprints.empty]."
            )
        return fingerprints.values

    def _from_integers(self, integers: Iterable[int]) -> Words:
        check_kind("fingerprints", integers, Iterable, "Fingerprints, integers or a uint64 array")
        values = list(integers)
        for row, value in enumerate(values):
            is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not is_integer or not 0 <= value < 1 << self.bits:
                raise self._refuse(value, row)
        words = num_words(self.bits)
        # Integers of more than 64 bits have no NumPy type: go through their bytes.
        data = b"".join(int(value).to_bytes(8 * words, "little") for value in values)
        return np.frombuffer(data, "<u8").astype(np.uint64).reshape(len(values), words)

    def _refuse(self, value: object, row: int) -> InputError:
        hint = (
            "Create an index with more bits, or add 2^bits to a negative value that was read as a "
            "signed number."
        )
        if isinstance(value, str) and not value.isdigit():
            hint = (
                "Pass neardup.sign(text, method='simhash'), or use neardup.Index, which takes "
                "texts."
            )
        return InputError(
            f"A fingerprint of this index is an integer from 0 to 2^{self.bits} - 1: got {value!r} "
            f"at row {row}. {hint}"
        )

    def to_sketches(self, rows: Rows) -> Sketches:
        scheme = self.scheme or {"name": UNKNOWN, "bits": self.bits}
        return Fingerprints(rows.values, scheme, rows.ids)


def one_row(signature: Any) -> Any:
    """Normalise a single signature, an array of hashes or Signatures, to one row."""
    # An array without dimensions becomes a signature of one hash, which the store refuses.
    if isinstance(signature, np.ndarray):
        signature = np.atleast_2d(signature)
    if isinstance(signature, (np.ndarray, Sketches)) and len(signature) != 1:
        raise InputError(
            f"Pass one signature: got {len(signature)}. Pass several to query_many or add_many."
        )
    return signature


HashValues = Sequence[int] | Words
