"""Print the result of a search for repeated passages."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from neardup.cli.render.reports import add_passages, add_rejected, print_closing, print_troubles
from neardup.cli.render.table import Rows
from neardup.files import AnyPath
from neardup.report.wording import memory, noun


def print_report(report: dict[str, Any], output: AnyPath, console: Console | None = None) -> None:
    """Print the counts, and the files of `output`."""
    console = console or Console(highlight=False)
    counts, table = report["counts"], Rows()
    table.count("Read", counts["read"], f"{noun(counts['read'], 'document')}, {memory(report['source_bytes'])} of text")
    add_passages(table, counts)
    add_rejected(table, report, counts["rejected"])
    files = {"Report": "report.html", "Passages": "passages.parquet"}
    written = {"Kept": "kept/"} if report["write"] != "removed" else {}
    table.line()
    print_closing(table, report, files | written, output, console)
    print_troubles(report, console)
