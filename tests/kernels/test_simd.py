"""Lanes do what their plain definitions say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from neardup.kernels.simd import LANES, load, raise_lanes, store
from reference.minhash import permute

VALUES = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**16, 2**31, 2**32 - 1, 2**32, 2**64 - 1])
)
ROWS = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).integers(0, 2**32, LANES + 3, np.uint32)
)


def raise_all(most, a, x, first):
    store(most, first, raise_lanes(load(most, first), load(a, first), x))


compiled_raise_all = njit(raise_all)


@given(ROWS, ROWS, VALUES, st.integers(0, 3))
def test_each_lane_is_raised_at_any_place_and_nothing_else_is_written(most, a, x, first):
    most[first::7] = 0
    expected = most.tolist()
    for i in range(first, first + LANES):
        word = x >> 32 if i - first < LANES // 2 else x % 2**32
        expected[i] = max(expected[i], 2**32 - 1 - permute(word, int(a[i])))
    for one in (raise_all, compiled_raise_all):
        written = most.copy()
        one(written, a, np.uint64(x), first)
        assert written.tolist() == expected
