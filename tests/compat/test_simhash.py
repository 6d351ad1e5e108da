"""The face of the package simhash gives the package's numbers, and stays right where the package
fails.
"""

from __future__ import annotations

import logging
import random
import re
from collections import OrderedDict

import numpy as np
import pytest

from neardup import SettingError, SimHash
from neardup.compat.simhash import Simhash, SimhashIndex
from neardup.errors import SchemeError
from reference.signed import fingerprint_of

# Texts of the package's own tests, version 2.1.2.
GREETING = "How are you? I AM fine. Thanks. And you?"
TEXTS = {
    "1": "How are you? I Am fine. blar blar blar blar blar Thanks.",
    "2": "How are you i am fine. blar blar blar blar blar than",
    "3": "This is simhash test.",
}


def test_numbers_of_the_package_s_own_tests():
    """The value is from 1e0ng/simhash 2.1.2, tests/test_simhash.py; of two features only the bits
    of both are ones.
    """
    assert Simhash(["aaa", "bbb"]).value == 57087923692560392
    assert (
        Simhash(["aaa", "bbb"], hashfunc=lambda data: int.from_bytes(data, "big")).value
        == 0x626262 & 0x616161
    )
    assert fingerprint_of(["aaa", "bbb"], method=SimHash(scheme="simhash")) == 57087923692560392


def random_value(generator: random.Random):
    words = [
        "".join(generator.choices("abcde é你", k=generator.randint(0, 5)))
        for _ in range(generator.choice([3, 500]))
    ]
    kind = generator.choice(["text", "words", "dict", "mixed", "floats"])
    if kind == "text":
        return " ".join(words[:60])
    if kind == "words":
        return words
    if kind == "dict":
        return {word: generator.randint(0, 255) for word in words}
    if kind == "mixed":
        return [
            word if generator.random() < 0.5 else (word, generator.randint(0, 60)) for word in words
        ]
    return [
        (word, generator.choice([generator.random(), 0.1, 0.2, 0.3, generator.randint(0, 70)]))
        for word in words
    ]


@pytest.mark.parametrize("seed", range(60))
def test_values_are_those_of_the_package(seed):
    package = pytest.importorskip("simhash")
    generator = random.Random(seed)
    value = random_value(generator)
    f = generator.choice([8, 32, 64, 128])
    chosen = generator.choice(
        [{}, {"hashfunc": lambda data: int.from_bytes(data, "big") * 0x9E3779B97F4A7C15 >> 3}]
    )
    assert Simhash(value, f=f, **chosen).value == package.Simhash(value, f=f, **chosen).value


@pytest.mark.parametrize(
    "features",
    [
        [("a", -1)],
        [("a", -3), "b", ("c", 2), ("d", 60)],
        [("a", -3), ("b", 0.5), ("c", -0.25)],
        # The half of their sum is below 0.5, unless the sum compensates rounding.
        [*[("a", 0.1)] * 5, *[("b", 0.1)] * 5],
    ],
)
def test_negative_and_rounded_weights_count_as_in_the_package(features):
    package = pytest.importorskip("simhash")
    assert Simhash(features).value == package.Simhash(features).value


@pytest.mark.parametrize("reg", [r"\w", re.compile(r"[a-z]"), r"[\w\u4e00-\u9fcc]+"])
@pytest.mark.parametrize(
    "text", [GREETING, "你好　世界！　　呼噜。", "", "a", "...", "İstanbul ΑΣ ΑΣΑ"]
)
def test_texts_have_the_value_of_the_package(reg, text):
    package = pytest.importorskip("simhash")
    assert Simhash(text, reg=reg).value == package.Simhash(text, reg=reg).value


@pytest.mark.parametrize("text", [*TEXTS.values(), GREETING, "x" * 1000, "你好，世界　呼噜"])
def test_the_scheme_gives_in_bulk_what_the_face_gives(text):
    assert fingerprint_of(text, method=SimHash(scheme="simhash")) == Simhash(text).value


def test_weights_above_255_are_right():
    """The package multiplies bytes by the weight, which NumPy 2 refuses from 256 on."""
    weights = {"aaa": 300, "bbb": 299, "ccc": 10**30}
    assert Simhash(weights).value == Simhash(["ccc"]).value
    del weights["ccc"]
    assert Simhash(weights).value == Simhash(["aaa"]).value
    assert Simhash("x" * 1000).value == Simhash(["xxxx"]).value
    assert Simhash([("aaa", np.int64(1000)), ("bbb", 999.5)]).value == Simhash(["aaa"]).value


