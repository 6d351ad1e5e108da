"""What signatures estimate: without bias, and spread as theory says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from neardup import MinHash
from neardup.fingerprints.minhash import sign as sign_hashes
from neardup.fingerprints.minhash import sign_weighted
from neardup.fingerprints.signatures import Signatures
from reference.signed import signature_of

NUM_SEEDS = 1000
NUM_HASHES = 128


# Bounds of five standard errors: a false alarm in two million.
def z_of(values: np.ndarray, expected: float, variance: float) -> float:
    return float((np.mean(values) - expected) / math.sqrt(variance / len(values)))


def assert_spread(values: np.ndarray, variance: float) -> None:
    """The sample variance of n nearly normal values is itself nearly normal, with deviation sqrt(2
    / (n - 1)).
    """
    assert abs(np.var(values, ddof=1) / variance - 1) < 5 * math.sqrt(2 / (len(values) - 1))


def two_sets(size: int, jaccard: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the hashes and offsets of two sets of `size` elements, and their similarity, near to
    the one asked for.
    """
    shared = round(2 * size * jaccard / (1 + jaccard))
    hashes = np.random.default_rng(size).integers(0, 2**64, 2 * size - shared, dtype=np.uint64)
    both = np.concatenate([hashes[:size], hashes[size - shared :]])
    return both, np.array([0, size, 2 * size]), shared / (2 * size - shared)


def check_estimators(size: int, jaccard: float, num_seeds: int, num_hashes: int) -> None:
    hashes, offsets, exact = two_sets(size, jaccard)
    bits = (1, 2, 4, 8, 16)
    estimates = np.empty(num_seeds)
    sizes = np.empty(num_seeds)
    packed = {one: np.empty(num_seeds) for one in bits}
    for seed in range(num_seeds):
        both = Signatures(
            sign_hashes(hashes, offsets, num_hashes, seed), {"num_hashes": num_hashes}
        )
        left = both[0]
        right = both[1]
        estimates[seed] = left.similarity(right)[0]
        sizes[seed] = left.cardinality()[0]
        for one in bits:
            packed[one][seed] = left.pack(one).similarity(right.pack(one))[0]
    variance = exact * (1 - exact) / num_hashes
    assert abs(z_of(estimates, exact, variance)) < 5
    assert_spread(estimates, variance)
    # The least of k exponentials: the variance of (k - 1) / gamma(k).
    assert abs(z_of(sizes, size, size**2 / (num_hashes - 2))) < 5
    for one in bits:
        chance = 2.0**-one
        agree = chance + (1 - chance) * exact
        variance = agree * (1 - agree) / num_hashes / (1 - chance) ** 2
        assert abs(z_of(packed[one], exact, variance)) < 5, one
        assert_spread(packed[one], variance)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "jaccard"), [(10, 0.2), (10, 0.8), (100, 0.5), (100, 0.9), (1000, 0.2), (1000, 0.8)]
)
def test_estimates_are_unbiased_and_spread_as_theory_says(size, jaccard):
    check_estimators(size, jaccard, NUM_SEEDS, NUM_HASHES)


@pytest.mark.parametrize("size", [20, 100, 500])
def test_no_pair_of_sets_is_estimated_with_a_bias_of_its_own(size):
    """Permutations that are not random enough favour some elements, others in each pair: a mean
    over pairs hides it.
    """
    num_pairs = 30
    pairs = np.random.default_rng(size).integers(0, 2**64, (num_pairs, size), dtype=np.uint64)
    shared = size * 9 // 10
    hashes = np.concatenate(
        [pairs, pairs[:, :shared]], axis=1
    ).ravel()  # of each pair one set holds the other
    offsets = np.concatenate(
        [np.arange(num_pairs)[:, None] * (size + shared) + [0, size], [[len(hashes)] * 2]]
    ).ravel()
    agree = np.zeros(num_pairs)
    for seed in range(NUM_SEEDS):
        values = sign_hashes(hashes, offsets[:-1], NUM_HASHES, seed)
        agree += (values[::2] == values[1::2]).mean(axis=1)
    exact = shared / size
    z = (agree / NUM_SEEDS - exact) / math.sqrt(exact * (1 - exact) / NUM_HASHES / NUM_SEEDS)
    # The sum of n squares of normal values has mean n and variance 2 n.
    assert (z**2).sum() < num_pairs + 5 * math.sqrt(2 * num_pairs)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "jaccard"), [(10_000, 0.5), (100_000, 0.8), (1_000_000, 0.5)])
def test_estimates_of_large_sets_are_unbiased_too(size, jaccard):
    check_estimators(size, jaccard, NUM_SEEDS, 16 if size > 100_000 else 64)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1e-90, 1e90])
@pytest.mark.parametrize("size", [1, 3, 30, 300])
def test_weighted_estimates_are_unbiased_and_spread_as_theory_says(size, scale):
    rng = np.random.default_rng(size)
    hashes = np.tile(rng.integers(0, 2**64, size, dtype=np.uint64), 2)
    left = 10 ** rng.uniform(-1, 1, size)
    right = left * rng.choice([0.5, 0.9, 1.3, 4.0], size)
    exact = np.minimum(left, right).sum() / np.maximum(left, right).sum()
    weights = np.concatenate([left, right]) * scale
    num_seeds = NUM_SEEDS if scale == 1.0 else 200
    estimates = np.empty(num_seeds)
    for seed in range(num_seeds):
        rows = sign_weighted(hashes, weights, np.array([0, size, 2 * size]), NUM_HASHES, seed)
        estimates[seed] = np.mean(rows[0] == rows[1])
    variance = exact * (1 - exact) / NUM_HASHES
    assert abs(z_of(estimates, exact, variance)) < 5
    assert_spread(estimates, variance)


@pytest.mark.slow
def test_weights_of_one_measure_the_jaccard_similarity_of_the_sets():
    left, right = ({f"w{number}": 1.0 for number in range(start, start + 60)} for start in (0, 20))
    estimate = (
        signature_of(left, method=MinHash(num_hashes=4096))
        == signature_of(right, method=MinHash(num_hashes=4096))
    ).mean()
    assert abs(estimate - 0.5) < 5 * math.sqrt(0.25 / 4096)


def test_each_feature_is_sampled_in_proportion_to_its_weight():
    weights = {"a": 1.0, "b": 2.0, "c": 5.0}
    whole = signature_of(weights, method=MinHash(num_hashes=8192))
    for feature, weight in weights.items():
        own = signature_of({feature: weight}, method=MinHash(num_hashes=8192))
        share = weight / 8
        assert abs(np.mean(own == whole) - share) < 5 * math.sqrt(share * (1 - share) / 8192)
