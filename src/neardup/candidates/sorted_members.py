"""Pair the documents of a bucket with the earliest members that the bucket lists.

Members arrive sorted, batch by batch, so that a bucket of any size takes bounded memory. Composed
stages and Spark use this rule for whole corpora; kernels/sieve.py fuses it with the decisions.
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
    mask_of,
    ranges,
    rank_in_run,
    sort_distinct,
)
from neardup.candidates.bands import bits_for, pack_keys
from neardup.candidates.blocks import Radius
from neardup.candidates.cells import GOLDEN
from neardup.candidates.hamming_join import find_neighbours
from neardup.candidates.lookups import Lookup
from neardup.features.described import Keys

NO_BUCKET = np.uint32(0xFFFFFFFF)
"""The entry of a position that is in no bucket."""
_PAIRS_AT_ONCE = 1 << 18  # pairs of members in memory, more only for a single member
_LOW_HALF = 0xFFFFFFFF  # the bits of `left` in packed pairs


class Unlisted(NamedTuple):
    """Pairs of a document and the first member that one of its buckets does not list.

    member, document : uint32 (num_unlisted,), positions as in `Candidates`, member < document.
    """

    member: Positions
    document: Positions


class Candidates(NamedTuple):
    """Proposed pairs, each once, sorted by `right` and then by `left`.

    left, right : uint32 (num_pairs,), positions in the order of priority, left < right. unlisted :
    the members that full buckets leave out.
    """

    left: Positions
    right: Positions
    unlisted: Unlisted


class Members(NamedTuple):
    """Members of buckets: the rows of `schemas.ENTRIES`. Each column has the shape (num_members,).

    bucket : int64. position : the position of the document in the order of priority. last : the
    position of its last copy, or of the document if it has none. size : its number of features.
    needed : the number of common buckets that makes a pair with an earlier document a candidate.
    listed : bool, whether the bucket lists the document. queries : bool, whether the document is
    paired with the listed documents.
    """

    bucket: Integers
    position: Integers
    last: Integers
    size: Integers
    needed: Integers
    listed: Mask
    queries: Mask

    def take(self, rows: Array) -> Members:
        """Return some of the rows."""
        columns: list[Array] = [column[rows] for column in self]
        return Members(*columns)

    def sort(self) -> Members:
        """Return the members in the order that `pair_members` requires."""
        return self.take(np.lexsort((self.position, ~self.listed, self.bucket)))


class BucketPairs(NamedTuple):
    """Pairs of a bucket, the rows of `schemas.CANDIDATES`.

    left, right : positions; `left` may remove `right`, or a later copy of it. listed : true if the
    buckets list the left documents; otherwise each is the first member that its bucket leaves out.
    needed : the number of common buckets that makes the pair a candidate.
    """

    left: Integers
    right: Integers
    listed: bool
    needed: Integers


Possible = Callable[[Integers, Integers], Mask]
"""Whether pairs can be duplicates, by the sizes of the left and the right document."""


def propose(
    lookup: Lookup,
    keys: Keys,
    order: Positions,
    max_bucket_size: int,
    *,
    all_pairs: bool = False,
    bands: Iterable[Words] | None = None,
) -> Candidates:
    """Pair each document with the earlier documents that its buckets list.

    Parameters
    ----------
    lookup : the tables of the method.
    keys : the keys of all documents.
    order : uint32, the document at each position.
    max_bucket_size : the greatest number of members that a bucket lists, the earliest ones.
    all_pairs : whether copies are members of buckets too. Otherwise a copy queries with its first
        document.
    bands : the keys of each band, uint64 (num_documents,), in place of `keys.values`: all of them
        may not fit in memory.
    """
    positions = np.arange(len(order))
    first = positions  # by position: the first copy of its content
    if not all_pairs:
        first = find_copies(keys.content, order, keys.featured).astype(np.int64)
    last = np.empty_like(positions)
    last[first] = positions  # the last copy of a content is written last
    nodes = positions[keys.featured[order] & (first == positions)]

    if lookup.bands is not None:
        columns = keys.values.T if bands is None else bands
        batches = _list_bands(columns, order, nodes, last)
    else:
        batches = _list_buckets(lookup, keys, order, nodes, last)
    limit = lookup.limit(max_bucket_size, all_pairs=all_pairs)
    one_hit_is_enough = lookup.bands is not None
    candidates, unlisted = _merge_pairs(pair_members(batches, limit), one_hit_is_enough)
    left, right = _unpack(_with_copies(candidates, first))
    unlisted = sort_distinct(unlisted)
    return Candidates(left, right, Unlisted(*_unpack(_with_copies(unlisted, first))))


def find_copies(content: Words, order: Positions, featured: Mask) -> Positions:
    """Return the first position with the same content, by position.

    A document without features is its own first.

    Parameters
    ----------
    content : uint64 (num_documents, 2), the hash of each document.
    order : uint32, the document at each position.
    featured : bool by document, whether it has features.
    """
    representative = np.arange(len(order), dtype=np.uint32)
    positions = np.flatnonzero(featured[order]).astype(np.uint32)
    packed = pack_keys(content[order[positions], 0], positions, len(order))
    kernels.bands.find_copies(packed, bits_for(len(order)), content, order, representative)
    return representative


def _list_buckets(
    lookup: Lookup, keys: Keys, order: Positions, nodes: Ints, last: Ints
) -> Iterator[Members]:
    """Yield the members of all buckets, sorted as `pair_members` requires.

    nodes : int64, the positions that are members. last : int64 by position, its last copy.
    """
    if lookup.radius is not None:
        yield _list_near(keys, order, nodes, last, lookup.radius).sort()
    else:
        sizes = np.zeros_like(nodes)  # unused: these pairs are not filtered by size
        yield list_members(lookup, keys.take(order[nodes]), nodes, last[nodes], sizes).sort()


def _list_bands(
    bands: Iterable[Words], order: Positions, nodes: Ints, last: Ints
) -> Iterator[Members]:
    """Yield the members of each band's buckets that have several members, in sorted order."""
    # A packed key has the upper bits of the hash, and the position in its lower `bits`.
    bits = np.uint64(bits_for(len(order)))
    position_mask = (np.uint64(1) << bits) - np.uint64(1)
    documents = order[nodes]
    for band, keys in enumerate(bands):
        packed = pack_keys(keys[documents], nodes.astype(np.uint32), len(order))
        begins = begins_run(packed >> bits)
        is_shared = ~(begins & np.append(begins[1:], True))
        position = (packed[is_shared] & position_mask).astype(np.int64)
        yield Members(
            bucket=np.cumsum(begins)[is_shared] + band * len(order),  # unique across bands
            position=position,
            last=last[position],
            size=np.zeros_like(position),
            needed=np.ones_like(position),
            listed=np.ones(len(position), np.bool_),
            queries=np.ones(len(position), np.bool_),
        )


