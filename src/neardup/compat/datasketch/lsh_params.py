"""The numbers of bands and rows that datasketch chooses for a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache

from neardup.compat.datasketch.quadrature import integrate


@cache
def optimal_bands(threshold: float, num_perm: int, weights: tuple[float, float]) -> tuple[int, int]:
    """Return the bands b and rows r with the least weighted sum of the expected false positives and negatives.

    Leskovec et al., Mining of Massive Datasets, 3.4.2: sets of similarity s meet with probability 1 - (1 - s^r)^b.

    >>> optimal_bands(0.9, 128, (0.5, 0.5))
    (5, 25)
    """

    def error(num_bands: int, num_rows: int) -> float:
        b, r = float(num_bands), float(num_rows)
        false_positive = integrate(lambda s: 1 - (1 - s**r) ** b, 0.0, threshold)
        # 1 - (1 - x), not x: rounded so, values below 2^-53 are 0, and the first of several zeros is chosen.
        false_negative = integrate(lambda s: 1 - (1 - (1 - s**r) ** b), threshold, 1.0)
        return false_positive * weights[0] + false_negative * weights[1]

    return _first_least(error, ((b, r) for b in range(1, num_perm + 1) for r in range(1, num_perm // b + 1)))


@cache
def optimal_containment_bands(
    threshold: float, num_perm: int, max_rows: int, ratio: float, weights: tuple[float, float]
) -> tuple[int, int]:
    """Return the bands and rows for containment, where the indexed set has ratio times the members of the query.

    Zhu et al. (VLDB 2016), section 5: a containment of t is a similarity of t / (1 + ratio - t).
    """

    def error(num_bands: int, num_rows: int) -> float:
        b, r = float(num_bands), float(num_rows)
        false_positive = integrate(
            lambda t: 1 - (1 - (t / (1 + ratio - t)) ** r) ** b, 0.0, threshold if ratio >= threshold else ratio
        )
        false_negative = 0.0
        if ratio >= threshold:  # 1 - (1 - x) as above
            false_negative = integrate(
                lambda t: 1 - (1 - (1 - (t / (1 + ratio - t)) ** r) ** b), threshold, min(ratio, 1.0)
            )
        return false_positive * weights[0] + false_negative * weights[1]

    pairs = ((b, r) for b in range(1, num_perm + 1) for r in range(1, min(max_rows, num_perm // b) + 1))
    return _first_least(error, pairs)


def _first_least(error: Callable[[int, int], float], pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    least, chosen = math.inf, (0, 0)
    for pair in pairs:
        found = error(*pair)
        if found < least:
            least, chosen = found, pair
    return chosen
