"""Group the anchors of passages by the text around them, and find the windows that many documents
of a site have.

Anchors of one hash are compared by the blocks of characters around them, and large groups by
windows of all characters of a passage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.decisions import connect, flatten
from neardup.kernels.intrinsics import address_of, count_trailing_zeros, fold_product, load_u64
from neardup.kernels.mixing import find_slot, mix
from neardup.kernels.strings import advance, common_after, count_characters, hash_at, retreat

NONE, FREE = I64(-1), np.int32(-1)
_BASE = U64(0xD6E8FEB86659FD93)  # random and odd, so that it has an inverse modulo 2**64
_INVERSE = U64(pow(int(_BASE), -1, 1 << 64))
_BLOCKS, _FEWER = 15, U64(1)  # on each side of an anchor; no blocks are 1
FEW, _ANY = (
    4,
    U64(0xFFFFFFFFFFFFFFFF),
)  # anchors that are compared without blocks, and the context of such


@kernel
def hash_around(text, starts, ends, span, places, is_hashed, length, size, contexts):  # noqa: C901
    """Hash the blocks of characters around anchors: four bits for each side up to the end of each
    block.

    A window of `length` characters has so many besides those whose bytes are hashed, and a block
    may be incomplete at each of its ends. So anchors that share one have equal blocks, before and
    behind, as many as the highest bits tell. starts : int64, of the pieces of the text, and the end
    of the last; ends : int64, the anchors up to the end of each. span : pieces, first and stop.
    is_hashed : bool, anchors of groups of more than FEW. contexts : uint64 (num_anchors, 2),
    written: what is before each anchor, the nearest block in the lowest bits, and what is behind
    it; 0 for a block that is not in the piece, and never 1; _ANY for anchors that are not hashed.
    """
    anchor = ends[span[0] - 1] if span[0] else I64(0)
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
                    contexts[anchor, 0], contexts[anchor, 1] = (
                        contexts[anchor - 1, 0],
                        contexts[anchor - 1, 1],
                    )
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
    """Return the state of a hash behind a block; of a long one, the first and the last 8 bytes
    count.
    """
    if stop - start < 8:
        return (state ^ _hash(text, start, stop)) * _BASE
    return fold_product(load_u64(text, start) ^ state, load_u64(text, stop - 8) ^ _BASE)


@kernel
def _recurs(text, start, stop, end, apart, before):
    """Return whether the text of a range is also so far behind it. before : whether it is so far
    before it.
    """
    first = (
        max(start, stop - apart) if before else start
    )  # in a run of anchors, the bytes at the end tell it
    return (
        stop + apart <= end
        and common_after(text, first, first + apart, stop - first) == stop - first
    )


@kernel
def asked(context):
    """Return a context in which a block that is not in the piece is 1, as in no other context."""
    known = context | context >> U64(1)
    return context | (~(known | known >> U64(2)) & U64(0x1111111111111111))


@kernel
def may_share(before, behind, other):
    """Return whether anchors have enough equal blocks. before, behind : of `asked`; other : a
    context.
    """
    left, right = before ^ other[0], behind ^ other[1]
    return (count_trailing_zeros(left) >> 2) + (count_trailing_zeros(right) >> 2) >= I64(
        before >> U64(60)
    )


@kernel(allocates=True)
def connect_around(offsets, members, contexts, parents):
    """Connect the anchors of each group that have three quarters of the needed blocks in common.

    offsets : int64, where the groups begin, and the end of the last, in members : uint32, anchors.
    contexts : of `hash_around`. parents : uint32 (num_members,), a forest, each its own parent;
    written.
    """
    most = 2
    for group in range(len(offsets) - 1):
        most = max(most, offsets[group + 1] - offsets[group])
    (keys, occupied), left, right = _table(most), np.empty(most, I64), np.empty(most, I64)
    for group in range(len(offsets) - 1):
        first, stop, slots = offsets[group], offsets[group + 1], 2
        if stop - first <= FEW:
            parents[first:stop] = first
            continue
        while slots < 2 * (stop - first):
            slots *= 2
        quarter = I64(contexts[members[first], 0] >> U64(60)) + 1 >> 2
        for part in range(4):
            before, behind = part * quarter, (3 - part) * quarter
            occupied[:slots] = FREE
            links = 0
            for i in range(first, stop):
                if i > first and _are_equal(contexts[members[i - 1]], contexts[members[i]]):
                    left[links], right[links] = i - 1, i
                    links += part == 0
                    continue
                one, other = (
                    _nearest(contexts[members[i], 0], before),
                    _nearest(contexts[members[i], 1], behind),
                )
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

    starts, stops : int64, of a window; before : int64, its characters up to the place. sums :
    uint64, of its bytes times powers of _BASE, by which a hash rolls: of its first byte `lefts`,
    behind its last `rights`. inverses : of lefts.
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

    starts : int64, of the pieces of the text, and the end of the last. By anchor: pieces : int64,
    its piece; places : int64, the last byte that is hashed. parents : uint32 (num_anchors,), a
    forest, each its own parent; written. leads : bool, all false; written: whether another anchor
    has some window of each, and none before it has that.
    """
    chosen = _connect_same(text, starts, pieces, places, length, parents, leads)
    bounds = np.empty((len(chosen), 2), I64)
    for i, member in enumerate(chosen):
        bounds[i, 0], bounds[i, 1] = starts[pieces[member]], starts[pieces[member] + 1]
    meeting = _meeting(text, bounds, places[chosen], length)
    chosen = chosen[meeting]
    _connect_windows(text, bounds[meeting], places[chosen], length, size, chosen, parents, leads)
    flatten(parents)


