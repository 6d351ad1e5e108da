"""Entries by the bucket that lists them, as the scripts take them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neardup.arrays import Rows, Words, begins_run
from neardup.kernels.packed_entries import WIDTH

_GROUPS_A_CALL = 50_000
_HEAD = np.dtype([("table", ">u2"), ("level", "u1"), ("number", ">u4"), ("size", ">u4")])
ENTRY = np.dtype([("key", ">u8"), ("row", "<u4")])


def bucket_of(table: Rows, keys: Words, buckets: Rows) -> tuple[Rows, Rows]:
    """Return the level and the number of the bucket of each key; see `scripts`. buckets : by table, how many it has."""
    levels = np.array([count.bit_length() - 1 for count in buckets.tolist()])
    top, level = (keys >> np.uint64(32)).astype(np.int64), levels[table]
    level = level + (top >> (32 - level) < buckets[table] - (1 << level))
    return level, top >> (32 - level)


def group_entries(table: Rows, keys: Words, row: Rows, buckets: Rows) -> Iterator[bytes]:
    """Yield entries for `scripts.ENTER`, some thousand buckets at a time; entries of a bucket stay in their order."""
    level, number = bucket_of(table, keys, buckets)
    order = np.lexsort((number, level, table))
    table, level, number = table[order], level[order], number[order]
    entries = np.empty(len(order), ENTRY)
    entries["key"], entries["row"] = keys[order], row[order]
    begins = np.append(np.flatnonzero(begins_run(table, level, number)), len(order))
    for first in range(0, len(begins) - 1, _GROUPS_A_CALL):
        bounds = begins[first : first + _GROUPS_A_CALL + 1]
        heads = np.empty(len(bounds) - 1, _HEAD)
        heads["table"], heads["level"], heads["number"] = (column[bounds[:-1]] for column in (table, level, number))
        heads["size"] = WIDTH * np.diff(bounds)
        yield _interleave(heads, entries[bounds[0] : bounds[-1]], np.diff(bounds))


def _interleave(heads: npt.NDArray[np.void], entries: npt.NDArray[np.void], sizes: Rows) -> bytes:
    """Return each head and the entries behind it."""
    packed = np.empty(heads.nbytes + entries.nbytes, np.uint8)
    group = np.repeat(np.arange(len(heads)), sizes)
    at = _HEAD.itemsize * (group + 1) + WIDTH * np.arange(len(entries))
    packed[at[:, None] + np.arange(WIDTH)] = entries.view(np.uint8).reshape(-1, WIDTH)
    at = _HEAD.itemsize * np.arange(len(heads)) + WIDTH * (np.cumsum(sizes) - sizes)
    packed[at[:, None] + np.arange(_HEAD.itemsize)] = heads.view(np.uint8).reshape(-1, _HEAD.itemsize)
    return packed.tobytes()
