"""Entries of tables of keys as bytes: 8 of the key, big-endian, and 4 of the row, little-endian."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U64, kernel
from neardup.kernels.intrinsics import count_ones

WIDTH = 12
GONE = 0
NEVER = 2**32 - 1


class Lookups(NamedTuple):
    """Keys that are looked up. key : uint64. same : uint64, the bits that must be equal, by lookup.
    max_distance : of all 64 bits.
    """

    key: np.ndarray
    same: np.ndarray
    max_distance: int


class Alive(NamedTuple):
    """The rows that a snapshot has. states : uint8, GONE or a state, at least num_rows of them.
    forgotten_at : uint32, by row, how many rows were forgotten before it, or NEVER; rows after its
    end were not. num_forgotten : rows that were forgotten as of the snapshot.
    """

    states: np.ndarray
    forgotten_at: np.ndarray
    num_rows: int
    num_forgotten: int


@kernel
def is_alive(row, alive):
    """Return whether a snapshot has a row."""
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
    at = number = 0
    for i in range(len(sizes)):
        key = lookups.key[i]
        same = lookups.same[i]
        for _ in range(sizes[i]):
            other = U64(0)
            for j in range(8):
                other = other << U64(8) | U64(data[at + j])
            differing = other ^ key
            if differing & same == 0 and count_ones(differing) <= lookups.max_distance:
                row = I64(0)
                for j in range(4):
                    row |= I64(data[at + 8 + j]) << 8 * j
                if is_alive(row, alive):
                    found_lookup[number] = i
                    found_key[number] = other
                    found_row[number] = row
                    number += 1
            at += WIDTH
    return number


@kernel
def list_alive(first, alive, rows):
    """Fill rows, int64, with the rows from `first` on that a snapshot has; return their number and
    where this ended.
    """
    number = 0
    row = first
    while row < alive.num_rows and number < len(rows):
        if is_alive(row, alive):
            rows[number] = row
            number += 1
        row += 1
    return number, row
