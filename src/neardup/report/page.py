"""Write a self-contained HTML page: its frame, sections, tables and figures.

The page needs no network: style and script are inline, and its Content-Security-Policy allows only
these two, by hash. Corpus text is untrusted: it enters the page only through `escape_text`, which
also shows the characters that would hide or reorder the text around them. Equal reports give equal
pages.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template

import pyarrow as pa

from neardup.files import read_text
from neardup.report.rows import ReportValues, Row
from neardup.report.wording import escape_text, for_page, say

Section = tuple[str, str]
"""Anchor and body of a section. Its title is the sentence `titles.ANCHOR`; without a body, it is
left out.
"""


def render_page(
    report: ReportValues, headline: str, share: str, sections: Sequence[Section], script: str = ""
) -> str:
    """Return the report of a run as one HTML page.

    Parameters
    ----------
    report : the contents of report.json.
    headline : the result in one sentence.
    share : a chart of the result, as wide as the page.
    sections : the sections; a section without a body is left out.
    script : the name of a script in this folder, or an empty string.
    """
    assets = files("neardup.report")
    style = read_text(assets.joinpath("report.css"))
    page = read_text(assets.joinpath("page.html"))
    code = read_text(assets.joinpath(script)) if script else ""
    shown = [(anchor, say(f"titles.{anchor}"), body) for anchor, body in sections if body]
    program = f"neardup {report.get('version', '')} · {report.get('command', 'report')}"
    # A "$" in a text is safe: `substitute` does not expand the values that it inserts.
    return Template(page).substitute(
        language=say("page.language"),
        style=style,
        style_hash=_hash(style),
        scripts=f"'{_hash(code)}'" if script else "'none'",
        description=escape_text(headline),
        # Without the detail in parentheses: a tab shows few words.
        title=escape_text(re.split(r" ?[(（]", headline)[0]),
        skip=say("page.skip"),
        program=escape_text(program),
        headline=_marked_headline(headline),
        share=share,
        warnings=_warnings(report),
        contents=say("page.sections"),
        links="".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title, _ in shown),
        sections="".join(_section(*section) for section in shown),
        script=f"<script>{code}</script>" if script else "",
    )


def _marked_headline(headline: str) -> str:
    """Return the headline with its numbers in bold, and the parenthesis at its end as a detail."""
    # The escape of an apostrophe, which a text does not need, has digits that are no number.
    escaped = escape_text(headline).replace("&#x27;", "'")
    numbers = re.sub(r"\d[\d,]*", r"<b>\g<0></b>", escaped)
    return re.sub(r"[(（].*[)）]$", r'<span class="detail">\g<0></span>', numbers)


def render_fragment(
    report: ReportValues, headline: str, rows: Sequence[Row], drawings: Sequence[tuple[str, str]]
) -> str:
    """Return a compact HTML fragment for a notebook.

    Parameters
    ----------
    drawings : titles and charts; empty charts are left out.
    """
    # Styles are attributes of elements: notebooks ignore the style sheet of a fragment.
    cell = "text-align:left;vertical-align:baseline;padding:2px 14px 2px 0;font-weight:400"
    figure = f"{cell};white-space:nowrap;font-variant-numeric:tabular-nums"
    lines = ""
    for row in rows:
        label = escape_text(f"{'– ' if row.depth else ''}{row.label}", lines=False)
        remark = escape_text(row.explanation, lines=False)
        lines += (
            f'<tr><th scope="row" style="{figure}">{label}</th><td '
            f'style="{figure}">{escape_text(row.value)}</td>'
            f'<td style="{cell};opacity:.75">{remark}</td></tr>'
        )
    rows_table = (
        '<table aria-label="Result" '
        f'style="border-collapse:collapse;margin:0;font:inherit">{lines}</table>'
    )
    figures = "".join(
        f'<figure style="flex:1 1 260px;max-width:360px;margin:0">{title}{chart}</figure>'
        for title, chart in drawings
        if chart
    )
    flow = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:8px 32px"
    warned = "".join(
        f"<p>⚠ {escape_text(for_page(warning))}</p>" for warning in report.get("warnings") or ()
    )
    return (
        '<div class="neardup-report" style="font:14px/1.45 system-ui,sans-serif;max-width:60em">'
        f'<p style="font-size:1.15em;margin:0 0 8px"><b>{escape_text(headline)}</b></p>{warned}'
        f'{rows_table}<div style="{flow};margin-top:12px">{figures}</div></div>'
    )


def _section(anchor: str, title: str, body: str) -> str:
    heading = f'<h2 id="{anchor}-title">{title}</h2><div class="body">{body}</div>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">{heading}</section>\n'


def _warnings(report: ReportValues) -> str:
    items = "".join(
        f"<li>{escape_text(for_page(warning))}</li>" for warning in report.get("warnings") or ()
    )
    if not items:
        return ""
    return f'<div class="warnings"><h2>{say("page.warnings")}</h2><ul>{items}</ul></div>'


def figure(title: str, chart: str, numbers: str = "") -> str:
    """Return a chart with its title, and its numbers as a table; or an empty string."""
    if not chart:
        return ""
    details = folded(say("page.as_table"), numbers)
    return f"<figure><figcaption>{title}</figcaption>{chart}{details}</figure>"


def folded(summary: str, numbers: str) -> str:
    """Return a table that opens on demand; an empty string without a table."""
    if not numbers:
        return ""
    return f'<details class="numbers"><summary>{summary}</summary>{numbers}</details>'


def table(
    caption: str,
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
) -> str:
    """Return a table of HTML cells, or an empty string for no rows.

    The first column has the row headers.
    """
    attributes = [' class="n"' if column in numbers else "" for column in range(len(titles))]
    columns = list(zip(titles, attributes, strict=True))
    head = "".join(
        # An empty heading would mislead a screen reader.
        f'<th scope="col"{attribute}>{title}</th>' if title else "<td></td>"
        for title, attribute in columns
    )
    body = ""
    for first, *rest in rows:
        cells = "".join(
            f"<td{attribute}>{cell}</td>"
            for cell, attribute in zip(rest, attributes[1:], strict=True)
        )
        body += f'<tr><th scope="row">{first}</th>{cells}</tr>'
    head = f"<caption>{caption}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>" if body else ""


def first_rows(caption: str, rows: pa.Table, limit: int = 10) -> str:
    """Return the first rows of an Arrow table for a notebook, with a sentence about the others."""
    cells = [
        [escape_text(value, lines=False) for value in row.values()]
        for row in rows.slice(0, limit).to_pylist()
    ]
    titles = [escape_text(name) for name in rows.column_names]
    shown = table(escape_text(caption), titles, cells)
    others = f"<p>… {rows.num_rows - limit:,} more</p>" if rows.num_rows > limit else ""
    return shown + others


def _hash(text: str) -> str:
    """Return the source expression by which a Content-Security-Policy allows only this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def definitions(terms: Mapping[str, str]) -> str:
    """Return terms and their meanings, in HTML."""
    items = [f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in terms.items()]
    return f"<dl>{''.join(items)}</dl>"
