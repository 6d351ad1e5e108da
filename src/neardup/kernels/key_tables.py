"""Tables of keys that list rows: sort them, merge them, find the rows of keys.

A table consists of parts and a tail. Parts cover ranges of rows that follow each other: among equal
keys, the rows of an earlier part are smaller. The tail has the latest rows.

    table 0   | part 0: rows 0 to 900 | part 1: rows 900 to 1000 | tail |
    table 1   | part 2: rows 0 to 900 | part 3: rows 900 to 1000 | tail |

A part is sorted by key, then row, and lies in memory or in a mapped file, so kernels get its
address. The contents of a file may be damaged: `find_rows` and `merge_parts` report rows and
entries that a part cannot have. `list_rows` is for tables in memory, and trusts their rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.intrinsics import count_ones, load_at, load_half_at, prefetch
from neardup.kernels.mixing import double

KEYS, ROWS, STARTS, SHIFT, SIZE, FIRST, STOP = range(7)
"""The fields of a part: the addresses of its keys (uint64), rows (uint32) and cells (uint32), the
bits below a cell, the number of entries, the first row, and the one after the last.

    cell c = the keys whose bits above `shift` are c       starts  | 0 | 2 | 2 | 5 |
           = keys[starts[c]:starts[c + 1]]                 keys    | 03 07 | 21 22 2a |
                                                           rows    | 17  4 |  8  8  2 |
"""
_NO_ROOM = -1  # instead of a number of entries in use
_NOT_DAMAGED = -1  # instead of the number of a damaged part
_MIN_CAPACITY = 1024  # entries that `find_rows` allocates, beyond one per lookup
_AHEAD = 3  # lookups ahead whose entries are fetched; cells are fetched twice as far ahead
_FETCHED = 256  # entries of a bucket that are fetched in advance
_STEPS = 8  # entries of a cell that are searched one by one
_MAX_INSERTION_SORT = 24  # rows; more are sorted faster by radix
_MAX_KEY = U64(0xFFFFFFFFFFFFFFFF)


class Parts(NamedTuple):
    """The parts of all tables. fields : int64 (num_parts, 7), by table; ends : int64 (num_tables +
    1,), the first part of each table, and the end of the last.
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
    """The rules of a search. prefix_bits : int64 (num_tables,), the bits that must be equal.
    max_distance : bits; limit : rows of one key.
    """

    prefix_bits: np.ndarray
    max_distance: int
    limit: int


class Tables(NamedTuple):
    """All entries at one moment, and the rules of a search."""

    parts: Parts
    tail: Tail
    rules: Rules


class States(NamedTuple):
    """Bits of rows, uint64, the lowest first: whether each was forgotten, and whether it was
    kept.
    """

    forgotten: np.ndarray
    kept: np.ndarray


class _Rows(NamedTuple):
    """Entries. keys : uint64; rows : uint32."""

    keys: np.ndarray
    rows: np.ndarray


class _Lookups(NamedTuple):
    """Lookups. table : uint16, key : uint64 (num_lookups,)."""

    table: np.ndarray
    key: np.ndarray


class _Answers(NamedTuple):
    """The answers of lookups. ends : int64 (num_lookups + 1,), the end of the rows of each; more :
    bool (num_lookups,), whether a key has more rows than the limit.
    """

    ends: np.ndarray
    more: np.ndarray


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
    counts = np.zeros((8, 257), I64)  # of each digit: count of value v at v + 1
    for key in keys:
        for digit in range(8):
            counts[digit, I64((key >> U64(8 * digit)) & U64(255)) + 1] += 1
    source = _Rows(keys=keys, rows=rows)
    target = _Rows(keys=np.empty(size, U64), rows=np.empty(size, U32))
    is_swapped = False
    for digit in range(8):
        if counts[digit].max() == size:
            continue
        _sort_by_digit(source, target, digit, counts[digit])
        previous = source
        source = target
        target = previous
        is_swapped = not is_swapped
    # An odd number of passes leaves the result in the second pair of arrays.
    if is_swapped:
        for i in range(size):  # an assignment to a slice takes 1.5 seconds to compile
            keys[i] = source.keys[i]
            rows[i] = source.rows[i]


