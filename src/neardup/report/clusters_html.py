"""Write the report of `neardup cluster` as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from neardup.files import Output
from neardup.formats.reading import InputFile, Task
from neardup.report import charts
from neardup.report.items import location
from neardup.report.page import folded, render_page, table
from neardup.report.rows import ReportValues, headline, part_of
from neardup.report.sections import sections
from neardup.report.wording import document_id, say, speaking, words

MAX_SHOWN = 200  # clusters on the page; cluster_summary.parquet has all
_MAX_OPEN = 25  # clusters in view; the others on the page are folded
_MAX_LABEL = 120  # characters of an id in the table

Row = Mapping[str, Any]


_SHARES = {"clustered": "kept", "single": "exact"}


def links_to_files(tasks: Sequence[Task], rows: Sequence[Row], output: Output) -> dict[str, str]:
    """Return the addresses of the documents on the page that are local files, by id, relative to a
    local output.
    """
    named = {file for row in rows for file, _ in row["places"]}
    links = {}
    for part in (
        task.part for task in tasks if task.part.name in named and task.part.unit == "file"
    ):
        if isinstance(part, InputFile) and part.is_local and isinstance(output, Path):
            with suppress(ValueError):  # on another drive of Windows
                # From the folder of the page, so that both can be moved together.
                links[part.name] = quote(Path(os.path.relpath(part.location, output)).as_posix())
    return links


def render_clusters(
    report: ReportValues, rows: Sequence[Row], links: Mapping[str, str] | None = None
) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json; an absent or null value is left out of the page.
    rows : the largest clusters, as in cluster_summary.parquet, each with the `places` of the first
        document and the examples.
    links : the addresses of some documents, by id.
    """
    with speaking(report.get("lang", "en")):
        result, *others = sections(
            report, "clusters", {say("clusters.name_term"): say("clusters.name_means")}
        )
        shares = charts.proportion(report, _SHARES, name=say("clusters.shares"))
        parts = [result, ("clusters", _clusters(report, rows, links or {})), *others]
        return render_page(report, headline(report), shares, parts)


def _clusters(report: ReportValues, rows: Sequence[Row], links: Mapping[str, str]) -> str:
    """Return the table of clusters: number, size, name, examples."""
    if not rows:
        return f"<p>{say('clusters.none')}</p>"
    largest = rows[0]["size"]
    lines = [
        (
            f"{row['cluster']:,}",
            f"{row['size']:,}",
            charts.size_bar(row["size"], largest),
            document_id(row["name"] or ""),
            _examples(row, links),
        )
        for row in rows
    ]
    total = part_of(report, "counts").get("clusters") or len(rows)
    titles = (
        say("clusters.cluster"),
        *words("documents", ""),
        say("clusters.name"),
        say("clusters.examples"),
    )
    caption = say("clusters.shown", shown=len(rows), total=total)
    shown = table(caption, titles, lines[:_MAX_OPEN], numbers=(0, 1))
    rest = lines[_MAX_OPEN:]
    smaller = table(say("clusters.smaller"), titles, rest, numbers=(0, 1))
    return shown + folded(say("clusters.rest", rest=len(rest)), smaller)


def _examples(row: Row, links: Mapping[str, str]) -> str:
    first, *others = (
        f"{_linked(name, links)} {location(name, *file_and_row)}"
        for name, file_and_row in zip(
            (row["first_id"], *row["example_ids"]), row["places"], strict=True
        )
    )
    listed = "".join(f"<li>{other}</li>" for other in others)
    known = say("clusters.known") if row.get("first_role") == "against" else ""
    return f"<details><summary>{known}{first}</summary><ul>{listed}</ul></details>"


def _linked(name: str, links: Mapping[str, str]) -> str:
    """Return the id of a document, as a link if it is a file."""
    shown = document_id(name, _MAX_LABEL)
    return (
        f'<a href="{escape(links[name])}" rel="noreferrer">{shown}</a>' if name in links else shown
    )
