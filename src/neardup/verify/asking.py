"""Choose a threshold from answers about pairs; some answers may be wrong."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from neardup.arrays import Floats, Ints, Mask
from neardup.files import JsonObject
from neardup.verify.choosing import LOWEST, STEPS
from neardup.verify.recall import wilson

BANDS = np.arange(1, 10) / 10
"""The lower ends of the bands of similarity from which questions are drawn."""

# The share of duplicates is known at _POINTS, the middles of intervals of 0.01, five in a step of
# the thresholds.
_PER_STEP = 5
_PER_UNIT = 100
_POINTS = LOWEST + (np.arange(_PER_STEP * len(STEPS)) + 0.5) / _PER_UNIT

# The curves that the share of duplicates may follow over the similarity. They have the shape of an
# S (logistic):
#
#     top      |            ________
#     top / 2  |          /
#     0        |________/
#                     centre
#
# With a top below 1, some pairs of any similarity are no duplicates. Of a curve with a centre
# outside [0, 1], one end is seen. All curves are equally likely before any answer.
_CENTRES = np.linspace(-0.1, 1.1, 25)
_WIDTHS = np.geomspace(0.01, 0.15, 6)
_TOPS = np.array([0.5, 0.7, 0.85, 1.0])
_WRONG_SHARES = (0.0, 0.05, 0.1, 0.15)
"""The shares of wrong answers, all equally likely before any answer."""
_TINY = 1e-6  # the probability of an answer that a curve excludes, if no answer is wrong
_TAIL = 0.025  # at each side of a 95 % interval
_MIN_LOW_PRECISION = 0.5  # times the requested precision
_ANSWERS_PER_REPEAT = 3  # one more question for each, in bands whose answers contradict each other


class Share(NamedTuple):
    """An estimated share with its 95 % interval."""

    estimated: float
    low: float
    high: float


class Estimate(NamedTuple):
    """The estimates at a threshold, from answers about pairs.

    recall : among the pairs from a similarity of 0.1 on. answers : the number of answers.
    """

    threshold: float
    f1: float
    precision: Share
    recall: Share
    answers: int

    def is_precise(self, min_precision: float) -> bool:
        """Return whether the precision, and the lower end of its interval, are high enough.

        The lower end must be at least half of the minimum. Without this limit, two wrong answers in
        bands with most of the pairs can be enough for a precision that is stated as 0.61 and is
        0.29.
        """
        min_low = _MIN_LOW_PRECISION * min_precision
        return self.precision.estimated >= min_precision and self.precision.low >= min_low

    def record(self) -> JsonObject:
        """Return the estimates by name."""
        return self._asdict() | {
            "precision": self.precision._asdict(),
            "recall": self.recall._asdict(),
        }


def count_steps(similarity: Floats) -> Ints:
    """Return the number of pairs from each threshold of STEPS up to the next one."""
    step = np.searchsorted(STEPS, similarity, side="right") - 1
    return np.bincount(step, minlength=len(STEPS)).astype(np.int64)


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
    duplicates and e the share of wrong answers. The estimates are means over the curves, weighted
    by their probability, and intervals contain 95 % of the weight. They are at least as wide as
    Wilson's interval of all answers: after many, one curve has nearly all of the weight.
    """
    if not same.any():
        return []
    curves = _curves()
    weights = _probabilities(curves, similarity, same)
    share_by_step = curves.reshape(len(curves), len(STEPS), _PER_STEP).mean(axis=2)
    # By threshold: the found pairs, and by curve and threshold the duplicates among them.
    found = _sums_from_step(pairs)
    duplicates = _sums_from_step(pairs * share_by_step)
    all_duplicates = duplicates[:, :1]
    tiny = np.finfo(np.float64).tiny
    f1 = weights @ (2 * duplicates / np.maximum(found + all_duplicates, 1))
    precisions = _shares(duplicates / np.maximum(found, 1), weights, len(same))
    recalls = _shares(duplicates / np.maximum(all_duplicates, tiny), weights, len(same))
    return [
        Estimate(
            threshold=float(threshold),
            f1=float(f1[step]),
            precision=precisions[step],
            recall=recalls[step],
            answers=len(same),
        )
        for step, threshold in enumerate(STEPS)
    ]


