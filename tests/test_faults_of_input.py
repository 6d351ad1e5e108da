"""What was once read wrongly, in silence, or to a traceback: each is read as it was meant, or
refused with a reason.
"""

from __future__ import annotations

import ctypes
import gzip
import json
import math
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import neardup
from neardup.cli.main import cli
from reference.made_up import corpus, texts

pytestmark = pytest.mark.slow

TEXTS = ["the quick brown fox jumps over it", "The quick brown fox jumps over it!", "another text"]
PAGE = "<html><head><title>t</title></head><body><nav>menu one two</nav><p>{}</p></body></html>"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(cli, [*arguments], input=stdin)


def dedup_in_a_process(*arguments: str) -> dict[str, Any]:
    """Run the command in a process of its own, which has its own peak of memory; return its
    report.
    """
    source, output, *options = arguments
    command = [sys.executable, "-m", "neardup", "dedup", source, "-o", output, "--quiet", *options]
    subprocess.run(command, check=False, capture_output=True)
    return json.loads(Path(output, "report.json").read_text())


def counts(folder: str = "out") -> dict[str, int]:
    return json.loads(Path(folder, "report.json").read_text())["counts"]


def rejected(folder: str = "out") -> list[dict]:
    return [json.loads(line) for line in Path(folder, "rejected.jsonl").read_text().splitlines()]


# CSV on standard input.
CSV = b'id,text\n1,"one text\nof two lines, with a comma"\n2,another\n3,"third, and last"\n'


@pytest.mark.parametrize(("data", "name"), [(CSV, "csv"), (CSV.replace(b",", b"\t"), "tsv")])
def test_delimited_standard_input_is_asked_for_and_then_read_by_row(data, name):
    refused = run("dedup", "-", "-o", "out", stdin=data)
    assert refused.exit_code == 2
    assert f"may be {name.upper()}, or lines of text" in refused.output
    assert f"--in-format {name}" in refused.output
    assert run("dedup", "-", "-o", "out", "--in-format", name, stdin=data).exit_code == 0
    assert counts()["read"] == 3
    assert sorted(os.listdir("out/kept")) == [f"stdin.{name}"]
    assert run("dedup", "-", "-o", "lines", "--in-format", "text", stdin=data).exit_code == 0
    assert counts("lines")["read"] == 5


@pytest.mark.parametrize(
    "data", [b"one line, with a comma\nanother line\nthird\n", b"a\nb\nc\n", b"only, one\n"]
)
def test_lines_of_prose_on_standard_input_are_documents(data):
    assert run("dedup", "-", "-o", "out", stdin=data).exit_code == 0
    assert counts()["read"] == data.count(b"\n")


def test_a_named_format_holds_whatever_the_suffix():
    Path("data.dat").write_bytes(CSV)
    assert run("dedup", "data.dat", "-o", "out").exit_code == 2
    assert run("dedup", "data.dat", "-o", "out", "--in-format", "csv").exit_code == 0
    assert counts()["read"] == 3
    Path("data.dat.gz").write_bytes(gzip.compress(CSV))
    assert neardup.dedup("data.dat.gz", in_format="csv").report["counts"]["read"] == 3
    with pytest.raises(
        neardup.SettingError, match=r"in_format must be one of 'parquet', .*got 'excel'"
    ):
        neardup.dedup("data.dat", in_format="excel")


