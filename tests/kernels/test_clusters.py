"""Union-find equals the painting of clusters."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.decide.clusters import connect, roots
from reference import clusters as reference


@given(st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=25), st.integers(0, 25))
def test_every_member_finds_the_first_of_its_cluster(pairs, cut):
    parents = np.arange(15, dtype=np.uint32)
    for part in (pairs[:cut], pairs[cut:]):
        connect(parents, *(np.array([pair[side] for pair in part], np.uint32) for side in (0, 1)))
    assert roots(parents).tolist() == reference.first_members(15, pairs)


def test_a_long_chain_in_any_order_is_one_cluster():
    links = np.random.default_rng(3).permutation(299)
    parents = np.arange(300, dtype=np.uint32)
    connect(parents, (links + 1).astype(np.uint32), links.astype(np.uint32))
    before = parents.copy()
    assert not roots(parents).any()
    assert parents.tolist() == before.tolist()
