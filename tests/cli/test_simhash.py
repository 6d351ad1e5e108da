"""The commands around SimHash give what the library gives; errors are one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.fingerprints.sketches import SCHEME_KEY
from reference.signed import fingerprint_of, signature_of

LICENSE = (
    "permission is hereby granted free of charge to any person obtaining a copy of this software "
    * 4
)
TEXTS = {
    "a": LICENSE + "and associated documentation files",
    "b": LICENSE.title() + "and associated documentation files!",
    "c": LICENSE + "and associated documentation files with it",
    "d": "an entirely different text about something else",
    "e": "...",
}
LAW = "中华人民共和国网络安全法为了保障网络安全维护网络空间主权和国家安全社会公共利益。" * 3
CHINESE = {"甲": LAW, "乙": LAW + "附则", "丙": "唐诗三百首是一部流传很广的唐诗选集"}
PAPER = {"p": "this is a test phrase", "q": "foo bar", "r": "你好", "s": ""}


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, texts in (("in", TEXTS), ("zh", CHINESE), ("paper", PAPER)):
        lines = [
            json.dumps({"id": key, "text": text}, ensure_ascii=False) for key, text in texts.items()
        ]
        Path(f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("a.txt").write_text("The cat sat on the mat. The mat was red.\n")
    Path("b.txt").write_text("The cat sat on a mat. The mat was blue.\n")
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(cli, list(arguments), prog_name="neardup")


def done(*arguments: str) -> str:
    """Return what a command prints that ends well."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def same(file: str, sketches) -> bool:
    return pq.read_table(file).equals(sketches.to_table(), check_metadata=True)


# dedup and pairs
def test_dedup_writes_what_the_library_returns():
    said = done("dedup", "in.jsonl", "-o", "out", "--method", "simhash", "--max-distance", "3")
    library = neardup.dedup("in.jsonl", method=neardup.SimHash(max_distance=3))
    removed = pq.read_table("out/removed.parquet")
    assert removed.equals(library.removed)
    assert [(row["id"], row["kept_id"], row["exact"]) for row in removed.to_pylist()] == [
        ("b", "a", True),
        ("c", "a", False),
    ]
    assert removed["distance"].to_pylist() == [0, 1]
    assert "fingerprints within 3 bits" in said
    assert re.search(
        r"Recall +100 % +of the fingerprints within 3 bits: none is missed", " ".join(said.split())
    )


def test_dedup_confirmed_by_jaccard_counts_collisions_and_shows_both_measures():
    options = [
        "--method",
        "simhash",
        "--max-distance",
        "16",
        "--confirm",
        "jaccard",
        "--threshold",
        "0.95",
    ]
    said = done("dedup", "in.jsonl", "-o", "out", *options)
    method = neardup.SimHash(max_distance=16, confirm="jaccard", threshold=0.95)
    library = neardup.dedup("in.jsonl", method=method)
    assert pq.read_table("out/removed.parquet").equals(library.removed)
    assert library.removed["id"].to_pylist() == ["b"]
    assert library.report["counts"]["collisions"] == 1
    assert re.search(r"Collisions +1 +near fingerprints of dissimilar texts, rejected", said)
    assert "fingerprints within 16 bits, jaccard 0.95 or more" in " ".join(said.split())


def test_dedup_of_chinese_words_weighed_by_their_own_corpus():
    pytest.importorskip("rjieba")
    words = [
        "--tokens",
        "jieba",
        "--weights",
        "tfidf",
        "--max-features",
        "20",
        "--max-distance",
        "8",
    ]
    record = json.loads(
        done("dedup", "zh.jsonl", "-o", "out", "--method", "simhash", *words, "--json")
    )
    method = neardup.SimHash(tokens="jieba", weights="tfidf", max_features=20, max_distance=8)
    library = neardup.dedup("zh.jsonl", method=method)
    assert pq.read_table("out/removed.parquet").equals(library.removed)
    assert record["timings"][0]["stage"] == "count"
    assert (record["scheme"]["weights"], record["scheme"]["max_features"]) == ("tfidf", 20)


def test_pairs_of_texts_have_a_distance():
    done("find-pairs", "in.jsonl", "-o", "p.parquet", "--method", "simhash")
    library = neardup.find_pairs("in.jsonl", method=neardup.SimHash()).pairs
    assert pq.read_table("p.parquet").equals(library)
    assert library.num_rows == 3


