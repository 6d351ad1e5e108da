"""Tables of fingerprints by blocks of their bits: all rows within a Hamming distance of a query."""

from __future__ import annotations

import numpy as np

from neardup import kernels
from neardup.candidates.blocks import Radius, plan_blocks
from neardup.candidates.lookups import DistanceLookup
from neardup.sketches.row_store import RowStore
from neardup.sketches.search import Matches, SearchBlock, Values, find_in_blocks
from neardup.stores.key_tables import ALL, KeyTables

_MAX_TABLES = 16  # without a limit on memory
_SCAN_COST = 0.35  # nanoseconds for a row that is compared in a scan of all
_PLANNED_GROWTH = 8  # the number of tables is chosen anew when an eighth more rows are there


class HammingTables:
    """The rows of a store in tables, whose number is chosen by the expected cost of a query, or in one that is scanned.

    Attributes
    ----------
    lookup : the keys of the tables.
    """

    def __init__(self, bits: int, max_distance: int, memory_bytes: float | None) -> None:
        self.bits, self.max_distance, self.memory_bytes = bits, max_distance, memory_bytes
        self._planned_rows = 0
        self._make_tables(fastest_blocks(0, bits, max_distance, memory_bytes))

    def add(self, store: RowStore, first: int) -> None:
        """Enter the rows of a store from `first` on, or all in other tables if these are faster by now."""
        if store.num_rows > self._planned_rows:
            self._planned_rows = store.num_rows + store.num_rows // _PLANNED_GROWTH
            num_blocks = fastest_blocks(store.num_rows, self.bits, self.max_distance, self.memory_bytes)
            if num_blocks != self.lookup.radius.num_blocks:
                self._make_tables(num_blocks)
                first = 0
        rows = np.arange(first, store.num_rows, dtype=np.uint32)
        keys = self.lookup.permute(store.values[first : store.num_rows])
        self._tables.append_columns(keys, rows, store.num_rows)
        self._tables.merge_latest(store.forgotten, 0)

    def find(self, queries: Values, store: RowStore, threads: int) -> Matches:
        """Return the rows within the distance of each query."""
        stored, tables, masks = store.stored(), self._tables.view().tables(ALL), self.lookup.masks

        def prepare(block: Values) -> SearchBlock:
            keys = self.lookup.permute(block)
            return lambda begin, found: int(kernels.matches.find_near(block, keys, begin, tables, stored, masks, found))

        return find_in_blocks(queries, prepare, threads)

    def _make_tables(self, num_blocks: int) -> None:
        self.lookup = DistanceLookup(Radius(self.bits, self.max_distance, num_blocks))
        self._tables = KeyTables(self.lookup.layout.prefix_bits, self.max_distance)


def fastest_blocks(num_rows: int, bits: int, max_distance: int, memory_bytes: float | None) -> int:
    """Return the number of blocks of the fastest tables within the memory; `max_distance` where a scan is faster."""
    plans = plan_blocks(num_rows, bits, max_distance)
    if memory_bytes is None:
        plans = [plan for plan in plans if plan.num_tables <= max(_MAX_TABLES, max_distance + 1)]
    else:
        plans = [plan for plan in plans if plan.memory_bytes <= memory_bytes]
    best = min(plans, key=lambda plan: (plan.query_cost, plan.num_tables), default=None)
    # At distance 0 a single table, as large as one that is scanned, has all bits in its key.
    scanned = max(1, max_distance)
    return best.num_blocks if best is not None and best.query_cost < _SCAN_COST * num_rows else scanned
