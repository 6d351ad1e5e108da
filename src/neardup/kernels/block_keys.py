"""Move bits of fingerprints to the front of 64-bit keys."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel


@kernel
def permute_bits(words, order, keys):
    """Fill keys, uint64 (num_rows, num_tables).

    words : uint64 (num_rows, num_words), fingerprints, the lowest word first. order : int16 (num_tables, 64), the bit
    of the fingerprint at each place of a key, the highest place first; -1 leaves a 0.
    """
    for row in range(len(words)):
        for table in range(len(order)):
            key = np.uint64(0)
            for place in range(64):
                key <<= np.uint64(1)
                bit = order[table, place]
                if bit >= 0:
                    key |= (words[row, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1)
            keys[row, table] = key
