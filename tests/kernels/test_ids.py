"""The table of ids is a dictionary."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import InputError
from neardup.sketches import row_store as module
from neardup.sketches.row_store import IdTable

NUMBERS = st.integers(-5, 30)
STRINGS = st.text("ab\0é", max_size=3)


@given(st.data(), st.sampled_from([(NUMBERS, pa.int64()), (STRINGS, pa.large_string())]))
def test_ids_are_found_as_in_a_dictionary(data, kind):
    drawn, arrow = kind
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MIN_SLOTS", 4)
        table = IdTable()
        rows = {}
        all_ids = []
        for remove, values in data.draw(
            st.lists(st.tuples(st.booleans(), st.lists(drawn, max_size=5)), max_size=20)
        ):
            if remove:
                there = sorted(set(values) & set(rows))
                table.remove(pa.array(there, arrow))
                for value in there:
                    del rows[value]
            elif len(set(values)) < len(values) or set(values) & set(rows):
                with pytest.raises(InputError, match="is already in the index, or twice"):
                    table.append(pa.array(values, arrow))
            else:
                table.append(pa.array(values, arrow))
                rows |= {value: len(all_ids) + place for place, value in enumerate(values)}
                all_ids += values
            asked = data.draw(st.lists(drawn, max_size=4))
            assert table.find(pa.array(asked, arrow)).tolist() == [
                rows.get(value, -1) for value in asked
            ]
            assert (table.num_rows, table.num_alive) == (len(all_ids), len(rows))
        chosen = sorted(rows.values())
        assert table.take(module.np.array(chosen, "int64")).to_pylist() == [
            all_ids[row] for row in chosen
        ]
