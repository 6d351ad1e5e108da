"""Cut fingerprints into blocks; estimate the cost of each number of blocks, and choose one.

Manku, Jain and Das Sarma, Detecting Near-Duplicates for Web Crawling (WWW 2007), section 3: two fingerprints of f bits
within Hamming distance k, cut into m blocks, agree in at least m - k of them. A table for each choice of m - k blocks,
sorted by these, has every such pair among its equal keys.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

from neardup.errors import SettingError
from neardup.fingerprints.simhash import BITS, num_words
from neardup.settings.methods import MAX_HAMMING_DISTANCE

MAX_FINGERPRINTS = 10**15
# Measured, in nanoseconds: to look up a key in one table (two cache misses), and to compare a candidate.
_LOOKUP_COST, _CANDIDATE_COST = 150.0, 0.7
# The same for all pairs: to group a fingerprint by one key, and to compare a pair.
_GROUPING_COST, _COMPARISON_COST = 9.0, 1.0
_ENTRY_BYTES = 8 + 4  # of a table: the key, which begins with the bits of the blocks, and the row
_FIXED_ROW_BYTES = 1 + 8 + 16  # once per fingerprint: whether it is alive, its id, its slot by id


class Radius(NamedTuple):
    """The search radius: fingerprints of `bits` bits within `max_distance`. num_blocks : chosen if None."""

    bits: int
    max_distance: int
    num_blocks: int | None = None


@dataclass(frozen=True)
class BlockPlan:
    """The cost of an index of `num_fingerprints` with `num_blocks` blocks.

    key_bits : of the table with the shortest key. table_bytes : the fingerprints of all tables, as in the paper.
    memory_bytes : the whole index, as `HammingIndex` stores it. candidates : fingerprints in one table that share the
    key of a query, if all bits are random. comparisons : the candidates of all tables. fits : whether the index fits
    into the allowed memory. picked : whether this is the fastest plan that fits.
    """

    num_fingerprints: int
    num_blocks: int
    num_tables: int
    key_bits: int
    table_bytes: int
    memory_bytes: int
    candidates: float
    comparisons: float
    fits: bool
    picked: bool = False

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
    if bits not in BITS or isinstance(bits, bool):
        raise SettingError(f"bits must be one of {', '.join(map(str, BITS))}: got {bits!r}. Change bits.")
    whole = isinstance(max_distance, int) and not isinstance(max_distance, bool)
    if not whole or not 0 <= max_distance <= MAX_HAMMING_DISTANCE:
        raise SettingError(
            f"max_distance must be a whole number of 0 or more and at most {MAX_HAMMING_DISTANCE}: "
            f"got {max_distance!r}. Change max_distance."
        )
    if num_blocks is not None and not max_distance < num_blocks <= bits:
        raise SettingError(
            f"num_blocks must be above max_distance={max_distance} and at most bits={bits}: got {num_blocks!r}. "
            "Change num_blocks, or leave it unset to choose it automatically."
        )


def plan_blocks(
    num_fingerprints: float, bits: int = 64, max_distance: int = 3, memory_bytes: float | None = None
) -> tuple[BlockPlan, ...]:
    """Return the cost of each number of blocks from max_distance + 1 to bits; the fastest that fits is marked.

    Parameters
    ----------
    num_fingerprints : the number of fingerprints in the index, whole, up to 10^15, such as 1e9.
    bits : of a fingerprint: 32, 64, 128 or 256.
    max_distance : 0 to 16.
    memory_bytes : the maximum memory of the index; None for no limit.

    Notes
    -----
    With 2^34 fingerprints of 64 bits at distance 3, four blocks make 4 tables of 16 bits: 2^18 candidates in each,
    1,048,576 comparisons in all, the first example of the paper.

    Examples
    --------
    >>> plan_blocks(2**34)[0].comparisons
    1048576.0
    """
    check_distance(bits, max_distance)
    if isinstance(num_fingerprints, float) and num_fingerprints.is_integer():  # such as 1e9
        num_fingerprints = int(num_fingerprints)
    if not isinstance(num_fingerprints, int) or not 0 <= num_fingerprints <= MAX_FINGERPRINTS:
        raise SettingError(
            f"num_fingerprints must be a whole number of 0 or more and at most {MAX_FINGERPRINTS}: "
            f"got {num_fingerprints!r}. Change num_fingerprints."
        )
    plans = [
        _plan(num_fingerprints, bits, max_distance, num_blocks, memory_bytes)
        for num_blocks in range(max_distance + 1, bits + 1)
    ]
    fitting = [plan for plan in plans if plan.fits]
    picked = min(fitting, key=lambda plan: (plan.query_cost, plan.num_tables)) if fitting else None
    return tuple(_mark(plan) if plan is picked else plan for plan in plans)


def choose_blocks(
    num_fingerprints: int, bits: int = 64, max_distance: int = 3, memory_bytes: float | None = None
) -> BlockPlan:
    """Return the plan with the fastest query that fits into the allowed memory.

    Parameters
    ----------
    num_fingerprints : the number of fingerprints in the index, whole, up to 10^15, such as 1e9.
    bits : of a fingerprint: 32, 64, 128 or 256.
    max_distance : 0 to 16.
    memory_bytes : the maximum memory of the index; None for no limit.

    Raises
    ------
    SettingError
        If no number of blocks fits. The message names a distance and a number of fingerprints that would fit.
    """
    plans = plan_blocks(num_fingerprints, bits, max_distance, memory_bytes)
    picked = next((plan for plan in plans if plan.picked), None)
    if picked is not None:
        return picked
    assert memory_bytes is not None
    least = min(plans, key=lambda plan: plan.memory_bytes)
    fitting = _most_that_fit(bits, max_distance, memory_bytes)
    distances = [k for k in range(max_distance) if _plan(num_fingerprints, bits, k, k + 1, memory_bytes).fits]
    advice = [f"max_distance={distances[-1]}"] if distances else []
    advice += [f"{fitting:,} fingerprints"] if fitting else []
    would = f"is enough for {' or '.join(advice)}" if advice else "is not enough for a single fingerprint"
    raise SettingError(
        f"{num_fingerprints:,} fingerprints of {bits} bits at max_distance={max_distance} need "
        f"{least.memory_bytes:,} bytes or more ({least.num_tables} tables): got memory_bytes={memory_bytes:,.0f}. "
        f"This memory {would}. Lower max_distance, or allow more memory."
    )


def choose_join_blocks(num_fingerprints: int, bits: int, max_distance: int) -> int:
    """Return the number of blocks that makes the join of all pairs cheapest."""
    best, least = max_distance + 1, math.inf
    for num_blocks in range(max_distance + 1, bits + 1):
        for chosen in range(1, min(num_blocks - max_distance, 4) + 1):
            share = 0.5 ** (chosen * (bits // num_blocks))
            each = _GROUPING_COST + _COMPARISON_COST * num_fingerprints * share / 2
            cost = math.comb(max_distance + chosen, chosen) * each
            if cost < least:
                best, least = num_blocks, cost
    return best


def _plan(count: int, bits: int, max_distance: int, num_blocks: int, memory_bytes: float | None) -> BlockPlan:
    num_tables = math.comb(num_blocks, num_blocks - max_distance)
    sizes = sorted(mask.bit_count() for mask in cut_blocks(0, bits, num_blocks))
    key_bits = sum(sizes[: num_blocks - max_distance])
    width = 8 * num_words(bits)
    directory = 4 * min(1 << key_bits, count)
    total = count * (width + _FIXED_ROW_BYTES) + num_tables * (count * _ENTRY_BYTES + directory)
    candidates = count / 2**key_bits
    return BlockPlan(
        num_fingerprints=count,
        num_blocks=num_blocks,
        num_tables=num_tables,
        key_bits=key_bits,
        table_bytes=num_tables * count * bits // 8,
        memory_bytes=total,
        candidates=candidates,
        comparisons=num_tables * candidates,
        fits=memory_bytes is None or total <= memory_bytes,
    )


def _mark(plan: BlockPlan) -> BlockPlan:
    values = {name: getattr(plan, name) for name in plan.__dataclass_fields__}
    return BlockPlan(**(values | {"picked": True}))


def _most_that_fit(bits: int, max_distance: int, memory_bytes: float) -> int:
    """Return the number of fingerprints that fit into the memory with the fewest tables."""
    low, high = 0, MAX_FINGERPRINTS
    while low < high:
        middle = (low + high + 1) // 2
        if _plan(middle, bits, max_distance, max_distance + 1, memory_bytes).fits:
            low = middle
        else:
            high = middle - 1
    return low
