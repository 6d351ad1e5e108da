"""SimHash in the plainest Python: a sum for every bit, weights and levels by sorting, counts by
dictionaries.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reference import shingles

_ALL = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


def sums(features: Iterable[tuple[int, float]], bits: int) -> list[float]:
    """Return the sum of the votes of each bit of (hash, weight), the most significant bit first."""
    totals = [0.0] * bits
    for value, weight in features:
        for bit in range(bits):
            totals[bits - 1 - bit] += weight if value >> bit & 1 else -weight
    return totals


def reduce(totals: Sequence[float], tie: int = 1) -> int:
    """Return the fingerprint of sums: a one where the sum is above 0, `tie` where it is 0."""
    return int("".join(str(tie if total == 0 else int(total > 0)) for total in totals), 2)


def extend(value: int, bits: int) -> int:
    """Return a native feature hash of any length: word 0 is the hash, the others are mixes of
    it.
    """
    words = [value] + [shingles.mix((value + word * _STEP) & _ALL) for word in range(1, 4)]
    return sum(word << 64 * place for place, word in enumerate(words)) % 2**bits


def features_of(text: str, tokens: str = "words", ngram: int = 1) -> list[int]:
    """Return the native hashes of the features of a text, repeats included."""
    return shingles.shingle_hashes(shingles.tokens_of(text, tokens), ngram, tokens)


def idf(documents: int, num_documents: int) -> float:
    """Return log(N / (df + 1)), at least 0.01, to 32 binary places."""
    return round(max(math.log(num_documents / (documents + 1)), 0.01) * 2**32) / 2**32


def weigh(
    hashes: Sequence[int],
    weights: str,
    frequencies: Mapping[int, int] | None = None,
    total: int = 0,
) -> dict:
    """Return the weight of each distinct feature."""
    counts = Counter(hashes)
    if weights == "one":
        return dict.fromkeys(counts, 1)
    if weights == "tf":
        return dict(counts)
    assert frequencies is not None
    return {one: count * idf(frequencies.get(one, 0), total) for one, count in counts.items()}


def keep_top(weights: Mapping[int, float], top: int) -> dict[int, float]:
    """Return the weightiest features, all for 0; of equal ones those of least hash."""
    ranked = sorted(weights, key=lambda one: (-weights[one], one))
    return {one: weights[one] for one in (ranked[:top] if top else ranked)}


def levels(weights: Mapping[int, float]) -> dict[int, int]:
    """Return levels 1 to 5 for weights: one more than the fifths of the features that weigh
    less.
    """
    return {
        one: 1 + 5 * sum(other < weight for other in weights.values()) // len(weights)
        for one, weight in weights.items()
    }


def fingerprint(weights: Mapping[int, float], bits: int = 64, tie: int = 1) -> int:
    """Return the fingerprint of native feature hashes and their weights; 0 of none."""
    if not weights:
        return 0
    return reduce(sums([(extend(one, bits), weight) for one, weight in weights.items()], bits), tie)


def fnv(data: bytes, multiply_first: bool) -> int:
    """Return the 64-bit FNV-1 hash of some bytes, or FNV-1a."""
    state = 0xCBF29CE484222325
    for byte in data:
        state = (
            ((state * 0x100000001B3) & _ALL) ^ byte
            if multiply_first
            else ((state ^ byte) * 0x100000001B3) & _ALL
        )
    return state


def count_documents(
    documents: Iterable[Iterable[int]], max_features: int
) -> tuple[dict[int, int], int]:
    """Return document counts by lossy counting in bounded space, and by how much they may be too
    low.
    """
    counts: dict[int, tuple[int, int]] = {}
    missed = 0
    for features in documents:
        for one in set(features):
            count, delta = counts.get(one, (0, missed))
            counts[one] = (count + 1, delta)
        if len(counts) > max_features:
            while len(counts) > max_features - max_features // 4:
                missed += 1
                counts = {
                    one: (count, delta)
                    for one, (count, delta) in counts.items()
                    if count + delta > missed
                }
    return {one: count for one, (count, _) in counts.items()}, missed
