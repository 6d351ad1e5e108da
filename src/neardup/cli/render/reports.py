"""Print the reports of the commands as tables."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.text import Text

from neardup.cli.render.table import Rows, print_table
from neardup.documents.batch import Rejected, describe_rejected
from neardup.files import AnyPath, JsonObject
from neardup.report.rows import (
    ReportValues,
    benchmark_table,
    cost_rows,
    part_of,
    removal_rows,
    result_rows,
    search_rows,
)
from neardup.report.wording import for_terminal, say, visible

_MAX_REJECTED = 5
_MAX_BENCHMARKS = 12
_FILES = {
    "dedup": {"report": "report.html", "removed": "removed.parquet"},
    "cluster": {
        "report": "report.html",
        "clusters": "cluster_summary.parquet",
        "documents": "clusters.parquet",
    },
    "contamination": {
        "report": "report.html",
        "hits": "hits.parquet",
        "items": "items.parquet",
        "left_out": "boilerplate.parquet",
    },
    "passages": {"report": "report.html", "passages": "passages.parquet"},
    "find-pairs": {"pairs": ""},
    "sign": {"output": ""},
}
"""The files of each command by the names of their sentences; "" is the output itself."""
_KEPT = {
    "mask": "mask.parquet",
    "ids": "ids.parquet",
    "annotated": "annotated/",
    **dict.fromkeys(("kept", "marked", "items", "corpus"), "kept/"),
}
"""The documents that a run writes, by its option `write`."""


def print_report(
    report: ReportValues, output: AnyPath | None, console: Console | None = None
) -> None:
    """Print the closing table of a command, then its clusters or benchmarks, warnings and rejected
    documents.

    output : the file or the folder that was written, or its address; None if the command writes
    none.
    """
    console = console or Console(highlight=False)
    table = Rows()
    files = [] if output is None else _files(report, output)
    run = [*search_rows(report), *cost_rows(report)]
    for rows in (result_rows(report), removal_rows(report), run):
        table.add(rows)
        if rows:
            table.line()
    for name, path in files:
        table.line(name, visible(path), "bold cyan")
    table.print(console)
    _print_largest(report.get("largest_clusters"), console)
    _print_benchmarks(report, console)
    print_troubles(report, console)


def print_frequencies(report: ReportValues, output: Path) -> None:
    """Print the closing table of `neardup document-frequencies`."""
    console = Console(highlight=False)
    names = ("documents", "features", "max_undercount")
    # A file that could not be read is no rejected row.
    rejected = sum(part_of(report, loss).get("rows", 0) for loss in ("unreadable", "excluded"))
    counts = {name: report[name] for name in names} | {"rejected": rejected}
    table = Rows()
    table.add(result_rows({**report, "command": "document-frequencies", "counts": counts}))
    table.line(say("files.version"), report["version"])
    table.line(say("files.frequencies"), visible(output), "bold cyan")
    table.print(console)
    print_troubles(report, console)


def _files(report: ReportValues, output: AnyPath) -> list[tuple[str, str]]:
    """Return the names of the files that a command wrote, and their paths."""
    files = dict(_FILES[report["command"]])
    written = _KEPT.get(report.get("write", ""))
    if written is not None:
        files["kept"] = written
    if report.get("passages"):
        files["passages"] = "passages.html"
    if report.get("groups"):
        files["groups"] = "groups.parquet"
    # Written only then.
    if "report" in files and (report["counts"]["rejected"] or report["incomplete"]):
        files["rejected"] = "rejected.jsonl"
    return [
        (say(f"files.{name}"), os.path.join(output, file) if file else os.fspath(output))
        for name, file in files.items()
    ]


def _print_largest(rows: list[JsonObject] | None, console: Console) -> None:
    """Print two lines for each of the largest clusters: size and name, an example."""
    if not rows:
        return
    width = max(len(f"{row['size']:,}") for row in rows)
    console.print(f"\n  {say('terminal.largest', clusters=len(rows))}\n")
    for row in rows:
        name = Text(visible(row["name"] or ""), "bold")
        console.print(Text(f"  {row['size']:>{width},}  ").append_text(name), soft_wrap=True)
        file, number = row["places"][0]
        example = (
            visible(file)
            if row["first_id"] == file
            else f"{visible(row['first_id'])}  {visible(file)}:{number}"
        )
        console.print(Text(f"  {'':{width}}  {example}", "dim"), soft_wrap=True)


def _print_benchmarks(report: ReportValues, console: Console) -> None:
    """Print the most contaminated benchmarks; nothing for one that was searched for in itself."""
    if report["command"] != "contamination" or (
        report["between"] and len(report["benchmarks"]) == 1
    ):
        return
    table = benchmark_table(report)
    rows = [(visible(name), *figures) for name, *figures in table.rows[:_MAX_BENCHMARKS]]
    print_table(console, table.titles, rows)
    left = len(table.rows) - len(rows)
    if left:
        console.print("  " + say("terminal.more_benchmarks", left=left))


def print_troubles(report: ReportValues, console: Console | None = None) -> None:
    """Print the unreadable inputs and the warnings of a run, then as `print_rejected`."""
    console = console or Console(highlight=False)
    if report.get("unreadable") and not report["incomplete"]:  # it has the same rows
        console.print()
        _print_line(
            say("terminal.unreadable_rows"),
            "bold red",
            for_terminal(report["unreadable"]["message"]),
            console,
        )
    for warning in report["warnings"]:
        console.print()
        _print_line(say("terminal.warning"), "bold yellow", for_terminal(warning), console)
    print_rejected(report, console)


def _print_line(kind: str, style: str, text: str, console: Console) -> None:
    line = Text(kind + say("words.colon"), style).append(visible(text), "default not bold")
    # In a file or a pipe a line stays whole, for grep; a terminal breaks it between words.
    console.print(line, soft_wrap=not console.is_terminal)


def print_rejected(report: ReportValues, console: Console) -> None:
    """Print the first documents that could not be read, with the reasons."""
    rejected = report.get("rejected", [])
    if rejected:
        console.print()
    for row in rejected[:_MAX_REJECTED]:
        _print_line(
            say("terminal.rejected"),
            "bold red",
            for_terminal(describe_rejected(Rejected(**row))),
            console,
        )
    if len(rejected) > _MAX_REJECTED:
        console.print(say("terminal.more_rejected", left=len(rejected) - _MAX_REJECTED))
