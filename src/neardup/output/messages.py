"""Translate the report page and the comparison of two texts: one table of messages for each language.

The English text is the key: a regular expression that matches a whole message, with its figures as groups. A message
without a translation stays English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_PAGE_ZH = {
    # The frame
    r"([\d,]+) documents? read, ([\d,]+) kept, ([\d,]+) removed \(([\d,]+) cop(?:y|ies), ([\d,]+) near-duplicates?\)": (
        r"读入 \1 篇，保留 \2 篇，删除 \3 篇（副本 \4 篇，近似重复 \5 篇）"
    ),
    r"([\d,]+) documents? read, ([\d,]+) kept, ([\d,]+) removed – neardup": r"读入 \1 篇，保留 \2 篇，删除 \3 篇 – neardup",
    r"<b>([\d,]+)</b> documents? read, <b>([\d,]+)</b> kept, <b>([\d,]+)</b> removed "
    r'<span class="detail">\(<b>([\d,]+)</b> cop(?:y|ies), <b>([\d,]+)</b> near-duplicates?\)</span>': (
        r"读入 <b>\1</b> 篇，保留 <b>\2</b> 篇，删除 <b>\3</b> 篇"
        r'<span class="detail">（副本 <b>\4</b> 篇，近似重复 <b>\5</b> 篇）</span>'
    ),
    r"<b>([\d,]+)</b> documents? read, <b>([\d,]+)</b> kept, none removed": r"读入 <b>\1</b> 篇，保留 <b>\2</b> 篇，没有删除",
    r"No documents read": "没有读到文档",
    r"Skip to the content": "跳到正文",
    r"Sections": "目录",
    r"Warnings": "警告",
    r"Shares of kept documents, near-duplicates and copies": "保留、近似重复和副本所占比例",
    r"([\d,]+) kept": r"保留 \1 篇",
    r"([\d,]+) near-duplicates?": r"近似重复 \1 篇",
    r"([\d,]+) cop(?:y|ies)": r"副本 \1 篇",
    # Titles of sections
    r"At a glance": "概览",
    r"Result": "结果",
    r"Duplicates found": "找到的重复",
    r"Duplicates missed": "漏掉的重复",
    r"Definitions": "定义",
    r"Time by stage": "各阶段用时",
    r"Removed, by inputs": "按输入统计的删除",
    r"Documents of the input on the left, removed by a document of the input above": "左侧输入中的文档，被上方输入中的文档删除",
    r"Inputs": "输入",
    r"Settings": "设置",
    r"Removed documents": "被删除的文档",
    # Cards
    r"The largest family": "最大的一组",
    r"The most near-duplicates": "近似重复最多的文本",
    r"The closest call": "最接近阈值的删除",
    r"([\d,]+) documents?, ([\d,]+) cop(?:y|ies) among them, removed by one text: ": (
        r"同一篇文本删除了 \1 篇文档，其中 \2 篇是副本："
    ),
    r"([\d,]+) documents? removed by one text: ": r"同一篇文本删除了 \1 篇文档：",
    r"([\d,]+) near-duplicates? removed by one text: ": r"同一篇文本删除了 \1 篇近似重复：",
    r", removed by ": "，删除它的是 ",
    r"Read both": "对照阅读",
    # Counts and the run
    r"Documents": "文档",
    r"count": "数量",
    r"of those read": "占读入的比例",
    r"Read": "读入",
    r"Kept": "保留",
    r"Kept ": "保留 ",
    r"Removed": "删除",
    r"Removed ": "删除 ",
    r"copies": "副本",
    r"copy": "副本",
    r"near-duplicates": "近似重复",
    r"near-duplicate": "近似重复",
    r"Without features": "没有特征",
    r"Rejected \(unreadable\)": "拒绝（无法读取）",
    r"Compared against": "比对的旧文档",
    r"The run": "运行",
    r"value": "值",
    r"Recall": "召回率",
    r"Recall, estimated": "召回率（估计）",
    r"Recall, audited": "召回率（抽查）",
    r"every pair within (\d+) bits?": r"\1 位以内的全部文本对",
    r"not estimated": "未估计",
    r"not known": "未知",
    r"Pairs compared": "比较的文本对",
    r"Pairs confirmed": "确认的文本对",
    r"Distinct fingerprints": "不同的指纹",
    r"Collisions caught": "排除的碰撞",
    r"Full buckets": "已满的桶",
    r"Left out by a bucket": "桶外文档",
    r"Time": "用时",
    r"Compiling, once": "编译（仅一次）",
    r"Text": "文本",
    r"Text removed": "删除的文本",
    r"Speed": "速度",
    r"Documents per second": "每秒文档数",
    r"Peak memory": "内存峰值",
    # Figures
    r"Near-duplicates by similarity to the document that removed them; without copies": (
        "近似重复与其保留文本的相似度分布，不含副本"
    ),
    r"Near-duplicates by Hamming distance to the document that removed them; without copies": (
        "近似重复与其保留文本的汉明距离分布，不含副本"
    ),
    r"Compared pairs; those below the threshold are not duplicates": "比较过的文本对；低于阈值的不算重复",
    r"Compared pairs: near-duplicates, and those below the threshold": "比较过的文本对：近似重复，以及低于阈值的",
    r"below the threshold": "低于阈值",
    r"([\d,]+) pairs? at the threshold or above": r"\1 对达到阈值",
    r"([\d,]+) pairs? below the threshold": r"\1 对低于阈值",
    r"Near-duplicates by similarity": "按相似度统计的近似重复",
    r"similarity": "相似度",
    r"similarity →": "相似度 →",
    r"↑ near-duplicates": "↑ 近似重复",
    r"documents": "文档数",
    r"As a table": "以表格显示",
    r"Clusters by number of documents; lengths are logarithmic": "按文档数统计的组，条长为对数",
    r"Clusters by size": "按大小统计的组",
    r"documents each": "每组文档数",
    r"clusters": "组数",
    r"documents in all": "文档总数",
    r"No duplicates were found\.": "没有找到重复。",
    r"The probability that a pair is compared: (\d+) bands? of (\d+) rows?, ": r"一对文本被比较的概率：\1 段，每段 \2 行，",
    r"threshold ([\d.]+): (.+?)": r"阈值 \1：\2",
    r"similarity of a pair →": "文本对的相似度 →",
    r"↑ chance to be compared": "↑ 被比较的概率",
    # Recall
    r"Estimated recall (.+?):": r"召回率估计为 \1：",
    r" the share of the near-duplicate pairs that was found; copies are always found and do not count\. A pair of similarity <i>s</i> is compared with "
    r"probability P\(<i>s</i>\), so each found pair represents 1/P\(<i>s</i>\) pairs, found or missed \(Horvitz and "
    r"Thompson, 1952\)\.": (
        "即近似重复的文本对中被找到的比例；副本一定能找到，不计在内。相似度为 <i>s</i> 的一对以概率 P(<i>s</i>) 被比较，因此每找到一对就代表 "
        "1/P(<i>s</i>) 对，包括找到的和漏掉的（Horvitz 与 Thompson，1952）。"
    ),
    r"A bucket lists its first ([\d,]+) documents?; ([\d,]+) documents? may have a duplicate among the others\.": (
        r"每个桶只列出最前面的 \1 篇文档；有 \2 篇文档可能与桶中其余的文档重复。"
    ),
    # Definitions
    r"Removed, kept": "删除与保留",
    r"Documents are processed in order of priority \(<code>keep: (.+?)</code>\)\. A document is removed when a kept document "
    r"measures at least (\S+) similar to it; otherwise it is kept\. Every removed document is therefore similar to the kept "
    r"document that removed it, and chains of duplicates do not join dissimilar documents\.": (
        r"文档按优先次序处理（<code>keep: \1</code>）。如果某篇保留文档与它的实测相似度不低于 \2，它就被删除，否则保留。因此"
        r"每篇被删除的文档都与删除它的保留文档相似，重复的链条不会把不相似的文档连在一起。"
    ),
    r"Similarity": "相似度",
    r"Distance": "距离",
    r"The features of a document are its sequences of (\d+) (.+?)\. Jaccard similarity is the number of features in both, "
    r"divided by the number in either; it is computed exactly; hashing only proposes the pairs to compare\. Numbers are "
    r"truncated, not rounded\.": (
        r"文档的特征是连续 \1 个词（\2）的序列。Jaccard 相似度等于两者共有的特征数除以合计的特征数，精确计算；哈希只用来提名要比较的"
        r"文本对。数字一律截断，不四舍五入。"
    ),
    r"Copy, near-duplicate": "副本与近似重复",
    r"A copy has the same words in the same order; punctuation and white space do not count\. A near-duplicate reaches the limit without that; its similarity "
    r"may still be 1, if the difference changes no feature\.": (
        "“副本”指词语及其顺序相同，标点和空白不计。“近似重复”指达到阈值但不是副本；如果差异不改变任何特征，相似度仍可能为 1。"
    ),
    r"Empty documents, or documents without anything to compare\. They are always kept\.": "空文档，或没有可比较内容的文档，一律保留。",
    r"Rejected": "拒绝",
    r"Documents that could not be read\. The output lists each with its position and the reason\.": (
        "无法读取的文档。输出中列出每一篇的位置和原因。"
    ),
    # Clusters
    r"<b>([\d,]+)</b> documents? read, <b>([\d,]+)</b> clusters? "
    r'<span class="detail">\(<b>([\d,]+)</b> in clusters, <b>([\d,]+)</b> single\)</span>': (
        r'读入 <b>\1</b> 篇，分为 <b>\2</b> 组<span class="detail">（组内 <b>\3</b> 篇，单独 <b>\4</b> 篇）</span>'
    ),
    r"([\d,]+) documents? read, ([\d,]+) clusters? \(([\d,]+) in clusters, ([\d,]+) single\)": (
        r"读入 \1 篇，分为 \2 组（组内 \3 篇，单独 \4 篇）"
    ),
    r"([\d,]+) documents? read, ([\d,]+) clusters? – neardup": r"读入 \1 篇，分为 \2 组 – neardup",
    r"<b>([\d,]+)</b> documents? read, no two similar": r"读入 <b>\1</b> 篇，没有相似的文档",
    r"Shares of documents in clusters and single ones": "组内文档与单独文档所占比例",
    r"([\d,]+) in clusters": r"组内 \1 篇",
    r"([\d,]+) single": r"单独 \1 篇",
    r"Cluster": "组",
    r"Clusters": "组",
    r"In clusters": "在组内",
    r"of a known document": "属于已知文档",
    r"Single": "单独",
    r"In the largest cluster": "最大的一组",
    r"cluster": "组",
    r"name: the common part of its documents": "名称：组内文档的共同部分",
    r"first document and examples": "首篇文档与例子",
    r"known: ": "已知：",
    r"Shown: ([\d,]+) of ([\d,]+) clusters?, the largest first; cluster_summary\.parquet has all of them": (
        r"共 \2 组，此处按大小列出 \1 组；全部见 cluster_summary.parquet"
    ),
    r"([\d,]+) smaller clusters?": r"较小的 \1 组",
    r"Smaller ones": "较小的组",
    r"No two documents are similar\.": "没有相似的文档。",
    r"Near-duplicates by similarity to the first document of their cluster; without copies": (
        "近似重复与本组首篇文档的相似度分布，不含副本"
    ),
    r"Name": "名称",
    r"Documents are processed in order of priority \(<code>keep: (.+?)</code>\)\. Each joins the cluster whose first document "
    r"measures at least (\S+) similar to it, the most similar of several; otherwise it starts a new cluster\. Every document "
    r"is therefore similar to the first document of its cluster\.": (
        r"文档按优先次序处理（<code>keep: \1</code>）。如果某组的首篇文档与它的实测相似度不低于 \2，它就加入该组，有多组时取最相似的；"
        r"否则自成一组。因此每篇文档都与本组的首篇文档相似。"
    ),
    r"The common part of some of its documents: for pages compared by structure, a path through elements that all of them "
    r"have and few other clusters have \(\* replaces numbers, × marks repeated rows, dots mark omissions\); for texts, the "
    r"start of the longest passage that their beginnings share\.": (
        "组内部分文档的共同部分。按结构比较的网页：这些网页都有、其他组少有的一条元素路径（* 代替数字，× 表示重复，省略号表示省略）；"
        "文本：各篇开头共有的最长段落的起始部分。"
    ),
    r"Similar to no other document; a cluster of one in clusters\.parquet\.": (
        "与其他文档都不相似，在 clusters.parquet 中自成一组。"
    ),
    r"Empty documents, or documents without anything to compare\. They are single\.": (
        "空文档，或没有可比较内容的文档，各自单独。"
    ),
    # Stages and inputs
    r"read": "读取",
    r"propose": "提名",
    r"sort": "排序",
    r"confirm": "确认",
    r"write": "写出",
    r"report": "报告",
    r"name": "名称",
    r"format": "格式",
    r"role": "角色",
    r"source": "来源",
    r"against": "旧文档",
    r"removed": "删除",
    r"rejected": "拒绝",
    r"share": "比例",
    r"Settings of the run": "本次运行的设置",
    r"Fingerprint scheme": "指纹方案",
    # The list
    r"Shown: ([\d,]+) of ([\d,]+) removed documents?\. Open one to read it beside the document that removed it: ": (
        r"共删除 \2 篇，此处列出 \1 篇。展开后可与删除它的文档并排阅读："
    ),
    r"only the removed text has this": "仅被删除的文本有",
    r"only the kept text has this": "仅保留的文本有",
    r"\. Rows count from 0\.": "。行号从 0 开始。",
    r"Nothing was removed\.": "没有删除任何文档。",
    r"Long texts: only a part of them is shown\.": "文本较长，只显示一部分。",
    r"The same, character for character\.": "逐字相同。",
    r"\(empty\)": "（空）",
}

_SCRIPT_ZH = {
    '"Removed documents"': '"被删除的文档"',
    "Find in ids, files and texts": "在 id、文件名和正文中查找",
    "<legend>Show</legend>": "<legend>显示</legend>",
    "checked>all<": "checked>全部<",
    ">copies<": ">副本<",
    ">near-duplicates<": ">近似重复<",
    "Sort by <": "排序 <",
    ">order of the run<": ">运行顺序<",
    ">most similar first<": ">最相似的在前<",
    ">least similar first<": ">最不相似的在前<",
    ">Open all<": ">全部展开<",
    ">Close all<": ">全部收起<",
    "</kbd> to search,": "</kbd> 搜索，",
    "</kbd> to move, ": "</kbd> 移动，",
    "</kbd> to open": "</kbd> 展开",
    "`${count} of ${items.length} shown`": "`显示 ${count} / ${items.length} 篇`",
    "`None of ${items.length} fits: change the words or show all.`": "`${items.length} 篇均不符合，请修改查找内容或显示全部。`",
}

_TERMINAL_ZH = {
    r"Distance": "距离",
    r"Cosine": "余弦",
    r"A in B": "A 含于 B",
    r"B in A": "B 含于 A",
    r"Structure": "结构",
    r"Content": "正文",
    r"Chance": "比较概率",
    r"SimHash of ([AB])": r"\1 的 SimHash",
    r"of the (\d+) bits of two fingerprints differ": r"两个 \1 位指纹中不同的位数",
    r"([\d,]+) of ([\d,]+) .+ are shared": r"共有 \1 个特征，合计 \2 个",
    r"the geometric mean of the two below": "下面两项的几何平均",
    r"containment: ([\d,]+) of the ([\d,]+) .+ of ([AB])": r"包含度：\3 的 \2 个特征中有 \1 个共有",
    r"cosine of the runs of start tags": "起始标签序列的余弦",
    r"Jaccard as (\d+) hashes estimate it": r"由 \1 个哈希估计的 Jaccard",
    r"that a run compares the two: (\d+) bands? of (\d+) rows?": r"一次运行会比较这两篇：\1 段，每段 \2 行",
    r"Jaccard similarity of the main texts": "正文的 Jaccard 相似度",
    r'pip install "neardup\[web\]" to compare main texts': '比较正文需要 pip install "neardup[web]"',
    r"  Not duplicates: ": "  不重复：",
    r"  Copies: ": "  副本：",
    r"  Near-duplicates: ": "  近似重复：",
    r"(.+) has no token, and equals nothing\.": r"\1 没有词，不与任何文本相同。",
    r"the same text after normalisation\.": "归一化后文本相同。",
    r"the same words in the same order; punctuation and white space do not count\.": "词语及其顺序相同，标点和空白不计。",
    r"the same tags in the same order\.": "标签及其顺序相同。",
    r"the distance (\d+) is within ([\d.]+) bits\.": r"距离 \1 不超过 \2 位。",
    r"the distance (\d+) is beyond ([\d.]+) bits\.": r"距离 \1 超过 \2 位。",
    r"the Jaccard similarity ([\d.]+) reaches the threshold ([\d.]+)\.": r"Jaccard 相似度 \1 达到阈值 \2。",
    r"the Jaccard similarity ([\d.]+) is below the threshold ([\d.]+)\.": r"Jaccard 相似度 \1 低于阈值 \2。",
    r"the containment of A in B ([\d.]+) reaches the threshold ([\d.]+)\.": r"A 含于 B 的比例 \1 达到阈值 \2。",
    r"the containment of A in B ([\d.]+) is below the threshold ([\d.]+)\.": r"A 含于 B 的比例 \1 低于阈值 \2。",
    r"the cosine similarity ([\d.]+) reaches the threshold ([\d.]+)\.": r"余弦相似度 \1 达到阈值 \2。",
    r"the cosine similarity ([\d.]+) is below the threshold ([\d.]+)\.": r"余弦相似度 \1 低于阈值 \2。",
    r"  The passages differ only in case, form or script, which the comparison folds\.": (
        "  差异只在于大小写、字符形式或繁简，比较时不计。"
    ),
    r"  No passage differs\.": "  没有差异。",
    r"  The same passages in another order\.": "  段落相同，顺序不同。",
    r"  The shared passages are in another order; each text is shown by itself\.\n": "  共有的段落顺序不同，两篇文本分别显示。\n",
    r"  (.+): (\d+) features?": r"  \1：\2 个特征",
    r"feature": "特征",
    r"count": "次数",
    r"weight": "权重",
    r"hash": "哈希",
    r"  Votes of each bit, summed: a 1 in the hash adds the weight, a 0 subtracts it": (
        "  每一位的投票之和：哈希的该位为 1 则加上权重，为 0 则减去权重"
    ),
    r"  Fingerprint: 1 where the sum is positive": "  指纹：和为正的位取 1",
    r"  Fingerprint: 1 where the sum is positive; ([01]) where it is 0": r"  指纹：和为正的位取 1，和为 0 的位取 \1",
    r"  bits ( *\d+) to ( *\d+)  ": r"  第\1 至\2 位  ",
    r"  \.\.\. and ([\d,]+) of less weight; --full shows them all": r"  ……另有 \1 个权重更小的特征；--full 显示全部",
}

# Documents of the user, and parts of the page that are not text: none of their words is a message.
_FOREIGN = re.compile(
    r'<(style|script|bdi)\b.*?</\1>|<div class="text".*?</div>|(?<=<th scope="row">)<code>.*?</td>', re.DOTALL
)


def translate_page(page: str, language: str) -> str:
    """Return an HTML page in a language: texts and attributes that are messages, but nothing of the documents."""
    if language == "en":
        return page
    foreign: list[str] = []

    def put_aside(found: re.Match[str]) -> str:
        foreign.append(found[0])
        return f"<\0{len(foreign) - 1}>"

    text = _FOREIGN.sub(put_aside, page).replace('<html lang="en">', '<html lang="zh-CN">')
    for pattern, message in _PAGE_ZH.items():
        text = re.sub(f'(?<=[>"]){pattern}(?=[<"])', message, text)
    return re.sub("<\0(\\d+)>", lambda found: foreign[int(found[1])], text)


def translate_script(script: str, language: str) -> str:
    """Return the script of the page with its messages in a language."""
    for text, message in _SCRIPT_ZH.items() if language == "zh" else ():
        script = script.replace(text, message)
    return script


def speaker(language: str) -> Callable[[str], str]:
    """Return the function that translates a message of the terminal."""
    return str if language == "en" else lambda text: _translated(text, _TERMINAL_ZH)


def _translated(text: str, messages: Mapping[str, str]) -> str:
    for pattern, message in messages.items():
        found = re.fullmatch(pattern, text)
        if found:
            return found.expand(message)
    return text
