"""Union-find equals the painting of clusters."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.decide.clusters import first_connected, first_members, number_ends
from reference import clusters as reference


@given(st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=25))
def test_every_member_finds_the_first_of_its_cluster(pairs):
    ends = (np.array([pair[side] for pair in pairs], np.uint32) for side in (0, 1))
    assert first_members(15, *ends).tolist() == reference.first_members(15, pairs)


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 9)), max_size=25))
def test_numbers_of_any_size_are_connected_as_their_ranks(pairs):
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    ends = sorted({end for pair in pairs for end in pair})
    numbered = [(ends.index(first), ends.index(second)) for first, second in pairs]
    found = number_ends(left, right)
    assert found.ends.tolist() == ends
    assert list(zip(found.left.tolist(), found.right.tolist(), strict=True)) == numbered
    connected, firsts = first_connected(left, right)
    assert connected.tolist() == ends
    members = reference.first_members(len(ends), numbered)
    assert firsts.tolist() == [ends[member] for member in members]


def test_a_long_chain_in_any_order_is_one_cluster():
    links = np.random.default_rng(3).permutation(299)
    assert not first_members(300, (links + 1).astype(np.uint32), links.astype(np.uint32)).any()
