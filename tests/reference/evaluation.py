"""Scores of a method by looking at every pair of documents, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations


def score(
    count: int, is_found: Callable[[int, int], bool], verdict: Callable[[int, int], bool | None]
) -> tuple[int, int, int]:
    """Return found, correct and positives among all pairs of so many documents; a verdict of None
    says nothing.
    """
    found = correct = positives = 0
    for left, right in combinations(range(count), 2):
        same = verdict(left, right)
        if same is None:
            continue
        positives += same
        if is_found(left, right):
            found += 1
            correct += same
    return found, correct, positives


def verdict_of_labels(labels: Sequence[str | None]) -> Callable[[int, int], bool | None]:
    """Return what labels say of a pair of documents."""
    return lambda left, right: (
        labels[left] == labels[right] if labels[left] and labels[right] else None
    )


def length_class(characters: int) -> int:
    """Return the least length of the class of a length: 0, 1, 2, 4, 8, ..."""
    least = 1
    if characters == 0:
        return 0
    while 2 * least <= characters:
        least *= 2
    return least


def adjusted_rand(left: Sequence[int], right: Sequence[int]) -> float:
    """Return the adjusted Rand index of two partitions, by the four counts of pairs.

    Hubert and Arabie (1985), Comparing partitions: (index - expected) / (greatest - expected),
    where the index counts pairs together in both.
    """
    both = only_left = only_right = neither = 0
    for i, j in combinations(range(len(left)), 2):
        together = left[i] == left[j], right[i] == right[j]
        both += together == (True, True)
        only_left += together == (True, False)
        only_right += together == (False, True)
        neither += together == (False, False)
    every = both + only_left + only_right + neither
    if not only_left and not only_right:
        return 1.0
    in_left = both + only_left
    in_right = both + only_right
    expected = Fraction(in_left * in_right, every)
    return float((both - expected) / (Fraction(in_left + in_right, 2) - expected))
