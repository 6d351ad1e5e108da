"""MinHash in the plainest Python: the least of each permutation, bands as tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def sign(hashes: Iterable[int], multipliers: Sequence[int], addends: Sequence[int]) -> list[int]:
    """Return the least (a x + b) mod 2^32 of the hashes' upper halves x, for each a, b; all ones of no hashes."""
    upper = [value >> 32 for value in set(hashes)]
    return [
        min(((a * x + b) % 2**32 for x in upper), default=2**32 - 1) for a, b in zip(multipliers, addends, strict=True)
    ]


def bands(signature: Sequence[int], rows_per_band: int) -> list[tuple[int, ...]]:
    """Return the rows of each band, after the number of the band."""
    starts = range(0, len(signature), rows_per_band)
    return [(band, *signature[start : start + rows_per_band]) for band, start in enumerate(starts)]
