"""Print the result of a search for repeated passages."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console

from neardup.cli.render.reports import add_cost, add_passages, print_rejected, print_warnings
from neardup.cli.render.table import Rows
from neardup.report.wording import memory, noun, visible


def print_passages(report: dict[str, Any], output: str, console: Console | None = None) -> None:
    """Print the counts, and the files of `output`."""
    console = console or Console(highlight=False)
    counts, table = report["counts"], Rows()
    table.count("Read", counts["read"], f"{noun(counts['read'], 'document')}, {memory(report['source_bytes'])} of text")
    add_passages(table, counts)
    if counts["rejected"]:
        table.count("Rejected", counts["rejected"], "could not be read", "bold red")
    table.line()
    add_cost(table, report)
    table.line()
    files = {"Report": "report.html", "Passages": "passages.parquet"}
    for name, file in (files | ({"Kept": "kept/"} if report["write"] != "removed" else {})).items():
        table.line(name, visible(os.path.join(output, file)), "bold cyan")
    table.print(console)
    print_warnings(report, console)
    print_rejected(report, console)
