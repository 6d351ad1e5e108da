"""Fingerprints are those of the reference, bit by bit, however features are counted or weighed."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.fingerprints.simhash import extend, summarise, summarise_weighted, to_integers
from reference import simhash as reference

HASHES = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63, 2**64 - 1]))
DOCUMENTS = st.lists(st.lists(HASHES, max_size=40), max_size=5)
BITS = st.sampled_from([32, 64, 128, 256])
WHOLE = st.integers(-1000, 1000)
# Sums of multiples of 2^-32 are exact, as the weights by TF-IDF are.
FRACTIONS = st.integers(-(2**40), 2**40).map(lambda value: value / 2**32)


def flat(documents: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in documents])]).astype(np.int64)
    return np.array([value for one in documents for value in one], np.uint64), offsets


def voted(hashes: list[int], bits: int, tie: int) -> int:
    """Return the fingerprint of features of one vote each, by the reference."""
    extended = [(reference.extend(value, bits), 1) for value in hashes]
    return reference.reduce(reference.sums(extended, bits), tie) if hashes else 0


@given(DOCUMENTS, BITS, st.integers(0, 1))
@example([[], [0], [2**64 - 1, 0], [1, 2, 3]], 64, 1)
def test_votes_are_counted_as_in_the_reference(documents, bits, tie):
    fingerprints = summarise(*flat(documents), bits, tie=tie)
    assert fingerprints.shape == (len(documents), max(1, bits // 64))
    assert to_integers(fingerprints) == [voted(one, bits, tie) for one in documents]


@pytest.mark.parametrize("count", [15, 16, 17, 31, 32, 255, 256, 1023, 1024, 1025])
def test_carries_reach_the_planes_above(count):
    """All features have bit 0, all but one bit 1, half of them bit 2, one less bit 3."""
    values = [
        1 | (i > 0) << 1 | (2 * i < count) << 2 | (2 * i < count - 2) << 3 for i in range(count)
    ]
    assert to_integers(summarise(*flat([values]), 64)) == [voted(values, 64, 1)]


@given(
    st.lists(st.lists(st.tuples(HASHES, st.one_of(WHOLE, FRACTIONS)), max_size=20), max_size=4),
    BITS,
    st.integers(0, 1),
)
def test_weights_are_summed_as_in_the_reference(documents, bits, tie):
    hashes, offsets = flat([[value for value, _ in one] for one in documents])
    weights = np.array([weight for one in documents for _, weight in one], np.float64)
    result = summarise_weighted(extend(hashes, bits), weights, offsets, bits, tie=tie)
    totals = [
        reference.sums([(reference.extend(value, bits), weight) for value, weight in one], bits)
        for one in documents
    ]
    expected = [
        reference.reduce(total, tie) if one else 0
        for one, total in zip(documents, totals, strict=True)
    ]
    assert to_integers(result.fingerprints) == expected
    if documents:
        assert result.last_sums[:bits][::-1].tolist() == totals[-1]


@given(st.lists(HASHES, max_size=60), BITS)
def test_counting_votes_and_summing_weights_agree(hashes, bits):
    values, offsets = flat([hashes])
    distinct, counts = np.unique(values, return_counts=True)
    weighed = summarise_weighted(
        extend(distinct, bits), counts.astype(np.float64), np.array([0, len(distinct)]), bits
    )
    assert to_integers(summarise(values, offsets, bits)) == to_integers(weighed.fingerprints)


@given(st.lists(HASHES, min_size=1, max_size=40))
def test_shorter_fingerprints_are_the_lower_bits_of_longer_ones(hashes):
    longest = to_integers(summarise(*flat([hashes]), 256))[0]
    for bits in (32, 64, 128):
        assert to_integers(summarise(*flat([hashes]), bits))[0] == longest % 2**bits


@given(st.lists(HASHES, max_size=60), st.randoms(use_true_random=False))
def test_the_order_of_features_does_not_matter(hashes, randomness):
    shuffled = list(hashes)
    randomness.shuffle(shuffled)
    first, second = summarise(*flat([hashes, shuffled]), 128)
    assert first.tolist() == second.tolist()


def probability_of_difference(num_common: int, num_own: int) -> float:
    """Return the probability that a bit differs between two documents, exactly.

    Each feature votes +1 or -1 with equal chance: so many in both, so many in each alone. Even
    votes are a one.
    """
    common, own = (
        np.array([math.comb(n, i) / 2**n for i in range(n + 1)]) for n in (num_common, num_own)
    )
    sums = 2 * np.arange(num_common + 1) - num_common
    # At least (own - sum) / 2 of a document's own features must vote for a one.
    least = np.clip(-((sums - num_own) // 2), 0, num_own + 1)
    one = np.append(np.cumsum(own[::-1])[::-1], 0)[least]
    return float(np.sum(common * 2 * one * (1 - one)))


@pytest.mark.parametrize("share", [0.5, 0.75, 0.9])
def test_the_probability_that_a_bit_differs_tends_to_the_angle_by_pi(share):
    """Charikar (2002), section 3. Two sets that share the part s of their features are at the angle
    arccos(s).
    """
    errors = [
        abs(
            probability_of_difference(round(n * share), round(n * (1 - share)))
            - np.arccos(share) / np.pi
        )
        for n in (20, 80, 320, 960)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01


@pytest.mark.parametrize("bits", [64, 128, 256])
@pytest.mark.parametrize("num_common", [100, 180, 195])
def test_fingerprints_differ_in_as_many_bits_as_theory_says(bits, num_common):
    """The mean of 300 distances lies within 5 standard errors of a binomial's; a false alarm has
    probability 6e-7.
    """
    generator = random.Random(bits)
    trials = 300
    pairs = []
    for _ in range(trials):
        fresh = [generator.getrandbits(64) for _ in range(400 - num_common)]
        pairs += [fresh[:200], fresh[200 - num_common :]]
    fingerprints = to_integers(summarise(*flat(pairs), bits))
    distances = [
        (a ^ b).bit_count() for a, b in zip(fingerprints[::2], fingerprints[1::2], strict=True)
    ]
    probability = probability_of_difference(num_common, 200 - num_common)
    error = 5 * (probability * (1 - probability) / (bits * trials)) ** 0.5
    assert abs(np.mean(distances) / bits - probability) < error
