"""The bucket rule, against the same by hand."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.candidates.bands import Bands
from neardup.candidates.lookups import BandLookup
from neardup.candidates.sorted_members import Members, pair_members, propose
from neardup.features.described import Keys


@pytest.mark.parametrize("lists_all", [True, False])
@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("pairs_at_once", [1, 1 << 18], ids=["one pair", "many pairs"])
def test_pairs_of_a_bucket_do_not_depend_on_the_batches_it_arrives_in(
    pairs_at_once, most, lists_all, monkeypatch
):
    monkeypatch.setattr("neardup.candidates.sorted_members._PAIRS_AT_ONCE", pairs_at_once)
    random_keys = np.random.default_rng(most)
    count = 200
    bucket = random_keys.integers(0, 30, count)
    position = np.arange(count)
    last = position + np.where(
        random_keys.random(count) < 0.3, random_keys.integers(0, 40, count), 0
    )
    listed = random_keys.random(count) < (1 if lists_all else 0.6)
    queries = ~listed | (random_keys.random(count) < 0.5)
    ones = np.ones(count, np.int64)
    members = Members(
        bucket=bucket,
        position=position,
        last=last,
        size=ones,
        needed=ones,
        listed=listed,
        queries=queries,
    ).sort()

    def pairs(size: int) -> list[tuple[bool, int, int]]:
        batches = (
            members.take(np.arange(start, min(count, start + size)))
            for start in range(0, count, size)
        )
        found = pair_members(batches, most, lambda left, right: np.ones(len(left), np.bool_))
        return sorted(
            (part.listed, int(left), int(right))
            for part in found
            for left, right in zip(part.left, part.right, strict=True)
        )

    expected = []
    for number in np.unique(bucket):
        members_listed = position[(bucket == number) & listed].tolist()
        for right in position[(bucket == number) & queries].tolist():
            expected += [
                (True, left, right)
                for left in members_listed[:most]
                if left != right and left < last[right]
            ]
            expected += [
                (False, left, right)
                for left in members_listed[most : most + 1]
                if left < last[right]
            ]
    assert pairs(count) == pairs(7) == pairs(1) == sorted(expected)


@pytest.mark.parametrize("all_pairs", [False, True])
@pytest.mark.parametrize("most", [1, 3, 100])
def test_bands_propose_the_earliest_members_of_their_buckets(most, all_pairs):
    random = np.random.default_rng(most)
    count = 90
    order = random.permutation(90).astype(np.uint32)
    values = random.integers(0, 40, (count, 3)).astype(np.uint64) << np.uint64(40)
    content = np.stack([random.integers(0, 60, count), np.zeros(count, np.int64)], axis=1).astype(
        np.uint64
    )
    featured = content[:, 0] % 9 > 0
    values = values[
        [content[:, 0].tolist().index(value) for value in content[:, 0]]
    ]  # copies have equal keys
    expected = set()
    left_out = set()
    first = {}
    for position, document in enumerate(order):
        if featured[document]:
            first.setdefault(int(content[document, 0]), position)
    for position, document in enumerate(order):
        for band in range(3 if featured[document] else 0):
            members = [
                other
                for other in range(count)
                if featured[order[other]]
                and values[order[other], band] == values[document, band]
                and (all_pairs or first[int(content[order[other], 0])] == other)
            ]
            itself = position if all_pairs else first[int(content[document, 0])]  # copies are known
            expected |= {
                (other, position)
                for other in members[:most]
                if other < position and other != itself
            }
            left_out |= {
                (position, other) for other in members[most : most + 1] if other < position
            }
    found = propose(
        BandLookup(Bands(3, 1)), Keys(values, content, featured), order, most, all_pairs=all_pairs
    )
    assert set(zip(found.left.tolist(), found.right.tolist(), strict=True)) == expected
    unlisted = found.unlisted
    assert set(zip(unlisted.document.tolist(), unlisted.member.tolist(), strict=True)) == left_out
