"""Hamming distances of fingerprints, row by row."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel
from neardup.kernels.intrinsics import count_ones


@kernel
def row_distances(left, right, distances):
    """Set distances[i] to the number of bits in which rows i of two uint64 arrays (num_rows, num_words) differ."""
    for row in range(len(distances)):
        distance = np.int64(0)
        for word in range(left.shape[1]):
            distance += count_ones(left[row, word] ^ right[row, word])
        distances[row] = distance
