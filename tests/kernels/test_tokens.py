"""The text kernels hash the tokens of the reference, whatever the layout of the bytes."""

from __future__ import annotations

import os
import random
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from neardup.arrays import flatten_strings
from neardup.features.shingles import _MODES, _tables, shingle_documents
from neardup.features.workspaces import Workspace
from neardup.kernels import tokens as kernel
from neardup.kernels.token_arrays import Buffers, Shingles, Text, make_buffers
from neardup.settings.folds import FOLDS
from neardup.settings.methods import MinHash
from reference import shingles as reference
from reference.sets import jaccard

JIT_IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
TEXTS = st.text(
    st.one_of(
        st.sampled_from("ab1_ \t\n.,-é ß"),
        st.sampled_from("a1 \n:{;}()[\"'`\\#/*=<>"),
        st.sampled_from("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "),
        st.sampled_from("漢語の東京タワーｶﾞﾊﾟか\u3099ไทยกำນຳမြန်မာ"),
        st.sampled_from("İŉﬁﷺ½´¨Å\u0301\u0316\u0334\u0345क़क\u093cকো\u1100\u1161\u11a8ㅋㅠ각㍿㌀"),
        st.sampled_from("\u00ad\u200b\u200d\ufeff\ufe0f\u3000\u00a0\u2028\0\u034f\u3164\u17b4"),
        st.sampled_from("òaeỤyÒAäßıİςάᾳأئةکـ\u064b\u0654\u05b0\u0307\u0342-\n\u2010ａ"),
        st.characters(exclude_categories=["Cn", "Cs"]),
    ),
    max_size=90,
)
KINDS = st.sampled_from(sorted(reference.TOKENISERS))
METHODS = st.builds(
    MinHash,
    tokens=KINDS,
    ngram=st.integers(1, 5),
    nfkc=st.booleans(),
    case_fold=st.booleans(),
    fold=st.sampled_from([(), ("chinese",), ("vietnamese", "german"), FOLDS]),
)


def tokens_of(text: str | None, method: MinHash) -> tuple[str, ...]:
    return reference.tokens_of(text, method.tokens, method.nfkc, method.case_fold, method.fold)


def rows(result) -> list[list[int]]:
    """Return the shingle hashes of each document."""
    return [
        result.hashes[start:stop].tolist()
        for start, stop in zip(result.offsets, result.offsets[1:], strict=False)
    ]


def shingled(texts, method: MinHash = MinHash(), kind: pa.DataType = pa.large_string()):  # noqa: B008
    return shingle_documents(pa.array(texts, kind), method)


@given(st.lists(TEXTS, max_size=4), METHODS)
@example(["", "İstanbul ŉ", "ｶﾞ", "a\0b"], MinHash(ngram=2))
@example(["x" * 63 + " " + "y" * 64, "㍿㍿㍿ ㌀", "dis\u00adcount"], MinHash(ngram=1))
def test_shingles_and_content_are_those_of_the_reference(texts, method):
    result = shingled(texts, method)
    tokens = [tokens_of(text, method) for text in texts]
    assert rows(result) == [
        reference.shingle_hashes(one, method.ngram, method.tokens) for one in tokens
    ]
    expected = [
        reference.hash_content(reference.token_hashes(one, method.tokens)) for one in tokens
    ]
    assert [tuple(row) for row in result.content.tolist()] == expected


@given(TEXTS, TEXTS, METHODS)
@example("A b, c", "a B c!", MinHash(ngram=2))
def test_contents_are_equal_when_the_tokens_are_and_only_then(left, right, method):
    content = shingled([left, right], method).content.tolist()
    assert (content[0] == content[1]) == (tokens_of(left, method) == tokens_of(right, method))


