"""Token spans are the tokens of the reference, placed in the original text."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.features.feature_strings import Strings, token_strings
from neardup.features.spans import TokenSpan, token_spans, word_ranges
from neardup.settings.folds import FOLDS
from neardup.settings.methods import Shingling, SimHash, Tokenizer
from reference import spans as reference
from reference import tokens as reference_tokens

PLAIN = {"nfkc": False, "case_fold": False}
KINDS = ("words", "chars", "whitespace", "letters")
TEXTS = st.text(
    st.one_of(
        st.sampled_from("abcé ß\t\n.,_-9"),
        st.sampled_from("漢語の東京タワーｶﾞﾊﾟか\u3099ไทยกำນຳမြန်မာ"),
        st.sampled_from("İŉﬁﷺ½´¨Å\u0301\u0316\u0334\u0345क़क\u093cকো\u1100\u1161\u11a8ㅋㅠ각"),
        st.sampled_from("\u00ad\u200b\u200d\ufeff\ufe0f\u3000\u00a0\u2028\0\u034f\u3164\u17b4"),
        st.sampled_from("òaeỤyÒAäßıİςάᾳأئةکـ\u064b\u0654\u05b0\u0307\u0342-\n\u2010"),
        # The tables may know more characters than this Python; documents have no halves of
        # surrogate pairs.
        st.characters(exclude_categories=["Cn", "Cs"]),
    ),
    max_size=12,
)


OPTIONS = st.tuples(
    st.booleans(), st.booleans(), st.sampled_from([(), ("chinese",), ("vietnamese",), FOLDS])
)


def spans_of(text: str, tokens: str | Tokenizer = "words", **settings: Any) -> list[TokenSpan]:
    return token_spans(text, Shingling(tokens=tokens, **settings))


def marked(text: str, tokens: str | Tokenizer = "words", **settings: Any) -> list[str]:
    """Return the original text of each token."""
    return [text[span.start : span.end] for span in spans_of(text, tokens, **settings)]


@settings(max_examples=500, deadline=None)
@given(TEXTS, st.sampled_from(KINDS), OPTIONS)
def test_spans_are_those_of_the_reference(text, tokens, options):
    nfkc, case_fold, fold = options
    shingling = Shingling(tokens=tokens, nfkc=nfkc, case_fold=case_fold, fold=fold)
    assert token_spans(text, shingling) == reference.token_spans(text, tokens, *options)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from([*KINDS, "code", "uncommented"]), OPTIONS)
def test_tokens_are_those_that_a_run_compares_and_ranges_never_fall(text, tokens, options):
    nfkc, case_fold, fold = options
    shingling = Shingling(tokens=tokens, nfkc=nfkc, case_fold=case_fold, fold=fold)
    spans = token_spans(text, shingling)
    compared = token_strings(pa.array([text], pa.large_string()), shingling)
    assert [span.token for span in spans] == Strings(compared.data, compared.offsets).to_list()
    for span in spans:
        assert 0 <= span.start < span.end <= len(text)
    for before, after in itertools.pairwise(spans):
        assert before.start <= after.start
        assert before.end <= after.end


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(["words", "whitespace"]))
def test_without_normalisation_a_token_is_its_range_less_transparent_characters(text, tokens):
    for span in spans_of(text, tokens, **PLAIN):
        assert reference_tokens.without_transparent(text[span.start : span.end]) == span.token


@given(st.lists(st.one_of(TEXTS, st.text(max_size=40)), min_size=1, max_size=40), OPTIONS)
def test_the_ranges_of_words_without_objects_are_those_of_the_spans(pieces, options):
    nfkc, case_fold, fold = options
    text = " ".join(pieces) * 8
    shingling = Shingling(nfkc=nfkc, case_fold=case_fold, fold=fold)
    spans = [[span.start, span.end] for span in token_spans(text, shingling)]
    assert word_ranges(text, shingling).tolist() == spans


def test_words_are_placed_in_the_original_spelling():
    text = "  Die STRASSE, the ﬁne Ｗide road."
    assert marked(text, tokens="words") == ["Die", "STRASSE", "the", "ﬁne", "Ｗide", "road"]
    assert [span.token for span in spans_of(text, tokens="words")][3:5] == ["fine", "wide"]


def test_characters_of_unspaced_scripts_are_tokens_and_digits_are_not():
    assert marked("漢字とカナ2024年", tokens="words") == [*"漢字とカナ", "2024", "年"]
    assert marked("ไทย ๒๕๖๗", tokens="words") == [*"ไทย", "๒๕๖๗"]


@pytest.mark.parametrize("ignorable", ["\u00ad", "\u200b", "\u200c", "\u034f", "\u3164", "\ufe0f"])
def test_an_ignorable_character_is_in_the_range_of_its_word_and_not_in_the_word(ignorable):
    text = f"a dis{ignorable}count{ignorable}"
    assert spans_of(text) == [(0, 1, "a"), (2, 11, "discount")]


def test_a_mark_composes_with_its_letter_past_ignorable_characters():
    assert spans_of("e\u034f\u0301\u200b", tokens="chars") == [(0, 3, "é")]


def test_composed_characters_share_the_place_of_all_their_parts():
    assert spans_of("ｶﾞe\u0301", tokens="chars") == [(0, 2, "ガ"), (2, 4, "é")]


def test_a_character_that_becomes_two_words_places_both():
    assert spans_of("½", tokens="words") == [(0, 1, "1"), (0, 1, "2")]


def test_unrelated_marks_and_letters_keep_their_own_places():
    assert spans_of("ㅋㅠ", tokens="chars")[0].end == 2  # they compose to one syllable
    assert spans_of("ㅠㅠ", tokens="chars") == [(0, 1, "\u1172"), (1, 2, "\u1172")]


def test_marks_that_change_places_leave_the_separator_before_them_out():
    assert spans_of("a\n\u0301\u0323b c") == [(0, 1, "a"), (2, 5, "\u0323\u0301b"), (6, 7, "c")]
    assert word_ranges("a\n\u0301\u0323b c", Shingling()).tolist() == [[0, 1], [2, 5], [6, 7]]


def test_a_run_of_whitespace_is_one_character_and_none_stands_at_the_ends():
    spans = spans_of(" \ta \u200d\n b ", tokens="chars")
    assert spans == [(2, 3, "a"), (3, 7, " "), (7, 8, "b")]


def test_a_null_character_counts_as_whitespace():
    assert spans_of("a\0b", tokens="whitespace") == [(0, 1, "a"), (2, 3, "b")]


def test_traditional_characters_are_simplified():
    spans = spans_of("漢語㈲", tokens="words", fold="chinese")
    assert spans == [(0, 1, "汉"), (1, 2, "语"), (2, 3, "有")]


@pytest.mark.parametrize(
    ("fold", "text", "spans"),
    [
        ("arabic", "الطَّالِبُ هنا", [(0, 9, "الطالب"), (11, 14, "هنا")]),
        ("arabic", "\u0640\u0640 x", [(3, 4, "x")]),
        ("hebrew", "שָׁלוֹם רב", [(0, 7, "שלום"), (8, 10, "רב")]),
        ("greek", "τῷ Ἅδῃ", [(0, 2, "τωι"), (3, 6, "αδηι")]),
        ("turkish", "İI ı", [(0, 2, "ii"), (3, 4, "i")]),
        ("vietnamese", "hòa kỳ", [(0, 3, "hoà"), (4, 6, "kỳ")]),
        ("german", "Müß so", [(0, 3, "muess"), (4, 6, "so")]),
        ("hyphens", "exam-\r\n  ple x", [(0, 12, "example"), (13, 14, "x")]),
    ],
    ids=["marks", "only tatweel", "points", "accents", "i", "tones", "umlauts", "hyphens"],
)
def test_folded_words_have_their_places_in_the_text(fold, text, spans):
    assert spans_of(text, fold=fold) == spans
    assert word_ranges(text, Shingling(fold=fold)).tolist() == [list(span[:2]) for span in spans]


@pytest.mark.parametrize(
    ("text", "tokens", "spans"),
    [
        ("a; # b\nb", "uncommented", [(0, 1, "a"), (1, 2, ";"), (7, 8, "b")]),
        ("a; # b\nb", "code", [(0, 1, "a"), (1, 2, ";"), (3, 4, "#"), (5, 6, "b"), (7, 8, "b")]),
        ("a '\u3000' b", "uncommented", [(0, 1, "a"), (2, 5, "'\0'"), (6, 7, "b")]),
        ("\ufeffé(\r\n'\ufeff'", "code", [(1, 2, "é"), (2, 3, "("), (5, 8, "'\ufeff'")]),
    ],
    ids=["word of a comment", "comment", "wide space in a string", "marks of the byte order"],
)
def test_tokens_of_code_have_their_places(text, tokens, spans):
    assert spans_of(text, tokens, **PLAIN) == spans


def test_invisible_characters_are_in_tokens_of_code_whose_letters_grow():
    assert spans_of("a \u200bß\u2060", "code") == [(0, 1, "a"), (2, 5, "\u200bss\u2060")]


def test_a_word_that_no_hyphen_divides_is_not_joined_once_ignorable_characters_are_dropped():
    text = "half-\n\u200bﬁne"
    assert spans_of(text, fold="hyphens") == [(0, 4, "half"), (7, 10, "fine")]
    assert word_ranges(text, Shingling(fold="hyphens")).tolist() == [[0, 4], [7, 10]]


def test_the_tokens_of_a_callable_are_found_in_order():
    text = "The cat saw the Cat"
    assert spans_of(text, tokens=str.split) == [
        (0, 3, "the"),
        (4, 7, "cat"),
        (8, 11, "saw"),
        (12, 15, "the"),
        (16, 19, "cat"),
    ]
    assert marked("ﬁne \u00bd", tokens=str.split) == ["ﬁne", "½"]


def test_a_callable_gets_the_normalised_text():
    spans = spans_of("ﬁne 漢", tokens=lambda text: [text], fold="chinese")
    assert spans == [(0, 5, "fine 汉")]


def test_tokens_with_weights_are_found_too():
    method = SimHash(tokens=lambda text: [(word, 2.0) for word in text.split()], weights="given")
    assert token_spans("One two", method) == [(0, 3, "one"), (4, 7, "two")]


def test_a_token_that_is_not_in_the_text_has_no_width():
    spans = spans_of("one two", tokens=lambda _: ["one", "missing", "", "two"])
    assert spans == [(0, 3, "one"), (3, 3, "missing"), (4, 7, "two")]


@pytest.mark.parametrize("tokens", KINDS)
def test_an_empty_text_has_no_tokens(tokens):
    assert spans_of("", tokens=tokens) == []


@pytest.mark.timing
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a" + "\u0300\u0316" * 50_000, "words"),
        ("ㅠ" * 100_000, "chars"),
        ("a" * 100_000, lambda text: (f"missing{i}" for i in range(100_000))),
        ("a" * 100_000 + "bc", lambda text: ["a", "cb"] * 50_000),
    ],
    ids=["marks", "jamo", "missing tokens", "one missing token"],
)
def test_hostile_texts_take_linear_time(text, tokens):
    start = time.perf_counter()
    assert spans_of(text, tokens=tokens)
    assert time.perf_counter() - start < 10  # quadratic time is minutes
