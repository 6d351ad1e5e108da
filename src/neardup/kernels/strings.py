"""Hash whole strings."""

from __future__ import annotations

import numpy as np
from numba import njit

U64 = np.uint64
_OFFSET, _PRIME, _MIX = U64(0xCBF29CE484222325), U64(0x100000001B3), U64(0x3C79AC492BA7B653)


@njit(nogil=True, cache=True)
def hash_strings(data, offsets, hashes):
    """Fill hashes (uint64) with the FNV-1a hash of each string, its bits mixed once more."""
    for i in range(len(offsets) - 1):
        state = _OFFSET
        for byte in data[offsets[i] : offsets[i + 1]]:
            state = (state ^ U64(byte)) * _PRIME
        state = (state ^ (state >> U64(32))) * _MIX
        hashes[i] = state ^ (state >> U64(29))
