"""The ranks of values of any type compare as the exact values do, whichever rows are read with
them.
"""

from __future__ import annotations

import itertools
import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents.batch import Columns, Rejected
from neardup.documents.ranks import TOO_PRECISE, no_rank
from neardup.documents.sources import Source
from neardup.documents.texts import as_rank
from neardup.formats import jsonl

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NEAR_A_POWER = st.builds(lambda power, add: 2**power + add, st.integers(52, 62), st.integers(-3, 3))
INT64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1), NEAR_A_POWER, NEAR_A_POWER.map(lambda value: -value)
)
UINT64 = st.one_of(st.integers(0, 2**64 - 1), st.integers(2**64 - 5, 2**64 - 1), NEAR_A_POWER)
DECIMALS = st.decimals(-(10**20), 10**20, allow_nan=False, allow_infinity=False, places=11)
COLUMNS = st.one_of(
    st.tuples(st.just(pa.int64()), st.lists(INT64, max_size=6)),
    st.tuples(st.just(pa.uint64()), st.lists(UINT64, max_size=6)),
    st.tuples(st.just(pa.int8()), st.lists(st.integers(-128, 127), max_size=6)),
    st.tuples(st.just(pa.float64()), st.lists(FLOATS, max_size=6)),
    st.tuples(st.just(pa.decimal128(38, 11)), st.lists(DECIMALS, max_size=6)),
    st.tuples(
        st.just(pa.large_string()),
        st.lists(st.integers(-(10**31) + 1, 10**31 - 1).map(str), max_size=6),
    ),
)


def ranks_of(column: pa.Array) -> list[tuple[float, float]]:
    ranks, bad = as_rank(column)
    assert ranks.shape == (len(column), 2)
    assert bad == {}
    return [tuple(row) for row in ranks.tolist()]


@given(st.lists(COLUMNS, min_size=1, max_size=4))
def test_numbers_of_all_types_have_the_order_of_their_exact_values(columns) -> None:
    values = [Fraction(value) for _, column in columns for value in column]
    ranks = [rank for kind, column in columns for rank in ranks_of(pa.array(column, kind))]
    for (left, left_rank), (right, right_rank) in itertools.combinations(
        zip(values, ranks, strict=True), 2
    ):
        assert (left < right, left == right) == (left_rank < right_rank, left_rank == right_rank), (
            left,
            right,
        )


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=6),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_times_of_every_unit_have_their_order(values: list[int], unit: str) -> None:
    ranks = ranks_of(pa.array(values, pa.int64()).cast(pa.timestamp(unit)))
    order = sorted(range(len(values)), key=values.__getitem__)
    assert sorted(range(len(values)), key=ranks.__getitem__) == order


def test_a_moment_has_one_rank_however_it_is_written() -> None:
    moment = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
    stamps = [
        pa.array([moment]).cast(pa.timestamp(unit, "UTC")) for unit in ("s", "ms", "us", "ns")
    ]
    texts = [
        "2026-01-31T12:00:00Z",
        "2026-01-31 12",
        "2026-01-31T13:00+01:00",
        "2026-01-31T12:00:00.000000000",
    ]
    found = [*map(ranks_of, stamps), *(ranks_of(pa.array([text])) for text in texts)]
    seconds = (moment - EPOCH) // timedelta(seconds=1)
    assert found == [[(float(seconds * 10**9), 0.0)]] * 8
    assert ranks_of(pa.array([moment.date()])) == ranks_of(pa.array(["2026-01-31"]))


def test_the_rank_of_a_string_does_not_depend_on_the_other_strings() -> None:
    texts = [
        "9007199254740993",
        "1.5",
        "-18446744073709551617",
        "1e300",
        "2026-01-31T00:00:00.123456789",
        "",
        "nan",
    ]
    together = ranks_of(pa.array(texts))
    alone = [ranks_of(pa.array([text]))[0] for text in texts]
    numbers = ranks_of(pa.array(texts[:4]))
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together[:4], numbers)
    assert together[0] == (9007199254740992.0, 1.0)
    assert together[4][1] != 0


def test_nulls_and_nans_come_last_in_every_type() -> None:
    kinds = [
        pa.int64(),
        pa.uint64(),
        pa.float64(),
        pa.decimal128(38, 2),
        pa.timestamp("ns"),
        pa.date32(),
        pa.string(),
    ]
    for kind in kinds:
        assert np.isnan(as_rank(pa.array([None], kind))[0]).tolist() == [[True, False]]
    assert np.isnan(as_rank(pa.array([float("nan")]))[0][0, 0])
    assert ranks_of(pa.array([float("inf"), float("-inf")])) == [(np.inf, 0.0), (-np.inf, 0.0)]


def test_a_decimal_of_too_many_digits_is_no_rank() -> None:
    values = [Decimal("1." + "0" * 30), Decimal("1." + "1" * 31), None]
    ranks, bad = as_rank(pa.array(values, pa.decimal128(38, 31)))
    assert ranks[0].tolist() == [1, 0]
    assert bad == {1: TOO_PRECISE}


@pytest.mark.parametrize("wrong", ["high", "2026-13-01", "0x10"])
def test_a_string_that_is_neither_a_number_nor_a_date_is_no_rank(wrong: str) -> None:
    assert as_rank(pa.array(["1", wrong]))[1] == {1: no_rank(wrong)}


def ranks_of_lines(path: Path, values: list[str]) -> list[Any]:
    path.write_text(
        "".join(f'{{"text": "a", "r": {value}}}\n' for value in values), encoding="utf-8"
    )
    rejected: list[Rejected] = []
    batches = jsonl.read(
        Source(path.name, str(path), None), Columns("text", None, ("r",)), rejected.append
    )
    ranks = [rank for batch in batches for rank in batch.ranks[0].tolist()]
    assert rejected == []
    return ranks


@given(
    st.lists(st.one_of(INT64, UINT64, FLOATS, INT64.map(str), st.none()), min_size=1, max_size=30)
)
def test_the_rank_of_a_line_does_not_depend_on_other_lines(
    tmp_path_factory, values: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "in.jsonl"
    lines = list(map(json.dumps, values))
    together = ranks_of_lines(path, lines)
    np.testing.assert_array_equal(together, [ranks_of_lines(path, [line])[0] for line in lines])
    exact = [
        (
            as_rank(
                pa.array(
                    [value], pa.uint64() if isinstance(value, int) and value > 2**63 - 1 else None
                )
            )[0][0]
        )
        for value in values
    ]
    np.testing.assert_array_equal(together, exact)
