"""Propose the pairs of a corpus that may be duplicates, by the look-up of a method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import ranges
from neardup.candidates.blocks import Radius
from neardup.candidates.buckets import find_copies
from neardup.candidates.hamming_neighbours import find_neighbours
from neardup.candidates.lookups import Lookup
from neardup.candidates.sorted_members import BucketPairs, Members, list_members, pair_members
from neardup.features.described import Keys

Positions = npt.NDArray[np.int64]


class Candidates(NamedTuple):
    """Proposed pairs, each once, by `right` and then by `left`; all are positions in the order of priority.

    left, right : uint32 (num_pairs,), left < right. left_out : bool (num_positions,), whether a bucket has an earlier
    member that it does not list.
    """

    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    left_out: npt.NDArray[np.bool_]


def propose(
    lookup: Lookup, keys: Keys, order: npt.NDArray[np.uint32], max_bucket_size: int, *, all_pairs: bool = False
) -> Candidates:
    """Propose the earlier documents that a bucket lists with a document.

    Parameters
    ----------
    lookup : of the method.
    keys : of all documents.
    order : uint32, the document at each position.
    max_bucket_size : the greatest number of members that a bucket lists, the earliest ones.
    all_pairs : whether copies are members of buckets too. Otherwise a copy queries with its first document.
    """
    positions = np.arange(len(order))
    first = positions if all_pairs else find_copies(keys.content, order, keys.featured).astype(np.int64)
    last = np.empty_like(positions)
    last[first] = positions
    nodes = positions[keys.featured[order] & (first == positions)]
    if lookup.radius is None:
        members = list_members(lookup, keys.take(order[nodes]), nodes, last[nodes], np.zeros_like(nodes))
    else:
        members = _list_near(keys, order, nodes, last, lookup.radius)
    none = BucketPairs(*np.empty((3, 0), np.int64))
    parts = [none, *pair_members([members.sort()], lookup.limit(max_bucket_size, all_pairs=all_pairs))]
    left, right, needed = (np.concatenate(part) for part in zip(*parts, strict=True))
    pairs, at, hits = np.unique(_pack(left, right)[left >= 0], return_index=True, return_counts=True)
    pairs = _with_copies(pairs[hits >= needed[left >= 0][at]], first)
    unlisted = _with_copies(_pack(~left, right)[left < 0], first)
    left_out = np.zeros(len(order), np.bool_)
    left_out[unlisted >> 32] = True
    return Candidates(pairs.astype(np.uint32), (pairs >> 32).astype(np.uint32), left_out)


def _list_near(keys: Keys, order: npt.NDArray[np.uint32], nodes: Positions, last: Positions, radius: Radius) -> Members:
    """Return a bucket for each fingerprint, which lists its documents; those within the distance query it too."""
    featured = np.zeros(len(order), np.bool_)
    featured[nodes] = True
    near = find_neighbours(keys.values, order, featured, radius).neighbours
    bucket = near.node[nodes].astype(np.int64)
    degree = np.diff(near.starts)[bucket]
    position = np.concatenate([nodes, np.repeat(nodes, degree)])
    bucket = np.concatenate([bucket, near.others[ranges(near.starts[bucket], degree)]])
    needed = np.where(np.arange(len(position)) < len(nodes), 1, -1)
    return Members(bucket, position, last[position], np.zeros_like(position), needed)


def _with_copies(pairs: npt.NDArray[np.int64], first: Positions) -> npt.NDArray[np.int64]:
    """Return packed pairs, and those with each copy of the right document, where the left one is the earlier one.

    first : by position, the first position with the same content.
    """
    by_first = np.argsort(first, kind="stable")
    sizes = np.bincount(first, minlength=len(first))
    right = pairs >> 32
    copies = by_first[ranges((np.cumsum(sizes) - sizes)[right], sizes[right])]
    every = _pack(np.repeat(pairs & 0xFFFFFFFF, sizes[right]), copies)
    return np.unique(every[every & 0xFFFFFFFF < copies])


def _pack(left: Positions, right: Positions) -> Positions:
    packed: Positions = right << 32 | left
    return packed
