"""Decide which passages are cut.

The rule: documents are walked in their order, and each from left to right. If the next `min_length`
characters occur in kept text that ends here or before, the text is cut for as long as it equals the
earliest such occurrence, which must be kept and end before the cut; the walk continues after the
cut. All other text is kept. Kept text is a stretch of one document without a cut, and no decision
is changed later. So each cut names text that is kept, and no two stretches of `min_length`
characters of kept text are equal unless they overlap.

The other rule keeps no copy: every stretch of `min_length` characters that enough documents of a
site have is cut from all of them.

The ends of a cut move inwards to whole words, sentences or lines; the text that they leave out is
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Ints, Mask, Positions, Words, begins_run, offsets_from_lengths
from neardup.candidates.passages import Groups, Hashes, equal_anchors
from neardup.decide.groups import num_needed
from neardup.decide.outcome import Cuts, Edits
from neardup.features.boundaries import boundary_classes
from neardup.settings.passages import CutAt, PassageSettings

if TYPE_CHECKING:
    from neardup.kernels.passage_groups import Ranges
    from neardup.kernels.passages import Anchors, Pieces, Rule

_ENDS: tuple[CutAt, ...] = ("character", "word", "sentence", "line")
"""The ends of cuts, numbered as in kernels/passages.py."""
_ANCHORS_AT_ONCE = 1 << 18


class InPieces(NamedTuple):
    """The bytes of passages in the text of `Pieces`, int64 (num_passages,).

    pieces, starts, stops : the piece of the passage, and its bytes. kept_pieces, kept_starts : the
    piece that keeps a copy, and the first byte of the copy; the passage itself without a copy.
    """

    pieces: Ints
    starts: Ints
    stops: Ints
    kept_pieces: Ints
    kept_starts: Ints


class Passages(NamedTuple):
    """The passages that are cut, in the order of the documents and within each from left to right.

    documents : uint32. starts, ends : int64, in bytes of the document. first, last : the same in
    characters. is_bridge : bool, whether it is the gap between two passages. is_kept : bool,
    whether a copy stays. kept : uint32, the document that keeps it; itself if no copy stays.
    kept_starts, kept_first : int64, the position of the copy there, in bytes and in characters.
    occurrences : int64, the number of copies, the kept one included; or the number of documents of
    the site that have the passage. in_pieces : the same passages in the text of `Pieces`. dropped :
    uint32, the documents that lost too much.
    """

    documents: Positions
    starts: Ints
    ends: Ints
    first: Ints
    last: Ints
    is_bridge: Mask
    is_kept: Mask
    kept: Positions
    kept_starts: Ints
    kept_first: Ints
    occurrences: Ints
    in_pieces: InPieces
    dropped: Positions

    def edits(self, num_documents: int, *, marked: bool) -> Edits:
        """Return the edits of all documents; marked : mark passages instead of cutting them."""
        kept = np.ones(num_documents, np.bool_)
        kept[self.dropped] = marked
        chosen = kept[self.documents]
        cuts = Cuts(self.documents[chosen], self.starts[chosen], self.ends[chosen])
        return Edits(kept, cuts if len(cuts.documents) else None, marked)


def decide_passages(
    pieces: Pieces,
    positions: Ints,
    groups: Groups,
    settings: PassageSettings,
    *,
    gram_size: int,
    num_against: int,
    on_done: Callable[[int], object],
) -> Passages:
    """Return the passages that are cut by the rule that keeps the first copy.

    Parameters
    ----------
    positions : int64, the last byte of each anchor in the text.
    groups : the groups of the anchors.
    gram_size : the number of bytes that are hashed.
    num_against : the number of documents, from the first, that are kept whole.
    on_done : called with the number of documents that are decided about, rising; documents after
        the last piece have nothing to decide.
    """
    named = kernels.passages
    anchors = _anchors_of(positions, groups)
    rule = _rule(settings)
    # Kept fragments have as many bytes as a passage has characters, or more.
    fragments = np.empty((len(pieces.text) // settings.min_length + 1, 2), np.int64)
    state = np.zeros(3, np.int64)
    found = [_room_for_cuts(0)]
    first = 0
    for stop in _ends_of_stretches(pieces):
        num_anchors = int(pieces.anchors[stop - 1]) - int(state[named.NEXT_ANCHOR])
        room = _room_for_cuts(num_anchors + 2)
        state[named.NUM_ROWS] = 0
        span = named.PieceSpan(first=first, stop=stop, num_against=num_against)
        rows = named.resolve(pieces, anchors, fragments, rule, gram_size, span, room, state)
        found.append(rows[: state[named.NUM_ROWS]].copy())
        first = stop
        on_done(int(pieces.documents[stop - 1]) + 1)
    return _passages(pieces, np.concatenate(found))


def decide_common(
    pieces: Pieces,
    positions: Ints,
    hashes: Hashes,
    sites: Words,
    settings: PassageSettings,
    *,
    gram_size: int,
) -> Passages:
    """Return the passages that are cut by the rule that keeps no copy.

    Parameters
    ----------
    positions, hashes : the last byte of each anchor in the text, and its hashes.
    sites : uint64 by document, equal for the documents of one site.
    gram_size : the number of bytes that are hashed.
    """
    members, offsets = equal_anchors(hashes)
    positions = positions[members]
    piece = np.searchsorted(pieces.starts, positions, "right") - 1
    owners = pieces.documents[piece]
    owner_sites, needed = _sites_of(sites, owners, settings)
    anchors = kernels.passage_groups.Common(
        begins=pieces.starts[piece],
        ends=pieces.starts[piece + 1],
        positions=positions,
        owners=owners,
        sites=owner_sites,
        needed=needed,
    )
    marked = _no_ranges(len(members))
    kernels.passage_groups.mark_common(
        pieces.text, offsets, anchors, settings.min_length, gram_size, marked
    )
    ranges = _Ranges(
        pieces=piece,
        starts=marked.starts,
        stops=marked.stops,
        num_documents=marked.num_documents,
    )
    ranges = ranges.take(ranges.num_documents > 0)
    by_start = np.lexsort((ranges.starts, ranges.pieces))
    return _cut_ranges(pieces, ranges.take(by_start), settings)


def _no_ranges(size: int) -> Ranges:
    """Return ranges of no window."""
    return kernels.passage_groups.Ranges(*np.zeros((3, size), np.int64))


def decide_units(
    pieces: Pieces, first: Ints, sites: Words, settings: PassageSettings, num_against: int
) -> Passages:
    """Return the units that are cut: if a copy is kept, units whose text was kept before; otherwise
    units that enough documents of a site have.

    Parameters
    ----------
    pieces : each a unit.
    first : int64 by unit, the first unit of the same text.
    sites : uint64 by document, equal for the documents of one site.
    num_against : the number of documents, from the first, that are kept whole.
    """
    if settings.keep == "first":
        rows = _room_for_cuts(2 * len(first))
        count = kernels.passage_units.cut_units(pieces, first, num_against, settings.max_loss, rows)
        return _passages(pieces, rows[:count])
    unit_sites, needed = _sites_of(sites, pieces.documents, settings)
    num_documents = _count_documents(first, unit_sites, pieces.documents)
    units = _Ranges(
        pieces=np.arange(len(first)),
        starts=pieces.starts[:-1],
        stops=pieces.starts[1:],
        num_documents=num_documents,
    )
    return _cut_ranges(pieces, units.take(num_documents >= needed), settings)


def _anchors_of(positions: Ints, groups: Groups) -> Anchors:
    """Return the anchors for the kernel, with room for the fragments that it lists."""
    starts = offsets_from_lengths(groups.sizes)
    num_listed = int(starts[-1])
    return kernels.passages.Anchors(
        positions=positions,
        groups=groups.numbers,
        contexts=groups.contexts,
        fragments=np.full(len(positions), kernels.passages.UNLISTED, np.int32),
        listed=np.empty(num_listed, np.int32),
        listed_contexts=np.empty((num_listed, 2), np.uint64),
        group_starts=starts[:-1],
        group_sizes=np.zeros(len(groups.sizes), np.int32),
    )


def _rule(settings: PassageSettings) -> Rule:
    """Return the settings for the kernel."""
    return kernels.passages.Rule(
        length=settings.min_length,
        bridge=settings.bridge,
        max_loss=settings.max_loss,
        ends=_ENDS.index(settings.cut_at),
        classes=boundary_classes(),
    )


def _room_for_cuts(size: int) -> Ints:
    """Return memory for cuts, int64 (size, 9): the columns are `kernels.passages.Cut`."""
    return np.empty((size, len(kernels.passages.Cut._fields)), np.int64)


def _ends_of_stretches(pieces: Pieces) -> Iterator[int]:
    """Yield the ends, in pieces, of stretches of whole documents with about _ANCHORS_AT_ONCE."""
    num_pieces = len(pieces.documents)
    end = 0
    while end < num_pieces:
        num_anchors = int(pieces.anchors[end - 1]) if end else 0
        full = int(np.searchsorted(pieces.anchors, num_anchors + _ANCHORS_AT_ONCE))
        document = pieces.documents[min(num_pieces - 1, full)]
        end = int(np.searchsorted(pieces.documents, document, "right"))
        yield end


def _sites_of(sites: Words, owners: Ints, settings: PassageSettings) -> tuple[Ints, Ints]:
    """Return the site of each owner, and the number of its documents that must have a passage.

    sites : uint64 by document. owners : int64, documents.
    """
    _, numbers, num_documents = np.unique(sites, return_inverse=True, return_counts=True)
    needed = num_needed(settings.min_share, num_documents, at_least=2)
    of_owners = numbers[owners].astype(np.int64)
    return of_owners, needed[of_owners]


def _count_documents(first: Ints, sites: Ints, documents: Ints) -> Ints:
    """Return by unit the number of documents of its site that have its text."""
    order = np.lexsort((documents, sites, first))
    begins = begins_run(first[order], sites[order])
    is_new = begins | begins_run(documents[order])
    starts = np.flatnonzero(begins)
    counts = np.add.reduceat(is_new, starts, dtype=np.int64)
    of_unit = np.empty(len(order), np.int64)
    of_unit[order] = counts[np.cumsum(begins) - 1]
    return of_unit


class _Ranges(NamedTuple):
    """Ranges of pieces, int64 by range.

    pieces : the piece of the range. starts, stops : its bytes in the text of `Pieces`.
    num_documents : the number of documents that have it.
    """

    pieces: Ints
    starts: Ints
    stops: Ints
    num_documents: Ints

    def take(self, chosen: Mask | Ints) -> _Ranges:
        """Return the chosen ranges, in their order."""
        return _Ranges(*(column[chosen] for column in self))


def _cut_ranges(pieces: Pieces, ranges: _Ranges, settings: PassageSettings) -> Passages:
    """Cut ranges, by piece and start."""
    rows = _room_for_cuts(2 * len(ranges.pieces) + len(pieces.documents))
    columns = np.stack(ranges, axis=1)
    count = kernels.passages.cut_ranges(pieces, columns, _rule(settings), rows)
    return _passages(pieces, rows[:count])


def _passages(pieces: Pieces, rows: Ints) -> Passages:
    """Return the cuts that a kernel wrote as rows of `kernels.passages.Cut`."""
    named = kernels.passages
    cuts, dropped_pieces = _split(rows)
    passages = _in_pieces(pieces, cuts)
    documents = pieces.documents[passages.pieces].astype(np.uint32)
    first, last = _characters(pieces, passages)
    emptied = _emptied(documents, last - first, pieces)
    shift = pieces.offsets - pieces.starts[:-1]  # from the text of pieces to their documents
    return Passages(
        documents=documents,
        starts=passages.starts + shift[passages.pieces],
        ends=passages.stops + shift[passages.pieces],
        first=first,
        last=last,
        is_bridge=cuts["kind"] == named.BRIDGE,
        is_kept=cuts["kind"] == named.REPEATED,
        kept=pieces.documents[passages.kept_pieces].astype(np.uint32),
        kept_starts=passages.kept_starts + shift[passages.kept_pieces],
        kept_first=_characters_before(pieces, passages.kept_pieces, passages.kept_starts),
        occurrences=_occurrences(cuts),
        in_pieces=passages,
        dropped=np.union1d(pieces.documents[dropped_pieces], emptied).astype(np.uint32),
    )


def _split(rows: Ints) -> tuple[np.ndarray, Ints]:
    """Return the cuts among rows, and the pieces whose documents are dropped."""
    dtype = np.dtype([(name, np.int64) for name in kernels.passages.Cut._fields])
    cuts = np.ascontiguousarray(rows).view(dtype)[:, 0]
    is_dropped = cuts["kind"] == kernels.passages.DROPPED
    return cuts[~is_dropped], cuts["piece"][is_dropped]


def _in_pieces(pieces: Pieces, cuts: np.ndarray) -> InPieces:
    """Return cuts as passages in the text of pieces, with the piece of each kept copy."""
    is_kept = cuts["kind"] == kernels.passages.REPEATED
    kept_starts = np.where(is_kept, cuts["kept"], cuts["start"])
    return InPieces(
        pieces=cuts["piece"].copy(),
        starts=cuts["start"].copy(),
        stops=cuts["stop"].copy(),
        kept_pieces=np.searchsorted(pieces.starts, kept_starts, "right") - 1,
        kept_starts=kept_starts,
    )


def _emptied(documents: Positions, lost: Ints, pieces: Pieces) -> Ints:
    """Return the documents that lose all of their characters; lost : by passage."""
    of_document = np.bincount(documents, lost, len(pieces.characters)).astype(np.int64)
    return np.flatnonzero((of_document == pieces.characters) & (of_document > 0))


def _characters(pieces: Pieces, passages: InPieces) -> tuple[Ints, Ints]:
    """Return the characters of documents before the starts and before the stops of passages."""
    bounds = np.column_stack([passages.starts, passages.stops])
    owners = np.repeat(passages.pieces, 2)
    counts = _count_up_to(pieces, owners, bounds.ravel()).reshape(-1, 2)
    return counts[:, 0], counts[:, 1]


def _characters_before(pieces: Pieces, owners: Ints, positions: Ints) -> Ints:
    """Return the characters of documents before positions in any order; owners : their pieces."""
    order = np.argsort(positions, kind="stable")
    counts = np.empty(len(positions), np.int64)
    counts[order] = _count_up_to(pieces, owners[order], positions[order])
    return counts


def _count_up_to(pieces: Pieces, owners: Ints, positions: Ints) -> Ints:
    """Return the characters of documents before positions, which rise within a piece."""
    counts = np.empty(len(positions), np.int64)
    kernels.passages.count_up_to(pieces, owners, positions, counts)
    return counts


def _occurrences(cuts: np.ndarray) -> Ints:
    """Return how often the text of each cut was found; see `Passages`.

    Other cuts are counted if their kept text contains the window of this cut, the first
    `min_length` characters of its kept text:

        this cut             |--- window ---|......|
        counted          |...................|
        counted              |...................|
        begins later           |...................|
        ends before      |...............|
    """
    named = kernels.passages
    occurrences: Ints = np.where(cuts["kind"] == named.COMMON, cuts["num_documents"], 1)
    is_repeated = cuts["kind"] == named.REPEATED
    repeated = cuts[is_repeated]
    # No kept text both begins later and ends before: it has `min_length` characters or more.
    begun = np.searchsorted(np.sort(repeated["source"]), repeated["source"], "right")
    ended = np.searchsorted(np.sort(repeated["source_stop"]), repeated["window"])
    occurrences[is_repeated] += begun - ended
    return occurrences
