"""neardup evaluate prints what the library returns, side by side where asked; errors are one
line.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli

LICENSE = (
    "permission is hereby granted free of charge to any person obtaining a copy of this software "
    * 3
)
ROWS = [
    ("a", LICENSE + "and associated documentation files", "mit"),
    ("b", LICENSE.title() + "and associated documentation files!", "mit"),
    ("c", LICENSE + "and files", "mit"),
    ("d", "an entirely different text about something else", "other"),
    ("e", "eight nine ten", "other"),
    ("f", LICENSE, None),
]
JUDGED = "left_id,right_id,duplicate\na,b,true\nd,e,true\na,d,false\na,zzz,true\n"
TIMES = (
    "seconds",
    "compile_seconds",
    "timings",
    "documents_per_second",
    "megabytes_per_second",
    "peak_memory_bytes",
)


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(
        "".join(json.dumps({"id": a, "text": b, "cluster": c}) + "\n" for a, b, c in ROWS),
        encoding="utf-8",
    )
    Path("judged.csv").write_text(JUDGED)
    Path("plain.txt").write_text("one\ntwo\n")
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(cli, ["evaluate", *arguments], prog_name="neardup")


def done(*arguments: str) -> str:
    """Return what a command prints that ends well."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def untimed(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report as JSON holds it, without what differs from run to run."""
    return {
        name: value for name, value in json.loads(json.dumps(report)).items() if name not in TIMES
    }


def test_json_is_what_the_library_returns():
    printed = json.loads(done("in.jsonl", "--threshold", "0.6", "--ngram", "3", "--json"))
    library = neardup.evaluate("in.jsonl", method=neardup.MinHash(threshold=0.6, ngram=3))
    assert untimed(printed) == untimed(library.report)
    assert printed["at_threshold"] == {
        "threshold": 0.6,
        "found": 3,
        "correct": 3,
        "positives": 4,
        "precision": 1.0,
        "recall": 0.75,
        "f1": 6 / 7,
    }
    assert printed["curve"] == library.curve.to_pylist()
    assert printed["by_length"] == library.by_length.to_pylist()
    assert printed["truth"] == {
        "label": "cluster",
        "documents": 5,
        "labels": 2,
        "pairs": 10,
        "found_unknown": 3,
    }


def test_the_tables_name_the_truth_the_figures_the_lengths_and_the_curve():
    lines = [" ".join(line.split()) for line in done("in.jsonl", "--threshold", "0.6").splitlines()]
    for line in (
        "Read 6 documents",
        "Labelled 5 of them, under 2 labels",
        "To find 4 pairs under one label",
        "Found at 0.6 or more",
        "Precision 100 %",
        "Recall 75.0 %",
        "F1 85.7 %",
        "Best F1 at 0.8 or more",
        "characters texts to find precision recall F1",
        "8 to 15 1 1 - 0 % 0 %",
        "threshold found precision recall F1",
    ):
        assert any(one.startswith(line) for one in lines), (line, lines)
    assert sum(line.endswith("<- the method's own") for line in lines) == 1
    assert sum("the method's own" in line and line.startswith("0.6 ") for line in lines) == 1
    assert [line.split()[0] for line in lines if line.endswith("<- the best F1")] == ["0.8"]


@pytest.mark.slow
def test_methods_are_set_side_by_side_each_with_the_options_that_it_has():
    options = [
        "--compare-methods",
        "minhash",
        "--compare-methods",
        "simhash",
        "--max-distance",
        "8",
        "--num-bands",
        "30",
        "--rows-per-band",
        "3",
    ]
    options += ["--ngram", "2", "--threshold", "0.7"]
    printed = json.loads(done("in.jsonl", *options, "--json"))
    assert list(printed) == ["minhash", "simhash"]
    both = {"ngram": 2, "threshold": 0.7}
    methods = {
        "minhash": neardup.MinHash(num_bands=30, rows_per_band=3, **both),
        "simhash": neardup.SimHash(max_distance=8, **both),
    }
    for name, method in methods.items():
        assert untimed(printed[name]) == untimed(neardup.evaluate("in.jsonl", method=method).report)
    shown = done("in.jsonl", *options)
    assert re.search("Found at +0.7 or more +8 bits or less\n", shown)
    assert "By length of the shorter text: precision / recall" in shown
    assert "minhash by threshold" in shown
    assert "simhash by max distance" in shown


