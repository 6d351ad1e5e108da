"""What could not be read is never silent: folders, rows, archives, tables of other formats; and
gates.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.errors import IncompleteWarning, InputError
from neardup.formats import plain
from neardup.runs import find as finding
from reference.warc_files import info, members, page, record

GOOD = '{"id": "%s", "text": "one two three four five six %s"}\n'
QUESTION = (
    "Which of these gases is the most abundant one in the atmosphere of the Earth at sea level "
    "today?"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(cli, list(arguments), prog_name="neardup")


def write_lines(
    name: str, good: int, bad: int, line: bytes = '{"text": "café"}'.encode("latin-1")
) -> str:
    """Write a file of JSON lines, the bad ones last."""
    lines = [(GOOD % (number, number)).encode() for number in range(good)]
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(b"".join(lines) + (line + b"\n") * bad)
    return name


# Folders
@pytest.fixture
def unlistable(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make two folders of which one cannot be listed, even by root."""
    write_lines("c/ok/a.jsonl", 2, 0)
    write_lines("c/no/b.jsonl", 1, 0)
    entries = finding._entries

    def refuse(path):
        if Path(path).name == "no":
            raise PermissionError(13, "Permission denied", str(path))
        return entries(path)

    monkeypatch.setattr(finding, "_entries", refuse)
    return "c"


@pytest.mark.parametrize("source", ["c", "c/**/*.jsonl", "c/*/*.jsonl"])
def test_a_folder_that_cannot_be_listed_makes_the_run_incomplete(unlistable, source):
    done = run("dedup", source, "-o", "out", "--quiet")
    assert done.exit_code == 1
    assert "c/no: the folder cannot be listed: Permission denied" in done.stderr
    report = json.loads(Path("out/report.json").read_text())
    assert (report["counts"]["read"], report["incomplete"]["names"]) == (2, ["c/no"])
    assert [path.name for path in Path("out/kept").rglob("*.*")] == ["a.jsonl"]
    assert run("dedup", source, "-o", "out2", "--on-error", "skip").exit_code == 0
    stopped = run("dedup", source, "-o", "out3", "--on-error", "stop")
    assert (stopped.exit_code, Path("out3").exists()) == (2, False)
    assert "cannot be listed" in stopped.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["find-pairs", "c", "-o", "pairs.parquet"],
        ["cluster", "c", "-o", "clusters"],
        ["passages", "c", "-o", "passages", "--min-length", "50"],
        ["sign", "c", "-o", "signatures.parquet"],
        ["document-frequencies", "c", "-o", "idf.parquet"],
        ["sweep", "c"],
        ["index", "add", "i.index", "c"],
    ],
    ids=" ".join,
)
def test_every_command_names_a_folder_that_cannot_be_listed(unlistable, arguments):
    if arguments[0] == "index":
        assert run("index", "create", "i.index", "--quiet").exit_code == 0
    done = run(*arguments, "--quiet")
    assert done.exit_code == 1, done.output
    assert "c/no" in done.stderr


def test_the_library_warns_of_a_folder_that_cannot_be_listed(unlistable):
    with pytest.warns(IncompleteWarning, match="c/no: the folder cannot be listed") as caught:
        result = neardup.dedup("c")
    assert caught[0].filename == __file__
    assert repr(result).endswith("none removed, 1 file not read completely>")


@pytest.mark.parametrize(
    "arguments",
    [
        ["dedup", "c"],
        ["cluster", "c"],
        ["passages", "c"],
        ["audit", "c", "--kept", "kept.jsonl"],
        ["contamination", "kept.jsonl", "--corpus", "c"],
    ],
    ids=" ".join,
)
def test_every_page_and_the_terminal_name_a_folder_that_cannot_be_listed(unlistable, arguments):
    shutil.copy("c/ok/a.jsonl", "kept.jsonl")
    done = run(*arguments, "-o", "out")
    assert done.exit_code == 1, done.stderr
    said = "could not be read completely: c/no"
    assert said in " ".join(done.stdout.split())
    assert said in Path("out/report.html").read_text(encoding="utf-8")


