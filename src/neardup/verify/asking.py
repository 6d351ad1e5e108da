"""Choose a shingle length and a threshold from answers about pairs; some may be wrong."""

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

LENGTHS = (1, 2, 3, 5)
"""The numbers of words in a shingle that answers choose from."""

_PAIRS_OF_STEP = 50  # in the pool
_POOL_SEED = 20261125  # fixed: the same collection gives the same questions

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
_SMALLEST = np.finfo(np.float64).tiny  # in place of a divisor of 0
_TINY = 1e-6  # the probability of an answer that a curve excludes, if no answer is wrong
_TAIL = 0.025  # at each side of a 95 % interval
_MIN_LOW_PRECISION = 0.5  # times the requested precision
# Of the pairs that a setting finds, this share may be below _EDGE in the search. Below LOWEST there
# are more, which nobody counted.
_MAX_EDGE_SHARE = 0.1
_EDGE = LOWEST + 0.05
_ANSWERS_PER_REPEAT = 3  # one more question for each, in bands whose answers contradict each other


class Share(NamedTuple):
    """An estimated share with its 95 % interval."""

    estimated: float
    low: float
    high: float


class Estimate(NamedTuple):
    """The estimates of a setting, from answers about pairs.

    ngram : words in a shingle. recall : among the pairs from a similarity of 0.1 on. answers : the
    number of answers.
    """

    ngram: int
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


class Pool(NamedTuple):
    """The pairs that may be asked about, drawn at random from each step of the thresholds.

    rows : the pairs, in the order of the questions: the bands by turns, the highest first. weight :
    the number of pairs of the collection that each stands for.
    """

    rows: Ints
    weight: Floats


def draw_pool(similarity: Floats, seed: int = _POOL_SEED) -> Pool:
    """Return the pool of the pairs of a collection."""
    order = np.random.default_rng(seed).permutation(len(similarity))
    step = (np.searchsorted(STEPS, similarity, side="right") - 1)[order]
    sizes = np.bincount(step, minlength=len(STEPS))
    drawn = sizes.clip(max=_PAIRS_OF_STEP)
    members = [np.flatnonzero(step == each)[:_PAIRS_OF_STEP] for each in range(len(STEPS))]
    places = np.sort(np.concatenate(members))  # again in random order
    rows = order[places]
    asked = _by_turns(band_of(similarity[rows]))
    weight = (sizes / np.maximum(drawn, 1))[step[places]]
    return Pool(rows=rows[asked].astype(np.int64), weight=weight[asked])


def _by_turns(band: Ints) -> Ints:
    """Return the first row of each band, the highest first, then the second of each, and so on."""
    by_band = [np.flatnonzero(band == each) for each in reversed(range(len(BANDS)))]
    turns = np.concatenate([np.arange(len(rows)) for rows in by_band])
    order = np.argsort(turns, kind="stable")
    return np.concatenate(by_band)[order]


class Sample(NamedTuple):
    """The pairs of a pool, compared by shingles of several lengths.

    similarity : float64 (num_lengths, num_pairs). weight : as in Pool. base : the length by which
    the pairs were searched.
    """

    lengths: tuple[int, ...]
    similarity: Floats
    weight: Floats
    base: int


def band_of(similarity: Floats) -> Ints:
    """Return the band of BANDS of each similarity."""
    return np.searchsorted(BANDS, similarity, side="right") - 1


def estimate(sample: Sample, rows: Ints, same: Mask) -> list[Estimate]:
    """Return the estimates of each length and each threshold of STEPS; an empty list if no answer
    is yes.

    Parameters
    ----------
    sample : the pairs that stand for the collection.
    rows, same : the pairs of the sample that were answered, and the answers.

    Notes
    -----
    By Bayes' rule over lengths of shingles, over curves of the share of duplicates by the
    similarity of this length, and over shares of wrong answers: an answer is yes with the
    probability e + (1 - 2 e) p, where p is the share of duplicates and e the share of wrong
    answers. The estimates are means over lengths and curves, weighted by their probability, and
    intervals contain 95 % of the weight. They are at least as wide as Wilson's interval of all
    answers: after many, one curve has nearly all of the weight. A shorter length than the length of
    the search has no estimate at thresholds with many pairs at the edge of the search.
    """
    if not same.any():
        return []
    settings = _settings(sample)
    weights = _probabilities(sample, rows, same)
    counted = _count(sample, settings)
    positives = np.maximum(counted.found + counted.all_duplicates, _SMALLEST)
    f1 = weights @ (2 * counted.duplicates / positives)
    precision = counted.duplicates / np.maximum(counted.found, _SMALLEST)
    recall = counted.duplicates / np.maximum(counted.all_duplicates, _SMALLEST)
    precisions = _shares(precision, weights, len(same))
    recalls = _shares(recall, weights, len(same))
    return [
        Estimate(
            ngram=sample.lengths[setting.row],
            threshold=setting.threshold,
            f1=float(f1[column]),
            precision=precisions[column],
            recall=recalls[column],
            answers=len(same),
        )
        for column, setting in enumerate(settings)
    ]


