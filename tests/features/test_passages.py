"""Shared passages are those that a common shingle covers, and passages cover the whole text."""

from __future__ import annotations

import itertools
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.features.spans import TokenSpan
from neardup.verify.alignment import Passage, mark_passages


def locate(text: str) -> list[TokenSpan]:
    return [TokenSpan(found.start(), found.end(), found[0]) for found in re.finditer(r"\w+", text)]


def split(left: str, right: str, ngram: int) -> tuple[list[str], list[str]]:
    """Return the passages as texts, the shared ones in brackets."""
    sides = mark_passages(left, locate(left), right, locate(right), ngram)
    return tuple(
        [f"[{text[p.start : p.end]}]" if p.shared else text[p.start : p.end] for p in side]
        for text, side in zip((left, right), sides, strict=True)
    )


def test_equal_texts_are_one_shared_passage():
    assert split("a b c d.", "a b c d.", 3) == (["[a b c d.]"], ["[a b c d.]"])


def test_texts_without_a_common_shingle_are_one_differing_passage():
    assert split("a b c d", "a b x c d", 3) == (["a b c d"], ["a b x c d"])


def test_a_changed_word_stands_between_two_shared_passages():
    left, right = split("(a b c old d e f)", "a b c new, d e f", 3)
    assert left == ["[(a b c ]", "old ", "[d e f)]"]
    assert right == ["[a b c ]", "new, ", "[d e f]"]


def test_a_moved_block_is_shared_on_both_sides():
    left, right = split("a b c d x y z", "x y z a b c d", 3)
    assert left == ["[a b c d x y z]"]
    assert right == ["[x y z a b c d]"]
    left, right = split("a b c 1 2 x y z", "x y z 3 4 5 a b c", 3)
    assert left == ["[a b c ]", "1 2 ", "[x y z]"]
    assert right == ["[x y z ]", "3 4 5 ", "[a b c]"]


def test_a_common_word_outside_a_common_shingle_is_not_shared():
    assert split("the cat", "the dog", 2) == (["the cat"], ["the dog"])
    assert split("the cat", "the dog", 1) == (["[the ]", "cat"], ["[the ]", "dog"])


def test_texts_shorter_than_a_shingle_are_compared_whole():
    assert split("a b", "a, b!", 5) == (["[a b]"], ["[a, b!]"])
    assert split("a b", "a c", 5) == (["a b"], ["a c"])
    assert split("a b", "a b c d e", 5) == (["a b"], ["a b c d e"])


def test_texts_without_tokens_share_nothing():
    assert split("...", "...", 3) == (["..."], ["..."])
    assert split("", "a", 1) == ([], ["a"])


def test_tokens_of_one_character_are_shared_only_together():
    half = [TokenSpan(0, 1, "1"), TokenSpan(0, 1, "2"), TokenSpan(2, 3, "x")]
    one = [TokenSpan(0, 1, "1"), TokenSpan(2, 3, "x")]
    assert mark_passages("½ x", half, "1 x", one, 1)[0] == [
        Passage(0, 2, False),
        Passage(2, 3, True),
    ]


def test_a_token_without_width_is_compared_but_not_shown():
    left = [TokenSpan(0, 1, "a"), TokenSpan(1, 1, "hidden"), TokenSpan(2, 3, "b")]
    right = [TokenSpan(0, 1, "a"), TokenSpan(2, 3, "b")]
    assert mark_passages("a b", left, "a b", right, 2)[0] == [Passage(0, 3, False)]
    assert mark_passages("a b", left, "a b", left, 2)[0] == [Passage(0, 3, True)]
    only = [TokenSpan(0, 0, "hidden")]
    assert mark_passages("a b", only, "a b", only, 1)[0] == [Passage(0, 3, False)]


TEXTS = st.text(st.sampled_from("abc .,"), max_size=30)


@given(TEXTS, TEXTS, st.integers(1, 4))
def test_passages_cover_the_text_by_turns_and_agree_with_a_plain_search(left, right, ngram):
    for text, other, found in zip(
        (left, right),
        (right, left),
        mark_passages(left, locate(left), right, locate(right), ngram),
        strict=True,
    ):
        limits = [0, *(passage.end for passage in found)]
        assert [passage.start for passage in found] == limits[:-1]
        assert limits[-1] == len(text)
        assert all(before.shared != after.shared for before, after in itertools.pairwise(found))
        tokens, others = ([span.token for span in locate(one)] for one in (text, other))
        for index, span in enumerate(locate(text)):
            shown = next(
                passage.shared for passage in found if passage.start <= span.start < passage.end
            )
            assert shown == is_covered(tokens, others, index, ngram)


def is_covered(tokens, others, index, ngram):
    """Try every shingle over the token against every shingle of the other text."""
    width = min(ngram, len(tokens))
    other_width = min(ngram, len(others))
    return any(
        tokens[i : i + width] == others[j : j + other_width]
        for i in range(len(tokens) - width + 1)
        for j in range(len(others) - other_width + 1)
        if i <= index < i + width
    )


@pytest.mark.timing
def test_repetitive_texts_take_linear_time():
    start = time.perf_counter()
    left = "a " * 100_000
    right = "a " * 99_999 + "b"
    found, _ = mark_passages(left, locate(left), right, locate(right), 5)
    assert len(found) == 1
    assert time.perf_counter() - start < 10  # quadratic time is minutes
