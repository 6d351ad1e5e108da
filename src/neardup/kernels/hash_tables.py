"""Find keys in tables by open addressing."""

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
