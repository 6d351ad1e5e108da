"""Distinct features, their weights, the weightiest of them, and levels: those of the reference."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.features.described import (
    choose,
    distinct_features,
    line_frequencies,
    replicate_rare_features,
    sum_weights,
)
from reference import simhash as reference

HASHES = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2, 2**63, 2**64 - 1]))
DOCUMENTS = st.lists(st.lists(HASHES, max_size=30), max_size=5)
WEIGHTS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))


def flat(documents: list[list]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in documents])]).astype(np.int64)
    return np.array([value for one in documents for value in one], np.uint64), offsets


@given(DOCUMENTS)
@example([[], [5], [5, 5, 5], [2**64 - 1, 0]])
def test_distinct_features_come_by_rising_hash_with_counts_and_first_places(documents):
    hashes, offsets = flat(documents)
    found = distinct_features(hashes, offsets)
    for document, values in enumerate(documents):
        span = slice(found.offsets[document], found.offsets[document + 1])
        assert found.hashes[span].tolist() == sorted(set(values))
        assert found.counts[span].tolist() == [values.count(one) for one in sorted(set(values))]
        places = [offsets[document] + values.index(one) for one in sorted(set(values))]
        assert found.firsts[span].tolist() == places


@given(
    st.lists(st.dictionaries(HASHES, WEIGHTS, max_size=30), max_size=5),
    st.integers(0, 31),
    st.booleans(),
)
@example([{1: 1.0, 2: 1.0, 3: 1.0}, {}], 2, True)
def test_the_weightiest_features_stay_and_get_levels_as_in_the_reference(documents, top, levels):
    weights = np.array([one[key] for one in documents for key in sorted(one)], np.float64)
    given_weights = weights.copy()
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in documents])]).astype(np.int64)
    result = choose(weights, offsets, top=top, levels=levels)
    assert weights.tolist() == given_weights.tolist()
    for document, one in enumerate(documents):
        expected = reference.keep_top(one, top)
        if levels:
            expected = reference.levels(expected)
        span = slice(result.offsets[document], result.offsets[document + 1])
        assert result.weights[span].tolist() == [expected[key] for key in sorted(expected)]
        if result.indices is not None:
            places = [offsets[document] + sorted(one).index(key) for key in sorted(expected)]
            assert result.indices[span].tolist() == places


def test_levels_are_the_fifths_of_the_features_that_weigh_less():
    weights = np.array([10.0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert choose(weights, np.array([0, 10]), top=0, levels=True).weights.tolist() == [
        5,
        1,
        1,
        2,
        2,
        3,
        3,
        4,
        4,
        5,
    ]
    assert choose(np.full(3, 7.0), np.array([0, 3]), top=0, levels=True).weights.tolist() == [
        1,
        1,
        1,
    ]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(-4, 4)), max_size=12), max_size=4)
)
def test_own_weights_of_a_repeated_feature_add_up(documents):
    hashes, offsets = flat([[value for value, _ in one] for one in documents])
    weights = np.array([weight for one in documents for _, weight in one], np.float64)
    expected = [
        sum(weight for value, weight in one if value == distinct)
        for one in documents
        for distinct in sorted({value for value, _ in one})
    ]
    assert sum_weights(weights, hashes, offsets).tolist() == expected


@given(st.lists(WEIGHTS, min_size=2, max_size=20), st.randoms(use_true_random=False))
def test_own_weights_add_up_to_the_same_in_any_order(weights, randomness):
    shuffled = list(weights)
    randomness.shuffle(shuffled)
    hashes = np.full(len(weights), 7, np.uint64)
    offsets = np.array([0, len(weights)])
    first, second = (
        sum_weights(np.array(one, np.float64), hashes, offsets) for one in (weights, shuffled)
    )
    assert first.tolist() == second.tolist()


@given(
    st.lists(st.lists(st.lists(st.integers(0, 6), max_size=6), min_size=1, max_size=5), max_size=4)
)
def test_lines_with_a_feature_are_counted_within_each_document(documents):
    features = distinct_features(
        *flat([[one for line in lines for one in line] for lines in documents])
    )
    lines = distinct_features(*flat([line for one in documents for line in one]))
    limits = np.concatenate([[0], np.cumsum([len(one) for one in documents])]).astype(np.int64)
    found, num_lines = line_frequencies(features, lines, limits)
    expected = [
        (sum(one in line for line in document), sum(bool(line) for line in document))
        for document in documents
        for one in sorted({one for line in document for one in line})
    ]
    assert list(zip(found.tolist(), num_lines.tolist(), strict=True)) == expected


def test_features_of_few_documents_are_repeated_and_those_of_a_single_one_are_not():
    """Of 100 documents, 10 are the square root and 3 the fourth."""
    features = distinct_features(*flat([[7]]))
    times = {
        count: len(replicate_rare_features(features, np.array([count]), 100)[0])
        for count in (0, 1, 2, 3, 4, 10, 11, 100)
    }
    assert times == {0: 1, 1: 1, 2: 3, 3: 3, 4: 2, 10: 2, 11: 1, 100: 1}