def test_judged_pairs_take_the_place_of_labels_and_unknown_ids_are_named():
    shown = done("in.jsonl", "--pairs", "judged.csv")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "Judged 3 pairs of 4 documents" in lines
    assert "To find 2 pairs judged to be duplicates" in lines
    assert "Adjusted Rand" not in shown
    said = (
        "judged.csv names 1 id that the corpus does not have: 'zzz'. 1 pair with such an id "
        "counted for nothing."
    )
    assert f"Warning: {said}" in shown
    assert json.loads(done("in.jsonl", "--pairs", "judged.csv", "--json"))["warnings"] == [said]


def test_the_plot_is_an_svg_of_each_curve():
    done(
        "in.jsonl",
        "--compare-methods",
        "simhash",
        "--compare-methods",
        "minhash",
        "--plot",
        "curves.svg",
        "--quiet",
    )
    drawing = ET.parse("curves.svg").getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    groups = drawing.findall("{*}g")
    assert len(groups) == 2
    for group, label in zip(groups, ("simhash", "minhash"), strict=True):
        assert len(group.findall("{*}polyline")) == 3
        assert f"↑ {label}" in [text.text for text in group.findall("{*}text")]
    assert sorted(path.name for path in Path().iterdir()) == [
        "curves.svg",
        "in.jsonl",
        "judged.csv",
        "plain.txt",
    ]


def test_quiet_prints_nothing_and_an_ascii_terminal_gets_ascii_bars():
    assert done("in.jsonl", "--quiet") == ""
    shown = CliRunner(charset="ascii").invoke(cli, ["evaluate", "in.jsonl"])
    assert shown.exit_code == 0
    assert "#" * 20 in shown.stdout


TWICE = ("--compare-methods", "simhash") * 2
ERRORS = {
    "no such column": (
        ["in.jsonl", "--label", "topic"],
        "No column 'topic' in in.jsonl: it has 'id', 'text'",
    ),
    "plain text": (["plain.txt"], "plain.txt is plain text, which has no columns."),
    "no such file of pairs": (["in.jsonl", "--pairs", "no.csv"], "No such file or folder: no.csv."),
    "pairs without columns": (
        ["in.jsonl", "--pairs", "in.jsonl"],
        "No column 'left_id' in in.jsonl: it has",
    ),
    "an option of the other": (
        ["in.jsonl", "--max-distance", "3"],
        "--max-distance belongs to --method simhash",
    ),
    "one to compare": (
        ["in.jsonl", "--compare-methods", "minhash"],
        "--compare-methods must name two or more methods, each once, of",
    ),
    "one twice": (["in.jsonl", *TWICE], "got simhash, simhash."),
    "an unknown method": (
        ["in.jsonl", *TWICE[:2], "--compare-methods", "dom"],
        "got simhash, dom.",
    ),
    "compare beside method": (
        ["in.jsonl", *TWICE, "--method", "minhash"],
        "--compare-methods replaces --method",
    ),
    "not an svg": (["in.jsonl", "--plot", "curves.png"], "The output curves.png must end in .svg"),
    "a plot that exists": (["in.jsonl", "--plot", "old.svg"], "The output old.svg already exists."),
}


@pytest.mark.parametrize(("arguments", "said"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line_on_stderr_and_exit_code_2(arguments, said):
    Path("old.svg").write_text("old")
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("neardup: error: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert Path("old.svg").read_text() == "old"


def test_the_page_of_errors_is_named_and_is_of_one_method():
    assert "errors.html" in done("in.jsonl", "--errors", "errors.html")
    assert "Missed pairs" in Path("errors.html").read_text()
    done("in.jsonl", "--errors", "errors.html", "--lang", "zh", "--overwrite")
    page = Path("errors.html").read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in page
    assert "漏掉的文本对" in page
    assert "Missed" not in page
    refused = run("in.jsonl", "--errors", "e.html", *TWICE[:2], "--compare-methods", "minhash")
    assert refused.exit_code == 2
    assert "--errors requires a single method" in refused.stderr
