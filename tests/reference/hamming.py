"""Hamming search, each fingerprint against each."""

from __future__ import annotations

from collections.abc import Sequence


def distance(left: int, right: int) -> int:
    """Return the number of bits in which two integers differ."""
    return bin(left ^ right).count("1")


def pairs(fingerprints: Sequence[int], max_distance: int) -> list[tuple[int, int, int]]:
    """Return (left, right, distance) of every pair within a distance, in order."""
    return [
        (left, right, distance(fingerprints[left], fingerprints[right]))
        for left in range(len(fingerprints))
        for right in range(left + 1, len(fingerprints))
        if distance(fingerprints[left], fingerprints[right]) <= max_distance
    ]


def query(
    fingerprints: dict[object, int], asked: int, max_distance: int
) -> list[tuple[object, int]]:
    """Return (id, distance) of all within a distance, nearest first, those inserted earlier before
    later ones.
    """
    near = [(key, distance(value, asked)) for key, value in fingerprints.items()]
    return sorted((one for one in near if one[1] <= max_distance), key=lambda one: one[1])


def to_words(fingerprints: Sequence[int], bits: int) -> list[list[int]]:
    """Return each fingerprint as words of 64 bits, the lowest first."""
    return [
        [value >> shift & (2**64 - 1) for shift in range(0, bits, 64)] for value in fingerprints
    ]
