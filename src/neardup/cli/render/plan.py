"""Print the estimate of a run or an index, with its S-curve."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from neardup.api.plan import Plan
from neardup.cli.render.table import Rows, is_unicode
from neardup.report.wording import memory, percent, plural, translated

_WIDTH = 40
_FALSE = "yellow"
_FOUND = "green"
_MARK = "bold"
_DISK = {
    "local": ("Disk", "of scratch files at most, deleted at the end: "),
    "spark": ("Shuffle", "compressed: "),
    "index": ("Disk", "after compaction: "),
}


def print_plan(plan: Plan, console: Console | None = None) -> None:
    """Print the figures of a plan, then its S-curve, if it has one."""
    console = console or Console(highlight=False)
    rows = Rows()
    rows.figure("Documents", f"{plan.documents:,}", f"{memory(plan.text_bytes)} of text")
    _add_tables(rows, plan)
    _add_sizes(rows, plan)
    _add_work(rows, plan)
    rows.print(console)
    if not plan.curve or plan.threshold is None:
        return
    title = translated("Chance that a pair is compared, by its similarity")
    console.print(Text(f"\n  {title}\n", "bold"))
    console.print(draw_curve(plan.curve, plan.threshold, unicode=is_unicode(console)))


def _add_tables(rows: Rows, plan: Plan) -> None:
    """Add the bands and their recall, or the tables of blocks."""
    bands = plan.bands
    if bands is None:
        blocks = "" if plan.num_blocks is None else f", of {plural(plan.num_blocks, 'block')}"
        rows.figure("Tables", f"{plan.num_tables:,}", f"of keys{blocks}")
        return
    hashes = f"bands x rows: {bands.num_hashes} hashes a document"
    rows.figure("Bands", f"{bands.num_bands} x {bands.rows_per_band}", hashes)
    at_threshold = f"of the pairs just at the threshold {plan.threshold:g}"
    rows.figure("Recall", percent(plan.recall or 0.0), at_threshold, "bold")


def _add_sizes(rows: Rows, plan: Plan) -> None:
    """Add memory and disk space."""
    if plan.memory_bytes is not None:
        rows.figure("Memory", memory(plan.memory_bytes), _about_memory(plan), "bold")
    if plan.parts:
        name, remark = _DISK[plan.engine]
        parts = ", ".join(f"{memory(size)} of {part}" for part, size in plan.parts.items() if size)
        rows.figure(name, memory(plan.disk_bytes), remark + parts, "bold")
    if plan.engine == "index":
        rows.figure("Each document", f"{plan.disk_bytes / plan.documents:,.0f}", "bytes")


def _add_work(rows: Rows, plan: Plan) -> None:
    """Add processor time and comparisons."""
    if plan.core_hours is not None:
        rows.figure("Work", f"{plan.core_hours:,.0f}", "core-hours", "bold")
    if plan.false_candidates is not None:
        each = f"{plan.false_candidates / plan.documents:.2g} per document"
        pairs = (
            f"pairs below the threshold that are compared, {each}; several times more with "
            "boilerplate"
        )
        rows.figure("False candidates", f"{plan.false_candidates:,.0f}", pairs)
    if plan.comparisons is not None:
        # Fractions by their leading digits.
        count = f"{plan.comparisons:,.0f}" if plan.comparisons >= 10 else f"{plan.comparisons:.2g}"
        rows.figure("Comparisons", count, "a query, if all bits are random", "bold")


def _about_memory(plan: Plan) -> str:
    if plan.engine == "spark":
        return "for each core of an executor"
    if plan.engine == "memory":
        return "of the index"
    if plan.cache_bytes:
        return f"at most, with {memory(plan.cache_bytes)} of cached documents (--cache-bytes)"
    return "at most, without cached documents (--cache-bytes)"


def draw_curve(curve: tuple[tuple[float, float], ...], threshold: float, *, unicode: bool) -> Text:
    """Return a bar for each probability of a curve: false candidates, then found duplicates.

    Parameters
    ----------
    curve : pairs of a similarity and a probability, both in [0, 1].
    threshold : where false candidates end and duplicates begin.
    unicode : draw with block elements; otherwise with ASCII.
    """
    picture = Text()
    # The curve has steps, so that the threshold may lie between two of them.
    marked = min(similarity for similarity, _ in curve if similarity >= threshold)
    for similarity, chance in curve:
        bar = ("█" if unicode else "#") * round(chance * _WIDTH)
        picture.append(f"  {similarity:4.2f}  {100 * chance:5.1f} %  ")
        picture.append(bar, _FALSE if similarity < threshold else _FOUND)
        note = f"  <- {translated(f'threshold {threshold:g}')}" if similarity == marked else ""
        picture.append(f"{note}\n", _MARK)
    return picture
