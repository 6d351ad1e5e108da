"""Write the report of `neardup contamination` as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neardup.report.items import Example, hit_list
from neardup.report.page import Report, render_fragment, render_page, table
from neardup.report.sections import headline_losses, inputs_table, settings_tables
from neardup.report.wording import document_id, percent, say, speaking

_STATUSES = ("contaminated", "boilerplate", "short", "clean")


def render_contamination(report: dict[str, Any], examples: Sequence[Example]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json.
    examples : the hits to show.
    """
    with speaking(report.get("lang", "en")):
        sections = [
            ("benchmarks", _benchmarks(report)),
            ("between", _between(report)),
            ("hits", _hits(report, examples)),
            ("meaning", say("contamination.rule", **report["settings"])),
            ("inputs", inputs_table(report)),
            ("settings", settings_tables(report)),
        ]
        return render_page(report, headline(report), "", sections)


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook."""
    rows = [(say(f"contamination.{status}"), f"{report['counts'][status]:,}") for status in _STATUSES]
    return render_fragment(report, headline(report), rows, ())


def headline(report: Report) -> str:
    """Return the result of the run as one sentence."""
    counts = report["counts"]
    sentence = say("contamination.headline", **counts) if counts["items"] else say("contamination.nothing")
    return sentence + headline_losses(report)


def _benchmarks(report: Report) -> str:
    rows = [
        (document_id(row["benchmark"]), *(f"{row[name]:,}" for name in ("items", *_STATUSES)), percent(row["rate"]))
        for row in report["benchmarks"][:500]
    ]
    titles = [say(f"contamination.{name}") for name in ("benchmark", "items", *_STATUSES, "rate")]
    return table(say("titles.benchmarks"), titles, rows, numbers=range(1, len(titles)))


def _between(report: Report) -> str:
    if len(report["between"]) < 2:
        return ""
    rows = [
        (document_id(row["items_of"]), document_id(row["found_in"]), f"{row['items']:,}")
        for row in report["between"][:500]
    ]
    titles = [say(f"contamination.{name}") for name in ("items_of", "found_in", "items")]
    return table(say("titles.between"), titles, rows, numbers=(2,))


def _hits(report: Report, examples: Sequence[Example]) -> str:
    if not examples:
        return say("contamination.none")
    legend = say("contamination.shown", shown=len(examples), total=report["counts"]["hits"])
    return f'<p class="legend">{legend}</p><ol class="pairs">\n{hit_list(examples)}</ol>'
