"""The tables agree with ``unicodedata``; without flags each character may be normalised alone."""

from __future__ import annotations

import itertools
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.features import unicode_tables as tables
from neardup.features.unicode_tables import UnicodeTables, load_tables
from neardup.settings.folds import FOLDS
from reference import tokens as reference

OPTIONS = [
    dict(zip(("nfkc", "case_fold", "fold"), values, strict=True))
    for values in itertools.product((False, True), (False, True), ((), ("chinese",), FOLDS))
]
CLASSES = [reference.SEPARATOR, reference.WORD, reference.SINGLE, reference.TRANSPARENT]


def entry_of(table: UnicodeTables, code_point: int) -> int:
    return int(table.entries[code_point])


def words_of(table: UnicodeTables, code_point: int) -> list[int]:
    """Return the entry words of what a code point becomes."""
    entry = entry_of(table, code_point)
    if not entry & tables.EXPAND:
        return [entry]
    start = entry & tables.LOW_MASK
    count = int(table.expansions[start]) & tables.COUNT_MASK
    return [int(word) for word in table.expansions[start + 1 : start + 1 + count]]


def map_alone(table: UnicodeTables, text: str) -> str:
    words = [word for character in text for word in words_of(table, ord(character))]
    return "".join(chr(word & tables.LOW_MASK) for word in words if not is_transparent(word))


def is_transparent(word: int) -> bool:
    return word >> tables.CLASS_SHIFT & tables.CLASS_MASK == tables.TRANSPARENT


def may_map_alone(table: UnicodeTables, text: str) -> bool:
    """Apply the test that the kernels apply to a document."""
    entries = [entry_of(table, ord(character)) for character in text]
    ranks = [entry >> tables.RANK_SHIFT for entry in entries if not is_transparent(entry)]
    falls = any(before > after > 0 for before, after in itertools.pairwise(ranks))
    return not falls and not any(entry & tables.COMPOSE for entry in entries)


# The characters on which the tables and the running Python may be compared. Unicode's stability
# policy fixes the normalisation of assigned characters only; the tables are older than some Pythons
# and newer than others.
ASSIGNED = [
    character for character in map(chr, range(0x110000)) if unicodedata.category(character) != "Cn"
]
# What a newer Python has and the tables have not: there a letter or mark is a SEPARATOR that maps
# to itself.
ENTRIES = tables.load_tables(nfkc=False, case_fold=False).entries
SEPARATORS = (ENTRIES >> tables.CLASS_SHIFT & tables.CLASS_MASK == tables.SEPARATOR).tolist()
UNASSIGNED_IN_TABLES = frozenset(
    character
    for character in ASSIGNED
    if SEPARATORS[ord(character)] and unicodedata.category(character)[0] in "LMN"
)
KNOWN = [character for character in ASSIGNED if character not in UNASSIGNED_IN_TABLES]
DEFAULT = load_tables(nfkc=True, case_fold=True)


def test_few_characters_are_missing_from_the_tables():
    if unicodedata.unidata_version <= tables.unicode_version():
        assert not UNASSIGNED_IN_TABLES
    else:
        assert all(ord(character) > 0x7FF for character in UNASSIGNED_IN_TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_every_character_without_flag_becomes_what_unicodedata_says(options):
    table = load_tables(**options)
    for character in KNOWN:
        if may_map_alone(table, character):
            assert map_alone(table, character) == reference.normalise(character, **options), hex(
                ord(character)
            )


def test_every_flagged_character_also_has_its_own_normal_form():
    flagged = [character for character in KNOWN if not may_map_alone(DEFAULT, character)]
    assert 200 < len(flagged) < 300
    for character in flagged:
        assert map_alone(DEFAULT, character) == reference.normalise(character, True, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"nfkc": False, "case_fold": False}, {"nfkc": True, "case_fold": True}]
)
def test_every_class_and_whitespace_bit_is_that_of_the_reference(options):
    table = load_tables(**options)
    for character in KNOWN:
        for word in words_of(table, ord(character)):
            result = chr(word & tables.LOW_MASK)
            kind = CLASSES[word >> tables.CLASS_SHIFT & tables.CLASS_MASK]
            is_space = result.isspace() or result == "\0"
            is_dropped = reference.is_dropped(result, options["nfkc"])
            expected = reference.TRANSPARENT if is_dropped else reference.class_of(result)
            assert kind == expected, hex(ord(character))
            assert bool(word & tables.WHITESPACE) == is_space, hex(ord(character))


def test_ranks_have_the_order_of_the_combining_classes():
    table = load_tables(nfkc=True, case_fold=False)
    for mark in KNOWN:
        if unicodedata.combining(mark) and unicodedata.normalize("NFKC", mark) == mark:
            assert entry_of(table, ord(mark)) >> tables.RANK_SHIFT > 0
    ranks = [
        entry_of(table, ord(mark)) >> tables.RANK_SHIFT for mark in "\u0334\u093c\u0316\u0300\u0345"
    ]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


@pytest.mark.parametrize("case_fold", [False, True])
def test_without_nfkc_no_entry_needs_its_neighbours(case_fold):
    table = load_tables(nfkc=False, case_fold=case_fold)
    assert not (table.entries & np.uint32(tables.COMPOSE)).any()
    assert not (table.entries >> np.uint32(tables.RANK_SHIFT)).any()


