"""All pairs of fingerprints within a Hamming distance: partition by one block, group by several,
compare.

Every step looks at fingerprints through masks. A node of `Nodes` reports the pairs that agree in
the bits of one mask, and differ somewhere in each of some others. Every pair within the distance
fits exactly one node of a level (see candidates/blocks.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.intrinsics import count_ones
from neardup.kernels.matches import row_distance


@kernel
def _reverse(word):
    """Return a uint64 with its bits in reverse order."""
    word = ((word >> U64(1)) & U64(0x5555555555555555)) | (
        (word & U64(0x5555555555555555)) << U64(1)
    )
    word = ((word >> U64(2)) & U64(0x3333333333333333)) | (
        (word & U64(0x3333333333333333)) << U64(2)
    )
    word = ((word >> U64(4)) & U64(0x0F0F0F0F0F0F0F0F)) | (
        (word & U64(0x0F0F0F0F0F0F0F0F)) << U64(4)
    )
    word = ((word >> U64(8)) & U64(0x00FF00FF00FF00FF)) | (
        (word & U64(0x00FF00FF00FF00FF)) << U64(8)
    )
    word = ((word >> U64(16)) & U64(0x0000FFFF0000FFFF)) | (
        (word & U64(0x0000FFFF0000FFFF)) << U64(16)
    )
    return (word >> U64(32)) | (word << U64(32))


@kernel(allocates=True)
def permute_bits(words, moves, keys):
    """Fill keys, uint64 (num_tables, num_rows).

    words : uint64 (num_rows, num_words), fingerprints, the lowest word first. moves : uint64
    (num_tables, num_moves, 3): a word, bits of it when its lowest bit is the highest, and how far
    left these are rotated in the key.
    """
    reverse = np.empty(words.shape[1], U64)
    for row in range(words.shape[0]):
        for word in range(len(reverse)):
            reverse[word] = _reverse(words[row, word])
        for table in range(len(moves)):
            key = U64(0)
            for move in range(moves.shape[1]):
                bits = reverse[I64(moves[table, move, 0])] & moves[table, move, 1]
                far = moves[table, move, 2]
                key |= bits << far | bits >> ((U64(64) - far) & U64(63))
            keys[table, row] = key


_FIRST_FACTOR = U64(0x9E3779B97F4A7C15)
_SECOND_FACTOR = U64(0xD6E8FEB86659FD93)
_STRETCH = 4096  # rows hashed at a time


@kernel
def hash_masked(fingerprints, row, mask):
    """Return a hash of the bits of a fingerprint under a mask; its upper bits are well mixed."""
    value = U64(0)
    for word in range(fingerprints.shape[1]):
        value += (fingerprints[row, word] & mask[word]) * (_FIRST_FACTOR + U64(word << 1))
    value ^= value >> U64(32)
    return value * _SECOND_FACTOR


@kernel
def find_cells(fingerprints, first, mask, num_cells, cells):
    """Set cells[i] (uint32) from the hash of row first + i. num_cells : a power of two, two or
    more.
    """
    shift = U64(64) - U64(count_ones(U64(num_cells - 1)))
    if fingerprints.shape[1] == 1:  # the same once more, without a loop inside: three times as fast
        words = fingerprints.reshape(-1)[first : first + len(cells)]
        only = mask[0]
        for i in range(len(cells)):
            value = (words[i] & only) * _FIRST_FACTOR
            value ^= value >> U64(32)
            cells[i] = U32((value * _SECOND_FACTOR) >> shift)
    else:
        for i in range(len(cells)):
            cells[i] = U32(hash_masked(fingerprints, first + i, mask) >> shift)


@kernel(allocates=True)
def count_parts(fingerprints, span, mask, counts):
    """Count the records of rows span[0] to span[1] in each part. counts : int64, a power of two,
    two or more.
    """
    parts = np.empty(_STRETCH, U32)
    for first in range(span[0], span[1], _STRETCH):
        size = min(_STRETCH, span[1] - first)
        find_cells(fingerprints, first, mask, len(counts), parts[:size])
        for i in range(size):
            counts[parts[i]] += 1


@kernel(allocates=True)
def scatter_parts(fingerprints, span, mask, selection, cursors, records):
    """Copy the rows from span[0] to span[1] that belong to some consecutive parts, in order.

    selection : the number of all parts, and the first part to copy. cursors : int64, the next free
    record of each part to copy. records : Records; positions take the rows.
    """
    parts = np.empty(_STRETCH, U32)
    selected = np.empty(_STRETCH, U32)
    flat = fingerprints.reshape(-1)
    for first in range(span[0], span[1], _STRETCH):
        size = min(_STRETCH, span[1] - first)
        find_cells(fingerprints, first, mask, selection[0], parts[:size])
        num_selected = _select(parts[:size], U32(selection[1]), U32(len(cursors)), selected)
        for i in range(num_selected):
            row = first + I64(selected[i])
            part = I64(parts[selected[i]]) - selection[1]
            record = cursors[part]
            cursors[part] = record + 1
            records.positions[record] = row
            _copy_words(flat, row, records.fingerprints, record)


@kernel
def _copy_words(flat, row, fingerprints, record):
    """Copy the fingerprint of a row; flat : all words of all rows."""
    num_words = fingerprints.shape[1]
    copied = fingerprints.reshape(-1)
    if num_words == 1:  # without a loop
        copied[record] = flat[row]
        return
    for word in range(num_words):
        copied[record * num_words + word] = flat[row * num_words + word]


@kernel
def _select(parts, first_part, num_parts, selected):
    """Write the indices of rows in some consecutive parts; return their number."""
    num_selected = 0
    for i in range(len(parts)):  # without a branch, which a processor would mispredict
        selected[num_selected] = i
        num_selected += U32(parts[i] - first_part) < num_parts
    return num_selected


# Indices of `state`, the point where a join continues: the node, the step width, the two ranks.
NODE = 0
STEP = 1
LEFT = 2
RIGHT = 3
_NEAR = 6  # ranks further that are compared one step width at a time
_LANES = 32  # comparisons between two looks at whether one was close
_SMALL = 64  # records that are compared without a look at their keys
_SAMPLE = 1024
_SAMPLE_BITS = 16
# Measured, in nanoseconds: to group one record by one key, and to compare one pair.
_GROUPING_COST = 8.0
_COMPARISON_COST = 0.7


class Records(NamedTuple):
    """Fingerprints with their positions. fingerprints : uint64 (num_records, num_words); positions
    : uint32, rising within a part.
    """

    fingerprints: np.ndarray
    positions: np.ndarray


class Nodes(NamedTuple):
    """Rules of the pairs that each node reports.

    agree : uint64 (num_nodes, num_words), bits in which the pair is equal. differ : uint64
    (num_nodes, num_masks, num_words), masks, with a difference of the pair in each; unused ones are
    zeros. level_starts : int64 (num_levels + 1,), the nodes of each level.
    """

    agree: np.ndarray
    differ: np.ndarray
    level_starts: np.ndarray


class Scratch(NamedTuple):
    """Working space for grouping: records are ranked so that each cell is a run of ranks.

    By rank, as many as records: order : uint32, the number of the record; cells : uint32, its cell;
    words : uint64, its last word. listed : uint32, as many, the ranks that are still compared. ends
    : uint32, the end of the ranks of each cell, a power of two, at least 65,536 and at least as
    many as records, zeros at first.

        cells   | 0 0 0 | 1 | 2 2 | 4 ...      ends   | 3 | 4 | 6 | 6 | ...
        order   | 5 7 9 | 0 | 2 8 | 1 ...      records rise within a cell
    """

    listed: np.ndarray
    order: np.ndarray
    cells: np.ndarray
    words: np.ndarray
    ends: np.ndarray


class Found(NamedTuple):
    """Pairs, appended. left, right : uint32 positions; distance : uint8; used : int64 (1,), pairs
    in use.
    """

    left: np.ndarray
    right: np.ndarray
    distance: np.ndarray
    used: np.ndarray


@kernel
def _sampled_matches(fingerprints, mask, ends):
    """Return the estimated number of pairs of records with equal bits under a mask, from a
    sample.
    """
    count = len(fingerprints)
    stride = max(1, count // _SAMPLE)
    met = 0.0
    sampled = 0
    for row in range(0, count, stride):
        cell = I64(hash_masked(fingerprints, row, mask) >> U64(64 - _SAMPLE_BITS))
        met += ends[cell]
        ends[cell] += U32(1)
        sampled += 1
    for row in range(0, count, stride):
        ends[I64(hash_masked(fingerprints, row, mask) >> U64(64 - _SAMPLE_BITS))] = 0
    pairs = sampled * (sampled - 1) / 2
    # Less the pairs that share a cell by chance.
    share = max(0.0, met / pairs - 1.0 / (1 << _SAMPLE_BITS))
    return share * count * (count - 1) / 2


@kernel
def choose_level(fingerprints, nodes, ends):
    """Return the level whose grouping and comparisons cost least for these records.

    ends : as in `Scratch`, zeros before and after. Estimated from a sample of the records.
    """
    count = len(fingerprints)
    if count <= _SMALL:
        return 0
    best = 0
    min_cost = np.inf
    for level in range(len(nodes.level_starts) - 1):
        first = nodes.level_starts[level]
        stop = nodes.level_starts[level + 1]
        cost = _GROUPING_COST * count * (stop - first)
        for node in range(first, stop):
            if cost >= min_cost:
                break
            matches = _sampled_matches(fingerprints, nodes.agree[node], ends)
            cost += _COMPARISON_COST * (matches + count / 2)
        if cost < min_cost:
            best = level
            min_cost = cost
    return best


@kernel
def _group(records, mask, scratch, num_cells):
    """Fill `order`, `cells` and `words` so that records with equal bits under the mask are
    adjacent, in order.
    """
    ends = scratch.ends[:num_cells]
    ends[:] = 0
    count, num_words = records.fingerprints.shape
    flat = records.fingerprints.reshape(-1)
    # A counting sort: `ends` are counts, then starts, which become ends as the cells are filled.
    cells_of_rows = scratch.listed[:count]
    find_cells(records.fingerprints, 0, mask, num_cells, cells_of_rows)
    for row in range(count):
        ends[cells_of_rows[row]] += U32(1)
    total = U32(0)
    for cell in range(num_cells):
        size = ends[cell]
        ends[cell] = total
        total += size
    for row in range(count):
        cell = cells_of_rows[row]
        rank = ends[cell]
        ends[cell] = rank + U32(1)
        scratch.order[rank] = row
        scratch.cells[rank] = cell
        scratch.words[rank] = flat[row * num_words + num_words - 1]


@kernel
def _fits(lefts, left, rights, right, agree, differ, node):
    """Return whether two rows agree and differ as a node asks."""
    for word in range(agree.shape[1]):
        if (lefts[left, word] ^ rights[right, word]) & agree[node, word] != U64(0):
            return False
    for number in range(differ.shape[1]):
        mask_bits = U64(0)
        found = U64(0)
        for word in range(agree.shape[1]):
            mask = differ[node, number, word]
            mask_bits |= mask
            found |= (lefts[left, word] ^ rights[right, word]) & mask
        if mask_bits != U64(0) and found == U64(0):
            return False
    return True


@kernel
def _report(records, nodes, node, ranks, scratch, max_distance, found):
    """Append the pair of two ranks if it belongs to the node; return False when there is no
    room.
    """
    left = I64(scratch.order[ranks[0]])
    right = I64(scratch.order[ranks[1]])
    rows = records.fingerprints
    distance = row_distance(rows, left, rows, right)
    if distance <= max_distance and _fits(rows, left, rows, right, nodes.agree, nodes.differ, node):
        used = found.used[0]
        if used == len(found.left):
            return False
        found.left[used] = records.positions[left]
        found.right[used] = records.positions[right]
        found.distance[used] = distance
        found.used[0] = used + 1
    return True


@kernel
def _next_close(words, word, first, stop, max_distance):
    """Return the first rank from `first` on whose word is within the distance of a word, or
    `stop`.
    """
    while first + _LANES <= stop:
        met = I64(0)
        for lane in range(_LANES):
            met += count_ones(words[first + lane] ^ word) <= max_distance
        if met > 0:
            break
        first += _LANES
    while first < stop and count_ones(words[first] ^ word) > max_distance:
        first += 1
    return first


@kernel
def _keep_ranks(cells, step, ranks, count):
    """Keep the ranks, of `count`, whose cell has `step` more records; return their number."""
    num_kept = 0
    for i in range(count):
        rank = ranks[i]
        ranks[num_kept] = rank
        other = I64(rank) + step
        num_kept += other < len(cells) and cells[other] == cells[rank]
    return num_kept


@kernel
def _join_near(records, nodes, max_distance, scratch, count, found, state):
    """Compare each of `count` listed ranks with the rank state[STEP] further; return False when
    `found` is full.
    """
    words = scratch.words
    step = state[STEP]
    for i in range(count):
        left = I64(scratch.listed[i])
        right = left + step
        if (
            count_ones(words[left] ^ words[right]) <= max_distance
            and left >= state[LEFT]
            and not _report(
                records, nodes, state[NODE], (left, right), scratch, max_distance, found
            )
        ):
            state[LEFT] = left
            return False
    return True


@kernel
def _join_far(records, nodes, max_distance, scratch, count, found, state):
    """Compare `count` listed ranks with all of their cell state[STEP] or more further; return False
    when `found` is full.
    """
    cells = scratch.cells
    words = scratch.words
    for i in range(count):
        left = I64(scratch.listed[i])
        if left < state[LEFT]:
            continue
        right = max(state[RIGHT], left + state[STEP])
        stop = I64(scratch.ends[cells[left]])
        while True:
            right = _next_close(words, words[left], right, stop, max_distance)
            if right == stop:
                break
            if not _report(
                records, nodes, state[NODE], (left, right), scratch, max_distance, found
            ):
                state[LEFT] = left
                state[RIGHT] = right
                return False
            right += 1
        state[RIGHT] = 0
    return True


@kernel
def _join_node(records, nodes, max_distance, scratch, found, state):
    """Compare all pairs of each group; return False when `found` is full.

    Most groups are of two or three. Going through them one by one, a processor guesses each one's
    end wrong; one step width at a time there is nothing to guess. A pair across two groups is a
    false candidate, and belongs to no node.
    """
    count = len(records.positions)
    for rank in range(count):
        scratch.listed[rank] = rank
    while state[STEP] <= _NEAR:
        count = _keep_ranks(scratch.cells, state[STEP], scratch.listed, count)
        if not _join_near(records, nodes, max_distance, scratch, count, found, state):
            return False
        state[STEP] = state[STEP] + 1
        state[LEFT] = 0
    count = _keep_ranks(scratch.cells, state[STEP], scratch.listed, count)
    return _join_far(records, nodes, max_distance, scratch, count, found, state)


@kernel
def join_part(records, nodes, level, max_distance, scratch, found, state):
    """Report all pairs of a part that the nodes of a level report; return False when `found` is
    full.

    Call again with an emptied `found` and the same `state` to go on. state : int64 (4,), zeros at
    first. Pairs come in an order that depends on the records alone, left < right.
    """
    num_cells = 2
    while num_cells < len(records.positions) and num_cells < len(scratch.ends):
        num_cells *= 2
    state[NODE] = max(state[NODE], nodes.level_starts[level])
    while state[NODE] < nodes.level_starts[level + 1]:
        _group(records, nodes.agree[state[NODE]], scratch, num_cells)
        state[STEP] = max(state[STEP], 1)
        if not _join_node(records, nodes, max_distance, scratch, found, state):
            return False
        state[NODE] += 1
        state[STEP] = 0
        state[LEFT] = 0
        state[RIGHT] = 0
    return True