@given(
    st.lists(st.sampled_from("abc"), max_size=12),
    st.lists(st.sampled_from("abc"), max_size=12),
    st.integers(1, 5),
)
def test_the_jaccard_of_the_hashes_is_that_of_the_ngrams(left, right, ngram):
    hashes = [
        set(row) for row in rows(shingled([" ".join(left), " ".join(right)], MinHash(ngram=ngram)))
    ]
    ngrams = [set(reference.ngrams(words, ngram)) for words in (left, right)]
    assert [len(one) for one in hashes] == [len(one) for one in ngrams]
    assert jaccard(*hashes) == jaccard(*ngrams)


@pytest.mark.parametrize("kind", sorted(reference.TOKENISERS))
@pytest.mark.parametrize(
    "name",
    [
        "en_licenses",
        "zh_ts",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("zh_laws", "zh_poetry")),
    ],
)
def test_real_texts_have_the_shingles_of_the_reference(name, kind, real_texts):
    texts = real_texts(name, 4_000 if JIT_IS_OFF else 60_000)
    for method in (
        MinHash(tokens=kind),
        MinHash(tokens=kind, ngram=3, nfkc=False, case_fold=False, fold=FOLDS),
    ):
        expected = [
            reference.shingle_hashes(tokens_of(text, method), method.ngram, kind) for text in texts
        ]
        assert rows(shingled(texts, method)) == expected


def test_tokens_of_1_to_70_bytes_are_told_apart_wherever_they_lie():
    tokens = ["x" * size for size in range(1, 71)] + ["x" * size + "y" for size in range(70)]
    text = " ".join(tokens)
    for shift in range(9):
        hashes = rows(shingled(["-" * shift + text], MinHash(ngram=1)))[0]
        assert hashes == reference.shingle_hashes(tokens, 1)
        assert len(set(hashes)) == len(tokens)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 32, 33])
def test_every_byte_of_a_token_counts(size):
    original = "a" * size
    changed = [original[:place] + "b" + original[place + 1 :] for place in range(size)]
    assert (
        len({tuple(row) for row in rows(shingled([original, *changed], MinHash(ngram=1)))})
        == size + 1
    )


@pytest.mark.parametrize("before", [*range(55, 75), *range(120, 135)])
@pytest.mark.parametrize("first", ["a", " ", "a "], ids=["word", "gap", "words"])
def test_words_are_found_across_the_blocks_of_64_bytes(first, before):
    text = first * (before // len(first)) + "bc d " + "e" * 64 + " f"
    assert rows(shingled([text], MinHash(ngram=1)))[0] == reference.shingle_hashes(text.split(), 1)


@given(st.lists(st.one_of(st.none(), TEXTS), max_size=8), st.integers(0, 8), st.integers(0, 8))
@example([None, "a b", None, "c"], 1, 4)
def test_slices_nulls_and_string_types_change_nothing(texts, start, stop):
    method = MinHash(ngram=2)
    expected = [reference.shingle_hashes(tokens_of(text, method), 2) for text in texts[start:stop]]
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        whole = pa.array(
            [None if text is None else text.encode() for text in texts], pa.binary()
        ).cast(kind)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            assume(
                not shingled(texts, method).flagged.any()
            )  # flagged texts are normalised as strings
        assert rows(shingle_documents(whole[start:stop], method)) == expected


@given(st.lists(TEXTS, max_size=6), st.data())
def test_one_batch_or_several_make_no_difference(texts, data):
    cut = data.draw(st.integers(0, len(texts)))
    parts = [shingled(texts[:cut]), shingled(texts[cut:])]
    whole = shingled(texts)
    assert rows(whole) == rows(parts[0]) + rows(parts[1])
    assert whole.content.tolist() == parts[0].content.tolist() + parts[1].content.tolist()


def test_a_workspace_that_held_a_longer_batch_changes_nothing():
    workspace = Workspace()
    shingle_documents(
        pa.array(["a b c d e f g h i j"] * 9, pa.large_string()), MinHash(), workspace
    )
    result = shingle_documents(pa.array(["x y", "漢 語"], pa.large_string()), MinHash(), workspace)
    assert rows(result) == rows(shingled(["x y", "漢 語"]))


@given(
    st.lists(
        st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=40), max_size=5
    )
)
def test_repeats_are_left_out_in_each_document_anew_and_nothing_else(documents):
    seen = np.zeros(kernel.SEEN, np.uint64)
    for number, one in enumerate(documents):
        hashes = np.array([7, *one], np.uint64)
        end = kernel.leave_out_repeats(hashes, 1, len(hashes), number, seen)
        kept = hashes[1:end].tolist()
        assert hashes[0] == 7
        assert set(kept) == set(one)
        if not any(
            a != b and (a ^ b) % kernel.SEEN == 0 for a in one for b in one
        ):  # each has a place of its own
            assert sorted(kept) == sorted(set(one))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("texts", [[], [""], [None], ["", None, ""], ["...", " \n", "\0"]])
