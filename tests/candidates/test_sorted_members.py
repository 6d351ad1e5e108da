"""The bucket rule, against the same by hand."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.candidates.sorted_members import Members, pair_members


@pytest.mark.parametrize("least_needed", [0, -1])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_pairs_of_a_bucket_do_not_depend_on_the_batches_it_arrives_in(most, least_needed):
    random_keys = np.random.default_rng(most)
    count = 200
    bucket = random_keys.integers(0, 30, count)
    position = np.arange(count)
    last = position + np.where(random_keys.random(count) < 0.3, random_keys.integers(0, 40, count), 0)
    needed = random_keys.integers(least_needed, 2, count)
    members = Members(bucket, position, last, np.ones(count, np.int64), needed).sort()

    def pairs(size: int) -> list[tuple[int, int]]:
        batches = (members.take(np.arange(start, min(count, start + size))) for start in range(0, count, size))
        found = pair_members(batches, most, lambda left, right: np.ones(len(left), np.bool_))
        return sorted((int(a), int(b)) for part in found for a, b in zip(part.left, part.right, strict=True))

    expected = []
    for number in np.unique(bucket):
        listed = position[(bucket == number) & (needed >= 0)].tolist()
        for right in position[(bucket == number) & (needed != 0)].tolist():
            expected += [(left, right) for left in listed[:most] if left != right and left < last[right]]
            expected += [(~left, right) for left in listed[most : most + 1] if left < last[right]]
    assert pairs(count) == pairs(7) == pairs(1) == sorted(expected)
