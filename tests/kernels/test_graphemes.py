"""Characters are those of a reader: the extended grapheme clusters of Unicode."""

from __future__ import annotations

import itertools
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.features.boundaries import boundary_classes, grapheme_classes
from neardup.kernels import graphemes
from reference.graphemes import LETTERS, class_of, starts_of_clusters, table

EXAMPLES = Path(__file__).parents[1] / "data" / "grapheme_clusters.txt"
ONE_OF_EACH = {
    "other": "a",
    "pictograph": "👩",
    "consonant": "क",
    "cr": "\r",
    "lf": "\n",
    "control": "\u200b",
    "extend": "\u0301",
    "non_joiner": "\u200c",
    "linker": "\u094d",
    "joiner": "\u200d",
    "spacing": "\u0e33",
    "prepend": "\u0600",
    "linker_letter": "\u1cf5",
    "flag": "🇫",
    "leading": "\u1100",
    "vowel": "\u1161",
    "trailing": "\u11a8",
    "open_syllable": "가",
    "closed_syllable": "각",
}


def starts_by_kernel(text: str) -> set[int]:
    """The places in a text at which a cluster begins, by the kernel."""
    data = np.frombuffer(text.encode(), np.uint8)
    classes = boundary_classes()
    starts = {0}
    for place in range(1, len(text)):
        at = len(text[:place].encode())
        left, right = (classes[ord(character)] for character in text[place - 1 : place + 1])
        if not graphemes.is_within_cluster(data, at, 0, classes, left, right):
            starts.add(place)
    return starts


def examples() -> list[tuple[str, set[int]]]:
    """Texts, and the places at which the package `regex` divides them."""
    rows = []
    for line in EXAMPLES.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        signs = line.split()[0:-1:2]
        codes = line.split()[1::2]
        text = "".join(chr(int(code, 16)) for code in codes)
        rows.append((text, {place for place, sign in enumerate(signs) if sign == "÷"}))
    return rows


@pytest.mark.slow
def test_texts_are_divided_where_another_implementation_of_the_standard_divides_them():
    rows = examples()
    assert len(rows) == 800
    for text, starts in rows:
        assert starts_by_kernel(text) == starts_of_clusters(text) == starts, ascii(text)


def test_all_sequences_of_three_classes_are_divided_as_the_regular_expression_of_the_standard_does():  # noqa: E501
    assert {name: class_of(character) for name, character in ONE_OF_EACH.items()} == {
        name: name for name in LETTERS
    }
    for characters in itertools.product(ONE_OF_EACH.values(), repeat=3):
        text = "".join(characters)
        assert starts_by_kernel(text) == starts_of_clusters(text), ascii(text)


@given(st.lists(st.sampled_from(list(ONE_OF_EACH.values())), min_size=1, max_size=40).map("".join))
def test_longer_texts_are_divided_as_the_regular_expression_of_the_standard_does(text):
    assert starts_by_kernel(text) == starts_of_clusters(text)


@pytest.mark.parametrize(
    "character",
    [
        "e\u0301",
        "นำ",  # Thai, with SARA AM
        "ກຳ",  # Lao
        "क्ष",  # Devanagari, two consonants joined by a virama
        "ক্ক",  # Bengali
        "ក្ក",  # Khmer
        "\u1112\u1161\u11ab",  # a Hangul syllable in three letters
        "하\u11ab",
        "👩\u200d👩\u200d👧",
        "👍🏽",
        "🇫🇷",
        "\u0600\u0661",  # the Arabic number sign, before its number
        "\u1019\u102c",  # Burmese, a consonant with the vowel sign AA
        "\r\n",
    ],
)
def test_a_character_of_several_code_points_is_not_divided(character):
    assert starts_by_kernel(f"x{character}x") == {0, 1, 1 + len(character)}


def test_a_mark_after_a_line_end_begins_a_character():
    assert starts_by_kernel("a\n\u0301b") == {0, 1, 2, 3}


def test_of_more_than_64_marks_and_of_more_than_64_flag_letters_the_last_64_count():
    assert starts_by_kernel("क" + "\u094d" + "\u0301" * 63 + "क") == {0}
    assert starts_by_kernel("क" + "\u094d" + "\u0301" * 64 + "क") == {0, 66}
    assert starts_by_kernel("🇫" * 66) == {*range(0, 66, 2), 65}


def test_no_mark_begins_a_character():
    classes = grapheme_classes()
    marks = [
        code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"
    ]
    assert len(marks) > 2000
    assert np.isin(classes[marks], range(graphemes.EXTEND, graphemes.SPACING + 1)).all()


def test_the_classes_of_the_table_have_the_numbers_of_the_kernel():
    for number, name in enumerate(LETTERS):
        assert getattr(graphemes, name.upper()) == number
    assert set(table()[1]) == set(LETTERS)
