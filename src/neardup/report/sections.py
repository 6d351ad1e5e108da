"""Write the sections of every report: its rows, figures, recall, time, inputs, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neardup.fingerprints.hyperplanes import same_side
from neardup.report import charts
from neardup.report.page import Section, definitions, figure, render_fragment, table
from neardup.report.rows import (
    ReportValues,
    Row,
    are_vectors,
    cost_rows,
    headline,
    is_confirmed,
    limits_of,
    part_of,
    result_rows,
    search_rows,
)
from neardup.report.wording import document_id, escape_text, percent, say, setting, words

_MAX_INPUTS = 500  # rows of the inputs table
_MAX_ACROSS = 8  # rows and columns of the table of removals by inputs
_MAX_INPUT_NAME = 40  # characters of a name in it


def sections(report: ReportValues, page: str, terms: Mapping[str, str]) -> list[Section]:
    """Return the sections of the reports about duplicates.

    Parameters
    ----------
    page : the table of its sentences: removed, or clusters.
    terms : further terms of the page, and their meaning in HTML.
    """
    rejected = {say("rejected.term"): say("rejected.means")}
    return [
        ("result", result(report)),
        ("found", _figures(report, say(f"{page}.keeper"))),
        ("recall", recall(report)),
        ("meaning", definitions({**_terms(report, page), **terms, **rejected})),
        ("time", charts.time_chart(report)),
        ("across", across_table(report)),
        ("inputs", inputs_table(report)),
        ("settings", settings_tables(report)),
    ]


def result(report: ReportValues) -> str:
    """Return the rows of a report as two tables: the documents, and the run."""
    documents = _rows_table(say("found.documents"), result_rows(report))
    return documents + _rows_table(say("found.run"), [*search_rows(report), *cost_rows(report)])


def _rows_table(caption: str, rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        css_class = f"{row.kind} sub" if row.depth else row.kind
        label = f'<span class="{css_class}">{escape_text(row.label, lines=False)}</span>'
        texts = [escape_text(text, lines=False) for text in (row.value, row.share, row.remark)]
        lines.append((label, *texts))
    # Without a title for an empty column.
    share = "share" if any(row.share for row in rows) else ""
    return table(caption, words("", "value", share, ""), lines, numbers=(1, 2))


def notebook(report: ReportValues) -> str:
    """Return a compact HTML fragment for a notebook: headline, rows, charts."""
    rows = [*result_rows(report), *search_rows(report), *cost_rows(report)]
    drawings = (
        ("Similarity of the near-duplicates", charts.similarity_chart(report)),
        ("Hamming distance of the near-duplicates", charts.distance_chart(report)),
        ("Clusters by size (logarithmic)", charts.cluster_chart(report)),
    )
    largest = ""
    for row in report.get("largest_clusters") or ():
        name = escape_text(row["name"] or row["first_id"], lines=False)
        largest += f"<li>{row['size']:,}: <bdi>{name}</bdi></li>"
    fragment = render_fragment(
        report, headline(report), [row for row in rows if not row.is_detail], drawings
    )
    return f"{fragment}<ol>{largest}</ol>" if largest else fragment


def _terms(report: ReportValues, page: str) -> dict[str, str]:
    """Return the rule of a page and its measure, each with its meaning under the settings."""
    settings = part_of(report, "settings")
    connected = settings.get("linkage") == "connected"
    limits = limits_of(report)
    within = say("measure.within", limits=escape_text(limits)) if limits else ""
    keep = setting(settings.get("keep", "first"))
    decides = say(f"{page}.connected" if connected else f"{page}.decides", keep=keep, within=within)
    by_distance = report.get("fingerprints") and not is_confirmed(report)
    measure = say("measure.distance_term" if by_distance else "measure.similarity_term")
    return {say(f"{page}.term"): decides, measure: _measure(report)}


def _figures(report: ReportValues, other: str) -> str:
    """Return the charts of similarities, distances and cluster sizes, with their numbers as tables.

    other : the document to which each document is compared.
    """
    figures = figure(
        say("found.similarities", other=other),
        charts.similarity_chart(report),
        _similarity_table(report),
    )
    figures += figure(say("found.distances", other=other), charts.distance_chart(report))
    figures += figure(say("found.clusters"), charts.cluster_chart(report), _size_table(report))
    # Before the chart of pairs, which alone would show no result.
    if not figures:
        return f"<p>{say('found.none')}</p>"
    figures += figure(say("found.pairs"), charts.pairs_chart(report))
    return f'<div class="pair">{figures}</div>'


def _similarity_table(report: ReportValues) -> str:
    """Return the histogram of similarities as a table."""
    similarities = part_of(report, "similarities")
    edges = similarities.get("edges") or []
    # There is one edge more than counts: it ends the last bin.
    limits = zip(edges, edges[1:], similarities.get("counts") or [], strict=False)
    to = say("words.to")
    rows = [(f"{low:.4g} {to} {high:.4g}", f"{count:,}") for low, high, count in limits]
    titles = words("similarity", "documents")
    return table(say("found.by_similarity"), titles, rows, numbers=(1,))


def _size_table(report: ReportValues) -> str:
    """Return the sizes of clusters as a table."""
    classes = charts.size_classes(report.get("cluster_sizes") or ())
    rows = [(each.sizes, f"{each.clusters:,}", f"{each.documents:,}") for each in classes]
    titles = words("documents_each", "clusters", "documents_in_all")
    return table(say("found.by_size"), titles, rows, numbers=(1, 2))


def recall(report: ReportValues) -> str:
    """Return the explanation of the recall: its guarantee, or its estimate and measurement."""
    near = part_of(report, "fingerprints")
    bands = part_of(report, "bands")
    if near:
        guarantee = say(
            "recall.guarantee", distance=near["max_distance"], short=near.get("short", 0)
        )
        return f'<div class="prose">{guarantee}</div>'
    text = say("recall.estimate") if report.get("recall") else ""
    text += say("recall.sample") if report.get("recall_sample") else ""
    if not bands:
        return text
    b = bands["num_bands"]
    r = bands["rows_per_band"]
    settings = part_of(report, "settings")
    kind = "vectors" if are_vectors(report) else settings.get("similarity")
    is_other = kind in _AGREEMENTS
    title = say("recall.curve", b=b, r=r, base="p" if is_other else "s") + (
        say(f"recall.{kind}") if is_other else ""
    )
    chart = charts.s_curve(b, r, settings.get("threshold"), _AGREEMENTS.get(kind, float))
    return f'<div class="pair">{figure(title, chart)}<div class="prose">{text}</div></div>'


_AGREEMENTS: dict[str | None, Callable[[float], Any]] = {
    "cosine": lambda s: s / (2.0 - s),
    "vectors": same_side,
}
"""The probability that two documents of a similarity agree in a row of a band, where it is another
number.
"""


def _measure(report: ReportValues) -> str:
    """Describe the measure of two documents, and the features that it compares."""
    settings = part_of(report, "settings")
    scheme = part_of(report, "scheme")
    if are_vectors(report):
        return say("measure.exact", measure=say("measure.vectors"))
    if settings.get("similarity") == "jaccard" or is_confirmed(report):
        measure = say("measure.jaccard")
    elif settings.get("similarity") == "cosine":
        measure = say("measure.cosine")
    else:
        measure = say(
            "measure.named", named=setting(settings.get("similarity", say("measure.in_settings")))
        )
    if settings.get("boost_rare"):
        measure += say("measure.rare")
    if settings.get("above_chance"):
        measure += say("measure.chance")
    exact = say("measure.exact", measure=measure)
    grams = _grams(scheme)
    if not report.get("fingerprints"):
        return say("measure.features", grams=grams, exact=exact)
    weighed = say(f"weights.{scheme.get('weights', 'tf')}", "")
    votes = say("measure.votes", grams=grams, weighed=weighed, bits=setting(scheme.get("bits", 64)))
    return f"{votes} {exact}" if is_confirmed(report) else votes


def _grams(scheme: ReportValues) -> str:
    """Return the features of a document in words."""
    tokens = scheme.get("tokens", "tokens")
    tokens = say("measure.chinese") if isinstance(tokens, Mapping) else setting(tokens)
    if scheme.get("ngram", 1) == 1:
        return say("measure.tokens", tokens=tokens)
    return say("measure.sequences", number=setting(scheme["ngram"]), tokens=tokens)


def inputs_table(report: ReportValues) -> str:
    """Return the tables of the inputs, and of the values of a column."""
    inputs = report.get("inputs") or []
    names = ("documents", "removed", "rejected", "characters")
    counts = [name for name in names if any(name in entry for entry in inputs)]
    roles = ["role"] if any("role" in entry for entry in inputs) else []
    rows = [
        (
            document_id(entry.get("name", "")),
            escape_text(entry.get("format") or ""),
            *(say(f"roles.{entry.get(name)}", "") for name in roles),
            *(f"{entry.get(key) or 0:,}" for key in counts),
        )
        for entry in inputs[:_MAX_INPUTS]
    ]
    titles = words("name", "format", *roles, *counts)
    shown = table(
        say("titles.inputs"), titles, rows, numbers=range(len(titles) - len(counts), len(titles))
    )
    return (
        shown
        + _more("inputs.more", len(inputs) - len(rows))
        + _values_table(report.get("by_value"))
    )


def _more(key: str, left: int) -> str:
    """Return a sentence about the rows that a table leaves out; an empty string for none."""
    return f"<p>{say(key, left=left)}</p>" if left > 0 else ""


def _values_table(by_value: ReportValues | None) -> str:
    """Return the table of removals for each value of a column."""
    if not by_value:
        return ""
    column = escape_text(by_value["column"], lines=False)
    rows = [
        (
            document_id(row["value"] or ""),
            f"{row['documents']:,}",
            f"{row['removed']:,}",
            percent(row["removed"] / row["documents"]),
        )
        for row in by_value["values"][:_MAX_INPUTS]
    ]
    titles = column, *words("documents", "removed", "share")
    shown = table(say("inputs.by_column", column=column), titles, rows, numbers=(1, 2, 3))
    return shown + _more("inputs.more_values", by_value["num_values"] - len(rows))


def across_table(report: ReportValues) -> str:
    """Return a table of the documents of each input that were removed by documents of each input.

    Returns an empty string for one input.
    """
    cells = report.get("removed_by_inputs") or []
    across = {(cell["removed_from"], cell["kept_in"]): cell["documents"] for cell in cells}
    removed, kept = (
        list(dict.fromkeys(cell[end] for cell in cells))[:_MAX_ACROSS]
        for end in ("removed_from", "kept_in")
    )
    if len({*removed, *kept}) < 2:
        return ""
    rows = []
    num_shown = 0
    for name in removed:
        counts = [across.get((name, other)) for other in kept]
        num_shown += len(counts) - counts.count(None)
        shown_counts = ["" if count is None else f"{count:,}" for count in counts]
        rows.append((document_id(name, _MAX_INPUT_NAME), *shown_counts))
    titles = ["", *(document_id(name, _MAX_INPUT_NAME) for name in kept)]
    shown = table(say("inputs.across"), titles, rows, numbers=range(1, len(titles)))
    return f'<div class="across">{shown}</div>{_more("inputs.largest", len(cells) - num_shown)}'


def settings_tables(report: ReportValues) -> str:
    """Return the tables of the settings and of the scheme."""
    scheme = {**part_of(report, "scheme"), **part_of(report, "bands")}
    tables = _settings_table("settings.run", part_of(report, "settings"))
    tables += _settings_table("settings.scheme", scheme)
    return f'<div class="pair">{tables}</div>' if tables else ""


def _settings_table(key: str, values: Mapping[str, Any]) -> str:
    """Return the table of named values; key : of the caption."""
    rows = [
        (f"<code>{escape_text(name)}</code>", f"<code>{setting(value)}</code>")
        for name, value in values.items()
    ]
    return table(say(key), words("name", "value"), rows)
