"""The index finds what comparing a query with every fingerprint finds, whatever was added and
removed before.
"""

from __future__ import annotations

import math
import random
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import ColumnError, InputError, OutputError, SchemeError, SettingError
from neardup.sketches import hamming, row_index, row_store
from neardup.stores import key_tables
from reference import hamming as reference
from reference.lsh import found_in
from reference.signed import fingerprint_of

WIDTHS = (32, 64, 128, 256)


def flipped(value: int, bits: int, count: int, chance: random.Random) -> int:
    for bit in chance.sample(range(bits), count):
        value ^= 1 << bit
    return value


@st.composite
def operations(draw, bits: int, max_distance: int):
    """Return steps: fingerprints to add near to a few bases, ids to remove, queries."""
    bases = draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=3))
    near = st.builds(
        lambda base, flips: base ^ sum(1 << bit for bit in flips),
        st.sampled_from(bases),
        st.sets(st.integers(0, bits - 1), max_size=max_distance + 1),
    )
    add = st.tuples(st.just("add"), st.lists(near, max_size=6))
    remove = st.tuples(st.just("remove"), st.integers(0, 40))
    query = st.tuples(st.just("query"), near)
    return draw(st.lists(st.one_of(add, remove, query), max_size=30))


@pytest.mark.slow
@given(st.data(), st.sampled_from(WIDTHS), st.integers(0, 8), st.booleans())
def test_adds_and_removes_in_any_order_leave_what_brute_force_finds(
    data, bits, max_distance, strings
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_tables, "_TAIL_ENTRIES", data.draw(st.sampled_from([2, 512])))
        patch.setattr(row_store, "_MIN_ROWS_TO_COMPACT", data.draw(st.sampled_from([2, 4096])))
        patch.setattr(
            hamming, "_SCAN_COST", data.draw(st.sampled_from([0.35, 1e9]))
        )  # 1e9: tables always
        patch.setattr(row_index, "_BLOCK_ROWS", 2)
        index = neardup.HammingIndex(bits, max_distance, threads=2)
        expected: dict[object, int] = {}
        number = 0
        for step, value in data.draw(operations(bits, max_distance)):
            if step == "add":
                ids = [f"id {number + i}" if strings else number + i for i in range(len(value))]
                number += len(value)
                index.add_many(ids, value)
                expected |= dict(zip(ids, value, strict=True))
            elif step == "remove" and expected:
                chosen = list(expected)[value % len(expected)]
                index.remove(chosen)
                del expected[chosen]
                assert chosen not in index
            elif step == "query":
                assert index.query(value) == reference.query(expected, value, max_distance)
        assert len(index) == len(expected)
        assert all(one in index for one in expected)
        asked = list(expected.values())
        answers = [reference.query(expected, one, max_distance) for one in asked]
        assert found_in(index.query_many(asked), len(asked)) == answers


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "max_distance"), [(32, 2), (64, 3), (64, 8), (128, 3), (256, 16)])
def test_every_number_of_blocks_finds_the_same(bits, max_distance, monkeypatch):
    chance = random.Random(bits)
    bases = [chance.getrandbits(bits) for _ in range(20)]
    stored = {
        number: flipped(bases[number % 20], bits, chance.randint(0, max_distance), chance)
        for number in range(400)
    }
    asked = [flipped(base, bits, chance.randint(0, 2), chance) for base in bases]
    expected = [reference.query(stored, one, max_distance) for one in asked]
    assert any(expected)
    for num_blocks in range(max_distance, max_distance + 4):
        if math.comb(num_blocks, max_distance) > 200:
            continue
        monkeypatch.setattr(hamming, "fastest_blocks", lambda *_, chosen=num_blocks: chosen)
        monkeypatch.setattr(key_tables, "_TAIL_ENTRIES", 100)
        index = neardup.HammingIndex(bits, max_distance)
        index.add_many(list(stored), list(stored.values()))
        assert found_in(index.query_many(asked), 20) == expected


