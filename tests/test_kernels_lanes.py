"""Lanes do what their plain definitions say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from neardup.kernels.lanes import LANES, load, lower, spread, store

VALUES = st.one_of(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 2**31, 2**32 - 1]))
ROWS = st.lists(VALUES, min_size=LANES + 3, max_size=LANES + 3).map(lambda values: np.array(values, np.uint32))


def lower_all(least, a, x, b, first, place):
    store(least, first, lower(load(least, first), load(a, first), spread(x, place), load(b, first)))


compiled_lower_all = njit(lower_all)


@given(ROWS, ROWS, ROWS, ROWS, st.integers(0, 3), st.integers(0, LANES + 2))
def test_each_lane_is_lowered_at_any_place_and_nothing_else_is_written(least, a, x, b, first, place):
    expected = least.tolist()
    for i in range(first, first + LANES):
        expected[i] = min(expected[i], (int(a[i]) * int(x[place]) + int(b[i])) % 2**32)
    for one in (lower_all, compiled_lower_all):
        written = least.copy()
        one(written, a, x, b, first, place)
        assert written.tolist() == expected
