"""Union-find over pairs of documents."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel


@kernel
def _root(parents, position):
    while parents[position] != position:
        parents[position] = parents[parents[position]]
        position = np.int64(parents[position])
    return position


@kernel
def connect(parents, left, right):
    """Join the clusters of left[i] and right[i]; a root is the least member. parents : uint32, written."""
    for i in range(len(left)):
        a, b = _root(parents, np.int64(left[i])), _root(parents, np.int64(right[i]))
        if a < b:
            parents[b] = a
        elif b < a:
            parents[a] = b


@kernel
def flatten(parents):
    """Set each entry to the root of its cluster. Requires: parents[i] <= i, as `connect` leaves it."""
    for position in range(len(parents)):
        parents[position] = parents[parents[position]]
