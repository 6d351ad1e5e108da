"""Keep or remove groups of documents, such as the files of a repository, as a whole; see docs/decisions/0038."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import Floats, Ints, Mask, Words, begins_run, offsets_from_lengths
from neardup.decide.sieve import NONE


class Groups(NamedTuple):
    """The groups in the order of priority.

    values : uint64, the hash of the value that the documents of a group share. documents, near : int64, its documents,
    and those of them that are similar to a document of a kept group before it. removed : bool.
    """

    values: Words
    documents: Ints
    near: Ints
    removed: Mask


class GroupDecisions(NamedTuple):
    """The decisions, by position in the order of priority.

    removed : bool, whether the group of the document is removed. keeper : uint32, the position of the most similar
    document of a kept group before it, NONE if there is none. pair : int64, the row of the pair with that; -1 for a
    copy. Both matter for removed positions only.
    """

    groups: Groups
    removed: Mask
    keeper: npt.NDArray[np.uint32]
    pair: Ints


def order_by_group(order: npt.NDArray[np.uint32], num_against: int, values: Words) -> npt.NDArray[np.uint32]:
    """Return an order of priority in which the documents of a group follow each other, from its first one on.

    values : uint64 by document, equal within a group.
    """
    new = order[num_against:]
    _, first, group = np.unique(values[new], return_index=True, return_inverse=True)
    return np.concatenate([order[:num_against], new[np.argsort(first[group], kind="stable")]])


def decide_groups(
    left: npt.NDArray[np.uint32],
    right: npt.NDArray[np.uint32],
    strength: Floats,
    representative: npt.NDArray[np.uint32],
    values: Words,
    share: float,
) -> GroupDecisions:
    """Decide about the groups in their order: one is removed if enough of its documents are similar to kept ones.

    Parameters
    ----------
    left, right : uint32 (num_pairs,), positions of the confirmed pairs, of the first documents with their contents.
    strength : float64 (num_pairs,), the similarity, which decides what a removed document names; then the position.
    representative : uint32 (num_positions,), the first position with the same content.
    values : uint64 by position from the first that may be removed; those of a group follow each other.
    share : of the documents of a group, in (0, 1].
    """
    size, num_pairs = len(representative), len(left)
    ends = np.concatenate([left, right])
    by_end = np.argsort(ends, kind="stable")
    offsets = offsets_from_lengths(np.bincount(ends, minlength=size))
    neighbours = np.concatenate([right, left])[by_end]
    pairs = kernels.decisions.Neighbours(offsets, neighbours, by_end % max(1, num_pairs), strength)
    first = np.flatnonzero(begins_run(values)) if len(values) else np.empty(0, np.int64)
    starts = size - len(values) + np.append(first, len(values))
    documents = np.diff(starts)
    # Rounded, so that 0.1 of 30 documents are 3.
    needed = np.maximum(1, np.ceil(np.round(share * documents, 9))).astype(np.int64)
    near, keeper, pair = np.zeros(len(first), np.int64), np.full(size, NONE, np.uint32), np.full(size, -1, np.int64)
    kernels.decisions.decide_groups(pairs, representative, starts, needed, near, keeper, pair)
    removed = near >= needed
    of_position = np.append(np.zeros(size - len(values), np.bool_), np.repeat(removed, documents))
    return GroupDecisions(Groups(values[first], documents, near, removed), of_position, keeper, pair)
