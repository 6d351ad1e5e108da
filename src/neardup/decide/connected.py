"""Connected clusters: chains of duplicate pairs, of which one document is kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neardup import kernels


def connect(parents: npt.NDArray[np.uint32], left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32]) -> None:
    """Join the clusters of each pair, in place.

    Parameters
    ----------
    parents : uint32 array of shape (num_positions,), a forest in which the root of a cluster is its first member.
        Initially each position is its own parent.
    left, right : uint32 arrays of shape (num_pairs,), positions.
    """
    kernels.clusters.connect(parents, left, right)


def roots(parents: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the first member of each position's cluster, shape (num_positions,)."""
    firsts = parents.copy()
    kernels.clusters.flatten(firsts)
    return firsts


def first_connected(
    left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct ends of pairs, any numbers, and the first member of the cluster of each."""
    ends, edges = number_ends(left, right)
    parents = np.arange(len(ends), dtype=np.uint32)
    connect(parents, *edges)
    return ends, ends[roots(parents)]


def number_ends(
    left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]]:
    """Return the distinct ends of pairs, rising, and the pairs with each end as its number among these."""
    ends, numbers = np.unique(np.concatenate([left, right]), return_inverse=True)
    first, second = np.split(numbers.astype(np.uint32), 2)
    return ends, (first, second)
