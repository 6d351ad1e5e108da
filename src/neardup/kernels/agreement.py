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
def compare(graph, degrees, sums):  # noqa: C901
    """Count the neighbours of each document at each threshold, and add up the agreement of its
    pairs.

    The agreement of a pair is the Jaccard similarity of the two sets of neighbours, each with its
    own document. degrees : int64, sums : float64, both (num_documents, num_levels), zeros; filled.
    The three pairs of a triangle are in the graphs up to the least of their levels, so one merge of
    two lists serves all thresholds.
    """
    num_documents, num_levels = degrees.shape
    for left in range(num_documents):
        for entry in range(graph.starts[left], graph.starts[left + 1]):
            for level in range(graph.levels[entry] + 1):
                degrees[left, level] += 1
    shared = np.zeros(num_levels, I64)
    for left in range(num_documents):
        for entry in range(graph.starts[left], graph.starts[left + 1]):
            right = I64(graph.neighbours[entry])
            most = graph.levels[entry]
            if right < left:
                continue
            shared[:] = 0
            i = graph.starts[left]
            j = graph.starts[right]
            while i < graph.starts[left + 1] and j < graph.starts[right + 1]:
                if graph.neighbours[i] < graph.neighbours[j]:
                    i += 1
                elif graph.neighbours[i] > graph.neighbours[j]:
                    j += 1
                else:
                    shared[min(most, graph.levels[i], graph.levels[j])] += 1
                    i += 1
                    j += 1
            common = 0
            for level in range(most, -1, -1):
                common += shared[level]
                both = degrees[left, level] + degrees[right, level] - common
                agreement = (common + 2) / both
                sums[left, level] += agreement
                sums[right, level] += agreement
