"""Sign a set by the two permutation families of datasketch that are not of 32 bits."""

from __future__ import annotations

import numpy as np
from numba import njit

U64 = np.uint64
_MERSENNE, _LOW_32 = U64((1 << 61) - 1), U64(0xFFFFFFFF)


@njit(nogil=True, cache=True)
def sign_affine64(hashes, multipliers, addends, signature):
    """Fill signature[i] with the least (a_i x + b_i) mod 2^64; all arrays uint64. No hashes: all ones."""
    for row in range(len(multipliers)):
        a, b = multipliers[row], addends[row]
        least = U64(0xFFFFFFFFFFFFFFFF)
        for i in range(len(hashes)):
            least = min(least, a * hashes[i] + b)
        signature[row] = least


@njit(nogil=True, cache=True)
def sign_mersenne(hashes, multipliers, addends, signature):
    """Fill signature[i] with the least ((a_i x + b_i) mod 2^64 mod (2^61 - 1)) mod 2^32; all arrays uint64."""
    for row in range(len(multipliers)):
        a, b = multipliers[row], addends[row]
        least = _LOW_32
        for i in range(len(hashes)):
            x = a * hashes[i] + b
            x = (x & _MERSENNE) + (x >> U64(61))  # 2^61 is 1 modulo the prime; the sum is below twice the prime
            if x >= _MERSENNE:
                x -= _MERSENNE
            least = min(least, x & _LOW_32)
        signature[row] = least
