"""Decide over confirmed pairs: the sieve, in which the most similar kept document removes another, or union-find."""

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


@kernel
def decide(left, strength, by_right, offsets, representative, num_against, kept, remover, pair):
    """Decide all positions in order.

    left : uint32, strength : float64 (num_pairs,); by_right : int64, the pairs by `right` and then by `left`, those of
    a position from its offset on; representative : uint32 by position. kept : bool, all true; remover : uint32; pair :
    int64 by position, filled for those removed.
    """
    for position in range(num_against, len(representative)):
        first = np.int64(representative[position])
        if first != position and kept[first]:
            kept[position], remover[position] = False, first
            continue
        best = np.int64(-1)
        for i in range(offsets[position], offsets[position + 1]):
            row = by_right[i]
            if kept[left[row]] and (best < 0 or strength[row] > strength[best]):
                best = row
        if best >= 0:
            kept[position], remover[position], pair[position] = False, left[best], best
