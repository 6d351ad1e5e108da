"""Write the report of `neardup dedup` as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neardup.report import charts
from neardup.report.cards import cards
from neardup.report.items import Example, removed_list
from neardup.report.messages import say, speaking
from neardup.report.page import Report, render_page
from neardup.report.sections import Counted, notebook, sections, similarity_terms
from neardup.report.wording import plural, setting, what_copies_share


def _counts() -> Counted:
    return (
        ("read", "", say("Read", "读入")),
        ("kept", "share kept", say("Kept", "保留")),
        ("removed", "share", say("Removed", "删除")),
        ("removed_exact", "share sub exact", say("copies", "副本")),
        ("removed_near", "share sub near", say("near-duplicates", "近似重复")),
        ("without_features", "", say("Without features", "没有特征")),
        ("rejected", "", say("Rejected (unreadable)", "拒绝（无法读取）")),
        ("against", "", say("Compared against", "比对的旧文档")),
    )


def render_report(report: dict[str, Any], examples: Sequence[Example]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json; an absent or null value is left out of the page.
    examples : the removed documents to show, in input order.
    """
    with speaking(report.get("lang", "en")):
        removed = removed_list(examples, (report.get("counts") or {}).get("removed", 0))
        body = sections(report, _counts(), say("the document that removed them", "其保留文本"), _terms(report))
        parts = (
            ("kept", "kept", say("kept", "保留")),
            ("near", "removed_near", say("near-duplicates", "近似重复")),
            ("exact", "removed_exact", say("copies", "副本")),
        )
        name = say("Shares of kept documents, near-duplicates and copies", "保留、近似重复和副本所占比例")
        opening = ("examples", say("At a glance", "概览"), cards(examples))
        ending = ("removed", say("Removed documents", "被删除的文档"), removed)
        shares = charts.proportion(report, parts, name=name)
        return render_page(report, headline(report), shares, [opening, *body, ending], "report.js")


def render_notebook(report: dict[str, Any]) -> str:
    """Return a compact HTML fragment for a notebook."""
    return notebook(report, headline(report), _counts())


def headline(report: Report) -> str:
    """Return the result of the run as one sentence."""
    counts = report.get("counts") or {}
    read, removed = counts.get("read", 0), counts.get("removed", 0)
    if not read:
        return say("No documents read", "没有读到文档")
    kept, exact, near = (counts.get(name, 0) for name in ("kept", "removed_exact", "removed_near"))
    sentence = say(f"{plural(read, 'document')} read, {kept:,} kept, ", f"读入 {read:,} 篇，保留 {kept:,} 篇，")
    if not removed:
        return sentence + say("none removed", "没有删除")
    return sentence + say(
        f"{removed:,} removed ({plural(exact, 'copy')}, {plural(near, 'near-duplicate')})",
        f"删除 {removed:,} 篇（副本 {exact:,} 篇，近似重复 {near:,} 篇）",
    )


def _terms(report: Report) -> dict[str, str]:
    """Return the terms of the page with their meaning under the settings."""
    settings, similar = report.get("settings") or {}, similarity_terms(report)
    keep = setting(settings.get("keep", "first"))
    decides = say(
        f"Documents are processed in order of priority (<code>keep: {keep}</code>). A document is removed when a kept "
        f"document {similar.condition}; otherwise it is kept. Every removed document is therefore similar to the kept "
        "document that removed it, and chains of duplicates do not join dissimilar documents.",
        f"文档按优先次序处理（<code>keep: {keep}</code>）。如果某篇保留文档{similar.condition}，它就被删除，否则保留"
        "。因此"
        "每篇被删除的文档都与删除它的保留文档相似，重复的链条不会把不相似的文档连在一起。",
    )
    if settings.get("linkage") == "connected":
        decides = say(
            f"Documents are linked when one {similar.condition_of_two}; a cluster is a set of documents that "
            f"chains of links join. One document of each is kept (<code>keep: {keep}</code>). Two documents of a "
            "cluster may be less similar.",
            f"如果两篇文档中的一篇{similar.condition_of_two}，两者就相连；由相连的链条连在一起的文档为一组，每组保留一篇"
            f"（<code>keep: {keep}</code>）。同组的两篇文档可能不太相似。",
        )
    copies = what_copies_share(settings, (report.get("scheme") or {}).get("tokens"))
    return {
        say("Removed, kept", "删除与保留"): decides,
        similar.word: similar.measure,
        say("Copy, near-duplicate", "副本与近似重复"): say(
            f"A copy has {copies}. A near-duplicate reaches the limit without that; its similarity may still be 1, if "
            "the difference changes no feature.",
            f"“副本”指{copies}。“近似重复”指达到阈值但不是副本；如果差异不改变任何特征，相似度仍可能为 1。",
        ),
        say("Without features", "没有特征"): say(
            "Empty documents, or documents without anything to compare. They are always kept.",
            "空文档，或没有可比较内容的文档，一律保留。",
        ),
    }