def test_a_folder_of_pages_may_have_one_that_cannot_be_listed(unlistable):
    Path("c/ok/a.jsonl").unlink()
    Path("c/ok/a.html").write_text("<p>one two three four five six")
    assert run("dedup", "c", "-o", "out", "--method", "structure").exit_code == 1
    assert json.loads(Path("out/report.json").read_text())["counts"]["read"] == 1


def test_a_file_that_is_too_long_is_said_to_be_so_wherever_the_limit_cuts_it(monkeypatch):
    monkeypatch.setattr(plain, "MAX_FILE_BYTES", 5)
    Path("long.txt").write_text("fouré")  # the limit is in the middle of the last character
    Path("short.txt").write_text("five!")
    report = neardup.dedup(["long.txt", "short.txt"], text_unit="file", output="out").report
    assert (report["counts"]["read"], report["counts"]["rejected"]) == (1, 1)
    rejected = Path("out/rejected.jsonl").read_text()
    assert "the file is longer than 5 bytes, the longest file that is read" in rejected


def test_a_link_to_itself_is_named():
    write_lines("c/a.jsonl", 1, 0)
    loop = Path("c/loop")
    loop.symlink_to("loop")  # ELOOP
    assert run("dedup", "c", "-o", "out").exit_code == 1
    assert json.loads(Path("out/report.json").read_text())["counts"]["read"] == 1


def test_a_folder_of_which_nothing_can_be_listed_is_an_error(monkeypatch):
    Path("c").mkdir()

    def refuse(path):
        raise OSError(36, "File name too long")

    monkeypatch.setattr(finding, "_entries", refuse)
    with pytest.raises(
        InputError,
        match=r"No input in c: no file; c: the folder cannot be listed: File name too long",
    ):
        neardup.dedup("c")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may list every folder"
)
def test_a_folder_without_permission_is_named():
    write_lines("c/ok/a.jsonl", 1, 0)
    write_lines("c/no/b.jsonl", 1, 0)
    Path("c/no").chmod(0)
    try:
        assert run("dedup", "c", "-o", "out").exit_code == 1
    finally:
        Path("c/no").chmod(0o700)


# Rows
@pytest.mark.parametrize(("bad", "code"), [(1, 0), (2, 1)])
def test_a_file_of_which_more_than_one_row_in_a_hundred_cannot_be_read_makes_the_run_incomplete(
    bad, code
):
    write_lines("in.jsonl", 100, bad)
    done = run("dedup", "in.jsonl", "-o", f"out{bad}", "--quiet")
    assert (done.exit_code, f"{bad} of {100 + bad} rows" in done.stderr) == (code, True), (
        done.stderr
    )
    assert "iconv -f LATIN1 -t UTF-8" in done.stderr
    assert (
        len(Path(f"out{bad}/kept/in.jsonl").read_text().splitlines()) == 100
    )  # the output is complete


def test_one_bad_file_among_a_hundred_good_ones_does_not_hide():
    names = [write_lines(f"in/{number}.jsonl", 20, 0) for number in range(100)]
    Path(names[50]).write_bytes('{"text": "café"}\n'.encode("latin-1") * 20)
    done = run("dedup", "in", "-o", "out", "--quiet")
    assert done.exit_code == 1
    assert f"{names[50]}: no row of the file can be read: it is not UTF-8" in done.stderr
    texts = [write_lines(f"texts/{number}.txt", 1, 0) for number in range(100)]
    Path(texts[50]).write_bytes("café au lait".encode("latin-1"))
    done = run("dedup", "texts", "-o", "out2", "--quiet")
    assert (done.exit_code, texts[50] in done.stderr) == (1, True)


def test_the_share_that_may_be_unreadable_is_a_setting_and_may_be_accepted():
    write_lines("in.jsonl", 90, 10)
    assert run("dedup", "in.jsonl", "-o", "a", "--max-unreadable", "10%").exit_code == 0
    assert run("dedup", "in.jsonl", "-o", "b", "--max-unreadable", "0.09").exit_code == 1
    assert run("dedup", "in.jsonl", "-o", "c", "--on-error", "skip", "--quiet").stderr == ""


