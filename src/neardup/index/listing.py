"""Which rows a bucket lists, where some of them are stored and others are not yet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Rows, rank_in_run
from neardup.candidates.entries import Found, Layout
from neardup.stores.base import Snapshot

Sketches = Callable[[], tuple[pa.Array, pa.Array]]


def list_after(stored: Found, later: Found, limit: int, layout: Layout, sketches: Sketches) -> Found:
    """Return the later rows that buckets list after their stored rows; truncated : whether some are not listed.

    Parameters
    ----------
    stored, later : what the same lookups found; all rows of `later` come after those of `stored`.
    limit : the greatest number of rows that a bucket lists.
    sketches : returns the sketches of all rows found, stored and later, large_binary. Rows of one lookup are in one
        bucket if keys must be equal, else if their sketches are equal.
    """
    num_lookups = len(later.truncated)
    total = np.bincount(stored.entry, minlength=num_lookups) + np.bincount(later.entry, minlength=num_lookups)
    crowded = total > limit
    if not crowded.any():
        return later
    bucket = np.concatenate([stored.entry, later.entry])
    if layout.max_distance:
        codes = pc.dictionary_encode(pa.concat_arrays(list(sketches()))).indices.to_numpy()
        bucket = bucket * (len(codes) + 1) + codes
    in_stored, in_later = np.flatnonzero(crowded[stored.entry]), np.flatnonzero(crowded[later.entry])
    _, number = np.unique(bucket[np.append(in_stored, len(stored.entry) + in_later)], return_inverse=True)
    own = number[len(in_stored) :]
    before = np.bincount(number[: len(in_stored)], minlength=len(number))
    order = np.lexsort((later.row[in_later], own))
    rank = np.empty(len(order), np.int64)
    rank[order] = rank_in_run(own[order])
    fits = np.ones(len(later.entry), np.bool_)
    fits[in_later] = before[own] + rank < limit
    truncated = later.truncated.copy()
    truncated[later.entry[~fits]] = True
    return later.take(fits)._replace(truncated=truncated)


def sketches_of(snapshot: Snapshot, rows: Rows) -> pa.Array:
    """Return the sketches of rows, large_binary."""
    return snapshot.take(rows, ["sketch"])["sketch"].combine_chunks()