def _list_near(keys: Keys, order: Positions, nodes: Ints, last: Ints, radius: Radius) -> Members:
    """Return a bucket for each distinct fingerprint.

    It lists the documents of the fingerprint. Documents within the distance query it too.
    """
    featured = mask_of(nodes, len(order))
    near = find_neighbours(keys.values, order, featured, radius).neighbours
    listing_bucket = near.node[nodes].astype(np.int64)
    degree = np.diff(near.starts)[listing_bucket]
    queried_bucket = near.others[ranges(near.starts[listing_bucket], degree)]
    position = np.concatenate([nodes, np.repeat(nodes, degree)])
    return Members(
        bucket=np.concatenate([listing_bucket, queried_bucket]),
        position=position,
        last=last[position],
        size=np.zeros_like(position),
        needed=np.ones_like(position),
        listed=np.arange(len(position)) < len(nodes),
        queries=np.ones(len(position), np.bool_),
    )


def list_members(
    lookup: Lookup, keys: Keys, position: Integers, last: Integers, size: Integers
) -> Members:
    """Return the members of the buckets of equal keys, document by document.

    position, last, size : integers by document, see `Members`.
    """
    entries = lookup.entries(keys)
    document = entries.document
    num_probes = np.bincount(lookup.probes(keys).document, minlength=len(position))
    needed = np.array(lookup.needed)[np.minimum(num_probes, len(lookup.needed) - 1)]
    table = entries.table.astype(np.uint64) + np.uint64(1)
    bucket = entries.key ^ table * GOLDEN  # equal keys of two tables differ
    return Members(
        bucket=bucket.view(np.int64),
        position=position[document],
        last=last[document],
        size=size[document],
        needed=needed[document],
        listed=np.ones(len(document), np.bool_),
        queries=rank_in_run(document) < num_probes[document],  # probes are the first entries
    )