@kernel
def _sort_by_digit(source, target, digit, starts):
    """Sort entries by one byte of their keys. starts : int64 (257,), the counts of its values,
    changed.
    """
    for value in range(256):
        starts[value + 1] += starts[value]
    for i in range(len(source.keys)):
        key = source.keys[i]
        value = I64((key >> U64(8 * digit)) & U64(255))
        target.keys[starts[value]] = key
        target.rows[starts[value]] = source.rows[i]
        starts[value] += 1


@kernel
def split_tables(table, key, row, cursors, keys, rows):
    """Copy entries to their tables: entry i to keys[cursors[table[i]]], and move the cursor on.

    cursors : int64.
    """
    for i in range(len(table)):
        at = cursors[table[i]]
        keys[at] = key[i]
        rows[at] = row[i]
        cursors[table[i]] = at + 1


@kernel
def append_entries(table, key, row, sizes, keys, rows):
    """Append entries to the tables of a tail: keys, uint64, rows, uint32 (num_tables, capacity).

    sizes : int64 (num_tables,), the used entries of each table, changed here. Return False if a
    table has no space; the entries before it are written then, beyond the sizes of the caller.
    """
    for i in range(len(table)):
        number = table[i]
        at = sizes[number]
        if at == keys.shape[1]:
            return False
        keys[number, at] = key[i]
        rows[number, at] = row[i]
        sizes[number] = at + 1
    return True


@kernel
def count_cells(keys, shift, starts):
    """Count the keys of each cell in starts[cell + 1] (uint32)."""
    for key in keys:
        starts[I64(key >> U64(shift)) + 1] += U32(1)


@kernel
def merge_parts(fields, cursors, forgotten, keys, rows):
    """Fill keys and rows with the next entries of parts of one table, in order, except for
    forgotten rows.

    fields : int64 (num_parts, 7); cursors : int64 (num_parts,), the next entry of each, moved on.
    Return the number of entries written: fewer than there is space for at the end only; -1 if a row
    lies outside of its part.
    """
    used = 0
    # Few parts are merged at once, so their next keys are scanned. Among equal keys the first part
    # wins, whose rows are smaller.
    while used < len(keys):
        best = -1
        min_key = U64(0)
        for part in range(len(fields)):
            if cursors[part] < fields[part, SIZE]:
                key = load_at(fields[part, KEYS] + 8 * cursors[part])
                if best < 0 or key < min_key:
                    best = part
                    min_key = key
        if best < 0:
            break
        row = _row_at(fields, best, cursors[best])
        if row < 0:
            return -1
        cursors[best] += 1
        if not has_bit(forgotten, row):
            keys[used] = min_key
            rows[used] = U32(row)
            used += 1
    return used


@kernel
def _row_at(fields, part, entry):
    """Return the row of an entry of a part, or -1 if it lies outside of the part's rows."""
    row = I64(load_half_at(fields[part, ROWS] + 4 * entry))
    is_inside = fields[part, FIRST] <= row < fields[part, STOP]
    return row if is_inside else I64(-1)


class _Bucket(NamedTuple):
    """The keys of a table that a lookup matches: they differ from `key` in bits of `mask` only, and
    in few bits.
    """

    table: int
    key: int
    mask: int


class _Listed(NamedTuple):
    """Entries listed, uint32: the query, row and table of each. counted : int64 (1,), how many."""

    query: np.ndarray
    row: np.ndarray
    table: np.ndarray
    counted: np.ndarray


@kernel(allocates=True)
def find_rows(table, key, *fields):
    """Return the rows in the buckets of keys.

    table : uint16, key : uint64 (num_lookups,). fields : the fields of four records in turn,
    because a call from Python with records takes three microseconds more:

        Parts  | Tail    | Rules   | States
        0 1    | 2 3 4   | 5 6 7   | 8 9

    Return, for each row found, the lookup, the row (int64) and whether it is kept (bool); more,
    bool (num_lookups,): whether a key has more rows than the limit; and _NOT_DAMAGED, or no rows
    and the number of a damaged part.
    """
    tables = Tables(parts=Parts(*fields[:2]), tail=Tail(*fields[2:5]), rules=Rules(*fields[5:8]))
    states = States(*fields[8:])
    lookups = _Lookups(table=table, key=key)
    num_lookups = len(table)
    answers = _Answers(ends=np.zeros(num_lookups + 1, I64), more=np.zeros(num_lookups, np.bool_))
    rows, damaged = _find_all(tables, states.forgotten, lookups, answers)
    return _unfold(answers, rows, states.kept, damaged)


