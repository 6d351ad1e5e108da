"""Hash the tokens of sets where they lie, in Arrow's lists of strings or joined; bring joined ones into Arrow's form.

The hash of a token is that of kernels/tokens.py for a shingle of one; a test compares the two. Here nothing is copied
and no order is kept, which takes a fifth of the time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from neardup.kernels.machine import count_trailing_zeros, load_u64, prefetch, store_u64
from neardup.kernels.mixing import MIX_1, mix
from neardup.kernels.tokens import BASE, CHAIN

U64 = np.uint64
_ALL, _ONES = U64(0xFFFFFFFFFFFFFFFF), U64(0x0101010101010101)
_SEVEN_BITS, _HIGH_BITS = U64(0x7F7F7F7F7F7F7F7F), U64(0x8080808080808080)
_AHEAD = 1024  # bytes; with so much to do for each line of the cache, none is fetched in time: 12 ns a token, 6 with


# Inlined by Numba, since an array that is passed on is counted twice, atomically: 6 ns a token with, 14 without.
@njit(nogil=True, cache=True, inline="always")
def _load(data, position):
    """Return the bytes from `position` on, a zero among them as 255, which UTF-8 never holds: zeros pad a token."""
    if position + 8 <= len(data):
        word = load_u64(data, position)
    else:
        word = load_u64(data, len(data) - 8) >> U64(8 * (position + 8 - len(data)))
    if (word - _ONES) & ~word & _HIGH_BITS != U64(0):  # rare: a branch that is foreseen costs less than the arithmetic
        word |= ((~(((word & _SEVEN_BITS) + _SEVEN_BITS) | word) & _HIGH_BITS) >> U64(7)) * U64(255)
    return word


@njit(nogil=True, cache=True)
def _zeros(word):
    """Return the high bits of the bytes that are zero: the lowest bit set is right, those above need not be."""
    return (word - _ONES) & ~word & _HIGH_BITS


@njit(nogil=True, cache=True)
def _below(zeros):
    """Return ones for the bytes below the first zero. Requires: zeros != 0."""
    return (zeros ^ (zeros - U64(1))) >> U64(8)


@njit(nogil=True, cache=True)
def hash_tokens(data, offsets, limits, hashes, hash_offsets):
    """Write the hashes of the tokens of each set, empty ones left out.

    data : uint8, 8 bytes or more; offsets : int32 or int64 (num_tokens + 1,); limits : int64 (num_sets + 1,), the
    tokens of set i are limits[i] to limits[i + 1]; hashes : uint64 (num_tokens,); hash_offsets : int64 (num_sets + 1,).
    """
    count = 0
    hash_offsets[0] = 0
    for one in range(len(limits) - 1):
        edges = offsets[limits[one] : limits[one + 1] + 1]
        for i in range(len(edges) - 1):
            start, size = np.int64(edges[i]), np.int64(edges[i + 1] - edges[i])
            prefetch(data, start + _AHEAD)
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


@njit(nogil=True, cache=True)
def hash_joined(joined, counts, hashes, hash_offsets):
    """Write the hashes of `hash_tokens`, of joined tokens; return whether there are as many as `counts` says.

    joined : uint8, tokens that end with a zero each, and 8 zeros; counts : int64 (num_sets,), tokens of each set;
    hashes : uint64, as many; hash_offsets : int64 (num_sets + 1,). A word is seen once: to look for the end first and
    hash then takes 14 ns a token, this 6.
    """
    count, position, last = 0, 0, len(joined) - 8
    hash_offsets[0] = 0
    for one in range(len(counts)):
        for _ in range(counts[one]):
            if position >= last:
                return False
            word = load_u64(joined, position)
            zeros = _zeros(word)
            state = CHAIN
            if zeros & U64(0x80) != U64(0):
                position += 1
                continue
            if zeros != U64(0):
                state = (state ^ (word & _below(zeros))) * MIX_1
                state ^= state >> U64(29)
            while zeros == U64(0):
                state = (state ^ word) * MIX_1
                state ^= state >> U64(29)
                position += 8
                word = load_u64(joined, position)
                zeros = _zeros(word)
                if zeros != U64(0):
                    state ^= word & _below(zeros)
                elif joined[position + 8] == 0:  # the last word is only added, also if it is a whole one
                    state ^= word
                    position += 8
                    zeros = U64(0x80)
            position += (count_trailing_zeros(zeros) >> 3) + 1
            hashes[count] = mix(BASE + mix(state))
            count += 1
        hash_offsets[one + 1] = count
    return position == last


@njit(nogil=True, cache=True)
def cut_joined(joined, data, offsets):
    """Write strings, each of which ends with a zero, without the zeros; return their number, -1 if there are more.

    joined : uint8, 8 bytes more at the end; data : uint8, as long; offsets : int64, one more than there are strings.
    """
    count, end, position = 0, 0, 0
    offsets[0] = 0
    while position < len(joined) - 8:
        prefetch(joined, position + _AHEAD)
        word = load_u64(joined, position)
        store_u64(data, end, word)
        zeros = _zeros(word)
        size = count_trailing_zeros(zeros) >> 3 if zeros != U64(0) else 8
        end += size
        position += size
        if size < 8:
            if count == len(offsets) - 1:
                return -1
            position += 1
            count += 1
            offsets[count] = end
    return count