# sign
def test_sign_writes_what_the_library_returns():
    said = done("sign", "in.jsonl", "-o", "fp.parquet", "--method", "simhash", "--bits", "64")
    library = neardup.sign("in.jsonl", method=neardup.SimHash(bits=64))
    assert same("fp.parquet", library)
    assert library.empty.tolist() == [False] * 4 + [True]
    assert re.search(r"Signed +4 +64 bits each", said)
    assert re.search(r"Without features +1 +nothing to compare: null", said)
    assert "Warning: 1 document has fewer than 32 features." in said


def test_signatures_of_minhash_are_those_of_the_library():
    said = done(
        "sign", "in.jsonl", "-o", "s.parquet", "--num-hashes", "64", "--seed", "3", "--ngram", "2"
    )
    library = neardup.sign("in.jsonl", method=neardup.MinHash(num_hashes=64, seed=3, ngram=2))
    assert same("s.parquet", library)
    assert re.search(r"Signed +4 +64 hashes each", said)
    assert neardup.Signatures.open("s.parquet").similarity(library).tolist() == [1.0] * 4 + [0.0]
    done("sign", "in.jsonl", "-o", "s.jsonl", "--num-hashes", "2")
    first = json.loads(Path("s.jsonl").read_text().splitlines()[0])
    assert (
        first["hex"]
        == signature_of(TEXTS["a"], neardup.MinHash(num_hashes=2)).astype("<u4").tobytes().hex()
    )


@pytest.mark.parametrize("bits", ["32", "128", "256"])
def test_fingerprint_of_every_length(bits):
    done(
        "sign",
        "in.jsonl",
        "-o",
        "fp.parquet",
        "--method",
        "simhash",
        "--bits",
        bits,
        "--ngram",
        "2",
        "--weights",
        "one",
    )
    method = neardup.SimHash(bits=int(bits), ngram=2, weights="one")
    assert same("fp.parquet", neardup.sign("in.jsonl", method=method))


def test_fingerprints_of_mfonda_have_the_digits_of_its_documentation():
    """The values of the tests of github.com/mfonda/simhash."""
    said = done(
        "sign",
        "paper.jsonl",
        "-o",
        "fp.parquet",
        "--method",
        "simhash",
        "--scheme",
        "mfonda",
        "--hex",
    )
    rows = pq.read_table("fp.parquet").to_pylist()
    assert [(row["id"], row["hex"]) for row in rows] == [
        ("p", "8c3a5f7e9ecb3f35"),
        ("q", "d8dbe7186bad3db3"),
        ("r", None),
        ("s", None),
    ]
    assert [row["fingerprint"] and row["fingerprint"].hex() for row in rows] == [
        row["hex"] for row in rows
    ]
    assert re.search(r"Without features +2 +nothing to compare: null", said)


def test_text_formats_hold_digits():
    for name in ("fp.jsonl", "fp.csv"):
        done("sign", "paper.jsonl", "-o", name, "--method", "simhash", "--scheme", "mfonda")
    expected = [("p", "8c3a5f7e9ecb3f35"), ("q", "d8dbe7186bad3db3"), ("r", None), ("s", None)]
    lines = [json.loads(line) for line in Path("fp.jsonl").read_text().splitlines()]
    assert [(row["id"], row["hex"]) for row in lines] == expected
    table = pyarrow.csv.read_csv(
        "fp.csv", convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    )
    assert [(row["id"], row["hex"]) for row in table.to_pylist()] == expected


def test_json_of_fingerprint_is_its_report_and_nothing_else():
    result = run("sign", "in.jsonl", "-o", "fp.parquet", "--method", "simhash", "--json")
    record = json.loads(result.stdout)
    assert result.stderr == ""
    assert record["counts"] == {
        "read": 5,
        "signed": 4,
        "without_features": 1,
        "short": 1,
        "rejected": 0,
    }
    assert record["scheme"] == json.loads(pq.read_schema("fp.parquet").metadata[SCHEME_KEY])


# pairs of fingerprints
def test_pairs_of_a_file_of_fingerprints_need_neither_texts_nor_a_method():
    done("sign", "in.jsonl", "-o", "fp.parquet", "--method", "simhash")
    Path("in.jsonl").unlink()
    said = done("find-pairs", "fp.parquet", "--max-distance", "3", "-o", "p.parquet")
    library = neardup.find_pairs("fp.parquet", method=neardup.SimHash(max_distance=3)).pairs
    assert pq.read_table("p.parquet").equals(library)
    assert [(row["left_id"], row["right_id"]) for row in library.to_pylist()] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert re.search(r"Fingerprints +4 +64 bits each", said)
    assert re.search(r"Duplicate pairs +3 +all pairs within 3 bits", said)
    for name in ("p.csv", "p.jsonl"):
        done("find-pairs", "fp.parquet", "--max-distance", "3", "-o", name)
    assert [
        json.loads(line) for line in Path("p.jsonl").read_text().splitlines()
    ] == library.to_pylist()
    assert pyarrow.csv.read_csv("p.csv").to_pylist() == library.to_pylist()


