"""Reports and comparisons in Chinese: messages are translated, documents are not."""

from __future__ import annotations

import ast
import errno
import gzip
import json
import os
import re
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Formatter

import click
import pytest
from click.testing import CliRunner

import neardup
from neardup import Index, InputError
from neardup.cli.main import cli, every_command
from neardup.documents.batch import Losses
from neardup.files import advice_on
from neardup.report import wording
from neardup.report.clusters_html import render_clusters
from neardup.report.contents import warn_of_textless
from neardup.report.dedup_html import render_report
from neardup.report.wording import _patterns, _table, for_terminal, sentences
from neardup.runs.find import UNINSTALLED, LeftOut
from neardup.runs.foreign_ids import NOT_OF_DATATROVE
from neardup.verify.choosing import Level
from reference.checks import for_every
from reference.commands import FAILURES, TABLE_COMMANDS, WARNING_COMMANDS
from reference.reports import example, report, simhash_report

pytestmark = pytest.mark.slow


def in_chinese(*examples) -> str:
    return render_report({**report(), "lang": "zh"}, examples)


def test_a_report_is_english_unless_another_language_is_set():
    english = render_report(report(), [example()])
    assert '<html lang="en">' in english
    assert english == render_report({**report(), "lang": "en"}, [example()])


CASES = {
    "minhash": report(),
    "simhash": simhash_report(),
    "confirmed": simhash_report(
        settings={"confirm": "jaccard", "threshold": 0.5, "linkage": "connected"},
        fingerprints={"max_distance": 3, "collisions": 5, "short": 1},
    ),
    "cosine": report(
        settings={
            "similarity": "cosine",
            "threshold": 0.8,
            "boost_rare": True,
            "min_structure": 0.5,
        }
    ),
    "nothing removed": report(counts={"read": 3, "kept": 3, "removed": 0}, recall=None, bound=None),
    "nothing read": report(counts={}, similarities=None, cluster_sizes=None),
    "values": report(
        by_value={
            "column": "lang",
            "num_values": 2,
            "values": [{"value": "en", "documents": 9, "removed": 2}],
        },
        removed_by_inputs=[
            {"removed_from": "a", "kept_in": other, "documents": 3} for other in "ab"
        ],
    ),
}
STAGES = [key.partition(".")[2] for key in sentences()["en"] if key.startswith("stages.")]
EXAMPLES = [
    example(),
    example(id="c", family=5, family_near=3),
    example(id="d", kept_id="z", family=4, family_near=4, truncated=True),
    example(id="e", exact=True, kept_text="one two three"),
    example(id="f", distance=2, text=""),
]
CLUSTER = {"size": 3, "name": "n", "first_id": "a", "example_ids": ["b"], "first_role": "against"}
NAMES = {
    "table",
    "neardup",
    "dedup",
    "cluster",
    "parquet",
    "words",
    "clusters.parquet",
    "cluster_summary.parquet",
    "report.json",
}
NAMES |= {
    "Jaccard",
    "SimHash",
    "Horvitz",
    "Thompson",
    "Charikar",
    "Manku",
    "Jain",
    "Das",
    "Sarma",
    "MB",
    "lang",
}


def english_of(page: str) -> set[str]:
    """Return the words of a page that are English, but for its documents, settings and warnings."""
    user = (
        r'<(style|script|bdi|code)\b.*?</\1>|<div class="text".*?</div>|<div '
        r'class="warnings">.*?</div>'
    )
    plain = re.sub(user, "", page, flags=re.DOTALL)
    read_aloud = " ".join(
        re.findall(r'(?:aria-label|content)="([^"]*)"', plain.partition("<title>")[2])
    )
    shown = re.sub(r"<[^>]+>", " ", plain)
    return set(re.findall(r"[A-Za-z][A-Za-z_.]+[A-Za-z]", f"{shown} {read_aloud}")) - NAMES


@for_every(CASES)
def test_every_sentence_of_a_chinese_report_is_chinese(case):
    page = render_report(
        {**CASES[case], "lang": "zh"}, [] if case == "nothing removed" else EXAMPLES
    )
    assert '<html lang="zh-CN">' in page
    assert english_of(page) <= {"read", "and", "sign"}  # a stage that no run has


