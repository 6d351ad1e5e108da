"""Clusters by size, with dictionaries and lists."""

from __future__ import annotations

from collections.abc import Mapping


def groups(num_documents: int, kept_of: Mapping[int, int]) -> list[list[int]]:
    """Return the members of each cluster, its first document before the others, the largest cluster
    first.

    kept_of : removed document -> the first document of its cluster.
    """
    members: dict[int, list[int]] = {}
    for document in range(num_documents):
        members.setdefault(kept_of.get(document, document), []).append(document)
    clusters = [
        [first, *(one for one in members[first] if one != first)] for first in sorted(members)
    ]
    return sorted(clusters, key=len, reverse=True)
