"""Band tables: which rows share a band of their signature with a query."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.candidates.bands import Bands

if TYPE_CHECKING:
    from neardup.kernels.band_tables import Stored

_BLOCK = 1 << 14  # signatures worked on at once
_FEW = 256  # that no second thread is woken for
_LEAST_SLOTS = 1 << 8
_EMPTY = np.uint32(0xFFFFFFFF)

Values = npt.NDArray[np.uint32]


class Matches(NamedTuple):
    """Rows found, by query, then the most alike, then row. query, row : int64; equal : int64, places that agree."""

    query: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    equal: npt.NDArray[np.int64]


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
        blocks = list(spans(0, len(queries)))
        if self._threads > 1 and len(queries) > _FEW:
            with ThreadPoolExecutor(self._threads) as pool:
                found = list(pool.map(lambda span: self._find_block(queries, span, stored, least), blocks))
        else:
            found = [self._find_block(queries, span, stored, least) for span in blocks]
        return in_order([part for parts in found for part in parts])

    def _find_block(
        self, queries: Values, span: tuple[int, int], stored: Stored, least: int
    ) -> list[tuple[npt.NDArray[np.int64], ...]]:
        from neardup.kernels import band_tables as kernel

        block = np.array(queries[span[0] : span[1]])
        keys = self._keys_of(block)
        parts: list[tuple[npt.NDArray[np.int64], ...]] = []
        begin, room = 0, 64 + 2 * len(block)
        while begin < len(block):
            query, row, equal = (np.empty(room, kind) for kind in (np.uint32, np.uint32, np.uint16))
            found = kernel.Found(query, row, equal, np.zeros(1, np.int64))
            part = (0, begin, len(block))
            reached = kernel.find_rows(block, keys, part, self.bands.rows_per_band, stored, self._tables, least, found)
            used = int(found.used[0])
            parts.append(
                (query[:used].astype(np.int64) + span[0], row[:used].astype(np.int64), equal[:used].astype(np.int64))
            )
            if reached == begin:
                room *= 4  # one query alone has more
            begin = reached
        return parts

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


def spans(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of rows to work on at once."""
    for start in range(first, stop, _BLOCK):
        yield start, min(start + _BLOCK, stop)


def has_features(values: Values) -> npt.NDArray[np.bool_]:
    """Return False for each signature that is all ones, as that of an empty set is; bool (num_signatures,)."""
    featured: npt.NDArray[np.bool_] = values[:, 0] != _EMPTY
    doubtful = np.flatnonzero(~featured)
    featured[doubtful] = (values[doubtful] != _EMPTY).any(axis=1)
    return featured


def in_order(parts: list[tuple[npt.NDArray[np.int64], ...]]) -> Matches:
    """Return (query, row, equal) as one, by query, then the most alike, then row."""
    if not parts:
        return Matches(*(np.empty(0, np.int64) for _ in range(3)))
    query, row, equal = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((row, -equal, query))
    return Matches(query[order], row[order], equal[order])
