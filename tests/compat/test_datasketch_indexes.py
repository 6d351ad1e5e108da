"""The indexes of the face of datasketch: what they find, what they refuse, which bands and rows
they choose.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import InputError, SettingError
from neardup.compat.datasketch import (
    LeanMinHash,
    MinHash,
    MinHashLSH,
    MinHashLSHEnsemble,
    MinHashLSHForest,
)
from neardup.compat.datasketch.lsh import integrate
from neardup.compat.datasketch.lshensemble import optimal_partitions
from neardup.errors import SchemeError
from reference import datasketch_cases as cases


def signed(members, **settings):
    one = MinHash(**settings)
    one.update_batch(members)
    return one


def test_an_index_answers_with_the_keys_that_share_a_band():
    """The definition, pair by pair, and the chance at a similarity is a matter of bands and rows
    only.
    """
    many = MinHash.bulk(cases.word_sets(6, 60), num_perm=64)
    index = MinHashLSH(threshold=0.6, num_perm=64)
    with index.insertion_session() as session:
        for place, one in enumerate(many):
            session.insert(place, one)
    with index.deletion_session() as session:
        session.remove(5)
    for one in many:
        left = one.hashvalues[: index.b * index.r].reshape(index.b, index.r)
        expected = {
            place
            for place, other in enumerate(many)
            if place != 5
            and (left == other.hashvalues[: index.b * index.r].reshape(left.shape))
            .all(axis=1)
            .any()
        }
        assert set(index.query(one)) == expected
        assert set(index.query(LeanMinHash(one))) == expected
    assert 5 not in index
    assert 6 in index
    assert sum(index.get_counts()[0].values()) == 59
    assert sum(index.get_subset_counts(6, 7, 1000)[0].values()) == 2


def test_the_keys_of_an_index_and_their_bands_can_be_looked_up():
    index = MinHashLSH(num_perm=16, params=(8, 2))
    one = signed([b"a"], num_perm=16)
    index.insert("a", one)
    assert list(index.keys) == list(index.keys.keys()) == ["a"]
    assert len(index.keys) == index.keys.size() == 1
    assert index.keys.has_key("a")
    assert "b" not in index.keys
    assert index.keys["b"] == []
    assert b"".join(index.keys["a"]) == one.hashvalues.astype(">u4").tobytes()
    for band, table in zip(index.keys["a"], index.hashtables, strict=True):
        assert table[band] == {"a"}
        assert table.getmany(band, b"") == [{"a"}, set()]


def test_a_buffered_query_answers_with_what_all_have_in_common():
    index = MinHashLSH(num_perm=16, params=(8, 2))
    one = signed([b"a"], num_perm=16)
    other = signed([b"b"], num_perm=16)
    index.insert("a", one)
    index.insert("b", other)
    index.add_to_query_buffer(one)
    assert index.collect_query_buffer() == ["a"]
    assert index.collect_query_buffer() == []
    index.add_to_query_buffer(one)
    index.add_to_query_buffer(other)
    assert index.collect_query_buffer() == []


def test_an_index_with_a_hash_function_keeps_hashes_of_bands():
    index = MinHashLSH(num_perm=16, params=(8, 2), hashfunc=lambda band: band[:1])
    index.insert("a", signed([b"a"], num_perm=16))
    assert all(len(band) == 1 for table in index.hashtables for band in table)
    assert index.query(signed([b"a"], num_perm=16)) == ["a"]


def test_an_index_takes_a_key_once_and_one_scheme():
    index = MinHashLSH(num_perm=128)
    one = signed([b"a"])
    index.insert("a", one)
    with pytest.raises(InputError, match="The given key already exists: 'a'"):
        index.insert("a", one)
    index.insert("a", one, check_duplication=False)
    with pytest.raises(InputError, match="The given key does not exist: 'b'"):
        index.remove("b")
    old = MinHash(scheme="legacy")
    for call in (
        lambda: index.insert("b", old),
        lambda: index.query(old),
        lambda: index.add_to_query_buffer(old),
    ):
        with pytest.raises(
            SchemeError, match="does not match scheme 'affine32' of those in the index"
        ):
            call()
    other = MinHashLSH(num_perm=128)
    other.insert("a", old)
    with pytest.raises(SchemeError, match="indexes of two schemes, 'affine32' and 'legacy'"):
        index.merge(other)
    empty = MinHashLSH(num_perm=128)
    empty.merge(other)
    with pytest.raises(SchemeError, match="does not match scheme 'legacy'"):
        empty.insert("b", one)
    with pytest.raises(InputError, match="The keys are overlapping"):
        empty.merge(other, check_overlap=True)
    with pytest.raises(SettingError, match="different initialization parameters"):
        index.merge(MinHashLSH(num_perm=64))
    with pytest.raises(SettingError, match="Cannot merge type MinHashLSH and type list"):
        index.merge([])


@pytest.mark.parametrize("scheme", ["affine32", "legacy"])
def test_a_key_that_is_refused_does_not_decide_the_scheme(scheme):
    index = MinHashLSH()
    forest = MinHashLSHForest()
    one = MinHash(scheme="affine64")
    for add in (index.insert, forest.add):
        with pytest.raises(TypeError, match="unhashable"):
            add(["a key"], one)
        add("a key", MinHash(scheme=scheme))


@pytest.mark.parametrize("kind", ["cassandra", "mongodb", None])
def test_a_storage_that_is_neither_in_memory_nor_redis_is_refused_by_name(kind):
    for index in (MinHashLSH, MinHashLSHEnsemble):
        with pytest.raises(
            SettingError, match=f"storage_config with type {kind!r} is not supported"
        ):
            index(storage_config={"type": kind, "basename": b"x"})
    assert MinHashLSH(storage_config={"type": "dict", "basename": b"x"}, prepickle=True).is_empty()


@pytest.mark.parametrize(
    ("index", "settings", "message"),
    [
        (MinHashLSH, {"threshold": 1.1}, r"threshold must be in \[0.0, 1.0\]: got 1.1"),
        (MinHashLSH, {"num_perm": 1}, "num_perm must be at least 2, got 1"),
        (MinHashLSH, {"weights": (0.5, 0.6)}, r"sum to 1.0: got \(0.5, 0.6\)"),
        (MinHashLSH, {"weights": (1.0,)}, r"must be two numbers .*: got \(1.0,\)"),
        (MinHashLSH, {"weights": (0.25, 0.25, 0.5)}, "must be two numbers"),
        (MinHashLSH, {"params": (20, 0)}, r"too small .*\(r < 1\): got \(20, 0\)"),
        (MinHashLSH, {"params": (20, -1)}, r"too small .*\(r < 1\): got \(20, -1\)"),
        (MinHashLSH, {"params": (20, 10)}, "20 \\* 10 = 200; it must be at most num_perm=128"),
        (MinHashLSH, {"params": (1, 10)}, r"too small \(b < 2\), .*: got \(1, 10\)"),
        (MinHashLSHForest, {"l": 0}, "num_perm and l must be positive: got 128 and 0"),
        (MinHashLSHForest, {"num_perm": 4}, "l cannot be greater than num_perm: got 8 and 4"),
        (MinHashLSHEnsemble, {"num_part": 0}, "num_part must be at least 1: got 0"),
        (MinHashLSHEnsemble, {"m": 1}, r"m must be in the range of \[2, num_perm\]: got 1"),
        (MinHashLSHEnsemble, {"threshold": -1}, r"threshold must be in \[0.0, 1.0\]: got -1"),
    ],
)
def test_settings_of_an_index_that_cannot_be_are_refused(index, settings, message):
    with pytest.raises(SettingError, match=message):
        index(**settings)


def test_a_signature_of_another_length_is_refused():
    with pytest.raises(SettingError, match="Expecting minhash with length 128, got 64"):
        MinHashLSH().insert("a", MinHash(64))
    with pytest.raises(SettingError, match="the forest needs 128 values, got 64"):
        MinHashLSHForest().add("a", MinHash(64))


def test_a_forest_finds_after_index_only_and_returns_what_it_holds():
    forest = MinHashLSHForest(num_perm=64, l=4)
    one = signed([b"a"], num_perm=64)
    forest.add("a", one)
    assert forest.query(one, 3) == []
    assert forest.is_empty()
    forest.index()
    assert forest.query(one, 3) == ["a"]
    assert "a" in forest
    assert np.array_equal(forest.get_minhash_hashvalues("a"), one.hashvalues)
    with pytest.raises(KeyError, match="does not exist in the LSHForest: b"):
        forest.get_minhash_hashvalues("b")
    with pytest.raises(InputError, match="already been added: 'a'"):
        forest.add("a", one)
    with pytest.raises(SettingError, match="k must be positive: got 0"):
        forest.query(one, 0)
    with pytest.raises(SchemeError, match="does not match"):
        forest.query(MinHash(64, scheme="legacy"), 1)


def test_an_ensemble_is_filled_once_and_leaves_what_it_is_given_as_it_is():
    ensemble = MinHashLSHEnsemble(threshold=0.8, num_perm=64, num_part=4)
    entries = [
        (size, signed([b"%d" % i for i in range(size)], num_perm=64), size)
        for size in (9, 2, 40, 7)
    ]
    ensemble.index(entries)
    assert [size for _, _, size in entries] == [9, 2, 40, 7]
    for key, one, size in entries:
        assert key in ensemble.query(one, size)
        assert key in ensemble
    for size in (0, -1, float("nan")):
        with pytest.raises(InputError, match=f"Set size must be positive: got {size}"):
            list(ensemble.query(one, size))
    with pytest.raises(InputError, match="Cannot call index again"):
        ensemble.index(entries)
    for wrong, message in (
        ([], "entries is empty"),
        ([("a", entries[0][1], 0)], "size must be positive: got 0"),
    ):
        with pytest.raises(InputError, match=message):
            MinHashLSHEnsemble(threshold=0.8, num_perm=64).index(wrong)


@pytest.mark.parametrize("num_part", [1, 2])
@given(
    sizes=st.lists(st.integers(1, 50), min_size=3, max_size=9, unique=True), seed=st.integers(0, 99)
)
def test_up_to_two_partitions_are_the_cheapest_of_all(num_part, sizes, seed):
    sizes = np.array(sorted(sizes))
    counts = np.random.default_rng(seed).integers(1, 9, len(sizes))

    def cost(parts):
        return sum(
            n * (upper - size) / upper
            for lower, upper in parts
            for size, n in zip(sizes, counts, strict=True)
            if lower <= size <= upper
        )

    every = []
    for ends in itertools.combinations(range(len(sizes) - 1), num_part - 1):
        bounds = [-1, *ends, len(sizes) - 1]
        every.append([(sizes[start + 1], sizes[end]) for start, end in itertools.pairwise(bounds)])
    assert cost(optimal_partitions(sizes, counts, num_part)) == pytest.approx(min(map(cost, every)))


# The choice of bands and rows


@pytest.mark.parametrize("degree", range(30))
def test_integrals_of_powers_are_right_to_the_last_bits(degree):
    """Kronrod's rule with 21 points is exact up to degree 31; 64 roundings of 2^-53 remain."""
    assert integrate(lambda s: s**degree, 0.0, 1.0) == pytest.approx(
        1 / (degree + 1), rel=64 * 2**-53
    )


@pytest.mark.parametrize("b", [1, 20, 128])
@pytest.mark.parametrize("r", [1, 30, 200])
def test_integrals_of_steps_are_right_within_the_tolerance_asked_for(b, r):
    expected = 1 - math.prod(k * r / (k * r + 1) for k in range(1, b + 1))  # the beta function
    assert abs(integrate(lambda s: 1 - (1 - s**r) ** b, 0.0, 1.0) - expected) < 1.49e-8


def test_the_bands_are_those_of_the_readme():
    """datasketch 2.0.0, docstring of MinHashLSH."""
    assert (
        MinHashLSH(threshold=0.9, num_perm=128).b,
        MinHashLSH(threshold=0.9, num_perm=128).r,
    ) == (5, 25)
