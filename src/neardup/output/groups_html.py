"""Write the report of a run that grouped documents as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neardup.output import charts
from neardup.output.page import Report, Section, definitions, figure, render_fragment, render_page, table
from neardup.output.report_items import place_of
from neardup.output.report_sections import (
    count_rows,
    count_tables,
    inputs_table,
    likeness,
    recall,
    run_rows,
    settings_tables,
)
from neardup.output.wording import escape_text, plural, setting

MAX_SHOWN = 200  # groups on the page; groups.parquet holds them all
_MAX_OPEN = 25  # groups in sight; the others shown are folded
_TITLES = ("group", "documents", "", "name: what its members share", "first document, and others")
_MAX_LABEL = 120  # characters of an id in the table

Row = Mapping[str, Any]
_COUNTS = (
    ("read", "", "Read"),
    ("groups", "", "Groups"),
    ("grouped", "share kept", "Grouped"),
    ("single", "share exact", "Single"),
    ("largest", "share", "In the largest group"),
    ("without_features", "", "Without features"),
    ("rejected", "", "Rejected (unreadable)"),
)


def render_groups(report: dict[str, Any], rows: Sequence[Row]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : what report.json holds; a part that is absent or null is left out of the page.
    rows : the largest groups, as groups.parquet has them, each with `places`, of the first document and the examples.
    """
    return render_page(report, headline(report), _share_chart(report), _sections(report, rows))


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook: headline, closing table, charts, the largest groups."""
    drawings = (
        ("Groups by size (logarithmic)", charts.cluster_chart(report)),
        ("Similarity to the first document", charts.similarity_chart(report)),
    )
    counts = [(label, value) for _, label, value, _ in count_rows(report, _COUNTS)]
    largest = "".join(
        f"<li>{row['size']:,}: <bdi>{escape_text(row['name'] or row['first_id'], lines=False)}</bdi></li>"
        for row in report.get("largest_groups") or ()
    )
    fragment = render_fragment(report, headline(report), [*counts, *run_rows(report)], drawings)
    return f"{fragment}<ol>{largest}</ol>" if largest else fragment


def headline(report: Report) -> str:
    """Return the result of the run as one sentence in plain words."""
    counts = report.get("counts") or {}
    if not counts.get("read"):
        return "No documents read"
    said = f"{plural(counts['read'], 'document')} read, "
    if not counts.get("groups"):
        return said + "no two alike"
    return (
        f"{said}{plural(counts['groups'], 'group')} of like ones "
        f"({counts.get('grouped', 0):,} grouped, {counts.get('single', 0):,} single)"
    )


def _sections(report: Report, rows: Sequence[Row]) -> list[Section]:
    return [
        ("result", "Result", count_tables(report, _COUNTS)),
        ("groups", "Groups", _groups(report, rows)),
        ("found", "Sizes", _sizes(report)),
        ("recall", "What may be missed", recall(report)),
        ("meaning", "What the numbers mean", _meaning(report)),
        ("time", "Time by stage", charts.time_chart(report)),
        ("inputs", "Inputs", inputs_table(report)),
        ("settings", "Settings", settings_tables(report)),
    ]


def _share_chart(report: Report) -> str:
    counts = report.get("counts") or {}
    parts = [
        (kind, counts.get(key) or 0, f"{counts.get(key) or 0:,} {key}")
        for kind, key in (("kept", "grouped"), ("exact", "single"))
    ]
    return charts.proportion(parts, name="Shares of grouped and single documents")


def _groups(report: Report, rows: Sequence[Row]) -> str:
    """Return the table of groups: number, size, name, examples."""
    if not rows:
        return "<p>No two documents are alike.</p>"
    largest = rows[0]["size"]
    lines = [
        (
            f"{row['cluster']:,}",
            f"{row['size']:,}",
            charts.size_bar(row["size"], largest),
            f'<bdi class="id">{escape_text(row["name"] or "", lines=False)}</bdi>',
            _examples(row),
        )
        for row in rows
    ]
    total = plural((report.get("counts") or {}).get("groups") or len(rows), "group")
    caption = f"Shown: {len(rows):,} of {total}, the largest first; groups.parquet holds them all"
    shown = table(caption, _TITLES, lines[:_MAX_OPEN], numbers=(0, 1))
    more = table("Smaller ones", _TITLES, lines[_MAX_OPEN:], numbers=(0, 1))
    summary = f"<summary>{plural(len(lines[_MAX_OPEN:]), 'smaller group')}</summary>"
    return shown + (f'<details class="numbers">{summary}{more}</details>' if more else "")


def _examples(row: Row) -> str:
    first, *others = (
        f'<bdi class="id">{escape_text(_shortened(one), lines=False)}</bdi> {place_of(*place)}'
        for one, place in zip((row["first_id"], *row["example_ids"]), row["places"], strict=True)
    )
    listed = "".join(f"<li>{one}</li>" for one in others)
    return f"<details><summary>{first}</summary><ul>{listed}</ul></details>"


def _shortened(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else label[: _MAX_LABEL - 1] + "…"


def _sizes(report: Report) -> str:
    sizes = [
        (size, f"{clusters:,}", f"{documents:,}")
        for size, clusters, documents in charts.group_sizes(report.get("cluster_sizes") or ())
    ]
    figures = (
        figure(
            "Groups by number of documents; lengths are logarithmic",
            charts.cluster_chart(report),
            table("Groups by size", ("documents each", "groups", "documents in all"), sizes, numbers=(1, 2)),
        )
        + figure(
            "Documents by similarity to the first of their group; exact copies are not among them",
            charts.similarity_chart(report),
        )
        + figure(
            "Documents by Hamming distance to the first of their group; exact copies are not among them",
            charts.distance_chart(report),
        )
    )
    return f'<div class="pair">{figures}</div>' if figures else ""


def _meaning(report: Report) -> str:
    """Say what the words of the page mean, as the settings have it."""
    settings, alike = report.get("settings") or {}, likeness(report)
    keep = setting(settings.get("keep", "first"))
    joins = (
        f"Documents pass in order of priority (<code>keep: {keep}</code>). Each joins the group whose first document "
        f"{alike.said}, the most similar of several; otherwise it begins a group of its own. So every member is like "
        "the first document of its group."
    )
    if settings.get("clusters") == "connected":
        joins = (
            f"Documents are linked when one {alike.said_of_two}; all that a chain of links joins are a group, and two "
            f"of a group may be less similar. The first is that of the highest priority (<code>keep: {keep}</code>)."
        )
    return definitions(
        {
            "Group": joins,
            alike.word: alike.measure,
            "Name": "What some members share: of pages compared by structure, a path through the elements that all of "
            "them have, where few other groups have them (numbers read *, × marks rows, dots what is left out); of "
            "texts, the first words of the longest passage that their beginnings share.",
            "Single": "Like no other document; a group of its own in clusters.parquet.",
            "Without features": "Empty, or nothing in it to compare. Such documents are single.",
            "Rejected": "Could not be read. Each is named, with its place and the reason, in the output.",
        }
    )
