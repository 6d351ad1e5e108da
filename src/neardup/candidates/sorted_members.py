"""Pair the members of buckets that arrive sorted, batch by batch: a bucket of any size takes bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_PAIRS_AT_ONCE = 1 << 18

Integers = npt.NDArray[np.integer[Any]]
Possible = Callable[[Integers, Integers], npt.NDArray[np.bool_]]
"""Whether pairs can be duplicates, by the sizes of the left and the right document."""


class Members(NamedTuple):
    """Members of buckets. Each column has the shape (num_members,).

    key : of the bucket, int64. position : of the document in the order of priority, int64, 0 or more. last : the
    position of its last copy, its own if there is none. size : its number of features. needed : the common buckets
    that make a pair a candidate; 0 if the document is listed, but does not query.
    """

    key: Integers
    position: Integers
    last: Integers
    size: Integers
    needed: Integers

    def take(self, rows: npt.NDArray[Any]) -> Members:
        """Return some of the rows."""
        return Members(*(column[rows] for column in self))


class BucketPairs(NamedTuple):
    """Pairs of a bucket: `left` may remove `right`, or those of its copies that come later. Each is a position.

    left : negative if the bucket does not list the document ~left, which comes before `right` or a copy of it. needed :
    of the right document.
    """

    left: Integers
    right: Integers
    needed: Integers


def pair_members(batches: Iterable[Members], most: int, possible: Possible) -> Iterator[BucketPairs]:
    """Pair each member of a bucket with the earliest `most` others. Requires: members sorted by key and position.

    Notes
    -----
    A bucket may continue in the next batch: of its members so far, the earliest `most`, and one more, are carried over.
    """
    carried = Members(*(np.empty(0, np.int64) for _ in Members._fields))
    for batch in batches:
        if not len(batch.key):
            continue
        rows = Members(*(np.concatenate([old, new]) for old, new in zip(carried, batch, strict=True)))
        starts = np.ones(len(rows.key), np.bool_)
        starts[1:] = rows.key[1:] != rows.key[:-1]
        begins = np.flatnonzero(starts)[np.cumsum(starts) - 1]
        rank = np.arange(len(begins)) - begins
        fresh = len(carried.key)
        yield from _listed_pairs(rows, begins, rank, fresh, most, possible)
        yield from _unlisted_pairs(rows, begins, rank, fresh, most)
        carried = rows.take(np.flatnonzero((begins == begins[-1]) & (rank <= most)))


def _listed_pairs(
    rows: Members, begins: Integers, rank: Integers, fresh: int, most: int, possible: Possible
) -> Iterator[BucketPairs]:
    """Yield the pairs of the rows from `fresh` on with the earlier rows that their buckets list."""
    listed = np.minimum(rank, most)
    listed[:fresh] = 0
    ends = np.cumsum(listed)
    low = 0
    while low < len(rank):
        done = int(ends[low - 1]) if low else 0
        stop = max(low + 1, int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, "right")))
        count = listed[low:stop]
        later = np.repeat(np.arange(low, stop), count)
        earlier = begins[later] + np.arange(len(later)) - np.repeat(np.cumsum(count) - count, count)
        # A copy of the earlier document may come after the later one, which may then remove the copy.
        back = (rows.last[earlier] > rows.position[later]) & (rank[later] < most)
        for left, right in ((earlier, later), (later[back], earlier[back])):
            chosen = (rows.needed[right] > 0) & possible(rows.size[left], rows.size[right])
            left, right = left[chosen], right[chosen]
            yield BucketPairs(rows.position[left], rows.position[right], rows.needed[right])
        low = stop


def _unlisted_pairs(rows: Members, begins: Integers, rank: Integers, fresh: int, most: int) -> Iterator[BucketPairs]:
    """Yield the first member that a bucket does not list, with each document behind it that queries."""
    crowded = np.flatnonzero((rank >= most) & (np.arange(len(rank)) >= fresh))
    full = crowded[rank[crowded] == most]
    listed = np.repeat(begins[full], most) + np.tile(np.arange(most), len(full))
    right = np.concatenate([crowded, listed])
    left = np.concatenate([begins[crowded] + most, np.repeat(full, most)])
    behind = (rows.last[right] > rows.position[left]) & (rows.needed[right] > 0)
    left, right = left[behind], right[behind]
    yield BucketPairs(~rows.position[left], rows.position[right], rows.needed[right])
