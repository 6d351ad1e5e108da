"""Write the report of a run that removed duplicates as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neardup.output import charts
from neardup.output.page import Report, Section, definitions, figure, render_fragment, render_page, table
from neardup.output.report_items import Example, removed_list
from neardup.output.report_sections import (
    count_rows,
    count_tables,
    inputs_table,
    likeness,
    recall,
    run_rows,
    settings_tables,
)
from neardup.output.wording import plural, setting, what_copies_share

_COUNTS = (
    ("read", "", "Read"),
    ("kept", "share kept", "Kept"),
    ("removed", "share", "Removed"),
    ("removed_exact", "share sub exact", "exact copies"),
    ("removed_near", "share sub near", "near-duplicates"),
    ("without_features", "", "Without features"),
    ("rejected", "", "Rejected (unreadable)"),
    ("against", "", "Compared against"),
)


def render_report(report: dict[str, Any], examples: Sequence[Example]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : what report.json holds; a part that is absent or null is left out of the page.
    examples : removed documents to show, in the order of the run.
    """
    return render_page(
        report, headline(report), charts.share_chart(report), _sections(report, examples), "report.js"
    )  # fmt: skip


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook: headline, closing table, two charts."""
    counts = [
        (f"{'– ' if 'sub' in kind else ''}{label}", value) for kind, label, value, _ in count_rows(report, _COUNTS)
    ]
    drawings = (
        ("Similarity of the near-duplicates", charts.similarity_chart(report)),
        ("Hamming distance of the near-duplicates", charts.distance_chart(report)),
        ("Clusters by size (logarithmic)", charts.cluster_chart(report)),
    )
    return render_fragment(report, headline(report), [*counts, *run_rows(report)], drawings)


def headline(report: Report) -> str:
    """Return the result of the run as one sentence in plain words."""
    counts = report.get("counts") or {}
    read, removed = counts.get("read", 0), counts.get("removed", 0)
    if not read:
        return "No documents read"
    said = f"{plural(read, 'document')} read, {counts.get('kept', 0):,} kept, "
    if not removed:
        return said + "none removed"
    exact, near = counts.get("removed_exact", 0), counts.get("removed_near", 0)
    return f"{said}{removed:,} removed ({plural(exact, 'exact copy')}, {plural(near, 'near-duplicate')})"


def _sections(report: Report, examples: Sequence[Example]) -> list[Section]:
    return [
        ("result", "Result", count_tables(report, _COUNTS)),
        ("found", "What was found", _found(report)),
        ("recall", "What may be missed", recall(report)),
        ("meaning", "What the numbers mean", _meaning(report)),
        ("time", "Time by stage", charts.time_chart(report)),
        ("inputs", "Inputs", inputs_table(report)),
        ("settings", "Settings", settings_tables(report)),
        ("removed", "Removed documents", removed_list(examples, (report.get("counts") or {}).get("removed", 0))),
    ]


def _found(report: Report) -> str:
    similarities = report.get("similarities") or {}
    edges, counts = similarities.get("edges") or [], similarities.get("counts") or []
    limits = zip(edges, edges[1:], counts, strict=False)
    bins = [(f"{low:.4g} to {high:.4g}", f"{count:,}") for low, high, count in limits]
    groups = charts.group_sizes(report.get("cluster_sizes") or ())
    sizes = [(size, f"{clusters:,}", f"{documents:,}") for size, clusters, documents in groups]
    figures = (
        figure(
            "Near-duplicates by similarity to the document that removed them; exact copies are not among them",
            charts.similarity_chart(report),
            table("Near-duplicates by similarity", ("similarity", "documents"), bins, numbers=(1,)),
        )
        + figure(
            "Near-duplicates by Hamming distance to the document that removed them; exact copies are not among them",
            charts.distance_chart(report),
        )
        + figure(
            "Clusters by number of documents, the kept one included; lengths are logarithmic",
            charts.cluster_chart(report),
            table("Clusters by size", ("documents each", "clusters", "documents in all"), sizes, numbers=(1, 2)),
        )
    )
    return f'<div class="pair">{figures}</div>' if figures else "<p>No duplicates were found.</p>"


def _meaning(report: Report) -> str:
    """Say what the words of the page mean, as the settings have it."""
    settings, alike = report.get("settings") or {}, likeness(report)
    keep = setting(settings.get("keep", "first"))
    decides = (
        f"Documents pass in order of priority (<code>keep: {keep}</code>). One is removed when a document "
        f"already kept {alike.said}; otherwise it is kept. So every removed one "
        "names the kept one that removed it, and no chain of look-alikes joins documents that are not alike."
    )
    if settings.get("linkage") == "connected":
        decides = (
            f"Documents are linked when one {alike.said_of_two}; all that a chain of links "
            f"joins are a cluster. One of each is kept (<code>keep: {keep}</code>), and two of a cluster may be less "
            "similar."
        )
    copies = what_copies_share(settings, (report.get("scheme") or {}).get("tokens"))
    terms = {
        "Removed, kept": decides,
        alike.word: alike.measure,
        "Exact copy, near-duplicate": f"An exact copy has {copies}. A near-duplicate "
        "is as near without that; it may measure the same, when all that differs is not a feature.",
        "Without features": "Empty, or nothing in it to compare. Such documents are always kept.",
        "Rejected": "Could not be read. Each is named, with its place and the reason, in the output.",
    }
    return definitions(terms)
