"""Tables from the values of a band to the rows that have them: open addressing, rows of equal values in a chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

U64 = np.uint64
FREE = U64(0xFFFFFFFFFFFFFFFF)  # a slot without rows
NO_ROW = np.uint32(0xFFFFFFFF)
_ROW_BITS, _ROW_MASK = U64(32), U64(0xFFFFFFFF)


class Tables(NamedTuple):
    """A table for each band.

    slots : uint64 (num_bands, num_slots), of the values that some rows have: the upper 32 bits of their key, then the
    row entered last; or FREE. older : uint32 (num_bands, num_rows), the row of the same values entered before; or
    NO_ROW. A table is in the order of keys, up to what was moved on, so that growing goes through memory once.
    """

    slots: np.ndarray
    older: np.ndarray


class Stored(NamedTuple):
    """Signatures by row. values : uint32 (num_rows, num_hashes); alive : uint8 (num_rows,), 0 for what was removed."""

    values: np.ndarray
    alive: np.ndarray


class Found(NamedTuple):
    """What queries found, and how much of it is used: query, row : uint32; equal : uint16; used : int64 (1,)."""

    query: np.ndarray
    row: np.ndarray
    equal: np.ndarray
    used: np.ndarray


@njit(nogil=True, cache=True)
def _find_slot(tag, slots, values, band, wanted):
    """Return the slot of rows whose values start as `wanted`, from place band.start; or a free one.

    values : (num_rows, num_hashes); wanted : the values of the band; band : (start, stop). Requires: a slot is free.
    """
    slot = np.int64((tag * U64(len(slots))) >> U64(32))
    while True:
        entry = slots[slot]
        if entry == FREE:
            return slot
        if entry >> _ROW_BITS == tag:
            row = values[np.int64(entry & _ROW_MASK)]
            same = True
            for i in range(band[0], band[1]):
                if row[i] != wanted[i]:
                    same = False
                    break
            if same:
                return slot
        slot += 1
        if slot == len(slots):
            slot = 0


@njit(nogil=True, cache=True)
def enter_rows(keys, rows_per_band, first, featured, values, tables):
    """Enter rows into the tables.

    keys : uint64 (num_bands, num_new); first : the row of keys[:, 0]; featured : bool (num_new,), False for rows that
    are in no table; values : uint32 (num_rows, num_hashes).
    """
    for band in range(keys.shape[0]):
        slots, older = tables.slots[band], tables.older[band]
        places = (band * rows_per_band, (band + 1) * rows_per_band)
        for i in range(keys.shape[1]):
            if not featured[i]:
                continue
            row = first + i
            tag = keys[band, i] >> _ROW_BITS
            slot = _find_slot(tag, slots, values, places, values[row])
            older[row] = NO_ROW if slots[slot] == FREE else np.uint32(slots[slot] & _ROW_MASK)
            slots[slot] = tag << _ROW_BITS | U64(row)


@njit(nogil=True, cache=True)
def move_slots(old, new):
    """Enter the slots of smaller tables in larger ones, which are free."""
    for band in range(len(old)):
        larger = new[band]
        for entry in old[band]:
            if entry != FREE:
                slot = np.int64(((entry >> _ROW_BITS) * U64(len(larger))) >> U64(32))
                while larger[slot] != FREE:
                    slot += 1
                    if slot == len(larger):
                        slot = 0
                larger[slot] = entry


@njit(nogil=True, cache=True)
def _shares_band(left, right, rows_per_band, num_bands):
    """Return whether two signatures agree in one of the first bands."""
    for band in range(num_bands):
        same = True
        for i in range(band * rows_per_band, (band + 1) * rows_per_band):
            if left[i] != right[i]:
                same = False
                break
        if same:
            return True
    return False


@njit(nogil=True, cache=True)
def find_rows(queries, keys, part, rows_per_band, stored, tables, least, found):
    """Find the rows that share a band with queries and agree with them in at least so many places.

    queries : uint32 (num_queries, num_hashes); keys : uint64 (num_bands, stop - start) of part : (start, begin, stop),
    of which those from `begin` on are asked. Returns the query that there was no room for, or `stop`. A row is reported
    in the first band that it shares.
    """
    used = 0
    values = stored.values
    for query in range(part[1], part[2]):
        before, asked = used, queries[query]
        for band in range(keys.shape[0]):
            places = (band * rows_per_band, (band + 1) * rows_per_band)
            tag = keys[band, query - part[0]] >> _ROW_BITS
            entry = tables.slots[band, _find_slot(tag, tables.slots[band], values, places, asked)]
            row = NO_ROW if entry == FREE else np.uint32(entry & _ROW_MASK)
            while row != NO_ROW:
                other = values[np.int64(row)]
                if stored.alive[row] and not _shares_band(asked, other, rows_per_band, band):
                    equal = 0
                    for i in range(len(asked)):
                        equal += asked[i] == other[i]
                    if equal >= least:
                        if used == len(found.row):
                            found.used[0] = before
                            return query
                        found.query[used], found.row[used], found.equal[used] = query, row, equal
                        used += 1
                row = tables.older[band, np.int64(row)]
    found.used[0] = used
    return part[2]
