"""Print the reports of dedup, pairs, fingerprint and idf as tables, or any report as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from neardup.cli.render.table import Rows
from neardup.output.wording import duration, memory, percent, plural, visible, what_copies_share

_MAX_STAGES, _MAX_REJECTED = 4, 5


def print_json(record: dict[str, Any]) -> None:
    """Print a record as one JSON object; characters that stdout cannot encode are escaped."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    click.echo(json.dumps(record, ensure_ascii=not unicode, indent=2))


def _copies(report: dict[str, Any]) -> str:
    return what_copies_share(report["settings"], (report.get("scheme") or {}).get("tokens"))


def print_deduplication(report: dict[str, Any], output: Path, console: Console | None = None) -> None:
    """Print the closing table of `neardup dedup`."""
    console = console or Console(highlight=False)
    counts, table = report["counts"], Rows()
    read = counts["read"]
    table.count("Read", read, f"documents, {memory(report['bytes'])} of text")
    table.count("Kept", counts["kept"], share(counts["kept"], read), "bold green")
    table.count("Removed", counts["removed"], share(counts["removed"], read), "bold")
    if counts["removed"]:
        table.count("  exact copies", counts["removed_exact"], _copies(report))
        table.count("  near-duplicates", counts["removed_near"], likeness(report))
    table.count("Rejected", counts["rejected"], "could not be read", "bold red" if counts["rejected"] else "")
    table.count("Without features", counts["without_features"], "no token: always kept")
    if counts["against"]:
        table.count("Against", counts["against"], "documents of the earlier collection")
    add_incomplete(table, report)
    add_recall(table, report)
    add_cost(table, report)
    table.line()
    table.line("Report", visible(output / "report.html"), "bold cyan")
    if counts["rejected"] or report["incomplete"]:
        table.line("Rejected", visible(output / "rejected.jsonl"), "bold cyan")
    table.print(console)
    print_warnings(report, console)


def print_pairs(report: dict[str, Any], output: Path, console: Console | None = None) -> None:
    """Print the closing table of `neardup pairs`."""
    console = console or Console(highlight=False)
    counts, table = report["counts"], Rows()
    if "read" not in counts:
        _print_fingerprint_pairs(report, output, console)
        return
    table.count("Read", counts["read"], f"documents, {memory(report['bytes'])} of text")
    found, exact = counts["confirmed"], counts["confirmed_exact"]
    table.count("Duplicate pairs", found, "measured exactly", "bold green")
    if found:
        table.count("  exact copies", exact, _copies(report))
        table.count("  near-duplicates", found - exact, likeness(report))
    table.count("Compared", counts["compared"], "candidate pairs")
    table.count("Rejected", counts["rejected"], "could not be read", "bold red" if counts["rejected"] else "")
    table.count("Without features", counts["without_features"], "no token: equal to nothing")
    add_incomplete(table, report)
    add_recall(table, report)
    add_cost(table, report)
    table.line()
    table.line("Pairs", visible(output), "bold cyan")
    table.print(console)
    print_warnings(report, console)
    print_rejected(report, console)


def add_incomplete(table: Rows, report: dict[str, Any]) -> None:
    """Add how many files could not be read to their end, if there are any."""
    if report["incomplete"] is not None:
        table.count("Incomplete", report["incomplete"]["files"], "files could not be read to the end", "bold red")


def likeness(report: dict[str, Any]) -> str:
    """Return the limit that makes two documents near-duplicates."""
    settings = report["settings"]
    if report.get("fingerprints") is None:
        structure = settings.get("min_structure")
        besides = "" if structure is None else f", structure {structure:g} or more"
        return f"{settings['similarity']} {settings['threshold']:g} or more{besides}"
    within = f"{plural(settings['max_distance'], 'bit')} apart or less"
    return within + (f", jaccard {settings['threshold']:g} or more" if settings["confirm"] == "jaccard" else "")


def share(part: int, whole: int) -> str:
    """Return a share as a percentage; nothing of nothing."""
    return percent(part / whole) if whole else ""


def add_recall(table: Rows, report: dict[str, Any]) -> None:
    """Add the recall of the run: estimated, and measured by the audit."""
    table.line()
    recall, audit, near = report["recall"], report["audit"], report.get("fingerprints")
    if near is not None:
        table.figure(
            "Recall", "100 %", f"of the fingerprints within {plural(near['max_distance'], 'bit')}: none is missed"
        )
        if report["settings"]["confirm"] == "jaccard":
            table.count("Collisions", near["collisions"], "near fingerprints of dissimilar texts, rejected")
    elif recall is None:
        table.figure("Recall", "-", "no near-duplicate to estimate it from")
    else:
        table.figure(
            "Recall", percent(recall["estimated"]),
            f"estimated; {percent(recall['low'])} to {percent(recall['high'])}",
        )  # fmt: skip
    if audit is None:
        return
    if audit["recall"] is None:
        documents = plural(audit["documents"], "document")
        table.figure("Audit", "-", f"{documents} compared with all others: no duplicate among them")
        return
    table.figure(
        "Audit", percent(audit["recall"]),
        f"measured; {percent(audit['low'])} to {percent(audit['high'])}; "
        f"{audit['found']:,} of {audit['pairs']:,} pairs",
    )  # fmt: skip


