"""Clusters: documents that are connected by pairs, numbered by size, and their members."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Ints, Positions, offsets_from_lengths, ranges


def first_members(num_positions: int, left: Positions, right: Positions) -> Positions:
    """Return the first member of each position's cluster, shape (num_positions,).

    left, right : uint32 arrays of shape (num_pairs,), positions that are in one cluster.
    """
    firsts = np.arange(num_positions, dtype=np.uint32)
    kernels.decisions.connect(firsts, left, right)
    kernels.decisions.flatten(firsts)
    return firsts


def first_connected(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the distinct ends of pairs, rising, and for each end the first member of its cluster.

    left, right : integers (num_pairs,), of any size.
    """
    pairs = number_ends(left, right)
    firsts = first_members(len(pairs.ends), pairs.left, pairs.right)
    return pairs.ends, pairs.ends[firsts]


class NumberedPairs(NamedTuple):
    """Pairs whose ends are numbered from 0.

    ends : the distinct ends, rising. left, right : uint32 (num_pairs,), the index in `ends` of each
    end of a pair.
    """

    ends: Ints
    left: Positions
    right: Positions


def number_ends(left: Ints, right: Ints) -> NumberedPairs:
    """Return pairs with numbered ends, so that arrays by end are as short as the ends are few."""
    ends, index = np.unique(np.concatenate([left, right]), return_inverse=True)
    left_index, right_index = np.split(index.astype(np.uint32), 2)
    return NumberedPairs(ends=ends, left=left_index, right=right_index)


class Clusters(NamedTuple):
    """Clusters of documents, the largest first, ties by their first document.

    cluster_of : int64 (num_documents,), the cluster of each document. members : int64
    (num_documents,), the documents of each cluster: the kept one, then the others in input order.
    offsets : int64, one more than there are clusters; the members of cluster i are
    members[offsets[i] : offsets[i + 1]]. Clusters of a single document come last. num_clusters :
    the number of clusters of two documents or more.
    """

    cluster_of: Ints
    members: Ints
    offsets: Ints
    num_clusters: int

    @property
    def sizes(self) -> Ints:
        """Return the number of documents of each cluster."""
        return np.diff(self.offsets)


def cluster_documents(num_documents: int, removed: Positions, kept: Positions) -> Clusters:
    """Return the clusters of the kept documents with the documents that they removed.

    Parameters
    ----------
    removed, kept : uint32 (num_removed,), each removed document once, and the kept document of its
        cluster.
    """
    documents = np.arange(num_documents)
    keepers = documents.copy()  # a kept document is its own keeper
    keepers[removed] = kept
    sizes = np.bincount(keepers, minlength=num_documents)

    # The kept documents, in the order of the clusters. A stable sort: ties stay in input order.
    leaders = np.flatnonzero(sizes)
    leaders = leaders[np.argsort(-sizes[leaders], kind="stable")]
    cluster_of_leader = np.empty(num_documents, np.int64)
    cluster_of_leader[leaders] = np.arange(len(leaders))
    cluster_of = cluster_of_leader[keepers]
    return Clusters(
        cluster_of=cluster_of,
        members=np.lexsort((keepers != documents, cluster_of)),
        offsets=offsets_from_lengths(sizes[leaders]),
        num_clusters=int(np.count_nonzero(sizes > 1)),
    )


def pick_others(clusters: Clusters, first: int, stop: int, max_others: int) -> tuple[Ints, Ints]:
    """Return up to `max_others` members of each of the clusters in [first, stop), evenly spaced
    from the second to the last.

    Returns
    -------
    documents : int64. offsets : int64 (stop - first + 1,), the range of each cluster in
        `documents`.
    """
    num_others = np.diff(clusters.offsets[first : stop + 1]) - 1
    counts = np.minimum(num_others, max_others)
    offsets = offsets_from_lengths(counts)
    # Step i of n is at i * (num_others - 1) / (n - 1), rounded down.
    last_step = np.repeat(num_others - 1, counts)
    num_gaps = np.maximum(np.repeat(counts, counts) - 1, 1)
    steps = last_step * ranges(0, counts) // num_gaps
    second_members = np.repeat(clusters.offsets[first:stop] + 1, counts)
    return clusters.members[second_members + steps], offsets
