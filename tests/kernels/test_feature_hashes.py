"""Hashes of other programs are theirs, and features are hashed as the strings they are."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup import InputError, SimHash, explain
from neardup.features.described import distinct_features
from neardup.features.feature_strings import Strings, hash_features, strings_of, token_strings
from neardup.features.shingles import shingle_documents
from neardup.fingerprints.simhash import to_integers
from neardup.fingerprints.simhash_documents import describe, summarise_described
from reference import shingles
from reference import simhash as reference

# From the test vectors of the FNV authors (Fowler, Noll and Vo, test_fnv.c): FNV-1, FNV-1a.
FNV_VECTORS = [
    (b"", 0xCBF29CE484222325, 0xCBF29CE484222325),
    (b"a", 0xAF63BD4C8601B7BE, 0xAF63DC4C8601EC8C),
    (b"b", 0xAF63BD4C8601B7BD, 0xAF63DF4C8601F1A5),
    (b"fo", 0x08326207B4EB2F34, 0x08985907B541D342),
    (b"foo", 0xD8CBC7186BA13533, 0xDCB27518FED9D577),
    (b"foob", 0x0378817EE2ED65CB, 0xDD120E790C2512AF),
    (b"fooba", 0xD329D59B9963F790, 0xCAC165AFA2FEF40A),
    (b"foobar", 0x340D8765A4DDA9C2, 0x85944171F73967E8),
]
# RFC 1321, appendix A.5.
MD5_VECTORS = [
    (b"", 0xD41D8CD98F00B204E9800998ECF8427E),
    (b"a", 0x0CC175B9C0F1B6A831C399E269772661),
    (b"abc", 0x900150983CD24FB0D6963F7D28E17F72),
    (b"message digest", 0xF96B697D7CB7938D525A2F31AAF161D0),
    (b"abcdefghijklmnopqrstuvwxyz", 0xC3FCD3D76192E4007DFB496CCA67E13B),
    (
        b"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
        0x57EDF4A22BE3C955AC49DA2E2107B67A,
    ),
]
TEXTS = st.lists(
    st.text(st.sampled_from("ab' \u0301é漢字İK½ﬁ\u200b:/.\n_ß"), max_size=25), max_size=5
)


def packed(features: list[bytes]) -> Strings:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in features])]).astype(np.int64)
    return Strings(np.frombuffer(b"".join(features), np.uint8), offsets)


def hashed(features: list[bytes], function, num_words: int = 1) -> list[int]:
    keys = np.array([features.index(feature) for feature in features], np.uint64)
    return to_integers(hash_features(packed(features), keys, function, num_words))


def test_fnv_gives_the_vectors_of_its_authors():
    features = [feature for feature, _, _ in FNV_VECTORS]
    assert hashed(features, "fnv1") == [first for _, first, _ in FNV_VECTORS]
    assert hashed(features, "fnv1a") == [second for _, _, second in FNV_VECTORS]


def test_md5_gives_the_vectors_of_its_rfc_and_their_lower_half():
    features = [feature for feature, _ in MD5_VECTORS]
    assert hashed(features, "md5", 2) == [digest for _, digest in MD5_VECTORS]
    assert hashed(features, "md5") == [digest % 2**64 for _, digest in MD5_VECTORS]


@given(st.lists(st.binary(max_size=200), max_size=8))
@example([bytes(range(256)) * 3])
@example([b"x" * size for size in (54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128)])
def test_md5_gives_what_python_gives(features):
    expected = [int.from_bytes(hashlib.md5(one).digest(), "big") for one in features]
    assert hashed(features, "md5", 2) == expected
    assert hashed(features, "md5") == [digest % 2**64 for digest in expected]


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_fnv_gives_what_the_reference_gives(features):
    assert hashed(features, "fnv1") == [reference.fnv(one, True) for one in features]
    assert hashed(features, "fnv1a") == [reference.fnv(one, False) for one in features]


@given(
    st.lists(st.sampled_from([b"", b"a", b"bc", b"\xff"]), max_size=8), st.sampled_from([1, 2, 4])
)
def test_a_callable_is_called_once_for_each_feature_and_its_lower_bits_count(features, num_words):
    calls = []

    def function(data: bytes) -> int:
        calls.append(data)
        return int.from_bytes(hashlib.sha512(data).digest(), "big")

    expected = [
        int.from_bytes(hashlib.sha512(one).digest(), "big") % 2 ** (64 * num_words)
        for one in features
    ]
    assert hashed(features, function, num_words) == expected
    assert sorted(calls) == sorted(set(features))


@pytest.mark.parametrize("value", [-1, 1.0, b"abcdefgh", None, True, "1"])
def test_a_callable_must_return_an_integer_of_0_or_more(value):
    with pytest.raises(
        InputError,
        match=r"must be an integer of 0 or more: got .* for the feature b'a'\. Return an",
    ):
        hashed([b"a"], lambda _: value)


@given(TEXTS, st.sampled_from(["words", "chars", "whitespace"]), st.integers(1, 4), st.booleans())
@example(["e\u0301te\u0301 a", "a b", "", "e\u0301"], "words", 2, True)
def test_features_are_the_joined_tokens_that_their_hashes_stand_for(
    texts, tokens, ngram, normalised
):
    method = SimHash(tokens=tokens, ngram=ngram, nfkc=normalised, case_fold=normalised)
    array = pa.array(texts, pa.string())
    described = shingle_documents(array, method)
    features = distinct_features(described.hashes, described.offsets)
    strings = strings_of(
        token_strings(array, method), method, features, described.offsets
    ).to_list()
    separator = "" if tokens == "chars" else " "
    for document, text in enumerate(texts):
        cut = shingles.tokens_of(text, tokens, normalised, normalised)
        expected = {
            shingles.hash_shingle(shingles.token_hashes(run, tokens)): separator.join(run)
            for run in shingles.ngrams(cut, ngram)
        }
        span = slice(features.offsets[document], features.offsets[document + 1])
        assert dict(zip(features.hashes[span].tolist(), strings[span], strict=True)) == expected


@given(TEXTS)
def test_batches_and_slices_do_not_change_the_features(texts):
    method = SimHash(hash="fnv1a", ngram=2)
    array = pa.array(["x y", *texts, None], pa.large_string())
    whole = describe(array, method)
    hashes, offsets, *_ = whole.shingles
    fingerprints = summarise_described(whole, method)
    for place in range(len(array)):
        one = describe(array[place : place + 1], method)
        assert summarise_described(one, method).tolist() == fingerprints[place : place + 1].tolist()
        assert one.shingles.hashes.tolist() == hashes[offsets[place] : offsets[place + 1]].tolist()


def test_feature_strings_reach_the_hash_as_utf_8():
    assert explain("été été 漢", method=SimHash(hash="md5", bits=128)).hashes == tuple(
        int.from_bytes(hashlib.md5(one.encode()).digest(), "big") for one in ("été", "漢")
    )
