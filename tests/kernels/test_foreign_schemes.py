"""Words and letters are those of the regular expressions of other programs, in any text."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neardup import SimHash, explain
from neardup.features import foreign_schemes
from neardup.kernels import feature_hashes as kernel
from neardup.kernels.token_arrays import Text
from reference import foreign_schemes as reference

JIT_IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
PIECES = st.one_of(
    st.sampled_from(["://", "http://", "a://b'c://d", ":", "/", ".", "'", "_", " ", "\0", "\n"]),
    st.sampled_from("aZ09\u0130\u212aKéßΣσ漢Ⱥ\U0001d400\U0010ffff\u0301½٣"),
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from(["x" * 5000, "://" * 900, "'" * 1000, "漢" * 700, "a:" * 999]),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
KEEPS = [
    (foreign_schemes.mfonda_words, "mfonda"),
    (foreign_schemes.mfonda_unicode_words, "mfonda-unicode"),
    (foreign_schemes.simhash_letters, "simhash"),
]


def words(texts: pa.Array) -> list[list[str]]:
    return [one.split(" ")[:-1] for one in foreign_schemes.mfonda_words(texts).to_pylist()]


def unicode_words(texts: pa.Array) -> list[list[str]]:
    return [one.split() for one in foreign_schemes.mfonda_unicode_words(texts).to_pylist()]


@pytest.mark.slow
@settings(max_examples=400)
@given(
    st.lists(st.one_of(st.none(), TEXTS), max_size=6),
    st.sampled_from([pa.string(), pa.large_string()]),
)
@example(
    ["http://.http:///''://'a://b'://c", "a://", "a:", "a:/", "a://'b", "a:///.é", "'"], pa.string()
)
@example(["ΑΣ ΑΣΑ", "\u0130", "İx\u212aelvin://\u212a\u0130", None], pa.string())
def test_words_and_letters_are_those_of_the_regular_expressions(texts, kind):
    array = pa.array(texts, kind)
    assert words(array) == [reference.mfonda_words(text or "") for text in texts]
    assert foreign_schemes.simhash_letters(array).to_pylist() == [
        reference.simhash_letters(text or "") for text in texts
    ]
    assert unicode_words(array) == [reference.mfonda_unicode_words(text or "") for text in texts]
    assert words(array[1:-1]) == words(array)[1:-1]
    assert unicode_words(array[1:-1]) == unicode_words(array)[1:-1]
    assert (
        foreign_schemes.simhash_letters(array[1:-1]) == foreign_schemes.simhash_letters(array)[1:-1]
    )


@pytest.mark.slow
def test_every_code_point_becomes_what_it_becomes_alone():
    codes = [
        code for code in range(0, 0x110000, 97 if JIT_IS_OFF else 1) if not 0xD800 <= code < 0xE000
    ]
    texts = pa.array([chr(code) for code in codes])
    assert words(texts) == [reference.mfonda_words(chr(code)) for code in codes]
    assert unicode_words(texts) == [reference.mfonda_unicode_words(chr(code)) for code in codes]
    assert foreign_schemes.simhash_letters(texts).to_pylist() == [
        reference.simhash_letters(chr(code)) for code in codes
    ]


# The words of Go's `[\w']+(?:\://[\w\./]+){0,1}` on bytes.ToLower: ASCII classes, one code point
# lower-cased at a time.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Foo BAR", ["foo", "bar"]),
        ("don't stop_it 42", ["don't", "stop_it", "42"]),
        ("see http://a.b/c?d=e now", ["see", "http://a.b/c", "d", "e", "now"]),
        ("a:// b://", ["a", "b"]),
        ("http://a'b", ["http://a", "'b"]),
        ("a://b://c", ["a://b", "c"]),
        ("a\0b", ["a", "b"]),
        ("café 漢字", ["caf"]),
        ("\u212aelvin İx", ["kelvin", "ix"]),
        ("—…漢字", []),
    ],
)
def test_words_of_mfonda_are_those_of_its_regular_expression(text, expected):
    assert words(pa.array([text])) == [expected]
    assert reference.mfonda_words(text) == expected
    if expected:
        assert explain(text, method=SimHash(scheme="mfonda")).features == tuple(expected)


def test_letters_of_the_package_simhash_are_those_of_its_regular_expression():
    texts = pa.array(["How are you? I AM fine. 你好！_1"])
    assert foreign_schemes.simhash_letters(texts).to_pylist() == ["howareyouiamfine你好_1"]


@given(st.lists(st.binary(max_size=20), max_size=4))
@example([b"\xff", b"a\xe2\x84", b"\xf7\xbf\xbf\xbf", b"a://\xc4", b"\x80:"])
def test_bytes_that_are_not_utf8_do_not_touch_their_neighbours(broken):
    documents = [piece for one in broken for piece in (b"left side ", one)]
    text = Text(np.frombuffer(b"".join(documents), np.uint8), np.cumsum([0, *map(len, documents)]))
    for keep, pattern, whole in (
        (kernel.keep_words, r"[a-z']", b"left side "),
        (kernel.keep_letters, r"\w", b"leftside"),
    ):
        kept = Text(np.full(2 * len(text.data) + 64, 0x5A, np.uint8), np.empty_like(text.offsets))
        keep(
            text,
            foreign_schemes._letters(pattern),
            Text(kept.data[: 2 * len(text.data)], kept.offsets),
        )
        assert (kept.data[2 * len(text.data) :] == 0x5A).all()
        for place in range(0, len(documents), 2):
            assert kept.data[kept.offsets[place] : kept.offsets[place + 1]].tobytes() == whole


@pytest.mark.parametrize("unit", ["a://b'", "a ", "'", "://", "Ⱥ", "a:", "a://.", "漢", "a"])
@pytest.mark.parametrize(("keep", "scheme"), KEEPS)
def test_what_is_kept_never_has_more_than_twice_the_bytes(unit, keep, scheme):
    for count in range(1, 30):
        text = unit * count
        assert len(keep(pa.array([text]))[0].as_py().encode()) <= 2 * len(text.encode()), scheme
