"""Print the result of `neardup audit`."""

from __future__ import annotations

import os

from rich.console import Console

from neardup.cli.render.reports import print_troubles
from neardup.cli.render.table import Rows
from neardup.files import AnyPath, JsonObject
from neardup.report.audit import audit_rows
from neardup.report.rows import cost_rows
from neardup.report.wording import say, visible

_FILES = {"report": "report.html", "removals": "removals.parquet", "left": "left.parquet"}


def print_audit(report: JsonObject, output: AnyPath) -> None:
    """Print the closing table of an audit."""
    console = Console(highlight=False)
    table = Rows()
    for rows in (audit_rows(report), cost_rows(report)):
        table.add(rows)
        table.line()
    for name, file in _FILES.items():
        table.line(say(f"files.{name}"), visible(os.path.join(output, file)), "bold cyan")
    table.print(console)
    print_troubles(report, console)
