"""Cut passages that occurred before in kept text. decide/passages.py has the rule.

The walk goes through the pieces in order. Kept text consists of fragments, whose anchors are listed
by group; the text of the current piece since its last cut is the open fragment.

    fragment 7      |-------[window.........].....|------------|
                            source
    current piece   |---open fragment---[window.........].....|------------------|
                    start               start           stop                     piece.stop
                                        |---- the match ------|
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, kernel
from neardup.kernels.graphemes import is_within_cluster
from neardup.kernels.intrinsics import address_of, load_u64, prefetch
from neardup.kernels.passage_groups import AFTER, BEFORE, asked, may_share
from neardup.kernels.strings import (
    advance,
    code_at,
    common_after,
    count_characters,
    is_lead,
    retreat,
)

NONE = I64(-1)
# Kinds of cuts.
REPEATED, BRIDGE, COMMON, DROPPED = range(4)
# Ends of cuts. Paragraphs are ends of units only.
CHARACTER, WORD, SENTENCE, LINE, PARAGRAPH = range(5)
# Bits of a class of code points; see features/boundaries.py.
LETTER = 1
SPACE = 2
CLOSER = 4
STOP = 8
WIDE_STOP = 16
# Bits of `Pieces.bounded`.
BEGINS_DOCUMENT = 1
ENDS_DOCUMENT = 2
# Indices of `state`.
NUM_FRAGMENTS, NUM_ROWS, NEXT_ANCHOR = range(3)
# Columns of the ranges that `cut_ranges` reads.
_PIECE, _START, _STOP, _NUM_DOCUMENTS = range(4)
# Values of `Anchors.fragments`: an anchor that is not listed, and one in the open fragment.
UNLISTED = np.int32(-2)
_OPEN = np.int32(-1)
TAB = 9
LINE_FEED = 10
CARRIAGE_RETURN = 13
BLANK = 32
_MAX_WORD = 64  # characters; a longer run (base64, a URL) is cut between characters
_MAX_SPACES = 64  # characters before a position that are searched for the end of a sentence
_AHEAD = 8  # anchors whose groups are on their way from memory


class Pieces(NamedTuple):
    """Stretches of documents around anchors that may repeat, one after the other.

    text : uint8. starts : int64 (num_pieces + 1,), in the text. By piece, int64: documents : its
    document, rising; offsets, before : the bytes and the characters of the document before it;
    anchors : the number of anchors up to its end; bounded : 1 if it begins its document, plus 2 if
    it ends it. characters : int64 by document.
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

    positions : int64, the last byte that is hashed, in the text. groups : int32, the anchors around
    which texts may agree; negative for an anchor without a group. contexts : uint64 (num_anchors,
    2), of `hash_around`.

    Written here: fragments : int32, the kept fragment of each listed anchor. The lists of all
    groups follow each other in listed : int32, anchors, and listed_contexts : uint64 (.., 2);
    group_starts : int64 (num_groups,), the begin of each list; group_sizes : int32, its length.

        listed   | 3 17 40 . . | 5 6 . | 11 . . . |      group 1 has listed 2 anchors
                 ^ group_starts[0]     ^ group_starts[2]
    """

    positions: np.ndarray
    groups: np.ndarray
    contexts: np.ndarray
    fragments: np.ndarray
    listed: np.ndarray
    listed_contexts: np.ndarray
    group_starts: np.ndarray
    group_sizes: np.ndarray


class Rule(NamedTuple):
    """The rule of cuts.

    length : the minimum characters of a passage. bridge : the maximum characters between two cuts
    that are cut, too. max_loss : the share of a document that may be cut before it is dropped.
    ends : the ends of cuts. classes : uint16 by code point.
    """

    length: int
    bridge: int
    max_loss: float
    ends: int
    classes: np.ndarray


class PieceSpan(NamedTuple):
    """Pieces of whole documents, from `first` up to `stop`, and the number of documents, from the
    first of all, that are kept whole.
    """

    first: int
    stop: int
    num_against: int


class Cut(NamedTuple):
    """A row of the result, in the order of the columns. Positions are bytes in the text.

    kept : the kept text of [start, stop). source, window, source_stop : the whole kept passage: its
    start, the end of its first `length` characters, its stop. num_documents : the documents that
    have a COMMON passage, which has no kept text. NONE where a kind has none.

        kept text       ... source |======= kept |==== window |====== source_stop | ...
        current piece   ...        |        start |--------- cut ------| stop
    """

    kind: int
    piece: int
    start: int
    stop: int
    kept: int
    source: int
    window: int
    source_stop: int
    num_documents: int


class _Walk(NamedTuple):
    """The data of all steps. fragments : int64 (.., 2), start and stop of kept text. size : bytes
    that are hashed for an anchor. state : int64 (3,).
    """

    text: np.ndarray
    anchors: Anchors
    fragments: np.ndarray
    rule: Rule
    size: int
    state: np.ndarray


class _Piece(NamedTuple):
    """The piece that is cut: its number, its text, its anchors."""

    number: int
    start: int
    stop: int
    first_anchor: int
    stop_anchor: int


class _OpenFragment(NamedTuple):
    """The text of a piece since its last cut. first_anchor : the first anchor that may lie in it.
    listed : the anchor after the last that is listed.
    """

    start: int
    first_anchor: int
    listed: int


class _Limits(NamedTuple):
    """The text in which a match may lie: it starts at `scan` or later and stops at `stop` or
    earlier. open_start : the start of the open fragment, in which its source may lie.
    """

    open_start: int
    scan: int
    stop: int


class _Match(NamedTuple):
    """A passage that occurred before. start : NONE if there is none. window : the end of its first
    `length` characters. source : its start in kept text. fragment : the fragment of the source.
    """

    start: int
    window: int
    source: int
    fragment: int


class _Alignment(NamedTuple):
    """A position of the current piece beside one of kept text, before which the hashed bytes agree.

    max_before, max_after : the bytes on each side that a match may include. fragment : the fragment
    of the source.

        kept text       |.... max_before ....| source   |.... max_after ....|
        current piece   |.... max_before ....| position |.... max_after ....|
    """

    position: int
    source: int
    fragment: int
    max_before: int
    max_after: int


@kernel(allocates=True)
def resolve(pieces, anchors, fragments, rule, size, span, rows, state):
    """Walk pieces in their order, and cut passages that occurred in kept text before.

    span : PieceSpan. fragments : int64, rows of start and stop, with room for one in every `length`
    bytes of text, and one more. rows : int64, the fields of `Cut`, two rows at least, written; they
    are returned, or a longer copy. state : int64 (3,), the numbers of fragments, rows and anchors
    so far.
    """
    walk = _Walk(
        text=pieces.text, anchors=anchors, fragments=fragments, rule=rule, size=size, state=state
    )
    first_of_document = state[NEXT_ANCHOR]
    lost = 0
    for number in range(span.first, span.stop):
        piece = _piece_at(pieces, number, state[NEXT_ANCHOR])
        document = pieces.documents[number]
        if begins_document(pieces, number):
            first_of_document = piece.first_anchor
            lost = 0
        _prefetch_groups(anchors, piece)
        if document < span.num_against:
            _keep(walk, _open_at(piece.start, piece.first_anchor), piece.stop, piece.stop_anchor)
        else:
            rows, lost_here = _cut_piece(walk, pieces, piece, rows)
            lost += lost_here
        state[NEXT_ANCHOR] = piece.stop_anchor
        if loses_too_much(pieces, number, lost, rule.max_loss):
            _withdraw(anchors, first_of_document, piece.stop_anchor)
            rows = _with_room(rows, state[NUM_ROWS])
            state[NUM_ROWS] = write_drop(rows, state[NUM_ROWS], number)
    return rows


@kernel
def _piece_at(pieces, number, first_anchor):
    """Return the piece of a number."""
    return _Piece(
        number=number,
        start=pieces.starts[number],
        stop=pieces.starts[number + 1],
        first_anchor=first_anchor,
        stop_anchor=pieces.anchors[number],
    )


@kernel
def begins_document(pieces, piece):
    """Return whether a piece is the first of its document."""
    return piece == 0 or pieces.documents[piece] != pieces.documents[piece - 1]


@kernel
def loses_too_much(pieces, piece, lost, max_loss):
    """Return whether a piece is the last of its document, which loses more than the share of its
    characters that is allowed.
    """
    document = pieces.documents[piece]
    is_last = piece == len(pieces.documents) - 1 or document != pieces.documents[piece + 1]
    return is_last and lost > max_loss * pieces.characters[document]


@kernel
def _prefetch_groups(anchors, piece):
    """Prefetch the list of each anchor's group: first its start and size, some anchors later its
    entries.
    """
    # 8, 4 and 16 are the bytes of an entry of each array.
    for anchor in range(piece.first_anchor, piece.stop_anchor + _AHEAD):
        if anchor < piece.stop_anchor and anchors.groups[anchor] >= 0:
            group = I64(anchors.groups[anchor])
            prefetch(address_of(anchors.group_starts) + 8 * group)
            prefetch(address_of(anchors.group_sizes) + 4 * group)
        earlier = anchor - _AHEAD
        if earlier >= piece.first_anchor and anchors.groups[earlier] >= 0:
            rank = anchors.group_starts[anchors.groups[earlier]]
            prefetch(address_of(anchors.listed) + 4 * rank)
            prefetch(address_of(anchors.listed_contexts) + 16 * rank)


@kernel(allocates=True)
def _cut_piece(walk, pieces, piece, rows):
    """Cut repeated passages from a piece; return the rows, and the number of characters cut."""
    state = walk.state
    opened = _open_at(piece.start, piece.first_anchor)
    lost = 0
    while True:
        cut, opened = _next_cut(walk, pieces, piece, opened)
        if cut.start == NONE:
            _keep(walk, opened, piece.stop, piece.stop_anchor)
            return rows, lost
        rows = _with_room(rows, state[NUM_ROWS])
        next_anchor = _keep(walk, opened, cut.start, piece.stop_anchor)
        last_cut = opened.start if opened.start > piece.start else NONE
        state[NUM_ROWS], num_cut = _cut_with_bridge(
            walk.text, walk.rule.bridge, rows, state[NUM_ROWS], last_cut, cut
        )
        lost += num_cut
        next_anchor = _first_anchor_from(walk, cut.stop, next_anchor, piece.stop_anchor)
        opened = _open_at(cut.stop, next_anchor)


@kernel
def _next_cut(walk, pieces, piece, opened):
    """Return the next cut of a piece, with start NONE if there is none, and the open fragment, of
    which more anchors are listed.
    """
    scan = opened.start  # where the next match may begin
    first = opened.first_anchor
    while True:
        first = _first_anchor_from(walk, scan, first, piece.stop_anchor)
        match, listed = _find(walk, piece, opened, scan, first)
        opened = _OpenFragment(start=opened.start, first_anchor=opened.first_anchor, listed=listed)
        if match.start < 0:
            return _without_source(REPEATED, piece.number, NONE, NONE, NONE), opened
        stop = _match_stop(walk, match, piece.stop)
        cut_start, cut_stop = _trim(pieces, walk.rule, piece.number, match.start, stop)
        if cut_start < cut_stop:
            return _cut_of(piece.number, match, stop, cut_start, cut_stop), opened
        scan = stop  # no whole unit: its text stays in the open fragment


@kernel
def _open_at(start, first_anchor):
    """Return an open fragment that begins at a position; no anchor of it is listed."""
    return _OpenFragment(start=start, first_anchor=first_anchor, listed=first_anchor)


@kernel
def _cut_of(piece, match, stop, cut_start, cut_stop):
    """Return the cut of a match, which stops at `stop`; the cut is [cut_start, cut_stop)."""
    shift = match.start - match.source
    return Cut(
        kind=REPEATED,
        piece=piece,
        start=cut_start,
        stop=cut_stop,
        kept=cut_start - shift,
        source=match.source,
        window=match.window - shift,
        source_stop=stop - shift,
        num_documents=NONE,
    )


@kernel
def _without_source(kind, piece, start, stop, num_documents):
    """Return a cut that names no kept text."""
    return Cut(
        kind=kind,
        piece=piece,
        start=start,
        stop=stop,
        kept=NONE,
        source=NONE,
        window=NONE,
        source_stop=NONE,
        num_documents=num_documents,
    )


@kernel
def _cut_with_bridge(text, max_bridge, rows, count, last_cut, cut):
    """Append a cut to `count` rows, after a cut of the few characters since the last cut of the
    piece; return the new number of rows, and of characters cut.

    last_cut : the end of the last cut, or NONE.
    """
    num_cut = count_characters(text, cut.start, cut.stop)
    if 0 <= last_cut < cut.start:
        between = count_characters(text, last_cut, cut.start)
        if between <= max_bridge:
            num_cut += between
            bridge = _without_source(BRIDGE, cut.piece, last_cut, cut.start, NONE)
            count = write_cut(rows, count, bridge)
    return write_cut(rows, count, cut), num_cut


@kernel
def _first_anchor_from(walk, position, anchor, stop_anchor):
    """Return the first anchor from `anchor` on whose hashed bytes start at a position or later."""
    # Callers pass rising positions and anchors, so the walk over a piece is linear.
    while anchor < stop_anchor and walk.anchors.positions[anchor] - walk.size + 1 < position:
        anchor += 1
    return anchor


@kernel
def _match_stop(walk, match, piece_stop):
    """Return the end of a match: as far as the text agrees with its source, in whole characters."""
    if match.fragment == _OPEN:
        max_length = match.start - match.source
    else:
        max_length = walk.fragments[match.fragment, 1] - match.source
    max_length = min(max_length, piece_stop - match.start)
    stop = match.start + common_after(walk.text, match.start, match.source, max_length)
    # Bytes of a character may agree in part: back to its first byte.
    while stop < piece_stop and not is_lead(walk.text[stop]):
        stop -= 1
    return stop


@kernel
def _find(walk, piece, opened, scan, first):
    """Return the first match that starts at `scan` or later, with its earliest source, and the
    anchor after the last that is listed.

    first : the first anchor to look at.
    """
    anchors = walk.anchors
    limits = _Limits(open_start=opened.start, scan=scan, stop=piece.stop)
    listed = opened.listed
    best = _Match(start=NONE, window=piece.stop, source=NONE, fragment=_OPEN)
    for anchor in range(first, piece.stop_anchor):
        position = anchors.positions[anchor]
        if position >= best.window:
            break  # the window of a later anchor's match is later, too
        listed = _list_before(walk, opened.start, listed, position - walk.rule.length)
        group = anchors.groups[anchor]
        if group < 0:
            continue
        best = _find_in_group(walk, limits, anchor, group, best)
    return best, listed


# Inlined: a call with all arrays of the walk takes as long as the search.
@kernel(inline=True)
def _find_in_group(walk, limits, anchor, group, best):
    """Return the best match of an anchor with the listed anchors of its group, or an earlier best
    one.
    """
    anchors = walk.anchors
    before = asked(anchors.contexts[anchor, BEFORE])
    after = asked(anchors.contexts[anchor, AFTER])
    first_rank = anchors.group_starts[group]
    for rank in range(first_rank, first_rank + anchors.group_sizes[group]):
        if not may_share(before, after, anchors.listed_contexts[rank]):
            continue
        other = anchors.listed[rank]
        shift = anchors.positions[anchor] - anchors.positions[other]
        if best.start >= 0 and shift <= best.start - best.source:
            if best.start == limits.scan:
                break  # no later anchor of the list gives an earlier start or source
            if not _agrees_before(walk.text, best.start, shift):
                continue
        alignment = _align(walk, limits, anchor, other)
        latest = best.start if best.start >= 0 else limits.stop
        if alignment.position - alignment.max_before > latest:
            continue
        match = _match_at(walk.text, alignment, walk.rule.length, limits.stop)
        if match.start >= 0 and _is_better(match, best):
            best = match
    return best


@kernel
def _list_before(walk, open_start, listed, last_position):
    """List the anchors of the open fragment up to a position; return the anchor after them.

    An anchor is listed once a window may lie between it and the current anchor.
    """
    anchors = walk.anchors
    # Ends before the current anchor, whose position is `length` bytes after `last_position`.
    while anchors.positions[listed] <= last_position:
        if anchors.positions[listed] - walk.size + 1 >= open_start:
            _enter(anchors, listed, _OPEN)
        listed += 1
    return listed


@kernel
def _agrees_before(text, start, shift):
    """Return whether the byte before a match agrees with the byte `shift` before it: another source
    may give a longer match.
    """
    before = start - 1 - shift
    return before >= 0 and text[before] == text[start - 1]


@kernel
def _is_better(match, best):
    """Return whether a match is before the best one, or has an earlier source."""
    return (
        best.start < 0
        or match.start < best.start
        or (match.start == best.start and match.source < best.source)
    )


@kernel
def _align(walk, limits, anchor, other):
    """Return the alignment of an anchor of the current piece with a listed one."""
    position = walk.anchors.positions[anchor] + 1
    source = walk.anchors.positions[other] + 1
    fragment = walk.anchors.fragments[other]
    source_start = limits.open_start
    max_after = limits.stop - position
    if fragment != _OPEN:
        source_start = walk.fragments[fragment, 0]
        max_after = min(max_after, walk.fragments[fragment, 1] - source)
    return _Alignment(
        position=position,
        source=source,
        fragment=fragment,
        max_before=min(position - limits.scan, source - source_start),
        max_after=max_after,
    )


@kernel
def _match_at(text, alignment, length, piece_stop):
    """Return the match around an alignment, with start NONE if fewer than `length` characters
    agree.
    """
    shift = alignment.position - alignment.source
    is_open = alignment.fragment == _OPEN
    start = _common_start(text, alignment)
    stop = _common_stop(text, alignment, length)
    window = _end_of(text, start, stop, length, piece_stop)
    # In the open fragment, a window does not overlap its source.
    while is_open and window >= 0 and window - start > shift:
        start = advance(text, start, stop, 1)[0]
        window = _end_of(text, window, stop, 1, piece_stop)
    if window < 0:
        start = NONE
    return _Match(start=start, window=window, source=start - shift, fragment=alignment.fragment)


@kernel
def _common_start(text, alignment):
    """Return the first position from which on all characters before the aligned ones agree."""
    position = alignment.position
    start = position - _common_before(text, position, alignment.source, alignment.max_before)
    while start < position and not is_lead(text[start]):
        start += 1
    return start


@kernel
def _common_stop(text, alignment, length):
    """Return the end of the bytes after the aligned ones that agree, as far as the window of a
    match may reach.
    """
    position = alignment.position
    source = alignment.source
    size = common_after(text, position, source, min(alignment.max_after, length))
    if size == length:  # all agree; `length` characters may have up to four times the bytes
        rest = min(alignment.max_after, 4 * length) - length
        size += common_after(text, position + size, source + size, rest)
    return position + size


@kernel
def _end_of(text, start, stop, count, piece_stop):
    """Return the end of `count` whole characters in [start, stop), NONE if they are fewer."""
    end, missing = advance(text, start, stop, count)
    is_cut = end == stop and end < piece_stop and not is_lead(text[end])
    return NONE if missing > 0 or is_cut else end


@kernel
def _common_before(text, left, right, max_length):
    """Return the number of equal bytes before two positions, at most `max_length`."""
    length = 0
    while length + 8 <= max_length:
        if load_u64(text, left - length - 8) != load_u64(text, right - length - 8):
            break
        length += 8
    while length < max_length and text[left - length - 1] == text[right - length - 1]:
        length += 1
    return length


@kernel
def _keep(walk, opened, stop, stop_anchor):
    """Keep an open fragment up to `stop` and list its anchors, if it has a window; return the first
    anchor after it.
    """
    anchors = walk.anchors
    first = _first_anchor_from(walk, opened.start, opened.first_anchor, stop_anchor)
    after = first
    while after < stop_anchor and anchors.positions[after] < stop:
        after += 1
    # Kept text without a window contains no later passage.
    if advance(walk.text, opened.start, stop, walk.rule.length)[1] > 0:
        _withdraw(anchors, first, opened.listed)
        return after
    _withdraw(anchors, after, opened.listed)
    number = walk.state[NUM_FRAGMENTS]
    walk.fragments[number, 0] = opened.start
    walk.fragments[number, 1] = stop
    walk.state[NUM_FRAGMENTS] = number + 1
    for anchor in range(first, after):
        _enter(anchors, anchor, np.int32(number))
    return after


@kernel
def _enter(anchors, anchor, fragment):
    """List an anchor under its group, or change the fragment of a listed one."""
    group = anchors.groups[anchor]
    if group < 0:
        return
    if anchors.fragments[anchor] == UNLISTED:
        rank = anchors.group_starts[group] + anchors.group_sizes[group]
        anchors.listed[rank] = anchor
        anchors.listed_contexts[rank, BEFORE] = anchors.contexts[anchor, BEFORE]
        anchors.listed_contexts[rank, AFTER] = anchors.contexts[anchor, AFTER]
        anchors.group_sizes[group] += 1
    anchors.fragments[anchor] = fragment


@kernel
def _withdraw(anchors, first, stop):
    """Remove the anchors in [first, stop) from the ends of their lists."""
    # Anchors are listed in order, so the last ones of the text are the last ones of their lists.
    for anchor in range(stop - 1, first - 1, -1):
        if anchors.fragments[anchor] != UNLISTED:
            anchors.group_sizes[anchors.groups[anchor]] -= 1
            anchors.fragments[anchor] = UNLISTED


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


@kernel
def write_cut(rows, count, cut):
    """Append a cut to `count` rows; return the new number of rows."""
    rows[count, 0] = cut.kind
    rows[count, 1] = cut.piece
    rows[count, 2] = cut.start
    rows[count, 3] = cut.stop
    rows[count, 4] = cut.kept
    rows[count, 5] = cut.source
    rows[count, 6] = cut.window
    rows[count, 7] = cut.source_stop
    rows[count, 8] = cut.num_documents
    return count + 1


@kernel
def write_drop(rows, count, piece):
    """Write that the document of a piece is dropped."""
    return write_cut(rows, count, _without_source(DROPPED, piece, 0, 0, NONE))


@kernel
def cut_ranges(pieces, ranges, rule, rows):
    """Cut ranges of pieces, overlapping ones as one; return the number of rows written, as by
    `resolve`.

    ranges : int64 (num_ranges, 4), rising: piece, start, stop in the text, the number of documents
    that have it. rows : int64, with room for two of each range and one of each piece; the
    `num_documents` of a row is the largest of its ranges.
    """
    count = 0
    entry = 0
    lost = 0
    for piece in range(len(pieces.documents)):
        previous = NONE  # the end of the last cut in this piece
        if begins_document(pieces, piece):
            lost = 0
        while entry < len(ranges) and ranges[entry, _PIECE] == piece:
            start = ranges[entry, _START]
            entry, stop, num_documents = _merge_ranges(ranges, entry)
            start, stop = _trim(pieces, rule, piece, start, stop)
            if start >= stop:
                continue
            cut = _without_source(COMMON, piece, start, stop, num_documents)
            count, num_cut = _cut_with_bridge(pieces.text, rule.bridge, rows, count, previous, cut)
            lost += num_cut
            previous = stop
        if loses_too_much(pieces, piece, lost, rule.max_loss):
            count = write_drop(rows, count, piece)
    return count


@kernel
def _merge_ranges(ranges, first):
    """Return the first range that does not overlap earlier ones, their end, and the greatest number
    of documents.
    """
    stop = ranges[first, _STOP]
    num_documents = ranges[first, _NUM_DOCUMENTS]
    entry = first + 1
    while (
        entry < len(ranges)
        and ranges[entry, _PIECE] == ranges[first, _PIECE]
        and ranges[entry, _START] <= stop
    ):
        stop = max(stop, ranges[entry, _STOP])
        num_documents = max(num_documents, ranges[entry, _NUM_DOCUMENTS])
        entry += 1
    return entry, stop, num_documents


@kernel
def _trim(pieces, rule, piece, start, stop):
    """Return a range of the text without the incomplete characters, words, sentences or lines at
    its ends.

    A run of letters and digits longer than _MAX_WORD is no word, and is cut between characters. The
    ends move independently: if the first is after the last, the range has no complete unit.
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
    """Return the first position of a range where a cut may begin, its stop if there is none, or
    NONE if a word is too long.

    White space of any length is skipped: it belongs to no word.
    """
    text = pieces.text
    begin = pieces.starts[piece]
    end = pieces.starts[piece + 1]
    bounded = pieces.bounded[piece]
    position = start
    num_left = _MAX_WORD
    while position < stop and not may_end(text, position, begin, end, bounded, ends, classes):
        if ends <= WORD and not classes[code_at(text, position)] & SPACE:
            if num_left == 0:
                return NONE
            num_left -= 1
        position = advance(text, position, stop, 1)[0]
    return position


