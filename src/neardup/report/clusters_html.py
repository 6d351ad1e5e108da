"""Write the report of `neardup cluster` as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from neardup.formats.input_file import InputFile
from neardup.formats.reading import Task
from neardup.report import charts
from neardup.report.items import location
from neardup.report.messages import say, speaking
from neardup.report.page import Report, render_page, table
from neardup.report.sections import Counted, notebook, sections, similarity_terms
from neardup.report.wording import escape_text, plural, setting, shortened_in_the_middle

MAX_SHOWN = 200  # clusters on the page; cluster_summary.parquet has all
_MAX_OPEN = 25  # clusters in view; the others on the page are folded
_MAX_LABEL = 120  # characters of an id in the table

Row = Mapping[str, Any]


def _counts() -> Counted:
    return (
        ("read", "", say("Read", "读入")),
        ("clusters", "", say("Clusters", "组")),
        ("clustered", "share kept", say("In clusters", "在组内")),
        ("known", "share sub", say("of a known document", "属于已知文档")),
        ("single", "share exact", say("Single", "单独")),
        ("largest", "", say("In the largest cluster", "最大的一组")),
        ("against", "", say("Compared against", "比对的旧文档")),
        ("without_features", "", say("Without features", "没有特征")),
        ("rejected", "", say("Rejected (unreadable)", "拒绝（无法读取）")),
    )


def links_to_files(tasks: Sequence[Task], rows: Sequence[Row], output: Path | str) -> dict[str, str]:
    """Return the addresses of the documents on the page that are local files, by id, relative to a local output."""
    named = {file for row in rows for file, _ in row["places"]}
    links = {}
    for part in (task.part for task in tasks if task.part.name in named and task.part.unit == "file"):
        if isinstance(part, InputFile) and part.is_local and isinstance(output, Path):
            with suppress(ValueError):  # on another drive of Windows
                links[part.name] = quote(Path(os.path.relpath(part.location, output)).as_posix())
    return links


def render_clusters(report: dict[str, Any], rows: Sequence[Row], links: Mapping[str, str] | None = None) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json; an absent or null value is left out of the page.
    rows : the largest clusters, as in cluster_summary.parquet, each with the `places` of the first document and the
        examples.
    links : the addresses of some documents, by id.
    """
    with speaking(report.get("lang", "en")):
        first = say("the first document of their cluster", "本组首篇文档")
        result, *others = sections(report, _counts(), first, _terms(report))
        clusters = ("clusters", say("Clusters", "组"), _clusters(report, rows, links or {}))
        parts = (("kept", "clustered", say("in clusters", "组内")), ("exact", "single", say("single", "单独")))
        name = say("Shares of documents in clusters and single ones", "组内文档与单独文档所占比例")
        shares = charts.proportion(report, parts, name=name)
        return render_page(report, headline(report), shares, [result, clusters, *others])


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook, with the largest clusters."""
    fragment = notebook(report, headline(report), _counts())
    largest = "".join(
        f"<li>{row['size']:,}: <bdi>{escape_text(row['name'] or row['first_id'], lines=False)}</bdi></li>"
        for row in report.get("largest_clusters") or ()
    )
    return f"{fragment}<ol>{largest}</ol>" if largest else fragment


def headline(report: Report) -> str:
    """Return the result of the run as one sentence."""
    counts = report.get("counts") or {}
    if not counts.get("read"):
        return say("No documents read", "没有读到文档")
    read, clusters, clustered, single = (counts.get(name, 0) for name in ("read", "clusters", "clustered", "single"))
    sentence = say(f"{plural(read, 'document')} read, ", f"读入 {read:,} 篇，")
    if not clusters:
        return sentence + say("no two similar", "没有相似的文档")
    return sentence + say(
        f"{plural(clusters, 'cluster')} ({clustered:,} in clusters, {single:,} single)",
        f"分为 {clusters:,} 组（组内 {clustered:,} 篇，单独 {single:,} 篇）",
    )


def _clusters(report: Report, rows: Sequence[Row], links: Mapping[str, str]) -> str:
    """Return the table of clusters: number, size, name, examples."""
    if not rows:
        return f"<p>{say('No two documents are similar.', '没有相似的文档。')}</p>"
    largest = rows[0]["size"]
    lines = [
        (
            f"{row['cluster']:,}",
            f"{row['size']:,}",
            charts.size_bar(row["size"], largest),
            f'<bdi class="id">{escape_text(row["name"] or "", lines=False)}</bdi>',
            _examples(row, links),
        )
        for row in rows
    ]
    total = (report.get("counts") or {}).get("clusters") or len(rows)
    caption = say(
        f"Shown: {len(rows):,} of {plural(total, 'cluster')}, the largest first; cluster_summary.parquet has all of "
        "them",
        f"共 {total:,} 组，此处按大小列出 {len(rows):,} 组；全部见 cluster_summary.parquet",
    )
    titles = (
        say("cluster", "组"),
        say("documents", "文档数"),
        "",
        say("name: the common part of its documents", "名称：组内文档的共同部分"),
        say("first document and examples", "首篇文档与例子"),
    )
    shown = table(caption, titles, lines[:_MAX_OPEN], numbers=(0, 1))
    rest = lines[_MAX_OPEN:]
    more = table(say("Smaller ones", "较小的组"), titles, rest, numbers=(0, 1))
    summary = say(plural(len(rest), "smaller cluster"), f"较小的 {len(rest):,} 组")
    return shown + (f'<details class="numbers"><summary>{summary}</summary>{more}</details>' if more else "")


def _examples(row: Row, links: Mapping[str, str]) -> str:
    first, *others = (
        f"{_linked(name, links)} {location(name, *file_and_row)}"
        for name, file_and_row in zip((row["first_id"], *row["example_ids"]), row["places"], strict=True)
    )
    listed = "".join(f"<li>{other}</li>" for other in others)
    known = say("known: ", "已知：") if row.get("first_role") == "against" else ""
    return f"<details><summary>{known}{first}</summary><ul>{listed}</ul></details>"


def _linked(name: str, links: Mapping[str, str]) -> str:
    """Return the id of a document, as a link if it is a file."""
    shown = f'<bdi class="id">{escape_text(shortened_in_the_middle(name, _MAX_LABEL), lines=False)}</bdi>'
    return f'<a href="{escape(links[name])}" rel="noreferrer">{shown}</a>' if name in links else shown


def _terms(report: Report) -> dict[str, str]:
    """Return the terms of the page with their meaning under the settings."""
    settings, similar = report.get("settings") or {}, similarity_terms(report)
    keep = setting(settings.get("keep", "first"))
    joins = say(
        f"Documents are processed in order of priority (<code>keep: {keep}</code>). Each joins the cluster whose first "
        f"document {similar.condition}, the most similar of several; otherwise it starts a new cluster. Every document "
        "is therefore similar to the first document of its cluster.",
        f"文档按优先次序处理（<code>keep: {keep}</code>）。如果某组的首篇文档{similar.condition}，它就加入该组，有多"
        "组时取最相似的；"
        "否则自成一组。因此每篇文档都与本组的首篇文档相似。",
    )
    if settings.get("linkage") == "connected":
        joins = say(
            f"Documents are linked when one {similar.condition_of_two}; a cluster is a set of documents that chains of "
            "links join, and two of its documents may be less similar. The first document has priority "
            f"(<code>keep: {keep}</code>).",
            f"如果两篇文档中的一篇{similar.condition_of_two}，两者就相连；由相连的链条连在一起的文档为一组，其中两篇可能不太相似。"
            f"首篇文档最优先（<code>keep: {keep}</code>）。",
        )
    return {
        say("Cluster", "组"): joins,
        similar.word: similar.measure,
        say("Name", "名称"): say(
            "The common part of some of its documents: for pages compared by structure, a path through elements that "
            "all of them have and few other clusters have (* replaces numbers, × marks repeated rows, dots mark "
            "omissions); for texts, the start of the longest passage that their beginnings share.",
            "组内部分文档的共同部分。按结构比较的网页：这些网页都有、其他组少有的一条元素路径（* 代替数字，× 表示重复"
            "，省略号表示"
            "省略）；文本：各篇开头共有的最长段落的起始部分。",
        ),
        say("Single", "单独"): say(
            "Similar to no other document; a cluster of one in clusters.parquet.",
            "与其他文档都不相似，在 clusters.parquet 中自成一组。",
        ),
        say("Without features", "没有特征"): say(
            "Empty documents, or documents without anything to compare. They are single.",
            "空文档，或没有可比较内容的文档，各自单独。",
        ),
    }
