"""Sign sets of shingle hashes: MinHash by affine permutations of 32-bit integers."""

from __future__ import annotations

import numpy as np
from numba import njit

U64 = np.uint64
_MIX_1, _MIX_2 = U64(0x3C79AC492BA7B653), U64(0x1C69B3F74AC4AE35)


@njit(nogil=True, cache=True)
def sign(hashes, offsets, multipliers, addends, signatures):
    """Fill signatures[document, i] with the least (a_i x + b_i) mod 2^32 over its shingles' upper 32 bits x.

    hashes : uint64; offsets : int64 (num_documents + 1,); multipliers, addends : uint32 (num_hashes,), the
    multipliers odd; signatures : uint32 (num_documents, num_hashes). No shingles: all ones.
    """
    longest = 0
    for document in range(len(offsets) - 1):
        longest = max(longest, offsets[document + 1] - offsets[document])
    short = np.empty(longest, np.uint32)
    for document in range(len(offsets) - 1):
        start = offsets[document]
        count = offsets[document + 1] - start
        for i in range(count):
            short[i] = np.uint32(hashes[start + i] >> U64(32))
        for row in range(len(multipliers)):
            a, b = multipliers[row], addends[row]
            least = np.uint32(0xFFFFFFFF)
            for i in range(count):
                least = min(least, np.uint32(a * short[i] + b))
            signatures[document, row] = least


@njit(nogil=True, cache=True)
def band_keys(signatures, rows_per_band, keys):
    """Fill keys[band, document] with a 64-bit hash of the band's rows. keys : uint64 (num_bands, num_documents)."""
    for document in range(signatures.shape[0]):
        for band in range(keys.shape[0]):
            key = U64(band)
            for row in range(band * rows_per_band, (band + 1) * rows_per_band):
                key = (key ^ U64(signatures[document, row])) * _MIX_1
                key ^= key >> U64(32)
            key *= _MIX_2
            keys[band, document] = key ^ (key >> U64(29))
