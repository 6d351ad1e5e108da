"""Python lists of strings become Arrow's, as `pa.array` would have it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.features.token_lists import list_strings

LISTS = pa.large_list(pa.large_string())
STRINGS = st.one_of(
    st.text(max_size=20),
    st.text("ab\x80\u4e00", max_size=30),
    st.none(),
    st.sampled_from(["", "\0"]),
)


@given(st.lists(st.one_of(st.none(), st.lists(STRINGS, max_size=5)), max_size=5))
@example([["a", "", "bc"], [], ["d"]])
@example([["a\0b"], ["c"]])
@example([["\0"], [""]])
@example([["a", None]])
def test_lists_are_those_of_arrow_with_empty_ones_for_nulls(rows):
    found = list_strings(rows)
    found.validate(full=True)
    assert found.type == LISTS
    assert [one or [] for one in found.to_pylist()] == [one or [] for one in rows]


@pytest.mark.parametrize("size", [1, 6, 7, 8, 9, 15, 16, 17, 40])
def test_strings_of_every_length_are_cut_where_they_end(size):
    rows = [["x" * size, "", "y" * (size - 1)], ["z"], ["é" * size]]
    assert list_strings(rows).to_pylist() == rows


def test_tuples_sets_and_arrays_are_lists_too():
    rows = [
        ("a", "b"),
        {"c"},
        frozenset("d"),
        np.array(["e", "f"]),
        np.array([], object),
        {"g", None} - {"g"},
    ]
    assert list_strings(rows).to_pylist() == [["a", "b"], ["c"], ["d"], ["e", "f"], [], [None]]


@pytest.mark.parametrize("row", [["a", 5], [["a"]], 5, ["\ud800"]])
def test_other_rows_raise(row):
    with pytest.raises((TypeError, ValueError, pa.ArrowException)):
        list_strings([["a"], row])
