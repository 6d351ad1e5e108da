"""Sorting sets of hashes, measuring what they share: equal to Python's sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.kernels import sets as kernel
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


def sorted_sets(documents: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return hashes, starts, sizes after sorting all."""
    hashes, starts, stops = laid_out(documents)
    sizes = np.zeros(len(documents), np.uint32)
    kernel.sort_sets(hashes, starts, stops, np.ones(len(documents), np.bool_), sizes)
    return hashes, starts, sizes


@given(DOCUMENTS)
@example([[], [5], [5, 5, 5], [2**64 - 1, 0, 2**63, 2**63 - 1]])
@example([[7] * 40, list(range(40, 0, -1))])
def test_sorted_sets_are_those_of_python(documents):
    hashes, starts, sizes = sorted_sets(documents)
    for document, start, size in zip(documents, starts, sizes, strict=True):
        assert hashes[start : start + size].tolist() == sorted(set(document))


@given(DOCUMENTS)
def test_sorting_again_changes_no_set(documents):
    hashes, starts, sizes = sorted_sets(documents)
    _, _, stops = laid_out(documents)
    again, first = np.zeros_like(sizes), hashes.copy()
    kernel.sort_sets(hashes, starts, stops, np.ones(len(documents), np.bool_), again)
    assert again.tolist() == sizes.tolist()
    for start, size in zip(starts, sizes, strict=True):
        assert hashes[start : start + size].tolist() == first[start : start + size].tolist()


@given(DOCUMENTS, st.data())
def test_documents_that_are_not_wanted_are_left_alone(documents, data):
    wanted = data.draw(st.lists(st.booleans(), min_size=len(documents), max_size=len(documents)))
    hashes, starts, stops = laid_out(documents)
    sizes = np.full(len(documents), 77, np.uint32)
    kernel.sort_sets(hashes, starts, stops, np.array(wanted, np.bool_), sizes)
    for i, document in enumerate(documents):
        if not wanted[i]:
            assert hashes[starts[i] : stops[i]].tolist() == document
            assert sizes[i] == 77


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 255, 256, 257, 1000])
def test_random_hashes_of_any_number_are_sorted(size):
    values = np.random.default_rng(size).integers(0, 2**64, size, np.uint64)
    document = [*values.tolist(), *values[: size // 2].tolist()]
    hashes, _, sizes = sorted_sets([document])
    assert hashes[: sizes[0]].tolist() == sorted(set(document))


@given(DOCUMENTS)
def test_overlaps_are_those_of_python_sets(documents):
    hashes, starts, sizes = sorted_sets(documents)
    pairs = [(i, j) for i in range(len(documents)) for j in range(len(documents))]
    left, right = (np.array([pair[side] for pair in pairs], np.uint32) for side in (0, 1))
    shared = np.empty(len(pairs), np.int64)
    kernel.pair_overlaps(hashes, starts, sizes, left, right, shared)
    python = [set(document) for document in documents]
    assert shared.tolist() == [reference.overlap(python[i], python[j]) for i, j in pairs]


@given(st.sets(HASHES, max_size=40), st.sets(HASHES, max_size=40))
def test_an_overlap_is_the_same_from_both_sides(left, right):
    arrays = [np.array(sorted(one), np.uint64) for one in (left, right)]
    assert kernel.overlap(*arrays) == kernel.overlap(*arrays[::-1]) == len(left & right)
