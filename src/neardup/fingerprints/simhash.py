"""SimHash fingerprints: from features and weights to bits; and their scheme.

Each bit of a fingerprint is a vote: a feature adds its weight if the bit of its hash is 1 and
subtracts it if the bit is 0; the bit of the fingerprint is 1 if the sum is positive (Charikar 2002;
Manku, Jain and Das Sarma 2007). Bit i of a fingerprint is bit i % 64 of word i // 64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Floats, Ints, Words

SCHEME = {"name": "simhash", "version": 2}

BITS = (32, 64, 128, 256)
"""The lengths of fingerprints."""


def num_words(bits: int) -> int:
    """Return the number of 64-bit words of a fingerprint."""
    return (bits + 63) // 64


def summarise(hashes: Words, offsets: Ints, bits: int, *, tie: int = 1) -> Words:
    """Return the fingerprints of documents; each feature has one vote, with repeats.

    Parameters
    ----------
    hashes : uint64 array, the native hashes of all features.
    offsets : int64 array of shape (num_documents + 1,), the range of features of each document.
    bits : 32, 64, 128 or 256.
    tie : the bit, 0 or 1, for a tied vote. Native fingerprints have 1, like mfonda/simhash.

    Returns
    -------
    uint64 array of shape (num_documents, num_words); zeros for a document without features, which
    has no fingerprint.

    Notes
    -----
    Charikar (2002), section 3: two fingerprints differ in a bit with probability angle / pi, the
    angle between the two vectors of feature weights. Word 0 of a feature is its hash, word w a mix
    of the hash and w. Therefore a fingerprint of 64 bits is the first word of one of 256 bits, and
    one of 32 bits is its lower half.
    """
    fingerprints = np.empty((len(offsets) - 1, num_words(bits)), np.uint64)
    kernels.simhash.vote(hashes, offsets, tie, fingerprints)
    return _trim(fingerprints, bits)


class Sums(NamedTuple):
    """Fingerprints of documents.

    last_sums : float64 (64 * num_words,), the sum of the votes of each bit of the last document.
    """

    fingerprints: Words
    last_sums: Floats


def summarise_weighted(
    words: Words, weights: Floats, offsets: Ints, bits: int, *, tie: int = 1
) -> Sums:
    """Return the fingerprints of documents from weighted features.

    Parameters
    ----------
    words : uint64 array of shape (num_features, num_words), the hashes of the features.
    weights : float64 array of shape (num_features,). Sums of whole numbers are exact below 2^53.
    offsets : int64 array of shape (num_documents + 1,), the range of features of each document.
    bits : 32, 64, 128 or 256.
    tie : the bit, 0 or 1, for a sum of zero.
    """
    fingerprints = np.empty((len(offsets) - 1, num_words(bits)), np.uint64)
    sums = np.zeros(64 * num_words(bits))
    kernels.simhash.add_up(words, weights, offsets, tie, sums, fingerprints)
    return Sums(_trim(fingerprints, bits), sums)


def _trim(fingerprints: Words, bits: int) -> Words:
    """Clear the unused upper bits of a fingerprint."""
    if bits % 64:
        fingerprints[:, -1] &= np.uint64((1 << bits % 64) - 1)
    return fingerprints


def to_integers(fingerprints: Words) -> list[int]:
    """Return each fingerprint as one integer."""
    return [
        sum(word << 64 * index for index, word in enumerate(words))
        for words in fingerprints.tolist()
    ]


def extend(hashes: Words, bits: int) -> Words:
    """Return native feature hashes as words of a fingerprint, shape (num_features, num_words)."""
    if num_words(bits) == 1:
        return hashes[:, None]
    words = np.empty((len(hashes), num_words(bits)), np.uint64)
    kernels.simhash.extend_hashes(hashes, words)
    return words
