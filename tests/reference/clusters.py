"""Connected clusters, by painting every member until nothing changes."""

from __future__ import annotations

from collections.abc import Iterable


def first_members(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the first member of the cluster of each of `count` things."""
    first = list(range(count))
    pairs = list(pairs)
    changed = True
    while changed:
        changed = False
        for left, right in pairs:
            least = min(first[left], first[right])
            changed |= first[left] != least or first[right] != least
            first[left] = first[right] = least
    return first
