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
        return render_page(report, headline(report), share="", sections=sections)


def _passages(report: ReportValues, examples: Sequence[tuple[Example, int]]) -> str:
    """Return the list of examples, or a sentence if there are none."""
    if not examples:
        return say("passages.none")
    key = "passages.shown_none" if report["settings"]["keep"] == "none" else "passages.shown"
    legend = say(key, shown=len(examples), total=report["counts"]["passages"])
    return f'<p class="legend">{legend}</p><ol class="pairs">\n{passage_list(examples)}</ol>'


def _rule(settings: ReportValues) -> str:
    """Return the rule of the cuts in words."""
    if settings.get("unit") is not None:
        return _rule_of_units(settings)
    min_length = settings["min_length"]
    ends = say(f"cut_at.{settings['cut_at']}")
    if settings["keep"] == "none":
        share = _share_condition(settings)
        return say("passages.rule_none", min_length=min_length, and_share=share, ends=ends)
    return say("passages.rule", min_length=min_length, ends=ends)


def _rule_of_units(settings: ReportValues) -> str:
    """Return the rule in words if whole units, such as lines, are cut."""
    cut = "passages.units_none" if settings["keep"] == "none" else "passages.units_first"
    equal = "passages.equal_words" if settings["normalise"] else "passages.equal_text"
    return say(
        "passages.rule_units",
        unit=say(f"units.{settings['unit']}"),
        min_length=settings["min_length"],
        equal=say(equal),
        cut=say(cut, and_share=_share_condition(settings)),
    )


def _share_condition(settings: ReportValues) -> str:
    """Return the condition on the share of documents in words; an empty string without one."""
    if not settings["min_share"]:
        return ""
    return say("passages.and_share", share=percent(settings["min_share"]))