# Files that cannot be read to their end.
def damaged_files() -> Iterator[tuple[str, bytes, str]]:
    yield "random.parquet", np.random.default_rng(1).bytes(1000), "the Parquet file cannot be read"
    yield "empty.parquet", b"", "the Parquet file cannot be read"
    yield "random.arrow", b"ARROW1" + bytes(100), "the Arrow file cannot be read"
    yield (
        "array.json",
        json.dumps([{"text": "a b"}], indent=1).encode(),
        "it is a JSON array, not JSON lines",
    )
    yield "utf16.jsonl", '{"text": "a b"}\n'.encode("utf-16"), "it is UTF-16"
    yield "utf16.txt", "a b c\nd e f\ng h i\n".encode("utf-16"), "it is UTF-16"
    yield "utf16.csv", "id,text\n1,a b\n".encode("utf-16"), "it is UTF-16"
    yield "latin.csv", "id,text\n1,caf\xe9\n2,na\xefve\n".encode("latin-1"), "it is not UTF-8"
    yield "chinese.csv", "id,text\n1,我们的软件，很好用\n".encode("gb18030"), "iconv -f GB18030"
    yield (
        "gzip.jsonl",
        gzip.compress(b'{"text": "a b"}\n', mtime=0),
        "it is compressed. Add .gz to its name",
    )
    yield (
        "mac.jsonl",
        b'{"text": "a"}\r{"text": "b"}\r',
        "its lines end with a carriage return only",
    )
    yield (
        "cut.jsonl.gz",
        gzip.compress(b'{"text": "a b"}\n' * 9999, mtime=0)[:-20],
        "the rest of the file cannot be read",
    )


@pytest.mark.parametrize(
    ("name", "data", "reason"), [*damaged_files()], ids=lambda value: str(value)[:20]
)
def test_a_file_that_cannot_be_read_makes_the_run_incomplete_and_the_rest_is_written(
    name, data, reason
):
    corpus(Path("good.parquet"), 30)
    Path(name).write_bytes(data)
    done = run(
        "dedup",
        "good.parquet",
        name,
        "-o",
        "out",
        "--text-column",
        "text",
        "--id-column",
        "id",
        "--json",
    )
    if done.exit_code == 2:  # a file of another shape has no id
        done = run("dedup", "good.parquet", name, "-o", "out", "--text-column", "text")
    assert done.exit_code == 1
    assert f"incomplete: 1 file could not be read completely: {name}" in done.stderr
    report = json.loads(Path("out/report.json").read_text())
    assert (report["incomplete"]["files"], report["incomplete"]["names"]) == (1, [name])
    assert report["counts"]["read"] >= 30
    assert pq.read_table("out/kept/good.parquet").num_rows == 30
    lost = [row for row in rejected() if row["rest_of_file"]]
    assert [row["file"] for row in lost] == [name]
    assert reason in lost[0]["reason"]
    assert reason in done.stderr
    accepted = run(
        "dedup", "good.parquet", name, "-o", "out2", "--text-column", "text", "--on-error", "skip"
    )
    assert accepted.exit_code == 0
    stopped = run(
        "dedup", "good.parquet", name, "-o", "out3", "--text-column", "text", "--on-error", "stop"
    )
    assert stopped.exit_code == 2
    assert not Path("out3").exists()


@pytest.mark.parametrize(
    "call",
    [
        neardup.dedup,
        neardup.find_pairs,
        neardup.cluster,
        neardup.sign,
        neardup.document_frequencies,
    ],
)
def test_the_library_warns_of_files_that_are_lost(call):
    corpus(Path("good.parquet"), 30)
    Path("cut.parquet").write_bytes(Path("good.parquet").read_bytes()[:500])
    incomplete = neardup.errors.IncompleteWarning
    with pytest.warns(
        incomplete, match=r"1 file could not be read completely: cut\.parquet"
    ) as caught:
        call(["good.parquet", "cut.parquet"])
    assert caught[0].filename == __file__
    call(["good.parquet", "cut.parquet"], on_error="skip")


def test_columns_of_chinese_tables_are_recognised():
    Path("laws.csv").write_text("编号,正文\na,one two three\nb,one two three\n", encoding="utf-8")
    assert neardup.dedup("laws.csv").removed.select(["id", "kept_id"]).to_pylist() == [
        {"id": "b", "kept_id": "a"}
    ]


