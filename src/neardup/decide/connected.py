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
