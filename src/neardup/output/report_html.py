"""Write the report of a run as one self-contained HTML page.

The page needs no network: style and script are inline, and its Content-Security-Policy allows exactly these
two, by hash. Corpus text is data from strangers: it enters only through `escape_text`, which also shows the
characters that would hide or reorder what stands around them. The same report gives the same page.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from neardup.output import charts
from neardup.output.report_items import Example, removed_list
from neardup.output.wording import duration, escape_text, interval, known, memory, percent, plural, setting

Report = Mapping[str, Any]

_WEIGHED = {
    "one": ", each of the same weight",
    "tf": ", weighed by how often they occur in it",
    "tfidf": ", weighed by how often they occur in it and how few documents have them",
    "depth": ", each weighed by how near it stands to the root",
}
_MAX_INPUTS = 500  # rows of the inputs table; report.json names every input


def render_report(report: dict[str, Any], examples: Sequence[Example]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : what report.json holds; a part that is absent or null is left out of the page.
    examples : removed documents to show, in the order of the run.
    """
    assets = files("neardup.output")
    style, script = (assets.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    said = headline(report)
    sections = [section for section in _sections(report, examples) if section[2]]
    links = "".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title, _ in sections)
    made_by = f"neardup {report.get('version', '')} · {report.get('command', 'report')}"
    numbers = re.sub(r"\d[\d,]*", r"<b>\g<0></b>", escape_text(said))
    figures = re.sub(r" [(](.*)[)]$", r' <span class="detail">(\1)</span>', numbers)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{_hash(style)}'; \
script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="description" content="{escape_text(said)}">
<title>{escape_text(said.split(" (")[0])} – neardup</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<p class="eyebrow">{escape_text(made_by)}</p>
<h1>{figures}</h1>
{charts.share_chart(report)}
{_warnings(report)}
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="main">
{"".join(_section(*section) for section in sections)}</main>
<script>{script}</script>
</body>
</html>
"""


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook: headline, closing table, two charts."""
    cell = 'style="text-align:left;padding:2px 14px 2px 0;font-weight:400;font-variant-numeric:tabular-nums"'
    counts = [(f"{'– ' if 'sub' in kind else ''}{label}", value) for kind, label, value, _ in _count_rows(report)]
    values = [*counts, *_run_rows(report)]
    rows = [f'<tr><th scope="row" {cell}>{label}</th><td {cell}>{value}</td></tr>' for label, value in values]
    half = (len(rows) + 1) // 2
    tables = "".join(
        f'<table aria-label="Result" style="border-collapse:collapse;margin:0;font:inherit">{"".join(part)}</table>'
        for part in (rows[:half], rows[half:])
    )
    drawings = "".join(
        f'<figure style="flex:1 1 260px;max-width:360px;margin:0">{title}{chart}</figure>'
        for title, chart in (
            ("Similarity of the near-duplicates", charts.similarity_chart(report)),
            ("Hamming distance of the near-duplicates", charts.distance_chart(report)),
            ("Clusters by size (logarithmic)", charts.cluster_chart(report)),
        )
        if chart
    )
    flow = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:8px 32px"
    warned = "".join(f"<p>⚠ {escape_text(warning)}</p>" for warning in report.get("warnings") or ())
    return (
        '<div class="neardup-report" style="font:14px/1.45 system-ui,sans-serif;max-width:60em">'
        f'<p style="font-size:1.15em;margin:0 0 8px"><b>{escape_text(headline(report))}</b></p>{warned}'
        f'<div style="{flow}">{tables}</div><div style="{flow};margin-top:12px">{drawings}</div></div>'
    )


def headline(report: Report) -> str:
    """Return the result of the run as one sentence in plain words."""
    counts = report.get("counts") or {}
    read, removed = counts.get("read", 0), counts.get("removed", 0)
    if not read:
        return "No documents read"
    said = f"{plural(read, 'document')} read, {counts.get('kept', 0):,} kept, "
    if not removed:
        return said + "none removed"
    exact, near = counts.get("removed_exact", 0), counts.get("removed_near", 0)
    return f"{said}{removed:,} removed ({plural(exact, 'exact copy')}, {plural(near, 'near-duplicate')})"


def _sections(report: Report, examples: Sequence[Example]) -> list[tuple[str, str, str]]:
    """Return (anchor, title, body) of each section; one with an empty body has nothing to say."""
    return [
        ("result", "Result", _result(report)),
        ("found", "What was found", _found(report)),
        ("recall", "What may be missed", _recall(report)),
        ("meaning", "What the numbers mean", _meaning(report)),
        ("time", "Time by stage", charts.time_chart(report)),
        ("inputs", "Inputs", _inputs(report)),
        ("settings", "Settings", _settings(report)),
        ("removed", "Removed documents", removed_list(examples, (report.get("counts") or {}).get("removed", 0))),
    ]