@kernel(allocates=True)
def _find_all(tables, forgotten, lookups, answers):
    """Return the rows of all lookups and _NOT_DAMAGED; or the number of a damaged part, in which
    case `answers.ends` are 0.
    """
    masks = _masks_of(tables.rules.prefix_bits)
    capacity = _MIN_CAPACITY + len(lookups.table)
    found = _Rows(keys=np.empty(capacity, U64), rows=np.empty(capacity, U32))
    used = 0
    for lookup in range(len(lookups.table)):
        _fetch_ahead(tables.parts, lookups, lookup, masks)
        bucket = _bucket_at(lookups, lookup, masks)
        begin = used
        used, damaged = _find_entries(tables, forgotten, bucket, found, begin)
        while used == _NO_ROOM:
            found = _Rows(keys=double(found.keys), rows=double(found.rows))
            used, damaged = _find_entries(tables, forgotten, bucket, found, begin)
        if damaged >= 0:
            answers.ends[:] = 0
            return found.rows, damaged
        if used > begin:
            num_listed, more = _limit_rows(found, begin, used, tables.rules.limit)
            answers.more[lookup] = more
            used = begin + num_listed
        answers.ends[lookup + 1] = used
    return found.rows, _NOT_DAMAGED


@kernel
def _bucket_at(lookups, lookup, masks):
    """Return the bucket of a lookup."""
    table = I64(lookups.table[lookup])
    return _Bucket(table=table, key=lookups.key[lookup], mask=masks[table])


@kernel
def _fetch_ahead(parts, lookups, lookup, masks):
    """Prefetch the cells of a later lookup, and the entries of a nearer one."""
    later = lookup + 2 * _AHEAD
    if later < len(lookups.table):
        _fetch_cells(parts, _bucket_at(lookups, later, masks))
    later = lookup + _AHEAD
    if later < len(lookups.table):
        _fetch_entries(parts, _bucket_at(lookups, later, masks))


@kernel
def _fetch_cells(parts, bucket):
    """Prefetch the cells of a bucket in all parts of its table."""
    low = bucket.key & ~bucket.mask
    for part in range(parts.ends[bucket.table], parts.ends[bucket.table + 1]):
        cell = I64(low >> U64(parts.fields[part, SHIFT]))
        prefetch(parts.fields[part, STARTS] + 4 * cell)


@kernel
def _fetch_entries(parts, bucket):
    """Prefetch the entries of a bucket in all parts of its table, the first of them if they are
    many.
    """
    low = bucket.key & ~bucket.mask
    for part in range(parts.ends[bucket.table], parts.ends[bucket.table + 1]):
        cell = I64(low >> U64(parts.fields[part, SHIFT]))
        start = parts.fields[part, STARTS] + 4 * cell
        # Cells that are not in memory yet delay this: `_fetch_cells` comes first.
        at = I64(load_half_at(start))
        stop = min(I64(load_half_at(start + 4)), at + _FETCHED)
        keys = parts.fields[part, KEYS]
        for line in range(keys + 8 * at, keys + 8 * stop, 64):
            prefetch(line)


@kernel
def _find_entries(tables, forgotten, bucket, found, used):
    """Append the entries of a bucket to the first `used` of `found`.

    Return the new number of used entries, _NO_ROOM if they are too many; and the number of a
    damaged part, or _NOT_DAMAGED.
    """
    parts = tables.parts
    rules = tables.rules
    for part in range(parts.ends[bucket.table], parts.ends[bucket.table + 1]):
        at, stop = _bucket_of(parts.fields, part, bucket)
        if at < 0:
            return used, part
        at = _next_near(parts.fields[part, KEYS], at, stop, bucket.key, rules.max_distance)
        if at < stop:
            entries = _Entries(part=part, at=at, stop=stop)
            used, is_damaged = _find_in_part(
                parts.fields, entries, bucket.key, rules, forgotten, found, used
            )
            if is_damaged:
                return used, part
            if used == _NO_ROOM:
                return used, _NOT_DAMAGED
    return _find_in_tail(tables, forgotten, bucket, found, used), _NOT_DAMAGED


