"""Compare a sample of documents with all others exactly, by a table of the sample's shingles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import kernel

U64 = np.uint64
_EMPTY = np.int64(-1)


class Table(NamedTuple):
    """An open-addressing hash table from a shingle to the sampled documents that have it.

    keys : uint64 and first : int64 (num_slots,), a power of two; next : int64 and member : int64 (num_entries,),
    chained lists.
    """

    keys: np.ndarray
    first: np.ndarray
    next: np.ndarray
    member: np.ndarray


class Sample(NamedTuple):
    """The sampled documents: their numbers, rising, sizes of their sets, content hashes and band keys."""

    documents: np.ndarray
    sizes: np.ndarray
    content: np.ndarray
    keys: np.ndarray


class Stretch(NamedTuple):
    """Consecutive documents from `first` on: their content hashes and band keys."""

    first: int
    content: np.ndarray
    keys: np.ndarray


class Counts(NamedTuple):
    """Pairs of each sampled document: those found by a band, and all there are. int64 (num_samples,)."""

    found: np.ndarray
    true: np.ndarray


def make_table(num_entries: int) -> Table:
    """Return an empty table that holds `num_entries` at most half full."""
    num_slots = 1 << max(4, (2 * num_entries).bit_length())
    return Table(
        np.zeros(num_slots, np.uint64),
        np.full(num_slots, _EMPTY, np.int64),
        np.empty(num_entries, np.int64),
        np.empty(num_entries, np.int64),
    )


@kernel
def _slot(table, key):
    """Return the slot of a key, or the empty one where it belongs."""
    mask = len(table.keys) - 1
    slot = np.int64(key & U64(mask))
    while table.first[slot] != _EMPTY and table.keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def fill(table, hashes, starts, sizes):
    """Enter the sets of the sampled documents, hashes[starts[i]:starts[i] + sizes[i]]."""
    entry = 0
    for sample in range(len(starts)):
        for i in range(starts[sample], starts[sample] + np.int64(sizes[sample])):
            slot = _slot(table, hashes[i])
            table.keys[slot] = hashes[i]
            table.member[entry] = sample
            table.next[entry] = table.first[slot]
            table.first[slot] = entry
            entry += 1


@kernel
def _share_band(left, left_column, right, right_column):
    for band in range(left.shape[0]):
        if left[band, left_column] == right[band, right_column]:
            return True
    return False


@kernel
def compare(table, sample, stretch, sets, threshold, counts):
    """Compare every document of a stretch with every sampled one and count the pairs at or above the threshold.

    Copies are not counted. Requires: `sets` sorted for all documents of the stretch.
    """
    shared = np.zeros(len(sample.documents), np.int64)
    touched = np.empty(len(sample.documents), np.int64)
    for column in range(stretch.content.shape[0]):
        document = stretch.first + column
        size = np.int64(sets.sizes[document])
        count = 0
        for i in range(sets.starts[document], sets.starts[document] + size):
            entry = table.first[_slot(table, sets.hashes[i])]
            while entry != _EMPTY:
                member = table.member[entry]
                if shared[member] == 0:
                    touched[count] = member
                    count += 1
                shared[member] += 1
                entry = table.next[entry]
        for i in range(count):
            other = touched[i]
            similarity = shared[other] / (size + np.int64(sample.sizes[other]) - shared[other])
            shared[other] = 0
            copy = (
                sample.content[other, 0] == stretch.content[column, 0]
                and sample.content[other, 1] == stretch.content[column, 1]
            )
            if similarity >= threshold and not copy:
                counts.true[other] += 1
                counts.found[other] += _share_band(sample.keys, other, stretch.keys, column)
