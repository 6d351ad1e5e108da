"""Rows sorted by a stretch of their signature: those that share its beginning with a query lie side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import kernel
from neardup.kernels.key_tables import has_bit
from neardup.kernels.matches import num_equal, same_values, shares_band

EMPTY = np.uint32(0xFFFFFFFF)


class Trees(NamedTuple):
    """Prefix trees, each flattened to the sorted order of its rows.

    starts : int64 (num_trees,), the first place of each tree's stretch; depth : its length. edges : int64 (num_parts +
    1,): columns edges[p] to edges[p + 1] hold part p, sorted by itself. rows : uint32 (num_trees, num_columns); heads :
    uint32 of the same shape, the first value of each.
    """

    starts: np.ndarray
    depth: int
    edges: np.ndarray
    rows: np.ndarray
    heads: np.ndarray


@kernel
def _compare(left, right, start, stop):
    """Return -1, 0 or 1: the order of two signatures by places start to stop."""
    for i in range(start, stop):
        if left[i] != right[i]:
            return -1 if left[i] < right[i] else 1
    return 0


@kernel
def sort_runs(rows, heads, values, start, stop):
    """Sort each run of equal heads by places start to stop of the rows; those equal there keep their order."""
    spare = np.empty_like(rows)
    first = 0
    while first < len(rows):
        end = first + 1
        while end < len(rows) and heads[end] == heads[first]:
            end += 1
        width = 1
        while width < end - first:  # a merge sort, from the bottom up
            for low in range(first, end, 2 * width):
                middle, high = min(low + width, end), min(low + 2 * width, end)
                i, j = low, middle
                for k in range(low, high):
                    take_right = i == middle or (
                        j < high and _compare(values[np.int64(rows[j])], values[np.int64(rows[i])], start, stop) < 0
                    )
                    if take_right:
                        spare[k] = rows[j]
                        j += 1
                    else:
                        spare[k] = rows[i]
                        i += 1
            rows[first:end] = spare[first:end]
            width *= 2
        first = end


@kernel
def _bound(trees, tree, part, values, asked, depth):
    """Return the first column of a part whose first `depth` values are not below those asked for."""
    low, high = trees.edges[part], trees.edges[part + 1]
    start = trees.starts[tree]
    while low < high:
        middle = (low + high) // 2
        head = trees.heads[tree, middle]
        below = head < asked[start]
        if head == asked[start] and depth > 1:
            below = _compare(values[np.int64(trees.rows[tree, middle])], asked, start + 1, start + depth) < 0
        if below:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _common(left, right, start, depth):
    """Return how many values two signatures share from a place on, at most `depth`."""
    for i in range(depth):
        if left[start + i] != right[start + i]:
            return i
    return depth


@kernel
def _longest(trees, left, right):
    """Return the longest common prefix of two signatures in any tree, and the first tree that has it."""
    longest, best = 0, 0
    for tree in range(len(trees.starts)):
        common = _common(left, right, trees.starts[tree], trees.depth)
        if common > longest:
            longest, best = common, tree
    return longest, best


@kernel
def _is_empty(signature):
    for value in signature:
        if value != EMPTY:
            return False
    return True


@kernel
def _tail_levels(trees, asked, stored, tail, levels, counts):
    """Set levels[i] to the longest common prefix of row tail[0] + i, and add each level to its count."""
    for row in range(tail[0], tail[1]):
        level = 0
        if not has_bit(stored.forgotten, row) and not _is_empty(stored.values[row]):
            level, _ = _longest(trees, asked, stored.values[row])
        levels[row - tail[0]] = level
        counts[level] += 1


@kernel
def find_longest(queries, begin, stored, trees, tail, wanted, found):
    """Find the rows that share the longest prefixes with each query, until `wanted` of them are there.

    queries : uint32 (num_queries, num_hashes), asked from `begin` on; tail : (first, stop), rows that are in no tree;
    trees of one part. Returns the query that there was no room for, or the number of queries. All trees are climbed
    together: all rows of one level are taken, or none.
    """
    used, deepest = 0, trees.depth
    levels = np.empty(tail[1] - tail[0], np.int64)
    ends = np.empty((2, len(trees.starts)), np.int64)  # the next column to the left and to the right, in each tree
    for query in range(begin, len(queries)):
        before, asked, taken = used, queries[query], 0
        if _is_empty(asked):
            continue
        counts = np.zeros(deepest + 1, np.int64)
        _tail_levels(trees, asked, stored, tail, levels, counts)
        for tree in range(len(trees.starts)):
            ends[1, tree] = _bound(trees, tree, 0, stored.values, asked, trees.depth)
            ends[0, tree] = ends[1, tree] - 1
        level = deepest
        while level > 0 and taken < wanted:
            for tree in range(len(trees.starts)):
                for side in range(2):
                    column = ends[side, tree]
                    while 0 <= column < trees.rows.shape[1]:
                        row = np.int64(trees.rows[tree, column])
                        other = stored.values[row]
                        if _common(asked, other, trees.starts[tree], trees.depth) < level:
                            break
                        # The deepest tree that it is near in reports a row.
                        if not has_bit(stored.forgotten, row) and _longest(trees, asked, other) == (level, tree):
                            if used == len(found.row):
                                found.used[0] = before
                                return query
                            found.query[used], found.row[used], found.equal[used] = query, row, num_equal(asked, other)
                            used += 1
                            taken += 1
                        column += 2 * side - 1
                    ends[side, tree] = column
            taken += counts[level]
            level -= 1
        for row in range(tail[0], tail[1]):
            if levels[row - tail[0]] > level:
                if used == len(found.row):
                    found.used[0] = before
                    return query
                found.query[used], found.row[used] = query, row
                found.equal[used] = num_equal(asked, stored.values[row])
                used += 1
    found.used[0] = used
    return len(queries)


@kernel
def find_bands(queries, begin, stored, trees, tail, bands, found):
    """Find the rows of each part that share one of so many bands with each query.

    bands : int64 (num_queries, num_parts + 1, 2), bands and rows a band by query and part, the tail last; no bands: the
    part is passed over. Requires: tree i starts in place i. The rest is as for `find_longest`.
    """
    used = 0
    for query in range(begin, len(queries)):
        before, asked = used, queries[query]
        if _is_empty(asked):
            continue
        for part in range(len(trees.edges) - 1):
            num_bands, depth = bands[query, part]
            for band in range(num_bands):
                tree = band * depth
                column = _bound(trees, tree, part, stored.values, asked, depth)
                while column < trees.edges[part + 1]:
                    row = np.int64(trees.rows[tree, column])
                    other = stored.values[row]
                    if not same_values(asked, other, tree, tree + depth):
                        break
                    if not has_bit(stored.forgotten, row) and not shares_band(asked, other, depth, band):
                        if used == len(found.row):
                            found.used[0] = before
                            return query
                        found.query[used], found.row[used], found.equal[used] = query, row, num_equal(asked, other)
                        used += 1
                    column += 1
        num_bands, depth = bands[query, len(trees.edges) - 1]
        for row in range(tail[0], tail[1]):
            other = stored.values[row]
            if (
                not has_bit(stored.forgotten, row)
                and not _is_empty(other)
                and shares_band(asked, other, depth, num_bands)
            ):
                if used == len(found.row):
                    found.used[0] = before
                    return query
                found.query[used], found.row[used], found.equal[used] = query, row, num_equal(asked, other)
                used += 1
    found.used[0] = used
    return len(queries)
