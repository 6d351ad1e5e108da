"""Find the anchors of passages, and the text around repeated ones.

A passage of L characters is found by its anchors: in each window of W characters, the last
character with the minimum hash of the bytes up to it (winnowing: Schleimer, Wilkerson and Aiken,
SIGMOD 2003). Equal passages have equal anchors, so it is enough to compare the texts around them. A
long run of one character, whose windows are all equal, has fewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.intrinsics import address_of
from neardup.kernels.mixing import double, mix
from neardup.kernels.strings import advance, common_after, count_characters, hash_at, retreat

NONE = I64(-1)
_BLOCK = 4096  # characters of a block, besides a window


class Grams(NamedTuple):
    """The parameters of anchors. bases : uint64 (256,), random; size : bytes that are hashed;
    window : characters of a window.
    """

    bases: np.ndarray
    size: int
    window: int


class Reach(NamedTuple):
    """The characters around an anchor that belong to its piece."""

    before: int
    after: int


class _Block(NamedTuple):
    """Consecutive characters. values : uint32, the hash of the `size` bytes up to each; positions :
    int64, its first byte.

    A document passes through the block: the characters of the last window move to its begin, and
    the next ones follow.
    """

    values: np.ndarray
    positions: np.ndarray


class Anchors(NamedTuple):
    """The anchors of documents. positions : int64, in the data; hashes : uint32. ends : int64 by
    document, the number of anchors up to its end.
    """

    positions: np.ndarray
    hashes: np.ndarray
    ends: np.ndarray


class _Found(NamedTuple):
    """Anchors. positions : int64, in the data; hashes : uint32."""

    positions: np.ndarray
    hashes: np.ndarray


class _Scan(NamedTuple):
    """The state of a scan.

    anchor : the index in the block of the anchor of the window that ends at the index `last`;
    negative before the first window. num_found : anchors found. run : the characters that are the
    same up to the last anchor, 0 outside of a run; width : their bytes.
    """

    anchor: int
    last: int
    num_found: int
    run: int
    width: int


@kernel(allocates=True)
def find_anchors(data, offsets, grams, ends):
    """Return the positions (int64, in data) and hashes (uint32) of the anchors of documents.

    ends : int64 by document, the number of anchors up to its end, written.
    """
    size = _BLOCK + grams.window
    block = _Block(values=np.empty(size, U32), positions=np.empty(size, I64))
    found = _Found(positions=np.empty(1024, I64), hashes=np.empty(1024, U32))
    count = I64(0)
    for document in range(len(offsets) - 1):
        begin = offsets[document]
        found, count = _scan_document(
            data, begin, offsets[document + 1], grams, block, found, count
        )
        ends[document] = count
    return found.positions[:count], found.hashes[:count]


# Inlined: LLVM makes a better loop of it where the arrays are allocated.
@kernel(allocates=True, inline=True)
def _scan_document(data, begin, stop, grams, block, found, count):
    """Append the anchors of data[begin:stop] to `count` others; return the anchors, in longer
    arrays if needed, and their new number.
    """
    position = begin
    state = U64(0)  # of the rolling hash; the first full one is of `size` bytes
    while position < min(begin + grams.size - 1, stop):
        state = (state << U64(1)) + grams.bases[data[position]]
        position += 1
    filled = 0
    scan = _Scan(anchor=NONE, last=NONE, num_found=count, run=I64(0), width=I64(0))
    while position < stop:
        state, position, filled = _fill(data, position, stop, grams, state, block, filled)
        if filled < grams.window:
            break
        # At most each character becomes an anchor, and a run adds the window before its end.
        while scan.num_found + 3 * filled > len(found.positions):
            found = _Found(positions=double(found.positions), hashes=double(found.hashes))
        scan = _scan_block(data, begin, grams, block, filled, found, scan)
        num_moved = min(scan.anchor, scan.last + 1 - grams.window)
        scan = _move_block(block, filled, num_moved, scan)
        filled -= num_moved
    return found, scan.num_found


@kernel
def _fill(data, position, stop, grams, state, block, filled):
    """Fill a block with the characters from a position on; return the state of the hash, the next
    position and the number of characters in the block.
    """
    unseen = U64(64 - grams.size)  # the lowest `size` bits of the state depend on as many bytes
    values = block.values
    positions = block.positions
    while position < stop and filled < len(values):
        # As many bytes as there is space for: each is one character or less.
        for index in range(position, position + min(stop - position, len(values) - filled)):
            byte = data[index]
            state = (state << U64(1)) + grams.bases[byte]
            values[filled] = U32(state << unseen >> U64(32))
            positions[filled] = index
            filled += byte & 0xC0 != 0x80  # other bytes are overwritten: no branch to mispredict
            position += 1
    return state, position, filled


@kernel
def _scan_block(data, begin, grams, block, filled, found, scan):
    """Add the anchors of all windows that end in a block; return the state of the scan."""
    values = block.values
    window = grams.window
    anchor = scan.anchor
    last = scan.last
    if anchor < 0:
        last = I64(window - 1)
        anchor = _min_index(values, 0, window)
        scan = _add_anchor(data, begin, grams, found, scan, block.positions[anchor])
    while True:
        stop = min(filled, anchor + window)
        last = _first_at_most(values, last + 1, stop, values[anchor])
        if last < stop:
            anchor = last
        elif last < filled:  # the anchor has left the window
            anchor = _min_index(values, anchor + 1, last + 1)
        else:
            break
        scan = _add_anchor(data, begin, grams, found, scan, block.positions[anchor])
    return _Scan(
        anchor=anchor, last=last - 1, num_found=scan.num_found, run=scan.run, width=scan.width
    )


@kernel
def _move_block(block, filled, num_moved, scan):
    """Remove the first characters of a block, which no later window contains; return the scan."""
    for i in range(num_moved, filled):
        block.values[i - num_moved] = block.values[i]
        block.positions[i - num_moved] = block.positions[i]
    return _Scan(
        anchor=scan.anchor - num_moved,
        last=scan.last - num_moved,
        num_found=scan.num_found,
        run=scan.run,
        width=scan.width,
    )


@kernel
def _add_anchor(data, begin, grams, found, scan, position):
    """Add the anchor at a position; return the state of the scan.

    A run of one character longer than two windows has anchors at its first and its last characters,
    and one in each window between.
    """
    count = scan.num_found
    if _continues_run(data, found, scan, position):
        run = scan.run + 1
        length = grams.window + grams.size - 1
        # Of the characters of a long run, one in a window and the last one are enough.
        count -= run > 2 * length and (run - 1) % grams.window != 0
        found.positions[count] = position
        found.hashes[count] = found.hashes[count - 1]
        return _Scan(
            anchor=scan.anchor, last=scan.last, num_found=count + 1, run=run, width=scan.width
        )
    width = position - retreat(data, position, begin, 1)
    count, run = _add_other(data, begin, grams, found, count, position, width)
    return _Scan(anchor=scan.anchor, last=scan.last, num_found=count, run=run, width=width)


@kernel
def _continues_run(data, found, scan, position):
    """Return whether the character at a position follows the last anchor and equals it."""
    width = scan.width
    start = position + 1 - width
    is_next = scan.run > 0 and position - width == found.positions[scan.num_found - 1]
    return is_next and common_after(data, start - width, start, width) == width


@kernel
def _add_other(data, begin, grams, found, count, position, width):
    """Add an anchor that continues no run; return the number of anchors, and the characters of the
    run that ends with it.

    All windows inside a run are equal, and the first of them that is kept begins less than a length
    after the start of its run, or there would be an earlier one. Every character of the first two
    lengths of a run is an anchor, so whichever anchor a later window has, the first one has an
    anchor at the same distance. width : bytes of the character before the position.
    """
    first = position
    is_run = _ends_run(data, begin, grams, position, width)
    if is_run:
        window_bytes = (grams.window + grams.size - 2) * width
        first -= (window_bytes - grams.size + 1) // width * width
        while count and found.positions[count - 1] >= first:
            count -= 1
    hashed = position + 1 - grams.size
    value = U32(hash_at(address_of(data) + hashed, grams.size, hashed) >> U64(32))
    for member in range(first, position + 1, max(width, 1)):
        found.positions[count] = member
        found.hashes[count] = value
        count += 1
    return count, (position - first) // width + 1 if is_run else I64(0)


@kernel
def _ends_run(data, begin, grams, position, width):
    """Return whether the window that ends at a position repeats one character, of `width` bytes."""
    start = position - (grams.window + grams.size - 2) * width
    if width == 0 or start < begin or data[position] != data[position - width]:
        return False
    size = position + 1 - width - start
    return common_after(data, start, start + width, size) == size


# Indices are unsigned in the next two: LLVM vectorises no loop in which an index may be negative.
@kernel
def _min_index(values, start, stop):
    """Return the last index in [start, stop) of the minimum."""
    begin = U64(start)
    index = U64(stop - 1)
    minimum = values[index]
    for i in range(index - begin):
        minimum = min(minimum, values[begin + U64(i)])
    while values[index] != minimum:
        index -= U64(1)
    return I64(index)


@kernel
def _first_at_most(values, start, stop, limit):
    """Return the first index in [start, stop) of a value up to `limit`, `stop` if there is none."""
    index = U64(start)
    end = U64(stop)
    while index + U64(16) <= end:
        minimum = values[index]
        for i in range(1, 16):
            minimum = min(minimum, values[index + U64(i)])
        if minimum <= limit:
            break
        index += U64(16)
    while index < end and values[index] > limit:
        index += U64(1)
    return I64(index)


@kernel
def count_hashes(hashes, counts):
    """Count hashes, up to two, each in two fields of a word, of two bits.

    counts : uint64, a power of two long: a counting Bloom filter in which all fields of a hash lie
    in one word.
    """
    for i in range(len(hashes)):
        word, first, second = _fields(mix(U64(hashes[i])), len(counts))
        if (counts[word] >> first) & U64(2) == U64(0):
            counts[word] += U64(1) << first
        if second != first and (counts[word] >> second) & U64(2) == U64(0):
            counts[word] += U64(1) << second


@kernel
def _fields(mixed, size):
    """Return the word of a hash and the lowest bits of its two fields."""
    return mixed & U64(size - 1), (mixed >> U64(54)) & U64(62), (mixed >> U64(48)) & U64(62)


@kernel
def _repeats(counts, value):
    """Return whether a hash may have been counted twice."""
    word, first, second = _fields(mix(U64(value)), len(counts))
    return ((counts[word] >> first) & (counts[word] >> second)) & U64(2) != U64(0)


@kernel
def mark_repeats(hashes, counts, repeats):
    """Write whether each hash may repeat. repeats : bool."""
    for i in range(len(hashes)):
        repeats[i] = _repeats(counts, hashes[i])


# Columns of the pieces that `select_pieces` writes.
_DOCUMENT, _START, _STOP, _BEFORE, _ANCHORS = range(5)


@kernel
def select_pieces(data, offsets, anchors, counts, reach, edges, characters):
    """Choose the anchors that may repeat, and the text around them.

    anchors : Anchors; the chosen replace the first ones, and `ends` counts them. reach : Reach.
    edges : int64, a row for each piece: its document, its start and stop in data, the characters of
    the document before it, the anchors up to its end. characters : int64 by document, written here.
    Return the number of pieces, and of anchors.
    """
    _drop_unrepeated(anchors, counts)
    num_pieces = 0
    anchor = 0
    for document in range(len(offsets) - 1):
        begin = offsets[document]
        stop = offsets[document + 1]
        first = num_pieces
        last = NONE  # the position of the last anchor
        while anchor < anchors.ends[document]:
            position = anchors.positions[anchor]
            # A character has a byte or more: closer anchors are in one piece, wherever it starts
            # and stops.
            if last < 0 or position - last > reach.before + reach.after:
                _end_piece(data, last, stop, reach, edges, num_pieces)
                start = retreat(data, position, begin, reach.before)
                if last < 0 or start > edges[num_pieces - 1, _STOP]:
                    edges[num_pieces, _DOCUMENT] = document
                    edges[num_pieces, _START] = start
                    num_pieces += 1
            last = position
            anchor += 1
            edges[num_pieces - 1, _ANCHORS] = anchor
        _end_piece(data, last, stop, reach, edges, num_pieces)
        characters[document] = _count_before(data, begin, stop, edges[first:num_pieces])
    return num_pieces, anchor


@kernel
def _end_piece(data, last, stop, reach, edges, num_pieces):
    """Write the stop of the last piece of a document, if it has one: as far as its last anchor
    reaches.
    """
    if last >= 0:
        edges[num_pieces - 1, _STOP] = advance(data, last, stop, reach.after)[0]


@kernel
def _drop_unrepeated(anchors, counts):
    """Keep the anchors whose hashes may repeat: move them to the front."""
    anchor = 0
    num_kept = 0
    for document in range(len(anchors.ends)):
        while anchor < anchors.ends[document]:
            if _repeats(counts, anchors.hashes[anchor]):
                anchors.positions[num_kept] = anchors.positions[anchor]
                anchors.hashes[num_kept] = anchors.hashes[anchor]
                num_kept += 1
            anchor += 1
        anchors.ends[document] = num_kept


@kernel
def _count_before(data, begin, stop, edges):
    """Write the characters of a document before each piece; return the total."""
    total = 0
    counted = begin
    for piece in range(len(edges)):
        total += count_characters(data, counted, edges[piece, _START])
        counted = edges[piece, _START]
        edges[piece, _BEFORE] = total
    return total + count_characters(data, counted, stop)
