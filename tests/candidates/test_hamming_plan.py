"""The planner of Hamming search: the paper's own example, every number of blocks, what fits the
memory.
"""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.candidates.blocks import (
    MAX_FINGERPRINTS,
    choose_blocks,
    choose_join_blocks,
    cut_blocks,
    plan_blocks,
)
from neardup.candidates.hamming_join import make_masks
from neardup.errors import SettingError

WIDTHS = (32, 64, 128, 256)


def test_the_example_of_the_paper():
    """Manku, Jain and Das Sarma (2007), section 3.1: 2^34 fingerprints of 64 bits at distance 3."""
    plans = {plan.num_blocks: plan for plan in plan_blocks(2**34, 64, 3)}
    four = plans[4]
    assert (four.num_tables, four.key_bits, four.comparisons) == (4, 16, 4 * 2**18)
    assert (
        plans[6].num_tables == 20
    )  # six blocks of 11, 11, 11, 11, 10 and 10 bits: 31 or more bits in common
    assert plans[6].key_bits == 31
    # Four tables have both blocks of 10 bits: 31 bits; twelve have one: 32; four have none: 33.
    assert plans[6].comparisons == 4 * 2**3 + 12 * 2**2 + 4 * 2


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("max_distance", [0, 3, 16])
def test_every_number_of_blocks_has_its_row(bits, max_distance):
    plans = plan_blocks(10**9, bits, max_distance)
    assert [plan.num_blocks for plan in plans] == list(range(max_distance + 1, bits + 1))
    for plan in plans:
        assert plan.num_tables == math.comb(plan.num_blocks, max_distance)


@given(st.sampled_from(WIDTHS), st.integers(0, 4), st.integers(1, 5))
def test_comparisons_are_the_sum_over_all_tables_each_with_its_own_key(bits, max_distance, more):
    num_blocks = max_distance + more
    sizes = [mask.bit_count() for mask in cut_blocks(0, bits, num_blocks)]
    lengths = [sum(chosen) for chosen in itertools.combinations(sizes, num_blocks - max_distance)]
    plan = next(
        plan for plan in plan_blocks(2**34, bits, max_distance) if plan.num_blocks == num_blocks
    )
    assert plan.num_tables == len(lengths)
    assert plan.comparisons == pytest.approx(
        float(sum(Fraction(2**34, 2**length) for length in lengths)), rel=1e-12
    )
    bytes_of_a_fingerprint = max(8, bits // 8) + 25 + 12 * len(lengths)
    directories = sum(4 * min(2**length, 2**34) for length in lengths)
    assert plan.memory_bytes == 2**34 * bytes_of_a_fingerprint + directories


@given(st.sampled_from(WIDTHS), st.integers(0, 4), st.integers(1, 4))
def test_the_key_is_the_shortest_of_all_tables(bits, max_distance, more):
    num_blocks = max_distance + more
    agree = make_masks(bits, max_distance, num_blocks).tolist()
    shortest = min(sum(word.bit_count() for word in words) for words in agree)
    plan = next(
        plan for plan in plan_blocks(1, bits, max_distance) if plan.num_blocks == num_blocks
    )
    assert (plan.num_tables, plan.key_bits) == (len(agree), shortest)


@given(st.integers(0, 40), st.integers(1, 256), st.integers(1, 256))
def test_blocks_cover_every_bit_once_and_differ_by_one_bit_at_most(low, length, num_blocks):
    num_blocks = min(num_blocks, length)
    masks = cut_blocks(low, low + length, num_blocks)
    assert sum(masks) == (1 << low + length) - (1 << low)
    sizes = [mask.bit_count() for mask in masks]
    assert len(masks) == num_blocks
    assert max(sizes) - min(sizes) <= 1


@given(
    st.integers(0, MAX_FINGERPRINTS),
    st.sampled_from(WIDTHS),
    st.integers(0, 16),
    st.floats(1e3, 1e15),
)
def test_the_pick_is_the_fastest_that_fits(count, bits, max_distance, memory_bytes):
    fitting = [
        plan for plan in plan_blocks(count, bits, max_distance) if plan.memory_bytes <= memory_bytes
    ]
    if fitting:
        picked = choose_blocks(count, bits, max_distance, memory_bytes)
        assert picked in fitting
        assert picked.query_cost == min(plan.query_cost for plan in fitting)
    else:
        with pytest.raises(SettingError):
            choose_blocks(count, bits, max_distance, memory_bytes)


def test_more_memory_makes_queries_faster_until_it_no_longer_does():
    costs = [
        choose_blocks(2**34, 64, 3, memory).query_cost for memory in (1.5e12, 3e12, 1e13, None)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 100 * costs[-1]


def test_what_does_not_fit_is_told_with_what_would():
    with pytest.raises(SettingError) as caught:
        choose_blocks(10_000_000, 64, 8, 800e6)
    message = str(caught.value)
    assert message.startswith("10,000,000 fingerprints of 64 bits at max_distance=8 need ")
    assert "(9 tables): got memory_bytes=800,000,000." in message
    distance, count = re.search(r"max_distance=(\d+) or ([\d,]+) fingerprints\.", message).groups()
    assert choose_blocks(10_000_000, 64, int(distance), 800e6).memory_bytes <= 800e6
    with pytest.raises(SettingError):
        choose_blocks(10_000_000, 64, int(distance) + 1, 800e6)
    most = int(count.replace(",", ""))
    assert choose_blocks(most, 64, 8, 800e6).memory_bytes <= 800e6
    with pytest.raises(SettingError):
        choose_blocks(most + 1, 64, 8, 800e6)


def test_memory_for_nothing_at_all_is_told():
    with pytest.raises(SettingError, match="This memory is not enough for a single fingerprint"):
        choose_blocks(1, 64, 0, 1)


def test_a_join_takes_more_blocks_for_more_fingerprints():
    assert choose_join_blocks(10_000, 64, 3) == 4
    assert choose_join_blocks(100_000_000, 64, 3) == 5


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("max_distance", [0, 3, 16])
def test_a_join_has_more_blocks_than_bits_may_differ(bits, max_distance):
    chosen = [choose_join_blocks(10**power, bits, max_distance) for power in range(10)]
    assert all(max_distance < blocks <= bits for blocks in chosen)


def test_plans_are_for_64_bits_and_distance_3_unless_told_otherwise():
    assert choose_blocks(10**6) == choose_blocks(10**6, 64, 3)
    assert plan_blocks(10**6) == plan_blocks(10**6, 64, 3)


def test_the_memory_of_hundreds_of_trillions_is_told_exactly():
    count = 5 * 10**14
    needed = plan_blocks(count, 64, 0)[0].memory_bytes
    assert choose_blocks(count, 64, 0, needed).memory_bytes == needed
    with pytest.raises(SettingError, match=r"is enough for 499,999,999,999,999 fingerprints"):
        choose_blocks(count, 64, 0, needed - 1)
