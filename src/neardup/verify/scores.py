"""Precision and recall of found pairs against known duplicates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import Array, Floats, Ints, Mask, Positions, Words, find_in, rank_in_run

SAME = 1
DIFFERENT = 0
UNKNOWN = -1
# Duplicate pairs that are listed to draw from: 16 MB of keys. Of more pairs, this number is drawn.
_MAX_LISTED_PAIRS = 2_000_000


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
        total = self.found + self.positives
        return 2 * self.correct / total if total else None


class Labels(NamedTuple):
    """Labels of documents: two documents are duplicates if they have the same label.

    codes : int64 array of shape (num_documents,), the number of the label; negative if it is
    unknown.
    """

    codes: Ints

    def judge(self, left: Positions, right: Positions) -> npt.NDArray[np.int8]:
        """Return SAME, DIFFERENT or UNKNOWN for each pair of documents."""
        left_codes = self.codes[left]
        right_codes = self.codes[right]
        is_known = (left_codes >= 0) & (right_codes >= 0)
        return np.where(is_known, left_codes == right_codes, UNKNOWN).astype(np.int8)

    def count_positives(self, classes: Ints) -> Ints:
        """Return the number of duplicate pairs by the lower class of their documents.

        Pairs are counted without listing them: with documents sorted by decreasing class, the i-th
        document of a label is the lower one of i pairs.
        """
        known = np.flatnonzero(self.codes >= 0)
        known = known[np.lexsort((-classes[known], self.codes[known]))]
        counts = np.zeros(int(classes.max(initial=0)) + 1, np.int64)
        np.add.at(counts, classes[known], rank_in_run(self.codes[known]))
        return counts

    def draw_missed(self, found: Words, count: int, seed: int) -> tuple[Positions, Positions]:
        """Return duplicate pairs that were not found, at random.

        They are `count` pairs, or fewer if fewer were not found. Of more than _MAX_LISTED_PAIRS
        duplicates, only a sample is searched, which may also lack pairs.

        Parameters
        ----------
        found : uint64, sorted, the `pair_keys` of the found pairs.
        """
        known = np.flatnonzero(self.codes >= 0)
        known = known[np.argsort(self.codes[known], kind="stable")]
        # Each document makes a pair with each member of its label before it. Pairs are numbered by
        # document: document i has the pairs starts[i] to ends[i].
        #
        #     label      a  a  a  b  b
        #     num_pairs  0  1  2  0  1     pair 2 is document 2 with document 1
        #     starts     0  0  1  3  3
        #     ends       0  1  3  3  4
        num_pairs = rank_in_run(self.codes[known])
        ends = np.cumsum(num_pairs)
        starts = ends - num_pairs
        total = int(ends[-1]) if len(ends) else 0
        if total <= _MAX_LISTED_PAIRS:
            pairs = np.arange(total)
        else:
            pairs = np.random.default_rng(seed).integers(0, total, _MAX_LISTED_PAIRS)
        document = np.searchsorted(ends, pairs, side="right")
        first_of_label = document - num_pairs[document]
        other = first_of_label + pairs - starts[document]
        keys = pair_keys(known[document].astype(np.uint32), known[other].astype(np.uint32))
        return _draw_absent(np.unique(keys), found, count, seed)

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
        """Return the number of duplicate pairs by the lower class of their documents."""
        lower = np.minimum(classes[self.left], classes[self.right])[self.same]
        return np.bincount(lower, minlength=int(classes.max(initial=0)) + 1).astype(np.int64)

    def draw_missed(self, found: Words, count: int, seed: int) -> tuple[Positions, Positions]:
        """Return duplicate pairs that were not found, at random: `count` pairs, or all if fewer."""
        keys = pair_keys(self.left[self.same], self.right[self.same])
        return _draw_absent(keys, found, count, seed)

    @property
    def num_pairs(self) -> int:
        """The number of pairs whose truth is known."""
        return len(self.left)


Truth = Labels | Judgements


def pair_keys(left: Positions, right: Positions) -> Words:
    """Return a key for each pair, in either order; keys sort as (lower, higher)."""
    lower = np.minimum(left, right).astype(np.uint64)
    higher = np.maximum(left, right).astype(np.uint64)
    return lower << np.uint64(32) | higher


def _draw_absent(keys: Words, found: Words, count: int, seed: int) -> tuple[Positions, Positions]:
    """Return some of the pairs that were not found."""
    keys = keys[~np.isin(keys, found)]
    drawn = np.sort(np.random.default_rng(seed).permutation(len(keys))[:count])
    return (keys[drawn] >> np.uint64(32)).astype(np.uint32), keys[drawn].astype(np.uint32)


def count_within(limits: Array, values: Floats, *, at_least: bool) -> Ints:
    """Return the number of values at or above each limit, or at or below it.

    limits : ascending. at_least : whether values at or above are counted.
    """
    ordered = np.sort(values)
    if at_least:
        return len(ordered) - np.searchsorted(ordered, limits, side="left")
    return np.searchsorted(ordered, limits, side="right")


def best_of(scores: list[Score], *, at_least: bool) -> Score:
    """Return the score of the highest F1, of equal scores the strictest.

    at_least : whether a higher limit is stricter, as with thresholds, or a lower one, as with
    distances.
    """
    sign = 1 if at_least else -1
    return max(scores, key=lambda score: (score.f1 or 0.0, sign * score.limit))


def adjusted_rand(left: Ints, right: Ints) -> float | None:
    """Return the adjusted Rand index of two partitions of the same items.

    It is 1 if they are equal, and about 0 by chance.

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
    left_sizes, left_index = _numbered(left)
    right_sizes, right_index = _numbered(right)
    # The cells of the contingency table: the items of one cluster of each partition.
    cells = left_index * len(right_sizes) + right_index
    in_both = _pairs_within(np.unique(cells, return_counts=True)[1])
    in_left = _pairs_within(left_sizes)
    in_right = _pairs_within(right_sizes)
    all_pairs = len(left) * (len(left) - 1) // 2
    # Equation 5 times 2 * all_pairs: the expectation is in_left * in_right / all_pairs, the maximum
    # (in_left + in_right) / 2.
    numerator = 2 * (all_pairs * in_both - in_left * in_right)
    denominator = all_pairs * (in_left + in_right) - 2 * in_left * in_right
    return numerator / denominator if denominator else 1.0


def _numbered(clusters: Ints) -> tuple[Ints, Ints]:
    """Return the size of each cluster, and the index of each item's cluster."""
    _, index, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    return sizes, index.astype(np.int64)


def _pairs_within(counts: Ints) -> int:
    return int((counts * (counts - 1) // 2).sum())
