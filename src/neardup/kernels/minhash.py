"""Sign sets of shingle hashes, by affine permutations of 32-bit integers; compare what was signed."""

from __future__ import annotations

import numpy as np
from numba import njit

from neardup.kernels.lanes import LANES, load, lower, spread, store
from neardup.kernels.mixing import MIX_1, MIX_2

U64 = np.uint64


@njit(nogil=True, cache=True)
def sign(hashes, offsets, multipliers, addends, signatures):
    """Fill signatures[document, i] with the least (a_i x + b_i) mod 2^32 over its shingles' upper 32 bits x.

    hashes : uint64; offsets : int64 (num_documents + 1,); multipliers, addends : uint32 (num_hashes,), the
    multipliers odd; signatures : uint32 (num_documents, num_hashes). No shingles: all ones.
    """
    num_hashes = len(multipliers)
    ones = np.full(num_hashes + LANES - 1, 0xFFFFFFFF, np.uint32)
    a, b, row = ones.copy(), ones.copy(), ones.copy()
    a[:num_hashes], b[:num_hashes] = multipliers, addends
    halves = hashes.view(np.uint32)  # the lower half of a hash, then the upper
    for document in range(len(offsets) - 1):
        for place in range(0, num_hashes, LANES):
            least, some_a, some_b = load(ones, place), load(a, place), load(b, place)
            for i in range(2 * offsets[document] + 1, 2 * offsets[document + 1], 2):
                least = lower(least, some_a, spread(halves, i), some_b)
            store(row, place, least)
        signatures[document] = row[:num_hashes]


@njit(nogil=True, cache=True)
def band_keys(signatures, rows_per_band, keys):
    """Fill keys[band, document] with a 64-bit hash of the band's rows. keys : uint64 (num_bands, num_documents)."""
    for document in range(signatures.shape[0]):
        for band in range(keys.shape[0]):
            key = U64(band)
            for row in range(band * rows_per_band, (band + 1) * rows_per_band):
                key = (key ^ U64(signatures[document, row])) * MIX_1
                key ^= key >> U64(32)
            key *= MIX_2
            keys[band, document] = key ^ (key >> U64(29))


@njit(nogil=True, cache=True)
def count_equal(left, right, counts):
    """Fill counts[i] with the places in which row i of two sets of signatures agrees, 0 where either row is all ones.

    left, right : uint32 (num_rows, num_hashes) or of one row, which is compared with all of the other; counts : int64.
    """
    for i in range(len(counts)):
        first, second = left[i if len(left) > 1 else 0], right[i if len(right) > 1 else 0]
        equal, some_left, some_right = np.uint32(0), np.uint32(0), np.uint32(0)
        for place in range(len(first)):
            equal += np.uint32(first[place] == second[place])
            some_left |= ~first[place]
            some_right |= ~second[place]
        counts[i] = equal if some_left != 0 and some_right != 0 else 0


@njit(nogil=True, cache=True)
def count_equal_packed(left, right, num_hashes, counts):
    """Fill counts[i] with the places in which row i of two packed sets of signatures agrees.

    left, right : uint8 (num_rows, bits, num_bytes), a plane for each bit, or of one row; counts : int64. A place
    differs where it does in any plane; what is behind the last place is zero in all.
    """
    for i in range(len(counts)):
        first, second = left[i if len(left) > 1 else 0], right[i if len(right) > 1 else 0]
        different = 0
        for byte in range(first.shape[1]):
            both = np.uint8(0)
            for plane in range(first.shape[0]):
                both |= first[plane, byte] ^ second[plane, byte]
            both -= (both >> np.uint8(1)) & np.uint8(0x55)
            both = (both & np.uint8(0x33)) + ((both >> np.uint8(2)) & np.uint8(0x33))
            different += (both + (both >> np.uint8(4))) & np.uint8(0x0F)
        counts[i] = num_hashes - different
