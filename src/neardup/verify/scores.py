"""How well pairs that were found agree with what is known of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[np.uint32]
SAME, DIFFERENT, UNKNOWN = 1, 0, -1


class Score(NamedTuple):
    """What was found at one limit.

    limit : the threshold; of SimHash the distance. found : pairs, those of which nothing is known left out.
    correct : found pairs of duplicates. positives : all pairs of duplicates, found or not.

    Examples
    --------
    >>> score = Score(limit=0.8, found=10, correct=8, positives=16)
    >>> score.precision, score.recall, round(score.f1, 3)
    (0.8, 0.5, 0.615)
    """

    limit: float
    found: int
    correct: int
    positives: int

    @property
    def precision(self) -> float | None:
        """The share of the found pairs that are duplicates; None if none was found."""
        return self.correct / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """The share of the duplicates that were found; None if there are none."""
        return self.correct / self.positives if self.positives else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall; None if there is nothing to find and nothing was found."""
        whole = self.found + self.positives
        return 2 * self.correct / whole if whole else None


class Labels(NamedTuple):
    """Labels of documents: two under one label are duplicates, two under two are not.

    codes : int64 array of shape (num_documents,), the number of the label; negative where it is not known.
    """

    codes: Ints

    def judge(self, left: Positions, right: Positions) -> npt.NDArray[np.int8]:
        """Return SAME, DIFFERENT or UNKNOWN for each pair of documents."""
        left_codes, right_codes = self.codes[left], self.codes[right]
        known = (left_codes >= 0) & (right_codes >= 0)
        return np.where(known, left_codes == right_codes, UNKNOWN).astype(np.int8)

    def count_positives(self, classes: Ints) -> Ints:
        """Return how many pairs of duplicates belong to each class, that of the lesser document of the pair.

        The pairs are counted, not listed: sorted by falling class, the i-th document of a label is the lesser one of
        as many pairs as stand before it.
        """
        known = np.flatnonzero(self.codes >= 0)
        known = known[np.lexsort((-classes[known], self.codes[known]))]
        codes = self.codes[known]
        first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])) if len(codes) else np.empty(0, np.int64)
        before = np.arange(len(codes)) - np.repeat(first, np.diff(first, append=len(codes)))
        counts = np.zeros(int(classes.max(initial=0)) + 1, np.int64)
        np.add.at(counts, classes[known], before)
        return counts

    @property
    def num_pairs(self) -> int:
        """All pairs of which it is known what they are."""
        known = int(np.count_nonzero(self.codes >= 0))
        return known * (known - 1) // 2


class Judgements(NamedTuple):
    """Pairs of documents that were judged one by one; of all others nothing is known.

    left, right : uint32 arrays of shape (num_pairs,), left < right, each pair once, by left and then by right.
    same : bool, whether a pair is one of duplicates.
    """

    left: Positions
    right: Positions
    same: npt.NDArray[np.bool_]

    def judge(self, left: Positions, right: Positions) -> npt.NDArray[np.int8]:
        """Return SAME, DIFFERENT or UNKNOWN for each pair of documents."""
        verdicts = np.full(len(left), UNKNOWN, np.int8)
        if len(self.left):
            keys, asked = pair_keys(self.left, self.right), pair_keys(left, right)
            place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
            known = keys[place] == asked
            verdicts[known] = self.same[place[known]]
        return verdicts

    def count_positives(self, classes: Ints) -> Ints:
        """Return how many pairs of duplicates belong to each class, that of the lesser document of the pair."""
        lesser = np.minimum(classes[self.left], classes[self.right])[self.same]
        return np.bincount(lesser, minlength=int(classes.max(initial=0)) + 1).astype(np.int64)

    @property
    def num_pairs(self) -> int:
        """All pairs of which it is known what they are."""
        return len(self.left)


Truth = Labels | Judgements


def pair_keys(left: Positions, right: Positions) -> npt.NDArray[np.uint64]:
    """Return a number for each pair, whichever of the two is named first; they sort as (lesser, greater) do."""
    return np.minimum(left, right).astype(np.uint64) << np.uint64(32) | np.maximum(left, right).astype(np.uint64)


def count_within(limits: npt.NDArray[Any], values: npt.NDArray[np.float64], *, at_least: bool) -> Ints:
    """Return how many values reach each limit: those at or above it, else those at or below it; limits rise."""
    ordered = np.sort(values)
    if at_least:
        return len(ordered) - np.searchsorted(ordered, limits, side="left")
    return np.searchsorted(ordered, limits, side="right")


def best_of(scores: list[Score], *, at_least: bool) -> Score:
    """Return the score of the highest F1; among equals the strictest: the highest threshold, the least distance."""
    return max(scores, key=lambda score: (score.f1 or 0.0, score.limit if at_least else -score.limit))


def adjusted_rand(left: Ints, right: Ints) -> float | None:
    """Return the adjusted Rand index of two partitions of the same things: 1 if they are equal, about 0 by chance.

    Parameters
    ----------
    left, right : int64 arrays of shape (num_things,), not negative: the number of each thing's cluster.

    Returns
    -------
    float in [-1, 1]; None if there is nothing.

    Notes
    -----
    Hubert and Arabie (1985), Comparing partitions, equation 5: the count of pairs that are together in both, less what
    chance would give, as a share of the most there could be. Integers up to the one division, so it is exact to the
    last digit. Two partitions that put every thing alone, or all things together, are equal: 1.

    Examples
    --------
    >>> round(adjusted_rand(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2])), 3)
    0.571
    """
    if len(left) == 0:
        return None
    (left_sizes, left_places), (right_sizes, right_places) = _numbered(left), _numbered(right)
    cells = np.unique(left_places * len(right_sizes) + right_places, return_counts=True)[1]
    together, in_left, in_right = (_pairs_within(sizes) for sizes in (cells, left_sizes, right_sizes))
    every = len(left) * (len(left) - 1) // 2
    most = every * (in_left + in_right) - 2 * in_left * in_right
    return 2 * (every * together - in_left * in_right) / most if most else 1.0


def _numbered(clusters: Ints) -> tuple[Ints, Ints]:
    """Return the size of each cluster, and for each thing the running number of its cluster."""
    _, places, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    return sizes, places.astype(np.int64)


def _pairs_within(counts: Ints) -> int:
    return int((counts * (counts - 1) // 2).sum())