def test_json_of_pairs_of_fingerprints_names_its_files():
    for name in ("in", "paper"):
        done("sign", f"{name}.jsonl", "-o", f"{name}.parquet", "--method", "simhash")
    record = json.loads(
        done("find-pairs", "in.parquet", "paper.parquet", "-o", "p.parquet", "--json")
    )
    assert record["inputs"] == [
        {"name": "in.parquet", "fingerprints": 4, "without_features": 1},
        {"name": "paper.parquet", "fingerprints": 3, "without_features": 1},
    ]
    assert record["counts"] == {"fingerprints": 7, "without_features": 2, "confirmed": 3}


# idf
def test_a_table_of_another_corpus_weighs_fingerprints():
    said = done("document-frequencies", "in.jsonl", "-o", "idf.parquet")
    table = neardup.document_frequencies("in.jsonl")
    assert neardup.IdfTable.open("idf.parquet").version == table.version
    assert re.search(r"Documents +5 ", said)
    assert table.version in said
    done(
        "sign",
        "paper.jsonl",
        "-o",
        "fp.parquet",
        "--method",
        "simhash",
        "--weights",
        "tfidf",
        "--idf",
        "idf.parquet",
    )
    library = neardup.sign("paper.jsonl", method=neardup.SimHash(weights="tfidf", idf=table))
    assert same("fp.parquet", library)
    assert library.scheme["idf"] == table.version


def test_json_of_idf_says_what_was_counted():
    record = json.loads(
        done("document-frequencies", "in.jsonl", "-o", "idf.parquet", "--ngram", "2", "--json")
    )
    table = neardup.document_frequencies("in.jsonl", method=neardup.SimHash(ngram=2))
    assert (record["documents"], record["features"]) == (5, len(table.hashes))
    assert (record["version"], record["scheme"]["ngram"], record["rejected"]) == (
        table.version,
        2,
        [],
    )


def test_dedup_takes_a_table_too():
    done("document-frequencies", "in.jsonl", "-o", "idf.parquet")
    options = ["--method", "simhash", "--weights", "tfidf", "--idf", "idf.parquet"]
    record = json.loads(done("dedup", "in.jsonl", "-o", "out", *options, "--json"))
    assert record["scheme"]["idf"] == neardup.document_frequencies("in.jsonl").version
    corpus = neardup.dedup("in.jsonl", method=neardup.SimHash(weights="tfidf"))
    assert pq.read_table("out/removed.parquet").equals(corpus.removed)


# compare
def explained(said: str) -> list[tuple[list[float], str, str]]:
    """Return the sums, the bits beside them and the digits that are printed of each text."""
    found = []
    for part in said.split("Votes of each bit")[1:]:
        rows = re.findall(
            r"^  bits +\d+ to +\d+ ((?: +[-+][\d.]+)+)   ([01]+)$", part, re.MULTILINE
        )
        sums = [float(value) for row, _ in rows for value in row.split()]
        (digits,) = re.findall(
            r"^  ([0-9a-f]{8,64})$", part.partition("Fingerprint:")[2], re.MULTILINE
        )[-1:]
        found.append((sums, "".join(bits for _, bits in rows), digits))
    return found


@pytest.mark.parametrize(
    "options", [[], ["--bits", "32"], ["--bits", "128", "--ngram", "2"], ["--scheme", "mfonda"]]
)
def test_the_sums_that_are_printed_make_the_fingerprint(options):
    parts = explained(
        done("compare", "a.txt", "b.txt", "--method", "simhash", "--explain", *options).split(
            "Distance"
        )[0]
    )
    values = {"bits": 64} | {
        name[2:]: int(value) if value.isdigit() else value
        for name, value in zip(options[::2], options[1::2], strict=True)
    }
    method = neardup.SimHash(**values)
    for (sums, bits, digits), name in zip(parts, ("a.txt", "b.txt"), strict=True):
        fingerprint = fingerprint_of(Path(name).read_text(), method=method)
        assert int(digits, 16) == int(bits, 2) == fingerprint
        assert "".join("1" if value >= 0 else "0" for value in sums) == bits
        assert len(sums) == method.bits


