"""The numbers of bands and rows that datasketch chooses for a threshold."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from neardup.compat.datasketch.quadrature import integrate


@cache
def optimal_bands(threshold: float, num_perm: int, weights: tuple[float, float]) -> tuple[int, int]:
    """Return the bands b and rows r with the least weighted sum of the expected false positives and negatives.

    Leskovec et al., Mining of Massive Datasets, 3.4.2: sets of similarity s meet with probability 1 - (1 - s^r)^b.

    >>> optimal_bands(0.9, 128, (0.5, 0.5))
    (5, 25)
    """
    return _least_error(lambda s: s, (0.0, threshold, 1.0), num_perm, num_perm, weights)


@cache
def optimal_containment_bands(
    threshold: float, num_perm: int, max_rows: int, ratio: float, weights: tuple[float, float]
) -> tuple[int, int]:
    """Return the bands and rows for containment, where the indexed set has ratio times the members of the query.

    Zhu et al. (VLDB 2016), section 5: a containment of t is a similarity of t / (1 + ratio - t).
    """
    limits = (0.0, min(threshold, ratio), min(ratio, 1.0))
    return _least_error(lambda t: t / (1 + ratio - t), limits, num_perm, max_rows, weights)


def _least_error(
    similarity: Callable[[float], float],
    limits: tuple[float, float, float],
    num_perm: int,
    max_rows: int,
    weights: tuple[float, float],
) -> tuple[int, int]:
    """Return the first bands and rows of the least error.

    similarity : of a value of the measure. limits : the least value, the least of wanted pairs, and the greatest.
    """

    def error(num_bands: int, num_rows: int) -> float:
        b, r = float(num_bands), float(num_rows)
        false_positive = integrate(lambda s: 1 - (1 - similarity(s) ** r) ** b, limits[0], limits[1])
        false_negative = 0.0
        if limits[1] < limits[2]:
            # 1 - (1 - x), not x: rounded so, values below 2^-53 are 0, and the first of several zeros is chosen.
            false_negative = integrate(lambda s: 1 - (1 - (1 - similarity(s) ** r) ** b), limits[1], limits[2])
        return false_positive * weights[0] + false_negative * weights[1]

    pairs = ((b, r) for b in range(1, num_perm + 1) for r in range(1, min(max_rows, num_perm // b) + 1))
    return min(pairs, key=lambda pair: error(*pair))
