"""The permutation schemes of datasketch in the plainest Python, of whole numbers without end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def mix_32(x: int) -> int:
    """Return the last step of MurmurHash3, 32 bits."""
    x = (x ^ x >> 16) * 0x85EBCA6B % 2**32
    x = (x ^ x >> 13) * 0xC2B2AE35 % 2**32
    return x ^ x >> 16


def mix_64(x: int) -> int:
    """Return the last step of MurmurHash3, 64 bits."""
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD % 2**64
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return x ^ x >> 33


def value(scheme: str, x: int, a: int, b: int) -> int:
    """Return where a permutation puts a hash."""
    if scheme == "affine32":
        return (a * mix_32(x) + b) % 2**32
    if scheme == "affine64":
        return (a * mix_64(x) + b) % 2**64
    return (a * x + b) % 2**64 % (2**61 - 1) % 2**32


def sign(
    scheme: str, hashes: Iterable[int], multipliers: Sequence[int], addends: Sequence[int]
) -> list[int]:
    """Return the least value of each permutation."""
    return [
        min(value(scheme, x, a, b) for x in hashes)
        for a, b in zip(multipliers, addends, strict=True)
    ]
