"""The bucket rule, against the same by hand."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.candidates.bands import Bands
from neardup.candidates.lookups import BandLookup
from neardup.candidates.sorted_members import Members, pair_members, propose
from neardup.features.described import Keys


@pytest.mark.parametrize("least_needed", [0, -1])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_pairs_of_a_bucket_do_not_depend_on_the_batches_it_arrives_in(most, least_needed):
    random_keys = np.random.default_rng(most)
    count = 200
    bucket = random_keys.integers(0, 30, count)
    position = np.arange(count)
    last = position + np.where(
        random_keys.random(count) < 0.3, random_keys.integers(0, 40, count), 0
    )
    needed = random_keys.integers(least_needed, 2, count)
    members = Members(bucket, position, last, np.ones(count, np.int64), needed).sort()

    def pairs(size: int) -> list[tuple[int, int]]:
        batches = (
            members.take(np.arange(start, min(count, start + size)))
            for start in range(0, count, size)
        )
        found = pair_members(batches, most, lambda left, right: np.ones(len(left), np.bool_))
        return sorted(
            (int(a), int(b)) for part in found for a, b in zip(part.left, part.right, strict=True)
        )

    expected = []
    for number in np.unique(bucket):
        listed = position[(bucket == number) & (needed >= 0)].tolist()
        for right in position[(bucket == number) & (needed != 0)].tolist():
            expected += [
                (left, right) for left in listed[:most] if left != right and left < last[right]
            ]
            expected += [(~left, right) for left in listed[most : most + 1] if left < last[right]]
    assert pairs(count) == pairs(7) == pairs(1) == sorted(expected)


@pytest.mark.parametrize("all_pairs", [False, True])
@pytest.mark.parametrize("most", [1, 3, 100])
def test_bands_propose_the_earliest_members_of_their_buckets(most, all_pairs):
    random = np.random.default_rng(most)
    count, order = 90, random.permutation(90).astype(np.uint32)
    values = random.integers(0, 40, (count, 3)).astype(np.uint64) << np.uint64(40)
    content = np.stack([random.integers(0, 60, count), np.zeros(count, np.int64)], axis=1).astype(
        np.uint64
    )
    featured = content[:, 0] % 9 > 0
    values = values[
        [content[:, 0].tolist().index(value) for value in content[:, 0]]
    ]  # copies have equal keys
    expected, left_out = set(), set()
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
    assert set(zip(*divmod(found.unlisted, 1 << 32), strict=True)) == left_out
