"""Decide which passages are cut.

The rule: documents are walked in their order, and each from left to right. Where the next
`min_length` characters occur in kept text that ends here or before, the text is cut for as long as
it agrees with the earliest such place, and that place is kept and ends before the cut; then the
walk goes on behind the cut. All else is kept. Kept text is that of one stretch of a document
without a cut, and no decision is taken back. So each cut names text that is kept, and no two
stretches of `min_length` characters of kept text are equal unless they overlap.

The other rule keeps no copy: every stretch of `min_length` characters that enough documents of a
site have is cut from all of them.

The ends of a cut move inwards to whole words, sentences or lines, and what they leave out is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Ints, Mask, Positions, Words, begins_run, offsets_from_lengths
from neardup.candidates.passages import Groups, Hashes, equal_anchors
from neardup.decide.outcome import Cuts, Edits
from neardup.features.boundaries import boundary_classes
from neardup.settings.passages import CutAt, PassageSettings

if TYPE_CHECKING:
    from neardup.kernels.passages import Pieces, Rule

_ENDS: tuple[CutAt, ...] = (
    "character",
    "word",
    "sentence",
    "line",
)  # numbered as in kernels/passages.py
_ANCHORS = 1 << 18  # decided about at a time


class Passages(NamedTuple):
    """The passages that are cut, in the order of the documents and within each from left to right.

    documents : uint32. starts, ends : int64, in bytes of the document. first, last : the same in
    characters. is_bridge : bool, of a gap between two passages. is_kept : bool, whether a copy
    stays. kept : uint32, the document that keeps it; kept_starts, kept_first : int64, where, in
    bytes and in characters; else itself. occurrences : int64, how often it was found, the kept one
    included; or how many documents of the site have it. dropped : uint32, documents that lost too
    much. places : int64 (num_passages, 5): the piece, where the passage starts and ends in the text
    of `Pieces`; the piece that keeps it, and where there.
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
    dropped: Positions
    places: Ints

    def edits(self, num_documents: int, *, marked: bool) -> Edits:
        """Return the edits of all documents; marked : nothing is cut or dropped, but marked."""
        kept = np.ones(num_documents, np.bool_)
        kept[self.dropped] = marked
        chosen = kept[self.documents]
        cuts = Cuts(self.documents[chosen], self.starts[chosen], self.ends[chosen])
        return Edits(kept, cuts if len(cuts.documents) else None, marked)