@pytest.mark.parametrize("command", ["find-pairs", "sign", "document-frequencies"])
def test_commands_that_write_a_table_end_with_1_too(command):
    corpus(Path("good.parquet"), 30)
    Path("cut.parquet").write_bytes(b"PAR1")
    assert run(command, "good.parquet", "cut.parquet", "-o", "table.parquet").exit_code == 1
    assert Path("table.parquet").exists()


def test_single_rows_that_cannot_be_read_are_no_incomplete_run():
    Path("in.jsonl").write_text('{"text": "a b"}\n' * 99 + '{"text": \n')
    assert run("dedup", "in.jsonl", "-o", "out").exit_code == 0
    assert counts()["rejected"] == 1
    assert not rejected()[0]["rest_of_file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read any file")
def test_a_file_that_may_not_be_read_is_named(folder):
    corpus(Path("good.parquet"), 30)
    corpus(Path("secret.parquet"), 30).chmod(0)
    assert run("dedup", "good.parquet", "secret.parquet", "-o", "out").exit_code == 1
    assert "Permission denied" in rejected()[0]["reason"]


def test_a_file_that_vanishes_before_it_is_read_makes_the_run_incomplete(monkeypatch):
    from neardup.formats import parquet

    corpus(Path("a.parquet"), 30)
    corpus(Path("b.parquet"), 30)

    def removing(source, *arguments, **named):
        Path("b.parquet").unlink(missing_ok=True)
        return parquet.read(source, *arguments, **named)

    monkeypatch.setattr(parquet, "HANDLER", parquet.HANDLER._replace(read=removing))
    with pytest.warns(neardup.errors.IncompleteWarning, match=r"b\.parquet"):
        result = neardup.find_pairs(["a.parquet", "b.parquet"])
    assert result.report["counts"]["read"] == 30
    assert "it is no longer there" in result.report["rejected"][0]["reason"]


# Web pages in a column.
def test_a_column_named_html_is_read_as_pages():
    rows = [
        {"id": "1", "html": PAGE.format(TEXTS[0])},
        {"id": "2", "html": PAGE.replace("menu", "x").format(TEXTS[0])},
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    main = neardup.dedup("in.jsonl")
    assert main.report["scheme"].get("html") == "main"
    assert neardup.dedup(pa.Table.from_pylist(rows)).report["scheme"].get("html") == "main"
    assert (
        neardup.dedup("in.jsonl", method=neardup.MinHash(html="all")).report["scheme"].get("html")
        == "all"
    )
    texts_too = [{"id": "3", "html": "x", "text": "y"}]
    assert neardup.dedup(pa.Table.from_pylist(texts_too)).report["scheme"].get("html") is None


# Columns and tables in memory.
@pytest.mark.parametrize(
    "column",
    [
        pd.Series(TEXTS),
        pd.Series(TEXTS).astype("category"),
        pl.Series(TEXTS),
        pl.Series(TEXTS).cast(pl.Categorical),
        pa.array(TEXTS),
        pa.chunked_array([TEXTS[:1], TEXTS[1:]]),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array(TEXTS)),
        pl.DataFrame({"text": TEXTS}).with_columns(pl.col("text").cast(pl.Categorical)),
    ],
    ids=str,
)
def test_a_column_of_any_library_is_a_collection(column):
    result = neardup.dedup(column)
    assert result.removed["id"].to_pylist() == ["1"]
    assert [str(one) for one in result.kept["text"].to_pylist()] == [TEXTS[0], TEXTS[2]]


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (
            pa.table([["a"], ["b"]], names=["text", "text"]),
            neardup.errors.ColumnError,
            "Which column is 'text'",
        ),
        (
            pd.DataFrame({"text": ["a", 1, {}]}),
            neardup.InputError,
            "Convert its columns to plain strings",
        ),
        (pl.Series([1, 2]), neardup.errors.ColumnError, "cannot be text"),
    ],
)
def test_tables_that_cannot_be_read_are_refused_in_our_words(table, error, message):
    with pytest.raises(error, match=message):
        neardup.dedup(table)


