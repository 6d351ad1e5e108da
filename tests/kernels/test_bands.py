"""Buckets and copies equal those of dictionaries."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.candidates.bands import bits_for, pack_keys
from neardup.kernels import bands as kernel
from reference import bands as reference

# Spread over the upper bits, as keys are: packing drops the lower ones.
KEYS = st.sampled_from([value * 0x9E3779B97F4A7C15 % 2**64 for value in range(8)])


def packed_keys(keys: list[int], positions: list[int], num_positions: int) -> np.ndarray:
    return pack_keys(np.array(keys, np.uint64), np.array(positions, np.uint32), num_positions)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_packed_keys_rise_and_hold_every_position_once(keys):
    positions = list(range(len(keys)))
    packed = packed_keys(keys, positions, max(1, len(keys)))
    bits = bits_for(max(1, len(keys)))
    assert packed.tolist() == sorted(packed.tolist())
    assert sorted(value % 2**bits for value in packed.tolist()) == positions
    assert all(keys[value % 2**bits] >> bits == value >> bits for value in packed.tolist())


@given(st.lists(st.one_of(st.none(), KEYS), max_size=25), st.sampled_from([1, 2, 3, 100]))
@example([], 100)
@example([1], 100)
@example([2**64 - 1] * 3, 1)
@example([2**64 - 1] * 3, 2)
@example([2**64 - 1] * 3, 3)
def test_documents_that_share_a_key_share_a_bucket_of_the_earliest_and_one_more(
    keys, max_bucket_size
):
    positions = [position for position, key in enumerate(keys) if key is not None]
    packed = packed_keys([keys[place] for place in positions], positions, max(1, len(keys)))
    bits = bits_for(max(1, len(keys)))
    buckets = np.full(len(keys), kernel.NO_BUCKET, np.uint32)
    groups = reference.groups(
        [key if key is not None else f"none {i}" for i, key in enumerate(keys)]
    )
    members = np.zeros(len(packed), np.uint32)
    count = kernel.list_members(packed, bits, max_bucket_size, buckets, members)
    assert count == sum(min(len(group), max_bucket_size + 1) for group in groups)
    members = members[:count]
    grouped = {position for group in groups for position in group}
    assert {p for p in range(len(keys)) if buckets[p] == kernel.NO_BUCKET} == set(
        range(len(keys))
    ) - grouped
    taken = 0
    for group in groups:
        (first,) = {int(buckets[position]) for position in group}
        listed = members[first : first + min(len(group), max_bucket_size + 1)]
        assert (listed & ~kernel.LAST_MEMBER).tolist() == sorted(group)[: max_bucket_size + 1]
        assert [bool(one & kernel.LAST_MEMBER) for one in listed] == [False] * (len(listed) - 1) + [
            True
        ]
        taken += len(listed)
    assert taken == count


CONTENTS = st.tuples(st.sampled_from([0, 1 << 62, 2**64 - 1, (1 << 62) + 1]), st.integers(0, 2))


@given(st.lists(CONTENTS, min_size=1, max_size=25), st.randoms(use_true_random=False), st.data())
@example([(0, i % 20) for i in range(40)], None, None)  # more contents in a run than its first room
def test_copies_find_the_first_of_equal_content(contents, randomness, data):
    order = list(range(len(contents)))
    positions = order
    if data is not None:
        randomness.shuffle(order)
        positions = sorted(data.draw(st.sets(st.sampled_from(range(len(contents))))))
    content = np.array(contents, np.uint64)
    representative = np.arange(len(contents), dtype=np.uint32)
    packed = packed_keys(
        [contents[order[position]][0] for position in positions], positions, len(contents)
    )
    kernel.find_copies(
        packed, bits_for(len(contents)), content, np.array(order, np.uint32), representative
    )
    known = [contents[order[p]] if p in positions else ("none", p) for p in range(len(contents))]
    assert representative.tolist() == reference.first_places(known)
