"""Write the report of `neardup dedup` as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neardup.report import charts
from neardup.report.cards import cards
from neardup.report.items import Example, removed_list
from neardup.report.page import Report, render_page
from neardup.report.sections import notebook, sections
from neardup.report.wording import say, speaking, what_copies_share

_COUNTS = (
    ("read", ""),
    ("kept", "share kept"),
    ("removed", "share"),
    ("removed_exact", "share sub exact"),
    ("removed_near", "share sub near"),
    ("without_features", ""),
    ("rejected", ""),
    ("against", ""),
)
_SHARES = (("kept", "kept"), ("near", "removed_near"), ("exact", "removed_exact"))


def render_report(report: dict[str, Any], examples: Sequence[Example]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json; an absent or null value is left out of the page.
    examples : the removed documents to show, in input order.
    """
    with speaking(report.get("lang", "en")):
        removed = removed_list(examples, (report.get("counts") or {}).get("removed", 0))
        body = sections(report, _COUNTS, "removed", _terms(report))
        shares = charts.proportion(report, _SHARES, name=say("removed.shares"))
        parts = [("examples", cards(examples)), *body, ("removed", removed)]
        return render_page(report, headline(report), shares, parts, "report.js")


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook."""
    return notebook(report, headline(report), _COUNTS)


def headline(report: Report) -> str:
    """Return the result of the run as one sentence."""
    counts = {key: 0 for key, _ in _COUNTS} | (report.get("counts") or {})
    if not counts["read"]:
        return say("headline.nothing")
    return say("headline.removed" if counts["removed"] else "headline.kept", **counts)


def _terms(report: Report) -> dict[str, str]:
    """Return further terms of the page with their meaning under the settings."""
    copies = what_copies_share(report.get("settings") or {}, (report.get("scheme") or {}).get("tokens"))
    return {
        say("removed.copy_term"): say("removed.copy_means", copies=copies),
        say("counts.without_features"): say("removed.without_features"),
    }