def _section(anchor: str, title: str, body: str) -> str:
    heading = f'<h2 id="{anchor}-title">{title}</h2><div class="body">{body}</div>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">{heading}</section>\n'


def _warnings(report: Report) -> str:
    items = "".join(f"<li>{escape_text(warning)}</li>" for warning in report.get("warnings") or ())
    return f'<div class="warnings"><h2>Warnings</h2><ul>{items}</ul></div>' if items else ""


def _count_rows(report: Report) -> list[tuple[str, str, str, str]]:
    """Return (class, label, count, share of the documents read) for each count that the report holds."""
    counts = report.get("counts") or {}
    rows = []
    for key, kind, label in (
        ("read", "", "Read"),
        ("kept", "share kept", "Kept"),
        ("removed", "share", "Removed"),
        ("removed_exact", "share sub exact", "exact copies"),
        ("removed_near", "share sub near", "near-duplicates"),
        ("without_features", "", "Without features"),
        ("rejected", "", "Rejected (unreadable)"),
        ("against", "", "Compared against"),
    ):
        if counts.get(key) is not None:
            share = percent(counts[key] / (counts.get("read") or 1)) if "share" in kind else ""
            rows.append((kind, label, f"{counts[key]:,}", share))
    return rows


def _run_rows(report: Report) -> list[tuple[str, str]]:
    """Return (label, value) for what the run measured about itself."""
    counts, bound, near = (report.get(key) or {} for key in ("counts", "bound", "fingerprints"))
    missed = f"every pair within {plural(near['max_distance'], 'bit')}" if near else "not estimated"
    caught = near.get("collisions") if _is_confirmed(report) else None
    rows = (
        ("Recall" if near else "Recall, estimated", interval(report.get("recall"), "estimated") or missed),
        ("Recall, audited", interval(report.get("audit"), "recall")),
        ("Pairs compared", known(counts.get("compared"), "{:,}".format)),
        ("Pairs confirmed", known(counts.get("confirmed"), "{:,}".format)),
        ("Distinct fingerprints", known(near.get("distinct"), "{:,}".format)),
        ("Collisions caught", known(caught, "{:,}".format)),
        ("Full buckets", known(bound.get("buckets"), "{:,}".format)),
        ("Met a full bucket", known(bound.get("documents"), "{:,}".format)),
        ("Time", known(report.get("seconds"), duration)),
        ("Text", known(report.get("bytes"), memory)),
        ("Speed", known(report.get("megabytes_per_second"), "{:,.1f} MB/s".format)),
        ("Documents per second", known(report.get("documents_per_second"), "{:,.0f}".format)),
        ("Peak memory", known(report.get("peak_memory_bytes"), memory)),
    )
    return [(label, value) for label, value in rows if value]


def _is_confirmed(report: Report) -> bool:
    """Return whether near fingerprints were held against the texts."""
    return (report.get("settings") or {}).get("confirm") == "jaccard"


def _result(report: Report) -> str:
    rows = [(f'<span class="{kind}">{label}</span>', *rest) for kind, label, *rest in _count_rows(report)]
    documents = _table("Documents", ("", "count", "of those read"), rows, numbers=(1, 2))
    run = _table("The run", ("", "value"), _run_rows(report), numbers=(1,))
    return f'<div class="pair">{documents}{run}</div>'


def _found(report: Report) -> str:
    similarities = report.get("similarities") or {}
    edges, counts = similarities.get("edges") or [], similarities.get("counts") or []
    limits = zip(edges, edges[1:], counts, strict=False)
    bins = [(f"{low:.4g} to {high:.4g}", f"{count:,}") for low, high, count in limits]
    groups = charts.group_sizes(report.get("cluster_sizes") or ())
    sizes = [(size, f"{clusters:,}", f"{documents:,}") for size, clusters, documents in groups]
    figures = (
        _figure(
            "Near-duplicates by similarity to the document that removed them; exact copies are not among them",
            charts.similarity_chart(report),
            _table("Near-duplicates by similarity", ("similarity", "documents"), bins, numbers=(1,)),
        )
        + _figure(
            "Near-duplicates by Hamming distance to the document that removed them; exact copies are not among them",
            charts.distance_chart(report),
        )
        + _figure(
            "Clusters by number of documents, the kept one included; lengths are logarithmic",
            charts.cluster_chart(report),
            _table("Clusters by size", ("documents each", "clusters", "documents in all"), sizes, numbers=(1, 2)),
        )
    )
    return f'<div class="pair">{figures}</div>' if figures else "<p>No duplicates were found.</p>"


