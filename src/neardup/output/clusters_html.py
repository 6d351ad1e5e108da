"""Write the report of `neardup cluster` as one HTML page."""

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

MAX_SHOWN = 200  # clusters on the page; cluster_summary.parquet has all
_MAX_OPEN = 25  # clusters in sight; the others on the page are folded
_TITLES = ("cluster", "documents", "", "name: what its documents share", "first document, and others")
_MAX_LABEL = 120  # characters of an id in the table

Row = Mapping[str, Any]
_COUNTS = (
    ("read", "", "Read"),
    ("clusters", "", "Clusters"),
    ("clustered", "share kept", "In clusters"),
    ("single", "share exact", "Single"),
    ("largest", "share", "In the largest cluster"),
    ("without_features", "", "Without features"),
    ("rejected", "", "Rejected (unreadable)"),
)


def render_clusters(report: dict[str, Any], rows: Sequence[Row]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : what report.json holds; a part that is absent or null is left out of the page.
    rows : the largest clusters, as in cluster_summary.parquet, each with the `places` of the first document and the
        examples.
    """
    return render_page(report, headline(report), _share_chart(report), _sections(report, rows))


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook: headline, closing table, charts, the largest clusters."""
    drawings = (
        ("Clusters by size (logarithmic)", charts.cluster_chart(report)),
        ("Similarity to the first document", charts.similarity_chart(report)),
    )
    counts = [(label, value) for _, label, value, _ in count_rows(report, _COUNTS)]
    largest = "".join(
        f"<li>{row['size']:,}: <bdi>{escape_text(row['name'] or row['first_id'], lines=False)}</bdi></li>"
        for row in report.get("largest_clusters") or ()
    )
    fragment = render_fragment(report, headline(report), [*counts, *run_rows(report)], drawings)
    return f"{fragment}<ol>{largest}</ol>" if largest else fragment


def headline(report: Report) -> str:
    """Return the result of the run as one sentence in plain words."""
    counts = report.get("counts") or {}
    if not counts.get("read"):
        return "No documents read"
    said = f"{plural(counts['read'], 'document')} read, "
    if not counts.get("clusters"):
        return said + "no two similar"
    return (
        f"{said}{plural(counts['clusters'], 'cluster')} "
        f"({counts.get('clustered', 0):,} in clusters, {counts.get('single', 0):,} single)"
    )


def _sections(report: Report, rows: Sequence[Row]) -> list[Section]:
    return [
        ("result", "Result", count_tables(report, _COUNTS)),
        ("clusters", "Clusters", _clusters(report, rows)),
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
        (kind, counts.get(key) or 0, f"{counts.get(key) or 0:,} {label}")
        for kind, key, label in (("kept", "clustered", "in clusters"), ("exact", "single", "single"))
    ]
    return charts.proportion(parts, name="Shares of documents in clusters and single ones")


def _clusters(report: Report, rows: Sequence[Row]) -> str:
    """Return the table of clusters: number, size, name, examples."""
    if not rows:
        return "<p>No two documents are similar.</p>"
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
    total = plural((report.get("counts") or {}).get("clusters") or len(rows), "cluster")
    caption = f"Shown: {len(rows):,} of {total}, the largest first; cluster_summary.parquet has all of them"
    shown = table(caption, _TITLES, lines[:_MAX_OPEN], numbers=(0, 1))
    more = table("Smaller ones", _TITLES, lines[_MAX_OPEN:], numbers=(0, 1))
    summary = f"<summary>{plural(len(lines[_MAX_OPEN:]), 'smaller cluster')}</summary>"
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
            "Clusters by number of documents; lengths are logarithmic",
            charts.cluster_chart(report),
            table("Clusters by size", ("documents each", "clusters", "documents in all"), sizes, numbers=(1, 2)),
        )
        + figure(
            "Documents by similarity to the first of their cluster; exact copies are not among them",
            charts.similarity_chart(report),
        )
        + figure(
            "Documents by Hamming distance to the first of their cluster; exact copies are not among them",
            charts.distance_chart(report),
        )
    )
    return f'<div class="pair">{figures}</div>' if figures else ""


def _meaning(report: Report) -> str:
    """Say what the words of the page mean, as the settings have it."""
    settings, alike = report.get("settings") or {}, likeness(report)
    keep = setting(settings.get("keep", "first"))
    joins = (
        f"Documents pass in order of priority (<code>keep: {keep}</code>). Each joins the cluster whose first document "
        f"{alike.said}, the most similar of several; otherwise it begins a new cluster. So every document is similar "
        "to the first of its cluster."
    )
    if settings.get("linkage") == "connected":
        joins = (
            f"Documents are linked when one {alike.said_of_two}; a cluster is everything that a chain of links joins, "
            f"and two documents of it may be less similar. The first has priority (<code>keep: {keep}</code>)."
        )
    return definitions(
        {
            "Cluster": joins,
            alike.word: alike.measure,
            "Name": "What some of its documents share: of pages compared by structure, a path through the elements "
            "that all of them have, where few other clusters have them (numbers read *, × marks rows, dots what is "
            "left out); of texts, the first words of the longest passage that their beginnings share.",
            "Single": "Similar to no other document; a cluster of one in clusters.parquet.",
            "Without features": "Empty, or nothing in it to compare. Such documents are single.",
            "Rejected": "Could not be read. Each is named, with its place and the reason, in the output.",
        }
    )
