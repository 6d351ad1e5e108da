"""The exact similarity of sets of features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import writable
from neardup.features.described import Lists


class Rule(NamedTuple):
    """The condition of a duplicate pair.

    similarity : jaccard, containment or cosine of the sets, which must reach `threshold`; or hamming, if the distance
    of the fingerprints decides alone. bits : of a fingerprint; 0 without fingerprints. min_structure : the least cosine
    of the structure of two pages; 0 if it is not compared.
    """

    similarity: str
    threshold: float
    bits: int = 0
    min_structure: float = 0.0


def similarity_of_counts(
    shared: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], other_sizes: npt.NDArray[np.int64], similarity: str
) -> npt.NDArray[np.float64]:
    """Return the similarity of sets, from their sizes and the number of shared elements; 0 for empty sets."""
    measure = kernels.sorted_sets.MEASURES[similarity]
    return np.asarray(kernels.sorted_sets.similarity_of_counts(shared, sizes, other_sizes, measure))


def can_reach(rule: Rule | None, size: npt.NDArray[Any], other_size: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return whether two sets can be as similar as a rule demands, by their sizes alone.

    Parameters
    ----------
    rule : None, or of the distance alone, if sets of any sizes can be duplicates.
    size, other_size : integers (num_pairs,). Containment is that of the second set.
    """
    if rule is None or rule.similarity == "hamming":
        return np.ones(len(size), np.bool_)
    first, second = size.astype(np.int64), other_size.astype(np.int64)
    return similarity_of_counts(np.minimum(first, second), second, first, rule.similarity) >= rule.threshold


def similarity_of_lists(
    left: Lists, right: Lists, left_rows: npt.NDArray[Any], right_rows: npt.NDArray[Any], similarity: str
) -> npt.NDArray[np.float64]:
    """Return the exact similarity of unsorted lists, pair by pair; containment is that of the right list.

    Parameters
    ----------
    left, right : the lists, which may be the same.
    left_rows, right_rows : integers (num_pairs,), rows of `left` and of `right`.
    """
    shared, sizes, other_sizes = count_shared(left, right, left_rows, right_rows)
    return similarity_of_counts(shared, other_sizes, sizes, similarity)


def count_shared(
    left: Lists, right: Lists, left_rows: npt.NDArray[Any], right_rows: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return how many elements lists share, as sets, and how many each has: (3, num_pairs), shared, left and right."""
    counts = np.empty((3, len(left_rows)), np.int64)
    first = writable(left.hashes), writable(left.offsets), writable(left_rows, np.int64)
    second = writable(right.hashes), writable(right.offsets), writable(right_rows, np.int64)
    kernels.sorted_sets.list_overlaps(*first, *second, counts)
    return counts
