"""Write the report of `neardup passages` as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from neardup.report.items import Example, passage_list
from neardup.report.page import render_page
from neardup.report.rows import ReportValues, headline
from neardup.report.sections import inputs_table, result, settings_tables
from neardup.report.wording import percent, say, speaking


def render_passages(report: ReportValues, examples: Sequence[tuple[Example, int]]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json.
    examples : the passages to show, with their lengths in characters.
    """
    with speaking(report.get("lang", "en")):
        sections = [
            ("result", result(report)),
            ("passages", _passages(report, examples)),
            ("meaning", _rule(report["settings"])),
            ("inputs", inputs_table(report)),
            ("settings", settings_tables(report)),
        ]
        return render_page(report, headline(report), "", sections)


def _passages(report: ReportValues, examples: Sequence[tuple[Example, int]]) -> str:
    if not examples:
        return say("passages.none")
    key = "passages.shown_none" if report["settings"]["keep"] == "none" else "passages.shown"
    legend = say(key, shown=len(examples), total=report["counts"]["passages"])
    return f'<p class="legend">{legend}</p><ol class="pairs">\n{passage_list(examples)}</ol>'


def _rule(settings: ReportValues) -> str:
    ends = say(f"cut_at.{settings['cut_at']}")
    share = (
        say("passages.and_share", share=percent(settings["min_share"]))
        if settings["min_share"]
        else ""
    )
    if settings.get("unit") is not None:
        equal = say("passages.equal_words" if settings["normalise"] else "passages.equal_text")
        cut = say(
            "passages.units_none" if settings["keep"] == "none" else "passages.units_first",
            and_share=share,
        )
        unit = say(f"units.{settings['unit']}")
        return say(
            "passages.rule_units",
            unit=unit,
            min_length=settings["min_length"],
            equal=equal,
            cut=cut,
        )
    if settings["keep"] == "none":
        return say(
            "passages.rule_none", min_length=settings["min_length"], and_share=share, ends=ends
        )
    return say("passages.rule", min_length=settings["min_length"], ends=ends)
