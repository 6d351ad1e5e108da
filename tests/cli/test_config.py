"""The options of a command in a file: TOML, or the report of an earlier run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import neardup
from neardup.cli.main import cli
from neardup.runs.run import reported_options

FOX = "the quick brown fox jumps over the lazy dog and runs away from here"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"title": FOX, "body": f"{FOX} {word}", "site": site} for word, site in ("xa", "ya", "zb")
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_options_are_read_from_a_file_and_those_of_the_command_line_win() -> None:
    Path("run.toml").write_text(
        'inputs = ["in.jsonl"]\noutput = "out"\ntext-column = ["title", "body"]\nthreshold = '
        "0.6\nngram = 2\n"
        'keep = "last"\nwithin = "site"\njson = true\nnfkc = false\n'
    )
    result = run("dedup", "--config", "run.toml", "--ngram", "3", "--write", "ids")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["columns"]["text"] == ["title", "body"]
    wanted = {"threshold": 0.6, "keep": "last", "within": "site"}
    assert {name: report["settings"][name] for name in wanted} == wanted
    assert (report["method"]["ngram"], report["method"]["nfkc"]) == (3, False)
    assert Path("out/ids.parquet").exists()


@pytest.mark.parametrize(
    "method", ["minhash", "simhash", pytest.param("content", marks=pytest.mark.slow)]
)
def test_the_report_of_a_run_repeats_it(method: str) -> None:
    options = [
        "--text-column",
        "body",
        "--within",
        "site",
        "--keep",
        "longest,last",
        "--method",
        method,
    ]
    assert run("dedup", "in.jsonl", "-o", "out", "--write", "mask", *options).exit_code == 0
    result = run("dedup", "--config", "out/report.json", "-o", "again")
    assert result.exit_code == 0, result.stderr
    first, second = (
        json.loads(Path(f"{name}/report.json").read_text()) for name in ("out", "again")
    )
    for part in ("scheme", "settings", "method", "columns", "counts", "write", "by_value"):
        assert first[part] == second[part]
    assert pq.read_table("out/removed.parquet").equals(pq.read_table("again/removed.parquet"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.toml",
            "no_case_fold = true",
            "is no option of dedup. Did you mean 'case-fold = false'? Keys are",
        ),
        (
            "a.toml",
            "treshold = 0.7",
            "'treshold' in a.toml is no option of dedup. Did you mean 'threshold'?",
        ),
        ("a.toml", "threshold = ", "--config a.toml is neither TOML nor a report.json"),
        ("a.toml", "threshold = 7", "Invalid value for '--threshold'"),
        ("a.toml", "nfkc = 5", "nfkc in a.toml must be true or false: got 5"),
        (
            "a.toml",
            "threshold = [0.5]",
            "threshold in a.toml must be a string or a number: got [0.5]",
        ),
        ("a.toml", "write = true", "write in a.toml must be a string or a number: got True"),
        ("a.toml", "text-column = ['a', true]", "or a list of them: got ['a', True]"),
        (
            "a.toml",
            "text-column = [{a = 1}]",
            "must be a string or a number, or a list of them: got [{'a': 1}]",
        ),
        (
            "a.json",
            '{"command": "find-pairs"}',
            "is no report of neardup dedup: got that of find-pairs",
        ),
        (
            "a.json",
            '{"command": "dedup"}',
            "--config a.json does not repeat a run: the report has no 'options'",
        ),
        (
            "a.json",
            '{"command": "dedup", "options": {"tokens": null}}',
            "used a Python object as tokens",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused(name: str, text: str, message: str) -> None:
    Path(name).write_text(text)
    result = run("dedup", "in.jsonl", "-o", "out", "--config", name)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_missing_file_is_named() -> None:
    assert (
        "--config none.toml cannot be read"
        in run("dedup", "in.jsonl", "-o", "out", "--config", "none.toml").stderr
    )


def test_a_report_of_contamination_names_its_items_and_their_columns() -> None:
    Path("items.jsonl").write_text(json.dumps({"question": FOX}) + "\n")
    options = [
        "--corpus",
        "in.jsonl",
        "--text-column",
        "body",
        "--item-columns",
        "question",
        "--min-shingles",
        "4",
    ]
    assert run("contamination", "items.jsonl", *options, "-o", "out").exit_code == 0
    result = run("contamination", "--config", "out/report.json", "-o", "again")
    assert result.exit_code == 0, result.stderr
    first, second = (
        json.loads(Path(f"{name}/report.json").read_text()) for name in ("out", "again")
    )
    for part in ("options", "settings", "columns", "counts", "benchmarks"):
        assert first[part] == second[part]
    assert first["counts"]["contaminated"] == 1


@pytest.mark.parametrize(
    "options",
    [
        ["two.jsonl", "--id-column", "url", "--max-document-bytes", "20"],
        ["lines.log", "--in-format", "text", "--text-unit", "file"],
    ],
    ids=["columns", "text"],
)
def test_a_report_repeats_how_inputs_were_read(options: list[str]) -> None:
    rows = [
        {"id": str(number), "url": f"u{number}", "text": "a b c d " * (1 + number)}
        for number in range(3)
    ]
    Path("two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("lines.log").write_text("one two three\none two three\nfoo\n")
    assert run("dedup", *options, "-o", "first").exit_code == 0
    assert run("dedup", "--config", "first/report.json", "-o", "second").exit_code == 0
    first = json.loads(Path("first/report.json").read_text())
    second = json.loads(Path("second/report.json").read_text())
    for part in ("columns", "counts", "max_document_bytes"):
        assert first[part] == second[part]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ([], ("MinHash", "letters", 0.271)),
        (["--noise", "10%"], ("MinHash", "letters", 0.16)),
        (["--preset", "code"], ("MinHash", "code", 0.7)),
        (["--method", "simhash"], ("SimHash", "words", 0.5)),
        (["--threshold", "0.5"], ("MinHash", "letters", 0.5)),
    ],
)
def test_a_method_on_the_command_line_takes_the_place_of_all_that_a_report_has(
    options, chosen
) -> None:
    assert (
        run("dedup", "in.jsonl", "--text-column", "body", "-o", "out", "--noise", "5%").exit_code
        == 0
    )
    assert run("dedup", "--config", "out/report.json", "-o", "again", *options).exit_code == 0
    method = json.loads(Path("again/report.json").read_text())["method"]
    assert (method["method"], method["tokens"], method["threshold"]) == chosen


def options_of(**options: Any) -> dict[str, Any]:
    """Return the options in the report of a run of dedup."""
    return neardup.dedup("in.jsonl", text_column="body", **options).report["options"]


def test_a_report_has_the_options_that_differ_from_their_default() -> None:
    of_inputs = {"inputs": ["in.jsonl"], "text_column": "body"}
    assert options_of() == of_inputs
    assert options_of(keep="first", linkage="sieve", against=None) == of_inputs
    assert options_of(keep="longest", on_error="skip") == of_inputs | {
        "keep": "longest",
        "on_error": "skip",
    }
    assert options_of(method="simhash", max_distance=3) == of_inputs | {
        "method": "simhash",
        "max_distance": 3,
    }
    method = neardup.MinHash(
        threshold=np.float64(0.5), tokens=neardup.Jieba(mode="search", words=("a", "b"))
    )
    words = {"tokens": "jieba", "jieba_mode": "search", "add_word": ["a", "b"]}
    pytest.importorskip("jieba")
    assert options_of(method=method) == of_inputs | {"method": "minhash", "threshold": 0.5} | words


def test_a_report_has_no_option_of_the_output_or_of_the_machine() -> None:
    options = {
        "output": "out",
        "overwrite": True,
        "threads": 1,
        "batch_rows": 2,
        "cache_bytes": 0,
        "tables": False,
    }
    assert options_of(**options) == options_of()
    assert options_of(rethreshold=True) == options_of()


def test_a_collection_or_a_function_that_a_file_cannot_contain_is_null_and_named_when_the_run_is_repeated() -> (  # noqa: E501
    None
):
    texts = neardup.dedup(
        [FOX, f"{FOX} x"], against=[FOX], method=neardup.MinHash(tokens=str.split)
    ).report["options"]
    assert texts == {"inputs": None, "against": None, "method": "minhash", "tokens": None}
    Path("a.json").write_text(json.dumps({"command": "dedup", "options": texts}))
    result = run("dedup", "in.jsonl", "-o", "out", "--config", "a.json")
    assert (
        "The run of a.json used a Python object as against, or more names than a report contains"
        in result.stderr
    )
    Path("earlier.txt").write_text(f"{FOX}\n")
    Path("a.json").write_text(
        json.dumps({"command": "dedup", "options": {"inputs": ["in.jsonl"], "against": None}})
    )
    result = run("dedup", "-o", "out", "--against", "earlier.txt", "--config", "a.json")
    assert result.exit_code == 0, result.stderr
    Path("a.json").write_text(json.dumps({"command": "dedup", "options": {"inputs": None}}))
    assert "Missing argument 'INPUT...'" in run("dedup", "-o", "out", "--config", "a.json").stderr


def test_a_report_has_the_address_of_an_index_without_its_password() -> None:
    with neardup.Index.create("an.index") as index:
        assert options_of(against=index)["against"] == ["an.index"]
    names = ["redis://user:secret@host/0?index=a", Path("in.jsonl")]
    given = reported_options({"against": names}, {"against": None})
    assert given == {"against": ["redis://user@host/0?index=a", "in.jsonl"]}


def test_the_report_of_an_answer_at_another_limit_has_the_limit() -> None:
    swept = neardup.dedup("in.jsonl", text_column="body", rethreshold=True)
    again = swept.rethreshold(threshold=0.9)
    assert again.report["options"] == swept.report["options"] | {"threshold": 0.9}


def test_a_run_with_longer_signatures_is_repeated() -> None:
    done = neardup.dedup(
        "in.jsonl", text_column="body", method=neardup.MinHash(num_hashes=256), output="out"
    )
    result = run("dedup", "--config", "out/report.json", "-o", "again")
    assert result.exit_code == 0, result.stderr
    repeated = json.loads(Path("again/report.json").read_text())
    assert repeated["counts"] == done.report["counts"]
    assert repeated["bands"] == done.report["bands"]


def test_a_source_that_is_no_address_is_refused_as_such() -> None:
    with pytest.raises(neardup.errors.NeardupError, match="redis"):
        neardup.dedup("redis://[bad/x")
