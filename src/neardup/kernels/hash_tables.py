"""Find keys in tables by open addressing; double arrays that are full."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel


@kernel
def find_slot(keys, occupied, free, key):
    """Return the slot of a key, or the free one where it belongs.

    keys : uint64 (num_slots,), a power of two, uniform hashes; occupied : as long, `free` where a slot is free.
    Requires: a slot is free.
    """
    mask = len(keys) - 1
    slot = np.int64(key & np.uint64(mask))
    while occupied[slot] != free and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def double(array):
    """Return a copy of an array, twice as long."""
    longer = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):  # an assignment to a slice takes 1.5 seconds to compile
        longer[i] = array[i]
    return longer
