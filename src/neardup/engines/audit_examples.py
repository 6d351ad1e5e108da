"""The examples of an audit: its worst removals, side by side with the nearest kept documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.arrays import Floats, Integers, Mask, Positions
from neardup.decide.outcome import Pairs
from neardup.decide.referee import CHAIN, GROUP, Judgement
from neardup.decide.rule import Found
from neardup.engines.audit import NONE, Findings
from neardup.engines.base import Searched
from neardup.output import write as writing
from neardup.report.items import Example, Marker
from neardup.runs.locations import NO_PLACE, Place
from neardup.schemas import SIMILARITY

_MAX_EXAMPLES = 10  # of each kind


def examples_of(findings: Findings) -> dict[str, list[Example]]:
    """Return the worst removals of each kind, side by side with the nearest kept document."""
    chosen = _chosen_pairs(findings)
    shown = [pair for pairs in chosen.values() for pair in pairs]
    documents = {document for pair in shown for document in (pair.left, pair.right)} - {NONE}
    searched = findings.searched
    read = writing.read_texts(
        searched.tasks, searched.corpus.part_ends, np.array(sorted(documents), np.uint32)
    )
    # A document that is like no kept one is shown beside nothing.
    marker = Marker({**dict(read), NONE: ""}, searched.method.settings.shingling)
    return {
        kind: [_example(searched, marker, pair) for pair in pairs]
        for kind, pairs in chosen.items()
        if pairs
    }


def _example(searched: Searched, marker: Marker, pair: _ShownPair) -> Example:
    return Example(
        removed=_place(searched, pair.left),
        kept=_place(searched, pair.right),
        pair=marker.mark(pair.left, pair.right),
        similarity=pair.similarity,
        exact=False,
    )


def _place(searched: Searched, document: int) -> Place:
    if document == NONE:
        return NO_PLACE
    return next(searched.locations.places(np.array([document], np.uint32)))


def _chosen_pairs(findings: Findings) -> dict[str, list[_ShownPair]]:
    """Return the pairs to show by kind, the worst first."""
    judgement = findings.judgement
    return {
        "unlike": _least_similar(judgement, findings.is_far),
        "below_threshold": _least_similar(judgement, findings.is_below),
        "chain": _least_similar(judgement, judgement.where(CHAIN) & judgement.checked),
        "no_copy_kept": _pairs_of_groups(findings),
        "later_copy_kept": _least_similar(judgement, findings.is_late),
        "left": _most_similar(findings.remaining.pairs),
    }


def _least_similar(judgement: Judgement, mask: Mask) -> list[_ShownPair]:
    """Return the documents with the least similar keepers."""
    documents = np.flatnonzero(mask)
    order = np.argsort(judgement.similarity[documents], kind="stable")
    shown = documents[order[:_MAX_EXAMPLES]]
    return _shown_pairs(shown, judgement.keepers[shown], judgement.similarity[shown])


def _most_similar(pairs: Pairs) -> list[_ShownPair]:
    similarity = pairs.measured[SIMILARITY.name]
    shown = np.argsort(-similarity, kind="stable")[:_MAX_EXAMPLES]
    return _shown_pairs(pairs.left[shown], pairs.right[shown], similarity[shown])


def _pairs_of_groups(findings: Findings) -> list[_ShownPair]:
    """Return a pair of each of the largest groups without a kept copy."""
    judgement = findings.judgement
    is_group = judgement.where(GROUP)
    pairs = _pairs_and_copies(findings.searched.found)
    rows = np.flatnonzero(is_group[pairs.left])
    distinct, first = np.unique(judgement.components[pairs.left[rows]], return_index=True)
    sizes = np.bincount(judgement.components[is_group], minlength=len(is_group))
    largest = np.argsort(-sizes[distinct], kind="stable")[:_MAX_EXAMPLES]
    shown = rows[first[largest]]
    return _shown_pairs(pairs.left[shown], pairs.right[shown], pairs.similarity[shown])


class _ShownPair(NamedTuple):
    """Two documents to show beside each other; `right` may be NONE."""

    left: int
    right: int
    similarity: float


def _shown_pairs(left: Integers, right: Integers, similarity: Floats) -> list[_ShownPair]:
    rows = zip(left.tolist(), right.tolist(), similarity.tolist(), strict=True)
    return [_ShownPair._make(row) for row in rows]


class _Pairs(NamedTuple):
    """Pairs of documents, uint32 (num_pairs,), and their similarity, float64."""

    left: Positions
    right: Positions
    similarity: Floats


def _pairs_and_copies(found: Found) -> _Pairs:
    """Return the pairs of a search, and of each document with the first of its content."""
    queue = found.queue
    pairs = found.confirmed
    copies = np.flatnonzero(~queue.is_first)
    return _Pairs(
        left=queue.order[np.append(pairs.left, queue.representative[copies])],
        right=queue.order[np.append(pairs.right, copies)],
        similarity=np.append(pairs.measured[SIMILARITY.name], np.ones(len(copies))),
    )
