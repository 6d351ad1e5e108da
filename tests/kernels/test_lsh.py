"""Band tables find what comparisons one by one find; small, for every mode of the compiler."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import neardup
from reference import lsh as reference

SIGNATURES = st.lists(
    st.lists(st.sampled_from([0, 1, 2**32 - 1]), min_size=5, max_size=5), max_size=8
)


def array(rows: list[list[int]]) -> np.ndarray:
    return np.array(rows, np.uint32).reshape(-1, 5)


@given(
    SIGNATURES,
    SIGNATURES,
    st.sampled_from([(1, 1), (2, 2), (5, 1), (1, 5)]),
    st.sampled_from([0.0, 0.4]),
)
def test_a_row_is_found_once_if_it_shares_bands(stored, asked, bands, least):
    index = neardup.LSHIndex(neardup.MinHash(num_bands=bands[0], rows_per_band=bands[1]), threads=1)
    index.add_many(range(len(stored)), array(stored))
    table = index.query_many(array(asked), min_similarity=least)
    found = list(
        zip(*(table[name].to_pylist() for name in ("query", "id", "similarity")), strict=True)
    )
    expected = [reference.query(dict(enumerate(stored)), one, *bands, least) for one in asked]
    assert found == [(number, *one) for number, answer in enumerate(expected) for one in answer]