def damaged_views() -> pa.Array:
    """Return two long strings, of which the first points outside of the memory of the column."""
    good = pa.array(
        ["a long string that is not inline", "another one that is not inline"], pa.string_view()
    )
    ctypes.memmove(
        good.buffers()[1].address + 12, struct.pack("<i", 1 << 28), 4
    )  # the offset of the first
    return good


def test_views_that_point_outside_of_their_memory_are_refused():
    with pytest.raises(
        neardup.InputError, match="Column 'text' of source is damaged: View at slot 0"
    ):
        neardup.dedup(pa.table({"text": damaged_views()}))
    table = pa.table({"text": damaged_views()})
    with pa.ipc.new_file("views.arrow", table.schema) as file:
        file.write_table(table)
    with pytest.warns(neardup.errors.IncompleteWarning, match=r"views\.arrow"):
        neardup.dedup("views.arrow")


# Methods by name.
def test_a_method_may_be_named():
    assert neardup.dedup(TEXTS, method="simhash").report["scheme"]["name"] == "simhash"
    assert neardup.find_pairs(TEXTS, method="minhash").pairs.num_rows == 1
    assert neardup.compare(*TEXTS[:2], method="simhash").measures.distance == 0
    with pytest.raises(
        neardup.SettingError, match=r"method must be one of minhash, simhash, .*got 'md5'"
    ):
        neardup.dedup(TEXTS, method="md5")
    with pytest.raises(
        neardup.InputError, match=r"A text must be a str, and a file a .*: got NoneType"
    ):
        neardup.compare(None, "a")


# Addresses.
@pytest.mark.parametrize("address", ["s3://bucket/out", "gs://bucket/out"])
def test_a_file_on_remote_storage_is_refused_and_nothing_is_written(address):
    Path("in.txt").write_text("a text")
    done = run("find-pairs", "in.txt", "-o", f"{address}.parquet")
    assert done.exit_code == 2
    assert "The output must be a local file" in done.output
    assert os.listdir(".") == ["in.txt"]


def test_an_address_that_nobody_answers_is_one_line():
    done = run("dedup", "hf://datasets/no-such-name/x/y.parquet", "-o", "out")
    assert done.exit_code == 2
    assert done.output.startswith("neardup: error: ")
    assert done.output.count("\n") == 1
    assert os.listdir(".") == []


# Scripts.
def test_texts_that_differ_in_script_alone_are_not_said_to_be_in_another_order():
    Path("1.txt").write_text("這個句子")
    Path("2.txt").write_text("这个句子")
    shown = run("compare", "1.txt", "2.txt", "--fold", "chinese").output
    assert "The passages differ only in case, form or script" in shown
    assert "another order" not in shown
    assert "moved" not in shown


# Dates.
DAYS = [date(2024, 5, 1), date(2026, 1, 31), date(2025, 12, 1)]
MOMENTS = [datetime(day.year, day.month, day.day, 12, 30, tzinfo=timezone.utc) for day in DAYS]


@pytest.mark.parametrize(
    "dates",
    [
        pa.array(DAYS),
        pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        pa.array(MOMENTS, pa.timestamp("ns")),
        pa.array([str(day) for day in DAYS]),
        pa.array([moment.isoformat() for moment in MOMENTS]),
        pa.array([moment.isoformat().replace("+00:00", "Z") for moment in MOMENTS]),
    ],
    ids=str,
)
@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv"])
def test_the_newest_is_kept(dates, suffix):
    same = [TEXTS[0]] * 3
    if suffix == ".parquet":
        pq.write_table(pa.table({"id": ["a", "b", "c"], "text": same, "date": dates}), "in.parquet")
    else:
        days = [str(value).replace(" ", "T") for value in dates.to_pylist()]
        rows = [
            {"id": name, "text": text, "date": day}
            for name, text, day in zip("abc", same, days, strict=True)
        ]
        pd.DataFrame(rows).to_csv("in.csv", index=False)
        Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert neardup.dedup(f"in{suffix}", keep="max:date").kept["id"].to_pylist() == ["b"]
    assert neardup.dedup(f"in{suffix}", keep="min:date").kept["id"].to_pylist() == ["a"]


