"""Bounds from theory, for tests that state their false-alarm rate."""

from __future__ import annotations

import math
from statistics import NormalDist


def binomial_probability(hits: int, trials: int, chance: float) -> float:
    """Return the probability of so many hits."""
    if chance in (0.0, 1.0):
        return float(hits == round(trials * chance))
    log = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    return math.exp(log + hits * math.log(chance) + (trials - hits) * math.log1p(-chance))


def binomial_interval(trials: int, chance: float, false_alarm: float) -> tuple[int, int]:
    """Return the least and the most hits; outside, on either side, lies at most half of
    `false_alarm`.
    """
    low = 0
    below = binomial_probability(0, trials, chance)
    while below <= false_alarm / 2:
        low += 1
        below += binomial_probability(low, trials, chance)
    high = trials
    above = binomial_probability(trials, trials, chance)
    while above <= false_alarm / 2:
        high -= 1
        above += binomial_probability(high, trials, chance)
    return low, high


def most_misses(trials: int, chance: float, false_alarm: float) -> int:
    """Return how many misses may be seen; more come with a probability of at most `false_alarm`."""
    return binomial_interval(trials, chance, 2 * false_alarm)[1]


def chi_square_interval(freedom: int, false_alarm: float) -> tuple[float, float]:
    """Return the bounds of a chi-square variable (Wilson and Hilferty 1931), half of `false_alarm`
    on each side.
    """
    z = NormalDist().inv_cdf(1 - false_alarm / 2)
    scale = 2 / (9 * freedom)
    return tuple(freedom * (1 - scale + sign * z * math.sqrt(scale)) ** 3 for sign in (-1, 1))