@pytest.mark.parametrize("linkage", ["sieve", "connected"])
@pytest.mark.parametrize("size", [0, 1, 30])
def test_every_sentence_of_chinese_clusters_is_chinese(linkage, size):
    counts = {
        "read": 100,
        "clusters": size,
        "clustered": 2 * size,
        "single": 40,
        "known": 3,
        "largest": 3,
    }
    settings = {"threshold": 0.8, "similarity": "jaccard", "linkage": linkage}
    rows = [
        {**CLUSTER, "cluster": number, "places": [("f", 1), ("g", 2)]}
        for number in range(1, size + 1)
    ]
    timings = [{"stage": stage, "seconds": 1.0} for stage in STAGES]
    record = report(command="cluster", counts=counts, settings=settings, timings=timings, lang="zh")
    assert english_of(render_clusters(record, rows)) == set()


def test_every_stage_of_a_run_with_a_page_has_a_chinese_name():
    source = Path(neardup.__file__).parent
    engines = "".join(
        file.read_text(encoding="utf-8") for file in (source / "engines" / "local").glob("*.py")
    )
    assert set(re.findall(r"stages\.stage\(\"([a-z ]+)\"", engines)) <= set(STAGES)


def keys_in(source: Path) -> dict[str, set[str]]:
    """Return the keys of sentences in the code, computed ones as regular expressions, with the
    names of the values.
    """
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        values = {word.arg or "" for word in node.keywords} if isinstance(node, ast.Call) else set()
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "words"
        ):
            found |= {
                f"words\\.{name.value}": set()
                for name in node.args
                if isinstance(name, ast.Constant) and name.value
            }
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value in sentences()["en"]
        ):
            found.setdefault(re.escape(node.value), set())
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say"
        ):
            for key in ast.walk(node.args[0]):
                if isinstance(key, ast.JoinedStr):
                    parts = [
                        re.escape(part.value) if isinstance(part, ast.Constant) else ".+"
                        for part in key.values
                    ]
                    found["".join(parts)] = values
                elif isinstance(key, ast.Constant) and re.fullmatch(r"\w+\.\w+", str(key.value)):
                    found[re.escape(key.value)] = values
    return found


def test_every_sentence_of_the_code_is_written_and_every_written_one_is_used():
    source = Path(neardup.__file__).parent
    used: dict[str, set[str]] = {}
    for file in sorted([*(source / "report").glob("*.py"), *(source / "cli").rglob("*.py")]):
        used |= keys_in(file)
    assert len(used) > 150
    unused = set(sentences()["en"])
    for pattern, values in used.items():
        keys = {key for key in sentences()["en"] if re.fullmatch(pattern, key)}
        assert keys, pattern
        unused -= keys
        for key in keys if values - {""} else ():
            assert fields_of(sentences()["en"][key]) <= values or "" in values, key
    assert not unused


def fields_of(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


def test_every_sentence_is_written_in_both_languages():
    english = sentences()["en"]
    chinese = sentences()["zh"]
    assert english.keys() == chinese.keys()
    for key in english:
        assert fields_of(chinese[key]) <= fields_of(english[key]), key
        assert not re.search("[\u4e00-\u9fff]", english[key]), key


def test_documents_ids_and_settings_are_not_translated():
    page = in_chinese(example(id="Removed", text="Removed", kept_text="Kept", file="Result"))
    assert '<bdi class="id">Removed</bdi>' in page
    assert re.search(r'<div class="text" dir="auto">[^T]*Removed', page)
    assert "<bdi>Result</bdi>" in page
    assert "<code>similarity</code>" in page


def test_every_sentence_of_the_script_is_written_in_both_languages():
    script = files("neardup.report").joinpath("report.js").read_text(encoding="utf-8")
    form = script[script.index("form.innerHTML") : script.index("list.before(form)")]
    both = re.findall(r"say\(\s*([\"`]).+?\1, ([\"`])(.+?)\2\)", script)
    assert len(both) == script.count("say(") >= 15
    assert all(re.search("[\u4e00-\u9fff]", chinese) for _, _, chinese in both)
    shown = re.sub(r"<kbd>.*?</kbd>|<[^>]+>|\$\{say\(.*?\)\}", "", form.partition("`")[2])
    assert not re.search("[A-Za-z]", shown)


def test_dedup_and_compare_take_the_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    neardup.dedup(["a b c d e f", "a b c d e f!"], output="out", lang="zh")
    assert "读入 2 篇，保留 1 篇，删除 1 篇" in Path("out/report.html").read_text(encoding="utf-8")
    for name, text in (("a.txt", "a cat sat"), ("b.txt", "the cat sat")):
        Path(name).write_text(text, encoding="utf-8")
    printed = (
        CliRunner()
        .invoke(
            cli, ["compare", "a.txt", "b.txt", "--method", "simhash", "--explain", "--lang", "zh"]
        )
        .output
    )
    assert "a.txt：3 个特征" in printed
    assert "不重复：距离" in printed
    assert not set(re.findall("[A-Za-z]{3,}", printed)) - {
        "txt",
        "SimHash",
        "Jaccard",
        "cat",
        "sat",
        "the",
    }
    with pytest.raises(neardup.NeardupError, match="must be one of 'en', 'zh': got 'fr'"):
        neardup.dedup(["a"], lang="fr")


TABLES = [
    (["dedup", "in.jsonl", "-o", "out"], "删除"),
    (["cluster", "in.jsonl", "-o", "out"], "由相似文档组成"),
    (["find-pairs", "in.jsonl", "-o", "pairs.parquet"], "相似度均为精确值"),
    (["sign", "in.jsonl", "-o", "signed.parquet"], "已签名"),
]


@pytest.mark.parametrize(("arguments", "said"), TABLES, ids=lambda value: value[0])
def test_a_chinese_locale_makes_the_terminal_and_the_report_chinese(
    tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    texts = ["a b c d e f", "a b c d e f!", "x y", ""]
    Path("in.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in texts) + "{\n"
    )

    def printed(locale: dict[str, str], *more: str) -> str:
        return CliRunner().invoke(cli, [*arguments, "--overwrite", *more], env=locale).output

    chinese = printed({"LC_ALL": "", "LC_MESSAGES": "", "LANG": "zh_CN.UTF-8"})
    assert said in chinese
    names = set(re.findall("[A-Za-z]{3,}", "".join(re.findall("^  .*", chinese, re.M)))) - {
        "out",
        "parquet",
        "report",
        "html",
        "jsonl",
        "removed",
        "kept",
    }
    assert not names - {"rejected", "clusters", "cluster", "summary", "pairs", "signed", "Jaccard"}
    if arguments[0] in ("dedup", "cluster"):
        assert '<html lang="zh' in Path("out/report.html").read_text(encoding="utf-8")
    assert said not in printed({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"})
    if arguments[0] in ("dedup", "cluster"):
        assert said in printed({"LANG": "C"}, "--lang", "zh")
        assert said not in printed({"LC_ALL": "zh_CN"}, "--lang", "en")


def test_the_page_of_clusters_is_chinese_too(tmp_path: Path):
    texts = ["one two three four five six seven", "One two three four five six seven!", "x y z"]
    neardup.cluster(texts, output=tmp_path / "out", lang="zh")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert english_of(page) == set()
    assert "分为 <b>1</b> 组" in page


# Errors


class Recorder:
    """A pattern that notes which English sentences of a catalogue are met."""

    def __init__(self, english: str, pattern: re.Pattern[str], met: set[str]) -> None:
        self.english = english
        self.pattern = pattern
        self.met = met

    def fullmatch(self, message: str) -> re.Match[str] | None:
        found = self.pattern.fullmatch(message)
        if found:
            self.met.add(self.english)
        return found


@pytest.fixture
def met(monkeypatch) -> set[str]:
    """The sentences of the catalogues that are translated in a test."""
    noted: set[str] = set()
    catalogue = [
        english
        for name in ("errors", "files", "warnings", "reasons", "tables")
        for english in catalogue_of(name)
    ]
    assert len(set(catalogue)) == len(catalogue)
    recorders = [
        (Recorder(english, pattern, noted), chinese)
        for english, (pattern, chinese) in zip(catalogue, _patterns(), strict=True)
    ]
    monkeypatch.setattr(wording, "_patterns", lambda: recorders)
    return noted


def catalogue_of(name: str) -> list[str]:
    return [
        english for english, _ in _table("tables.toml" if name == "tables" else "errors.toml")[name]
    ]


def test_every_translated_error_is_one_that_a_command_prints(tmp_path, monkeypatch, met):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": "1", "text": text, "number": 3, "empty": None} for text in ("a b c", "x y z")]
    documents = "".join(json.dumps(row) + "\n" for row in rows)
    for name, content in {
        "in.jsonl": documents,
        "no.jsonl": '{"foo": 1}\n',
        "vectors.jsonl": '{"vector": [1, 2]}\n',
        "lists.jsonl": '{"id": "1", "text": []}\n',
        "parts.jsonl": '{"id": "1", "messages": [{"role": "user", "content": "a"}]}\n' * 200
        + '{"messages": [{"role": "user", "content": []}]}\n',
        "strings.jsonl": '{"messages": [{"role": "user", "content": "a"}]}\n' * 200
        + '{"messages": ["a"]}\n',
        "page.html": "<p>a b c</p>",
        "array.json": '[{"text": "a"}]\n',
        "x.foo": "x",
        "x.arc": "x",
        "x.wat.gz": "x",
        "run.toml": "tresh = 1\n",
        "file": "x",
        "p.csv": "",
        "broken.jsonl": documents + "{\n",
        "empty.jsonl": "",
        "report.json": json.dumps(
            {"version": "1", "command": "contamination", "options": {"corpus": None}}
        ),
        "old.json": json.dumps({"version": "1", "command": "dedup", "settings": {}}),
        "other.csv": "a,b\n1,2\n",
        "none.csv": "left_id,right_id,duplicate\n",
        "odd.csv": "left_id,right_id,duplicate\n1,1,maybe\n",
    }.items():
        Path(name).write_text(content)
    Path("bad.txt").write_bytes(b"a\xff\xfeb\n")
    Path("gb.txt").write_text("我们的软件，很好用\n", "gb18030")
    Path("latin.txt").write_text("a b c\ncaf\xe9\n", "latin-1")
    Path("half-gb.txt").write_text("我们的软件，很好用\na b c\n", "gb18030")
    Path("lost.jsonl").write_text('{"id": "1", "text": "a b c"}\n{\n')
    Path("nearly.jsonl").write_text('{"text": "a b c"}\n' * 200 + "{\n")
    Path("utf-16.txt").write_text("a b c\nd e f\n", "utf-16")
    Path("cut.jsonl.gz").write_bytes(gzip.compress(documents.encode())[:-12])
    Path("folder").mkdir()
    for name in ("links", "devices"):
        Path(name).mkdir()
        Path(name, "good.jsonl").write_text(documents)
    Path("links/a.jsonl").symlink_to("gone.jsonl")
    Path("devices/a.jsonl").symlink_to(os.devnull)
    Path("zipped.json").write_bytes(gzip.compress(documents.encode()))
    Path("zipped.txt.gz").write_bytes(gzip.compress(documents.encode()))
    Path("folder/full").touch()
    Index.create("an.index").close()
    Index.create("tracking.index", track_sources=True).close()
    system_words = "Compressed file ended|Expecting property name"  # of Python
    for arguments in FAILURES:
        said = (
            CliRunner()
            .invoke(cli, arguments, env={"LC_ALL": "zh_CN.UTF-8"})
            .stderr.splitlines()[-1]
        )
        if {"--lang", "--lang=en"} & set(arguments):
            assert said.startswith("neardup: error: ")
            continue
        assert re.match("neardup: (错误|不完整|无法读取)：", said)
        assert not re.search(r"[A-Z][a-z]+(?: [a-z]+){3,}", re.sub(system_words, "", said)), said
    system = {os.strerror(number) for number in errno.errorcode}
    system |= {advice_on(OSError(number, "")) for number in errno.errorcode}
    system.add("Nothing was written to {path}: {reason}. {advice}")
    system.add("{path}: the folder cannot be listed: {reason}")  # root may list all
    system.add(  # tests may not mount one
        "The folder {path} is not replaced: a file system is mounted there. Use a folder inside it."
    )
    by_version = {
        sentence
        for sentence in catalogue_of("errors")
        if re.match("No such (option|command) ", sentence)
    }
    assert met | system | by_version >= set(
        catalogue_of("errors")
    )  # click 8.3 has other words for those


def test_the_tables_of_every_command_are_chinese(tmp_path, monkeypatch, met):
    monkeypatch.chdir(tmp_path)
    texts = [
        "one two three four five six seven eight nine ten",
        "One two three four five six seven eight nine ten!",
    ]
    rows = [
        {"id": str(i), "text": text, "cluster": "aab"[i], "one": "a"}
        for i, text in enumerate([*texts, "x y z"])
    ]
    lines = [json.dumps(row) + "\n" for row in rows]
    Path("in.jsonl").write_text("".join(lines))
    Path("one.jsonl").write_text("".join(lines[:1]))
    alike = [{"id": f"a{name}", "text": f"one two three four {name * 3}"} for name in "xyz"]
    Path("alike.jsonl").write_text("".join([lines[0], *(json.dumps(row) + "\n" for row in alike)]))
    Path("page.html").write_text(f"<p>{texts[0]}</p>")
    Path("damaged.jsonl").write_text("".join(lines) + "{\n" * 7)
    Path("items.jsonl").write_text(json.dumps({"id": "q", "question": texts[0]}) + "\n")
    Path("many.jsonl").write_text(
        "".join(json.dumps({"id": f"b{i}", "question": f"x {i}"}) + "\n" for i in range(14))
    )
    Path("none.jsonl").touch()
    Path("z.jsonl").write_text(
        '{"id": "z", "question": null, "text": null}\n{"id": "q", "question": "one two"}\n'
    )
    Path("q.jsonl").write_text(json.dumps({"id": "q", "question": "one"}) + "\n")
    Path("judged.csv").write_text("left_id,right_id,duplicate\n0,1,1\n")
    Path("judged-twice.csv").write_text("left_id,right_id,duplicate\n0,1,1\n0,2,0\n")
    known = """in errors curve found cut many idf report passages kept hits items boilerplate html svg parquet jsonl
        index minhash simhash MinHash SimHash jaccard similarity threshold tokens words ngram num bands rows per band
        storage features expected documents neardup UTC hashes version max bucket size cache bytes JSON monday
        rejected removals left hit damaged text texts shingle tags html main page pages min structure"""  # noqa: E501
    known = {*known.split(), *" ".join(texts).split()}
    for arguments in TABLE_COMMANDS:
        result = CliRunner().invoke(cli, arguments, env={"LC_ALL": "zh_CN.UTF-8"})
        assert result.exit_code in (0, 1, 3, 4), result.output
        printed = "\n".join(line for line in result.stdout.splitlines() if line.startswith("  "))
        english = set(re.findall("[A-Za-z]{3,}", re.sub("[0-9a-f]{12,}", "", printed))) - known
        assert not english, (arguments, printed)
        assert not re.search("[0-9] to [0-9]", printed), (arguments, printed)
    assert " / ".join(sorted(set(catalogue_of("tables")) - met)) == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_warnings_are_chinese_on_the_terminal_and_on_the_page(tmp_path, monkeypatch, met):
    def write(name, texts, **others):
        rows = [
            {"text": text} | {key: values[i] for key, values in others.items()}
            for i, text in enumerate(texts)
        ]
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    monkeypatch.chdir(tmp_path)
    Path("same").mkdir()
    for name in "abcde":
        write(f"same/{name}.jsonl", ["one two three four five six seven"] * 30, source=[name] * 30)
    for name in ("_hidden.txt", "notes.xyz", "dataset_info.json"):
        Path("same", name).write_text("x")
    os.mkfifo("same/pipe")
    Path("clones").mkdir()
    for name in ("a.py", "README.md"):
        Path("clones", name).write_text("one = two + three * four - five\n")
    full = [
        f"one two three four five six {number} {number + 1} {number + 2}"
        for number in range(0, 300, 3)
    ]
    write("divided.jsonl", ["one two three four di-\nvided in\nlines"] * 20)
    write("full.jsonl", full, label=["x"] * len(full))
    write(
        "short.jsonl",
        [f"line {i} of a poem that has {i} and {2 * i} short words" for i in range(40)],
    )
    write("twice.jsonl", ["a b c", "x y z"], id=["1", "1"])
    write("thrice.jsonl", ["a b c", "x y z", "u v w"], id=["1", "1", "1"])
    write("few.jsonl", ["a b c d e f g h i", "a b c d x y z v w"], label=["1", "1"], id=["p", "q"])
    Path("judged.csv").write_text("left_id,right_id,duplicate\np,q,1\np,zzz,1\n")
    Path("page.txt").write_text("one line\n")
    Index.create("tracking.index", track_sources=True).close()
    for arguments in WARNING_COMMANDS:
        printed = CliRunner().invoke(cli, arguments, env={"LC_ALL": "zh_CN.UTF-8"}).output
        warned = [line for line in printed.splitlines() if line.startswith("警告：")]
        assert warned, (arguments, printed)
        page = Path(arguments[3], "report.html")
        shown = page.read_text(encoding="utf-8") if arguments[0] == "dedup" else ""
        for line in warned:
            assert not re.search(r"[A-Za-z]+(?: [a-z]+){3,}", line), line
            assert escape(line[3:11]) in shown or not shown
    (textless,) = warn_of_textless(Losses(textless_files=1, textless=["scan.pdf"]))
    (several,) = warn_of_textless(Losses(textless_files=5, textless=["scan.pdf"] * 5))
    with wording.speaking("zh"):
        assert for_terminal(textless) == (
            "1 个 PDF 文件没有文本层（0 个词）：scan.pdf。这些文件按空文档计，不与任何文档匹配。"
            "可用 ocrmypdf 等工具添加文本层。"
        )
        assert "：scan.pdf, scan.pdf, scan.pdf，另有 2 个。" in for_terminal(several)
        left_out = LeftOut()
        left_out("scan.pdf", UNINSTALLED)
        left_out("notes.txt", NOT_OF_DATATROVE)
        (uninstalled, foreign) = map(for_terminal, left_out.warnings())
        assert uninstalled.startswith("因未安装附加组件 office")
        assert foreign == "跳过 1 个不属于 datatrove 列表的文件：notes.txt。"
        said = for_terminal(
            "The index, or sources (--sources), has changed since the run was interrupted: all "
            "documents were decided again."
        )
    assert said == "运行中断之后索引或 --sources 有变化：全部文档已重新判定。"
    assert set(catalogue_of("warnings")) - met == set()


def written_in(module: str) -> set[str]:
    """Return the strings of a module, with {} for each part that is filled in."""
    tree = ast.parse(files("neardup.formats").joinpath(f"{module}.py").read_text("utf-8"))
    filled = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in filled for part in ast.walk(node)}
    written = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
    }
    for node in filled:
        texts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
        written.add("".join(texts))
    return written


def reasons_of(module: str) -> set[str]:
    """Return the reasons why a module does not read a file, with {} for each part."""
    begins = (
        r"(it|its|the (rest of the )?(file|message)|one of its|a header|a content|page|PDFium) "
    )
    return {text for text in written_in(module) if re.match(begins, text) and "\n" not in text}


MODULES_OF_DOCUMENTS = (
    *(
        "whole_files",
        "packages",
        "docx",
        "odt",
        "epub",
        "pdf",
        "pdf_process",
        "mail",
        "message_text",
    ),
)


def test_each_reason_of_a_document_that_is_not_read_is_chinese():
    shapes = {re.sub(r"{\w+}", "{}", english): english for english in catalogue_of("files")}
    reasons = set().union(*map(reasons_of, MODULES_OF_DOCUMENTS))
    assert len(reasons) > 25
    assert reasons - set(shapes) == set()
    of_no_module = {shape for shape in shapes if not shape.startswith("{}")} - reasons
    assert of_no_module == {
        # Of documents.sources, which all formats share.
        "it expands to more than {} times its size. Check where it comes from"
    }


@pytest.mark.parametrize(
    ("message", "chinese"),
    [
        ("in/a.docx: it is encrypted. Save it without a password", "in/a.docx：文件已加密。"),
        ("a: b.PDF, row 0: page 3 is damaged: x", "a: b.PDF，第 0 条（从 0 起）：第 3 页已损坏"),
        (
            "a.mbox.gz, row 2, byte 70: the message cannot be read: it has more than 1,000 parts",
            "a.mbox.gz，第 2 条（从 0 起），第 70 字节：邮件无法读取：超过 1,000 个部分",
        ),
        (
            "a.odt: it has no member content.xml; b.eml: the file is damaged: x; and 2 more",
            "a.odt：缺少成员 content.xml；b.eml：文件已损坏：x；另有 2 个",
        ),
    ],
    ids=["file", "row", "message", "several"],
)
def test_a_document_that_is_not_read_is_named_in_chinese(message, chinese):
    with wording.speaking("zh"):
        assert for_terminal(message).startswith(chinese)


@pytest.mark.slow
def test_a_sweep_speaks_chinese(tmp_path, monkeypatch, met):
    def said(*arguments, keys=None):
        result = CliRunner().invoke(
            cli, ["sweep", *arguments], input=keys, env={"LC_ALL": "zh_CN.UTF-8"}
        )
        assert result.exit_code == 0, result.output
        assert not re.search(r"[A-Za-z]+(?: [a-z]+){2,}", re.sub("w[0-9]+", "", result.output)), (
            result.output
        )
        return result.output

    def write(name, texts):
        Path(name).write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))

    def words(*numbers):
        return " ".join(f"w{number}" for number in numbers)

    monkeypatch.chdir(tmp_path)
    groups = [words(*range(100 * i, 100 * i + 40)) for i in range(40)]
    write(
        "groups.jsonl",
        [f"{text} {words(10_000 + 3 * i + j)}" for i, text in enumerate(groups) for j in range(3)],
    )
    write(
        "short.jsonl",
        [
            f"{words(*range(9 * i, 9 * i + 9))} {words(10_000 + j)}"
            for i in range(40)
            for j in (i, 99)
        ],
    )
    write("few.jsonl", [*groups, groups[0] + " w1", groups[0] + " w2"])
    write("none.jsonl", groups)
    write("chain.jsonl", [words(*range(10 * i, 10 * i + 40)) for i in range(200)])
    starts = [(100 * i, 100 * i + 50 * j) for i in range(200) for j in range(2)]
    write(
        "close.jsonl",
        [words(*range(first, first + 40), *range(other, other + 17)) for first, other in starts],
    )
    assert "建议：--ngram 2" in said("groups.jsonl")
    for name in ("short", "few", "none", "chain", "close"):
        said(f"{name}.jsonl")
    said("groups.jsonl", "--similarity", "cosine")
    forms = [f"{words(*range(60))} " + " ".join(f"x{j} N{i}" for j in range(8)) for i in range(40)]
    write("forms.jsonl", forms)
    letters = []
    revised = []
    for first in range(1000, 5000, 100):
        letter = list(range(first, first + 40))
        changed = [number + 9000 * (number % 8 == 0) for number in letter]
        texts = (letter, [*letter, *range(first + 40, first + 60)], letter, changed)
        shown = ["".join(chr(0x4E00 + number) for number in numbers) for numbers in texts]
        letters += shown[:2]
        revised += shown[2:]
    write("letters.jsonl", letters)
    write("revised.jsonl", revised)
    write("copies.jsonl", [groups[0]] * 3)
    write("mixed.jsonl", [*forms[:4], *letters[:12], *revised[14:26]])
    for name in ("forms", "letters", "revised", "copies", "mixed"):
        said(f"{name}.jsonl")
    assert "q 结束：" in said(
        "groups.jsonl", "--ask", "9", "--answers", "a.jsonl", keys="x\n" + "y\n" * 9
    )
    said("groups.jsonl", "--ask", "9", "--answers", "b.jsonl", keys="n\n" * 9)
    assert "建议：--ngram 5" in said(
        "close.jsonl", "--ask", "9", "--answers", "c.jsonl", keys="y\n" * 9
    )
    halves = "y\nn\n" * 6
    assert "没有哪种设置的精确率足够高" in said(
        "close.jsonl", "--ask", "9", "--answers", "d.jsonl", keys=halves
    )
    said("groups.jsonl", "--ask", "9", "--page", "questions.html")
    monkeypatch.setattr("neardup.api.choose._MAX_DOCUMENTS", 10)
    said("few.jsonl")
    with wording.speaking("zh"):
        said_of_many = for_terminal("Too many documents are similar: 1,200 were not all compared.")
        doubt = for_terminal(Level(0.3, 50, 90, 1.0, 0.5).doubts([]))
        rival = for_terminal(Level(0.3, 50, 90, 0.95, 0.95).doubts([Level(0.6, 40, 70, 1.0, 1.0)]))
    assert said_of_many == "相似的文档太多：有 1,200 篇没有与全部候选比较。"
    assert doubt.startswith("到 0.35 只剩下 50.0 % 的文本对")
    assert rival.startswith("阈值为 0.6 时分组更清楚，但这些文档中有 22.2 % 不再有近邻，超过 20 %")
    assert set(catalogue_of("reasons")) - met == set()


def test_progress_is_told_in_chinese(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text('{"text": "a b c"}\n')
    arguments = ["dedup", "in.jsonl", "-o", "out", "--progress", "plain"]
    result = CliRunner().invoke(cli, arguments, env={"LC_ALL": "zh_CN.UTF-8"})
    assert re.search(r"^读取：1 篇，", result.output, re.M)
    assert not re.search(r"docs|Read", result.output)


def test_the_language_option_holds_for_errors_of_every_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, command in every_command():
        if isinstance(command, click.Group):
            continue
        said = CliRunner().invoke(cli, [*name.split(), "--lang", "zh"], env={"LC_ALL": "C"}).output
        assert "错误" in said, name


def test_an_error_names_parameters_in_python_and_options_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("out/full").touch()
    Path("in.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(neardup.NeardupError) as caught:
        neardup.dedup("in.jsonl", output="out")
    assert "pass overwrite=True to replace it" in str(caught.value)
    said = CliRunner().invoke(cli, ["dedup", "in.jsonl", "-o", "out"], env={"LC_ALL": "C"}).output
    assert "pass --overwrite to replace it" in said


@pytest.mark.parametrize(
    ("message", "python", "command"),
    [
        ("Change max_age (--max-age).", "Change max_age.", "Change --max-age."),
        ("Use a='b' (--a b), or c.", "Use a='b', or c.", "Use --a b, or c."),
        ("Use S(c='h') (--method s --c h).", "Use S(c='h').", "Use --method s --c h."),
        (
            "Name the text column (text_column, --text-column).",
            "…column (text_column).",
            "…column (--text-column).",
        ),
        (
            "Segment words (--tokens jieba) first.",
            "Segment words first.",
            "Segment words (--tokens jieba) first.",
        ),
        ("Nothing (to do).", "Nothing (to do).", "Nothing (to do)."),
    ],
)
def test_a_parameter_has_its_option_in_brackets(message, python, command):
    error = InputError(message)
    assert str(error) == python.replace("…", "Name the text ")
    assert for_terminal(error.args[0]) == command.replace("…", "Name the text ")
