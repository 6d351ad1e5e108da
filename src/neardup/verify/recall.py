"""A run's own accuracy: how many duplicate pairs there must be, judged by those that were found."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_NORMAL_95 = 1.959963984540054


class Recall(NamedTuple):
    """An estimate of recall with a 95 % interval, all in [0, 1]; num_pairs were found."""

    estimated: float
    low: float
    high: float
    num_pairs: int


def estimate_recall(
    similarity: npt.NDArray[np.float64],
    group: npt.NDArray[np.uint32],
    probability: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
) -> Recall | None:
    """Estimate the recall of a run from the pairs it found.

    Parameters
    ----------
    similarity : float64 array of shape (num_pairs,), exact similarity of each pair found.
    group : uint32 array of shape (num_pairs,), the cluster of each pair: the connected component of its documents.
    probability : the chance that a pair of a similarity is proposed.

    Returns
    -------
    Recall, or None when nothing was found and nothing can be said.

    Notes
    -----
    Horvitz and Thompson (1952): a pair found with probability P stands for 1/P pairs, so their sum estimates how
    many there are, without bias. Its variance is the sum of (1 - P)/P^2 when pairs are found independently; pairs
    of a cluster share signatures, so within a group they are taken to be fully dependent, which widens
    the interval: the standard deviations add up inside a group, the variances across groups.
    """
    num_pairs = len(similarity)
    if num_pairs == 0:
        return None
    chance = np.minimum(probability(similarity), 1.0)
    total = float(np.sum(1.0 / chance))
    _, members = np.unique(group, return_inverse=True)
    deviations = np.bincount(members, weights=np.sqrt(1.0 - chance) / chance)
    spread = _NORMAL_95 * math.sqrt(float(np.sum(deviations**2)))
    low = num_pairs / (total + spread)
    high = min(1.0, num_pairs / max(total - spread, num_pairs))
    return Recall(num_pairs / total, low, high, num_pairs)


def audit_recall(found: npt.NDArray[np.int64], true: npt.NDArray[np.int64]) -> Recall | None:
    """Measure the recall on documents that were compared with all others.

    Parameters
    ----------
    found, true : int64 arrays of shape (num_documents,), pairs of each audited document that were proposed, and
        that there are.

    Returns
    -------
    Recall, or None if the documents have no partners. The interval is that of a ratio of two sums over documents
    drawn at random (Cochran, Sampling Techniques, 1977, section 6.3), never narrower than Wilson's interval for the
    number of documents with partners.
    """
    total = int(true.sum())
    if total == 0:
        return None
    share = float(found.sum()) / total
    with_partners = true > 0
    count = int(with_partners.sum())
    residual = (found - share * true)[with_partners].astype(np.float64)
    spread = 0.0
    if count > 1:
        spread = _NORMAL_95 * math.sqrt(count * float(residual.var(ddof=1))) / total
    low, high = _wilson(share, count)
    return Recall(share, max(0.0, min(low, share - spread)), min(1.0, max(high, share + spread)), total)


def _wilson(share: float, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval (1927) of a share seen in `count` trials."""
    z2 = _NORMAL_95**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = _NORMAL_95 / (1 + z2 / count) * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    return centre - half, centre + half
