"""Texts with wrong characters: which differences are folded, the threshold by theory, and what runs
find.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.arrays import arrow_of_strings
from neardup.cli.main import cli
from neardup.errors import SettingError
from neardup.features.feature_strings import Strings, token_strings
from neardup.features.shingles import shingle_documents
from neardup.settings.presets import noise_threshold
from reference.places import REPOSITORY, SHARED_DATA

NOISE = neardup.method(noise="5%")
SEEN_AS = [
    ("The ﬁrſt Oﬃce", "the first office"),
    ("con-\n  tinued", "continued"),
    ("con\u00adtinued", "continued"),
    ("of the", "ofthe"),
    ("c0nd1t10n5 2eal, 8ig 9ame", "conditions zeal, big game"),
    ("Illegal", "1llegaI"),
    ("ＦＵＬＬ width", "full width"),
    ("甲方 同意。", "甲方同意"),
]
PIECES = [*"aAbB0o1lIi2z5s8b9g_ .,-\n", "ﬁ", "ſ", "ß", "Å", "甲", "東", "ｶ", "\u00ad"]


def letters_of(text: str) -> str:
    return "".join(Strings(*token_strings(arrow_of_strings([text]), NOISE)[:2]).to_list())


@pytest.mark.parametrize(("printed", "read"), SEEN_AS)
def test_what_recognition_confuses_is_the_same(printed, read):
    assert neardup.compare(printed, read, method=NOISE).measures.same_text


@pytest.mark.parametrize(
    ("left", "right"), [("modern", "modem"), ("cat", "cot"), ("甲方", "乙方"), ("6", "b")]
)
def test_other_characters_differ(left, right):
    assert not neardup.compare(left, right, method=NOISE).measures.same_text


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_folding_folded_letters_changes_nothing(text):
    once, twice = (
        shingle_documents(arrow_of_strings([one]), NOISE) for one in (text, letters_of(text))
    )
    assert once.hashes.tolist() == twice.hashes.tolist()
    assert once.content.tolist() == twice.content.tolist()


@pytest.mark.parametrize(
    ("noise", "ngram"), [(0.01, 5), (0.03, 5), (0.05, 5), (0.05, 7), (0.08, 3)]
)
def test_the_threshold_is_2_326_deviations_below_the_mean_of_simulated_pairs(noise, ngram):
    """200 runs of characters in each of 4,000 pairs; a run is shared if all of its characters are
    right in both.
    """
    pairs = 4_000
    runs = 200
    wrong = np.random.default_rng(3).random((2, pairs, runs + ngram - 1)) < noise
    right = np.lib.stride_tricks.sliding_window_view(~wrong.any(axis=0), ngram, axis=1)
    shared = right.all(axis=2).mean(axis=1)
    mean = shared.mean()
    deviation = shared.std()
    least = mean - 2.326 * deviation
    # Five standard errors of the mean and of the deviation of normal numbers, and what the formula
    # leaves out: of 200 runs, only 200 - k have another k characters behind, which lowers the
    # deviation by less than ngram / 400.
    error = (
        5 * (deviation / math.sqrt(pairs) + 2.326 * deviation / math.sqrt(2 * pairs))
        + 2.326 * deviation * ngram / 400
    )
    slope = 2 * 2 / (2 - least) ** 2
    assert noise_threshold(noise, ngram=ngram, similarity="containment") == pytest.approx(
        least, abs=error + 0.001
    )
    assert noise_threshold(noise, ngram=ngram) == pytest.approx(
        least / (2 - least), abs=slope * error + 0.001
    )


def test_the_similarity_of_texts_with_wrong_characters_is_that_of_the_formula():
    """Of characters that occur once; a wrong one occurs in no other place. The mean is within five
    standard errors.
    """
    pairs = 200
    length = 500
    noise = 0.05
    draw = random.Random(4)
    shares = []
    for _ in range(pairs):
        characters = draw.sample(range(0x4E00, 0x9FA5), 3 * length)
        sides = [
            "".join(
                chr(characters[i + length * n * (draw.random() < noise)]) for i in range(length)
            )
            for n in (1, 2)
        ]
        shares.append(neardup.compare(*sides, method=NOISE).measures.left_in_right)
    mean = np.mean(shares)
    error = np.std(shares) / math.sqrt(pairs)
    assert mean == pytest.approx((1 - noise) ** 10, abs=5 * error)


def test_no_threshold_is_among_the_similarities_of_unrelated_texts_of_10_000_characters():
    for ngram in range(3, 13):
        thresholds = [noise_threshold(noise, ngram=ngram) for noise in (0.001, 0.01, 0.05, 0.1)]
        assert thresholds == sorted(thresholds, reverse=True)
        assert thresholds[-1] == round(max(0.8 / ngram, 0.1), 3)


@pytest.mark.parametrize("ngram", [9, 12, 64])
def test_longer_shingles_have_the_threshold_of_the_longest_measured_ones(ngram):
    method = neardup.method(noise=0.15, ngram=ngram)
    assert method.threshold == 0.048
    assert neardup.plan(documents=9, method=method).bands is not None


def test_above_a_tenth_rare_shingles_count_more_at_a_threshold_on_a_line_through_measured_ones():
    heavy = neardup.method(noise="15%")
    assert (heavy.boost_rare, heavy.ngram, heavy.threshold, heavy.recall) == (True, 5, 0.08, 0.9)
    assert [neardup.method(noise=noise).threshold for noise in (0.1, 0.12, 0.15)] == [
        0.16,
        0.095,
        0.08,
    ]
    assert not neardup.method(noise=0.1).boost_rare
    assert neardup.method(noise=0.15, ngram=4).threshold == 0.1
    short = neardup.method(noise=0.15, ngram=3)
    given = neardup.method(noise=0.15, threshold=0.2)
    assert (short.threshold, short.boost_rare) == (0.267, False)
    assert (given.boost_rare, given.recall) == (True, 0.9)
    contained = neardup.method(noise=0.15, similarity="containment")
    assert not contained.boost_rare
    assert contained.threshold == noise_threshold(0.15, similarity="containment")


def test_options_beside_noise_replace_its_values_and_the_threshold_follows():
    assert (NOISE.tokens, NOISE.ngram, NOISE.threshold) == ("letters", 5, 0.271)
    assert neardup.method(noise=0.05) == NOISE
    assert neardup.method(noise=0.05, threshold=0.7).threshold == 0.7
    assert neardup.method(noise=0.05, ngram=7).threshold < NOISE.threshold
    assert neardup.method(noise=0.05, tokens="chars").tokens == "chars"
    contained = neardup.method(noise=0.05, similarity="containment")
    assert contained.threshold == noise_threshold(0.05, similarity="containment") > NOISE.threshold


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"noise": "150%"},
            "noise must be a number above 0 and at most 0.15 or None: got '150%'.*Change noise\\.",
        ),
        (
            {"noise": "x"},
            "noise must be a number above 0 and at most 0.15 or None: got 'x'.*Change noise\\.",
        ),
        (
            {"noise": "20%"},
            "got '20%'.*Use 0.15 for texts with more errors, too",
        ),
        ({"noise": 0}, "noise must be a number above 0 and at most 0.15 or None: got 0"),
        (
            {"noise": 0.05, "tokens": "words"},
            (
                "noise counts wrong characters.*got noise=0.05 with tokens='words'.*Leave tokens "
                "or noise out"
            ),
        ),
        (
            {"noise": 0.05, "ngram": 0},
            "ngram must be a whole number of 1 or more and at most 64: got 0",
        ),
        (
            {"noise": 0.05, "threshold": "x"},
            "threshold must be a number above 0 and at most 1.* got 'x'",
        ),
        ({"preset": "code", "noise": 0.1}, "preset and noise each choose the tokens"),
        (
            {"name": "simhash", "noise": 0.1},
            "noise=0.1 goes with method minhash: .*'simhash'. Leave one of the two",
        ),
    ],
)
def test_a_noise_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(SettingError, match=message):
        neardup.method(**arguments)


def test_the_command_line_gives_the_same_settings(tmp_path):
    (tmp_path / "in.txt").write_text(
        "The terms of the contract.\nTlie terms of the c0ntract\nAnother text.\n"
    )
    arguments = [
        "find-pairs",
        str(tmp_path / "in.txt"),
        "--noise",
        "5%",
        "-o",
        str(tmp_path / "pairs.jsonl"),
    ]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    result = neardup.find_pairs(str(tmp_path / "in.txt"), method=NOISE)
    assert (tmp_path / "pairs.jsonl").read_text().count("\n") == len(result.pairs) == 1
    refused = CliRunner().invoke(cli, [*arguments[:3], "150%", *arguments[4:]])
    assert refused.exit_code == 2
    assert "got '150%'" in refused.stderr


def test_a_wrong_letter_marks_a_few_letters_not_the_words_around():
    left = "a contract about the delivery of goods between two parties"
    result = neardup.compare(left, left.replace("delivery", "delivcry"), method=NOISE)
    assert [left[part.start : part.end] for part in result.left_passages if not part.shared] == [
        "e"
    ]


# Whole runs


@pytest.fixture
def measuring(monkeypatch):
    """The tool that measures, whose texts these tests take."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    import measure_noise

    return measure_noise