@pytest.mark.parametrize("share", ["101%", "-1", "many"])
def test_a_share_out_of_its_range_is_refused_by_the_command(share):
    write_lines("in.jsonl", 9, 1)
    assert run("dedup", "in.jsonl", "-o", "d", "--max-unreadable", share).exit_code == 2


def test_a_share_out_of_its_range_is_refused_by_the_library():
    with pytest.raises(
        neardup.SettingError, match="max_unreadable must be a number of 0 or more and at most 1"
    ):
        neardup.dedup(["a"], max_unreadable=2)


def test_the_sentence_of_a_result_counts_rejected_rows():
    write_lines("in.jsonl", 100, 900)
    with pytest.warns(
        IncompleteWarning, match="900 of 1,000 rows of the file cannot be read: it is not UTF-8"
    ):
        result = neardup.dedup("in.jsonl")
    assert repr(result).endswith(", 900 rows rejected, 1 file not read completely>")
    assert result.report["unreadable"]["rows"] == 900


def test_a_last_line_that_is_cut_short_is_a_damaged_file():
    Path("in.jsonl").write_text(
        "".join(GOOD % (n, n) for n in range(1000)) + '{"id": "x", "text": "cut he'
    )
    done = run("dedup", "in.jsonl", "-o", "out", "--quiet")
    assert done.exit_code == 1
    assert "the file is cut short inside this line" in done.stderr


def test_what_a_stated_rule_leaves_out_is_counted_and_no_loss():
    gone = page(b"<p>gone", "http://a.test/gone", status="404 Not Found")
    pages = [page(b"<p>one two three four five six", "http://a.test/1"), gone]
    Path("in.warc.gz").write_bytes(members(info(), *pages))
    done = run("dedup", "in.warc.gz", "-o", "out")
    assert (
        done.exit_code,
        bool(re.search("Excluded +1  by status, type or size", done.stdout)),
    ) == (0, True)
    assert run("dedup", "in.warc.gz", "-o", "out2", "--quiet").stderr == ""
    long = pa.table({"text": ["short text", "long text " * 20]})
    report = neardup.dedup(long, max_document_bytes=50).report
    assert (report["counts"]["rejected"], report["unreadable"], report["incomplete"]) == (
        1,
        None,
        None,
    )


# Updates of an index
def test_an_index_is_not_updated_by_a_run_that_lost_rows_and_the_run_can_be_resumed():
    assert run("index", "create", "i.index", "--quiet").exit_code == 0
    write_lines("in.jsonl", 50, 5)
    options = [
        "dedup",
        "in.jsonl",
        "--against",
        "i.index",
        "--update",
        "-o",
        "out",
        "--id-column",
        "id",
        "--quiet",
    ]
    lines = (
        Path("in.jsonl")
        .read_bytes()
        .replace(b'{"text": "caf\xe9"}', b'{"id": "x", "text": "caf\xe9"}')
    )
    Path("in.jsonl").write_bytes(lines)
    refused = run(*options)
    assert refused.exit_code == 2
    assert "5 of 55 rows of the file cannot be read" in refused.stderr
    assert not Path("out").exists()
    with neardup.Index.open("i.index", read_only=True) as index:
        assert len(index) == 0
    done = run(*options, "--resume", "--on-error", "skip")
    assert (done.exit_code, done.stderr) == (0, "")
    with neardup.Index.open("i.index", read_only=True) as index:
        assert len(index) == 50
    assert Path("out/report.json").exists()


def test_documents_that_are_added_one_by_one_stay_and_the_command_reports():
    assert run("index", "create", "i.index", "--quiet").exit_code == 0
    write_lines("in.jsonl", 50, 5)
    done = run("index", "add-if-new", "i.index", "in.jsonl", "--quiet")
    assert (done.exit_code, "5 of 55 rows" in done.stderr) == (1, True)
    with neardup.Index.open("i.index", read_only=True) as index:
        assert len(index) == 50