def test_times_are_ordered_across_zones_and_beside_what_is_no_date():
    rows = [
        {"id": "a", "text": TEXTS[0], "date": "2026-01-31T23:00:00-05:00"},
        {"id": "b", "text": TEXTS[0], "date": "2026-02-01T03:00:00Z"},
        {"id": "c", "text": "something else", "date": "soon"},
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = neardup.dedup("in.jsonl", keep="max:date", output="out", max_unreadable=0.5)
    assert result.kept["id"].to_pylist() == ["a"]
    reason = rejected()[0]["reason"]
    assert reason.startswith("the rank 'soon' is neither a number nor a date such as 2026-01-31")


# Compilation is told apart.
@pytest.mark.timing
def test_the_time_of_compiling_is_in_no_rate(tmp_path):
    code = "import neardup, json; print(json.dumps(neardup.dedup(['a b c d e f', 'x']).report))"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    whole = time.perf_counter() - begun
    report = json.loads(done.stdout)
    assert 2 < report["compile_seconds"] < whole
    assert report["seconds"] < whole - report["compile_seconds"]
    assert report["seconds"] == pytest.approx(
        sum(row["seconds"] for row in report["timings"]), abs=0.01
    )


# The kept document can be found.
def test_a_removal_names_file_row_and_role_of_the_kept_document():
    for name, first in (("old", 0), ("a", 2), ("b", 4)):
        rows = [{"text": f"{TEXTS[0]} {number // 2 * 2}"} for number in (first, first + 1)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = neardup.dedup(
        ["a.jsonl", "b.jsonl"], against="old.jsonl", method=neardup.MinHash(threshold=0.6)
    )
    columns = ["source_file", "row", "kept_source_file", "kept_row", "kept_role"]
    assert {tuple(row.values()) for row in result.removed.select(columns).to_pylist()} >= {
        ("a.jsonl", 0, "old.jsonl", 0, "against")
    }
    alone = neardup.dedup(["a.jsonl", "b.jsonl"])
    assert [tuple(row.values()) for row in alone.removed.select(columns).to_pylist()] == [
        ("a.jsonl", 1, "a.jsonl", 0, "source"),
        ("b.jsonl", 1, "b.jsonl", 0, "source"),
    ]


@pytest.mark.parametrize("suffix", ["txt", "md", "html"])
def test_files_that_are_documents_are_known_by_their_paths(suffix):
    Path("in/deep").mkdir(parents=True)
    for name in ("in/1", "in/deep/2"):
        Path(f"{name}.{suffix}").write_text(PAGE.format(TEXTS[0]) if suffix == "html" else TEXTS[0])
    result = neardup.dedup("in", output="out")
    assert result.removed.select(["id", "kept_id"]).to_pylist() == [
        {"id": f"in/deep/2.{suffix}", "kept_id": f"in/1.{suffix}"}
    ]
    assert Path(f"out/kept/1.{suffix}").read_text() == Path(f"in/1.{suffix}").read_text()


# Long documents.
def test_a_document_longer_than_the_limit_is_rejected_and_the_run_goes_on():
    Path("in.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in (TEXTS[0], "x " * 500, TEXTS[1]))
    )
    done = run("dedup", "in.jsonl", "-o", "out", "--max-document-bytes", "999")
    assert done.exit_code == 0
    (row,) = rejected()
    assert (row["row"], row["reason"]) == (
        1,
        "the document has 1000 bytes, more than max_document_bytes=999 (--max-document-bytes)",
    )
    assert counts() | {"read": 2, "kept": 1, "removed": 1, "rejected": 1} == counts()
    assert Path("out/kept/in.jsonl").read_text() == json.dumps({"text": TEXTS[0]}) + "\n"
    with pytest.raises(
        neardup.SettingError, match="max_document_bytes must be a whole number of 1 or more: got 0"
    ):
        neardup.dedup("in.jsonl", max_document_bytes=0)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".txt", ".html"])
