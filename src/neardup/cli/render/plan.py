"""Print the estimate of a run with its S-curve, and the cost of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from neardup.candidates.bands import candidate_probability
from neardup.candidates.blocks import BlockPlan
from neardup.candidates.plan import ClusterPlan, Plan
from neardup.cli.render.table import Rows, is_unicode
from neardup.index.plan import IndexPlan
from neardup.output.wording import memory, percent, plural

_LEAST_ROWS = 8
_WIDTH, _HEIGHT = 60, 16
_MARGIN = 7
_EIGHTHS, _HALVES = " ▁▂▃▄▅▆▇█", " .:#"
_FALSE, _FOUND, _MARK = "yellow", "green", "bold"


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
    cached = f"with {memory(plan.cache_bytes)} of cached documents" if plan.cache_bytes else "without cached documents"
    rows.figure("Memory", memory(plan.memory_bytes), f"at most, {cached} (--cache-bytes)", "bold")
    rows.figure("Disk", memory(plan.disk_bytes), "of scratch files at most, deleted at the end", "bold")
    each = plan.false_candidates / max(plan.documents, 1)
    rows.figure(
        "False candidates",
        f"{plan.false_candidates:,.0f}",
        f"pairs below the threshold that are compared, {each:.2g} per document; several times more with boilerplate",
    )
    rows.print(console)
    console.print()
    console.print(Text("  Chance that a pair is compared, by its similarity", "bold"))
    console.print()
    console.print(
        draw_curve(
            lambda similarity: float(candidate_probability(similarity, bands)),
            plan.threshold,
            unicode=is_unicode(console),
        )
    )


def print_cluster(plan: ClusterPlan, console: Console | None = None) -> None:
    """Print the estimate of a run on Spark."""
    rows = Rows()
    rows.figure("Documents", f"{plan.documents:,}", f"{memory(plan.text_bytes)} of text")
    rows.figure("Bands", f"{plan.bands.num_bands} x {plan.bands.rows_per_band}", "bands x rows")
    rows.figure("Shuffle", memory(plan.shuffle_bytes), "compressed, of which:", "bold")
    rows.figure("", memory(plan.collapse_bytes), "to collapse copies")
    rows.figure("", memory(plan.band_bytes), "to fill the buckets of bands")
    rows.figure("", memory(plan.feature_bytes), "to compare candidates")
    rows.figure("Work", f"{plan.core_hours:,.0f}", "core-hours", "bold")
    rows.figure("Memory", memory(plan.core_memory_bytes), "for each core of an executor", "bold")
    rows.print(console or Console(highlight=False))


def print_blocks(
    plans: tuple[BlockPlan, ...],
    bits: int,
    max_distance: int,
    memory_bytes: float | None,
    console: Console | None = None,
) -> None:
    """Print the cost of each number of blocks, with the choice marked; useless ones are left out."""
    console = console or Console(highlight=False)
    count = plans[0].num_fingerprints
    picked = next(index for index, plan in enumerate(plans) if plan.picked)
    rows = Rows()
    rows.figure("Fingerprints", f"{count:,}", f"of {bits} bits, found up to {plural(max_distance, 'bit')} apart")
    rows.figure("One by one", f"{count:,}", "comparisons a query, without tables")
    if memory_bytes is not None:
        rows.figure("Memory", memory(memory_bytes), "allowed")
    rows.print(console)
    console.print()
    heads = ("blocks", "tables", "key bits", "tables take", "index takes", "candidates a table", "comparisons a query")
    cells = [heads] + [
        (
            f"{plan.num_blocks}", f"{plan.num_tables:,}", f"{plan.key_bits}", memory(plan.table_bytes),
            memory(plan.memory_bytes), _few(plan.candidates), _few(plan.comparisons),
        )
        for plan in plans[: max(picked + 3, _LEAST_ROWS)]
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for index, row in enumerate(cells):
        plan = plans[index - 1] if index else None
        style = "dim" if plan is None or not plan.fits else "bold green" if plan.picked else ""
        note = "" if plan is None else "  too large" if not plan.fits else "  <- the choice" if plan.picked else ""
        line = "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        console.print(Text(f"  {line}{note}", style), soft_wrap=True)
    console.print()
    source = (
        "Two fingerprints that differ in at most k bits agree in all of at least m - k of m blocks: a table for each "
        "choice of these, sorted by their bits, finds every one (Manku, Jain and Das Sarma, 2007)."
    )
    console.print(Text(source, "dim"))


def print_index(plans: Sequence[IndexPlan], console: Console | None = None) -> None:
    """Print the bytes of an index by storage level."""
    console = console or Console(highlight=False)
    first, rows = plans[0], Rows()
    blocks = "" if first.num_blocks is None else f", of {plural(first.num_blocks, 'block')}"
    rows.figure("Documents", f"{first.documents:,}", "that are kept")
    rows.figure("Tables", f"{first.num_tables:,}", f"of keys{blocks}")
    rows.print(console)
    console.print()
    heads = ("stored", "keys", "fingerprint, id", "features", "text", "bytes a document", "on disk")
    cells = [heads] + [
        (
            plan.storage, f"{plan.key_bytes:,.0f}", f"{plan.fingerprint_bytes:,.0f}", f"{plan.feature_bytes:,.0f}",
            f"{plan.text_bytes:,.0f}", f"{plan.document_bytes:,.0f}", memory(plan.disk_bytes),
        )
        for plan in plans
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        console.print(Text(f"  {line}", "dim" if row is heads else ""), soft_wrap=True)


def _few(count: float) -> str:
    """Return a mean number of candidates, fractions by their leading digits."""
    return f"{count:,.0f}" if count >= 10 else f"{count:.2g}"


def draw_curve(chance: Callable[[float], float], threshold: float, *, unicode: bool) -> Text:
    """Return the curve of a chance over the similarity as an area, with the threshold marked.

    Parameters
    ----------
    chance : the probability, in [0, 1], of each similarity in [0, 1].
    threshold : where the area changes from false candidates to duplicates that are found.
    unicode : draw with block elements; else with ASCII.

    Returns
    -------
    Text of 60 x 16 characters and the axes; a column shows the middle of its range of similarities.
    """
    fills = _EIGHTHS if unicode else _HALVES
    corner, bar, side, up = ("└", "─", "│", "▲") if unicode else ("+", "-", "|", "^")
    mark = min(_WIDTH - 1, int(threshold * _WIDTH))
    levels = [round(chance((x + 0.5) / _WIDTH) * _HEIGHT * (len(fills) - 1)) for x in range(_WIDTH)]
    picture = Text()
    for row in range(_HEIGHT, 0, -1):
        label = f"{100 * row // _HEIGHT} %" if row % (_HEIGHT // 4) == 0 else ""
        picture.append(f"{label:>{_MARGIN - 1}} {side if not label else _tick(unicode)}")
        for x, level in enumerate(levels):
            fill = fills[min(len(fills) - 1, max(0, level - (row - 1) * (len(fills) - 1)))]
            if x == mark:
                picture.append("│" if unicode else "|", _MARK)
            else:
                picture.append(fill, _FALSE if x < mark else _FOUND)
        picture.append("\n")
    picture.append(f"{'0 %':>{_MARGIN - 1}} {corner}{_axis(bar, unicode)}\n")
    numbers = "".join(f"{x / 5:<{_WIDTH // 5}g}" for x in range(6))
    picture.append(" " * _MARGIN + " " + numbers.rstrip() + "\n")
    caption = f"{up} threshold {threshold:g}: {percent(chance(threshold))} found"
    start = _MARGIN + 1 + mark
    picture.append(
        " " * start + caption if start + len(caption) <= 79 else f"{caption[2:]} {up}".rjust(start + 1), _MARK
    )
    return picture


def _tick(unicode: bool) -> str:
    return "┤" if unicode else "+"


def _axis(bar: str, unicode: bool) -> str:
    step = _WIDTH // 5
    return "".join(("┬" if unicode else "+") if x % step == 0 and x else bar for x in range(_WIDTH))
