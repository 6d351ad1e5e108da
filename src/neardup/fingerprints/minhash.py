"""MinHash signatures: the permutations of a seed, and the keys of a signature's bands."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

SCHEME_NAME, WEIGHTED_SCHEME_NAME = "minhash", "weighted-minhash"
SCHEME_VERSION = 2


_UPPER_HALVES = 1 << 15  # odd numbers of 16 bits


@cache
def draw_multipliers(num_hashes: int, seed: int) -> npt.NDArray[np.uint32]:
    """Return the multipliers of a seed, uint32 of shape (num_hashes,): two odd numbers of 16 bits in each.

    The first n are the same however many are drawn, and the upper halves of 32,768 in a row all differ: of two
    permutations with the same one, the second says little.

    Notes
    -----
    Philox counters (Salmon et al., SC 2011) as NumPy implements them; the stream of a bit generator is fixed by
    NumPy's compatibility policy, that of its distributions is not, so raw words are used.
    """
    words = np.random.Philox(key=seed).random_raw(max(num_hashes, _UPPER_HALVES))
    upper = np.resize(np.argsort(words[:_UPPER_HALVES], kind="stable"), num_hashes).astype(np.uint32)
    lower = words[:num_hashes].astype(np.uint32) & np.uint32(0xFFFF)
    return upper << np.uint32(17) | lower | np.uint32(0x10001)


def sign(
    hashes: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.int64],
    num_hashes: int,
    seed: int,
    out: npt.NDArray[np.uint32] | None = None,
) -> npt.NDArray[np.uint32]:
    """Return the MinHash signatures of documents given as ranges of shingle hashes.

    Parameters
    ----------
    hashes : uint64 array, well mixed; repeats do not matter.
    offsets : int64 array of shape (num_documents + 1,).
    num_hashes : length of a signature.
    seed : seed of the permutations.
    out : what is filled and returned; None for an array of its own.

    Returns
    -------
    uint32 array of shape (num_documents, num_hashes); all ones for a document without shingles.

    Notes
    -----
    Broder (1997). Two signatures agree in a place with probability J, the Jaccard similarity of the two sets, up to
    2^-32 times their size, since a shingle enters by its upper 32 bits.

    A permutation takes the halves of these, 16 bits each, times an odd number each, and puts the complement of the
    lower product behind that of the upper one. Multiplying by an odd number permutes the numbers of 16 bits, so the
    pair is permuted; processors multiply 32 halves at once, but only 16 whole words in twice the time. That lanes are
    as good as independent is measured: tests/test_signatures.py, docs/accuracy.md.
    """
    from neardup.kernels import minhash as kernel

    signatures = np.empty((len(offsets) - 1, num_hashes), np.uint32) if out is None else out
    kernel.sign(hashes, offsets, draw_multipliers(num_hashes, seed), signatures)
    return signatures


def sign_strings(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int32 | np.int64],
    limits: npt.NDArray[np.int64],
    seed: int,
    out: npt.NDArray[np.uint32],
) -> None:
    """Fill the MinHash signatures of sets of strings, hashed as kernels/strings.py does, empty strings left out.

    Parameters
    ----------
    data : uint8 array, and offsets : int32 or int64 array of shape (num_strings + 1,), as Arrow holds strings.
    limits : int64 array of shape (num_sets + 1,); the strings of set i are limits[i] to limits[i + 1].
    seed : seed of the permutations.
    out : uint32 array of shape (num_sets, num_hashes), as `sign` returns.
    """
    from neardup.kernels import minhash as kernel

    upper = np.empty(np.diff(limits).max(initial=0), np.uint32)
    kernel.sign_strings(data, offsets, limits, draw_multipliers(out.shape[1], seed), upper, out)


def sign_weighted(
    hashes: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
    num_hashes: int,
    seed: int,
    out: npt.NDArray[np.uint32] | None = None,
) -> npt.NDArray[np.uint32]:
    """Return the signatures of documents whose features have weights.

    Parameters
    ----------
    hashes : uint64 array, well mixed, distinct in each document.
    weights : float64 array as long; 0 is as if the feature was not there, others from 1e-100 to 1e100.
    offsets : int64 array of shape (num_documents + 1,).
    num_hashes : length of a signature.
    seed : seed of the samples.
    out : what is filled and returned; None for an array of its own.

    Returns
    -------
    uint32 array of shape (num_documents, num_hashes); all ones for a document without weight.

    Notes
    -----
    Consistent weighted sampling (Manasse, McSherry and Talwar 2010) by the darts of Christiani (DartMinHash, 2020),
    whose ranks here are the arrivals of a Poisson process. Two signatures agree in a place with probability J, the
    weighted Jaccard similarity sum(min) / sum(max), up to 2^-23; places are independent. Expected time
    O(num_hashes log(num_hashes) + num_features), where Ioffe's samples (2010) take num_hashes x num_features.
    """
    from neardup.kernels import darts as kernel

    signatures = np.empty((len(offsets) - 1, num_hashes), np.uint32) if out is None else out
    kernel.sign_weighted(hashes, weights, offsets, np.uint64(seed), signatures)
    return signatures


def band_keys(signatures: npt.NDArray[np.uint32], num_bands: int) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key of every band, shape (num_bands, num_documents).

    Requires: num_bands divides the length of a signature. Keys of two bands are never compared.
    """
    from neardup.kernels import minhash as kernel

    keys = np.empty((num_bands, len(signatures)), np.uint64)
    kernel.band_keys(signatures, signatures.shape[1] // num_bands, keys)
    return keys