class Decision(NamedTuple):
    """The best threshold beside the given one.

    found : the threshold of the largest F1 among the precise ones, or among all if none is precise;
    of several equal ones the highest. given : the threshold as strict as the given settings.
    is_precise : whether any threshold is precise; see `Estimate.is_precise`.
    """

    found: Estimate
    given: Estimate
    is_precise: bool

    @property
    def changes(self) -> bool:
        """True if the threshold is better than the given settings."""
        return self.is_precise and self.found.f1 > self.given.f1


def decide(estimates: Sequence[Estimate], min_precision: float, given: float) -> Decision:
    """Return the decision between the best threshold and the given one.

    estimates : by rising threshold. given : the threshold that is as strict as the given settings;
    see `as_strict`.
    """
    precise = [estimated for estimated in estimates if estimated.is_precise(min_precision)]
    return Decision(
        found=max(reversed(precise or estimates), key=lambda estimated: estimated.f1),
        given=min(estimates, key=lambda estimated: abs(estimated.threshold - given)),
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
    step = np.searchsorted(STEPS, equal + 1e-9, side="right") - 1  # rounding may lower 0.95
    return float(STEPS[step])


def bands_to_ask_again(similarity: Floats, same: Mask, count: int) -> list[int]:
    """Return the bands to ask one more question about, after `count` answers or more.

    At most a third more questions are asked in all.
    """
    num_left = max(0, count + count // _ANSWERS_PER_REPEAT - len(same))
    return contradicting_bands(similarity, same)[:num_left]


def contradicting_bands(similarity: Floats, same: Mask) -> list[int]:
    """Return the bands whose shares of yes do not rise with the similarity.

    They are sorted by the number of answers, the fewest first, and then by similarity.

    Notes
    -----
    Bands are pooled until the shares rise. While a band or block has a larger share of yes than the
    next one, the two become one block (Ayer et al., An empirical distribution function for sampling
    with incomplete information, 1955).
    """
    band = band_of(similarity)
    answers: list[int] = np.bincount(band, minlength=len(BANDS)).tolist()
    yes: list[int] = np.bincount(band[same], minlength=len(BANDS)).tolist()
    blocks = []

    def share(block: Sequence[int]) -> float:
        return sum(yes[number] for number in block) / sum(answers[number] for number in block)

    for number in range(len(BANDS)):
        if not answers[number]:
            continue
        blocks.append([number])
        while len(blocks) > 1 and share(blocks[-2]) > share(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    pooled = [block for block in blocks if len(block) > 1]
    return sorted(itertools.chain(*pooled), key=lambda number: (answers[number], number))


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
    for wrong in _WRONG_SHARES:
        yes_probability = np.clip(wrong + (1 - 2 * wrong) * curves, _TINY, 1 - _TINY)
        logarithms.append(np.log(yes_probability) @ yes + np.log(1 - yes_probability) @ no)
    # Logarithms are relative to their maximum: the likelihood of many answers is below any float.
    likelihood = np.exp(np.array(logarithms) - np.max(logarithms))
    by_curve = likelihood.sum(axis=0)
    return np.asarray(by_curve / by_curve.sum())


def _sums_from_step(values: Floats | Ints) -> Floats:
    """Return the sums from each step to the last one, along the last axis."""
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1].astype(np.float64)


def _shares(values: Floats, weights: Floats, answers: int) -> list[Share]:
    """Return the mean and the 95 % interval of each column. weights : by row."""
    shares = []
    for column in values.T:
        mean = float(weights @ column)
        # Weighted quantiles. Rounding may keep the sum of weights below 1 - _TAIL.
        order = np.argsort(column)
        cumulated = np.cumsum(weights[order])
        ranks = np.searchsorted(cumulated, [_TAIL, 1 - _TAIL])
        low, high = column[order[np.minimum(ranks, len(order) - 1)]].tolist()
        wilson_low, wilson_high = wilson(mean, answers)
        shares.append(
            Share(
                estimated=mean,
                low=max(0.0, min(low, wilson_low)),
                high=min(1.0, max(high, wilson_high)),
            )
        )
    return shares
