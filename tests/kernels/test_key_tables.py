"""Tables of keys find what a list of entries has; small, for every mode of the compiler."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup import kernels
from neardup.stores import key_tables
from neardup.stores.key_tables import KeyEntries, KeyTables

# Upper and lower bits of keys, the same as those of other keys, or not.
KEYS = st.builds(
    lambda high, low: high << 60 | low,
    st.sampled_from([0, 1, 8, 15]),
    st.sampled_from([0, 1, 3, 255]),
)
BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 1), KEYS), max_size=12), max_size=6)


def bits_of(rows, num_rows: int) -> np.ndarray:
    bits = np.zeros((num_rows >> 6) + 1, np.uint64)
    kernels.key_tables.set_bits(bits, np.array(sorted(rows), np.int64))
    return bits


def fill(batches, prefix_bits, max_distance) -> tuple[KeyTables, list[tuple[int, int, int]]]:
    """Return tables and the list of their entries; an entry is a row of its own."""
    tables = KeyTables(prefix_bits, max_distance)
    entries = []
    for batch in batches:
        first = len(entries)
        rows = np.arange(first, first + len(batch), dtype=np.uint32)
        table, key = ([entry[i] for entry in batch] for i in range(2))
        tables.append(
            KeyEntries(np.array(table, np.uint16), np.array(key, np.uint64), rows),
            first + len(batch),
        )
        entries += [(*entry, row) for entry, row in zip(batch, rows.tolist(), strict=True)]
        tables.merge_latest(np.zeros(8, np.uint64), 0)
    return tables, entries


@given(
    BATCHES,
    st.sampled_from([0, 2, 64]),
    st.integers(0, 3),
    st.integers(1, 3),
    st.sampled_from([0, 3, 512]),
)
def test_near_keys_of_a_bucket_are_found_up_to_the_limit(
    batches, bits, max_distance, limit, tail_entries
):
    before = key_tables._TAIL_ENTRIES
    key_tables._TAIL_ENTRIES = tail_entries
    try:
        tables, entries = fill(batches, (bits, 64), max_distance)
    finally:
        key_tables._TAIL_ENTRIES = before
    forgotten = {row for _, _, row in entries if row % 5 == 2}
    states = kernels.key_tables.States(
        bits_of(forgotten, len(entries)), bits_of({0, 1}, len(entries) + 2)
    )
    wanted = [(table, high << 60 | low) for table in (0, 1) for high in (1, 8) for low in (0, 3, 4)]
    found = tables.view().find(
        *(np.array(c, t) for c, t in zip(zip(*wanted, strict=True), ("u2", "u8"), strict=True)),
        limit,
        states,
    )
    expected = []
    more = []
    for number, (table, key) in enumerate(wanted):
        listed: dict[int, list[int]] = {}
        for other_table, other, row in entries:
            same = (key ^ other) >> (64 - (bits, 64)[table]) == 0
            if (
                other_table == table
                and same
                and (key ^ other).bit_count() <= max_distance
                and row not in forgotten
            ):
                listed.setdefault(other, []).append(row)
        more.append(any(len(rows) > limit for rows in listed.values()))
        expected += [
            (number, row, row < 2)
            for row in sorted(row for rows in listed.values() for row in rows[:limit])
        ]
    assert list(zip(*(array.tolist() for array in found[:3]), strict=True)) == expected
    assert found.truncated.tolist() == more


@given(st.lists(KEYS, max_size=40))
def test_entries_are_sorted_by_key_and_then_stay_in_their_order(keys):
    sorted_keys = np.array(keys, np.uint64)
    rows = np.arange(len(keys), dtype=np.uint32)
    kernels.key_tables.sort_entries(sorted_keys, rows)
    assert list(zip(sorted_keys.tolist(), rows.tolist(), strict=True)) == sorted(
        zip(keys, range(len(keys)), strict=True)
    )


@given(BATCHES)
def test_merged_runs_have_the_entries_of_rows_that_were_not_forgotten(batches):
    tables, entries = fill(batches, (64, 64), 0)
    tables.seal_tail()
    if not tables.runs:
        return
    forgotten = bits_of({row for _, _, row in entries if row % 3 == 0}, len(entries))
    run = key_tables.merge_runs(tables.runs, tables.prefix_bits, forgotten)
    for number, (keys, rows, starts, shift) in enumerate(run.tables):
        expected = sorted((key, row) for table, key, row in entries if table == number and row % 3)
        assert list(zip(keys.tolist(), rows.tolist(), strict=True)) == expected
        assert starts.tolist() == [
            sum(key >> shift < cell for key, _ in expected) for cell in range(len(starts))
        ]


def test_the_rest_of_a_hot_key_is_skipped():
    size = 3000
    entries = KeyEntries(
        np.zeros(size, np.uint16), np.full(size, 7, np.uint64), np.arange(size, dtype=np.uint32)
    )
    tables = KeyTables((64,), 0)
    tables.append(entries, size)
    states = kernels.key_tables.States(bits_of(range(100), size), bits_of([], size))
    found = tables.view().find(np.zeros(1, np.uint16), np.array([7], np.uint64), 50, states)
    assert found.row.tolist() == list(range(100, 150))
    assert found.truncated.tolist() == [True]


@given(BATCHES, st.lists(st.tuples(st.integers(0, 1), KEYS), max_size=30), st.integers(1, 4))
def test_lookups_in_the_order_of_the_tables_find_the_same(batches, lookups, limit):
    tables, entries = fill(batches, (4, 8), 3)
    states = kernels.key_tables.States(
        bits_of([], len(entries)), bits_of(range(0, len(entries), 2), len(entries))
    )
    table = np.array([lookup[0] for lookup in lookups], np.uint16)
    key = np.array([lookup[1] for lookup in lookups], np.uint64)
    view = tables.view()
    with patch.multiple(key_tables, _MANY_LOOKUPS=0, _MANY_ENTRIES=0):
        in_order = view.find(table, key, limit, states)
    for found, expected in zip(in_order, view.find(table, key, limit, states), strict=True):
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()
