"""Compare the neighbours of the two documents of each pair, in the graphs of all pairs at several
thresholds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, kernel


class Graph(NamedTuple):
    """The pairs of each document, in both directions.

    starts : int64 (num_documents + 1,). neighbours : uint32 (2 * num_pairs,), rising within a
    document. levels : int64 (2 * num_pairs,), the last threshold that the similarity reaches.
    """

    starts: np.ndarray
    neighbours: np.ndarray
    levels: np.ndarray


@kernel(allocates=True)
def compare(graph, degrees, sums):
    """Count the neighbours of each document at each threshold, and add up the agreement of its
    pairs.

    The agreement of a pair is the Jaccard similarity of the two sets of neighbours, each with its
    own document. degrees : int64, sums : float64, both (num_documents, num_levels), zeros; filled.
    The three pairs of a triangle are in the graphs up to the minimum of their levels, so one merge
    of two lists serves all thresholds.
    """
    _count_neighbours(graph, degrees)
    shared = np.zeros(degrees.shape[1], I64)
    for left in range(len(degrees)):
        for entry in range(graph.starts[left], graph.starts[left + 1]):
            right = I64(graph.neighbours[entry])
            level = graph.levels[entry]
            if right > left:
                _count_shared(graph, left, right, level, shared)
                _add_agreement(left, right, level, shared, degrees, sums)


@kernel
def _count_neighbours(graph, degrees):
    """Count the neighbours of each document at each threshold."""
    for document in range(len(degrees)):
        for entry in range(graph.starts[document], graph.starts[document + 1]):
            for level in range(graph.levels[entry] + 1):
                degrees[document, level] += 1


@kernel
def _count_shared(graph, left, right, max_level, shared):
    """Count the common neighbours of a pair by the last level of all three pairs."""
    shared[:] = 0
    i = graph.starts[left]
    j = graph.starts[right]
    while i < graph.starts[left + 1] and j < graph.starts[right + 1]:
        if graph.neighbours[i] < graph.neighbours[j]:
            i += 1
        elif graph.neighbours[i] > graph.neighbours[j]:
            j += 1
        else:
            shared[min(max_level, graph.levels[i], graph.levels[j])] += 1
            i += 1
            j += 1


@kernel
def _add_agreement(left, right, max_level, shared, degrees, sums):
    """Add the agreement of a pair to the sums of both documents, at each level up to max_level."""
    common = 0
    for level in range(max_level, -1, -1):
        common += shared[level]
        # The sets of neighbours with their documents share both documents, which are neighbours.
        both = degrees[left, level] + degrees[right, level] - common
        agreement = (common + 2) / both
        sums[left, level] += agreement
        sums[right, level] += agreement
