"""Write the sections of every report: counts, figures, recall, time, inputs, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from neardup.report import charts
from neardup.report.messages import say
from neardup.report.page import Report, Section, definitions, figure, render_fragment, table
from neardup.report.wording import (
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
        english = self.condition.replace(" of its own", " of the other's").replace(" to it", " to the other")
        return say(english, self.condition.replace("它", "另一篇"))


def similarity_terms(report: Report) -> SimilarityTerms:
    """Return the terms of similarity under the settings."""
    settings, scheme = report.get("settings") or {}, report.get("scheme") or {}
    tokens = scheme.get("tokens", "tokens")
    tokens = say("Chinese words", "中文词") if isinstance(tokens, Mapping) else setting(tokens)
    grams = say(f"its {tokens}", f"它的 {tokens}")
    if scheme.get("ngram", 1) != 1:
        number = setting(scheme["ngram"])
        grams = say(f"its sequences of {number} {tokens}", f"连续 {number} 个词（{tokens}）的序列")
    measure, limit = _similarity(report, grams), setting(settings.get("threshold", say("the threshold", "阈值")))
    similar = say(f"measures at least {limit} similar to it", f"与它的实测相似度不低于 {limit}")
    condition = similar
    if settings.get("min_structure") is not None:
        structure = setting(settings["min_structure"])
        condition += say(f", and its structure at least {structure}", f"，结构相似度不低于 {structure}")
    if near := report.get("fingerprints"):
        distance = near["max_distance"]
        condition = say(
            f"has a fingerprint within {plural(distance, 'bit')} of its own",
            f"的指纹与它的指纹相差不超过 {distance} 位",
        )
        if is_confirmed(report):
            condition += say(", and ", "，且") + similar
    by_distance = near and not is_confirmed(report)
    word = say("Distance", "距离") if by_distance else say("Similarity", "相似度")
    return SimilarityTerms(condition, word, measure)


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
    rejected = say(
        "Documents that could not be read. The output lists each with its position and the reason.",
        "无法读取的文档。输出中列出每一篇的位置和原因。",
    )
    common = {say("Rejected", "拒绝"): rejected}
    return [
        ("result", say("Result", "结果"), count_tables(report, counted)),
        ("found", say("Duplicates found", "找到的重复"), _figures(report, found)),
        ("recall", say("Duplicates missed", "漏掉的重复"), recall(report)),
        ("meaning", say("Definitions", "定义"), definitions({**terms, **common})),
        ("time", say("Time by stage", "各阶段用时"), charts.time_chart(report)),
        ("across", say("Removed, by inputs", "按输入统计的删除"), across_table(report)),
        ("inputs", say("Inputs", "输入"), inputs_table(report)),
        ("settings", say("Settings", "设置"), settings_tables(report)),
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
    bins = [(f"{low:.4g} {say('to', '至')} {high:.4g}", f"{count:,}") for low, high, count in limits]
    classes = charts.size_classes(report.get("cluster_sizes") or ())
    sizes = [(size, f"{clusters:,}", f"{documents:,}") for size, clusters, documents in classes]
    documents, clusters = say("documents", "文档数"), say("clusters", "组数")
    titles = say("documents each", "每组文档数"), clusters, say("documents in all", "文档总数")
    by_similarity = say("Near-duplicates by similarity", "按相似度统计的近似重复")
    figures = (
        figure(
            say(
                f"Near-duplicates by similarity to {other}; without copies", f"近似重复与{other}的相似度分布，不含副本"
            ),
            charts.similarity_chart(report),
            table(by_similarity, (say("similarity", "相似度"), documents), bins, numbers=(1,)),
        )
        + figure(
            say(
                f"Near-duplicates by Hamming distance to {other}; without copies",
                f"近似重复与{other}的汉明距离分布，不含副本",
            ),
            charts.distance_chart(report),
        )
        + figure(
            say("Clusters by number of documents; lengths are logarithmic", "按文档数统计的组，条长为对数"),
            charts.cluster_chart(report),
            table(say("Clusters by size", "按大小统计的组"), titles, sizes, numbers=(1, 2)),
        )
    )
    if not figures:
        return f"<p>{say('No duplicates were found.', '没有找到重复。')}</p>"
    figures += figure(
        say("Compared pairs; those below the threshold are not duplicates", "比较过的文本对；低于阈值的不算重复"),
        charts.pairs_chart(report),
    )
    return f'<div class="pair">{figures}</div>'


def count_tables(report: Report, counted: Counted) -> str:
    """Return the tables of the documents and of the run."""
    rows = [
        (f'<span class="{css_class}">{label}</span>', *rest) for css_class, label, *rest in count_rows(report, counted)
    ]
    titles = "", say("count", "数量"), say("of those read", "占读入的比例")
    documents = table(say("Documents", "文档"), titles, rows, numbers=(1, 2))
    run = table(say("The run", "运行"), ("", say("value", "值")), run_rows(report), numbers=(1,))
    return f'<div class="pair">{documents}{run}</div>'


def run_rows(report: Report) -> list[tuple[str, str]]:
    """Return (label, value) of the measures of the run itself."""
    counts, bound, near = (report.get(key) or {} for key in ("counts", "bound", "fingerprints"))
    missed = say("not estimated", "未估计")
    if near:
        distance = near["max_distance"]
        missed = say(f"every pair within {plural(distance, 'bit')}", f"{distance} 位以内的全部文本对")
    if bound.get("documents"):
        missed = say("not known", "未知")
    caught = near.get("collisions") if is_confirmed(report) else None
    estimated = say("Recall", "召回率") if near else say("Recall, estimated", "召回率（估计）")
    rows = (
        (estimated, interval(report.get("recall"), "estimated") or missed),
        (say("Recall, audited", "召回率（抽查）"), interval(report.get("audit"), "recall")),
        (say("Pairs compared", "比较的文本对"), known(counts.get("compared"), "{:,}".format)),
        (say("Pairs confirmed", "确认的文本对"), known(counts.get("confirmed"), "{:,}".format)),
        (say("Distinct fingerprints", "不同的指纹"), known(near.get("distinct"), "{:,}".format)),
        (say("Collisions caught", "排除的碰撞"), known(caught, "{:,}".format)),
        (say("Full buckets", "已满的桶"), known(bound.get("buckets"), "{:,}".format)),
        (say("Left out by a bucket", "桶外文档"), known(bound.get("documents"), "{:,}".format)),
        (say("Time", "用时"), known(report.get("seconds"), duration)),
        (say("Compiling, once", "编译（仅一次）"), known(report.get("compile_seconds") or None, duration)),
        (say("Text", "文本"), known(report.get("bytes"), memory)),
        (say("Text removed", "删除的文本"), known(report.get("removed_bytes"), memory)),
        (say("Speed", "速度"), known(report.get("megabytes_per_second"), "{:,.1f} MB/s".format)),
        (say("Documents per second", "每秒文档数"), known(report.get("documents_per_second"), "{:,.0f}".format)),
        (say("Peak memory", "内存峰值"), known(report.get("peak_memory_bytes"), memory)),
    )
    return [(label, value) for label, value in rows if value]


def is_confirmed(report: Report) -> bool:
    """Return whether the features of candidates were compared."""
    return (report.get("settings") or {}).get("confirm") == "jaccard"


def recall(report: Report) -> str:
    bands, audit, bound, near = (report.get(key) or {} for key in ("bands", "audit", "bound", "fingerprints"))
    limit = ""
    if bound:
        size, left = bound.get("max_bucket_size", 0), bound.get("documents", 0)
        sentence = say(
            f"A bucket lists its first {plural(size, 'document')}; {plural(left, 'document')} may have a duplicate "
            "among "
            "the others.",
            f"每个桶只列出最前面的 {size:,} 篇文档；有 {left:,} 篇文档可能与桶中其余的文档重复。",
        )
        limit = f"<p>{sentence}</p>"
    if near:
        return f'<div class="prose">{_guarantee(near)}{limit}</div>'
    text = f"<p>{_estimate(report)}</p>"
    if audit:
        share = interval(audit, "recall") or say("unknown", "未知")
        drawn, found, pairs = (audit.get(name, 0) for name in ("documents", "found", "pairs"))
        text += "<p>" + say(
            f"<strong>Audited recall {share}:</strong> {plural(drawn, 'document')} drawn at random were compared "
            "exactly "
            f"with all others. {found:,} of their {plural(pairs, 'near-duplicate pair')} share a band. Pairs that full "
            "buckets hide count as found.</p>",
            f"<strong>召回率抽查为 {share}：</strong>随机抽取 {drawn:,} 篇文档，与其余全部文档精确比较。它们的 "
            f"{pairs:,} 对近似重复中，"
            f"{found:,} 对有相同的段。因桶已满而未比较的文本对按找到计算。</p>",
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
        formula += say(
            ", <i>s</i> the Jaccard similarity of two sets of one size",
            "，<i>s</i> 是大小相同的两个集合的 Jaccard 相似度",
        )
    title = say(
        f"The probability that a pair is compared: {plural(b, 'band')} of {plural(r, 'row')}, ",
        f"一对文本被比较的概率：{b} 段，每段 {r} 行，",
    )
    return f'<div class="pair">{figure(title + formula, chart)}<div class="prose">{text}</div></div>'


def _estimate(report: Report) -> str:
    """Return the estimated recall and its meaning, or the reason why there is none."""
    estimate = interval(report.get("recall"), "estimated")
    if estimate:
        return say(
            f"<strong>Estimated recall {estimate}:</strong> the share of the near-duplicate pairs that was found; "
            "copies are always found and do not count. A pair of similarity <i>s</i> is compared with probability "
            "P(<i>s</i>), so each found pair represents 1/P(<i>s</i>) pairs, found or missed (Horvitz and Thompson, "
            "1952).",
            f"<strong>召回率估计为 {estimate}：</strong>即近似重复的文本对中被找到的比例；副本一定能找到，不计在内。"
            "相似度为 "
            "<i>s</i> 的一对以概率 P(<i>s</i>) 被比较，因此每找到一对就代表 1/P(<i>s</i>) 对，包括找到的和漏掉的"
            "（Horvitz 与 Thompson，1952）。",
        )
    reason = say("the run had no pairs to estimate it from", "本次运行没有可供估计的文本对")
    if "updated" in report:
        reason = say("the run decided on top of an index", "本次运行基于索引判定")
    if (report.get("bound") or {}).get("documents"):
        reason = say("full buckets may have hidden pairs", "已满的桶可能漏掉文本对")
    return say(f"<strong>No estimate of recall:</strong> {reason}.", f"<strong>没有召回率的估计：</strong>{reason}。")


def _guarantee(near: Report) -> str:
    """Return the guarantee and the limits of a search by fingerprints."""
    distance, short = near["max_distance"], near.get("short", 0)
    text = say(
        f"<p><strong>No pair of fingerprints within {plural(distance, 'bit')} is missed:</strong> cut into more than "
        f"{distance} blocks, two such fingerprints agree in at least one block, and all fingerprints that agree in one "
        "are compared (Manku, Jain and Das Sarma, 2007).</p><p>The fingerprint itself has limits. Short texts that "
        f"share most of their words are often further apart ({plural(short, 'document')} had fewer features than "
        "SimHash needs), and long texts that share only common words can be close.</p>",
        f"<p><strong>相差 {distance} 位以内的指纹一对不漏：</strong>指纹分成多于 {distance} 块，这样的两个指纹至少有"
        "一块相同，"
        "而有一块相同的指纹都会互相比较（Manku、Jain 与 Das Sarma，2007）。</p><p>指纹本身有局限：大部分词语相同的短"
        "文本往往"
        f"相距较远（{short:,} 篇文档的特征少于 SimHash 所需），只有常用词相同的长文本则可能相近。</p>",
    )
    if near.get("collisions"):
        text += say(
            f"<p>{plural(near['collisions'], 'pair')} of close fingerprints had texts that are not similar; their "
            "exact similarity ruled them out.</p>",
            f"<p>有 {near['collisions']:,} 对指纹相近而文本不相似，已由精确的相似度排除。</p>",
        )
    return text


def _similarity(report: Report, grams: str) -> str:
    """Describe the measure of two documents."""
    settings, scheme = report.get("settings") or {}, report.get("scheme") or {}
    named = setting(settings.get("similarity", say("named in the settings", "见设置")))
    measure = say(f"The measure is {named}", f"度量为 {named}")
    if settings.get("similarity") == "jaccard" or is_confirmed(report):
        measure = say(
            "Jaccard similarity is the number of features in both, divided by the number in either",
            "Jaccard 相似度等于两者共有的特征数除以合计的特征数",
        )
    elif settings.get("similarity") == "cosine":
        measure = say(
            "The similarity is the cosine: the features in both, divided by the root of both numbers of features",
            "相似度是余弦：两者共有的特征数除以两者特征数之积的平方根",
        )
    if settings.get("boost_rare"):
        measure += say(
            "; a feature that few documents have counts two or three times", "；只有少数文档有的特征计两次或三次"
        )
    exact = say(
        f"{measure}; it is computed exactly; hashing only proposes the pairs to compare. Numbers are truncated, not "
        "rounded.",
        f"{measure}，精确计算；哈希只用来提名要比较的文本对。数字一律截断，不四舍五入。",
    )
    if not report.get("fingerprints"):
        return say(f"The features of a document are {grams}. {exact}", f"文档的特征是{grams}。{exact}")
    weighed = {
        "one": say(", each of the same weight", "，权重相同"),
        "tf": say(", weighed by their frequency in it", "，按在文档中的频率加权"),
        "tfidf": say(
            ", weighed by their frequency in it and their rarity in the corpus",
            "，按在文档中的频率和在语料中的稀有程度加权",
        ),
        "depth": say(", each weighed by its distance to the root", "，按与根的距离加权"),
    }.get(str(scheme.get("weights", "tf")), "")
    bits = setting(scheme.get("bits", 64))
    votes = say(
        f"The features of a document are {grams}{weighed}. Each votes with its weight on every one of {bits} bits; the "
        "majority of each bit makes the fingerprint (Charikar, 2002). The Hamming distance of two documents is the "
        "number of bits in which their fingerprints differ.",
        f"文档的特征是{grams}{weighed}。每个特征以其权重对 {bits} 位逐位投票，各位的多数构成指纹（Charikar，2002）。"
        "两篇文档的"
        "汉明距离是两个指纹中不同的位数。",
    )
    return f"{votes} {exact}" if is_confirmed(report) else votes


def inputs_table(report: Report) -> str:
    inputs = report.get("inputs") or []
    roles = {"source": say("source", "来源"), "against": say("against", "旧文档")}
    rows = [
        (
            f'<bdi class="id">{escape_text(entry.get("name", ""), lines=False)}</bdi>',
            escape_text(entry.get("format") or ""),
            roles.get(entry.get("role") or "", ""),
            *(f"{entry.get(key) or 0:,}" for key in ("documents", "removed", "rejected")),
        )
        for entry in inputs[:_MAX_INPUTS]
    ]
    left = len(inputs) - len(rows)
    lists = say(f"{plural(left, 'more input')}: report.json lists them.", f"另有 {left:,} 个输入，见 report.json。")
    titles = (
        say("name", "名称"),
        say("format", "格式"),
        say("role", "角色"),
        say("documents", "文档数"),
        say("removed", "删除"),
        say("rejected", "拒绝"),
    )
    shown = table(say("Inputs", "输入"), titles, rows, numbers=(3, 4, 5))
    return shown + (f"<p>{lists}</p>" if left > 0 else "") + _values_table(report.get("by_value"))


def _values_table(by_value: Report | None) -> str:
    """Return the table of removals for each value of a column."""
    if not by_value:
        return ""
    column, values = escape_text(by_value["column"], lines=False), by_value["values"][:_MAX_INPUTS]
    rows = [
        (
            f'<bdi class="id">{escape_text(row["value"] or "", lines=False)}</bdi>',
            f"{row['documents']:,}",
            f"{row['removed']:,}",
            percent(row["removed"] / row["documents"]),
        )
        for row in values
    ]
    left = by_value["num_values"] - len(rows)
    more = f"<p>{say(plural(left, 'more value'), f'另有 {left:,} 个值')}.</p>" if left > 0 else ""
    titles = column, say("documents", "文档数"), say("removed", "删除"), say("share", "比例")
    return table(say(f"Removed by {column}", f"按 {column} 统计的删除"), titles, rows, numbers=(1, 2, 3)) + more


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
    caption = say(
        "Documents of the input on the left, removed by a document of the input above",
        "左侧输入中的文档，被上方输入中的文档删除",
    )
    rest = say("Only the largest numbers are shown: report.json has more.", "只显示最大的数；其余见 report.json。")
    more = f"<p>{rest}</p>" if len(cells) > len(across) else ""
    shown = table(caption, ("", *names), rows, numbers=range(1, len(names) + 1))
    return f'<div class="across">{shown}</div>{more}'


def _input_name(name: str) -> str:
    return f'<bdi class="id">{escape_text(shortened_in_the_middle(name, _MAX_INPUT_NAME), lines=False)}</bdi>'


def settings_tables(report: Report) -> str:
    scheme = {**(report.get("scheme") or {}), **(report.get("bands") or {})}
    tables = ""
    captions = say("Settings of the run", "本次运行的设置"), say("Fingerprint scheme", "指纹方案")
    for caption, values in zip(captions, (report.get("settings") or {}, scheme), strict=True):
        cells = ((escape_text(key), setting(value)) for key, value in values.items())
        rows = [(f"<code>{key}</code>", f"<code>{value}</code>") for key, value in cells]
        tables += table(caption, (say("name", "名称"), say("value", "值")), rows)
    return f'<div class="pair">{tables}</div>' if tables else ""
