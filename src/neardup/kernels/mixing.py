"""Hash functions for 64-bit integers, the slots of a hash table, and the sizes of arrays."""

import numpy as np

from neardup.kernels.compiled import I64, U64, kernel


@kernel
def find_slot(keys, occupied, free, key):
    """Return the slot of a key, or the free slot for it.

    keys : uint64 (num_slots,), uniform hashes; num_slots is a power of two. occupied : of the same
    length, equal to `free` at free slots. Requires: a slot is free.
    """
    mask = len(keys) - 1
    slot = I64(key & U64(mask))
    # Linear probing ends, since a slot is free.
    while occupied[slot] != free and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel(allocates=True)
def double(array):
    """Return a copy of an array, twice as long."""
    longer = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):  # an assignment to a slice takes 1.5 seconds to compile
        longer[i] = array[i]
    return longer


@kernel
def max_length(offsets):
    """Return the length of the longest of consecutive ranges, 0 if there are none."""
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest


# Multipliers of moremur, a variant of the finaliser of SplitMix64 (Pelle Evensen, 2019).
MIX_1 = U64(0x3C79AC492BA7B653)
MIX_2 = U64(0x1C69B3F74AC4AE35)
# Constants of the 64-bit hash by Fowler, Noll and Vo.
FNV_OFFSET = U64(0xCBF29CE484222325)
FNV_PRIME = U64(0x100000001B3)


@kernel
def mix(value):
    """Mix the bits of a uint64, one to one: every bit of the result depends on all of its bits."""
    value ^= value >> U64(27)
    value *= MIX_1
    value ^= value >> U64(33)
    value *= MIX_2
    return value ^ (value >> U64(27))
