"""Measure the recall of a search on a sample, whose documents are compared with all documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Ints, Mask, Words

if TYPE_CHECKING:
    from neardup.kernels.sorted_sets import Sets

_SEED = 20261121  # fixed: the same corpus and settings draw the same documents


def draw_sample(is_featured: Mask, num_documents: int) -> Ints:
    """Return the numbers of sampled documents, rising.

    is_featured : bool by document, in input order.
    """
    featured = np.flatnonzero(is_featured)
    drawn = np.random.default_rng(_SEED).permutation(len(featured))[:num_documents]
    return np.sort(featured[drawn]).astype(np.int64)


class ComparedDocuments(NamedTuple):
    """Documents to compare.

    content : uint64 (num_documents, 2). keys : uint64 (num_keys, num_documents). sets : the sets of
    these documents, or of all documents, in which document i is number `first` + i.
    """

    content: Words
    keys: Words
    sets: Sets
    first: int = 0


class RecallSample:
    """A sample, and the number of pairs of each of its documents so far.

    `found` has the pairs that share a band, `true` all pairs, both int64 (num_samples,). Copies
    share every band; they are left out here and in the estimate of the recall.

    Parameters
    ----------
    rows : int64 (num_samples,), the sampled documents in `sample.sets`.
    """

    def __init__(self, sample: ComparedDocuments, rows: Ints, threshold: float) -> None:
        sizes = sample.sets.sizes[rows]
        num_hashes = int(sizes.astype(np.int64).sum())
        self._postings = kernels.sieve.make_postings(num_hashes, num_hashes)
        kernels.recall_sample.fill(
            self._postings, sample.sets.hashes, sample.sets.starts[rows], sizes
        )
        self._sample = kernels.recall_sample.Sample(rows, sizes, sample.content, sample.keys)
        self._threshold = threshold
        self.found = np.zeros(len(rows), np.int64)
        self.true = np.zeros(len(rows), np.int64)

    def compare(self, documents: ComparedDocuments) -> None:
        """Count the pairs of the sample with further documents."""
        stretch = kernels.recall_sample.Stretch(documents.first, documents.content, documents.keys)
        counts = kernels.recall_sample.Counts(self.found, self.true)
        kernels.recall_sample.compare(
            self._postings, self._sample, stretch, documents.sets, self._threshold, counts
        )