# Gates
def gate(corpus: bytes, *more: str):
    Path("items.jsonl").write_text(json.dumps({"question": QUESTION}) + "\n")
    Path("corpus.jsonl").write_bytes(corpus)
    return run(
        "contamination",
        "items.jsonl",
        "--corpus",
        "corpus.jsonl",
        "-o",
        "out",
        "--overwrite",
        "--quiet",
        *more,
    )


CLEAN = b"".join(
    json.dumps({"text": f"page {number} about the sea and the land"}).encode() + b"\n"
    for number in range(500)
)


@pytest.mark.parametrize(
    ("corpus", "code"),
    [
        (CLEAN, 0),
        (CLEAN + b'{"text": "caf\xe9"}\n', 4),  # one line of 501 is enough
        (b'{"text": "caf\xe9"}\n', 4),
        (b"", 4),
        (
            CLEAN + json.dumps({"text": QUESTION}).encode() + b"\n" + b'{"text": "caf\xe9"}\n',
            3,
        ),  # worse comes first
    ],
    ids=["clean", "one bad line", "no line", "empty", "contaminated"],
)
def test_a_gate_passes_only_over_what_it_read(corpus, code):
    done = gate(corpus, "--fail-above", "0")
    assert done.exit_code == code, done.stderr
    assert ("--fail-above" in done.stderr) == (code > 0)
    assert gate(corpus, "--fail-above", "0", "--on-error", "skip").exit_code == (
        3 if code == 3 else 0
    )


def test_a_gate_does_not_pass_over_items_that_it_did_not_read():
    write_lines("items.jsonl", 0, 1)
    Path("items.jsonl").write_bytes(json.dumps({"question": QUESTION}).encode() + b"\n{broken\n")
    Path("corpus.jsonl").write_bytes(CLEAN)
    done = run(
        "contamination",
        "items.jsonl",
        "--corpus",
        "corpus.jsonl",
        "-o",
        "out",
        "--fail-above",
        "0.5",
    )
    assert done.exit_code == 4


# Archives and tables of other formats
def wet(kind: str = "conversion", **fields: str) -> bytes:
    return record(kind, b"one two three four five six", "http://a.test/", content_type="text/plain")


@pytest.mark.parametrize("kind", ["conversion", "resource"])
def test_an_archive_without_responses_says_what_it_has(kind):
    Path("in.warc.gz").write_bytes(members(info(), wet(kind)))
    done = run("dedup", "in.warc.gz", "-o", "out", "--quiet")
    assert done.exit_code == 1
    assert f"no row of the file can be read: the record is a {kind}" in done.stderr


