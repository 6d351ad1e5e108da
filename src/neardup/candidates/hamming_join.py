"""All pairs of fingerprints within a Hamming distance, each found once, on a pool of threads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Bytes, Ints, Mask, Positions, Words, begins_run, offsets_from_lengths
from neardup.candidates.blocks import Radius, check_distance, choose_join_blocks, cut_blocks
from neardup.errors import InputError
from neardup.executor import map_all, map_ordered
from neardup.fingerprints.simhash import num_words

if TYPE_CHECKING:
    from neardup.kernels.blocks import Nodes, Records, Scratch
    from neardup.kernels.sieve import Neighbours


class HammingNeighbours(NamedTuple):
    """The documents with neighbouring fingerprints.

    neighbours : of each distinct fingerprint. wanted : bool by document, whether another document
    is within the distance, so that their sets may be compared. num_fingerprints : the distinct
    fingerprints. num_pairs : the pairs of distinct fingerprints within the distance.
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
    words = num_words(radius.bits)
    distinct, inverse, num_documents = _distinct(
        fingerprints[order[positions]].reshape(len(positions), words)
    )
    node = np.full(len(order), kernels.sieve.NO_NODE, np.uint32)
    node[positions] = inverse
    left, right, distance = (collect or collect_pairs)(join(distinct, *radius, threads))
    degree = np.bincount(left, minlength=len(distinct)) + np.bincount(
        right, minlength=len(distinct)
    )
    starts = offsets_from_lengths(degree)
    by_node = np.argsort(np.concatenate([left, right]), kind="stable")
    others = np.concatenate([right, left])[by_node]
    neighbours = kernels.sieve.Neighbours(
        node, starts, others, np.concatenate([distance, distance])[by_node]
    )
    wanted = np.zeros(len(order), np.bool_)
    wanted[order[positions]] = ((degree > 0) | (num_documents > 1))[inverse]
    return HammingNeighbours(neighbours, wanted, len(distinct), len(left))


def collect_pairs(batches: Iterable[Pairs]) -> Pairs:
    """Return all pairs as one table in memory."""
    parts = [Pairs(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint8)), *batches]
    return Pairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _distinct(fingerprints: Words) -> tuple[Words, Positions, Ints]:
    """Return the distinct rows, the index of each row among them, and the number of rows equal to
    each.
    """
    order = (
        np.lexsort(fingerprints.T) if fingerprints.shape[1] > 1 else np.argsort(fingerprints[:, 0])
    )
    ordered = fingerprints[order]
    first = begins_run(*ordered.T)
    index = np.cumsum(first) - 1
    inverse = np.empty(len(ordered), np.uint32)
    inverse[order] = index
    return ordered[first], inverse, np.bincount(index, minlength=int(first.sum()))


_MAX_NODES = 512  # of a level
_MAX_KEY_BITS = (
    96  # longer keys separate no more fingerprints, even if a third of their bits are constant
)
_FINE_BITS = 4  # of a block, if the requested blocks leave too many pairs to compare


class _Node(NamedTuple):
    agree: int
    differ: tuple[int, ...]


def to_words(mask: int, bits: int) -> list[int]:
    """Return the 64-bit words of an integer, the lowest first."""
    return [mask >> shift & 0xFFFFFFFFFFFFFFFF for shift in range(0, bits, 64)]


