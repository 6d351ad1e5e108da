"""An index of fingerprints in memory: all within a Hamming distance of a query, while fingerprints come and go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.candidates.blocks import check_distance, num_words
from neardup.errors import InputError, SchemeError, SettingError
from neardup.executor import count_processors
from neardup.fingerprints.files import fingerprint_schema, from_column, read_fingerprints, require_same, to_binary
from neardup.index.ids import Given, IdTable, grow
from neardup.index.tables import build_tables, choose_tables, find_near, scan_all
from neardup.output.table_file import TableFile

if TYPE_CHECKING:
    from neardup.kernels.blocks import Rows, Tables

_TAIL_ROWS = 1024  # rows that are scanned before they get tables
_LEAST_TO_COMPACT = 4096

Fingerprints: TypeAlias = npt.NDArray[np.uint64] | Sequence[int] | pa.Array | pa.ChunkedArray


class HammingIndex:
    """An index in memory that finds all fingerprints within a Hamming distance: every one of them, always.

    Parameters
    ----------
    bits : of a fingerprint: 32, 64, 128 or 256.
    max_distance : the distance up to which a query finds, 0 to 16.
    scheme : what the fingerprints were made with, as `simhash` and `neardup fingerprint` say it; an index with a
        scheme merges only with fingerprints of the same.
    memory_bytes : the most that the tables may take, about; more tables make queries faster. When unset, at most
        16 tables.
    threads : of `query_many`; all processors of this process when unset.

    Notes
    -----
    Manku, Jain and Das Sarma (2007), section 3, in segments: the latest fingerprints are scanned; from 1024 on they get
    tables, whose number is chosen by what a query is expected to cost, and segments are merged so that each is at least
    twice as large as the next: to add n fingerprints one by one takes O(n log n). One that is removed is passed
    over; when they are as many as those that stay, the index is built anew.

    With the default, 16 + 12 x (number of tables) bytes a fingerprint and 24 for an integer id: about 90 bytes at
    distance 3. Not for use by several threads while one of them adds or removes.

    Examples
    --------
    >>> index = HammingIndex(bits=64, max_distance=3)
    >>> index.add("first", 0b1011)
    >>> index.add("second", 0b1000)
    >>> index.query(0b1010)
    [('first', 1), ('second', 1)]
    """

    def __init__(
        self,
        bits: int = 64,
        max_distance: int = 3,
        *,
        scheme: Mapping[str, Any] | None = None,
        memory_bytes: float | None = None,
        threads: int | None = None,
    ) -> None:
        check_distance(bits, max_distance)
        if scheme is not None and scheme.get("bits", bits) != bits:
            raise SchemeError(
                f"The scheme is of {scheme['bits']} bits, the index of {bits}: got bits={bits}. "
                f"Pass bits={scheme['bits']}."
            )
        if memory_bytes is not None and not memory_bytes > 0:
            raise SettingError(f"memory_bytes must be a number above 0 or None: got {memory_bytes!r}. Change it.")
        self.bits, self.max_distance, self.memory_bytes = bits, max_distance, memory_bytes
        self.scheme = None if scheme is None else dict(scheme)
        self._threads = threads or count_processors()
        self._clear()

    def _clear(self) -> None:
        self._ids = IdTable()
        self._fingerprints = np.zeros((_TAIL_ROWS, num_words(self.bits)), np.uint64)
        self._segments: list[tuple[int, Tables]] = []  # the first row of each, and its tables
        self._tail = 0  # the first row that is in no segment
        self._scanned: Tables | None = None  # the rows from there on, made when asked for

    def __len__(self) -> int:
        """Return how many fingerprints there are."""
        return self._ids.num_alive

    def __contains__(self, id: object) -> bool:
        """Return whether there is a fingerprint of this id."""
        return id in self._ids

    def __repr__(self) -> str:
        """Say what it holds."""
        return f"HammingIndex(bits={self.bits}, max_distance={self.max_distance}, {len(self):,} fingerprints)"

    def add(self, id: str | int, fingerprint: int) -> None:
        """Add a fingerprint. Raises InputError if the id is there already, or is not of the kind of the others."""
        self.add_many([id], [fingerprint])

    def add_many(self, ids: Given, fingerprints: Fingerprints) -> None:
        """Add fingerprints, all or none.

        Parameters
        ----------
        ids : strings, or integers below 2^63: a list, a NumPy or an Arrow array.
        fingerprints : integers; a uint64 array of shape (n,) or (n, num_words), the lowest word first; or an Arrow
            column as `neardup.fingerprint` makes it, without nulls.

        Raises
        ------
        InputError
            If an id is there already or twice, or is not of the kind of the others; if the two differ in length.
        """
        given, words = self._ids.to_array(ids), self._to_words(fingerprints)
        if len(given) != len(words):
            raise InputError(
                f"Ids and fingerprints go together: got {len(given)} ids and {len(words)} fingerprints. Pass as many."
            )
        first = self._ids.num_rows
        if first + len(given) >= 2**32 - 2:
            raise InputError(f"An index holds fewer than 2^32 - 2 fingerprints: got {first + len(given):,}. Use two.")
        self._ids.append(given)
        self._fingerprints = grow(self._fingerprints, first + len(given))
        self._fingerprints[first : first + len(given)] = words
        self._scanned = None
        if self._ids.num_rows - self._tail >= _TAIL_ROWS:
            self._make_segment()

    def remove(self, id: str | int) -> None:
        """Remove the fingerprint of an id. Raises InputError if there is none."""
        if id not in self:
            raise InputError(f"The index has no fingerprint of the id {id!r}. Look with `id in index` first.")
        self._ids.remove(self._ids.to_array([id]))
        if self._ids.num_rows > max(_LEAST_TO_COMPACT, 2 * len(self)):
            self._compact()

    def query(self, fingerprint: int) -> list[tuple[str | int, int]]:
        """Return (id, distance) of all within the distance, nearest first; at equal distance, those added earlier."""
        found = find_near(self._to_words([fingerprint]), self._all_tables(), self._rows(), self.max_distance, 1)
        ids: list[str | int] = self._ids.take(found.row).to_pylist()
        return list(zip(ids, found.distance.tolist(), strict=True))

    def query_many(self, fingerprints: Fingerprints) -> pa.Table:
        """Return all within the distance of each of many fingerprints.

        Parameters
        ----------
        fingerprints : as for `add_many`.

        Returns
        -------
        pyarrow.Table
            Columns `query` (int64, which of those given), `id` (int64 or string), `distance` (uint8), by query, then
            distance, then as they were added.
        """
        words = self._to_words(fingerprints)
        found = find_near(words, self._all_tables(), self._rows(), self.max_distance, self._threads)
        return pa.table({"query": found.query, "id": self._ids.take(found.row), "distance": found.distance})

    def merge(self, other: HammingIndex) -> None:
        """Add all fingerprints of another index. Raises SchemeError if its scheme or width is another."""
        if self.bits != other.bits:
            raise SchemeError(
                f"Fingerprints of {self.bits} and of {other.bits} bits do not compare: got an index of {other.bits}. "
                "Make both with the same settings."
            )
        if self.scheme is not None and other.scheme is not None:
            require_same(self.scheme, other.scheme, "the index", "the one to be merged")
        rows = np.flatnonzero(other._ids.alive[: other._ids.num_rows])
        self.add_many(other._ids.take(rows), other._fingerprints[rows])

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fingerprints to a Parquet file: columns `id` and `fingerprint`, the scheme in its metadata.

        The bytes of a fingerprint come most significant first. The file appears when it is whole; tables are built
        again when it is opened.
        """
        rows = np.flatnonzero(self._ids.alive[: self._ids.num_rows])
        scheme = self.scheme or {"name": "unknown", "bits": self.bits}
        schema = fingerprint_schema(scheme, id_type=self._ids.kind)
        columns = [self._ids.take(rows).cast(schema.field("id").type), to_binary(self._fingerprints[rows], self.bits)]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        TableFile(Path(path), overwrite=overwrite).write(iter([batch]), schema)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        max_distance: int = 3,
        *,
        memory_bytes: float | None = None,
        threads: int | None = None,
    ) -> HammingIndex:
        """Return an index of the fingerprints in a file: one that was saved, or that `neardup fingerprint` wrote.

        Parameters
        ----------
        path : a Parquet file with a column `fingerprint` of 4, 8, 16 or 32 bytes or of uint64, and `id`.
        max_distance : 0 to 16; it is not part of the file.
        memory_bytes : as for `HammingIndex`.
        threads : as for `HammingIndex`.
        """
        file = read_fingerprints(path)
        bits = int(file.scheme.get("bits", 64 * file.fingerprints.shape[1]))
        index = cls(bits, max_distance, scheme=file.scheme, memory_bytes=memory_bytes, threads=threads)
        index.add_many(file.ids, file.fingerprints)
        return index

    def _to_words(self, fingerprints: Fingerprints | Iterable[int]) -> npt.NDArray[np.uint64]:
        """Return fingerprints as a writable uint64 array of shape (n, num_words), or raise InputError."""
        width = num_words(self.bits)
        if isinstance(fingerprints, (pa.Array, pa.ChunkedArray)):
            return from_column(fingerprints, self.bits)
        if not isinstance(fingerprints, np.ndarray):
            return self._integers_to_words(list(fingerprints))
        shape = (len(fingerprints), width)
        if fingerprints.dtype != np.uint64 or fingerprints.shape not in (shape, shape[: 1 + (width > 1)]):
            raise InputError(
                f"Fingerprints of {self.bits} bits are integers or a uint64 array of shape (n, {width}): got "
                f"{fingerprints.dtype} {fingerprints.shape}. Split them into words of 64 bits, the lowest first."
            )
        if self.bits == 32 and len(fingerprints) and int(fingerprints.max()) >> 32:
            row = int(np.flatnonzero(fingerprints.ravel() >> np.uint64(32))[0])
            self._refuse(int(fingerprints.ravel()[row]), row)
        return np.array(fingerprints, np.uint64, order="C").reshape(shape)

    def _integers_to_words(self, fingerprints: list[int]) -> npt.NDArray[np.uint64]:
        width = 8 * num_words(self.bits)
        for row, value in enumerate(fingerprints):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 1 << self.bits:
                self._refuse(value, row)
        data = b"".join(int(value).to_bytes(width, "little") for value in fingerprints)
        words = np.frombuffer(data, "<u8").astype(np.uint64)
        return words.reshape(len(fingerprints), width // 8)

    def _refuse(self, value: object, row: int) -> None:
        raise InputError(
            f"A fingerprint of this index is an integer from 0 to 2^{self.bits} - 1: got {value!r} at row {row}. Make "
            "an index of more bits, or add 2^bits to a negative one that was read as a signed number."
        )

    def _rows(self) -> Rows:
        from neardup.kernels.blocks import Rows

        return Rows(self._fingerprints, self._ids.alive)

    def _all_tables(self) -> list[Tables]:
        """Return the tables of every segment, and those of the rows in none."""
        tables = [tables for _, tables in self._segments]
        if self._tail == self._ids.num_rows:
            return tables
        if self._scanned is None:
            self._scanned = scan_all(self._fingerprints[: self._ids.num_rows], self._tail, self.max_distance)
        return [*tables, self._scanned]

    def _make_segment(self) -> None:
        """Give tables to the rows in no segment, together with segments that are less than twice as large."""
        first, stop = self._tail, self._ids.num_rows
        while self._segments and first - self._segments[-1][0] < 2 * (stop - first):
            first = self._segments.pop()[0]
        rows = self._fingerprints[:stop]
        share = None if self.memory_bytes is None else self.memory_bytes * (stop - first) / stop
        plan = choose_tables(stop - first, self.bits, self.max_distance, share)
        if plan is None:
            tables = scan_all(rows, first, self.max_distance)
        else:
            tables = build_tables(rows, first, self.bits, self.max_distance, plan)
        self._segments.append((first, tables))
        self._tail, self._scanned = stop, None

    def _compact(self) -> None:
        """Leave out the rows that were removed; the order of the others stays."""
        rows = np.flatnonzero(self._ids.alive[: self._ids.num_rows])
        ids, fingerprints = self._ids.take(rows), self._fingerprints[rows]
        self._clear()
        self.add_many(ids, fingerprints)
