"""Find the units of texts, which are paragraphs, lines or sentences, and cut those that occurred
before.
"""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import I64, U8, U64, kernel
from neardup.kernels.intrinsics import address_of
from neardup.kernels.mixing import double
from neardup.kernels.passages import DROPPED, NONE, REPEATED, SENTENCE, SPACE, may_end
from neardup.kernels.strings import (
    advance,
    code_at,
    common_after,
    count_characters,
    hash_at,
    is_lead,
    retreat,
)


@kernel(allocates=True)
def find_units(data, offsets, classes, kind, ends):
    """Return where the units of documents begin, int64; ends : int64 by document, the units up to
    its end, written.

    kind : where they end, as cuts do; classes : uint16 by code point. Empty lines belong to the
    unit before them.
    """
    starts, count = np.empty(1024, I64), 0
    for document in range(len(offsets) - 1):
        begin, end = offsets[document], offsets[document + 1]
        for place in range(begin, end):
            if place > begin:
                before = data[place - 1]
                if before != 10 and (
                    kind != SENTENCE or _is_within(before) or not is_lead(data[place])
                ):
                    continue
                if data[place] in (10, 13) or not may_end(
                    data, place, begin, end, 3, kind, classes
                ):
                    continue
            if count == len(starts):
                starts = double(starts)
            starts[count] = place
            count += 1
        ends[document] = count
    return starts[:count]


@kernel
def _is_within(byte):
    """Return whether no sentence ends behind a byte: an ASCII letter or digit."""
    return U8((byte | U8(0x20)) - U8(97)) < U8(26) or U8(byte - U8(48)) < 10


@kernel
def measure_units(data, bounds, classes, spans, characters, keys):
    """Measure and hash units without the white space at their ends.

    bounds : int64 (num_units + 1,), where they begin and the last ends. spans : int64 (num_units,
    2), written: where each begins and ends without it; characters : int64 (num_units, 2), in all
    and without it; keys : uint64 (num_units, 2), the hash and the bytes.
    """
    for i in range(len(spans)):
        start, stop = bounds[i], bounds[i + 1]
        characters[i, 0] = count_characters(data, start, stop)
        while start < stop and classes[code_at(data, start)] & SPACE:
            start = advance(data, start, stop, 1)[0]
        while start < stop:
            last = retreat(data, stop, start, 1)
            if not classes[code_at(data, last)] & SPACE:
                break
            stop = last
        spans[i, 0], spans[i, 1], size = start, stop, stop - start
        characters[i, 1] = count_characters(data, start, stop)
        keys[i, 0], keys[i, 1] = (
            hash_at(address_of(data) + start, size, start) if size else U64(0),
            size,
        )


@kernel
def compare_units(text, spans, units, others, equal):
    """Write whether units have the same bytes as others. spans : of `measure_units`; equal :
    bool.
    """
    for i in range(len(units)):
        (left, stop), (right, end) = spans[units[i]], spans[others[i]]
        size = stop - left
        equal[i] = size == end - right and common_after(text, left, right, size) == size


@kernel(allocates=True)
def cut_units(pieces, first, num_against, most_lost, rows):
    """Cut the units that occurred before in kept text; return how many rows were written, as by
    `passages.resolve`.

    pieces : each a unit. first : int64, the first unit with the text of each. num_against :
    documents that are kept whole. most_lost : share of a document. rows : int64, two for each unit.
    """
    kept, count = np.full(len(first), NONE, I64), 0
    begin, lost = 0, 0
    for piece in range(len(first)):
        document, start, stop = (
            pieces.documents[piece],
            pieces.starts[piece],
            pieces.starts[piece + 1],
        )
        if piece == 0 or document != pieces.documents[piece - 1]:
            begin, lost = piece, 0
        source = kept[first[piece]]
        if source == NONE:
            kept[first[piece]] = piece
        elif document >= num_against:
            there, end = pieces.starts[source], pieces.starts[source + 1]
            rows[count] = (REPEATED, piece, start, stop, there, there, there + 1, end)
            lost += count_characters(pieces.text, start, stop)
            count += 1
        is_last = piece + 1 == len(first) or pieces.documents[piece + 1] != document
        if is_last and lost > most_lost * pieces.characters[document]:
            for other in range(begin, piece + 1):
                if kept[first[other]] == other:
                    kept[first[other]] = NONE
            rows[count] = (DROPPED, piece, 0, 0, NONE, NONE, NONE, NONE)
            count += 1
    return count
