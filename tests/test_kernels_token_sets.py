"""Tokens of sets hash alike in Arrow's lists, joined, and as shingles of one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.arrays import flatten_strings
from neardup.features.token_lists import (
    JoinedLists,
    join_lists,
    limits_of_counts,
    list_any,
    pack_tokens,
    shingle_strings,
)
from neardup.kernels import token_sets as kernel

TOKENS = st.one_of(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30), st.just(""))
SETS = st.lists(st.lists(TOKENS, max_size=6), max_size=6)


def hash_joined(lists: JoinedLists) -> tuple[bool, list[list[int]]]:
    hashes, offsets = np.zeros(int(lists.counts.sum()), np.uint64), np.zeros(len(lists) + 1, np.int64)
    found = kernel.hash_joined(lists.joined, lists.counts, hashes, offsets)
    return bool(found), [one.tolist() for one in np.split(hashes[: offsets[-1]], offsets[1:-1])][: len(lists)]


def hash_tokens(sets: list[list[str]]) -> list[list[int]]:
    data, offsets = flatten_strings(list_any(sets).values)
    limits = limits_of_counts([len(one) for one in sets])
    hashes, hash_offsets = np.zeros(len(offsets) - 1, np.uint64), np.zeros(len(sets) + 1, np.int64)
    kernel.hash_tokens(np.append(data, np.zeros(8, np.uint8)), offsets, limits, hashes, hash_offsets)
    return [one.tolist() for one in np.split(hashes[: hash_offsets[-1]], hash_offsets[1:-1])][: len(sets)]


@given(SETS)
@example([])
@example([[]])
@example([["", "a", ""], [], [""], ["b" * 8, "c" * 16, "\x80" * 12]])
def test_joined_tokens_hash_as_in_arrow_and_as_shingles_of_one(sets):
    expected = [shingle_strings(pack_tokens([one]), 1).hashes.tolist() for one in sets]
    assert hash_tokens(sets) == expected
    assert hash_joined(join_lists(sets)) == (True, expected)


@pytest.mark.parametrize("other", ["", "z", "\x01", "\x7f", "é", "漢" * 5])
def test_tokens_of_every_length_end_where_they_end(other):
    sets = [[other, "x" * size, "\x01" * size, other, "é" * size, other] for size in range(70)]
    assert hash_joined(join_lists(sets)) == (True, hash_tokens(sets))
    for one in sets:
        assert hash_joined(join_lists([one])) == (True, hash_tokens([one]))


@pytest.mark.parametrize("size", range(20))
def test_a_token_that_holds_a_zero_is_noticed(size):
    token = "x" * size
    for holds in (f"{token}\0", f"\0{token}", f"{token}\0y", "\0" * (size + 1)):
        assert not hash_joined(join_lists([["a"], [holds, "b"], ["c"]]))[0]
        assert not hash_joined(join_lists([[holds]]))[0]


@pytest.mark.parametrize("tokens", [[], ["a"], ["a" * 8], ["a" * 16], ["a", ""]])
def test_more_tokens_announced_than_there_are_end_with_the_text(tokens):
    lists = join_lists([tokens])
    announced = JoinedLists(lists.rows, lists.counts + 3, lists.joined)
    assert not hash_joined(announced)[0]