def test_arrays_without_documents_or_without_bytes_have_no_shingles(kind, texts):
    result = shingled(texts, MinHash(), kind)
    assert rows(result) == [[]] * len(texts)
    assert result.content.shape == (len(texts), 2)


def test_a_text_shorter_than_an_ngram_is_one_shingle_that_no_longer_text_has():
    short, longer, padded = rows(shingled(["a b", "a b c d e", "a b"], MinHash(ngram=5)))
    assert len(short) == 1
    assert short == padded
    assert not set(short) & set(longer)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), KINDS)
@example([b"\xff", b"\xf4\x90\x80\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\xf0\x9f"], "words")
@example([b"\xc0\x80", b"\xe0\x80\xaf", b"\xf0\x80\x80\x80", b"\x80" * 40], "chars")
def test_bytes_that_are_not_utf8_neither_crash_nor_touch_their_neighbours(broken, kind):
    mode = _MODES[kind]
    tables = _tables(mode, nfkc=True, case_fold=True, fold=FOLDS)
    documents = [piece for one in broken for piece in (b"left side", one)] + [b"right side"]
    text = Text(*flatten_strings(pa.array(documents, pa.binary())))
    first, second = (run_guarded(text, tables, mode) for _ in range(2))
    assert first == second
    known = reference.shingle_hashes(tokens_of("left side", MinHash(tokens=kind)), 2, kind)
    assert [
        row for row, document in zip(first, documents, strict=True) if document == b"left side"
    ] == [known] * len(broken)


def run_guarded(text: Text, tables, mode: int, ngram: int = 2) -> list[list[int]]:
    """Run the kernel in buffers of just the size promised, and see that it wrote nothing behind
    them.
    """
    count = len(text.offsets) - 1
    sizes = [len(buffer) for buffer in make_buffers(int(np.diff(text.offsets).max(initial=0)))]
    sizes.append(3 * len(text.data) + count)
    guard = 64
    dtypes = (np.uint8, np.int32, np.uint64, np.uint64)
    guarded = [
        np.full(size + guard, 0x5A, dtype) for size, dtype in zip(sizes, dtypes, strict=True)
    ]
    views = [array[:size] for array, size in zip(guarded, sizes, strict=True)]
    shingles = Shingles(
        views[3],
        np.empty(count + 1, np.int64),
        np.empty((count, 2), np.uint64),
        np.zeros(count, np.bool_),
    )
    kernel.shingle_text(text, tables, mode, ngram, Buffers(*views[:3]), shingles)
    for array in guarded:
        assert (array[-guard:] == 0x5A).all()
    return rows(shingles)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(reference.TOKENISERS))
@pytest.mark.parametrize("fold", [False, True])
def test_the_buffers_promised_hold_any_text_of_one_character_repeated(kind, fold):
    mode = _MODES[kind]
    tables = _tables(mode, nfkc=fold, case_fold=fold, fold=FOLDS if fold else ())
    interesting = np.flatnonzero(tables.entries & np.uint32(1 << 23))  # those that become several
    codes = [*interesting.tolist(), *range(0x20, 0x110000, 0x20001 if JIT_IS_OFF else 0x101)]
    if JIT_IS_OFF:
        codes = codes[::50]
    # Long, so that what a character grows to is not hidden by the zeros behind a stream.
    documents = [(chr(code) * 200).encode("utf-8", "surrogatepass") for code in codes]
    for document in documents:  # alone, so that the buffers are as small as they can be
        run_guarded(Text(*flatten_strings(pa.array([document], pa.binary()))), tables, mode)


