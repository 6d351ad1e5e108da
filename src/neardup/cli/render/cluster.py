"""Print the report of `neardup cluster`: the closing table, then the largest clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from neardup.cli.render.reports import add_cost, add_incomplete, add_recall, likeness, print_warnings, share
from neardup.cli.render.table import Rows
from neardup.output.wording import memory, plural, visible


def print_clustering(report: dict[str, Any], output: Path, console: Console | None = None) -> None:
    """Print the closing table, and of the largest clusters the size, the name and an example."""
    console = console or Console(highlight=False)
    counts, table = report["counts"], Rows()
    read = counts["read"]
    table.count("Read", read, f"documents, {memory(report['bytes'])} of text")
    table.count("Clusters", counts["clusters"], f"of similar documents: {likeness(report)}", "bold green")
    table.count("  in clusters", counts["clustered"], share(counts["clustered"], read))
    table.count("  single", counts["single"], share(counts["single"], read))
    table.count("Rejected", counts["rejected"], "could not be read", "bold red" if counts["rejected"] else "")
    table.count("Without features", counts["without_features"], "nothing to compare: single")
    add_incomplete(table, report)
    add_recall(table, report)
    add_cost(table, report)
    table.line()
    table.line("Report", visible(output / "report.html"), "bold cyan")
    table.line("Clusters", visible(output / "cluster_summary.parquet"), "bold cyan")
    table.line("Documents", visible(output / "clusters.parquet"), "bold cyan")
    if counts["rejected"] or report["incomplete"]:
        table.line("Rejected", visible(output / "rejected.jsonl"), "bold cyan")
    table.print(console)
    _print_largest(report, console)
    print_warnings(report, console)


def _print_largest(report: dict[str, Any], console: Console) -> None:
    """Print two lines for each of the largest clusters: size and name, an example."""
    rows = report["largest_clusters"]
    if not rows:
        return
    width = max(len(f"{row['size']:,}") for row in rows)
    console.print(f"\n  The largest {plural(len(rows), 'cluster')}, each with its first document:\n")
    for row in rows:
        name = Text(visible(row["name"] or ""), "bold")
        console.print(Text(f"  {row['size']:>{width},}  ").append_text(name), soft_wrap=True)
        file, number = row["places"][0]
        console.print(
            Text(f"  {'':{width}}  {visible(row['first_id'])}  {visible(file)}:{number}", "dim"), soft_wrap=True
        )
