"""Where cuts end: between the words, sentences, lines and characters of the text that is cut."""

from __future__ import annotations

import random

import pytest

import neardup

NOTICE = (
    "We use cookies to give you the best experience on our site. Déjà vu? If you go on, you accept "
    "all of them. "
)
LINES = "\n".join(f"Line {number} is short." for number in range(9))
THAI = "".join(random.Random(1).choices("กขคงจชตนมรสห", k=80))


def kept_of_second(first: str, second: str, cut_at: str = "word") -> str:
    """Return what stays of the second text, whose copy of a passage is cut."""
    return (
        neardup.remove_passages([first, second], min_length=60, cut_at=cut_at)
        .kept["text"][1]
        .as_py()
    )


@pytest.mark.parametrize("blank", [" ", "\n", "\u3000", " \t"])
def test_blanks_are_no_word_however_many_there_are(blank):
    blanks = 90 * blank
    kept = kept_of_second(f"quxbar{NOTICE}end{blanks}1", f"foobar{NOTICE}end{blanks}{blanks}2")
    assert kept.split() == ["foobarWe", "2"]
    kept = kept_of_second(f"1{blanks}{NOTICE}quxbar", f"2{blanks}{blanks}{NOTICE}quxfoo")
    assert kept.split() == ["2", "quxfoo"]


def test_a_long_word_at_one_end_of_a_passage_divides_no_word_at_the_other_end():
    letters = "z" * 80
    assert kept_of_second(f"quxbar{NOTICE}{letters}1", f"foobar{NOTICE}{letters}2") == "foobarWe 2"
    assert kept_of_second(f"1{letters} {NOTICE}quxbar", f"2{letters} {NOTICE}quxfoo") == "2quxfoo"


def test_a_word_of_64_characters_is_not_divided_and_of_a_longer_one_no_character_is():
    assert kept_of_second(f"{NOTICE}{'z' * 64}1", f"{NOTICE}{'z' * 64}2") == f"{'z' * 64}2"
    assert kept_of_second(f"{NOTICE}{'z' * 65}1", f"{NOTICE}{'z' * 65}2") == "2"
    assert kept_of_second(f"{NOTICE}{'z' * 65}e\u0301", f"{NOTICE}{'z' * 65}e\u0302") == "e\u0302"


@pytest.mark.parametrize(
    ("cut_at", "more"),
    [
        ("word", " More."),
        ("sentence", " More."),
        ("sentence", "\nMore."),
        ("line", "\nMore."),
        ("line", "\r\nMore."),
    ],
)
def test_the_last_unit_is_cut_although_its_first_copy_ends_the_text_or_other_blanks_follow_there(
    cut_at, more
):
    assert kept_of_second(LINES, LINES + more, cut_at) == more
    assert kept_of_second(f"{LINES}\t\tOther.", LINES + more, cut_at) == more
    assert kept_of_second(LINES, f"More.\n{LINES}", cut_at) == "More.\n"


@pytest.mark.parametrize(
    ("cut_at", "more", "kept"),
    [
        ("word", "ened by one.", "shortened by one."),
        ("sentence", " and last", "Line 9 is short and last"),
        ("line", " and last", "Line 9 is short and last"),
    ],
)
def test_a_unit_that_goes_on_in_this_text_stays_although_its_first_copy_ends_the_text(
    cut_at, more, kept
):
    text = f"{LINES}\nLine 9 is short"
    assert kept_of_second(text, text + more, cut_at) == kept


# Characters of which two share the second part, and two the first.
CHARACTERS = [
    ("คำ", "นำ", "ค"),  # Thai, with SARA AM
    ("ຄຳ", "ນຳ", "ຄ"),  # Lao
    ("क\u094dष", "त\u094dष", "क\u094d"),  # Devanagari
    ("ক\u09cdষ", "ত\u09cdষ", "ক\u09cd"),  # Bengali
    ("ក\u17d2ក", "ខ\u17d2ក", "ក\u17d2"),  # Khmer
    ("\u1112\u1161\u11ab", "\u1100\u1161\u11ab", "\u1112\u1161"),  # Hangul
    ("👩\u200d👧", "👨\u200d👧", "👩\u200d"),
    ("👍🏽", "👎🏽", "👍"),
    ("🇫🇷", "🇧🇷", "🇫"),
    ("\u0600\u0661", "\u0601\u0661", "\u0600"),  # an Arabic number
]


@pytest.mark.parametrize(("one", "other", "part"), CHARACTERS)
def test_a_cut_divides_no_character_of_any_script(one, other, part):
    assert kept_of_second(f"{one}{THAI}1", f"{other}{THAI}2", "character") == f"{other}2"
    assert kept_of_second(f"1{THAI}{part}x", f"2{THAI}{one}", "character") == f"2{one}"


@pytest.mark.parametrize(("one", "other", "part"), CHARACTERS)
def test_a_cut_between_words_divides_no_character_either(one, other, part):
    kept = kept_of_second(f"{one}{THAI}1", f"{other}{THAI}2")
    assert kept.startswith(other)
    assert kept_of_second(f"1{THAI}{part}x", f"2{THAI}{one}").endswith(one)
