"""The ensemble finds the sets that share a band of their partition, and of containing ones the share asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.candidates.bands import Bands, candidate_probability
from neardup.errors import InputError, SchemeError, SettingError
from neardup.fingerprints.minhash import sign
from neardup.fingerprints.signatures import Signatures
from neardup.index import prefix_trees, row_store, search
from reference import lsh as reference

VALUES = st.sampled_from([0, 1, 2, 2**32 - 1])


def signed(sets: list[np.ndarray], num_hashes: int = 128) -> np.ndarray:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    return sign(np.concatenate(sets), offsets, num_hashes, 1)


def found_in(table, num_queries: int) -> list[dict]:
    result: list[dict] = [{} for _ in range(num_queries)]
    for row in table.to_pylist():
        result[row["query"]][row["id"]] = row["containment"]
    return result


@given(st.data(), st.integers(1, 10), st.integers(1, 4), st.sampled_from([0, 1, 1e9]))
def test_the_sets_found_are_those_that_share_a_band_of_their_partition(data, num_hashes, num_partitions, sort_cost):
    signature = st.lists(VALUES, min_size=num_hashes, max_size=num_hashes)
    sets = st.lists(st.tuples(signature, st.integers(0, 30)), min_size=1, max_size=8)
    first, second, asked = data.draw(sets), data.draw(st.one_of(st.just([]), sets)), data.draw(sets)
    threshold, recall = data.draw(st.sampled_from([(0.5, 0.9), (0.8, 0.99), (1.0, 0.5)]))
    removed = data.draw(st.sets(st.integers(0, len(first) + len(second) - 1), max_size=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_store, "_LEAST_TO_COMPACT", 1)
        patch.setattr(prefix_trees, "_SORT_COST", sort_cost)
        patch.setattr(search, "_BLOCK", 2)
        index = neardup.LSHEnsemble(threshold, recall, num_partitions=num_partitions, threads=2)
        stored = [*first, *second]
        for start, rows in ((0, first), (len(first), second)):
            values = np.array([one for one, _ in rows], np.uint32).reshape(-1, num_hashes)
            index.add_many(range(start, start + len(rows)), values, [size for _, size in rows])
            index.query(np.zeros(num_hashes, np.uint32), 1)
        for number in removed:
            index.remove(number)
        values = np.array([one for one, _ in asked], np.uint32)
        sizes = [size for _, size in asked]
        found = found_in(index.query_many(values, sizes, min_containment=0.0), len(asked))
        enough = found_in(index.query_many(values, sizes), len(asked))
        assert enough == [{id: value for id, value in one.items() if value >= threshold} for one in found]
        for (one, q), answer in zip(asked, found, strict=True):
            assert dict(index.query(np.array(one, np.uint32), q, min_containment=0.0)) == answer
            bands = [(row["num_bands"], row["rows_per_band"]) for row in index.plan(q).to_pylist()]
            bounds = index.plan(q)["largest_size"].to_pylist()
            for number, (other, x) in enumerate(stored):
                # A set lies in some partition whose largest set is as large or larger.
                possible = [
                    pair[0] > 0 and reference.shares_band(one, other, *pair)
                    for pair, bound in zip(bands, bounds, strict=True)
                    if bound >= x
                ]
                featured = {reference.EMPTY} not in (set(one), set(other))
                enough = x / max(q, 1) >= threshold and featured and number not in removed
                if number in answer:
                    assert enough
                    assert any(possible)
                    near = reference.containment(reference.estimate(one, other), max(q, 1), x)
                    assert math.isclose(answer[number], near, abs_tol=1e-12)
                else:
                    assert not enough or not all(possible)


def test_containing_sets_are_found_as_often_as_the_plan_says():
    """1,000 queries, a containing set for each, their sizes from a power law; elements of their own for each pair.

    So the pairs are independent, each found with the probability of its similarity and its partition's bands.
    """
    chance = np.random.default_rng(7)
    sizes = np.minimum((20 * (1 - chance.random(1000)) ** -1.0).astype(int), 3000)  # of the power law with exponent 2
    queries, sets, similarity = [], [], []
    for size in sizes.tolist():
        q = int(chance.integers(10, size + 10))
        shared = min(math.ceil(0.7 * q), size)
        elements = chance.integers(0, 2**64, q + size - shared, np.uint64)
        queries.append(elements[:q])
        sets.append(elements[q - shared :])
        similarity.append(shared / (q + size - shared))
    index = neardup.LSHEnsemble(threshold=0.7, recall=0.95, num_partitions=8)
    index.add_many(np.arange(1000), signed(sets), sizes)
    asked = np.array([len(one) for one in queries])
    found = found_in(index.query_many(signed(queries), asked, min_containment=0.0), 1000)
    expected = variance = hits = 0.0
    for number, (q, size, s) in enumerate(zip(asked.tolist(), sizes.tolist(), similarity, strict=True)):
        if size / q < 0.7:
            continue
        plan = next(row for row in index.plan(q).to_pylist() if row["largest_size"] >= size)
        chance_of = float(candidate_probability(s, Bands(plan["num_bands"], plan["rows_per_band"])))
        least = min(0.95, float(candidate_probability(0.7 / (plan["largest_size"] / q + 0.3), Bands(128, 1))))
        assert chance_of >= least - 1e-9  # what was asked for, or the most that 128 hashes can do
        expected += chance_of
        variance += chance_of * (1 - chance_of)
        hits += number in found[number]
    assert expected > 800
    assert abs(hits - expected) <= 5 * math.sqrt(variance) + 1


def test_few_of_the_sets_that_do_not_contain_a_query_are_found_where_sizes_are_alike():
    """Sets of 100 that share 20 of 100 elements with a query: similarity 1/9, far below 2/3 of containment 0.8."""
    chance = np.random.default_rng(3)
    query = chance.integers(0, 2**64, 100, np.uint64)
    sets = [np.concatenate([query[:20], chance.integers(0, 2**64, 80, np.uint64)]) for _ in range(500)]
    index = neardup.LSHEnsemble(threshold=0.8, num_partitions=1)
    index.add_many(np.arange(500), signed(sets), [100] * 500)
    found = index.query(signed([query])[0], 100, min_containment=0.0)
    (plan,) = index.plan(100).to_pylist()
    share = float(candidate_probability(1 / 9, Bands(plan["num_bands"], plan["rows_per_band"])))
    # All share one query's hashes, so they are not independent: of 500, 20 times the mean is found less often than 1 in
    # 20 (Markov); the seed is fixed.
    assert len(found) <= 20 * 500 * share


def test_sets_too_small_to_contain_enough_are_left_out():
    index = neardup.LSHEnsemble(threshold=0.7, num_partitions=1)
    same = np.arange(16, dtype=np.uint32)
    index.add_many(["seven", "six"], np.stack([same, same]), [7, 6])
    assert index.query(same, 10) == [("seven", 0.7)]
    assert index.plan(11)["num_bands"].to_pylist() == [0]
    assert index.query(same, 11) == []


def test_an_empty_ensemble_finds_nothing_and_an_empty_set_neither():
    index = neardup.LSHEnsemble()
    asked = np.arange(8, dtype=np.uint32)
    assert index.query(asked, 5) == []
    assert len(index.query_many(asked[None], [5])) == 0
    nothing = np.full(8, 2**32 - 1, np.uint32)
    index.add("nothing", nothing, 0)
    assert index.query(nothing, 0) == index.query(asked, 5) == []
    assert repr(index) == "LSHEnsemble(threshold=0.8, num_partitions=16, 1 sets)"


def test_an_ensemble_is_saved_opened_and_merged(tmp_path):
    scheme = {"name": "minhash", "seed": 1, "num_hashes": 8}
    chance = np.random.default_rng(4)
    values, sizes = chance.integers(0, 3, (60, 8), np.uint32), chance.integers(1, 50, 60)
    index, other = neardup.LSHEnsemble(0.5, 0.9, num_partitions=3), neardup.LSHEnsemble()
    index.add_many(range(40), Signatures(values[:40], scheme), sizes[:40])
    other.add_many(range(40, 60), Signatures(values[40:], scheme), sizes[40:])
    index.merge(other)
    index.remove(7)
    index.save(tmp_path / "ensemble.parquet")
    opened = neardup.LSHEnsemble.open(tmp_path / "ensemble.parquet")
    assert (opened.threshold, opened.recall, opened.num_partitions) == (0.5, 0.9, 3)
    assert (opened.scheme, opened.num_hashes, len(opened)) == (scheme, 8, 59)
    assert opened.query_many(values, sizes).equals(index.query_many(values, sizes))


def test_sizes_that_are_not_given_are_estimated_from_the_signatures():
    sets = [[f"{start} {i}" for i in range(size)] for start, size in (("a", 50), ("b", 400))]
    signatures = neardup.sign([*sets, [*sets[0], *sets[1]]])
    estimated, given_sizes = (neardup.LSHEnsemble(threshold=0.7, num_partitions=1) for _ in range(2))
    estimated.add_many(["a", "b", "both"], signatures)
    sizes = np.rint(signatures.cardinality()).astype(int)
    given_sizes.add_many(["a", "b", "both"], signatures, sizes)
    for row, size in enumerate(sizes.tolist()):
        found = estimated.query(signatures[row])
        assert found == given_sizes.query(signatures.values[row], size)
        assert found[0][0] == ("a", "b", "both")[row]


@pytest.mark.parametrize("sizes", [[1], [1, 2, 3], [1, -1], [1.5, 2.0], "12"])
def test_sizes_that_are_none_are_refused(sizes):
    index = neardup.LSHEnsemble()
    values = np.zeros((2, 8), np.uint32)
    for call in (lambda: index.add_many(["a", "b"], values, sizes), lambda: index.query_many(values, sizes)):
        with pytest.raises(InputError, match="Sizes are integers of 0 or more, one for each signature: got"):
            call()
    assert len(index) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 0}, "threshold must be a number above 0 and at most 1"),
        ({"recall": 1}, "recall must be a number above 0 and at most 0.999999"),
        ({"num_partitions": 0}, "num_partitions must be a whole number from 1 to 1024: got 0"),
    ],
)
def test_settings_out_of_their_limits_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        neardup.LSHEnsemble(**settings)


def test_what_is_no_signature_or_of_another_length_is_refused():
    index = neardup.LSHEnsemble(num_hashes=8)
    with pytest.raises(InputError, match="a uint32 array with a row for each"):
        index.add_many(["a"], None, [3])
    with pytest.raises(SchemeError, match="Signatures of 8 and of 16 hashes cannot be compared"):
        index.add("a", np.zeros(16, np.uint32), 3)
