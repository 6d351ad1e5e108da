"""Each command parses, calls the library and prints; errors are one line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli

TEXTS = {
    "a": "one two three four five six seven eight nine ten",
    "b": "One two three four five six seven eight nine ten!",
    "c": "one two three four five six seven eight nine eleven",
    "d": "an entirely different text about something else",
    "e": "...",
}


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": name, "text": text}) for name, text in TEXTS.items()]
    Path("in.jsonl").write_text("\n".join(lines) + "\n")
    Path("old.jsonl").write_text(
        '{"id": "old", "text": "An entirely different text about something else."}\n'
    )
    Path("broken.jsonl").write_text("\n".join([lines[0], "{broken", lines[3]]) + "\n")
    return tmp_path


def run(*arguments: str, **settings: object):
    return CliRunner().invoke(cli, list(arguments), prog_name="neardup", **settings)


def test_dedup_writes_what_the_library_returns():
    result = run("dedup", "in.jsonl", "-o", "out", "--threshold", "0.7")
    assert result.exit_code == 0
    library = neardup.dedup("in.jsonl", method=neardup.MinHash(threshold=0.7))
    assert pq.read_table("out/removed.parquet").equals(library.removed)
    kept = [json.loads(line)["id"] for line in Path("out/kept/in.jsonl").read_text().splitlines()]
    assert kept == library.kept["id"].to_pylist() == ["a", "d", "e"]


def test_dedup_against_an_earlier_collection_names_the_old_document():
    result = run("dedup", "in.jsonl", "--against", "old.jsonl", "-o", "out")
    assert result.exit_code == 0
    removed = {
        row["id"]: row["kept_id"] for row in pq.read_table("out/removed.parquet").to_pylist()
    }
    assert removed == {"b": "a", "d": "old"}
    assert "Against" in result.stdout


def test_dedup_reads_standard_input():
    result = run("dedup", "-", "-o", "out", "--json", input=Path("in.jsonl").read_bytes())
    assert json.loads(result.stdout)["counts"]["read"] == 5


def test_json_is_the_report_and_nothing_else():
    result = run("dedup", "in.jsonl", "-o", "out", "--json")
    assert json.loads(result.stdout) == json.loads(Path("out/report.json").read_text())
    assert result.stderr == ""


def test_quiet_prints_nothing():
    result = run("dedup", "in.jsonl", "-o", "out", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert Path("out/report.html").exists()


def test_rejected_documents_are_counted_and_their_list_is_named():
    result = run("dedup", "broken.jsonl", "-o", "out", "--max-unreadable", "100%")
    assert result.exit_code == 0
    assert re.search(r"Rejected +1  could not be read", result.stdout)
    assert str(Path("out/rejected.jsonl")) in result.stdout


def test_a_warning_of_the_report_is_printed():
    lines = [
        json.dumps({"text": f"one two three four five six seven eight nine {i}"}) for i in range(40)
    ]
    Path("many.jsonl").write_text("\n".join(lines))
    settings = [
        "--threshold",
        "0.95",
        "--num-bands",
        "60",
        "--rows-per-band",
        "1",
        "--max-bucket-size",
        "2",
    ]
    assert "Warning: " in run("dedup", "many.jsonl", "-o", "out", *settings).stdout


ERRORS = {
    "no such file": (
        ["dedup", "nope.parquet", "-o", "out"],
        "No such file or folder: nope.parquet.",
    ),
    "a name is never a text": (
        ["find-pairs", "just a text", "-o", "p.csv"],
        "No such file or folder: just a text.",
    ),
    "no such column": (
        ["dedup", "in.jsonl", "-o", "out", "--text-column", "x"],
        "No column 'x' in in.jsonl",
    ),
    "bands without rows": (
        ["dedup", "in.jsonl", "-o", "out", "--num-bands", "3"],
        "num_bands requires rows_per_band",
    ),
    "stop at the first": (
        ["dedup", "broken.jsonl", "-o", "out", "--on-error", "stop"],
        "broken.jsonl, row 1",
    ),
    "output in the input": (["dedup", ".", "-o", "out"], "overlap"),
    "unknown suffix of pairs": (
        ["find-pairs", "in.jsonl", "-o", "p.doc"],
        "must end in one of .parquet, .jsonl, .csv",
    ),
    "no folder for pairs": (
        ["find-pairs", "in.jsonl", "-o", "no/p.csv"],
        "The output no/p.csv cannot be written",
    ),
    "no file to compare": (
        ["compare", "nope", "in.jsonl"],
        "nope cannot be read: No such file or directory",
    ),
    "a folder to compare": (["compare", ".", "in.jsonl"], ". cannot be read: Is a directory"),
    "both standard input": (["compare", "-", "-"], "A and B are both standard input"),
    "recall out of reach": (
        ["plan", "--documents", "9", "--threshold", "0.001"],
        "more than 1024 bands",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line_on_stderr_and_exit_code_2(arguments, said):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("neardup: error: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path("out").exists()
    assert not Path("out.partial").exists()


@pytest.mark.parametrize(
    "arguments", [["dedup", "in.jsonl"], ["dedup", "-o", "out"], ["compare", "a"], ["nonsense"]]
)
def test_wrong_usage_exits_with_2(arguments):
    assert run(*arguments).exit_code == 2


def test_an_existing_output_is_replaced_only_when_asked():
    Path("out").mkdir()
    refused = run("dedup", "in.jsonl", "-o", "out")
    assert refused.exit_code == 2
    assert "already exists" in refused.stderr
    assert run("dedup", "in.jsonl", "-o", "out", "--overwrite").exit_code == 0
    Path("p.csv").write_text("mine")
    assert run("find-pairs", "in.jsonl", "-o", "p.csv").exit_code == 2
    assert Path("p.csv").read_text() == "mine"
    assert run("find-pairs", "in.jsonl", "-o", "p.csv", "--overwrite").exit_code == 0
    assert Path("p.csv").read_text() != "mine"


def lines_of(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.mark.parametrize(
    ("name", "rows_of"),
    [
        ("p.parquet", lambda path: pq.read_table(path).to_pylist()),
        ("p.jsonl", lines_of),
        ("p.csv", lambda path: pyarrow.csv.read_csv(path).to_pylist()),
    ],
    ids=["parquet", "jsonl", "csv"],
)
def test_pairs_are_those_of_the_library_in_every_format(name, rows_of):
    expected = neardup.find_pairs("in.jsonl", method=neardup.MinHash(threshold=0.7)).pairs
    assert expected.num_rows == 3
    result = run("find-pairs", "in.jsonl", "-o", name, "--threshold", "0.7")
    assert result.exit_code == 0
    assert "Duplicate pairs             3" in result.stdout
    assert not Path(f"{name}.partial").exists()
    assert rows_of(name) == expected.to_pylist()


def test_pairs_in_parquet_have_the_types_of_the_library():
    expected = neardup.find_pairs("in.jsonl", method=neardup.MinHash(threshold=0.7)).pairs
    assert run("find-pairs", "in.jsonl", "-o", "p.parquet", "--threshold", "0.7").exit_code == 0
    assert pq.read_table("p.parquet").equals(expected)


def test_pairs_lists_what_could_not_be_read():
    result = run("find-pairs", "broken.jsonl", "-o", "p.csv")
    assert "Rejected: broken.jsonl, row 1, line 2" in result.stdout


def test_plan_draws_the_curve_that_it_prints(tmp_path):
    path = tmp_path / "curve.svg"
    assert (
        run(
            "plan",
            "--documents",
            "1e6",
            "--num-bands",
            "100",
            "--rows-per-band",
            "3",
            "--plot",
            str(path),
        ).exit_code
        == 0
    )
    drawing = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert (
        drawing.attrib["aria-label"]
        == "Probability that a pair is compared, by similarity: 100 bands of 3 rows"
    )
    neardup.plan(
        documents=1e6,
        method=neardup.MinHash(num_bands=100, rows_per_band=3),
        plot=tmp_path / "same.svg",
    )
    assert (tmp_path / "same.svg").read_bytes() == path.read_bytes()


def test_a_plot_must_be_an_svg(tmp_path):
    with pytest.raises(neardup.errors.OutputError, match=r"must end in \.svg: got '\.png'"):
        neardup.plan(documents=1, plot=tmp_path / "curve.png")


def test_plan_says_what_the_library_says():
    record = json.loads(run("plan", "--documents", "1e8", "--json").stdout)
    plan = neardup.plan(documents=1e8)
    assert (record["num_bands"], record["rows_per_band"]) == plan.bands
    assert record["memory_bytes"] == plan.memory_bytes
    assert len(record["curve"]) == 21


def test_a_file_that_is_not_utf8_is_refused_with_its_first_bad_byte():
    Path("bad.txt").write_bytes(b"caf\xe9")
    result = run("compare", "bad.txt", "in.jsonl")
    assert result.exit_code == 2
    assert "bad.txt is not UTF-8: byte 3 is 0xe9. Convert it first" in result.stderr


def test_a_run_that_discards_an_interrupted_one_says_so():
    scratch = Path("out.partial/scratch")
    scratch.mkdir(parents=True)
    (scratch / "checkpoint.json").write_text(
        json.dumps({"state": {"tally": {"documents": 1234567}}, "lengths": {}})
    )
    result = run("dedup", "in.jsonl", "-o", "out", "--quiet")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "neardup: discarding the interrupted run in out.partial, which had read 1,234,567 "
        "documents; --resume would "
        "continue it.\n"
    )


def test_progress_is_a_line_for_each_stage_where_there_is_no_terminal():
    result = run("dedup", "in.jsonl", "-o", "out", "--json", "--progress", "plain")
    assert json.loads(result.stdout)["counts"]["read"] == 5
    stages = [line.partition(":")[0] for line in result.stderr.splitlines()]
    assert stages == ["Read", "Propose", "Sort", "Confirm", "Write", "Report"]
    assert result.stderr.startswith("Read: 5 docs, ")


@pytest.mark.parametrize("option", [[], ["--quiet"], ["--progress", "none"]], ids=str)
def test_progress_is_not_shown_elsewhere_unless_asked_for(option):
    assert run("dedup", "in.jsonl", "-o", "out", *option).stderr == ""


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["sweep", "{}", "-o", "{}"], "in.toml"),
        (["sweep", "-", "--page", "{}"], "in.html"),
        (["document-frequencies", "-", "-o", "{}"], "in.parquet"),
    ],
)
def test_an_output_never_replaces_an_input_or_the_file_that_is_standard_input(command, name):
    text = Path("in.jsonl").rename(name).read_bytes()
    arguments = [part.format(name) for part in command]
    before = os.dup(0)
    with open(name, "rb") as file:
        # As `neardup ... < in.html` does.
        os.dup2(file.fileno(), 0)
    try:
        result = run(*arguments, "--in-format", "jsonl", "--overwrite", input=text)
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert (result.exit_code, "would replace the input" in result.stderr) == (2, True)
    assert Path(name).read_bytes() == text
