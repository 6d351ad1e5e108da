"""Band tables and prefix trees find what comparisons one by one find; small, for every mode of the compiler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.index import forest, prefix_trees
from reference import lsh as reference

SIGNATURES = st.lists(st.lists(st.sampled_from([0, 1, 2**32 - 1]), min_size=5, max_size=5), max_size=8)


def array(rows: list[list[int]]) -> np.ndarray:
    return np.array(rows, np.uint32).reshape(-1, 5)


@given(SIGNATURES, SIGNATURES, st.sampled_from([(1, 1), (2, 2), (5, 1), (1, 5)]), st.sampled_from([0.0, 0.4]))
def test_a_row_is_found_once_if_it_shares_bands(stored, asked, bands, least):
    index = neardup.LSHIndex(neardup.MinHash(num_bands=bands[0], rows_per_band=bands[1]), threads=1)
    index.add_many(range(len(stored)), array(stored))
    table = index.query_many(array(asked), min_similarity=least)
    found = list(zip(*(table[name].to_pylist() for name in ("query", "id", "similarity")), strict=True))
    expected = [reference.query(dict(enumerate(stored)), one, *bands, least) for one in asked]
    assert found == [(number, *one) for number, answer in enumerate(expected) for one in answer]


@given(SIGNATURES, SIGNATURES, st.integers(1, 5), st.integers(1, 3), st.sampled_from([0, 1e9]))
def test_trees_and_scans_find_the_longest_prefixes(stored, asked, num_trees, k, sort_cost):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefix_trees, "_SORT_COST", sort_cost)
        patch.setattr(forest, "_CANDIDATES_A_TREE", 0)
        index = neardup.LSHForest(num_trees, threads=1)
        half = len(stored) // 2
        for start, stop in ((0, half), (half, len(stored))):
            index.add_many(range(start, stop), array(stored[start:stop]))
            index.query(np.zeros(5, np.uint32), k)
        for one in asked:
            expected = reference.most_alike(dict(enumerate(stored)), one, num_trees, k, k)
            assert index.query(np.array(one, np.uint32), k) == expected


@given(SIGNATURES, SIGNATURES)
def test_sets_of_one_size_are_found_if_they_share_a_planned_band(stored, asked):
    index = neardup.LSHEnsemble(0.5, num_partitions=1, threads=1)
    index.add_many(range(len(stored)), array(stored), [10] * len(stored))
    for one in asked:
        found = {key for key, _ in index.query(np.array(one, np.uint32), 10, min_containment=0.0)}
        plan = index.plan(10).to_pylist()[0] if stored else {"num_bands": 1, "rows_per_band": 1}
        bands = plan["num_bands"], plan["rows_per_band"]
        naive = reference.query(dict(enumerate(stored)), one, *bands) if bands[0] else []
        assert found == {key for key, _ in naive}
