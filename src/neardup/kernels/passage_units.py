"""Find the units of texts, which are paragraphs, lines or sentences, and cut repeated ones."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import I64, U8, U64, kernel
from neardup.kernels.intrinsics import address_of
from neardup.kernels.mixing import double
from neardup.kernels.passages import (
    BEGINS_DOCUMENT,
    CARRIAGE_RETURN,
    ENDS_DOCUMENT,
    LINE_FEED,
    NONE,
    REPEATED,
    SENTENCE,
    SPACE,
    Cut,
    begins_document,
    loses_too_much,
    may_end,
    write_cut,
    write_drop,
)
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
    """Return the starts of the units of documents, int64.

    kind : the ends of units, as of cuts; classes : uint16 by code point. ends : int64 by document,
    the number of units up to its end, written. Empty lines belong to the unit before them.
    """
    starts = np.empty(1024, I64)
    count = 0
    for document in range(len(offsets) - 1):
        begin = offsets[document]
        end = offsets[document + 1]
        for position in range(begin, end):
            if position == begin or _starts_unit(data, position, begin, end, kind, classes):
                if count == len(starts):
                    starts = double(starts)
                starts[count] = position
                count += 1
        ends[document] = count
    return starts[:count]


@kernel
def _starts_unit(data, position, begin, end, kind, classes):
    """Return whether a unit starts at a position after the first. Most positions need two looks."""
    # The byte before decides most positions without a look at their characters.
    before = data[position - 1]
    if before != LINE_FEED:
        may_end_sentence = kind == SENTENCE and not _is_within(before) and is_lead(data[position])
        if not may_end_sentence:
            return False
    if data[position] == LINE_FEED or data[position] == CARRIAGE_RETURN:
        return False
    bounded = BEGINS_DOCUMENT | ENDS_DOCUMENT
    return may_end(data, position, begin, end, bounded, kind, classes)


@kernel
def _is_within(byte):
    """Return whether no sentence ends after a byte: an ASCII letter or digit."""
    return U8((byte | U8(0x20)) - U8(97)) < U8(26) or U8(byte - U8(48)) < 10


@kernel
def measure_units(data, bounds, classes, spans, characters, keys):
    """Measure and hash units without the white space at their ends.

    bounds : int64 (num_units + 1,), the start of each, and the end of the last. Written: spans :
    int64 (num_units, 2), start and stop without white space; characters : int64 (num_units, 2), in
    all and without it; keys : uint64 (num_units, 2), the hash and the number of bytes.
    """
    for i in range(len(spans)):
        start = bounds[i]
        stop = bounds[i + 1]
        characters[i, 0] = count_characters(data, start, stop)
        while start < stop and classes[code_at(data, start)] & SPACE:
            start = advance(data, start, stop, 1)[0]
        while start < stop:
            last = retreat(data, stop, start, 1)
            if not classes[code_at(data, last)] & SPACE:
                break
            stop = last
        spans[i, 0] = start
        spans[i, 1] = stop
        size = stop - start
        characters[i, 1] = count_characters(data, start, stop)
        keys[i, 0] = hash_at(address_of(data) + start, size, start) if size else U64(0)
        keys[i, 1] = size


@kernel
def compare_units(text, spans, units, others, equal):
    """Write whether units have the same bytes as others. spans : of `measure_units`; equal :
    bool.
    """
    for i in range(len(units)):
        left, stop = spans[units[i]]
        right, end = spans[others[i]]
        size = stop - left
        equal[i] = size == end - right and common_after(text, left, right, size) == size


@kernel(allocates=True)
def cut_units(pieces, first, num_against, max_loss, rows):
    """Cut the units that occurred before in kept text; return the number of rows written, as by
    `passages.resolve`.

    pieces : each a unit. first : int64, the first unit with the text of each. num_against :
    documents that are kept whole. max_loss : see `passages.Rule`. rows : int64, two for each unit.
    """
    kept = np.full(len(first), NONE, I64)  # by first unit, the kept unit with its text
    count = 0
    first_of_document = 0
    lost = 0
    for piece in range(len(first)):
        if begins_document(pieces, piece):
            first_of_document = piece
            lost = 0
        source = kept[first[piece]]
        if source == NONE:
            kept[first[piece]] = piece
        elif pieces.documents[piece] >= num_against:
            lost += count_characters(pieces.text, pieces.starts[piece], pieces.starts[piece + 1])
            count = write_cut(rows, count, _cut_of(pieces, piece, source))
        if loses_too_much(pieces, piece, lost, max_loss):
            # A dropped document keeps no text: the next copy of each unit is kept instead.
            for other in range(first_of_document, piece + 1):
                if kept[first[other]] == other:
                    kept[first[other]] = NONE
            count = write_drop(rows, count, piece)
    return count


@kernel
def _cut_of(pieces, piece, source):
    """Return the cut of a whole unit whose text is kept in another one."""
    source_start = pieces.starts[source]
    return Cut(
        kind=REPEATED,
        piece=piece,
        start=pieces.starts[piece],
        stop=pieces.starts[piece + 1],
        kept=source_start,
        source=source_start,
        window=source_start + 1,
        source_stop=pieces.starts[source + 1],
        num_documents=NONE,
    )