class _Ranked(NamedTuple):
    """Members of whole buckets, or of the last bucket as far as it was read.

    begins : int64 by member, the first member of its bucket. rank : int64 by member, the number of
    listed members of its bucket before it. is_new : bool by member, false if earlier batches
    paired it.

    The members of one bucket, whose limit is 2:

        listed       yes    yes     yes      yes    no    no
        rank          0      1       2        3      4     4
                     all pair with   the first
                     these two       left out
    """

    members: Members
    begins: Ints
    rank: Ints
    is_new: Mask


def pair_members(
    batches: Iterable[Members], limit: int, possible: Possible | None = None
) -> Iterator[BucketPairs]:
    """Pair each member of a bucket with the earliest `limit` members that it lists.

    Requires: members sorted by bucket, listed members before the others, then by position.

    Notes
    -----
    A bucket may continue in the next batch: the earliest `limit` + 1 of its listed members so far
    are carried over.
    """
    carried: Members | None = None
    for batch in batches:
        if not len(batch.bucket):
            continue
        if carried is None:
            ranked = _rank(batch, num_carried=0)
        else:
            columns = zip(carried, batch, strict=True)
            members = Members(*(np.concatenate([old, new]) for old, new in columns))
            ranked = _rank(members, num_carried=len(carried.bucket))
        yield from _listed_pairs(ranked, limit, possible)
        yield _unlisted_pairs(ranked, limit)
        is_last_bucket = ranked.begins == ranked.begins[-1]
        is_carried = is_last_bucket & (ranked.rank <= limit) & ranked.members.listed
        carried = ranked.members.take(np.flatnonzero(is_carried))


def _rank(members: Members, num_carried: int) -> _Ranked:
    """Rank members in their buckets. num_carried : the members from earlier batches."""
    is_begin = begins_run(members.bucket)
    first_of_bucket = np.flatnonzero(is_begin)
    bucket = np.cumsum(is_begin) - 1
    begins = first_of_bucket[bucket]
    num_listed = np.add.reduceat(members.listed, first_of_bucket, dtype=np.int64)
    index = np.arange(len(begins))
    return _Ranked(
        members=members,
        begins=begins,
        rank=np.minimum(index - begins, num_listed[bucket]),  # listed members come first
        is_new=index >= num_carried,
    )


def _listed_pairs(ranked: _Ranked, limit: int, possible: Possible | None) -> Iterator[BucketPairs]:
    """Yield the pairs of the new members with the earlier members that their buckets list."""
    members = ranked.members
    num_earlier = np.where(ranked.is_new, np.minimum(ranked.rank, limit), 0)
    ends = np.cumsum(num_earlier)
    start = 0
    while start < len(num_earlier):
        max_end = ends[start] - num_earlier[start] + _PAIRS_AT_ONCE
        stop = max(start + 1, int(np.searchsorted(ends, max_end, "right")))
        count = num_earlier[start:stop]
        later = np.repeat(np.arange(start, stop), count)
        earlier = ranges(ranked.begins[start:stop], count)
        yield _pairs_of(members, earlier, later, possible, listed=True)
        # The later document may remove a copy of the earlier one that comes after it.
        is_listed = members.listed[later] & (ranked.rank[later] < limit)
        yield _pairs_of(members, later[is_listed], earlier[is_listed], possible, listed=True)
        start = stop


