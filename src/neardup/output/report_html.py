"""Write the report of `neardup dedup` as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neardup.output import charts
from neardup.output.page import Report, render_page
from neardup.output.report_cards import cards
from neardup.output.report_items import Example, removed_list
from neardup.output.report_sections import notebook, sections, similarity_terms
from neardup.output.wording import plural, setting, what_copies_share

_COUNTS = (
    ("read", "", "Read"),
    ("kept", "share kept", "Kept"),
    ("removed", "share", "Removed"),
    ("removed_exact", "share sub exact", "copies"),
    ("removed_near", "share sub near", "near-duplicates"),
    ("without_features", "", "Without features"),
    ("rejected", "", "Rejected (unreadable)"),
    ("against", "", "Compared against"),
)
_SHARES = (
    ("kept", "kept", "kept"), ("near", "removed_near", "near-duplicates"), ("exact", "removed_exact", "copies"),
)  # fmt: skip


def render_report(report: dict[str, Any], examples: Sequence[Example]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json; an absent or null value is left out of the page.
    examples : the removed documents to show, in input order.
    """
    removed = removed_list(examples, (report.get("counts") or {}).get("removed", 0))
    body = sections(report, _COUNTS, "the document that removed them", _terms(report))
    shares = charts.proportion(report, _SHARES, name="Shares of kept documents, near-duplicates and copies")
    opening = ("examples", "At a glance", cards(examples))
    return render_page(
        report, headline(report), shares, [opening, *body, ("removed", "Removed documents", removed)],
        "report.js",
    )  # fmt: skip


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook."""
    return notebook(report, headline(report), _COUNTS)


def headline(report: Report) -> str:
    """Return the result of the run as one sentence."""
    counts = report.get("counts") or {}
    read, removed = counts.get("read", 0), counts.get("removed", 0)
    if not read:
        return "No documents read"
    sentence = f"{plural(read, 'document')} read, {counts.get('kept', 0):,} kept, "
    if not removed:
        return sentence + "none removed"
    exact, near = counts.get("removed_exact", 0), counts.get("removed_near", 0)
    return f"{sentence}{removed:,} removed ({plural(exact, 'copy')}, {plural(near, 'near-duplicate')})"


def _terms(report: Report) -> dict[str, str]:
    """Return the terms of the page with their meaning under the settings."""
    settings, similar = report.get("settings") or {}, similarity_terms(report)
    keep = setting(settings.get("keep", "first"))
    decides = (
        f"Documents are processed in order of priority (<code>keep: {keep}</code>). A document is removed when a kept "
        f"document {similar.condition}; otherwise it is kept. Every removed document is therefore similar to the kept "
        "document that removed it, and chains of duplicates do not join dissimilar documents."
    )
    if settings.get("linkage") == "connected":
        decides = (
            f"Documents are linked when one {similar.condition_of_two}; a cluster is a set of documents that "
            f"chains of links join. One document of each is kept (<code>keep: {keep}</code>). Two documents of a "
            "cluster may be less similar."
        )
    copies = what_copies_share(settings, (report.get("scheme") or {}).get("tokens"))
    return {
        "Removed, kept": decides,
        similar.word: similar.measure,
        "Copy, near-duplicate": f"A copy has {copies}. A near-duplicate "
        "reaches the limit without that; its similarity may still be 1, if the difference changes no feature.",
        "Without features": "Empty documents, or documents without anything to compare. They are always kept.",
    }
