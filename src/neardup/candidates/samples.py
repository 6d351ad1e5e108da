"""Samples of shingles: candidates for containment, which bands of signatures do not find."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import Floats, Ints
from neardup.errors import SettingError

_SIZES = (4, 8, 16, 32, 64, 128)  # sampled shingles; each step doubles the work per document
# A sample is large enough if a pair of half the threshold is compared with a probability of at most
# 0.1: a choice between work per document and false candidates. Recall does not depend on it.
_FALSE_CONTAINMENT = 0.5  # times the threshold
_MAX_FALSE_PROBABILITY = 0.1


class Samples(NamedTuple):
    """The sample of a document: shingles that other documents are searched for.

    num_samples : the sampled shingles. num_needed : the number of these that another document must
    contain to be compared.
    """

    num_samples: int
    num_needed: int


def hit_probability(containment: npt.ArrayLike, samples: Samples) -> Floats:
    """Return the probability that a pair with this containment is compared.

    It is the binomial tail P(X >= m).

    Parameters
    ----------
    containment : shares in [0, 1], any shape.
    samples : n sampled shingles, m needed.

    Returns
    -------
    float64 array of the same shape.

    Notes
    -----
    The n smallest shingle hashes of a document are a random sample without replacement, each in the
    other document with a probability equal to the containment (Broder 1997, section 3). The
    binomial tail is the limit for long documents; a sample without replacement varies less
    (Hoeffding 1963, section 6).
    """
    share = np.asarray(containment, np.float64)
    miss_probability = np.zeros_like(share)
    # Sum the probabilities of 0 to m - 1 hits, built from combinations so that shares of 0 and 1
    # are exact.
    combinations = 1.0
    for hits in range(samples.num_needed):
        misses = samples.num_samples - hits
        miss_probability = miss_probability + combinations * share**hits * (1.0 - share) ** misses
        combinations *= misses / (hits + 1)
    return np.asarray(1.0 - miss_probability)


def choose_samples(threshold: float, recall: float) -> Samples:
    """Choose the smallest sample that reaches the recall with few false candidates.

    If no sample has few, the largest is chosen.

    Raises
    ------
    SettingError
        If no sample size reaches the recall.
    """
    best = None
    for size in _SIZES:
        num_needed = _max_needed(threshold, recall, size)
        if num_needed == 0:
            continue
        best = Samples(num_samples=size, num_needed=num_needed)
        false_probability = hit_probability(_FALSE_CONTAINMENT * threshold, best)
        if float(false_probability) <= _MAX_FALSE_PROBABILITY:
            break
    if best is None:
        raise SettingError(
            f"recall={recall} at threshold={threshold} needs more than {_SIZES[-1]} samples of a "
            "document. Lower the recall or raise the threshold."
        )
    return best


def needed_by_size(threshold: float, recall: float, samples: Samples) -> Ints:
    """Return the number of hits that a sample of 0, 1, ... num_samples shingles needs.

    A document with fewer shingles than samples is sampled whole; it needs as many hits as reach the
    recall, and at least one.
    """
    needed = np.ones(samples.num_samples + 1, np.int64)
    needed[samples.num_samples] = samples.num_needed
    for size in range(1, samples.num_samples):
        needed[size] = max(1, _max_needed(threshold, recall, size))
    return needed


def _max_needed(threshold: float, recall: float, size: int) -> int:
    """Return the maximum number of hits that may be required without losing the recall, or 0."""
    missed = 0.0
    for hits in range(size):
        missed += math.comb(size, hits) * threshold**hits * (1.0 - threshold) ** (size - hits)
        if 1.0 - missed < recall:
            return hits
    return size
