"""Find the distinct features of documents, and weigh them."""

from __future__ import annotations

import numpy as np
from numba import njit

U64 = np.uint64


@njit(nogil=True, cache=True)
def _spread(hashes, order, ends):
    """Order uniform hashes by their leading bits, about one a bucket: one stable pass of a counting sort.

    order : int64, filled with places in `hashes`; ends : int64, longer by one than the number of buckets, a power of
    two near len(hashes).
    """
    bits = 1
    while (1 << bits) < len(hashes):
        bits += 1
    shift = U64(64 - bits)
    ends[: (1 << bits) + 1] = 0
    for value in hashes:
        ends[np.int64(value >> shift) + 1] += 1
    for bucket in range(1 << bits):
        ends[bucket + 1] += ends[bucket]
    for i in range(len(hashes)):
        bucket = np.int64(hashes[i] >> shift)
        order[ends[bucket]] = i
        ends[bucket] += 1


@njit(nogil=True, cache=True)
def distinct_features(hashes, offsets, distinct, counts, firsts, distinct_offsets):
    """Write the distinct hashes of each document, rising, how often each occurs, and where it occurs first.

    hashes : uint64; offsets : int64 (num_documents + 1,); distinct : uint64, counts : uint32, firsts : int64, the place
    in `hashes`, all as long as `hashes`; distinct_offsets : int64 (num_documents + 1,). Hashes are uniform: a
    counting sort by leading bits leaves an insertion sort next to nothing to do.
    """
    longest = 0
    for document in range(len(offsets) - 1):
        longest = max(longest, offsets[document + 1] - offsets[document])
    order = np.empty(longest, np.int64)
    ends = np.empty(2 * longest + 3, np.int64)
    distinct_offsets[0] = 0
    size = 0
    for document in range(len(offsets) - 1):
        start, first = offsets[document], size
        span = hashes[start : offsets[document + 1]]
        if len(span):
            _spread(span, order, ends)
        for i in range(len(span)):
            value = span[order[i]]
            place = size
            while place > first and distinct[place - 1] > value:
                place -= 1
            if place > first and distinct[place - 1] == value:
                counts[place - 1] += np.uint32(1)
                continue
            for move in range(size, place, -1):
                distinct[move], counts[move], firsts[move] = distinct[move - 1], counts[move - 1], firsts[move - 1]
            distinct[place], counts[place], firsts[place] = value, 1, start + order[i]
            size += 1
        distinct_offsets[document + 1] = size
