"""Sort sets of shingle hashes and measure how much two of them share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U64, kernel
from neardup.kernels.intrinsics import count_ones

JACCARD = 0
CONTAINMENT = 1
HAMMING = 2
COSINE = 3
MEASURES = {"jaccard": JACCARD, "containment": CONTAINMENT, "hamming": HAMMING, "cosine": COSINE}
# Values in place of the size of a sorted copy, see `_set_of`.
_UNKNOWN = -1
_RISING = -2  # the list itself is a rising set


class Sets(NamedTuple):
    """Sorted sets, each after its sketch, as `write_sets` writes them.

    hashes : uint64. starts : int64, sizes : uint32, by document.

        hashes   | sketch 0 | set 0 . . . | sketch 1 | set 1 . |
                            ^ starts[0]              ^ starts[1]
    """

    hashes: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray


@kernel
def bucket_starts(hashes, ends):
    """Set the start of each bucket of uniform hashes, about one hash per bucket; return the shift
    from a hash to its bucket.

    This is the first step of a counting sort. ends : int64, the starts, which become ends as the
    buckets are filled, with room for one entry more than buckets; their number is a power of two,
    2 or below 2 * len(hashes).
    """
    bits = 1
    while (1 << bits) < len(hashes):
        bits += 1
    shift = U64(64 - bits)
    ends[: (1 << bits) + 1] = 0
    for value in hashes:
        ends[I64(value >> shift) + 1] += 1
    for bucket in range(1 << bits):
        ends[bucket + 1] += ends[bucket]
    return shift


@kernel
def sort_list(hashes, spread, ends, ordered):
    """Write hashes to `ordered`, rising, each once; return their number.

    spread, ordered : uint64, as long as `hashes` or longer. ends : int64, 2 * len(hashes) + 3
    entries or more, see `bucket_starts`.

    Hashes are uniform: after a counting sort by leading bits, insertion sort moves few of them. The
    time is linear, a fifth of the time of a comparison sort at 700 hashes.
    """
    if len(hashes) == 0:
        return 0
    shift = bucket_starts(hashes, ends)
    for value in hashes:  # a hash is now next to its neighbours, at most a few steps from its rank
        bucket = I64(value >> shift)
        spread[ends[bucket]] = value
        ends[bucket] += 1
    size = 0
    for i in range(len(hashes)):
        value = spread[i]
        rank = size
        while rank > 0 and ordered[rank - 1] > value:
            rank -= 1
        if rank > 0 and ordered[rank - 1] == value:
            continue
        for move in range(size, rank, -1):
            ordered[move] = ordered[move - 1]
        ordered[rank] = value
        size += 1
    return size


@kernel
def sketch_words(size):
    """Return the number of 64-bit words of a set's sketch: a power of two, with at least eight bits
    per element.
    """
    words = 1
    while words * 8 < size:
        words *= 2
    return words


@kernel(allocates=True)
def write_sets(hashes, starts, stops, wanted, sets, set_starts, sizes):
    """Write each wanted document's hashes as a set, rising, each once, with its sketch before it.

    The lower bits of each hash are the number of a bit of the sketch, which is set: see
    `max_shared`.

    hashes : uint64; starts, stops : int64 (num_documents,), ranges of `hashes`; wanted : bool
    (num_documents,); sets : uint64, filled from 0 on, with room for all wanted hashes and
    `sketch_words` of each document's; set_starts : int64, sizes : uint32 (num_documents,), the
    start of each set, after its sketch, and its size, 0 where not wanted. Return the length of
    `sets` that is filled.
    """
    longest = _max_wanted(starts, stops, wanted)
    spread = np.empty(longest, U64)
    ordered = np.empty(longest, U64)
    ends = np.empty(2 * longest + 3, I64)
    used = 0
    for document in range(len(starts)):
        set_starts[document] = used
        sizes[document] = 0
        span = hashes[starts[document] : stops[document]]
        if not wanted[document] or len(span) == 0:
            continue
        size = sort_list(span, spread, ends, ordered)
        words = sketch_words(size)
        start = used + words
        _write_set(ordered[:size], sets[used:start], sets[start : start + size])
        set_starts[document] = start
        sizes[document] = size
        used = start + size
    return used


@kernel
def _max_wanted(starts, stops, wanted):
    """Return the length of the longest wanted list."""
    longest = 0
    for i in range(len(starts)):
        if wanted[i]:
            longest = max(longest, stops[i] - starts[i])
    return longest


@kernel
def _write_set(values, sketch, sets):
    """Write a set and its sketch."""
    sketch[:] = U64(0)
    for i in range(len(values)):
        bit = values[i] & U64(64 * len(sketch) - 1)
        sketch[I64(bit >> U64(6))] |= U64(1) << (bit & U64(63))
        sets[i] = values[i]


@kernel
def max_shared(sets, start, size, other_start, other_size):
    """Return the maximum number of elements that two sets can share, by their sketches.

    A bit that only one sketch has comes from at least one element that the other set lacks. A
    longer sketch is folded to the length of the shorter one: bits whose numbers have the same lower
    bits become one bit.
    """
    words = sketch_words(size)
    other_words = sketch_words(other_size)
    only = I64(0)  # bits that the first sketch has alone
    other_only = I64(0)
    if words == other_words:  # the usual case; unsigned indices let LLVM vectorise the loop
        first = U64(start - words)
        other_first = U64(other_start - other_words)
        for i in range(U64(words)):
            bits = sets[first + i]
            other_bits = sets[other_first + i]
            only += count_ones(bits & ~other_bits)
            other_only += count_ones(other_bits & ~bits)
    else:
        min_words = min(words, other_words)
        for i in range(min_words):
            bits = _fold(sets, start - words + i, start, min_words)
            other_bits = _fold(sets, other_start - other_words + i, other_start, min_words)
            only += count_ones(bits & ~other_bits)
            other_only += count_ones(other_bits & ~bits)
    return min(size - only, other_size - other_only)


@kernel
def _fold(sets, start, stop, step):
    """Return the union of every step-th word."""
    bits = U64(0)
    for index in range(start, stop, step):
        bits |= sets[index]
    return bits


@kernel
def overlap(left, right, needed):
    """Return the number of shared values of two rising arrays, or less than `needed` once that is
    out of reach.
    """
    i = 0
    j = 0
    shared = 0
    while i < len(left) and j < len(right):
        # Checked every 32 steps, in which at most 32 values can be shared.
        if shared + min(len(left) - i, len(right) - j) < needed:
            return shared
        for _ in range(32):
            if i >= len(left) or j >= len(right):
                break
            a = left[i]
            b = right[j]
            shared += a == b
            i += a <= b
            j += b <= a
    return shared


def similarity_of_counts(shared: Any, size: Any, other_size: Any, measure: int) -> Any:
    """Return the similarity of sets from the number of shared elements and their sizes; 0 for empty
    sets.

    Takes numbers, or arrays if it is not compiled. measure : JACCARD, CONTAINMENT (of the first
    set), or COSINE.
    """
    if measure == CONTAINMENT:
        return shared / np.maximum(1, size)
    if measure == COSINE:
        return shared / np.maximum(1.0, np.sqrt(np.float64(size) * np.float64(other_size)))
    return shared / np.maximum(1, size + other_size - shared)


similarity = kernel(similarity_of_counts)


def shared_above_chance(even: Any, other_even: Any) -> Any:
    """Return the number of shingles that two documents must share, so that they share more than
    unrelated texts do by chance.

    Takes numbers, or arrays if it is not compiled. even, other_even : the number of distinct
    shingles that occur an even number of times in each document.

    Let a shingle occur m times in a text of some source on average, by a Poisson distribution. The
    text has it with the probability p = 1 - exp(-m), and an even number of times, at least twice,
    with p^2 / 2. Two unrelated texts share sum(p q) shingles, at most sqrt(sum(p^2) sum(q^2)):
    twice the geometric mean of their even counts. The variance of this estimate, and of the number
    of shared shingles, is at most as large as the number itself. The result adds two standard
    deviations, and a tenth for shingles that are not independent of each other.
    """
    chance = 2.0 * np.sqrt(np.float64(1.0) * even * other_even)
    return 1.1 * chance + 2.0 * np.sqrt(2.0 * chance)


shared_above_chance_kernel = kernel(shared_above_chance)


@kernel
def _min_shared(size, other_size, measure, threshold):
    """Return the minimum number of shared elements of two sets at the threshold, minus 1 for
    rounding errors.
    """
    if measure == CONTAINMENT:
        return I64(threshold * size) - 1
    if measure == COSINE:
        return I64(threshold * np.sqrt(np.float64(size) * np.float64(other_size))) - 1
    return I64(threshold / (1.0 + threshold) * np.float64(size + other_size)) - 1


@kernel
def may_reach(sets, document, other, measure, threshold):
    """Return whether two sets may reach the threshold, judged by their sizes and sketches."""
    size = I64(sets.sizes[document])
    other_size = I64(sets.sizes[other])
    needed = _min_shared(size, other_size, measure, threshold)
    if size == 0 or min(size, other_size) < needed:
        return False
    return (
        max_shared(sets.hashes, sets.starts[document], size, sets.starts[other], other_size)
        >= needed
    )


@kernel
def similarity_of_sets(sets, document, other, measure, threshold, min_shared):
    """Return the exact similarity of a document to an earlier one, or any value below the
    threshold.

    min_shared : the number of elements that they must share at any threshold. Requires: neither set
    is empty.
    """
    size = I64(sets.sizes[document])
    other_size = I64(sets.sizes[other])
    start = sets.starts[document]
    other_start = sets.starts[other]
    mine = sets.hashes[start : start + size]
    theirs = sets.hashes[other_start : other_start + other_size]
    shared = overlap(
        mine, theirs, max(min_shared, _min_shared(size, other_size, measure, threshold))
    )
    if shared < min_shared:
        return -1.0
    return similarity(shared, size, other_size, measure)


@kernel
def measure_sets(sets, document, other, measure, threshold):
    """Return the exact similarity of two documents, or any value below the threshold."""
    if may_reach(sets, document, other, measure, threshold):
        return similarity_of_sets(sets, document, other, measure, threshold, I64(0))
    return -1.0


@kernel
def _is_rising(hashes):
    for i in range(1, len(hashes)):
        if hashes[i - 1] >= hashes[i]:
            return False
    return True


@kernel(allocates=True)
def _set_of(hashes, offsets, row, sorted_hashes, sizes):
    """Return a list as a rising set: the list itself, or a sorted copy, made when first wanted.

    sorted_hashes : uint64, room for the copies of all lists. sizes : int64 by list, the size of the
    copy, or _UNKNOWN or _RISING.
    """
    begin = offsets[row]
    end = offsets[row + 1]
    if sizes[row] == _UNKNOWN:
        sizes[row] = _RISING
        if not _is_rising(hashes[begin:end]):  # a list that is a set already is not copied
            size = end - begin
            spread = np.empty(size, U64)
            ends = np.empty(2 * size + 3, I64)
            sizes[row] = sort_list(hashes[begin:end], spread, ends, sorted_hashes[begin:end])
    return hashes[begin:end] if sizes[row] == _RISING else sorted_hashes[begin : begin + sizes[row]]


@kernel(allocates=True)
def list_overlaps(hashes, offsets, rows, other_hashes, other_offsets, other_rows, counts):
    """Count the elements that pairs of lists share, as sets, and the elements of each.

    hashes, other_hashes : uint64, list i is hashes[offsets[i]:offsets[i + 1]], with repeats.
    offsets, other_offsets : int64. rows, other_rows : int64 (num_pairs,), the left and the right
    list of each pair. counts : int64 (3, num_pairs), set to the number of shared elements, and the
    sizes of the left and the right set.
    """
    states = np.full(len(offsets), _UNKNOWN, I64)
    other_states = np.full(len(other_offsets), _UNKNOWN, I64)
    space = np.empty(len(hashes), U64)
    other_space = np.empty(len(other_hashes), U64)
    for pair in range(len(rows)):
        left = _set_of(hashes, offsets, rows[pair], space, states)
        right = _set_of(other_hashes, other_offsets, other_rows[pair], other_space, other_states)
        i = 0
        j = 0
        count = 0
        while i < len(left) and j < len(right):  # without the bound of `overlap`, a fifth faster
            value = left[i]
            other = right[j]
            count += value == other
            i += value <= other
            j += other <= value
        counts[0, pair] = count
        counts[1, pair] = len(left)
        counts[2, pair] = len(right)
