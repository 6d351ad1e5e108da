"""Choose a threshold from the pairs of a collection: from their graph alone, or from answers about some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Floats, Ints, Mask, Positions
from neardup.verify.recall import wilson

LOWEST = 0.1
STEPS = np.arange(2, 20) / 20
"""The thresholds that answers choose from; the graph chooses from those up to 0.85."""
BANDS = np.arange(1, 10) / 10
"""The lower ends of the bands of similarity from which pairs are drawn to be asked about."""
_GRAPHS = STEPS[:17]
_MOST_SHARE, _MOST_PAIRS = 0.1, 5_000_000  # of all pairs, above which the graph is one group; and to compare neighbours
_LEAST_DOCUMENTS, _LEAST_AGREEMENT, _LEAST_STABILITY = 30, 0.95, 0.90
_RIVAL = 0.8  # of the score, and of the documents; 0.74 to 0.86 decide the same on the labelled sets


class Level(NamedTuple):
    """The graph of the pairs at a threshold.

    documents : those with a neighbour. agreement : the mean over them of the mean, over their pairs, of the Jaccard
    similarity of the neighbours of both; 1 where groups are complete. stability : the share of the pairs that are left
    at a threshold that is 0.05 higher.
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

        levels : the graphs of all thresholds. One with fewer documents and nearly the same score has clearer groups.
        """
        if self.documents < _LEAST_DOCUMENTS:
            return f"{self.documents} documents have a neighbour, and fewer than {_LEAST_DOCUMENTS} show no pattern"
        if self.agreement < _LEAST_AGREEMENT:
            return (
                f"two neighbours have {self.agreement * 100:.1f} % of their neighbours in common, below "
                f"{_LEAST_AGREEMENT * 100:.0f} %: there is more than one grade of similarity"
            )
        if self.stability < _LEAST_STABILITY:
            return (
                f"{self.stability * 100:.1f} % of the pairs remain at {self.threshold + 0.05:.2f}, fewer than "
                f"{_LEAST_STABILITY * 100:.0f} %: pairs lie close to the line"
            )
        score, documents = _RIVAL * self.score, _RIVAL * self.documents
        rivals = [each for each in levels if each.score >= score and each.documents < documents]
        if rivals:
            rival = max(rivals, key=lambda each: each.score)
            return (
                f"the groups at {rival.threshold:g} are clearer, without "
                f"{(1 - rival.documents / self.documents) * 100:.1f} % of these documents, more than "
                f"{(1 - _RIVAL) * 100:.0f} %: there is a second grade of similarity"
            )
        return None


def levels_of(left: Positions, right: Positions, similarity: Floats, num_documents: int) -> list[Level]:
    """Return the graphs at rising thresholds of 0.05 steps that have pairs: at most a tenth of all, and 5 million.

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
    degrees, sums = _compare(left[near], right[near], level[near] - first, num_documents, len(_GRAPHS) - first)
    documents = np.count_nonzero(degrees, axis=0)
    means = np.divide(sums, degrees, out=np.zeros_like(sums), where=degrees > 0).sum(axis=0) / np.maximum(documents, 1)
    left_over = pairs[first + 1 :] / np.maximum(pairs[first:-1], 1)
    columns = _GRAPHS[first:-1], pairs[first:-1], documents[:-1], means[:-1], left_over
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [found for row in rows if (found := Level(*row)).pairs]


def _compare(
    left: Positions, right: Positions, level: Ints, num_documents: int, num_levels: int
) -> tuple[Ints, Floats]:
    """Return the degree of each document in the graph of each level, and the sum of the agreement of its pairs."""
    sources, targets = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.lexsort((targets, sources))
    starts = np.searchsorted(sources[order], np.arange(num_documents + 1)).astype(np.int64)
    degrees, sums = np.zeros((num_documents, num_levels), np.int64), np.zeros((num_documents, num_levels))
    graph = kernels.agreement.Graph(starts, targets[order], np.concatenate([level, level])[order].astype(np.int64))
    kernels.agreement.compare(graph, degrees, sums)
    return degrees, sums