def _figure(title: str, chart: str, table: str = "") -> str:
    """Return a chart with its title, and its numbers for whoever cannot hover; nothing for no chart."""
    numbers = f'<details class="numbers"><summary>As a table</summary>{table}</details>' if table else ""
    return f"<figure><figcaption>{title}</figcaption>{chart}{numbers}</figure>" if chart else ""


def _recall(report: Report) -> str:
    bands, audit, bound, near = (report.get(key) or {} for key in ("bands", "audit", "bound", "fingerprints"))
    if near:
        return _guarantee(near)
    estimate = interval(report.get("recall"), "estimated")
    said = "<p><strong>No estimate of recall:</strong> the run had no pairs to estimate it from.</p>"
    if estimate:
        said = (
            f"<p><strong>Estimated recall {estimate}:</strong> the share found, of the pairs that reach the "
            "threshold. A pair found at similarity <i>s</i> had the chance P(<i>s</i>) to be compared, so it "
            "stands for 1/P(<i>s</i>) pairs, found or missed (Horvitz and Thompson, 1952).</p>"
        )
    if audit:
        said += (
            f"<p><strong>Audited recall {interval(audit, 'recall') or 'unknown'}:</strong> "
            f"{plural(audit.get('documents', 0), 'document')} drawn at random met all others in an exact "
            f"comparison. The run had found {audit.get('found', 0):,} of their "
            f"{plural(audit.get('pairs', 0), 'pair')} that reach the threshold.</p>"
        )
    if bound:
        said += (
            f"<p>A bucket lists at most {bound.get('max_bucket', 0):,} kept documents; "
            f"{plural(bound.get('documents', 0), 'document')} met a full one.</p>"
        )
    if not bands:
        return said
    b, r = bands["num_bands"], bands["rows_per_band"]
    formula = f"<span>P(<i>s</i>) = 1 − (1 − <i>s</i><sup>{r}</sup>)<sup>{b}</sup></span>"
    settings = report.get("settings") or {}
    cosine = settings.get("similarity") == "cosine"
    chart = charts.s_curve(b, r, settings.get("threshold"), cosine=cosine)
    if cosine:
        formula += ", <i>s</i> the Jaccard similarity of two sets of one size"
    title = f"The chance that a pair is compared: {plural(b, 'band')} of {plural(r, 'row')}, {formula}"
    return f'<div class="pair">{_figure(title, chart)}<div class="prose">{said}</div></div>'


def _guarantee(near: Report) -> str:
    """Say what a search among fingerprints can miss."""
    distance = near["max_distance"]
    said = (
        f"<p><strong>No pair of fingerprints within {plural(distance, 'bit')} is missed:</strong> cut into more than "
        f"{distance} blocks, two such fingerprints agree in at least one of them, and all that agree in one "
        "are compared (Manku, Jain and Das Sarma, 2007).</p><p>What a fingerprint cannot tell is another matter. Short "
        "texts that share most of their words are often further apart "
        f"({plural(near.get('short', 0), 'document')} had fewer features than SimHash needs), and long ones that share "
        "only the common words can be near.</p>"
    )
    if near.get("collisions"):
        said += (
            f"<p>{plural(near['collisions'], 'pair')} of near fingerprints had texts that are not alike; exact "
            "similarity kept them apart.</p>"
        )
    return f'<div class="prose">{said}</div>'


