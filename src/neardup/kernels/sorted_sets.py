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
_UNKNOWN = -1
_RISING = -2


class Sets(NamedTuple):
    """Sorted sets, each after its sketch, as `write_sets` writes them.

    hashes : uint64; starts : int64, sizes : uint32, by document.
    """

    hashes: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray


@kernel
def bucket_starts(hashes, ends):
    """Set where each bucket of uniform hashes begins, about a hash each; return the shift from a
    hash to its bucket.

    The first step of a counting sort; ends : int64, longer by one than the number of buckets, a
    power of two near len(hashes).
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
    """Write hashes to `ordered`, rising, each once; return how many.

    spread, ordered : uint64, as long as `hashes` or longer; ends : int64, longer than twice that by
    3. Hashes are uniform: a counting sort by leading bits leaves an insertion sort next to nothing
    to do, linear in all (5 x quicker than a comparison sort at 700 hashes).
    """
    if len(hashes) == 0:
        return 0
    shift = bucket_starts(hashes, ends)
    for value in hashes:
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
    """Return how many words of 64 bits the sketch of a set has: a power of two, with eight bits or
    more an element.
    """
    words = 1
    while words * 8 < size:
        words *= 2
    return words


@kernel(allocates=True)
def write_sets(hashes, starts, stops, wanted, sets, set_starts, sizes):
    """Write each wanted document's hashes as a set, rising, each once, with its sketch before it.

    A sketch has the bit set that the lower bits of each hash name: see `most_shared`.

    hashes : uint64; starts, stops : int64 (num_documents,), ranges of `hashes`; wanted : bool
    (num_documents,); sets : uint64, filled from 0 on, with room for all wanted hashes and
    `sketch_words` of each document's; set_starts : int64, sizes : uint32 (num_documents,), where
    each set begins, after its sketch, and its size, 0 where not wanted. Return how much of `sets`
    is filled.
    """
    longest = 0
    for document in range(len(starts)):
        if wanted[document]:
            longest = max(longest, stops[document] - starts[document])
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
def _write_set(values, sketch, sets):
    """Write a set and its sketch."""
    sketch[:] = U64(0)
    for i in range(len(values)):
        bit = values[i] & U64(64 * len(sketch) - 1)
        sketch[I64(bit >> U64(6))] |= U64(1) << (bit & U64(63))
        sets[i] = values[i]


@kernel
def most_shared(sets, start, size, other_start, other_size):
    """Return how many elements two sets may share at most, by their sketches.

    Each bit of one sketch that the other lacks stands for one element or more that the other set
    lacks. A longer sketch is folded to the length of the shorter one, in which a hash has the same
    lower bits.
    """
    words = sketch_words(size)
    other_words = sketch_words(other_size)
    first = U64(start - words)
    other_first = U64(other_start - other_words)
    only = I64(0)
    other_only = I64(0)
    if words == other_words:
        for i in range(U64(words)):
            bits = sets[first + i]
            other_bits = sets[other_first + i]
            only += count_ones(bits & ~other_bits)
            other_only += count_ones(other_bits & ~bits)
        return min(size - only, other_size - other_only)
    least = min(words, other_words)
    for i in range(least):
        bits = _fold(sets, start - words + i, start, least)
        other_bits = _fold(sets, other_start - other_words + i, other_start, least)
        only += count_ones(bits & ~other_bits)
        other_only += count_ones(other_bits & ~bits)
    return min(size - only, other_size - other_only)


@kernel
def _fold(sets, start, stop, step):
    """Return the union of every step-th word."""
    bits = U64(0)
    for at in range(start, stop, step):
        bits |= sets[at]
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
    """Return how many shingles two documents must share, so that they share more than unrelated
    texts do by chance.

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


least_above_chance = kernel(shared_above_chance)


@kernel
def _least_shared(size, other_size, measure, threshold):
    """Return the least number of elements that two sets at the threshold share, less 1, so that
    rounding loses no pair that just reaches it.
    """
    if measure == CONTAINMENT:
        return I64(threshold * size) - 1
    if measure == COSINE:
        return I64(threshold * np.sqrt(np.float64(size) * np.float64(other_size))) - 1
    return I64(threshold / (1.0 + threshold) * np.float64(size + other_size)) - 1


@kernel
def may_reach(sets, document, other, measure, threshold):
    """Return whether the sizes and the sketches of two sets leave it open that they reach the
    threshold.
    """
    size = I64(sets.sizes[document])
    other_size = I64(sets.sizes[other])
    needed = _least_shared(size, other_size, measure, threshold)
    if size == 0 or min(size, other_size) < needed:
        return False
    return (
        most_shared(sets.hashes, sets.starts[document], size, sets.starts[other], other_size)
        >= needed
    )


@kernel
def similarity_of_sets(sets, document, other, measure, threshold, least):
    """Return the exact similarity of a document to an earlier one, or any value below the
    threshold.

    least : the number of elements that they must share in any case. Requires: neither set is empty.
    """
    size = I64(sets.sizes[document])
    other_size = I64(sets.sizes[other])
    start = sets.starts[document]
    other_start = sets.starts[other]
    mine = sets.hashes[start : start + size]
    theirs = sets.hashes[other_start : other_start + other_size]
    shared = overlap(mine, theirs, max(least, _least_shared(size, other_size, measure, threshold)))
    if shared < least:
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
    """Return a list as a rising set: the list itself, or sorted when it is first wanted.

    sorted_hashes : uint64, space for all lists. sizes : int64, of sorted lists, or _UNKNOWN or
    _RISING.
    """
    begin = offsets[row]
    end = offsets[row + 1]
    if sizes[row] == _UNKNOWN:
        sizes[row] = _RISING
        if not _is_rising(hashes[begin:end]):
            size = end - begin
            spread = np.empty(size, U64)
            ends = np.empty(2 * size + 3, I64)
            sizes[row] = sort_list(hashes[begin:end], spread, ends, sorted_hashes[begin:end])
    return hashes[begin:end] if sizes[row] == _RISING else sorted_hashes[begin : begin + sizes[row]]


@kernel(allocates=True)
def list_overlaps(hashes, offsets, rows, other_hashes, other_offsets, other_rows, counts):
    """Count the elements that lists share, as sets, and the elements of each, pair by pair.

    hashes : uint64, list i is hashes[offsets[i]:offsets[i + 1]]; offsets : int64; repeats are
    allowed. rows : int64 (num_pairs,), of the lists. The same of the others. counts : int64 (3,
    num_pairs): shared, own and other sizes.
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
