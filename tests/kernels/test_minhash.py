"""Signatures are those of the reference; band keys are equal where all rows of a band are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.fingerprints.minhash import band_keys, draw_permutations, sign, sign_strings
from neardup.kernels import minhash as kernel
from reference import minhash as reference
from reference.strings import hash_string

HASHES = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 5), st.integers(2**64 - 5, 2**64 - 1))
DOCUMENTS = st.lists(st.lists(HASHES, max_size=12), max_size=5)


def signed(documents: list[list[int]], num_hashes: int, seed: int) -> np.ndarray:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in documents])]).astype(np.int64)
    hashes = np.array([value for one in documents for value in one], np.uint64)
    return sign(hashes, offsets, num_hashes, seed)


@given(
    DOCUMENTS,
    st.one_of(st.integers(1, 20), st.sampled_from([64, 65, 128, 129, 300])),
    st.integers(0, 2**32 - 1),
)
@example([[], [0], [2**64 - 1, 0]], 7, 0)
def test_signatures_are_those_of_the_reference(documents, num_hashes, seed):
    drawn = draw_permutations(num_hashes, seed)
    factors = drawn.factors.tolist()
    multipliers = drawn.multipliers[:num_hashes].tolist()
    assert signed(documents, num_hashes, seed).tolist() == [
        reference.sign(one, factors, multipliers) for one in documents
    ]


@pytest.mark.parametrize("num_hashes", [1, 127, 128, 129, 300])
@given(st.lists(st.lists(st.one_of(st.just(b""), st.binary(max_size=20)), max_size=5), max_size=4))
@example([[], [b""], [b"a", b"", b"b" * 40], [b"a"]])
def test_sets_of_strings_are_signed_by_the_hashes_of_those_that_are_not_empty(num_hashes, sets):
    strings = [string for one in sets for string in one]
    offsets = np.cumsum([0, *map(len, strings)])
    limits = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    signatures = np.zeros((len(sets), num_hashes), np.uint32)
    sign_strings(np.frombuffer(b"".join(strings), np.uint8), offsets, limits, 1, signatures)
    hashes = [[hash_string(string) for string in one if string] for one in sets]
    assert signatures.tolist() == signed(hashes, num_hashes, 1).tolist()


@given(st.lists(HASHES, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_order_and_repeats_of_shingles_do_not_matter(hashes, randomness):
    shuffled = hashes + hashes[: len(hashes) // 2]
    randomness.shuffle(shuffled)
    first, second = signed([hashes, shuffled], 16, 1)
    assert first.tolist() == second.tolist()


def test_what_permutes_takes_every_value_once():
    """All of 2^32 are too many: each half is permuted by itself, so all of its values with one of
    the other do.
    """
    for multiplier in draw_permutations(3, 7).multipliers[:3].tolist():
        upper = {reference.permute(x << 16 | 5, multiplier) for x in range(2**16)}
        lower = {reference.permute(5 << 16 | x, multiplier) for x in range(2**16)}
        assert len(upper) == len(lower) == 2**16
        assert len({value % 2**16 for value in upper}) == len({value >> 16 for value in lower}) == 1


def test_the_first_permutations_are_the_same_however_many_are_drawn():
    few = draw_permutations(130, 5)
    many = draw_permutations(1000, 5)
    assert few.factors.tolist() == many.factors[:2].tolist()
    assert few.multipliers.tolist() == many.multipliers[:256].tolist()
    assert (many.multipliers & 0x10001 == 0x10001).all()
    assert (many.factors % 2 == 1).all()
    assert len(many.multipliers) == len(many.factors) * reference.BLOCK


def test_no_two_blocks_or_seeds_have_the_same_permutations():
    drawn = [draw_permutations(1000, seed) for seed in range(20)]
    assert len({factor for one in drawn for factor in one.factors.tolist()}) == 160
    blocks = [
        block.tobytes() for one in drawn for block in one.multipliers.reshape(-1, reference.BLOCK)
    ]
    assert len(set(blocks)) == 160


@pytest.mark.parametrize(("num_bands", "rows_per_band"), [(1, 1), (1, 6), (6, 1), (3, 2)])
@given(
    rows=st.lists(st.lists(st.sampled_from([0, 1, 2**32 - 1]), min_size=6, max_size=6), max_size=8)
)
def test_two_keys_of_a_band_are_equal_where_all_its_rows_are(num_bands, rows_per_band, rows):
    signatures = np.array(rows, np.uint32).reshape(-1, 6)[:, : num_bands * rows_per_band]
    keys = band_keys(np.ascontiguousarray(signatures), num_bands)
    assert keys.shape == (num_bands, len(rows))
    twins = [reference.bands(row, rows_per_band) for row in signatures.tolist()]
    for band in range(num_bands):
        for i in range(len(rows)):
            for j in range(i):
                assert (keys[band, i] == keys[band, j]) == (twins[i][band] == twins[j][band])


VALUES = st.sampled_from([0, 1, 2**32 - 1])


@pytest.mark.parametrize(
    ("num_left", "num_right"), [(4, 4), (1, 4), (4, 1), (1, 1), (0, 1), (0, 0)]
)
@given(data=st.data(), num_hashes=st.integers(1, 20))
def test_equal_places_are_counted_row_by_row_or_one_with_many(
    num_left, num_right, data, num_hashes
):
    rows = st.lists(VALUES, min_size=num_hashes, max_size=num_hashes)
    left, right = (
        data.draw(st.lists(rows, min_size=count, max_size=count)) for count in (num_left, num_right)
    )
    num_pairs = num_left if num_right == 1 else num_right
    pairs = [
        (left[i if num_left > 1 else 0], right[i if num_right > 1 else 0]) for i in range(num_pairs)
    ]
    same = [[a == b for a, b in zip(*pair, strict=True)] for pair in pairs]
    counts = np.empty(num_pairs, np.int64)
    arrays = [np.array(one, np.uint32).reshape(-1, num_hashes) for one in (left, right)]
    kernel.count_equal(*arrays, counts)
    nothing = [2**32 - 1] * num_hashes
    assert counts.tolist() == [
        0 if nothing in pair else sum(one) for pair, one in zip(pairs, same, strict=True)
    ]
    # The two lowest bits say which of the three values it is.
    planes = [
        np.packbits(np.stack([one & 1, one >> 1 & 1], axis=1), axis=2, bitorder="little")
        for one in arrays
    ]
    kernel.count_equal_packed(*planes, num_hashes, counts)
    assert counts.tolist() == [sum(one) for one in same]
