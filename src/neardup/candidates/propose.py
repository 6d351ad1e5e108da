"""Propose pairs of documents that may be duplicates: by bands, by samples, or by the distance of fingerprints.

A bucket lists its earliest `max_bucket_size` distinct members, whether they are kept or not. A copy (a document whose
content an earlier one has) asks as its representative does, and is a member itself only where all pairs are wanted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.candidates.blocks import Radius
from neardup.candidates.buckets import NO_BUCKET, fill_buckets, find_copies
from neardup.candidates.hamming_neighbours import find_neighbours
from neardup.candidates.samples import Samples
from neardup.features.described import Keys, Lists

_NOBODY = np.empty(0, np.uint32)


class Candidates(NamedTuple):
    """Proposed pairs, each once, by `right` and then by `left`; all are positions in the order of priority.

    left, right : uint32 (num_pairs,), left < right. representative : uint32 (num_positions,), the first position of
    equal content. left_out : bool (num_positions,), where a bucket has an earlier member that it does not list.
    """

    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    representative: npt.NDArray[np.uint32]
    left_out: npt.NDArray[np.bool_]


def propose_by_bands(
    keys: Keys, order: npt.NDArray[np.uint32], max_bucket_size: int, *, all_pairs: bool = False
) -> Candidates:
    """Propose the documents that share the key of a band.

    Parameters
    ----------
    keys : with a key for each band.
    order : uint32, the document at each position.
    max_bucket_size : members that a bucket lists at most.
    all_pairs : whether copies are members of buckets too.
    """
    from neardup.kernels import bands as kernel

    representative, members, askers = _members(keys, order, all_pairs)
    found, left_out = [], np.zeros(len(order), np.bool_)
    for band in range(keys.values.shape[1]):
        positions = np.flatnonzero(members).astype(np.uint32)
        buckets = fill_buckets(keys.values[order[positions], band], positions, len(order), max_bucket_size)
        first = np.where(askers, buckets.first[representative], NO_BUCKET)
        first[members] = buckets.first[members]
        num_pairs = kernel.list_pairs(first, buckets.members, max_bucket_size, _NOBODY, _NOBODY, left_out)
        left, right = np.empty(num_pairs, np.uint32), np.empty(num_pairs, np.uint32)
        kernel.list_pairs(first, buckets.members, max_bucket_size, left, right, left_out)
        found.append(_pack(left, right))
    return _candidates(found, representative, left_out)


def propose_by_samples(
    keys: Keys,
    order: npt.NDArray[np.uint32],
    max_bucket_size: int,
    samples: Samples,
    needed: npt.NDArray[np.int64],
    *,
    all_pairs: bool = False,
) -> Candidates:
    """Propose the earlier documents that have enough of the shingles sampled from a document: the least hashes.

    Parameters
    ----------
    keys, order, max_bucket_size, all_pairs : as in `propose_by_bands`; keys with the sets.
    samples, needed : how many shingles are sampled, and how many of n are needed: see `samples.needed_by_size`.
    """
    assert keys.samples is not None
    representative, members, askers = _members(keys, order, all_pairs)
    sets = _distinct(keys.samples.take(order))
    rank = np.arange(len(sets.hashes)) - np.repeat(sets.offsets[:-1], sets.sizes)
    owner = np.repeat(np.arange(len(order)), sets.sizes)
    asked = (rank < samples.num_samples) & (sets.hashes != 0) & (askers | members)[owner]
    there = members[owner] & np.isin(sets.hashes, sets.hashes[asked])
    by_hash = np.lexsort((owner[there], sets.hashes[there]))
    hashes, holders = sets.hashes[there][by_hash], owner[there][by_hash]
    begins = np.searchsorted(hashes, sets.hashes[asked], side="left")
    ends = np.searchsorted(hashes, sets.hashes[asked], side="right")
    listed = np.minimum(ends - begins, max_bucket_size)
    asker = np.repeat(owner[asked], listed)
    entry = np.repeat(begins, listed) + np.arange(listed.sum()) - np.repeat(np.cumsum(listed) - listed, listed)
    earlier = holders[entry] < asker
    pairs, hits = np.unique(
        _pack(holders[entry][earlier].astype(np.uint32), asker[earlier].astype(np.uint32)), return_counts=True
    )
    sampled = np.minimum(sets.sizes, samples.num_samples)
    enough = hits >= needed[sampled[(pairs >> np.uint64(32)).astype(np.int64)]]
    left_out = np.zeros(len(order), np.bool_)
    crowded = np.flatnonzero(ends - begins > max_bucket_size)
    unlisted = holders[begins[crowded] + max_bucket_size]
    left_out[owner[asked][crowded][unlisted < owner[asked][crowded]]] = True
    return _candidates([pairs[enough]], representative, left_out)


def propose_by_distance(
    keys: Keys,
    order: npt.NDArray[np.uint32],
    max_bucket_size: int,
    radius: Radius,
    *,
    all_pairs: bool = False,
) -> Candidates:
    """Propose the documents whose fingerprints are within a distance.

    Parameters
    ----------
    keys, order, max_bucket_size, all_pairs : as in `propose_by_bands`; keys are the words of the fingerprints. A bucket
        contains the documents of one fingerprint.
    radius : the bits of a fingerprint, and the distance.
    """
    representative, members, askers = _members(keys, order, all_pairs)
    near = find_neighbours(keys.values, order, askers | members, radius)
    node, starts = near.neighbours.node.astype(np.int64), near.neighbours.starts
    listing = np.flatnonzero(members)
    by_node = listing[np.argsort(node[listing], kind="stable")]
    begins = np.searchsorted(node[by_node], np.arange(near.num_fingerprints), side="left")
    sizes = np.searchsorted(node[by_node], np.arange(near.num_fingerprints), side="right") - begins
    asking = np.flatnonzero(askers | members)
    degree = np.diff(starts)[node[asking]]
    asker = np.concatenate([asking, np.repeat(asking, degree)])
    others = near.neighbours.others[
        np.repeat(starts[node[asking]], degree)
        + np.arange(degree.sum())
        - np.repeat(np.cumsum(degree) - degree, degree)
    ].astype(np.int64)
    bucket = np.concatenate([node[asking], others])
    listed = np.minimum(sizes[bucket], max_bucket_size)
    entry = np.repeat(begins[bucket], listed) + np.arange(listed.sum())
    entry -= np.repeat(np.cumsum(listed) - listed, listed)
    left, right = by_node[entry].astype(np.uint32), np.repeat(asker, listed).astype(np.uint32)
    left_out = np.zeros(len(order), np.bool_)
    crowded = np.flatnonzero(sizes[bucket] > max_bucket_size)
    left_out[asker[crowded][by_node[begins[bucket[crowded]] + max_bucket_size] < asker[crowded]]] = True
    return _candidates([_pack(left, right)[left < right]], representative, left_out)


def _members(
    keys: Keys, order: npt.NDArray[np.uint32], all_pairs: bool
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the representative of each position, which positions buckets list, and which of the others ask."""
    representative = find_copies(keys.content, order, keys.featured)
    featured = keys.featured[order]
    members = featured if all_pairs else featured & (representative == np.arange(len(order)))
    return representative, members, featured & ~members


def _distinct(sets: Lists) -> Lists:
    """Return the distinct hashes of each list, rising."""
    owner = np.repeat(np.arange(len(sets.sizes)), sets.sizes)
    by_value = np.lexsort((sets.hashes, owner))
    hashes, owner = sets.hashes[by_value], owner[by_value]
    new = np.ones(len(hashes), np.bool_)
    new[1:] = (hashes[1:] != hashes[:-1]) | (owner[1:] != owner[:-1])
    return Lists(hashes[new], np.concatenate([[0], np.cumsum(np.bincount(owner[new], minlength=len(sets.sizes)))]))


def _pack(left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    packed: npt.NDArray[np.uint64] = (right.astype(np.uint64) << np.uint64(32)) | left
    return packed


def _candidates(
    found: list[npt.NDArray[np.uint64]], representative: npt.NDArray[np.uint32], left_out: npt.NDArray[np.bool_]
) -> Candidates:
    pairs = np.unique(np.concatenate([np.empty(0, np.uint64), *found]))
    left, right = pairs.astype(np.uint32), (pairs >> np.uint64(32)).astype(np.uint32)
    return Candidates(left, right, representative, left_out)
