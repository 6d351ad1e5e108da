"""Cells keep documents that are similar to each other together, and are of one size."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.candidates.cells import choose_cells


def test_the_documents_of_a_small_cluster_are_in_one_cell_and_cells_are_of_one_size():
    clusters = np.random.default_rng(1).permutation(4000).reshape(400, 10)  # each of ten documents
    ends = np.sort(clusters, axis=1)
    left = np.repeat(ends[:, 0], 9)
    right = ends[:, 1:].reshape(-1)
    positions, cells = choose_cells(left, right, 8)
    assert positions.tolist() == list(range(4000))
    assert all(len(set(cells[cluster])) == 1 for cluster in clusters)
    sizes = np.bincount(cells, minlength=8)
    assert sizes.sum() == 4000
    assert abs(sizes - 500).max() <= 10  # a cluster is not divided


@pytest.mark.parametrize("of_chain", [True, False])
def test_a_cluster_larger_than_a_cell_is_divided(of_chain):
    right = np.arange(1, 1000)
    left = right - 1 if of_chain else np.zeros_like(right)
    _, cells = choose_cells(left, right, 4)
    assert abs(np.bincount(cells, minlength=4) - 250).max() <= 1000 // 16


def test_a_document_whose_only_candidates_are_later_joins_no_group():
    positions, cells = choose_cells(np.array([5, 1, 9]), np.array([1, 5, 2]), 2)
    assert positions.tolist() == [1, 5]
    assert cells[0] == cells[1]
    assert [len(column) for column in choose_cells(np.array([3]), np.array([2]), 2)] == [0, 0]
