"""`dedup` with `passages`: what two runs do, one after the other, in one."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.errors import OutputError, SettingError
from reference.browser import Browser

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"
PLACES = [
    "id",
    "start",
    "end",
    "start_byte",
    "end_byte",
    "kept_id",
    "kept_start",
    "kept_start_byte",
    "occurrences",
]
NOTICE = (
    "We use cookies to give you the best experience on our site. If you go on, you accept all of "
    "them, for good. "
)
LENGTH = 60


def corpus(count: int, seed: int = 0) -> pa.Table:
    """Return texts of which a third are near-duplicates of others, and half share one of three
    passages.
    """
    chance = random.Random(seed)
    texts: list[str] = []
    for number in range(count):
        if number % 3 == 2:
            texts.append(f"{chance.choice(texts)} Once more.")
            continue
        words = [f"{chance.choice('bcdfgh')}{chance.randrange(10**6)}" for _ in range(60)]
        words.insert(
            chance.randrange(60),
            chance.choice([f"{kind}{NOTICE}" for kind in "abc"] + ["", "", ""]),
        )
        texts.append(" ".join(words))
    texts[-1] = NOTICE[3:80]  # is in others
    return pa.table(
        {"id": [f"d{number}" for number in range(count)], "text": texts, "n": range(count)}
    )


def in_two_runs(source, **options) -> tuple[pa.Table, neardup.PassageRemoval]:
    """Remove documents, then passages of those that were kept."""
    first = neardup.dedup(source, **options)
    return first.removed, neardup.remove_passages(
        first.kept, min_length=LENGTH, against=options.get("against")
    )


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]
)
@pytest.mark.parametrize(
    "options", [{}, {"keep": "last", "threshold": 0.9}, {"against": True}], ids=str
)
def test_both_in_one_run_are_both_one_after_the_other(seed, options):
    source = corpus(120, seed)
    if "against" in options:
        options = {"against": corpus(30, 99)}
    removed, cleaned = in_two_runs(source, **options)
    both = neardup.dedup(source, passages=LENGTH, **options)
    assert both.removed.equals(removed)
    assert removed.num_rows > 20
    assert both.passages.select(PLACES).equals(cleaned.passages.select(PLACES))
    assert both.passages.num_rows > 20
    assert both.kept.equals(cleaned.kept)
    assert source.filter(pa.array(both.mask))["id"].equals(cleaned.kept["id"])
    counts = dict(cleaned.report["counts"])
    assert both.report["passages"]["counts"] == counts | {"read": source.num_rows}
    assert counts["dropped"] == ("against" not in options)  # else it is a copy of one that is there


@pytest.mark.slow
def test_files_keep_their_formats_and_the_report_repeats_the_run(tmp_path):
    names = [EXAMPLES / "terms-old.jsonl.zst", EXAMPLES / "licenses.parquet"]
    for arguments in (
        [*map(str, names), "--passages", "100", "-o", str(tmp_path / "both")],
        ["--config", str(tmp_path / "both/report.json"), "-o", str(tmp_path / "again")],
        [*map(str, names), "-o", str(tmp_path / "one")],
        [
            *(str(tmp_path / "one/kept" / name.name) for name in names),
            "--min-length",
            "100",
            "-o",
            str(tmp_path / "two"),
        ],
    ):
        result = CliRunner().invoke(
            cli, ["passages" if "two" in arguments[-1] else "dedup", *arguments]
        )
        assert result.exit_code == 0
        assert ("passages.html" in result.output) == (arguments[-1][-5:] in ("/both", "again"))
    for folder in ("both", "again"):
        texts, table = (tmp_path / folder / "kept" / name.name for name in names)
        assert texts.read_bytes() == (tmp_path / "two/kept" / names[0].name).read_bytes()
        assert pq.read_table(table).equals(pq.read_table(tmp_path / "two/kept" / names[1].name))
    assert (tmp_path / "both/removed.parquet").read_bytes() == (
        tmp_path / "one/removed.parquet"
    ).read_bytes()
    passages = pq.read_table(tmp_path / "both/passages.parquet")
    assert set(passages["source_file"].to_pylist()) <= {str(name) for name in names}


def test_the_report_leads_to_the_page_of_the_passages(tmp_path, browser: Browser):
    neardup.dedup(corpus(60), passages=LENGTH, output=tmp_path / "out")
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["passages"]["settings"]["min_length"] == LENGTH
    browser.show(tmp_path / "out/report.html")
    assert (
        browser.run("document.querySelector('#passages a').getAttribute('href')") == "passages.html"
    )
    browser.show(tmp_path / "out/passages.html")
    assert browser.run("document.querySelectorAll('.pairs > li').length") == 2
    assert browser.errors == []


def test_the_decisions_are_written_alone_if_asked(tmp_path):
    result = neardup.dedup(corpus(60), passages=LENGTH, output=tmp_path / "out", write="removed")
    assert not (tmp_path / "out/kept").exists()
    assert pq.read_table(tmp_path / "out/passages.parquet").equals(result.passages)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"passages": 39}, SettingError, "passages must be"),
        (
            {"passages": 200, "output": "out", "write": "mask"},
            SettingError,
            "cut from kept documents: got write='mask'",
        ),
        ({"passages": 200, "text_column": ["id", "text"]}, OutputError, "one text column"),
    ],
)
def test_errors_name_what_was_wrong(tmp_path, monkeypatch, options, error, says):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=says):
        neardup.dedup(corpus(3), **options)
    assert not (tmp_path / "out").exists()


def test_pages_are_refused_before_anything_is_read(tmp_path):
    with pytest.raises(OutputError, match="its documents are web pages"):
        neardup.dedup(EXAMPLES / "pages", passages=200, output=tmp_path / "out")


_KILLED_RUN = """
import os, signal, sys
import neardup
class Killer:
    left = None
    def begin(self, stage, total):
        if stage == sys.argv[3]: self.left = int(sys.argv[4])
    def advance(self, documents, num_bytes):
        if self.left is not None:
            self.left -= documents
            if self.left <= 0: os.kill(os.getpid(), signal.SIGKILL)
    def end(self, stage, seconds): pass
neardup.dedup(sys.argv[1], passages=60, output=sys.argv[2], batch_rows=3, threads=2, resume=True, progress=Killer())
"""  # noqa: E501


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "after"),
    [("read", 100), ("passages", 1), ("passages", 700), ("passages", 1100), ("write", 300)],
)
def test_a_run_that_is_killed_resumes_to_the_same_answer(tmp_path, stage, after):
    path, out, expected = (tmp_path / name for name in ("in.parquet", "out", "expected"))
    pq.write_table(corpus(400, 6), path, row_group_size=50)
    neardup.dedup(path, passages=LENGTH, output=expected)
    command = [sys.executable, "-c", _KILLED_RUN, str(path), str(out), stage, str(after)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    neardup.dedup(path, passages=LENGTH, output=out, resume=True)
    for name in ("removed.parquet", "passages.parquet", "kept/in.parquet"):
        assert (out / name).read_bytes() == (expected / name).read_bytes()
