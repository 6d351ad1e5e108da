"""The arrays that the sieve works on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

JACCARD, CONTAINMENT, HAMMING, COSINE = 0, 1, 2, 3
NO_NODE = np.uint32(0xFFFFFFFF)
NONE = np.int64(-1)
REMOVED = np.uint32(0xFFFFFFFF)


class Sets(NamedTuple):
    """The sorted shingle sets, each after its sketch: see kernels/sorted_sets.py.

    hashes : uint64; starts : int64, sizes : uint32, by document.
    """

    hashes: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray


class Compared(NamedTuple):
    """What is compared, by document: the sets, and where the rules ask for it those of the structure of web pages."""

    shingles: Sets
    structure: Sets


class Order(NamedTuple):
    """Documents in the order of the sieve, all by position.

    documents : uint32, the document at each position; representative : uint32, the first position of equal
    content; kept : uint8, written by the sieve; seen : uint32, zeros before, then the last position, from 1 on, that
    was compared with this one, or REMOVED.
    """

    documents: np.ndarray
    representative: np.ndarray
    kept: np.ndarray
    seen: np.ndarray


class Buckets(NamedTuple):
    """The buckets of a stretch of positions.

    first : uint32 (num_bands, num_positions), a bucket's first entry within its band, or NO_BUCKET;
    members : uint32, all bands one after the other, see `bands.list_members`; band_starts : int64 (num_bands,).
    """

    first: np.ndarray
    members: np.ndarray
    band_starts: np.ndarray


class Rules(NamedTuple):
    """What counts as a duplicate: threshold; JACCARD, CONTAINMENT, HAMMING or COSINE; how many documents a bucket
    lists, its earliest; how many positions from 0 are kept whatever they resemble; whether none is ever removed (all
    pairs);
    the bits of a fingerprint, if there are any; the cosine that the structure of two pages must reach, 0 for none."""

    threshold: float
    similarity: int
    max_bucket: int
    num_against: int
    all_pairs: bool
    bits: int = 64
    structure: float = 0.0


class Found(NamedTuple):
    """Results, appended. left, right : uint32 positions; similarity : float64; distance : uint16; structure : float64;
    exact : uint8; best : uint8, 1 on the pair that removed `right`. counters : int64: pairs in use, pairs compared,
    documents with an earlier one in a bucket that does not list it, pairs near by fingerprint and below the
    threshold."""

    left: np.ndarray
    right: np.ndarray
    similarity: np.ndarray
    distance: np.ndarray
    structure: np.ndarray
    exact: np.ndarray
    best: np.ndarray
    counters: np.ndarray


class Postings(NamedTuple):
    """For each sampled shingle, the earliest documents that have it, those that are kept.

    keys : uint64 (num_slots,), a power of two, 0 where free (a hash of 0 is never sampled); head : int64
    (num_slots,), the latest entry; lengths : int64 (num_slots,), of all documents that have it, kept or removed,
    listed or not. next : int64, member : uint32, (capacity,).
    used : int64 (1,), entries in use.
    """

    keys: np.ndarray
    head: np.ndarray
    lengths: np.ndarray
    next: np.ndarray
    member: np.ndarray
    used: np.ndarray


class Neighbours(NamedTuple):
    """Fingerprints, each a node, and which of them are near.

    node : uint32 by position, the node of a document's fingerprint, or NO_NODE. The neighbours of node i are
    others[starts[i]:starts[i + 1]], uint32, at `distances`, uint8; each pair is there twice.
    """

    node: np.ndarray
    starts: np.ndarray
    others: np.ndarray
    distances: np.ndarray


class Listed(NamedTuple):
    """The earliest documents of each fingerprint, those that are kept, in their order: chains of positions.

    first, last : int64 by node, NONE where empty; num_members : uint32 by node, of all its documents, kept or removed,
    listed or not; next : int64 by position.
    """

    first: np.ndarray
    last: np.ndarray
    num_members: np.ndarray
    next: np.ndarray


def make_postings(num_keys: int, capacity: int) -> Postings:
    """Return empty postings for `num_keys` sampled shingles, the table at most half full."""
    num_slots = 1 << max(4, (2 * num_keys).bit_length())
    return Postings(
        np.zeros(num_slots, np.uint64),
        np.full(num_slots, NONE, np.int64),
        np.zeros(num_slots, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.uint32),
        np.zeros(1, np.int64),
    )


def grow(postings: Postings) -> Postings:
    """Return the same postings with room for twice as many entries."""
    free = np.empty(len(postings.member), np.int64)
    return postings._replace(
        next=np.concatenate([postings.next, free]), member=np.concatenate([postings.member, free.astype(np.uint32)])
    )
