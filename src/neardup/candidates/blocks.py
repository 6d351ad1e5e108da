"""Cut fingerprints into blocks; estimate the cost of each number of blocks, and choose one.

Manku, Jain and Das Sarma, Detecting Near-Duplicates for Web Crawling (WWW 2007), section 3: two
fingerprints of f bits within Hamming distance k, cut into m blocks, agree in at least m - k of
them. A table for each choice of m - k blocks, sorted by these, has every such pair among its equal
keys.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from neardup.errors import SettingError
from neardup.fingerprints.simhash import num_words
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import SimHash

MAX_FINGERPRINTS = 10**15
# Measured, in nanoseconds: to look up a key in one table (two cache misses), and to compare a
# candidate.
_LOOKUP_COST = 150.0
_CANDIDATE_COST = 0.7
# The same for all pairs: to group a fingerprint by one key, and to compare a pair.
_GROUPING_COST = 9.0
_COMPARISON_COST = 1.0
_ENTRY_BYTES = 8 + 4  # the key and the row, in each table
_FIXED_ROW_BYTES = 1 + 8 + 16  # whether a fingerprint is alive, its id, its slot by id


class Radius(NamedTuple):
    """The search radius: fingerprints of `bits` bits within `max_distance`.

    num_blocks : the blocks of a fingerprint; None to choose their number.
    """

    bits: int
    max_distance: int
    num_blocks: int | None = None


class BlockPlan(NamedTuple):
    """The cost of an index of fingerprints with `num_blocks` blocks.

    key_bits : the length of the shortest key of a table. comparisons : fingerprints that share a
    key with a query, in all tables, if all bits are random. memory_bytes : the whole index, as
    `HammingIndex` stores it.
    """

    num_blocks: int
    num_tables: int
    key_bits: int
    comparisons: float
    memory_bytes: int

    @property
    def query_cost(self) -> float:
        """The expected time of a query, in nanoseconds."""
        return _LOOKUP_COST * self.num_tables + _CANDIDATE_COST * self.comparisons


def cut_blocks(low: int, high: int, num_blocks: int) -> list[int]:
    """Cut bits `low` to `high` into blocks that differ by one bit at most; return the mask of each.

    Examples
    --------
    >>> [hex(mask) for mask in cut_blocks(0, 32, 3)]
    ['0x3ff', '0x1ffc00', '0xffe00000']
    """
    edges = [low + (high - low) * number // num_blocks for number in range(num_blocks + 1)]
    return [(1 << stop) - (1 << first) for first, stop in itertools.pairwise(edges)]


def check_distance(bits: int, max_distance: int, num_blocks: int | None = None) -> None:
    """Raise SettingError unless fingerprints can be searched with these settings."""
    for name, value in (("bits", bits), ("max_distance", max_distance)):
        constraint = constraints_of(SimHash)[name]
        if not constraint.accepts(value):
            raise SettingError(
                f"{name} must be {constraint.describe()}: got {value!r}. Change {name}."
            )
    if num_blocks is not None and not max_distance < num_blocks <= bits:
        raise SettingError(
            f"num_blocks must be above max_distance={max_distance} and at most bits={bits}: got "
            f"{num_blocks!r}. Change num_blocks, or leave it unset to choose it automatically."
        )


def plan_blocks(num_fingerprints: int, bits: int = 64, max_distance: int = 3) -> list[BlockPlan]:
    """Return the cost of each number of blocks from max_distance + 1 to bits.

    Parameters
    ----------
    num_fingerprints : the number of fingerprints in the index, at most 10^15.
    bits : the bits of a fingerprint: 32, 64, 128 or 256.
    max_distance : 0 to 16.

    Notes
    -----
    With 2^34 fingerprints of 64 bits at distance 3, four blocks make 4 tables of 16 bits: 2^18
    candidates in each, 1,048,576 comparisons in all, the first example of the paper.

    Examples
    --------
    >>> plan_blocks(2**34)[0].comparisons
    1048576.0
    """
    check_distance(bits, max_distance)
    return [
        _plan(num_fingerprints, bits, max_distance, num_blocks)
        for num_blocks in range(max_distance + 1, bits + 1)
    ]


def choose_blocks(
    num_fingerprints: int, bits: int = 64, max_distance: int = 3, memory_bytes: float | None = None
) -> BlockPlan:
    """Return the plan with the fastest query that fits into the allowed memory; None for no limit.

    Raises
    ------
    SettingError
        If no number of blocks fits. The message names a distance and a number of fingerprints that
        would fit.
    """
    plans = plan_blocks(num_fingerprints, bits, max_distance)
    allowed = math.inf if memory_bytes is None else memory_bytes
    fitting = [plan for plan in plans if plan.memory_bytes <= allowed]
    if fitting:
        return min(fitting, key=lambda plan: (plan.query_cost, plan.num_tables))
    smallest = min(plans, key=lambda plan: plan.memory_bytes)
    is_enough_for = _fitting_searches(num_fingerprints, bits, max_distance, allowed)
    raise SettingError(
        f"{num_fingerprints:,} fingerprints of {bits} bits at max_distance={max_distance} need "
        f"{smallest.memory_bytes:,} bytes or more ({smallest.num_tables} tables): got "
        f"memory_bytes={allowed:,.0f}. This memory {is_enough_for}. Lower max_distance, or allow "
        "more memory."
    )


def _fitting_searches(count: int, bits: int, max_distance: int, memory_bytes: float) -> str:
    """Return the end of a sentence: a smaller distance or number that fits into the memory."""
    advice = []
    for distance in reversed(range(max_distance)):
        if _plan(count, bits, distance, distance + 1).memory_bytes <= memory_bytes:
            advice.append(f"max_distance={distance}")
            break
    # With the fewest tables.
    max_count = bisect_right(
        range(1, MAX_FINGERPRINTS + 1),
        memory_bytes,
        key=lambda n: _plan(n, bits, max_distance, max_distance + 1).memory_bytes,
    )
    if max_count:
        advice.append(f"{max_count:,} fingerprints")
    if not advice:
        return "is not enough for a single fingerprint"
    return f"is enough for {' or '.join(advice)}"


def choose_join_blocks(num_fingerprints: int, bits: int, max_distance: int) -> int:
    """Return the number of blocks that makes the join of all pairs cheapest."""

    def cost(sizes: Sequence[int], chosen: int) -> float:
        """Return the time per fingerprint, if it is grouped by each choice of `chosen` blocks."""
        groupings = _count_keys(sizes[: max_distance + chosen], chosen)
        share = sum(count * 0.5**key_bits for key_bits, count in groupings.items())
        comparisons = num_fingerprints * share / 2
        return _GROUPING_COST * sum(groupings.values()) + _COMPARISON_COST * comparisons

    def min_cost(num_blocks: int) -> float:
        sizes = _sizes(bits, num_blocks)
        max_chosen = min(num_blocks - max_distance, 4)
        return min(cost(sizes, chosen) for chosen in range(1, max_chosen + 1))

    return min(range(max_distance + 1, bits + 1), key=min_cost)


def _plan(count: int, bits: int, max_distance: int, num_blocks: int) -> BlockPlan:
    tables = _count_keys(_sizes(bits, num_blocks), num_blocks - max_distance)
    num_tables = sum(tables.values())
    directories = sum(number * 4 * min(1 << key_bits, count) for key_bits, number in tables.items())
    rows = count * (8 * num_words(bits) + _FIXED_ROW_BYTES)
    comparisons = sum(number * (count / 2**key_bits) for key_bits, number in tables.items())
    return BlockPlan(
        num_blocks=num_blocks,
        num_tables=num_tables,
        key_bits=min(tables),
        comparisons=comparisons,
        memory_bytes=rows + num_tables * count * _ENTRY_BYTES + directories,
    )


def _sizes(bits: int, num_blocks: int) -> list[int]:
    """Return the bits of each block."""
    return [mask.bit_count() for mask in cut_blocks(0, bits, num_blocks)]


def _count_keys(sizes: Sequence[int], chosen: int) -> dict[int, int]:
    """Return the number of choices of `chosen` blocks by the length of their key in bits.

    Requires: sizes differ by one at most. So the number of long blocks in a choice decides its
    length, and choices need not be enumerated.
    """
    short_size = min(sizes)
    num_long = sum(size > short_size for size in sizes)
    num_short = len(sizes) - num_long
    fewest_long = max(0, chosen - num_short)
    most_long = min(chosen, num_long)
    return {
        chosen * short_size + long: math.comb(num_long, long) * math.comb(num_short, chosen - long)
        for long in range(fewest_long, most_long + 1)
    }
