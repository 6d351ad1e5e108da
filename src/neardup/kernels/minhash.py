"""Sign sets of hashes, by permutations of 32-bit integers; compare signatures.

A hash of 64 bits is multiplied by an odd factor for every LANES values of a signature; half of
these take the upper word of the product, half the lower one. Each value permutes its word: it
multiplies both halves by odd numbers, each modulo 2^16, and complements the products. The minimum
of the complements is the complement of the maximum product, which is taken once for a set.
"""

import numpy as np

from neardup.kernels.compiled import I64, U8, U32, U64, kernel
from neardup.kernels.intrinsics import address_of, prefetch
from neardup.kernels.mixing import MIX_1, MIX_2
from neardup.kernels.simd import LANES, load, raise_lanes, store
from neardup.kernels.strings import hash_at
from neardup.kernels.tokens import (
    CHARACTERS,
    LETTERS,
    SEEN,
    hash_ascii,
    leave_out_repeats,
    shingle_document,
)

_AHEAD = 2048  # bytes; with less, the memory is not there in time


# Inlined, since an array that is passed on is counted twice, atomically.
@kernel(inline=True)
def _cover(hashes, first, last, factors, multipliers, lane, row):
    """Fill the row from lanes `lane` on with the greatest products of hashes[first:last]."""
    row[lane:] = U32(0)
    while lane < len(row):
        maxima = load(row, lane)
        some = load(multipliers, lane)
        factor = factors[lane // LANES]
        for i in range(first, last):
            maxima = raise_lanes(maxima, some, hashes[i] * factor)
        store(row, lane, maxima)
        lane += LANES


@kernel(allocates=True)
def sign(hashes, offsets, factors, multipliers, signatures):
    """Fill signatures[document, i] with the minimum permuted value, by multiplier i, of its
    shingles.

    hashes : uint64; offsets : int64 (num_documents + 1,); factors : uint64 (num_blocks,), odd;
    multipliers : uint32 (num_blocks * LANES,), their halves odd; signatures : uint32
    (num_documents, num_hashes), num_hashes up to that. No shingles: all ones.
    """
    row = np.empty_like(multipliers)
    for document in range(len(offsets) - 1):
        _cover(hashes, offsets[document], offsets[document + 1], factors, multipliers, 0, row)
        for i in range(signatures.shape[1]):
            signatures[document, i] = ~row[i]


@kernel(allocates=True)
def sign_strings(data, offsets, set_offsets, factors, multipliers, hashes, signatures):
    """Fill signatures as `sign` does of the hashes of strings, empty ones left out, while they are
    hashed.

    data : uint8; offsets : int32 or int64 (num_strings + 1,), inside the data; set_offsets : int64
    (num_sets + 1,), the strings of set i are set_offsets[i] to set_offsets[i + 1]; factors,
    multipliers, signatures : as of `sign`; hashes : uint64, working space for the largest set.
    """
    row = np.empty_like(multipliers)
    base = address_of(data)
    some = load(multipliers, 0)
    factor = factors[0]
    for number in range(len(set_offsets) - 1):
        row[:LANES] = U32(0)
        lanes = load(row, 0)
        count = 0
        end = I64(offsets[set_offsets[number]])
        for i in range(set_offsets[number] + 1, set_offsets[number + 1] + 1):
            start = end
            end = I64(offsets[U64(i)])  # an unsigned index needs no check of its sign
            prefetch(base + start + _AHEAD)
            if end > start:
                # The first lanes are raised here: their arithmetic fills gaps of the hash. The
                # others follow in `_cover`.
                x = hash_at(base + start, end - start, start)
                hashes[U64(count)] = x
                count += 1
                lanes = raise_lanes(lanes, some, x * factor)
        store(row, 0, lanes)
        _cover(hashes, 0, count, factors, multipliers, LANES, row)
        for i in range(signatures.shape[1]):
            signatures[number, i] = ~row[i]


@kernel(allocates=True)
def sign_texts(text, shingling, buffers, permutations, hashes, signatures, flagged):
    """Fill signatures as `sign` does for the shingles of texts, while the shingles of each are in
    the cache.

    text, buffers, and shingling, which are tables, mode and ngram : as of `shingle_text` in
    kernels/tokens.py; permutations, which are factors and multipliers, and signatures : as of
    `sign`; hashes : uint64, working space for the longest text; flagged : bool (num_documents,),
    filled: whether a text must be normalised first, and its signature has no meaning.
    """
    tables, mode, ngram = shingling
    factors, multipliers = permutations
    row = np.empty_like(multipliers)
    seen = np.zeros(SEEN, U64)
    ascii_hashes = hash_ascii(mode)
    for document in range(len(flagged)):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        _, end, flagged[document] = shingle_document(
            data, tables, mode, ngram, buffers, ascii_hashes, hashes, 0
        )
        if mode in (CHARACTERS, LETTERS):
            end = leave_out_repeats(hashes, 0, end, document, seen)
        _cover(hashes, 0, end, factors, multipliers, 0, row)
        for i in range(signatures.shape[1]):
            signatures[document, i] = ~row[i]


@kernel
def band_keys(signatures, rows_per_band, keys):
    """Fill keys[band, document] with a 64-bit hash of the band's rows. keys : uint64 (num_bands,
    num_documents).
    """
    for document in range(signatures.shape[0]):
        for band in range(keys.shape[0]):
            key = U64(band)
            for row in range(band * rows_per_band, (band + 1) * rows_per_band):
                key = (key ^ U64(signatures[document, row])) * MIX_1
                key ^= key >> U64(32)
            key *= MIX_2
            keys[band, document] = key ^ (key >> U64(29))


@kernel
def count_equal(left, right, counts):
    """Fill counts[i] with the number of equal values in row i of two sets of signatures, 0 where
    either row is all ones.

    left, right : uint32 (num_rows, num_hashes) or of one row, which is compared with all of the
    other; counts : int64.
    """
    for i in range(len(counts)):
        first = left[i if len(left) > 1 else 0]
        second = right[i if len(right) > 1 else 0]
        # Sums and masks of 32 bits without a branch become vector instructions.
        equal = U32(0)
        some_left = U32(0)
        some_right = U32(0)
        for position in range(len(first)):
            equal += U32(first[position] == second[position])
            some_left |= ~first[position]
            some_right |= ~second[position]
        counts[i] = equal if some_left != 0 and some_right != 0 else 0


@kernel
def count_equal_packed(left, right, num_hashes, counts):
    """Fill counts[i] with the number of equal values in row i of two packed sets of signatures.

    left, right : uint8 (num_rows, bits, num_bytes), a plane for each bit, or of one row; counts :
    int64. A value differs if it differs in any plane; bits after the last value are zero in all.
    """
    for i in range(len(counts)):
        first = left[i if len(left) > 1 else 0]
        second = right[i if len(right) > 1 else 0]
        different = 0
        for byte in range(first.shape[1]):
            both = U8(0)
            for plane in range(first.shape[0]):
                both |= first[plane, byte] ^ second[plane, byte]
            # Count the bits of a byte: in pairs, in halves, in all.
            both -= (both >> U8(1)) & U8(0x55)
            both = (both & U8(0x33)) + ((both >> U8(2)) & U8(0x33))
            different += (both + (both >> U8(4))) & U8(0x0F)
        counts[i] = num_hashes - different
