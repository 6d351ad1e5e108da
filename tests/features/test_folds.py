"""Two spellings of one text, in each language whose spellings are folded: sentences as people write
them.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import SchemeError, SettingError
from neardup.features.normalise import normalise
from neardup.fingerprints.explain import keywords
from neardup.settings.folds import FOLDS
from neardup.settings.methods import MinHash, Shingling
from neardup.verify.alignment import align
from reference import tokens as reference

# Arabic, Greek, Turkish, English and the beginning of German: the Universal Declaration of Human
# Rights, article 1. Vietnamese: a sentence with the vowels whose tone marks have two places.
ARABIC = (
    "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميراً وعليهم أن يعامل "
    "بعضهم بعضاً بروح الإخاء."
)
# Genesis 1:1-2, with points and cantillation, and without.
HEBREW = (
    "בְּרֵאשִׁ֖ית בָּרָ֣א אֱלֹהִ֑ים אֵ֥ת הַשָּׁמַ֖יִם וְאֵ֥ת הָאָֽרֶץ׃ וְהָאָ֗רֶץ הָיְתָ֥ה תֹ֙הוּ֙ וָבֹ֔הוּ וְחֹ֖שֶׁךְ עַל־פְּנֵ֣י תְה֑וֹם",
    "בראשית ברא אלהים את השמים ואת הארץ׃ והארץ היתה תהו ובהו וחשך על־פני תהום",
)
GREEK = (
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι "
    "προικισμένοι με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα "
    "αδελφοσύνης."
)
# Iliad 1.1-2, with its accents and as an inscription.
POLYTONIC = (
    "μῆνιν ἄειδε θεὰ Πηληϊάδεω Ἀχιλῆος οὐλομένην, ἣ μυρί᾽ Ἀχαιοῖς ἄλγε᾽ ἔθηκε",
    "ΜΗΝΙΝ ΑΕΙΔΕ ΘΕΑ ΠΗΛΗΙΑΔΕΩ ΑΧΙΛΗΟΣ ΟΥΛΟΜΕΝΗΝ, Η ΜΥΡΙ᾽ ΑΧΑΙΟΙΣ ΑΛΓΕ᾽ ΕΘΗΚΕ",
)
TURKISH = (
    "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler "
    "ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler."
)
VIETNAMESE = (
    "Hòa bình và tự do là nền tảng; người khỏe và người già ở Thanh Hóa đều hòa thuận, thủy thủ về "
    "tòa nhà, lũy tre xõa bóng, ai cũng thỏa lòng, hoà nhã với mọi người ở Khánh Hòa.",
    "Hoà bình và tự do là nền tảng; người khoẻ và người già ở Thanh Hoá đều hoà thuận, thuỷ thủ về "
    "toà nhà, luỹ tre xoã bóng, ai cũng thoả lòng, hoà nhã với mọi người ở Khánh Hoà.",
)
GERMAN = (
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und "
    "Gewissen begabt und sollen einander im Geiste der Brüderlichkeit begegnen; größere Übel "
    "möge man öffentlich ächten.",
    "Alle Menschen sind frei und gleich an Wuerde und Rechten geboren. Sie sind mit Vernunft und "
    "Gewissen begabt und sollen einander im Geiste der Bruederlichkeit begegnen; groessere Uebel "
    "moege man oeffentlich aechten.",
)
ENGLISH = (
    "All human beings are born free and equal in dignity and rights. They are endowed with reason "
    "and conscience and should act towards one another in a spirit of brotherhood."
)


def upper_turkish(text: str) -> str:
    return text.replace("i", "İ").replace("ı", "I").upper()


def without_hamza(text: str) -> str:
    """Return a text as people type it in haste: alef without hamza, the last yeh without dots."""
    plain = text.translate(str.maketrans("أإآة", "اااه"))
    return "".join(c for c in plain if not unicodedata.combining(c))


def divided(text: str, hyphen: str, line_end: str) -> str:
    """Return a text in which each long word is divided at the end of a line."""
    words = text.split(" ")
    return " ".join(
        f"{word[:3]}{hyphen}{line_end}{word[3:]}" if word[:6].isalpha() and len(word) > 5 else word
        for word in words
    )


PAIRS = {
    "arabic marks": ("arabic", ARABIC, "".join(f"{c}\u064e" if c.isalpha() else c for c in ARABIC)),
    "arabic tatweel": ("arabic", ARABIC, ARABIC.replace("ا", "ا\u0640\u0640")),
    "arabic without hamza": ("arabic", ARABIC, without_hamza(ARABIC)),
    "persian letters": ("arabic", ARABIC, ARABIC.translate(str.maketrans("يك", "یک"))),
    "hebrew": ("hebrew", *HEBREW),
    "greek capitals": (
        "greek",
        GREEK,
        "".join(
            c
            for c in unicodedata.normalize("NFD", GREEK.upper())
            if c.isprintable() and not unicodedata.combining(c)
        ),
    ),
    "greek polytonic": ("greek", *POLYTONIC),
    "turkish capitals": ("turkish", TURKISH, upper_turkish(TURKISH)),
    "turkish capitals by a program": ("turkish", TURKISH, TURKISH.upper()),
    "vietnamese": ("vietnamese", *VIETNAMESE),
    "vietnamese capitals": ("vietnamese", VIETNAMESE[0].upper(), VIETNAMESE[1]),
    "vietnamese decomposed": (
        "vietnamese",
        unicodedata.normalize("NFD", VIETNAMESE[0]),
        VIETNAMESE[1],
    ),
    "german": ("german", *GERMAN),
    "german capitals": ("german", GERMAN[0].upper(), GERMAN[1]),
    "german decomposed": ("german", unicodedata.normalize("NFD", GERMAN[0]), GERMAN[1]),
    "hyphens": ("hyphens", ENGLISH, divided(ENGLISH, "-", "\n")),
    "hyphens of Unicode": ("hyphens", ENGLISH, divided(ENGLISH, "\u2010", "\r\n")),
    "soft hyphens": ("hyphens", ENGLISH, divided(ENGLISH, "\u00ad", " \n    ")),
    "greek hyphens": ("hyphens", GREEK, divided(GREEK, "-", "\r")),
    "chinese": (
        "chinese",
        "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。",
        "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    ),
}


@pytest.mark.parametrize(("fold", "left", "right"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("tokens", ["words", "chars"])
def test_two_spellings_of_a_text_are_one_with_the_folding_of_their_language(
    fold, left, right, tokens
):
    folded = neardup.compare(left, right, method=MinHash(tokens=tokens, ngram=3, fold=[fold]))
    plain = neardup.compare(left, right, method=MinHash(tokens=tokens, ngram=3))
    assert folded.similarity == 1.0
    assert plain.similarity < 0.9


@pytest.mark.parametrize(("fold", "left", "right"), PAIRS.values(), ids=PAIRS)
def test_all_foldings_together_do_what_each_does(fold, left, right):
    assert neardup.compare(left, right, method=MinHash(ngram=3, fold=FOLDS)).similarity == 1.0


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize(
    "text",
    [
        ENGLISH,
        "Les êtres humains naissent libres et égaux en dignité et en droits.",
        "Все люди рождаются свободными и равными",
        "すべてのひとは、うまれながらにして",
        "well-known, a 2019-\n2020 list -\nof lines",
    ],
    ids=["English", "French", "Russian", "Japanese", "hyphens that stay"],
)
def test_a_text_of_another_language_stays(fold, text):
    assert normalise(text, Shingling(fold=[fold])) == normalise(text, Shingling())


@pytest.mark.parametrize(
    ("fold", "left", "right"),
    [
        ("arabic", "مسؤول", "مسوول"),
        ("arabic", "بئر", "بير"),
        ("turkish", "çok", "cok"),
        ("turkish", "köy", "koy"),
        ("vietnamese", "ma", "má"),
        ("vietnamese", "múa", "muá"),
        ("german", "schon", "schön"),
        ("hyphens", "two-\n\nparagraphs", "twoparagraphs"),
        ("hyphens", "1-\n2", "12"),
    ],
    ids=[
        "hamza on waw",
        "hamza on yeh",
        "cedilla",
        "o",
        "tones",
        "ua",
        "umlaut against a letter",
        "a blank line",
        "digits",
    ],
)
def test_other_letters_stay_apart(fold, left, right):
    shingling = Shingling(fold=[fold])
    assert normalise(left, shingling) != normalise(right, shingling)


@pytest.mark.parametrize(
    ("fold", "text", "folded"),
    [
        ("turkish", "I İ ı i", "I I i i"),
        ("german", "Ä ß ẞ", "Ae ss SS"),
        ("vietnamese", "HÒA Òa", "HOÀ Oà"),
        ("greek", "Ὁς", "Οσ"),
    ],
)
def test_without_case_folding_capitals_stay_capitals(fold, text, folded):
    assert normalise(text, Shingling(fold=[fold], case_fold=False)) == folded


IGNORABLE = sorted(reference.DEFAULT_IGNORABLE - {"\U000e0000", "\u2065"})


@given(st.sampled_from(IGNORABLE), st.integers(0, len(ENGLISH)))
def test_an_ignorable_character_anywhere_changes_no_feature(ignorable, position):
    text = ENGLISH[:position] + ignorable + ENGLISH[position:]
    assert neardup.compare(text, ENGLISH).similarity == 1.0


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("می\u200cخواهم کتاب", "میخواهم کتاب"),
        ("co\u00adop\u00ader\u00ada\u00adtion", "cooperation"),
        ("e\u034f\u0301te\u0301", "été"),
        ("가\u3164나", "가나"),
        ("क\u094d\u200dष", "क\u094dष"),
        ("\u05e9\u05c1\u034f\u05b8", "\u05e9\u05b8\u05c1"),
    ],
    ids=["ZWNJ", "soft hyphens", "CGJ", "filler", "ZWJ", "marks that change places past a CGJ"],
)
def test_ignorable_characters_inside_words_are_dropped_as_by_nfkc_casefold(left, right):
    assert normalise(left, Shingling()) == normalise(right, Shingling())
    assert neardup.compare(left, right).similarity == 1.0


def test_invisible_characters_of_source_code_stay():
    assert normalise("a\u200bb", Shingling(tokens="code")) == "a\u200bb"


@given(st.text(st.sampled_from("ab1é漢-\u2010\u00ad \t\r\n"), max_size=30))
def test_lines_are_joined_where_the_reference_joins_them(text):
    plain = Shingling(nfkc=False, case_fold=False, tokens="code", fold=["hyphens"])
    assert normalise(text, plain) == reference.join_lines(text)


def test_a_broken_line_longer_than_its_text_takes_linear_time():
    text = "a-" + " " * 200_000 + "\n" + "-\n" * 100_000 + "b"
    assert normalise(text, Shingling(fold=["hyphens"])).endswith("b")


@pytest.mark.parametrize(
    "given", ["greek,chinese", ["greek", "chinese"], ("chinese,greek",), ["chinese", "greek"] * 2]
)
def test_foldings_are_a_set(given):
    assert MinHash(fold=given).fold == ("chinese", "greek")


def test_an_unknown_folding_is_refused_with_those_that_are_known():
    with pytest.raises(SettingError, match=r"fold must be one of 'chinese', 'arabic'.*got 'gree'"):
        MinHash(fold="gree")


def test_tags_have_no_foldings():
    with pytest.raises(SettingError, match="fold is for texts"):
        MinHash(tokens="tags", fold=["german"])


@pytest.mark.parametrize("tokens", ["letters", "chars"])
def test_texts_with_wrong_characters_are_joined_at_line_ends(tokens):
    method = neardup.method(noise=0.05, tokens=tokens)
    assert neardup.compare(ENGLISH, divided(ENGLISH, "-", "\n"), method=method).similarity == 1.0
    greek = neardup.method(noise=0.05, tokens=tokens, fold="greek")
    assert neardup.compare(GREEK, divided(GREEK.upper(), "-", "\n"), method=greek).similarity == 1.0


def with_lines(texts: list[str]) -> list[str]:
    return [divided(text, "-", "\n") for text in texts]


WORDS = ENGLISH.split()
TEXTS = [" ".join([*WORDS[i:], f"number{i}", *WORDS[:i]]) for i in range(20)]


@pytest.mark.parametrize("command", [neardup.dedup, neardup.find_pairs, neardup.cluster])
def test_a_run_says_that_many_words_are_divided_and_joins_them_on_request(command):
    texts = [*TEXTS, *with_lines(TEXTS)]
    num_divided = sum(text.count("-\n") for text in texts)
    [warning] = [one for one in command(texts).report["warnings"] if "hyphens" in one]
    assert warning == (
        f"{num_divided} words of the first 40 documents are divided by hyphens at the ends of "
        "lines, and differ from the same words in other lines. Set fold='hyphens' (--fold hyphens) "
        "to join them."
    )
    joined = command(texts, method=MinHash(fold="hyphens")).report
    assert not [one for one in joined["warnings"] if "hyphens" in one]


@pytest.mark.parametrize(
    ("texts", "method"),
    [
        (TEXTS, MinHash()),
        ([*TEXTS * 20, divided(ENGLISH, "-", "\n")], MinHash()),
        (with_lines(TEXTS)[:1], MinHash(threshold=0.9, tokens="letters")),
    ],
    ids=["no divided word", "one text of 400", "letters"],
)
def test_a_run_with_few_divided_words_says_nothing(texts, method):
    warnings = neardup.dedup(texts, method=method).report["warnings"]
    assert not [warning for warning in warnings if "hyphen" in warning]


def test_a_text_with_divided_words_is_a_duplicate_only_if_they_are_joined():
    texts = [ENGLISH, divided(ENGLISH, "-", "\n")]
    assert neardup.dedup(texts).report["counts"]["removed"] == 0
    assert neardup.dedup(texts, method=MinHash(fold="hyphens")).report["counts"]["removed"] == 1


@pytest.mark.parametrize(("fold", "left", "right"), PAIRS.values(), ids=PAIRS)
def test_an_item_in_another_spelling_is_found_in_a_corpus(fold, left, right):
    for item, text in ((left, right), (right, left)):
        document = f"first\n{text}\nlast"
        [hit] = neardup.find_contamination([item], [document], fold=[fold]).hits.to_pylist()
        assert hit["rule"] in ("perfect", "whole")
        assert hit["containment"] == 1.0
        shown = document[hit["start"] : hit["end"]]
        # The last word begins in the hit, and only signs follow.
        assert document.index(shown) == len("first\n")
        assert not any(one.isalnum() for one in text[len(shown) :])


@pytest.mark.parametrize(("fold", "left", "right"), PAIRS.values(), ids=PAIRS)
def test_a_comparison_shows_no_difference_between_two_spellings(fold, left, right):
    found = neardup.compare(f"A. {left}", f"B. {right}", method=MinHash(ngram=3, fold=[fold]))
    differing = [
        text[passage.start : passage.end]
        for text, passages in (
            (found.left, found.left_passages),
            (found.right, found.right_passages),
        )
        for passage in passages
        if not passage.shared
    ]
    assert differing == ["A. ", "B. "]
    stretches = align(found.left, found.left_passages, found.right, found.right_passages)
    assert [stretch.shared for stretch in stretches] == [False, True]
    assert "".join(stretch.right for stretch in stretches) == found.right


SENTENCES = {
    "Latin": ("les élèves étudient près du {} où naît la forêt âgée de là", "théâtre", "marché"),
    "kana": ("がっこうのせんせいはきょうも{}にこどもたちとべんきょうしています", "げんき", "ぶじ"),
    "Hangul": (
        "정부는 오늘 새로운 정책을 발표하였으며 {} 다음 달부터 시행한다",
        "의견을",
        "목소리를",
    ),
}


@pytest.mark.parametrize(("sentence", "word", "other"), SENTENCES.values(), ids=SENTENCES)
def test_decomposed_letters_are_aligned_with_composed_ones(sentence, word, other):
    """Only an exchanged word differs, and the passages that stay if the halves are exchanged are
    found, too.
    """
    left = sentence.format(word)
    for right, num_differing in ((left, 0), (sentence.format(other), 1)):
        decomposed = unicodedata.normalize("NFD", right)
        for first, second in ((left, decomposed), (decomposed, left)):
            found = neardup.compare(first, second, method=MinHash(ngram=3))
            stretches = align(found.left, found.left_passages, found.right, found.right_passages)
            assert [stretch.shared for stretch in stretches].count(False) == num_differing
            assert len(stretches) == 1 + 2 * num_differing
    half = len(left) // 2
    moved = unicodedata.normalize("NFD", f"{left[half:]} {left[:half]}")
    found = neardup.compare(left, moved, method=MinHash(ngram=3))
    stretches = align(found.left, found.left_passages, found.right, found.right_passages)
    (kept,) = (stretch for stretch in stretches if stretch.shared)
    assert len(kept.left) > len(left) / 3
    assert unicodedata.normalize("NFC", kept.right).strip() == kept.left.strip()


@pytest.mark.parametrize(("fold", "left", "right"), PAIRS.values(), ids=PAIRS)
def test_every_door_folds_alike(fold, left, right, tmp_path):
    method = MinHash(ngram=3, fold=[fold])
    assert neardup.dedup([left, right], method=method).report["counts"]["removed_exact"] == 1
    assert len(neardup.find_pairs([left, right], method=method).pairs) == 1
    signed = neardup.sign([left, right], method=method)
    assert (signed.values[0] == signed.values[1]).all()
    with neardup.Index.create(str(tmp_path / "index"), method=method) as index:
        assert index.add_if_new(left, id="left").kept
        assert not index.add_if_new(right, id="right").kept
    prints = [
        neardup.explain(text, method=neardup.SimHash(ngram=3, fold=[fold])).features
        for text in (left, right)
    ]
    assert prints[0] == prints[1]


def test_a_table_of_document_frequencies_of_another_version_is_refused_by_name():
    scheme = {"tokens": "words", "ngram": 1, "nfkc": True, "case_fold": True, "version": 2}
    table = neardup.IdfTable.from_counts({"a": 1}, num_documents=2)
    old = replace(table, scheme={**scheme, "fold_chinese": False})
    with pytest.raises(SchemeError, match=r"it has fold=None, version=2, the method .*version=3"):
        keywords("a text", idf=old)


def test_an_index_of_another_version_is_refused_by_name(tmp_path, monkeypatch):
    address = str(tmp_path / "index")
    with monkeypatch.context() as patch:
        patch.setattr("neardup.methods.minhash.FEATURES_VERSION", 2)
        neardup.Index.create(address).close()
    with pytest.raises(SchemeError, match=r"features_version=2.*this version.*features_version=3"):
        neardup.Index.open(address)
