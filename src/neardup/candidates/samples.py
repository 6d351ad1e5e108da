"""Samples of shingles: candidates for containment, which bands of signatures do not find."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import Floats, Ints
from neardup.errors import SettingError

_SIZES = (4, 8, 16, 32, 64, 128)
_FALSE_AT = 0.5  # of the threshold: a pair of this containment should rarely be compared
_FALSE_SHARE = 0.1


class Samples(NamedTuple):
    """A document is compared with those that contain `num_needed` or more of its `num_samples`
    sampled shingles.
    """

    num_samples: int
    num_needed: int


def hit_probability(containment: npt.ArrayLike, samples: Samples) -> Floats:
    """Return the probability that a pair with this containment is compared: the binomial tail P(X
    >= m).

    Parameters
    ----------
    containment : shares in [0, 1], any shape.
    samples : n sampled shingles, m needed.

    Returns
    -------
    float64 array of the same shape.

    Notes
    -----
    The n least shingle hashes of a document are a random sample without replacement, each in the
    other document with a probability equal to the containment (Broder 1997, section 3). The
    binomial tail is the limit for long documents; a sample without replacement varies less
    (Hoeffding 1963, section 6).
    """
    share = np.asarray(containment, np.float64)
    miss = np.zeros_like(share)
    # Sum the probabilities of 0 to m - 1 hits, built from combinations so that shares of 0 and 1
    # are exact.
    combinations = 1.0
    for hits in range(samples.num_needed):
        miss = miss + combinations * share**hits * (1.0 - share) ** (samples.num_samples - hits)
        combinations *= (samples.num_samples - hits) / (hits + 1)
    return np.asarray(1.0 - miss)


def choose_samples(threshold: float, recall: float) -> Samples:
    """Choose the smallest sample that reaches the recall and rarely compares pairs of half the
    containment.

    Raises
    ------
    SettingError
        If no sample size reaches the recall.
    """
    best = None
    for size in _SIZES:
        needed = _most_hits(threshold, recall, size)
        if needed == 0:
            continue
        best = Samples(size, needed)
        if float(hit_probability(_FALSE_AT * threshold, best)) <= _FALSE_SHARE:
            break
    if best is None:
        raise SettingError(
            f"recall={recall} at threshold={threshold} needs more than {_SIZES[-1]} samples "
            "of a document. "
            "Lower the recall or raise the threshold."
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
        needed[size] = _most_hits(threshold, recall, size) or 1
    return needed


def _most_hits(threshold: float, recall: float, size: int) -> int:
    """Return the most hits that a sample of this size reaches with the recall; 0 if not even
    one.
    """
    missed = 0.0
    for hits in range(size):
        missed += math.comb(size, hits) * threshold**hits * (1.0 - threshold) ** (size - hits)
        if 1.0 - missed < recall:
            return hits
    return size
