"""Grade hits of items: clear, or possible.

A licence, a proverb or an instruction of few documents looks like a leak of each item that contains
it. The words around it show the difference: in a document with the item they are the item's own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.arrays import Mask, Rows, offsets_from_lengths, ranges
from neardup.candidates.items import ItemTable, sequence_lengths
from neardup.decide.items import Hits

CLEAR = "clear"
POSSIBLE = "possible"


def are_possible(table: ItemTable, hits: Hits, is_rare: Mask) -> Mask:
    """Return which hits are POSSIBLE: they lack a part of the item, or all of their shingles are in
    other items, too. is_rare : bool by entry.
    """
    if not len(hits.items):
        return np.zeros(0, np.bool_)
    has_own = [table.is_own[entries].any() for entries in hits.found_in_view(table)]
    return _lack_part(table, hits, is_rare) | ~np.array(has_own, np.bool_)


def _lack_part(table: ItemTable, hits: Hits, is_rare: Mask) -> Mask:
    """Return whether each hit lacks a whole part of the field that it shows.

    A part is as many shingles in a row as a sequence has words, or a quarter of all if that is
    fewer; but more than the shingles of one changed word. At an end of the field, this is enough.
    """
    marks = _mark_shingles(table, hits, is_rare)
    gaps = _find_gaps(marks)
    ngrams = table.ngrams[hits.fields]
    part = np.minimum(sequence_lengths(ngrams), marks.sizes // 4)
    lacks_part: Mask = (gaps.longest >= np.maximum(part, ngrams + 1)) | (gaps.outer > ngrams)
    return lacks_part


class _Marks(NamedTuple):
    """The shingles of the shown fields of hits, in order, except boilerplate that is not there.

    is_found : bool by shingle, hit after hit. sizes : int64 by hit, its shingles, at least one of
    them found.
    """

    is_found: Mask
    sizes: Rows


def _mark_shingles(table: ItemTable, hits: Hits, is_rare: Mask) -> _Marks:
    """Return the marks of the shingles of hits. is_rare : bool by entry."""
    first = np.searchsorted(table.fields, hits.fields)
    num_entries = np.searchsorted(table.fields, hits.fields, "right") - first
    offsets = offsets_from_lengths(num_entries)
    is_found = np.zeros(offsets[-1], np.bool_)
    # Some of the entries found are of other fields of the item.
    numbers = np.repeat(np.arange(len(first)), [len(entries) for entries in hits.found])
    rows = np.concatenate(hits.found) - first[numbers]
    is_inside = (rows >= 0) & (rows < num_entries[numbers])
    is_found[(offsets[numbers] + rows)[is_inside]] = True

    entries = ranges(first, num_entries)
    counted = np.flatnonzero(is_found | is_rare[entries])
    return _Marks(is_found[counted], np.diff(np.searchsorted(counted, offsets)))


class _Gaps(NamedTuple):
    """Runs of shingles that are not found, by hit.

    longest, outer : int64, the length of the longest run, and of the longer one of the runs at the
    ends of the field.
    """

    longest: Rows
    outer: Rows


def _find_gaps(marks: _Marks) -> _Gaps:
    """Return the runs of shingles that are not found."""
    offsets = offsets_from_lengths(marks.sizes)
    found = np.flatnonzero(marks.is_found)
    first = np.searchsorted(found, offsets[:-1])
    last = np.searchsorted(found, offsets[1:]) - 1
    # The run before each shingle found; before the first of a hit it begins with the field.
    before = np.diff(found, prepend=0) - 1
    before[first] = found[first] - offsets[:-1]
    after = offsets[1:] - 1 - found[last]
    return _Gaps(
        longest=np.maximum(np.maximum.reduceat(before, first), after),
        outer=np.maximum(before[first], after),
    )
