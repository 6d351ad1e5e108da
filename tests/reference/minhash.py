"""MinHash in the plainest Python: the least of each permutation, bands as tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def sign(hashes: Iterable[int], multipliers: Sequence[int]) -> list[int]:
    """Return the least permuted value of the hashes' upper halves for each multiplier; all ones of no hashes."""
    upper = [value >> 32 for value in set(hashes)]
    return [min((permute(x, multiplier) for x in upper), default=2**32 - 1) for multiplier in multipliers]


def permute(x: int, multiplier: int) -> int:
    """Return x with both halves multiplied, modulo 2^16, and complemented."""
    upper = (x >> 16) * (multiplier >> 16) % 2**16
    lower = (x % 2**16) * (multiplier % 2**16) % 2**16
    return (2**16 - 1 - upper) * 2**16 + (2**16 - 1 - lower)


def bands(signature: Sequence[int], rows_per_band: int) -> list[tuple[int, ...]]:
    """Return the rows of each band, after the number of the band."""
    starts = range(0, len(signature), rows_per_band)
    return [(band, *signature[start : start + rows_per_band]) for band, start in enumerate(starts)]
