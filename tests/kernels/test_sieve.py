"""The sieve kernels decide as the oracle does, on sets and keys made up for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.candidates.bands import bits_for, pack_keys
from neardup.kernels import bands
from neardup.kernels import sieve as kernel
from neardup.kernels import sorted_sets as set_kernel
from neardup.kernels.sorted_sets import CONTAINMENT, COSINE, HAMMING, JACCARD
from reference import near as near_reference
from reference import sieve as reference
from reference.bands import first_places
from reference.hamming import distance

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


def sets_of(documents: list[reference.Document]) -> set_kernel.Sets:
    return arrays_of_sets([one.shingles for one in documents])


def arrays_of_sets(sets: list[frozenset]) -> set_kernel.Sets:
    """Return sets written by the kernel that the engine uses, sketches and all."""
    lengths = np.array([len(one) for one in sets], np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1].astype(np.int64)
    hashes = np.array([value for one in sets for value in one], np.uint64)
    written = np.empty(2 * len(hashes) + len(sets) + 1, np.uint64)
    set_starts = np.empty(len(sets), np.int64)
    sizes = np.empty(len(sets), np.uint32)
    set_kernel.write_sets(
        hashes, starts, starts + lengths, np.ones(len(sets), np.bool_), written, set_starts, sizes
    )
    return set_kernel.Sets(written, set_starts, sizes)


def order_of(documents: list[reference.Document]) -> kernel.Order:
    return order_of_texts([one.tokens if one.shingles else i for i, one in enumerate(documents)])


def order_of_texts(texts: list) -> kernel.Order:
    representative = first_places(texts)
    count = len(texts)
    return kernel.Order(
        np.arange(count, dtype=np.uint32),
        np.array(representative, np.uint32),
        np.zeros(count, np.uint8),
    )


def buckets_of(
    documents: list[reference.Document],
    order: kernel.Order,
    max_bucket_size: int,
    copies_are_members: bool,
) -> kernel.Buckets:
    count = len(documents)
    original = order.representative == np.arange(count)
    members = [
        i for i in range(count) if documents[i].shingles and (copies_are_members or original[i])
    ]
    first = []
    listed = []
    starts = []
    for band in range(NUM_BANDS):
        keys = np.array(
            [documents[i].asks[band][1] * 0x9E3779B97F4A7C15 % 2**64 for i in members], np.uint64
        )
        packed = pack_keys(keys, np.array(members, np.uint32), max(1, count))
        bits = bits_for(max(1, count))
        column = np.full(count, bands.NO_BUCKET, np.uint32)
        own = np.empty(len(packed), np.uint32)
        own = own[: bands.list_members(packed, bits, max_bucket_size, column, own)]
        first.append(column if copies_are_members else column[order.representative])
        starts.append(sum(len(one) for one in listed))
        listed.append(own)
    return kernel.Buckets(
        np.array(first).reshape(NUM_BANDS, count),
        np.concatenate(listed),
        np.array(starts, np.int64),
    )


def empty_found(capacity: int) -> kernel.Found:
    kinds = (np.uint32, np.uint32, np.float64, np.uint16, np.float64, np.uint8, np.uint8)
    return kernel.Found(*(np.empty(capacity, kind) for kind in kinds), np.zeros(3, np.int64))


def decisions_of(order: kernel.Order, found: kernel.Found) -> tuple[list[bool], np.ndarray]:
    """Return which positions are kept, and the counters, with the number of positions that buckets
    left out between.
    """
    return (order.kept > 0).tolist(), np.insert(found.counters, 2, np.count_nonzero(order.kept > 1))


def drain(found: kernel.Found) -> list[tuple[reference.Pair, bool]]:
    """Take out the pairs found so far, in their order, each with whether it removed its right
    document.
    """
    count = int(found.counters[0])
    found.counters[0] = 0
    columns = (found.left, found.right, found.similarity, found.exact, found.best)
    drained = [
        (reference.Pair(*values), bool(best))
        for *values, best in zip(*(column[:count].tolist() for column in columns), strict=True)
    ]
    assert [pair.right for pair, _ in drained] == sorted(pair.right for pair, _ in drained)
    return drained


def by_place(pairs: list[tuple[reference.Pair, bool]]) -> list[tuple[reference.Pair, bool]]:
    return sorted(pairs, key=lambda found: (found[0].right, found[0].left))


class Schedule(NamedTuple):
    """How the sieve passes: `step` positions at a time, each stretch measured `lead` stretches
    before its turn (0: not at all) with the least room that a stretch may have and `room` more
    pairs.
    """

    step: int
    lead: int = 0
    room: int = 0


def run_sieve(documents, rules: reference.Rules, all_pairs: bool, schedule: Schedule):
    """Run the kernel in the least room; return pairs in their order, kept, counters."""
    order = order_of(documents)
    sets = sets_of(documents)
    order.kept[:] = all_pairs
    buckets = buckets_of(documents, order, rules.max_bucket_size, all_pairs)
    kernel_rules = kernel.Rules(
        rules.threshold, JACCARD, rules.max_bucket_size, rules.num_against, all_pairs
    )
    passed = (order, kernel.Compared(sets, sets), buckets, kernel_rules)
    least = NUM_BANDS * rules.max_bucket_size + 2
    found = empty_found(least)
    pairs = []
    measured = []
    begins = range(0, len(documents), schedule.step)
    for number, begin in enumerate(begins):
        stop = min(len(documents), begin + schedule.step)
        for early in begins[len(measured) : number + max(1, schedule.lead)]:
            state = np.zeros(schedule.step, np.uint8)
            ends = np.empty(schedule.step, np.int64)
            floor = len(documents) if all_pairs else begin
            measured.append(
                kernel.Ahead(early, floor, state, ends, empty_found(least - 1 + schedule.room))
            )
            if schedule.lead:
                kernel.measure_ahead(
                    min(len(documents), early + schedule.step), *passed, measured[-1]
                )
        while begin < stop:
            reached = kernel.sieve(begin, stop, *passed, measured[number], found)
            assert begin < reached <= stop
            begin = reached
            pairs += drain(found)
        found.counters[1] += measured[number].found.counters[1]
    return pairs, *decisions_of(order, found)


def run_contained(
    documents,
    rules: reference.Rules,
    all_pairs: bool,
    num_samples: int,
    needed: list[int],
    step: int,
):
    """Run the kernel for containment, its postings grown as it asks."""
    order = order_of(documents)
    sets = sets_of(documents)
    kernel_rules = kernel.Rules(
        rules.threshold, CONTAINMENT, rules.max_bucket_size, rules.num_against, all_pairs
    )
    postings = kernel.make_postings(len(documents) * num_samples, 8)
    kernel.enter_samples(postings, sets, np.arange(len(documents), dtype=np.uint32), num_samples)
    found = empty_found(num_samples * rules.max_bucket_size + 4)
    probes = kernel.Probes(
        needed=np.array(needed, np.int64),
        queries=np.ones(len(documents), np.bool_),
        hits=np.zeros(len(documents), np.int32),
    )
    pairs = []
    begin = 0
    while begin < len(documents):
        stop = min(len(documents), begin + step)
        reached = kernel.sieve_contained(
            begin,
            stop,
            order,
            kernel.Compared(sets, sets),
            postings,
            probes,
            kernel_rules,
            found,
        )
        assert not probes.hits.any()
        pairs += drain(found)
        if reached == begin:
            postings = kernel.grow(postings)
        begin = reached
    return by_place(pairs), *decisions_of(order, found)


def assert_decides_as_the_oracle(pairs, kept, documents, rules) -> None:
    expected = reference.sieve(documents, rules)
    assert [pair for pair, _ in pairs] == expected.pairs
    assert {pair.right: pair for pair, best in pairs if best} == expected.removals
    assert kept == [int(number not in expected.removals) for number in range(len(documents))]


SCHEDULES = st.builds(Schedule, st.integers(1, 15), st.integers(0, 4), st.sampled_from([0, 1, 100]))


@given(DOCUMENTS, THRESHOLDS, st.sampled_from([1, 2, 3, 20]), st.integers(0, 4), SCHEDULES)
@example(
    [(0, {1}), (1, {1}), (0, {1})], 1.0, 20, 2, Schedule(15)
)  # a copy of an earlier one that resembles another
def test_the_sieve_decides_as_the_oracle(
    documents, threshold, max_bucket_size, num_against, schedule
):
    documents = made_up(documents)
    rules = reference.Rules(threshold, "jaccard", max_bucket_size, min(num_against, len(documents)))
    pairs, kept, counters = run_sieve(documents, rules, False, schedule)
    assert_decides_as_the_oracle(by_place(pairs), kept, documents, rules)
    assert counters[2] == reference.sieve(documents, rules).left_out


@given(DOCUMENTS, THRESHOLDS, st.sampled_from([1, 2, 20]), SCHEDULES)
def test_all_pairs_are_those_of_the_oracle(documents, threshold, max_bucket_size, schedule):
    documents = made_up(documents)
    rules = reference.Rules(threshold, "jaccard", max_bucket_size)
    pairs, kept, _ = run_sieve(documents, rules, True, schedule)
    assert [pair for pair, _ in by_place(pairs)] == reference.find_pairs(documents, rules)
    assert not any(best for _, best in pairs)
    assert all(kept)


FEW = st.lists(
    st.tuples(st.integers(0, 2), st.sets(st.integers(0, 6), min_size=2)), min_size=2, max_size=20
)
MANY = FEW.flatmap(
    lambda few: st.lists(st.sampled_from(few), min_size=20, max_size=60)
)  # most of them copies


@given(MANY, THRESHOLDS, st.sampled_from([1, 3, 20]), st.integers(0, 30), SCHEDULES, st.booleans())
@example([(0, {i % 6}) for i in range(60)] * 2, 0.5, 20, 0, Schedule(7, 3, 9), True)
def test_what_is_measured_ahead_changes_neither_pairs_nor_their_order_nor_what_is_counted(
    documents, threshold, max_bucket_size, num_against, schedule, all_pairs
):
    documents = made_up(documents)
    rules = reference.Rules(
        threshold, "jaccard", max_bucket_size, 0 if all_pairs else min(num_against, len(documents))
    )
    pairs, kept, counters = run_sieve(documents, rules, all_pairs, schedule)
    one_by_one = run_sieve(documents, rules, all_pairs, Schedule(len(documents)))
    assert (pairs, kept, counters.tolist()) == (
        one_by_one[0],
        one_by_one[1],
        one_by_one[2].tolist(),
    )


@given(
    DOCUMENTS,
    THRESHOLDS,
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([1, 2, 20]),
    st.integers(0, 4),
    st.integers(1, 15),
    st.booleans(),
)
def test_containment_decides_as_the_oracle(
    documents, threshold, num_samples, hits, max_bucket_size, num_against, step, all_pairs
):
    # From 1: a hash of 0, of which 2^64 texts have one, is never sampled.
    shifted = made_up([(text, {value + 1 for value in shingles}) for text, shingles in documents])
    needed = [1] + [min(hits, size) for size in range(1, num_samples + 1)]
    sampled = [
        one._replace(
            asks=(sample := tuple(sorted(one.shingles)[:num_samples])),
            listed=tuple(one.shingles),
            needed=needed[len(sample)],
        )
        for one in shifted
    ]
    against = 0 if all_pairs else min(num_against, len(sampled))
    rules = reference.Rules(threshold, "containment", max_bucket_size, against)
    pairs, kept, counters = run_contained(sampled, rules, all_pairs, num_samples, needed, step)
    if all_pairs:
        assert [pair for pair, _ in pairs] == reference.find_pairs(sampled, rules)
    else:
        assert_decides_as_the_oracle(pairs, kept, sampled, rules)
        assert counters[2] == reference.sieve(sampled, rules).left_out


def measured_by_kernel(sets: set_kernel.Sets, measure: int, threshold: float) -> float:
    """Measure the second set against the first, as the sieve does."""
    if not set_kernel.may_reach(sets, 1, 0, measure, threshold):
        return -1.0
    return set_kernel.similarity_of_sets(sets, 1, 0, measure, threshold, 0)


CODES = {"jaccard": JACCARD, "containment": CONTAINMENT, "cosine": COSINE}


@pytest.mark.parametrize(
    "threshold",
    [
        0.8,
        *(pytest.param(t, marks=pytest.mark.slow) for t in (1 / 3, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)),
    ],
)
def test_the_shortcuts_of_the_comparison_lose_no_pair_that_just_reaches_the_threshold(
    threshold, pytestconfig
):
    """Sizes up to 40 with every overlap: more steps than the 32 between two checks."""
    sizes = range(1, 41, 3 if pytestconfig.getoption("--thorough") else 6)
    for left in sizes:
        for right in sizes:
            for shared in range(min(left, right) + 1):
                sets = [
                    set(range(shared)) | {100 + i for i in range(left - shared)},
                    set(range(shared)) | {200 + i for i in range(right - shared)},
                ]
                documents = [
                    reference.Document((str(i),), frozenset(one), (), ())
                    for i, one in enumerate(sets)
                ]
                for measure, code in CODES.items():
                    exact = reference.measure(
                        documents[1], documents[0], reference.Rules(threshold, measure)
                    )
                    measured = measured_by_kernel(sets_of(documents), code, threshold)
                    assert (measured >= threshold) == (exact >= threshold)
                    assert measured == exact or exact < threshold


def test_a_bound_that_is_met_is_counted_and_still_sound():
    """Ten unrelated documents in one bucket that lists two: those that come later meet the
    bound.
    """
    key = ((0, 0), (1, 0), (2, 0))
    documents = [
        reference.Document((str(i),), frozenset({10 * i, 10 * i + 1}), key, key) for i in range(10)
    ]
    documents.append(documents[0]._replace(tokens=("copy of the set",)))
    documents.append(documents[9]._replace(tokens=("copy of a set that is not listed",)))
    pairs, kept, counters = run_sieve(
        documents, reference.Rules(0.8, "jaccard", 2), False, Schedule(20)
    )
    assert [pair for pair, _ in pairs] == [reference.Pair(0, 10, 1.0, False)]
    assert kept == [1] * 10 + [0, 1]
    assert counters[2] == 8  # the fourth to the tenth, and the last one


# Fingerprints: a text number, a set, and a fingerprint of three bits, of which many are equal or
# near.
FINGERPRINTED = st.lists(
    st.tuples(st.integers(0, 2), st.sets(st.integers(0, 4), max_size=3), st.integers(0, 7)),
    max_size=14,
)


def with_fingerprints(documents: list[tuple[int, set[int], int]]) -> list[near_reference.Document]:
    """Return documents of which equal texts have equal sets and fingerprints."""
    return [
        near_reference.Document((f"{text} {sorted(features)} {value}",), frozenset(features), value)
        for text, features, value in documents
    ]


def neighbours_of(documents: list[near_reference.Document], max_distance: int) -> kernel.Neighbours:
    """Return each fingerprint, the lowest first, with all others that are near."""
    values = sorted({one.fingerprint for one in documents if one.features})
    node = [values.index(one.fingerprint) if one.features else kernel.NO_NODE for one in documents]
    near = [
        [j for j in range(len(values)) if j != i and distance(values[i], values[j]) <= max_distance]
        for i in range(len(values))
    ]
    distances = [distance(values[i], values[j]) for i, others in enumerate(near) for j in others]
    starts = np.concatenate([[0], np.cumsum([len(others) for others in near])]).astype(np.int64)
    others = np.array([j for others in near for j in others], np.uint32)
    return kernel.Neighbours(
        np.array(node, np.uint32), starts, others, np.array(distances, np.uint8)
    )


def empty_lists(num_nodes: int, num_positions: int) -> kernel.Listed:
    first, last, after = (
        np.full(size, kernel.NONE, np.int64) for size in (num_nodes, num_nodes, num_positions)
    )
    return kernel.Listed(first, last, np.zeros(num_nodes, np.uint32), after)


def run_near(documents, rules: near_reference.Rules, all_pairs: bool, step: int):
    """Run the kernel `step` positions at a time in the least room, doubled when it gets nowhere."""
    order = order_of_texts([one.tokens if one.features else i for i, one in enumerate(documents)])
    sets = arrays_of_sets([one.features for one in documents])
    near = neighbours_of(documents, rules.max_distance)
    measure = HAMMING if rules.threshold is None else JACCARD
    kernel_rules = kernel.Rules(
        rules.threshold or 0.0, measure, rules.max_bucket_size, rules.num_against, all_pairs, 64
    )
    listed = empty_lists(len(near.starts) - 1, len(documents))
    found = empty_found(2)
    pairs = []
    removals = {}
    begin = 0
    while begin < len(documents):
        stop = min(len(documents), begin + step)
        reached = kernel.sieve_near(begin, stop, order, sets, near, listed, kernel_rules, found)
        for place in range(int(found.counters[0])):
            alike = None if rules.threshold is None else float(found.similarity[place])
            pair = near_reference.Pair(
                int(found.left[place]),
                int(found.right[place]),
                int(found.distance[place]),
                alike,
                bool(found.exact[place]),
            )
            pairs.append(pair)
            if found.best[place]:
                removals[pair.right] = pair
        found.counters[0] = 0
        if reached == begin:
            assert len(found.left) < 2 * (len(documents) + 2), (
                "room for all documents is enough for one of them"
            )
            found = empty_found(2 * len(found.left))._replace(counters=found.counters)
        begin = reached
    return pairs, removals, *decisions_of(order, found)


@given(
    FINGERPRINTED,
    st.integers(0, 3),
    st.sampled_from([None, 0.3, 0.5, 1.0]),
    st.sampled_from([1, 2, 20]),
    st.integers(0, 4),
    st.integers(1, 15),
)
@example(
    [(0, {1}, 0), (1, {1}, 0), (0, {1}, 0)], 0, 1.0, 20, 2, 15
)  # a copy of an earlier document
@example(
    [(i, {i}, 0) for i in range(12)], 0, 0.5, 20, 0, 15
)  # one list of all documents, none of them alike
@example([(i, {i}, 0) for i in range(12)], 0, 0.5, 3, 0, 15)  # and one that is full
def test_near_fingerprints_are_decided_as_the_oracle_does(
    documents, reach, threshold, max_bucket_size, num_against, step
):
    documents = with_fingerprints(documents)
    rules = near_reference.Rules(
        reach, threshold, max_bucket_size, min(num_against, len(documents))
    )
    pairs, removals, kept, counters = run_near(documents, rules, False, step)
    expected = near_reference.sieve(documents, rules)
    assert sorted(pairs) == sorted(expected.pairs)
    assert removals == expected.removals
    assert kept == [int(number not in expected.removals) for number in range(len(documents))]
    assert counters[2:].tolist() == [expected.full, expected.collisions]


@given(
    FINGERPRINTED,
    st.integers(0, 3),
    st.sampled_from([None, 0.3, 1.0]),
    st.sampled_from([1, 2, 20]),
    st.integers(1, 15),
)
@example([(0, {1}, 0)] * 13, 3, None, 20, 15)  # the last finds twelve
def test_all_pairs_of_near_fingerprints_are_those_of_the_oracle(
    documents, reach, threshold, max_bucket_size, step
):
    documents = with_fingerprints(documents)
    rules = near_reference.Rules(reach, threshold, max_bucket_size)
    pairs, removals, kept, _ = run_near(documents, rules, True, step)
    assert sorted(pairs) == sorted(near_reference.find_pairs(documents, rules))
    assert not removals
    assert all(kept)


def test_documents_that_a_full_list_leaves_out_ask_for_no_room():
    """A thousand documents of one fingerprint, unlike each other, in a list of two."""
    documents = with_fingerprints([(i, {i}, 0) for i in range(1000)])
    order = order_of_texts([one.tokens for one in documents])
    sets = arrays_of_sets([one.features for one in documents])
    near = neighbours_of(documents, 0)
    rules = kernel.Rules(0.5, JACCARD, 2, 0, False, 64)
    found = empty_found(4)
    assert kernel.sieve_near(0, 1000, order, sets, near, empty_lists(1, 1000), rules, found) == 1000
    assert decisions_of(order, found)[1].tolist() == [0, 1 + 2 * 998, 997, 1 + 2 * 998]
