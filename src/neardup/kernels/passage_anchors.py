"""Find the anchors of passages, and the text around those that may repeat.

A passage of L characters is found by its anchors: in each window of W characters, the rightmost of those with the least
hash of the bytes up to it (winnowing: Schleimer, Wilkerson and Aiken, SIGMOD 2003). Equal passages have equal anchors,
so it is enough to compare the texts around them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import kernel
from neardup.kernels.decisions import connect, flatten
from neardup.kernels.intrinsics import address_of, count_trailing_zeros, fold_product, load_byte_at, load_u64
from neardup.kernels.mixing import double, find_slot, mix
from neardup.kernels.strings import advance, common_after, count_characters, hash_at, retreat

U64 = np.uint64
NONE, FREE = np.int64(-1), np.int32(-1)
_BASE = U64(0xD6E8FEB86659FD93)  # random and odd, so that it has an inverse modulo 2**64
_INVERSE = U64(pow(int(_BASE), -1, 1 << 64))
_BLOCKS, _FEWER = 15, U64(1)  # on each side of an anchor; no blocks are 1
FEW, _ANY = 4, U64(0xFFFFFFFFFFFFFFFF)  # anchors that are compared without blocks, and the context of such
_BLOCK = 4096  # characters whose hashes are at hand, besides those of a window


class Grams(NamedTuple):
    """How anchors are found. bases : uint64 (256,), random; size : bytes hashed; window : characters of a window."""

    bases: np.ndarray
    size: int
    window: int


@kernel(allocates=True)
def find_anchors(data, offsets, grams, ends):
    """Return the places (int64, in data) and hashes (uint32) of the anchors of documents; ends : int64 by document."""
    window, size, length = grams.window, grams.size, grams.window + grams.size - 1
    values, places = np.empty(_BLOCK + window, np.uint32), np.empty(_BLOCK + window, np.int64)
    found, hashes, count = np.empty(1024, np.int64), np.empty(1024, np.uint32), 0
    base = address_of(data)
    for document in range(len(offsets) - 1):
        begin, stop = offsets[document], offsets[document + 1]
        position, first = begin, min(begin + size - 1, stop)
        state, filled, anchor, last = U64(0), 0, NONE, np.int64(-1)  # anchor: of the window that ends at `last`
        alike = width = 0  # characters that are the same, up to the last anchor, and their bytes
        while position < first:
            state = (state << U64(1)) + grams.bases[data[position]]
            position += 1
        while position < stop:
            state, position, filled = _fill(data, position, stop, grams, state, values, places, filled)
            if filled < window:
                break
            while count + 3 * filled > len(found):
                found, hashes = double(found), double(hashes)
            is_new = anchor < 0
            if is_new:
                last = np.int64(window - 1)
                anchor = _least(values, 0, window)
            while True:
                if is_new:
                    place = places[anchor]
                    if alike and place - width == found[count - 1] and _is_same(base + place, width):
                        alike += 1  # of the characters of a long run, one in a window and the last are enough
                        count -= alike > 2 * length and (alike - 1) % window != 0
                        found[count], hashes[count] = place, hashes[count - 1]
                        count += 1
                    else:
                        width = place - retreat(data, place, begin, 1)
                        count, alike = _add_anchor(data, begin, grams, found, hashes, count, place, width)
                is_new, stop_at = True, min(filled, anchor + window)
                last = _first_at_most(values, last + 1, stop_at, values[anchor])
                if last < stop_at:
                    anchor = last
                elif last < filled:  # the anchor has left the window
                    anchor = _least(values, anchor + 1, last + 1)
                else:
                    break
            last -= 1
            moved = min(anchor, last + 1 - window)
            for i in range(moved, filled):
                values[i - moved], places[i - moved] = values[i], places[i]
            anchor, last, filled = anchor - moved, last - moved, filled - moved
        ends[document] = count
    return found[:count], hashes[:count]


@kernel
def _is_same(address, width):
    """Return whether the last bytes up to an address, so many, are those before them."""
    for behind in range(width):
        if load_byte_at(address - behind) != load_byte_at(address - behind - width):
            return False
    return True


@kernel
def _add_anchor(data, begin, grams, found, hashes, count, place, width):
    """Add an anchor; return how many there are, and how many of the last are in a run of one character.

    All windows inside such a run are equal. The first of them that is kept begins less than a length behind the start
    of its run, or there would be an earlier one. So each character of the first two lengths of a run is an anchor, and
    this one is met by any other window that has an anchor. width : bytes of the character before the place.
    """
    start, first = place - (grams.window + grams.size - 2) * width, place
    is_run = width > 0 and start >= begin and data[place] == data[place - width]
    is_run = is_run and common_after(data, start, start + width, place + 1 - width - start) == place + 1 - width - start
    if is_run:
        first -= (place - start - grams.size + 1) // width * width
        while count and found[count - 1] >= first:
            count -= 1
    value = np.uint32(hash_at(address_of(data) + place + 1 - grams.size, grams.size, place + 1 - grams.size) >> U64(32))
    for each in range(first, place + 1, max(width, 1)):
        found[count], hashes[count] = each, value
        count += 1
    return count, (place - first) // width + 1 if is_run else np.int64(0)


@kernel
def _fill(data, position, stop, grams, state, values, places, filled):
    """Write the hash and the place of each character from a position on, until the room is filled."""
    unseen = U64(64 - grams.size)  # the lowest `size` bits of the state depend on as many bytes
    while position < stop and filled < len(values):
        for place in range(position, position + min(stop - position, len(values) - filled)):
            byte = data[place]
            state = (state << U64(1)) + grams.bases[byte]
            values[filled], places[filled] = np.uint32(state << unseen >> U64(32)), place
            filled += byte & 0xC0 != 0x80
            position += 1
    return state, position, filled


# Indices are unsigned in the next two: LLVM vectorises no loop in which an index may be negative.
@kernel
def _least(values, start, stop):
    """Return the last of the places in [start, stop) with the least value."""
    begin, place = U64(start), U64(stop - 1)
    least = values[place]
    for i in range(place - begin):
        least = min(least, values[begin + U64(i)])
    while values[place] != least:
        place -= U64(1)
    return np.int64(place)


@kernel
def _first_at_most(values, start, stop, most):
    """Return the first of the places in [start, stop) with a value of at most `most`; `stop` if there is none."""
    place, end = U64(start), U64(stop)
    while place + U64(16) <= end:
        least = values[place]
        for i in range(1, 16):
            least = min(least, values[place + U64(i)])
        if least <= most:
            break
        place += U64(16)
    while place < end and values[place] > most:
        place += U64(1)
    return np.int64(place)


@kernel
def count_hashes(hashes, counts):
    """Count hashes, up to two, each in two fields of a word, of two bits; counts : uint64, a power of two long."""
    for i in range(len(hashes)):
        word, first, second = _fields(mix(U64(hashes[i])), len(counts))
        if (counts[word] >> first) & U64(2) == U64(0):
            counts[word] += U64(1) << first
        if second != first and (counts[word] >> second) & U64(2) == U64(0):
            counts[word] += U64(1) << second


@kernel
def _fields(mixed, size):
    return mixed & U64(size - 1), (mixed >> U64(54)) & U64(62), (mixed >> U64(48)) & U64(62)


@kernel
def _repeats(counts, value):
    word, first, second = _fields(mix(U64(value)), len(counts))
    return ((counts[word] >> first) & (counts[word] >> second)) & U64(2) != U64(0)


@kernel
def mark_repeats(hashes, counts, repeats):
    """Write whether each hash may repeat; repeats : bool."""
    for i in range(len(hashes)):
        repeats[i] = _repeats(counts, hashes[i])


@kernel
def select_pieces(data, offsets, anchors, counts, reach, edges, characters):
    """Choose the anchors that may repeat, and the text around them.

    anchors : places, hashes and ends by document, of `find_anchors`; the chosen replace the first of both. reach :
    characters before and behind the place. edges : int64, a row for each piece: its document, where it starts and stops
    in data, the characters of the document before it, the anchors up to its end. characters : int64 by document,
    written here. Return the number of pieces, and of anchors.
    """
    places, hashes, ends = anchors
    anchor = count = chosen = 0
    for document in range(len(offsets) - 1):
        begin, stop, first, last = offsets[document], offsets[document + 1], count, NONE
        while anchor < ends[document]:
            place = places[anchor]
            if _repeats(counts, hashes[anchor]):
                # A character is a byte or more: closer ones are in one piece, wherever it starts and stops.
                if last < 0 or place - last > reach[0] + reach[1]:
                    start = retreat(data, place, begin, reach[0])
                    if last >= 0:
                        edges[count - 1, 2] = advance(data, last, stop, reach[1])[0]
                    if last < 0 or start > edges[count - 1, 2]:
                        edges[count, 0], edges[count, 1] = document, start
                        count += 1
                last = place
                places[chosen], hashes[chosen] = place, hashes[anchor]
                chosen += 1
                edges[count - 1, 4] = chosen
            anchor += 1
        if last >= 0:
            edges[count - 1, 2] = advance(data, last, stop, reach[1])[0]
        seen, total = begin, 0
        for piece in range(first, count):
            total += count_characters(data, seen, edges[piece, 1])
            seen, edges[piece, 3] = edges[piece, 1], total
        characters[document] = total + count_characters(data, seen, stop)
    return count, chosen


@kernel
def hash_around(text, starts, ends, span, places, is_hashed, length, size, contexts):
    """Hash the blocks of characters around anchors: four bits for each side up to the end of each block.

    A window of `length` characters has so many besides those whose bytes are hashed, and a block may be incomplete at
    each of its ends. So anchors that share one have equal blocks, before and behind, as many as the highest bits tell.
    starts : int64, of the pieces of the text, and the end of the last; ends : int64, the anchors up to the end of each.
    span : pieces, first and stop. is_hashed : bool, anchors of groups of more than FEW. contexts : uint64
    (num_anchors, 2), written: what is before each anchor, the nearest block in the lowest bits, and what is behind it;
    0 for a block that is not in the piece, and never 1; _ANY for anchors that are not hashed.
    """
    anchor = ends[span[0] - 1] if span[0] else np.int64(0)
    for piece in range(span[0], span[1]):
        begin, end = starts[piece], starts[piece + 1]
        low = high = NONE  # what the last context is of, if all its blocks are in the piece
        apart, repeats = NONE, False
        while anchor < ends[piece]:
            behind = places[anchor]
            if not is_hashed[anchor]:
                contexts[anchor, 0] = contexts[anchor, 1] = _ANY
                low, high, anchor = NONE, NONE, anchor + 1
                continue
            if high >= 0:
                before, apart = apart, behind - places[anchor - 1]
                repeats = _recurs(text, low, high, end, apart, repeats and apart == before)
                if repeats:
                    contexts[anchor, 0], contexts[anchor, 1] = contexts[anchor - 1, 0], contexts[anchor - 1, 1]
                    low, high, anchor = low + apart, high + apart, anchor + 1
                    continue
            before = advance(text, behind + 1 - size, behind, 0)[0]
            rest = length - count_characters(text, before, behind)
            width = (rest + _BLOCKS + 3) // (_BLOCKS + 2)
            one = other = U64((rest - width + 1) // width) << U64(60)
            state, low, high = U64(0), NONE, NONE
            for block in range(_BLOCKS):
                start = retreat(text, before, begin, width)
                if start == begin and count_characters(text, start, before) < width:
                    break
                state, before = _extend(text, state, start, before), start
                one |= max(U64(2), state >> U64(60)) << U64(4 * block)
            state = U64(0)
            for block in range(_BLOCKS):
                stop, missing = advance(text, behind, end, width)
                if missing:
                    break
                state, behind = _extend(text, state, behind, stop), stop
                other |= max(U64(2), state >> U64(60)) << U64(4 * block)
            contexts[anchor, 0], contexts[anchor, 1] = one, other
            if _nearest(one, _BLOCKS) != _FEWER and _nearest(other, _BLOCKS) != _FEWER:
                low, high = before, behind
            anchor += 1


@kernel
def _extend(text, state, start, stop):
    """Return the state of a hash behind a block; of a long one, the first and the last 8 bytes count."""
    if stop - start < 8:
        return (state ^ _hash(text, start, stop)) * _BASE
    return fold_product(load_u64(text, start) ^ state, load_u64(text, stop - 8) ^ _BASE)


@kernel
def _recurs(text, start, stop, end, apart, before):
    """Return whether the text of a range is also so far behind it. before : whether it is so far before it."""
    first = max(start, stop - apart) if before else start  # in a run of anchors, the bytes at the end tell it
    return stop + apart <= end and common_after(text, first, first + apart, stop - first) == stop - first


@kernel
def asked(context):
    """Return a context in which a block that is not in the piece is 1, as in no other context."""
    known = context | context >> U64(1)
    return context | (~(known | known >> U64(2)) & U64(0x1111111111111111))


@kernel
def may_share(before, behind, other):
    """Return whether anchors have enough equal blocks. before, behind : of `asked`; other : a context."""
    left, right = before ^ other[0], behind ^ other[1]
    return (count_trailing_zeros(left) >> 2) + (count_trailing_zeros(right) >> 2) >= np.int64(before >> U64(60))


@kernel(allocates=True)
def connect_around(offsets, members, contexts, parents):
    """Connect the anchors of each group that have three quarters of the needed blocks in common.

    offsets : int64, where the groups begin, and the end of the last, in members : uint32, anchors. contexts : of
    `hash_around`. parents : uint32 (num_members,), a forest, each its own parent; written.
    """
    most = 2
    for group in range(len(offsets) - 1):
        most = max(most, offsets[group + 1] - offsets[group])
    (keys, occupied), left, right = _table(most), np.empty(most, np.int64), np.empty(most, np.int64)
    for group in range(len(offsets) - 1):
        first, stop, slots = offsets[group], offsets[group + 1], 2
        if stop - first <= FEW:
            parents[first:stop] = first
            continue
        while slots < 2 * (stop - first):
            slots *= 2
        quarter = np.int64(contexts[members[first], 0] >> U64(60)) + 1 >> 2
        for part in range(4):
            before, behind = part * quarter, (3 - part) * quarter
            occupied[:slots] = FREE
            links = 0
            for i in range(first, stop):
                if i > first and _are_equal(contexts[members[i - 1]], contexts[members[i]]):
                    left[links], right[links] = i - 1, i
                    links += part == 0
                    continue
                one, other = _nearest(contexts[members[i], 0], before), _nearest(contexts[members[i], 1], behind)
                if one == _FEWER or other == _FEWER:
                    continue
                key = mix(mix(one) + other)
                slot = find_slot(keys[:slots], occupied, FREE, key)
                if occupied[slot] == FREE:
                    keys[slot], occupied[slot] = key, i - first
                else:
                    left[links], right[links] = first + occupied[slot], i
                    links += 1
            connect(parents, left[:links], right[:links])


@kernel
def _are_equal(one, other):
    return one[0] == other[0] and one[1] == other[1]


@kernel
def _nearest(context, count):
    """Return so many blocks of one side of a context, _FEWER if it has not so many."""
    kept = context & (U64(1) << U64(4 * count)) - U64(1)
    return _FEWER if count > 0 and kept >> U64(4 * count - 4) == 0 else kept


class Around(NamedTuple):
    """The text around anchors.

    starts, stops : int64, of a window; before : int64, its characters up to the place. sums : uint64, of its bytes
    times powers of _BASE, by which a hash rolls: of its first byte `lefts`, behind its last `rights`. inverses : of
    lefts.
    """

    starts: np.ndarray
    stops: np.ndarray
    before: np.ndarray
    sums: np.ndarray
    lefts: np.ndarray
    rights: np.ndarray
    inverses: np.ndarray


@kernel(allocates=True)
def connect_equal(text, starts, pieces, places, length, size, parents, leads):
    """Connect the anchors of a group around which some window of `length` characters is equal.

    starts : int64, of the pieces of the text, and the end of the last. By anchor: pieces : int64, its piece; places :
    int64, the last byte that is hashed. parents : uint32 (num_anchors,), a forest, each its own parent; written. leads
    : bool, all false; written: whether another anchor has some window of each, and none before it has that.
    """
    chosen = _connect_same(text, starts, pieces, places, length, parents, leads)
    if len(chosen) > 1:
        bounds = np.empty((len(chosen), 2), np.int64)
        for i, member in enumerate(chosen):
            bounds[i, 0], bounds[i, 1] = starts[pieces[member]], starts[pieces[member] + 1]
        _connect_windows(text, bounds, places[chosen], length, size, chosen, parents, leads)
    flatten(parents)


@kernel(allocates=True)
def _connect_same(text, piece_starts, pieces, places, length, parents, leads):
    """Connect the anchors with the same text all around, of which one is enough; return the first of each."""
    count = len(places)
    (keys, occupied), different = _table(count), 0
    occupied[:] = FREE
    chosen, starts, stops = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    one, start, before, stop, repeats = NONE, NONE, NONE, NONE, False
    for i in range(count):
        begin, end = piece_starts[pieces[i]], piece_starts[pieces[i] + 1]
        apart = places[i] - places[i - 1] if i else np.int64(0)
        whole = before == length and pieces[i] == pieces[i - 1]
        same = repeats and apart == places[i - 1] - places[i - 2]
        repeats = whole and _recurs(text, start, stop, end, apart, same)
        if repeats:
            start, stop, parents[i] = start + apart, stop + apart, one
            leads[one] = True
            continue
        start = retreat(text, places[i] + 1, begin, length)
        before = count_characters(text, start, places[i] + 1)
        stop = advance(text, places[i] + 1, end, length)[0]
        key = mix(_hash(text, start, stop) + U64(before))
        slot = find_slot(keys, occupied, FREE, key)
        if occupied[slot] == FREE:
            one, keys[slot], occupied[slot] = i, key, different
            chosen[different], starts[different], stops[different] = i, start, stop
            different += 1
        else:
            rank = occupied[slot]
            one, number = chosen[rank], stop - start
            is_same = stops[rank] - starts[rank] == number
            is_same = is_same and common_after(text, starts[rank], start, number) == number
            leads[one if is_same else i], parents[i] = True, one
    return chosen[:different]


@kernel(allocates=True)
def _connect_windows(text, bounds, places, length, size, members, parents, leads):
    """Connect anchors around which some window is equal.

    bounds : int64 (num_anchors, 2), where the piece of each starts and stops. members : their numbers, in parents and
    leads.
    """
    count = len(places)
    around, (keys, occupants) = _windows(text, bounds, places, length), _table(count)
    left, right, sites = np.empty(count, np.uint32), np.empty(count, np.uint32), np.zeros(count, np.int64)
    for before in range(length, 0, -1):
        occupants[:] = FREE
        links = 0
        for i in range(count):
            if _has_window(text, around, i, before, places[i] + 1 - size, bounds[i, 1]):
                slot = _slot_of(text, around, sites, i, keys, occupants)
                if occupants[slot] == FREE:
                    occupants[slot] = i
                else:
                    left[links], right[links] = members[occupants[slot]], members[i]
                    leads[left[links]] = True
                    links += 1
        connect(parents, left[:links], right[:links])


@kernel(allocates=True)
def _windows(text, bounds, places, length):
    """Return the first window of each anchor; before : 0 if it has none."""
    count = len(places)
    starts, stops, befores = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    sums, rights = np.zeros(count, U64), np.ones(count, U64)
    around = Around(starts, stops, befores, sums, np.ones(count, U64), rights, np.ones(count, U64))
    for i in range(count):
        around.starts[i] = retreat(text, places[i] + 1, bounds[i, 0], length)
        around.before[i] = count_characters(text, around.starts[i], places[i] + 1)
        around.stops[i], missing = advance(text, around.starts[i], bounds[i, 1], length)
        if missing:
            around.before[i] = 0
        _add_bytes(text, around, i, around.starts[i], around.stops[i])
    return around


@kernel
def _add_bytes(text, around, i, start, stop):
    for place in range(start, stop):
        around.sums[i] += (U64(text[place]) + U64(1)) * around.rights[i]
        around.rights[i] *= _BASE


@kernel
def _has_window(text, around, i, before, last, stop):
    """Move the window of an anchor so that it has `before` characters up to the place; return whether there is one.

    last : where it must begin at the latest; stop : where its piece ends. Requires: `before` falls by 1.
    """
    if around.before[i] > before:
        start, end = around.starts[i], around.stops[i]
        around.starts[i] = advance(text, start, stop, 1)[0]
        around.stops[i], missing = advance(text, end, stop, 1)
        around.before[i] = 0 if missing or around.starts[i] > last else before
        for place in range(start, around.starts[i]):
            around.sums[i] -= (U64(text[place]) + U64(1)) * around.lefts[i]
            around.lefts[i] *= _BASE
            around.inverses[i] *= _INVERSE
        _add_bytes(text, around, i, end, around.stops[i])
    return around.before[i] == before


@kernel(allocates=True)
def _table(count):
    """Return the keys and the occupants of a table for so many."""
    slots = 2
    while slots < 2 * count:
        slots *= 2
    return np.empty(slots, U64), np.empty(slots, np.int32)


@kernel(allocates=True)
def mark_common(text, offsets, bounds, places, owners, sites, needed, length, size, ranges):
    """Find the windows around anchors that enough documents of a site have.

    offsets : int64, where the anchors of each group begin, and the end of the last. By anchor: bounds : int64
    (num_anchors, 2), where its piece starts and stops; places : int64, the last byte that is hashed; owners : int64,
    its document, rising in each group; sites : int64, of the document; needed : int64, the documents of the site that
    must have a window. ranges : int64 (num_anchors, 3), written: start and stop of all such windows in the text, and
    the greatest number of documents; zeros where there is none.
    """
    for group in range(len(offsets) - 1):
        these = slice(offsets[group], offsets[group + 1])
        _mark_group(
            text, bounds[these], places[these], owners[these], sites[these], needed[these], length, size, ranges[these]
        )


@kernel(allocates=True)
def _mark_group(text, bounds, places, owners, sites, needed, length, size, ranges):
    count = len(places)
    around, (keys, occupants) = _windows(text, bounds, places, length), _table(count)
    last_owner, num_owners, slots = (
        np.empty(len(keys), np.int64),
        np.empty(len(keys), np.int64),
        np.empty(count, np.int64),
    )
    for before in range(length, 0, -1):
        occupants[:] = FREE
        for i in range(count):
            slots[i] = NONE
            if _has_window(text, around, i, before, places[i] + 1 - size, bounds[i, 1]):
                slot = _slot_of(text, around, sites, i, keys, occupants)
                if occupants[slot] == FREE:
                    occupants[slot], last_owner[slot], num_owners[slot] = i, NONE, 0
                num_owners[slot] += last_owner[slot] != owners[i]
                last_owner[slot], slots[i] = owners[i], slot
        for i in range(count):
            if slots[i] >= 0 and num_owners[slots[i]] >= needed[i]:
                if ranges[i, 2] == 0:
                    ranges[i, 0] = around.starts[i]
                ranges[i, 1], ranges[i, 2] = around.stops[i], max(ranges[i, 2], num_owners[slots[i]])


@kernel
def _slot_of(text, around, sites, i, keys, occupants):
    """Return the slot of the window of an anchor: that of the same text and site, or a free one, whose key is set."""
    start, size, mask = around.starts[i], around.stops[i] - around.starts[i], len(keys) - 1
    key = mix(mix(around.sums[i] * around.inverses[i]) + U64(sites[i]))
    slot = np.int64(key & U64(mask))
    while occupants[slot] != FREE:
        other = occupants[slot]
        is_known = keys[slot] == key and sites[other] == sites[i] and around.stops[other] - around.starts[other] == size
        if is_known and common_after(text, start, around.starts[other], size) == size:
            break
        slot = (slot + 1) & mask
    keys[slot] = key
    return slot


@kernel
def _hash(text, start, stop):
    return hash_at(address_of(text) + start, stop - start, start)
