"""MinHash in the plainest Python: the least of each permutation, bands as tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BLOCK = 128  # places that share a factor


def sign(hashes: Iterable[int], factors: Sequence[int], multipliers: Sequence[int]) -> list[int]:
    """Return the least permuted value of the hashes for each multiplier; all ones of no hashes."""
    distinct = set(hashes)
    return [
        min((permute(word(x, place, factors), multiplier) for x in distinct), default=2**32 - 1)
        for place, multiplier in enumerate(multipliers)
    ]


def word(x: int, place: int, factors: Sequence[int]) -> int:
    """Return the 32 bits that a place takes of a hash."""
    product = x * factors[place // BLOCK] % 2**64
    return product >> 32 if place % BLOCK < BLOCK // 2 else product % 2**32


def permute(x: int, multiplier: int) -> int:
    """Return x with both halves multiplied, modulo 2^16, and complemented."""
    upper = (x >> 16) * (multiplier >> 16) % 2**16
    lower = (x % 2**16) * (multiplier % 2**16) % 2**16
    return (2**16 - 1 - upper) * 2**16 + (2**16 - 1 - lower)


def bands(signature: Sequence[int], rows_per_band: int) -> list[tuple[int, ...]]:
    """Return the rows of each band, after the number of the band."""
    starts = range(0, len(signature), rows_per_band)
    return [(band, *signature[start : start + rows_per_band]) for band, start in enumerate(starts)]
