"""All pairs of a corpus with their exact Jaccard similarity, by an inverted index: for corpora of
thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exact_pairs(
    sets: Sequence[np.ndarray], threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return left, right (left < right) and similarity of every pair at or above the threshold.

    sets : for each document its distinct values.
    """
    sizes = np.array([len(one) for one in sets], np.int64)
    values = np.concatenate(sets)
    owners = np.repeat(np.arange(len(sets)), sizes)
    _, terms = np.unique(values, return_inverse=True)
    by_term = np.argsort(terms, kind="stable")
    members = owners[by_term]
    ends = np.cumsum(np.bincount(terms))
    first = np.cumsum(sizes) - sizes
    lefts = []
    rights = []
    similarities = []
    for right in range(len(sets)):
        own = terms[first[right] : first[right] + sizes[right]]
        lists = [members[ends[term - 1] if term else 0 : ends[term]] for term in own]
        if not lists:
            continue
        shared = np.bincount(np.concatenate(lists), minlength=len(sets))[:right]
        similarity = shared / (sizes[:right] + sizes[right] - shared)
        left = np.flatnonzero(similarity >= threshold)
        lefts.append(left)
        rights.append(np.full(len(left), right))
        similarities.append(similarity[left])
    return np.concatenate(lefts), np.concatenate(rights), np.concatenate(similarities)
