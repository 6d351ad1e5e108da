"""Propose pairs of documents that may be duplicates: by bands, by samples, or by the distance of fingerprints.

A bucket lists its earliest `max_bucket_size` distinct members, whether they are kept or not. A copy (a document
with the same content as an earlier one) queries with the keys of its representative, and is a member only if all pairs
are wanted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.candidates.blocks import Radius
from neardup.candidates.buckets import NO_BUCKET, fill_buckets, find_copies
from neardup.candidates.hamming_neighbours import find_neighbours
from neardup.candidates.samples import Samples
from neardup.features.described import Keys, Lists

_NO_POSITIONS = np.empty(0, np.uint32)


class Candidates(NamedTuple):
    """Proposed pairs, each once, by `right` and then by `left`; all are positions in the order of priority.

    left, right : uint32 (num_pairs,), left < right. representative : uint32 (num_positions,), the first position with
    the same content. left_out : bool (num_positions,), whether a bucket has an earlier member that it does not list.
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
    keys : one key for each band.
    order : uint32, the document at each position.
    max_bucket_size : the greatest number of members that a bucket lists.
    all_pairs : whether copies are members of buckets too.
    """
    representative, members, queriers = _members(keys, order, all_pairs)
    found, left_out = [], np.zeros(len(order), np.bool_)
    for band in range(keys.values.shape[1]):
        positions = np.flatnonzero(members).astype(np.uint32)
        buckets = fill_buckets(keys.values[order[positions], band], positions, len(order), max_bucket_size)
        first = np.where(queriers, buckets.first[representative], NO_BUCKET)
        first[members] = buckets.first[members]
        num_pairs = kernels.bands.list_pairs(
            first, buckets.members, max_bucket_size, _NO_POSITIONS, _NO_POSITIONS, left_out
        )
        left, right = np.empty(num_pairs, np.uint32), np.empty(num_pairs, np.uint32)
        kernels.bands.list_pairs(first, buckets.members, max_bucket_size, left, right, left_out)
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
    """Propose the earlier documents that share enough of the sampled shingles of a document, those of the least hashes.

    Parameters
    ----------
    keys, order, max_bucket_size, all_pairs : as in `propose_by_bands`; keys with the sets.
    samples, needed : the size of a sample, and the hits needed by its size: see `samples.needed_by_size`.
    """
    assert keys.samples is not None
    representative, members, queriers = _members(keys, order, all_pairs)
    sets = _distinct(keys.samples.take(order))
    rank = np.arange(len(sets.hashes)) - np.repeat(sets.offsets[:-1], sets.sizes)
    owner = np.repeat(np.arange(len(order)), sets.sizes)
    queried = (rank < samples.num_samples) & (sets.hashes != 0) & (queriers | members)[owner]
    shared = members[owner] & np.isin(sets.hashes, sets.hashes[queried])
    by_hash = np.lexsort((owner[shared], sets.hashes[shared]))
    hashes, holders = sets.hashes[shared][by_hash], owner[shared][by_hash]
    begins = np.searchsorted(hashes, sets.hashes[queried], side="left")
    ends = np.searchsorted(hashes, sets.hashes[queried], side="right")
    listed = np.minimum(ends - begins, max_bucket_size)
    querier = np.repeat(owner[queried], listed)
    entry = np.repeat(begins, listed) + np.arange(listed.sum()) - np.repeat(np.cumsum(listed) - listed, listed)
    earlier = holders[entry] < querier
    pairs, hits = np.unique(
        _pack(holders[entry][earlier].astype(np.uint32), querier[earlier].astype(np.uint32)), return_counts=True
    )
    sampled = np.minimum(sets.sizes, samples.num_samples)
    enough = hits >= needed[sampled[(pairs >> np.uint64(32)).astype(np.int64)]]
    left_out = np.zeros(len(order), np.bool_)
    crowded = np.flatnonzero(ends - begins > max_bucket_size)
    unlisted = holders[begins[crowded] + max_bucket_size]
    left_out[owner[queried][crowded][unlisted < owner[queried][crowded]]] = True
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
    representative, members, queriers = _members(keys, order, all_pairs)
    near = find_neighbours(keys.values, order, queriers | members, radius)
    node, starts = near.neighbours.node.astype(np.int64), near.neighbours.starts
    listing = np.flatnonzero(members)
    by_node = listing[np.argsort(node[listing], kind="stable")]
    begins = np.searchsorted(node[by_node], np.arange(near.num_fingerprints), side="left")
    sizes = np.searchsorted(node[by_node], np.arange(near.num_fingerprints), side="right") - begins
    querying = np.flatnonzero(queriers | members)
    degree = np.diff(starts)[node[querying]]
    querier = np.concatenate([querying, np.repeat(querying, degree)])
    others = near.neighbours.others[
        np.repeat(starts[node[querying]], degree)
        + np.arange(degree.sum())
        - np.repeat(np.cumsum(degree) - degree, degree)
    ].astype(np.int64)
    bucket = np.concatenate([node[querying], others])
    listed = np.minimum(sizes[bucket], max_bucket_size)
    entry = np.repeat(begins[bucket], listed) + np.arange(listed.sum())
    entry -= np.repeat(np.cumsum(listed) - listed, listed)
    left, right = by_node[entry].astype(np.uint32), np.repeat(querier, listed).astype(np.uint32)
    left_out = np.zeros(len(order), np.bool_)
    crowded = np.flatnonzero(sizes[bucket] > max_bucket_size)
    left_out[querier[crowded][by_node[begins[bucket[crowded]] + max_bucket_size] < querier[crowded]]] = True
    return _candidates([_pack(left, right)[left < right]], representative, left_out)


def _members(
    keys: Keys, order: npt.NDArray[np.uint32], all_pairs: bool
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the representative of each position, the positions that buckets list, and the others that query."""
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
