"""Weighted signatures are those of the reference."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.fingerprints.minhash import sign_weighted
from reference import weighted_minhash as reference

WEIGHTS = st.one_of(
    st.just(0.0), st.sampled_from([0.5, 1.0, 2.0, 1e-100, 1e100]), st.floats(0.01, 100)
)
SETS = st.lists(st.dictionaries(st.integers(0, 2**64 - 1), WEIGHTS, max_size=4), max_size=3)


@given(SETS, st.integers(1, 12), st.integers(0, 2**32 - 1))
@example([{}, {5: 0.0}, {0: 1.0, 2**64 - 1: 3.0}], 7, 0)
def test_weighted_signatures_are_those_of_the_reference(sets, num_hashes, seed):
    hashes = np.array([feature for one in sets for feature in one], np.uint64)
    weights = np.array([weight for one in sets for weight in one.values()], np.float64)
    offsets = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    rows = sign_weighted(hashes, weights, offsets, num_hashes, seed)
    assert rows.tolist() == [reference.sign(one, num_hashes, seed) for one in sets]


def test_the_greater_of_two_sets_keeps_what_either_keeps():
    """A place of the union, by the greater weight, is that of one of the two sets."""
    rng = np.random.default_rng(1)
    hashes = np.tile(rng.integers(0, 2**64, 20, dtype=np.uint64), 3)
    left = rng.gamma(1, 1, 20)
    right = rng.gamma(1, 1, 20)
    weights = np.concatenate([left, right, np.maximum(left, right)])
    rows = sign_weighted(hashes, weights, np.array([0, 20, 40, 60]), 64, 3)
    assert ((rows[2] == rows[0]) | (rows[2] == rows[1])).all()
