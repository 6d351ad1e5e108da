"""Weighted MinHash by darts in the plainest Python: all darts of low rank, then the lowest of each
place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

WORD = 2**64
STEP = 0x9E3779B97F4A7C15


def mix(value: int) -> int:
    value ^= value >> 27
    value = value * 0x3C79AC492BA7B653 % WORD
    value ^= value >> 33
    value = value * 0x1C69B3F74AC4AE35 % WORD
    return value ^ value >> 27


def darts_of(
    feature: int, level: int, num_hashes: int, limit: float
) -> Iterator[tuple[float, float, int, int]]:
    """Yield (rank, position, place, name) of the darts between 2^level and 2^(level + 1), by rank,
    up to a limit.
    """
    rank = 0.0
    state = draw = mix((feature + STEP * (2048 + level)) % WORD)
    while True:
        rank -= math.log(((draw >> 11) + 1) * 2.0**-53) / (num_hashes * 2.0**level)
        if rank > limit:
            return
        other = mix((state + STEP) % WORD)
        yield (
            rank,
            2.0**level * (1 + (other >> 32) * 2.0**-32),
            (other % 2**32) * num_hashes >> 32,
            draw % 2**32,
        )
        state = (state + 2 * STEP) % WORD
        draw = mix(state)


def sign(weights: Mapping[int, float], num_hashes: int, seed: int) -> list[int]:
    """Return the signature of a set given as feature hashes with weights; all ones where there is
    no weight.
    """
    weights = {
        mix(feature ^ mix((seed + STEP) % WORD)): weight
        for feature, weight in weights.items()
        if weight
    }
    if not weights:
        return [2**32 - 1] * num_hashes
    limit = 1 / sum(weights.values())
    lowest: dict[int, tuple[float, int]] = {}
    while len(lowest) < num_hashes:
        limit *= 2
        lowest = {}
        for feature, weight in weights.items():
            top = math.ceil(math.log2(weight)) - 1
            for level in range(top, top - 24, -1):
                for rank, position, place, name in darts_of(feature, level, num_hashes, limit):
                    if position < weight:
                        lowest[place] = min(lowest.get(place, (math.inf, 0)), (rank, name))
    return [lowest[place][1] for place in range(num_hashes)]
