"""Write the sections of every report: counts, figures, recall, time, inputs, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neardup.fingerprints.hyperplanes import SCHEME_NAME, same_side
from neardup.report import charts
from neardup.report.page import Report, Section, definitions, figure, render_fragment, table
from neardup.report.wording import (
    document_id,
    duration,
    escape_text,
    interval,
    known,
    memory,
    percent,
    say,
    setting,
    words,
)

Counted = Sequence[tuple[str, str]]  # key and class of counts; the class "share" adds a percentage
_MAX_INPUTS = 500  # rows of the inputs table
_MAX_ACROSS, _MAX_INPUT_NAME = 8, 40  # rows and columns of the table of removals by inputs; characters of a name in it


def _terms(report: Report, page: str) -> dict[str, str]:
    """Return the rule of a page and its measure, each as a term with its meaning under the settings."""
    settings = report.get("settings") or {}
    connected = settings.get("linkage") == "connected"
    keep, condition = setting(settings.get("keep", "first")), _condition(report, connected)
    decides = say(f"{page}.connected" if connected else f"{page}.decides", keep=keep, condition=condition)
    by_distance = report.get("fingerprints") and not is_confirmed(report)
    measure = say("measure.distance_term" if by_distance else "measure.similarity_term")
    return {say(f"{page}.term"): decides, measure: _measure(report)}


def _condition(report: Report, of_two: bool) -> str:
    """Return the condition of a duplicate in HTML; of_two : for two documents, neither of which is kept."""
    settings = report.get("settings") or {}
    limit = setting(settings.get("threshold", say("measure.threshold")))
    similar = say("measure.similar", limit=limit, it=say("measure.other" if of_two else "measure.it"))
    if near := report.get("fingerprints"):
        its = say("measure.others" if of_two else "measure.its")
        condition = say("measure.near", distance=near["max_distance"], its=its)
        return f"{condition}{say('measure.and')}{similar}" if is_confirmed(report) else condition
    if settings.get("min_structure") is not None:
        similar += say("measure.structure", structure=setting(settings["min_structure"]))
    return similar


def headline_losses(report: Report) -> str:
    """Return the end of a headline: the rows that were rejected and the files that could not be read completely."""
    counts, incomplete = report.get("counts") or {}, report.get("incomplete")
    rejected = counts.get("rejected", 0) + counts.get("items_rejected", 0)
    clauses = [say("headline.rejected", rejected=rejected)] if rejected else []
    clauses += [say("headline.incomplete", files=incomplete["files"])] if incomplete else []
    return "".join(clauses)


def count_rows(report: Report, counted: Counted) -> list[tuple[str, str, str, str]]:
    """Return (class, label, count, share of the documents read) for each of the counts of the report."""
    counts = report.get("counts") or {}
    rows = []
    for key, css_class in counted:
        if counts.get(key) is not None:
            share = percent(counts[key] / (counts.get("read") or 1)) if "share" in css_class else ""
            rows.append((css_class, say(f"counts.{key}"), f"{counts[key]:,}", share))
    return rows


def sections(report: Report, counted: Counted, page: str, terms: Mapping[str, str]) -> list[Section]:
    """Return the sections of every report.

    Parameters
    ----------
    page : the table of its sentences: removed, or clusters.
    terms : further terms of the page, and their meaning in HTML.
    """
    rejected = {say("rejected.term"): say("rejected.means")}
    return [
        ("result", count_tables(report, counted)),
        ("found", _figures(report, say(f"{page}.keeper"))),
        ("recall", recall(report)),
        ("meaning", definitions({**_terms(report, page), **terms, **rejected})),
        ("time", charts.time_chart(report)),
        ("across", across_table(report)),
        ("inputs", inputs_table(report)),
        ("settings", settings_tables(report)),
    ]


def notebook(report: Report, headline: str, counted: Counted) -> str:
    """Return a compact HTML fragment for a notebook: headline, counts, measures of the run, charts."""
    rows = count_rows(report, counted)
    counts = [(f"{'– ' if 'sub' in css_class else ''}{label}", value) for css_class, label, value, _ in rows]
    drawings = (
        ("Similarity of the near-duplicates", charts.similarity_chart(report)),
        ("Hamming distance of the near-duplicates", charts.distance_chart(report)),
        ("Clusters by size (logarithmic)", charts.cluster_chart(report)),
    )
    return render_fragment(report, headline, [*counts, *run_rows(report)], drawings)


def _figures(report: Report, other: str) -> str:
    """Return the charts of similarities, distances and cluster sizes, each with its numbers as a table."""
    similarities = report.get("similarities") or {}
    edges, counts = similarities.get("edges") or [], similarities.get("counts") or []
    limits = zip(edges, edges[1:], counts, strict=False)
    bins = [(f"{low:.4g} {say('words.to')} {high:.4g}", f"{count:,}") for low, high, count in limits]
    classes = charts.size_classes(report.get("cluster_sizes") or ())
    sizes = [(size, f"{clusters:,}", f"{documents:,}") for size, clusters, documents in classes]
    by_similarity = table(say("found.by_similarity"), words("similarity", "documents"), bins, numbers=(1,))
    titles = words("documents_each", "clusters", "documents_in_all")
    by_size = table(say("found.by_size"), titles, sizes, numbers=(1, 2))
    figures = figure(say("found.similarities", other=other), charts.similarity_chart(report), by_similarity)
    figures += figure(say("found.distances", other=other), charts.distance_chart(report))
    figures += figure(say("found.clusters"), charts.cluster_chart(report), by_size)
    if not figures:
        return f"<p>{say('found.none')}</p>"
    return f'<div class="pair">{figures}{figure(say("found.pairs"), charts.pairs_chart(report))}</div>'


def count_tables(report: Report, counted: Counted) -> str:
    """Return the tables of the documents and of the run."""
    counts = [
        (f'<span class="{css_class}">{label}</span>', *rest) for css_class, label, *rest in count_rows(report, counted)
    ]
    documents = table(say("found.documents"), words("", "count", "of_read"), counts, numbers=(1, 2))
    run = table(say("run.title"), words("", "value"), run_rows(report), numbers=(1,))
    return f'<div class="pair">{documents}{run}</div>'


def run_rows(report: Report) -> list[tuple[str, str]]:
    """Return (label, value) of the measures of the run itself."""
    counts, bound, near = (report.get(key) or {} for key in ("counts", "bound", "fingerprints"))
    missed = say("recall.not_estimated")
    if near:
        missed = say("recall.every_pair", distance=near["max_distance"])
    if bound.get("documents"):
        missed = say("recall.not_known")
    caught = near.get("collisions") if is_confirmed(report) else None
    rows = (
        ("recall" if near else "estimated", interval(report.get("recall"), "estimated") or missed),
        ("audited", interval(report.get("audit"), "recall")),
        ("compared", known(counts.get("compared"), "{:,}".format)),
        ("confirmed", known(counts.get("confirmed"), "{:,}".format)),
        ("distinct", known(near.get("distinct"), "{:,}".format)),
        ("collisions", known(caught, "{:,}".format)),
        ("bucket_overflows", known(bound.get("documents"), "{:,}".format)),
        ("seconds", known(report.get("seconds"), duration)),
        ("compiling", known(report.get("compile_seconds") or None, duration)),
        ("text", known(report.get("bytes"), memory)),
        ("removed", known(report.get("removed_bytes"), memory)),
        ("speed", known(report.get("megabytes_per_second"), "{:,.1f} MB/s".format)),
        ("documents_per_second", known(report.get("documents_per_second"), "{:,.0f}".format)),
        ("peak_memory", known(report.get("peak_memory_bytes"), memory)),
    )
    return [(say(f"run.{name}"), value) for name, value in rows if value]


def is_confirmed(report: Report) -> bool:
    """Return whether the features of candidates were compared."""
    return (report.get("settings") or {}).get("confirm") == "jaccard"


def recall(report: Report) -> str:
    """Return the recall as it is guaranteed, estimated and audited, with its limits."""
    bands, audit, bound, near = (report.get(key) or {} for key in ("bands", "audit", "bound", "fingerprints"))
    limit = ""
    if bound:
        size, left = bound.get("max_bucket_size", 0), bound.get("documents", 0)
        limit = f"<p>{say('recall.bound', size=size, left=left)}</p>"
    if near:
        return f'<div class="prose">{_guarantee(near)}{limit}</div>'
    text = f"<p>{_estimate(report)}</p>"
    if audit:
        share = interval(audit, "recall") or say("recall.unknown")
        drawn, found, pairs = (audit.get(name, 0) for name in ("documents", "found", "pairs"))
        text += f"<p>{say('recall.audited', share=share, drawn=drawn, found=found, pairs=pairs)}</p>"
    text += limit
    if not bands:
        return text
    b, r = bands["num_bands"], bands["rows_per_band"]
    settings = report.get("settings") or {}
    kind = "vectors" if _of_vectors(report) else settings.get("similarity")
    is_other = kind in _AGREEMENTS
    title = say("recall.curve", b=b, r=r, base="p" if is_other else "s") + (say(f"recall.{kind}") if is_other else "")
    chart = charts.s_curve(b, r, settings.get("threshold"), _AGREEMENTS.get(kind, float))
    return f'<div class="pair">{figure(title, chart)}<div class="prose">{text}</div></div>'


_AGREEMENTS: dict[str | None, Callable[[float], Any]] = {"cosine": lambda s: s / (2.0 - s), "vectors": same_side}
"""The probability that two documents of a similarity agree in a row of a band, where it is another number."""


def _of_vectors(report: Report) -> bool:
    return (report.get("scheme") or {}).get("name") == SCHEME_NAME


def _estimate(report: Report) -> str:
    """Return the estimated recall and its meaning, or the reason why there is none."""
    estimate = interval(report.get("recall"), "estimated")
    if estimate:
        return say("recall.estimated", estimate=estimate)
    reason = say("recall.no_pairs")
    if "updated" in report:
        reason = say("recall.on_index")
    if (report.get("bound") or {}).get("documents"):
        reason = say("recall.full_buckets")
    return say("recall.none", reason=reason)


def _guarantee(near: Report) -> str:
    """Return the guarantee and the limits of a search by fingerprints."""
    text = say("recall.guarantee", distance=near["max_distance"], short=near.get("short", 0))
    return text + (say("recall.collisions", collisions=near["collisions"]) if near.get("collisions") else "")


def _measure(report: Report) -> str:
    """Describe the measure of two documents, and the features that it compares."""
    settings, scheme = report.get("settings") or {}, report.get("scheme") or {}
    if _of_vectors(report):
        return say("measure.exact", measure=say("measure.vectors"))
    if settings.get("similarity") == "jaccard" or is_confirmed(report):
        measure = say("measure.jaccard")
    elif settings.get("similarity") == "cosine":
        measure = say("measure.cosine")
    else:
        measure = say("measure.named", named=setting(settings.get("similarity", say("measure.in_settings"))))
    if settings.get("boost_rare"):
        measure += say("measure.rare")
    if settings.get("above_chance"):
        measure += say("measure.chance")
    exact, grams = say("measure.exact", measure=measure), _grams(scheme)
    if not report.get("fingerprints"):
        return say("measure.features", grams=grams, exact=exact)
    weighed = say(f"weights.{scheme.get('weights', 'tf')}", "")
    votes = say("measure.votes", grams=grams, weighed=weighed, bits=setting(scheme.get("bits", 64)))
    return f"{votes} {exact}" if is_confirmed(report) else votes


def _grams(scheme: Report) -> str:
    """Return the features of a document in words."""
    tokens = scheme.get("tokens", "tokens")
    tokens = say("measure.chinese") if isinstance(tokens, Mapping) else setting(tokens)
    if scheme.get("ngram", 1) == 1:
        return say("measure.tokens", tokens=tokens)
    return say("measure.sequences", number=setting(scheme["ngram"]), tokens=tokens)


def inputs_table(report: Report) -> str:
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
    shown = table(say("titles.inputs"), titles, rows, numbers=range(len(titles) - len(counts), len(titles)))
    return shown + _more("inputs.more", len(inputs) - len(rows)) + _values_table(report.get("by_value"))


def _more(key: str, left: int) -> str:
    """Return a sentence about what a table leaves out; an empty string for nothing."""
    return f"<p>{say(key, left=left)}</p>" if left > 0 else ""


def _values_table(by_value: Report | None) -> str:
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


def across_table(report: Report) -> str:
    """Return a table of how many documents of each input were removed by documents of each; empty for one input."""
    cells = report.get("removed_by_inputs") or []
    across = {(cell["removed_from"], cell["kept_in"]): cell["documents"] for cell in cells}
    removed = list(dict.fromkeys(cell["removed_from"] for cell in cells))[:_MAX_ACROSS]
    kept = list(dict.fromkeys(cell["kept_in"] for cell in cells))[:_MAX_ACROSS]
    if len({*removed, *kept}) < 2:
        return ""
    names = {name: document_id(name, _MAX_INPUT_NAME) for name in (*removed, *kept)}
    rows = [
        (names[name], *(f"{across[name, other]:,}" if (name, other) in across else "" for other in kept))
        for name in removed
    ]
    titles = "", *(names[name] for name in kept)
    shown = table(say("inputs.across"), titles, rows, numbers=range(1, len(titles)))
    return f'<div class="across">{shown}</div>{_more("inputs.largest", len(cells) - len(across))}'


def settings_tables(report: Report) -> str:
    """Return the tables of the settings and of the scheme."""
    scheme = {**(report.get("scheme") or {}), **(report.get("bands") or {})}
    tables = ""
    for key, values in (("settings.run", report.get("settings") or {}), ("settings.scheme", scheme)):
        rows = [
            (f"<code>{escape_text(name)}</code>", f"<code>{setting(value)}</code>") for name, value in values.items()
        ]
        tables += table(say(key), words("name", "value"), rows)
    return f'<div class="pair">{tables}</div>' if tables else ""