@pytest.mark.parametrize("options", OPTIONS)
def test_no_result_without_flag_outgrows_three_times_its_bytes(options):
    table = load_tables(**options)
    changed = np.flatnonzero(table.entries & np.uint32(tables.LOW_MASK) != np.arange(0x110000))
    for code_point in changed.tolist():
        if not entry_of(table, code_point) & tables.COMPOSE and not 0xD800 <= code_point < 0xE000:
            size = len(map_alone(table, chr(code_point)).encode("utf-8"))
            assert size <= tables.MAX_GROWTH * len(chr(code_point).encode("utf-8")), hex(code_point)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("Straße ÅNGSTRÖM İstanbul ŉ", True),
        ("L´été ½ ﬁn ¨", True),
        ("ＡＢＣ ｶﾅ 全角", True),
        ("e\u0301", False),
        ("ｶﾞ", False),
        ("\u1100\u1161", False),
        ("x\u0316\u0334", False),
        ("x\u0334\u0316", True),
        ("\ufdfa", False),
    ],
)
def test_flags_fall_on_what_composes_or_reorders(text, alone):
    assert may_map_alone(DEFAULT, text) is alone


MARKS = [character for character in KNOWN if unicodedata.combining(character)]
EXPANDING = [c for c in KNOWN if entry_of(DEFAULT, ord(c)) & tables.EXPAND]
UNFLAGGED_MARKS = [mark for mark in MARKS if not entry_of(DEFAULT, ord(mark)) & tables.COMPOSE]
COMPOSITE = [c for c in KNOWN if unicodedata.decomposition(c) and not 0xAC00 <= ord(c) < 0xD7A4]
FAVOURITES = list(
    "İıßẞΣσςﬁﬀŉǰΐΰÅÅKｶﾊﾞﾟがか\u3099\u309a각가\u1100\u1161\u11a8ㅏᅠ´¨¸¯ͺ΄ำຳ\u0345\u0344\u0f73ﷺ़क़"
)
INTERESTING = st.one_of(
    st.sampled_from(FAVOURITES),
    st.sampled_from(UNFLAGGED_MARKS),
    st.sampled_from(UNFLAGGED_MARKS),
    st.sampled_from(EXPANDING),
    st.sampled_from(COMPOSITE),
    st.sampled_from("abeio AEIOα\u03b9क"),
    st.sampled_from(KNOWN),
)
ALONE = tuple(name for name in FOLDS if name not in ("vietnamese", "hyphens"))
"""The foldings of characters that do not depend on their neighbours."""
TEXTS = st.text(INTERESTING, min_size=2, max_size=4)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(TEXTS, st.booleans(), st.sampled_from([(), ("chinese",), ALONE]))
def test_a_text_without_flags_is_the_sum_of_its_characters(text, case_fold, fold):
    table = load_tables(nfkc=True, case_fold=case_fold, fold=fold)
    if may_map_alone(table, text):
        assert map_alone(table, text) == reference.normalise(text, True, case_fold, fold)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from([(), ("chinese",), ALONE]))
def test_case_folding_alone_is_always_the_sum_of_its_characters(text, fold):
    table = load_tables(nfkc=False, case_fold=True, fold=fold)
    assert map_alone(table, text) == reference.normalise(text, False, True, fold)


@pytest.mark.slow
def test_every_unflagged_expansion_keeps_its_form_beside_every_mark():
    """The one place where the proof needs more than the quick check: an expansion that ends in a
    mark.
    """
    ends_in_mark = [c for c in EXPANDING if entry_of(DEFAULT, ord(c)) >> tables.RANK_SHIFT]
    assert len(ends_in_mark) > 50
    for character, mark in itertools.product(ends_in_mark, MARKS):
        for text in (character + mark, mark + character):
            if may_map_alone(DEFAULT, text):
                assert map_alone(DEFAULT, text) == reference.normalise(text, True, True)


def test_traditional_characters_become_simplified_ones_in_expansions_too():
    table = load_tables(nfkc=True, case_fold=True, fold=["chinese"])
    assert map_alone(table, "漢語ABC㈲㋿") == "汉语abc(有)令和"
    assert map_alone(DEFAULT, "漢語") == "漢語"
    inside = [
        c for c in EXPANDING if set(map_alone(DEFAULT, c)) & set(reference.simplified_characters())
    ]
    assert inside
    for character in inside:
        assert map_alone(table, character) == reference.normalise(
            character, True, True, ["chinese"]
        )


def test_tables_are_loaded_once_and_cannot_be_written():
    again = load_tables(nfkc=True, case_fold=True)
    assert again is DEFAULT
    with pytest.raises(ValueError, match="read-only"):
        again.entries[0] = 1
    assert [array.dtype for array in again] == [np.uint32, np.uint32]
    assert again.entries.shape == (0x110000,)


@pytest.mark.timing
def test_tables_load_in_milliseconds():
    durations = []
    for _ in range(5):
        tables._load.cache_clear()
        start = time.perf_counter()
        load_tables(nfkc=True, case_fold=True, fold=["chinese"])
        durations.append(time.perf_counter() - start)
    assert min(durations) < 0.1


@pytest.mark.parametrize("code_point", [0xD800, 0xDFFF, 0xFDD0, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF])
def test_surrogates_and_noncharacters_are_separators_that_stay_themselves(code_point):
    assert entry_of(DEFAULT, code_point) == code_point | tables.SEPARATOR << tables.CLASS_SHIFT
