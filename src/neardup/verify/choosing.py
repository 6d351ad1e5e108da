"""Choose a threshold from the graph of the pairs of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Floats, Ints, Positions

LOWEST = 0.1
STEPS = np.arange(2, 20) / 20
"""The thresholds that answers choose from; the graph chooses from those up to 0.85."""
_GRAPHS = STEPS[:17]
_MOST_SHARE, _MOST_PAIRS = (
    0.1,
    5_000_000,
)  # of all pairs, above which the graph is one group; and to compare neighbours
_LEAST_DOCUMENTS, _LEAST_AGREEMENT, _LEAST_STABILITY = 30, 0.95, 0.90
_RIVAL = (
    0.8  # of the score, and of the documents; 0.74 to 0.86 decide the same on the labelled sets
)


class Level(NamedTuple):
    """The graph of the pairs at a threshold.

    documents : those with a neighbour. agreement : the mean over them of the mean, over their
    pairs, of the Jaccard similarity of the neighbours of both; 1 where groups are complete.
    stability : the share of the pairs that are left at a threshold that is 0.05 higher.
    """

    threshold: float
    pairs: int
    documents: int
    agreement: float
    stability: float

    @property
    def score(self) -> float:
        """The documents, and how clearly they are in groups."""
        return self.documents * (self.agreement * self.stability) ** 2

    def doubts(self, levels: Sequence[Level]) -> str | None:
        """Return why the threshold may not be suggested, as a clause; None if it may.

        levels : the graphs of all thresholds. One with fewer documents and nearly the same score
        has clearer groups.
        """
        if self.documents < _LEAST_DOCUMENTS:
            return (
                f"{self.documents} documents have a neighbour, and fewer than {_LEAST_DOCUMENTS} "
                "show no pattern"
            )
        if self.agreement < _LEAST_AGREEMENT:
            return (
                f"two neighbours have {self.agreement * 100:.1f} % of their neighbours in "
                "common, below "
                f"{_LEAST_AGREEMENT * 100:.0f} %: there is more than one grade of similarity"
            )
        if self.stability < _LEAST_STABILITY:
            return (
                f"{self.stability * 100:.1f} % of the pairs remain at "
                f"{self.threshold + 0.05:.2f}, fewer than "
                f"{_LEAST_STABILITY * 100:.0f} %: pairs lie close to the line"
            )
        score, documents = _RIVAL * self.score, _RIVAL * self.documents
        rivals = [each for each in levels if each.score >= score and each.documents < documents]
        if rivals:
            rival = max(rivals, key=lambda each: each.score)
            return (
                f"the groups at {rival.threshold:g} are clearer, without "
                f"{(1 - rival.documents / self.documents) * 100:.1f} % of these documents, "
                "more than "
                f"{(1 - _RIVAL) * 100:.0f} %: there is a second grade of similarity"
            )
        return None


def levels_of(
    left: Positions, right: Positions, similarity: Floats, num_documents: int
) -> list[Level]:
    """Return the graphs at rising thresholds of 0.05 steps that have pairs: at most a tenth of all,
    and 5 million.

    left, right, similarity : all pairs from LOWEST on, each once.
    """
    level = np.searchsorted(_GRAPHS, similarity, side="right") - 1
    pairs = np.cumsum(np.bincount(level, minlength=len(_GRAPHS))[::-1])[::-1]
    most = min(_MOST_SHARE * num_documents * (num_documents - 1) / 2, _MOST_PAIRS)
    allowed = np.flatnonzero((pairs > 0) & (pairs <= most))
    if not len(allowed):
        return []
    first = int(allowed[0])
    near = level >= first
    degrees, sums = _compare(
        left[near], right[near], level[near] - first, num_documents, len(_GRAPHS) - first
    )
    documents = np.count_nonzero(degrees, axis=0)
    means = np.divide(sums, degrees, out=np.zeros_like(sums), where=degrees > 0).sum(
        axis=0
    ) / np.maximum(documents, 1)
    left_over = pairs[first + 1 :] / np.maximum(pairs[first:-1], 1)
    columns = _GRAPHS[first:-1], pairs[first:-1], documents[:-1], means[:-1], left_over
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [found for row in rows if (found := Level(*row)).pairs]


def _compare(
    left: Positions, right: Positions, level: Ints, num_documents: int, num_levels: int
) -> tuple[Ints, Floats]:
    """Return the degree of each document in the graph of each level, and the sum of the agreement
    of its pairs.
    """
    sources, targets = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.lexsort((targets, sources))
    starts = np.searchsorted(sources[order], np.arange(num_documents + 1)).astype(np.int64)
    degrees, sums = (
        np.zeros((num_documents, num_levels), np.int64),
        np.zeros((num_documents, num_levels)),
    )
    graph = kernels.agreement.Graph(
        starts, targets[order], np.concatenate([level, level])[order].astype(np.int64)
    )
    kernels.agreement.compare(graph, degrees, sums)
    return degrees, sums
