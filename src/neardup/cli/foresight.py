"""Print what a run would take, with its S-curve."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from neardup.candidates.bands import candidate_probability
from neardup.candidates.plan import Plan
from neardup.cli.curve import draw_curve
from neardup.cli.rows import Rows
from neardup.output.wording import memory, percent


def print_plan(plan: Plan, console: Console | None = None) -> None:
    """Print the figures of a plan, then its S-curve."""
    console = console or Console(highlight=False)
    bands = plan.bands
    rows = Rows()
    rows.figure("Documents", f"{plan.documents:,}", f"{memory(plan.text_bytes)} of text")
    rows.figure(
        "Bands", f"{bands.num_bands} x {bands.rows_per_band}", f"bands x rows: {bands.num_hashes} hashes a document"
    )
    rows.figure(
        "Recall", percent(plan.recall_at_threshold), f"of the pairs just at the threshold {plan.threshold:g}", "bold"
    )
    rows.figure("Memory", memory(plan.memory_bytes), "at most", "bold")
    rows.figure("Disk", memory(plan.disk_bytes), "of scratch files, deleted at the end", "bold")
    each = plan.compared / max(plan.documents, 1)
    rows.figure("Compared in vain", f"{plan.compared:,.0f}", f"pairs below the threshold, {each:.2g} a document")
    rows.print(console)
    console.print()
    console.print(Text("  Chance that a pair is compared, by its similarity", "bold"))
    console.print()
    console.print(
        draw_curve(
            lambda similarity: float(candidate_probability(similarity, bands)),
            plan.threshold,
            unicode=console.encoding.lower().startswith("utf"),
        )
    )