def _meaning(report: Report) -> str:
    """Say what the words of the page mean, as the settings have it."""
    settings, scheme = report.get("settings") or {}, report.get("scheme") or {}
    tokens = scheme.get("tokens", "tokens")
    tokens = "Chinese words" if isinstance(tokens, Mapping) else setting(tokens)
    grams = f"its sequences of {setting(scheme['ngram'])} {tokens}" if scheme.get("ngram", 1) != 1 else f"its {tokens}"
    measure, limit = _similarity(report, grams), setting(settings.get("threshold", "the threshold"))
    alike = f"measures at least {limit} similar to it"
    if near := report.get("fingerprints"):
        alike = f"has a fingerprint within {plural(near['max_distance'], 'bit')} of its own"
        if _is_confirmed(report):
            alike += f", and measures at least {limit} similar to it"
    keep = setting(settings.get("keep", "first"))
    decides = (
        f"Documents pass in order of priority (<code>keep: {keep}</code>). One is removed when a document "
        f"already kept {alike}; otherwise it is kept. So every removed one "
        "names the kept one that removed it, and no chain of look-alikes joins documents that are not alike."
    )
    if settings.get("clusters") == "connected":
        decides = (
            f"Documents are linked when one {_of_the_other(alike)}; all that a chain of links "
            f"joins are a cluster. One of each is kept (<code>keep: {keep}</code>), and two of a cluster may be less "
            "similar."
        )
    terms = {
        "Removed, kept": decides,
        "Distance" if near and not _is_confirmed(report) else "Similarity": measure,
        "Exact copy, near-duplicate": "An exact copy has the same text after normalisation. A near-duplicate "
        "is as near without that; it may measure the same, when all that differs is not a feature.",
        "Without features": "Empty, or nothing in it to compare. Such documents are kept, and never grouped.",
        "Rejected": "Could not be read. Each is named, with its place and the reason, in the output.",
    }
    return f"<dl>{''.join(f'<div><dt>{term}</dt><dd>{text}</dd></div>' for term, text in terms.items())}</dl>"


def _similarity(report: Report, grams: str) -> str:
    """Say what was measured of two documents."""
    settings, scheme = report.get("settings") or {}, report.get("scheme") or {}
    measure = f"The measure is {setting(settings.get('similarity', 'named in the settings'))}"
    if settings.get("similarity") == "jaccard" or _is_confirmed(report):
        measure = "Jaccard similarity is the number of features in both, divided by the number in either"
    elif settings.get("similarity") == "cosine":
        measure = "The similarity is the cosine: the features in both, divided by the root of both numbers of features"
    if settings.get("rarity"):
        measure += "; a feature that few documents have counts twice or thrice"
    exact = f"{measure}; it is computed exactly, never estimated: hashing only proposes the pairs to compare. "
    cut = "Digits not shown are cut, not rounded."
    if not report.get("fingerprints"):
        return f"The features of a document are {grams}. {exact}{cut}"
    weighed = _WEIGHED.get(str(scheme.get("weights", "tf")), "")
    votes = (
        f"The features of a document are {grams}{weighed}. Each votes with its weight on every one of "
        f"{setting(scheme.get('bits', 64))} bits; the majorities are the fingerprint (Charikar, 2002). The Hamming "
        "distance of two documents is the number of bits in which their fingerprints differ."
    )
    return f"{votes} {exact}{cut}" if _is_confirmed(report) else votes


def _of_the_other(alike: str) -> str:
    """Say of two documents what was said of a document and one that was kept."""
    return alike.replace(" of its own", " of the other's").replace(" to it", " to the other")


def _inputs(report: Report) -> str:
    inputs = report.get("inputs") or []
    rows = [
        (
            f'<bdi class="id">{escape_text(entry.get("name", ""), lines=False)}</bdi>',
            *(escape_text(entry.get(key) or "") for key in ("format", "role")),
            *(f"{entry.get(key) or 0:,}" for key in ("documents", "rejected")),
        )
        for entry in inputs[:_MAX_INPUTS]
    ]
    left = plural(len(inputs) - len(rows), "more input")
    more = f"<p>{left}: report.json names them all.</p>" if len(inputs) > len(rows) else ""
    titles = ("name", "format", "role", "documents", "rejected")
    return _table("What was read", titles, rows, numbers=(3, 4)) + more


def _settings(report: Report) -> str:
    scheme = {**(report.get("scheme") or {}), **(report.get("bands") or {})}
    tables = ""
    for caption, values in (("Chosen for the run", report.get("settings") or {}), ("Fingerprint scheme", scheme)):
        cells = ((escape_text(key), setting(value)) for key, value in values.items())
        rows = [(f"<code>{key}</code>", f"<code>{value}</code>") for key, value in cells]
        tables += _table(caption, ("name", "value"), rows)
    return f'<div class="pair">{tables}</div>' if tables else ""


def _table(caption: str, titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    """Return a table of HTML cells whose first column heads its rows; an empty string for no rows."""
    kinds = [' class="n"' if column in numbers else "" for column in range(len(titles))]
    columns = list(zip(titles, kinds, strict=True))
    head = "".join(f'<th scope="col"{kind}>{title}</th>' if title else "<td></td>" for title, kind in columns)
    body = ""
    for first, *rest in rows:
        cells = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(rest, kinds[1:], strict=True))
        body += f'<tr><th scope="row">{first}</th>{cells}</tr>'
    head = f"<caption>{caption}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>" if body else ""


def _hash(text: str) -> str:
    """Return the source expression that lets a Content-Security-Policy allow exactly this inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