def test_an_archive_of_an_old_version_and_pages_without_an_element_are_lost():
    Path("in.warc").write_bytes(
        page(b"<p>one two", "http://a.test/")
        .replace(b"WARC/1.0", b"WARC/0.9.1")
        .replace(b"WARC/1.1", b"WARC/0.9.1")
    )
    assert run("dedup", "in.warc", "-o", "out").exit_code == 1
    Path("pages").mkdir()
    Path("pages/a.html").write_text("plain words")
    done = run("dedup", "pages", "-o", "out2", "--quiet")
    assert (done.exit_code, "pages/a.html" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("Delta", ["_delta_log/0.json", "a.parquet"]),
        ("Hudi", [".hoodie/hoodie.properties", "a.parquet"]),
        ("Lance", ["_versions/1.manifest", "data/a.lance"]),
        ("Iceberg", ["metadata/v1.metadata.json", "metadata/version-hint.text", "data/a.parquet"]),
    ],
)
def test_a_folder_that_is_a_table_of_another_format_is_refused_by_name(kind, names):
    for name in names:
        path = Path("lake/table", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    with pytest.raises(
        InputError, match=rf"lake/table is a table of {kind}, whose files.*Read it in Python"
    ):
        neardup.dedup("lake")


def test_the_files_of_such_a_table_are_read_by_a_pattern(tmp_path):
    import pyarrow.parquet as pq

    Path("lake/_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"text": ["one two"]}), "lake/a.parquet")
    assert neardup.dedup("lake/**/*.parquet").report["counts"]["read"] == 1


# What was read before a damage
def whole_pages(count: int) -> list[bytes]:
    return [
        page(f"<p>page {number} has words {number} of its own".encode(), f"http://a.test/{number}")
        for number in range(count)
    ]


@pytest.mark.parametrize("name", ["in.warc", "in.warc.gz"])
def test_the_pages_before_the_cut_of_an_archive_are_in_the_result(name):
    records = [info(), *whole_pages(50)]
    data = members(*records) if name.endswith(".gz") else b"".join(records)
    Path(name).write_bytes(data[:-20])
    done = run("dedup", name, "-o", "out", "--method", "structure", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["counts"]["read"] == 49


@pytest.mark.parametrize(
    "suffix", ["gz", "zst", *(pytest.param(each, marks=pytest.mark.slow) for each in ("bz2", "xz"))]
)
def test_the_rows_before_the_cut_of_a_compressed_table_are_in_the_result(suffix):
    rows = [f'{number},"text {number}\nof two lines"\n' for number in range(60_000)]
    data = ("id,text\n" + "".join(rows)).encode()
    codecs = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    compress = codecs.get(suffix, lambda data: pa.Codec("zstd").compress(data, asbytes=True))
    whole = compress(data)
    Path(f"in.csv.{suffix}").write_bytes(whole[: len(whole) * 9 // 10])
    result = neardup.dedup(f"in.csv.{suffix}", on_error="skip", threshold=1.0)
    texts = [row["text"] for row in result.kept.to_pylist()]
    assert "the rest of the file cannot be read" in result.report["incomplete"]["message"]
    assert all(
        text == f"text {number}\nof two lines" for number, text in enumerate(texts)
    )  # none is cut
    assert len(texts) > 20_000


# Links, files of another kind
@pytest.mark.parametrize("source", ["c", "c/*.jsonl", "c/**/*.jsonl"])
def test_a_link_to_nothing_is_lost_and_no_gate_passes_over_it(source):
    write_lines("c/a.jsonl", 20, 0)
    Path("c/z.jsonl").symlink_to("/nowhere/z.jsonl")
    Path("items.jsonl").write_text(json.dumps({"question": QUESTION}) + "\n")
    done = run("dedup", source, "-o", "out", "--quiet")
    assert (done.exit_code, "c/z.jsonl: it is a link to nothing" in done.stderr) == (1, True)
    assert run("dedup", source, "-o", "out2", "--on-error", "stop").exit_code == 2
    gated = run(
        "contamination",
        "items.jsonl",
        "--corpus",
        source,
        "-o",
        "out3",
        "--fail-above",
        "0",
        "--quiet",
    )
    assert gated.exit_code == 4


def test_a_pipe_with_the_name_of_an_input_is_lost():
    write_lines("c/a.jsonl", 20, 0)
    os.mkfifo("c/b.jsonl")
    done = run("dedup", "c", "-o", "out", "--quiet")
    assert (done.exit_code, "c/b.jsonl: it is not a regular file" in done.stderr) == (1, True)
    # It looks for fingerprints in its inputs first.
    done = run("find-pairs", "c", "-o", "pairs.parquet", "--quiet")
    assert (done.exit_code, "c/b.jsonl: it is not a regular file" in done.stderr) == (1, True)


def test_a_name_that_is_not_utf8_is_escaped_in_printed_json():
    write_lines("c/a.jsonl", 20, 0)
    Path(os.fsdecode(b"c/b\xff.parquet")).write_bytes(b"damaged")
    done = run("dedup", "c", "-o", "out", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout) == json.loads(Path("out/report.json").read_text())


PICTURES = b'{"html": "<html><body><img src=a.png></body></html>"}\n'


@pytest.mark.parametrize(
    "corpus",
    [b'{"text": null}\n' * 5, b'{"text": ""}\n' * 5, PICTURES * 5],
    ids=["null", "empty", "pages of pictures"],
)
def test_a_gate_does_not_pass_over_a_corpus_without_text(corpus):
    assert gate(corpus, "--fail-above", "0").exit_code == 4


def test_a_gate_names_the_files_that_were_left_out_even_if_quiet():
    Path("more").mkdir()
    Path("more/a.jsonl").write_bytes(CLEAN)
    Path("more/b.jsonl.lz4").write_bytes(b"")
    Path("items.jsonl").write_text(json.dumps({"question": QUESTION}) + "\n")
    done = run(
        "contamination",
        "items.jsonl",
        "--corpus",
        "more",
        "-o",
        "out",
        "--fail-above",
        "0",
        "--quiet",
    )
    assert (
        done.exit_code,
        "Left out 1 file without a known suffix: more/b.jsonl.lz4" in done.stderr,
    ) == (
        0,
        True,
    )


def test_items_may_have_any_name():
    name = os.fsdecode(b"items\xff.jsonl")
    Path(name).write_text(json.dumps({"question": QUESTION}) + "\n")
    assert neardup.find_contamination(Path(name), [QUESTION]).items["benchmark"].to_pylist() == [
        "items\\xff"
    ]


def test_a_closed_standard_input_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="Standard input is closed"):
        neardup.dedup("-")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["in.txt", "in.jsonl", "in.csv", "texts/in.txt"])
def test_wide_encodings_are_named_with_and_without_a_mark(encoding, name):
    Path("texts").mkdir()
    rows = [f"{number},some words of a text\n" for number in range(20)]
    text = (
        "id,text\n" + "".join(rows)
        if name.endswith(".csv")
        else "".join(GOOD % (n, n) for n in range(20))
    )
    Path(name).write_bytes(text.encode(encoding))
    done = run("dedup", name if name != "texts/in.txt" else "texts", "-o", "out", "--quiet")
    shown = {"utf-16-le": "UTF-16LE", "utf-16-be": "UTF-16BE"}.get(encoding, encoding.upper())
    assert (done.exit_code, f"it is {shown}. Convert it to UTF-8" in done.stderr) == (1, True), (
        done.stderr
    )


def test_a_binary_file_with_another_name_is_called_what_it_is():
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": ["one two"]}), "in.jsonl")
    done = run("dedup", "in.jsonl", "-o", "out", "--quiet")
    assert (done.exit_code, "it is a file of parquet. Rename it" in done.stderr) == (1, True)


# Folders that are not of a run
@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_a_folder_that_is_used_meanwhile_keeps_what_is_not_of_a_run(more):
    write_lines("out.partial/in.jsonl", 3, 0)
    done = run("dedup", "out.partial", "-o", "out", *more)
    assert (done.exit_code, "is not emptied: it has in.jsonl" in done.stderr) == (2, True)
    assert os.listdir("out.partial") == ["in.jsonl"]


def test_an_output_with_files_of_others_is_not_replaced():
    write_lines("in.jsonl", 3, 0)
    assert run("dedup", "in.jsonl", "-o", "out").exit_code == 0
    for name in (
        ".DS_Store",
        ".report.json.0123456789abcdef.partial",
    ):  # of the system, and of a run that was killed
        Path("out", name).write_text("")
    assert run("dedup", "in.jsonl", "-o", "out", "--overwrite").exit_code == 0
    Path("out/mine.txt").write_text("mine")
    done = run("dedup", "in.jsonl", "-o", "out", "--overwrite")
    assert (done.exit_code, "has mine.txt, which no run has written" in done.stderr) == (2, True)
    assert Path("out/mine.txt").read_text() == "mine"


# What follows a stream, and what a rule leaves out
@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("between", [b"\0\0\0\0", b"garbage"])
def test_what_follows_a_stream_and_is_none_is_damage(suffix, between):
    compress = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[suffix]
    parts = [
        compress("".join(GOOD % (n, n) for n in range(first, first + 50)).encode())
        for first in (0, 50)
    ]
    Path(f"whole.jsonl.{suffix}").write_bytes(b"".join(parts) + b"\0" * 8)
    assert neardup.dedup(f"whole.jsonl.{suffix}").report["counts"]["read"] == 100
    Path(f"in.jsonl.{suffix}").write_bytes(between.join(parts))
    done = run("dedup", f"in.jsonl.{suffix}", "-o", "out", "--quiet")
    assert (done.exit_code, "begins after the one before it" in done.stderr) == (1, True)
    assert json.loads(Path("out/report.json").read_text())["counts"]["read"] == 50


def test_a_gate_does_not_pass_over_documents_that_are_too_long():
    corpus = CLEAN + json.dumps({"text": QUESTION + " and more" * 1000}).encode() + b"\n"
    assert gate(corpus, "--fail-above", "0", "--max-document-bytes", "1000").exit_code == 4


def test_a_gate_does_not_pass_over_items_without_text_and_tells_documents_without():
    Path("corpus.jsonl").write_bytes(CLEAN + b'{"content": "another column"}\n')
    Path("items.jsonl").write_text(
        json.dumps({"question": QUESTION}) + '\n{"prompt": "another column"}\n'
    )
    done = run(
        "contamination",
        "items.jsonl",
        "--corpus",
        "corpus.jsonl",
        "-o",
        "out",
        "--fail-above",
        "0.9",
        "--quiet",
    )
    assert (done.exit_code, "items have no text" in done.stderr) == (4, True)
    assert "1 of 501 documents have no text in the column that was read" in done.stderr


def test_a_gate_names_a_benchmark_whose_items_are_all_too_short():
    Path("sums.jsonl").write_text('{"question": "2 + 2?"}\n{"question": "What is 3 * 4?"}\n')
    done = gate(CLEAN, "--fail-above", "0", "--", "sums.jsonl")
    assert done.exit_code == 0
    assert "all 2 items of sums are too short to be looked for." in done.stderr


def test_a_gate_tells_the_pages_without_text():
    page = json.dumps({"html": "<p>Some words of a page, and some more."}).encode() + b"\n"
    done = gate(PICTURES * 3 + page, "--fail-above", "0", "--quiet")
    assert done.exit_code == 0
    assert "3 of 4 documents have no text in the column that was read" in done.stderr


def test_the_rows_before_one_that_is_too_long_stay(monkeypatch):
    from neardup.formats import delimited

    monkeypatch.setattr(delimited, "MAX_ROW_BYTES", 1 << 16)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 12)
    rows = [f"{number},a text of its own {number}\n" for number in range(1000)]
    Path("in.csv").write_text(
        "id,text\n" + "".join(rows) + f"x,{'long ' * 50_000}\n" + "".join(rows[:9])
    )
    result = neardup.dedup("in.csv", on_error="skip", threshold=1.0)
    assert result.report["counts"]["read"] == 1000


def test_a_record_without_a_type_is_unreadable_and_one_of_an_unknown_type_is_counted():
    pages = whole_pages(3)
    pages[1] = pages[1].replace(b"WARC-Type: response\r\n", b"")
    pages[2] = pages[2].replace(b"WARC-Type: response", b"WARC-Type: rexponse")
    Path("in.warc").write_bytes(info() + b"".join(pages))
    report = neardup.dedup("in.warc", method="structure", on_error="skip").report
    assert (report["counts"]["read"], report["unreadable"]["rows"], report["excluded"]["rows"]) == (
        1,
        1,
        1,
    )


def test_a_file_and_a_link_to_it_are_read_once():
    write_lines("c/a.jsonl", 5, 0)
    Path("c/b.jsonl").symlink_to("a.jsonl")
    Path("again").symlink_to("c")
    assert neardup.dedup([Path("c"), Path("again/a.jsonl")]).report["counts"]["read"] == 5


@pytest.mark.parametrize("name", ["out/.git/HEAD", "out/.env"])
def test_hidden_files_of_others_are_not_deleted_with_an_output(name):
    write_lines("in.jsonl", 3, 0)
    assert run("dedup", "in.jsonl", "-o", "out").exit_code == 0
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("mine")
    assert run("dedup", "in.jsonl", "-o", "out", "--overwrite").exit_code == 2
    assert Path(name).read_text() == "mine"