@pytest.mark.slow
def test_thousands_added_one_by_one_are_found_as_those_added_at_once():
    values = np.random.default_rng(3).integers(0, 2**64, 5200, np.uint64)
    values[2600:] = values[:2600] ^ np.uint64(5)
    one_by_one = neardup.HammingIndex()
    at_once = neardup.HammingIndex()
    for number, value in enumerate(values.tolist()):
        one_by_one.add(number, value)
    at_once.add_many(np.arange(5200), values)
    found = one_by_one.query_many(values)
    assert found.equals(at_once.query_many(values))
    assert len(found) == 10_400


@pytest.mark.slow
def test_what_was_removed_may_come_back_with_another_fingerprint():
    index = neardup.HammingIndex()
    for round_number in range(5000):
        index.add("same", round_number)
        assert len(index) == 1
        index.remove("same")
    index.add("same", 7)
    assert index.query(6) == [("same", 1)]
    assert index._store.num_rows <= 4098


def test_rows_of_removed_fingerprints_are_given_back_once_they_are_the_majority(monkeypatch):
    monkeypatch.setattr(row_store, "_MIN_ROWS_TO_COMPACT", 10)
    index = neardup.HammingIndex()
    index.add_many(list(range(100)), list(range(100)))
    for id in range(49):
        index.remove(id)
    assert index._store.num_rows == 100  # 51 are left: not the minority
    index.remove(49)
    assert index._store.num_rows == 100  # 50 of 100 is no majority
    index.remove(50)
    assert index._store.num_rows == len(index) == 49
    assert sorted(index) == list(range(51, 100))


def test_an_index_has_fewer_rows_than_row_numbers(monkeypatch):
    monkeypatch.setattr(row_store.FingerprintRows, "max_rows", 4)
    index = neardup.HammingIndex()
    index.add_many(["a", "b", "c"], [1, 2, 3])
    with pytest.raises(InputError, match=r"An index has fewer than 4 fingerprints: got 4\."):
        index.add("d", 4)
    assert list(index) == ["a", "b", "c"]


def test_a_query_with_more_results_than_there_is_room_for_gets_all():
    index = neardup.HammingIndex()
    index.add_many(np.arange(3000), np.zeros(3000, np.uint64))
    assert index.query(1) == [(number, 1) for number in range(3000)]
    table = index.query_many([0, 2**64 - 1, 7])
    assert table["query"].to_pylist() == [0] * 3000 + [2] * 3000


def test_an_empty_index_finds_nothing():
    index = neardup.HammingIndex()
    assert index.query(0) == []
    assert len(index) == len(index.query_many([0, 1])) == len(index.query_many([])) == 0
    assert "a" not in index
    index.add_many([], [])
    assert repr(index) == "HammingIndex(bits=64, max_distance=3, 0 fingerprints)"


def test_results_are_a_table_of_query_id_and_distance():
    index = neardup.HammingIndex()
    index.add_many(["a", "b", "c"], [0, 1, 3])
    table = index.query_many(np.array([0], np.uint64))
    assert table.schema.names == ["query", "id", "distance"]
    assert table["distance"].type == pa.uint8()
    assert table.to_pylist() == [
        {"query": 0, "id": "a", "distance": 0},
        {"query": 0, "id": "b", "distance": 1},
        {"query": 0, "id": "c", "distance": 2},
    ]


def test_an_id_that_is_there_is_refused_by_name_and_nothing_changes():
    index = neardup.HammingIndex()
    index.add_many(["a", "b"], [1, 2])
    with pytest.raises(
        InputError,
        match=r"The id 'b' is already in the index, or twice .* at row 1\. Remove it first",
    ):
        index.add_many(["c", "b"], [3, 4])
    with pytest.raises(InputError, match="The id 'd'"):
        index.add_many(["d", "d"], [3, 4])
    assert len(index) == 2
    assert "c" not in index
    assert index.query(3) == [("a", 1), ("b", 1)]
    index.add("c", 3)
    assert index.query(3) == [("c", 0), ("a", 1), ("b", 1)]


