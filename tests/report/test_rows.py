"""The rows of a report: the terminal, the page and a notebook print the same ones."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import neardup
from neardup.cli.render.reports import print_report
from neardup.report.rows import Row, cost_rows, headline, limits_of, result_rows, search_rows
from neardup.report.sections import notebook, result
from reference.page import Page

TEXT = "one two three four five six seven eight nine ten"
TEXTS = [TEXT, TEXT.upper(), f"{TEXT} eleven", "another text", ""]
PASSAGE = "A notice that stands below each page of the site, and is long enough. " * 3

RUNS = {
    "dedup": lambda out: neardup.dedup(TEXTS, recall_sample=3, output=out),
    "dedup against": lambda out: neardup.dedup(TEXTS, against=[TEXT], output=out),
    "simhash": lambda out: neardup.dedup(TEXTS, method="simhash", output=out),
    "cluster": lambda out: neardup.cluster(TEXTS, output=out),
    "contamination": lambda out: neardup.find_contamination(
        [TEXT, "not there at all"], TEXTS, output=out
    ),
    "passages": lambda out: neardup.remove_passages(
        [PASSAGE, f"Next. {PASSAGE}"], min_length=100, output=out
    ),
}


def rows_of(report: dict[str, Any]) -> list[Row]:
    return [*result_rows(report), *search_rows(report), *cost_rows(report)]


def words_of(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("command", RUNS)
def test_terminal_page_and_notebook_show_every_row(command: str, tmp_path: Path) -> None:
    result = RUNS[command](tmp_path / "out")
    console = Console(file=io.StringIO(), width=400, highlight=False)
    print_report(result.report, tmp_path / "out", console)
    page = Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).texts
    cells = [*page["span"], *page["th"], *page["td"]]
    notebook = Page(result._repr_html_()).texts
    terminal = words_of(console.file.getvalue())
    for row in rows_of(result.report):
        assert {row.label, row.value} <= set(cells)
        assert not row.remark or row.remark in cells
        if not row.is_detail:
            assert words_of(f" {row.label} {row.value} {row.explanation}").rstrip() in terminal
            assert {row.value, row.explanation} <= set(notebook["td"])


@pytest.mark.parametrize("command", RUNS)
def test_the_headline_is_that_of_the_page_and_of_the_result(command: str, tmp_path: Path) -> None:
    result = RUNS[command](tmp_path / "out")
    page = Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert page.texts["h1"] == [headline(result.report)] == [str(result)]


def test_a_fact_of_a_rule_is_shown_in_words_and_its_name_never_becomes_markup() -> None:
    report = {"settings": {"linkage": "mine"}, "mine": {"a<b": True, "few": 1000}}
    assert [(row.label, row.value) for row in result_rows(report)[-2:]] == [
        ("A<b", "True"),
        ("Few", "1,000"),
    ]
    for page in (notebook(report), result(report)):
        assert "A&lt;b" in page


def test_a_count_that_is_rare_has_no_row_if_it_is_zero() -> None:
    report = {
        "command": "dedup",
        "counts": {"read": 2, "kept": 2, "removed": 0, "against": 0, "without_features": 0},
    }
    assert [row.label for row in result_rows(report)] == ["Read", "Kept", "Removed"]
    report["counts"] |= {"against": 3, "without_features": 1}
    assert [row.label for row in result_rows(report)] == [
        "Read",
        "Kept",
        "Removed",
        "Without features",
        "Against",
    ]


@pytest.mark.parametrize(
    ("settings", "near", "limits"),
    [
        ({"similarity": "jaccard", "threshold": 0.8}, None, "jaccard 0.8 or more"),
        (
            {"similarity": "cosine", "threshold": 0.9, "min_structure": 0.5},
            None,
            "cosine 0.9 or more, structure 0.5 or more",
        ),
        (
            {"confirm": "hamming", "threshold": 0.5},
            {"max_distance": 1},
            "fingerprints within 1 bit",
        ),
        (
            {"confirm": "jaccard", "threshold": 0.5},
            {"max_distance": 3},
            "fingerprints within 3 bits, jaccard 0.5 or more",
        ),
        ({}, None, ""),
    ],
)
def test_limits_are_named_with_their_measures(
    settings: dict[str, Any], near: Any, limits: str
) -> None:
    assert limits_of({"settings": settings, "fingerprints": near}) == limits


@pytest.mark.parametrize(
    ("parts", "value", "remark"),
    [
        (
            {"recall": {"estimated": 0.99, "low": 0.98, "high": 1.0}},
            "99.0 %",
            "estimated, without copies; 98.0 % to 100 %",
        ),
        ({"recall": None}, "-", "no near-duplicate to estimate it from"),
        ({"recall": None, "updated": False}, "-", "not estimated on top of an index"),
        (
            {"recall": None, "bound": {"max_bucket_size": 8, "documents": 1}},
            "-",
            "not known: 1 document not compared with all candidates",
        ),
        (
            {"recall": None, "fingerprints": {"max_distance": 3}},
            "100 %",
            "of the fingerprints within 3 bits: none is missed",
        ),
    ],
)
def test_the_recall_is_shown_or_the_reason_why_there_is_none(
    parts: dict[str, Any], value: str, remark: str
) -> None:
    (row,) = search_rows({"command": "dedup", "counts": {}, **parts})[:1]
    assert (row.label, row.value, row.remark) == ("Recall", value, remark)
