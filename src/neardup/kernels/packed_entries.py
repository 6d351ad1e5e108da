"""Entries of tables of keys as bytes.

| key, 8 bytes, big-endian | row, 4 bytes, little-endian |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U64, kernel
from neardup.kernels.intrinsics import count_ones

WIDTH = 12  # bytes of an entry
GONE = 0  # the state of a forgotten row
NEVER = 2**32 - 1  # a row that is not forgotten, see `Alive.forgotten_at`


class Lookups(NamedTuple):
    """Keys that are looked up.

    By lookup, uint64: key; same : the bits that must be equal. max_distance : the number of bits of
    a key that may differ.
    """

    key: np.ndarray
    same: np.ndarray
    max_distance: int


class Alive(NamedTuple):
    """The rows that are alive in a snapshot, which may be older than the data.

    states : uint8 by row, GONE or a state, at least num_rows of them. forgotten_at : uint32 by row,
    the number of rows that were forgotten before it, or NEVER; rows beyond the array were never
    forgotten. num_forgotten : the number of rows that were forgotten as of the snapshot.
    """

    states: np.ndarray
    forgotten_at: np.ndarray
    num_rows: int
    num_forgotten: int


@kernel
def is_alive(row, alive):
    """Return whether a row is alive in a snapshot."""
    if row >= alive.num_rows or alive.states[row] == GONE:
        return False
    return row >= len(alive.forgotten_at) or alive.forgotten_at[row] >= alive.num_forgotten


@kernel
def match(data, sizes, lookups, alive, found_lookup, found_key, found_row):
    """Find the entries of buckets that match their lookups; return the number of entries found.

    data : uint8, the buckets of the lookups, one after the other; sizes : int64, the entries of
    each. Requires: the arrays found_lookup (int64), found_key (uint64) and found_row (int64) have
    room for all entries.
    """
    offset = num_found = 0
    for i in range(len(sizes)):
        key = lookups.key[i]
        same = lookups.same[i]
        for _ in range(sizes[i]):
            entry_key = U64(0)
            for j in range(8):  # big-endian
                entry_key = entry_key << U64(8) | U64(data[offset + j])
            differing = entry_key ^ key
            if differing & same == 0 and count_ones(differing) <= lookups.max_distance:
                row = I64(0)
                for j in range(4):  # little-endian
                    row |= I64(data[offset + 8 + j]) << 8 * j
                if is_alive(row, alive):
                    found_lookup[num_found] = i
                    found_key[num_found] = entry_key
                    found_row[num_found] = row
                    num_found += 1
            offset += WIDTH
    return num_found


@kernel
def list_alive(first, alive, rows):
    """Fill rows, int64, with the rows from `first` on that are alive in a snapshot; return their
    number and the next row to examine.
    """
    count = 0
    row = first
    while row < alive.num_rows and count < len(rows):
        if is_alive(row, alive):
            rows[count] = row
            count += 1
        row += 1
    return count, row
