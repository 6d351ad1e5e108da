"""Write the wrong and the missed pairs of an evaluation as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from neardup.report.items import Example, pair_list
from neardup.report.page import render_page
from neardup.report.wording import escape_text, percent, say, speaking


class Errors(NamedTuple):
    """Examples of both kinds of errors, most similar first. num_wrong, num_missed : all errors, shown or not."""

    wrong: list[Example]
    missed: list[Example]
    num_wrong: int
    num_missed: int


def render_errors(report: dict[str, Any], errors: Errors, language: str = "en") -> str:
    """Return the errors as one HTML page.

    Parameters
    ----------
    report : of the evaluation.
    language : of the page; en or zh.
    """
    score, best, truth = report["at_threshold"], report["best"], report["truth"]
    limit = next(iter(score))
    shares = {name: _share(score[name]) for name in ("precision", "recall", "f1")}
    with speaking(language):
        known = say("errors.label", name=escape_text(truth["label"])) if "label" in truth else say("errors.judged")
        counts = {"value": score[limit], "found": score["found"], "best": _share(best["f1"]), "best_value": best[limit]}
        found = say("errors.scores", limit=say(f"errors.{limit}"), **counts, **shares)
        wrong = say("errors.wrong_means", known=known) + _listed(errors.wrong, errors.num_wrong, "wrong")
        missed = say("errors.missed_means", known=known) + _listed(errors.missed, errors.num_missed, "missed")
        headline = say("errors.headline", wrong=errors.num_wrong, missed=errors.num_missed)
        return render_page(report, headline, found, [("wrong", wrong), ("missed", missed)])


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _listed(examples: Sequence[Example], total: int, kind: str) -> str:
    if not examples:
        return say("errors.none_drawn") if total else say("errors.none")
    shown = say("errors.shown", shown=len(examples), total=total)
    return f'<p class="legend">{shown}</p><ol class="pairs">\n{pair_list(examples, kind)}</ol>'