def make_levels(
    bits: int, max_distance: int, num_blocks: int, first_block: int | None = None
) -> Nodes:
    """Return the nodes for all pairs, or for those of which `first_block` is the first block that
    agrees.

    They are ways to find the pairs within a distance, from one large group to many small ones. At
    exactly one node of each level, a pair within the distance agrees in all bits of `agree`, and
    differs within every mask of `differ` that is not zero.

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
    agree, differ, rest, distance = 0, tuple(blocks[: first_block or 0]), blocks, max_distance
    if first_block is not None:
        agree, rest, distance = (
            blocks[first_block],
            blocks[first_block + 1 :],
            max_distance - first_block,
        )
    levels = [[_Node(agree, differ)], *_combine(agree, differ, rest, distance, 1)]
    low = agree.bit_length()
    num_fine = (bits - low) // _FINE_BITS
    if num_fine > len(rest):
        levels += _combine(agree, differ, cut_blocks(low, bits, num_fine), distance, 2)
    return _to_arrays(levels, bits, max_distance)


def make_masks(bits: int, max_distance: int, num_blocks: int) -> Words:
    """Return the bits in which rows of each table agree: C(num_blocks, max_distance) tables,
    (num_tables, num_words).

    A pair within the distance agrees in the bits of one table at least. With max_distance blocks
    none need agree: a single table of no bits.
    """
    tables = itertools.combinations(cut_blocks(0, bits, num_blocks), num_blocks - max_distance)
    return np.array([to_words(sum(chosen), bits) for chosen in tables], np.uint64)


def _combine(
    agree: int, differ: tuple[int, ...], blocks: list[int], distance: int, least: int
) -> list[list[_Node]]:
    """Return a level for each number of blocks, from `least` to the number that must agree."""
    return [
        [
            _choose(agree, differ, blocks, chosen)
            for chosen in itertools.combinations(range(distance + count), count)
        ]
        for count in range(least, len(blocks) - distance + 1)
        if math.comb(distance + count, count) <= _MAX_NODES
        and (count == least or count * blocks[0].bit_count() <= _MAX_KEY_BITS)
    ]


def _choose(
    agree: int, differ: tuple[int, ...], blocks: list[int], chosen: tuple[int, ...]
) -> _Node:
    """Return the node whose first agreeing blocks are those chosen."""
    passed = tuple(blocks[number] for number in range(chosen[-1]) if number not in chosen)
    return _Node(agree | sum(blocks[number] for number in chosen), differ + passed)


def _to_arrays(levels: list[list[_Node]], bits: int, max_distance: int) -> Nodes:
    nodes = [node for level in levels for node in level]
    agree = [to_words(node.agree, bits) for node in nodes]
    padded = [(*node.differ, *[0] * (max_distance - len(node.differ))) for node in nodes]
    differ = [[to_words(mask, bits) for mask in masks] for masks in padded]
    starts = offsets_from_lengths([len(level) for level in levels])
    shape = (len(nodes), max_distance, num_words(bits))
    return kernels.blocks.Nodes(
        np.array(agree, np.uint64), np.array(differ, np.uint64).reshape(shape), starts
    )


PAIRS_AT_ONCE = 1 << 18
_MAX_COUNT = 1 << 32
_PART_BITS = 15  # records of a part, which fits into the cache
_MAX_PART_BITS = 16  # parts of a block
_PARTS_AT_ONCE = (
    1 << 11
)  # parts of a round: more of them would spread a pass over too many memory regions
_RECORDS_AT_ONCE = 1 << 27  # records of a round, unless a single part has more


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
    above), so no record of earlier pairs is needed.

    Above 67 million fingerprints, the parts of a block are processed in rounds of up to 2,048 parts
    and 134 million records. Each round reads all fingerprints, in order, and copies those of its
    parts.

    Memory in addition to `fingerprints`, which may be a mapped file: a copy of the fingerprints of
    a round, 4 bytes for each of them, and a few buffers of pairs. Time: constant per fingerprint
    for random bits, until keys of all agreeing bits become crowded. If many fingerprints share few
    keys without being pairs, a part is grouped by more and finer blocks, chosen by a sample of it.
    In the worst case, where they share all bits that a pair must share, all pairs are compared. The
    output itself takes time: n equal fingerprints make n (n - 1) / 2 pairs.
    """
    fingerprints = _check(fingerprints, bits, max_distance, num_blocks)
    if num_blocks is None:
        num_blocks = choose_join_blocks(len(fingerprints), bits, max_distance)
    return _join(fingerprints, bits, max_distance, num_blocks, threads)


