"""The report of an audit: its record, its rows for the terminal, and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neardup.files import JsonObject
from neardup.report.items import Example, pair_list
from neardup.report.page import render_page, table
from neardup.report.record import Part, Report
from neardup.report.rows import ReportValues, Row, cost_rows, loss_rows
from neardup.report.sections import inputs_table, settings_tables
from neardup.report.wording import document_id, escape_text, percent, say, speaking, words


@dataclass(frozen=True, kw_only=True)
class AuditReport(Report):
    """The report of `audit`."""

    command: str = "audit"
    scheme: JsonObject
    settings: JsonObject
    columns: JsonObject
    counts: dict[str, int]
    lost: JsonObject
    sound: JsonObject
    similarities: list[JsonObject]
    faults: list[JsonObject]
    groups: JsonObject
    keepers: JsonObject
    left: JsonObject
    ours: JsonObject
    sources: list[JsonObject]
    clusters: JsonObject | None
    inputs: Part
    losses: Part
    cost: Part
    warnings: list[str]
    rejected: list[JsonObject]
    lang: str


def headline(report: ReportValues) -> str:
    """Return the result of an audit as one sentence."""
    counts = report["counts"]
    if not counts["judged"]:
        return say("audit.headline_none", **counts)
    return say("audit.headline", **counts, share=percent(report["sound"]["share"]))


def audit_rows(report: ReportValues) -> list[Row]:
    """Return the shares of sound and lost removals, the faults, and the duplicates left."""
    counts = report["counts"]
    rows = [
        _count("read", counts["read"]),
        _count("kept", counts["kept"], counts["read"]),
        _count("removed", counts["removed"], counts["read"]),
    ]
    if counts["judged"]:
        rows += [_estimate("sound", report, "kept"), _estimate("lost", report, "lost")]
    rows += [_fault(fault, counts) for fault in report["faults"]]
    rows += _rest(report)
    rows += loss_rows(report)  # of the corpus before the removals and after
    return rows


def _count(name: str, value: int, whole: int = 0, kind: str = "", **facts: object) -> Row:
    """Return the row of a count.

    whole : the number that its share is taken of; 0 for no share. facts : the values in the
    sentence about its meaning.
    """
    return Row(
        label=say(f"audit.{name}"),
        value=f"{value:,}",
        share=percent(value / whole) if whole else "",
        remark=say(f"audit.{name}_means", "", **facts),
        kind=kind,
    )


def _estimate(name: str, report: ReportValues, kind: str) -> Row:
    """Return the row of an estimated number of removals."""
    estimate = report[name]
    key = "exact" if estimate["is_exact"] else "interval"
    interval = say(
        f"audit.{key}",
        low=percent(estimate["low"]),
        high=percent(estimate["high"]),
        checked=report["counts"]["checked"],
    )
    means = say(f"audit.{name}_means")
    return Row(
        label=say(f"audit.{name}"),
        value=f"{estimate['documents']:,}",
        share=percent(estimate["share"]),
        remark=say("words.comma").join(filter(None, (interval, means))),
        kind=kind,
    )


def _fault(fault: ReportValues, counts: ReportValues) -> Row:
    """Return the row of a fault."""
    name = fault["fault"]
    return Row(
        label=say(f"audit.{name}"),
        value=f"{fault['documents']:,}",
        share=percent(fault["documents"] / counts["judged"]),
        remark=say(f"audit.{name}_means", **fault),
        kind="lost",
        depth=1,
    )


def _rest(report: ReportValues) -> list[Row]:
    """Return the rows about duplicates left, a run of ours, vanished sources, unmatched rows, and
    clusters.
    """
    counts = report["counts"]
    left = report["left"]
    recall = left["recall"]
    found = say("audit.recall", estimated=percent(recall["estimated"])) if recall else ""
    rows = [
        _count("left", left["documents"], counts["kept"], **{**left, "recall": found}),
        _count("ours", report["ours"]["removed"], counts["read"], **report["ours"]),
    ]

    vanished = [row for row in report["sources"] if row["vanished"]]
    if vanished:
        names = say("words.comma").join(_source(row) for row in vanished[:5])
        rows.append(_count("vanished", len(vanished), kind="lost", names=names))

    rows += [
        _count(name, counts[name], kind="lost" if name == "unmatched" else "")
        for name in ("unmatched", "changed", "empty")
        if counts[name]
    ]

    clusters = report["clusters"]
    if clusters:
        rows.append(_count("clusters", clusters["clusters"], **clusters))
    return rows


def _source(row: ReportValues) -> str:
    """Return the name of a source: an input, or a value of a column."""
    return row["value"] if row["column"] is None else f"{row['column']}={row['value']}"


def render_audit(report: ReportValues, examples: Mapping[str, Sequence[Example]]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json.
    examples : the worst removals by kind.
    """
    with speaking(report.get("lang", "en")):
        sections = [
            ("result", _result(report)),
            ("nearest", _similarities(report)),
            ("worst", _worst(examples)),
            ("sources", _sources(report)),
            ("meaning", say("audit.rule", **report["settings"])),
            ("inputs", inputs_table(report)),
            ("settings", settings_tables(report)),
        ]
        return render_page(report, headline(report), "", sections)


def _result(report: ReportValues) -> str:
    """Return the counts and the cost of the run."""
    parts = [("found.documents", audit_rows(report)), ("found.run", cost_rows(report))]
    return "".join(_rows_table(say(caption), rows) for caption, rows in parts)


def _rows_table(caption: str, rows: Sequence[Row]) -> str:
    """Return rows as a table. Labels are sentences of ours, and contain no markup."""
    lines = [
        (
            f'<span class="{row.kind}{" sub" if row.depth else ""}">{row.label}</span>',
            *(escape_text(text, lines=False) for text in (row.value, row.share, row.remark)),
        )
        for row in rows
    ]
    return table(caption, words("", "value", "share", ""), lines, numbers=(1, 2))


def _similarities(report: ReportValues) -> str:
    """Return the lost documents by the similarity of the nearest kept one."""
    rows = [
        (
            f"{row['from']:g}" if row["to"] == row["from"] else f"{row['from']:g} – {row['to']:g}",
            f"{row['documents']:,}",
        )
        for row in report["similarities"]
    ]
    titles = words("similarity", "documents")
    return table(say("audit.by_similarity"), titles, rows, numbers=(1,))


def _worst(examples: Mapping[str, Sequence[Example]]) -> str:
    """Return the examples of each kind below a heading."""
    sections = (
        f'<h3>{say(f"audit.{kind}")}</h3><ol class="pairs">\n{pair_list(pairs, kind)}</ol>'
        for kind, pairs in examples.items()
    )
    return "".join(sections)


def _sources(report: ReportValues) -> str:
    """Return the removals by source."""
    rows = [
        (
            document_id(_source(row)),
            f"{row['documents']:,}",
            f"{row['removed']:,}",
            percent(row["removed"] / row["documents"]),
            f"{row['lost']:,}",
        )
        for row in report["sources"]
    ]
    titles = (*words("", "documents", "removed", "share"), say("audit.lost").lower())
    return table(say("audit.by_source"), titles, rows, numbers=(1, 2, 3, 4))
