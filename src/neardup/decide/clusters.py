"""Number clusters by size, and list their members."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import offsets_from_lengths, ranges


class Clusters(NamedTuple):
    """Clusters of documents, the largest first, ties by their first document; those of a single document come last.

    cluster_of : int64 (num_documents,), the cluster of each document. members : int64 (num_documents,), the documents
    of each cluster: the kept one, then the others in input order. offsets : int64, one more than there are clusters,
    single documents included; the members of cluster i are members[offsets[i] : offsets[i + 1]]. num_clusters : the
    number of clusters of two documents or more.
    """

    cluster_of: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    num_clusters: int

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of documents of each cluster."""
        return np.diff(self.offsets)


def cluster_documents(num_documents: int, removed: npt.NDArray[np.uint32], kept: npt.NDArray[np.uint32]) -> Clusters:
    """Return the clusters of the kept documents with those that they removed.

    Parameters
    ----------
    removed, kept : uint32 (num_removed,), each removed document once, and the kept document of its cluster.
    """
    firsts = np.arange(num_documents)
    firsts[removed] = kept
    sizes = np.bincount(firsts, minlength=num_documents)
    leaders = np.flatnonzero(sizes)
    leaders = leaders[np.argsort(-sizes[leaders], kind="stable")]
    numbers = np.empty(num_documents, np.int64)
    numbers[leaders] = np.arange(len(leaders))
    cluster_of = numbers[firsts]
    members = np.lexsort((firsts != np.arange(num_documents), cluster_of))
    return Clusters(cluster_of, members, offsets_from_lengths(sizes[leaders]), int(np.count_nonzero(sizes > 1)))


def pick_others(
    clusters: Clusters, first: int, stop: int, most: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return up to `most` members of each of the clusters in [first, stop), evenly spaced from the second to the last.

    Returns
    -------
    documents : int64. offsets : int64 (stop - first + 1,), the range of each cluster in `documents`.
    """
    others = np.diff(clusters.offsets[first : stop + 1]) - 1
    counts = np.minimum(others, most)
    offsets = offsets_from_lengths(counts)
    step = np.repeat(others - 1, counts) * ranges(0, counts) // np.maximum(np.repeat(counts, counts) - 1, 1)
    return clusters.members[np.repeat(clusters.offsets[first:stop] + 1, counts) + step], offsets
