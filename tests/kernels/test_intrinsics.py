"""The machine instructions do what their plain definitions say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from neardup.kernels.intrinsics import (
    address_of,
    count_ones,
    count_trailing_zeros,
    filled_bytes,
    fold_product,
    load_at,
    load_byte_at,
    load_half_at,
    load_u64,
    prefetch,
    store_u64,
)


@njit
def compiled_load(data, index):
    return load_u64(data, index)


@njit
def compiled_count(value):
    return count_trailing_zeros(value)


@njit
def compiled_ones(value):
    return count_ones(value)


@njit
def compiled_store(data, index, value):
    store_u64(data, index, value)


@njit
def compiled_filled(data, index):
    return filled_bytes(data, index)


@njit
def compiled_load_at(array, index):
    address = address_of(array) + index
    return load_at(address), load_half_at(address), load_byte_at(address)


@njit
def compiled_prefetch(array, index):
    prefetch(address_of(array) + index)


@njit
def compiled_fold(x, y):
    return fold_product(x, y)


@pytest.mark.slow
@given(st.binary(min_size=8, max_size=40), st.data())
def test_a_load_is_little_endian_at_any_place(content, data):
    index = data.draw(st.integers(0, len(content) - 8))
    expected = int.from_bytes(content[index : index + 8], "little")
    array = np.frombuffer(content, np.uint8)
    assert int(compiled_load(array, index)) == int(load_u64(array, index)) == expected
    address = address_of(array) + index
    found = load_at(address), load_half_at(address), load_byte_at(address)
    expected = expected, expected % 2**32, content[index]
    assert tuple(map(int, compiled_load_at(array, index))) == tuple(map(int, found)) == expected


@given(st.binary(min_size=8, max_size=40), st.integers(0, 2**64 - 1), st.data())
def test_a_store_is_little_endian_at_any_place_and_writes_nothing_else(content, value, data):
    index = data.draw(st.integers(0, len(content) - 8))
    expected = content[:index] + value.to_bytes(8, "little") + content[index + 8 :]
    for one in (store_u64, compiled_store):
        array = np.frombuffer(bytearray(content), np.uint8)
        one(array, index, np.uint64(value))
        assert array.tobytes() == expected


@given(st.lists(st.sampled_from([0, 0, 1, 128, 255]), min_size=64, max_size=80), st.data())
def test_bytes_that_are_filled_are_bits(values, data):
    index = data.draw(st.integers(0, len(values) - 64))
    expected = sum((value != 0) << i for i, value in enumerate(values[index : index + 64]))
    array = np.array(values, np.uint8)
    assert int(compiled_filled(array, index)) == int(filled_bytes(array, index)) == expected


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@example(2**64 - 1, 2**64 - 1)
@example(0, 5)
def test_the_halves_of_a_wide_product_are_folded(x, y):
    expected = (x * y) % 2**64 ^ (x * y) >> 64
    assert (
        int(compiled_fold(np.uint64(x), np.uint64(y)))
        == int(fold_product(np.uint64(x), np.uint64(y)))
        == expected
    )


@given(st.integers(0, 63), st.integers(0, 2**64 - 1))
@example(63, 0)
@example(0, 0)
def test_trailing_zeros_are_counted_up_to_63(zeros, above):
    value = ((above << zeros) | (1 << zeros)) & (2**64 - 1)
    assert compiled_count(np.uint64(value)) == count_trailing_zeros(np.uint64(value)) == zeros
    assert compiled_count(np.uint64(0)) == count_trailing_zeros(np.uint64(0)) == 64


@given(st.integers(0, 2**64 - 1))
@example(0)
@example(2**64 - 1)
def test_ones_are_counted(value):
    assert compiled_ones(np.uint64(value)) == count_ones(np.uint64(value)) == bin(value).count("1")


def test_to_fetch_ahead_changes_nothing_and_may_reach_behind_the_end():
    array = np.arange(8, dtype=np.uint8)
    for index in (0, 10**6):
        prefetch(address_of(array) + index)
        compiled_prefetch(array, index)
    assert array.tolist() == list(range(8))