def test_where_a_sum_is_0_the_explanation_says_which_bit_it_gives():
    Path("tie.txt").write_text("one two\n")
    said = done("compare", "tie.txt", "a.txt", "--method", "simhash", "--explain")
    assert "Fingerprint: 1 where the sum is positive; 1 where it is 0" in said
    said = done(
        "compare", "tie.txt", "a.txt", "--method", "simhash", "--scheme", "simhash", "--explain"
    )
    assert "Fingerprint: 1 where the sum is positive; 0 where it is 0" in said


def test_json_of_an_explanation_adds_up():
    record = json.loads(
        done("compare", "a.txt", "b.txt", "--method", "simhash", "--explain", "--json")
    )
    assert len(record["explanations"]) == 2
    for one, fingerprint in zip(record["explanations"], record["fingerprints"], strict=True):
        assert one["fingerprint"] == fingerprint
        for place, total in enumerate(one["sums"]):
            bit = one["bits"] - 1 - place
            votes = [
                weight if digest >> bit & 1 else -weight
                for weight, digest in zip(one["weights"], one["hashes"], strict=True)
            ]
            assert sum(votes) == total
            assert (total >= 0) == bool(fingerprint >> bit & 1)
    assert dict(
        zip(record["explanations"][0]["features"], record["explanations"][0]["counts"], strict=True)
    ) == {
        "the": 3,
        "cat": 1,
        "sat": 1,
        "on": 1,
        "mat": 2,
        "was": 1,
        "red": 1,
    }


def test_compare_prints_the_distance_and_the_verdict():
    said = done("compare", "a.txt", "b.txt", "--method", "simhash")
    left, right = (fingerprint_of(Path(name).read_text()) for name in ("a.txt", "b.txt"))
    distance = bin(left ^ right).count("1")
    assert re.search(rf"Distance +{distance} +of the 64 bits of two fingerprints differ", said)
    for name, value in (("A", left), ("B", right)):
        assert re.search(rf"SimHash of {name} +{value:016x}", said)
    assert "Votes" not in said