def test_pairs_do_not_depend_on_the_order_of_the_texts(measuring):
    texts = measuring.noisy(
        measuring.unrelated(Path("missing"), measuring.ENGLISH, 200), 0.05, measuring.ALL
    )
    ids = [str(number) for number in range(len(texts))]
    tables = [pa.table({"id": ids[::step], "text": texts[::step]}) for step in (1, -1)]
    found = [neardup.find_pairs(table, method=NOISE).pairs.to_pylist() for table in tables]
    forwards, backwards = (
        {(frozenset((p["left_id"], p["right_id"])), p["similarity"]) for p in one} for one in found
    )
    assert forwards == backwards
    assert len(forwards) >= 19


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.01, 0.03, 0.05, 0.1])
def test_copies_with_wrong_characters_are_found_among_unrelated_texts(measuring, noise):
    texts = measuring.noisy(
        measuring.unrelated(Path("missing"), measuring.ENGLISH, 500), noise, measuring.ALL
    )
    assert measuring.run(texts, measuring.setting(noise, measuring.ALL)).f1 >= 0.98


@pytest.mark.slow
@pytest.mark.skipif(not SHARED_DATA.exists(), reason="needs the texts of ../shared")
@pytest.mark.parametrize("noise", [0.01, 0.03, 0.05, 0.1])
@pytest.mark.parametrize("language", ["ENGLISH", "CHINESE"])
def test_copies_are_found_among_5000_unrelated_texts(measuring, language, noise):
    for which in (measuring.ALL, measuring.COPIES):
        texts = measuring.noisy(
            measuring.unrelated(SHARED_DATA, getattr(measuring, language), 5_000), noise, which
        )
        assert measuring.run(texts, measuring.setting(noise, which)).f1 >= 0.97


@pytest.mark.slow
@pytest.mark.skipif(not SHARED_DATA.exists(), reason="needs the texts of ../shared")
@pytest.mark.parametrize("noise", [0.12, 0.15])
@pytest.mark.parametrize("language", ["ENGLISH", "CHINESE"])
def test_copies_of_texts_with_many_errors_are_found_among_5000(measuring, language, noise):
    texts = measuring.unrelated(SHARED_DATA, getattr(measuring, language), 5_000)
    assert (
        measuring.run(
            measuring.noisy(texts, noise, measuring.ALL), measuring.setting(noise, measuring.ALL)
        ).f1
        >= 0.95
    )