def decide_passages(
    pieces: Pieces,
    places: Ints,
    groups: Groups,
    settings: PassageSettings,
    gram_size: int,
    num_against: int,
) -> Iterator[tuple[int, Passages | None]]:
    """Decide about the documents of pieces; yield how many are done, and in the end what is cut.

    Parameters
    ----------
    places : int64, of the anchors. groups : of the anchors. gram_size : bytes that
    are hashed. num_against : documents that are kept whole.
    """
    named = kernels.passages
    starts = offsets_from_lengths(groups.sizes)
    listed, beside = np.empty(int(starts[-1]), np.int32), np.empty((int(starts[-1]), 2), np.uint64)
    fragment_of = np.full(len(places), -2, np.int32)
    counts = np.zeros(len(groups.sizes), np.int32)
    anchors = named.Anchors(
        places, groups.numbers, groups.contexts, fragment_of, listed, beside, starts[:-1], counts
    )
    rule = _rule(settings)
    state, found, first = np.zeros(3, np.int64), [np.empty((0, 8), np.int64)], 0
    # Kept fragments have as many bytes as a passage has characters, or more.
    fragments = np.empty((len(pieces.text) // settings.min_length + 1, 2), np.int64)
    for stop in _stretches(pieces):
        num_anchors = int(pieces.anchors[stop - 1]) - int(state[2])
        rows, state[1] = np.empty((num_anchors + 2, 8), np.int64), 0
        rows = named.resolve(
            pieces, anchors, fragments, rule, gram_size, (first, stop, num_against), rows, state
        )
        found.append(rows[: state[1]].copy())
        first = stop
        yield int(pieces.documents[stop - 1]) + 1, None
    yield len(pieces.characters), _passages(pieces, np.concatenate(found))


def decide_common(
    pieces: Pieces,
    places: Ints,
    hashes: Hashes,
    sites: Words,
    settings: PassageSettings,
    gram_size: int,
) -> Passages:
    """Decide by the rule that keeps no copy.

    Parameters
    ----------
    places, hashes : of the anchors. sites : by document, equal for those of one site. gram_size :
        as above.
    """
    members, offsets = equal_anchors(hashes)
    piece = np.searchsorted(pieces.starts, places[members], "right") - 1
    bounds = np.stack([pieces.starts[piece], pieces.starts[piece + 1]], axis=1)
    owners = pieces.documents[piece]
    site, needed = _needed(sites, owners, settings)
    ranges = np.zeros((len(members), 3), np.int64)
    anchors = kernels.passage_groups.Common(bounds, places[members], owners, site, needed)
    kernels.passage_groups.mark_common(
        pieces.text, offsets, anchors, settings.min_length, gram_size, ranges
    )
    found = np.column_stack([piece, ranges])[ranges[:, 2] > 0]
    return _cut_ranges(pieces, found[np.lexsort((found[:, 1], found[:, 0]))], settings)


def decide_units(
    pieces: Pieces, first: Ints, sites: Words, settings: PassageSettings, num_against: int
) -> Passages:
    """Decide about units: those whose text was kept before are cut, or those that enough documents
    of a site have.

    Parameters
    ----------
    pieces : each a unit. first : the first unit with the text of each. sites, num_against : as
        above.
    """
    if settings.keep == "first":
        rows = np.empty((2 * len(first), 8), np.int64)
        count = kernels.passage_units.cut_units(pieces, first, num_against, settings.max_loss, rows)
        return _passages(pieces, rows[:count])
    site, needed = _needed(sites, pieces.documents, settings)
    order = np.lexsort((pieces.documents, site, first))
    begins = begins_run(first[order], site[order])
    new = begins | begins_run(pieces.documents[order])
    documents = np.empty(len(order), np.int64)
    documents[order] = np.add.reduceat(new, np.flatnonzero(begins), dtype=np.int64)[
        np.cumsum(begins) - 1
    ]
    found = np.column_stack(
        [np.arange(len(first)), pieces.starts[:-1], pieces.starts[1:], documents]
    )
    return _cut_ranges(pieces, found[documents >= needed], settings)


def _needed(sites: Words, owners: Ints, settings: PassageSettings) -> tuple[Ints, Ints]:
    """Return the site of each document among `owners`, and how many documents of it must have a
    passage.
    """
    _, site, documents = np.unique(sites, return_inverse=True, return_counts=True)
    # Rounded, so that 0.1 of 30 documents are 3.
    needed = np.maximum(2, np.ceil(np.round(settings.min_share * documents, 9))).astype(np.int64)
    site = site[owners].astype(np.int64)
    return site, needed[site]


def _cut_ranges(pieces: Pieces, found: Ints, settings: PassageSettings) -> Passages:
    rows = np.empty((2 * len(found) + len(pieces.documents), 8), np.int64)
    found = np.ascontiguousarray(found)
    return _passages(
        pieces, rows[: kernels.passages.cut_ranges(pieces, found, _rule(settings), rows)]
    )


def _rule(settings: PassageSettings) -> Rule:
    ends = _ENDS.index(settings.cut_at)
    return kernels.passages.Rule(
        settings.min_length, settings.bridge, settings.max_loss, ends, boundary_classes()
    )


def _stretches(pieces: Pieces) -> Iterator[int]:
    """Yield where stretches of whole documents end, in pieces."""
    first, count = 0, len(pieces.documents)
    while first < count:
        before = int(pieces.anchors[first - 1]) if first else 0
        stop = min(count - 1, int(np.searchsorted(pieces.anchors, before + _ANCHORS)))
        first = int(np.searchsorted(pieces.documents, pieces.documents[stop], "right"))
        yield first


def _passages(pieces: Pieces, rows: Ints) -> Passages:
    """Return the cuts that a kernel wrote as rows."""
    named = kernels.passages
    dropped = pieces.documents[rows[rows[:, 0] == named.DROPPED, 1]]
    rows = rows[rows[:, 0] != named.DROPPED]
    kinds, owners, starts, stops, kept, sources, windows, source_stops = rows.T
    is_kept = kinds == named.REPEATED
    kept = np.where(is_kept, kept, starts)
    order = np.argsort(kept, kind="stable")
    kept_owners, kept_first, ends = (
        np.empty_like(kept),
        np.empty_like(kept),
        np.empty(2 * len(rows), np.int64),
    )
    owners_in_order, counts = (
        np.searchsorted(pieces.starts, kept[order], "right") - 1,
        np.empty_like(kept),
    )
    named.count_up_to(pieces, owners_in_order, kept[order], counts)
    kept_owners[order], kept_first[order] = owners_in_order, counts
    named.count_up_to(pieces, np.repeat(owners, 2), rows[:, 2:4].ravel(), ends)
    first, last = ends.reshape(-1, 2).T
    of_bytes = pieces.offsets - pieces.starts[:-1]
    documents = pieces.documents[owners].astype(np.uint32)
    lost = np.bincount(documents, last - first, len(pieces.characters)).astype(np.int64)
    emptied = np.flatnonzero((lost == pieces.characters) & (lost > 0))
    occurrences = np.where(kinds == named.COMMON, sources, 1)
    order = np.flatnonzero(is_kept)
    order = order[np.argsort(sources[order], kind="stable")]
    occurrences[order] += np.searchsorted(sources[order], sources[order], "right")
    occurrences[order] -= np.searchsorted(np.sort(source_stops[order]), windows[order])
    return Passages(
        documents,
        starts + of_bytes[owners],
        stops + of_bytes[owners],
        first,
        last,
        kinds == named.BRIDGE,
        is_kept,
        pieces.documents[kept_owners].astype(np.uint32),
        kept + of_bytes[kept_owners],
        kept_first,
        occurrences,
        np.union1d(dropped, emptied).astype(np.uint32),
        np.stack([owners, starts, stops, kept_owners, kept], axis=1),
    )
