"""An index of fingerprints in memory: all within a Hamming distance of a query, while fingerprints
come and go.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Array
from neardup.candidates.blocks import Radius, check_distance, plan_blocks
from neardup.candidates.lookups import DistanceLookup
from neardup.errors import SchemeError, SettingError
from neardup.files import AnyPath, JsonObject
from neardup.fingerprints.fingerprints import Fingerprints
from neardup.fingerprints.sketches import UNKNOWN, Scheme
from neardup.sketches.row_index import Matches, RowIndex, SearchBlock, find_in_blocks
from neardup.sketches.row_store import FingerprintRows, HashValues, IdsLike, RowStore, one_row
from neardup.stores.key_tables import ALL, KeyTables

AnyFingerprints: TypeAlias = Fingerprints | HashValues
_MAX_TABLES = 16  # without a limit on memory
_SCAN_COST = 0.35  # nanoseconds for a row that is compared in a scan of all
_PLANNED_GROWTH = 8  # the number of tables is chosen anew when an eighth more rows are there


class HammingTables:
    """The rows of a store in tables, whose number is chosen by the expected cost of a query, or in
    one that is scanned.

    Attributes
    ----------
    lookup : the keys of the tables.
    """

    def __init__(self, bits: int, max_distance: int, memory_bytes: float | None) -> None:
        self.bits, self.max_distance, self.memory_bytes = bits, max_distance, memory_bytes
        self._planned_rows = 0
        self._make_tables(fastest_blocks(0, bits, max_distance, memory_bytes))

    def add(self, store: RowStore, first: int) -> None:
        """Enter the rows of a store from `first` on, or all in other tables if these are faster by
        now.
        """
        if store.num_rows > self._planned_rows:
            self._planned_rows = store.num_rows + store.num_rows // _PLANNED_GROWTH
            num_blocks = fastest_blocks(
                store.num_rows, self.bits, self.max_distance, self.memory_bytes
            )
            if num_blocks != self.lookup.radius.num_blocks:
                self._make_tables(num_blocks)
                first = 0
        rows = np.arange(first, store.num_rows, dtype=np.uint32)
        keys = self.lookup.permute(store.values[first : store.num_rows])
        self._tables.append_columns(keys, rows, store.num_rows)
        self._tables.merge_latest(store.forgotten, 0)

    def find(self, queries: Array, store: RowStore, threads: int) -> Matches:
        """Return the rows within the distance of each query."""
        stored, tables, masks = store.stored(), self._tables.view().tables(ALL), self.lookup.masks

        def prepare(block: Array) -> SearchBlock:
            keys = self.lookup.permute(block)
            return lambda begin, found: int(
                kernels.matches.find_near(block, keys, begin, tables, stored, masks, found)
            )

        return find_in_blocks(queries, prepare, threads)

    def _make_tables(self, num_blocks: int) -> None:
        self.lookup = DistanceLookup(Radius(self.bits, self.max_distance, num_blocks))
        self._tables = KeyTables(self.lookup.layout.prefix_bits, self.max_distance)


def fastest_blocks(num_rows: int, bits: int, max_distance: int, memory_bytes: float | None) -> int:
    """Return the number of blocks of the fastest tables within the memory; `max_distance` where a
    scan is faster.
    """
    plans = plan_blocks(num_rows, bits, max_distance)
    if memory_bytes is None:
        plans = [plan for plan in plans if plan.num_tables <= max(_MAX_TABLES, max_distance + 1)]
    else:
        plans = [plan for plan in plans if plan.memory_bytes <= memory_bytes]
    best = min(plans, key=lambda plan: (plan.query_cost, plan.num_tables), default=None)
    # At distance 0 a single table, as large as one that is scanned, has all bits in its key.
    scanned = max(1, max_distance)
    return (
        best.num_blocks if best is not None and best.query_cost < _SCAN_COST * num_rows else scanned
    )


class HammingIndex(RowIndex[HammingTables]):
    """An index in memory that finds all fingerprints within a Hamming distance: every one of them,
    always.

    Parameters
    ----------
    bits : of a fingerprint: 32, 64, 128 or 256.
    max_distance : the distance up to which a query finds, 0 to 16.
    scheme : how the fingerprints were made; when unset, that of the first `Fingerprints` added. An
        index with a scheme accepts only fingerprints of the same.
    memory_bytes : the most that the tables may take, about; more tables make queries faster. When
        unset, at most 16 tables.
    threads : of `query_many`; all processors of this process when unset.

    Notes
    -----
    Manku, Jain and Das Sarma (2007), section 3, in sorted runs, as a stored index has them: the
    latest fingerprints of a table are scanned; from 512 on they become a run, and runs are merged
    so that each is at least twice as large as the next: to add n fingerprints one by one takes O(n
    log n). The number of tables is chosen by the expected cost of a query, again whenever an eighth
    more fingerprints are there; where a scan of all is faster, a single table has them. A
    fingerprint that is removed is passed over; when they are as many as those that stay, the index
    is built anew.

    With the default, 8 + 13 x (number of tables) bytes a fingerprint of 64 bits and 24 for an
    integer id: about 85 bytes at distance 3. Not for use by several threads while one of them adds
    or removes.

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
        scheme: Scheme | None = None,
        memory_bytes: float | None = None,
        threads: int | None = None,
    ) -> None:
        check_distance(bits, max_distance)
        store = FingerprintRows(bits, scheme)
        if store.scheme is not None and store.scheme.get("bits", bits) != bits:
            raise SchemeError(
                f"The scheme has {store.scheme['bits']} bits and the index has {bits}: got "
                f"bits={bits}. Pass "
                f"bits={store.scheme['bits']}."
            )
        is_number = isinstance(memory_bytes, (int, float, np.number)) and not isinstance(
            memory_bytes, bool
        )
        if memory_bytes is not None and not (is_number and memory_bytes > 0):
            raise SettingError(
                f"memory_bytes must be a number above 0 or None: got {memory_bytes!r}. Change it."
            )
        self.bits, self.max_distance, self.memory_bytes = bits, max_distance, memory_bytes
        super().__init__(store, partial(HammingTables, bits, max_distance, memory_bytes), threads)

    def _settings(self) -> JsonObject:
        return {"bits": self.bits}

    def __repr__(self) -> str:
        """Return the settings and the number of fingerprints."""
        return (
            f"HammingIndex(bits={self.bits}, max_distance={self.max_distance}, {len(self):,} "
            "fingerprints)"
        )

    def add(self, id: str | int, fingerprint: int | Fingerprints) -> None:
        """Add a fingerprint: an integer, or Fingerprints of one. Raises as `add_many` does."""
        self._add([id], _one_fingerprint(fingerprint))

    def add_many(self, ids: IdsLike, fingerprints: AnyFingerprints) -> None:
        """Add fingerprints, all or none.

        Parameters
        ----------
        ids : strings, or integers below 2^63: a list, a NumPy or an Arrow array.
        fingerprints : Fingerprints; integers; or a uint64 array of shape (n,) or (n, num_words),
            the lowest word first.

        Raises
        ------
        InputError
            If an id is there already or twice, or is not of the kind of the others; if the two
            differ in length; if a document has no fingerprint.
        SchemeError
            If the fingerprints are of another scheme or length.
        """
        self._add(ids, fingerprints)

    def add_if_new(
        self, id: str | int, fingerprint: int | Fingerprints
    ) -> list[tuple[str | int, int]]:
        """Add a fingerprint unless a close one exists: return the close ones, and add it if there
        are none.

        Parameters
        ----------
        id : of the fingerprint; an id that is there already is an InputError, as for `add`.
        fingerprint : as for `add`.

        Returns
        -------
        list of (id, distance)
            As of `query`. Empty: it was added.
        """
        self._store.check_new(id)
        found = self.query(fingerprint)
        if not found:
            self.add(id, fingerprint)
        return found

    def query(self, fingerprint: int | Fingerprints) -> list[tuple[str | int, int]]:
        """Return (id, distance) of all within the distance, nearest first; at equal distance, those
        added earlier.
        """
        words = self._store.to_values(_one_fingerprint(fingerprint))
        found = self._searcher.find(words, self._store, 1)
        return self._hits(found.row, 64 * words.shape[1] - found.equal)

    def query_many(self, fingerprints: AnyFingerprints) -> pa.Table:
        """Return all within the distance of each of many fingerprints.

        Parameters
        ----------
        fingerprints : as for `add_many`.

        Returns
        -------
        pyarrow.Table
            Columns `query` (int64, the position of the query), `id` (int64 or string), `distance`
            (uint8), by query, then distance, then as they were added.
        """
        words = self._store.to_values(fingerprints)
        found = self._searcher.find(words, self._store, self._threads)
        return self._table(
            found.query, found.row, distance=(64 * words.shape[1] - found.equal).astype(np.uint8)
        )

    def merge(self, other: HammingIndex) -> None:
        """Add all fingerprints of another index. Raises SchemeError if its scheme or number of bits
        differs.
        """
        if isinstance(other, HammingIndex) and self.bits != other.bits:
            raise SchemeError(
                f"Fingerprints of {self.bits} and of {other.bits} bits cannot be compared: "
                "got an index of "
                f"{other.bits}. Create both with the same settings."
            )
        self._merge(other)

    @classmethod
    def open(
        cls,
        path: AnyPath,
        max_distance: int = 3,
        *,
        memory_bytes: float | None = None,
        threads: int | None = None,
    ) -> HammingIndex:
        """Return an index of the fingerprints in a file: of an index, of `Fingerprints.save`, or of
        `neardup sign`.

        Parameters
        ----------
        path : a Parquet file with a column `fingerprint` of 4, 8, 16 or 32 bytes or of uint64, and
            `id`. Documents without features are left out.
        max_distance : 0 to 16; it is not part of the file.
        memory_bytes : as for `HammingIndex`.
        threads : as for `HammingIndex`.
        """
        fingerprints = Fingerprints.open(path)
        fingerprints = (
            fingerprints[~fingerprints.empty] if fingerprints.empty.any() else fingerprints
        )
        scheme = None if fingerprints.scheme.get("name") == UNKNOWN else fingerprints.scheme
        index = cls(
            fingerprints.bits,
            max_distance,
            scheme=scheme,
            memory_bytes=memory_bytes,
            threads=threads,
        )
        index.add_many(fingerprints.ids, fingerprints.values)
        return index


def _one_fingerprint(fingerprint: int | Fingerprints) -> AnyFingerprints:
    return one_row(fingerprint) if isinstance(fingerprint, Fingerprints) else [fingerprint]
