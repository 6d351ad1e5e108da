"""Decide over confirmed pairs: the sieve, in which the most similar kept document removes another,
or union-find.
"""

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, kernel

NONE = U32(0xFFFFFFFF)


class Neighbours(NamedTuple):
    """The confirmed pairs of each position, in both directions.

    offsets : int64 (num_positions + 1,), the first pair of each position. positions : uint32, the
    other ends. rows : int64, the pairs. strength : float64 by pair.
    """

    offsets: np.ndarray
    positions: np.ndarray
    rows: np.ndarray
    strength: np.ndarray


@kernel
def _root(parents, position):
    while parents[position] != position:
        parents[position] = parents[parents[position]]  # halves the path of later searches
        position = I64(parents[position])
    return position


@kernel
def connect(parents, left, right):
    """Join the clusters of left[i] and right[i]; a root is the first member. parents : uint32,
    written.
    """
    for i in range(len(left)):
        a = _root(parents, I64(left[i]))
        b = _root(parents, I64(right[i]))
        if a < b:
            parents[b] = a
        elif b < a:
            parents[a] = b


@kernel
def flatten(parents):
    """Set each entry to the root of its cluster. Requires: parents[i] <= i, as `connect` leaves
    it.
    """
    for position in range(len(parents)):
        parents[position] = parents[parents[position]]


@kernel
def decide(left, strength, by_right, offsets, representative, num_against, decisions):
    """Decide all positions in order.

    left : uint32, strength : float64 (num_pairs,); by_right : int64, the pairs by `right` and then
    by `left`; offsets : the first pair of each position; representative : uint32 by position.
    decisions : by position, kept : bool, all true; remover : uint32 and pair : int64, filled for
    removed positions.
    """
    # A pair removes a document only if its left one is kept, which is decided before.
    kept = decisions.kept
    for position in range(num_against, len(representative)):
        first = I64(representative[position])
        if first != position and kept[first]:  # whatever pairs a copy has
            kept[position] = False
            decisions.remover[position] = first
            continue
        best = I64(-1)
        for i in range(offsets[position], offsets[position + 1]):
            row = by_right[i]
            if kept[left[row]] and (best < 0 or strength[row] > strength[best]):
                best = row
        if best >= 0:
            kept[position] = False
            decisions.remover[position] = left[best]
            decisions.pair[position] = best


@kernel
def _find_keeper(pairs, content, holders):
    """Return the most similar position that is held, NONE if there is none, and the pair; a copy
    has no pair.
    """
    best = holders[content]
    best_row = I64(-1)
    if best != NONE:
        return best, best_row
    for i in range(pairs.offsets[content], pairs.offsets[content + 1]):
        held = holders[pairs.positions[i]]
        row = pairs.rows[i]
        if held == NONE:
            continue
        gain = np.inf if best_row < 0 else pairs.strength[row] - pairs.strength[best_row]
        if gain > 0 or (gain == 0 and held < best):
            best = held
            best_row = row
    return best, best_row


@kernel(allocates=True)
def decide_groups(pairs, representative, starts, needed, near, keeper, pair):
    """Decide about groups of consecutive positions in order; positions before the first group are
    kept.

    pairs : Neighbours, of representatives. starts : int64 (num_groups + 1,); needed : int64
    (num_groups,), the near positions with which a group is removed. near : int64 by group, zeros;
    keeper : uint32, NONE; pair : int64, -1, by position; filled.
    """
    holders = np.full(len(representative), NONE, U32)  # by content, its first position that is kept
    for position in range(starts[0] - 1, -1, -1):
        holders[representative[position]] = position
    for group in range(len(needed)):
        for position in range(starts[group], starts[group + 1]):
            keeper[position], pair[position] = _find_keeper(
                pairs, representative[position], holders
            )
            near[group] += keeper[position] != NONE
        if near[group] < needed[group]:
            for position in range(starts[group], starts[group + 1]):
                if holders[representative[position]] == NONE:
                    holders[representative[position]] = position
