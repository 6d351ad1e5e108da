"""Every level of blocks finds every pair within the distance once, however little room there is for
pairs.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.candidates.blocks import cut_blocks, num_words
from neardup.candidates.hamming_join import make_levels, make_masks, to_words
from neardup.kernels import blocks
from neardup.kernels import blocks as kernel
from neardup.kernels.blocks import choose_level
from reference import hamming as reference

WIDTHS = (32, 64, 128, 256)


def records_of(fingerprints: list[int], bits: int) -> kernel.Records:
    words = np.array(reference.to_words(fingerprints, bits), np.uint64).reshape(
        len(fingerprints), num_words(bits)
    )
    return kernel.Records(words, np.arange(len(fingerprints), dtype=np.uint32))


def scratch_for(count: int) -> kernel.Scratch:
    listed, order, cells = (np.empty(count, np.uint32) for _ in range(3))
    return kernel.Scratch(
        listed, order, cells, np.empty(count, np.uint64), np.zeros(1 << 16, np.uint32)
    )


def join(records, nodes, level, max_distance, room) -> list[tuple[int, int, int]]:
    """Return the pairs of a level, taken out whenever there is no more room."""
    columns = [np.empty(room, kind) for kind in (np.uint32, np.uint32, np.uint8)]
    found = kernel.Found(*columns, np.zeros(1, np.int64))
    state = np.zeros(4, np.int64)
    scratch = scratch_for(len(records.positions))
    pairs = []
    done = False
    while not done:
        found.used[0] = 0
        done = kernel.join_part(records, nodes, level, max_distance, scratch, found, state)
        pairs += list(zip(*(column[: found.used[0]].tolist() for column in columns), strict=True))
        assert done or found.used[0] == room
    return pairs


@st.composite
def problems(draw):
    """Return bits, a distance, a number of blocks and fingerprints near to each other."""
    bits = draw(st.sampled_from(WIDTHS))
    max_distance = draw(st.integers(0, 6))
    num_blocks = draw(st.integers(max_distance + 1, min(bits, max_distance + 12)))
    bases = draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=3))
    flips = st.sets(st.integers(0, bits - 1), max_size=max_distance // 2 + 1)
    drawn = draw(st.lists(st.tuples(st.sampled_from(bases), flips), max_size=20))
    return (
        bits,
        max_distance,
        num_blocks,
        [base ^ sum(1 << bit for bit in flipped) for base, flipped in drawn],
    )


@given(problems(), st.sampled_from([1, 3, 500]))
def test_every_level_finds_every_pair_once(problem, room):
    bits, max_distance, num_blocks, fingerprints = problem
    levels = make_levels(bits, max_distance, num_blocks)
    records = records_of(fingerprints, bits)
    expected = reference.pairs(fingerprints, max_distance)
    chosen = range(len(levels.level_starts) - 1)
    for level in chosen if room == 500 else [0, 1, len(chosen) - 1]:
        pairs = join(records, levels, min(level, len(chosen) - 1), max_distance, room)
        assert sorted(pairs) == expected


@pytest.mark.slow
@given(problems())
def test_the_first_blocks_that_agree_share_the_pairs_among_them(problem):
    bits, max_distance, num_blocks, fingerprints = problem
    records = records_of(fingerprints, bits)
    pairs = []
    for block in range(max_distance + 1):
        levels = make_levels(bits, max_distance, num_blocks, block)
        found = join(records, levels, 0, max_distance, 500)
        last = join(records, levels, len(levels.level_starts) - 2, max_distance, 500)
        assert sorted(last) == sorted(found)
        pairs += found
    assert sorted(pairs) == reference.pairs(fingerprints, max_distance)


@given(problems())
def test_every_pair_agrees_in_the_bits_of_a_table(problem):
    bits, max_distance, num_blocks, fingerprints = problem
    masks = [
        int.from_bytes(mask.tobytes(), "little")
        for mask in make_masks(bits, max_distance, min(num_blocks, max_distance + 3))
    ]
    for left, right, _ in reference.pairs(fingerprints, max_distance):
        assert any((fingerprints[left] ^ fingerprints[right]) & mask == 0 for mask in masks)


@pytest.mark.parametrize("count", [2, 3, 8, 9, 40, 100])
@pytest.mark.parametrize("room", [1, 7, 10_000])
def test_large_groups_lose_no_pair_at_any_step(count, room):
    """Equal fingerprints are one group: all step widths, and the long scans after them."""
    nodes = make_levels(64, 3, 5)
    pairs = join(records_of([2**64 - 1] * count, 64), nodes, 1, 3, room)
    assert sorted(pairs) == [
        (left, right, 0) for left in range(count) for right in range(left + 1, count)
    ]


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 2**128 - 1), min_size=1, max_size=30),
    st.integers(0, 30),
    st.sampled_from([2, 8, 64]),
)
def test_a_part_holds_all_of_equal_keys_in_order(fingerprints, cut, num_parts):
    words = records_of(fingerprints, 128).fingerprints
    mask = np.array(to_words(cut_blocks(0, 128, 31)[1], 128), np.uint64)
    cut = min(cut, len(fingerprints))
    counts = np.zeros((2, num_parts), np.int64)
    for thread, span in enumerate([(0, cut), (cut, len(fingerprints))]):
        blocks.count_parts(words, span, mask, counts[thread])
    assert counts.sum() == len(fingerprints)
    cursors = np.concatenate([[0], counts.T.ravel().cumsum()[:-1]]).reshape(num_parts, 2).T.copy()
    edges = [*cursors[0].tolist(), len(fingerprints)]
    copied = kernel.Records(np.zeros_like(words), np.zeros(len(fingerprints), np.uint32))
    for thread, span in enumerate([(0, cut), (cut, len(fingerprints))]):
        blocks.scatter_parts(words, span, mask, (num_parts, 0), cursors[thread], copied)
    assert (copied.fingerprints == words[copied.positions]).all()
    part_of: dict[tuple[int, ...], int] = {}
    for part in range(num_parts):
        positions = copied.positions[edges[part] : edges[part + 1]].tolist()
        assert positions == sorted(positions)
        for position in positions:
            assert part_of.setdefault(tuple((words[position] & mask).tolist()), part) == part


def test_a_level_is_chosen_by_what_a_sample_suggests():
    nodes = make_levels(64, 3, 5)
    ends = np.zeros(1 << 16, np.uint32)
    chance = np.random.default_rng(1)

    def chosen(fingerprints: np.ndarray) -> int:
        level = choose_level(fingerprints[:, None], nodes, ends)
        assert not ends.any()
        return level

    assert chosen(chance.integers(0, 2**64, 60, np.uint64)) == 0
    assert chosen(chance.integers(0, 2**64, 20_000, np.uint64)) == 1
    # All share the lower half: the first two blocks tell nothing apart, finer ones do.
    shared = chance.integers(0, 2**32, 20_000, np.uint64) << np.uint64(32)
    assert chosen(shared) > 2


@given(st.lists(st.tuples(st.integers(0, 2**128 - 1), st.integers(0, 2**128 - 1)), max_size=10))
def test_row_distances_are_those_of_integers(rows):
    from neardup.verify.measured import hamming_distances

    left, right = (records_of([row[side] for row in rows], 128).fingerprints for side in (0, 1))
    assert hamming_distances(left, right).tolist() == [reference.distance(*row) for row in rows]
