"""Python's lists of strings are read where they lie: hashed, measured and copied."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.kernels import python_lists as kernel
from reference.strings import hash_string

TOKENS = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.text("ab\0", max_size=20))
LISTS = st.lists(st.lists(TOKENS, max_size=6), max_size=6)


class Word(str):
    """A string whose characters lie in memory of their own."""


def hashed(lists: list[list[str]], room: int | None = None) -> list[list[int]] | None:
    hashes = np.zeros(sum(map(len, lists)) if room is None else room, np.uint64)
    offsets = np.zeros(len(lists) + 1, np.int64)
    if not kernel.hash_lists(id(lists), hashes, offsets):
        return None
    return [hashes[start:end].tolist() for start, end in pairwise(offsets)]


def copied(lists: list[list[str]]) -> list[list[str]] | None:
    limits, offsets = np.zeros(len(lists) + 1, np.int64), np.zeros(sum(map(len, lists)) + 1, np.int64)
    if not kernel.measure_lists(id(lists), limits, offsets):
        return None
    data = np.zeros(offsets[-1], np.uint8)
    assert kernel.copy_lists(id(lists), limits, offsets, data)
    strings = [data[start:end].tobytes().decode() for start, end in pairwise(offsets)]
    return [strings[start:end] for start, end in pairwise(limits)]


@given(LISTS)
@example([])
@example([[]])
@example([["a" * size for size in range(100)], [], ["é" * size for size in range(40)], ["漢", "𠮷"]])
def test_strings_of_lists_are_hashed_and_copied_as_their_utf8(lists):
    assert hashed(lists) == [[hash_string(token.encode()) for token in one if token] for one in lists]
    assert copied(lists) == lists


def test_strings_that_lie_elsewhere_than_in_their_object_are_read_too():
    for text in ("", "a", "abcdefg", "abcdefgh", "é", "漢", "x" * 30):
        lists = [[Word(text), np.str_(text)]]
        assert hashed(lists) == [[hash_string(text.encode())] * 2 if text else []]
        assert copied(lists) == lists


def test_to_read_a_list_holds_no_reference_to_its_strings():
    lists = [["a string of its own" + str(number) for number in range(100)] for _ in range(3)]
    before = [sys.getrefcount(token) for one in lists for token in one]
    assert hashed(lists)
    assert copied(lists)
    assert [sys.getrefcount(token) for one in lists for token in one] == before


@pytest.mark.parametrize("other", [None, 5, b"bytes", ["a"], "\ud800", object()])
def test_what_is_no_string_ends_it_and_leaves_no_error_behind(other):
    for lists in ([[other]], [["a", other]], [["a"], ["b", other, "c"]], [["x"] * 40 + [other]]):
        assert hashed(lists) is None
        assert copied(lists) is None


def test_more_strings_than_were_counted_are_not_written():
    lists = [["a", "b"], ["c"]]
    assert hashed(lists, room=2) is None
    assert hashed(lists, room=4) is not None
    for count in (2, 4):
        assert not kernel.measure_lists(id(lists), np.zeros(3, np.int64), np.zeros(count + 1, np.int64))
    limits, offsets = np.array([0, 2, 3]), np.array([0, 1, 2, 3])
    assert kernel.copy_lists(id(lists), limits, offsets, np.zeros(3, np.uint8))
    for changed in ([["a", "b"], ["cc"]], [["a", "b"], ["c", "d"]], [["a"], ["b", "c"]], [["a", "b"], [None]]):
        assert not kernel.copy_lists(id(changed), limits, offsets, np.zeros(3, np.uint8))
