"""Hash tables from the values of a band to rows: open addressing, rows of equal values in a
chain.
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
# Queries whose slots are fetched together: memory is waited for once, not once for each.
_GROUP = 32
_NO_ROOM = -1  # instead of a number of rows found


class Tables(NamedTuple):
    """A table for each band.

    slots : uint64 (num_bands, num_slots), the last row of each combination of values, or FREE.
    older : uint32 (num_bands, num_rows), the row with the same values entered before, or NO_ROW.

        a slot   | upper half of the key | 1 if there are older rows | row     |
                 63                    32 31                          30      0

    A table is in the order of keys, up to displaced entries, so that growing goes through memory
    once.
    """

    slots: np.ndarray
    older: np.ndarray


@kernel
def _find_slot(tag, slots, values, band, wanted):
    """Return the slot of the rows that agree with a signature in a band, or a free one.

    values : (num_rows, num_hashes); wanted : the signature; band : its hashes, (start, stop).
    Requires: a slot is free.
    """
    # A tag has 32 bits: the product scales it to a slot, in the order of tags, without a division.
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
    """Set firsts[i, band] to the first slot where key i may be: memory is waited for once."""
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
        hashes = (band * rows_per_band, (band + 1) * rows_per_band)
        for i in range(keys.shape[1]):
            if not featured[i]:
                continue
            row = first + i
            tag = keys[band, i] >> _TAG_SHIFT
            slot = _find_slot(tag, slots, values, hashes, values[row])
            entry = tag << _TAG_SHIFT | U64(row)
            older[row] = NO_ROW
            if slots[slot] != FREE:
                older[row] = U32(slots[slot] & _ROW_MASK)
                entry |= _OLDER
            slots[slot] = entry


@kernel
def move_slots(old, new):
    """Enter the slots of smaller tables in larger ones, which are free."""
    # Slots are in the order of tags in both tables, so both are walked from begin to end.
    for band in range(len(old)):
        larger = new[band]
        for entry in old[band]:
            if entry != FREE:
                slot = I64(((entry >> _TAG_SHIFT) * U64(len(larger))) >> U64(32))
                while larger[slot] != FREE:
                    slot = slot + 1 if slot + 1 < len(larger) else 0
                larger[slot] = entry


class _Search(NamedTuple):
    """The parts of a search. keys : uint64 (num_bands, num_queries); firsts : uint64 (_GROUP,
    num_bands), of `_fetch`; stored : `matches.Stored`; tables : Tables. min_equal : hashes.
    """

    keys: np.ndarray
    firsts: np.ndarray
    stored: NamedTuple
    tables: NamedTuple
    rows_per_band: int
    min_equal: int


@kernel(allocates=True)
def find_rows(queries, keys, begin, rows_per_band, stored, tables, min_equal, found):
    """Find the rows that share a band with queries and agree with them in at least `min_equal`
    hashes.

    queries : uint32 (num_queries, num_hashes), read from `begin` on; keys : uint64 (num_bands,
    num_queries). Return the first query without space, or the number of queries. A row is reported
    in the first band that it shares.
    """
    search = _Search(
        keys=keys,
        firsts=np.empty((_GROUP, keys.shape[0]), U64),
        stored=stored,
        tables=tables,
        rows_per_band=rows_per_band,
        min_equal=min_equal,
    )
    return _find_all(queries, begin, search, found)


@kernel
def _find_all(queries, begin, search, found):
    """Find the rows of queries as `find_rows` does."""
    used = 0
    for query in range(begin, len(queries)):
        found.used[0] = used
        signature = queries[query]
        in_group = (query - begin) % _GROUP
        if in_group == 0:
            _fetch(search.keys[:, query:], search.tables.slots, search.firsts)
        for band in range(search.keys.shape[0]):
            if search.firsts[in_group, band] != FREE:
                used = _find_in_band(search, signature, query, band, found, used)
                if used == _NO_ROOM:
                    return query
    found.used[0] = used
    return len(queries)


# Inlined, since most bands have no row.
@kernel(inline=True)
def _find_in_band(search, signature, query, band, found, used):
    """Append the rows with the values of a query in a band to the first `used` ones; return how
    many are used then, or _NO_ROOM.
    """
    entry = _entry_of(search, signature, query, band)
    row = NO_ROW if entry == FREE else U32(entry & _ROW_MASK)
    while row != NO_ROW:
        if _is_new(search, signature, I64(row), band):
            equal = num_equal(signature, search.stored.values[I64(row)])
            if equal >= search.min_equal:
                if used == len(found.row):
                    return _NO_ROOM
                found.query[used] = query
                found.row[used] = row
                found.equal[used] = equal
                used += 1
        row = search.tables.older[band, I64(row)] if entry & _OLDER else NO_ROW
    return used


@kernel(inline=True)
def _entry_of(search, signature, query, band):
    """Return the entry of the rows with the values of a query in a band, or FREE."""
    slots = search.tables.slots[band]
    tag = search.keys[band, query] >> _TAG_SHIFT
    hashes = (band * search.rows_per_band, (band + 1) * search.rows_per_band)
    return slots[_find_slot(tag, slots, search.stored.values, hashes, signature)]


@kernel(inline=True)
def _is_new(search, signature, row, band):
    """Return whether a row is not forgotten, and shares no earlier band with a signature."""
    values = search.stored.values[row]
    return not has_bit(search.stored.forgotten, row) and not shares_band(
        signature, values, search.rows_per_band, band
    )
