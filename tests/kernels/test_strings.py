"""Strings are hashed as the plain twin does, wherever they lie, and no byte outside is read."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from neardup.kernels import strings as kernel
from neardup.kernels.intrinsics import address_of
from reference.strings import hash_string

STRINGS = st.lists(
    st.one_of(
        st.binary(max_size=40), st.sampled_from([b"", b"\0", b"\0" * 8, b"a" * 16, b"a" * 17])
    )
)
JIT_IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
NUM_STRINGS = 2_000 if JIT_IS_OFF else 200_000


@njit
def hash_part(data, start, size, room):
    return kernel.hash_at(address_of(data) + start, size, room)


def hashes_of(strings: list[bytes]) -> list[int]:
    data = np.frombuffer(b"".join(strings), np.uint8)
    hashes = np.empty(len(strings), np.uint64)
    offsets = np.cumsum([0, *map(len, strings)])
    kernel.hash_strings(data, offsets, hashes)
    return hashes.tolist()


@given(STRINGS)
@example([])
@example([b"x" * size for size in range(70)])
@example([b"x" * size for size in range(70, 0, -1)])
def test_strings_hash_as_the_plain_twin_does(strings):
    assert hashes_of(strings) == [hash_string(one) for one in strings]


@pytest.mark.slow
@given(st.binary(min_size=1, max_size=40), st.integers(0, 9))
def test_a_hash_does_not_depend_on_what_is_before(string, room):
    for before in (b"\0", b"\xff"):
        data = np.frombuffer(before * room + string, np.uint8)
        for told in range(room + 1):
            assert int(hash_part(data, room, len(string), told)) == hash_string(string)


@pytest.mark.skipif(not JIT_IS_OFF, reason="the compiled load is not a call that can be watched")
def test_no_load_reaches_out_of_the_strings(monkeypatch):
    for size in range(70):
        data = np.frombuffer(b"a" * size + b"b" * 7, np.uint8)
        first = address_of(data)
        behind = address_of(data) + size

        def load(address, width, first=first, behind=behind):
            assert first <= address <= behind - width
            return np.uint64(int.from_bytes(bytes(width), "little"))

        monkeypatch.setattr(kernel, "load_at", lambda address, load=load: load(address, 8))
        monkeypatch.setattr(kernel, "load_half_at", lambda address, load=load: load(address, 4))
        monkeypatch.setattr(kernel, "load_byte_at", lambda address, load=load: load(address, 1))
        for offsets in (
            [0, size],
            list(range(size + 1)),
            [0, size // 2, size],
            [0, min(3, size), size],
        ):
            kernel.hash_strings(
                data[:size], np.array(offsets), np.empty(len(offsets) - 1, np.uint64)
            )


def assert_uniform(hashes: np.ndarray) -> None:
    """Say that all bits are one in half of the hashes, within five standard deviations, and none
    collide.
    """
    slack = 2.5 * np.sqrt(len(hashes))
    for bit in range(64):
        ones = int(((hashes >> np.uint64(bit)) & np.uint64(1)).sum())
        assert abs(ones - len(hashes) / 2) <= slack, bit
    # Two of 200,000 uniform 64-bit hashes are equal with a probability of 1.1e-9.
    assert len(np.unique(hashes)) == len(hashes)
    # Of the upper halves, n^2 / 2^33 pairs are equal on average; 4.7 of 200,000.
    expected = len(hashes) ** 2 / 2**33
    assert (
        len(hashes) - len(np.unique(hashes >> np.uint64(32)))
        <= expected + 5 * np.sqrt(expected) + 1
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ["{}", "x{}", "{:07}", "{:08}", "{:09}", "{:016}", "{:017}", "{:033}", "{}zzzzzzzzzzzz"]
)
def test_hashes_of_numbers_are_as_good_as_random(form):
    hashes = hashes_of([form.format(number).encode() for number in range(NUM_STRINGS)])
    assert_uniform(np.array(hashes, np.uint64))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 32, 33, 48, 49])
def test_a_bit_that_changes_turns_every_bit_of_the_hash_half_of_the_time(size):
    strings = np.random.default_rng(size).integers(
        0, 256, (250 if JIT_IS_OFF else 4000, size), np.uint8
    )
    before = np.array(hashes_of([one.tobytes() for one in strings]), np.uint64)
    for bit in range(0, 8 * size, 5):
        changed = strings.copy()
        changed[:, bit // 8] ^= 1 << bit % 8
        after = np.array(hashes_of([one.tobytes() for one in changed]), np.uint64)
        turned = np.unpackbits((before ^ after).view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
        # Of 4,000: 0.04 is five standard deviations; strings of one byte are 256, so few are seen
        # anew.
        distinct = min(len(strings), 256**size)
        assert np.abs(turned - 0.5).max() <= 5.5 * 0.5 / np.sqrt(distinct), bit


def test_lengths_count_where_bytes_are_zero():
    assert len(set(hashes_of([bytes(size) for size in range(1, 200)]))) == 199
