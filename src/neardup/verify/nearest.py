"""Find the most similar of all documents for each document of a sample, exactly."""

from __future__ import annotations

import numpy as np

from neardup import kernels
from neardup.arrays import Floats, Ints
from neardup.features.described import Lists


class NearestDocuments:
    """The nearest document of each sampled one, among the documents compared so far.

    Postings list the sample alone: memory does not grow with the number of documents, and time
    grows with their shingles.

    Parameters
    ----------
    sample : the distinct shingles of each sampled document.
    """

    def __init__(self, sample: Lists) -> None:
        num_hashes = len(sample.hashes)
        self._sizes = sample.sizes.astype(np.uint32)
        self._postings = kernels.sieve.make_postings(num_hashes, num_hashes)
        starts = np.ascontiguousarray(sample.offsets[:-1])
        kernels.recall_sample.fill(self._postings, sample.hashes, starts, self._sizes)
        self._nearest = kernels.recall_sample.Nearest(
            documents=np.full(len(self._sizes), -1, np.int64),
            similarity=np.zeros(len(self._sizes)),
        )

    @property
    def documents(self) -> Ints:
        """The number of the nearest document, int64 (num_samples,); -1 if none shares a shingle."""
        documents: Ints = self._nearest.documents
        return documents

    @property
    def similarity(self) -> Floats:
        """The Jaccard similarity of the nearest document, float64 (num_samples,)."""
        similarity: Floats = self._nearest.similarity
        return similarity

    def compare(self, documents: Ints, sets: Lists) -> None:
        """Compare the sample with further documents.

        documents : int64 (num_documents,), rising. sets : their distinct shingles.
        """
        kernels.recall_sample.find_nearest(
            self._postings, self._sizes, sets.hashes, sets.offsets, documents, self._nearest
        )
