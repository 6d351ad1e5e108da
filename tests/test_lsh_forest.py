"""The forest finds the k that climbing all trees together finds, whatever is in trees and what is scanned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import InputError, SchemeError, SettingError
from neardup.fingerprints.signatures import Signatures
from neardup.index import forest, prefix_trees, row_store, search
from reference import lsh as reference
from reference.lsh import found_in

VALUES = st.sampled_from([0, 1, 2, 2**32 - 1])


@given(st.data(), st.integers(1, 3), st.integers(1, 3), st.integers(0, 1), st.booleans())
def test_steps_in_any_order_leave_what_the_naive_forest_has(data, num_trees, depth, beyond, strings):
    num_hashes = num_trees * depth + beyond
    signature = st.lists(VALUES, min_size=num_hashes, max_size=num_hashes)
    signatures = st.lists(signature, max_size=6)
    steps = st.one_of(
        st.tuples(st.sampled_from(["add", "merge"]), signatures, st.just(0)),
        st.tuples(st.just("remove"), st.just([]), st.integers(0, 40)),
        st.tuples(st.just("query"), signatures, st.integers(1, 4)),
    )
    expected: dict[object, list[int]] = {}
    number = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_store, "_LEAST_TO_COMPACT", data.draw(st.sampled_from([2, 4096])))
        patch.setattr(prefix_trees, "_SORT_COST", data.draw(st.sampled_from([0, 1, 1e9])))
        each = data.draw(st.integers(0, 1))
        patch.setattr(forest, "_CANDIDATES_A_TREE", each)
        patch.setattr(search, "_BLOCK", 2)
        index = neardup.LSHForest(num_trees, threads=2)
        for step, rows, k in data.draw(st.lists(steps, max_size=20)):
            values = np.array(rows, np.uint32).reshape(-1, num_hashes)
            if step in ("add", "merge"):
                ids = [f"id {number + i}" if strings else number + i for i in range(len(rows))]
                number += len(rows)
                expected |= dict(zip(ids, rows, strict=True))
                if step == "add":
                    index.add_many(ids, values)
                else:
                    other = neardup.LSHForest(1)
                    other.add_many(ids, values)
                    index.merge(other)
            elif step == "remove" and expected:
                chosen = list(expected)[k % len(expected)]
                index.remove(chosen)
                del expected[chosen]
                assert chosen not in index
            elif step == "query":
                wanted = k + each * num_trees
                answers = [reference.most_alike(expected, one, num_trees, wanted, k) for one in rows]
                assert found_in(index.query_many(values, k), len(rows)) == answers
                assert [index.query(one, k) for one in values] == answers
        assert len(index) == len(expected)


def test_rows_with_equal_beginnings_are_sorted_by_what_follows():
    """Long runs of equal first values, as a line that all pages share makes them."""
    chance = np.random.default_rng(5)
    values = chance.integers(0, 3, (3000, 8), np.uint32)
    index = neardup.LSHForest(2, threads=1)
    index.add_many(np.arange(3000), values)
    index.query(values[0])
    trees = index._searcher.trees
    for tree, start in enumerate((0, 4)):
        rows = trees.rows[tree]
        expected = sorted(range(3000), key=lambda row: (*values[row, start : start + 4].tolist(), row))
        assert rows.tolist() == expected
        assert trees.heads[tree].tolist() == values[rows, start].tolist()


def test_the_top_ten_are_nearly_those_of_brute_force():
    """Bases with 30 copies each, of similarities spread evenly over 0.5 to 1.

    A copy of similarity s is a candidate at least if it shares the first value of a tree: 1 - (1 - s)^8, at s = 0.5
    0.996. The true ten are of 0.83 on average; missed are expected fewer than 0.004 of 5,000, 20; 5 standard deviations
    more are 42.
    """
    chance = np.random.default_rng(1)
    bases = chance.integers(0, 2**32, (500, 128), np.uint32)
    values = np.repeat(bases, 30, axis=0)
    noise = chance.random(values.shape) > chance.uniform(0.5, 1.0, (len(values), 1))
    values[noise] = chance.integers(0, 2**32, int(noise.sum()), np.uint32)
    index = neardup.LSHForest(8)
    index.add_many(np.arange(len(values)), values)
    found = found_in(index.query_many(bases, 10), 500)
    missed = 0
    for number, base in enumerate(bases):
        equal = (values[30 * number : 30 * number + 30] == base).sum(axis=1)
        missed += 10 - sum(similarity * 128 >= np.sort(equal)[-10] for _, similarity in found[number])
    assert missed <= 42


def test_trees_are_sorted_again_once_scanning_has_cost_as_much():
    values = np.random.default_rng(2).integers(0, 2**32, (300, 8), np.uint32)
    index = neardup.LSHForest(2, threads=1)
    index.add_many(np.arange(200), values[:200])
    index.query(values[0])
    assert index._searcher.num_sorted == 200
    index.add_many(np.arange(200, 300), values[200:])
    for number in range(18):  # of 100 rows each; 3 for each of 2 trees and 300 rows
        assert index.query(values[250], 1) == [(250, 1.0)]
        assert index._searcher.num_sorted == 200, number
    index.query(values[250])
    assert index._searcher.num_sorted == 300


def test_an_empty_forest_finds_nothing_and_an_empty_set_neither():
    index = neardup.LSHForest(2)
    asked = np.array([1, 2, 3, 4], np.uint32)
    assert index.query(asked) == []
    assert len(index.query_many(asked[None])) == 0
    nothing = np.full(4, 2**32 - 1, np.uint32)
    index.add("nothing", nothing)
    assert index.query(nothing) == index.query(asked) == []
    assert repr(index) == "LSHForest(num_trees=2, 1 signatures)"


def test_a_forest_is_saved_and_opened(tmp_path):
    scheme = {"name": "minhash", "seed": 1, "num_hashes": 8}
    values = np.random.default_rng(4).integers(0, 3, (50, 8), np.uint32)
    index = neardup.LSHForest(4)
    index.add_many([f"é{i}" for i in range(50)], Signatures(values, scheme))
    index.remove("é7")
    index.save(tmp_path / "forest.parquet")
    opened = neardup.LSHForest.open(tmp_path / "forest.parquet")
    assert (opened.num_trees, opened.scheme, opened.num_hashes, len(opened)) == (4, scheme, 8, 49)
    assert opened.query_many(values).equals(index.query_many(values))
    with pytest.raises(InputError, match=r"was saved by LSHForest: got LSHIndex\.open\. Open it with LSHForest\.open"):
        neardup.LSHIndex.open(tmp_path / "forest.parquet")


@pytest.mark.parametrize("wrong", [0, 513, 1.5, True, None])
def test_a_number_of_trees_out_of_its_limits_is_refused(wrong):
    with pytest.raises(SettingError, match="num_trees must be a whole number from 1 to 512: got"):
        neardup.LSHForest(wrong)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None])
def test_a_k_out_of_its_limits_is_refused(wrong):
    with pytest.raises(SettingError, match="k must be a whole number above 0: got"):
        neardup.LSHForest().query(np.zeros(128, np.uint32), wrong)


def test_signatures_shorter_than_the_trees_are_refused():
    with pytest.raises(SchemeError, match="needs signatures of 8 hashes or more: got 4"):
        neardup.LSHForest(8).add("a", np.zeros(4, np.uint32))
