"""A table from ids, as bytes, to rows: open addressing, the bytes themselves kept in one long
array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.key_tables import has_bit
from neardup.kernels.mixing import FNV_OFFSET, FNV_PRIME, MIX_1

# Values of a slot without a row.
FREE = U32(0xFFFFFFFF)
REMOVED = U32(0xFFFFFFFE)


class Ids(NamedTuple):
    """Ids one after the other. data : uint8; offsets : int64 (num_ids + 1,), where each begins."""

    data: np.ndarray
    offsets: np.ndarray


@kernel
def _find(ids, number, stored, slots):
    """Return the slot of the row with an equal id, or of the first free one. Requires: one slot is
    free.
    """
    start = ids.offsets[number]
    size = ids.offsets[number + 1] - ids.offsets[number]
    state = FNV_OFFSET
    for i in range(size):
        state = (state ^ U64(ids.data[start + i])) * FNV_PRIME
    state = (state ^ (state >> U64(32))) * MIX_1
    mask = len(slots) - 1
    slot = I64((state ^ (state >> U64(29))) & U64(mask))
    while slots[slot] != FREE:
        row = slots[slot]
        if row != REMOVED:
            other = stored.offsets[row]
            if stored.offsets[I64(row) + 1] - other == size:
                for i in range(size):
                    if stored.data[other + i] != ids.data[start + i]:
                        break
                else:
                    return slot
        slot = (slot + 1) & mask
    return slot


@kernel
def find_ids(ids, stored, slots, found):
    """Set found[i] (int64) to the slot that holds the row of ids[i], or -1."""
    for number in range(len(found)):
        slot = _find(ids, number, stored, slots)
        found[number] = -1 if slots[slot] == FREE else slot


@kernel
def enter_rows(stored, first, stop, forgotten, slots):
    """Enter the rows from `first` to `stop` that are not forgotten; return the first row whose id
    exists, or -1.
    """
    for row in range(first, stop):
        if not has_bit(forgotten, row):
            slot = _find(stored, row, stored, slots)
            if slots[slot] != FREE:
                return row
            slots[slot] = row
    return -1
