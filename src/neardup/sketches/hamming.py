"""An index of fingerprints in memory: find all within a Hamming distance, add and remove."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Array, Ints, is_real
from neardup.candidates.blocks import Radius, check_distance, plan_blocks
from neardup.candidates.lookups import DistanceLookup
from neardup.errors import SchemeError, SettingError
from neardup.files import AnyPath, JsonObject
from neardup.fingerprints.fingerprints import Fingerprints
from neardup.fingerprints.sketches import UNKNOWN, Scheme
from neardup.settings.constraints import plain
from neardup.sketches.row_index import Matches, RowIndex, SearchBlock, find_in_blocks
from neardup.sketches.row_store import FingerprintRows, HashValues, IdsLike, RowStore, one_row
from neardup.stores.key_tables import ALL, KeyTables

AnyFingerprints: TypeAlias = Fingerprints | HashValues
_MAX_TABLES = 16  # tables without a limit on memory
_SCAN_COST = 0.35  # nanoseconds to compare a row in a scan of all rows
_GROWTH_DIVISOR = 8  # the number of tables is chosen again after growth by an eighth


class HammingTables:
    """The rows of a store in tables of keys.

    The number of tables is chosen by the expected cost of a query; small stores have one table,
    which is scanned.

    Attributes
    ----------
    lookup : the keys of the tables.
    """

    def __init__(self, bits: int, max_distance: int, memory_bytes: float | None) -> None:
        self.bits = bits
        self.max_distance = max_distance
        self.memory_bytes = memory_bytes
        self._planned_rows = 0  # the number of rows for which the number of tables was chosen
        num_blocks = fastest_blocks(0, bits, max_distance, memory_bytes)
        self._make_tables(num_blocks)

    def add(self, store: RowStore, first: int) -> None:
        """Enter the rows of a store from `first` on.

        Enters all rows in new tables if another number of tables is faster now.
        """
        if store.num_rows > self._planned_rows:
            self._planned_rows = store.num_rows + store.num_rows // _GROWTH_DIVISOR
            num_blocks = fastest_blocks(
                store.num_rows, self.bits, self.max_distance, self.memory_bytes
            )
            if num_blocks != self.lookup.radius.num_blocks:
                self._make_tables(num_blocks)
                first = 0
        rows = np.arange(first, store.num_rows, dtype=np.uint32)
        keys = self.lookup.permute(store.values[first : store.num_rows])
        self._tables.append_columns(keys, rows, store.num_rows)
        self._tables.merge_latest(store.forgotten, 0)  # forgotten rows are left out

    def find(self, queries: Array, store: RowStore, threads: int) -> Matches:
        """Return the rows within the distance of each query."""
        stored = store.stored()
        tables = self._tables.view().tables(ALL)
        masks = self.lookup.masks

        def prepare(block: Array) -> SearchBlock:
            keys = self.lookup.permute(block)

            def search(begin: int, found: kernels.matches.Found) -> int:
                return int(
                    kernels.matches.find_near(block, keys, begin, tables, stored, masks, found)
                )

            return search

        return find_in_blocks(queries, prepare, threads)

    def _make_tables(self, num_blocks: int) -> None:
        """Make empty tables for fingerprints cut into `num_blocks` blocks."""
        self.lookup = DistanceLookup(Radius(self.bits, self.max_distance, num_blocks))
        self._tables = KeyTables(self.lookup.layout.prefix_bits, self.max_distance)


def fastest_blocks(num_rows: int, bits: int, max_distance: int, memory_bytes: float | None) -> int:
    """Return the number of blocks of the fastest tables within the memory.

    Returns `max_distance`, which makes one table, if a scan of all rows is faster.
    """
    plans = plan_blocks(num_rows, bits, max_distance)
    if memory_bytes is None:
        # The plan with the fewest tables has max_distance + 1, and must always be allowed.
        max_tables = max(_MAX_TABLES, max_distance + 1)
        fitting = [plan for plan in plans if plan.num_tables <= max_tables]
    else:
        fitting = [plan for plan in plans if plan.memory_bytes <= memory_bytes]
    best = min(fitting, key=lambda plan: (plan.query_cost, plan.num_tables), default=None)
    if best is not None and best.query_cost < _SCAN_COST * num_rows:
        return best.num_blocks
    # At distance 0 the key of a single table has all bits, and no scan is needed.
    return max(1, max_distance)


class HammingIndex(RowIndex[HammingTables]):
    """Find all fingerprints within a Hamming distance, in memory: the result is exact.

    Parameters
    ----------
    bits : the length of a fingerprint: 32, 64, 128 or 256.
    max_distance : the greatest distance that a query finds, 0 to 16.
    scheme : the scheme of the fingerprints. Default: of the first `Fingerprints` added. Only
        fingerprints of this scheme are accepted.
    memory_bytes : the approximate limit of the memory of the tables; more tables make queries
        faster. Default: at most 16 tables.
    threads : the threads of `query_many`. Default: all processors of this process.

    Notes
    -----
    Manku, Jain and Das Sarma (2007), section 3. Adding n fingerprints one by one takes O(n log n).
    If a scan of all fingerprints is faster, there is a single table. Memory, by default: 8 + 13 x
    (number of tables) bytes a fingerprint of 64 bits and 24 for an integer id, about 85 at distance
    3. Threads can share the index unless one of them adds or removes.

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
        bits = plain(bits)
        max_distance = plain(max_distance)
        check_distance(bits, max_distance)
        store = FingerprintRows(bits, scheme)
        if store.scheme is not None and store.scheme.get("bits", bits) != bits:
            raise SchemeError(
                f"The scheme has {store.scheme['bits']} bits and the index has {bits}: got "
                f"bits={bits}. Pass bits={store.scheme['bits']}."
            )
        if memory_bytes is not None and not (is_real(memory_bytes) and memory_bytes > 0):
            raise SettingError(
                f"memory_bytes must be a number above 0 or None: got {memory_bytes!r}. Change it."
            )
        self.bits = bits
        self.max_distance = max_distance
        self.memory_bytes = memory_bytes
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
        """Add a fingerprint: an integer, or Fingerprints of one. Raises as `add_many`."""
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
            If an id is already in the index, occurs twice, or has another type than the others; if
            the two arguments differ in length; if a document has no fingerprint.
        SchemeError
            If the fingerprints have another scheme or length.
        """
        self._add(ids, fingerprints)

    def add_if_new(
        self, id: str | int, fingerprint: int | Fingerprints
    ) -> list[tuple[str | int, int]]:
        """Return the close fingerprints, and add the fingerprint if there are none.

        Parameters
        ----------
        id : the id of the fingerprint. An id that is already in the index raises InputError, as for
            `add`.
        fingerprint : as for `add`.

        Returns
        -------
        list of (id, distance)
            As for `query`. An empty list: the fingerprint was added.
        """
        self._store.check_new(id)
        found = self.query(fingerprint)
        if not found:
            self.add(id, fingerprint)
        return found

    def query(self, fingerprint: int | Fingerprints) -> list[tuple[str | int, int]]:
        """Return (id, distance) of all fingerprints within the distance, nearest first.

        Fingerprints of equal distance come in the order in which they were added.
        """
        words = self._store.to_values(_one_fingerprint(fingerprint))
        found = self._searcher.find(words, self._store, threads=1)
        return self._hits(found.row, _distances(words, found))

    def query_many(self, fingerprints: AnyFingerprints) -> pa.Table:
        """Return all fingerprints within the distance of each of many.

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
        distance = _distances(words, found).astype(np.uint8)
        return self._table(found.query, found.row, distance=distance)

    def merge(self, other: HammingIndex) -> None:
        """Add all fingerprints of another index.

        Raises SchemeError if its scheme or number of bits differs.
        """
        if isinstance(other, HammingIndex) and self.bits != other.bits:
            raise SchemeError(
                f"Fingerprints of {self.bits} and of {other.bits} bits cannot be compared: got an "
                f"index of {other.bits}. Create both with the same settings."
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
        """Return an index of the fingerprints in a file.

        `save`, `Fingerprints.save` and `neardup sign` write such files.

        Parameters
        ----------
        path : a Parquet file with a column `fingerprint` of 4, 8, 16 or 32 bytes or of uint64, and
            `id`. Documents without features are left out.
        max_distance : 0 to 16; it is not part of the file.
        memory_bytes : as for `HammingIndex`.
        threads : as for `HammingIndex`.
        """
        fingerprints = Fingerprints.open(path)
        if fingerprints.empty.any():
            fingerprints = fingerprints[~fingerprints.empty]
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


def _distances(words: Array, found: Matches) -> Ints:
    """Return the Hamming distance of each match. words : uint64 (num_queries, num_words).

    A kernel counts the equal bits of whole words; unused bits of a word are 0 in all fingerprints.
    """
    num_bits = 64 * words.shape[1]
    distances: Ints = num_bits - found.equal
    return distances


def _one_fingerprint(fingerprint: int | Fingerprints) -> AnyFingerprints:
    """Return a fingerprint as a sequence of one."""
    return one_row(fingerprint) if isinstance(fingerprint, Fingerprints) else [fingerprint]