def test_an_id_that_is_not_there_cannot_be_removed():
    index = neardup.HammingIndex()
    with pytest.raises(InputError, match="no fingerprint with the id 'x'"):
        index.remove("x")
    index.add(5, 0)
    index.remove(5)
    with pytest.raises(InputError, match="no fingerprint with the id 5"):
        index.remove(5)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1.5], "An id is a string or an integer: got double"),
        ([None], "Give every row an id"),
        ([True], "got a bool"),
        (["a", 1], "Ids are all strings, or all integers"),
        (np.array([2**63], np.uint64), "below 2\\^63"),
        ([2**64], "Pass them as strings"),
        ([b"a"], "An id is a string or an integer: got binary"),
    ],
)
def test_ids_of_other_kinds_are_refused(ids, message):
    with pytest.raises(InputError, match=message):
        neardup.HammingIndex().add_many(ids, list(range(len(ids))))


def test_an_id_that_is_there_costs_the_same_whatever_the_size(monkeypatch):
    index = neardup.HammingIndex()
    index.add_many(np.arange(3000), np.zeros(3000, np.uint64))

    def rebuild(*_):
        raise AssertionError("The table of all ids was built again.")

    monkeypatch.setattr(row_store.IdTable, "_rebuild", rebuild)
    for add in (index.add_if_new, index.add):
        with pytest.raises(InputError, match=r"The id 7 is already in the index"):
            add(7, 1)
    with pytest.raises(InputError, match=r"The id 5001 .* at row 2"):
        index.add_many([5000, 5001, 5001], [1, 2, 3])
    assert 5000 not in index
    index.add_many([5000, 5001], [1, 2])
    assert (len(index), list(index)[-2:]) == (3002, [5000, 5001])


def test_ids_that_are_refused_many_times_leave_room_for_others():
    index = neardup.HammingIndex()
    index.add("first", 0)
    for number in range(400):
        with pytest.raises(InputError, match="The id 'first'"):
            index.add_many([f"{number}-{place}" for place in range(9)] + ["first"], range(10))
    index.add_many(list(map(str, range(5000))), np.zeros(5000, np.uint64))
    assert len(index) == 5001
    assert "0-0" not in index


def test_ids_are_read_from_any_iterable():
    index = neardup.HammingIndex()
    index.add_many((f"a{number}" for number in range(3)), range(3))
    index.add_many(dict.fromkeys(["b"]), [1])
    assert list(index) == ["a0", "a1", "a2", "b"]


@pytest.mark.parametrize("ids", ["ab", 5, None])
def test_one_string_and_one_number_are_no_ids(ids):
    with pytest.raises(
        InputError, match=r"^Ids are a list, a NumPy or an Arrow array: got .* in a list\."
    ):
        neardup.HammingIndex().add_many(ids, [1, 2])


@pytest.mark.parametrize("threads", [0, -1, "2", 1.5, True, 5000])
@pytest.mark.parametrize("kind", [neardup.HammingIndex, neardup.LSHIndex])
def test_the_number_of_threads_is_checked_when_an_index_is_made(threads, kind):
    with pytest.raises(SettingError, match=r"^threads must be a whole number of 1 or more .* got "):
        kind(threads=threads)


def test_the_first_id_decides_the_kind():
    numbers = neardup.HammingIndex()
    strings = neardup.HammingIndex()
    numbers.add(-(2**63), 0)
    strings.add("", 0)
    assert numbers.query(0) == [(-(2**63), 0)]
    assert strings.query(0) == [("", 0)]
    with pytest.raises(InputError, match="The ids of this index are integers: got 'a'"):
        numbers.add("a", 1)
    with pytest.raises(InputError, match="The ids of this index are strings: got 1"):
        strings.add(1, 1)
    assert "a" not in numbers
    assert 0 not in strings


@pytest.mark.parametrize("value", [-1, 2**64, 1.0, "1", None, True])
@pytest.mark.parametrize("operation", ["add", "query"])
def test_a_fingerprint_out_of_its_range_is_refused(operation, value):
    index = neardup.HammingIndex()
    call = partial(index.add, "a") if operation == "add" else index.query
    with pytest.raises(
        InputError,
        match=r"an integer from 0 to 2\^64 - 1: got .* at row 0\. Create an index with more",
    ):
        call(value)
    assert len(index) == 0


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [(3, np.uint64), ((3, 1), np.uint64), ((3, 2), np.int64), ((), np.uint64)],
)
def test_arrays_of_another_shape_are_refused(shape, dtype):
    with pytest.raises(
        InputError, match=r"of 128 bits are integers or a uint64 array of shape \(n, 2\): got"
    ):
        neardup.HammingIndex(128).query_many(np.zeros(shape, dtype))


