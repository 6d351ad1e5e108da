"""The computation of a MinHash signature and the blocks of two fingerprints, as they are
explained.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import neardup
from neardup import InputError, MinHash, SettingError
from neardup.cli.main import cli
from neardup.fingerprints.minhash import sign
from reference.checks import for_every

LEFT = "a cat sat on the mat, a cat sat"
RIGHT = "the cat sat on the mat"
METHODS = [
    MinHash(ngram=2),
    MinHash(threshold=0.5, seed=7),
    MinHash(tokens="chars", ngram=3, num_bands=3, rows_per_band=2),
    MinHash(tokens="code", ngram=1),
    MinHash(html="all", ngram=1),
    MinHash(tokens=str.split, ngram=2),
]


@for_every(METHODS)
def test_the_explained_signature_is_the_signature(method):
    found = neardup.explain(LEFT, method=method)
    signed = neardup.sign([LEFT], method=method).values[0]
    assert found.signature == tuple(signed[: len(found.signature)].tolist())
    assert len(found.features) == len(set(found.features)) == len(found.counts) == len(found.hashes)


@for_every(METHODS)
def test_each_hash_of_a_signature_is_the_value_of_its_shingle_alone(method):
    found = neardup.explain(LEFT, method=method)
    hashes = np.array(found.hashes, np.uint64)
    num_hashes = len(found.signature)
    for number, (shingle, value) in enumerate(zip(found.minima, found.signature, strict=True)):
        alone = sign(hashes[shingle : shingle + 1], np.array([0, 1]), num_hashes, method.seed)[
            0, number
        ]
        assert alone == value


def test_shingles_are_shown_in_the_order_of_the_text_with_their_counts():
    found = neardup.explain(LEFT, method=MinHash(ngram=2))
    assert found.features == ("a cat", "cat sat", "sat on", "on the", "the mat", "mat a")
    assert found.counts == (2, 2, 1, 1, 1, 1)
    assert neardup.explain(["x y", "z", "x y"], method="minhash").features == ("x y", "z")


def test_two_texts_share_the_key_of_a_band_exactly_if_its_hashes_are_equal():
    left, right = (neardup.explain(text, method=MinHash(ngram=1)) for text in (LEFT, RIGHT))
    rows = len(left.signature) // len(left.keys)
    for band, keys in enumerate(zip(left.keys, right.keys, strict=True)):
        place = slice(band * rows, (band + 1) * rows)
        assert (left.signature[place] == right.signature[place]) == (keys[0] == keys[1])
    assert set(left.keys) & set(right.keys)


def test_an_explanation_is_shown_as_lines():
    found = neardup.explain("a b a", method=MinHash(ngram=1, num_bands=2, rows_per_band=3))
    shingles, keys = (part.splitlines() for part in str(found).split("\n\n"))
    assert shingles[0].split() == ["shingle", "count", "minima", "hash"]
    assert shingles[1].split() == ["a", "2", str(found.minima.count(0)), f"{found.hashes[0]:016x}"]
    assert [row.split() for row in keys] == [
        ["band", "key"],
        *([str(i + 1), f"{found.keys[i]:016x}"] for i in (0, 1)),
    ]
    found = neardup.explain("a b a", method=neardup.SimHash(bits=32))
    assert str(found).splitlines()[1].split() == ["a", "2", "2", f"{found.hashes[0]:08x}"]
    assert str(found).endswith(f"fingerprint {found.fingerprint:08x}")


@pytest.mark.parametrize(
    ("text", "method", "said", "error"),
    [
        ("", MinHash(), "There are no features", InputError),
        (b"a", MinHash(), "Decode bytes first", InputError),
        (
            "a",
            MinHash(similarity="containment"),
            "Explain the text with similarity='jaccard'",
            SettingError,
        ),
        ("<p>a", "structure", "boost_rare=True", SettingError),
        ("<p>a", MinHash(tokens="tags"), "Shingles of tags have no words to show", SettingError),
    ],
    ids=str,
)
def test_a_text_without_a_signature_is_refused(text, method, said, error):
    with pytest.raises(error, match=said):
        neardup.explain(text, method=method)


def test_idf_belongs_to_simhash():
    with pytest.raises(SettingError, match="idf weighs the features of SimHash"):
        neardup.explain(
            "a", method="minhash", idf=neardup.IdfTable.from_counts({"a": 1}, num_documents=2)
        )


# The command


def printed(*arguments: str) -> str:
    Path("a.txt").write_text(LEFT)
    Path("b.txt").write_text(RIGHT)
    result = CliRunner().invoke(cli, ["compare", "a.txt", "b.txt", "--explain", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_command_prints_shingles_bands_and_the_curve():
    said = printed("--ngram", "2", "--lang", "en")
    left, right = (neardup.explain(text, method=MinHash(ngram=2)) for text in (LEFT, RIGHT))
    result = neardup.compare(LEFT, RIGHT, method=MinHash(ngram=2))
    assert "a.txt (A) and b.txt (B): 4 of 7 shingles are in both" in said
    for side, one in enumerate((left, right)):
        for index, (feature, value) in enumerate(zip(one.features, one.hashes, strict=True)):
            (row,) = re.findall(rf"^  {feature} +{value:016x} +(\S+) +(\S+)$", said, re.MULTILINE)
            assert row[side] == str(one.minima.count(index))
    equal = sum(x == y for x, y in zip(left.signature, right.signature, strict=True))
    assert f"{equal} of 60 are equal" in said
    bands = re.findall(
        r"^ +\d+  ([.=]{5}) +([0-9a-f]{16})  ([0-9a-f]{16})(  equal)?$", said, re.MULTILINE
    )
    assert [(int(x, 16), int(y, 16)) for _, x, y, _ in bands] == list(
        zip(left.keys, right.keys, strict=True)
    )
    assert all((hashes == "=====") == bool(same) for hashes, _, _, same in bands)
    assert "".join(hashes for hashes, *_ in bands).count("=") == equal
    assert f"(1 - 0.5714^5)^12 = {100 * result.measures.candidate_probability:.1f} %" in said


def test_shingles_that_noise_weighs_are_refused_with_the_option_that_leaves_weights_out():
    Path("a.txt").write_text(LEFT)
    arguments = ["compare", "a.txt", "a.txt", "--noise", "15%", "--lang", "en", "--explain"]
    refused = CliRunner().invoke(cli, arguments)
    assert refused.exit_code == 2
    assert (
        "got --boost-rare, which --noise may set. Explain the text with --no-boost-rare."
        in refused.output
    )
    assert CliRunner().invoke(cli, [*arguments, "--no-boost-rare"]).exit_code == 0


def test_json_has_the_explanations_of_both():
    left, right = json.loads(printed("--json"))["explanations"]
    assert left["features"] == list(neardup.explain(LEFT, method="minhash").features)
    assert right["keys"] == list(neardup.explain(RIGHT, method="minhash").keys)


@pytest.mark.parametrize("bits", [32, 64, 128, 256])
@pytest.mark.parametrize(
    ("distance", "num_blocks"), [(0, None), (3, None), (3, 6), (16, None), (16, 20)]
)
def test_the_blocks_that_are_printed_make_the_fingerprints(bits, distance, num_blocks):
    if distance == 0 and bits > 64:
        distance = 1
    options = ["--bits", str(bits), "--max-distance", str(distance), "--lang", "en"]
    options += ["--num-blocks", str(num_blocks)] if num_blocks else []
    said = printed("--method", "simhash", *options)
    result = neardup.compare(LEFT, RIGHT, method=neardup.SimHash(bits=bits)).measures
    blocks = re.findall(
        r"^ +\d+ +(\d+)-(\d+)  ([01a-f2-9]+) +([01a-f2-9]+) +(\d+|equal)$", said, re.MULTILINE
    )
    assert len(blocks) == (num_blocks or distance + 1)
    found = [0, 0]
    for high, low, *sides, _ in blocks:
        base = 16 if int(high) - int(low) >= 64 else 2
        found = [
            value | int(side, base) << int(low) for value, side in zip(found, sides, strict=True)
        ]
    assert found == list(result.fingerprints)
    assert sum(int(count) for *_, count in blocks if count != "equal") == result.distance
    equal = sum(count == "equal" for *_, count in blocks)
    assert f"equal: {equal}." in said
    if result.distance <= distance:
        assert equal >= len(blocks) - distance  # the pigeonhole principle
        assert "cannot miss this pair" in said


@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_the_explanation_is_in_chinese_if_asked(method):
    said = printed("--method", method, "--lang", "zh").partition("Jaccard")[0]
    assert not set(re.findall("[A-Za-z]{3,}", re.sub("[0-9a-f]{16}", "", said))) - {
        "txt",
        "cat",
        "sat",
        "the",
        "mat",
        "shingle",
    }
