"""Documents are counted in bounded memory as by lossy counting, and counts are found again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup import IdfTable, SimHash
from neardup.features.described import distinct_features
from neardup.features.idf import DocumentCounts
from neardup.features.shingles import shingle_documents
from reference import simhash as reference

METHOD = SimHash()
DOCUMENTS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), min_size=1, max_size=30)


def counted(texts: list[str], max_features: int = 1000, batch: int = 1000) -> DocumentCounts:
    counts = DocumentCounts(max_features)
    for start in range(0, len(texts), batch):
        shingles = shingle_documents(pa.array(texts[start : start + batch], pa.string()), METHOD)
        counts.add(distinct_features(shingles.hashes, shingles.offsets))
    return counts


def as_dict(table: IdfTable) -> dict[int, int]:
    return dict(zip(table.hashes.tolist(), table.counts.tolist(), strict=True))


@given(DOCUMENTS, st.integers(1, 9), st.integers(1, 7))
@example([["a", "b"], ["a"], ["c"], ["d"], ["e", "a"]], 2, 2)
def test_documents_are_counted_as_in_the_reference(documents, max_features, batch):
    counts = counted([" ".join(words) for words in documents], max_features, batch)
    features = [reference.features_of(" ".join(words)) for words in documents]
    expected, missed = reference.count_documents(features, max_features)
    table = counts.table(METHOD)
    assert as_dict(table) == expected
    assert (table.num_documents, table.max_undercount) == (len(documents), missed)
    assert table.hashes.tolist() == sorted(expected)


@given(DOCUMENTS, st.integers(1, 9))
def test_a_count_lacks_at_most_the_undercount_and_memory_is_bounded(documents, max_features):
    counts = counted([" ".join(words) for words in documents], max_features)
    truth, _ = reference.count_documents(
        [reference.features_of(" ".join(one)) for one in documents], 10**9
    )
    table = counts.table(METHOD)
    found = table.document_counts(np.array(list(truth), np.uint64)).tolist()
    for count, true_count in zip(found, truth.values(), strict=True):
        assert true_count - table.max_undercount <= count <= true_count
    assert len(table.hashes) <= max_features


def test_a_table_grows_with_its_features():
    texts = [" ".join(f"w{i}x{j}" for j in range(400)) for i in range(400)] + ["w0x0 w1x1"]
    counts = counted(texts, 10**6, batch=50)
    table = counts.table(METHOD)
    assert len(table.hashes) == 160_000
    assert table.max_undercount == 0
    assert sorted(set(table.counts.tolist())) == [1, 2]


@given(st.dictionaries(st.integers(0, 2**64 - 1), st.integers(1, 100), max_size=40), st.data())
def test_counts_are_looked_up_by_hash_and_0_without_one(counts, data):
    hashes = np.array(sorted(counts), np.uint64)
    table = IdfTable(100, hashes, np.array([counts[one] for one in sorted(counts)], np.uint32))
    wanted = data.draw(
        st.lists(st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, *counts])), max_size=20)
    )
    found = table.document_counts(np.array(wanted, np.uint64))
    assert found.tolist() == [counts.get(one, 0) for one in wanted]
    expected = [reference.idf(count, 100) for count in found.tolist()]
    assert table.lookup(np.array(wanted, np.uint64)).tolist() == pytest.approx(
        expected, abs=2.0**-31
    )
