"""Choose a threshold from the graph of the pairs of a collection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Floats, Ints, Positions

if TYPE_CHECKING:
    from neardup.kernels.agreement import Graph

LOWEST = 0.1
GENERAL = 0.45
"""The threshold for versions of one work by shingles of 2 words where nothing is known of the
texts; docs/accuracy.md shows where it comes from."""
STEP = 0.05
STEPS = np.arange(2, 20) / 20
"""The thresholds that answers choose from; the graph chooses from those up to 0.85."""
_GRAPHS = STEPS[:17]
_MAX_SHARE = 0.1  # of all pairs; a graph of more is one group
_MAX_PAIRS = 5_000_000  # whose neighbours are compared
_MIN_DOCUMENTS = 30
_MIN_AGREEMENT = 0.95
_MIN_STABILITY = 0.90
# Of the clarity, and of the documents; 0.74 to 0.86 decide the same on the labelled sets.
_RIVAL = 0.8


class Level(NamedTuple):
    """The graph of the pairs at a threshold.

    documents : the number of documents with a neighbour. agreement : the mean, over documents, of
    the mean, over their pairs, of the Jaccard similarity of the neighbours of both; 1 if groups are
    complete. stability : the share of the pairs that remain at a threshold that is 0.05 higher.
    """

    threshold: float
    pairs: int
    documents: int
    agreement: float
    stability: float

    @property
    def clarity(self) -> float:
        """The number of documents, weighted by the clarity of their groups."""
        return self.documents * (self.agreement * self.stability) ** 2

    @property
    def score(self) -> float:
        """The clarity, by which large groups weigh less.

        Letters and adverts that share a frame form a few large groups, which are as clear as the
        pairs of versions within them.
        """
        neighbours = 2 * self.pairs / self.documents
        return self.clarity / math.log(2 + neighbours)

    def doubts(self, levels: Sequence[Level]) -> str | None:
        """Return why the threshold may not be suggested, as a clause; None if it may.

        levels : the graphs of all thresholds. A graph with fewer documents and nearly the same
        clarity has clearer groups.
        """
        if self.documents < _MIN_DOCUMENTS:
            return (
                f"{self.documents} documents have a neighbour, and fewer than {_MIN_DOCUMENTS} "
                "show no pattern"
            )
        if self.agreement < _MIN_AGREEMENT:
            return (
                f"two neighbours have {self.agreement * 100:.1f} % of their neighbours in common, "
                f"below {_MIN_AGREEMENT * 100:.0f} %: there is more than one grade of similarity"
            )
        if self.stability < _MIN_STABILITY:
            return (
                f"{self.stability * 100:.1f} % of the pairs remain at {self.threshold + 0.05:.2f}, "
                f"fewer than {_MIN_STABILITY * 100:.0f} %: pairs lie close to the line"
            )
        # Clearer groups of many fewer documents.
        rivals = [
            level
            for level in levels
            if level.clarity >= _RIVAL * self.clarity and level.documents < _RIVAL * self.documents
        ]
        if rivals:
            rival = max(rivals, key=lambda level: level.clarity)
            return (
                f"the groups at {rival.threshold:g} are clearer, without "
                f"{(1 - rival.documents / self.documents) * 100:.1f} % of these documents, more "
                f"than {(1 - _RIVAL) * 100:.0f} %: there is a second grade of similarity"
            )
        return None


def levels_of(
    left: Positions, right: Positions, similarity: Floats, num_documents: int
) -> list[Level]:
    """Return the graphs at rising thresholds, in steps of 0.05.

    They have pairs: at most a tenth of all, and 5 million.

    left, right, similarity : all pairs from LOWEST on, each once.
    """
    level = np.searchsorted(_GRAPHS, similarity, side="right") - 1
    num_pairs = np.cumsum(np.bincount(level, minlength=len(_GRAPHS))[::-1])[::-1]
    max_pairs = min(_MAX_SHARE * num_documents * (num_documents - 1) / 2, _MAX_PAIRS)
    allowed = np.flatnonzero((num_pairs > 0) & (num_pairs <= max_pairs))
    if not len(allowed):
        return []
    first = int(allowed[0])
    is_near = level >= first
    graph = _make_graph(left[is_near], right[is_near], level[is_near] - first, num_documents)
    agreement = _compare(graph, num_documents, num_levels=len(_GRAPHS) - first)
    return _make_levels(_GRAPHS[first:], num_pairs[first:], agreement)


def _make_levels(thresholds: Floats, num_pairs: Ints, agreement: _Agreement) -> list[Level]:
    """Return the levels that have pairs, without the last, whose stability is unknown."""
    stability = num_pairs[1:] / np.maximum(num_pairs[:-1], 1)
    return [
        Level(
            threshold=float(thresholds[row]),
            pairs=int(num_pairs[row]),
            documents=int(agreement.documents[row]),
            agreement=float(agreement.mean[row]),
            stability=float(stability[row]),
        )
        for row in range(len(stability))
        if num_pairs[row]
    ]


class _Agreement(NamedTuple):
    """Agreement by level: the documents with a neighbour, and the mean over these documents."""

    documents: Ints
    mean: Floats


def _make_graph(left: Positions, right: Positions, level: Ints, num_documents: int) -> Graph:
    """Return the neighbours of each document; level : the highest level that has a pair."""
    sources = np.concatenate([left, right])
    targets = np.concatenate([right, left])
    order = np.lexsort((targets, sources))
    return kernels.agreement.Graph(
        np.searchsorted(sources[order], np.arange(num_documents + 1)).astype(np.int64),
        targets[order],
        np.concatenate([level, level])[order].astype(np.int64),
    )


def _compare(graph: Graph, num_documents: int, *, num_levels: int) -> _Agreement:
    """Compare the neighbours of both documents of each pair, at each level."""
    shape = (num_documents, num_levels)
    degrees = np.zeros(shape, np.int64)
    sums = np.zeros(shape)
    kernels.agreement.compare(graph, degrees, sums)
    documents = np.count_nonzero(degrees, axis=0)
    means = np.divide(sums, degrees, out=np.zeros(shape), where=degrees > 0)
    return _Agreement(documents, means.sum(axis=0) / np.maximum(documents, 1))