@kernel(allocates=True)
def _connect_same(text, piece_starts, pieces, places, length, parents, leads):
    """Connect the anchors with the same text all around, of which one is enough; return the first
    of each.
    """
    count = len(places)
    (keys, occupied), different = _table(count), 0
    occupied[:] = FREE
    chosen, starts, stops = np.empty(count, I64), np.empty(count, I64), np.empty(count, I64)
    one, start, before, stop, repeats = NONE, NONE, NONE, NONE, False
    for i in range(count):
        begin, end = piece_starts[pieces[i]], piece_starts[pieces[i] + 1]
        apart = places[i] - places[i - 1] if i else I64(0)
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
def _meeting(text, bounds, places, length):
    """Return which anchors may have a window that another has: those with an equal part of one, at
    an equal distance.

    bounds : as of `_connect_windows`. A window contains the part that begins less than a step
    behind its start, at one of the distances that are looked at, and is a step shorter.
    """
    (keys, occupants), meets = _table(len(places)), np.zeros(len(places), np.bool_)
    step = max(1, length // 8)
    for before in range(1, length + 1, step):
        occupants[:] = FREE
        for i in range(len(places)):
            start = retreat(text, places[i] + 1, bounds[i, 0], before)
            stop, missing = advance(text, start, bounds[i, 1], length - step + 1)
            if missing:
                continue
            key = mix(_hash(text, start, stop))
            slot = find_slot(keys, occupants, FREE, key)
            if occupants[slot] == FREE:
                keys[slot], occupants[slot] = key, i
            else:
                meets[i] = meets[occupants[slot]] = True
    return np.flatnonzero(meets)


@kernel(allocates=True)
def _connect_windows(text, bounds, places, length, size, members, parents, leads):
    """Connect anchors around which some window is equal.

    bounds : int64 (num_anchors, 2), where the piece of each starts and stops. members : their
    numbers, in parents and leads.
    """
    count = len(places)
    around, (keys, occupants) = _windows(text, bounds, places, length), _table(count)
    left, right, sites = np.empty(count, U32), np.empty(count, U32), np.zeros(count, I64)
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
    starts, stops, befores = np.empty(count, I64), np.empty(count, I64), np.empty(count, I64)
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
    """Move the window of an anchor so that it has `before` characters up to the place; return
    whether there is one.

    last : where it must begin at the latest; stop : where its piece ends. Requires: `before` falls
    by 1.
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

    offsets : int64, where the anchors of each group begin, and the end of the last. By anchor:
    bounds : int64 (num_anchors, 2), where its piece starts and stops; places : int64, the last byte
    that is hashed; owners : int64, its document, rising in each group; sites : int64, of the
    document; needed : int64, the documents of the site that must have a window. ranges : int64
    (num_anchors, 3), written: start and stop of all such windows in the text, and the greatest
    number of documents; zeros where there is none.
    """
    for group in range(len(offsets) - 1):
        these = slice(offsets[group], offsets[group + 1])
        these = offsets[group] + _meeting(text, bounds[these], places[these], length)
        found = np.zeros((len(these), 3), I64)
        _mark_group(
            text,
            bounds[these],
            places[these],
            owners[these],
            sites[these],
            needed[these],
            length,
            size,
            found,
        )
        for i, anchor in enumerate(these):
            ranges[anchor] = found[i]


@kernel(allocates=True)
def _mark_group(text, bounds, places, owners, sites, needed, length, size, ranges):
    count = len(places)
    around, (keys, occupants) = _windows(text, bounds, places, length), _table(count)
    last_owner, num_owners, slots = (
        np.empty(len(keys), I64),
        np.empty(len(keys), I64),
        np.empty(count, I64),
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
                ranges[i, 1], ranges[i, 2] = (
                    around.stops[i],
                    max(ranges[i, 2], num_owners[slots[i]]),
                )


@kernel
def _slot_of(text, around, sites, i, keys, occupants):
    """Return the slot of the window of an anchor: that of the same text and site, or a free one,
    whose key is set.
    """
    start, size, mask = around.starts[i], around.stops[i] - around.starts[i], len(keys) - 1
    key = mix(mix(around.sums[i] * around.inverses[i]) + U64(sites[i]))
    slot = I64(key & U64(mask))
    while occupants[slot] != FREE:
        other = occupants[slot]
        is_known = (
            keys[slot] == key
            and sites[other] == sites[i]
            and around.stops[other] - around.starts[other] == size
        )
        if is_known and common_after(text, start, around.starts[other], size) == size:
            break
        slot = (slot + 1) & mask
    keys[slot] = key
    return slot


@kernel
def _hash(text, start, stop):
    return hash_at(address_of(text) + start, stop - start, start)