class _Entries(NamedTuple):
    """Consecutive entries of a part: its number, the first entry and the one after the last."""

    part: int
    at: int
    stop: int


@kernel
def _find_in_part(fields, entries, key, rules, forgotten, found, used):
    """Append entries near to a key, at most one more of each key than the limit.

    Return the new number of used entries, _NO_ROOM if they are too many; and whether the part is
    damaged.
    """
    part = entries.part
    at = entries.at
    stop = entries.stop
    keys = fields[part, KEYS]
    while at < stop:
        found_key = load_at(keys + 8 * at)
        num_listed = 0
        while at < stop and load_at(keys + 8 * at) == found_key:
            row = _row_at(fields, part, at)
            if row < 0:
                return used, True
            if not has_bit(forgotten, row):
                if used == len(found.keys):
                    return _NO_ROOM, False
                found.keys[used] = found_key
                found.rows[used] = U32(row)
                used += 1
                num_listed += 1
                # One more than the limit shows that the key has more rows.
                if num_listed > rules.limit:
                    at = _skip_equal(keys, at, stop, found_key)
                    break
            at += 1
        at = _next_near(keys, at, stop, key, rules.max_distance)
    return used, False


@kernel
def _find_in_tail(tables, forgotten, bucket, found, used):
    """Append the latest entries of a bucket; return the new number of used entries, or _NO_ROOM."""
    keys = tables.tail.keys[bucket.table]
    rows = tables.tail.rows[bucket.table]
    size = tables.tail.sizes[bucket.table]
    at = _next_in_tail(keys, 0, size, bucket, tables.rules.max_distance)
    while at < size:
        if not has_bit(forgotten, I64(rows[at])):
            if used == len(found.keys):
                return _NO_ROOM
            found.keys[used] = keys[at]
            found.rows[used] = rows[at]
            used += 1
        at = _next_in_tail(keys, at + 1, size, bucket, tables.rules.max_distance)
    return used


@kernel
def _bucket_of(fields, part, bucket):
    """Return the entries of a bucket in a part: the first, and the one after the last; -1 if
    damaged.
    """
    low = bucket.key & ~bucket.mask
    high = bucket.key | bucket.mask
    shift = U64(fields[part, SHIFT])
    starts = fields[part, STARTS]
    at = I64(load_half_at(starts + 4 * I64(low >> shift)))
    stop = I64(load_half_at(starts + 4 * (I64(high >> shift) + 1)))
    if at > stop or stop > fields[part, SIZE]:
        return -1, -1
    keys = fields[part, KEYS]
    return (
        _equal_range(keys, at, stop, low)
        if low == high
        else _narrow(keys, at, stop, low, high, shift)
    )


@kernel
def _narrow(keys, at, stop, low, high, shift):
    """Return the entries whose keys are from `low` to `high`, among the entries of whole cells."""
    below = (U64(1) << shift) - U64(1)  # the bits of a key below its cell
    if low & below != U64(0):
        at = _first_from(keys, at, stop, low)
    if high & below != below:
        stop = _first_from(keys, at, stop, high + U64(1))
    return at, stop


@kernel
def _equal_range(keys, at, stop, key):
    """Return the entries from `at` to `stop` with a key: a few steps, then a search."""
    # Cells are small: a few steps find most keys sooner than a binary search.
    few = min(stop, at + _STEPS)
    while at < few and load_at(keys + 8 * at) < key:
        at += 1
    if at == few:
        at = _first_from(keys, at, stop, key)
    end = at
    few = min(stop, at + _STEPS)
    while end < few and load_at(keys + 8 * end) == key:
        end += 1
    if end == few and end < stop:
        end = _skip_equal(keys, at, stop, key)
    return at, end


