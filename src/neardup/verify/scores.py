"""Precision and recall of found pairs against known duplicates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import Array, Floats, Ints, Mask, Positions, Words, find_in, rank_in_run

SAME, DIFFERENT, UNKNOWN = 1, 0, -1
_LISTED_PAIRS = 2_000_000  # of more duplicate pairs, as many are drawn


class Score(NamedTuple):
    """The pairs found at one limit.

    limit : the threshold, or the distance of SimHash. found : the found pairs whose truth is known.
    correct : the found pairs that are duplicates. positives : all duplicate pairs, found or not.

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
        """The harmonic mean of precision and recall; None if there are no duplicates and no found
        pairs.
        """
        whole = self.found + self.positives
        return 2 * self.correct / whole if whole else None


class Labels(NamedTuple):
    """Labels of documents: two documents are duplicates if they have the same label.

    codes : int64 array of shape (num_documents,), the number of the label; negative if it is
    unknown.
    """

    codes: Ints

    def judge(self, left: Positions, right: Positions) -> npt.NDArray[np.int8]:
        """Return SAME, DIFFERENT or UNKNOWN for each pair of documents."""
        left_codes, right_codes = self.codes[left], self.codes[right]
        return np.where(
            (left_codes >= 0) & (right_codes >= 0), left_codes == right_codes, UNKNOWN
        ).astype(np.int8)

    def count_positives(self, classes: Ints) -> Ints:
        """Return the number of duplicate pairs in each class; a pair is in the lower class of its
        documents.

        Pairs are counted without listing them: with documents sorted by decreasing class, the i-th
        document of a label is the lower one of i pairs.
        """
        known = np.flatnonzero(self.codes >= 0)
        known = known[np.lexsort((-classes[known], self.codes[known]))]
        counts = np.zeros(int(classes.max(initial=0)) + 1, np.int64)
        np.add.at(counts, classes[known], rank_in_run(self.codes[known]))
        return counts

    def draw_missed(self, found: Words, count: int, seed: int) -> tuple[Positions, Positions]:
        """Return duplicate pairs that were not found, at random: `count` of them, or fewer if they
        are few or rare.

        Parameters
        ----------
        found : uint64, sorted, the `pair_keys` of the found pairs.
        """
        known = np.flatnonzero(self.codes >= 0)
        known = known[np.argsort(self.codes[known], kind="stable")]
        before = rank_in_run(
            self.codes[known]
        )  # members of its label ahead of each document: its pairs
        ends = np.cumsum(before)
        total = int(ends[-1]) if len(ends) else 0
        few = total <= _LISTED_PAIRS
        pairs = (
            np.arange(total)
            if few
            else np.random.default_rng(seed).integers(0, total, _LISTED_PAIRS)
        )
        second = np.searchsorted(ends, pairs, side="right")
        other = second - before[second] + pairs - (ends[second] - before[second])
        keys = np.unique(pair_keys(known[second].astype(np.uint32), known[other].astype(np.uint32)))
        return _draw_absent(keys, found, count, seed)

    @property
    def num_pairs(self) -> int:
        """The number of pairs whose truth is known."""
        known = int(np.count_nonzero(self.codes >= 0))
        return known * (known - 1) // 2


class Judgements(NamedTuple):
    """Pairs of documents that were judged one by one; all other pairs are unknown.

    left, right : uint32 arrays of shape (num_pairs,), left < right, each pair once, by left and
    then by right. same : bool, whether the pair is a duplicate.
    """

    left: Positions
    right: Positions
    same: Mask

    def judge(self, left: Positions, right: Positions) -> npt.NDArray[np.int8]:
        """Return SAME, DIFFERENT or UNKNOWN for each pair of documents."""
        verdicts = np.full(len(left), UNKNOWN, np.int8)
        index, known = find_in(pair_keys(self.left, self.right), pair_keys(left, right))
        verdicts[known] = self.same[index[known]]
        return verdicts

    def count_positives(self, classes: Ints) -> Ints:
        """Return the number of duplicate pairs in each class; a pair is in the lower class of its
        documents.
        """
        lesser = np.minimum(classes[self.left], classes[self.right])[self.same]
        return np.bincount(lesser, minlength=int(classes.max(initial=0)) + 1).astype(np.int64)

    def draw_missed(self, found: Words, count: int, seed: int) -> tuple[Positions, Positions]:
        """Return duplicate pairs that were not found, at random: `count` of them, or fewer if they
        are fewer.
        """
        return _draw_absent(
            pair_keys(self.left[self.same], self.right[self.same]), found, count, seed
        )

    @property
    def num_pairs(self) -> int:
        """The number of pairs whose truth is known."""
        return len(self.left)


Truth = Labels | Judgements


def pair_keys(left: Positions, right: Positions) -> Words:
    """Return a key for each pair, whatever the order of the two; keys sort as (lower, higher)."""
    return np.minimum(left, right).astype(np.uint64) << np.uint64(32) | np.maximum(
        left, right
    ).astype(np.uint64)


def _draw_absent(keys: Words, found: Words, count: int, seed: int) -> tuple[Positions, Positions]:
    """Return some of the pairs that were not found."""
    keys = keys[~np.isin(keys, found)]
    drawn = np.sort(np.random.default_rng(seed).permutation(len(keys))[:count])
    return (keys[drawn] >> np.uint64(32)).astype(np.uint32), keys[drawn].astype(np.uint32)


def count_within(limits: Array, values: Floats, *, at_least: bool) -> Ints:
    """Return the number of values at or above each limit, or at or below it; limits are
    ascending.
    """
    ordered = np.sort(values)
    if at_least:
        return len(ordered) - np.searchsorted(ordered, limits, side="left")
    return np.searchsorted(ordered, limits, side="right")


def best_of(scores: list[Score], *, at_least: bool) -> Score:
    """Return the score of the highest F1; of equal scores the strictest: the highest threshold, the
    least distance.
    """
    return max(
        scores, key=lambda score: (score.f1 or 0.0, score.limit if at_least else -score.limit)
    )


def adjusted_rand(left: Ints, right: Ints) -> float | None:
    """Return the adjusted Rand index of two partitions of the same items: 1 if they are equal,
    about 0 by chance.

    Parameters
    ----------
    left, right : int64 arrays of shape (num_items,), not negative: the cluster of each item.

    Returns
    -------
    float in [-1, 1]; None if there are no items.

    Notes
    -----
    Hubert and Arabie (1985), Comparing partitions, equation 5: the number of pairs together in both
    partitions, minus its expectation, relative to its maximum. The computation uses integers up to
    the final division, so the result is correctly rounded. Two partitions into single items, or
    into one cluster, are equal: 1.

    Examples
    --------
    >>> round(adjusted_rand(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2])), 3)
    0.571
    """
    if len(left) == 0:
        return None
    (left_sizes, left_index), (right_sizes, right_index) = _numbered(left), _numbered(right)
    cells = np.unique(left_index * len(right_sizes) + right_index, return_counts=True)[1]
    together, in_left, in_right = (
        _pairs_within(sizes) for sizes in (cells, left_sizes, right_sizes)
    )
    all_pairs = len(left) * (len(left) - 1) // 2
    most = all_pairs * (in_left + in_right) - 2 * in_left * in_right
    return 2 * (all_pairs * together - in_left * in_right) / most if most else 1.0


def _numbered(clusters: Ints) -> tuple[Ints, Ints]:
    """Return the size of each cluster, and the index of each item's cluster."""
    _, index, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    return sizes, index.astype(np.int64)


def _pairs_within(counts: Ints) -> int:
    return int((counts * (counts - 1) // 2).sum())
