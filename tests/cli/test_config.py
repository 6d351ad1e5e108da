"""The options of a command in a file: TOML, or the report of an earlier run."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from neardup.cli.main import cli

FOX = "the quick brown fox jumps over the lazy dog and runs away from here"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"title": FOX, "body": f"{FOX} {word}", "site": site} for word, site in ("xa", "ya", "zb")]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_options_are_read_from_a_file_and_those_of_the_command_line_win() -> None:
    Path("run.toml").write_text(
        'inputs = ["in.jsonl"]\noutput = "out"\ntext-column = ["title", "body"]\nthreshold = 0.6\nngram = 2\n'
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


@pytest.mark.parametrize("method", ["minhash", "simhash", pytest.param("content", marks=pytest.mark.slow)])
def test_the_report_of_a_run_repeats_it(method: str) -> None:
    options = ["--text-column", "body", "--within", "site", "--keep", "longest,last", "--method", method]
    assert run("dedup", "in.jsonl", "-o", "out", "--write", "mask", *options).exit_code == 0
    result = run("dedup", "--config", "out/report.json", "-o", "again")
    assert result.exit_code == 0, result.stderr
    first, second = (json.loads(Path(f"{name}/report.json").read_text()) for name in ("out", "again"))
    for part in ("scheme", "settings", "method", "columns", "counts", "write", "by_value"):
        assert first[part] == second[part]
    assert pq.read_table("out/removed.parquet").equals(pq.read_table("again/removed.parquet"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "no_case_fold = true", "is no option of dedup. Did you mean 'case-fold = false'? Keys are"),
        ("a.toml", "treshold = 0.7", "'treshold' in a.toml is no option of dedup. Did you mean 'threshold'?"),
        ("a.toml", "threshold = ", "--config a.toml is neither TOML nor a report.json"),
        ("a.toml", "threshold = 7", "Invalid value for '--threshold'"),
        ("a.toml", "nfkc = 5", "nfkc in a.toml must be true or false: got 5"),
        ("a.toml", "threshold = [0.5]", "threshold in a.toml must be a string or a number: got [0.5]"),
        ("a.toml", "text-column = [{a = 1}]", "must be a string or a number, or a list of them: got [{'a': 1}]"),
        ("a.json", '{"command": "find-pairs"}', "is no report of neardup dedup: got that of find-pairs"),
        ("a.json", '{"command": "dedup"}', "--config a.json does not repeat a run: the report has no 'settings'"),
        ("a.json", '{"command": "dedup", "method": null}', "used a Python function"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(name: str, text: str, message: str) -> None:
    Path(name).write_text(text)
    result = run("dedup", "in.jsonl", "-o", "out", "--config", name)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("command", ["dedup", "passages"])
def test_a_report_that_lacks_a_part_is_refused_with_the_name_of_the_part(command: str) -> None:
    assert run(command, "in.jsonl", "-o", "out", "--text-column", "body").exit_code == 0
    report = json.loads(Path("out/report.json").read_text())
    parts = ["settings", "columns", "inputs", "num_inputs", "warnings", *(["method"] if command == "dedup" else [])]
    wrong = {part: report | {part: 5 if part != "num_inputs" else "5"} for part in parts}
    wrong |= {part: {key: value for key, value in report.items() if key != part} for part in parts}
    wrong["columns.id"] = report | {"columns": {"text": "body"}}
    wrong["inputs[0].role"] = report | {"inputs": [{"name": "in.jsonl", "format": "jsonl"}]}
    wrong["inputs[0].name"] = report | {"inputs": ["in.jsonl"]}
    for part, partial in wrong.items():
        Path("a.json").write_text(json.dumps(partial))
        result = run(command, "-o", "again", "--config", "a.json")
        assert result.exit_code == 2
        assert f"--config a.json does not repeat a run: the report has no '{part}'" in result.stderr


def test_a_missing_file_is_named() -> None:
    assert "--config none.toml cannot be read" in run("dedup", "in.jsonl", "-o", "out", "--config", "none.toml").stderr


def test_a_report_of_contamination_does_not_repeat_the_run():
    Path("report.json").write_text(json.dumps({"command": "contamination"}))
    result = run("contamination", "in.jsonl", "-o", "out", "--config", "report.json")
    assert "Write the options to a TOML file" in result.stderr


def test_a_report_repeats_how_inputs_were_read() -> None:
    rows = [{"id": str(number), "url": f"u{number}", "text": "a b c d " * (1 + number)} for number in range(3)]
    Path("two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("lines.log").write_text("one two three\none two three\nfoo\n")
    two = ["two.jsonl", "--id-column", "url", "--max-document-bytes", "20"]
    lines = ["lines.log", "--in-format", "text", "--text-unit", "file"]
    for first, options in (("a", two), ("b", lines)):
        assert run("dedup", *options, "-o", first).exit_code == 0
        assert run("dedup", "--config", f"{first}/report.json", "-o", first + first).exit_code == 0
        reports = [json.loads(Path(f"{name}/report.json").read_text()) for name in (first, first + first)]
        for part in ("columns", "counts", "max_document_bytes"):
            assert reports[0][part] == reports[1][part]


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
def test_a_method_on_the_command_line_takes_the_place_of_all_that_a_report_has(options, chosen) -> None:
    assert run("dedup", "in.jsonl", "--text-column", "body", "-o", "out", "--noise", "5%").exit_code == 0
    assert run("dedup", "--config", "out/report.json", "-o", "again", *options).exit_code == 0
    method = json.loads(Path("again/report.json").read_text())["method"]
    assert (method["method"], method["tokens"], method["threshold"]) == chosen
