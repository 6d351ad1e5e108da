"""The sieve kernels decide as the oracle does, on sets and keys made up for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.candidates.bands import bits_for, pack_keys
from neardup.kernels import bands
from neardup.kernels import sieve as kernel
from neardup.kernels import sieve_arrays as arrays
from reference import sieve as reference
from reference.bands import first_places

# A document: a number that stands for its text, its shingles, and a key in each of three bands.
DOCUMENT = st.tuples(st.integers(0, 5), st.sets(st.integers(0, 6), max_size=6))
DOCUMENTS = st.lists(DOCUMENT, max_size=14)
THRESHOLDS = st.sampled_from([0.3, 0.5, 2 / 3, 0.8, 1.0])
NUM_BANDS = 3


def made_up(documents: list[tuple[int, set[int]]]) -> list[reference.Document]:
    """Return documents of which equal texts have equal sets and keys."""
    result = []
    for text, shingles in documents:
        keys = tuple((band, sum(shingles) % (band + 2)) for band in range(NUM_BANDS))
        tokens = (f"{text} {sorted(shingles)}",)
        result.append(reference.Document(tokens, frozenset(shingles), keys, keys))
    return result


def sets_of(documents: list[reference.Document]) -> arrays.Sets:
    sizes = np.array([len(one.shingles) for one in documents], np.uint32)
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)
    return arrays.Sets(np.array([v for one in documents for v in sorted(one.shingles)], np.uint64), starts, sizes)


def order_of(documents: list[reference.Document]) -> arrays.Order:
    representative = first_places([one.tokens if one.shingles else i for i, one in enumerate(documents)])
    count = len(documents)
    return arrays.Order(
        np.arange(count, dtype=np.uint32), np.array(representative, np.uint32), np.zeros(count, np.uint8)
    )


def buckets_of(documents: list[reference.Document], order: arrays.Order, copies_have_slots: bool) -> arrays.Buckets:
    count = len(documents)
    original = order.representative == np.arange(count)
    members = [i for i in range(count) if documents[i].shingles and (copies_have_slots or original[i])]
    first, slots, starts = [], [], []
    for band in range(NUM_BANDS):
        keys = np.array([documents[i].asks[band][1] * 0x9E3779B97F4A7C15 % 2**64 for i in members], np.uint64)
        packed = pack_keys(keys, np.array(members, np.uint32), max(1, count))
        column = np.full(count, bands.NO_BUCKET, np.uint32)
        own = np.empty(bands.assign_buckets(packed, bits_for(max(1, count)), column), np.uint32)
        bands.close_buckets(column, own)
        first.append(column[order.representative] if not copies_have_slots else column)
        starts.append(sum(len(one) for one in slots))
        slots.append(own)
    return arrays.Buckets(np.array(first).reshape(NUM_BANDS, count), np.concatenate(slots), np.array(starts, np.int64))


def empty_found(capacity: int) -> arrays.Found:
    kinds = (np.uint32, np.uint32, np.float64, np.uint16, np.uint8, np.uint8)
    return arrays.Found(*(np.empty(capacity, kind) for kind in kinds), np.zeros(4, np.int64))


def drain(found: arrays.Found) -> list[tuple[reference.Pair, bool]]:
    """Take out the pairs found so far, each with whether it removed its right document."""
    count = int(found.counters[0])
    found.counters[0] = 0
    columns = (found.left, found.right, found.similarity, found.exact, found.best)
    return [
        (reference.Pair(*values), bool(best))
        for *values, best in zip(*(column[:count].tolist() for column in columns), strict=True)
    ]


def run_sieve(documents, rules: reference.Rules, all_pairs: bool, step: int):
    """Run the kernel `step` positions at a time in the least room; return pairs, kept, counters."""
    order, sets = order_of(documents), sets_of(documents)
    buckets = buckets_of(documents, order, all_pairs)
    kernel_rules = arrays.Rules(rules.threshold, arrays.JACCARD, rules.max_bucket, rules.num_against, all_pairs)
    found = empty_found(NUM_BANDS * rules.max_bucket + 2)
    pairs, begin = [], 0
    while begin < len(documents):
        stop = min(len(documents), begin + step)
        part = buckets._replace(first=np.ascontiguousarray(buckets.first[:, begin:stop]))
        reached = kernel.sieve(begin, stop, order, sets, part, kernel_rules, found)
        assert begin < reached <= stop
        begin = reached
        pairs += drain(found)
    return pairs, order.kept.tolist(), found.counters


def run_contained(documents, rules: reference.Rules, all_pairs: bool, num_samples: int, needed: list[int], step: int):
    """Run the kernel for containment, its postings grown as it asks."""
    order, sets = order_of(documents), sets_of(documents)
    kernel_rules = arrays.Rules(rules.threshold, arrays.CONTAINMENT, rules.max_bucket, rules.num_against, all_pairs)
    postings = arrays.make_postings(len(documents) * num_samples, 8)
    kernel.enter_samples(postings, sets, np.arange(len(documents), dtype=np.uint32), num_samples)
    found, hits = empty_found(num_samples * rules.max_bucket + 4), np.zeros(len(documents), np.int32)
    pairs, begin = [], 0
    while begin < len(documents):
        span = (begin, min(len(documents), begin + step))
        reached = kernel.sieve_contained(
            span, order, sets, postings, np.array(needed, np.int64), hits, kernel_rules, found
        )
        assert not hits.any()
        pairs += drain(found)
        if reached == begin:
            postings = arrays.grow(postings)
        begin = reached
    return pairs, order.kept.tolist(), found.counters


def assert_decides_as_the_oracle(pairs, kept, documents, rules) -> None:
    expected = reference.sieve(documents, rules)
    assert [pair for pair, _ in pairs] == expected.pairs
    assert {pair.right: pair for pair, best in pairs if best} == expected.removals
    assert kept == [int(number not in expected.removals) for number in range(len(documents))]


@given(DOCUMENTS, THRESHOLDS, st.sampled_from([1, 2, 3, 20]), st.integers(0, 4), st.integers(1, 15))
@example([(0, {1}), (1, {1}), (0, {1})], 1.0, 20, 2, 15)  # a copy of an earlier document that resembles another
def test_the_sieve_decides_as_the_oracle(documents, threshold, max_bucket, num_against, step):
    documents = made_up(documents)
    rules = reference.Rules(threshold, "jaccard", max_bucket, min(num_against, len(documents)))
    pairs, kept, counters = run_sieve(documents, rules, False, step)
    assert_decides_as_the_oracle(pairs, kept, documents, rules)
    assert counters[2] == reference.count_full_buckets(documents, rules)


@given(DOCUMENTS, THRESHOLDS, st.sampled_from([1, 2, 20]), st.integers(1, 15))
def test_all_pairs_are_those_of_the_oracle(documents, threshold, max_bucket, step):
    documents = made_up(documents)
    rules = reference.Rules(threshold, "jaccard", max_bucket)
    pairs, kept, _ = run_sieve(documents, rules, True, step)
    assert [pair for pair, _ in pairs] == reference.find_pairs(documents, rules)
    assert not any(best for _, best in pairs)
    assert all(kept)


@given(
    DOCUMENTS, THRESHOLDS, st.integers(1, 4), st.integers(1, 3), st.integers(0, 4), st.integers(1, 15), st.booleans()
)
def test_containment_decides_as_the_oracle(documents, threshold, num_samples, hits, num_against, step, all_pairs):
    # From 1: a hash of 0, of which 2^64 texts have one, is never sampled.
    shifted = made_up([(text, {value + 1 for value in shingles}) for text, shingles in documents])
    needed = [1] + [min(hits, size) for size in range(1, num_samples + 1)]
    sampled = [
        one._replace(asks=(sample := tuple(sorted(one.shingles)[:num_samples])), listed=tuple(one.shingles),
                     needed=needed[len(sample)])
        for one in shifted
    ]  # fmt: skip
    rules = reference.Rules(threshold, "containment", 20, 0 if all_pairs else min(num_against, len(sampled)))
    pairs, kept, counters = run_contained(sampled, rules, all_pairs, num_samples, needed, step)
    if all_pairs:
        assert [pair for pair, _ in pairs] == reference.find_pairs(sampled, rules)
    else:
        assert_decides_as_the_oracle(pairs, kept, sampled, rules)
    assert counters[2] == 0


@pytest.mark.parametrize("threshold", [0.1, 0.3, 1 / 3, 0.5, 0.7, 0.8, 0.9, 1.0])
def test_the_shortcuts_of_the_comparison_lose_no_pair_that_just_reaches_the_threshold(threshold):
    """All sizes up to 40 with every overlap: more steps than the 32 between two checks."""
    for left in range(1, 41, 3):
        for right in range(1, 41, 3):
            for shared in range(min(left, right) + 1):
                sets = [set(range(shared)) | {100 + i for i in range(left - shared)},
                        set(range(shared)) | {200 + i for i in range(right - shared)}]  # fmt: skip
                documents = [reference.Document((str(i),), frozenset(one), (), ()) for i, one in enumerate(sets)]
                for measure, code in (("jaccard", arrays.JACCARD), ("containment", arrays.CONTAINMENT)):
                    exact = reference.measure(documents[1], documents[0], reference.Rules(threshold, measure))
                    rules = arrays.Rules(threshold, code, 1, 0, False)
                    measured = kernel._similarity(sets_of(documents), 1, 0, rules)
                    assert (measured >= threshold) == (exact >= threshold)
                    assert measured == exact or exact < threshold


def test_a_bound_that_is_met_is_counted_and_still_sound():
    """Ten unrelated documents in one bucket that lists two: those that come later meet the bound."""
    key = ((0, 0), (1, 0), (2, 0))
    documents = [reference.Document((str(i),), frozenset({10 * i, 10 * i + 1}), key, key) for i in range(10)]
    documents.append(documents[0]._replace(tokens=("copy of the set",)))
    documents.append(documents[9]._replace(tokens=("copy of a set that is not listed",)))
    pairs, kept, counters = run_sieve(documents, reference.Rules(0.8, "jaccard", 2), False, 20)
    assert [pair for pair, _ in pairs] == [reference.Pair(0, 10, 1.0, False)]
    assert kept == [1] * 10 + [0, 1]
    assert counters[2] == 10
