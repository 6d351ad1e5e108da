"""Write the report of `neardup contamination` as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from neardup.report.items import Example, hit_list
from neardup.report.page import render_page, table
from neardup.report.rows import ReportValues, benchmark_table, headline
from neardup.report.sections import inputs_table, result, settings_tables
from neardup.report.wording import document_id, say, speaking

_MAX_ROWS = 500


def render_contamination(report: ReportValues, examples: Sequence[Example]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json.
    examples : the hits to show.
    """
    with speaking(report.get("lang", "en")):
        sections = [
            ("result", result(report)),
            ("benchmarks", _benchmarks(report)),
            ("between", _between(report)),
            ("hits", _hits(report, examples)),
            ("meaning", say("contamination.rule", **report["settings"])),
            ("inputs", inputs_table(report)),
            ("settings", settings_tables(report)),
        ]
        return render_page(report, headline(report), "", sections)


def _benchmarks(report: ReportValues) -> str:
    titles, rows = benchmark_table(report)
    cells = [(document_id(name), *figures) for name, *figures in rows[:_MAX_ROWS]]
    return table(say("titles.benchmarks"), titles, cells, numbers=range(1, len(titles)))


def _between(report: ReportValues) -> str:
    if len(report["between"]) < 2:
        return ""
    rows = [
        (document_id(row["items_of"]), document_id(row["found_in"]), f"{row['items']:,}")
        for row in report["between"][:_MAX_ROWS]
    ]
    titles = (
        say("contamination.items_of"),
        say("contamination.found_in"),
        say("counts.items").lower(),
    )
    return table(say("titles.between"), titles, rows, numbers=(2,))


def _hits(report: ReportValues, examples: Sequence[Example]) -> str:
    if not examples:
        return say("contamination.none")
    legend = say("contamination.shown", shown=len(examples), total=report["counts"]["hits"])
    return f'<p class="legend">{legend}</p><ol class="pairs">\n{hit_list(examples)}</ol>'
