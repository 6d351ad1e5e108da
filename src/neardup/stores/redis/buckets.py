"""The buckets of the tables of keys in Redis, by linear hashing; see `scripts`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import Rows, Words, begins_run

ENTRY = np.dtype([("key", ">u8"), ("row", "<u4")])
_HEAD = np.dtype([("table", ">u2"), ("level", "u1"), ("number", ">u4"), ("size", ">u4")])
_GROUPS_PER_CALL = 50_000  # buckets that one call of the script fills
_PREFIX_BITS = 32  # upper bits of a key; the first L of them number the buckets of level L


class Buckets(NamedTuple):
    """Buckets of one table or several. level, number : int64."""

    level: Rows
    number: Rows


def buckets_of(table: Rows, keys: Words, num_buckets: Rows) -> Buckets:
    """Return the bucket of each key.

    table : the table of each key. num_buckets : the number of buckets of each table.
    """
    levels = np.array([count.bit_length() - 1 for count in num_buckets.tolist()])
    prefix = (keys >> np.uint64(64 - _PREFIX_BITS)).astype(np.int64)
    level = levels[table]
    num_split = num_buckets[table] - (1 << level)
    # The first buckets of a level are split: their keys are in buckets of the next level.
    is_split = prefix >> (_PREFIX_BITS - level) < num_split
    level = level + is_split
    return Buckets(level=level, number=prefix >> (_PREFIX_BITS - level))


def bucket_name(table: int, num_buckets: int, index: int) -> str:
    """Return the name of a bucket of a table. index : from 0 to num_buckets - 1."""
    level = num_buckets.bit_length() - 1
    num_split = num_buckets - (1 << level)
    # In the order of keys: the halves of the split buckets, then the other buckets.
    if index < 2 * num_split:
        return f"t{table}:{level + 1}:{index}"
    return f"t{table}:{level}:{index - num_split}"


def group_entries(table: Rows, keys: Words, row: Rows, num_buckets: Rows) -> Iterator[bytes]:
    """Yield entries for `scripts.ENTER`, up to _GROUPS_PER_CALL buckets at a time.

    The entries of a bucket keep their order.
    """
    bucket = buckets_of(table, keys, num_buckets)
    order = np.lexsort((bucket.number, bucket.level, table))
    table = table[order]
    bucket = Buckets(level=bucket.level[order], number=bucket.number[order])
    entries = np.empty(len(order), ENTRY)
    entries["key"] = keys[order]
    entries["row"] = row[order]
    begins = np.flatnonzero(begins_run(table, bucket.level, bucket.number))
    bounds = np.append(begins, len(order))
    for first in range(0, len(begins), _GROUPS_PER_CALL):
        group_bounds = bounds[first : first + _GROUPS_PER_CALL + 1]
        heads = _heads_of(table, bucket, group_bounds)
        group = entries[group_bounds[0] : group_bounds[-1]]
        yield _interleave(heads, group, np.diff(group_bounds))


def _heads_of(table: Rows, bucket: Buckets, bounds: Rows) -> npt.NDArray[np.void]:
    """Return the heads of groups. bounds : the first entry of each group, and the end."""
    firsts = bounds[:-1]
    heads = np.empty(len(firsts), _HEAD)
    heads["table"] = table[firsts]
    heads["level"] = bucket.level[firsts]
    heads["number"] = bucket.number[firsts]
    heads["size"] = ENTRY.itemsize * np.diff(bounds)
    return heads


def _interleave(heads: npt.NDArray[np.void], entries: npt.NDArray[np.void], sizes: Rows) -> bytes:
    """Return each head, followed by its entries, as bytes. sizes : the entries of each head."""
    packed = np.empty(heads.nbytes + entries.nbytes, np.uint8)
    # Packed: head 0, its entries, head 1, its entries, and so on. The offset of a record is the
    # size of all heads and entries before it.
    num_heads = np.repeat(np.arange(len(heads)), sizes) + 1  # before each entry
    num_entries = np.cumsum(sizes) - sizes  # before each head
    _place(packed, entries, _HEAD.itemsize * num_heads + ENTRY.itemsize * np.arange(len(entries)))
    _place(packed, heads, _HEAD.itemsize * np.arange(len(heads)) + ENTRY.itemsize * num_entries)
    return packed.tobytes()


def _place(packed: npt.NDArray[np.uint8], records: npt.NDArray[np.void], offsets: Rows) -> None:
    """Copy each record to its offset."""
    width = records.itemsize
    packed[offsets[:, None] + np.arange(width)] = records.view(np.uint8).reshape(-1, width)
