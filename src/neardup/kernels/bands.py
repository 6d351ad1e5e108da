"""Group documents that share a band key, or the hash of their content."""

from __future__ import annotations

import numpy as np
from numba import njit

U64 = np.uint64
NO_BUCKET = np.uint32(0xFFFFFFFF)
LAST_SLOT = np.uint32(0x80000000)  # set in the last slot of a bucket
FREE_SLOT = np.uint32(0x7FFFFFFF)  # the other bits of a slot that holds no document


@njit(nogil=True, cache=True)
def assign_buckets(packed, position_bits, buckets):
    """Give each run of equal keys a bucket of as many slots; return how many slots there are in all.

    packed : uint64, rising, key in the upper bits, position in the lower `position_bits`; buckets : uint32 by
    position, set to the bucket's first slot, or left alone where a key stands alone.
    """
    shift, mask = U64(position_bits), (U64(1) << U64(position_bits)) - U64(1)
    slots = 0
    first = 0
    while first < len(packed):
        stop = first + 1
        while stop < len(packed) and packed[stop] >> shift == packed[first] >> shift:
            stop += 1
        if stop - first > 1:
            for i in range(first, stop):
                buckets[packed[i] & mask] = slots
            slots += stop - first
        first = stop
    return slots


@njit(nogil=True, cache=True)
def close_buckets(buckets, slots):
    """Free all slots and mark the last one of each bucket. Requires: `buckets` as `assign_buckets` left them."""
    slots[:] = FREE_SLOT
    for bucket in buckets:
        if bucket != NO_BUCKET and bucket > 0:
            slots[bucket - 1] = FREE_SLOT | LAST_SLOT
    if len(slots) > 0:
        slots[-1] = FREE_SLOT | LAST_SLOT


@njit(nogil=True, cache=True)
def find_copies(packed, position_bits, content, positions_to_documents, representative):
    """Set representative[position] to the first position with equal content.

    packed : uint64, rising: the upper bits of content[:, 0], then the position. content : uint64 (num_documents, 2).
    A run of equal upper bits may hold several contents: each member is compared with the firsts of its run.
    """
    shift, mask = U64(position_bits), (U64(1) << U64(position_bits)) - U64(1)
    firsts = np.empty(16, np.int64)
    first = 0
    while first < len(packed):
        stop = first
        count = 0
        while stop < len(packed) and packed[stop] >> shift == packed[first] >> shift:
            position = np.int64(packed[stop] & mask)
            document = positions_to_documents[position]
            found = position
            for i in range(count):
                other = positions_to_documents[firsts[i]]
                if content[document, 0] == content[other, 0] and content[document, 1] == content[other, 1]:
                    found = firsts[i]
                    break
            if found == position:
                if count == len(firsts):
                    longer = np.empty(2 * count, np.int64)
                    longer[:count] = firsts
                    firsts = longer
                firsts[count] = position
                count += 1
            representative[position] = found
            stop += 1
        first = stop
