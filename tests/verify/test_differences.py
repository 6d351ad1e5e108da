"""Two similar texts differ in names and numbers, in whole passages, or in single words."""

from __future__ import annotations

import pytest

import neardup
from neardup.verify.differences import Marked, kind_of_difference

FRAME = "we confirm that the person named below has rented the flat from us since the date given"
SENTENCE = "nobody had seen the grey cat on the roof of that old house since last summer"
CHINESE = "甲方同意将位于城中的房屋出租给乙方使用，租期按照双方约定的时间计算"


def kind(left: str, right: str) -> str | None:
    """Return the kind of difference of two texts that are compared by runs of 2 words."""
    pair = neardup.compare(left, right, method=neardup.MinHash(ngram=2))
    return kind_of_difference(Marked(left, pair.left_passages), Marked(right, pair.right_passages))


def test_a_compatibility_character_is_a_word_after_a_digit_too():
    assert kind(f"{FRAME} 7\uf900", f"{FRAME} 7\uf901") == "words"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (f"{FRAME}: Ann Morris, 3.4.1999", f"{FRAME}: Jo Bell, 12.1.2004", "names"),
        (f"{FRAME} mail a.b@c.example today", f"{FRAME} mail d.e@f.example today", "names"),
        (f"{CHINESE}三十日", f"{CHINESE}二十五日", "names"),
        (f"{FRAME}. {SENTENCE}.", f"{FRAME}.", "passages"),
        (f"{FRAME} {SENTENCE}", f"{FRAME} {SENTENCE.replace('grey', 'small')}", "words"),
        (FRAME.replace("flat", "house"), FRAME, "words"),
        (FRAME, FRAME, None),
        (FRAME.upper(), FRAME, None),
        (f"{FRAME}!", FRAME, None),
    ],
    ids=[
        "names and dates",
        "addresses",
        "Chinese numerals",
        "a sentence more",
        "a word",
        "a word of a short text",
        "nothing",
        "capital letters",
        "a sign",
    ],
)
def test_the_kind_of_a_difference(left, right, expected):
    assert kind(left, right) == expected
    assert kind(right, left) == expected


def test_a_word_between_two_names_that_differ_is_no_difference():
    left = f"{FRAME} Ann Morris and Bea Quill"
    right = f"{FRAME} Jo Bell and Cy Rand"
    assert kind(left, right) == "names"