def count_steps(similarity: Floats) -> Ints:
    """Return the number of pairs from each threshold of STEPS up to the next one."""
    return np.bincount(np.searchsorted(STEPS, similarity, side="right") - 1, minlength=len(STEPS)).astype(np.int64)


def band_of(similarity: Floats) -> Ints:
    """Return the band of BANDS of each similarity."""
    return np.searchsorted(BANDS, similarity, side="right") - 1


class Share(NamedTuple):
    """An estimated share with its 95 % interval."""

    estimated: float
    low: float
    high: float


class Estimate(NamedTuple):
    """The estimates at a threshold, from answers about pairs. recall : among the pairs from a similarity of 0.1 on."""

    threshold: float
    precision: Share
    recall: Share
    answers: int

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        precision, recall = self.precision.estimated, self.recall.estimated
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    def record(self) -> dict[str, Any]:
        """Return the estimates by name."""
        return self._asdict() | {"precision": self.precision._asdict(), "recall": self.recall._asdict()}


def estimate(pairs: Ints, similarity: Floats, same: Mask) -> Estimate | None:
    """Return the threshold with the largest estimated F1, the highest of several; None if no answer is yes.

    Parameters
    ----------
    pairs : int64 array, the number of pairs of the collection by step; see `count_steps`.
    similarity, same : the pairs that were answered, drawn at random within their bands, and the answers.

    Notes
    -----
    The share of yes in each band is made rising (Ayer et al., An empirical distribution function for sampling with
    incomplete information, 1955). Intervals are Wilson's, with the answers that count in effect, (sum w)^2 /
    sum(w^2 / n), of blocks of bands with n answers and w pairs (Kish, Survey Sampling, 1965). The interval of the
    recall combines the ends of two of them, so it is rather too wide.
    """
    if not same.any():
        return None
    band = band_of(similarity)
    answers, yes = (np.bincount(band[rows], minlength=len(BANDS)) for rows in (np.ones_like(same), same))
    share, trials, block = _rising(answers, yes)
    by_band = band_of(STEPS)
    correct = pairs * share[by_band]
    found, right = (np.cumsum(each[::-1])[::-1] for each in (pairs, correct))
    f1 = 2 * right / np.maximum(found + right[0], 1)
    chosen = len(STEPS) - 1 - int(np.argmax(f1[::-1]))

    def interval(steps: slice) -> tuple[float, Share]:
        """Return the number of pairs of some steps, and the share of them that are duplicates."""
        total = float(pairs[steps].sum())
        if not total:
            return 0.0, Share(0.0, 0.0, 0.0)
        weights = np.bincount(block[by_band[steps]], pairs[steps], minlength=len(trials))
        effective = total**2 / float(np.sum(weights**2 / np.maximum(trials, 1)))
        estimated = float(correct[steps].sum()) / total
        low, high = wilson(estimated, effective)
        return total, Share(estimated, max(0.0, low), max(estimated, min(1.0, high)))

    (above, precision), (below, missed) = interval(slice(chosen, None)), interval(slice(0, chosen))
    others = missed.estimated, missed.high, missed.low  # recall is low where many are missed
    recall = [
        above * found / max(above * found + below * left_out, 1e-9)
        for found, left_out in zip(precision, others, strict=True)
    ]
    return Estimate(float(STEPS[chosen]), precision, Share(*recall), len(same))


def _rising(answers: Ints, yes: Ints) -> tuple[Floats, Ints, Ints]:
    """Return the share of yes in each band, made rising; the answers of each block of equal shares; the block of each
    band. A band without answers is in the block of the next lower band that has some, else of the lowest.
    """
    blocks: list[list[int]] = []  # answers, yes, bands
    for asked, positive in zip(answers.tolist(), yes.tolist(), strict=True):
        blocks.append([asked, positive, 1])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [sum(both) for both in zip(blocks[-1], last, strict=True)]
    trials, positive, bands = np.array(blocks, np.int64).T
    return np.repeat(positive / np.maximum(trials, 1), bands), trials, np.repeat(np.arange(len(blocks)), bands)
