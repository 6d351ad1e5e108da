"""Write the pairs that a sweep asks about as one HTML page, which saves the answers as a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from neardup.report.items import Example, MarkedPair, Place, pair_list
from neardup.report.page import render_page
from neardup.report.rows import ReportValues
from neardup.report.wording import say

Question = tuple[ReportValues, MarkedPair]
"""The line of a file of answers, without the answer; and both texts."""


def render_questions(report: ReportValues, questions: Sequence[Question], known: int) -> str:
    """Return the pairs as one HTML page. Its script adds the choices and the button that saves
    them.

    Parameters
    ----------
    report : of the sweep.
    questions : the pairs, in the order in which they are asked.
    known : the number of answers that there are already.
    """
    examples = [
        Example(
            # The file is the id: `location` then shows no place.
            removed=Place(id=row["left_id"], file=row["left_id"], row=0),
            kept=Place(id=row["right_id"], file=row["right_id"], row=0),
            pair=pair,
            similarity=row["similarity"],
            exact=False,
        )
        for row, pair in questions
    ]
    # In an attribute: quotes of JSON must not end it.
    rows = escape(json.dumps([row for row, _ in questions]))
    body = (
        f'<p class="legend">{say("questions.means")}</p><noscript><p>{say("questions.script")}</p></noscript>'  # noqa: E501
        f'<ol id="asked-list" class="pairs" data-known="{known}" '
        f'data-rows="{rows}">{pair_list(examples, "asked")}</ol>'
    )
    headline = say("questions.headline", pairs=len(questions))
    return render_page(report, headline, "", [("questions", body)], script="questions.js")
