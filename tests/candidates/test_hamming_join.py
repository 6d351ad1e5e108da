"""All pairs within a Hamming distance are those of comparing each with each, for every width,
distance and layout.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.candidates import hamming_join as hamming
from neardup.errors import InputError, SettingError
from reference import hamming as reference

WIDTHS = (32, 64, 128, 256)


def words_of(fingerprints: list[int], bits: int) -> np.ndarray:
    return np.array(reference.to_words(fingerprints, bits), np.uint64).reshape(
        len(fingerprints), -(-bits // 64)
    )


def joined(fingerprints: list[int], bits: int, max_distance: int, num_blocks=None, threads=1):
    """Return the pairs in the order in which they come."""
    parts = hamming.join(words_of(fingerprints, bits), bits, max_distance, num_blocks, threads)
    return [
        pair for part in parts for pair in zip(*(column.tolist() for column in part), strict=True)
    ]


def neighbours(count: int, bits: int, most: int, seed: int) -> list[int]:
    """Return fingerprints of which about half differ from an earlier one in 0 to `most` bits,
    anywhere.
    """
    chance = random.Random(seed)
    found = [0, 0]
    while len(found) < count:
        base = chance.choice(found) if chance.random() < 0.5 else chance.getrandbits(bits)
        for bit in chance.sample(range(bits), chance.randint(0, most)):
            base ^= 1 << bit
        found.append(base)
    return found[:count]


def blocks_to_try(bits: int, max_distance: int) -> list[int | None]:
    few = list(range(max_distance + 1, max_distance + 8))
    return (
        [None, *few, bits // 4, bits // 2, bits - 1, bits]
        if max_distance < bits // 4
        else [None, *few, bits]
    )


@pytest.mark.slow
@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("max_distance", [0, 1, 2, 3, 5, 8, 16])
def test_pairs_are_those_of_brute_force_for_any_number_of_blocks(bits, max_distance):
    fingerprints = neighbours(150, bits, max_distance + 2, seed=bits + max_distance)
    expected = reference.pairs(fingerprints, max_distance)
    assert expected
    for num_blocks in blocks_to_try(bits, max_distance):
        assert sorted(joined(fingerprints, bits, max_distance, num_blocks)) == expected, num_blocks


@pytest.mark.slow
@given(st.data(), st.sampled_from(WIDTHS), st.integers(0, 8), st.sampled_from([1, 2, 3]))
def test_pairs_are_those_of_brute_force_in_parts_and_through_small_buffers(
    data, bits, max_distance, threads
):
    bases = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=4))
    flips = st.sets(st.integers(0, bits - 1), max_size=max_distance // 2 + 1)
    drawn = data.draw(st.lists(st.tuples(st.sampled_from(bases), flips), max_size=24))
    fingerprints = [base ^ sum(1 << bit for bit in bits_flipped) for base, bits_flipped in drawn]
    num_blocks = data.draw(st.one_of(st.none(), st.integers(max_distance + 1, bits)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hamming, "PAIRS_AT_ONCE", data.draw(st.sampled_from([1, 2, 1000])))
        patch.setattr(hamming, "_PART_BITS", data.draw(st.sampled_from([0, 2, 17])))
        patch.setattr(hamming, "_PARTS_AT_ONCE", data.draw(st.sampled_from([1, 3, 2048])))
        patch.setattr(hamming, "_RECORDS_AT_ONCE", data.draw(st.sampled_from([1, 5, 1 << 27])))
        found = joined(fingerprints, bits, max_distance, num_blocks, threads)
    assert sorted(found) == reference.pairs(fingerprints, max_distance)


@pytest.mark.parametrize("part_bits", [pytest.param(4, marks=pytest.mark.slow), 17])
def test_pairs_and_their_order_do_not_depend_on_threads(part_bits, monkeypatch):
    monkeypatch.setattr(hamming, "_PART_BITS", part_bits)
    monkeypatch.setattr(hamming, "PAIRS_AT_ONCE", 50)
    fingerprints = neighbours(2000, 64, 4, seed=1)
    first = joined(fingerprints, 64, 3, threads=1)
    assert first == joined(fingerprints, 64, 3, threads=2) == joined(fingerprints, 64, 3, threads=5)


def matrix_pairs(fingerprints: np.ndarray, max_distance: int) -> set[tuple[int, int]]:
    """Return the pairs within a distance of fingerprints of one word, all distances at once."""
    distances = np.bitwise_count(fingerprints[:, None] ^ fingerprints[None, :])
    return set(
        zip(
            *(place.tolist() for place in np.nonzero(np.triu(distances <= max_distance, 1))),
            strict=True,
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("num_blocks", [None, 4, 5, 6, 9, 16])
@pytest.mark.parametrize("shared_bits", [0, 20, 40, 52])
def test_fingerprints_that_crowd_in_few_keys_lose_no_pair(num_blocks, shared_bits, monkeypatch):
    """The lower bits are the same in all: keys of the first blocks tell nothing apart."""
    monkeypatch.setattr(hamming, "_PART_BITS", 9)
    random_bits = np.random.default_rng(5).integers(0, 2**64, 1500, np.uint64)
    fingerprints = (random_bits >> np.uint64(shared_bits)) << np.uint64(shared_bits)
    expected = matrix_pairs(fingerprints, 3)
    found = [
        pair
        for part in hamming.join(fingerprints, 64, 3, num_blocks, 2)
        for pair in zip(part.left.tolist(), part.right.tolist(), strict=True)
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_equal_fingerprints_are_all_pairs_handed_on_in_small_batches(monkeypatch):
    monkeypatch.setattr(hamming, "PAIRS_AT_ONCE", 1000)
    count = 300
    batches = list(hamming.join(np.full(count, 2**64 - 1, np.uint64), 64, 3, None, 2))
    assert all(0 < len(batch.left) <= 1000 for batch in batches)
    found = {
        pair
        for batch in batches
        for pair in zip(batch.left.tolist(), batch.right.tolist(), strict=True)
    }
    assert len(found) == sum(len(batch.left) for batch in batches) == count * (count - 1) // 2
    assert all(left < right for left, right in found)


@pytest.mark.parametrize("bits", WIDTHS)
def test_no_fingerprint_and_one_have_no_pairs(bits):
    assert joined([], bits, 3) == joined([2**bits - 1], bits, 3) == []


def test_the_edges_of_the_distance_are_inclusive():
    assert joined([0, 0b111, 0b1111], 64, 3) == [(0, 1, 3), (1, 2, 1)]


def test_bits_are_counted_from_the_lowest_word():
    (pair,) = joined([1 << 200, 1 << 200 | 1 << 64], 256, 1)
    assert pair == (0, 1, 1)


def test_a_join_that_is_given_up_ends(monkeypatch):
    monkeypatch.setattr(hamming, "PAIRS_AT_ONCE", 10)
    pairs = hamming.join(np.zeros(500, np.uint64), 64, 3, None, 2)
    assert len(next(pairs).left) == 10
    pairs.close()


@pytest.mark.parametrize(
    ("given_bits", "max_distance", "num_blocks", "message"),
    [
        (63, 3, None, "bits must be one of 32, 64, 128, 256: got 63"),
        (64, 17, None, "max_distance must be a whole number of 0 or more and at most 16: got 17"),
        (64, -1, None, "got -1"),
        (64, True, None, "got True"),
        (64, 3, 3, "num_blocks must be above max_distance=3 and at most bits=64: got 3"),
        (64, 3, 65, "got 65. Change num_blocks, or leave it unset"),
    ],
)
def test_what_cannot_be_searched_is_refused_at_once(given_bits, max_distance, num_blocks, message):
    with pytest.raises(SettingError, match=message):
        hamming.join(np.zeros(3, np.uint64), given_bits, max_distance, num_blocks)


def test_fingerprints_of_another_width_are_refused():
    with pytest.raises(
        TypeError,
        match=r"Fingerprints of 128 bits must be a uint64 array of shape \(n, 2\): got uint64 \(3,\)",  # noqa: E501
    ):
        hamming.join(np.zeros(3, np.uint64), 128, 3)
    with pytest.raises(TypeError, match="got int64"):
        hamming.join(np.zeros(3, np.int64), 64, 3)
    with pytest.raises(InputError, match=r"below 2\^32: got 4294967296 at row 1\. Pass bits=64"):
        hamming.join(np.array([1, 2**32], np.uint64), 32, 3)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=12), st.booleans())
@example([5, 5, 4], True)
def test_read_only_and_strided_arrays_are_read(values, read_only):
    array = np.repeat(np.array(values, np.uint64), 2)[::2]
    array.flags.writeable = not read_only
    found = [
        tuple(map(int, pair))
        for part in hamming.join(array, 64, 3)
        for pair in zip(*part, strict=True)
    ]
    assert sorted(found) == reference.pairs(values, 3)
