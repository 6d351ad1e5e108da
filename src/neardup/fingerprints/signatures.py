"""MinHash signatures of many sets, with the scheme that they were made with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import InputError, SchemeError, SettingError
from neardup.fingerprints.files import require_same
from neardup.fingerprints.minhash import WEIGHTED_SCHEME_NAME
from neardup.fingerprints.signature_tables import Rows, make_table, read_rows, read_table, write_table

ALL_ONES = np.uint32(0xFFFFFFFF)
_ROWS_AT_ONCE = 1 << 14
Index = int | slice | Sequence[int] | npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Signatures:
    """The signatures of sets, a row each; two compare where their schemes are equal.

    The signature of an empty set is all ones; it is like nothing, not even another empty set. `signatures[rows]` takes
    some of the rows: an integer, a slice, integers or a mask.

    Attributes
    ----------
    values : uint32 array of shape (num_sets, num_hashes).
    scheme : what they were made with, in values that JSON can hold: name, version, seed, num_hashes, and what a
        feature is.

    Examples
    --------
    >>> import neardup
    >>> signatures = neardup.sign([["a", "b", "c"], ["b", "c", "d"], []])
    >>> len(signatures), signatures.values.shape
    (3, (3, 128))
    >>> signatures[0].estimate_jaccard(signatures).round(1).tolist()  # 1, and 2 of 4
    [1.0, 0.5, 0.0]
    >>> signatures.cardinality().round().tolist()
    [3.0, 3.0, 0.0]
    """

    values: npt.NDArray[np.uint32]
    scheme: Mapping[str, Any]

    def __len__(self) -> int:
        """Return how many sets there are."""
        return len(self.values)

    def __getitem__(self, rows: Index) -> Signatures:
        """Return some of the rows, a single one too as signatures of one set."""
        return Signatures(np.ascontiguousarray(np.atleast_2d(self.values[rows])), self.scheme)

    @property
    def num_hashes(self) -> int:
        """The length of a signature."""
        return int(self.values.shape[1])

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Which sets are empty: bool array of shape (num_sets,)."""
        empty: npt.NDArray[np.bool_] = (self.values == ALL_ONES).all(axis=1)
        return empty

    def estimate_jaccard(self, other: Signatures) -> npt.NDArray[np.float64]:
        """Estimate the Jaccard similarity of the sets, row by row, or of one set with many.

        Parameters
        ----------
        other : signatures of one scheme with these; as many rows, or one, or any number where these have one.

        Returns
        -------
        float64 array, the share of equal places, from 0 to 1; 0 where a set is empty. Of weighted sets it is the
        weighted Jaccard similarity, sum(min) / sum(max) of the weights.

        Raises
        ------
        SchemeError
            If the schemes differ.
        InputError
            If the numbers of rows differ, and neither is 1.

        Notes
        -----
        Broder (1997). Unbiased; standard error sqrt(J (1 - J) / num_hashes), at most 0.044 with 128 hashes.
        """
        from neardup.kernels import minhash as kernel

        counts = _counts_for(self, other)
        kernel.count_equal(self.values, other.values, counts)
        return counts / self.num_hashes

    def merge(self, other: Signatures) -> Signatures:
        """Return the signatures of unions, row by row: just those that the unions would be signed with.

        Parameters
        ----------
        other : as for `estimate_jaccard`.

        Raises
        ------
        SchemeError
            If the schemes differ, or the sets are weighted: their signatures do not say which sample came first.
        InputError
            As for `estimate_jaccard`.
        """
        self._refuse_weighted("merged")
        _counts_for(self, other)
        return Signatures(np.minimum(self.values, other.values), self.scheme)

    def union(self) -> Signatures:
        """Return the signature of the union of all sets, one row; SchemeError if they are weighted."""
        self._refuse_weighted("merged")
        return Signatures(self.values.min(axis=0, initial=ALL_ONES, keepdims=True), self.scheme)

    def cardinality(self) -> npt.NDArray[np.float64]:
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
        The least of n uniform numbers is exponential with mean 1 / n once its logarithm is taken, and k of them have
        the estimate (k - 1) / sum(-log(1 - least)) (Cohen 1997): unbiased, relative standard error 1 / sqrt(k - 2), 9 %
        with 128 hashes. Good up to some 10^8 elements, where 32 bits begin to fill.
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
            raise SettingError(f"bits must be a whole number of 1 or more and at most 16: got {bits!r}. Use pack(8).")
        num_bytes = -(-self.num_hashes // 8)
        planes = np.empty((len(self), bits, num_bytes), np.uint8)
        for start in range(0, len(self), _ROWS_AT_ONCE):
            mixed = _mix(self.values[start : start + _ROWS_AT_ONCE])
            for bit in range(bits):
                part = ((mixed >> np.uint32(bit)) & np.uint32(1)).astype(np.uint8)
                planes[start : start + _ROWS_AT_ONCE, bit] = np.packbits(part, axis=1, bitorder="little")
        planes[self.empty] = 0  # as it comes back from a table
        return PackedSignatures(planes, self.empty, {**self.scheme, "bits": bits})

    def to_table(self, ids: Sequence[Any] | pa.Array | None = None) -> pa.Table:
        """Return an Arrow table of `id` and `signature`, with the scheme in the metadata of the schema.

        Parameters
        ----------
        ids : as many as there are sets; running numbers when None.

        Returns
        -------
        Table; `signature` is fixed-size binary, the hashes as little-endian uint32; null for an empty set.
        """
        data = np.ascontiguousarray(self.values).astype("<u4", copy=False).view(np.uint8)
        return make_table(Rows(data.reshape(len(self), 4 * self.num_hashes), self.empty), self.scheme, ids)

    @classmethod
    def from_table(cls, table: pa.Table) -> Signatures:
        """Return the signatures of a table as `to_table` makes it; errors as of `open`."""
        return cls._from(table, "the table")

    def save(
        self, path: str | os.PathLike[str], ids: Sequence[Any] | pa.Array | None = None, *, overwrite: bool = False
    ) -> None:
        """Write the table of `to_table` to a Parquet file, which is whole once it has its name.

        Raises
        ------
        OutputError
            If the file exists and is not to be replaced, or cannot be written.
        """
        write_table(self.to_table(ids), path, overwrite)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Signatures:
        """Read signatures that `save` wrote; the ids are the column `id` of the file, for `pyarrow.parquet.read_table`.

        Raises
        ------
        InputError
            If it cannot be read, or has no scheme, or that of signatures of another length or kind.
        ColumnError
            If it has no column `signature` of fixed-size binary.
        """
        return cls._from(read_table(path), os.fspath(path))

    @classmethod
    def _from(cls, table: pa.Table, name: str) -> Signatures:
        rows, scheme = read_rows(table, name, packed=False)
        values = rows.data.view("<u4").astype(np.uint32, copy=False).reshape(len(rows.data), int(scheme["num_hashes"]))
        values[rows.empty] = ALL_ONES
        return cls(values, scheme)

    def _refuse_weighted(self, done: str) -> None:
        if self.scheme.get("name") == WEIGHTED_SCHEME_NAME:
            raise SchemeError(
                f"Signatures of weighted sets cannot be {done}: got the scheme {WEIGHTED_SCHEME_NAME!r}, which keeps "
                "samples and no minima. Sign the tokens without weights."
            )


@dataclass(frozen=True, eq=False)
class PackedSignatures:
    """Signatures of which each hash keeps a few bits: smaller, and a little less exact.

    Attributes
    ----------
    planes : uint8 array of shape (num_sets, bits, ceil(num_hashes / 8)): bit b of hash i is bit i % 8 of byte i // 8 of
        plane b.
    empty : bool array of shape (num_sets,), which sets are empty.
    scheme : as of the signatures, and bits.

    Examples
    --------
    >>> import neardup
    >>> packed = neardup.sign([["a", "b", "c"], ["b", "c", "d"]]).pack(4)
    >>> packed.nbytes
    128
    >>> packed[0].estimate_jaccard(packed).round(1).tolist()
    [1.0, 0.5]
    """

    planes: npt.NDArray[np.uint8]
    empty: npt.NDArray[np.bool_]
    scheme: Mapping[str, Any]

    def __len__(self) -> int:
        """Return how many sets there are."""
        return len(self.planes)

    def __getitem__(self, rows: Index) -> PackedSignatures:
        """Return some of the rows, as of `Signatures`."""
        planes = self.planes[rows].reshape(-1, *self.planes.shape[1:])
        return PackedSignatures(np.ascontiguousarray(planes), np.atleast_1d(self.empty[rows]), self.scheme)

    @property
    def num_hashes(self) -> int:
        """The length of a signature."""
        return int(self.scheme["num_hashes"])

    @property
    def nbytes(self) -> int:
        """Bytes of all planes: bits * num_hashes / 8 for a set."""
        return self.planes.nbytes

    def estimate_jaccard(self, other: PackedSignatures) -> npt.NDArray[np.float64]:
        """Estimate the Jaccard similarity of the sets, row by row, or of one set with many.

        Parameters
        ----------
        other : as for `Signatures.estimate_jaccard`, and errors too.

        Returns
        -------
        float64 array; 0 where a set is empty; a little below 0 at times, since it is unbiased.

        Notes
        -----
        Li and Koenig (WWW 2010), theorem 1 for sparse sets. Unequal hashes agree in b bits with probability c = 2^-b,
        so a place agrees with P = c + (1 - c) J, and (share of equal places - c) / (1 - c) is unbiased; variance
        P (1 - P) / (num_hashes (1 - c)^2). Hashes are mixed before their bits are taken, so that c is 2^-b for sets of
        any size, where the lowest bits of a minimum are not uniform once sets are large.
        """
        from neardup.kernels import minhash as kernel

        counts = _counts_for(self, other)
        chance = 2.0 ** -self.planes.shape[1]
        kernel.count_equal_packed(self.planes, other.planes, self.num_hashes, counts)
        return np.where(self.empty | other.empty, 0.0, (counts / self.num_hashes - chance) / (1.0 - chance))

    def to_table(self, ids: Sequence[Any] | pa.Array | None = None) -> pa.Table:
        """Return an Arrow table as `Signatures.to_table` does; `signature` holds the planes, one after the other."""
        return make_table(Rows(self.planes.reshape(len(self), -1), self.empty), self.scheme, ids)

    @classmethod
    def from_table(cls, table: pa.Table) -> PackedSignatures:
        """Return the signatures of a table as `to_table` makes it; errors as of `open`."""
        return cls._from(table, "the table")

    def save(
        self, path: str | os.PathLike[str], ids: Sequence[Any] | pa.Array | None = None, *, overwrite: bool = False
    ) -> None:
        """Write the table of `to_table` to a Parquet file, as `Signatures.save` does."""
        write_table(self.to_table(ids), path, overwrite)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PackedSignatures:
        """Read signatures that `save` wrote; errors as of `Signatures.open`."""
        return cls._from(read_table(path), os.fspath(path))

    @classmethod
    def _from(cls, table: pa.Table, name: str) -> PackedSignatures:
        rows, scheme = read_rows(table, name, packed=True)
        rows.data[rows.empty] = 0
        return cls(rows.data.reshape(len(rows.data), int(scheme["bits"]), -1), rows.empty, scheme)


def _counts_for(left: Signatures | PackedSignatures, right: Signatures | PackedSignatures) -> npt.NDArray[np.int64]:
    """Return room for a count for each pair of rows, or raise an error where they do not pair."""
    ours, theirs = ({**one.scheme, "num_hashes": one.num_hashes} for one in (left, right))
    require_same(ours, theirs, "the first", "the second", kind="Signatures")
    if len(left) != len(right) and 1 not in (len(left), len(right)):
        raise InputError(
            f"Signatures compare row by row, or one with many: got {len(left):,} rows and {len(right):,}. Take as many "
            "of each, or one: signatures[0]."
        )
    return np.empty(len(left) if len(right) == 1 else len(right), np.int64)


def _mix(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Mix the bits of each value, one to one: the finaliser of MurmurHash3."""
    mixed = values ^ (values >> np.uint32(16))
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed
