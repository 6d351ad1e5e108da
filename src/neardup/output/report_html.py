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
from decimal import ROUND_DOWN, Decimal
from importlib.resources import files
from typing import Any, NamedTuple

from neardup.output import charts
from neardup.output.charts import duration, escape_text, interval, known, memory, percent, plural, setting

Report = Mapping[str, Any]

_MAX_INPUTS = 500  # rows of the inputs table; report.json names every input
_MAX_LABEL = 160  # characters of an id in the list; the opened item shows it whole


class Example(NamedTuple):
    """A removed document beside the kept one that removed it.

    passages, kept_passages : (start, end, shared) slices of `text` and `kept_text`, in order; what no slice
    covers is shown unmarked. truncated : whether the texts are only parts of the documents. distance : of the
    fingerprints, or None where there are none.
    """

    id: str
    file: str
    row: int
    text: str
    kept_id: str
    kept_file: str
    kept_row: int
    kept_text: str
    similarity: float
    exact: bool
    passages: Sequence[tuple[int, int, bool]]
    kept_passages: Sequence[tuple[int, int, bool]]
    truncated: bool
    distance: int | None = None


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
        ("removed", "Removed documents", _removed(examples, (report.get("counts") or {}).get("removed", 0))),
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
    counts, bound = report.get("counts") or {}, report.get("bound") or {}
    rows = (
        ("Recall, estimated", interval(report.get("recall"), "estimated") or "not estimated"),
        ("Recall, audited", interval(report.get("audit"), "recall")),
        ("Pairs compared", known(counts.get("compared"), "{:,}".format)),
        ("Pairs confirmed", known(counts.get("confirmed"), "{:,}".format)),
        ("Full buckets", known(bound.get("buckets"), "{:,}".format)),
        ("Met a full bucket", known(bound.get("documents"), "{:,}".format)),
        ("Time", known(report.get("seconds"), duration)),
        ("Text", known(report.get("bytes"), memory)),
        ("Speed", known(report.get("megabytes_per_second"), "{:,.1f} MB/s".format)),
        ("Documents per second", known(report.get("documents_per_second"), "{:,.0f}".format)),
        ("Peak memory", known(report.get("peak_memory_bytes"), memory)),
    )
    return [(label, value) for label, value in rows if value]


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
    figures = _figure(
        "Near-duplicates by similarity to the document that removed them; exact copies are not among them",
        charts.similarity_chart(report),
        _table("Near-duplicates by similarity", ("similarity", "documents"), bins, numbers=(1,)),
    ) + _figure(
        "Clusters by number of documents, the kept one included; lengths are logarithmic",
        charts.cluster_chart(report),
        _table("Clusters by size", ("documents each", "clusters", "documents in all"), sizes, numbers=(1, 2)),
    )
    return f'<div class="pair">{figures}</div>' if figures else "<p>No duplicates were found.</p>"


def _figure(title: str, chart: str, table: str = "") -> str:
    """Return a chart with its title, and its numbers for whoever cannot hover; nothing for no chart."""
    numbers = f'<details class="numbers"><summary>As a table</summary>{table}</details>' if table else ""
    return f"<figure><figcaption>{title}</figcaption>{chart}{numbers}</figure>" if chart else ""


def _recall(report: Report) -> str:
    bands, audit, bound = (report.get(key) or {} for key in ("bands", "audit", "bound"))
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
    chart = charts.s_curve(b, r, (report.get("settings") or {}).get("threshold"))
    title = f"The chance that a pair is compared: {plural(b, 'band')} of {plural(r, 'row')}, {formula}"
    return f'<div class="pair">{_figure(title, chart)}<div class="prose">{said}</div></div>'


def _meaning(report: Report) -> str:
    settings, scheme = report.get("settings") or {}, report.get("scheme") or {}
    limit, keep = setting(settings.get("threshold", "the threshold")), setting(settings.get("keep", "first"))
    decides = (
        f"Documents pass in order of priority (<code>keep: {keep}</code>). One is removed when a document "
        f"already kept measures at least {limit} similar to it; otherwise it is kept. So every removed one "
        "names the kept one that removed it, and no chain of look-alikes joins documents that are not alike."
    )
    if settings.get("clusters") == "connected":
        decides = (
            f"Documents at least {limit} similar are linked; all that a chain of links joins are a cluster. "
            f"One of each is kept (<code>keep: {keep}</code>), and two of a cluster may be less similar."
        )
    tokens = setting(scheme.get("tokens", "tokens"))
    grams = f"its sequences of {setting(scheme['ngram'])} {tokens}" if "ngram" in scheme else "parts of it"
    measure = f"The measure is {setting(settings.get('similarity', 'named in the settings'))}"
    if settings.get("similarity") == "jaccard":
        measure = "Jaccard similarity is the number of features in both, divided by the number in either"
    terms = {
        "Removed, kept": decides,
        "Similarity": f"The features of a document are {grams}. {measure}; it is computed exactly, never "
        "estimated: hashing only proposes the pairs to compare. Digits not shown are cut, not rounded.",
        "Exact copy, near-duplicate": "An exact copy has the same text after normalisation. A near-duplicate "
        "reaches the threshold without that; it may measure 1, when all that differs is not a feature.",
        "Without features": "Empty, or nothing in it to compare. Such documents are kept, and never grouped.",
        "Rejected": "Could not be read. Each is named, with its place and the reason, in the output.",
    }
    return f"<dl>{''.join(f'<div><dt>{term}</dt><dd>{text}</dd></div>' for term, text in terms.items())}</dl>"


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


def _removed(examples: Sequence[Example], removed: int) -> str:
    if not examples:
        return f"<p>{'This report holds no examples.' if removed else 'Nothing was removed.'}</p>"
    items = "".join(_item(number, example) for number, example in enumerate(examples, 1))
    total = plural(max(removed, len(examples)), "removed document")
    return (
        f'<p class="legend">Shown: {len(examples):,} of {total}. Open one to read it beside the document '
        "that removed it: <del>only the removed text has this</del>, <ins>only the kept text has this</ins>. "
        "Rows count from 0.</p>"
        f'<ol id="removed-list">\n{items}</ol>'
    )


def _item(number: int, example: Example) -> str:
    kind, word = ("exact", "exact copy") if example.exact else ("near", "near-duplicate")
    label = example.id if len(example.id) <= _MAX_LABEL else example.id[:_MAX_LABEL] + "…"
    place = _place(example.file, example.row)
    # Three digits, cut: only what is 1 may read 1.000.
    digits = Decimal(repr(float(example.similarity))).quantize(Decimal("0.001"), rounding=ROUND_DOWN)
    note = '<p class="hint">Long texts: only a part of them is shown.</p>' if example.truncated else ""
    removed = _marked(example.text, example.passages, "del")
    kept = _marked(example.kept_text, example.kept_passages, "ins")
    if example.text == example.kept_text and not example.truncated:
        kept = '<p class="hint">The same text, character for character.</p>'
    return (
        f'<li id="removed-{number}" data-kind="{kind}" data-similarity="{float(example.similarity)!r}">'
        f'<details><summary><span class="similarity">{digits}</span> <span class="kind {kind}">{word}</span> '
        f'<bdi class="id">{escape_text(label, lines=False)}</bdi> {place}</summary>{note}<div class="texts">'
        f"{_document('Removed', example.id, place, removed)}"
        f"{_document('Kept', example.kept_id, _place(example.kept_file, example.kept_row), kept)}"
        "</div></details></li>\n"
    )


def _document(title: str, name: str, place: str, body: str) -> str:
    heading = f'{title} <bdi class="id">{escape_text(name, lines=False)}</bdi>'
    return f'<div class="{title.lower()}"><h3>{heading}</h3>{place}{body}</div>'


def _place(file: str, row: int) -> str:
    return f'<span class="place"><bdi>{escape_text(file, lines=False)}</bdi>:{row}</span>'


def _marked(text: str, passages: Sequence[tuple[int, int, bool]], mark: str) -> str:
    """Return the text with every passage that is not shared inside a `mark` element, and all of it."""
    body, position = "", 0
    for start, end, shared in passages:
        start = max(start, position)
        passage = escape_text(text[start:end])
        body += escape_text(text[position:start])
        body += passage if shared or not passage else f"<{mark}>{passage}</{mark}>"
        position = max(start, end)
    body += escape_text(text[position:])
    return f'<div class="text" dir="auto">{body or "<i>(empty)</i>"}</div>'


def _hash(text: str) -> str:
    """Return the source expression that lets a Content-Security-Policy allow exactly this inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
