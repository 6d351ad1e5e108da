"""Hash whole strings where they lie."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel
from neardup.kernels.intrinsics import address_of, fold_product, load_at, load_byte_at, load_half_at

U64 = np.uint64
# Random constants, none of which is part of any text in UTF-8: no factor of a product below is zero for a short one.
_START, _FIRST, _LAST = U64(0x9E3779B97F4A7C15), U64(0xA0761D6478BD642F), U64(0xE7037ED1A0B428DB)


# Inlined by Numba, since arithmetic of the next string and of its caller then fill each other's gaps.
@kernel(inline="always")
def hash_at(start, size, margin):
    """Return the hash, uint64, of the `size` bytes at an address.

    Words of 8 bytes are multiplied in pairs, and the halves of the product folded (as Wang Yi's wyhash does, 2019): 16
    bytes a product and one more at the end. The last two words may overlap, or be the same, so no byte is masked and
    nothing behind the string is read.

    Requires: size > 0; `margin` bytes before it may be read: with 7 a short one is read like a longer one.
    """
    state = _START
    end = start + size
    if size > 16:
        stop = end - 16
        while start < stop:
            state = fold_product(load_at(start) ^ _FIRST, load_at(start + 8) ^ state)
            start += 16
        first, last = load_at(stop), load_at(stop + 8)
    elif size + margin >= 8:
        beyond = U64(8 * max(8 - size, 0))  # bits of a word that are not of the string
        first, last = load_at(min(start, end - 8)) >> beyond, load_at(end - 8) >> beyond
    else:
        if size >= 4:  # bytes that are read twice are the same
            first = load_half_at(start) | load_half_at(end - 4) << U64(8 * (size - 4))
        else:
            middle = size >> 1
            first = load_byte_at(start) | load_byte_at(start + middle) << U64(8 * middle)
            first |= load_byte_at(end - 1) << U64(8 * (size - 1))
        last = first
    return fold_product(fold_product(first ^ _FIRST, last ^ state), _LAST ^ U64(size))


@kernel
def hash_strings(data, offsets, hashes):
    """Fill hashes (uint64) with the hash of each string, 0 of an empty one.

    data : uint8; offsets : int32 or int64 (num_strings + 1,). Return the first string that lies outside of the data,
    where this ends; -1 if there is none.
    """
    base = address_of(data)
    for i in range(len(hashes)):
        start, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        if U64(start) > U64(len(data)) or U64(end) > U64(len(data)):  # a negative one, too
            return i
        hashes[i] = hash_at(base + start, end - start, start) if end > start else U64(0)
    return -1
