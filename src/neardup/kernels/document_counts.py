"""Count in how many documents each feature occurs, in a table of bounded size.

The table is open addressing with linear probing: a slot is free where its count is zero.
"""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel

U64 = np.uint64


@kernel
def _slot_of(value, hashes, counts):
    """Return the slot of a hash, or the free one where it belongs."""
    mask = len(hashes) - 1
    # The low bits are as good as any others of a uniform hash.
    slot = np.int64(value & U64(mask))
    while counts[slot] != 0 and hashes[slot] != value:
        slot = (slot + 1) & mask
    return slot


@kernel
def add_documents(features, offsets, first, most, missed, table, size):
    """Add documents from `first` on; return the next document to be added, and the new size of the table.

    features : uint64, each once in a document; offsets : int64 (num_documents + 1,); table : hashes, counts and misses,
    a power of two of slots; missed : what a new entry's count may lack. Stops before a document for which there may
    not be room, two thirds being full, and after one that leaves more than `most` entries.
    """
    hashes, counts, misses = table
    for document in range(first, len(offsets) - 1):
        if 3 * (size + offsets[document + 1] - offsets[document]) > 2 * len(hashes):
            return document, size
        for i in range(offsets[document], offsets[document + 1]):
            slot = _slot_of(features[i], hashes, counts)
            if counts[slot] == 0:
                hashes[slot], misses[slot] = features[i], missed
                size += 1
            counts[slot] += np.uint32(1)
        if size > most:
            return document + 1, size
    return len(offsets) - 1, size


@kernel
def move_entries(table, missed, target):
    """Put those entries of a table into an empty one that may count more than `missed`; return how many."""
    hashes, counts, misses = table
    size = 0
    for old in range(len(hashes)):
        if counts[old] != 0 and np.int64(counts[old]) + np.int64(misses[old]) > missed:
            slot = _slot_of(hashes[old], target.hashes, target.counts)
            target.hashes[slot], target.counts[slot], target.misses[slot] = hashes[old], counts[old], misses[old]
            size += 1
    return size
