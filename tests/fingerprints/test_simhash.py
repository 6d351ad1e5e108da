"""SimHash of texts: the examples of the literature, other programs' values, keywords, and what must
not matter.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup import IdfTable, InputError, SettingError, SimHash, compare, explain
from neardup.errors import SchemeError
from neardup.features.workspaces import Workspace
from neardup.fingerprints.explain import keywords
from neardup.fingerprints.simhash import summarise, to_integers
from neardup.fingerprints.simhash_documents import describe, scheme_of, summarise_described
from reference import shingles
from reference import simhash as reference
from reference.signed import fingerprint_of

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "é", "漢", "ß", "x" * 17]), max_size=30)
IDF = IdfTable.from_counts({"a": 90, "b": 10, "c": 1, "漢": 40}, num_documents=100)
COMMON = IdfTable.from_counts({"to": 95, "be": 80, "the": 99, "that": 60}, num_documents=100)
METHODS = st.sampled_from(
    [
        SimHash(bits=bits, **settings)
        for bits in (32, 64, 128, 256)
        for settings in (
            {},
            {"weights": "one"},
            {"ngram": 3},
            {"tokens": "chars", "ngram": 4, "weight_levels": True},
            {"weights": "tfidf", "idf": IDF},
            {"weights": "tfidf", "idf": IDF, "max_features": 2, "weight_levels": True},
            {"weights": "tfidf", "idf": "lines", "max_features": 0},
            {"max_features": 3},
            {
                "hash": lambda data: (
                    int.from_bytes(data[:40].ljust(40, b"\7"), "little") * 0x9E3779B97F4A7C15F39CC
                )
            },
        )
    ]
    + [SimHash(hash="fnv1"), SimHash(hash="fnv1a"), SimHash(hash="md5", bits=128)]
    + [SimHash(scheme=name) for name in ("mfonda", "mfonda-unicode", "simhash")]
)
TEXTS = st.lists(st.text(st.sampled_from("ab cdé漢 \n.,—\u200b"), max_size=30), max_size=6)


def bits_of(table: dict[str, str]) -> SimHash:
    """Return the method whose feature hashes are given as binary digits."""
    return SimHash(bits=32, hash=lambda feature: int(table[feature.decode()], 2))


# Literature.


def test_the_worked_example_of_three_words_in_six_bits():
    """Hashes 010111, 000101 and 100111 weigh 5, 3 and 1: the sums are [-7, 1, -9, 9, 3, 9], the
    fingerprint 010111.
    """
    table = {"first": "010111", "second": "000101", "third": "100111"}
    alone = [
        explain([(feature, weight)], method=bits_of(table)).sums[-6:]
        for feature, weight in (("first", 5), ("second", 3), ("third", 1))
    ]
    assert alone == [(-5, 5, -5, 5, 5, 5), (-3, -3, -3, 3, -3, 3), (1, -1, -1, 1, 1, 1)]
    whole = explain([("first", 5), ("second", 3), ("third", 1)], method=bits_of(table))
    assert whole.sums[-6:] == (-7, 1, -9, 9, 3, 9)
    assert f"{whole.fingerprint:06b}" == "010111"


def test_the_worked_example_of_two_words_of_the_segmented_sentence():
    """CSDN 100101 weighs 4 and 博客 101011 weighs 5: the sums are [9, -9, 1, -1, 1, 9], the
    fingerprint 101011.
    """
    explained = explain(
        [("CSDN", 4), ("博客", 5)], method=bits_of({"CSDN": "100101", "博客": "101011"})
    )
    assert explained.sums[-6:] == (9, -9, 1, -1, 1, 9)
    assert f"{explained.fingerprint:06b}" == "101011"
    assert explained.features == ("CSDN", "博客")
    assert explained.hashes == (0b100101, 0b101011)


@pytest.mark.parametrize("bits", [32, 64, 128, 256])
def test_the_segmented_sentence_with_its_weights(bits):
    words = ["CSDN", "博客", "结构", "之", "法", "算法", "道", "的", "作者", "July"]
    weights = [4, 5, 3, 1, 2, 1, 2, 1, 5, 5]
    pairs = list(zip(words, weights, strict=True))
    hashed = [
        (reference.extend(shingles.hash_shingle([shingles.hash_token(word)]), bits), w)
        for word, w in pairs
    ]
    expected = reference.sums(hashed, bits)
    explained = explain(pairs, method=SimHash(bits=bits))
    assert list(explained.sums) == expected
    assert explained.weights == tuple(weights)
    assert (
        fingerprint_of(pairs, method=SimHash(bits=bits))
        == explained.fingerprint
        == reference.reduce(expected)
    )


def test_a_hash_of_ones_own_of_128_bits():
    """The rolling hash of SimHash tutorials, after that of CPython 2: x = x * 1000003 ^ character,
    at last ^ length.
    """

    def string_hash(data: bytes) -> int:
        source = data.decode()
        x = ord(source[0]) << 7
        for character in source:
            x = ((x * 1000003) ^ ord(character)) & (2**128 - 1)
        return x ^ len(source)

    text = "This is a test string for testing"
    hashed = [(string_hash(word.encode()), 1) for word in text.casefold().split()]
    expected = reference.reduce(reference.sums(hashed, 128))
    assert fingerprint_of(text, method=SimHash(bits=128, hash=string_hash)) == expected
    assert explain(text, method=SimHash(bits=128, hash=string_hash)).hashes == tuple(
        value for value, _ in hashed
    )


# Other programs.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("this is a test phrase", 0x8C3A5F7E9ECB3F35),
        ("this is a test phrass", 0x8C3A5F7E9ECB3F21),
        ("foo bar", 0xD8DBE7186BAD3DB3),
    ],
)
def test_values_of_mfonda_simhash(text, value):
    """From the README and the tests of github.com/mfonda/simhash."""
    assert fingerprint_of(text, method=SimHash(scheme="mfonda")) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("this is a test phrase", 0x8C3A5F7E9ECB3F35),
        ("this is a test phrass", 0x8C3A5F7E9ECB3F21),
        ("foo bar", 0xD8DBE7186BAD3DB3),
        ("la fin d'un bel après-midi d'été", 0x58DBBD1FEFAB774A),
        ("la fin d’un bel après-midi d’été", 0x9AF3D51DAEA9379A),
        ("你好，世界 2024 年", 0xD7FBFCDA2A303003),
        ("Ünïcode_word-x 42 don't", 0xCDD57AEEEAF5F7F5),
        ("e\u0301te\u0301", 0x17C7C17DCFE45A17),
        ("ÅNGSTRÖM Straße", 0x13FF7B5B3A7DD7DB),
        ("ΑΣ ﬁnal İx ½ x²", 0x6B77FF6FA77FFF7A),
    ],
)
def test_values_of_unicode_words_in_mfonda_simhash(text, value):
    """What `Simhash(NewUnicodeWordFeatureSet(text, norm.NFC))` of github.com/mfonda/simhash
    prints.
    """
    assert fingerprint_of(text, method=SimHash(scheme="mfonda-unicode")) == value


@pytest.mark.parametrize("text", ["", "漢字", "—…", " \n"])
@pytest.mark.parametrize("scheme", ["native", "mfonda", "mfonda-unicode", "simhash"])
def test_a_text_without_features_has_none_and_no_fingerprint(text, scheme):
    """mfonda/simhash gives ffffffffffffffff to every text without ASCII words, so that all of them
    are alike.
    """
    method = SimHash(scheme=scheme)
    has_features = text == "漢字" and scheme != "mfonda"
    described = describe(pa.array([text, "a word", None]), method)
    offsets = described.shingles.offsets
    assert (offsets[1] > 0) == has_features
    assert offsets[1] < offsets[2] == offsets[3]
    if not has_features:
        assert summarise_described(described, method)[0].tolist() == [0]
        with pytest.raises(
            InputError,
            match=r"There are no features, so there is no fingerprint: got .* Leave such texts",
        ):
            explain(text, method=method)


@given(st.lists(st.sampled_from(["a", "b", "cc"]), min_size=1, max_size=9))
def test_mfonda_gives_even_votes_a_one_and_the_package_simhash_a_zero(words):
    hashes = [(reference.fnv(word.encode(), True), 1) for word in words]
    expected = reference.reduce(reference.sums(hashes, 64), 1)
    assert fingerprint_of(" ".join(words), method=SimHash(scheme="mfonda")) == expected


# Native fingerprints of version 2.


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({}, 0x6B54619E2BA18DC4),
        ({"bits": 32}, 0x2BA18DC4),
        ({"bits": 128}, 0xF1AA3C41C763263B6B54619E2BA18DC4),
        ({"bits": 256}, 0x214056BB4F8A470E177E379BAFFA3FB8F1AA3C41C763263B6B54619E2BA18DC4),
        ({"weights": "one"}, 0x6F546D9E2BA19FD4),
        ({"tokens": "chars", "ngram": 4}, 0xEA995E6071CDCB7C),
        ({"tokens": "whitespace", "ngram": 2}, 0x71B22BF2B794A33C),
        ({"max_features": 5}, 0x6BD753BC60F146D5),
        ({"weight_levels": True}, 0x6B54639C62F10CC5),
        ({"weights": "tfidf", "idf": "lines"}, 0x47546D9E2BB10FD4),
        ({"weights": "tfidf", "idf": COMMON}, 0x47506C9E2BA09FD6),
        ({"hash": "fnv1a"}, 0x8E4AD0FA542C164),
        ({"hash": "md5", "bits": 128}, 0x81046E2D05BE29B319CDDF5F47018A19),
    ],
)
def test_fingerprints_of_version_2_never_change(settings, value):
    """Other bits are another version of the scheme; the values are those of the reference."""
    text = (
        "To be, or not to be:\nthat is the question\nWhether 'tis nobler\nin the mind — Straße, "
        "½, 漢字"
    )
    assert fingerprint_of(text, method=SimHash(**settings)) == value


# What must hold for any text.


def native(text: str, method: SimHash) -> int:
    """Return a fingerprint by the reference: native hashes, any weights."""
    features = reference.features_of(text, str(method.tokens), method.ngram)
    frequencies: dict[int, int] = {}
    total = 0
    if method.idf == "lines":
        lines = [
            set(reference.features_of(line, str(method.tokens), method.ngram))
            for line in text.split("\n")
        ]
        frequencies = {one: sum(one in line for line in lines) for one in features}
        total = sum(bool(line) for line in lines)
    elif isinstance(method.idf, IdfTable):
        frequencies = dict(zip(method.idf.hashes.tolist(), method.idf.counts.tolist(), strict=True))
        total = method.idf.num_documents
    weights = reference.keep_top(
        reference.weigh(features, method.weights, frequencies, total), method.num_features
    )
    return reference.fingerprint(
        reference.levels(weights) if method.weight_levels else weights, method.bits
    )


@given(TEXTS, METHODS)
@example(["a b\na c\n\nd d", "", "—"], SimHash(weights="tfidf", idf="lines"))
def test_fingerprints_are_those_of_the_reference(texts, method):
    if method.hash != "native" or method.scheme != "native":
        return
    table = method.idf if isinstance(method.idf, IdfTable) else None
    fingerprints = summarise_described(
        describe(pa.array(texts, pa.string()), method), method, table
    )
    assert to_integers(fingerprints) == [native(text, method) for text in texts]


@given(TEXTS, METHODS, st.integers(1, 5))
def test_batches_slices_nulls_and_threads_do_not_change_a_fingerprint(texts, method, size):
    table = method.idf if isinstance(method.idf, IdfTable) else None
    array = pa.array([*texts, None, "a b"], pa.large_string())
    whole = describe(array, method)
    batches = [array[start : start + size] for start in range(0, len(array), size)]
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda batch: describe(batch, method, Workspace()), batches))
        fingerprints = list(pool.map(lambda part: summarise_described(part, method, table), parts))
    assert (
        np.concatenate(fingerprints).tolist() == summarise_described(whole, method, table).tolist()
    )
    assert [
        value for part in parts for value in part.shingles.hashes.tolist()
    ] == whole.shingles.hashes.tolist()


@given(TEXTS, METHODS)
def test_one_text_alone_and_explained_has_the_fingerprint_of_the_batch(texts, method):
    table = method.idf if isinstance(method.idf, IdfTable) else None
    described = describe(pa.array(texts, pa.string()), method)
    values = to_integers(summarise_described(described, method, table))
    for place, text in enumerate(texts):
        if described.shingles.offsets[place] == described.shingles.offsets[place + 1]:
            continue
        value = values[place]
        explained = explain(text, method=method, idf=table)
        assert fingerprint_of(text, method=method) == explained.fingerprint == value
        weighed = list(zip(explained.hashes, explained.weights, strict=True))
        assert list(explained.sums) == reference.sums(weighed, method.bits)
        assert value == reference.reduce(explained.sums, 0 if method.scheme == "simhash" else 1)


@given(WORDS.filter(bool), METHODS, st.randoms(use_true_random=False))
def test_the_order_of_words_does_not_matter(words, method, randomness):
    if method.ngram > 1 or method.scheme == "simhash":
        return
    shuffled = list(words)
    randomness.shuffle(shuffled)
    if method.scheme == "native" or any(word.isascii() for word in words):
        assert fingerprint_of(" ".join(words), method=method) == fingerprint_of(
            " ".join(shuffled), method=method
        )


@given(WORDS.filter(bool), METHODS)
def test_a_text_said_twice_has_the_same_fingerprint(words, method):
    if method.ngram > 1 or method.scheme == "simhash" or method.idf == "lines":
        return
    if method.scheme == "native" or any(word.isascii() for word in words):
        assert fingerprint_of(" ".join(words * 2), method=method) == fingerprint_of(
            " ".join(words), method=method
        )


@pytest.mark.parametrize("tie", [0, 1])
def test_votes_are_counted_right_for_any_number_of_features_up_to_5000(tie):
    values = np.random.default_rng(1).integers(0, 2**64, 5000, dtype=np.uint64)
    # A bit that nearly all have, one that nearly none has, and one in the balance.
    values[7:] |= np.uint64(1 << 5)
    values[9:] &= ~np.uint64(1 << 9)
    values = (values & ~np.uint64(1 << 60)) | (
        np.arange(5000, dtype=np.uint64) % np.uint64(2) << np.uint64(60)
    )
    bits = (values[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    ones = np.concatenate([np.zeros((1, 64), np.int64), np.cumsum(bits, axis=0, dtype=np.int64)])
    weights = np.uint64(1) << np.arange(64, dtype=np.uint64)
    for count in range(5001):
        is_tie = 2 * ones[count] == count
        expected = (2 * ones[count] > count) | (is_tie & bool(tie and count))
        fingerprint = summarise(values, np.array([0, count]), 64, tie=tie)[0, 0]
        assert fingerprint == np.sum(weights[expected], dtype=np.uint64), count


# Features that are given.


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "B", "c d", "漢"]), st.integers(-5, 300)),
        min_size=1,
        max_size=12,
    )
)
def test_given_features_are_taken_as_they_are_and_weights_of_repeated_ones_add_up(pairs):
    merged: dict[str, int] = {}
    for feature, weight in pairs:
        merged[feature] = merged.get(feature, 0) + weight
    assert (
        fingerprint_of(pairs) == fingerprint_of(list(merged.items())) == fingerprint_of(pairs[::-1])
    )


def test_a_tokenizer_can_weigh_its_features():
    def weigh(text: str) -> list[tuple[str, float]]:
        return [(word, len(word)) for word in text.split()]

    method = SimHash(tokens=weigh, weights="given")
    text = "to be or not to be"
    pairs = [("to", 4), ("be", 4), ("or", 2), ("not", 3)]
    assert (
        fingerprint_of(text, method=method) == fingerprint_of(weigh(text)) == fingerprint_of(pairs)
    )
    fingerprints = summarise_described(describe(pa.array([text, ""]), method), method)
    assert to_integers(fingerprints) == [fingerprint_of(weigh(text)), 0]


@pytest.mark.parametrize(
    "pair", ["ab", "abc", ("a",), ("a", "b"), (1, 2), ("a", float("nan")), ("a", float("inf")), 3]
)
def test_what_is_no_feature_with_a_weight_is_refused(pair):
    method = SimHash(tokens=lambda text: [("ok", 1), pair], weights="given")
    with pytest.raises(
        InputError,
        match=r"must be pairs of a string and a finite number: got .* Give an iterable of",
    ):
        fingerprint_of("text", method=method)


def test_a_tokenizer_that_returns_nothing_is_refused():
    method = SimHash(tokens=lambda text: None, weights="given")
    with pytest.raises(InputError, match=r"must be pairs .*: got None from .* Give an iterable of"):
        fingerprint_of("text", method=method)


def test_a_feature_that_is_no_unicode_text_is_refused_with_the_reason():
    method = SimHash(tokens=lambda text: [("\ud800", 1)], weights="given")
    with pytest.raises(InputError, match=r"A feature must be Unicode text: .* surrogates"):
        fingerprint_of("text", method=method)


def test_sums_beyond_the_range_of_numbers_are_shown_as_infinite():
    weighted = [("a", 1e308), ("b", 1e308), ("c", 1e308)]
    assert math.inf in map(abs, explain(weighted, method="simhash").sums)


def test_n_grams_have_no_weights_of_ones_own():
    with pytest.raises(SettingError, match=r"weighs single features: got ngram=2"):
        SimHash(tokens=lambda text: [("a", 1)], weights="given", ngram=2)


def test_two_lambdas_are_two_schemes():
    first = SimHash(tokens=lambda text: text.split())
    second = SimHash(tokens=lambda text: text.split()[::-1])
    assert scheme_of(first) != scheme_of(second)
    assert scheme_of(first) == scheme_of(replace(first))


def test_a_threshold_without_what_it_is_for_is_refused():
    with pytest.raises(
        SettingError, match=r"threshold requires confirm='jaccard': got threshold=0.7"
    ):
        SimHash(confirm="hamming", threshold=0.7)


def test_an_unweighted_feature_must_be_a_string():
    with pytest.raises(InputError, match=r"The tokenizer must return strings: got 1 from"):
        fingerprint_of("text", method=SimHash(tokens=lambda text: ["a", 1], hash="md5"))


def test_a_token_with_a_lone_surrogate_is_refused():
    with pytest.raises(InputError, match=r"Tokens must be Unicode text: .*surrogates not allowed"):
        fingerprint_of("text", method=SimHash(tokens=lambda text: ["a\ud800"], hash="md5"))


# TF-IDF.


def test_keywords_are_the_weightiest_features_first():
    table = IdfTable.from_counts({"the": 900, "cat": 9, "sat": 99}, num_documents=1000)
    found = keywords("The cat sat; the cat SAT, the mat", table)
    assert [word for word, _ in found] == ["cat", "mat", "sat", "the"]
    assert dict(found) == pytest.approx(
        {"cat": 9.2103, "mat": 6.9078, "sat": 4.6052, "the": 0.3129}, abs=1e-3
    )
    assert keywords("The cat sat; the cat SAT, the mat", table, top=2) == found[:2]
    assert keywords("...", table) == []


def test_without_a_table_the_lines_of_the_text_are_the_documents():
    found = dict(keywords("the cat\nthe dog\n\nthe end\nthe dog"))
    # Four lines with words: log(4 / 2) for cat and end, 2 log(4 / 3) for dog, and log(4 / 5) < 0.01
    # for the.
    assert found == pytest.approx(
        {"cat": 0.6931, "end": 0.6931, "dog": 0.5754, "the": 0.04}, abs=1e-3
    )


def test_an_explanation_says_what_every_step_gave():
    explained = explain("the cat the dog", method=SimHash(weights="tfidf", idf=IDF, bits=64))
    assert explained.features == ("the", "cat", "dog")
    assert explained.counts == (2, 1, 1)
    assert explained.idf == pytest.approx([4.6052] * 3, abs=1e-3)
    assert explained.weights == pytest.approx([9.2103, 4.6052, 4.6052], abs=1e-3)
    assert len(explained.sums) == explained.bits == 64
    assert explain("the cat", method=SimHash()).idf is None


def test_top_and_levels_show_in_an_explanation():
    assert set(explain("a a a b b c d", method=SimHash(max_features=2)).features) == {"a", "b"}
    assert explain("a a a b b c d", method=SimHash(weight_levels=True)).weights == (4, 3, 1, 1)


def test_frequencies_of_a_corpus_need_a_table():
    with pytest.raises(SettingError, match=r"idf='corpus'.*Pass a"):
        explain("a b c", method=SimHash(weights="tfidf"))


def test_a_table_of_other_features_is_refused():
    with pytest.raises(
        SchemeError, match=r"counts other features: it has ngram=1, the method ngram=2"
    ):
        fingerprint_of("a b c", method=SimHash(weights="tfidf", idf=IDF, ngram=2))


def test_a_table_can_be_named_by_its_path(tmp_path):
    IDF.save(tmp_path / "idf.parquet")
    by_path = SimHash(weights="tfidf", idf=str(tmp_path / "idf.parquet"))
    assert fingerprint_of("a b c", method=by_path) == fingerprint_of(
        "a b c", method=SimHash(weights="tfidf", idf=IDF)
    )


@pytest.mark.parametrize(
    "settings", [{"weights": "tfidf", "idf": "lines"}, {"weights": "given", "tokens": str.split}]
)
def test_features_without_weights_are_weighed_by_what_is_known_of_them(settings):
    with pytest.raises(SettingError, match=r"Features without weights .* Pass pairs"):
        explain(["a", "b"], method=SimHash(**settings))


# Schemes.


def test_two_settings_that_give_different_bits_are_two_schemes():
    settings: list[dict[str, Any]] = [
        {},
        {"bits": 32},
        {"ngram": 2},
        {"tokens": "chars"},
        {"tokens": str.split},
        {"tokens": str.splitlines},
        {"weights": "one"},
        {"weights": "tfidf"},
        {"weights": "tfidf", "idf": "lines"},
        {"max_features": 5},
        {"weight_levels": True},
        {"hash": "md5"},
        {"hash": "fnv1"},
        {"hash": hash},
        {"scheme": "mfonda"},
        {"scheme": "mfonda-unicode"},
        {"scheme": "simhash"},
        {"nfkc": False},
        {"case_fold": False},
        {"fold": ("chinese",)},
    ]
    schemes = [scheme_of(SimHash(**one)) for one in settings]
    assert all(schemes[i] != schemes[j] for i in range(len(schemes)) for j in range(i))
    tfidf = SimHash(weights="tfidf")
    assert scheme_of(tfidf, "0123456789ab") != scheme_of(tfidf, "ba9876543210")


@pytest.mark.parametrize(
    "settings", [{"max_distance": 9}, {"confirm": "jaccard"}, {"threshold": 0.9}, {"num_blocks": 6}]
)
def test_settings_of_the_search_are_no_part_of_the_scheme(settings):
    assert scheme_of(SimHash(**settings)) == scheme_of(SimHash())


# The vector space model: the cosine of the weights of two texts.


def cosine(left: dict[str, float], right: dict[str, float]) -> float:
    product = sum(weight * right.get(feature, 0.0) for feature, weight in left.items())
    lengths = [math.sqrt(sum(w * w for w in side.values())) for side in (left, right)]
    return product / (lengths[0] * lengths[1])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weights": "one"},
        {"ngram": 2, "bits": 128},
        {"weights": "tfidf", "idf": IDF, "max_features": 0},
        {"weights": "tfidf", "idf": IDF, "max_features": 3},
        {"weights": "tfidf", "idf": "lines", "weight_levels": True},
        {"scheme": "mfonda"},
    ],
    ids=["tf", "one", "pairs of words", "tfidf", "top 3", "levels", "mfonda"],
)
def test_the_weighted_cosine_is_that_of_the_weights_that_explain_shows(settings):
    method = SimHash(**settings)
    texts = ("a cat sat on a mat\na cat", "the cat sat\non the mat, the cat and a hat")
    found = [explain(text, method=method) for text in texts]
    weights = [dict(zip(one.features, one.weights, strict=True)) for one in found]
    measures = compare(*texts, method=method).measures
    assert measures.weighted_cosine == pytest.approx(cosine(*weights), rel=1e-12)


def test_the_tfidf_cosine_worked_by_hand():
    """The idf of `cat` is ln(100 / 10), of `the` 0.01, the floor, instead of ln(100 / 100)."""
    table = IdfTable.from_counts({"cat": 9, "the": 99}, num_documents=100)
    method = SimHash(weights="tfidf", idf=table)
    measures = compare("cat cat the", "cat the the", method=method).measures
    rare = reference.idf(9, 100)
    product = 2 * rare * rare + 0.01 * 0.02
    lengths = math.hypot(2 * rare, 0.01) * math.hypot(rare, 0.02)
    assert measures.weighted_cosine == pytest.approx(product / lengths, rel=1e-12)


@pytest.mark.parametrize("texts", [("", "a"), ("a", "")])
def test_a_text_without_features_has_no_weighted_cosine(texts):
    assert compare(*texts, method="simhash").measures.weighted_cosine is None