def test_a_long_document_is_left_out_of_what_is_kept_in_every_format(suffix):
    many = [TEXTS[0], "long " * 100, TEXTS[2]]
    if suffix == ".parquet":
        pq.write_table(pa.table({"text": many}), "in.parquet")
    elif suffix == ".csv":
        pd.DataFrame({"text": many}).to_csv("in.csv", index=False)
    elif suffix == ".txt":
        Path("in.txt").write_text("\n".join(many))
    else:
        Path("in.html").mkdir()
        for number, text in enumerate(many):
            Path(f"in.html/{number}.html").write_text(PAGE.format(text))
    result = neardup.dedup(f"in{suffix}", max_document_bytes=300, output="out")
    kept = [row["html" if suffix == ".html" else "text"] for row in result.kept.to_pylist()]
    assert len(kept) == 2
    assert not any("long" in text for text in kept)
    written = b"".join(file.read_bytes() for file in Path("out/kept").rglob("*.*"))
    assert b"long long" not in written


# Bombs.
@pytest.mark.slow
def test_a_row_of_a_table_without_end_is_refused_by_a_named_limit():
    with open("in.csv", "wb") as file:
        file.write(b"id,text\n1,hello there\n2,")
        for _ in range(40):
            file.write(b"a" * (1 << 23))
    report = dedup_in_a_process("in.csv", "out", "--on-error", "skip")
    assert report["peak_memory_bytes"] < 1_200_000_000
    (row,) = rejected()
    assert row["reason"] == "a row is longer than 134217728 bytes, the longest that is read"


@pytest.mark.slow
def test_what_expands_without_measure_ends_in_a_named_limit():
    with gzip.open("in.jsonl.gz", "wb") as file:
        file.write(b'{"text": "one text"}\n')
        for _ in range(80):
            file.write(b" " * (1 << 20))
    with pytest.warns(neardup.errors.IncompleteWarning, match=r"in\.jsonl\.gz"):
        result = neardup.dedup("in.jsonl.gz", output="out")
    assert result.report["counts"]["read"] == 1
    assert "it expands to more than 200 times its size" in rejected()[0]["reason"]


@pytest.mark.slow
def test_a_dictionary_of_one_long_text_takes_little_memory():
    values = pa.array(["x y " * 26_000, "short text"])
    indices = pa.array([0] * 20_000, pa.int32())
    pq.write_table(
        pa.table({"text": pa.DictionaryArray.from_arrays(indices, values)}), "in.parquet"
    )
    assert Path("in.parquet").stat().st_size < 10_000
    report = dedup_in_a_process("in.parquet", "out", "--cache-bytes", "1e6")
    assert report["counts"]["removed_exact"] == 19_999
    assert report["peak_memory_bytes"] < 1_200_000_000  # the texts come to 2 GB


def test_rows_behind_a_long_dictionary_value_are_all_read(monkeypatch):
    from neardup.formats import parquet

    monkeypatch.setattr(parquet, "_MAX_DECODED_BYTES", 10_000)
    many = [f"{'word ' * 100}{number % 7}" for number in range(2000)]
    pq.write_table(
        pa.table({"id": [str(i) for i in range(2000)], "text": many}),
        "in.parquet",
        row_group_size=900,
    )
    result = neardup.dedup("in.parquet", output="out")
    assert result.report["counts"]["read"] == 2000
    assert result.kept["text"].to_pylist() == many[:7]
    assert pq.read_table("out/kept/in.parquet").equals(pq.read_table("in.parquet").slice(0, 7))


@pytest.mark.timing
def test_marks_in_disorder_take_linear_time():
    """A run of combining marks is ordered in time quadratic in its length."""
    marks = [chr(code) for code in range(0x300, 0x330)]
    rng = np.random.default_rng(3)
    many = ["a" + "".join(rng.choice(marks, 100_000)) for _ in range(5)]
    neardup.dedup(many[:1])
    begun = time.process_time()
    neardup.dedup(many)
    assert time.process_time() - begun < 2.0  # formerly 50 x


