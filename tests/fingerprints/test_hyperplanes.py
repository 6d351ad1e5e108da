"""The hyperplanes of a seed and the sides of vectors: equal to a naive twin, and as random as
theory demands.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import Vectors, kernels
from neardup.arrays import read_only
from neardup.fingerprints.hyperplanes import draw_planes, find_sides, same_side, to_directions
from neardup.methods.registry import method_of


def sides_by_hand(vectors, num_bands, num_bits, seed):
    """Return the sides, one product after the other, each sum in the order of the components."""
    planes = np.concatenate(
        [block.T for block in draw_planes(num_bands * num_bits, vectors.shape[1], seed)]
    )
    rows = []
    for direction in to_directions(vectors):
        sides = []
        for plane in planes[: num_bands * num_bits]:
            total = np.float32(0)
            for component, value in zip(direction, plane, strict=True):
                total = np.float32(total + np.float32(component * value))
            sides.append(int(total >= 0))
        rows.append(
            [
                sum(sides[i + bit] << bit for bit in range(num_bits))
                for i in range(0, len(sides), num_bits)
            ]
        )
    return rows


def vectors_of(count, dimensions, seed=5):
    return np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)


@pytest.mark.parametrize(
    ("num_bands", "num_bits"), [(1, 1), (3, 31), (13, 5), (64, 1), (2, 32 - 1)]
)
def test_sides_are_those_of_the_naive_twin(num_bands, num_bits):
    vectors = vectors_of(9, 6)
    assert find_sides(vectors, num_bands, num_bits, 3).tolist() == sides_by_hand(
        vectors, num_bands, num_bits, 3
    )


@given(st.integers(1, 40), st.floats(-10, 10))
def test_sides_depend_neither_on_the_batch_nor_on_the_length_of_a_vector(cut, exponent):
    vectors = vectors_of(41, 10)
    sides = find_sides(vectors, 7, 11, 1)
    parts = [find_sides(part, 7, 11, 1) for part in (vectors[:cut], vectors[cut:])]
    assert (np.concatenate(parts) == sides).all()
    assert (find_sides(vectors * np.float32(2.0 ** int(exponent)), 7, 11, 1) == sides).all()


def test_the_first_planes_are_the_same_however_many_are_drawn():
    assert (draw_planes(200, 8, 1)[:1] == draw_planes(64, 8, 1)).all()
    assert (draw_planes(64, 8, 1) != draw_planes(64, 8, 2)).any()


GOLDEN = [
    [58815.0, -82349.0, 123896.0, 24528.0],
    [28448.0, 9653.0, 1179.0, 50262.0],
    [42764.0, 76593.0, 45538.0, -97151.0],
]
GOLDEN_SIDES = [[11065, 65382], [36996, 57689], [55748, 33465]]


def test_the_planes_of_version_1_of_the_scheme_stay():
    # Golden: of this implementation when the scheme was made, which docs/vectors.md describes.
    assert (draw_planes(3, 4, 1)[0, :, :3].T * 65536).tolist() == GOLDEN
    assert find_sides(vectors_of(3, 4), 2, 16, 1).tolist() == GOLDEN_SIDES


def test_components_are_normal():
    values = draw_planes(6400, 16, 4).ravel().astype(np.float64)
    count = len(values)  # 102,400; five standard errors: a false alarm in 1.7 million runs each
    assert abs(values.mean()) < 5 / math.sqrt(count)
    assert abs(values.var() - 1) < 5 * math.sqrt(2 / count)
    assert abs((values**4).mean() - 3) < 5 * math.sqrt(96 / count)


@pytest.mark.parametrize("cosine", [0.99, 0.9, 0.5, 0.0, -0.7])
def test_vectors_lie_on_the_same_side_as_often_as_their_angle_says(cosine):
    num = 31 * 400
    left = [1.0, 0.0, 0.0, 0.0]
    right = [cosine, math.sqrt(1 - cosine**2), 0.0, 0.0]
    sides = find_sides(np.array([left, right], np.float32), 400, 31, 9)
    same = num - sum(int(different).bit_count() for different in sides[0] ^ sides[1])
    expected = 1 - math.acos(cosine) / math.pi
    assert same_side(cosine) == pytest.approx(expected)
    # Five standard deviations of the binomial distribution: a false alarm in 1.7 million runs.
    assert abs(same - num * expected) < 5 * math.sqrt(num * expected * (1 - expected))


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [0.7, 0.9, 0.99])
def test_pairs_at_the_threshold_are_found_as_often_as_requested(threshold):
    # a pair each: pairs of one run share its hyperplanes
    found = 0
    num_runs = 400
    for seed in range(num_runs):
        method = method_of(Vectors(threshold=threshold, recall=0.9, seed=seed))
        left, other = to_directions(vectors_of(2, 8, seed)).astype(np.float64)
        other -= other @ left * left
        right = threshold * left + math.sqrt(1 - threshold**2) * other / np.linalg.norm(other)
        sides = find_sides(np.array([left, right], np.float32), *method.bands, seed)
        found += bool((sides[0] == sides[1]).any())
    num_bands, num_bits = method.bands
    agreement = (1 - math.acos(threshold) / math.pi) ** num_bits  # of one band, by the angle
    expected = 1 - (1 - agreement) ** num_bands
    assert 0.9 <= expected < 0.95
    # Five standard deviations of the binomial distribution: a false alarm in 1.7 million runs.
    assert abs(found - num_runs * expected) < 5 * math.sqrt(num_runs * expected * (1 - expected))


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_cosines_are_those_of_the_naive_twin(dimensions, seed):
    vectors = read_only(vectors_of(6, 2 * dimensions, seed))
    left = np.array([0, 1])
    right = np.array([3, 4])
    cosines = np.empty(2)
    kernels.vectors.fill_cosines(vectors, left, vectors, right, cosines)
    for pair in range(2):
        a = vectors[left[pair]].tolist()
        b = vectors[right[pair]].tolist()
        product = math.fsum(x * y for x, y in zip(a, b, strict=True))
        expected = product / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))
        # A sum of n products of rounding error 2^-53 each is off by less than n 2^-52 of the sum of
        # their amounts.
        assert abs(cosines[pair] - expected) < 8 * dimensions * 2.0**-52
