"""Band tables: which rows share a band of their signature with a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neardup.candidates.bands import Bands
from neardup.index.matches import Matches, collect, find_in_blocks, has_features, spans

if TYPE_CHECKING:
    from neardup.kernels.band_tables import Found, Stored

_LEAST_SLOTS = 1 << 8

Values = npt.NDArray[np.uint32]


class BandTables:
    """A table for each band, from its values to rows; 16 to 24 bytes a row and band."""

    def __init__(self, bands: Bands, threads: int) -> None:
        from neardup.kernels.band_tables import FREE, Tables

        self.bands, self._threads = bands, threads
        slots = np.full((bands.num_bands, _LEAST_SLOTS), FREE, np.uint64)
        self._tables = Tables(slots, np.empty((bands.num_bands, _LEAST_SLOTS), np.uint32))

    def enter(self, values: Values, first: int, stop: int) -> None:
        """Enter rows `first` to `stop` of the signatures; one without features, all ones, shares no band."""
        from neardup.kernels import band_tables as kernel

        self._grow(stop)
        for start, end in spans(first, stop):
            block = values[start:end]
            keys, featured = self._keys_of(block), has_features(block)
            kernel.enter_rows(keys, self.bands.rows_per_band, start, featured, values, self._tables)

    def find(self, queries: Values, stored: Stored, least: int) -> Matches:
        """Return the rows that share a band with each query and agree with it in at least so many places."""
        from neardup.kernels.band_tables import find_rows

        def find(block: Values, first: int) -> list[Matches]:
            keys, rows_per_band = self._keys_of(block), self.bands.rows_per_band

            def ask(begin: int, found: Found) -> int:
                return int(find_rows(block, keys, begin, rows_per_band, stored, self._tables, least, found))

            return collect(len(block), first, ask)

        return find_in_blocks(queries, find, self._threads)

    def _keys_of(self, block: Values) -> npt.NDArray[np.uint64]:
        from neardup.kernels.minhash import band_keys

        keys = np.empty((self.bands.num_bands, len(block)), np.uint64)
        band_keys(block, self.bands.rows_per_band, keys)
        return keys

    def _grow(self, num_rows: int) -> None:
        """Make room for so many rows, the tables at most two thirds full."""
        from neardup.kernels import band_tables as kernel

        old, needed = self._tables, 3 * num_rows // 2 + 1
        slots, older = old
        if needed > slots.shape[1]:
            slots = np.full((len(slots), max(needed, 3 * slots.shape[1] // 2)), kernel.FREE, np.uint64)
            kernel.move_slots(old.slots, slots)
        if num_rows > older.shape[1]:
            older = np.empty((len(older), max(num_rows, 3 * older.shape[1] // 2)), np.uint32)
            older[:, : old.older.shape[1]] = old.older
        self._tables = kernel.Tables(slots, older)
