"""The kernels for datasketch's schemes give what whole numbers without end give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.compat.datasketch.schemes import SCHEMES
from neardup.kernels import minhash_datasketch as kernel
from reference import minhash_datasketch as reference

WORDS_32 = st.one_of(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 2**31, 2**32 - 1]))
WORDS_64 = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**61 - 2, 2**61 - 1, 2**61, 2**64 - 1])
)


@given(st.lists(WORDS_32, max_size=20))
def test_hashes_of_32_bits_are_mixed_as_the_reference_does(hashes):
    mixed = np.empty(len(hashes), np.uint32)
    kernel.mix(np.array(hashes, np.uint64), *kernel.BITS_32, mixed)
    assert mixed.tolist() == [reference.mix_32(x) for x in hashes]


@given(st.lists(WORDS_64, max_size=20))
def test_hashes_of_64_bits_are_mixed_as_the_reference_does(hashes):
    mixed = np.empty(len(hashes), np.uint64)
    kernel.mix(np.array(hashes, np.uint64), *kernel.BITS_64, mixed)
    assert mixed.tolist() == [reference.mix_64(x) for x in hashes]


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_signatures_are_those_of_the_reference(scheme, data):
    words = WORDS_32 if scheme == "affine32" else WORDS_64
    hashes = data.draw(st.lists(words, min_size=1, max_size=12))
    a, b = (data.draw(st.lists(words, min_size=5, max_size=5)) for _ in range(2))
    signature = SCHEMES[scheme].sign(np.array(hashes, np.uint64), (a, b))
    assert signature.tolist() == reference.sign(scheme, hashes, a, b)


@given(WORDS_64)
@example(2**61 - 1)
@example(2**62 - 2)
@example(2**64 - 1)
def test_the_remainder_by_the_prime_is_right_around_its_multiples(x):
    signature = np.empty(1, np.uint64)
    kernel.sign_mersenne(
        np.array([x], np.uint64), np.ones(1, np.uint64), np.zeros(1, np.uint64), signature
    )
    assert signature[0] == x % (2**61 - 1) % 2**32
