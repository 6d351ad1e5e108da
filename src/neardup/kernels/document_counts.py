"""Count in how many documents each feature occurs, in a table of bounded size.

The table is open addressing with linear probing: a slot is free where its count is zero.
"""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel
from neardup.kernels.hash_tables import find_slot


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
            slot = find_slot(hashes, counts, 0, features[i])
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
            slot = find_slot(target.hashes, target.counts, 0, hashes[old])
            target.hashes[slot], target.counts[slot], target.misses[slot] = hashes[old], counts[old], misses[old]
            size += 1
    return size
