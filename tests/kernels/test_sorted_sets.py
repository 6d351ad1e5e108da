"""Sorting sets of hashes, measuring what they share: equal to Python's sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.kernels import sorted_sets as kernel
from reference import sets as reference

HASHES = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 8),
    st.integers(2**63 - 3, 2**63 + 3),
    st.integers(2**64 - 4, 2**64 - 1),
)
DOCUMENTS = st.lists(st.lists(HASHES, max_size=40), max_size=6)


def laid_out(documents: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return hashes, starts, stops."""
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in documents])]).astype(np.int64)
    hashes = np.array([value for one in documents for value in one], np.uint64)
    return hashes, offsets[:-1].copy(), offsets[1:].copy()


def written_sets(
    documents: list[list[int]], wanted: list[bool] | None = None
) -> tuple[np.ndarray, ...]:
    """Return the sets, starts and sizes that the kernel writes, in the room it asks for."""
    hashes, starts, stops = laid_out(documents)
    wanted = [True] * len(documents) if wanted is None else wanted
    lengths = [len(one) for one, chosen in zip(documents, wanted, strict=True) if chosen]
    sets = np.empty(
        sum(lengths) + sum(kernel.sketch_words(length) for length in lengths), np.uint64
    )
    set_starts = np.empty(len(documents), np.int64)
    sizes = np.empty(len(documents), np.uint32)
    used = kernel.write_sets(
        hashes, starts, stops, np.array(wanted, np.bool_), sets, set_starts, sizes
    )
    assert hashes.tolist() == laid_out(documents)[0].tolist()
    assert used == sum(int(size) + kernel.sketch_words(int(size)) for size in sizes if size)
    return sets, set_starts, sizes


@given(DOCUMENTS)
@example([[], [5], [5, 5, 5], [2**64 - 1, 0, 2**63, 2**63 - 1]])
@example([[7] * 40, list(range(40, 0, -1))])
def test_written_sets_are_those_of_python(documents):
    sets, starts, sizes = written_sets(documents)
    for document, start, size in zip(documents, starts, sizes, strict=True):
        assert sets[start : start + size].tolist() == sorted(set(document))


@given(DOCUMENTS)
def test_a_sketch_has_the_bits_that_the_hashes_name(documents):
    sets, starts, sizes = written_sets(documents)
    for document, start, size in zip(documents, starts, sizes, strict=True):
        if size:
            words = kernel.sketch_words(int(size))
            bits = {
                64 * i + bit
                for i, word in enumerate(sets[start - words : start].tolist())
                for bit in range(64)
                if word >> bit & 1
            }
            assert bits == {value % (64 * words) for value in document}


def lists_of(documents) -> tuple[np.ndarray, np.ndarray]:
    documents = list(documents)
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    return np.array([value for document in documents for value in document], np.uint64), offsets


def test_a_sketch_has_eight_bits_or_more_an_element():
    for size in range(1, 2000):
        words = kernel.sketch_words(size)
        assert words.bit_count() == 1
        assert 64 * words >= 8 * size
        assert words == 1 or 32 * words < 8 * size


@given(DOCUMENTS)
@example([list(range(1000, 1040)), list(range(1000, 1005))])  # sketches of different lengths
def test_two_sets_share_no_more_than_their_sketches_allow(documents):
    sets, starts, sizes = written_sets(documents)
    for i, left in enumerate(documents):
        for j, right in enumerate(documents):
            if left and right:
                most = kernel.max_shared(sets, starts[i], int(sizes[i]), starts[j], int(sizes[j]))
                assert reference.overlap(set(left), set(right)) <= most <= min(sizes[i], sizes[j])


def test_the_sketches_of_unrelated_sets_tell_them_apart():
    """Of 100 elements in 1,024 bits, some 95 bits are set; another set's element falls on one with
    p = 0.09.
    """
    left, right = (
        np.random.default_rng(seed).integers(0, 2**64, 100, np.uint64).tolist() for seed in (1, 2)
    )
    sets, starts, _ = written_sets([left, right])
    assert kernel.max_shared(sets, starts[0], 100, starts[1], 100) < 35


@given(DOCUMENTS, st.data())
def test_documents_that_are_not_wanted_are_left_out(documents, data):
    wanted = data.draw(st.lists(st.booleans(), min_size=len(documents), max_size=len(documents)))
    sets, starts, sizes = written_sets(documents, wanted)
    for document, chosen, start, size in zip(documents, wanted, starts, sizes, strict=True):
        assert sets[start : start + size].tolist() == (sorted(set(document)) if chosen else [])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 255, 256, 257, 1000])
def test_random_hashes_of_any_number_are_sorted(size):
    values = np.random.default_rng(size).integers(0, 2**64, size, np.uint64)
    document = [*values.tolist(), *values[: size // 2].tolist()]
    sets, starts, sizes = written_sets([document])
    assert sets[starts[0] : starts[0] + sizes[0]].tolist() == sorted(set(document))


@given(DOCUMENTS)
def test_overlaps_are_those_of_python_sets(documents):
    python = [set(document) for document in documents]
    lists = lists_of(documents)
    rising = lists_of(map(sorted, python))
    pairs = [(i, j) for i in range(len(documents)) for j in range(len(documents))]
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    for others in (lists, rising):
        counts = np.empty((3, len(pairs)), np.int64)
        kernel.list_overlaps(*lists, left, *others, right, counts)
        shared, sizes, other_sizes = counts
        assert shared.tolist() == [reference.overlap(python[i], python[j]) for i, j in pairs]
        assert sizes.tolist() == [len(python[i]) for i, _ in pairs]
        assert other_sizes.tolist() == [len(python[j]) for _, j in pairs]


@given(st.sets(HASHES, max_size=40), st.sets(HASHES, max_size=40))
def test_an_overlap_is_the_same_from_both_sides(left, right):
    arrays = [np.array(sorted(one), np.uint64) for one in (left, right)]
    assert kernel.overlap(*arrays, 0) == kernel.overlap(*arrays[::-1], 0) == len(left & right)
