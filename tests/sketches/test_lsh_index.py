"""The index finds what a comparison of bands one by one finds, whatever was added, removed and
merged before.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup import MinHash
from neardup.errors import InputError, OutputError, SchemeError, SettingError
from neardup.fingerprints import sketches
from neardup.fingerprints.signatures import Signatures
from neardup.kernels import minhash
from neardup.lsh import Bands
from neardup.sketches import lsh, row_index, row_store
from reference import lsh as reference
from reference.lsh import found_in

VALUES = st.sampled_from([0, 1, 2, 2**32 - 1])


def array(*rows: list[int]) -> np.ndarray:
    return np.array(rows, np.uint32)


def banded(
    num_bands: int, rows_per_band: int, threshold: float = 0.8, **settings
) -> neardup.LSHIndex:
    method = MinHash(threshold=threshold, num_bands=num_bands, rows_per_band=rows_per_band)
    return neardup.LSHIndex(method, **settings)


@st.composite
def operations(draw, num_hashes: int):
    signature = st.lists(VALUES, min_size=num_hashes, max_size=num_hashes)
    add = st.tuples(st.just("add"), st.lists(signature, max_size=5))
    new = st.tuples(st.just("add if new"), signature)
    merge = st.tuples(st.just("merge"), st.lists(signature, max_size=3))
    remove = st.tuples(st.just("remove"), st.integers(0, 40))
    query = st.tuples(st.just("query"), signature)
    return draw(st.lists(st.one_of(add, new, merge, remove, query), max_size=25))


@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_steps_in_any_order_leave_what_the_naive_index_has(
    data, num_bands, rows_per_band, beyond, strings
):
    num_hashes = num_bands * rows_per_band + beyond
    bands = {"num_bands": num_bands, "rows_per_band": rows_per_band}
    expected: dict[object, list[int]] = {}
    number = 0

    def new_ids(count: int) -> list:
        nonlocal number
        number += count
        return [f"id {i}" if strings else i for i in range(number - count, number)]

    def naive(asked: list[int], least: float = 0.0) -> list:
        return reference.query(expected, asked, num_bands, rows_per_band, least)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_store, "_MIN_ROWS_TO_COMPACT", data.draw(st.sampled_from([2, 4096])))
        patch.setattr(lsh, "_MIN_SLOTS", 1)
        patch.setattr(row_index, "_BLOCK_ROWS", 2)
        index = neardup.LSHIndex(MinHash(threshold=0.5, **bands), threads=2)
        for step, value in data.draw(operations(num_hashes)):
            if step == "add":
                ids = new_ids(len(value))
                index.add_many(ids, np.array(value, np.uint32).reshape(-1, num_hashes))
                expected |= dict(zip(ids, value, strict=True))
            elif step == "add if new":
                (one,) = new_ids(1)
                alike = naive(value, 0.5)
                assert index.add_if_new(one, np.array(value, np.uint32)) == alike
                expected |= {} if alike else {one: value}
            elif step == "merge":
                other = banded(1, num_hashes, threshold=0.9)
                ids = new_ids(len(value))
                for one, signature in zip(ids, value, strict=True):
                    other.add(one, array(signature))
                index.merge(other)
                expected |= dict(zip(ids, value, strict=True))
            elif step == "remove" and expected:
                chosen = list(expected)[value % len(expected)]
                index.remove(chosen)
                del expected[chosen]
                assert chosen not in index
            elif step == "query":
                assert index.query(array(value)) == naive(value, 0.5)
                assert index.query(array(value), min_similarity=0.0) == naive(value)
        assert len(index) == len(expected)
        assert all(one in index for one in expected)
        asked = list(expected.values())
        for least in (0.0, 0.7, None):
            table = index.query_many(
                np.array(asked, np.uint32).reshape(-1, num_hashes), min_similarity=least
            )
            assert found_in(table, len(asked)) == [
                naive(one, 0.5 if least is None else least) for one in asked
            ]


# What is found.


@pytest.mark.parametrize("similarity", [0.5, 0.7, 0.8, 0.9])
def test_pairs_are_found_as_often_as_the_s_curve_says(similarity):
    """Each place of a pair agrees with the probability of its similarity: binomial, 5 standard
    deviations.
    """
    chance = np.random.default_rng(1)
    count = 4000
    values = chance.integers(0, 2**32, (count, 128), np.uint32)
    asked = np.where(chance.random(values.shape) < similarity, values, values + np.uint32(1))
    index = neardup.LSHIndex(MinHash(threshold=0.8, recall=0.99))
    index.add_many(np.arange(count), values)
    found = index.query_many(asked, min_similarity=0.0)
    assert found["id"].to_pylist() == found["query"].to_pylist()  # no other, one in 2^100
    p = float(neardup.lsh.candidate_probability(similarity, index.bands))
    assert abs(len(found) - count * p) <= 5 * math.sqrt(count * p * (1 - p)) + 1
    assert index.recall == neardup.lsh.candidate_probability(0.8, index.bands) >= 0.99


def test_thousands_added_one_by_one_are_found_as_those_added_at_once():
    values = np.random.default_rng(3).integers(0, 2**32, (5200, 12), np.uint32)
    values[2600:] = values[:2600]
    values[2600:, 7:] += np.uint32(1)
    one_by_one, at_once = (banded(4, 3) for _ in range(2))
    for number, value in enumerate(values):
        one_by_one.add(number, value)
    at_once.add_many(np.arange(5200), values)
    found = one_by_one.query_many(values, min_similarity=0.0)
    assert found.equals(at_once.query_many(values, min_similarity=0.0))
    assert len(found) == 10_400


def test_many_in_one_bucket_are_all_found():
    """More than there is room for at first; some share one band, some all."""
    index = banded(2, 2)
    values = np.zeros((30_000, 4), np.uint32)
    values[10_000:, 2] = np.arange(20_000)
    index.add_many(np.arange(30_000), values)
    found = index.query(array([0, 0, 0, 0])[0], min_similarity=0.0)
    assert [one for one, _ in found] == list(range(30_000))
    assert [similarity for _, similarity in found] == [1.0] * 10_001 + [0.75] * 19_999
    assert len(index.query(array([0, 0, 0, 0]), min_similarity=0.9)) == 10_001


def test_keys_whose_upper_bits_fall_together_are_told_apart(monkeypatch):
    """The slots hold 32 bits of a key: with all of them equal, the values themselves decide."""
    monkeypatch.setattr(minhash, "band_keys", lambda signatures, rows, keys: keys.fill(7))
    values = np.random.default_rng(2).integers(0, 3, (300, 6), np.uint32)
    index = banded(2, 2)
    index.add_many(range(300), values)
    stored = dict(enumerate(values.tolist()))
    for one in values[:40].tolist():
        assert index.query(array(one), min_similarity=0.0) == reference.query(stored, one, 2, 2)


@pytest.mark.slow
def test_what_was_removed_may_come_back_with_another_signature():
    index = banded(2, 1)
    for number in range(5000):
        index.add("same", array([number, 1]))
        index.remove("same")
    assert index._store.num_rows <= 4098
    assert index.query(array([7, 1])) == []
    index.add("same", array([7, 2]))
    assert index.query(array([7, 1]), min_similarity=0.5) == [("same", 0.5)]


@pytest.mark.parametrize("length", [10, 49, 128])
def test_the_estimate_reaches_a_least_similarity_exactly(length):
    """Every k / n, also where n times its nearest number is above k."""
    index = banded(1, 1)
    base = np.zeros(length, np.uint32)
    for agree in range(1, length + 1):
        index.add(agree, np.where(np.arange(length) < agree, base, np.uint32(1)))
    for agree in range(1, length + 1):
        found = index.query(base, min_similarity=agree / length)
        assert [one for one, _ in found] == list(range(length, agree - 1, -1))


def test_an_index_of_empty_sets_finds_nothing():
    index = neardup.LSHIndex()
    nothing = np.full((2, 128), 2**32 - 1, np.uint32)
    assert index.query(nothing[0]) == []
    assert len(index.query_many(nothing)) == 0
    index.add_many(["a", "b"], nothing)
    index.add_many([], nothing[:0])
    assert index.query(nothing[0]) == []
    assert len(index) == 2
    assert index.add_if_new("c", nothing[0]) == []
    assert repr(index) == "LSHIndex(threshold=0.8, num_bands=12, rows_per_band=5, 3 signatures)"


def test_a_query_of_an_empty_set_finds_no_set_that_has_its_highest_hash():
    highest = 2**32 - 1
    index = banded(1, 1)
    index.add("a", array([highest, 0]))
    assert index.query(array([highest, highest])) == []
    assert index.query(array([highest, highest]), min_similarity=0.0) == []
    assert index.query(array([highest, 1]), min_similarity=0.0) == [("a", 0.5)]


def test_results_are_a_table_of_query_id_and_similarity():
    index = banded(2, 1)
    index.add_many(["a", "b"], array([1, 2], [1, 3]))
    table = index.query_many(array([1, 3]), min_similarity=0.0)
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("query", "int64"),
        ("id", "large_string"),
        ("similarity", "double"),
    ]
    assert table.to_pylist() == [
        {"query": 0, "id": "b", "similarity": 1.0},
        {"query": 0, "id": "a", "similarity": 0.5},
    ]


# Bands.


def test_bands_are_chosen_to_fit_the_signatures():
    assert neardup.LSHIndex(MinHash(threshold=0.3)).bands == Bands(49, 2)
    fitting = neardup.LSHIndex(MinHash(threshold=0.3, num_hashes=64))
    assert fitting.bands == Bands(13, 1)
    assert fitting.recall >= 0.99
    assert banded(20, 5).bands == Bands(20, 5)


def test_a_recall_out_of_reach_names_the_nearest_that_can_be_reached():
    message = (
        r"recall=0\.99 at threshold=0\.2 needs more than the 16 hashes of a signature\. At "
        r"this threshold a "
        r"recall of 0\.971 can be reached: lower the recall or raise the threshold, or use "
        r"longer signatures"
    )
    with pytest.raises(SettingError, match=message):
        neardup.LSHIndex(MinHash(threshold=0.2, num_hashes=16))
    assert neardup.LSHIndex(MinHash(threshold=0.2, recall=0.971, num_hashes=16)).bands == Bands(
        16, 1
    )


def test_a_threshold_alone_is_short_for_a_method():
    assert neardup.LSHIndex(threshold=0.3).bands == neardup.LSHIndex(MinHash(threshold=0.3)).bands
    assert neardup.LSHIndex().threshold == 0.8
    with pytest.raises(
        SettingError, match=r"threshold is part of the method: got threshold=0\.3 and MinHash"
    ):
        neardup.LSHIndex(MinHash(), threshold=0.3)
    with pytest.raises(SettingError, match=r"method must be .*: got 0\.3"):
        neardup.LSHIndex(0.3)
    with pytest.raises(
        SettingError, match="threshold must be a number above 0 and at most 1: got 0"
    ):
        neardup.LSHIndex(threshold=0)


# What does not compare.

SCHEME = {"name": "minhash", "version": 1, "seed": 1, "num_hashes": 4, "ngram": 5}


@pytest.mark.parametrize(
    "call",
    [
        lambda index, other: index.add("b", other),
        lambda index, other: index.query(other),
        lambda index, other: index.query_many(other),
        lambda index, other: index.add_if_new("b", other),
        lambda _, other: banded(2, 2, scheme=SCHEME).add("b", other),
    ],
    ids=["add", "query", "query_many", "add_if_new", "empty index"],
)
def test_signatures_of_another_scheme_or_seed_are_refused_and_both_are_named(call):
    index = banded(2, 2)
    index.add_many(["a"], Signatures(array([1, 2, 3, 4]), SCHEME))
    assert index.scheme == SCHEME
    other = Signatures(array([1, 2, 3, 4]), SCHEME | {"seed": 2})
    with pytest.raises(SchemeError, match=r"seed=1.*seed=2"):
        call(index, other)
    assert len(index) == 1
    assert index.query(Signatures(array([1, 2, 3, 4]), SCHEME)) == [("a", 1.0)]


@pytest.mark.parametrize(
    "method", [MinHash(similarity="cosine"), MinHash(similarity="containment"), "structure"]
)
def test_thresholds_of_other_similarities_are_refused(method):
    with pytest.raises(SettingError, match="estimate the Jaccard similarity: got similarity="):
        neardup.LSHIndex(method)


def test_signatures_of_another_length_are_refused():
    index = banded(2, 2)
    with pytest.raises(SchemeError, match="needs signatures of 4 hashes or more: got 3"):
        index.add("a", array([1, 2, 3]))
    index.add("a", array([1, 2, 3, 4, 5]))
    for call in (
        lambda: index.add("b", array([1, 2, 3, 4])),
        lambda: index.query(array([1, 2, 3, 4])),
    ):
        with pytest.raises(
            SchemeError,
            match=r"of 5 and of 4 hashes cannot be compared.*Sign with MinHash\(num_hashes=5\)",
        ):
            call()
    with pytest.raises(SchemeError, match="of 5 and of 1 hashes cannot be compared"):
        index.query(np.array(5, np.uint32))
    assert index.num_hashes == 5


@pytest.mark.parametrize(
    "wrong",
    [
        [1, 2],
        np.zeros((1, 4)),
        np.zeros((1, 4), np.uint64),
        np.zeros((1, 1, 4), np.uint32),
        "abcd",
        None,
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda index, wrong: index.add_many(["a"], wrong),
        lambda index, wrong: index.query_many(wrong),
        lambda index, wrong: index.query(wrong),
    ],
    ids=["add_many", "query_many", "query"],
)
def test_what_is_no_signature_is_refused(call, wrong):
    index = banded(2, 2)
    with pytest.raises(InputError, match=r"a uint32 array with a row for each.*: got"):
        call(index, wrong)
    assert len(index) == 0


TWO = array([1, 2, 3, 4], [5, 6, 7, 8])


@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.add("a", TWO),
        lambda index: index.query(TWO),
        lambda index: index.query(TWO[:0]),
    ],
    ids=["add two", "query two", "query none"],
)
def test_one_signature_is_one(call):
    with pytest.raises(InputError, match="Pass one signature: got"):
        call(banded(2, 2))


def test_signatures_are_as_many_as_their_ids():
    index = banded(2, 2)
    two = TWO
    with pytest.raises(InputError, match="got 1 ids and 2 signatures"):
        index.add_many(["a"], two)
    with pytest.raises(InputError, match="The id 'a' is already in the index"):
        index.add_many(["a", "a"], two)
    assert len(index) == 0
    index.add("a", two[0])
    with pytest.raises(InputError, match="The id 'a' is already in the index"):
        index.add_if_new("a", two[1])
    with pytest.raises(InputError, match="no signature with the id 'b'"):
        index.remove("b")
    assert 1 not in index
    assert index.query(two[1]) == []


@pytest.mark.parametrize("wrong", [-0.1, 1.1, True, "0.5", float("nan")])
def test_a_least_similarity_out_of_its_limits_is_refused(wrong):
    with pytest.raises(
        SettingError, match="min_similarity must be a number from 0 to 1, or None: got"
    ):
        neardup.LSHIndex().query(np.zeros(128, np.uint32), min_similarity=wrong)


def test_indexes_merge_whatever_their_bands_but_not_across_schemes():
    first = banded(2, 2)
    second = banded(4, 1)
    second.add_many(["b", "c"], Signatures(array([1, 2, 3, 4], [1, 2, 0, 0]), SCHEME))
    second.remove("b")
    first.merge(second)
    assert first.scheme == SCHEME
    assert first.query(array([1, 2, 9, 9]), min_similarity=0.5) == [("c", 0.5)]
    other = banded(1, 1, scheme=SCHEME | {"ngram": 3})
    with pytest.raises(SchemeError, match=r"ngram=5.*ngram=3"):
        first.merge(other)
    with pytest.raises(
        InputError, match="can only be merged with one of the same type: got HammingIndex"
    ):
        first.merge(neardup.HammingIndex())
    with pytest.raises(InputError, match="The id 'c' is already in the index"):
        first.merge(second)


# Files.


@pytest.mark.parametrize("strings", [True, False])
@pytest.mark.parametrize("scheme", [SCHEME, None])
def test_an_index_is_saved_and_opened(strings, scheme, tmp_path):
    index = banded(2, 2, threshold=0.5, scheme=scheme)
    ids = ["é", "b", "c"] if strings else [7, -1, 3]
    index.add_many(ids, array([1, 2, 3, 2**32 - 1], [1, 2, 5, 6], [1, 2, 7, 7]))
    index.remove(ids[2])
    index.save(tmp_path / "index.parquet")
    opened = neardup.LSHIndex.open(tmp_path / "index.parquet")
    assert (opened.threshold, opened.bands, opened.scheme, opened.num_hashes) == (
        0.5,
        Bands(2, 2),
        scheme,
        4,
    )
    assert opened.query(array([1, 2, 3, 2**32 - 1])) == [(ids[0], 1.0), (ids[1], 0.5)]
    opened.save(tmp_path / "again.parquet")
    assert pq.read_table(tmp_path / "again.parquet").equals(
        pq.read_table(tmp_path / "index.parquet")
    )
    with pytest.raises(OutputError, match="already exists"):
        index.save(tmp_path / "index.parquet")
    index.save(tmp_path / "index.parquet", overwrite=True)


def test_the_bytes_in_a_file_are_the_hashes_the_lowest_byte_first(tmp_path):
    index = banded(1, 1)
    index.add("a", array([0x01020304, 5]))
    index.save(tmp_path / "index.parquet")
    table = pq.read_table(tmp_path / "index.parquet")
    assert table["signature"][0].as_py() == bytes([4, 3, 2, 1, 5, 0, 0, 0])


def test_a_large_index_is_saved_in_stretches(tmp_path, monkeypatch):
    monkeypatch.setattr(row_store, "_BATCH_ROWS", 7)
    values = np.random.default_rng(5).integers(0, 3, (100, 6), np.uint32)
    index = banded(2, 3)
    index.add_many(range(100), values)
    index.save(tmp_path / "index.parquet")
    opened = neardup.LSHIndex.open(tmp_path / "index.parquet")
    assert opened.query_many(values, min_similarity=0.0).equals(
        index.query_many(values, min_similarity=0.0)
    )


def test_an_index_opens_a_file_of_signatures_and_signatures_that_of_an_index(tmp_path):
    signatures = neardup.sign([["a", "b", "c"], ["a", "b", "c", "d"], []])
    signatures.save(tmp_path / "signatures.parquet", ids=["x", "y", "z"])
    index = neardup.LSHIndex.open(tmp_path / "signatures.parquet", method=MinHash(threshold=0.5))
    assert (index.threshold, index.num_hashes, index.scheme) == (0.5, 128, signatures.scheme)
    assert [id for id, _ in index.query(signatures[0])] == ["x", "y"]
    index.save(tmp_path / "index.parquet")
    again = neardup.Signatures.open(tmp_path / "index.parquet")
    assert again.values.tolist() == signatures.values.tolist()
    assert (again.ids.to_pylist(), again.scheme) == (["x", "y", "z"], signatures.scheme)


def test_an_empty_index_is_saved_and_opened(tmp_path):
    neardup.LSHIndex().save(tmp_path / "index.parquet")
    opened = neardup.LSHIndex.open(tmp_path / "index.parquet")
    assert (len(opened), opened.num_hashes) == (0, None)
    opened.add(1, np.zeros(100, np.uint32))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other", "has no column 'signature' of fixed-size binary"),
        ("text", "as Parquet"),
        ("none", "as Parquet"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, name, message):
    pq.write_table(pa.table({"id": ["a"], "signature": [b"1234"]}), tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_text("no")
    with pytest.raises(neardup.NeardupError, match=message):
        neardup.LSHIndex.open(tmp_path / f"{name}.parquet")


def test_an_index_yields_its_ids_in_order():
    signatures = neardup.sign(["a b c d e", "f g h i j", "k l m n o"], method="minhash")
    index = neardup.LSHIndex()
    index.add_many(["x", "y", "z"], signatures)
    index.remove("y")
    assert list(index) == ["x", "z"]
    assert list(neardup.LSHIndex()) == []


def test_rows_of_a_file_without_ids_are_numbered_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(sketches, "_BATCH_ROWS", 10)
    signed = neardup.sign([f"text number {number} of several" for number in range(25)])
    signed.save(tmp_path / "signed.parquet")
    without = pq.read_table(tmp_path / "signed.parquet").drop_columns("id")
    pq.write_table(without, tmp_path / "signed.parquet")
    index = neardup.LSHIndex.open(tmp_path / "signed.parquet")
    assert list(index) == neardup.Signatures.open(tmp_path / "signed.parquet").ids.to_pylist()
    assert list(index)[-1] == "24"
