"""Tables of keys that list rows: sort them, merge them, find the rows of keys.

A part of a table is sorted by key, then row, and lies in memory or in a mapped file, so kernels get
its address. Parts cover ranges of rows that follow each other: among equal keys, the rows of an
earlier part are smaller. The contents of a file may be damaged, so entries and rows that a part
cannot have are not followed, but reported.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.intrinsics import count_ones, load_at, load_half_at, prefetch
from neardup.kernels.mixing import double

KEYS, ROWS, STARTS, SHIFT, SIZE, FIRST, STOP = range(7)
"""The fields of a part: addresses of its keys (uint64), rows (uint32) and cells (uint32), bits
below a cell, entries, the first row, and the one behind the last.

Cell c has the keys from starts[c] to starts[c + 1]: those whose bits above `shift` are c.
"""
_AHEAD = 3  # lookups whose cells are fetched in advance
_FETCHED = 256  # entries of a bucket that are fetched in advance
_STEPS = 8  # entries of a cell that are gone through one by one
_FEW = 24  # rows that insertion sorts faster
_MOST = U64(0xFFFFFFFFFFFFFFFF)


class Parts(NamedTuple):
    """The parts of all tables. fields : int64 (num_parts, 7), by table; ends : int64 (num_tables +
    1,), in `fields`.
    """

    fields: np.ndarray
    ends: np.ndarray


class Tail(NamedTuple):
    """The latest entries of all tables, in the order of rows.

    keys : uint64, rows : uint32 (num_tables, capacity); sizes : int64 (num_tables,).
    """

    keys: np.ndarray
    rows: np.ndarray
    sizes: np.ndarray


class Rules(NamedTuple):
    """What is found. prefix_bits : int64 (num_tables,). max_distance, limit : int."""

    prefix_bits: np.ndarray
    max_distance: int
    limit: int


class Tables(NamedTuple):
    """All entries at one moment, and what is found."""

    parts: Parts
    tail: Tail
    rules: Rules


class States(NamedTuple):
    """Bits of rows, uint64, the lowest first: of those that were forgotten, and of those that were
    kept.
    """

    forgotten: np.ndarray
    kept: np.ndarray


@kernel
def has_bit(bits, row):
    """Return whether the bit of a row is set."""
    return (bits[row >> 6] >> U64(row & 63)) & U64(1) != U64(0)


@kernel
def set_bits(bits, rows):
    """Set the bits of rows, int64; return how many were not set before."""
    count = 0
    for row in rows:
        bit = U64(1) << U64(row & 63)
        count += (bits[row >> 6] & bit) == U64(0)
        bits[row >> 6] |= bit
    return count


@kernel
def count_bits(bits):
    """Return how many bits of uint64 are set."""
    count = 0
    for word in bits:
        count += count_ones(word)
    return count


@kernel(allocates=True)
def sort_entries(keys, rows):
    """Sort keys (uint64), and with them rows (uint32); equal keys stay in their order.

    One byte of the key at a time, from the lowest: linear whatever the keys are. A byte that all
    keys share is skipped.
    """
    size = len(keys)
    counts = np.zeros((8, 257), I64)
    for key in keys:
        for digit in range(8):
            counts[digit, I64((key >> U64(8 * digit)) & U64(255)) + 1] += 1
    other_keys, other_rows = np.empty(size, U64), np.empty(size, U32)
    swapped = False
    for digit in range(8):
        ends = counts[digit]
        if ends.max() == size:
            continue
        for value in range(256):
            ends[value + 1] += ends[value]
        from_keys, from_rows = (other_keys, other_rows) if swapped else (keys, rows)
        to_keys, to_rows = (keys, rows) if swapped else (other_keys, other_rows)
        for i in range(size):
            key = from_keys[i]
            value = I64((key >> U64(8 * digit)) & U64(255))
            to_keys[ends[value]] = key
            to_rows[ends[value]] = from_rows[i]
            ends[value] += 1
        swapped = not swapped
    if swapped:
        for i in range(size):  # an assignment to a slice takes 1.5 seconds to compile
            keys[i], rows[i] = other_keys[i], other_rows[i]


@kernel
def split_tables(table, key, row, cursors, keys, rows):
    """Copy entries to their tables: entry i to keys[cursors[table[i]]], which then counts on.
    cursors : int64.
    """
    for i in range(len(table)):
        at = cursors[table[i]]
        keys[at], rows[at] = key[i], row[i]
        cursors[table[i]] = at + 1


@kernel
def count_cells(keys, shift, starts):
    """Count the keys of each cell in starts[cell + 1] (uint32)."""
    for key in keys:
        starts[I64(key >> U64(shift)) + 1] += U32(1)


@kernel
def merge_parts(fields, cursors, forgotten, keys, rows):
    """Fill keys and rows with the next entries of parts of one table, in order, without those of
    forgotten rows.

    fields : int64 (num_parts, 7); cursors : int64 (num_parts,), the next entry of each, moved on.
    Return how many were written: fewer than there is space for at the end only; -1 if a row is none
    of its part.
    """
    used = 0
    while used < len(keys):
        best, least = -1, U64(0)
        for part in range(len(fields)):
            if cursors[part] < fields[part, SIZE]:
                key = load_at(fields[part, KEYS] + 8 * cursors[part])
                if best < 0 or key < least:
                    best, least = part, key
        if best < 0:
            break
        row = I64(load_half_at(fields[best, ROWS] + 4 * cursors[best]))
        if row < fields[best, FIRST] or row >= fields[best, STOP]:
            return -1
        cursors[best] += 1
        if not has_bit(forgotten, row):
            keys[used], rows[used] = least, U32(row)
            used += 1
    return used


@kernel
def _first_from(keys, at, stop, low):
    """Return the first entry from `at` to `stop` whose key is `low` or more, else `stop`. keys :
    their address.
    """
    while at < stop:
        middle = (at + stop) >> 1
        if load_at(keys + 8 * middle) < low:
            at = middle + 1
        else:
            stop = middle
    return at


@kernel
def _skip_equal(keys, at, stop, key):
    """Return the first entry after `at` with another key, by steps that double. Requires: that of
    `at` is `key`.
    """
    step = 1
    while at + step < stop and load_at(keys + 8 * (at + step)) == key:
        at += step
        step *= 2
    stop = min(stop, at + step)
    return stop if key == _MOST else _first_from(keys, at + 1, stop, key + U64(1))


@kernel
def _next_near(keys, at, stop, key, max_distance):
    """Return the first entry from `at` to `stop` whose key differs in few bits, else `stop`. keys :
    their address.
    """
    address, end = keys + 8 * at, keys + 8 * stop
    while address < end and count_ones(load_at(address) ^ key) > max_distance:
        address += 8
    return (address - keys) >> 3


@kernel
def _next_in_tail(keys, at, stop, key, mask, max_distance):
    """Return the first entry from `at` to `stop` that is in the bucket of a key, within the
    distance; else `stop`.

    A function of its own: a loop that may replace an array counts references to it at each step, 20
    ns.
    """
    for i in range(at, stop):
        if (keys[i] ^ key) & ~mask == U64(0) and count_ones(keys[i] ^ key) <= max_distance:
            return i
    return stop


@kernel
def _bucket_of(fields, part, low, high):
    """Return the entries of a part from `low` to `high`: the first, and the one behind the last; -1
    if damaged.
    """
    shift, starts, keys = U64(fields[part, SHIFT]), fields[part, STARTS], fields[part, KEYS]
    at = I64(load_half_at(starts + 4 * I64(low >> shift)))
    stop = I64(load_half_at(starts + 4 * (I64(high >> shift) + 1)))
    if at > stop or stop > fields[part, SIZE]:
        return -1, -1
    below = (U64(1) << shift) - U64(1)  # the bits of a key below its cell
    if low == high:
        few = min(stop, at + _STEPS)
        while at < few and load_at(keys + 8 * at) < low:
            at += 1
        if at == few:
            at = _first_from(keys, at, stop, low)
        end, few = at, min(stop, at + _STEPS)
        while end < few and load_at(keys + 8 * end) == low:
            end += 1
        return at, _skip_equal(keys, at, stop, low) if end == few and end < stop else end
    if low & below != U64(0):
        at = _first_from(keys, at, stop, low)
    if high & below != below:
        stop = _first_from(keys, at, stop, high + U64(1))
    return at, stop


@kernel(allocates=True)
def _find_in_part(part, key, bucket, rules, states, keys, rows, used):
    """Append the entries of a bucket near to a key, at most one more of each key than the limit.

    part : the fields of one. bucket : the first entry, and the one behind the last. Return keys,
    rows and how much of them is used: -1 if a row is none of the part.
    """
    at, stop = bucket
    address = part[KEYS]
    while at < stop:
        found = load_at(address + 8 * at)
        listed = 0
        while at < stop and load_at(address + 8 * at) == found:
            row = I64(load_half_at(part[ROWS] + 4 * at))
            if row < part[FIRST] or row >= part[STOP]:
                return keys, rows, -1
            if not has_bit(states.forgotten, row):
                if used == len(keys):
                    keys, rows = double(keys), double(rows)
                keys[used], rows[used] = found, U32(row)
                used += 1
                listed += 1
                if listed > rules.limit:
                    at = _skip_equal(address, at, stop, found)
                    break
            at += 1
        at = _next_near(address, at, stop, key, rules.max_distance)
    return keys, rows, used


@kernel(allocates=True)
def _sort_rows(rows):
    """Sort rows, uint32."""
    if len(rows) > _FEW:
        wide = rows.astype(U64)
        sort_entries(wide, rows)
        return
    for i in range(1, len(rows)):
        row, at = rows[i], i
        while at > 0 and rows[at - 1] > row:
            rows[at] = rows[at - 1]
            at -= 1
        rows[at] = row


@kernel(allocates=True)
def _limit_rows(keys, rows, limit):
    """Keep the earliest rows of each key, in front; return how many, and whether a key has more.

    Requires: among equal keys rows rise.
    """
    if len(keys) <= limit:
        return len(keys), False
    sort_entries(keys, rows)
    used, listed, more = 0, 0, False
    last = keys[0]
    for i in range(len(keys)):
        listed = listed + 1 if keys[i] == last else 1
        last = keys[i]
        if listed > limit:
            more = True
        else:
            rows[used] = rows[i]
            used += 1
    return used, more


@kernel
def _fetch_cells(fields, ends, table, key, mask):
    """Prefetch the cells of a key in all parts of a table."""
    for part in range(ends[table], ends[table + 1]):
        prefetch(fields[part, STARTS] + 4 * I64((key & ~mask) >> U64(fields[part, SHIFT])))


@kernel
def _fetch_entries(fields, ends, table, key, mask):
    """The same for the entries of its bucket, the first of them if they are many."""
    for part in range(ends[table], ends[table + 1]):
        cell = fields[part, STARTS] + 4 * I64((key & ~mask) >> U64(fields[part, SHIFT]))
        at, stop = I64(load_half_at(cell)), I64(load_half_at(cell + 4))
        for line in range(
            fields[part, KEYS] + 8 * at, fields[part, KEYS] + 8 * min(stop, at + _FETCHED), 64
        ):
            prefetch(line)


@kernel(allocates=True)
def _masks_of(prefix_bits):
    """Return the bits of a key below each prefix, uint64."""
    masks = np.empty(len(prefix_bits), U64)
    for i in range(len(masks)):
        bits = prefix_bits[i]
        masks[i] = _MOST if bits == 0 else (U64(1) << U64(64 - bits)) - U64(1)
    return masks


@kernel(allocates=True)
def find_rows(  # noqa: C901
    table,
    key,
    fields,
    ends,
    tail_keys,
    tail_rows,
    tail_sizes,
    prefix_bits,
    max_distance,
    limit,
    forgotten,
    kept,
):
    """Return the rows in the buckets of keys: lookup, row (int64) and whether kept (bool); the
    lookups with more; and -1, or no rows and the number of a part that is damaged.

    table : uint16, key : uint64 (num_lookups,). `more`, bool (num_lookups,), is set where a key has
    more rows than the limit. The others are the fields of `Parts`, `Tail`, `Rules` and `States`: a
    call from Python with these themselves takes three microseconds more.
    """
    rules, states, num_lookups = (
        Rules(prefix_bits, max_distance, limit),
        States(forgotten, kept),
        len(table),
    )
    more = np.zeros(num_lookups, np.bool_)
    counts = np.zeros(num_lookups + 1, I64)
    masks = _masks_of(rules.prefix_bits)
    keys, rows, used = np.empty(64 + num_lookups, U64), np.empty(64 + num_lookups, U32), 0
    for lookup in range(num_lookups):
        if lookup + 2 * _AHEAD < num_lookups:
            _fetch_cells(
                fields,
                ends,
                table[lookup + 2 * _AHEAD],
                key[lookup + 2 * _AHEAD],
                masks[table[lookup + 2 * _AHEAD]],
            )
        if lookup + _AHEAD < num_lookups:
            _fetch_entries(
                fields,
                ends,
                table[lookup + _AHEAD],
                key[lookup + _AHEAD],
                masks[table[lookup + _AHEAD]],
            )
        wanted, mask = key[lookup], masks[table[lookup]]
        low, high = wanted & ~mask, wanted | mask
        begin = used
        for part in range(ends[table[lookup]], ends[table[lookup] + 1]):
            at, stop = _bucket_of(fields, part, low, high)
            if at < 0:
                return _unfold(counts[:1], rows, states.kept, more, part)
            at = _next_near(fields[part, KEYS], at, stop, wanted, rules.max_distance)
            if at < stop:
                keys, rows, used = _find_in_part(
                    fields[part], wanted, (at, stop), rules, states, keys, rows, used
                )
                if used < 0:
                    return _unfold(counts[:1], rows, states.kept, more, part)
        own = table[lookup]
        at = _next_in_tail(tail_keys[own], 0, tail_sizes[own], wanted, mask, max_distance)
        while at < tail_sizes[own]:
            if not has_bit(forgotten, I64(tail_rows[own, at])):
                if used == len(keys):
                    keys, rows = double(keys), double(rows)
                keys[used], rows[used] = tail_keys[own, at], tail_rows[own, at]
                used += 1
            at = _next_in_tail(tail_keys[own], at + 1, tail_sizes[own], wanted, mask, max_distance)
        if used > begin:
            listed, more[lookup] = _limit_rows(keys[begin:used], rows[begin:used], rules.limit)
            used = begin + listed
            _sort_rows(rows[begin:used])
        counts[lookup + 1] = used
    return _unfold(counts, rows, states.kept, more, -1)


@kernel
def _fetch_first(keys, begin, fields, ends, masks):
    """Ask for the cells of the first queries, and the entries of the first: in all tables at
    once.
    """
    for number in range(begin, min(begin + 2, keys.shape[1])):
        for own in range(len(masks)):
            _fetch_cells(fields, ends, own, keys[own, number], masks[own])
    if begin < keys.shape[1]:
        for own in range(len(masks)):
            _fetch_entries(fields, ends, own, keys[own, begin], masks[own])


@kernel(allocates=True)
def list_rows(keys, begin, tables, forgotten, listed):  # noqa: C901
    """List the rows in the buckets of queries from `begin` on, in every table; return the query
    without space.

    keys : uint64 (num_tables, num_queries). listed : uint32, query, row and table of each, and how
    many of them are used, int64 (1,). A row is listed once for each table. Returns the number of
    queries if there was space for all.
    """
    query, row_of, table, counted = listed
    num_tables, num_queries = keys.shape
    fields, ends, most = tables.parts.fields, tables.parts.ends, tables.rules.max_distance
    tail_keys, tail_rows, tail_sizes = tables.tail
    masks, space, used = _masks_of(tables.rules.prefix_bits), len(row_of), 0
    _fetch_first(keys, begin, fields, ends, masks)
    for number in range(begin, num_queries):
        counted[0] = used
        for own in range(num_tables):
            if number + 2 < num_queries:
                _fetch_cells(fields, ends, own, keys[own, number + 2], masks[own])
            if number + 1 < num_queries:
                _fetch_entries(fields, ends, own, keys[own, number + 1], masks[own])
        for own in range(num_tables):
            wanted, mask = keys[own, number], masks[own]
            for part in range(ends[own], ends[own + 1]):
                at, stop = _bucket_of(fields, part, wanted & ~mask, wanted | mask)
                at = _next_near(fields[part, KEYS], at, stop, wanted, most)
                while at < stop:
                    row = I64(load_half_at(fields[part, ROWS] + 4 * at))
                    if not has_bit(forgotten, row):
                        if used == space:
                            return number
                        query[used], row_of[used], table[used] = number, row, own
                        used += 1
                    at = _next_near(fields[part, KEYS], at + 1, stop, wanted, most)
            at = _next_in_tail(tail_keys[own], 0, tail_sizes[own], wanted, mask, most)
            while at < tail_sizes[own]:
                row = I64(tail_rows[own, at])
                if not has_bit(forgotten, row):
                    if used == space:
                        return number
                    query[used], row_of[used], table[used] = number, row, own
                    used += 1
                at = _next_in_tail(tail_keys[own], at + 1, tail_sizes[own], wanted, mask, most)
    counted[0] = used
    return num_queries


@kernel(allocates=True)
def _unfold(ends, rows, kept, more, damaged):
    """Return the lookup, row and state of each row found, and the rest. ends : int64 (num_lookups +
    1,), in `rows`.
    """
    used = ends[-1]
    lookup, row, state = np.empty(used, I64), np.empty(used, I64), np.empty(used, np.bool_)
    for i in range(len(ends) - 1):
        for at in range(ends[i], ends[i + 1]):
            lookup[at], row[at] = i, I64(rows[at])
            state[at] = has_bit(kept, row[at])
    return lookup, row, state, more, damaged