def _pairs_of(
    members: Members, left: Ints, right: Ints, possible: Possible | None, *, listed: bool
) -> BucketPairs:
    """Return the pairs of members, given by index, in which `left` may remove `right`.

    listed : whether the bucket lists the left members.
    """
    is_pair = members.queries[right] & (members.position[left] < members.last[right])
    if possible is not None:
        is_pair &= possible(members.size[left], members.size[right])
    left = left[is_pair]
    right = right[is_pair]
    return BucketPairs(
        left=members.position[left],
        right=members.position[right],
        listed=listed,
        needed=members.needed[right],
    )


def _unlisted_pairs(ranked: _Ranked, limit: int) -> BucketPairs:
    """Return the first member that each full bucket leaves out, with later members that query."""
    members = ranked.members
    is_beyond = ranked.rank > limit
    is_first_beyond = (ranked.rank == limit) & members.listed
    beyond = np.flatnonzero((is_beyond | is_first_beyond) & ranked.is_new)
    first_beyond = np.flatnonzero(is_first_beyond & ranked.is_new)
    # A listed member is before the first one that is left out, but may have a copy after it.
    listed = ranges(ranked.begins[first_beyond], np.full(len(first_beyond), limit))
    right = np.concatenate([beyond, listed])
    left = np.concatenate([ranked.begins[beyond] + limit, np.repeat(first_beyond, limit)])
    return _pairs_of(members, left, right, None, listed=False)


def _merge_pairs(found: Iterable[BucketPairs], one_hit_is_enough: bool) -> tuple[Ints, Ints]:
    """Return the candidates, packed, each once, and the unlisted pairs, packed.

    one_hit_is_enough : whether one common bucket makes a pair a candidate.
    """
    listed = [np.empty(0, np.int64)]
    needed: list[Integers] = [np.empty(0, np.int64)]
    unlisted = [np.empty(0, np.int64)]
    for batch in found:
        pairs = _pack(batch.left, batch.right)
        if not batch.listed:
            unlisted.append(pairs)
            continue
        listed.append(pairs)
        if not one_hit_is_enough:
            needed.append(batch.needed)
    if one_hit_is_enough:
        pairs = np.concatenate(listed)
        listed.clear()  # before the pairs are copied: they may take most of the memory
        return sort_distinct(pairs), np.concatenate(unlisted)
    candidates, row, hits = np.unique(np.concatenate(listed), return_index=True, return_counts=True)
    is_candidate = hits >= np.concatenate(needed)[row]
    return candidates[is_candidate], np.concatenate(unlisted)


def _with_copies(pairs: Ints, first: Ints) -> Ints:
    """Return packed pairs, sorted, of the left document with the right one and each of its copies.

    A pair is left out if the copy comes before the left document. pairs : distinct, sorted.
    first : int64 by position, the first position with the same content.
    """
    # The copies of a content are a run of `by_first`, which begins at `starts[first]`.
    by_first = np.argsort(first, kind="stable")
    sizes = np.bincount(first, minlength=len(first))
    starts = np.cumsum(sizes) - sizes
    has_copies = (sizes > 1)[pairs >> 32]
    if not has_copies.any():
        return pairs
    # Most documents have no copies: their pairs are not taken apart, which takes much memory.
    repeated = pairs[has_copies]
    right = repeated >> 32
    copies = by_first[ranges(starts[right], sizes[right])]
    left = np.repeat(repeated & _LOW_HALF, sizes[right])
    joined = np.concatenate([pairs[~has_copies], _pack(left, copies)[left < copies]])
    joined.sort()
    return joined


def _pack(left: Integers, right: Integers) -> Ints:
    """Return positions in one integer each: `right` in the upper 32 bits, `left` in the lower."""
    return np.asarray(right.astype(np.int64) << 32 | left, np.int64)


def _unpack(pairs: Ints) -> tuple[Positions, Positions]:
    """Return `left` and `right` of packed pairs."""
    return pairs.astype(np.uint32), (pairs >> 32).astype(np.uint32)


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
    packed = pack_keys(keys, positions, num_positions)
    first = np.full(num_positions, NO_BUCKET, np.uint32)
    members = np.empty(len(packed), np.uint32)  # the system allocates only pages that are written
    num_members = kernels.bands.list_members(
        packed, bits_for(num_positions), max_bucket_size, first, members
    )
    return first, members[:num_members]
