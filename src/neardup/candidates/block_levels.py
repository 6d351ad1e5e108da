"""Conditions on the blocks of two fingerprints, under which each pair within the distance is found once."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import offsets_from_lengths
from neardup.candidates.blocks import cut_blocks
from neardup.fingerprints.simhash import num_words

if TYPE_CHECKING:
    from neardup.kernels.blocks import Nodes

_MAX_NODES = 512  # of a level
_MAX_KEY_BITS = 96  # longer keys separate no more fingerprints, even if a third of their bits are constant
_FINE_BITS = 4  # of a block, if the requested blocks leave too many pairs to compare

Masks = npt.NDArray[np.uint64]


class _Node(NamedTuple):
    agree: int
    differ: tuple[int, ...]


def to_words(mask: int, bits: int) -> list[int]:
    """Return the 64-bit words of an integer, the lowest first."""
    return [mask >> shift & 0xFFFFFFFFFFFFFFFF for shift in range(0, bits, 64)]


def make_levels(bits: int, max_distance: int, num_blocks: int, first_block: int | None = None) -> Nodes:
    """Return the nodes for all pairs, or for those of which `first_block` is the first block that agrees.

    They are ways to find the pairs within a distance, from one large group to many small ones. At exactly one node of
    each level, a pair within the distance agrees in all bits of `agree`, and differs within every mask of `differ` that
    is not zero.

    Notes
    -----
    A pair within distance k differs in at most k blocks, so its first t agreeing blocks are among the first k + t.
    There is one node for each choice of t of these, C(k + t, t) in all. It reports the pair if it agrees in the chosen
    blocks and differs in the blocks before them. With t = num_blocks - max_distance these are the tables of Manku, Jain
    and Das Sarma (2007), section 3, except that there each table that contains a pair reports it. A pair whose
    first agreeing block is number i differs in the i blocks before it; the blocks after it are a smaller problem with
    distance k - i.

    After the levels of the requested blocks come levels of finer blocks, for data with few distinct keys.
    """
    blocks = cut_blocks(0, bits, num_blocks)
    agree, differ, rest, distance = 0, tuple(blocks[: first_block or 0]), blocks, max_distance
    if first_block is not None:
        agree, rest, distance = blocks[first_block], blocks[first_block + 1 :], max_distance - first_block
    levels = [[_Node(agree, differ)], *_combine(agree, differ, rest, distance, 1)]
    low = agree.bit_length()
    num_fine = (bits - low) // _FINE_BITS
    if num_fine > len(rest):
        levels += _combine(agree, differ, cut_blocks(low, bits, num_fine), distance, 2)
    return _to_arrays(levels, bits, max_distance)


def make_masks(bits: int, max_distance: int, num_blocks: int) -> Masks:
    """Return the bits in which rows of each table agree: C(num_blocks, max_distance) tables, (num_tables, num_words).

    A pair within the distance agrees in the bits of one table at least. With max_distance blocks none need agree: a
    single table of no bits.
    """
    tables = itertools.combinations(cut_blocks(0, bits, num_blocks), num_blocks - max_distance)
    return np.array([to_words(sum(chosen), bits) for chosen in tables], np.uint64)


def _combine(agree: int, differ: tuple[int, ...], blocks: list[int], distance: int, least: int) -> list[list[_Node]]:
    """Return a level for each number of blocks, from `least` to the number that must agree."""
    return [
        [_choose(agree, differ, blocks, chosen) for chosen in itertools.combinations(range(distance + count), count)]
        for count in range(least, len(blocks) - distance + 1)
        if math.comb(distance + count, count) <= _MAX_NODES
        and (count == least or count * blocks[0].bit_count() <= _MAX_KEY_BITS)
    ]


def _choose(agree: int, differ: tuple[int, ...], blocks: list[int], chosen: tuple[int, ...]) -> _Node:
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
    return kernels.blocks.Nodes(np.array(agree, np.uint64), np.array(differ, np.uint64).reshape(shape), starts)
