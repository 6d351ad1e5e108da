"""What signatures and fingerprints share: rows of one scheme with ids, in memory, as a table, in a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of
from neardup.errors import InputError
from neardup.fingerprints.files import Rows, make_table, one_chunk, read_table, require_same, write_tables

if TYPE_CHECKING:
    from typing_extensions import Self

Index = int | slice | Sequence[int] | npt.NDArray[Any]
Ids: TypeAlias = Sequence[Any] | pa.Array | pa.ChunkedArray


class Sketches(ABC):
    """Base of Signatures, PackedSignatures and Fingerprints: a row of a fixed size for each document, of one scheme.

    `sketches[rows]` returns some of the rows: an integer, a slice, integers or a mask.

    Parameters
    ----------
    values : array whose first dimension is the rows.
    scheme : how they were made, in values that JSON can hold: equal, or not comparable.
    ids : of the rows; row numbers, as text, when None.
    empty : bool array, which rows are of documents without features; none when None.
    """

    column: ClassVar[str]
    kind: ClassVar[str]
    dtype: ClassVar[type]
    size: ClassVar[tuple[str, int]]
    """The name of the length of a row in a scheme, and what a number of the row adds to it."""
    values: npt.NDArray[Any]
    scheme: Mapping[str, Any]
    report: dict[str, Any] | None = None

    def __init__(
        self,
        values: npt.NDArray[Any],
        scheme: Mapping[str, Any],
        ids: pa.Array | None = None,
        empty: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.values, self.scheme, self._ids, self._empty = values, scheme, ids, empty

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.values)

    def __getitem__(self, rows: Index) -> Self:
        """Return some of the rows, a single one too as an object of one row."""
        count = len(self)
        if isinstance(rows, (int, np.integer)):
            chosen = np.array([range(count)[rows]])
        elif isinstance(rows, slice):
            chosen = np.arange(*rows.indices(count))
        else:
            chosen = np.arange(count)[rows]
        ids = _number_ids(chosen) if self._ids is None else self._ids.take(arrow_of(chosen))
        empty = None if self._empty is None else self._empty[chosen]
        return type(self)(self.values[chosen], self.scheme, ids, empty)

    def __repr__(self) -> str:
        """Return the number of rows and the name of the scheme."""
        return f"{type(self).__name__}({len(self):,} rows, scheme={self.scheme.get('name')!r})"

    def __getattr__(self, name: str) -> Any:
        """Read the rows of a file that was written a moment ago, once they are needed."""
        if name in ("values", "_ids", "_empty") and "_path" in self.__dict__:
            self.__dict__.update(vars(type(self).open(self._path)))
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def ids(self) -> pa.Array:
        """The ids of the rows: Arrow array of strings or int64."""
        return _number_ids(np.arange(len(self))) if self._ids is None else self._ids

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Which rows are of documents without features: bool array of shape (num_rows,)."""
        return np.zeros(len(self), np.bool_) if self._empty is None else self._empty

    @abstractmethod
    def similarity(self, other: Self) -> npt.NDArray[np.float64]:
        """Estimate similarities row by row, or of one row with many."""

    def to_table(self, ids: Ids | None = None, *, with_hex: bool = False) -> pa.Table:
        """Return an Arrow table of `id` and the bytes of each row, null for an empty one, with the scheme as metadata.

        Parameters
        ----------
        ids : as many as there are rows, in place of `ids`.
        with_hex : adds a column `hex`, the bytes as hexadecimal digits.

        Returns
        -------
        Table; the column `signature` is fixed-size binary, the hashes as little-endian uint32; `fingerprint` is the
        digits of the integer, the most significant byte first.

        Raises
        ------
        InputError
            If there are not as many ids as rows.
        """
        in_arrow = isinstance(ids, (pa.Array, pa.ChunkedArray))
        names = self.ids if ids is None else one_chunk(ids) if in_arrow else pa.array(ids)
        if len(names) != len(self):
            raise InputError(
                f"There are {len(self):,} {self.kind.lower()}: got {len(names):,} ids. Pass one id for each."
            )
        return make_table(self.column, Rows(names, self._to_bytes(), self.empty), self.scheme, with_hex=with_hex)

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Return the rows of a table as `to_table` makes it; errors as of `open`."""
        return cls._from_table(table, "the table")

    def save(self, path: str | os.PathLike[str], ids: Ids | None = None, *, overwrite: bool = False) -> None:
        """Write the table of `to_table` to a Parquet file, which appears only when it is complete.

        Raises
        ------
        OutputError
            If the file exists and is not to be replaced, or cannot be written.
        """
        write_tables(path, [self.to_table(ids)], overwrite)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save`, `sign` or an index wrote.

        Raises
        ------
        InputError
            If it cannot be read, or has no scheme, or that of rows of another length or kind.
        ColumnError
            If it lacks the column of bytes.
        """
        return cls._from_table(read_table(path), os.fspath(path))

    @classmethod
    def _open_later(cls, path: str | os.PathLike[str], scheme: Mapping[str, Any]) -> Self:
        """Return the rows of a file of this scheme, read when they are first used."""
        sketches = cls.__new__(cls)
        sketches.scheme, sketches._path = scheme, path
        return sketches

    _path: str | os.PathLike[str]

    @abstractmethod
    def _to_bytes(self) -> npt.NDArray[np.uint8]:
        """Return the bytes of each row, uint8 (num_rows, num_bytes)."""

    @classmethod
    @abstractmethod
    def _from_table(cls, table: pa.Table, name: str) -> Self:
        """Return the rows of a table that errors call `name`."""

    def _actual_scheme(self) -> dict[str, Any]:
        return dict(self.scheme)

    def _num_paired(self, other: Self) -> int:
        """Return how many pairs of rows are compared, or raise as `similarity` does."""
        require_same(self._actual_scheme(), other._actual_scheme(), "the first", "the second", kind=self.kind)
        if len(self) != len(other) and 1 not in (len(self), len(other)):
            raise InputError(
                f"{self.kind} compare row by row, or one row with many: got {len(self):,} rows and {len(other):,}. "
                f"Pass equal numbers of rows, or a single row: {self.kind.lower()}[0]."
            )
        return len(self) if len(other) == 1 else len(other)


def _number_ids(rows: npt.NDArray[np.int64]) -> pa.Array:
    return arrow_of(rows).cast(pa.string())
