"""Choose a threshold from answers about pairs, some of which may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from neardup.arrays import Floats, Ints, Mask
from neardup.files import JsonObject
from neardup.verify.choosing import LOWEST, STEPS
from neardup.verify.recall import wilson

BANDS = np.arange(1, 10) / 10
"""The lower ends of the bands of similarity from which pairs are drawn to be asked about."""

# The share of duplicates is known at _POINTS, the middles of intervals of 0.01, five in a step of
# the thresholds.
_PER_STEP = 5
_PER_UNIT = 100
_POINTS = LOWEST + (np.arange(_PER_STEP * len(STEPS)) + 0.5) / _PER_UNIT

# The curves that the share may follow: it rises in the shape of an S, around a centre, over a
# width, up to a top. A centre outside of the similarities leaves its beginning or its end alone.
# All are equally likely before any answer.
_CENTRES = np.linspace(-0.1, 1.1, 25)
_WIDTHS = np.geomspace(0.01, 0.15, 6)
_TOPS = np.array([0.5, 0.7, 0.85, 1.0])
_WRONG = (0.0, 0.05, 0.1, 0.15)
"""The shares of wrong answers that are tried, each as likely as the others."""
_TINY = 1e-6  # an answer that a curve excludes, with no wrong answers
_TAIL = 0.025  # of each side of a 95 % interval
_LEAST_OF_LIMIT = 0.5
# of so many answers that are wanted, one more may be asked for where they contradict each other
_AGAIN = 3


class Share(NamedTuple):
    """An estimated share with its 95 % interval."""

    estimated: float
    low: float
    high: float


class Estimate(NamedTuple):
    """The estimates at a threshold, from answers about pairs. recall : among the pairs from a
    similarity of 0.1 on.
    """

    threshold: float
    f1: float
    precision: Share
    recall: Share
    answers: int

    def is_precise(self, min_precision: float) -> bool:
        """Return whether the precision is high enough, and the lower end of its interval at least
        half of that.

        Without the second limit, two wrong answers in bands with most of the pairs can be enough
        for a precision that is stated as 0.61 and is 0.29.
        """
        least = _LEAST_OF_LIMIT * min_precision
        return self.precision.estimated >= min_precision and self.precision.low >= least

    def record(self) -> JsonObject:
        """Return the estimates by name."""
        return self._asdict() | {
            "precision": self.precision._asdict(),
            "recall": self.recall._asdict(),
        }


def count_steps(similarity: Floats) -> Ints:
    """Return the number of pairs from each threshold of STEPS up to the next one."""
    return np.bincount(
        np.searchsorted(STEPS, similarity, side="right") - 1, minlength=len(STEPS)
    ).astype(np.int64)


def band_of(similarity: Floats) -> Ints:
    """Return the band of BANDS of each similarity."""
    return np.searchsorted(BANDS, similarity, side="right") - 1


def estimate(pairs: Ints, similarity: Floats, same: Mask) -> list[Estimate]:
    """Return the estimates at each threshold of STEPS; an empty list if no answer is yes.

    Parameters
    ----------
    pairs : int64 array, the number of pairs of the collection by step; see `count_steps`.
    similarity, same : the pairs that were answered, drawn at random within their bands, and the
        answers.

    Notes
    -----
    By Bayes' rule over curves of the share of duplicates by similarity, and over shares of wrong
    answers: an answer is yes with the probability e + (1 - 2 e) p, where p is the share of
    duplicates and e that of wrong answers. The estimates are means over the curves, weighted by
    their probability, and intervals contain 95 % of the weight. They are at least as wide as
    Wilson's interval of all answers: after many, one curve has nearly all of the weight.
    """
    if not same.any():
        return []
    curves = _curves()
    weights = _probabilities(curves, similarity, same)
    by_step = curves.reshape(len(curves), len(STEPS), _PER_STEP).mean(axis=2)
    found = _from_each_on(pairs)
    right = _from_each_on(pairs * by_step)
    all_right = right[:, :1]
    f1 = weights @ (2 * right / np.maximum(found + all_right, 1))
    precisions = _shares(right / np.maximum(found, 1), weights, len(same))
    recalls = _shares(right / np.maximum(all_right, np.finfo(np.float64).tiny), weights, len(same))
    return [
        Estimate(threshold, mean_f1, precision, recall, len(same))
        for threshold, mean_f1, precision, recall in zip(
            STEPS.tolist(), f1.tolist(), precisions, recalls, strict=True
        )
    ]


class Decision(NamedTuple):
    """The threshold with the largest F1 of the precise ones, of all if none is precise; and one as
    strict as the given settings. Of several equal thresholds it is the highest.
    """

    found: Estimate
    given: Estimate
    is_precise: bool

    @property
    def changes(self) -> bool:
        """Whether the threshold is better than the given settings."""
        return self.is_precise and self.found.f1 > self.given.f1


def decide(estimates: Sequence[Estimate], min_precision: float, given: float) -> Decision:
    """Return the decision. given : the threshold that is as strict as the given settings; see
    `as_strict`.
    """
    precise = [each for each in estimates if each.is_precise(min_precision)]
    return Decision(
        found=max(reversed(precise or estimates), key=lambda each: each.f1),
        given=min(estimates, key=lambda each: abs(each.threshold - given)),
        is_precise=bool(precise),
    )


def as_strict(threshold: float, ngram: int, other_ngram: int) -> float:
    """Return the threshold of STEPS for shingles of another length that finds about the same pairs.

    Notes
    -----
    In a text of w words, k changed words that are far apart change n k of the shingles of n words.
    The similarity is then (1 - x) / (1 + x) with x = n k / w.
    """
    changed = (1 - threshold) / (1 + threshold) * other_ngram / ngram
    equal = max(LOWEST, (1 - changed) / (1 + changed))
    return float(
        STEPS[np.searchsorted(STEPS, equal + 1e-9, side="right") - 1]
    )  # 0.95 may be one unit less


def bands_to_ask_again(similarity: Floats, same: Mask, count: int) -> list[int]:
    """Return the bands to ask one more question about, after `count` answers or more; at most a
    third more in all.
    """
    return contradicting_bands(similarity, same)[: max(0, count + count // _AGAIN - len(same))]


def contradicting_bands(similarity: Floats, same: Mask) -> list[int]:
    """Return the bands that have to be pooled to make the share of yes rise with the similarity,
    those with the fewest answers first, of several the lowest.

    Notes
    -----
    While a band or block has a larger share of yes than the next one, the two become one block
    (Ayer et al., An empirical distribution function for sampling with incomplete information,
    1955).
    """
    band = band_of(similarity)
    answers: list[int] = np.bincount(band, minlength=len(BANDS)).tolist()
    yes: list[int] = np.bincount(band[same], minlength=len(BANDS)).tolist()
    blocks: list[list[int]] = []

    def share(block: Sequence[int]) -> float:
        return sum(yes[each] for each in block) / sum(answers[each] for each in block)

    for each in range(len(BANDS)):
        if not answers[each]:
            continue
        blocks.append([each])
        while len(blocks) > 1 and share(blocks[-2]) > share(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    contradicting = [each for block in blocks if len(block) > 1 for each in block]
    return sorted(contradicting, key=lambda each: (answers[each], each))


@cache
def _curves() -> Floats:
    """Return the share of duplicates at each of _POINTS, a row for each curve."""
    grid = np.meshgrid(_CENTRES, _WIDTHS, _TOPS, indexing="ij")
    centre, width, top = (values.reshape(-1, 1) for values in grid)
    return np.asarray(top / (1 + np.exp((centre - _POINTS) / width)))


def _probabilities(curves: Floats, similarity: Floats, same: Mask) -> Floats:
    """Return the probability of each curve after the answers."""
    point = np.clip((similarity - LOWEST) * _PER_UNIT, 0, len(_POINTS) - 1).astype(np.int64)
    yes = np.bincount(point[same], minlength=len(_POINTS))
    no = np.bincount(point[~same], minlength=len(_POINTS))
    logarithms = []
    for wrong in _WRONG:
        says_yes = np.clip(wrong + (1 - 2 * wrong) * curves, _TINY, 1 - _TINY)
        logarithms.append(np.log(says_yes) @ yes + np.log(1 - says_yes) @ no)
    likelihood = np.exp(np.array(logarithms) - np.max(logarithms))
    by_curve = likelihood.sum(axis=0)
    return np.asarray(by_curve / by_curve.sum())


def _from_each_on(values: Floats | Ints) -> Floats:
    """Return the sums from each step to the last one, along the last axis."""
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1].astype(np.float64)


def _shares(values: Floats, weights: Floats, answers: int) -> list[Share]:
    """Return the mean and the 95 % interval of each column, of which the rows have weights."""
    shares = []
    for column in values.T:
        mean = float(weights @ column)
        order = np.argsort(column)
        below = np.cumsum(weights[order])
        ends = np.searchsorted(below, [_TAIL, 1 - _TAIL])
        low, high = column[order[np.minimum(ends, len(order) - 1)]].tolist()
        least, most = wilson(mean, answers)
        shares.append(Share(mean, max(0.0, min(low, least)), min(1.0, max(high, most))))
    return shares
