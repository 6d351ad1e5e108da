"""Assign documents to cells: the pairs of a cell are measured by one worker.

A document is copied to the cells of its pairs, so similar documents should be in one cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.arrays import Ints, mask_of

_MAX_ROUNDS = 32  # groups that could still be merged then stay apart
_GROUPS_PER_CELL = 4  # at least, so that cells come out about equal in size
# 2^64 / the golden ratio spreads consecutive numbers (Knuth, The Art of Computer Programming 3,
# 6.4).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class DocumentCells(NamedTuple):
    """The cell of each document.

    positions : int64 (num_documents,), rising. cells : int64 (num_documents,), in [0, num_cells).
    """

    positions: Ints
    cells: Ints


def choose_cells(earliest: Ints, documents: Ints, num_cells: int) -> DocumentCells:
    """Assign documents to cells of about equal size, so that few pairs span two cells.

    Parameters
    ----------
    earliest : int64 (num_pairs,), the position of the earliest candidate of each document.
    documents : int64 (num_pairs,), the position of the document. Rows with earliest >= document
        are ignored: a later copy of the document made them candidates.

    Notes
    -----
    Similar documents mostly share their earliest candidate. So each document joins the group of
    its earliest candidate, and whole groups are dealt to cells.
    """
    is_pair = earliest < documents
    earliest = earliest[is_pair]
    documents = documents[is_pair]

    both = np.concatenate([earliest, documents])
    positions, index = np.unique(both, return_inverse=True)
    parents = np.arange(len(positions))  # a document without a candidate is its own parent
    parents[index[len(earliest) :]] = index[: len(earliest)]

    max_size = max(2, len(positions) // (_GROUPS_PER_CELL * num_cells))
    roots = _merge_groups(parents, max_size)
    return DocumentCells(positions, _deal_groups(roots, num_cells))


def _merge_groups(parents: Ints, max_size: int) -> Ints:
    """Merge groups into their parents' groups, up to max_size; return each document's root."""
    numbers = np.arange(len(parents))
    roots = numbers
    for _ in range(_MAX_ROUNDS):
        sizes = np.bincount(roots, minlength=len(numbers))
        merging = np.flatnonzero((roots == numbers) & (parents != numbers))
        targets = roots[parents[merging]]

        # All groups that want one target must fit into it together.
        incoming = np.bincount(targets, weights=sizes[merging], minlength=len(numbers))
        fits = (sizes + incoming)[targets] <= max_size

        # A group that moves in this round receives none.
        is_moving = mask_of(merging[fits], len(numbers))
        fits &= ~is_moving[targets]
        if not fits.any():
            break

        new_roots = numbers.copy()
        new_roots[merging[fits]] = targets[fits]
        roots = new_roots[roots]
    return roots


def _deal_groups(roots: Ints, num_cells: int) -> Ints:
    """Return the cell of each document: the cell of its root.

    Roots are spread, so that a cell has documents of all input files.
    """
    num_documents = len(roots)
    order = np.argsort(roots.astype(np.uint64) * GOLDEN, kind="stable")
    cells = np.empty(num_documents, np.int64)
    cells[order] = np.arange(num_documents) * num_cells // max(1, num_documents)
    return cells[roots]
