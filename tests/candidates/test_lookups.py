"""The rows that lookups found, joined to pairs as dictionaries join them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.candidates.lookups import Entries, Found, distinct_pairs, take_entries


def entries_of(documents: list[int]) -> Entries:
    count = len(documents)
    return Entries(
        document=np.array(documents, np.int64),
        table=np.zeros(count, np.uint16),
        key=np.arange(count, dtype=np.uint64),
    )


@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=6).map(sorted),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=12, unique=True).map(sorted),
)
def test_each_pair_is_listed_once_with_the_number_of_its_probes(documents, hits):
    hits = [(entry, row) for entry, row in hits if entry < len(documents)]
    found = Found(
        entry=np.array([entry for entry, _ in hits], np.int64),
        row=np.array([row for _, row in hits], np.int64),
        kept=np.array([row % 2 == 0 for _, row in hits], np.bool_),
        truncated=np.zeros(len(documents), np.bool_),
    )
    pairs, counts = distinct_pairs(entries_of(documents), found)
    expected = Counter((documents[entry], row) for entry, row in hits)
    assert list(zip(pairs.query.tolist(), pairs.row.tolist(), strict=True)) == sorted(expected)
    assert counts.tolist() == [expected[pair] for pair in sorted(expected)]
    assert pairs.kept.tolist() == [row % 2 == 0 for _, row in sorted(expected)]


@pytest.mark.parametrize(
    ("chosen", "documents"),
    [
        ([True, True, True], [0, 0, 1, 2]),
        ([True, False, True], [0, 0, 2]),
        ([False, False, False], []),
    ],
    ids=["all", "some", "none"],
)
def test_entries_of_chosen_documents_keep_their_positions(chosen, documents):
    taken = take_entries(entries_of([0, 0, 1, 2]), np.array(chosen))
    assert taken.document.tolist() == documents


@pytest.mark.parametrize("is_chosen", [True, False])
def test_entries_of_one_document_are_taken_or_not(is_chosen):
    taken = take_entries(entries_of([0, 0]), np.array([is_chosen]))
    assert taken.document.tolist() == ([0, 0] if is_chosen else [])
