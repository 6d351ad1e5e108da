"""The sieve over confirmed pairs: each document in order, removed by the most similar kept one."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel


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
