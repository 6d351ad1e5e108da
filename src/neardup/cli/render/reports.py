"""Print the reports of the commands as tables, or any report as JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from neardup.cli.render.table import Rows
from neardup.documents.batch import Rejected, describe_rejected
from neardup.files import AnyPath
from neardup.report.wording import duration, for_terminal, memory, noun, percent, say, visible, what_copies_share

_MAX_STAGES, _MAX_REJECTED, _MAX_LOSSES = 4, 5, 5


_FILES = {
    "dedup": {"report": "report.html", "removed": "removed.parquet"},
    "cluster": {"report": "report.html", "clusters": "cluster_summary.parquet", "documents": "clusters.parquet"},
    "find-pairs": {"pairs": ""},
    "sign": {"output": ""},
}


_WRITTEN = {"kept": "kept/", "mask": "mask.parquet", "ids": "ids.parquet", "annotated": "annotated/"}


def print_report(report: dict[str, Any], output: AnyPath, console: Console | None = None) -> None:
    """Print the closing table of dedup, cluster, pairs or sign, the largest clusters, warnings, rejected documents.

    output : the file or the folder that was written, or its address.
    """
    console = console or Console(highlight=False)
    command, counts, table = report["command"], report["counts"], Rows()
    if "read" in counts:
        size = memory(report.get("source_bytes", report["bytes"]))
        read = say("terminal.of_text", documents=noun(counts["read"], "document"), size=size, kind=_kind(report))
        table.count(say("counts.read"), counts["read"], read)
    _add_findings(table, report)
    add_rejected(table, report, counts.get("rejected", 0))
    kind = "groups" if report.get("groups") else command if "read" in counts else "fingerprints"
    without = say(f"without_features.{kind}")
    if counts["without_features"]:
        table.count(say("counts.without_features"), counts["without_features"], without)
    if counts.get("against"):
        documents = noun(counts["against"], "document")
        table.count(say("terminal.against"), counts["against"], say("terminal.earlier", documents=documents))
    if report["incomplete"] is not None:
        files = report["incomplete"]["files"]
        unread = say("terminal.unread", files=noun(files, "file"))
        table.count(say("terminal.incomplete"), files, unread, "bold red")
    table.line()
    _add_losses(table, report)
    if "recall" in report:
        _add_recall(table, report)
    files = dict(_FILES[command])
    written = _WRITTEN.get(report.get("write", ""))
    if written is not None:
        files["kept"] = written
    if report.get("passages"):
        files["passages"] = "passages.html"
    if report.get("groups"):
        files["groups"] = "groups.parquet"
    if command in ("dedup", "cluster") and (counts["rejected"] or report["incomplete"]):
        files["rejected"] = "rejected.jsonl"
    print_closing(table, report, {say(f"files.{name}"): file for name, file in files.items()}, output, console)
    _print_largest(report.get("largest_clusters"), console)
    print_troubles(report, console)


def add_rejected(table: Rows, report: dict[str, Any], rejected: int) -> None:
    """Add the number of rows that could not be read, and of those that a rule leaves out; rejected : of both."""
    losses = report.get("unreadable")
    unreadable = losses["rows"] if losses else 0
    if unreadable:
        table.count(say("terminal.rejected"), unreadable, say("terminal.unreadable"), "bold red")
    if rejected > unreadable:
        table.count(say("terminal.excluded"), rejected - unreadable, say("terminal.by_rule"))


def print_closing(
    table: Rows, report: dict[str, Any], files: dict[str, str], output: AnyPath, console: Console
) -> None:
    """Print a table, with the cost of the run and the files of `output` by what they are; "" is the output itself."""
    _add_cost(table, report)
    table.line()
    for name, file in files.items():
        table.line(name, visible(os.path.join(output, file) if file else os.fspath(output)), "bold cyan")
    table.print(console)


def add_passages(table: Rows, counts: dict[str, int]) -> None:
    """Add what was cut from documents."""
    share = percent(counts["characters"] / max(1, counts["characters_read"]))
    cut = say("terminal.cut", share=share, characters=counts["characters"])
    table.count(say("files.passages"), counts["passages"], cut, "bold")
    changed = say("terminal.documents", noun=noun(counts["changed"], "document"))
    table.count(say("terminal.changed"), counts["changed"], changed)
    if counts["dropped"]:
        lost = say("terminal.lost", noun=noun(counts["dropped"], "document"))
        table.count(say("terminal.dropped"), counts["dropped"], lost)


def _kind(report: dict[str, Any]) -> str:
    """Return the word for the documents of a run: text, or vectors."""
    is_vectors = (report["scheme"] or {}).get("name") == "hyperplanes"
    return say("words.vectors") if is_vectors else say("words.text")


def _add_findings(table: Rows, report: dict[str, Any]) -> None:
    """Add the counts that only this command, and this kind of input, has."""
    command, counts, scheme = report["command"], report["counts"], report["scheme"]
    if command == "dedup":
        table.count(say("counts.kept"), counts["kept"], _share(counts["kept"], counts), "bold green")
        saved = ""
        if report.get("removed_bytes"):
            saved = say("terminal.saved", size=memory(report["removed_bytes"]), kind=_kind(report))
        table.count(say("counts.removed"), counts["removed"], _share(counts["removed"], counts) + saved, "bold")
        _add_kinds(table, report, counts["removed"], counts["removed_exact"])
        if report.get("groups"):
            others = counts["removed_with_group"]
            table.count(say("counts.removed_with_group"), others, say("terminal.groups", **report["groups"]))
        if report.get("passages"):
            add_passages(table, report["passages"]["counts"])
    elif command == "cluster":
        similar = say("terminal.similar", likeness=_likeness(report))
        table.count(say("counts.clusters"), counts["clusters"], similar, "bold green")
        table.count("  " + say("terminal.in_clusters"), counts["clustered"], _share(counts["clustered"], counts))
        if "known" in counts:
            table.count("    " + say("terminal.of_known"), counts["known"], _share(counts["known"], counts))
        table.count("  " + say("terminal.single"), counts["single"], _share(counts["single"], counts))
    elif command == "sign":
        bits = scheme.get("bits")
        size = say("terminal.hashes", hashes=scheme["num_hashes"]) if bits is None else say("terminal.bits", bits=bits)
        table.count(say("terminal.signed"), counts["signed"], size, "bold green")
    elif "fingerprints" in counts:
        all_pairs = say("terminal.all_pairs", bits=report["settings"]["max_distance"])
        table.count(say("terminal.fingerprints"), counts["fingerprints"], say("terminal.bits", bits=scheme["bits"]))
        table.count(say("files.pairs"), counts["confirmed"], all_pairs, "bold green")
    else:
        table.count(say("terminal.duplicate_pairs"), counts["confirmed"], say("terminal.exactly"), "bold green")
        _add_kinds(table, report, counts["confirmed"], counts["confirmed_exact"])
        candidates = say("terminal.candidates", pairs=noun(counts["compared"], "pair"))
        table.count(say("terminal.compared"), counts["compared"], candidates)


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
        text = say("terminal.share", share=share, documents=row["documents"], name=visible(name))
        table.count("" if place else say("terminal.by_source"), row["removed"], text)
    table.line()


def _add_kinds(table: Rows, report: dict[str, Any], found: int, exact: int) -> None:
    if found:
        same = what_copies_share(report["settings"] | report["scheme"], report["scheme"].get("tokens"))
        table.count("  " + say("counts.removed_exact"), exact, same)
        table.count("  " + say("counts.removed_near"), found - exact, _likeness(report))


def _print_largest(rows: list[dict[str, Any]] | None, console: Console) -> None:
    """Print two lines for each of the largest clusters: size and name, an example."""
    if not rows:
        return
    width = max(len(f"{row['size']:,}") for row in rows)
    console.print(f"\n  {say('terminal.largest', clusters=len(rows))}\n")
    for row in rows:
        name = Text(visible(row["name"] or ""), "bold")
        console.print(Text(f"  {row['size']:>{width},}  ").append_text(name), soft_wrap=True)
        file, number = row["places"][0]
        example = visible(file) if row["first_id"] == file else f"{visible(row['first_id'])}  {visible(file)}:{number}"
        console.print(Text(f"  {'':{width}}  {example}", "dim"), soft_wrap=True)


def _likeness(report: dict[str, Any]) -> str:
    """Return the limit that makes two documents near-duplicates."""
    settings, within = report["settings"], []
    names = {settings.get("similarity", "similarity"): "threshold", "structure": "min_structure"}
    if report.get("fingerprints") is not None:
        within = [say("terminal.apart", bits=settings["max_distance"])]
        names = {"jaccard": "threshold"} if settings["confirm"] == "jaccard" else {}
    limits = [(say(f"limits.{name}", name), settings.get(key)) for name, key in names.items()]
    parts = [say("terminal.or_more", measure=name, least=least) for name, least in limits if least is not None]
    return say("words.comma").join([*within, *parts])


def _share(part: int, counts: dict[str, int]) -> str:
    return percent(part / counts["read"]) if counts["read"] else ""


def _add_recall(table: Rows, report: dict[str, Any]) -> None:
    """Add the recall of the run: estimated, and measured by the audit."""
    audit, near, unlisted = report["audit"], report.get("fingerprints"), report["bound"]["documents"]
    table.figure(say("terminal.recall"), *_recall(report, unlisted))
    if near is not None and report["settings"]["confirm"] == "jaccard" and near["collisions"] is not None:
        table.count(say("terminal.collisions"), near["collisions"], say("terminal.dissimilar"))
    if audit is not None and audit["recall"] is None:
        table.figure(say("terminal.audit"), "-", say("terminal.no_duplicate", documents=audit["documents"]))
    elif audit is not None:
        hidden = say("terminal.hidden") if unlisted else ""
        found = say("terminal.found", found=audit["found"], pairs=audit["pairs"])
        measured = say("terminal.measured", interval=_interval(audit))
        table.figure(say("terminal.audit"), percent(audit["recall"]), measured + found + hidden)


def _recall(report: dict[str, Any], unlisted: int) -> tuple[str, str]:
    """Return the estimated recall, and its remark; unlisted : documents that full buckets leave out."""
    recall, near = report["recall"], report.get("fingerprints")
    if unlisted:
        were = "was" if unlisted == 1 else "were"
        return "-", say("terminal.not_known", unlisted=unlisted, were=were)
    if near is not None:
        return "100 %", say("terminal.none_missed", bits=near["max_distance"])
    if recall is None:
        found = report["counts"].get("removed_near")
        return "-", say("terminal.not_estimated" if found else "terminal.no_near_duplicate")
    return percent(recall["estimated"]), say("terminal.estimated", interval=_interval(recall))


def _interval(values: dict[str, Any]) -> str:
    return f"{percent(values['low'])} {say('words.to')} {percent(values['high'])}"


def print_frequencies(report: dict[str, Any], output: Path) -> None:
    """Print the closing table of `neardup document-frequencies`."""
    console, rows, rejected = Console(highlight=False), Rows(), len(report["rejected"])
    rows.count("Documents", report["documents"], "counted once for each of their features")
    rows.count("Features", report["features"], "distinct", "bold green")
    if report["max_undercount"]:
        rows.count("Undercount", report["max_undercount"], "at most: the rarest features were dropped to save memory")
    add_rejected(rows, report, rejected)
    rows.line("Version", report["version"])
    rows.line("Table", visible(output), "bold cyan")
    rows.print(console)
    print_rejected(report, console)


def _add_cost(table: Rows, report: dict[str, Any]) -> None:
    """Add the time and memory of the run."""
    longest = sorted(report["timings"], key=lambda timing: -timing["seconds"])[:_MAX_STAGES]
    stages = [t for t in report["timings"] if t in longest and t["seconds"] >= 0.05]
    seconds = [
        f"{say('stages.' + timing['stage'], timing['stage'])} {duration(round(timing['seconds'], 1))}"
        for timing in stages
    ]
    table.figure(say("terminal.time"), duration(report["seconds"]), say("words.comma").join(seconds))
    if report["compile_seconds"] >= 0.5:
        compiling = duration(round(report["compile_seconds"], 1))
        table.figure(say("terminal.compiling"), compiling, say("terminal.once"))
    if "fingerprints_per_second" in report:
        rate = f"{report['fingerprints_per_second']:,}"
        table.figure(say("terminal.speed"), rate, say("terminal.fingerprint_rate"))
    else:
        megabytes = report["megabytes_per_second"]
        rate = f"{megabytes:,.0f} MB/s" if megabytes >= 10 else f"{megabytes:.1f} MB/s"
        documents = say("terminal.document_rate", documents=report["documents_per_second"])
        table.figure(say("terminal.speed"), rate, documents)
    if report["peak_memory_bytes"] is not None:
        table.figure(say("terminal.memory"), memory(report["peak_memory_bytes"]), "")


def print_troubles(report: dict[str, Any], console: Console) -> None:
    """Print what could not be read, and the warnings of a run, then as `print_rejected`."""
    if report.get("unreadable") and not report["incomplete"]:  # it has the same rows
        console.print()
        _print_line(say("terminal.unreadable_rows"), "bold red", for_terminal(report["unreadable"]["message"]), console)
    for warning in report["warnings"]:
        console.print()
        _print_line(say("terminal.warning"), "bold yellow", for_terminal(warning), console)
    print_rejected(report, console)


def _print_line(kind: str, style: str, text: str, console: Console) -> None:
    line = Text(kind + say("words.colon"), style).append(visible(text), "default not bold")
    console.print(line, soft_wrap=not console.is_terminal)


def print_rejected(report: dict[str, Any], console: Console) -> None:
    """Print the first documents that could not be read, with the reasons."""
    rejected = report.get("rejected", [])
    if rejected:
        console.print()
    for row in rejected[:_MAX_REJECTED]:
        _print_line(say("terminal.rejected"), "bold red", describe_rejected(Rejected(**row)), console)
    if len(rejected) > _MAX_REJECTED:
        console.print(for_terminal(f"... and {len(rejected) - _MAX_REJECTED:,} more; --json lists them all."))
