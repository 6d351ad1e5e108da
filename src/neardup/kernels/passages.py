"""Cut passages that occurred before in kept text. decide/passages.py has the rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, kernel
from neardup.kernels.graphemes import is_within_cluster
from neardup.kernels.intrinsics import address_of, load_u64, prefetch
from neardup.kernels.passage_groups import asked, may_share
from neardup.kernels.strings import (
    advance,
    code_at,
    common_after,
    count_characters,
    is_lead,
    retreat,
)

NONE = I64(-1)
REPEATED, BRIDGE, COMMON, DROPPED = 0, 1, 2, 3  # kinds of cuts
CHARACTER, WORD, SENTENCE, LINE, PARAGRAPH = (
    0,
    1,
    2,
    3,
    4,
)  # where cuts end; paragraphs are units only
# Bits of a class of code points; see features/boundaries.py.
LETTER, SPACE, CLOSER, STOP, WIDE_STOP = 1, 2, 4, 8, 16
_LONGEST_WORD = 64
_MOST_SPACES = 64  # and closing quotes and brackets, after a sentence
_AHEAD = 8  # anchors whose groups are on their way from memory


class Pieces(NamedTuple):
    """Stretches of documents around anchors that may repeat, one after the other.

    text : uint8. starts : int64 (num_pieces + 1,), in the text. By piece, int64: documents : which
    it is of, rising; offsets, before : the bytes and the characters of the document before it;
    anchors : how many there are up to its end; bounded : 1 if it begins its document, plus 2 if it
    ends it. characters : int64 by document.
    """

    text: np.ndarray
    starts: np.ndarray
    documents: np.ndarray
    offsets: np.ndarray
    before: np.ndarray
    anchors: np.ndarray
    bounded: np.ndarray
    characters: np.ndarray


class Anchors(NamedTuple):
    """The anchors of pieces, in their order.

    places : int64, the last byte that is hashed, in the text. groups : int32, of those around which
    texts may agree; negative where there is no other. contexts : uint64 (num_anchors, 2), of
    `hash_around`. Written here: fragments : int32, the kept fragment of each that is listed; by
    rank in the groups, listed : int32, and beside : uint64, their contexts. group_starts : int64
    (num_groups,), group_sizes : int32, how many are listed.
    """

    places: np.ndarray
    groups: np.ndarray
    contexts: np.ndarray
    fragments: np.ndarray
    listed: np.ndarray
    beside: np.ndarray
    group_starts: np.ndarray
    group_sizes: np.ndarray


class Rule(NamedTuple):
    """What is cut. length, bridge : characters; most_lost : share of a document; ends : of cuts;
    classes : uint16.
    """

    length: int
    bridge: int
    most_lost: float
    ends: int
    classes: np.ndarray


@kernel
def _common_before(text, left, right, most):
    """Return how many bytes agree before two places."""
    length = 0
    while length + 8 <= most:
        if load_u64(text, left - length - 8) != load_u64(text, right - length - 8):
            break
        length += 8
    while length < most and text[left - length - 1] == text[right - length - 1]:
        length += 1
    return length


_UNLISTED, _OPEN = np.int32(-2), np.int32(-1)


@kernel
def _enter(anchors, anchor, fragment):
    """List an anchor under its group."""
    group = anchors.groups[anchor]
    if group >= 0:
        if anchors.fragments[anchor] == _UNLISTED:
            rank = anchors.group_starts[group] + anchors.group_sizes[group]
            anchors.listed[rank] = anchor
            for side in range(2):
                anchors.beside[rank, side] = anchors.contexts[anchor, side]
            anchors.group_sizes[group] += 1
        anchors.fragments[anchor] = fragment


@kernel
def _withdraw(anchors, first, stop):
    """Take the anchors in [first, stop) from the ends of their lists."""
    for anchor in range(stop - 1, first - 1, -1):
        if anchors.fragments[anchor] != _UNLISTED:
            anchors.group_sizes[anchors.groups[anchor]] -= 1
            anchors.fragments[anchor] = _UNLISTED


@kernel
def _close(text, anchors, fragments, number, span, rule, size):
    """Keep a fragment of the text: list the anchors in it, if it has a window.

    span : start, stop; the first anchor, the one behind those that are listed, the one behind all.
    Return the number of fragments, and the first anchor that is not in it.
    """
    start, stop, first, listed, last = span
    while first < last and anchors.places[first] - size + 1 < start:
        first += 1
    behind = first
    while behind < last and anchors.places[behind] < stop:
        behind += 1
    if advance(text, start, stop, rule.length)[1] > 0:
        _withdraw(anchors, first, listed)
        return number, behind
    _withdraw(anchors, behind, listed)
    fragments[number, 0], fragments[number, 1] = start, stop
    for anchor in range(first, behind):
        _enter(anchors, anchor, number)
    return number + 1, behind


@kernel
def _match_at(text, anchors, fragments, rule, open_fragment, scan, end, anchor, other, latest):
    """Return the first window around two anchors that agree: its start, its end, and where it
    occurred before.

    The start is negative where there is none, or where it would be behind `latest`.
    """
    left, right = anchors.places[anchor] + 1, anchors.places[other] + 1
    fragment, apart = anchors.fragments[other], left - right
    begin = open_fragment if fragment == _OPEN else fragments[fragment, 0]
    most = end - left if fragment == _OPEN else min(end - left, fragments[fragment, 1] - right)
    if left - min(left - scan, right - begin) > latest:
        return NONE, NONE, NONE
    start = left - _common_before(text, left, right, min(left - scan, right - begin))
    while start < left and not is_lead(text[start]):
        start += 1
    stop = left + common_after(text, left, right, min(most, rule.length))
    if stop - left == rule.length:  # characters may have more bytes
        stop += common_after(text, stop, stop - apart, min(most, 4 * rule.length) - rule.length)
    window, missing = advance(text, start, stop, rule.length)
    if missing > 0 or (window == stop and window < end and not is_lead(text[window])):
        return NONE, NONE, NONE
    while fragment == _OPEN and window - start > apart:
        window, missing = advance(text, window, stop, 1)
        if missing > 0 or (window == stop and window < end and not is_lead(text[window])):
            return NONE, NONE, NONE
        start = advance(text, start, stop, 1)[0]
    return start, window, start - apart


@kernel
def _find(text, anchors, fragments, rule, size, open_fragment, scan, end, first, listed, stop):  # noqa: C901
    """Return the first passage from `scan` on that occurred before: start, end of its first window,
    earliest source.

    And the fragment of the source, and the anchor behind those that are listed. The start is
    negative where there is none. first, listed, stop : anchors, the first to look at, the one
    behind those that are listed, the one behind all.
    """
    start, window, source, fragment = NONE, end, NONE, _OPEN
    for anchor in range(first, stop):
        place, group = anchors.places[anchor], anchors.groups[anchor]
        if place >= window:
            break
        while anchors.places[listed] + rule.length <= place:
            if anchors.places[listed] - size + 1 >= open_fragment:
                _enter(anchors, listed, _OPEN)
            listed += 1
        if group < 0:
            continue
        left, right = asked(anchors.contexts[anchor, 0]), asked(anchors.contexts[anchor, 1])
        first_rank = anchors.group_starts[group]
        for rank in range(first_rank, first_rank + anchors.group_sizes[group]):
            if not may_share(left, right, anchors.beside[rank]):
                continue
            other = anchors.listed[rank]
            if start >= 0 and place - anchors.places[other] <= start - source:
                if start == scan:
                    break  # neither this nor a later one is earlier or of an earlier source
                before = start - 1 - (place - anchors.places[other])
                if before < 0 or text[before] != text[start - 1]:
                    continue  # nor is this one
            latest = start if start >= 0 else end
            found, ends, before = _match_at(
                text, anchors, fragments, rule, open_fragment, scan, end, anchor, other, latest
            )
            if found >= 0 and (start < 0 or found < start or (found == start and before < source)):
                start, window, source, fragment = found, ends, before, anchors.fragments[other]
    return start, window, source, fragment, listed


@kernel(allocates=True)
def resolve(pieces, anchors, fragments, rule, size, pieces_span, rows, state):
    """Walk pieces in their order, and cut what occurred in kept text before.

    pieces_span : the pieces of whole documents, first and stop, and the documents before which
    nothing is cut. fragments : int64, rows of start and stop, with room for one in every `length`
    bytes of text, and one more. rows : int64 (.., 8), of two rows at least, written; they are
    returned, or a longer copy: the kind of cut, its piece, its start and stop, where the source of
    these is kept, where the whole passage is kept: start, end of its first `length` characters,
    stop. A bridge has no source: -1. state : int64 (3,), the number of fragments, of rows, and of
    anchors seen.
    """
    first_piece, stop_piece, num_against = pieces_span
    number, count, anchor = state[0], state[1], state[2]
    document_anchor, lost = anchor, 0
    for piece in range(first_piece, stop_piece):
        document = pieces.documents[piece]
        begin, end, stop = pieces.starts[piece], pieces.starts[piece + 1], pieces.anchors[piece]
        if piece == first_piece or document != pieces.documents[piece - 1]:
            document_anchor, lost = anchor, 0
        for each in range(anchor, stop + _AHEAD):
            if each < stop and anchors.groups[each] >= 0:
                prefetch(address_of(anchors.group_starts) + 8 * I64(anchors.groups[each]))
                prefetch(address_of(anchors.group_sizes) + 4 * I64(anchors.groups[each]))
            ahead = each - _AHEAD
            if ahead >= anchor and anchors.groups[ahead] >= 0:
                rank = anchors.group_starts[anchors.groups[ahead]]
                prefetch(address_of(anchors.listed) + 4 * rank)
                prefetch(address_of(anchors.beside) + 16 * rank)
        if document < num_against:
            span = begin, end, anchor, anchor, stop
            number = _close(pieces.text, anchors, fragments, number, span, rule, size)[0]
        else:
            number, rows, count, gone = _cut_piece(
                pieces,
                anchors,
                fragments,
                rule,
                size,
                (piece, begin, end, anchor, stop),
                rows,
                number,
                count,
            )
            lost += gone
        anchor = stop
        is_last = piece + 1 == stop_piece or pieces.documents[piece + 1] != document
        if is_last and lost > rule.most_lost * pieces.characters[document]:
            _withdraw(anchors, document_anchor, stop)
            rows = _with_room(rows, count)
            rows[count] = (DROPPED, piece, 0, 0, NONE, NONE, NONE, NONE)
            count += 1
    state[0], state[1], state[2] = number, count, anchor
    return rows


@kernel(allocates=True)
def _with_room(rows, count):
    """Return an array with room for two rows more than `count`: this one, or a longer copy."""
    if count + 2 <= len(rows):
        return rows
    longer = np.empty((2 * len(rows), rows.shape[1]), I64)
    for i in range(count):
        for j in range(rows.shape[1]):
            longer[i, j] = rows[i, j]
    return longer


@kernel(allocates=True)
def _cut_piece(pieces, anchors, fragments, rule, size, piece_span, rows, number, count):
    """Cut a piece. Return the number of fragments, the rows and their number, and the characters
    that it loses.
    """
    piece, begin, end, first, stop = piece_span
    text = pieces.text
    fragment = scan = begin
    kept_from = listed = (
        first  # the first anchor of the fragment, and the one behind those that are listed
    )
    lost = 0
    while True:
        while first < stop and anchors.places[first] - size + 1 < scan:
            first += 1
        found = _find(
            text, anchors, fragments, rule, size, fragment, scan, end, first, listed, stop
        )
        start, window, source, other, listed = found
        if start < 0:
            span = fragment, end, kept_from, listed, stop
            return _close(text, anchors, fragments, number, span, rule, size)[0], rows, count, lost
        most = start - source if other == _OPEN else fragments[other, 1] - source
        match = start + common_after(text, start, source, min(most, end - start))
        while match < end and not is_lead(text[match]):
            match -= 1
        cut, cut_end = _trim(pieces, rule, piece, start, match)
        if cut >= cut_end:
            scan = match
            continue
        rows = _with_room(rows, count)
        span = fragment, cut, kept_from, listed, stop
        number, kept_from = _close(text, anchors, fragments, number, span, rule, size)
        if (
            fragment > begin
            and count_characters(text, fragment, cut) <= rule.bridge
            and fragment < cut
        ):
            rows[count] = (BRIDGE, piece, fragment, cut, NONE, NONE, NONE, NONE)
            count += 1
            lost += count_characters(text, fragment, cut)
        apart = start - source
        rows[count] = (
            REPEATED,
            piece,
            cut,
            cut_end,
            cut - apart,
            source,
            window - apart,
            match - apart,
        )
        count += 1
        lost += count_characters(text, cut, cut_end)
        fragment = scan = cut_end
        while kept_from < stop and anchors.places[kept_from] - size + 1 < cut_end:
            kept_from += 1
        listed = kept_from


@kernel(allocates=True)
def cut_ranges(pieces, ranges, rule, rows):
    """Cut ranges of pieces, those that meet as one; return how many rows were written, as by
    `resolve`.

    ranges : int64 (num_ranges, 4), rising: piece, start, stop in the text, how many documents have
    it. rows : int64, of room for two of each range and one of each piece; the source of a row is
    the greatest such number.
    """
    count, place, lost = 0, 0, 0
    for piece in range(len(pieces.documents)):
        document, previous = pieces.documents[piece], NONE
        if piece == 0 or document != pieces.documents[piece - 1]:
            lost = 0
        while place < len(ranges) and ranges[place, 0] == piece:
            start, stop, number = ranges[place, 1], ranges[place, 2], ranges[place, 3]
            place += 1
            while place < len(ranges) and ranges[place, 0] == piece and ranges[place, 1] <= stop:
                stop, number = max(stop, ranges[place, 2]), max(number, ranges[place, 3])
                place += 1
            start, stop = _trim(pieces, rule, piece, start, stop)
            if start >= stop:
                continue
            if (
                0 <= previous < start
                and count_characters(pieces.text, previous, start) <= rule.bridge
            ):
                rows[count] = (BRIDGE, piece, previous, start, NONE, NONE, NONE, NONE)
                lost += count_characters(pieces.text, previous, start)
                count += 1
            rows[count] = (COMMON, piece, start, stop, NONE, number, NONE, NONE)
            lost += count_characters(pieces.text, start, stop)
            previous, count = stop, count + 1
        is_last = piece + 1 == len(pieces.documents) or pieces.documents[piece + 1] != document
        if is_last and lost > rule.most_lost * pieces.characters[document]:
            rows[count] = (DROPPED, piece, 0, 0, NONE, NONE, NONE, NONE)
            count += 1
    return count


@kernel
def _trim(pieces, rule, piece, start, stop):
    """Return a range of the text without what is not whole at its ends: characters, words,
    sentences or lines.

    A run of letters and digits longer than _LONGEST_WORD is no word, and is cut between characters.
    Each end is moved by itself, so the first may be behind the last: then nothing is whole.
    """
    first = _move_start(pieces, rule.classes, piece, start, stop, rule.ends)
    if first == NONE and rule.ends == WORD:
        first = _move_start(pieces, rule.classes, piece, start, stop, CHARACTER)
    if first == NONE:
        first = start
    last = _move_stop(pieces, rule.classes, piece, start, stop, rule.ends)
    if last == NONE and rule.ends == WORD:
        last = _move_stop(pieces, rule.classes, piece, start, stop, CHARACTER)
    if last == NONE:
        last = stop
    return first, last


@kernel
def _move_start(pieces, classes, piece, start, stop, ends):
    """Return the first place of a range where a cut may begin, its stop if there is none; NONE if
    it is too far away.

    White space is passed over at any length: it belongs to no word.
    """
    text, begin, end, bounded = (
        pieces.text,
        pieces.starts[piece],
        pieces.starts[piece + 1],
        pieces.bounded[piece],
    )
    place = start
    left = _LONGEST_WORD
    while place < stop and not may_end(text, place, begin, end, bounded, ends, classes):
        if ends <= WORD and not classes[code_at(text, place)] & SPACE:
            if left == 0:
                return NONE
            left -= 1
        place = advance(text, place, stop, 1)[0]
    return place


@kernel
def _move_stop(pieces, classes, piece, start, stop, ends):
    """Return the last place of a range where a cut may stop, its start if there is none; NONE if it
    is too far away.
    """
    text, begin, end, bounded = (
        pieces.text,
        pieces.starts[piece],
        pieces.starts[piece + 1],
        pieces.bounded[piece],
    )
    place = stop
    left = _LONGEST_WORD
    while place > start and not _may_stop(text, place, begin, end, bounded, ends, classes):
        place = retreat(text, place, start, 1)
        if ends <= WORD and not classes[code_at(text, place)] & SPACE:
            if left == 0:
                return NONE
            left -= 1
    return place


@kernel
def may_end(text, place, begin, end, bounded, ends, classes):
    """Return whether a unit, with the white space behind it, may end at a place between two
    characters of a piece.

    classes : uint16 by code point, of `features.boundaries`.
    """
    if place in (begin, end):
        return bounded & (1 if place == begin else 2) != 0
    before = code_at(text, retreat(text, place, begin, 1))
    left = classes[before]
    right = classes[code_at(text, place)]
    if is_within_cluster(text, place, begin, classes, left, right):
        return False
    if ends == CHARACTER:
        return True
    if ends == PARAGRAPH:
        return before == 10 and _is_behind_blank_line(text, place, begin)
    if ends == LINE or before == 10:
        return before == 10
    if right & SPACE:
        return False
    if ends == WORD:
        return not (left & LETTER and right & LETTER)
    is_possible = left & (SPACE | CLOSER | STOP | WIDE_STOP) != 0  # rarely
    return is_possible and _ends_sentence(text, place, begin, classes, False)


@kernel
def _may_stop(text, place, begin, end, bounded, ends, classes):
    """Return whether a cut may stop at a place.

    That is where a unit ends, and also before white space behind it, or within: a passage whose
    copy ends there, or goes on with other white space, has its last unit whole.
    """
    if may_end(text, place, begin, end, bounded, ends, classes):
        return True
    if place in (begin, end) or ends == CHARACTER:
        return False
    left = classes[code_at(text, retreat(text, place, begin, 1))]
    right = classes[code_at(text, place)]
    if not right & SPACE or is_within_cluster(text, place, begin, classes, left, right):
        return False
    if (
        ends == WORD
        or text[place] == 10
        or (text[place] == 13 and place + 1 < end and text[place + 1] == 10)
    ):
        return True
    return ends == SENTENCE and _ends_sentence(text, place, begin, classes, True)


@kernel
def _is_behind_blank_line(text, place, begin):
    """Return whether nothing but blanks is in the line that ends before a place."""
    place -= 2
    while place >= begin and text[place] in (9, 13, 32):
        place -= 1
    return place < begin or text[place] == 10


@kernel
def _ends_sentence(text, place, begin, classes, is_before_space):
    """Return whether a sentence, and the spaces behind it, end at a place; is_before_space :
    another one follows.
    """
    has_space = is_before_space
    kind = SPACE
    for _ in range(_MOST_SPACES):
        if place == begin:
            break
        place = retreat(text, place, begin, 1)
        code = code_at(text, place)
        kind = classes[code]
        if code == 10:
            return True
        if not kind & (SPACE | CLOSER):
            break
        has_space |= kind & SPACE != 0
    return kind & WIDE_STOP != 0 or (kind & STOP != 0 and has_space)


@kernel
def count_up_to(pieces, owners, places, counts):
    """Count the characters of documents before places in their pieces.

    owners : int64, the piece of each place; both rise. counts : int64, written.
    """
    piece, place, count = NONE, I64(0), I64(0)
    for i in range(len(places)):
        if owners[i] != piece:
            piece = owners[i]
            place, count = pieces.starts[piece], pieces.before[piece]
        count += count_characters(pieces.text, place, places[i])
        place = places[i]
        counts[i] = count