@kernel
def _first_from(keys, at, stop, low):
    """Return the first entry from `at` to `stop` whose key is `low` or more, or `stop`.

    keys : their address.
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
    """Return the first entry after `at` with another key, by steps that double. Requires: the key
    of entry `at` is `key`.
    """
    step = 1
    while at + step < stop and load_at(keys + 8 * (at + step)) == key:
        at += step
        step *= 2
    stop = min(stop, at + step)
    return stop if key == _MAX_KEY else _first_from(keys, at + 1, stop, key + U64(1))


@kernel
def _next_near(keys, at, stop, key, max_distance):
    """Return the first entry from `at` to `stop` whose key differs in few bits, or `stop`.

    keys : their address.
    """
    # Addresses in place of indices: one addition a step.
    address = keys + 8 * at
    end = keys + 8 * stop
    while address < end and count_ones(load_at(address) ^ key) > max_distance:
        address += 8
    return (address - keys) >> 3


@kernel
def _next_in_tail(keys, at, stop, bucket, max_distance):
    """Return the first entry from `at` to `stop` in a bucket and within the distance, or `stop`."""
    for i in range(at, stop):
        differing = keys[i] ^ bucket.key
        if differing & ~bucket.mask == U64(0) and count_ones(differing) <= max_distance:
            return i
    return stop


@kernel(allocates=True)
def _masks_of(prefix_bits):
    """Return the bits of a key below each prefix, uint64."""
    masks = np.empty(len(prefix_bits), U64)
    for i in range(len(masks)):
        bits = prefix_bits[i]  # 0: all keys of the table match; a shift by 64 would be undefined
        masks[i] = _MAX_KEY if bits == 0 else (U64(1) << U64(64 - bits)) - U64(1)
    return masks


@kernel(allocates=True)
def _limit_rows(found, begin, end, limit):
    """Move the earliest rows of each key to found.rows[begin:], sorted; return their number, and
    whether a key has more.

    Requires: among equal keys rows rise.
    """
    rows = found.rows[begin:end]
    num_listed = len(rows)
    more = False
    if num_listed > limit:
        num_listed, more = _drop_later_rows(found.keys[begin:end], rows, limit)
    _sort_rows(rows[:num_listed])
    return num_listed, more


@kernel(allocates=True)
def _drop_later_rows(keys, rows, limit):
    """Move the first `limit` rows of each key to the front; return their number, and whether a key
    has more.
    """
    sort_entries(keys, rows)
    used = 0
    num_listed = 0
    more = False
    last = keys[0]
    for i in range(len(keys)):
        num_listed = num_listed + 1 if keys[i] == last else 1
        last = keys[i]
        if num_listed > limit:
            more = True
        else:
            rows[used] = rows[i]
            used += 1
    return used, more


@kernel(allocates=True)
def _sort_rows(rows):
    """Sort rows, uint32."""
    if (
        len(rows) > _MAX_INSERTION_SORT
    ):  # radix sort of the rows as keys: 4 of 8 bytes are zero, and skipped
        wide = rows.astype(U64)
        sort_entries(wide, rows)
        return
    for i in range(1, len(rows)):
        row = rows[i]
        at = i
        while at > 0 and rows[at - 1] > row:
            rows[at] = rows[at - 1]
            at -= 1
        rows[at] = row


@kernel(allocates=True)
def _unfold(answers, rows, kept, damaged):
    """Return the lookup, row and state of each row found, `more` and `damaged`."""
    ends = answers.ends
    used = ends[-1]
    lookup = np.empty(used, I64)
    row = np.empty(used, I64)
    state = np.empty(used, np.bool_)
    for i in range(len(ends) - 1):
        for at in range(ends[i], ends[i + 1]):
            lookup[at] = i
            row[at] = I64(rows[at])
            state[at] = has_bit(kept, row[at])
    return lookup, row, state, answers.more, damaged


@kernel(allocates=True)
def list_rows(keys, begin, tables, forgotten, listed):
    """List the rows in the buckets of queries from `begin` on, in every table; return the first
    query without space, or the number of queries.

    keys : uint64 (num_tables, num_queries). listed : uint32, query, row and table of each entry,
    and how many of them are used, int64 (1,). A row is listed once for each table.
    """
    query, row, table, counted = listed
    entries = _Listed(query=query, row=row, table=table, counted=counted)
    masks = _masks_of(tables.rules.prefix_bits)
    return _list_queries(keys, begin, tables, masks, forgotten, entries)


@kernel
def _list_queries(keys, begin, tables, masks, forgotten, listed):
    """List the rows of queries as `list_rows` does."""
    num_tables, num_queries = keys.shape
    _fetch_query_cells(tables.parts, keys, begin, masks)
    _fetch_query_cells(tables.parts, keys, begin + 1, masks)
    _fetch_query_entries(tables.parts, keys, begin, masks)
    used = 0
    for query in range(begin, num_queries):
        listed.counted[0] = used
        _fetch_query_cells(tables.parts, keys, query + 2, masks)
        _fetch_query_entries(tables.parts, keys, query + 1, masks)
        for table in range(num_tables):
            bucket = _Bucket(table=table, key=keys[table, query], mask=masks[table])
            used = _list_bucket(tables, forgotten, bucket, query, listed, used)
            if used == _NO_ROOM:
                return query
    listed.counted[0] = used
    return num_queries


@kernel
def _fetch_query_cells(parts, keys, number, masks):
    """Prefetch the cells of a query in all tables, if there is such a query."""
    if number < keys.shape[1]:
        for table in range(len(masks)):
            bucket = _Bucket(table=table, key=keys[table, number], mask=masks[table])
            _fetch_cells(parts, bucket)


@kernel
def _fetch_query_entries(parts, keys, number, masks):
    """Prefetch the entries of a query in all tables, if there is such a query."""
    if number < keys.shape[1]:
        for table in range(len(masks)):
            bucket = _Bucket(table=table, key=keys[table, number], mask=masks[table])
            _fetch_entries(parts, bucket)


# Inlined: a call with these arrays takes longer than the search.
@kernel(inline=True)
def _list_bucket(tables, forgotten, bucket, query, listed, used):
    """Append the entries of a bucket to the `used` ones; return the new number of them, or
    _NO_ROOM.
    """
    for part in range(tables.parts.ends[bucket.table], tables.parts.ends[bucket.table + 1]):
        used = _list_in_part(tables, forgotten, part, bucket, query, listed, used)
        if used == _NO_ROOM:
            return used
    return _list_in_tail(tables, forgotten, bucket, query, listed, used)


@kernel(inline=True)
def _list_in_part(tables, forgotten, part, bucket, query, listed, used):
    """Append the entries of a bucket in a part."""
    fields = tables.parts.fields
    max_distance = tables.rules.max_distance
    at, stop = _bucket_of(fields, part, bucket)
    at = _next_near(fields[part, KEYS], at, stop, bucket.key, max_distance)
    while at < stop:
        row = I64(load_half_at(fields[part, ROWS] + 4 * at))
        if not has_bit(forgotten, row):
            if used == len(listed.row):
                return _NO_ROOM
            _write_entry(listed, used, query, row, bucket.table)
            used += 1
        at = _next_near(fields[part, KEYS], at + 1, stop, bucket.key, max_distance)
    return used


@kernel(inline=True)
def _list_in_tail(tables, forgotten, bucket, query, listed, used):
    """Append the entries of a bucket in the tail."""
    max_distance = tables.rules.max_distance
    keys = tables.tail.keys[bucket.table]
    size = tables.tail.sizes[bucket.table]
    at = _next_in_tail(keys, 0, size, bucket, max_distance)
    while at < size:
        row = I64(tables.tail.rows[bucket.table, at])
        if not has_bit(forgotten, row):
            if used == len(listed.row):
                return _NO_ROOM
            _write_entry(listed, used, query, row, bucket.table)
            used += 1
        at = _next_in_tail(keys, at + 1, size, bucket, max_distance)
    return used


@kernel
def _write_entry(listed, index, query, row, table):
    listed.query[index] = query
    listed.row[index] = row
    listed.table[index] = table