def _print_fingerprint_pairs(report: dict[str, Any], output: Path, console: Console) -> None:
    counts, table = report["counts"], Rows()
    within = plural(report["settings"]["max_distance"], "bit")
    table.count("Fingerprints", counts["fingerprints"], f"{report['scheme']['bits']} bits each")
    table.count("Pairs", counts["confirmed"], f"{within} apart or less: all there are", "bold green")
    table.count("Without features", counts["without_features"], "no fingerprint: equal to nothing")
    table.line()
    stages = [f"{timing['stage']} {duration(round(timing['seconds'], 1))}" for timing in report["timings"]]
    table.figure("Time", duration(report["seconds"]), ", ".join(stages))
    add_compilation(table, report)
    table.figure("Speed", f"{report['fingerprints_per_second']:,}", "fingerprints/s")
    if report["peak_memory_bytes"] is not None:
        table.figure("Peak memory", memory(report["peak_memory_bytes"]), "")
    table.line()
    table.line("Pairs", visible(output), "bold cyan")
    table.print(console)


def print_signed(report: dict[str, Any], output: Path, console: Console | None = None) -> None:
    """Print the closing table of `neardup sign`."""
    console, table, counts = console or Console(highlight=False), Rows(), report["counts"]
    table.count("Read", counts["read"], f"documents, {memory(report['bytes'])} of text")
    scheme = report["scheme"]
    size = f"{scheme['bits']} bits each" if "bits" in scheme else f"{scheme['num_hashes']} hashes each"
    table.count("Signed", counts["signed"], size, "bold green")
    table.count("Without features", counts["without_features"], "no token: null")
    table.count("Rejected", counts["rejected"], "could not be read", "bold red" if counts["rejected"] else "")
    add_incomplete(table, report)
    table.line()
    add_cost(table, report)
    table.line()
    table.line("Output", visible(output), "bold cyan")
    table.print(console)
    print_warnings(report, console)
    print_rejected(report, console)


def print_frequencies(table: Any, rejected: list[dict[str, Any]], output: Path, console: Console | None = None) -> None:
    """Print the closing table of `neardup idf`."""
    console, rows = console or Console(highlight=False), Rows()
    rows.count("Documents", table.num_documents, "counted once for each of their features")
    rows.count("Features", len(table.hashes), "distinct", "bold green")
    if table.max_undercount:
        rows.count("Undercount", table.max_undercount, "at most: the rarest features were dropped to save memory")
    rows.count("Rejected", len(rejected), "could not be read", "bold red" if rejected else "")
    rows.line("Version", table.version)
    rows.line("Table", visible(output), "bold cyan")
    rows.print(console)
    print_rejected({"rejected": rejected}, console)


def add_cost(table: Rows, report: dict[str, Any]) -> None:
    """Add the time and memory of the run."""
    longest = sorted(report["timings"], key=lambda timing: -timing["seconds"])[:_MAX_STAGES]
    stages = [t for t in report["timings"] if t in longest and t["seconds"] >= 0.05]
    seconds = [f"{timing['stage']} {duration(round(timing['seconds'], 1))}" for timing in stages]
    table.figure("Time", duration(report["seconds"]), ", ".join(seconds))
    add_compilation(table, report)
    table.figure("Speed", _rate(report["megabytes_per_second"]), f"{report['documents_per_second']:,} documents/s")
    if report["peak_memory_bytes"] is not None:
        table.figure("Peak memory", memory(report["peak_memory_bytes"]), "")


def add_compilation(table: Rows, report: dict[str, Any]) -> None:
    """Add how long the kernels were compiled, if it took half a second or more."""
    seconds = report["compile_seconds"]
    if seconds >= 0.5:
        table.figure("Compiling", duration(round(seconds, 1)), "for this processor, once; not counted above or below")


def _rate(megabytes: float) -> str:
    return f"{megabytes:,.0f} MB/s" if megabytes >= 10 else f"{megabytes:.1f} MB/s"


def print_warnings(report: dict[str, Any], console: Console) -> None:
    """Print the warnings of a run."""
    for warning in report["warnings"]:
        console.print()
        _print_line("Warning", "bold yellow", warning, console)


def _print_line(kind: str, style: str, text: str, console: Console) -> None:
    line = Text(f"{kind}: ", style).append(visible(text), "default not bold")
    console.print(line, soft_wrap=not console.is_terminal)


def print_rejected(report: dict[str, Any], console: Console) -> None:
    """Print the first documents that could not be read, with the reasons."""
    rejected = report.get("rejected", [])
    if rejected:
        console.print()
    for row in rejected[:_MAX_REJECTED]:
        position = ", ".join(f"{name} {row[name]}" for name in ("row", "line", "byte") if row[name] is not None)
        text = f"{row['file']}{', ' if position else ''}{position}: {row['reason']}"
        _print_line("Rejected", "bold red", text, console)
    if len(rejected) > _MAX_REJECTED:
        console.print(f"... and {len(rejected) - _MAX_REJECTED:,} more; --json lists them all.")
