"""Sign a set as datasketch does: its hashes mixed, and the permutations that are not of 32 bits."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel

U64 = np.uint64
_MERSENNE, _LOW_32 = U64((1 << 61) - 1), U64(0xFFFFFFFF)


@kernel
def mix_32(hashes):
    """Return the last step of MurmurHash3 (Appleby), 32 bits, of each hash; hashes : uint64, below 2^32."""
    mixed = np.empty(len(hashes), np.uint32)
    for i in range(len(hashes)):
        x = hashes[i] ^ (hashes[i] >> U64(16))
        x = (x * U64(0x85EBCA6B)) & _LOW_32
        x ^= x >> U64(13)
        x = (x * U64(0xC2B2AE35)) & _LOW_32
        mixed[i] = x ^ (x >> U64(16))
    return mixed


@kernel
def mix_64(hashes):
    """Return the last step of MurmurHash3 (Appleby), 64 bits, of each hash; uint64."""
    mixed = np.empty(len(hashes), np.uint64)
    for i in range(len(hashes)):
        x = hashes[i] ^ (hashes[i] >> U64(33))
        x *= U64(0xFF51AFD7ED558CCD)
        x ^= x >> U64(33)
        x *= U64(0xC4CEB9FE1A85EC53)
        mixed[i] = x ^ (x >> U64(33))
    return mixed


@kernel
def sign_affine(hashes, multipliers, addends, signature):
    """Fill signature[i] with the least a_i x + b_i, modulo 2^32 or 2^64: all arrays uint32, or all uint64.

    No hashes: all ones.
    """
    kind = signature.dtype.type
    signature[:] = ~kind(0)
    for x in hashes:
        for row in range(len(multipliers)):
            signature[row] = min(signature[row], kind(multipliers[row] * x + addends[row]))


@kernel
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
