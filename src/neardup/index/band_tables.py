"""Band tables: which rows share a band of their signature with a query."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.candidates.bands import Bands
from neardup.fingerprints.signatures import is_empty
from neardup.index.row_store import RowStore
from neardup.index.search import Ask, Matches, Values, find_in_blocks
from neardup.stores.key_tables import ALL, KeyTables


class BandTables:
    """A table for each band, from the hash of its values to rows; about 13 bytes a row and band."""

    def __init__(self, bands: Bands, threads: int) -> None:
        self.bands, self._threads = bands, threads
        self._tables = KeyTables((64,) * bands.num_bands, 0)

    def add(self, store: RowStore, first: int) -> None:
        """Enter the rows of a store from `first` on; one without features, all ones, shares no band."""
        values = store.values[first : store.num_rows]
        empty = is_empty(values)
        rows = np.arange(first, store.num_rows, dtype=np.uint32)
        if empty.any():
            values, rows = values[~empty], rows[~empty]
        self._tables.append_columns(self._keys_of(values), rows, store.num_rows)
        self._tables.merge_latest(store.forgotten, 0)

    def find(self, queries: Values, store: RowStore, least: int) -> Matches:
        """Return the rows that share a band with each query and agree with it in at least so many hashes."""
        stored, tables = store.stored(), self._tables.view().tables(ALL)

        def prepare(block: Values, first: int) -> Ask:
            keys, bands = self._keys_of(block), (self.bands.rows_per_band, least)
            return lambda begin, found: int(
                kernels.matches.find_similar(block, keys, begin, tables, stored, bands, found)
            )

        found = find_in_blocks(queries, prepare, self._threads)
        empty = is_empty(queries)
        # The signature of an empty set may share hashes with that of another set, once in 2^32.
        return Matches(*(column[~empty[found.query]] for column in found)) if empty.any() else found

    def _keys_of(self, block: Values) -> npt.NDArray[np.uint64]:
        keys = np.empty((self.bands.num_bands, len(block)), np.uint64)
        kernels.minhash.band_keys(block, self.bands.rows_per_band, keys)
        return keys
