"""MinHash signatures of many sets, with the scheme that they were made with."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Floats, Mask, Uint32s
from neardup.errors import InputError, SchemeError, SettingError
from neardup.files import JsonObject
from neardup.fingerprints.minhash import WEIGHTED_SCHEME_NAME
from neardup.fingerprints.sketches import SCHEME_KEY, UNKNOWN, Sketches, read_json, read_rows

ALL_ONES = np.uint32(0xFFFFFFFF)
_ROWS_AT_ONCE = 1 << 14


class Signatures(Sketches):
    """The MinHash signatures of sets, one row each; only signatures of equal schemes can be
    compared.

    The signature of an empty set is all ones; it is similar to nothing, not even to another empty
    set. `signatures[rows]` returns some of the rows: an integer, a slice, integers or a mask.

    Attributes
    ----------
    values : uint32 array of shape (num_sets, num_hashes).
    scheme : how they were computed, as values for JSON: name, version, seed, num_hashes, features.
    ids : Arrow array, the id of each row.
    empty : bool array of shape (num_sets,), which sets are empty.

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

    column, kind, dtype = "signature", "Signatures", np.uint32
    size = "num_hashes", 1
    values: Uint32s

    @property
    def num_hashes(self) -> int:
        """The length of a signature."""
        return int(self.values.shape[1])

    @property
    def empty(self) -> Mask:
        """Which sets are empty: bool array of shape (num_sets,)."""
        return is_empty(self.values)

    def similarity(self, other: Signatures) -> Floats:
        """Estimate the Jaccard similarity of the sets, row by row, or of one set with many.

        Parameters
        ----------
        other : signatures of one scheme with these; as many rows, or one, or any number where these
            have one.

        Returns
        -------
        float64 array, the share of equal hashes, from 0 to 1; 0 where a set is empty. Of weighted
        sets it is the weighted Jaccard similarity, sum(min) / sum(max) of the weights.

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
        """Return the signatures of unions, row by row: just those that the unions would be signed
        with.

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
        """Return the signature of the union of all sets, one row; SchemeError if they are
        weighted.
        """
        self._refuse_weighted("merged")
        return Signatures(self.values.min(axis=0, initial=ALL_ONES, keepdims=True), self.scheme)

    def cardinality(self) -> Floats:
        """Estimate how many distinct elements each set has.

        Returns
        -------
        float64 array of shape (num_sets,), 0 for an empty set.

        Raises
        ------
        SchemeError
            If the sets are weighted.

        Notes
        -----
        The least of n uniform numbers is exponential with mean 1 / n once its logarithm is taken,
        and k of them have the estimate (k - 1) / sum(-log(1 - least)) (Cohen 1997): unbiased,
        relative standard error 1 / sqrt(k - 2), 9 % with 128 hashes. Good up to some 10^8 elements,
        where 32 bits begin to fill.
        """
        self._refuse_weighted("counted")
        sums = np.empty(len(self))
        for start in range(0, len(self), _ROWS_AT_ONCE):
            rest = 1.0 - (self.values[start : start + _ROWS_AT_ONCE] + 0.5) / 2.0**32
            sums[start : start + _ROWS_AT_ONCE] = -np.log(rest).sum(axis=1)
        return np.where(self.empty, 0.0, max(self.num_hashes - 1, 1) / sums)

    def pack(self, bits: int) -> PackedSignatures:
        """Return the signatures with only some bits of each hash, as many times smaller.

        Parameters
        ----------
        bits : 1 to 16.

        Raises
        ------
        SettingError
            If bits is anything else.
        """
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 16:
            raise SettingError(
                f"bits must be a whole number of 1 or more and at most 16: got {bits!r}. Use "
                "pack(8)."
            )
        planes = np.empty((len(self), bits, -(-self.num_hashes // 8)), np.uint8)
        for start in range(0, len(self), _ROWS_AT_ONCE):
            mixed = _mix(self.values[start : start + _ROWS_AT_ONCE])
            for bit in range(bits):
                part = ((mixed >> np.uint32(bit)) & np.uint32(1)).astype(np.uint8)
                planes[start : start + _ROWS_AT_ONCE, bit] = np.packbits(
                    part, axis=1, bitorder="little"
                )
        planes[self.empty] = 0  # as it comes back from a table
        return PackedSignatures(planes, {**self.scheme, "bits": bits}, self._ids, self.empty)

    def _to_bytes(self) -> Bytes:
        return np.ascontiguousarray(self.values, "<u4").view(np.uint8)

    @classmethod
    def _from_table(cls, table: pa.Table, name: str) -> Signatures:
        rows, scheme = read_rows(table, cls.column, name), _read_scheme(table, name, packed=False)
        values = np.array(rows.data).view("<u4").astype(np.uint32, copy=False)
        values[rows.empty] = ALL_ONES
        return cls(values, scheme, rows.ids)

    def _actual_scheme(self) -> JsonObject:
        return {**self.scheme, "num_hashes": self.num_hashes}

    def _refuse_weighted(self, done: str) -> None:
        if self.scheme.get("name") == WEIGHTED_SCHEME_NAME:
            raise SchemeError(
                f"Signatures of weighted sets cannot be {done}: got the scheme "
                f"{WEIGHTED_SCHEME_NAME!r}, which keeps "
                "samples and no minima. Sign the tokens without weights."
            )


class PackedSignatures(Sketches):
    """Signatures that keep a few bits of each hash: smaller, and slightly less accurate.

    Attributes
    ----------
    values : uint8 array of shape (num_sets, bits, ceil(num_hashes / 8)), a plane for each bit: bit
        b of hash i is bit i % 8 of byte i // 8 of plane b.
    scheme : as of the signatures, and bits.
    ids : Arrow array, the id of each row.
    empty : bool array of shape (num_sets,), which sets are empty.

    Examples
    --------
    >>> import neardup
    >>> packed = neardup.sign([["a", "b", "c"], ["b", "c", "d"]]).pack(4)
    >>> packed.nbytes
    128
    >>> packed[0].similarity(packed).round(1).tolist()
    [1.0, 0.5]
    """

    column, kind = "signature", "Signatures"
    values: Bytes

    @property
    def num_hashes(self) -> int:
        """The length of a signature."""
        return int(self.scheme["num_hashes"])

    @property
    def nbytes(self) -> int:
        """Bytes of all planes: bits * num_hashes / 8 for a set."""
        return self.values.nbytes

    def similarity(self, other: PackedSignatures) -> Floats:
        """Estimate the Jaccard similarity of the sets, row by row, or of one set with many.

        Parameters
        ----------
        other : as for `Signatures.similarity`, and errors too.

        Returns
        -------
        float64 array; 0 where a set is empty; a little below 0 at times, since it is unbiased.

        Notes
        -----
        Li and Koenig (WWW 2010), theorem 1 for sparse sets. Unequal hashes agree in b bits with
        probability c = 2^-b, so a hash agrees with P = c + (1 - c) J, and (share of equal hashes -
        c) / (1 - c) is unbiased; variance P (1 - P) / (num_hashes (1 - c)^2). Hashes are mixed
        before their bits are taken, so that c is 2^-b for sets of any size, where the lowest bits
        of a minimum are not uniform once sets are large.
        """
        counts = np.empty(self._num_paired(other), np.int64)
        chance = 2.0 ** -self.values.shape[1]
        kernels.minhash.count_equal_packed(self.values, other.values, self.num_hashes, counts)
        return np.where(
            self.empty | other.empty, 0.0, (counts / self.num_hashes - chance) / (1.0 - chance)
        )

    def _to_bytes(self) -> Bytes:
        return self.values.reshape(len(self), int(np.prod(self.values.shape[1:])))

    @classmethod
    def _from_table(cls, table: pa.Table, name: str) -> PackedSignatures:
        rows, scheme = read_rows(table, cls.column, name), _read_scheme(table, name, packed=True)
        data = np.where(rows.empty[:, None], np.uint8(0), rows.data)
        planes = data.reshape(len(data), int(scheme["bits"]), -(-int(scheme["num_hashes"]) // 8))
        return cls(planes, scheme, rows.ids, rows.empty)


def is_empty(values: Uint32s) -> Mask:
    """Return which signatures are all ones, as that of an empty set is: bool array of shape
    (num_sets,).
    """
    empty: Mask = values[:, 0] == ALL_ONES
    doubtful = np.flatnonzero(empty)
    if len(doubtful):
        empty[doubtful] = (values[doubtful] == ALL_ONES).all(axis=1)
    return empty


def unknown_scheme(num_hashes: int) -> JsonObject:
    """Return the scheme of signatures that came without one."""
    return {"name": UNKNOWN, "num_hashes": num_hashes}


def _read_scheme(table: pa.Table, name: str, *, packed: bool) -> JsonObject:
    """Return the scheme of a table of signatures, or raise InputError."""
    num_bytes = table.schema.field("signature").type.byte_width
    scheme, text = read_json(table.schema, SCHEME_KEY)
    known = scheme or {}
    try:
        length = known["bits"] * -(-known["num_hashes"] // 8) if packed else 4 * known["num_hashes"]
        fits = length == num_bytes and ("bits" in known) == packed
    except (KeyError, TypeError):
        fits = False
    if scheme is None or not fits:
        raise InputError(
            f"The scheme in the metadata of {name} is not that of "
            f"{'packed ' * packed}signatures of {num_bytes} "
            f"bytes: got {text}. Open packed ones with PackedSignatures.open, others with "
            "Signatures.open; sign other "
            "files again."
        )
    return scheme


def _mix(values: Uint32s) -> Uint32s:
    """Mix the bits of each value, one to one: the finaliser of MurmurHash3."""
    mixed = values ^ (values >> np.uint32(16))
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed
