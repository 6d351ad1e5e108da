"""Reports and comparisons in Chinese: messages are translated, documents are not."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.output.messages import _SCRIPT_ZH, speaker
from neardup.output.report_html import render_report
from reference.reports import example, report

HEADINGS = re.compile(r"<(h2|h3|figcaption|caption|dt|dd)\b[^>]*>(.*?)</\1>", re.DOTALL)


def in_chinese(*examples) -> str:
    return render_report({**report(), "lang": "zh"}, examples)


def test_a_report_is_english_unless_another_language_is_set():
    english = render_report(report(), [example()])
    assert '<html lang="en">' in english
    assert english == render_report({**report(), "lang": "en"}, [example()])


def test_every_heading_and_definition_of_a_chinese_report_is_chinese():
    page = re.sub(r"<bdi.*?</bdi>|<code>.*?</code>|<[^>]+? title=[^>]*>", "", in_chinese(example()), flags=re.DOTALL)
    assert '<html lang="zh-CN">' in page
    found = [re.sub(r"<[^>]+>", "", text) for _, text in HEADINGS.findall(page)]
    assert len(found) > 20
    assert [text for text in found if text.strip() and not re.search("[\u4e00-\u9fff]", text)] == []


def test_documents_ids_and_settings_are_not_translated():
    page = in_chinese(example(id="Removed", text="Removed", kept_text="Kept", file="Result"))
    assert '<bdi class="id">Removed</bdi>' in page
    assert re.search(r'<div class="text" dir="auto">[^T]*Removed', page)
    assert "<bdi>Result</bdi>" in page
    assert "<code>similarity</code>" in page


def test_every_message_of_the_script_is_in_the_script():
    script = files("neardup.output").joinpath("report.js").read_text(encoding="utf-8")
    assert [text for text in _SCRIPT_ZH if text not in script] == []
    assert "全部展开" in in_chinese(example())


@pytest.mark.parametrize(
    ("message", "chinese"),
    [
        ("887 of 1,027 shingles are shared", "共有 887 个特征，合计 1,027 个"),
        ("the Jaccard similarity 0.8637 reaches the threshold 0.8.", "Jaccard 相似度 0.8637 达到阈值 0.8。"),
        ("no message", "no message"),
    ],
)
def test_a_message_keeps_its_figures_and_one_that_is_not_known_stays(message, chinese):
    assert speaker("zh")(message) == chinese
    assert speaker("en")(message) == message


def test_dedup_and_compare_take_the_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    neardup.dedup(["a b c d e f", "a b c d e f!"], output="out", lang="zh")
    assert "读入 2 篇，保留 1 篇，删除 1 篇" in Path("out/report.html").read_text(encoding="utf-8")
    for name, text in (("a.txt", "a cat sat"), ("b.txt", "the cat sat")):
        Path(name).write_text(text, encoding="utf-8")
    printed = (
        CliRunner()
        .invoke(cli, ["compare", "a.txt", "b.txt", "--method", "simhash", "--explain", "--lang", "zh"])
        .output
    )
    assert "a.txt：3 个特征" in printed
    assert "不重复：距离" in printed
    with pytest.raises(neardup.NeardupError, match="must be one of 'en', 'zh': got 'fr'"):
        neardup.dedup(["a"], lang="fr")


def test_the_page_of_clusters_is_chinese_too(tmp_path: Path):
    texts = ["one two three four five six seven", "One two three four five six seven!", "x y z"]
    neardup.cluster(texts, output=tmp_path / "out", lang="zh")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    plain = re.sub(r"<bdi.*?</bdi>|<code>.*?</code>|<[^>]+? title=[^>]*>", "", page, flags=re.DOTALL)
    found = [re.sub(r"<[^>]+>", "", text) for _, text in HEADINGS.findall(plain)]
    assert [text for text in found if text.strip() and not re.search("[\u4e00-\u9fff]", text)] == []
    assert "分为 <b>1</b> 组" in page
