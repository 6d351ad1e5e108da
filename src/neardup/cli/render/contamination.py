"""Print the result of a search for items: a table by benchmark, and where the files are."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from neardup.cli.render.reports import add_rejected, print_closing, print_troubles
from neardup.cli.render.table import Rows, print_table
from neardup.files import AnyPath
from neardup.report.wording import memory, noun, percent, plural, translated, visible

_MOST = 12
_FILES = {"Report": "report.html", "Hits": "hits.parquet", "Items": "items.parquet", "Left out": "boilerplate.parquet"}


def print_report(report: dict[str, Any], output: AnyPath, console: Console | None = None) -> None:
    """Print the counts, the benchmarks and the files of `output`."""
    console = console or Console(highlight=False)
    counts, table = report["counts"], Rows()
    table.count("Items", counts["items"], f"of {plural(len(report['benchmarks']), 'benchmark')}")
    table.count("Searched", counts["read"], f"{noun(counts['read'], 'document')}, {memory(report['bytes'])} of text")
    share = percent(counts["contaminated"] / counts["items"])
    where = f"in {plural(counts['documents_with_items'], 'document')}"
    table.count("Contaminated", counts["contaminated"], f"{share}, {where}", "bold red")
    table.count("Boilerplate", counts["boilerplate"], "found, but only words that many documents or items have")
    table.count("Too short", counts["short"], "fewer than three shingles of its own: not looked for")
    table.count("Clean", counts["clean"], "not found", "bold green")
    add_rejected(table, report, counts["rejected"] + counts["items_rejected"])
    written = {} if report["write"] == "none" else {"Kept": "kept/"}
    table.line()
    print_closing(table, report, _FILES | written, output, console)
    heads = ("benchmark", "items", "contaminated", "boilerplate", "share")
    rows = [
        (visible(row["benchmark"]), *(f"{row[name]:,}" for name in heads[1:4]), percent(row["rate"]))
        for row in report["benchmarks"][:_MOST]
    ]
    if not report["between"] or len(report["benchmarks"]) > 1:
        print_table(console, heads, rows)
    if len(report["benchmarks"]) > _MOST:
        console.print("  " + translated(f"... and {len(report['benchmarks']) - _MOST:,} more; report.html lists them."))
    print_troubles(report, console)
