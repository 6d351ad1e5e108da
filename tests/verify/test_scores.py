"""The arithmetic of scores: pairs counted without a list of them, the best of a curve, the adjusted
Rand index.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.verify.scores import (
    DIFFERENT,
    SAME,
    UNKNOWN,
    Judgements,
    Labels,
    Score,
    adjusted_rand,
    best_of,
    count_within,
)
from reference import evaluation

# The parts


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 4)), min_size=1, max_size=20))
def test_pairs_under_one_label_are_counted_as_if_they_were_listed(rows):
    codes, classes = (np.array(column) for column in zip(*rows, strict=True))
    expected = [0] * (int(classes.max()) + 1)
    for (a, low), (b, other) in combinations(rows, 2):
        expected[min(low, other)] += a == b >= 0
    assert Labels(codes).count_positives(classes).tolist() == expected
    known = int((codes >= 0).sum())
    assert Labels(codes).num_pairs == known * (known - 1) // 2


def test_judged_pairs_are_known_in_either_direction_and_no_others_are():
    judged = Judgements(
        np.array([0, 1], np.uint32), np.array([3, 2], np.uint32), np.array([True, False])
    )
    left, right = (np.array(one, np.uint32) for one in ([3, 2, 0, 1], [0, 1, 1, 3]))
    assert judged.judge(left, right).tolist() == [SAME, DIFFERENT, UNKNOWN, UNKNOWN]
    assert judged.count_positives(np.array([2, 0, 1, 1])).tolist() == [0, 1, 0]


def test_a_limit_counts_what_reaches_it_exactly():
    values = np.array([0.3, 0.5, 0.5, 0.8])
    assert count_within(np.array([0.3, 0.5, 0.6, 0.8, 1.0]), values, at_least=True).tolist() == [
        4,
        3,
        1,
        1,
        0,
    ]
    assert count_within(
        np.array([0, 1, 2, 3]), np.array([0.0, 2.0, 2.0]), at_least=False
    ).tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize(("at_least", "limit"), [(True, 0.9), (False, 0.1)])
@pytest.mark.parametrize("limits", [(0.1, 0.5, 0.9), (0.9, 0.5, 0.1), (0.5, 0.9, 0.1)], ids=str)
def test_of_equal_scores_in_any_order_the_strictest_is_the_best(limits, at_least, limit):
    scores = [Score(limit=each, found=4, correct=2, positives=3) for each in limits]
    assert best_of(scores, at_least=at_least).limit == limit


def test_the_best_of_equals_is_the_strictest():
    scores = [Score(limit, 10, 5, 10) for limit in (1, 2, 3)] + [Score(4, 10, 4, 10)]
    assert best_of(scores, at_least=True).limit == 3
    assert best_of(scores, at_least=False).limit == 1


# The adjusted Rand index

RAND = {
    # The examples in the documentation of sklearn.metrics.adjusted_rand_score, version 1.5.
    "equal": ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),
    "equal by other names": ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),
    "one cluster too many": ([0, 0, 1, 2], [0, 0, 1, 1], 4 / 7),
    "the other way round": ([0, 0, 1, 1], [0, 0, 1, 2], 4 / 7),
    "all apart": ([0, 0, 0, 0], [0, 1, 2, 3], 0.0),
    "less than chance": ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),
    # Yeung and Ruzzo (2001), Details of the adjusted Rand index, table 2: 0.313.
    "table of 3 x 3": ([0, 0, 1, 1, 1, 1, 2, 2, 2, 2], [0, 1, 0, 1, 1, 2, 2, 2, 2, 2], 133 / 425.5),
    "all alone": ([0, 1, 2], [2, 1, 0], 1.0),
    "all together": ([0, 0, 0], [1, 1, 1], 1.0),
    "one thing": ([0], [5], 1.0),
}


@pytest.mark.parametrize(("left", "right", "expected"), RAND.values(), ids=RAND)
def test_the_adjusted_rand_index_has_the_published_values(left, right, expected):
    assert adjusted_rand(np.array(left), np.array(right)) == pytest.approx(expected, abs=1e-15)
    assert evaluation.adjusted_rand(left, right) == pytest.approx(expected, abs=1e-15)


PARTITIONS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=25)


@given(PARTITIONS)
def test_the_adjusted_rand_index_is_that_of_the_four_counts_of_pairs(rows):
    left, right = (np.array(column) for column in zip(*rows, strict=True))
    expected = evaluation.adjusted_rand(left.tolist(), right.tolist())
    assert adjusted_rand(left, right) == pytest.approx(expected, abs=1e-12)
    assert adjusted_rand(right, left) == adjusted_rand(left, right)
    assert adjusted_rand((left + 2) % 5, right) == adjusted_rand(left, right)


def test_the_adjusted_rand_index_of_many_things_is_exact_and_of_nothing_unknown():
    halves = np.arange(2_000_000) // 1_000_000
    assert adjusted_rand(halves, halves) == 1.0
    assert adjusted_rand(np.empty(0, np.int64), np.empty(0, np.int64)) is None


@pytest.mark.slow
def test_the_adjusted_rand_index_of_chance_is_about_nothing():
    """Of two independent partitions its mean is 0, by its definition; the bound is 5 standard
    errors.
    """
    draw = np.random.default_rng(1)
    values = [adjusted_rand(draw.integers(0, 5, 100), draw.integers(0, 5, 100)) for _ in range(200)]
    assert abs(np.mean(values)) < 5 * np.std(values) / math.sqrt(len(values))
