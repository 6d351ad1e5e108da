"""The recall of a sample against its formulas: Cochran 1977, section 6.3, and Wilson 1927."""

from __future__ import annotations

import math
from statistics import NormalDist, variance

import numpy as np
import pytest

from neardup.verify.recall import measure_recall, wilson

Z = NormalDist().inv_cdf(0.975)


def wilson_bounds(share: float, count: float) -> tuple[float, ...]:
    """Return the two shares p for which (share - p)^2 = z^2 p (1 - p) / count."""
    a = 1 + Z * Z / count
    b = -2 * share - Z * Z / count
    root = math.sqrt(b * b - 4 * a * share * share)
    return tuple((-b + sign * root) / (2 * a) for sign in (-1, 1))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 2.5, 1000])
def test_the_bounds_of_wilson_solve_his_equation(share, count):
    assert wilson(share, count) == pytest.approx(wilson_bounds(share, count), abs=1e-12)


@pytest.mark.parametrize(
    ("found", "true"),
    [
        ([1], [2]),
        ([100, 0], [100, 100]),
        ([1, 3], [2, 4]),
        ([90, 5, 0, 0, 3], [90, 10, 0, 60, 3]),
        ([0, 0], [5, 1]),
        ([5, 1], [5, 1]),
    ],
    ids=["one", "two that differ", "two alike", "five", "none found", "all found"],
)
def test_the_interval_of_a_sample_is_the_wider_of_two(found, true):
    share = sum(found) / sum(true)
    rests = [f - share * t for f, t in zip(found, true, strict=True) if t]
    spread = 0.0
    if len(rests) > 1:
        spread = Z * math.sqrt(len(rests) * variance(rests)) / sum(true)
    low, high = wilson_bounds(share, len(rests))
    recall = measure_recall(np.array(found), np.array(true))
    assert recall is not None
    assert (recall.estimated, recall.num_pairs) == (pytest.approx(share), sum(true))
    assert recall.low == pytest.approx(max(0.0, min(low, share - spread)), abs=1e-12)
    assert recall.high == pytest.approx(min(1.0, max(high, share + spread)), abs=1e-12)


def test_documents_without_duplicates_have_no_recall():
    assert measure_recall(np.zeros(3, np.int64), np.zeros(3, np.int64)) is None
