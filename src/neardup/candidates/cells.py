"""Divide pairs among cells, so that the documents of a pair are in few cells besides their own."""

from __future__ import annotations

import numpy as np

from neardup.arrays import Ints

_ROUNDS = 32
_GROUPS = 4  # in a cell at least, so that cells are of one size
_MIX = np.uint64(0x9E3779B97F4A7C15)


def choose_cells(left: Ints, right: Ints, num_cells: int) -> tuple[Ints, Ints]:
    """Return positions, rising, and the cell of each.

    Parameters
    ----------
    left, right : int64 (num_documents,), the earliest candidate of each document; one that is not
        earlier than it, of which a copy is, is left out.

    Notes
    -----
    Each document joins the group of its earliest candidate, round by round, unless the group would
    be larger than a quarter of a cell. Documents that are similar to each other mostly have the
    same earliest candidate.
    """
    earlier = left < right
    left, right = left[earlier], right[earlier]
    positions, ends = np.unique(np.concatenate([left, right]), return_inverse=True)
    numbers = np.arange(len(positions))
    parent, group = numbers.copy(), numbers
    parent[ends[len(left) :]] = ends[: len(left)]
    most = max(2, len(positions) // (_GROUPS * num_cells))
    for _ in range(_ROUNDS):
        first = np.flatnonzero((group == numbers) & (parent != numbers))
        target, sizes = group[parent[first]], np.bincount(group, minlength=len(numbers))
        fits = (sizes + np.bincount(target, sizes[first], len(numbers)))[target] <= most
        moves = np.zeros(len(numbers), np.bool_)
        moves[first[fits]] = True
        fits &= ~moves[target]
        if not fits.any():
            break
        joined = numbers.copy()
        joined[first[fits]] = target[fits]
        group = joined[group]
    order = np.argsort(
        group.astype(np.uint64) * _MIX, kind="stable"
    )  # a cell has documents of all files
    cells = np.empty(len(positions), np.int64)
    cells[order] = np.arange(len(positions)) * num_cells // max(1, len(positions))
    return positions, cells[group]