# Names and kinds of files.
def test_what_is_no_regular_file_is_passed_over_and_said():
    Path("in").mkdir()
    Path("in/a.txt").write_text(TEXTS[0])
    Path("in/_hidden.txt").write_text("x")
    Path("in/notes.xyz").write_text("x")
    os.mkfifo("in/pipe")
    done = run("dedup", "in", "-o", "out")
    assert done.exit_code == 0
    said = " ".join(json.loads(Path("out/report.json").read_text())["warnings"])
    assert "Left out 1 file other than regular files: in/pipe." in said
    assert "Left out 1 file with a name that begins with ., _ or ~$: in/_hidden.txt." in said
    assert "Left out 1 file without a known suffix: in/notes.xyz." in said


def test_a_dataset_that_was_saved_is_read_without_the_files_that_describe_it():
    """Files as `datasets.DatasetDict.save_to_disk` writes them."""
    Path("saved/train").mkdir(parents=True)
    Path("saved/dataset_dict.json").write_text('{"splits": ["train"]}')
    Path("saved/train/dataset_info.json").write_text('{"features": {"text": {}}}')
    Path("saved/train/state.json").write_text('{"_split": "train"}')
    table = pa.table({"text": TEXTS})
    with pa.ipc.new_stream("saved/train/data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table)
    done = run("dedup", "saved", "-o", "out")
    assert done.exit_code == 0
    report = json.loads(Path("out/report.json").read_text())
    assert report["counts"]["read"] == len(TEXTS)
    assert "Left out 3 files as descriptions of a dataset: " in " ".join(report["warnings"])


@pytest.mark.parametrize(("clone", "num_read"), [(True, 1), (False, 2)])
def test_the_card_of_a_cloned_dataset_is_no_document(clone, num_read):
    Path("repo").mkdir()
    Path("repo/README.md").write_text("---\nlicense: mit\n---\nThis is a card.")
    Path("repo/notes.txt").write_text("These are notes about something else.")
    if clone:
        Path("repo/.gitattributes").write_text("*.parquet filter=lfs\n")
    assert neardup.dedup("repo").report["counts"]["read"] == num_read


def test_a_file_named_state_is_a_document_where_nothing_says_that_it_is_not():
    Path("in").mkdir()
    Path("in/state.json").write_text(json.dumps({"text": TEXTS[0]}) + "\n")
    assert neardup.dedup("in").report["counts"]["read"] == 1


@pytest.mark.parametrize("pattern", ["in", "in/**/*.txt"])
def test_each_folder_is_entered_once_however_linked(pattern):
    Path("in/deep").mkdir(parents=True)
    Path("in/deep/a.txt").write_text(TEXTS[0])
    Path("in/deep/up").symlink_to(Path("in").resolve())
    Path("in/also").symlink_to(Path("in/deep").resolve())
    assert neardup.dedup(pattern, text_unit="file").kept["file"].to_pylist() == ["in/deep/a.txt"]


@pytest.mark.slow
def test_a_name_that_is_not_utf8_is_carried_and_shown_escaped(folder):
    name = os.fsdecode(b"in/caf\xe9.txt")
    try:
        Path("in").mkdir()
        Path(name).write_text(TEXTS[0])
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    Path("in/plain.txt").write_text(TEXTS[0])
    done = subprocess.run(
        [sys.executable, "-m", "neardup", "dedup", "in", "-o", "out", "--keep", "last"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (row,) = pq.read_table("out/removed.parquet").to_pylist()
    assert row["source_file"] == "in/caf\\xe9.txt"
    assert os.listdir("out/kept") == ["plain.txt"]
    assert neardup.dedup("in", output="out2").report["counts"]["kept"] == 1
    assert os.listdir(b"out2/kept") == [b"caf\xe9.txt"]


# Many small files.
@pytest.mark.timing
def test_many_small_files_take_a_constant_time_each():
    many = texts(4000)
    for count in (1000, 4000):
        Path(f"in{count}").mkdir()
        for number in range(count):
            Path(f"in{count}/{number}.txt").write_text(many[number])
    seconds = {1000: math.inf, 4000: math.inf}
    for attempt in range(3):  # the least of three, as what else the machine does only adds
        for count in seconds:
            report = dedup_in_a_process(f"in{count}", f"out{count}-{attempt}")
            assert report["counts"]["read"] == count
            seconds[count] = min(seconds[count], report["seconds"] / count)
    assert seconds[4000] < 1.5 * seconds[1000]


# Copies and containers.
def test_an_exact_copy_of_a_kept_document_names_it_also_where_an_earlier_one_contains_both():
    """Both are similar to 1; copies collapse first, so the copy is named. Documents held against
    may be so.
    """
    container = "a b c d e f g h i j k l m n"
    excerpt = "c d e f g h i j"
    method = neardup.MinHash(similarity="containment", ngram=2, threshold=0.75)
    result = neardup.dedup([excerpt], against=[container, excerpt], method=method)
    assert result.removed.select(["kept_id", "similarity", "exact"]).to_pylist() == [
        {"kept_id": "1", "similarity": 1.0, "exact": True}
    ]


# What newcomers type.
LABELLED = pa.table({"text": TEXTS, "s": ["x", "y", "z"]})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: neardup.evaluate(TEXTS, label=[1, 1, 2]),
            "SettingError",
            "label must be the name of a column",
        ),
        (
            lambda: neardup.dedup(LABELLED, keep="max:s", on_error="stop"),
            "InputError",
            "neither a number nor a date",
        ),
        (lambda: neardup.dedup(TEXTS, resume=True), "SettingError", "resume=True without output"),
        (lambda: neardup.explain("a b", method="minhsh"), "SettingError", "Did you mean 'minhash'"),
        (lambda: neardup.explain(None), "InputError", "A text is a string"),
        (lambda: neardup.explain(b"a b"), "InputError", "Decode bytes first"),
        (lambda: neardup.sign(TEXTS, method="page"), "SettingError", "min_structure compares two"),
        (lambda: neardup.dedup(pl.LazyFrame({"text": TEXTS})), "InputError", "collect"),
        (lambda: neardup.dedup(set(TEXTS)), "InputError", "Pass a list"),
        (
            lambda: neardup.dedup(LABELLED, text_column=0),
            "ColumnError",
            "name of a column must be a string: got 0",
        ),
        (lambda: neardup.evaluate(TEXTS), "ColumnError", r"column of labels \(label\)"),
    ],
)
def test_a_mistake_in_a_call_is_an_error_in_our_words(call, error, message):
    with pytest.raises(getattr(neardup.errors, error), match=message):
        call()


def test_methods_go_by_name_in_the_functions_of_one_text():
    assert neardup.explain("a b", method="simhash") == neardup.explain("a b")
    assert neardup.lsh.keywords("a b", method="simhash") == neardup.lsh.keywords("a b")
    assert neardup.document_frequencies(["a b"], method="simhash").num_documents == 1


def test_scalars_of_numpy_are_numbers():
    assert (
        neardup.dedup(TEXTS, threshold=np.float32(0.5), threads=np.int64(1)).removed.num_rows == 1
    )
    assert type(neardup.MinHash(ngram=np.int64(3)).ngram) is int
    with pytest.raises(neardup.SettingError, match="ngram must be"):
        neardup.MinHash(ngram=np.int64(0))


def test_texts_compared_as_pages_are_warned_of():
    result = neardup.dedup(TEXTS, method="structure")
    assert any("have no HTML tags" in warning for warning in result.report["warnings"])
    assert not neardup.dedup([PAGE.format("x")] * 3 + TEXTS[:2], method="structure").report[
        "warnings"
    ]
