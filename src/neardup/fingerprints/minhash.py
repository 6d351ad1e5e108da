"""MinHash signatures: the permutations of a scheme, and the keys of a signature's bands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

SCHEME_NAME, WEIGHTED_SCHEME_NAME = "minhash", "weighted-minhash"
SCHEME_VERSION = 1


@dataclass(frozen=True)
class Permutations:
    """The affine maps x -> (a x + b) mod 2^32 of a scheme. multipliers, addends : uint32 of shape (num_hashes,)."""

    multipliers: npt.NDArray[np.uint32]
    addends: npt.NDArray[np.uint32]


@cache
def permutations(num_hashes: int, seed: int) -> Permutations:
    """Draw the permutations of a seed; the first n are the same however many are drawn.

    Notes
    -----
    Philox counters (Salmon et al., SC 2011) as NumPy implements them; the stream of a bit generator is fixed by
    NumPy's compatibility policy, that of its distributions is not, so raw words are used.
    """
    words = np.random.Philox(key=seed).random_raw(num_hashes)
    multipliers = (words >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    return Permutations(multipliers, words.astype(np.uint32))


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
    """
    from neardup.kernels import minhash as kernel

    drawn = permutations(num_hashes, seed)
    signatures = np.empty((len(offsets) - 1, num_hashes), np.uint32) if out is None else out
    kernel.sign(hashes, offsets, drawn.multipliers, drawn.addends, signatures)
    return signatures


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
