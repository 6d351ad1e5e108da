"""Tables from the values of a band to the rows that have them: open addressing, rows of equal
values in a chain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.key_tables import has_bit
from neardup.kernels.matches import num_equal, same_values, shares_band

FREE = U64(0xFFFFFFFFFFFFFFFF)  # a slot without rows
NO_ROW = U32(0xFFFFFFFF)
_TAG_SHIFT = U64(32)
_OLDER = U64(0x80000000)
_ROW_MASK = U64(0x7FFFFFFF)
_GROUP = (
    32  # queries whose slots are fetched together: memory is waited for once, not once for each
)


class Tables(NamedTuple):
    """A table for each band.

    slots : uint64 (num_bands, num_slots), of the values that some rows have: the upper 32 bits of
    their key, a bit that is set if there are several, and the row entered last; or FREE. older :
    uint32 (num_bands, num_rows), the row of the same values entered before; or NO_ROW. A table is
    in the order of keys, up to what was moved on, so that growing goes through memory once.
    """

    slots: np.ndarray
    older: np.ndarray


@kernel
def _find_slot(tag, slots, values, band, wanted):
    """Return the slot of rows whose values start as `wanted`, from place band.start; or a free one.

    values : (num_rows, num_hashes); wanted : the values of the band; band : (start, stop).
    Requires: a slot is free.
    """
    slot = I64((tag * U64(len(slots))) >> U64(32))
    while True:
        entry = slots[slot]
        if entry == FREE:
            return slot
        if entry >> _TAG_SHIFT == tag and same_values(
            values[I64(entry & _ROW_MASK)], wanted, band[0], band[1]
        ):
            return slot
        slot = slot + 1 if slot + 1 < len(slots) else 0


@kernel
def _fetch(keys, slots, firsts):
    """Set firsts[i, band] to the slot that key i is looked for first."""
    for i in range(min(len(firsts), keys.shape[1])):
        for band in range(len(slots)):
            slot = I64(((keys[band, i] >> _TAG_SHIFT) * U64(slots.shape[1])) >> U64(32))
            firsts[i, band] = slots[band, slot]


@kernel
def enter_rows(keys, rows_per_band, first, featured, values, tables):
    """Enter rows into the tables.

    keys : uint64 (num_bands, num_new); first : the row of keys[:, 0]; featured : bool (num_new,),
    False for rows that are in no table; values : uint32 (num_rows, num_hashes).
    """
    for band in range(keys.shape[0]):
        slots = tables.slots[band]
        older = tables.older[band]
        places = (band * rows_per_band, (band + 1) * rows_per_band)
        for i in range(keys.shape[1]):
            if not featured[i]:
                continue
            row = first + i
            tag = keys[band, i] >> _TAG_SHIFT
            slot = _find_slot(tag, slots, values, places, values[row])
            entry = tag << _TAG_SHIFT | U64(row)
            older[row] = NO_ROW
            if slots[slot] != FREE:
                older[row] = U32(slots[slot] & _ROW_MASK)
                entry |= _OLDER
            slots[slot] = entry


@kernel
def move_slots(old, new):
    """Enter the slots of smaller tables in larger ones, which are free."""
    for band in range(len(old)):
        larger = new[band]
        for entry in old[band]:
            if entry != FREE:
                slot = I64(((entry >> _TAG_SHIFT) * U64(len(larger))) >> U64(32))
                while larger[slot] != FREE:
                    slot = slot + 1 if slot + 1 < len(larger) else 0
                larger[slot] = entry


@kernel(allocates=True)
def find_rows(queries, keys, begin, rows_per_band, stored, tables, least, found):
    """Find the rows that share a band with queries and agree with them in at least so many places.

    queries : uint32 (num_queries, num_hashes), asked from `begin` on; keys : uint64 (num_bands,
    num_queries). Returns the query that there was no room for, or the number of queries. A row is
    reported in the first band that it shares.
    """
    used = 0
    values = stored.values
    firsts = np.empty((_GROUP, keys.shape[0]), U64)
    for query in range(begin, len(queries)):
        place = (query - begin) % _GROUP
        if place == 0:
            _fetch(keys[:, query:], tables.slots, firsts)
        before = used
        asked = queries[query]
        for band in range(keys.shape[0]):
            entry = firsts[place, band]
            if entry == FREE:
                continue
            places = (band * rows_per_band, (band + 1) * rows_per_band)
            tag = keys[band, query] >> _TAG_SHIFT
            entry = tables.slots[band, _find_slot(tag, tables.slots[band], values, places, asked)]
            row = NO_ROW if entry == FREE else U32(entry & _ROW_MASK)
            while row != NO_ROW:
                other = values[I64(row)]
                if not has_bit(stored.forgotten, I64(row)) and not shares_band(
                    asked, other, rows_per_band, band
                ):
                    equal = num_equal(asked, other)
                    if equal >= least:
                        if used == len(found.row):
                            found.used[0] = before
                            return query
                        found.query[used] = query
                        found.row[used] = row
                        found.equal[used] = equal
                        used += 1
                row = tables.older[band, I64(row)] if entry & _OLDER else NO_ROW
    found.used[0] = used
    return len(queries)
