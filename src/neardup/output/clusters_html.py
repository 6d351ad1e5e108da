"""Write the report of `neardup cluster` as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from neardup.documents.input_file import InputFile
from neardup.documents.reading import Task
from neardup.output import charts
from neardup.output.page import Report, render_page, table
from neardup.output.report_items import location
from neardup.output.report_sections import notebook, sections, similarity_terms
from neardup.output.wording import escape_text, plural, setting, shortened_in_the_middle

MAX_SHOWN = 200  # clusters on the page; cluster_summary.parquet has all
_MAX_OPEN = 25  # clusters in view; the others on the page are folded
_TITLES = ("cluster", "documents", "", "name: the common part of its documents", "first document and examples")
_MAX_LABEL = 120  # characters of an id in the table

Row = Mapping[str, Any]
_COUNTS = (
    ("read", "", "Read"),
    ("clusters", "", "Clusters"),
    ("clustered", "share kept", "In clusters"),
    ("known", "share sub", "of a known document"),
    ("single", "share exact", "Single"),
    ("largest", "", "In the largest cluster"),
    ("against", "", "Compared against"),
    ("without_features", "", "Without features"),
    ("rejected", "", "Rejected (unreadable)"),
)
_SHARES = (("kept", "clustered", "in clusters"), ("exact", "single", "single"))


def links_to_files(tasks: Sequence[Task], rows: Sequence[Row], output: Path | str) -> dict[str, str]:
    """Return the addresses of the documents on the page that are local files, by id, relative to a local output."""
    named = {file for row in rows for file, _ in row["places"]}
    links = {}
    for part in (task.part for task in tasks if task.part.name in named and task.part.unit == "file"):
        if isinstance(part, InputFile) and part.is_local and isinstance(output, Path):
            with suppress(ValueError):  # on another drive of Windows
                links[part.name] = quote(Path(os.path.relpath(part.location, output)).as_posix())
    return links


def render_clusters(report: dict[str, Any], rows: Sequence[Row], links: Mapping[str, str] | None = None) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json; an absent or null value is left out of the page.
    rows : the largest clusters, as in cluster_summary.parquet, each with the `places` of the first document and the
        examples.
    links : the addresses of some documents, by id.
    """
    result, *others = sections(report, _COUNTS, "the first document of their cluster", _terms(report))
    body = [result, ("clusters", "Clusters", _clusters(report, rows, links or {})), *others]
    shares = charts.proportion(report, _SHARES, name="Shares of documents in clusters and single ones")
    return render_page(report, headline(report), shares, body)


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook, with the largest clusters."""
    fragment = notebook(report, headline(report), _COUNTS)
    largest = "".join(
        f"<li>{row['size']:,}: <bdi>{escape_text(row['name'] or row['first_id'], lines=False)}</bdi></li>"
        for row in report.get("largest_clusters") or ()
    )
    return f"{fragment}<ol>{largest}</ol>" if largest else fragment


def headline(report: Report) -> str:
    """Return the result of the run as one sentence."""
    counts = report.get("counts") or {}
    if not counts.get("read"):
        return "No documents read"
    sentence = f"{plural(counts['read'], 'document')} read, "
    if not counts.get("clusters"):
        return sentence + "no two similar"
    return (
        f"{sentence}{plural(counts['clusters'], 'cluster')} "
        f"({counts.get('clustered', 0):,} in clusters, {counts.get('single', 0):,} single)"
    )


def _clusters(report: Report, rows: Sequence[Row], links: Mapping[str, str]) -> str:
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
            _examples(row, links),
        )
        for row in rows
    ]
    total = plural((report.get("counts") or {}).get("clusters") or len(rows), "cluster")
    caption = f"Shown: {len(rows):,} of {total}, the largest first; cluster_summary.parquet has all of them"
    shown = table(caption, _TITLES, lines[:_MAX_OPEN], numbers=(0, 1))
    more = table("Smaller ones", _TITLES, lines[_MAX_OPEN:], numbers=(0, 1))
    summary = f"<summary>{plural(len(lines[_MAX_OPEN:]), 'smaller cluster')}</summary>"
    return shown + (f'<details class="numbers">{summary}{more}</details>' if more else "")


def _examples(row: Row, links: Mapping[str, str]) -> str:
    first, *others = (
        f"{_linked(name, links)} {location(name, *file_and_row)}"
        for name, file_and_row in zip((row["first_id"], *row["example_ids"]), row["places"], strict=True)
    )
    listed = "".join(f"<li>{other}</li>" for other in others)
    known = "known: " if row.get("first_role") == "against" else ""
    return f"<details><summary>{known}{first}</summary><ul>{listed}</ul></details>"


def _linked(name: str, links: Mapping[str, str]) -> str:
    """Return the id of a document, as a link if it is a file."""
    shown = f'<bdi class="id">{escape_text(shortened_in_the_middle(name, _MAX_LABEL), lines=False)}</bdi>'
    return f'<a href="{escape(links[name])}" rel="noreferrer">{shown}</a>' if name in links else shown


def _terms(report: Report) -> dict[str, str]:
    """Return the terms of the page with their meaning under the settings."""
    settings, similar = report.get("settings") or {}, similarity_terms(report)
    keep = setting(settings.get("keep", "first"))
    joins = (
        f"Documents are processed in order of priority (<code>keep: {keep}</code>). Each joins the cluster whose first "
        f"document {similar.condition}, the most similar of several; otherwise it starts a new cluster. Every document "
        "is therefore similar to the first document of its cluster."
    )
    if settings.get("linkage") == "connected":
        joins = (
            f"Documents are linked when one {similar.condition_of_two}; a cluster is a set of documents that chains of "
            "links join, and two of its documents may be less similar. The first document has priority "
            f"(<code>keep: {keep}</code>)."
        )
    return {
        "Cluster": joins,
        similar.word: similar.measure,
        "Name": "The common part of some of its documents: for pages compared by structure, a path through elements "
        "that all of them have and few other clusters have (* replaces numbers, × marks repeated rows, dots mark "
        "omissions); for texts, the start of the longest passage that their beginnings share.",
        "Single": "Similar to no other document; a cluster of one in clusters.parquet.",
        "Without features": "Empty documents, or documents without anything to compare. They are single.",
    }
