"""Hamming distances of fingerprints, row by row."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel
from neardup.kernels.intrinsics import count_ones


@kernel
def row_distance(lefts, left, rights, right):
    """Return the Hamming distance of two rows of uint64 arrays (num_rows, num_words)."""
    distance = np.int64(0)
    for word in range(lefts.shape[1]):
        distance += count_ones(lefts[left, word] ^ rights[right, word])
    return distance


@kernel
def row_distances(left, right, distances):
    """Set distances[i] to the number of bits in which rows i of two uint64 arrays (num_rows, num_words) differ."""
    for row in range(len(distances)):
        distances[row] = row_distance(left, row, right, row)