def test_combining_marks_of_any_two_classes_are_put_in_order():
    by_class = {unicodedata.combining(chr(code)): chr(code) for code in range(0x3000, 0x2FF, -1)}
    marks = [mark for rank, mark in sorted(by_class.items()) if rank][:: 9 if JIT_IS_OFF else 1]
    texts = [f"x{first}{second}y z" for first in marks for second in marks]
    expected = [reference.shingle_hashes(tokens_of(text, MinHash()), 1) for text in texts]
    assert rows(shingled(texts, MinHash(ngram=1))) == expected


@given(st.lists(st.lists(st.text(max_size=20), max_size=8), max_size=4), st.integers(1, 4))
@example([["", "a"], [], ["a\0b", "a"]], 1)
def test_token_lists_hash_as_words_do(lists, ngram):
    names = {str(index): tokens for index, tokens in enumerate(lists)}
    assume(
        not any(
            "\ud800" <= character <= "\udfff"
            for tokens in lists
            for token in tokens
            for character in token
        )
    )
    result = shingled(list(names), MinHash(tokens=names.__getitem__, ngram=ngram))
    tokens = [[token for token in one if token] for one in lists]
    assert rows(result) == [reference.shingle_hashes(one, ngram) for one in tokens]
    expected = [reference.hash_content(reference.token_hashes(one)) for one in tokens]
    assert [tuple(row) for row in result.content.tolist()] == expected


@pytest.mark.parametrize("ngram", [1, 2, 5])
def test_a_callable_that_splits_at_spaces_equals_whitespace_tokens(ngram):
    texts = ["one two three", "", "drei  VIER", None, "x" * 70 + " y"]
    by_callable = shingled(texts, MinHash(tokens=str.split, ngram=ngram))
    by_name = shingled(texts, MinHash(tokens="whitespace", ngram=ngram))
    assert rows(by_callable) == rows(by_name)
    assert by_callable.content[[0, 2, 4]].tolist() == by_name.content[[0, 2, 4]].tolist()


def test_shingles_of_a_periodic_text_repeat_with_its_period():
    hashes = rows(shingled(["a b c " * 50], MinHash(ngram=4)))[0]
    assert len(hashes) == 147
    assert hashes == (hashes[:3] * 50)[:147]
    assert len(set(hashes)) == 3


@pytest.mark.slow
def test_random_shingles_of_a_large_vocabulary_never_collide():
    count = 2_000 if JIT_IS_OFF else 200_000
    words = [f"{random.Random(1).getrandbits(1)}w{i}" for i in range(count)]
    hashes = rows(shingled([" ".join(words)], MinHash(ngram=2)))[0]
    # Two of 200,000 uniform 64-bit hashes are equal with a probability of 200,000^2 / 2^65 =
    # 1.1e-9.
    assert len(set(hashes)) == count - 1


@pytest.mark.skipif(not JIT_IS_OFF, reason="the compiled load is not a call that can be watched")
def test_no_load_of_eight_bytes_reaches_behind_its_array(monkeypatch):
    def load(data, index):
        assert 0 <= index <= len(data) - 8
        return np.uint64(int.from_bytes(data[index : index + 8].tobytes(), "little"))

    monkeypatch.setattr(kernel, "load_u64", load)
    for size in [*range(20), *range(56, 72), 127, 128, 129]:
        for text in ("a" * size, "漢" * size, "a " * size, "é" * size):
            for kind in sorted(reference.TOKENISERS):
                shingled([text], MinHash(tokens=kind))