@kernel
def _move_stop(pieces, classes, piece, start, stop, ends):
    """Return the last position of a range where a cut may stop, its start if there is none, or NONE
    if a word is too long.
    """
    text = pieces.text
    begin = pieces.starts[piece]
    end = pieces.starts[piece + 1]
    bounded = pieces.bounded[piece]
    position = stop
    num_left = _MAX_WORD
    while position > start and not _may_stop(text, position, begin, end, bounded, ends, classes):
        position = retreat(text, position, start, 1)
        if ends <= WORD and not classes[code_at(text, position)] & SPACE:
            if num_left == 0:
                return NONE
            num_left -= 1
    return position


@kernel
def may_end(text, position, begin, end, bounded, ends, classes):
    """Return whether a unit, with the white space after it, may end at a position between two
    characters of a piece.

    begin, end, bounded : of the piece. classes : uint16 by code point, of `features.boundaries`.
    """
    if position == begin:
        return bounded & BEGINS_DOCUMENT != 0
    if position == end:
        return bounded & ENDS_DOCUMENT != 0
    before = code_at(text, retreat(text, position, begin, 1))
    left = classes[before]
    right = classes[code_at(text, position)]
    if is_within_cluster(text, position, begin, classes, left, right):
        return False
    if ends == CHARACTER:
        return True
    if ends == PARAGRAPH:
        return before == LINE_FEED and _follows_blank_line(text, position, begin)
    if ends == LINE or before == LINE_FEED:
        return before == LINE_FEED
    if right & SPACE:
        return False
    if ends == WORD:
        return not (left & LETTER and right & LETTER)
    is_possible = left & (SPACE | CLOSER | STOP | WIDE_STOP) != 0  # rarely
    return is_possible and _ends_sentence(text, position, begin, classes, False)


