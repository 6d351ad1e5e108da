"""The recall of a run, estimated from the pairs that it found or measured on a sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from neardup.arrays import Floats, Ints, Positions

_NORMAL_95 = 1.959963984540054


class Recall(NamedTuple):
    """An estimate of recall with a 95 % interval, in [0, 1], from num_pairs pairs."""

    estimated: float
    low: float
    high: float
    num_pairs: int


def estimate_recall(
    similarity: Floats, cluster: Positions, probability: Callable[[Floats], Floats]
) -> Recall | None:
    """Estimate the recall of a run from the pairs it found.

    Parameters
    ----------
    similarity : float64 array of shape (num_pairs,), exact similarity of each pair found.
    cluster : uint32 array of shape (num_pairs,), the connected component of the documents of each
        pair.
    probability : maps similarities to the probability that such a pair is proposed.

    Returns
    -------
    Recall, or None if no pair was found.

    Notes
    -----
    Horvitz and Thompson (1952): a pair found with probability P represents 1/P pairs, so the sum of
    1/P is an unbiased estimate of the number of pairs. If pairs are found independently, its
    variance is the sum of (1 - P)/P^2. Pairs of a cluster share signatures, and are assumed to be
    fully dependent, which widens the interval: standard deviations add up within a cluster,
    variances across clusters.
    """
    num_pairs = len(similarity)
    if num_pairs == 0:
        return None
    chance = np.minimum(probability(similarity), 1.0)
    total = float(np.sum(1.0 / chance))
    _, members = np.unique(cluster, return_inverse=True)
    deviations = np.bincount(members, weights=np.sqrt(1.0 - chance) / chance)
    spread = _NORMAL_95 * math.sqrt(float(np.sum(deviations**2)))
    low = num_pairs / (total + spread)
    high = min(1.0, num_pairs / max(total - spread, num_pairs))
    return Recall(estimated=num_pairs / total, low=low, high=high, num_pairs=num_pairs)


def measure_recall(found: Ints, true: Ints) -> Recall | None:
    """Measure the recall on documents that were compared with all other documents.

    Parameters
    ----------
    found, true : int64 arrays of shape (num_documents,), the proposed pairs of each sampled
        document, and all its duplicate pairs.

    Returns
    -------
    Recall, or None if the documents have no duplicates. The interval is the interval of a ratio of
    two sums over documents drawn at random (Cochran, Sampling Techniques, 1977, section 6.3), never
    narrower than Wilson's interval for the number of documents with duplicates.
    """
    total = int(true.sum())
    if total == 0:
        return None
    share = float(found.sum()) / total
    with_duplicates = true > 0
    count = int(with_duplicates.sum())
    residual = (found - share * true)[with_duplicates].astype(np.float64)
    spread = 0.0
    if count > 1:
        spread = _NORMAL_95 * math.sqrt(count * float(residual.var(ddof=1))) / total
    low, high = wilson(share, count)
    return Recall(
        estimated=share,
        low=max(0.0, min(low, share - spread)),
        high=min(1.0, max(high, share + spread)),
        num_pairs=total,
    )


def wilson(share: float, count: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval (1927) of a share observed in `count` trials.

    count : need not be a whole number.
    """
    z2 = _NORMAL_95**2
    scale = 1 + z2 / count
    centre = (share + z2 / (2 * count)) / scale
    root = math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    half = _NORMAL_95 / scale * root
    return centre - half, centre + half
