"""Find the distinct features of documents, count the documents of each, and weigh them.

Documents are counted by lossy counting (Manku and Motwani 2002): a table that is full drops its
rare entries, so a count may be too low, by at most a known number of documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.intrinsics import count_ones
from neardup.kernels.mixing import find_slot, max_length, mix
from neardup.kernels.sorted_sets import bucket_starts


@kernel
def add_documents(features, offsets, first, max_size, missed, table, size):
    """Add documents from `first` on; return the next document to be added, and the new size of the
    table.

    features : uint64, each once in a document; offsets : int64 (num_documents + 1,); table :
    hashes, counts (0 at a free slot) and misses, a power of two of slots; missed : the largest
    number of documents in which a new entry may have been dropped before. Stops before a document
    that may fill more than two thirds of the slots, and after one that leaves more than `max_size`
    entries.
    """
    hashes = table.hashes
    counts = table.counts
    misses = table.misses
    for document in range(first, len(offsets) - 1):
        if 3 * (size + offsets[document + 1] - offsets[document]) > 2 * len(hashes):
            return document, size
        for i in range(offsets[document], offsets[document + 1]):
            slot = find_slot(hashes, counts, 0, features[i])
            if counts[slot] == 0:
                hashes[slot] = features[i]
                misses[slot] = missed
                size += 1
            counts[slot] += U32(1)
        if size > max_size:  # the caller then drops rare entries: see `move_entries`
            return document + 1, size
    return len(offsets) - 1, size


@kernel
def move_entries(table, missed, target):
    """Copy the entries that may have more than `missed` documents to an empty table; return their
    number.

    table, target : as in `add_documents`; an entry has at most `counts` plus `misses` documents.
    """
    hashes = table.hashes
    counts = table.counts
    misses = table.misses
    size = 0
    for old in range(len(hashes)):
        if counts[old] != 0 and I64(counts[old]) + I64(misses[old]) > missed:
            slot = find_slot(target.hashes, target.counts, 0, hashes[old])
            target.hashes[slot] = hashes[old]
            target.counts[slot] = counts[old]
            target.misses[slot] = misses[old]
            size += 1
    return size


class _Features(NamedTuple):
    """Distinct features of documents. hashes : uint64; counts : uint32; firsts : int64, the index
    of the first occurrence of each.
    """

    hashes: np.ndarray
    counts: np.ndarray
    firsts: np.ndarray


@kernel(allocates=True)
def distinct_features(hashes, offsets, distinct, counts, firsts, distinct_offsets):
    """Write the distinct hashes of each document, rising, their counts, and the index of the first
    occurrence of each.

    hashes : uint64; offsets : int64 (num_documents + 1,); distinct : uint64, counts : uint32,
    firsts : int64, the index in `hashes`, all as long as `hashes`; distinct_offsets : int64
    (num_documents + 1,). Hashes are uniform: a counting sort by leading bits leaves an insertion
    sort next to nothing to do.
    """
    longest = max_length(offsets)
    order = np.empty(longest, I64)
    # At most 2 * longest buckets, or two; and one entry more, see `bucket_starts`.
    ends = np.empty(2 * longest + 3, I64)
    table = _Features(hashes=distinct, counts=counts, firsts=firsts)
    size = distinct_offsets[0] = 0
    for document in range(len(offsets) - 1):
        start = offsets[document]
        first = size
        span = hashes[start : offsets[document + 1]]
        shift = bucket_starts(span, ends)
        for i in range(len(span)):
            bucket = I64(span[i] >> shift)
            order[ends[bucket]] = i
            ends[bucket] += 1
        for i in range(len(span)):
            size = _insert(table, first, size, span[order[i]], start + order[i])
        distinct_offsets[document + 1] = size


@kernel(inline=True)
def _insert(table, first, size, value, index):
    """Count a hash among the rising ones from `first` to `size`; return the new size."""
    rank = size  # the position of the hash, found from the end as in insertion sort
    while rank > first and table.hashes[rank - 1] > value:
        rank -= 1
    if rank > first and table.hashes[rank - 1] == value:
        table.counts[rank - 1] += U32(1)
    else:
        for move in range(size, rank, -1):
            table.hashes[move] = table.hashes[move - 1]
            table.counts[move] = table.counts[move - 1]
            table.firsts[move] = table.firsts[move - 1]
        table.hashes[rank] = value
        table.counts[rank] = 1
        table.firsts[rank] = index
        size += 1
    return size


@kernel(allocates=True)
def choose(weights, offsets, top, levels, kept):
    """Mark the `top` features of each document with the largest weights; all if `top` is 0.

    With `levels`, replace weights by levels 1 to 5: the fifth of the marked weights, from the
    smallest, to which a weight belongs. weights : float64, changed; offsets : int64
    (num_documents + 1,); levels : bool; kept : bool, the marks. Of equal weights the first are
    marked: the smallest hashes.
    """
    for document in range(len(offsets) - 1):
        span = weights[offsets[document] : offsets[document + 1]]
        marks = kept[offsets[document] : offsets[document + 1]]
        ranked = np.sort(span)
        if top and top < len(span):
            ranked = ranked[len(span) - top :]
            _mark_top(span, ranked, marks)
        else:
            marks[:] = True
        if levels:
            # `ranked` is sorted: the position of a weight is the number of marked weights below it.
            for i in range(len(span)):
                span[i] = 1 + 5 * np.searchsorted(ranked, span[i]) // len(ranked)


@kernel
def _mark_top(weights, ranked, marks):
    """Mark the largest weights: `ranked`, rising. Of several equal to the smallest of these, mark
    the first.
    """
    minimum = ranked[0]
    num_above = len(ranked) - np.searchsorted(ranked, minimum, side="right")
    num_ties_left = len(ranked) - num_above  # weights equal to the minimum, still to be marked
    for i in range(len(weights)):
        marks[i] = weights[i] > minimum or (weights[i] == minimum and num_ties_left > 0)
        num_ties_left -= weights[i] == minimum


@kernel
def look_up(wanted, hashes, starts, counts, found):
    """Fill found with the count of each wanted hash, 0 if it is not in the table.

    wanted : uint64; hashes : uint64, rising; counts : as long; starts : int64 (2^k + 1,), where the
    hashes whose leading k bits are i begin; found : int64 (len(wanted),). Hashes are uniform: a
    look-up reads two or three of them.
    """
    # There are 2^k + 1 starts: k is the number of ones in 2^k - 1.
    bits = count_ones(U64(len(starts) - 2))
    for i in range(len(wanted)):
        value = wanted[i]
        # Two shifts: for k = 0, one shift by 64 bits would be undefined.
        bucket = I64((value >> U64(1)) >> U64(63 - bits))
        low = starts[bucket]
        high = starts[bucket + 1]
        while low < high:
            middle = (low + high) >> 1
            if hashes[middle] < value:
                low = middle + 1
            else:
                high = middle
        hit = low < len(hashes) and hashes[low] == value
        found[i] = counts[low] if hit else 0


# The golden ratio in 64 bits: the mix of a sum with it gives a repeated feature a hash of its own.
_REPEATED = U64(0x9E3779B97F4A7C15)


@kernel
def replicate_rare_features(hashes, offsets, document_counts, limits, repeated, repeated_offsets):
    """Write each feature, and a copy for each of two limits that its document count does not
    exceed.

    A feature of one document has no copy. Copies have other hashes, so a rare feature counts two or
    three times in a set. hashes, document_counts : uint64 and int64, the distinct features and
    the number of documents of each; limits : int64 (2,). Requires: `repeated` has three times the
    length of `hashes`.
    """
    end = repeated_offsets[0] = 0
    for document in range(len(offsets) - 1):
        for i in range(offsets[document], offsets[document + 1]):
            value = hashes[i]
            repeated[end] = value
            end += 1
            for limit in limits:
                if 1 < document_counts[i] <= limit:
                    value = mix(value + _REPEATED)
                    repeated[end] = value
                    end += 1
        repeated_offsets[document + 1] = end


@kernel
def look_up_each(wanted, wanted_offsets, hashes, offsets, counts, found):
    """Fill found with the count of each wanted hash in the table of its own document, 0 if it is
    missing.

    wanted, hashes : uint64, rising in each document; both offsets : int64 (num_documents + 1,);
    counts : as long as hashes; found : int64 (len(wanted),).
    """
    for document in range(len(offsets) - 1):
        row = offsets[document]
        stop = offsets[document + 1]
        # Both are sorted: a merge.
        for i in range(wanted_offsets[document], wanted_offsets[document + 1]):
            while row < stop and hashes[row] < wanted[i]:
                row += 1
            found[i] = counts[row] if row < stop and hashes[row] == wanted[i] else 0
