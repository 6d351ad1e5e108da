"""The index finds what a comparison of bands one by one finds, whatever was added, removed and merged before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.index import band_tables, matches, signature_rows
from reference import lsh as reference

VALUES = st.sampled_from([0, 1, 2, 2**32 - 1])


def array(*rows: list[int]) -> np.ndarray:
    return np.array(rows, np.uint32)


def found_in(table: pa.Table, num_queries: int) -> list[list[tuple[object, float]]]:
    """Return (id, similarity) for each query, in the order of the rows."""
    result: list[list[tuple[object, float]]] = [[] for _ in range(num_queries)]
    for row in table.to_pylist():
        result[row["query"]].append((row["id"], row["similarity"]))
    assert table["query"].to_pylist() == sorted(table["query"].to_pylist())
    return result


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
def test_steps_in_any_order_leave_what_the_naive_index_has(data, num_bands, rows_per_band, beyond, strings):
    num_hashes = num_bands * rows_per_band + beyond
    plan = {"num_bands": num_bands, "rows_per_band": rows_per_band, "threads": 2}
    expected: dict[object, list[int]] = {}
    number = 0

    def new_ids(count: int) -> list:
        nonlocal number
        number += count
        return [f"id {i}" if strings else i for i in range(number - count, number)]

    def naive(asked: list[int], least: float = 0.0) -> list:
        return reference.query(expected, asked, num_bands, rows_per_band, least)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signature_rows, "_LEAST_TO_COMPACT", data.draw(st.sampled_from([2, 4096])))
        patch.setattr(band_tables, "_LEAST_SLOTS", 1)
        patch.setattr(matches, "_BLOCK", 2)
        patch.setattr(matches, "_FEW", 1)
        index = neardup.LSHIndex(0.5, **plan)
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
                other, ids = neardup.LSHIndex(0.9, num_bands=1, rows_per_band=num_hashes), new_ids(len(value))
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
                assert index.query(array(value)) == naive(value)
        assert len(index) == len(expected)
        assert all(one in index for one in expected)
        asked = list(expected.values())
        for least in (None, 0.5):
            table = index.query_many(np.array(asked, np.uint32).reshape(-1, num_hashes), min_similarity=least)
            assert found_in(table, len(asked)) == [naive(one, least or 0.0) for one in asked]
