"""Write the sections of every report: counts, figures, recall, time, inputs, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from neardup.output import charts
from neardup.output.page import Report, Section, definitions, figure, render_fragment, table
from neardup.output.wording import (
    duration,
    escape_text,
    interval,
    known,
    memory,
    percent,
    plural,
    setting,
    shortened_in_the_middle,
)

_WEIGHED = {
    "one": ", each of the same weight",
    "tf": ", weighed by their frequency in it",
    "tfidf": ", weighed by their frequency in it and their rarity in the corpus",
    "depth": ", each weighed by its distance to the root",
}
Counted = Sequence[tuple[str, str, str]]  # key, class and label of counts; the class "share" adds a percentage
_MAX_INPUTS = 500  # rows of the inputs table
_MAX_ACROSS, _MAX_INPUT_NAME = 8, 40  # rows and columns of the table of removals by inputs; characters of a name in it


class SimilarityTerms(NamedTuple):
    """The condition of a duplicate in HTML, the name of the measure, and its definition."""

    condition: str
    word: str
    measure: str

    @property
    def condition_of_two(self) -> str:
        """The condition for two documents, neither of which is kept."""
        return self.condition.replace(" of its own", " of the other's").replace(" to it", " to the other")


def similarity_terms(report: Report) -> SimilarityTerms:
    """Return the terms of similarity under the settings."""
    settings, scheme = report.get("settings") or {}, report.get("scheme") or {}
    tokens = scheme.get("tokens", "tokens")
    tokens = "Chinese words" if isinstance(tokens, Mapping) else setting(tokens)
    grams = f"its sequences of {setting(scheme['ngram'])} {tokens}" if scheme.get("ngram", 1) != 1 else f"its {tokens}"
    measure, limit = _similarity(report, grams), setting(settings.get("threshold", "the threshold"))
    condition = f"measures at least {limit} similar to it"
    if settings.get("min_structure") is not None:
        condition += f", and its structure at least {setting(settings['min_structure'])}"
    if near := report.get("fingerprints"):
        condition = f"has a fingerprint within {plural(near['max_distance'], 'bit')} of its own"
        if is_confirmed(report):
            condition += f", and measures at least {limit} similar to it"
    return SimilarityTerms(condition, "Distance" if near and not is_confirmed(report) else "Similarity", measure)


def count_rows(report: Report, counted: Counted) -> list[tuple[str, str, str, str]]:
    """Return (class, label, count, share of the documents read) for each of the counts of the report."""
    counts = report.get("counts") or {}
    rows = []
    for key, css_class, label in counted:
        if counts.get(key) is not None:
            share = percent(counts[key] / (counts.get("read") or 1)) if "share" in css_class else ""
            rows.append((css_class, label, f"{counts[key]:,}", share))
    return rows


def sections(report: Report, counted: Counted, found: str, terms: Mapping[str, str]) -> list[Section]:
    """Return the sections of every report.

    Parameters
    ----------
    found : the documents of the comparison, such as "the document that removed them".
    terms : terms of the page, and their meaning in HTML.
    """
    common = {"Rejected": "Documents that could not be read. The output lists each with its position and the reason."}
    return [
        ("result", "Result", count_tables(report, counted)),
        ("found", "Duplicates found", _figures(report, found)),
        ("recall", "Duplicates missed", recall(report)),
        ("meaning", "Definitions", definitions({**terms, **common})),
        ("time", "Time by stage", charts.time_chart(report)),
        ("across", "Removed, by inputs", across_table(report)),
        ("inputs", "Inputs", inputs_table(report)),
        ("settings", "Settings", settings_tables(report)),
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
    bins = [(f"{low:.4g} to {high:.4g}", f"{count:,}") for low, high, count in limits]
    classes = charts.size_classes(report.get("cluster_sizes") or ())
    sizes = [(size, f"{clusters:,}", f"{documents:,}") for size, clusters, documents in classes]
    figures = (
        figure(
            f"Near-duplicates by similarity to {other}; without copies",
            charts.similarity_chart(report),
            table("Near-duplicates by similarity", ("similarity", "documents"), bins, numbers=(1,)),
        )
        + figure(
            f"Near-duplicates by Hamming distance to {other}; without copies",
            charts.distance_chart(report),
        )
        + figure(
            "Clusters by number of documents; lengths are logarithmic",
            charts.cluster_chart(report),
            table("Clusters by size", ("documents each", "clusters", "documents in all"), sizes, numbers=(1, 2)),
        )
    )
    if not figures:
        return "<p>No duplicates were found.</p>"
    figures += figure("Compared pairs; those below the threshold are not duplicates", charts.pairs_chart(report))
    return f'<div class="pair">{figures}</div>'


def count_tables(report: Report, counted: Counted) -> str:
    """Return the tables of the documents and of the run."""
    rows = [
        (f'<span class="{css_class}">{label}</span>', *rest) for css_class, label, *rest in count_rows(report, counted)
    ]
    documents = table("Documents", ("", "count", "of those read"), rows, numbers=(1, 2))
    run = table("The run", ("", "value"), run_rows(report), numbers=(1,))
    return f'<div class="pair">{documents}{run}</div>'


def run_rows(report: Report) -> list[tuple[str, str]]:
    """Return (label, value) of the measures of the run itself."""
    counts, bound, near = (report.get(key) or {} for key in ("counts", "bound", "fingerprints"))
    missed = f"every pair within {plural(near['max_distance'], 'bit')}" if near else "not estimated"
    missed = "not known" if bound.get("documents") else missed
    caught = near.get("collisions") if is_confirmed(report) else None
    rows = (
        ("Recall" if near else "Recall, estimated", interval(report.get("recall"), "estimated") or missed),
        ("Recall, audited", interval(report.get("audit"), "recall")),
        ("Pairs compared", known(counts.get("compared"), "{:,}".format)),
        ("Pairs confirmed", known(counts.get("confirmed"), "{:,}".format)),
        ("Distinct fingerprints", known(near.get("distinct"), "{:,}".format)),
        ("Collisions caught", known(caught, "{:,}".format)),
        ("Full buckets", known(bound.get("buckets"), "{:,}".format)),
        ("Left out by a bucket", known(bound.get("documents"), "{:,}".format)),
        ("Time", known(report.get("seconds"), duration)),
        ("Compiling, once", known(report.get("compile_seconds") or None, duration)),
        ("Text", known(report.get("bytes"), memory)),
        ("Text removed", known(report.get("removed_bytes"), memory)),
        ("Speed", known(report.get("megabytes_per_second"), "{:,.1f} MB/s".format)),
        ("Documents per second", known(report.get("documents_per_second"), "{:,.0f}".format)),
        ("Peak memory", known(report.get("peak_memory_bytes"), memory)),
    )
    return [(label, value) for label, value in rows if value]


def is_confirmed(report: Report) -> bool:
    """Return whether the features of candidates were compared."""
    return (report.get("settings") or {}).get("confirm") == "jaccard"


def recall(report: Report) -> str:
    bands, audit, bound, near = (report.get(key) or {} for key in ("bands", "audit", "bound", "fingerprints"))
    limit = ""
    if bound:
        limit = (
            f"<p>A bucket lists its first {plural(bound.get('max_bucket_size', 0), 'document')}; "
            f"{plural(bound.get('documents', 0), 'document')} may have a duplicate among the others.</p>"
        )
    if near:
        return f'<div class="prose">{_guarantee(near)}{limit}</div>'
    estimate = interval(report.get("recall"), "estimated")
    reason = "the run decided on top of an index" if "updated" in report else "the run had no pairs to estimate it from"
    if bound.get("documents"):
        reason = "full buckets may have hidden pairs"
    text = f"<p><strong>No estimate of recall:</strong> {reason}.</p>"
    if estimate:
        text = (
            f"<p><strong>Estimated recall {estimate}:</strong> the share of the near-duplicate pairs that was found; "
            "copies are always found and do not count. A pair of similarity <i>s</i> is compared with probability "
            "P(<i>s</i>), so each found pair represents 1/P(<i>s</i>) pairs, found or missed (Horvitz and Thompson, "
            "1952).</p>"
        )
    if audit:
        text += (
            f"<p><strong>Audited recall {interval(audit, 'recall') or 'unknown'}:</strong> "
            f"{plural(audit.get('documents', 0), 'document')} drawn at random were compared "
            f"exactly with all others. {audit.get('found', 0):,} of their "
            f"{plural(audit.get('pairs', 0), 'near-duplicate pair')} share a band. Pairs that full buckets hide count "
            "as found.</p>"
        )
    text += limit
    if not bands:
        return text
    b, r = bands["num_bands"], bands["rows_per_band"]
    formula = f"<span>P(<i>s</i>) = 1 − (1 − <i>s</i><sup>{r}</sup>)<sup>{b}</sup></span>"
    settings = report.get("settings") or {}
    cosine = settings.get("similarity") == "cosine"
    chart = charts.s_curve(b, r, settings.get("threshold"), cosine=cosine)
    if cosine:
        formula += ", <i>s</i> the Jaccard similarity of two sets of one size"
    title = f"The probability that a pair is compared: {plural(b, 'band')} of {plural(r, 'row')}, {formula}"
    return f'<div class="pair">{figure(title, chart)}<div class="prose">{text}</div></div>'


def _guarantee(near: Report) -> str:
    """Return the guarantee and the limits of a search by fingerprints."""
    distance = near["max_distance"]
    text = (
        f"<p><strong>No pair of fingerprints within {plural(distance, 'bit')} is missed:</strong> cut into more than "
        f"{distance} blocks, two such fingerprints agree in at least one block, and all fingerprints that agree in one "
        "are compared (Manku, Jain and Das Sarma, 2007).</p><p>The fingerprint itself has limits. Short "
        "texts that share most of their words are often further apart "
        f"({plural(near.get('short', 0), 'document')} had fewer features than SimHash needs), and long texts that "
        "share only common words can be close.</p>"
    )
    if near.get("collisions"):
        text += (
            f"<p>{plural(near['collisions'], 'pair')} of close fingerprints had texts that are not similar; their "
            "exact similarity ruled them out.</p>"
        )
    return text


def _similarity(report: Report, grams: str) -> str:
    """Describe the measure of two documents."""
    settings, scheme = report.get("settings") or {}, report.get("scheme") or {}
    measure = f"The measure is {setting(settings.get('similarity', 'named in the settings'))}"
    if settings.get("similarity") == "jaccard" or is_confirmed(report):
        measure = "Jaccard similarity is the number of features in both, divided by the number in either"
    elif settings.get("similarity") == "cosine":
        measure = "The similarity is the cosine: the features in both, divided by the root of both numbers of features"
    if settings.get("boost_rare"):
        measure += "; a feature that few documents have counts two or three times"
    exact = f"{measure}; it is computed exactly; hashing only proposes the pairs to compare. "
    cut = "Numbers are truncated, not rounded."
    if not report.get("fingerprints"):
        return f"The features of a document are {grams}. {exact}{cut}"
    weighed = _WEIGHED.get(str(scheme.get("weights", "tf")), "")
    votes = (
        f"The features of a document are {grams}{weighed}. Each votes with its weight on every one of "
        f"{setting(scheme.get('bits', 64))} bits; the majority of each bit makes the fingerprint (Charikar, 2002). The "
        "Hamming distance of two documents is the number of bits in which their fingerprints differ."
    )
    return f"{votes} {exact}{cut}" if is_confirmed(report) else votes


def inputs_table(report: Report) -> str:
    inputs = report.get("inputs") or []
    rows = [
        (
            f'<bdi class="id">{escape_text(entry.get("name", ""), lines=False)}</bdi>',
            *(escape_text(entry.get(key) or "") for key in ("format", "role")),
            *(f"{entry.get(key) or 0:,}" for key in ("documents", "removed", "rejected")),
        )
        for entry in inputs[:_MAX_INPUTS]
    ]
    left = plural(len(inputs) - len(rows), "more input")
    more = f"<p>{left}: report.json lists them.</p>" if len(inputs) > len(rows) else ""
    titles = ("name", "format", "role", "documents", "removed", "rejected")
    return table("Inputs", titles, rows, numbers=(3, 4, 5)) + more + _values_table(report.get("by_value"))


def _values_table(by_value: Report | None) -> str:
    """Return the table of removals for each value of a column."""
    if not by_value:
        return ""
    column, values = escape_text(by_value["column"], lines=False), by_value["values"][:_MAX_INPUTS]
    rows = [
        (
            f'<bdi class="id">{escape_text(row["value"] or "", lines=False)}</bdi>',
            f"{row['documents']:,}", f"{row['removed']:,}", percent(row["removed"] / row["documents"]),
        )
        for row in values
    ]  # fmt: skip
    left = plural(by_value["num_values"] - len(rows), "more value")
    more = f"<p>{left}.</p>" if by_value["num_values"] > len(rows) else ""
    return table(f"Removed by {column}", (column, "documents", "removed", "share"), rows, numbers=(1, 2, 3)) + more


def across_table(report: Report) -> str:
    """Return a table of how many documents of each input were removed by documents of each; empty for one input."""
    cells = report.get("removed_by_inputs") or []
    across = {(cell["removed_from"], cell["kept_in"]): cell["documents"] for cell in cells}
    removed = list(dict.fromkeys(cell["removed_from"] for cell in cells))[:_MAX_ACROSS]
    kept = list(dict.fromkeys(cell["kept_in"] for cell in cells))[:_MAX_ACROSS]
    if len({*removed, *kept}) < 2:
        return ""
    names = [_input_name(name) for name in kept]
    rows = [
        (_input_name(name), *(f"{across[name, other]:,}" if (name, other) in across else "" for other in kept))
        for name in removed
    ]
    caption = "Documents of the input on the left, removed by a document of the input above"
    more = "<p>Only the largest numbers are shown: report.json has more.</p>" if len(cells) > len(across) else ""
    shown = table(caption, ("", *names), rows, numbers=range(1, len(names) + 1))
    return f'<div class="across">{shown}</div>{more}'


def _input_name(name: str) -> str:
    return f'<bdi class="id">{escape_text(shortened_in_the_middle(name, _MAX_INPUT_NAME), lines=False)}</bdi>'


def settings_tables(report: Report) -> str:
    scheme = {**(report.get("scheme") or {}), **(report.get("bands") or {})}
    tables = ""
    for caption, values in (("Settings of the run", report.get("settings") or {}), ("Fingerprint scheme", scheme)):
        cells = ((escape_text(key), setting(value)) for key, value in values.items())
        rows = [(f"<code>{key}</code>", f"<code>{value}</code>") for key, value in cells]
        tables += table(caption, ("name", "value"), rows)
    return f'<div class="pair">{tables}</div>' if tables else ""
