"""Print the counts of several thresholds, and examples on both sides of each."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from neardup.cli.render.compare import print_differences
from neardup.cli.render.diff import Marks
from neardup.cli.render.table import is_plain, is_unicode, table_lines
from neardup.report.wording import percent, visible
from neardup.results import Sweep


def print_sweep(result: Sweep, console: Console | None = None) -> None:
    """Print a row for each threshold, then the examples of each with their differences."""
    console = console or Console(highlight=False)
    console.print()
    rows = []
    for row in result.counts.to_pylist():
        total, near = row["kept"] + row["removed"], row["removed"] - row["removed_exact"]
        share = percent(row["removed"] / total) if total else "-"
        counts = (f"{count:,}" for count in (row["removed_exact"], near))
        rows.append((f"{row['threshold']:g}", f"{row['removed']:,}", share, *counts))
    for line in table_lines(("Threshold", "Removed", "of all", "copies", "near-duplicates"), rows):
        console.print(line, soft_wrap=True)
    marks = Marks(is_plain(console), is_unicode(console), full=False)
    for example in result.examples:
        at, kept = example.removed_at, example.kept_at
        sides = [] if at is None else [f"removed at {at:g}"]
        sides += [] if kept is None else [f"kept at {kept:g}"]
        console.print(Text(f"\nSimilarity {example.similarity:.4f}: {', '.join(sides)}", "bold"))
        names = visible(example.id), f"{visible(example.kept_id)} (kept)"
        if example.pair.truncated:
            console.print(Text("  Long texts: only the beginning of each is compared here.", "dim"))
        print_differences(example.pair, names, marks, console)
