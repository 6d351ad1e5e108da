"""Weigh the features of documents: by one, by frequency, by rarity, by level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Features(NamedTuple):
    """The distinct features of documents, in each document by rising hash.

    hashes : uint64; counts : uint32, occurrences in the document; firsts : int64, the place of the first
    occurrence among all features of the batch; offsets : int64 (num_documents + 1,).
    """

    hashes: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.uint32]
    firsts: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]


def distinct_features(hashes: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64]) -> Features:
    """Return the distinct features of documents given as ranges of feature hashes in the order of the text."""
    from neardup.kernels import weights as kernel

    size = len(hashes)
    found = Features(
        np.empty(size, np.uint64), np.empty(size, np.uint32), np.empty(size, np.int64), np.empty_like(offsets)
    )
    kernel.distinct_features(hashes, offsets, found.hashes, found.counts, found.firsts, found.offsets)
    end = found.offsets[-1]
    return Features(found.hashes[:end], found.counts[:end], found.firsts[:end], found.offsets)
