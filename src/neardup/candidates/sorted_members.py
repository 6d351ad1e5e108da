"""The bucket rule: a bucket lists its earliest members, and each of its documents is paired with these.

Members arrive sorted, batch by batch, so that a bucket of any size takes bounded memory. This is the rule for whole
corpora, in the stages that are run one after the other and on Spark; kernels/sieve.py fuses it with the decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import begins_run, ranges, rank_in_run
from neardup.candidates.lookups import Lookup
from neardup.features.described import Keys

_PAIRS_AT_ONCE = 1 << 18
_MIX = np.uint64(0x9E3779B97F4A7C15)

Integers = npt.NDArray[np.integer[Any]]
Possible = Callable[[Integers, Integers], npt.NDArray[np.bool_]]
"""Whether pairs can be duplicates, by the sizes of the left and the right document."""


class Members(NamedTuple):
    """Members of buckets: the rows of `schemas.ENTRIES`. Each column has the shape (num_members,).

    bucket : int64. position : of the document in the order of priority, 0 or more. last : the position of its last
    copy, its own if there is none. size : its number of features. needed : the common buckets that make a pair a
    candidate; 0 if the bucket lists the document, which does not query; negative if it queries, but is not listed.
    """

    bucket: Integers
    position: Integers
    last: Integers
    size: Integers
    needed: Integers

    def take(self, rows: npt.NDArray[Any]) -> Members:
        """Return some of the rows."""
        return Members(*(column[rows] for column in self))

    def sort(self) -> Members:
        """Return the members in the order that `pair_members` requires."""
        return self.take(np.lexsort((self.position, self.needed < 0, self.bucket)))


class BucketPairs(NamedTuple):
    """Pairs of a bucket, the rows of `schemas.CANDIDATES`: `left` may remove `right`, or a later copy of it.

    left, right : positions. left is negative if the bucket does not list the document ~left, which comes before `right`
    or a copy of it. needed : the common buckets that make the pair a candidate.
    """

    left: Integers
    right: Integers
    needed: Integers


def list_members(lookup: Lookup, keys: Keys, position: Integers, last: Integers, size: Integers) -> Members:
    """Return the members of the buckets of equal keys, document by document. position, last, size : by document."""
    entries, sizes = lookup.entries(keys), np.bincount(lookup.probes(keys).document, minlength=len(position))
    document = entries.document
    bucket = entries.key ^ (entries.table.astype(np.uint64) + np.uint64(1)) * _MIX  # equal keys of two tables differ
    rank = rank_in_run(document)
    needed = np.array(lookup.needed)[np.minimum(sizes, len(lookup.needed) - 1)]
    queries = np.where(rank < sizes[document], needed[document], 0)
    return Members(bucket.view(np.int64), position[document], last[document], size[document], queries)


def pair_members(batches: Iterable[Members], most: int, possible: Possible | None = None) -> Iterator[BucketPairs]:
    """Pair each member of a bucket with the earliest `most` that it lists.

    Requires: members sorted by bucket, then those that the bucket lists before the others, then by position.

    Notes
    -----
    A bucket may continue in the next batch: of its members so far, the earliest `most`, and one more, are carried over.
    """
    carried = Members(*(np.empty(0, np.int64) for _ in Members._fields))
    for batch in batches:
        if not len(batch.bucket):
            continue
        rows = Members(*(np.concatenate([old, new]) for old, new in zip(carried, batch, strict=True)))
        starts = begins_run(rows.bucket)
        begins = np.flatnonzero(starts)[np.cumsum(starts) - 1]
        place = np.arange(len(begins))
        # The number of listed members before each row, which are the first rows of the bucket.
        num_listed = np.add.reduceat(rows.needed >= 0, np.flatnonzero(starts), dtype=np.int64)
        rank = np.minimum(place - begins, num_listed[np.cumsum(starts) - 1])
        fresh = place >= len(carried.bucket)
        yield from _listed_pairs(rows, begins, rank, fresh, most, possible)
        yield from _unlisted_pairs(rows, begins, rank, fresh, most)
        carried = rows.take(np.flatnonzero((begins == begins[-1]) & (rank <= most) & (rows.needed >= 0)))


def _listed_pairs(
    rows: Members, begins: Integers, rank: Integers, fresh: npt.NDArray[np.bool_], most: int, possible: Possible | None
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
        # A copy of the earlier document may come after the later one, which may then remove the copy.
        back = (rows.needed[later] >= 0) & (rank[later] < most)
        for left, right in ((earlier, later), (later[back], earlier[back])):
            chosen = (rows.needed[right] != 0) & (rows.position[left] < rows.last[right])
            if possible is not None:
                chosen &= possible(rows.size[left], rows.size[right])
            left, right = left[chosen], right[chosen]
            yield BucketPairs(rows.position[left], rows.position[right], np.abs(rows.needed[right]))
        low = stop


def _unlisted_pairs(
    rows: Members, begins: Integers, rank: Integers, fresh: npt.NDArray[np.bool_], most: int
) -> Iterator[BucketPairs]:
    """Yield the first member that a bucket does not list, with each document behind it that queries."""
    crowded = np.flatnonzero((rank >= most) & fresh)
    crowded = crowded[(rank[crowded] > most) | (rows.needed[crowded] >= 0)]  # there is a member of the rank `most`
    full = crowded[(rank[crowded] == most) & (rows.needed[crowded] >= 0)]
    right = np.concatenate([crowded, ranges(begins[full], np.full(len(full), most))])
    left = np.concatenate([begins[crowded] + most, np.repeat(full, most)])
    behind = (rows.last[right] > rows.position[left]) & (rows.needed[right] != 0)
    left, right = left[behind], right[behind]
    yield BucketPairs(~rows.position[left], rows.position[right], np.abs(rows.needed[right]))
