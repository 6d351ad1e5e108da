"""Parts of fingerprints that share the bits under a mask: which part each belongs to, and all copied part by part."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel
from neardup.kernels.intrinsics import count_ones

U64 = np.uint64
_FIRST_FACTOR, _SECOND_FACTOR = U64(0x9E3779B97F4A7C15), U64(0xD6E8FEB86659FD93)
_STRETCH = 4096  # rows hashed at a time


@kernel
def hash_masked(fingerprints, row, mask):
    """Return 64 bits, of which the upper ones are well mixed, from the bits of a fingerprint under a mask."""
    value = U64(0)
    for word in range(fingerprints.shape[1]):
        value += (fingerprints[row, word] & mask[word]) * (_FIRST_FACTOR + U64(word << 1))
    value ^= value >> U64(32)
    return value * _SECOND_FACTOR


@kernel
def find_cells(fingerprints, first, mask, num_cells, cells):
    """Set cells[i] (uint32) from the hash of row first + i. num_cells : a power of two, two or more."""
    shift = U64(64) - U64(count_ones(U64(num_cells - 1)))
    if fingerprints.shape[1] == 1:  # the same once more, without a loop inside: three times as fast
        words, only = fingerprints.reshape(-1)[first : first + len(cells)], mask[0]
        for i in range(len(cells)):
            value = (words[i] & only) * _FIRST_FACTOR
            value ^= value >> U64(32)
            cells[i] = np.uint32((value * _SECOND_FACTOR) >> shift)
    else:
        for i in range(len(cells)):
            cells[i] = np.uint32(hash_masked(fingerprints, first + i, mask) >> shift)


@kernel
def count_parts(fingerprints, span, mask, counts):
    """Count the records of rows span[0] to span[1] in each part. counts : int64, a power of two, two or more."""
    parts = np.empty(_STRETCH, np.uint32)
    for first in range(span[0], span[1], _STRETCH):
        size = min(_STRETCH, span[1] - first)
        find_cells(fingerprints, first, mask, len(counts), parts[:size])
        for i in range(size):
            counts[parts[i]] += 1


@kernel
def scatter_parts(fingerprints, span, mask, selection, cursors, records):
    """Copy those of rows span[0] to span[1] that belong to some consecutive parts, in order.

    selection : the number of all parts, and the first of those to copy. cursors : int64, the next free place in each
    of the parts to copy. records : as in kernels/blocks.py; positions take the rows.
    """
    parts, selected = np.empty(_STRETCH, np.uint32), np.empty(_STRETCH, np.uint32)
    num_words = fingerprints.shape[1]
    flat, copied = fingerprints.reshape(-1), records.fingerprints.reshape(-1)
    first_part, num_parts = np.uint32(selection[1]), np.uint32(len(cursors))
    for first in range(span[0], span[1], _STRETCH):
        size = min(_STRETCH, span[1] - first)
        find_cells(fingerprints, first, mask, selection[0], parts[:size])
        num_selected = 0
        for i in range(size):  # without a branch, which a processor would guess wrong
            selected[num_selected] = i
            num_selected += np.uint32(parts[i] - first_part) < num_parts
        for i in range(num_selected):
            row = first + np.int64(selected[i])
            part = np.int64(parts[selected[i]]) - selection[1]
            place = cursors[part]
            cursors[part] = place + 1
            records.positions[place] = row
            if num_words == 1:
                copied[place] = flat[row]
            else:
                for word in range(num_words):
                    copied[place * num_words + word] = flat[row * num_words + word]