def join_block(
    fingerprints: Words, bits: int, max_distance: int, num_blocks: int, block: int
) -> Iterator[Pairs]:
    """Yield the pairs of which `block` is the first block that agrees; others may be left out of
    `fingerprints`.

    Parameters
    ----------
    fingerprints, bits, max_distance, num_blocks : as in `join`.
    block : 0 to max_distance. Together the blocks find each pair once.
    """
    fingerprints = _check(fingerprints, bits, max_distance, num_blocks)
    records = kernels.blocks.Records(
        fingerprints.copy(), np.arange(len(fingerprints), dtype=np.uint32)
    )
    levels = make_levels(bits, max_distance, num_blocks, block)
    yield from _join_parts(1, records, [0, len(fingerprints)], levels, max_distance)


def _join(
    fingerprints: Words, bits: int, max_distance: int, num_blocks: int, threads: int
) -> Iterator[Pairs]:
    count = len(fingerprints)
    if count < 2:
        return
    part_bits = min(_MAX_PART_BITS, max(0, (count - 1).bit_length() - _PART_BITS))
    if part_bits == 0:
        # A copy: a read-only array has another type for the compiler, which would compile
        # everything again.
        records = kernels.blocks.Records(fingerprints.copy(), np.arange(count, dtype=np.uint32))
        yield from _join_parts(
            threads, records, [0, count], make_levels(bits, max_distance, num_blocks), max_distance
        )
        return
    records = _empty_records(0, fingerprints.shape[1])
    for block, mask in enumerate(cut_blocks(0, bits, num_blocks)[: max_distance + 1]):
        words = np.array(to_words(mask, bits), np.uint64)
        counts = _count_parts(threads, fingerprints, words, 1 << part_bits)
        levels = make_levels(bits, max_distance, num_blocks, block)
        rounds = _cut_rounds(counts.sum(axis=0).tolist())
        most = max(int(counts[:, parts].sum()) for parts in rounds)
        if most > len(records.positions):
            records = _empty_records(most, fingerprints.shape[1])
        for parts in rounds:
            edges = _copy_parts(threads, fingerprints, words, counts, parts, records)
            yield from _join_parts(threads, records, edges, levels, max_distance)


class _Part:
    """The records that may agree in a block, and the progress of their join."""

    def __init__(
        self, records: Records, nodes: Nodes, max_distance: int, free_buffers: list[Scratch]
    ) -> None:
        self.records, self.nodes, self.max_distance, self.free_buffers = (
            records,
            nodes,
            max_distance,
            free_buffers,
        )
        self.level = -1
        self.state = np.zeros(4, np.int64)
        self.done = False

    def advance(self) -> Pairs:
        """Return more pairs; `done` is set with the last of them."""
        buffers = self._borrow_buffers()
        count = len(self.records.positions)
        scratch = kernels.blocks.Scratch(*(column[:count] for column in buffers))._replace(
            ends=buffers.ends
        )
        if self.level < 0:
            self.level = kernels.blocks.choose_level(
                self.records.fingerprints, self.nodes, buffers.ends
            )
        left, right, distance = (
            np.empty(PAIRS_AT_ONCE, kind) for kind in (np.uint32, np.uint32, np.uint8)
        )
        found = kernels.blocks.Found(left, right, distance, np.zeros(1, np.int64))
        self.done = kernels.blocks.join_part(
            self.records, self.nodes, self.level, self.max_distance, scratch, found, self.state
        )
        self.free_buffers.append(buffers)
        used = int(found.used[0])
        return Pairs(
            *(
                column[:used].copy() if used < PAIRS_AT_ONCE // 2 else column[:used]
                for column in found[:3]
            )
        )

    def _borrow_buffers(self) -> kernels.blocks.Scratch:
        """Return buffers that no other thread uses."""
        count = len(self.records.positions)
        buffers = None
        with suppress(IndexError):
            buffers = self.free_buffers.pop()
        if buffers is None or len(buffers.order) < count:
            num_cells = max(1 << 16, 1 << (count - 1).bit_length())
            places, order, cells = (np.empty(count, np.uint32) for _ in range(3))
            words, ends = np.empty(count, np.uint64), np.empty(num_cells, np.uint32)
            buffers = kernels.blocks.Scratch(places, order, cells, words, ends)
        buffers.ends[:] = 0
        return buffers


