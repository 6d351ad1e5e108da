"""Write the pairs that a sweep asks about as one HTML page, which saves the answers as a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from neardup.report.charts import sweep_chart
from neardup.report.items import Example, MarkedPair, pair_list
from neardup.report.page import figure, render_page, table
from neardup.report.rows import ReportValues
from neardup.report.wording import escape_text, for_page, say
from neardup.runs.locations import Place

Question = tuple[ReportValues, MarkedPair]
"""The line of a file of answers, without the answer; and both texts."""


class ShownGrade(NamedTuple):
    """A grade of a sweep: its title, its explanation, and the closest pairs, as questions are."""

    name: str
    title: str
    explanation: str
    pairs: Sequence[Question]


def render_questions(
    report: ReportValues,
    questions: Sequence[Question],
    known: int,
    grades: Sequence[ShownGrade] = (),
) -> str:
    """Return the pairs as one HTML page. Its script adds the choices and the button that saves
    them.

    Parameters
    ----------
    report : of the sweep.
    questions : the pairs, in the order in which they are asked.
    known : the number of answers that there are already.
    grades : the grades to show below the questions.
    """
    # In an attribute: quotes of JSON must not end it.
    rows = escape(json.dumps([row for row, _ in questions]))
    body = (
        f'<p class="legend">{say("questions.means")}</p><noscript><p>{say("questions.script")}</p></noscript>'  # noqa: E501
        f'<ol id="asked-list" class="pairs" data-known="{known}" '
        f'data-rows="{rows}">{pair_list(_examples(questions), "asked")}</ol>'
    )
    headline = say("questions.headline", pairs=len(questions))
    below = "".join(map(_grade, grades))
    sections = [("questions", body), ("grades", below), ("by_threshold", _counts(report))]
    return render_page(report, headline, "", sections, script="questions.js")


def _examples(pairs: Sequence[Question]) -> list[Example]:
    return [
        Example(
            # The file is the id: `location` then shows no place.
            removed=Place(id=row["left_id"], file=row["left_id"], row=0),
            kept=Place(id=row["right_id"], file=row["right_id"], row=0),
            pair=pair,
            similarity=row["similarity"],
            exact=False,
        )
        for row, pair in pairs
    ]


def _counts(report: ReportValues) -> str:
    """Return the documents that each threshold removes, as a chart and a table."""
    rows = [
        (f"{row['threshold']:g}", f"{row['removed']:,}", f"{row['kept']:,}")
        for row in report["thresholds"]
    ]
    titles = (
        say("errors.threshold"),
        say("counts.removed").lower(),
        say("counts.kept").lower(),
    )
    numbers = table(say("charts.swept"), titles, rows, numbers=(1, 2))
    return figure(say("charts.swept"), sweep_chart(report), numbers)


def _grade(grade: ShownGrade) -> str:
    """Return the sentences and the closest pairs of a grade."""
    title = escape_text(for_page(grade.title))
    explanation = escape_text(for_page(grade.explanation))
    pairs = pair_list(_examples(grade.pairs), f"of_{grade.name}")
    return f'<h3>{title}</h3><p class="legend">{explanation}</p><ol class="pairs">{pairs}</ol>'
