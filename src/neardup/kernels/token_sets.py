"""Hash the tokens of sets where they lie, in Arrow's lists of strings.

The hash of a token is that of kernels/tokens.py for a shingle of one; a test compares the two. Here nothing is copied
and no order is kept, which takes a fifth of the time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from neardup.kernels.machine import load_u64
from neardup.kernels.mixing import MIX_1, mix
from neardup.kernels.tokens import BASE, CHAIN

U64 = np.uint64
_ALL, _SEVEN_BITS = U64(0xFFFFFFFFFFFFFFFF), U64(0x7F7F7F7F7F7F7F7F)


# Inlined by Numba, since an array that is passed on is counted twice, atomically: 13 ns a token with, 21 without.
@njit(nogil=True, cache=True, inline="always")
def _load(data, position):
    """Return the bytes from `position` on, a zero among them as 255, which UTF-8 never holds: zeros pad a token."""
    inside = min(position, len(data) - 8)
    word = load_u64(data, inside) >> U64(8 * (position - inside))
    zeros = ~(((word & _SEVEN_BITS) + _SEVEN_BITS) | word | _SEVEN_BITS)
    return word | ((zeros >> U64(7)) * U64(255))


@njit(nogil=True, cache=True)
def hash_tokens(data, offsets, limits, hashes, hash_offsets):
    """Write the hashes of the tokens of each set, empty ones left out.

    data : uint8, 8 bytes or more; offsets : int64 (num_tokens + 1,); limits : int64 (num_sets + 1,), the tokens of
    set i are limits[i] to limits[i + 1]; hashes : uint64 (num_tokens,); hash_offsets : int64 (num_sets + 1,).
    """
    count = 0
    hash_offsets[0] = 0
    for one in range(len(limits) - 1):
        for i in range(limits[one], limits[one + 1]):
            start = offsets[i]
            size = offsets[i + 1] - start
            if size == 0:
                continue
            state = CHAIN
            while size > 16:
                state = (state ^ _load(data, start)) * MIX_1
                state ^= state >> U64(29)
                start += 8
                size -= 8
            state = (state ^ (_load(data, start) & (_ALL >> U64(64 - 8 * min(size, 8))))) * MIX_1
            state ^= state >> U64(29)
            if size > 8:
                state ^= _load(data, start + 8) & (_ALL >> U64(128 - 8 * size))
            hashes[count] = mix(BASE + mix(state))
            count += 1
        hash_offsets[one + 1] = count