def test_values_and_ids_that_do_not_fit_are_refused():
    index = neardup.HammingIndex(128)
    with pytest.raises(InputError, match=r"0 to 2\^32 - 1: got 4294967296 at row 1"):
        neardup.HammingIndex(32).query_many(np.array([0, 2**32], np.uint64))
    with pytest.raises(InputError, match="got 2 ids and 1 fingerprints"):
        index.add_many(["a", "b"], [1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bits": 48}, "bits must be one of 32, 64, 128, 256: got 48"),
        ({"max_distance": 17}, "max_distance must be .* at most 16: got 17"),
        ({"memory_bytes": 0}, "memory_bytes must be a number above 0 or None: got 0"),
    ],
)
def test_settings_out_of_their_limits_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        neardup.HammingIndex(**settings)


def test_settings_may_be_numbers_of_numpy():
    index = neardup.HammingIndex(np.int64(32), np.uint8(1), memory_bytes=np.float32(1e6))
    index.add("a", 2**32 - 1)
    assert index.query(2**32 - 2) == [("a", 1)]


def test_little_memory_means_a_scan_and_the_same_answer():
    values = np.arange(20_000, dtype=np.uint64) << np.uint64(20)
    plenty = neardup.HammingIndex()
    little = neardup.HammingIndex(memory_bytes=1000)
    for index in (plenty, little):
        index.add_many(np.arange(20_000), values)
    assert len(plenty._searcher.lookup.masks) >= 4
    assert len(little._searcher.lookup.masks) == 1
    assert little.query_many(values[:50]).equals(plenty.query_many(values[:50]))


# Files.


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("strings", [True, False])
def test_an_index_is_saved_and_opened(bits, strings, tmp_path):
    scheme = {"name": "simhash", "bits": bits, "version": 1}
    index = neardup.HammingIndex(bits, 2, scheme=scheme)
    ids = ["é", "b", "c"] if strings else [7, -1, 3]
    index.add_many(ids, [1, 2**bits - 1, 2 ** (bits - 1)])
    index.remove(ids[2])
    index.save(tmp_path / "index.parquet")
    opened = neardup.HammingIndex.open(tmp_path / "index.parquet", max_distance=2)
    assert (opened.bits, opened.scheme, len(opened)) == (bits, scheme, 2)
    assert opened.query(0) == [(ids[0], 1)]
    assert opened.query(2**bits - 1) == [(ids[1], 0)]
    opened.save(tmp_path / "again.parquet")
    assert pq.read_table(tmp_path / "again.parquet").equals(
        pq.read_table(tmp_path / "index.parquet")
    )


def test_the_bytes_in_a_file_read_as_the_digits_of_the_number(tmp_path):
    index = neardup.HammingIndex(32)
    index.add("a", 0x01234567)
    index.save(tmp_path / "index.parquet")
    assert pq.read_table(tmp_path / "index.parquet")["fingerprint"][0].as_py().hex() == "01234567"
    with pytest.raises(OutputError, match="already exists"):
        index.save(tmp_path / "index.parquet")
    index.save(tmp_path / "index.parquet", overwrite=True)


def test_a_table_of_integers_is_opened(tmp_path):
    pq.write_table(
        pa.table({"fingerprint": pa.array([5, 2**63], pa.uint64())}), tmp_path / "other.parquet"
    )
    index = neardup.HammingIndex.open(tmp_path / "other.parquet")
    assert index.query(5) == [("0", 0), ("1", 3)]
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "none.parquet")
    with pytest.raises(ColumnError, match="has no column 'fingerprint'"):
        neardup.HammingIndex.open(tmp_path / "none.parquet")


