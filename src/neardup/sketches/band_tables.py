"""Band tables: which rows share a band of their signature with a query."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.candidates.bands import Bands
from neardup.fingerprints.signatures import is_empty
from neardup.sketches.row_store import RowStore
from neardup.sketches.search import Matches, SearchBlock, Values, find_in_blocks, spans

_LEAST_SLOTS = 1 << 8


class BandTables:
    """A table for each band, from its values to rows; 16 to 24 bytes a row and band."""

    def __init__(self, bands: Bands) -> None:
        self.bands = bands
        slots = np.full((bands.num_bands, _LEAST_SLOTS), kernels.band_tables.FREE, np.uint64)
        self._tables = kernels.band_tables.Tables(slots, np.empty((bands.num_bands, _LEAST_SLOTS), np.uint32))

    def add(self, store: RowStore, first: int) -> None:
        """Enter the rows of a store from `first` on; one without features, all ones, shares no band."""
        self._grow(store.num_rows)
        for start, stop in spans(first, store.num_rows):
            block = store.values[start:stop]
            keys, featured = self._keys_of(block), ~is_empty(block)
            kernels.band_tables.enter_rows(keys, self.bands.rows_per_band, start, featured, store.values, self._tables)

    def find(self, queries: Values, store: RowStore, least: int, threads: int) -> Matches:
        """Return the rows that share a band with each query and agree with it in at least so many hashes."""
        stored, rows_per_band = store.stored(), self.bands.rows_per_band

        def prepare(block: Values) -> SearchBlock:
            keys = self._keys_of(block)
            return lambda begin, found: int(
                kernels.band_tables.find_rows(block, keys, begin, rows_per_band, stored, self._tables, least, found)
            )

        found = find_in_blocks(queries, prepare, threads)
        empty = is_empty(queries)
        # The signature of an empty set may share hashes with that of another set, once in 2^32.
        return Matches(*(column[~empty[found.query]] for column in found)) if empty.any() else found

    def _keys_of(self, block: Values) -> npt.NDArray[np.uint64]:
        keys = np.empty((self.bands.num_bands, len(block)), np.uint64)
        kernels.minhash.band_keys(block, self.bands.rows_per_band, keys)
        return keys

    def _grow(self, num_rows: int) -> None:
        """Grow the tables for so many rows, at most two thirds full."""
        old, needed = self._tables, 3 * num_rows // 2 + 1
        slots, older = old
        if needed > slots.shape[1]:
            slots = np.full((len(slots), max(needed, 3 * slots.shape[1] // 2)), kernels.band_tables.FREE, np.uint64)
            kernels.band_tables.move_slots(old.slots, slots)
        if num_rows > older.shape[1]:
            older = np.empty((len(older), max(num_rows, 3 * older.shape[1] // 2)), np.uint32)
            older[:, : old.older.shape[1]] = old.older
        self._tables = kernels.band_tables.Tables(slots, older)
