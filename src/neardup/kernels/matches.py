"""Rows that queries match: signatures that share bands, fingerprints within a Hamming distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U64, kernel
from neardup.kernels.intrinsics import count_ones
from neardup.kernels.key_tables import list_rows


@kernel
def row_distance(lefts, left, rights, right):
    """Return the Hamming distance of two rows of uint64 arrays (num_rows, num_words)."""
    distance = I64(0)
    for word in range(lefts.shape[1]):
        distance += count_ones(lefts[left, word] ^ rights[right, word])
    return distance


@kernel
def row_distances(left, right, distances):
    """Set distances[i] to the number of bits in which rows i of two uint64 arrays (num_rows,
    num_words) differ.
    """
    for row in range(len(distances)):
        distances[row] = row_distance(left, row, right, row)


class Stored(NamedTuple):
    """Signatures or fingerprints by row. values : (num_rows, width); forgotten : bits of rows,
    uint64.
    """

    values: np.ndarray
    forgotten: np.ndarray


class Found(NamedTuple):
    """Matches of queries. query, row, equal : uint32; used : int64 (1,), the matches in use.

    equal : the hashes or bits that agree; until rows are compared, the table in which the row was
    listed.
    """

    query: np.ndarray
    row: np.ndarray
    equal: np.ndarray
    used: np.ndarray


@kernel
def same_values(left, right, start, stop):
    """Return whether two signatures agree in the values from `start` to `stop`."""
    for i in range(start, stop):
        if left[i] != right[i]:
            return False
    return True


@kernel
def shares_band(left, right, rows_per_band, num_bands):
    """Return whether two signatures agree in one of the first bands."""
    for band in range(num_bands):
        if same_values(left, right, band * rows_per_band, (band + 1) * rows_per_band):
            return True
    return False


@kernel
def num_equal(left, right):
    """Return the number of equal values of two signatures."""
    equal = 0
    for i in range(len(left)):
        equal += left[i] == right[i]
    return equal


@kernel(allocates=True)
def find_near(queries, keys, begin, tables, stored, masks, found):
    """Find the rows within the distance of queries, from `begin` on.

    queries : uint64 (num_queries, num_words); keys : uint64 (num_tables, num_queries); masks :
    uint64 (num_tables, num_words), the bits in which rows of a table agree; tables : as in
    kernels/key_tables.py. Returns the query that there was no space for, or the number of queries.
    """
    reached = list_rows(keys, begin, tables, stored.forgotten, found)
    used = 0
    bits = 64 * queries.shape[1]
    # Matches replace the listed entries in `found`: entry i is read before match used <= i is
    # written.
    # A row is kept in the first table whose bits it shares with the query.
    for i in range(found.used[0]):
        query = I64(found.query[i])
        row = I64(found.row[i])
        table = I64(found.equal[i])
        distance = row_distance(queries, query, stored.values, row)
        if distance > tables.rules.max_distance:
            continue
        first = 0
        while first < table and not _agrees(queries, query, stored.values, row, masks[first]):
            first += 1
        if first == table:
            found.query[used] = query
            found.row[used] = row
            found.equal[used] = bits - distance
            used += 1
    found.used[0] = used
    return reached


@kernel
def _agrees(lefts, left, rights, right, mask):
    """Return whether two rows of words agree in the bits of a mask."""
    for word in range(len(mask)):
        if (lefts[left, word] ^ rights[right, word]) & mask[word] != U64(0):
            return False
    return True
