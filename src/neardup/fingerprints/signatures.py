"""MinHash signatures of many sets, with their scheme."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Floats, Mask, Uint32s
from neardup.errors import InputError, SchemeError, SettingError
from neardup.files import JsonObject
from neardup.fingerprints.minhash import WEIGHTED_SCHEME_NAME
from neardup.fingerprints.sketches import SCHEME_KEY, UNKNOWN, Sketches, read_json, read_rows

ALL_ONES = np.uint32(0xFFFFFFFF)
_BATCH_ROWS = 1 << 14


class Signatures(Sketches):
    """The MinHash signatures of sets, one row each.

    Only signatures of equal schemes can be compared. The signature of an empty set is all ones; it
    is similar to nothing. `[rows]` selects rows by an integer, a slice, integers or a mask.

    Attributes
    ----------
    values : uint32 array of shape (num_sets, num_hashes).
    scheme : name, version, seed, num_hashes and features, as values for JSON.
    ids : Arrow array, the id of each row.
    empty : bool array of shape (num_sets,), the empty sets.

    Examples
    --------
    >>> import neardup
    >>> signatures = neardup.sign([["a", "b", "c"], ["b", "c", "d"], []])
    >>> len(signatures), signatures.values.shape
    (3, (3, 128))
    >>> signatures[0].similarity(signatures).round(1).tolist()  # 1, and 2 of 4
    [1.0, 0.5, 0.0]
    >>> signatures.cardinality().round().tolist()
    [3.0, 3.0, 0.0]
    """

    column = "signature"
    kind = "Signatures"
    dtype = np.uint32
    size = ("num_hashes", 1)
    values: Uint32s

    @property
    def num_hashes(self) -> int:
        """The length of a signature."""
        return int(self.values.shape[1])

    @property
    def empty(self) -> Mask:
        """The empty sets: bool array of shape (num_sets,)."""
        return is_empty(self.values)

    def similarity(self, other: Signatures) -> Floats:
        """Estimate the Jaccard similarity of the sets, row by row, or of one set with many.

        Parameters
        ----------
        other : signatures of the same scheme: as many rows, or one row; any number of rows if
            `self` has one.

        Returns
        -------
        float64 array, the share of equal hashes, from 0 to 1; 0 if a set is empty. For weighted
        sets, it estimates the weighted Jaccard similarity, sum(min) / sum(max) of the weights.

        Raises
        ------
        SchemeError
            If the schemes differ.
        InputError
            If the numbers of rows differ, and neither is 1.

        Notes
        -----
        Broder (1997). Unbiased; standard error sqrt(J (1 - J) / num_hashes), at most 0.044 with 128
        hashes.
        """
        counts = np.empty(self._num_paired(other), np.int64)
        kernels.minhash.count_equal(self.values, other.values, counts)
        return counts / self.num_hashes

    def merge(self, other: Signatures) -> Signatures:
        """Return the signatures of unions, row by row; they are equal to signing the unions.

        Parameters
        ----------
        other : as for `similarity`.

        Raises
        ------
        SchemeError
            If the schemes differ, or the sets are weighted: their signatures do not record which
            sample came first.
        InputError
            As for `similarity`.
        """
        self._refuse_weighted("merged")
        self._num_paired(other)
        return Signatures(np.minimum(self.values, other.values), self.scheme)

    def union(self) -> Signatures:
        """Return the signature of the union of all sets, one row.

        Raises SchemeError if the sets are weighted.
        """
        self._refuse_weighted("merged")
        return Signatures(self.values.min(axis=0, initial=ALL_ONES, keepdims=True), self.scheme)

    def cardinality(self) -> Floats:
        """Estimate the number of distinct elements of each set.

        Returns
        -------
        float64 array of shape (num_sets,), 0 for an empty set.

        Raises
        ------
        SchemeError
            If the sets are weighted.

        Notes
        -----
        For the minimum of n uniform numbers, -log(1 - minimum) is exponential with mean 1 / n, and
        k of them give the estimate (k - 1) / sum(-log(1 - minimum)) (Cohen 1997): unbiased,
        relative standard error 1 / sqrt(k - 2), 9 % with 128 hashes. Accurate up to some 10^8
        elements; more elements exhaust 32 bits.
        """
        self._refuse_weighted("counted")
        sums = np.empty(len(self))
        for batch in self._batches():
            minima = (self.values[batch] + 0.5) / 2.0**32
            sums[batch] = -np.log(1.0 - minima).sum(axis=1)
        return np.where(self.empty, 0.0, max(self.num_hashes - 1, 1) / sums)

    def pack(self, bits: int) -> PackedSignatures:
        """Return smaller signatures, with only some bits of each hash.

        Parameters
        ----------
        bits : 1 to 16.

        Raises
        ------
        SettingError
            If bits has another value.
        """
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 16:
            raise SettingError(
                f"bits must be a whole number of 1 or more and at most 16: got {bits!r}. Use "
                "pack(8)."
            )
        planes = np.empty((len(self), bits, _plane_bytes(self.num_hashes)), np.uint8)
        for batch in self._batches():
            mixed = _mix(self.values[batch])
            for bit in range(bits):
                plane = ((mixed >> np.uint32(bit)) & np.uint32(1)).astype(np.uint8)
                planes[batch, bit] = np.packbits(plane, axis=1, bitorder="little")
        planes[self.empty] = 0  # as when read from a table
        return PackedSignatures(planes, {**self.scheme, "bits": bits}, self._ids, self.empty)

    def _batches(self) -> Iterator[slice]:
        """Yield the rows that are computed at a time, which limits the memory."""
        for start in range(0, len(self), _BATCH_ROWS):
            yield slice(start, start + _BATCH_ROWS)

    def _to_bytes(self) -> Bytes:
        return np.ascontiguousarray(self.values, "<u4").view(np.uint8)

    @classmethod
    def _from_table(cls, table: pa.Table, name: str) -> Signatures:
        rows = read_rows(table, cls.column, name)
        scheme = _read_scheme(table, name, packed=False)
        values = np.array(rows.data).view("<u4").astype(np.uint32, copy=False)
        values[rows.empty] = ALL_ONES
        return cls(values, scheme, rows.ids)

    def _actual_scheme(self) -> JsonObject:
        return {**self.scheme, "num_hashes": self.num_hashes}

    def _refuse_weighted(self, done: str) -> None:
        if self.scheme.get("name") == WEIGHTED_SCHEME_NAME:
            raise SchemeError(
                f"Signatures of weighted sets cannot be {done}: got the scheme "
                f"{WEIGHTED_SCHEME_NAME!r}, which keeps samples and no minima. Sign the tokens "
                "without weights."
            )


class PackedSignatures(Sketches):
    """Signatures with a few bits of each hash: smaller, and slightly less accurate.

    Attributes
    ----------
    values : uint8 array of shape (num_sets, bits, ceil(num_hashes / 8)), a plane for each bit: bit
        b of hash i is bit i % 8 of byte i // 8 of plane b.
    scheme : as of `Signatures`, and bits.
    ids : Arrow array, the id of each row.
    empty : bool array of shape (num_sets,), the empty sets.

    Examples
    --------
    >>> import neardup
    >>> packed = neardup.sign([["a", "b", "c"], ["b", "c", "d"]]).pack(4)
    >>> packed.nbytes
    128
    >>> packed[0].similarity(packed).round(1).tolist()
    [1.0, 0.5]
    """

    column = "signature"
    kind = "Signatures"
    values: Bytes

    @property
    def num_hashes(self) -> int:
        """The length of a signature."""
        return int(self.scheme["num_hashes"])

    @property
    def nbytes(self) -> int:
        """The number of bytes of all planes: bits * num_hashes / 8 for a set."""
        return self.values.nbytes

    def similarity(self, other: PackedSignatures) -> Floats:
        """Estimate the Jaccard similarity of the sets, row by row, or of one set with many.

        Parameters
        ----------
        other : as for `Signatures.similarity`, and errors too.

        Returns
        -------
        float64 array; 0 if a set is empty; may be slightly negative, since it is unbiased.

        Notes
        -----
        Li and Koenig (WWW 2010), theorem 1 for sparse sets. Unequal hashes agree in b bits with
        probability c = 2^-b, so a hash agrees with P = c + (1 - c) J, and (share of equal hashes -
        c) / (1 - c) is unbiased; variance P (1 - P) / (num_hashes (1 - c)^2). The lowest bits of
        the minima of large sets are not uniform, so hashes are mixed before their bits are taken: c
        is 2^-b for sets of any size.
        """
        counts = np.empty(self._num_paired(other), np.int64)
        chance = 2.0 ** -self.values.shape[1]
        kernels.minhash.count_equal_packed(self.values, other.values, self.num_hashes, counts)
        # Hashes of few bits agree by chance: take the expected number of these away.
        estimate = (counts / self.num_hashes - chance) / (1.0 - chance)
        return np.where(self.empty | other.empty, 0.0, estimate)

    def _to_bytes(self) -> Bytes:
        return self.values.reshape(len(self), int(np.prod(self.values.shape[1:])))

    @classmethod
    def _from_table(cls, table: pa.Table, name: str) -> PackedSignatures:
        rows = read_rows(table, cls.column, name)
        scheme = _read_scheme(table, name, packed=True)
        data = np.where(rows.empty[:, None], np.uint8(0), rows.data)
        plane_bytes = _plane_bytes(int(scheme["num_hashes"]))
        planes = data.reshape(len(data), int(scheme["bits"]), plane_bytes)
        return cls(planes, scheme, rows.ids, rows.empty)


def is_empty(values: Uint32s) -> Mask:
    """Return the signatures of empty sets, which are all ones: bool array of shape (num_sets,)."""
    # One hash decides nearly all rows; a hash of all ones is rare in others.
    empty: Mask = values[:, 0] == ALL_ONES
    possible = np.flatnonzero(empty)
    if len(possible):
        empty[possible] = (values[possible] == ALL_ONES).all(axis=1)
    return empty


def unknown_scheme(num_hashes: int) -> JsonObject:
    """Return the scheme of signatures of unknown origin."""
    return {"name": UNKNOWN, "num_hashes": num_hashes}


def _read_scheme(table: pa.Table, name: str, *, packed: bool) -> JsonObject:
    """Return the scheme of a table of signatures, or raise InputError."""
    num_bytes = table.schema.field("signature").type.byte_width
    scheme, text = read_json(table.schema, SCHEME_KEY)
    known = scheme or {}
    try:
        num_hashes = known["num_hashes"]
        length = known["bits"] * _plane_bytes(num_hashes) if packed else 4 * num_hashes
        fits = length == num_bytes and ("bits" in known) == packed
    except (KeyError, TypeError):
        fits = False
    if scheme is None or not fits:
        kind = "packed signatures" if packed else "signatures"
        raise InputError(
            f"The scheme in the metadata of {name} is not that of {kind} of {num_bytes} bytes: got "
            f"{text}. Open packed ones with PackedSignatures.open, others with Signatures.open; "
            "sign other files again."
        )
    return scheme


def _plane_bytes(num_hashes: int) -> int:
    """Return the bytes of one bit of each hash."""
    return -(-num_hashes // 8)


def _mix(values: Uint32s) -> Uint32s:
    """Mix the bits of each value, one to one: the finaliser of MurmurHash3."""
    mixed = values ^ (values >> np.uint32(16))
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed
