"""Group the anchors of passages by the text around them, and find the windows that many documents
of a site have.

Anchors of one hash are compared by the blocks of characters around them, and large groups by all
windows of a passage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.decisions import connect, flatten
from neardup.kernels.intrinsics import address_of, count_trailing_zeros, fold_product, load_u64
from neardup.kernels.mixing import find_slot, max_length, mix
from neardup.kernels.strings import advance, common_after, count_characters, hash_at, retreat

NONE = I64(-1)
FREE = np.int32(-1)
_BASE = U64(0xD6E8FEB86659FD93)  # random and odd, so that it has an inverse modulo 2**64
_INVERSE = U64(pow(int(_BASE), -1, 1 << 64))
_BLOCKS = 15  # on each side of an anchor
_FEWER = U64(1)  # instead of blocks, where a side has fewer; a block is never 1
FEW = 4  # anchors of a group that are compared without blocks
# The columns of contexts. Both are in one array, since a comparison reads both: one line of cache.
BEFORE = 0
AFTER = 1
_ANY = U64(0xFFFFFFFFFFFFFFFF)  # their context


class _Context(NamedTuple):
    """The blocks before and after an anchor, uint64; start, stop : the text of all blocks, NONE if
    the piece lacks some.
    """

    before: int
    after: int
    start: int
    stop: int


class _Around(NamedTuple):
    """The text [start, stop) around an anchor. distance : the bytes since the anchor before it.
    repeats : whether it equals the text around that anchor.
    """

    start: int
    stop: int
    distance: int
    repeats: bool


@kernel
def hash_around(pieces, span, positions, is_hashed, length, size, contexts):
    """Hash the blocks of characters around anchors: four bits for each side up to the end of each
    block.

    A window of `length` characters has a fixed number of characters besides the hashed bytes, and
    may have an incomplete block at each end. So anchors that share a window have equal blocks,
    before and after, as many as the highest four bits of a context count.

        bits of a context   | needed | block 14 | ... | block 1 | block 0 |
                            63     60                           3       0    nearest to the anchor

    pieces : as in kernels/passages.py. span : the first piece and the one after the last. positions
    : int64 by anchor, the last byte that is hashed. is_hashed : bool, anchors of groups of more
    than FEW. contexts : uint64 (num_anchors, 2), columns BEFORE and AFTER, written; 0 for a
    block that is not in the piece, and never 1; _ANY for anchors that are not hashed.
    """
    text = pieces.text
    for piece in range(span[0], span[1]):
        begin = pieces.starts[piece]
        end = pieces.starts[piece + 1]
        first = pieces.anchors[piece - 1] if piece else I64(0)
        around = _at(NONE, NONE)
        for anchor in range(first, pieces.anchors[piece]):
            if not is_hashed[anchor]:
                _write_context(contexts, anchor, _ANY, _ANY)
                around = _at(NONE, NONE)
                continue
            if around.stop >= 0:
                distance = positions[anchor] - positions[anchor - 1]
                around = _move_on(text, end, around, distance)
            if around.repeats:
                _repeat_context(contexts, anchor)
            else:
                context = _context_of(text, begin, end, positions[anchor], length, size)
                _write_context(contexts, anchor, context.before, context.after)
                around = _at(context.start, context.stop)


@kernel
def _at(start, stop):
    """Return the text around an anchor that repeats no earlier one; NONE if it is not known."""
    return _Around(start=start, stop=stop, distance=NONE, repeats=False)


@kernel
def _move_on(text, end, around, distance):
    """Return the text around the next anchor if it repeats the text around the last one; otherwise
    the last one, with `repeats` unset.

    A text of period `distance`, which contains many anchors at this distance, is compared in linear
    time: each comparison is of the bytes at the end.
    """
    is_periodic = around.repeats and distance == around.distance
    if _recurs(text, around.start, around.stop, end, distance, is_periodic):
        return _Around(
            start=around.start + distance,
            stop=around.stop + distance,
            distance=distance,
            repeats=True,
        )
    return _at(around.start, around.stop)


@kernel
def _write_context(contexts, anchor, before, after):
    contexts[anchor, BEFORE] = before
    contexts[anchor, AFTER] = after


@kernel
def _repeat_context(contexts, anchor):
    """Set the context of an anchor to the context of the anchor before it."""
    contexts[anchor, BEFORE] = contexts[anchor - 1, BEFORE]
    contexts[anchor, AFTER] = contexts[anchor - 1, AFTER]


@kernel
def _context_of(text, begin, end, position, length, size):
    """Hash the blocks around one anchor in the piece [begin, end)."""
    hashed = advance(text, position + 1 - size, position, 0)[0]  # the first whole character
    rest = length - count_characters(text, hashed, position)
    width = (rest + _BLOCKS + 3) // (_BLOCKS + 2)
    needed = U64((rest - width + 1) // width) << U64(60)
    blocks, start = _blocks_before(text, begin, hashed, width)
    before = needed | blocks
    blocks, stop = _blocks_after(text, end, position, width)
    after = needed | blocks
    if _nearest(before, _BLOCKS) == _FEWER or _nearest(after, _BLOCKS) == _FEWER:
        start = NONE
        stop = NONE
    return _Context(before=before, after=after, start=start, stop=stop)


@kernel
def _blocks_before(text, begin, position, width):
    """Return the blocks of `width` characters before a position, and the start of the last one."""
    blocks = U64(0)
    start = position
    state = U64(0)
    for block in range(_BLOCKS):
        stop = start
        start = retreat(text, stop, begin, width)
        if start == begin and count_characters(text, start, stop) < width:
            break
        state = _extend(text, state, start, stop)
        # Four bits of a state that covers the nearer blocks, too.
        blocks |= max(U64(2), state >> U64(60)) << U64(4 * block)
    return blocks, start


@kernel
def _blocks_after(text, end, position, width):
    """Return the blocks of `width` characters after a position, and the end of the last one."""
    blocks = U64(0)
    start = position
    state = U64(0)
    for block in range(_BLOCKS):
        stop, missing = advance(text, start, end, width)
        if missing:
            break
        state = _extend(text, state, start, stop)
        blocks |= max(U64(2), state >> U64(60)) << U64(4 * block)
        start = stop
    return blocks, start


@kernel
def _extend(text, state, start, stop):
    """Return the state of a hash after a block; of a long block, the first and last 8 bytes
    count.
    """
    if stop - start < 8:
        return (state ^ _hash(text, start, stop)) * _BASE
    return fold_product(load_u64(text, start) ^ state, load_u64(text, stop - 8) ^ _BASE)


@kernel
def _recurs(text, start, stop, end, distance, is_periodic):
    """Return whether the text of a range recurs at a distance after it.

    is_periodic : whether it is known to recur at this distance before it: then the bytes at its end
    decide.
    """
    first = max(start, stop - distance) if is_periodic else start
    size = stop - first
    return stop + distance <= end and common_after(text, first, first + distance, size) == size


@kernel
def asked(context):
    """Return a context in which a block that is not in the piece is 1, as in no other context."""
    known = context | context >> U64(1)
    return context | (~(known | known >> U64(2)) & U64(0x1111111111111111))


@kernel
def may_share(before, after, other):
    """Return whether anchors have enough equal blocks. before, after : of `asked`; other : a
    context.
    """
    num_before = count_trailing_zeros(before ^ other[BEFORE]) >> 2  # four bits a block
    num_after = count_trailing_zeros(after ^ other[AFTER]) >> 2
    return num_before + num_after >= I64(before >> U64(60))


class _Table(NamedTuple):
    """An open-addressing table. keys : uint64; occupants : int32, or FREE."""

    keys: np.ndarray
    occupants: np.ndarray


class _Links(NamedTuple):
    """Pairs to connect. left, right : as many as are used."""

    left: np.ndarray
    right: np.ndarray


@kernel(allocates=True)
def connect_around(offsets, members, contexts, parents):
    """Connect the anchors of each group that have three quarters of the needed blocks in common.

    offsets : int64, the begin of each group, and the end of the last, in members : uint32, anchors.
    contexts : of `hash_around`. parents : uint32 (num_members,), a forest, each its own parent;
    written.
    """
    max_size = max(2, max_length(offsets))
    whole_table = _table(max_size)
    links = _Links(left=np.empty(max_size, I64), right=np.empty(max_size, I64))
    for group in range(len(offsets) - 1):
        first = offsets[group]
        stop = offsets[group + 1]
        if stop - first <= FEW:
            parents[first:stop] = first
            continue
        num_slots = _num_slots(stop - first)
        table = _Table(
            keys=whole_table.keys[:num_slots], occupants=whole_table.occupants[:num_slots]
        )
        _connect_group(contexts, members, first, stop, table, links, parents)


@kernel
def _connect_group(contexts, members, first, stop, table, links, parents):
    """Connect members[first:stop] that share three quarters of the needed blocks: the nearest
    blocks before and after, divided in each of four ways.
    """
    needed = I64(contexts[members[first], BEFORE] >> U64(60))
    quarter = (needed + 1) // 4
    for part in range(4):
        num_before = part * quarter
        num_after = (3 - part) * quarter
        num_links = _list_links(contexts, members[first:stop], num_before, num_after, table, links)
        for i in range(num_links):
            links.left[i] += first
            links.right[i] += first
        connect(parents, links.left[:num_links], links.right[:num_links])


@kernel
def _list_links(contexts, members, num_before, num_after, table, links):
    """List pairs of members with equal nearest blocks; return the number of pairs."""
    table.occupants[:] = FREE
    num_links = 0
    for i in range(len(members)):
        context = contexts[members[i]]
        if i > 0 and _are_equal(contexts[members[i - 1]], context):
            if num_before == 0:  # once is enough
                links.left[num_links] = i - 1
                links.right[num_links] = i
                num_links += 1
            continue
        before = _nearest(context[BEFORE], num_before)
        after = _nearest(context[AFTER], num_after)
        if before == _FEWER or after == _FEWER:
            continue
        key = mix(mix(before) + after)
        slot = find_slot(table.keys, table.occupants, FREE, key)
        if table.occupants[slot] == FREE:
            table.keys[slot] = key
            table.occupants[slot] = i
        else:
            links.left[num_links] = table.occupants[slot]
            links.right[num_links] = i
            num_links += 1
    return num_links


@kernel
def _are_equal(context, other):
    return context[BEFORE] == other[BEFORE] and context[AFTER] == other[AFTER]


@kernel
def _nearest(context, count):
    """Return the `count` nearest blocks of one side of a context, _FEWER if it has fewer."""
    mask = (U64(1) << U64(4 * count)) - U64(1)
    kept = context & mask
    lacks_last = count > 0 and kept >> U64(4 * count - 4) == 0
    return _FEWER if lacks_last else kept


@kernel(allocates=True)
def _table(count):
    """Return a table with room for `count` keys, whose slots are not set."""
    num_slots = _num_slots(count)
    return _Table(keys=np.empty(num_slots, U64), occupants=np.empty(num_slots, np.int32))


@kernel
def _num_slots(count):
    """Return the slots of a table that is at most half full with `count` keys, a power of two."""
    num_slots = 2
    while num_slots < 2 * count:
        num_slots *= 2
    return num_slots


class _Texts(NamedTuple):
    """Different texts around anchors, numbered in `table` by their hash. By number, int64: anchors
    : the first anchor of the text; starts, stops : its range.
    """

    table: _Table
    anchors: np.ndarray
    starts: np.ndarray
    stops: np.ndarray


class _Group(NamedTuple):
    """The anchors of a group. starts : int64, of the pieces of the text, and the end of the last.
    By anchor: pieces : int64, its piece; positions : int64, the last byte that is hashed.
    """

    starts: np.ndarray
    pieces: np.ndarray
    positions: np.ndarray


class _Windows(NamedTuple):
    """A window of each anchor, which moves from the earliest to the latest.

    starts, stops : int64; before : int64, its characters up to the position, 0 if there is no
    window; latest : int64, the last possible start; ends : int64, the end of its piece. A hash
    rolls with it, by powers of _BASE, uint64:

        sums = sum of (byte + 1) * power      the first byte has the power `lefts`,
                                              the byte after the last one `rights`

    inverses : of lefts: sums * inverses depends on the bytes of the window alone.
    """

    starts: np.ndarray
    stops: np.ndarray
    before: np.ndarray
    latest: np.ndarray
    ends: np.ndarray
    sums: np.ndarray
    lefts: np.ndarray
    rights: np.ndarray
    inverses: np.ndarray


@kernel(allocates=True)
def connect_equal(text, starts, pieces, positions, length, size, parents, leads):
    """Connect the anchors of a group around which some window of `length` characters is equal.

    starts, pieces, positions : as in `_Group`. parents : uint32 (num_anchors,), a forest, each its
    own parent; written. leads : bool, all false; written: whether an anchor is the first with some
    window that another anchor has, too.
    """
    group = _Group(starts=starts, pieces=pieces, positions=positions)
    chosen = _connect_same(text, group, length, parents, leads)
    begins = starts[pieces[chosen]]
    ends = starts[pieces[chosen] + 1]
    meeting = _meeting(text, begins, ends, positions[chosen], length)
    chosen = chosen[meeting]
    members = _Members(
        begins=begins[meeting],
        ends=ends[meeting],
        positions=positions[chosen],
        numbers=chosen,
    )
    _connect_windows(text, members, length, size, parents, leads)
    flatten(parents)


@kernel(allocates=True)
def _connect_same(text, group, length, parents, leads):
    """Connect the anchors with the same text all around, since one of them is enough; return the
    first anchor of each text.
    """
    positions = group.positions
    texts = _no_texts(len(positions))
    num_texts = 0
    first = NONE  # the first anchor with the text of the last anchor
    around = _at(NONE, NONE)
    before = NONE  # its characters up to the anchor
    for anchor in range(len(positions)):
        piece = group.pieces[anchor]
        # A text that begins with its piece has fewer characters before the anchor; the text around
        # the next anchor has more, so it is not the same one.
        if before == length and piece == group.pieces[anchor - 1]:
            distance = positions[anchor] - positions[anchor - 1]
            around = _move_on(text, group.starts[piece + 1], around, distance)
            if around.repeats:
                parents[anchor] = first
                leads[first] = True
                continue
        around = _text_around(text, group, anchor, length)
        before = count_characters(text, around.start, positions[anchor] + 1)
        number = _enter_text(text, texts, num_texts, anchor, around, before)
        first = texts.anchors[number]
        if number == num_texts:
            num_texts += 1
        else:
            parents[anchor] = first
            # Another text with this hash is connected, too, which only makes the group larger. Its
            # windows may differ from all others, so it leads them.
            is_same = _is_same_text(text, texts, number, around)
            leads[first if is_same else anchor] = True
    return texts.anchors[:num_texts]


@kernel
def _text_around(text, group, anchor, length):
    """Return the text of `length` characters before and after an anchor, less at an end of its
    piece.
    """
    piece = group.pieces[anchor]
    after = group.positions[anchor] + 1
    start = retreat(text, after, group.starts[piece], length)
    stop = advance(text, after, group.starts[piece + 1], length)[0]
    return _at(start, stop)


@kernel(allocates=True)
def _no_texts(count):
    """Return room for `count` texts."""
    table = _table(count)
    table.occupants[:] = FREE
    return _Texts(
        table=table,
        anchors=np.empty(count, I64),
        starts=np.empty(count, I64),
        stops=np.empty(count, I64),
    )


@kernel
def _enter_text(text, texts, num_texts, anchor, around, before):
    """Return the number of the text around an anchor: `num_texts` if it is new, and entered.

    before : its characters up to the anchor.
    """
    table = texts.table
    # Equal text counts as the same only if the anchor is at the same position in it.
    key = mix(_hash(text, around.start, around.stop) + U64(before))
    slot = find_slot(table.keys, table.occupants, FREE, key)
    if table.occupants[slot] == FREE:
        table.keys[slot] = key
        table.occupants[slot] = num_texts
        texts.anchors[num_texts] = anchor
        texts.starts[num_texts] = around.start
        texts.stops[num_texts] = around.stop
    return I64(table.occupants[slot])


@kernel
def _is_same_text(text, texts, number, around):
    """Return whether the text of a number has the same bytes as the text around an anchor."""
    start = around.start
    size = around.stop - start
    other = texts.starts[number]
    return texts.stops[number] - other == size and common_after(text, other, start, size) == size


@kernel(allocates=True)
def _meeting(text, begins, ends, positions, length):
    """Return the anchors that may share a window: an equal part of it, at an equal distance.

    begins, ends, positions : as in `Common`. The parts are a step shorter than a window and begin
    at every step-th distance before the position, so a window contains one that begins less than a
    step after its start.
    """
    table = _table(len(positions))
    meets = np.zeros(len(positions), np.bool_)
    step = max(1, length // 8)  # eight passes; a smaller step finds fewer false anchors
    for before in range(1, length + 1, step):
        table.occupants[:] = FREE
        for i in range(len(positions)):
            start = retreat(text, positions[i] + 1, begins[i], before)
            stop, missing = advance(text, start, ends[i], length - step + 1)
            if missing:
                continue
            key = mix(_hash(text, start, stop))
            slot = find_slot(table.keys, table.occupants, FREE, key)
            if table.occupants[slot] == FREE:
                table.keys[slot] = key
                table.occupants[slot] = i
            else:
                meets[i] = True
                meets[table.occupants[slot]] = True
    return np.flatnonzero(meets)


class _Members(NamedTuple):
    """Anchors of a group. begins, ends, positions : as in `Common`; numbers : int64, in the
    group.
    """

    begins: np.ndarray
    ends: np.ndarray
    positions: np.ndarray
    numbers: np.ndarray


@kernel(allocates=True)
def _connect_windows(text, members, length, size, parents, leads):
    """Connect anchors around which some window is equal. parents, leads : by number."""
    count = len(members.positions)
    windows = _first_windows(text, members, length, size)
    table = _table(count)
    links = _Links(left=np.empty(count, U32), right=np.empty(count, U32))
    sites = np.zeros(count, I64)
    # A window is equal in two texts at one distance from the anchor: try one distance at a time.
    for before in range(length, 0, -1):
        table.occupants[:] = FREE
        num_links = 0
        for i in range(count):
            if not _has_window(text, windows, i, before):
                continue
            slot = _enter_window(text, windows, sites, i, table)
            if table.occupants[slot] == FREE:
                table.occupants[slot] = i
                continue
            other = members.numbers[table.occupants[slot]]
            leads[other] = True
            links.left[num_links] = other
            links.right[num_links] = members.numbers[i]
            num_links += 1
        connect(parents, links.left[:num_links], links.right[:num_links])


@kernel(allocates=True)
def _first_windows(text, anchors, length, size):
    """Return the earliest window of each anchor. anchors : _Members or Common."""
    windows = _make_windows(len(anchors.positions))
    for i in range(len(anchors.positions)):
        after = anchors.positions[i] + 1
        end = anchors.ends[i]
        start = retreat(text, after, anchors.begins[i], length)
        stop, missing = advance(text, start, end, length)
        before = count_characters(text, start, after)
        windows.starts[i] = start
        windows.stops[i] = stop
        windows.before[i] = 0 if missing else before
        windows.latest[i] = after - size
        windows.ends[i] = end
        _add_bytes(text, windows, i, start, stop)
    return windows


@kernel(allocates=True)
def _make_windows(count):
    """Return room for `count` windows, whose hashes are of no bytes."""
    return _Windows(
        starts=np.empty(count, I64),
        stops=np.empty(count, I64),
        before=np.empty(count, I64),
        latest=np.empty(count, I64),
        ends=np.empty(count, I64),
        sums=np.zeros(count, U64),
        lefts=np.ones(count, U64),
        rights=np.ones(count, U64),
        inverses=np.ones(count, U64),
    )


@kernel
def _add_bytes(text, windows, i, start, stop):
    """Add bytes at the end of a window to its hash."""
    for position in range(start, stop):
        windows.sums[i] += (U64(text[position]) + U64(1)) * windows.rights[i]
        windows.rights[i] *= _BASE


@kernel
def _has_window(text, windows, i, before):
    """Move the window of an anchor so that it has `before` characters up to the position; return
    whether there is one.

    Requires: `before` falls by 1 from call to call.
    """
    if windows.before[i] > before:
        old_start = windows.starts[i]
        old_stop = windows.stops[i]
        new_start = advance(text, old_start, windows.ends[i], 1)[0]
        new_stop, missing = advance(text, old_stop, windows.ends[i], 1)
        windows.starts[i] = new_start
        windows.stops[i] = new_stop
        windows.before[i] = 0 if missing or new_start > windows.latest[i] else before
        # The first byte leaves with the power `lefts`; its successor has the next power.
        for position in range(old_start, new_start):
            windows.sums[i] -= (U64(text[position]) + U64(1)) * windows.lefts[i]
            windows.lefts[i] *= _BASE
            windows.inverses[i] *= _INVERSE
        _add_bytes(text, windows, i, old_stop, new_stop)
    return windows.before[i] == before


class Common(NamedTuple):
    """The anchors of all groups.

    begins, ends : int64, of the piece of each; positions : int64, the last byte that is hashed;
    owners : int64, its document, rising in each group; sites : int64, of the document; needed :
    int64, the documents of the site that must have a window.
    """

    begins: np.ndarray
    ends: np.ndarray
    positions: np.ndarray
    owners: np.ndarray
    sites: np.ndarray
    needed: np.ndarray


class Ranges(NamedTuple):
    """The windows around each anchor that enough documents of its site have.

    starts, stops : int64, of all such windows in the text; num_documents : int64, the greatest
    number of documents of one. Zeros for an anchor without such a window.
    """

    starts: np.ndarray
    stops: np.ndarray
    num_documents: np.ndarray


@kernel(allocates=True)
def mark_common(text, offsets, anchors, length, size, ranges):
    """Find the windows around anchors that enough documents of a site have.

    offsets : int64, the begin of each group, and the end of the last, in anchors : Common. ranges :
    Ranges of zeros by anchor, written.
    """
    for group in range(len(offsets) - 1):
        first = offsets[group]
        stop = offsets[group + 1]
        meeting = _meeting(
            text,
            anchors.begins[first:stop],
            anchors.ends[first:stop],
            anchors.positions[first:stop],
            length,
        )
        chosen = first + meeting
        group_anchors = Common(
            begins=anchors.begins[chosen],
            ends=anchors.ends[chosen],
            positions=anchors.positions[chosen],
            owners=anchors.owners[chosen],
            sites=anchors.sites[chosen],
            needed=anchors.needed[chosen],
        )
        _mark_group(text, group_anchors, chosen, length, size, ranges)


class _Owners(NamedTuple):
    """The documents of a window, int64 by slot: the last document, and their number. slots : int64
    by anchor, the slot of its window, or NONE.
    """

    last: np.ndarray
    number: np.ndarray
    slots: np.ndarray


@kernel(allocates=True)
def _mark_group(text, anchors, chosen, length, size, ranges):
    """Mark the windows of one group. chosen : int64, the rows of its anchors in `ranges`."""
    count = len(anchors.positions)
    windows = _first_windows(text, anchors, length, size)
    table = _table(count)
    num_slots = len(table.keys)
    owners = _Owners(
        last=np.empty(num_slots, I64), number=np.empty(num_slots, I64), slots=np.empty(count, I64)
    )
    for before in range(length, 0, -1):
        table.occupants[:] = FREE
        for i in range(count):
            owners.slots[i] = NONE
            if _has_window(text, windows, i, before):
                slot = _enter_window(text, windows, anchors.sites, i, table)
                _add_owner(table, owners, slot, i, anchors.owners[i])
        for i in range(count):
            slot = owners.slots[i]
            if slot >= 0 and owners.number[slot] >= anchors.needed[i]:
                _extend_range(ranges, chosen[i], windows, i, owners.number[slot])


@kernel
def _add_owner(table, owners, slot, anchor, owner):
    """Count the document of an anchor among the documents that have its window.

    Requires: the anchors of a document follow each other.
    """
    owners.slots[anchor] = slot
    if table.occupants[slot] == FREE:
        table.occupants[slot] = anchor
        owners.last[slot] = NONE
        owners.number[slot] = 0
    owners.number[slot] += owners.last[slot] != owner
    owners.last[slot] = owner


@kernel
def _extend_range(ranges, row, windows, i, num_documents):
    """Extend the range of an anchor, a row of `ranges`, to its window."""
    if ranges.num_documents[row] == 0:
        ranges.starts[row] = windows.starts[i]
    ranges.stops[row] = windows.stops[i]
    ranges.num_documents[row] = max(ranges.num_documents[row], num_documents)


@kernel
def _enter_window(text, windows, sites, i, table):
    """Return the slot of the same text and site as an anchor's window, or a free slot; its key is
    set, but its occupant is not.
    """
    start = windows.starts[i]
    size = windows.stops[i] - start
    mask = len(table.keys) - 1
    key = mix(mix(windows.sums[i] * windows.inverses[i]) + U64(sites[i]))
    slot = I64(key & U64(mask))
    # Equal keys are not enough: a site could choose texts whose rolling hashes collide.
    while table.occupants[slot] != FREE:
        other = table.occupants[slot]
        other_start = windows.starts[other]
        is_known = (
            table.keys[slot] == key
            and sites[other] == sites[i]
            and windows.stops[other] - other_start == size
        )
        if is_known and common_after(text, start, other_start, size) == size:
            break
        slot = (slot + 1) & mask
    table.keys[slot] = key
    return slot


@kernel
def _hash(text, start, stop):
    return hash_at(address_of(text) + start, stop - start, start)