# Errors
ERRORS = {
    "distance without its method": (
        ["dedup", "in.jsonl", "-o", "out", "--max-distance", "3"],
        "--max-distance belongs to --method simhash: got it with MinHash. Add --method simhash",
    ),
    "bits without their method": (
        ["find-pairs", "in.jsonl", "-o", "p.csv", "--bits", "64"],
        "--bits belongs to --method simhash",
    ),
    "a recall sample of fingerprints": (
        ["dedup", "in.jsonl", "-o", "out", "--method", "simhash", "--recall-sample", "5"],
        "recall_sample measures the recall of MinHash: got recall_sample=5 with SimHash",
    ),
    "table that is missing": (
        [
            "sign",
            "in.jsonl",
            "-o",
            "fp.parquet",
            "--method",
            "simhash",
            "--weights",
            "tfidf",
            "--idf",
            "nope.parquet",
        ],
        (
            "nope.parquet is not a table of document frequencies in format neardup-idf 1: there is "
            "no such file. Create"
        ),
    ),
    "table that is none": (
        [
            "dedup",
            "in.jsonl",
            "-o",
            "out",
            "--method",
            "simhash",
            "--weights",
            "tfidf",
            "--idf",
            "in.jsonl",
        ],
        "in.jsonl is not a table of document frequencies",
    ),
    "table in another format": (
        ["document-frequencies", "in.jsonl", "-o", "idf.csv"],
        "must end in .parquet: got '.csv'",
    ),
    "no corpus to weigh by": (
        ["compare", "a.txt", "b.txt", "--method", "simhash", "--weights", "tfidf"],
        "which single texts do not have: got idf='corpus'. Pass a table as --idf TABLE",
    ),
    "nothing to explain": (
        ["compare", "a.txt", "b.txt", "--explain", "--similarity", "containment"],
        "Explain the text with --similarity jaccard.",
    ),
    "settings of a scheme": (
        [
            "sign",
            "in.jsonl",
            "-o",
            "fp.parquet",
            "--method",
            "simhash",
            "--scheme",
            "mfonda",
            "--ngram",
            "2",
        ],
        "scheme='mfonda' sets ngram itself: got ngram=2",
    ),
    "a hash too short": (
        [
            "sign",
            "in.jsonl",
            "-o",
            "fp.parquet",
            "--method",
            "simhash",
            "--hash",
            "fnv1",
            "--bits",
            "128",
        ],
        "hash='fnv1' has 64 bits",
    ),
    "no such file, whatever the method": (
        ["find-pairs", "no.parquet", "-o", "p.csv", "--max-distance", "3"],
        "no.parquet",
    ),
    "a threshold of nothing": (
        [
            "dedup",
            "in.jsonl",
            "-o",
            "out",
            "--method",
            "simhash",
            "--confirm",
            "hamming",
            "--threshold",
            "0.7",
        ],
        "threshold requires confirm='jaccard': got threshold=0.7",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line_on_stderr_and_exit_code_2(arguments, said):
    before = sorted(Path().iterdir())
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("neardup: error: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(Path().iterdir()) == before


def test_weights_of_ones_own_are_for_python_alone():
    result = run(
        "sign", "in.jsonl", "-o", "fp.parquet", "--method", "simhash", "--weights", "given"
    )
    assert result.exit_code == 2
    assert "must be one of 'one', 'tf', 'tfidf', 'depth': got 'given'" in result.stderr
    assert (
        "given"
        not in run("sign", "--help-all").stdout.split("--weights one")[1].split("--idf")[0].split()
    )


@pytest.mark.parametrize(
    ("option", "accepted"),
    [
        ("--method", "'minhash', 'simhash'"),
        ("--weights", "'one', 'tf', 'tfidf'"),
        ("--hash", "'native', 'fnv1', 'fnv1a', 'md5'"),
        ("--scheme", "'native', 'mfonda', 'mfonda-unicode', 'simhash'"),
        ("--confirm", "'jaccard', 'hamming'"),
        ("--bits", "32, 64, 128, 256"),
    ],
)
def test_an_unknown_word_is_refused_with_those_that_are_known(option, accepted):
    result = run("dedup", "in.jsonl", "-o", "out", option, "7")
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.stderr
    assert accepted in result.stderr
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["sign", "in.jsonl", "-o", "fp.parquet"],
        ["dedup", "in.jsonl", "-o", "out"],
        ["compare", "a.txt", "b.txt"],
    ],
    ids=["sign", "dedup", "compare"],
)
def test_a_table_of_other_settings_is_refused_naming_both(command):
    done("document-frequencies", "in.jsonl", "-o", "idf.parquet", "--ngram", "2")
    options = ["--method", "simhash", "--weights", "tfidf", "--idf", "idf.parquet"]
    result = run(*command, *options)
    assert result.exit_code == 2
    assert "it has ngram=2, the method ngram=1" in result.stderr
    assert not Path("out").exists()
    assert not Path("fp.parquet").exists()


def test_files_of_two_schemes_are_refused_naming_both():
    done("sign", "in.jsonl", "-o", "a.parquet", "--method", "simhash")
    done("sign", "in.jsonl", "-o", "b.parquet", "--method", "simhash", "--scheme", "mfonda")
    result = run("find-pairs", "a.parquet", "b.parquet", "-o", "p.csv")
    assert result.exit_code == 2
    assert "a.parquet has" in result.stderr
    assert "scheme='native'" in result.stderr
    assert "b.parquet has" in result.stderr
    assert "scheme='mfonda'" in result.stderr
    assert not Path("p.csv").exists()


@pytest.mark.parametrize("command", ["sign", "document-frequencies"])
def test_an_existing_file_is_replaced_only_when_asked(command):
    Path("t.parquet").write_text("mine")
    refused = run(command, "in.jsonl", "-o", "t.parquet")
    assert refused.exit_code == 2
    assert "t.parquet already exists" in refused.stderr
    assert Path("t.parquet").read_text() == "mine"
    done(command, "in.jsonl", "-o", "t.parquet", "--overwrite")
    assert pq.read_table("t.parquet").num_rows > 0


@pytest.mark.parametrize("command", ["sign", "document-frequencies"])
def test_rows_that_cannot_be_read_are_listed(command):
    Path("broken.jsonl").write_text('{"id": "a", "text": "one two"}\n{broken\n')
    said = done(command, "broken.jsonl", "-o", "t.parquet", "--max-unreadable", "1")
    assert "Rejected: broken.jsonl, row 1, line 2" in said
    stopped = run(command, "broken.jsonl", "-o", "u.parquet", "--on-error", "stop")
    assert stopped.exit_code == 2
    assert not Path("u.parquet").exists()


def test_quiet_prints_nothing():
    for arguments in (
        ["sign", "in.jsonl", "-o", "fp.parquet", "--method", "simhash"],
        ["document-frequencies", "in.jsonl", "-o", "idf.parquet"],
        ["find-pairs", "fp.parquet", "-o", "p.csv"],
    ):
        result = run(*arguments, "--quiet")
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
