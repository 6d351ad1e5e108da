"""Move bits of fingerprints to the front of 64-bit keys."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel

U64 = np.uint64


@kernel
def _reverse(word):
    """Return a uint64 with its bits in reverse order."""
    word = ((word >> U64(1)) & U64(0x5555555555555555)) | ((word & U64(0x5555555555555555)) << U64(1))
    word = ((word >> U64(2)) & U64(0x3333333333333333)) | ((word & U64(0x3333333333333333)) << U64(2))
    word = ((word >> U64(4)) & U64(0x0F0F0F0F0F0F0F0F)) | ((word & U64(0x0F0F0F0F0F0F0F0F)) << U64(4))
    word = ((word >> U64(8)) & U64(0x00FF00FF00FF00FF)) | ((word & U64(0x00FF00FF00FF00FF)) << U64(8))
    word = ((word >> U64(16)) & U64(0x0000FFFF0000FFFF)) | ((word & U64(0x0000FFFF0000FFFF)) << U64(16))
    return (word >> U64(32)) | (word << U64(32))


@kernel
def permute_bits(words, moves, keys):
    """Fill keys, uint64 (num_tables, num_rows).

    words : uint64 (num_rows, num_words), fingerprints, the lowest word first. moves : uint64 (num_tables, num_moves,
    3): a word, bits of it when its lowest bit is the highest, and how far left these are rotated in the key.
    """
    reverse = np.empty(words.shape[1], np.uint64)
    for row in range(words.shape[0]):
        for word in range(len(reverse)):
            reverse[word] = _reverse(words[row, word])
        for table in range(len(moves)):
            key = U64(0)
            for move in range(moves.shape[1]):
                bits = reverse[np.int64(moves[table, move, 0])] & moves[table, move, 1]
                far = moves[table, move, 2]
                key |= bits << far | bits >> ((U64(64) - far) & U64(63))
            keys[table, row] = key
