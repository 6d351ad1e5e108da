"""Find the anchors of passages, and the text around those that may repeat.

A passage of L characters is found by its anchors: in each window of W characters, the rightmost of
those with the least hash of the bytes up to it (winnowing: Schleimer, Wilkerson and Aiken, SIGMOD
2003). Equal passages have equal anchors, so it is enough to compare the texts around them. A long
run of one character, whose windows are all equal, has fewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.intrinsics import address_of
from neardup.kernels.mixing import double, mix
from neardup.kernels.strings import advance, common_after, count_characters, hash_at, retreat

NONE = I64(-1)
_BLOCK = 4096  # characters whose hashes are at hand, besides those of a window


class Grams(NamedTuple):
    """How anchors are found. bases : uint64 (256,), random; size : bytes hashed; window :
    characters of a window.
    """

    bases: np.ndarray
    size: int
    window: int


@kernel(allocates=True)
def find_anchors(data, offsets, grams, ends):  # noqa: C901
    """Return the places (int64, in data) and hashes (uint32) of the anchors of documents; ends :
    int64 by document.
    """
    window, size, length = grams.window, grams.size, grams.window + grams.size - 1
    values, places = np.empty(_BLOCK + window, U32), np.empty(_BLOCK + window, I64)
    found, hashes, count = np.empty(1024, I64), np.empty(1024, U32), 0
    for document in range(len(offsets) - 1):
        begin, stop = offsets[document], offsets[document + 1]
        position, first = begin, min(begin + size - 1, stop)
        state, filled, anchor, last = (
            U64(0),
            0,
            NONE,
            I64(-1),
        )  # anchor: of the window that ends at `last`
        alike = width = 0  # characters that are the same, up to the last anchor, and their bytes
        while position < first:
            state = (state << U64(1)) + grams.bases[data[position]]
            position += 1
        while position < stop:
            state, position, filled = _fill(
                data, position, stop, grams, state, values, places, filled
            )
            if filled < window:
                break
            while count + 3 * filled > len(found):
                found, hashes = double(found), double(hashes)
            is_new = anchor < 0
            if is_new:
                last = I64(window - 1)
                anchor = _least(values, 0, window)
            while True:
                if is_new:
                    place = places[anchor]
                    start = place + 1 - width
                    is_same = alike > 0 and place - width == found[count - 1]
                    if is_same and common_after(data, start - width, start, width) == width:
                        # of the characters of a long run, one in a window and the last are enough
                        alike += 1
                        count -= alike > 2 * length and (alike - 1) % window != 0
                        found[count], hashes[count] = place, hashes[count - 1]
                        count += 1
                    else:
                        width = place - retreat(data, place, begin, 1)
                        count, alike = _add_anchor(
                            data, begin, grams, found, hashes, count, place, width
                        )
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
def _add_anchor(data, begin, grams, found, hashes, count, place, width):
    """Add an anchor; return how many there are, and how many of the last are in a run of one
    character.

    All windows inside such a run are equal, and the first of them that is kept begins less than a
    length behind the start of its run, or there would be an earlier one. Every character of the
    first two lengths of a run is an anchor, so whichever anchor a later window has, the first one
    has an anchor at the same distance. width : bytes of the character before the place.
    """
    start, first = place - (grams.window + grams.size - 2) * width, place
    is_run = width > 0 and start >= begin and data[place] == data[place - width]
    is_run = (
        is_run
        and common_after(data, start, start + width, place + 1 - width - start)
        == place + 1 - width - start
    )
    if is_run:
        first -= (place - start - grams.size + 1) // width * width
        while count and found[count - 1] >= first:
            count -= 1
    value = U32(
        hash_at(address_of(data) + place + 1 - grams.size, grams.size, place + 1 - grams.size)
        >> U64(32)
    )
    for each in range(first, place + 1, max(width, 1)):
        found[count], hashes[count] = each, value
        count += 1
    return count, (place - first) // width + 1 if is_run else I64(0)


@kernel
def _fill(data, position, stop, grams, state, values, places, filled):
    """Write the hash and the place of each character from a position on, until the room is
    filled.
    """
    unseen = U64(64 - grams.size)  # the lowest `size` bits of the state depend on as many bytes
    while position < stop and filled < len(values):
        for place in range(position, position + min(stop - position, len(values) - filled)):
            byte = data[place]
            state = (state << U64(1)) + grams.bases[byte]
            values[filled], places[filled] = U32(state << unseen >> U64(32)), place
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
    return I64(place)


@kernel
def _first_at_most(values, start, stop, most):
    """Return the first of the places in [start, stop) with a value of at most `most`; `stop` if
    there is none.
    """
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
    return I64(place)


@kernel
def count_hashes(hashes, counts):
    """Count hashes, up to two, each in two fields of a word, of two bits; counts : uint64, a power
    of two long.
    """
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

    anchors : places, hashes and ends by document, of `find_anchors`; the chosen replace the first
    of both. reach : characters before and behind the place. edges : int64, a row for each piece:
    its document, where it starts and stops in data, the characters of the document before it, the
    anchors up to its end. characters : int64 by document, written here. Return the number of
    pieces, and of anchors.
    """
    places, hashes, ends = anchors
    anchor = count = chosen = 0
    for document in range(len(offsets) - 1):
        begin, stop, first, last = offsets[document], offsets[document + 1], count, NONE
        while anchor < ends[document]:
            place = places[anchor]
            if _repeats(counts, hashes[anchor]):
                # A character is a byte or more: closer ones are in one piece, wherever it starts
                # and stops.
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
