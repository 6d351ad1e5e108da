"""The sieve: documents pass in order, and each that is kept strikes out its near-duplicates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from neardup.kernels.bands import FREE_SLOT, LAST_SLOT, NO_BUCKET

JACCARD, CONTAINMENT = 0, 1


class Sets(NamedTuple):
    """The sorted shingle sets. hashes : uint64; starts : int64, sizes : uint32, by document."""

    hashes: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray


class Order(NamedTuple):
    """Documents in the order of the sieve, all by position.

    documents : uint32, the document at each position; representative : uint32, the first position of equal
    content; kept : uint8, written by the sieve.
    """

    documents: np.ndarray
    representative: np.ndarray
    kept: np.ndarray


class Buckets(NamedTuple):
    """The buckets of a stretch of positions.

    first : uint32 (num_bands, num_positions), a bucket's first slot within its band, or NO_BUCKET;
    slots : uint32, all bands one after the other; band_starts : int64 (num_bands,).
    """

    first: np.ndarray
    slots: np.ndarray
    band_starts: np.ndarray


class Rules(NamedTuple):
    """What counts as a duplicate: threshold, JACCARD or CONTAINMENT; how many kept documents a bucket lists;
    how many positions from 0 are kept whatever they resemble; whether none is ever removed (all pairs)."""

    threshold: float
    similarity: int
    max_bucket: int
    num_against: int
    all_pairs: bool


class Found(NamedTuple):
    """Results, appended. left, right : uint32 positions; similarity : float64; exact : uint8; best : uint8, 1 on the
    pair that removed `right`. counters : int64: pairs in use, pairs compared, documents that met a full bucket."""

    left: np.ndarray
    right: np.ndarray
    similarity: np.ndarray
    exact: np.ndarray
    best: np.ndarray
    counters: np.ndarray


@njit(nogil=True, cache=True)
def _overlap(left, right, needed):
    """Return the number of shared values of two rising arrays, or less than `needed` once that is out of reach."""
    i, j, shared = 0, 0, 0
    while i < len(left) and j < len(right):
        # Checked every 32 steps, in which at most 32 values can be shared.
        if shared + min(len(left) - i, len(right) - j) < needed:
            return shared
        for _ in range(32):
            if i >= len(left) or j >= len(right):
                break
            a, b = left[i], right[j]
            shared += a == b
            i += a <= b
            j += b <= a
    return shared


@njit(nogil=True, cache=True)
def _similarity(sets, document, other, rules):
    """Return the exact similarity of a document to an earlier one, or any value below the threshold."""
    size, other_size = np.int64(sets.sizes[document]), np.int64(sets.sizes[other])
    mine = sets.hashes[sets.starts[document] : sets.starts[document] + size]
    theirs = sets.hashes[sets.starts[other] : sets.starts[other] + other_size]
    # One less than the bound, so that rounding can not lose a pair that just reaches the threshold.
    if rules.similarity == CONTAINMENT:
        if other_size < rules.threshold * size - 1:
            return -1.0
        return _overlap(mine, theirs, np.int64(rules.threshold * size) - 1) / size
    if min(size, other_size) < rules.threshold * max(size, other_size) - 1:
        return -1.0
    needed = np.int64(rules.threshold / (1.0 + rules.threshold) * (size + other_size)) - 1
    shared = _overlap(mine, theirs, needed)
    return shared / (size + other_size - shared)


@njit(nogil=True, cache=True)
def _gather(buckets, column, max_bucket, candidates, ends):
    """List the kept documents of a position's buckets, rising, each once; return (their number, full buckets met).

    ends : int64 (num_bands,), set to the free slot where the position itself would be listed, or -1.
    """
    count, full = 0, 0
    for band in range(buckets.first.shape[0]):
        ends[band] = -1
        if buckets.first[band, column] == NO_BUCKET:
            continue
        slot = buckets.band_starts[band] + np.int64(buckets.first[band, column])
        for listed in range(max_bucket + 1):
            value = buckets.slots[slot]
            if value & ~LAST_SLOT == FREE_SLOT:
                ends[band] = slot if listed < max_bucket else -1
                full += listed == max_bucket
                break
            if listed < max_bucket:
                candidates[count] = value & ~LAST_SLOT
                count += 1
            else:
                full += 1
            if value & LAST_SLOT:
                break
            slot += 1
    candidates[:count].sort()
    unique = 0
    for i in range(count):
        if i == 0 or candidates[i] != candidates[i - 1]:
            candidates[unique] = candidates[i]
            unique += 1
    return unique, full


@njit(nogil=True, cache=True)
def _append(found, left, right, similarity, exact, best):
    """Append a pair; return its place."""
    place = found.counters[0]
    found.left[place] = left
    found.right[place] = right
    found.similarity[place] = similarity
    found.exact[place] = exact
    found.best[place] = best
    found.counters[0] = place + 1
    return place


@njit(nogil=True, cache=True)
def sieve(begin, stop, order, sets, buckets, rules, found):
    """Decide positions `begin` to `stop`; return where it stopped, early when `found` is nearly full.

    buckets.first covers begin to stop. Each document is compared with the kept ones in its buckets, at most
    `max_bucket` a bucket; the most similar that reaches the threshold removes it (ties: the earlier). A document
    that is kept enters its buckets. A copy of a kept document is removed without a comparison.
    """
    num_bands = buckets.first.shape[0]
    candidates = np.empty(num_bands * rules.max_bucket + 1, np.uint32)
    ends = np.empty(num_bands, np.int64)
    room = num_bands * rules.max_bucket + 2
    for position in range(begin, stop):
        if len(found.left) - found.counters[0] < room:
            return position
        first = np.int64(order.representative[position])
        document = order.documents[first]
        free = position < rules.num_against
        if first != position and order.kept[first] and not rules.all_pairs:
            if free:
                order.kept[position] = 1
            else:
                _append(found, first, position, 1.0, 1, 1)
            continue
        count, full = _gather(buckets, position - begin, rules.max_bucket, candidates, ends)
        found.counters[2] += full > 0
        best = -1
        if not free:
            for i in range(count):
                other = np.int64(candidates[i])
                similarity = 1.0
                exact = np.int64(order.representative[other]) == first
                if not exact:
                    twin = order.documents[order.representative[other]]
                    similarity = _similarity(sets, document, twin, rules)
                    found.counters[1] += 1
                if similarity >= rules.threshold:
                    place = _append(found, other, position, similarity, exact, 0)
                    if best < 0 or similarity > found.similarity[best]:
                        best = place
        if best >= 0 and not rules.all_pairs:
            found.best[best] = 1
            continue
        order.kept[position] = 1
        for band in range(num_bands):
            if ends[band] >= 0:
                slot = ends[band]
                buckets.slots[slot] = np.uint32(position) | (buckets.slots[slot] & LAST_SLOT)
    return stop