def _check(fingerprints: Words, bits: int, max_distance: int, num_blocks: int | None) -> Words:
    """Return the fingerprints as contiguous rows of words."""
    check_distance(bits, max_distance, num_blocks)
    words = num_words(bits)
    if fingerprints.ndim == 1 and words == 1:
        fingerprints = fingerprints[:, None]
    if fingerprints.dtype != np.uint64 or fingerprints.ndim != 2 or fingerprints.shape[1] != words:
        raise TypeError(
            f"Fingerprints of {bits} bits must be a uint64 array of shape (n, {words}): got "
            f"{fingerprints.dtype} "
            f"{fingerprints.shape}. Split them into 64-bit words, the lowest first."
        )
    if len(fingerprints) >= _MAX_COUNT:
        raise InputError(
            f"At most {_MAX_COUNT - 1:,} fingerprints can be joined at once: got "
            f"{len(fingerprints):,}. "
            "Join them in parts, or query a HammingIndex."
        )
    if bits == 32 and len(fingerprints) and int(fingerprints.max()) >> 32:
        row = int(np.flatnonzero(fingerprints[:, 0] >> np.uint64(32))[0])
        raise InputError(
            f"Fingerprints of 32 bits must be below 2^32: got {int(fingerprints[row, 0])} at "
            f"row {row}. Pass bits=64."
        )
    return np.ascontiguousarray(fingerprints)


def _empty_records(count: int, words: int) -> Records:
    return kernels.blocks.Records(np.empty((count, words), np.uint64), np.empty(count, np.uint32))


def _spans(count: int, threads: int) -> list[tuple[int, int]]:
    """Return the range of rows of each thread."""
    return list(itertools.pairwise(count * thread // threads for thread in range(threads + 1)))


def _count_parts(threads: int, fingerprints: Words, mask: Words, parts: int) -> Ints:
    """Return the number of records of each part by thread, int64 (threads, parts)."""
    spans, counts = _spans(len(fingerprints), threads), np.zeros((threads, parts), np.int64)
    count_parts = kernels.blocks.count_parts
    map_all(range(threads), lambda i: count_parts(fingerprints, spans[i], mask, counts[i]), threads)
    return counts


def _cut_rounds(sizes: list[int]) -> list[slice]:
    """Cut parts into rounds within the limits, or of a single part."""
    rounds, first, num_records = [], 0, 0
    for part, size in enumerate(sizes):
        if part > first and (
            part - first == _PARTS_AT_ONCE or num_records + size > _RECORDS_AT_ONCE
        ):
            rounds.append(slice(first, part))
            first, num_records = part, 0
        num_records += size
    return [*rounds, slice(first, len(sizes))]


def _copy_parts(
    threads: int, fingerprints: Words, mask: Words, counts: Ints, parts: slice, records: Records
) -> list[int]:
    """Copy the fingerprints of some parts to `records`, part by part; return the offset of each
    part, and the end.
    """
    spans, sizes = _spans(len(fingerprints), threads), counts[:, parts]
    # A part has the records of the first thread, then those of the second: the order of all
    # fingerprints.
    edges = np.concatenate([[0], sizes.T.ravel().cumsum()])
    cursors = edges[:-1].reshape(-1, threads).T.copy()
    starts = [*cursors[0].tolist(), int(edges[-1])]
    scatter, selection = kernels.blocks.scatter_parts, (counts.shape[1], parts.start)
    map_all(
        range(threads),
        lambda i: scatter(fingerprints, spans[i], mask, selection, cursors[i], records),
        threads,
    )
    return starts


def _join_parts(
    threads: int, records: Records, edges: list[int], levels: Nodes, max_distance: int
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