@kernel
def _may_stop(text, position, begin, end, bounded, ends, classes):
    """Return whether a cut may stop at a position: at the end of a unit, or before or within the
    white space after it.

    A passage whose copy ends there, or continues with other white space, has a complete last unit.
    """
    if may_end(text, position, begin, end, bounded, ends, classes):
        return True
    if position in (begin, end) or ends == CHARACTER:
        return False
    left = classes[code_at(text, retreat(text, position, begin, 1))]
    right = classes[code_at(text, position)]
    if not right & SPACE or is_within_cluster(text, position, begin, classes, left, right):
        return False
    is_crlf = (
        text[position] == CARRIAGE_RETURN and position + 1 < end and text[position + 1] == LINE_FEED
    )
    if ends == WORD or text[position] == LINE_FEED or is_crlf:
        return True
    return ends == SENTENCE and _ends_sentence(text, position, begin, classes, True)


@kernel
def _follows_blank_line(text, position, begin):
    """Return whether the line that ends before a position has blanks only."""
    position -= 2
    while position >= begin and text[position] in (TAB, CARRIAGE_RETURN, BLANK):
        position -= 1
    return position < begin or text[position] == LINE_FEED


@kernel
def _ends_sentence(text, position, begin, classes, is_before_space):
    """Return whether a sentence, and the spaces after it, end at a position.

    is_before_space : whether another space follows.
    """
    has_space = is_before_space
    kind = SPACE
    for _ in range(_MAX_SPACES):
        if position == begin:
            break
        position = retreat(text, position, begin, 1)
        code = code_at(text, position)
        kind = classes[code]
        if code == LINE_FEED:
            return True
        if not kind & (SPACE | CLOSER):
            break
        has_space |= kind & SPACE != 0
    return kind & WIDE_STOP != 0 or (kind & STOP != 0 and has_space)


@kernel
def count_up_to(pieces, owners, positions, counts):
    """Count the characters of documents before positions in their pieces.

    owners : int64, the piece of each position, rising as the positions do. counts : int64, written.
    """
    piece = NONE
    position = I64(0)
    count = I64(0)
    for i in range(len(positions)):
        if owners[i] != piece:
            piece = owners[i]
            position = pieces.starts[piece]
            count = pieces.before[piece]
        count += count_characters(pieces.text, position, positions[i])
        position = positions[i]
        counts[i] = count
