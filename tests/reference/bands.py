"""Grouping by equal keys, with dictionaries."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def groups(keys: Sequence[Hashable]) -> list[list[int]]:
    """Return the places of each key that occurs twice or more."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return [members for members in places.values() if len(members) > 1]


def first_places(keys: Sequence[Hashable]) -> list[int]:
    """Return for each place the first place of the same key."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(key, place) for place, key in enumerate(keys)]