def test_indexes_of_one_scheme_merge_and_others_do_not():
    scheme = {"name": "simhash", "bits": 64, "ngram": 1}
    first, second = (neardup.HammingIndex(scheme=scheme) for _ in range(2))
    first.add("a", 1)
    second.add_many(["b", "c"], [2, 3])
    second.remove("b")
    first.merge(second)
    assert first.query(1) == [("a", 0), ("c", 1)]
    with pytest.raises(SchemeError, match=r"ngram=1.*ngram=2"):
        first.merge(neardup.HammingIndex(scheme=scheme | {"ngram": 2}))
    with pytest.raises(SchemeError, match="Fingerprints of 64 and of 32 bits cannot be compared"):
        first.merge(neardup.HammingIndex(32))
    with pytest.raises(SchemeError, match=r"scheme has 64 bits and the index has 32.*Pass bits=64"):
        neardup.HammingIndex(32, scheme=scheme)


@pytest.mark.parametrize("wrong", [-1, 2**256, 1.0, "1"])
def test_the_distance_of_two_fingerprints(wrong):
    assert neardup.lsh.hamming_distance(0, 2**256 - 1) == 256
    assert neardup.lsh.hamming_distance(np.uint64(2**63), 0) == 1
    with pytest.raises(
        InputError, match=r"right must be a fingerprint, an integer from 0 to 2\^256 - 1: got"
    ):
        neardup.lsh.hamming_distance(1, wrong)


# Fingerprints
@pytest.mark.parametrize("bits", WIDTHS)
def test_fingerprints_go_in_as_they_are_with_their_scheme(bits):
    method = neardup.SimHash(bits=bits)
    signed = neardup.sign(["one two three", "four five six", "one two three"], method=method)
    index = neardup.HammingIndex(bits=bits, max_distance=0)
    index.add_many(signed.ids, signed)
    assert index.scheme == signed.scheme
    assert (
        index.query(signed[0])
        == index.query(fingerprint_of("one two three", method=method))
        == [("0", 0), ("2", 0)]
    )
    assert index.query_many(signed[1:]).to_pylist() == [
        {"query": 0, "id": "1", "distance": 0},
        {"query": 1, "id": "0", "distance": 0},
        {"query": 1, "id": "2", "distance": 0},
    ]
    with pytest.raises(
        SchemeError, match=r"the index has .*weights='tf'; what is given has .*weights='one'"
    ):
        index.query(neardup.sign("one two three", method=neardup.SimHash(bits=bits, weights="one")))


def test_a_near_fingerprint_is_not_added_again():
    index = neardup.HammingIndex(max_distance=2)
    assert index.add_if_new("first", 0b1011) == []
    assert index.add_if_new("near", 0b1000) == [("first", 2)]
    assert index.add_if_new("far", 0b0100) == []
    assert [name in index for name in ("first", "near", "far")] == [True, False, True]
    with pytest.raises(InputError, match="The id 'far' is already in the index"):
        index.add_if_new("far", 0b1011)


def test_fingerprints_and_their_index_share_a_file(tmp_path):
    signed = neardup.sign(["one two three", "", "four five six"], method="simhash")
    signed.save(tmp_path / "fp.parquet")
    index = neardup.HammingIndex.open(tmp_path / "fp.parquet")
    assert (len(index), index.scheme) == (2, signed.scheme)  # the empty one is left out
    index.save(tmp_path / "index.parquet")
    again = neardup.Fingerprints.open(tmp_path / "index.parquet")
    assert (again.ids.to_pylist(), again.values.tolist()) == (
        ["0", "2"],
        signed[[0, 2]].values.tolist(),
    )
    assert again.scheme == signed.scheme


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (
            ["one", ""],
            InputError,
            r"1 of 2 documents have no features.*Leave them out: fingerprints\[~fingerprints",
        ),
        (["one", "two"], InputError, "go together: got 1 ids and 2 fingerprints"),
    ],
)
def test_fingerprints_that_do_not_fit_are_refused(given, error, said):
    index = neardup.HammingIndex()
    with pytest.raises(error, match=said):
        index.add_many([7], neardup.sign(given, method="simhash"))
    with pytest.raises(SchemeError, match="the index has bits=64; what is given has bits=32"):
        index.add("a", neardup.sign("one", method=neardup.SimHash(bits=32)))
    assert len(index) == 0