class _Setting(NamedTuple):
    """A length, as a row of the sample, and a threshold."""

    row: int
    threshold: float


def _settings(sample: Sample) -> list[_Setting]:
    """Return the settings to estimate, by rising length and threshold."""
    settings = [
        _Setting(row, threshold)
        for row, threshold in itertools.product(range(len(sample.lengths)), STEPS.tolist())
    ]
    return [setting for setting in settings if _is_counted(sample, setting)]


class _Counted(NamedTuple):
    """The pairs that each setting finds, by weight.

    found : (num_settings,). duplicates : (num_curves, num_settings), the duplicates among these
    pairs if a curve is true; the curves of each length follow one another. all_duplicates :
    (num_curves, 1).
    """

    found: Floats
    duplicates: Floats
    all_duplicates: Floats


def _count(sample: Sample, settings: Sequence[_Setting]) -> _Counted:
    finds = [sample.similarity[setting.row] >= setting.threshold for setting in settings]
    # A column of weights for each setting, 0 for the pairs that it does not find.
    counts = np.array(finds).T * sample.weight[:, None]
    curves = np.concatenate([_curves_at(of_length) for of_length in sample.similarity])
    return _Counted(
        found=counts.sum(axis=0),
        duplicates=curves @ counts,
        all_duplicates=(curves @ sample.weight)[:, None],
    )


def _is_counted(sample: Sample, setting: _Setting) -> bool:
    """Return whether the search found nearly all pairs of a setting."""
    if sample.lengths[setting.row] >= sample.base:
        return True
    searched = sample.similarity[sample.lengths.index(sample.base)]
    weight = sample.weight * (sample.similarity[setting.row] >= setting.threshold)
    return bool(weight[searched < _EDGE].sum() <= _MAX_EDGE_SHARE * weight.sum())


class Decision(NamedTuple):
    """The best setting beside the given one.

    found : the setting of the largest F1 among the precise ones, or among all if none is precise;
    of several equal ones the strictest of the longest shingles. given : the setting next to the
    given one. is_precise : whether any setting is precise; see `Estimate.is_precise`.
    """

    found: Estimate
    given: Estimate
    is_precise: bool

    @property
    def changes(self) -> bool:
        """True if the found setting is better than the given one."""
        return self.is_precise and self.found.f1 > self.given.f1


def decide(
    estimates: Sequence[Estimate], min_precision: float, ngram: int, threshold: float
) -> Decision:
    """Return the decision between the best setting and the given one.

    estimates : by rising length and threshold. ngram, threshold : of the given setting.
    """
    precise = [estimated for estimated in estimates if estimated.is_precise(min_precision)]
    of_length = [estimated for estimated in estimates if estimated.ngram == ngram]
    return Decision(
        found=max(reversed(precise or estimates), key=lambda estimated: estimated.f1),
        given=min(of_length, key=lambda estimated: abs(estimated.threshold - threshold)),
        is_precise=bool(precise),
    )


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


class _Curves(NamedTuple):
    """The parameters of the curves, float64 (num_curves, 1) each."""

    centres: Floats
    widths: Floats
    tops: Floats


@cache
def _curves() -> _Curves:
    """Return all curves."""
    grid = np.meshgrid(_CENTRES, _WIDTHS, _TOPS, indexing="ij")
    return _Curves(*(values.reshape(-1, 1) for values in grid))


def _curves_at(similarity: Floats) -> Floats:
    """Return the share of duplicates at similarities, a row for each curve."""
    curves = _curves()
    return np.asarray(curves.tops / (1 + np.exp((curves.centres - similarity) / curves.widths)))


def _probabilities(sample: Sample, rows: Ints, same: Mask) -> Floats:
    """Return the probability of each length and curve after the answers; the curves of the first
    length, then of the second, and so on.
    """
    curves = np.concatenate([_curves_at(of_length[rows]) for of_length in sample.similarity])
    logarithms = []
    for wrong in _WRONG_SHARES:
        yes_probability = np.clip(wrong + (1 - 2 * wrong) * curves, _TINY, 1 - _TINY)
        answered = np.where(same, yes_probability, 1 - yes_probability)
        logarithms.append(np.log(answered).sum(axis=1))
    # Logarithms are relative to their maximum: the likelihood of many answers is below any float.
    likelihood = np.exp(np.array(logarithms) - np.max(logarithms))
    # Before any answer, the length of the search is as likely as all others together.
    is_searched = np.array(sample.lengths) == sample.base
    prior = np.ones(len(is_searched))
    prior[is_searched] = max(1, int(np.count_nonzero(~is_searched)))
    by_curve = likelihood.sum(axis=0) * np.repeat(prior, len(curves) // len(prior))
    return np.asarray(by_curve / by_curve.sum())


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
