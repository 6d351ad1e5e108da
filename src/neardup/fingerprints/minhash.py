"""MinHash signatures: the permutations of a seed, and the keys of a signature's bands."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Bytes, Floats, Ints, Mask, Uint32s, Words
from neardup.kernels.token_arrays import Tables, Text, longest_of, make_buffers

SCHEME_NAME, WEIGHTED_SCHEME_NAME = "minhash", "weighted-minhash"
SCHEME_VERSION = 2
_BLOCK = 128  # hashes of a signature that share a factor


class Permutations(NamedTuple):
    """The permutations of a seed; see kernels/minhash.py.

    factors : uint64 of shape (num_blocks,), odd; multipliers : uint32 of shape (128 num_blocks,),
    two odd numbers of 16 bits in each. The last block is drawn whole, whatever the length of a
    signature.
    """

    factors: Words
    multipliers: Uint32s


@cache
def draw_permutations(num_hashes: int, seed: int) -> Permutations:
    """Draw the permutations of a seed; the first n are the same however many are drawn.

    Notes
    -----
    Philox counters (Salmon et al., SC 2011) as NumPy implements them; the stream of a bit generator
    is fixed by NumPy's compatibility policy, that of its distributions is not, so raw words are
    used.
    """
    num_blocks = -(-num_hashes // _BLOCK)
    words = (
        np.random.Philox(key=seed)
        .random_raw(num_blocks * (1 + _BLOCK // 2))
        .reshape(num_blocks, -1)
    )
    multipliers = words[:, 1:].astype("<u8").view("<u4").astype(np.uint32) | np.uint32(0x10001)
    return Permutations(words[:, 0] | np.uint64(1), multipliers.reshape(-1))


def sign(
    hashes: Words, offsets: Ints, num_hashes: int, seed: int, out: Uint32s | None = None
) -> Uint32s:
    """Return the MinHash signatures of documents given as ranges of shingle hashes.

    Parameters
    ----------
    hashes : uint64 array, well mixed; repeats do not matter.
    offsets : int64 array of shape (num_documents + 1,).
    num_hashes : length of a signature.
    seed : seed of the permutations.
    out : the array to fill and return; a new one when None.

    Returns
    -------
    uint32 array of shape (num_documents, num_hashes); all ones for a document without shingles.

    Notes
    -----
    Broder (1997). Two signatures agree in a hash with probability J, the Jaccard similarity of the
    two sets, up to 2^-32 times their size, since each takes 32 bits.

    To multiply halves of 16 bits by odd numbers permutes them, and takes a processor half of the
    time of whole words. But there are few such permutations: of two hashes whose halves are in a
    ratio of small numbers, one hides the other in more than its share of the signature. So the
    halves differ for every 64 hashes, and for every seed. That the estimates are those of theory is
    measured: tests/fingerprints/test_estimates.py, docs/accuracy.md.
    """
    signatures = np.empty((len(offsets) - 1, num_hashes), np.uint32) if out is None else out
    kernels.minhash.sign(hashes, offsets, *draw_permutations(num_hashes, seed), signatures)
    return signatures


def sign_strings(data: Bytes, offsets: Ints, set_offsets: Ints, seed: int, out: Uint32s) -> int:
    """Fill the MinHash signatures of sets of strings, hashed as kernels/strings.py does, empty
    strings left out.

    Parameters
    ----------
    data : uint8 array, and offsets : int64 array of shape (num_strings + 1,), as Arrow holds
        strings.
    set_offsets : int64 array of shape (num_sets + 1,); the strings of set i are set_offsets[i] to
        set_offsets[i + 1].
    seed : seed of the permutations.
    out : uint32 array of shape (num_sets, num_hashes), as `sign` returns.

    Returns
    -------
    The first set of which a string lies outside of the data, from which on nothing is filled; -1 if
    there is none.
    """
    hashes = np.empty(np.diff(set_offsets).max(initial=0), np.uint64)
    drawn = draw_permutations(out.shape[1], seed)
    return int(kernels.minhash.sign_strings(data, offsets, set_offsets, *drawn, hashes, out))


def sign_texts(text: Text, tables: Tables, mode: int, ngram: int, seed: int, out: Uint32s) -> Mask:
    """Fill the MinHash signatures of the shingles of texts, which are nowhere kept.

    Parameters
    ----------
    text, tables, mode : the texts, and how they are cut; see kernels/tokens.py.
    ngram : tokens of a shingle.
    seed : seed of the permutations.
    out : uint32 array of shape (num_documents, num_hashes), as `sign` returns.

    Returns
    -------
    bool array of shape (num_documents,): where a text must be normalised as a whole before, and out
    means nothing.
    """
    buffers = make_buffers(longest_of(text))
    hashes, flagged = np.empty_like(buffers.tokens), np.empty(len(out), np.bool_)
    drawn = draw_permutations(out.shape[1], seed)
    kernels.minhash.sign_texts(text, (tables, mode, ngram), buffers, drawn, hashes, out, flagged)
    return flagged


def sign_weighted(
    hashes: Words,
    weights: Floats,
    offsets: Ints,
    num_hashes: int,
    seed: int,
    out: Uint32s | None = None,
) -> Uint32s:
    """Return the signatures of documents whose features have weights.

    Parameters
    ----------
    hashes : uint64 array, well mixed, distinct in each document.
    weights : float64 array as long; 0 is as if the feature was not there, others from 1e-100 to
        1e100.
    offsets : int64 array of shape (num_documents + 1,).
    num_hashes : length of a signature.
    seed : seed of the samples.
    out : the array to fill and return; a new one when None.

    Returns
    -------
    uint32 array of shape (num_documents, num_hashes); all ones for a document without weight.

    Notes
    -----
    Consistent weighted sampling (Manasse, McSherry and Talwar 2010) by the darts of Christiani
    (DartMinHash, 2020), whose ranks here are the arrivals of a Poisson process. Two signatures
    agree in a hash with probability J, the weighted Jaccard similarity sum(min) / sum(max), up to
    2^-23; hashes are independent. Expected time O(num_hashes log(num_hashes) + num_features), where
    Ioffe's samples (2010) take num_hashes x num_features.
    """
    signatures = np.empty((len(offsets) - 1, num_hashes), np.uint32) if out is None else out
    kernels.weighted_minhash.sign_weighted(hashes, weights, offsets, np.uint64(seed), signatures)
    return signatures


def band_keys(signatures: Uint32s, num_bands: int) -> Words:
    """Return a 64-bit key of every band, shape (num_bands, num_documents).

    Requires: num_bands divides the length of a signature. Keys of two bands are never compared.
    """
    keys = np.empty((num_bands, len(signatures)), np.uint64)
    kernels.minhash.band_keys(signatures, signatures.shape[1] // num_bands, keys)
    return keys
