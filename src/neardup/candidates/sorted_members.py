"""The bucket rule: a bucket lists its earliest members, and each of its documents is paired with
these.

Members arrive sorted, batch by batch, so that a bucket of any size takes bounded memory. This is
the rule for whole corpora, in the stages that are run one after the other and on Spark;
kernels/sieve.py fuses it with the decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import (
    Array,
    Integers,
    Ints,
    Mask,
    Positions,
    Words,
    begins_run,
    ranges,
    rank_in_run,
)
from neardup.candidates.bands import bits_for, pack_keys
from neardup.candidates.blocks import Radius
from neardup.candidates.hamming_join import find_neighbours
from neardup.candidates.lookups import Lookup
from neardup.features.described import Keys


class Candidates(NamedTuple):
    """Proposed pairs, each once, by `right` and then by `left`; all are positions in the order of
    priority.

    left, right : uint32 (num_pairs,), left < right. unlisted : int64 (num_unlisted,), a position in
    the upper half, and in the lower the first member that one of its buckets does not list, an
    earlier position.
    """

    left: Positions
    right: Positions
    unlisted: Ints


def propose(
    lookup: Lookup, keys: Keys, order: Positions, max_bucket_size: int, *, all_pairs: bool = False
) -> Candidates:
    """Propose the earlier documents that a bucket lists with a document.

    Parameters
    ----------
    lookup : of the method.
    keys : of all documents.
    order : uint32, the document at each position.
    max_bucket_size : the greatest number of members that a bucket lists, the earliest ones.
    all_pairs : whether copies are members of buckets too. Otherwise a copy queries with its first
        document.
    """
    positions = np.arange(len(order))
    first = (
        positions if all_pairs else find_copies(keys.content, order, keys.featured).astype(np.int64)
    )
    last = np.empty_like(positions)
    last[first] = positions
    nodes = positions[keys.featured[order] & (first == positions)]
    if lookup.bands is not None:
        batches = _list_bands(keys, order, nodes, last)
    elif lookup.radius is None:
        batches = iter(
            [
                list_members(
                    lookup, keys.take(order[nodes]), nodes, last[nodes], np.zeros_like(nodes)
                ).sort()
            ]
        )
    else:
        batches = iter([_list_near(keys, order, nodes, last, lookup.radius).sort()])
    listed, unlisted = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    needs: list[Integers] = [np.empty(0, np.int64)]
    for left, right, needed in pair_members(
        batches, lookup.limit(max_bucket_size, all_pairs=all_pairs)
    ):
        listed.append(_pack(left, right)[left >= 0])
        if lookup.bands is None:  # one common band is enough
            needs.append(needed[left >= 0])
        unlisted.append(_pack(~left, right)[left < 0])
    if lookup.bands is not None:
        pairs = np.unique(np.concatenate(listed))
    else:
        pairs, at, hits = np.unique(np.concatenate(listed), return_index=True, return_counts=True)
        pairs = pairs[hits >= np.concatenate(needs)[at]]
    pairs = _with_copies(pairs, first)
    hidden = _with_copies(np.concatenate(unlisted), first)
    return Candidates(pairs.astype(np.uint32), (pairs >> 32).astype(np.uint32), hidden)


def _list_bands(keys: Keys, order: Positions, nodes: Ints, last: Ints) -> Iterator[Members]:
    """Yield the members of the buckets of each band that has several, as sorted as `pair_members`
    requires.
    """
    bits = np.uint64(bits_for(len(order)))
    for band in range(keys.values.shape[1]):
        packed = pack_keys(keys.values[order[nodes], band], nodes.astype(np.uint32), len(order))
        begins = begins_run(packed >> bits)
        shared = ~(begins & np.append(begins[1:], True))
        position = (packed[shared] & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
        bucket = np.cumsum(begins)[shared] + band * len(order)  # of no other band
        yield Members(
            bucket, position, last[position], np.zeros_like(position), np.ones_like(position)
        )


def _list_near(keys: Keys, order: Positions, nodes: Ints, last: Ints, radius: Radius) -> Members:
    """Return a bucket for each fingerprint, which lists its documents; those within the distance
    query it too.
    """
    featured = np.zeros(len(order), np.bool_)
    featured[nodes] = True
    near = find_neighbours(keys.values, order, featured, radius).neighbours
    bucket = near.node[nodes].astype(np.int64)
    degree = np.diff(near.starts)[bucket]
    position = np.concatenate([nodes, np.repeat(nodes, degree)])
    bucket = np.concatenate([bucket, near.others[ranges(near.starts[bucket], degree)]])
    needed = np.where(np.arange(len(position)) < len(nodes), 1, -1)
    return Members(bucket, position, last[position], np.zeros_like(position), needed)


def _with_copies(pairs: Ints, first: Ints) -> Ints:
    """Return packed pairs, and those with each copy of the right document, where the left one is
    the earlier one.

    first : by position, the first position with the same content.
    """
    by_first = np.argsort(first, kind="stable")
    sizes = np.bincount(first, minlength=len(first))
    right = pairs >> 32
    copies = by_first[ranges((np.cumsum(sizes) - sizes)[right], sizes[right])]
    every = _pack(np.repeat(pairs & 0xFFFFFFFF, sizes[right]), copies)
    return np.unique(every[every & 0xFFFFFFFF < copies])


def _pack(left: Integers, right: Integers) -> Ints:
    return np.asarray(right.astype(np.int64) << 32 | left, np.int64)


NO_BUCKET = np.uint32(0xFFFFFFFF)


def find_copies(content: Words, order: Positions, featured: Mask) -> Positions:
    """Return for each position the first position with the same content; itself for documents
    without features.

    Parameters
    ----------
    content : uint64 (num_documents, 2), by document.
    order : uint32, the document at each position.
    featured : bool by document.
    """
    representative = np.arange(len(order), dtype=np.uint32)
    positions = np.flatnonzero(featured[order]).astype(np.uint32)
    packed = pack_keys(content[order[positions], 0], positions, len(order))
    kernels.bands.find_copies(packed, bits_for(len(order)), content, order, representative)
    return representative


def fill_buckets(
    keys: Words, positions: Positions, num_positions: int, max_bucket_size: int
) -> tuple[Positions, Positions]:
    """Group positions by the key of a band.

    Parameters
    ----------
    keys : uint64 (num_members,), the key of each of `positions`; written over.
    positions : uint32 (num_members,), rising.
    num_positions : the number of all documents, members or not.
    max_bucket_size : the greatest number of members that a bucket lists, the earliest ones.

    Returns
    -------
    first : uint32 by position, the first entry of its bucket in `members`, or NO_BUCKET.
    members : uint32, the earliest `max_bucket_size` positions of each bucket, rising, and one more
        if the bucket has more; kernels.bands.LAST_MEMBER marks the last entry of a bucket.
    """
    packed, bits = pack_keys(keys, positions, num_positions), bits_for(num_positions)
    first = np.full(num_positions, NO_BUCKET, np.uint32)
    members = np.empty(len(packed), np.uint32)  # memory is taken for those that are written
    return first, members[
        : kernels.bands.list_members(packed, bits, max_bucket_size, first, members)
    ]


_PAIRS_AT_ONCE = 1 << 18
_MIX = np.uint64(0x9E3779B97F4A7C15)

Possible = Callable[[Integers, Integers], Mask]
"""Whether pairs can be duplicates, by the sizes of the left and the right document."""


class Members(NamedTuple):
    """Members of buckets: the rows of `schemas.ENTRIES`. Each column has the shape (num_members,).

    bucket : int64. position : of the document in the order of priority, 0 or more. last : the
    position of its last copy, its own if there is none. size : its number of features. needed : the
    common buckets that make a pair a candidate; 0 if the bucket lists the document, which does not
    query; negative if it queries, but is not listed.
    """

    bucket: Integers
    position: Integers
    last: Integers
    size: Integers
    needed: Integers

    def take(self, rows: Array) -> Members:
        """Return some of the rows."""
        return Members(*(column[rows] for column in self))

    def sort(self) -> Members:
        """Return the members in the order that `pair_members` requires."""
        return self.take(np.lexsort((self.position, self.needed < 0, self.bucket)))


class BucketPairs(NamedTuple):
    """Pairs of a bucket, the rows of `schemas.CANDIDATES`: `left` may remove `right`, or a later
    copy of it.

    left, right : positions. left is negative if the bucket does not list the document ~left, which
    comes before `right` or a copy of it. needed : the common buckets that make the pair a
    candidate.
    """

    left: Integers
    right: Integers
    needed: Integers


def list_members(
    lookup: Lookup, keys: Keys, position: Integers, last: Integers, size: Integers
) -> Members:
    """Return the members of the buckets of equal keys, document by document. position, last, size :
    by document.
    """
    entries, sizes = (
        lookup.entries(keys),
        np.bincount(lookup.probes(keys).document, minlength=len(position)),
    )
    document = entries.document
    bucket = (
        entries.key ^ (entries.table.astype(np.uint64) + np.uint64(1)) * _MIX
    )  # equal keys of two tables differ
    rank = rank_in_run(document)
    needed = np.array(lookup.needed)[np.minimum(sizes, len(lookup.needed) - 1)]
    queries = np.where(rank < sizes[document], needed[document], 0)
    return Members(
        bucket.view(np.int64), position[document], last[document], size[document], queries
    )


def pair_members(
    batches: Iterable[Members], most: int, possible: Possible | None = None
) -> Iterator[BucketPairs]:
    """Pair each member of a bucket with the earliest `most` that it lists.

    Requires: members sorted by bucket, then those that the bucket lists before the others, then by
    position.

    Notes
    -----
    A bucket may continue in the next batch: of its members so far, the earliest `most`, and one
    more, are carried over.
    """
    carried = Members(*(np.empty(0, np.int64) for _ in Members._fields))
    for batch in batches:
        if not len(batch.bucket):
            continue
        rows = Members(
            *(np.concatenate([old, new]) for old, new in zip(carried, batch, strict=True))
        )
        starts = begins_run(rows.bucket)
        begins = np.flatnonzero(starts)[np.cumsum(starts) - 1]
        place = np.arange(len(begins))
        # The number of listed members before each row, which are the first rows of the bucket.
        num_listed = np.add.reduceat(rows.needed >= 0, np.flatnonzero(starts), dtype=np.int64)
        rank = np.minimum(place - begins, num_listed[np.cumsum(starts) - 1])
        fresh = place >= len(carried.bucket)
        yield from _listed_pairs(rows, begins, rank, fresh, most, possible)
        yield from _unlisted_pairs(rows, begins, rank, fresh, most)
        carried = rows.take(
            np.flatnonzero((begins == begins[-1]) & (rank <= most) & (rows.needed >= 0))
        )


def _listed_pairs(
    rows: Members,
    begins: Integers,
    rank: Integers,
    fresh: Mask,
    most: int,
    possible: Possible | None,
) -> Iterator[BucketPairs]:
    """Yield the pairs of the fresh rows with the earlier rows that their buckets list."""
    listed = np.where(fresh, np.minimum(rank, most), 0)
    ends = np.cumsum(listed)
    low = 0
    while low < len(rank):
        done = int(ends[low - 1]) if low else 0
        stop = max(low + 1, int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, "right")))
        count = listed[low:stop]
        later = np.repeat(np.arange(low, stop), count)
        earlier = ranges(begins[low:stop], count)
        # A copy of the earlier document may come after the later one, which may then remove the
        # copy.
        back = (rows.needed[later] >= 0) & (rank[later] < most)
        for left, right in ((earlier, later), (later[back], earlier[back])):
            chosen = (rows.needed[right] != 0) & (rows.position[left] < rows.last[right])
            if possible is not None:
                chosen &= possible(rows.size[left], rows.size[right])
            left, right = left[chosen], right[chosen]
            yield BucketPairs(rows.position[left], rows.position[right], np.abs(rows.needed[right]))
        low = stop


def _unlisted_pairs(
    rows: Members, begins: Integers, rank: Integers, fresh: Mask, most: int
) -> Iterator[BucketPairs]:
    """Yield the first member that a bucket does not list, with each document behind it that
    queries.
    """
    crowded = np.flatnonzero((rank >= most) & fresh)
    crowded = crowded[
        (rank[crowded] > most) | (rows.needed[crowded] >= 0)
    ]  # there is a member of the rank `most`
    full = crowded[(rank[crowded] == most) & (rows.needed[crowded] >= 0)]
    right = np.concatenate([crowded, ranges(begins[full], np.full(len(full), most))])
    left = np.concatenate([begins[crowded] + most, np.repeat(full, most)])
    behind = (rows.last[right] > rows.position[left]) & (rows.needed[right] != 0)
    left, right = left[behind], right[behind]
    yield BucketPairs(~rows.position[left], rows.position[right], np.abs(rows.needed[right]))
