"""MinHash signatures: the permutations of a seed, and the keys of a signature's bands."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Bytes, Floats, Ints, Mask, Uint32s, Words
from neardup.kernels.token_arrays import Tables, Text, longest_of, make_buffers

SCHEME_NAME = "minhash"
WEIGHTED_SCHEME_NAME = "weighted-minhash"
SCHEME_VERSION = 2
_BLOCK = 128  # hashes of a signature that share a factor


class Permutations(NamedTuple):
    """The permutations of a seed; see kernels/minhash.py.

    factors : uint64 of shape (num_blocks,), odd. multipliers : uint32 of shape (128 num_blocks,),
    two odd numbers of 16 bits in each. The last block is complete, whatever the length of a
    signature.
    """

    factors: Words
    multipliers: Uint32s


@lru_cache(maxsize=64)  # a server may be given any number of seeds
def draw_permutations(num_hashes: int, seed: int) -> Permutations:
    """Draw the permutations of a seed; the first n do not depend on their number.

    Notes
    -----
    Philox counters (Salmon et al., SC 2011) as NumPy implements them. Raw words are used, because
    NumPy's compatibility policy fixes the stream of a bit generator, but not its distributions.
    """
    num_blocks = -(-num_hashes // _BLOCK)
    words_per_block = 1 + _BLOCK // 2  # a factor, and two multipliers a word
    words = np.random.Philox(key=seed).random_raw(num_blocks * words_per_block)
    blocks = words.reshape(num_blocks, words_per_block)
    # Odd numbers have inverses modulo a power of two, so each product is a permutation.
    factors = blocks[:, 0] | np.uint64(1)
    multipliers = blocks[:, 1:].astype("<u8").view("<u4").astype(np.uint32) | np.uint32(0x10001)
    return Permutations(factors=factors, multipliers=multipliers.reshape(-1))


def sign(
    hashes: Words, offsets: Ints, num_hashes: int, seed: int, out: Uint32s | None = None
) -> Uint32s:
    """Return the MinHash signatures of documents given as ranges of shingle hashes.

    Parameters
    ----------
    hashes : uint64 array, well mixed; repeats have no effect.
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
    two sets, up to 2^-32 times their size, since a hash has 32 bits.

    Multiplying halves of 16 bits by odd numbers permutes them in half of the time of whole words.
    But there are few such permutations: of two hashes whose halves have a ratio of small numbers,
    one hides the other in too many values of the signature. Therefore the halves differ for every
    64 hashes, and for every seed. Measurements confirm that the estimates follow theory:
    tests/fingerprints/test_estimates.py, docs/accuracy.md.
    """
    signatures = np.empty((len(offsets) - 1, num_hashes), np.uint32) if out is None else out
    kernels.minhash.sign(hashes, offsets, *draw_permutations(num_hashes, seed), signatures)
    return signatures


def sign_strings(data: Bytes, offsets: Ints, set_offsets: Ints, seed: int, out: Uint32s) -> None:
    """Fill the MinHash signatures of sets of strings, without empty strings.

    Strings are hashed by kernels/strings.py.

    Parameters
    ----------
    data : uint8 array, the bytes of the strings.
    offsets : int64 array of shape (num_strings + 1,), as in Arrow; inside the data.
    set_offsets : int64 array of shape (num_sets + 1,); the strings of set i are set_offsets[i] to
        set_offsets[i + 1].
    seed : seed of the permutations.
    out : uint32 array of shape (num_sets, num_hashes), to fill with the result of `sign`.
    """
    hashes = np.empty(np.diff(set_offsets).max(initial=0), np.uint64)
    drawn = draw_permutations(out.shape[1], seed)
    kernels.minhash.sign_strings(data, offsets, set_offsets, *drawn, hashes, out)


def sign_texts(
    text: Text, tables: Tables, mode: int, ngram: int, seed: int, *, out: Uint32s
) -> Mask:
    """Fill the MinHash signatures of the shingles of texts, without storing the shingles.

    Parameters
    ----------
    text, tables, mode : the texts, and the rules of tokens; see kernels/tokens.py.
    ngram : the number of tokens of a shingle.
    seed : seed of the permutations.
    out : uint32 array of shape (num_documents, num_hashes), to fill with the result of `sign`.

    Returns
    -------
    bool array of shape (num_documents,), the texts that must be normalised as a whole first; their
    rows of `out` are undefined.
    """
    buffers = make_buffers(longest_of(text))
    hashes = np.empty_like(buffers.tokens)
    flagged = np.empty(len(out), np.bool_)
    drawn = draw_permutations(out.shape[1], seed)
    kernels.minhash.sign_texts(text, (tables, mode, ngram), buffers, drawn, hashes, out, flagged)
    return flagged


def sign_weighted(
    hashes: Words,
    weights: Floats,
    offsets: Ints,
    num_hashes: int,
    seed: int,
    *,
    out: Uint32s | None = None,
) -> Uint32s:
    """Return the signatures of documents whose features have weights.

    Parameters
    ----------
    hashes : uint64 array, well mixed, distinct in each document.
    weights : float64 array of the same length, from 1e-100 to 1e100; a feature of weight 0 has no
        effect.
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
    (DartMinHash, 2020); their ranks here are the arrivals of a Poisson process. Two signatures
    agree in a hash with probability J, the weighted Jaccard similarity sum(min) / sum(max), up to
    2^-23; hashes are independent. Expected time O(num_hashes log(num_hashes) + num_features);
    Ioffe's samples (2010) take num_hashes x num_features.
    """
    signatures = np.empty((len(offsets) - 1, num_hashes), np.uint32) if out is None else out
    kernels.weighted_minhash.sign_weighted(hashes, weights, offsets, np.uint64(seed), signatures)
    return signatures


def band_keys(signatures: Uint32s, num_bands: int) -> Words:
    """Return a 64-bit key of every band, shape (num_bands, num_documents).

    Requires: num_bands divides the length of a signature. Only keys of the same band are compared.
    """
    keys = np.empty((num_bands, len(signatures)), np.uint64)
    kernels.minhash.band_keys(signatures, signatures.shape[1] // num_bands, keys)
    return keys
