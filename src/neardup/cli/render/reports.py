"""Print the reports of the commands as tables, or any report as JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from neardup.cli.render.table import Rows
from neardup.documents.batch import Rejected, describe_rejected
from neardup.report.wording import duration, memory, noun, percent, plural, visible, what_copies_share

_MAX_STAGES, _MAX_REJECTED, _MAX_LOSSES = 4, 5, 5


_WITHOUT_FEATURES = {
    "dedup": "no token: always kept",
    "cluster": "nothing to compare: single",
    "find-pairs": "no token: equal to nothing",
    "sign": "no token: null",
}
_FILES = {
    "dedup": {"Report": "report.html", "Removed": "removed.parquet"},
    "cluster": {"Report": "report.html", "Clusters": "cluster_summary.parquet", "Documents": "clusters.parquet"},
    "find-pairs": {"Pairs": ""},
    "sign": {"Output": ""},
}


_WRITTEN = {"kept": "kept/", "mask": "mask.parquet", "ids": "ids.parquet", "annotated": "annotated/"}


def print_report(report: dict[str, Any], output: str | os.PathLike[str], console: Console | None = None) -> None:
    """Print the closing table of dedup, cluster, pairs or sign, the largest clusters, warnings, rejected documents.

    output : the file or the folder that was written, or its address.
    """
    console = console or Console(highlight=False)
    command, counts, table = report["command"], report["counts"], Rows()
    if "read" in counts:
        text = memory(report.get("source_bytes", report["bytes"]))
        table.count("Read", counts["read"], f"{noun(counts['read'], 'document')}, {text} of text")
    _add_findings(table, report)
    if counts.get("rejected"):
        table.count("Rejected", counts["rejected"], "could not be read", "bold red")
    without = _WITHOUT_FEATURES[command] if "read" in counts else "no fingerprint: equal to nothing"
    if counts["without_features"]:
        table.count("Without features", counts["without_features"], without)
    if counts.get("against"):
        table.count("Against", counts["against"], f"{noun(counts['against'], 'document')} of the earlier collection")
    if report["incomplete"] is not None:
        files = report["incomplete"]["files"]
        table.count("Incomplete", files, f"{noun(files, 'file')} could not be read to the end", "bold red")
    table.line()
    _add_losses(table, report)
    if "recall" in report:
        _add_recall(table, report)
    add_cost(table, report)
    table.line()
    files = dict(_FILES[command])
    written = _WRITTEN.get(report.get("write", ""))
    if written is not None:
        files["Kept"] = written
    if command in ("dedup", "cluster") and (counts["rejected"] or report["incomplete"]):
        files["Rejected"] = "rejected.jsonl"
    for name, file in files.items():
        table.line(name, visible(os.path.join(output, file) if file else os.fspath(output)), "bold cyan")
    table.print(console)
    _print_largest(report.get("largest_clusters"), console)
    print_warnings(report, console)
    print_rejected(report, console)


def _add_findings(table: Rows, report: dict[str, Any]) -> None:
    """Add the counts that only this command, and this kind of input, has."""
    command, counts, scheme = report["command"], report["counts"], report["scheme"]
    if command == "dedup":
        table.count("Kept", counts["kept"], _share(counts["kept"], counts), "bold green")
        saved = f", {memory(report['removed_bytes'])} of text" if report.get("removed_bytes") else ""
        table.count("Removed", counts["removed"], _share(counts["removed"], counts) + saved, "bold")
        _add_kinds(table, report, counts["removed"], counts["removed_exact"])
    elif command == "cluster":
        table.count("Clusters", counts["clusters"], f"of similar documents: {_likeness(report)}", "bold green")
        table.count("  in clusters", counts["clustered"], _share(counts["clustered"], counts))
        if "known" in counts:
            table.count("    of known", counts["known"], _share(counts["known"], counts))
        table.count("  single", counts["single"], _share(counts["single"], counts))
    elif command == "sign":
        size = f"{scheme['bits']} bits each" if "bits" in scheme else f"{scheme['num_hashes']} hashes each"
        table.count("Signed", counts["signed"], size, "bold green")
    elif "fingerprints" in counts:
        within = plural(report["settings"]["max_distance"], "bit")
        table.count("Fingerprints", counts["fingerprints"], f"{scheme['bits']} bits each")
        table.count("Pairs", counts["confirmed"], f"{within} apart or less: all there are", "bold green")
    else:
        table.count("Duplicate pairs", counts["confirmed"], "measured exactly", "bold green")
        _add_kinds(table, report, counts["confirmed"], counts["confirmed_exact"])
        table.count("Compared", counts["compared"], f"candidate {noun(counts['compared'], 'pair')}")


def _add_losses(table: Rows, report: dict[str, Any]) -> None:
    """Add the inputs, or the values of a column, of which the most documents were removed; no input of one document."""
    by_value = report.get("by_value")
    sources = [row for row in report.get("inputs", []) if row.get("role") == "source" and row["documents"] > 1]
    rows = [(row["name"], row) for row in sources]
    if by_value is not None:
        rows = [(f"{by_value['column']}={row['value'] or ''}", row) for row in by_value["values"]]
    rows = sorted((row for row in rows if row[1].get("removed")), key=lambda row: -row[1]["removed"])
    if report["command"] != "dedup" or not rows or (by_value is None and report["num_inputs"] == 1):
        return
    for place, (name, row) in enumerate(rows[:_MAX_LOSSES]):
        share = percent(row["removed"] / row["documents"])
        text = f"{share} of the {plural(row['documents'], 'document')} of {visible(name)}"
        table.count("" if place else "Removed by source", row["removed"], text)
    table.line()


def _add_kinds(table: Rows, report: dict[str, Any], found: int, exact: int) -> None:
    if found:
        same = what_copies_share(report["settings"], report["scheme"].get("tokens"))
        table.count("  copies", exact, same)
        table.count("  near-duplicates", found - exact, _likeness(report))


def _print_largest(rows: list[dict[str, Any]] | None, console: Console) -> None:
    """Print two lines for each of the largest clusters: size and name, an example."""
    if not rows:
        return
    width = max(len(f"{row['size']:,}") for row in rows)
    console.print(f"\n  The largest {plural(len(rows), 'cluster')}, each with its first document:\n")
    for row in rows:
        name = Text(visible(row["name"] or ""), "bold")
        console.print(Text(f"  {row['size']:>{width},}  ").append_text(name), soft_wrap=True)
        file, number = row["places"][0]
        example = visible(file) if row["first_id"] == file else f"{visible(row['first_id'])}  {visible(file)}:{number}"
        console.print(Text(f"  {'':{width}}  {example}", "dim"), soft_wrap=True)


def _likeness(report: dict[str, Any]) -> str:
    """Return the limit that makes two documents near-duplicates."""
    settings = report["settings"]
    if report.get("fingerprints") is None:
        structure = settings.get("min_structure")
        besides = "" if structure is None else f", structure {structure:g} or more"
        return f"{settings.get('similarity', 'similarity')} {settings['threshold']:g} or more{besides}"
    within = f"{plural(settings['max_distance'], 'bit')} apart or less"
    return within + (f", jaccard {settings['threshold']:g} or more" if settings["confirm"] == "jaccard" else "")


def _share(part: int, counts: dict[str, int]) -> str:
    return percent(part / counts["read"]) if counts["read"] else ""


def _add_recall(table: Rows, report: dict[str, Any]) -> None:
    """Add the recall of the run: estimated, and measured by the audit."""
    audit, near, unlisted = report["audit"], report.get("fingerprints"), report["bound"]["documents"]
    table.figure("Recall", *_recall(report, unlisted))
    if near is not None and report["settings"]["confirm"] == "jaccard" and near["collisions"] is not None:
        table.count("Collisions", near["collisions"], "near fingerprints of dissimilar texts, rejected")
    if audit is not None and audit["recall"] is None:
        documents = plural(audit["documents"], "document")
        table.figure("Audit", "-", f"{documents} compared with all others: no duplicate among them")
    elif audit is not None:
        hidden = ", with those that full buckets hide" if unlisted else ""
        found = f"{audit['found']:,} of {plural(audit['pairs'], 'pair')}{hidden}"
        table.figure("Audit", percent(audit["recall"]), f"measured, without copies; {_interval(audit)}; {found}")


def _recall(report: dict[str, Any], unlisted: int) -> tuple[str, str]:
    """Return the estimated recall, and its remark; unlisted : documents that full buckets leave out."""
    recall, near = report["recall"], report.get("fingerprints")
    if unlisted:
        were = "was" if unlisted == 1 else "were"
        return "-", f"not known: {plural(unlisted, 'document')} {were} not compared with all candidates"
    if near is not None:
        return "100 %", f"of the fingerprints within {plural(near['max_distance'], 'bit')}: none is missed"
    if recall is None:
        found = report["counts"].get("removed_near")
        return "-", "not estimated with an index" if found else "no near-duplicate to estimate it from"
    return percent(recall["estimated"]), f"estimated, without copies; {_interval(recall)}"


def _interval(values: dict[str, Any]) -> str:
    return f"{percent(values['low'])} to {percent(values['high'])}"


def print_frequencies(report: dict[str, Any], output: Path) -> None:
    """Print the closing table of `neardup document-frequencies`."""
    console, rows, rejected = Console(highlight=False), Rows(), len(report["rejected"])
    rows.count("Documents", report["documents"], "counted once for each of their features")
    rows.count("Features", report["features"], "distinct", "bold green")
    if report["max_undercount"]:
        rows.count("Undercount", report["max_undercount"], "at most: the rarest features were dropped to save memory")
    rows.count("Rejected", rejected, "could not be read", "bold red" if rejected else "")
    rows.line("Version", report["version"])
    rows.line("Table", visible(output), "bold cyan")
    rows.print(console)
    print_rejected(report, console)


def add_cost(table: Rows, report: dict[str, Any]) -> None:
    """Add the time and memory of the run."""
    longest = sorted(report["timings"], key=lambda timing: -timing["seconds"])[:_MAX_STAGES]
    stages = [t for t in report["timings"] if t in longest and t["seconds"] >= 0.05]
    seconds = [f"{timing['stage']} {duration(round(timing['seconds'], 1))}" for timing in stages]
    table.figure("Time", duration(report["seconds"]), ", ".join(seconds))
    if report["compile_seconds"] >= 0.5:
        compiling = duration(round(report["compile_seconds"], 1))
        table.figure("Compiling", compiling, "for this processor, once; not included in the other figures")
    if "fingerprints_per_second" in report:
        table.figure("Speed", f"{report['fingerprints_per_second']:,}", "fingerprints/s")
    else:
        megabytes = report["megabytes_per_second"]
        rate = f"{megabytes:,.0f} MB/s" if megabytes >= 10 else f"{megabytes:.1f} MB/s"
        table.figure("Speed", rate, f"{report['documents_per_second']:,} documents/s")
    if report["peak_memory_bytes"] is not None:
        table.figure("Peak memory", memory(report["peak_memory_bytes"]), "")


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
        _print_line("Rejected", "bold red", describe_rejected(Rejected(**row)), console)
    if len(rejected) > _MAX_REJECTED:
        console.print(f"... and {len(rejected) - _MAX_REJECTED:,} more; --json lists them all.")
