"""The exact similarity of sets of features, which only this module and the sieve's kernel compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.features.described import Lists

if TYPE_CHECKING:
    from neardup.kernels.sorted_sets import Sets


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


def sort_sets(lists: Lists) -> kernels.sorted_sets.Sets:
    """Return lists of hashes as sorted sets, each preceded by its sketch: see kernels/sorted_sets.py."""
    count = len(lists.offsets) - 1
    capacity = len(lists.hashes) + int(np.maximum(1, lists.sizes // 4 + 1).sum())
    hashes, starts, sizes = np.empty(capacity, np.uint64), np.empty(count, np.int64), np.empty(count, np.uint32)
    offsets = lists.offsets
    used = kernels.sorted_sets.write_sets(
        lists.hashes, offsets[:-1], offsets[1:], np.ones(count, np.bool_), hashes, starts, sizes
    )
    return kernels.sorted_sets.Sets(hashes[:used], starts, sizes)


def exact_similarity(
    sets: Sets, documents: npt.NDArray[Any], others: npt.NDArray[Any], similarity: str
) -> npt.NDArray[np.float64]:
    """Return the exact similarity of sets, row by row.

    Parameters
    ----------
    sets : sorted.
    documents, others : integers (num_pairs,), rows of `sets`. Containment is that of the first in the second.
    similarity : jaccard, containment or cosine.

    Returns
    -------
    float64 (num_pairs,); 1 for a row with itself, sorted or not.
    """
    shared = np.empty(len(documents), np.int64)
    kernels.sorted_sets.pair_overlaps(*sets, documents, others, shared)
    size, other_size = sets.sizes[documents].astype(np.int64), sets.sizes[others].astype(np.int64)
    result = similarity_of_counts(shared, size, other_size, similarity)
    result[documents == others] = 1.0
    return result


def similarity_of_counts(
    shared: npt.NDArray[np.int64], size: npt.NDArray[np.int64], other_size: npt.NDArray[np.int64], similarity: str
) -> npt.NDArray[np.float64]:
    """Return the similarity of sets, from their sizes and the number of shared elements; 0 for empty sets."""
    out_of: npt.NDArray[Any] = size + other_size - shared
    if similarity == "containment":
        out_of = size
    elif similarity == "cosine":
        out_of = np.sqrt(size.astype(np.float64) * other_size)
    result: npt.NDArray[np.float64] = shared / np.maximum(out_of, 1)
    return result


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
    greatest = similarity_of_counts(np.minimum(first, second), second, first, rule.similarity)
    reaches: npt.NDArray[np.bool_] = greatest >= rule.threshold
    return reaches


def similarity_of_lists(
    left: Lists, right: Lists, left_rows: npt.NDArray[Any], right_rows: npt.NDArray[Any], similarity: str
) -> npt.NDArray[np.float64]:
    """Return the exact similarity of unsorted lists, pair by pair; containment is that of the right list.

    Parameters
    ----------
    left, right : the lists, which may be the same.
    left_rows, right_rows : integers (num_pairs,), rows of `left` and of `right`.
    """
    chosen, left_rows = _used(left, left_rows)
    others, right_rows = _used(right, right_rows)
    both = Lists(
        np.concatenate([chosen.hashes, others.hashes]),
        np.concatenate([chosen.offsets, others.offsets[1:] + len(chosen.hashes)]),
    )
    return exact_similarity(sort_sets(both), right_rows + len(chosen.sizes), left_rows, similarity)


def _used(lists: Lists, rows: npt.NDArray[Any]) -> tuple[Lists, npt.NDArray[Any]]:
    """Return the lists that are in `rows`, and the place of each row among them."""
    if len(rows) == len(lists.offsets) - 1 and bool((rows == np.arange(len(rows))).all()):
        return lists, rows
    used, places = np.unique(rows, return_inverse=True)
    return lists.take(used), places
