"""Join tokens to feature strings, and hash strings as other programs do."""

from __future__ import annotations

import numpy as np
from numba import njit

U64 = np.uint64
_OFFSET, _PRIME = U64(0xCBF29CE484222325), U64(0x100000001B3)


@njit(nogil=True, cache=True)
def join_runs(data, offsets, firsts, num_tokens, separator, joined, joined_offsets):
    """Fill joined with the strings firsts[i] to firsts[i] + num_tokens[i] of `data`, one after the other.

    data : uint8, offsets : int64; firsts, num_tokens : int64 (num_features,); separator : a byte to put between two
    strings, below 0 for none; joined : uint8; joined_offsets : int64 (num_features + 1,), where each result lies.
    """
    for feature in range(len(firsts)):
        end = joined_offsets[feature]
        for token in range(firsts[feature], firsts[feature] + num_tokens[feature]):
            if separator >= 0 and token > firsts[feature]:
                joined[end] = separator
                end += 1
            for i in range(offsets[token], offsets[token + 1]):
                joined[end] = data[i]
                end += 1


@njit(nogil=True, cache=True)
def fnv1(data, offsets, hashes):
    """Fill hashes (uint64) with the 64-bit FNV-1 hash of each string: multiply, then xor (Fowler, Noll and Vo)."""
    for i in range(len(offsets) - 1):
        state = _OFFSET
        for byte in data[offsets[i] : offsets[i + 1]]:
            state = (state * _PRIME) ^ U64(byte)
        hashes[i] = state


@njit(nogil=True, cache=True)
def fnv1a(data, offsets, hashes):
    """Fill hashes (uint64) with the 64-bit FNV-1a hash of each string: xor, then multiply (Fowler, Noll and Vo)."""
    for i in range(len(offsets) - 1):
        state = _OFFSET
        for byte in data[offsets[i] : offsets[i + 1]]:
            state = (state ^ U64(byte)) * _PRIME
        hashes[i] = state
