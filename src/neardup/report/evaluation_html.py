"""Write the wrong and the missed pairs of an evaluation as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from neardup.report.items import Example, pair_list
from neardup.report.page import render_page
from neardup.report.wording import escape_text, percent, plural


class Errors(NamedTuple):
    """Examples of both kinds of errors, most similar first. num_wrong, num_missed : all errors, shown or not."""

    wrong: list[Example]
    missed: list[Example]
    num_wrong: int
    num_missed: int


def render_errors(report: dict[str, Any], errors: Errors) -> str:
    """Return the errors as one HTML page.

    Parameters
    ----------
    report : of the evaluation.
    """
    score, truth = report["at_threshold"], report["truth"]
    limit = next(iter(score))
    known = f"the label <code>{escape_text(truth['label'])}</code>" if "label" in truth else "the judged pairs"
    found = (
        f"<p>At {limit.replace('_', ' ')} {score[limit]:g} the method finds {plural(score['found'], 'pair')} whose "
        f"truth is known: precision {_share(score['precision'])}, recall {_share(score['recall'])}, "
        f"F1 {_share(score['f1'])}. The best F1 of the curve is {_share(report['best']['f1'])} at "
        f"{report['best'][limit]:g}.</p>"
    )
    wrong = f"<p>Found, and different by {known}.</p>{_listed(errors.wrong, errors.num_wrong, 'wrong')}"
    missed = f"<p>Duplicates by {known}, and not found.</p>{_listed(errors.missed, errors.num_missed, 'missed')}"
    headline = f"{plural(errors.num_wrong, 'wrong pair')}, {plural(errors.num_missed, 'missed pair')}"
    return render_page(report, headline, found, [("wrong", wrong), ("missed", missed)])


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _listed(examples: Sequence[Example], total: int, kind: str) -> str:
    if not examples:
        return "<p>There are none.</p>" if not total else "<p>None was drawn.</p>"
    return (
        f'<p class="legend">Shown: {len(examples):,} of {total:,}, most similar first. Open one to read both texts: '
        "<del>only the first text has this</del>, <ins>only the second text has this</ins>.</p>"
        f'<ol class="pairs">\n{pair_list(examples, kind)}</ol>'
    )
