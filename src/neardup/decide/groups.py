"""Number clusters by their size, and list who is in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Groups(NamedTuple):
    """Clusters of documents, the largest first, ties by their first document; those of a single document come last.

    cluster_of : int64 by document, its cluster. members : int64, the documents by cluster; in each the first one, then
    the others as they were read. offsets : int64 (num_clusters + 1,), whose members are whose. num_groups : clusters of
    two documents or more.
    """

    cluster_of: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    num_groups: int

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of documents of each cluster."""
        return np.diff(self.offsets)


def group_documents(num_documents: int, removed: npt.NDArray[np.uint32], kept: npt.NDArray[np.uint32]) -> Groups:
    """Return the clusters that the kept documents make with those they removed.

    Parameters
    ----------
    removed, kept : uint32 of one shape; each removed document once, and the kept one that is the first of its cluster.
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
    offsets = np.concatenate([[0], np.cumsum(sizes[leaders])])
    return Groups(cluster_of, members, offsets, int(np.count_nonzero(sizes > 1)))


def pick_others(
    groups: Groups, first: int, stop: int, most: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return up to `most` members of each of the groups in [first, stop), evenly from the second to the last.

    Returns
    -------
    documents and offsets (stop - first + 1,), whose are whose.
    """
    others = np.diff(groups.offsets[first : stop + 1]) - 1
    counts = np.minimum(others, most)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    rank = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    step = np.repeat(others - 1, counts) * rank // np.maximum(np.repeat(counts, counts) - 1, 1)
    return groups.members[np.repeat(groups.offsets[first:stop] + 1, counts) + step], offsets
