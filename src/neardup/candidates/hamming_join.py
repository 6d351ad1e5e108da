"""All pairs of fingerprints within a Hamming distance, each found once, on a pool of threads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Bytes, Ints, Mask, Positions, Words, begins_run, offsets_from_lengths
from neardup.candidates.blocks import Radius, check_distance, choose_join_blocks, cut_blocks
from neardup.errors import InputError
from neardup.executor import map_all, map_ordered
from neardup.fingerprints.simhash import num_words

if TYPE_CHECKING:
    from neardup.kernels.blocks import Found, Nodes, Records, Scratch
    from neardup.kernels.sieve import Neighbours

PAIRS_AT_ONCE = 1 << 18
_MAX_COUNT = 1 << 32
_PART_BITS = 15  # records of a part, which fits into the cache
_MAX_PART_BITS = 16  # parts of a block
# Parts of a round: more of them would spread a pass over too many memory regions.
_PARTS_AT_ONCE = 1 << 11
_RECORDS_AT_ONCE = 1 << 27  # records of a round, unless a single part has more
_MAX_NODES = 512  # of a level; each groups all fingerprints once
# Longer keys separate no more fingerprints, even if a third of their bits are constant.
_MAX_KEY_BITS = 96
_FINE_BITS = 4  # of a block, if the requested blocks leave too many pairs to compare


class Pairs(NamedTuple):
    """Pairs within the distance. left, right : uint32 positions, left < right; distance : uint8."""

    left: Positions
    right: Positions
    distance: Bytes


def join(
    fingerprints: Words,
    bits: int,
    max_distance: int,
    num_blocks: int | None = None,
    threads: int = 1,
) -> Iterator[Pairs]:
    """Yield each pair of fingerprints within a Hamming distance once.

    Parameters
    ----------
    fingerprints : uint64 array of shape (num_fingerprints,) or (num_fingerprints, num_words), fewer
        than 2^32; bit i of a fingerprint is bit i % 64 of word i // 64.
    bits : 32, 64, 128 or 256; with 32 the upper half of the word is zero.
    max_distance : 0 to 16.
    num_blocks : the blocks of a fingerprint; None to choose it from the number of fingerprints. It
        changes no pair.
    threads : worker threads. They change neither the pairs nor their order.

    Returns
    -------
    Iterator of Pairs
        At most PAIRS_AT_ONCE at a time, in no particular order.

    Notes
    -----
    Manku, Jain and Das Sarma (2007), section 3, as one pass over all fingerprints instead of a
    query for each. For each block that may be the first in which a pair agrees, fingerprints are
    partitioned by that block. Each part fits into the cache; it is grouped by further blocks, and
    the members of each group are compared. Recall is 1. Each pair is found in one group only (see
    `make_levels`), so no record of earlier pairs is needed.

    Above 67 million fingerprints, the parts of a block are processed in rounds of up to 2,048 parts
    and 134 million records. Each round reads all fingerprints, in order, and copies the ones of its
    parts.

    Memory in addition to `fingerprints`, which may be a mapped file: a copy of the fingerprints of
    a round, 4 bytes for each of them, and a few buffers of pairs. Time: constant per fingerprint
    for random bits, until keys of all agreeing bits become crowded. If many fingerprints share few
    keys without being pairs, a part is grouped by more and finer blocks, chosen by a sample of it.
    If they share all bits that a pair must share, the worst case, all pairs are compared. The
    output itself takes time: n equal fingerprints make n (n - 1) / 2 pairs.
    """
    fingerprints = _check(fingerprints, bits, max_distance, num_blocks)
    if num_blocks is None:
        num_blocks = choose_join_blocks(len(fingerprints), bits, max_distance)
    return _join(fingerprints, bits, max_distance, num_blocks, threads)


def join_block(
    fingerprints: Words, bits: int, max_distance: int, num_blocks: int, block: int
) -> Iterator[Pairs]:
    """Yield the pairs whose first agreeing block is `block`.

    Parameters
    ----------
    fingerprints, bits, max_distance, num_blocks : as in `join`. Fingerprints that agree with no
        other in the block may be missing.
    block : 0 to max_distance. Together the blocks find each pair once.
    """
    fingerprints = _check(fingerprints, bits, max_distance, num_blocks)
    levels = make_levels(bits, max_distance, num_blocks, block)
    yield from _join_whole(fingerprints, levels, max_distance, threads=1)


def _join(
    fingerprints: Words, bits: int, max_distance: int, num_blocks: int, threads: int
) -> Iterator[Pairs]:
    count = len(fingerprints)
    if count < 2:
        return
    part_bits = min(_MAX_PART_BITS, max(0, (count - 1).bit_length() - _PART_BITS))
    if part_bits == 0:
        levels = make_levels(bits, max_distance, num_blocks)
        yield from _join_whole(fingerprints, levels, max_distance, threads)
        return
    records = _empty_records(0, fingerprints.shape[1])
    for block, mask in enumerate(cut_blocks(0, bits, num_blocks)[: max_distance + 1]):
        partition = _partition(fingerprints, to_words(mask, bits), 1 << part_bits, threads)
        levels = make_levels(bits, max_distance, num_blocks, block)
        rounds = _cut_rounds(partition.counts.sum(axis=0).tolist())
        max_records = max(partition.num_records(parts) for parts in rounds)
        if max_records > len(records.positions):
            records = _empty_records(max_records, fingerprints.shape[1])
        for parts in rounds:
            edges = partition.copy_parts(parts, records)
            yield from _join_parts(records, edges, levels, max_distance, threads)


def _join_whole(
    fingerprints: Words, levels: Nodes, max_distance: int, threads: int
) -> Iterator[Pairs]:
    """Join fingerprints as a single part."""
    # A copy: a read-only array has another type for the compiler, which would compile everything
    # again.
    positions = np.arange(len(fingerprints), dtype=np.uint32)
    records = kernels.blocks.Records(fingerprints.copy(), positions)
    yield from _join_parts(records, [0, len(fingerprints)], levels, max_distance, threads)


def _check(fingerprints: Words, bits: int, max_distance: int, num_blocks: int | None) -> Words:
    """Return the fingerprints as contiguous rows of words."""
    check_distance(bits, max_distance, num_blocks)
    words = num_words(bits)
    if fingerprints.ndim == 1 and words == 1:
        fingerprints = fingerprints[:, None]
    if fingerprints.dtype != np.uint64 or fingerprints.ndim != 2 or fingerprints.shape[1] != words:
        raise TypeError(
            f"Fingerprints of {bits} bits must be a uint64 array of shape (n, {words}): got "
            f"{fingerprints.dtype} {fingerprints.shape}. Split them into 64-bit words, the lowest "
            "first."
        )
    if len(fingerprints) >= _MAX_COUNT:
        raise InputError(
            f"At most {_MAX_COUNT - 1:,} fingerprints can be joined at once: got "
            f"{len(fingerprints):,}. Join them in parts, or query a HammingIndex."
        )
    if bits == 32 and len(fingerprints) and int(fingerprints.max()) >> 32:
        row = int(np.flatnonzero(fingerprints[:, 0] >> np.uint64(32))[0])
        raise InputError(
            f"Fingerprints of 32 bits must be below 2^32: got {int(fingerprints[row, 0])} at row "
            f"{row}. Pass bits=64."
        )
    return np.ascontiguousarray(fingerprints)


def _empty_records(count: int, words: int) -> Records:
    return kernels.blocks.Records(np.empty((count, words), np.uint64), np.empty(count, np.uint32))


@dataclass(frozen=True)
class _Partition:
    """Fingerprints, partitioned by the hash of their bits under a mask.

    fingerprints : uint64 (num_fingerprints, num_words). mask : uint64 (num_words,). counts : int64
    (num_threads, num_parts), the records of each part in the range of rows of each thread. ranges :
    the first row and the end of each thread.
    """

    fingerprints: Words
    mask: Words
    counts: Ints
    ranges: list[tuple[int, int]]

    def num_records(self, parts: slice) -> int:
        """Return the number of records of some parts."""
        return int(self.counts[:, parts].sum())

    def copy_parts(self, parts: slice, records: Records) -> list[int]:
        """Copy the fingerprints of some parts to `records`, part by part.

        Returns
        -------
        list of int, the first record of each part, and the end.
        """
        # A part has the records of the first thread, then of the second, and so on, which is the
        # order of all fingerprints:
        #
        #     part 0                       part 1
        #     | thread 0  | thread 1  |    | thread 0 ...
        #     edges[0]    edges[1]         edges[2]
        num_threads, num_parts = self.counts.shape
        sizes = self.counts[:, parts]
        edges = offsets_from_lengths(sizes.T.ravel())
        cursors = edges[:-1].reshape(-1, num_threads).T.copy()
        starts = [*cursors[0].tolist(), int(edges[-1])]

        def copy(thread: int) -> None:
            kernels.blocks.scatter_parts(
                self.fingerprints,
                self.ranges[thread],
                self.mask,
                (num_parts, parts.start),
                cursors[thread],
                records,
            )

        map_all(range(num_threads), copy, num_threads)
        return starts


def _partition(
    fingerprints: Words, mask_words: list[int], num_parts: int, threads: int
) -> _Partition:
    """Count the records of each part."""
    mask = np.array(mask_words, np.uint64)
    edges = [len(fingerprints) * thread // threads for thread in range(threads + 1)]
    ranges = list(itertools.pairwise(edges))
    counts = np.zeros((threads, num_parts), np.int64)

    def count(thread: int) -> None:
        kernels.blocks.count_parts(fingerprints, ranges[thread], mask, counts[thread])

    map_all(range(threads), count, threads)
    return _Partition(fingerprints=fingerprints, mask=mask, counts=counts, ranges=ranges)


def _cut_rounds(sizes: list[int]) -> list[slice]:
    """Cut parts into rounds within the limits, or of a single part."""
    rounds = []
    first = 0
    num_records = 0
    for part, size in enumerate(sizes):
        is_full = part - first == _PARTS_AT_ONCE or num_records + size > _RECORDS_AT_ONCE
        if part > first and is_full:
            rounds.append(slice(first, part))
            first = part
            num_records = 0
        num_records += size
    return [*rounds, slice(first, len(sizes))]


def _join_parts(
    records: Records, edges: list[int], levels: Nodes, max_distance: int, threads: int
) -> Iterator[Pairs]:
    """Join every part; yield the pairs in the order of the parts.

    A part whose pairs fill its buffer waits until its pairs are yielded, so memory is bounded by a
    few buffers for any number of pairs.
    """
    free_buffers: list[Scratch] = []
    parts = [
        _Part(
            kernels.blocks.Records(*(column[first:stop] for column in records)),
            levels,
            max_distance,
            free_buffers,
        )
        for first, stop in itertools.pairwise(edges)
        if stop - first > 1
    ]
    for part, pairs in map_ordered(parts, _Part.advance, threads, ahead=4 * threads):
        if len(pairs.left):
            yield pairs
        while not part.done:
            yield part.advance()


@dataclass
class _Part:
    """The records that may agree in a block, and the progress of their join.

    free_buffers : shared by all parts. level : chosen in the first step. progress : int64 (4,), the
    state of `kernels.blocks.join_part`, which continues from it. done : whether all pairs were
    returned.
    """

    records: Records
    nodes: Nodes
    max_distance: int
    free_buffers: list[Scratch]
    level: int | None = None
    progress: Ints = field(default_factory=lambda: np.zeros(4, np.int64))
    done: bool = False

    def advance(self) -> Pairs:
        """Return more pairs; `done` is set with the last of them."""
        buffers = self._borrow_buffers()
        if self.level is None:
            self.level = kernels.blocks.choose_level(
                self.records.fingerprints, self.nodes, buffers.ends
            )
        found = kernels.blocks.Found(
            left=np.empty(PAIRS_AT_ONCE, np.uint32),
            right=np.empty(PAIRS_AT_ONCE, np.uint32),
            distance=np.empty(PAIRS_AT_ONCE, np.uint8),
            used=np.zeros(1, np.int64),
        )
        # Buffers may be longer than the part: the kernel ends where `cells` do.
        scratch = buffers._replace(cells=buffers.cells[: len(self.records.positions)])
        self.done = kernels.blocks.join_part(
            self.records, self.nodes, self.level, self.max_distance, scratch, found, self.progress
        )
        self.free_buffers.append(buffers)
        return _used_pairs(found)

    def _borrow_buffers(self) -> Scratch:
        """Return buffers that no other thread uses."""
        count = len(self.records.positions)
        try:
            buffers = self.free_buffers.pop()  # atomic: a test before it would not be
        except IndexError:
            return _make_buffers(count)
        if len(buffers.order) < count:
            return _make_buffers(count)
        buffers.ends[:] = 0
        return buffers


def _make_buffers(count: int) -> Scratch:
    num_cells = max(1 << 16, 1 << (count - 1).bit_length())
    return kernels.blocks.Scratch(
        listed=np.empty(count, np.uint32),
        order=np.empty(count, np.uint32),
        cells=np.empty(count, np.uint32),
        words=np.empty(count, np.uint64),
        ends=np.zeros(num_cells, np.uint32),
    )


def _used_pairs(found: Found) -> Pairs:
    """Return the pairs found; copies if the buffer is mostly empty, so that it can be freed."""
    used = int(found.used[0])
    columns = [column[:used] for column in (found.left, found.right, found.distance)]
    if used < PAIRS_AT_ONCE // 2:
        columns = [column.copy() for column in columns]
    return Pairs(*columns)


class _Node(NamedTuple):
    """The masks of a node: see `make_levels`."""

    agree: int
    differ: tuple[int, ...]


def make_levels(
    bits: int, max_distance: int, num_blocks: int, first_block: int | None = None
) -> Nodes:
    """Return the nodes for all pairs, or for pairs whose first agreeing block is `first_block`.

    A level is one way to find the pairs within a distance; the first level has one large group, the
    last ones have many small groups. At exactly one node of each level, a pair within the distance
    agrees in all bits of `agree`, and differs within every mask of `differ` that is not zero.

    Notes
    -----
    A pair within distance k differs in at most k blocks, so its first t agreeing blocks are among
    the first k + t. There is one node for each choice of t of these, C(k + t, t) in all. It reports
    the pair if it agrees in the chosen blocks and differs in the blocks before them. With t =
    num_blocks - max_distance these are the tables of Manku, Jain and Das Sarma (2007), section 3,
    except that there each table that contains a pair reports it. A pair whose first agreeing block
    is number i differs in the i blocks before it; the blocks after it are a smaller problem with
    distance k - i.

    After the levels of the requested blocks come levels of finer blocks, for data with few distinct
    keys.
    """
    blocks = cut_blocks(0, bits, num_blocks)
    if first_block is None:
        root = _Node(agree=0, differ=())
        rest = blocks
        distance = max_distance
    else:
        root = _Node(agree=blocks[first_block], differ=tuple(blocks[:first_block]))
        rest = blocks[first_block + 1 :]
        distance = max_distance - first_block
    levels = [[root], *_combine(root, rest, distance, min_chosen=1)]

    low = root.agree.bit_length()
    num_fine = (bits - low) // _FINE_BITS
    if num_fine > len(rest):
        levels += _combine(root, cut_blocks(low, bits, num_fine), distance, min_chosen=2)
    return _to_arrays(levels, bits, max_distance)


def _combine(
    root: _Node, blocks: list[int], distance: int, *, min_chosen: int
) -> list[list[_Node]]:
    """Return a level for each number of blocks, from min_chosen to the number that must agree."""
    levels = []
    for num_chosen in range(min_chosen, len(blocks) - distance + 1):
        if math.comb(distance + num_chosen, num_chosen) > _MAX_NODES:
            continue
        key_bits = num_chosen * blocks[0].bit_count()
        if num_chosen > min_chosen and key_bits > _MAX_KEY_BITS:
            continue
        choices = itertools.combinations(range(distance + num_chosen), num_chosen)
        levels.append([_choose(root, blocks, chosen) for chosen in choices])
    return levels


def _choose(root: _Node, blocks: list[int], chosen: tuple[int, ...]) -> _Node:
    """Return the node whose first agreeing blocks are the chosen ones."""
    passed = tuple(blocks[number] for number in range(chosen[-1]) if number not in chosen)
    agree = root.agree | sum(blocks[number] for number in chosen)
    return _Node(agree=agree, differ=root.differ + passed)


def _to_arrays(levels: list[list[_Node]], bits: int, max_distance: int) -> Nodes:
    nodes = [node for level in levels for node in level]
    shape = (len(nodes), max_distance, num_words(bits))
    differ = np.zeros(shape, np.uint64)
    for number, node in enumerate(nodes):
        for index, mask in enumerate(node.differ):
            differ[number, index] = to_words(mask, bits)
    return kernels.blocks.Nodes(
        agree=np.array([to_words(node.agree, bits) for node in nodes], np.uint64),
        differ=differ,
        level_starts=offsets_from_lengths([len(level) for level in levels]),
    )


def to_words(mask: int, bits: int) -> list[int]:
    """Return the 64-bit words of an integer, the lowest first."""
    return [mask >> shift & 0xFFFFFFFFFFFFFFFF for shift in range(0, bits, 64)]


def make_masks(bits: int, max_distance: int, num_blocks: int) -> Words:
    """Return the bits in which rows of each table agree: (num_tables, num_words).

    There are C(num_blocks, max_distance) tables. A pair within the distance agrees in the bits of
    one table at least. With max_distance blocks none need agree: a single table of no bits.
    """
    tables = itertools.combinations(cut_blocks(0, bits, num_blocks), num_blocks - max_distance)
    return np.array([to_words(sum(chosen), bits) for chosen in tables], np.uint64)


class HammingNeighbours(NamedTuple):
    """The documents with neighbouring fingerprints.

    neighbours : the neighbours of each distinct fingerprint. wanted : bool by document, whether
    another document is within the distance, so that their sets may be compared. num_fingerprints :
    the number of distinct fingerprints. num_pairs : the pairs of distinct fingerprints within the
    distance.
    """

    neighbours: Neighbours
    wanted: Mask
    num_fingerprints: int
    num_pairs: int


def find_neighbours(
    fingerprints: Words,
    order: Positions,
    members: Mask,
    radius: Radius,
    *,
    threads: int = 1,
    collect: Callable[[Iterable[Pairs]], Pairs] | None = None,
) -> HammingNeighbours:
    """Join the distinct fingerprints of documents.

    Parameters
    ----------
    fingerprints : uint64 (num_documents, num_words), by document.
    order : uint32, the document at each position.
    members : bool by position, whether the fingerprint takes part in the join.
    radius : the bits of a fingerprint, and the distance.
    threads : worker threads.
    collect : concatenates the pairs, in scratch columns for example; None for arrays in memory.
    """
    positions = np.flatnonzero(members)
    shape = (len(positions), num_words(radius.bits))
    # Without a name, so that the copy is freed before the join.
    distinct = _distinct(fingerprints[order[positions]].reshape(shape))
    num_nodes = len(distinct.fingerprints)
    node = np.full(len(order), kernels.sieve.NO_NODE, np.uint32)
    node[positions] = distinct.numbers
    batches = join(
        distinct.fingerprints, radius.bits, radius.max_distance, radius.num_blocks, threads
    )
    pairs = (collect or collect_pairs)(batches)

    degree = np.bincount(pairs.left, minlength=num_nodes)
    degree += np.bincount(pairs.right, minlength=num_nodes)
    has_neighbour = (degree > 0) | (distinct.counts > 1)
    wanted = np.zeros(len(order), np.bool_)
    wanted[order[positions]] = has_neighbour[distinct.numbers]
    neighbours = _list_neighbours(node, offsets_from_lengths(degree), pairs)
    return HammingNeighbours(
        neighbours=neighbours,
        wanted=wanted,
        num_fingerprints=num_nodes,
        num_pairs=len(pairs.left),
    )


def collect_pairs(batches: Iterable[Pairs]) -> Pairs:
    """Return all pairs as one table in memory."""
    parts = [Pairs(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint8)), *batches]
    return Pairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _list_neighbours(node: Positions, starts: Ints, pairs: Pairs) -> Neighbours:
    """List each pair of distinct fingerprints with both, fingerprint by fingerprint."""
    by_node = np.argsort(np.concatenate([pairs.left, pairs.right]), kind="stable")
    return kernels.sieve.Neighbours(
        node=node,
        starts=starts,
        others=np.concatenate([pairs.right, pairs.left])[by_node],
        distances=np.concatenate([pairs.distance, pairs.distance])[by_node],
    )


class _Distinct(NamedTuple):
    """Distinct fingerprints.

    fingerprints : uint64 (num_distinct, num_words). numbers : uint32 by row, its fingerprint among
    them. counts : int64 (num_distinct,), the rows with each.
    """

    fingerprints: Words
    numbers: Positions
    counts: Ints


def _distinct(rows: Words) -> _Distinct:
    """Return the distinct rows of fingerprints."""
    order = np.lexsort(rows.T) if rows.shape[1] > 1 else np.argsort(rows[:, 0])
    ordered = rows[order]
    is_first = begins_run(*ordered.T)
    numbers_in_order = np.cumsum(is_first) - 1
    numbers = np.empty(len(rows), np.uint32)
    numbers[order] = numbers_in_order
    counts = np.bincount(numbers_in_order, minlength=int(is_first.sum()))
    return _Distinct(fingerprints=ordered[is_first], numbers=numbers, counts=counts)