def test_a_value_can_be_an_integer_another_simhash_or_features_of_any_kind():
    one = Simhash(["aaa", "bbb"])
    assert (
        Simhash(one).value
        == Simhash(one.value).value
        == Simhash(np.uint64(one.value)).value
        == one.value
    )
    assert (
        Simhash(OrderedDict(aaa=1, bbb=1)) == Simhash(feature for feature in ("aaa", "bbb")) == one
    )
    assert one != Simhash(["aaa"])
    assert one != "aaa"
    for wrong in (None, b"a"):
        with pytest.raises(TypeError, match="Bad parameter with type"):
            Simhash(wrong)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_distances_are_those_of_the_package_s_tests():
    assert (
        Simhash(GREETING).distance(Simhash("How old are you ? :-) i am fine. Thanks. And you?")) > 0
    )
    assert Simhash("你好　世界！　　呼噜。").distance(Simhash("你好，世界　呼噜")) == 0
    assert Simhash(0b10101).distance(Simhash(0b00110)) == 3
    shorts = [Simhash(text).value for text in ("aa", "aaa", "aaaa", "aaaab", "aaaaabb", "aaaaabbb")]
    assert len(set(shorts)) == 6


def test_lengths_that_do_not_fit_are_refused():
    for f in (63, 0, -8):
        with pytest.raises(SettingError, match=rf"f must be a positive multiple of 8: got {f}\."):
            Simhash("a", f=f)
    with pytest.raises(SchemeError, match=r"of 64 and of 32 bits cannot be compared"):
        Simhash("a").distance(Simhash("a", f=32))
    with pytest.raises(SchemeError, match=r"holds fingerprints of 64 bits: got one of 32"):
        SimhashIndex([]).add("a", Simhash("a", f=32))
    with pytest.raises(ValueError, match=r"at least f // 8 = 32 bytes: got 16 bytes for 'a'"):
        Simhash(["a"], f=256)
    with pytest.raises(ValueError, match=r"A weight must be a number: got 'heavy'"):
        Simhash([("a", "heavy")])


def test_an_index_finds_adds_and_deletes_as_the_package_s_tests_have_it():
    index = SimhashIndex([(key, Simhash(text)) for key, text in TEXTS.items()], k=10)
    near = Simhash("How are you i am fine. blar blar blar blar blar thank")
    assert sorted(index.get_near_dups(near)) == ["1", "2"]
    for _ in range(2):
        index.delete("1", Simhash(TEXTS["1"]))
        assert index.get_near_dups(near) == ["2"]
    for _ in range(2):
        index.add("1", Simhash(TEXTS["1"]))
        assert sorted(index.get_near_dups(near)) == ["1", "2"]


@pytest.mark.parametrize("f", [32, 64, 128])
@pytest.mark.parametrize("k", [0, 2, 3, 10])
def test_an_index_has_the_keys_and_answers_of_the_package(f, k):
    package = pytest.importorskip("simhash")
    generator = random.Random(f + k)
    values = [generator.getrandbits(f)]
    for _ in range(60):
        values.append(
            generator.choice(values) ^ (1 << generator.randrange(f)) ^ (1 << generator.randrange(f))
        )
    ours = SimhashIndex(
        [(place, Simhash(value, f)) for place, value in enumerate(values)], f=f, k=k
    )
    theirs = package.SimhashIndex(
        [(place, package.Simhash(value, f)) for place, value in enumerate(values)], f=f, k=k
    )
    assert ours.offsets == theirs.offsets
    assert ours.bucket_size() == theirs.bucket_size()
    for value in values:
        assert list(ours.get_keys(Simhash(value, f))) == list(
            theirs.get_keys(package.Simhash(value, f))
        )
        expected = {
            str(place) for place, other in enumerate(values) if (value ^ other).bit_count() <= k
        }
        assert set(ours.get_near_dups(Simhash(value, f))) == expected
        assert set(theirs.get_near_dups(package.Simhash(value, f))) == expected


def test_a_query_leaves_the_index_as_it_is_and_a_big_bucket_is_told(caplog):
    index = SimhashIndex([(place, Simhash(place << 32)) for place in range(300)])
    size = index.bucket_size()
    with caplog.at_level(logging.WARNING, "simhash"):
        index.get_near_dups(Simhash(2**63 + 2**31 + 1))
        assert not caplog.records
        index.get_near_dups(Simhash(0))
    assert index.bucket_size() == size
    assert "Big bucket found" in caplog.text


def test_tokens_can_be_changed_in_a_class_of_one_s_own():
    class Words(Simhash):
        def _tokenize(self, content: str) -> list[str]:
            return content.split()

    assert Words("aaa bbb").value == 57087923692560392
