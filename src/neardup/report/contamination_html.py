"""Write the report of `neardup contamination` as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from neardup.candidates.items import ItemTable
from neardup.decide.items import Hits
from neardup.features.spans import token_spans
from neardup.output.tables import DocumentLocations
from neardup.report.items import Example, hit_list
from neardup.report.marked_pairs import MarkedPair
from neardup.report.page import Report, render_fragment, render_page, table
from neardup.report.sections import inputs_table, settings_tables
from neardup.report.wording import document_id, percent, say, speaking
from neardup.runs.items import Items
from neardup.verify.passages import mark_passages

MAX_SHOWN = 100
_CHARACTERS = 2000
_STATUSES = ("contaminated", "boilerplate", "short", "clean")


def examples_of(
    items: Items,
    table: ItemTable,
    hits: Hits,
    excerpts: Mapping[tuple[int, int], tuple[int, str]],
    locations: DocumentLocations,
) -> list[Example]:
    """Return the hits to show: the best of each item of which the text is at hand, the best items first."""
    _, first = np.unique(hits.items, return_index=True)
    chosen: list[int] = []
    for start, end in pairwise([*first.tolist(), len(hits.items)]):
        keys = ((int(hits.documents[row]), int(hits.items[row]), row) for row in range(start, end))
        chosen += [row for document, item, row in keys if (document, item) in excerpts][:1]
    chosen = sorted(chosen, key=lambda row: -hits.containment[row])[:MAX_SHOWN]
    places = locations.places(hits.documents[chosen]) if chosen else ()
    result = []
    for row, place in zip(chosen, places, strict=True):
        item, document = int(hits.items[row]), int(hits.documents[row])
        text, excerpt = items.text(item)[:_CHARACTERS], excerpts[document, item][1]
        spans = [token_spans(one, table.shingling) for one in (text, excerpt)]
        passages = mark_passages(text, spans[0], excerpt, spans[1], table.settings.ngram)
        part = items.tasks[items.parts[item]].part.name, items.rows[item]
        pair = MarkedPair(text, excerpt, *passages, truncated=True)
        containment = float(hits.containment[row])
        result.append(Example((items.ids[item], *part), place, pair, containment, exact=False))
    return result


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
    return say("contamination.headline", **counts) if counts["items"] else say("contamination.nothing")


def _benchmarks(report: Report) -> str:
    rows = [
        (
            document_id(row["benchmark"]),
            f"{row['items']:,}",
            *(f"{row[name]:,}" for name in _STATUSES),
            percent(row["rate"]),
        )
        for row in report["benchmarks"][:500]
    ]
    titles = [say(f"contamination.{name}") for name in ("benchmark", "items", *_STATUSES, "rate")]
    return table(say("titles.benchmarks"), titles, rows, numbers=range(1, len(titles)))


def _between(report: Report) -> str:
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
