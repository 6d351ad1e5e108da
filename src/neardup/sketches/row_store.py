"""The rows of an index in memory: ids, signatures or fingerprints of one scheme and length, by row
number.
"""

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

_LEAST_SLOTS = 1 << 10
_FREE = 0xFFFFFFFF
_REMOVED = 0xFFFFFFFE

IdsLike: TypeAlias = Sequence[str] | Sequence[int] | Array | pa.Array | pa.ChunkedArray


class IdTable:
    """Ids by row, and rows by id.

    An integer is kept as the eight bytes of an int64, a string as its UTF-8: 16 bytes a row and the
    string, and four to sixteen more in a table of rows.
    """

    def __init__(self) -> None:
        self.kind: pa.DataType | None = None
        self.forgotten = np.zeros(_LEAST_SLOTS // 64, np.uint64)  # bits of rows
        self.num_rows = self.num_alive = 0
        self._data = np.zeros(_LEAST_SLOTS, np.uint8)
        self._offsets = np.zeros(_LEAST_SLOTS + 1, np.int64)
        self._slots = np.full(_LEAST_SLOTS, _FREE, np.uint32)
        self._used = 0  # slots that are not free

    def to_array(self, ids: IdsLike) -> pa.Array:  # noqa: C901
        """Return ids as an Arrow array of int64 or large_string, or raise InputError."""
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks()
        if not isinstance(ids, pa.Array):
            if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
                raise InputError(
                    f"Ids are a list, a NumPy or an Arrow array: got {type(ids).__name__} "
                    f"{shown(ids)}. Put a single "
                    "one in a list."
                )
            if not isinstance(ids, (list, np.ndarray)):
                ids = list(ids)  # a generator can be read only once
            if not isinstance(ids, np.ndarray) and any(isinstance(id, bool) for id in ids):
                raise InputError(
                    "An id is a string or an integer: got a bool. Pass strings or integers."
                )
            try:
                ids = _from_list(ids) if isinstance(ids, list) else pa.array(ids)
            except (pa.ArrowException, OverflowError, ValueError) as error:
                raise InputError(
                    f"Ids are all strings, or all integers from -2^63 to 2^63 - 1: {error}. "
                    "Pass them as strings."
                ) from error
        kind = pa.int64() if pa.types.is_integer(ids.type) else pa.large_string()
        texts = (
            pa.types.is_string(ids.type)
            or pa.types.is_large_string(ids.type)
            or pa.types.is_string_view(ids.type)
        )
        if len(ids) == 0:
            return pa.array([], self.kind or pa.large_string())
        if not (pa.types.is_integer(ids.type) or texts) or ids.null_count:
            raise InputError(
                f"An id is a string or an integer: got {ids.type} with {ids.null_count} "
                "nulls. Give every row an id."
            )
        if self.kind is not None and kind != self.kind:
            names = {pa.int64(): "integers", pa.large_string(): "strings"}
            raise InputError(
                f"The ids of this index are {names[self.kind]}: got {ids[0].as_py()!r}. Pass "
                f"{names[self.kind]}."
            )
        try:
            return ids if ids.type == kind else ids.cast(kind)
        except pa.ArrowException as error:
            raise InputError(
                f"An id is an integer below 2^63: {error}. Pass ids as strings."
            ) from error

    def append(self, ids: pa.Array) -> None:
        """Give each id the next row, in order. Raises InputError, and changes nothing, if one is
        there already.
        """
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
            self._leave_out(added, repeated - first)
            self.num_rows = first
            raise _is_taken(ids[repeated - first].as_py(), repeated - first)
        self.kind = ids.type
        self.num_alive += len(ids)
        self._used += len(ids)

    def _leave_out(self, added: kernels.ids.Ids, count: int) -> None:
        """Free the slots of the first ids that were entered a moment ago; O(count), however many
        others there are.
        """
        entered = kernels.ids.Ids(added.data, added.offsets[: count + 1])
        slots = np.empty(count, np.int64)
        kernels.ids.find_ids(entered, self._stored(), self._slots, slots)
        self._slots[slots] = _REMOVED
        self._used += count

    def find(self, ids: pa.Array) -> Ints:
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

    def take(self, rows: Integers) -> pa.Array:
        """Return the ids of some rows: int64, or large_string."""
        if self.kind is None:
            return pa.array([], "large_string")
        stored = self._stored()
        if self.kind == pa.int64():
            return pa.array(stored.data[: 8 * self.num_rows].view(np.int64)[rows])
        buffers = [None, pa.py_buffer(stored.offsets), pa.py_buffer(stored.data)]
        return pa.Array.from_buffers(pa.large_string(), self.num_rows, buffers).take(pa.array(rows))

    def _stored(self) -> kernels.ids.Ids:
        return kernels.ids.Ids(self._data, self._offsets[: self.num_rows + 1])

    def _find_slots(self, ids: pa.Array) -> Ints:
        found = np.full(len(ids), -1, np.int64)
        if self.kind is not None and len(ids):
            kernels.ids.find_ids(_flatten(ids), self._stored(), self._slots, found)
        return found

    def _reserve(self, num_rows: int, num_bytes: int) -> None:
        """Grow every array to hold so many rows and bytes, and the table to be at most two thirds
        full.
        """
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


def _is_taken(id: str | int, row: int) -> InputError:
    return InputError(
        f"The id {id!r} is already in the index, or twice in the new rows: got it at row "
        f"{row}. Remove it first, or "
        "give each row an id of its own."
    )


def _from_list(ids: list[Any]) -> pa.Array:
    """Return a list as an Arrow array."""
    if all(type(id) is int for id in ids):
        return arrow_of(np.array(ids, np.int64))
    if all(type(id) is str for id in ids):
        return arrow_of_strings(ids)
    return pa.array(ids)


def _flatten(ids: pa.Array) -> kernels.ids.Ids:
    """Return ids as bytes; copies, so that the compiler meets one type of array."""
    if ids.type == pa.int64():
        data = np.array(ids.to_numpy(zero_copy_only=False), np.int64).view(np.uint8)
        return kernels.ids.Ids(data, np.arange(0, len(data) + 1, 8, dtype=np.int64))
    data, offsets = flatten_strings(ids)
    return kernels.ids.Ids(data.copy(), offsets)


_LEAST_TO_COMPACT = 4096
_BATCH_ROWS = 1 << 16


class Rows(NamedTuple):
    """Some rows. ids : Arrow; values : (n, width)."""

    ids: pa.Array
    values: Array


class RowStore(ABC):
    """Ids and values by row number, appended only; a removed row is marked until `compact` leaves
    it out.

    A searcher refers to rows by these numbers. It reads `values` and `forgotten` in place.

    Attributes
    ----------
    values : array (num_rows or more, width), of the row's signature or fingerprint.
    scheme : of the values; None until the first come that have one. Arrays are taken to be of the
        same.
    """

    noun: ClassVar[str]
    max_rows: ClassVar[int]

    def __init__(self, width: int | None, dtype: type, scheme: Scheme | None) -> None:
        if scheme is not None:
            check_kind(
                "scheme", scheme, Mapping, "a mapping, such as that of Signatures.scheme, or None"
            )
        self.width, self.scheme = width, None if scheme is None else dict(scheme)
        self.values: Array = np.zeros((0, width or 0), dtype)
        self._ids = IdTable()

    def __len__(self) -> int:
        """Return how many rows there are that were not removed."""
        return self._ids.num_alive

    def __contains__(self, id: object) -> bool:
        """Return whether an id has a row."""
        return id in self._ids

    @property
    def num_rows(self) -> int:
        """How many rows there are, with those that were removed."""
        return self._ids.num_rows

    @property
    def forgotten(self) -> Words:
        """The bits of the rows that were removed, the lowest first."""
        return self._ids.forgotten

    @abstractmethod
    def to_values(self, sketches: Any) -> Array:
        """Return the argument of a user as an array (n, width). Raise InputError or SchemeError if
        it is none.
        """

    @abstractmethod
    def to_sketches(self, rows: Rows) -> Sketches:
        """Return some rows as what is saved."""

    def check_new(self, id: str | int) -> None:
        """Raise InputError if an id has a row, or is none; O(1)."""
        if self._ids.find(self._ids.to_array([id]))[0] >= 0:
            raise _is_taken(id, row=0)

    def append(self, ids: IdsLike, sketches: Any) -> int:
        """Add rows, all or none; return the number of the first.

        Raises
        ------
        InputError
            If an id is there already or twice, or is not of the kind of the others; if the numbers
            of rows differ.
        SchemeError
            If they are of another scheme or length.
        """
        new_ids, values = self._ids.to_array(ids), self.to_values(sketches)
        if len(new_ids) != len(values):
            raise InputError(
                f"Ids and {self.noun}s go together: got {len(new_ids)} ids and {len(values)} "
                f"{self.noun}s. Pass equal "
                "numbers."
            )
        first, stop = self.num_rows, self.num_rows + len(new_ids)
        if stop >= self.max_rows:
            raise InputError(
                f"An index has fewer than {self.max_rows:,} {self.noun}s: got {stop:,}. Use "
                "two indexes."
            )
        if not len(new_ids):
            return first
        self._ids.append(new_ids)
        if self.width is None:
            self.width = values.shape[1]
            self.values = np.zeros((0, self.width), values.dtype)
        if (
            self.scheme is None
            and isinstance(sketches, Sketches)
            and sketches.scheme.get("name") != UNKNOWN
        ):
            self.scheme = dict(sketches.scheme)
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
        """Whether so many rows were removed that the others are worth copying."""
        return self.num_rows > max(_LEAST_TO_COMPACT, 2 * len(self))

    def compact(self) -> None:
        """Leave out the removed rows and number the others anew, in their order."""
        rows = self.take(self.alive_rows())
        self._ids, self.values = IdTable(), self.values[:0]
        self.append(rows.ids, rows.values)

    def ids_of(self, rows: Integers) -> pa.Array:
        """Return the ids of some rows: int64, or large_string."""
        return self._ids.take(rows)

    def stored(self) -> kernels.matches.Stored:
        """Return the values and which rows were removed, as kernels read them."""
        return kernels.matches.Stored(self.values, self.forgotten)

    def take(self, rows: Ints) -> Rows:
        """Return some rows."""
        return Rows(self.ids_of(rows), self.values[rows])

    def batches(self) -> Iterator[Rows]:
        """Yield the rows that were not removed, some at a time, at least once."""
        alive = self.alive_rows()
        for start in range(0, max(1, len(alive)), _BATCH_ROWS):
            yield self.take(alive[start : start + _BATCH_ROWS])

    def alive_rows(self) -> Ints:
        """Return the rows that were not removed."""
        return np.flatnonzero(
            np.unpackbits(self.forgotten.view(np.uint8), count=self.num_rows, bitorder="little")
            == 0
        )


class SignatureRows(RowStore):
    """Rows of MinHash signatures. width : the length of a signature, at least `least_hashes`."""

    noun, max_rows = "signature", 2**31

    def __init__(self, num_hashes: int | None, least_hashes: int, scheme: Scheme | None) -> None:
        super().__init__(num_hashes, np.uint32, scheme)
        self._least_hashes = least_hashes

    def to_values(self, sketches: Any) -> Array:
        """Return Signatures, or a uint32 array of shape (n, num_hashes), as the array."""
        if isinstance(sketches, Signatures):
            if self.scheme is not None:
                require_same(
                    self.scheme, sketches.scheme, "the index", "what is given", kind="Signatures"
                )
            sketches = sketches.values
        if (
            not isinstance(sketches, np.ndarray)
            or sketches.dtype != np.uint32
            or sketches.ndim != 2
        ):
            is_array = isinstance(sketches, np.ndarray)
            shown = f"{sketches.dtype} {sketches.shape}" if is_array else type(sketches).__name__
            raise InputError(
                "Signatures are Signatures, or a uint32 array with a row for each; a single "
                "one is one row: got "
                f"{shown}. Sign texts with neardup.sign(texts, method=...), or convert with "
                "numpy.asarray(values, numpy.uint32)."
            )
        length = sketches.shape[1]
        if self.width is not None and length != self.width:
            raise SchemeError(
                f"Signatures of {self.width} and of {length} hashes cannot be compared: the "
                f"index has {self.width}, "
                f"those given have {length}. Sign with MinHash(num_hashes={self.width})."
            )
        if length < self._least_hashes:
            raise SchemeError(
                f"This index needs signatures of {self._least_hashes} hashes or more: got "
                f"{length}. Sign with more "
                "(num_hashes), or make an index that needs fewer."
            )
        return sketches

    def to_sketches(self, rows: Rows) -> Sketches:
        values = rows.values if self.width else np.zeros((0, 1), np.uint32)
        return Signatures(values, self.scheme or unknown_scheme(values.shape[1]), rows.ids)


class FingerprintRows(RowStore):
    """Rows of SimHash fingerprints of so many bits."""

    noun, max_rows = "fingerprint", 2**32 - 2

    def __init__(self, bits: int, scheme: Scheme | None) -> None:
        super().__init__(num_words(bits), np.uint64, scheme)
        self.bits = bits

    def to_values(self, sketches: Any) -> Array:
        """Return Fingerprints, a uint64 array of shape (n,) or (n, num_words), or integers as the
        array.
        """
        if isinstance(sketches, Fingerprints):
            return self._checked(sketches)
        if not isinstance(sketches, np.ndarray):
            return self._from_integers(sketches)
        shape = (len(sketches), num_words(self.bits))
        if sketches.dtype != np.uint64 or sketches.shape not in (
            shape,
            shape[: 1 + (shape[1] > 1)],
        ):
            raise InputError(
                f"Fingerprints of {self.bits} bits are integers or a uint64 array of shape "
                f"(n, {shape[1]}): got "
                f"{sketches.dtype} {sketches.shape}. Split them into words of 64 bits, the "
                "lowest first."
            )
        if self.bits == 32 and len(sketches) and int(sketches.max()) >> 32:
            row = int(np.flatnonzero(sketches.ravel() >> np.uint64(32))[0])
            raise self._refuse(int(sketches.ravel()[row]), row)
        return np.array(sketches, np.uint64, order="C").reshape(shape)

    def _checked(self, fingerprints: Fingerprints) -> Words:
        ours = {"bits": self.bits} if self.scheme is None else self.scheme
        theirs = {"bits": fingerprints.bits} if self.scheme is None else fingerprints.scheme
        require_same(ours, theirs, "the index", "what is given")
        if fingerprints.empty.any():
            raise InputError(
                f"{int(fingerprints.empty.sum()):,} of {len(fingerprints):,} documents have "
                "no features, and so no "
                "fingerprint. Leave them out: fingerprints[~fingerprints.empty]."
            )
        return fingerprints.values

    def _from_integers(self, integers: Iterable[int]) -> Words:
        check_kind("fingerprints", integers, Iterable, "Fingerprints, integers or a uint64 array")
        values, num_bytes = list(integers), 8 * num_words(self.bits)
        for row, value in enumerate(values):
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, np.integer))
                or not 0 <= value < 1 << self.bits
            ):
                raise self._refuse(value, row)
        data = b"".join(int(value).to_bytes(num_bytes, "little") for value in values)
        return np.frombuffer(data, "<u8").astype(np.uint64).reshape(len(values), num_bytes // 8)

    def _refuse(self, value: object, row: int) -> InputError:
        return InputError(
            (
                f"A fingerprint of this index is an integer from 0 to 2^{self.bits} - 1: got "
                f"{value!r} at row {row}. "
            )
            + (
                (
                    "Pass neardup.sign(text, method='simhash'), or use neardup.Index, which takes "
                    "texts."
                )
                if isinstance(value, str) and not value.isdigit()
                else "Create an index with more bits, or add 2^bits to a negative value that was "
                "read as a signed "
                "number."
            )
        )

    def to_sketches(self, rows: Rows) -> Sketches:
        return Fingerprints(
            rows.values, self.scheme or {"name": UNKNOWN, "bits": self.bits}, rows.ids
        )


def one_row(signature: Any) -> Any:
    """Return one signature, given as a row or as Signatures of one, as an array or Signatures of
    one row.
    """
    if isinstance(signature, np.ndarray) and signature.ndim == 1:
        signature = signature[None]
    if isinstance(signature, (np.ndarray, Sketches)) and len(signature) != 1:
        raise InputError(
            f"Pass one signature: got {len(signature)}. Pass several to query_many or add_many."
        )
    return signature


HashValues = Sequence[int] | Words
