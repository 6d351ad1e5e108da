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
    bands = plan.bands
    if bands is not None:
        hashes = f"bands x rows: {bands.num_hashes} hashes a document"
        rows.figure("Bands", f"{bands.num_bands} x {bands.rows_per_band}", hashes)
        at_threshold = f"of the pairs just at the threshold {plan.threshold:g}"
        rows.figure("Recall", percent(plan.recall or 0.0), at_threshold, "bold")
    else:
        blocks = "" if plan.num_blocks is None else f", of {plural(plan.num_blocks, 'block')}"
        rows.figure("Tables", f"{plan.num_tables:,}", f"of keys{blocks}")
    if plan.memory_bytes is not None:
        rows.figure("Memory", memory(plan.memory_bytes), _about_memory(plan), "bold")
    if plan.parts:
        name, remark = _DISK[plan.engine]
        parts = ", ".join(f"{memory(size)} of {part}" for part, size in plan.parts.items() if size)
        rows.figure(name, memory(plan.disk_bytes), remark + parts, "bold")
    if plan.engine == "index":
        rows.figure("Each document", f"{plan.disk_bytes / plan.documents:,.0f}", "bytes")
    if plan.core_hours is not None:
        rows.figure("Work", f"{plan.core_hours:,.0f}", "core-hours", "bold")
    if plan.false_candidates is not None:
        each = (
            f"{plan.false_candidates / plan.documents:.2g} per document; several times more with "
            "boilerplate"
        )
        pairs = f"pairs below the threshold that are compared, {each}"
        rows.figure("False candidates", f"{plan.false_candidates:,.0f}", pairs)
    if plan.comparisons is not None:
        rows.figure(
            "Comparisons", _few(plan.comparisons), "a query, if all bits are random", "bold"
        )
    rows.print(console)
    if not plan.curve or plan.threshold is None:
        return
    console.print(
        Text(f"\n  {translated('Chance that a pair is compared, by its similarity')}\n", "bold")
    )
    console.print(draw_curve(plan.curve, plan.threshold, unicode=is_unicode(console)))


def _about_memory(plan: Plan) -> str:
    if plan.engine == "spark":
        return "for each core of an executor"
    if plan.engine == "memory":
        return "of the index"
    cached = (
        f"with {memory(plan.cache_bytes)} of cached documents"
        if plan.cache_bytes
        else "without cached documents"
    )
    return f"at most, {cached} (--cache-bytes)"


def _few(count: float) -> str:
    """Return a mean number of candidates, fractions by their leading digits."""
    return f"{count:,.0f}" if count >= 10 else f"{count:.2g}"


def draw_curve(curve: tuple[tuple[float, float], ...], threshold: float, *, unicode: bool) -> Text:
    """Return a bar for each probability of a curve, of false candidates below the threshold and of
    duplicates from it.

    Parameters
    ----------
    curve : pairs of a similarity and a probability, both in [0, 1].
    unicode : draw with block elements; else with ASCII.
    """
    picture = Text()
    marked = min(similarity for similarity, _ in curve if similarity >= threshold)
    for similarity, chance in curve:
        bar = ("█" if unicode else "#") * round(chance * _WIDTH)
        picture.append(f"  {similarity:4.2f}  {100 * chance:5.1f} %  ")
        picture.append(bar, _FALSE if similarity < threshold else _FOUND)
        picture.append(
            f"  <- {translated(f'threshold {threshold:g}')}\n" if similarity == marked else "\n",
            _MARK,
        )
    return picture
