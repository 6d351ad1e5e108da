"""Samples of shingles, chosen by exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

SIZES = (4, 8, 16, 32, 64, 128)


def hit_probability(containment: Fraction, size: int, needed: int) -> Fraction:
    """Return the probability of `needed` hits or more among `size` shingles."""
    ways = sum(_ways(containment, size, hits) for hits in range(needed, size + 1))
    return Fraction(ways, containment.denominator**size)


def _ways(containment: Fraction, size: int, hits: int) -> int:
    """Return the probability of a number of hits, times the denominator to the power of size."""
    share, whole = containment.as_integer_ratio()
    return math.comb(size, hits) * share**hits * (whole - share) ** (size - hits)


def most_needed(threshold: Fraction, recall: Fraction, size: int) -> int:
    """Return the most hits that reach the recall at the threshold; 0 if one hit does not."""
    enough = recall * threshold.denominator**size
    ways = 0
    for needed in range(size, 0, -1):
        ways += _ways(threshold, size, needed)
        if ways >= enough:
            return needed
    return 0


@cache
def choose(threshold: float, recall: float) -> tuple[int, int]:
    """Return the size of a sample and the hits needed; (0, 0) if no sample reaches the recall.

    It is the smallest sample that compares at most a tenth of the pairs at half the threshold, or
    the largest sample.
    """
    share = Fraction(str(threshold))
    best = (0, 0)
    for size in SIZES:
        needed = most_needed(share, Fraction(str(recall)), size)
        if needed:
            best = (size, needed)
            if hit_probability(share / 2, size, needed) <= Fraction(1, 10):
                return best
    return best


@cache
def needed_hits(threshold: float, recall: float) -> list[int]:
    """Return the hits that a sample of 0, 1, ... shingles needs, at least one."""
    size, _ = choose(threshold, recall)
    share = Fraction(str(threshold))
    wanted = Fraction(str(recall))
    return [max(1, most_needed(share, wanted, n)) for n in range(size + 1)]
