"""Lists that refer to memory outside of their column are refused before they are read, and no
others.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents.bounds import check_lists
from reference import damaged_lists
from reference.processes import process

ROWS = st.lists(st.none() | st.lists(st.none() | st.text("aé", max_size=3), max_size=3), max_size=5)


@pytest.mark.parametrize(
    ("call", "column"), [("sign", "the column"), ("dedup", "column 'text' of source")]
)
def test_damaged_lists_are_refused_by_row(call, column):
    with process("-m", "reference.damaged_lists", call) as running:
        lines = running.stdout.read().splitlines()
    errors = dict(line.split(maxsplit=1) for line in lines)
    assert running.returncode == 0
    assert list(errors) == list(damaged_lists.damaged_columns())
    for name, error in errors.items():
        row = 0 if name == "slice" else 1  # the slice begins with the damaged row
        said = f"InputError: Row {row} of {column} refers to memory outside of the column."
        assert error.startswith(said), (name, error)


@given(ROWS, st.integers(0, 3), st.integers(0, 3))
def test_sound_lists_of_every_kind_pass(rows, start, length):
    plain = pa.array(rows, pa.list_(pa.string()))
    pairs = [[(text or "", 1.0) for text in row] if row else None for row in rows]
    columns = [
        plain,
        pa.array(rows, pa.large_list(pa.large_string())),
        pa.array(rows, pa.list_view(pa.string())),
        pa.array(rows, pa.large_list_view(pa.binary())),
        pa.array(pairs, pa.map_(pa.string(), pa.float64())),
        pa.array([[row, row] if row else None for row in rows], pa.list_(plain.type, 2)),
        pa.array([{"inner": row} for row in rows], pa.struct({"inner": plain.type})),
    ]
    for column in columns:
        check_lists([column, column.slice(start, length)])


def test_the_row_is_counted_over_all_chunks():
    chunks = [pa.array([["x"], ["y"]]), damaged_lists.damaged_columns()["null"]]
    with pytest.raises(ValueError, match=r"^Row 3 of the column refers"):
        check_lists(chunks)
