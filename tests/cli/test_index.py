"""`neardup index`: each command parses, calls the library and prints; errors are one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli

TEXTS = {
    "a": "one two three four five six seven eight nine ten",
    "b": "One two three four five six seven eight nine ten!",
    "c": "one two three four five six seven eight nine eleven",
    "d": "an entirely different text about something else",
    "e": "...",
}
BROKEN = "{broken\n"


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        json.dumps({"id": name, "text": text, "url": f"https://{name}"}) + "\n"
        for name, text in TEXTS.items()
    ]
    Path("in.jsonl").write_text("".join(rows))
    Path("broken.jsonl").write_text(rows[0] + BROKEN + rows[3])
    return tmp_path


def run(*arguments: str, **settings: object):
    return CliRunner().invoke(cli, ["index", *arguments], prog_name="neardup", **settings)


def printed(*arguments: str) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def lines(path: str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.fixture
def news() -> str:
    """Make an empty index at a threshold that `c` reaches."""
    assert run("create", "news.index", "--threshold", "0.7", "--quiet").exit_code == 0
    return "news.index"


def test_create_makes_an_index_with_the_settings_of_its_options():
    info = printed(
        "create",
        "fp.index",
        "--method",
        "simhash",
        "--confirm",
        "hamming",
        "--storage",
        "fingerprints",
    )
    assert info["method"]["confirm"] == "hamming"
    assert info["index"]["storage"] == "fingerprints"
    with neardup.Index.open("fp.index") as index:
        assert index.method == neardup.SimHash(
            confirm="hamming", num_blocks=index.method.num_blocks
        )


def test_an_index_is_not_made_twice(news):
    result = run("create", news)
    assert result.exit_code == 2
    assert result.stderr.startswith("neardup: error: ")
    assert len(result.stderr.splitlines()) == 1


def test_add_if_new_writes_the_kept_rows_in_the_format_of_the_input_and_the_answers(news):
    report = printed(
        "add-if-new", news, "in.jsonl", "-o", "kept.jsonl", "--answers", "answers.jsonl"
    )
    assert report["counts"] == {
        "read": 5,
        "kept": 3,
        "removed": 2,
        "removed_exact": 1,
        "repeated": 0,
        "truncated": 0,
        "rejected": 0,
    }
    assert "synced" in report["promise"]
    kept = [
        line
        for line in Path("in.jsonl").read_text().splitlines()
        if json.loads(line)["id"] in "ade"
    ]
    assert Path("kept.jsonl").read_text().splitlines() == kept
    answers = {row["id"]: (row["kept"], row["kept_id"]) for row in lines("answers.jsonl")}
    assert answers == {
        "a": (True, None),
        "b": (False, "a"),
        "c": (False, "a"),
        "d": (True, None),
        "e": (True, None),
    }


def test_answers_are_those_of_the_library(news):
    run(
        "add-if-new",
        news,
        "in.jsonl",
        "--answers",
        "answers.parquet",
        "--payload-column",
        "url",
        "--payload-column",
        "id",
    )
    with neardup.Index.create("memory:", method=neardup.MinHash(threshold=0.7)) as index:
        expected = index.add_many_if_new("in.jsonl", payload_column=["url", "id"])
    found = pq.read_table("answers.parquet")
    moments = ["first_seen", "last_seen"]
    assert found.drop_columns(moments).equals(expected.drop_columns(moments))
    assert found["payload"][0].as_py() == '{"url": "https://a", "id": "a"}'


def test_documents_that_are_sent_again_get_their_answers_and_change_nothing(news):
    run("add-if-new", news, "in.jsonl", "-o", "first.jsonl")
    report = printed("add-if-new", news, "in.jsonl", "-o", "second.jsonl")
    assert report["counts"]["repeated"] == 5
    assert Path("second.jsonl").read_text() == Path("first.jsonl").read_text()
    assert printed("info", news)["documents"] == {"kept": 3, "removed": 2}


def test_rows_that_the_index_has_are_written_again_unless_only_new_ones_are_wanted(news):
    for name in ("first", "again"):
        printed("add-if-new", news, "in.jsonl", "-o", f"{name}.jsonl", "--id-column", "id")
    assert Path("again.jsonl").read_bytes() == Path("first.jsonl").read_bytes() != b""
    printed("add-if-new", news, "in.jsonl", "-o", "new.jsonl", "--id-column", "id", "--only-new")
    assert not Path("new.jsonl").exists() or Path("new.jsonl").read_bytes() == b""


def test_kept_rows_of_several_inputs_are_files_in_a_folder(news):
    Path("more.csv").write_text("id,text\nf,one more text that nobody saw before today\n")
    assert (
        run("add-if-new", news, "in.jsonl", "more.csv", "-o", "kept", "--id-column", "id").exit_code
        == 0
    )
    assert sorted(path.name for path in Path("kept").iterdir()) == ["in.jsonl", "more.csv"]
    assert run("add-if-new", news, "in.jsonl", "more.csv", "-o", "k.jsonl").stderr.endswith(
        "Pass a folder.\n"
    )


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("kept.csv", "Use a name that ends in .jsonl"),
        ("in.jsonl", "already exists"),
        ("-", "only neardup dedup"),
    ],
)
def test_kept_rows_have_the_format_of_their_input_and_replace_nothing(news, output, told):
    result = run("add-if-new", news, "in.jsonl", "-o", output)
    assert result.exit_code == 2
    assert told in result.stderr
    assert printed("info", news)["documents"]["kept"] == 0


def test_add_if_new_reads_standard_input(news):
    result = run("add-if-new", news, "-", "-o", "kept.jsonl", input=Path("in.jsonl").read_bytes())
    assert result.exit_code == 0
    assert len(lines("kept.jsonl")) == 3


def test_a_line_that_cannot_be_read_is_reported_and_stops_nothing(news):
    report = printed("add-if-new", news, "broken.jsonl", "--max-unreadable", "1")
    assert (report["counts"]["read"], report["counts"]["rejected"]) == (2, 1)
    assert report["rejected"][0]["line"] == 2
    assert "Rejected: broken.jsonl, row 1, line 2" in run("add", news, "broken.jsonl").stdout


def test_on_error_stop_ends_at_the_first_such_line(news):
    result = run("add-if-new", news, "broken.jsonl", "--on-error", "stop")
    assert result.exit_code == 2
    assert "broken.jsonl, row 1, line 2" in result.stderr


def test_a_file_that_breaks_off_exits_with_1(news):
    whole = pa.Codec("gzip").compress(Path("in.jsonl").read_bytes(), asbytes=True)
    Path("cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    result = run("add", news, "cut.jsonl.gz")
    assert result.exit_code == 1
    assert "incomplete" in result.stderr
    assert run("add", news, "cut.jsonl.gz", "--on-error", "skip").exit_code == 0


def test_a_column_that_is_not_there_is_named(news):
    result = run("add", news, "in.jsonl", "--payload-column", "link")
    assert result.exit_code == 2
    assert "no column 'link'" in result.stderr


def test_query_finds_the_documents_that_were_kept(news):
    run("add-if-new", news, "in.jsonl", "--payload-column", "url")
    report = printed("query", news, "in.jsonl")
    assert [(hit["query_id"], hit["id"], hit["payload"]) for hit in report["hits"]] == [
        ("a", "a", "https://a"),
        ("b", "a", "https://a"),
        ("c", "a", "https://a"),
        ("d", "d", "https://d"),
    ]
    assert report["counts"]["found"] == 4
    assert "Found 4 of 5 documents" in run("query", news, "in.jsonl").stdout
    assert run("query", news, "in.jsonl", "-o", "hits.parquet").exit_code == 0
    assert pq.read_table("hits.parquet")["query_id"].to_pylist() == ["a", "b", "c", "d"]


def test_query_counts_the_files_that_a_folder_leaves_out(news):
    Path("folder").mkdir()
    Path("folder/in.jsonl").write_bytes(Path("in.jsonl").read_bytes())
    Path("folder/old.doc").write_text("x")
    said = run("query", news, "folder").stdout
    assert "Warning: Left out 1 file without a known suffix: folder/old.doc." in said


def test_a_text_file_that_is_read_by_lines_as_it_comes_alone_is_named(news):
    Path("page.txt").write_text("one line\nanother line\n")
    Path("other.txt").write_text("one line\nanother line\n")
    alone = printed("add", news, "page.txt")
    assert alone["counts"]["read"] == 2
    [warning] = alone["warnings"]
    assert "Each line of page.txt is a document" in warning
    assert printed("add", news, "page.txt", "other.txt")["warnings"] == []
    for unit, number in [("line", 2), ("file", 1)]:
        settled = printed("add", news, "page.txt", "--text-unit", unit)
        assert (settled["counts"]["read"], settled["warnings"]) == (number, [])
    assert not json.loads(
        run("add", news, "-", "--in-format", "text", "--json", input="a\nb\n").stdout
    )["warnings"]


def test_get_shows_documents_and_exits_with_1_if_one_is_missing(news):
    run("add-if-new", news, "in.jsonl")
    assert printed("get", news, "b")["documents"][0]["kept_id"] == "a"
    result = run("get", news, "a", "nobody")
    assert result.exit_code == 1
    assert "no document 'nobody'" in result.stderr
    assert "First seen" in result.stdout


def test_remove_takes_ids_from_arguments_and_a_file(news):
    run("add", news, "in.jsonl")
    assert printed("remove", news, "a")["forgotten"] == 1
    assert (
        json.loads(run("remove", news, "--ids-from", "-", "--json", input="b\nc\n").stdout)[
            "forgotten"
        ]
        == 2
    )
    assert "needs ids" in run("remove", news).stderr


def test_remove_names_unknown_ids_forgets_the_others_and_exits_with_1(news):
    run("add", news, "in.jsonl")
    result = run("remove", news, "a", "nobody", "nobody")
    assert (result.exit_code, result.stdout) == (1, "1 document forgotten.\n")
    assert result.stderr == f"neardup: {news} has no document 'nobody'.\n"
    result = run("remove", news, "b", *(f"x{number}" for number in range(15)), "--json")
    assert (result.exit_code, json.loads(result.stdout)["forgotten"]) == (1, 1)
    assert result.stderr.count("has no document") == 10
    assert result.stderr.endswith("neardup: nor 5 others of these ids.\n")


@pytest.mark.parametrize(
    ("options", "forgotten"),
    [(("--older-than", "30d"), 0), (("--unseen-for", "0s"), 5), (("--max-documents", "2"), 3)],
)
def test_expire_forgets_by_age_and_number(news, options, forgotten):
    run("add", news, "in.jsonl")
    assert printed("expire", news, *options)["forgotten"] == forgotten


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1y", "1 d", "999999999w", "999999999d"])
def test_an_age_is_a_number_and_a_unit(news, age):
    result = run("expire", news, "--older-than", age)
    assert result.exit_code == 2
    assert "30d, 12h, 90m or 45s" in result.stderr


def test_an_import_is_staged_committed_and_removed(news):
    assert run("imports", "open", news, "monday").exit_code == 0
    assert printed("imports", "stage", news, "monday", "in.jsonl")["counts"]["read"] == 5
    assert printed("info", news)["documents"]["kept"] == 0
    assert printed("imports", "list", news)["imports"][0]["num_documents"] == 5
    assert printed("imports", "commit", news, "monday") == {
        "read": 5,
        "kept": 3,
        "removed": 2,
        "repeated": 0,
    }
    assert printed("imports", "remove", news, "monday")["forgotten"] == 5


def test_an_import_is_cancelled(news):
    run("imports", "open", news, "monday")
    run("imports", "stage", news, "monday", "in.jsonl")
    assert run("imports", "cancel", news, "monday").exit_code == 0
    assert "No import is open." in run("imports", "list", news).stdout
    missing = run("imports", "commit", news, "monday").stderr
    assert "no open import 'monday'" in missing
    assert "(neardup index imports open)" in missing


def test_documents_of_a_named_import_are_removed_together(news):
    run("add", news, "in.jsonl", "--import-name", "monday")
    assert printed("imports", "remove", news, "monday")["forgotten"] == 5


def test_an_import_that_added_nothing_cannot_be_removed(news):
    run("imports", "open", news, "monday")
    for name in ("monday", "nobody"):
        removed = run("imports", "remove", news, name)
        assert removed.exit_code == 2
        assert f"No document was added by an import '{name}'" in removed.stderr


def test_documents_without_ids_are_staged_and_get_ids(news):
    Path("texts.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in TEXTS.values())
    )
    run("imports", "open", news, "monday")
    run("imports", "stage", news, "monday", "texts.jsonl")
    assert printed("imports", "commit", news, "monday")["kept"] == 3
    run("export", news, "-o", "all.parquet")
    assert printed("get", news, pq.read_table("all.parquet")["id"][3].as_py())["documents"][0][
        "kept"
    ]


def test_export_writes_all_documents(news):
    run("add-if-new", news, "in.jsonl")
    for name in ("all.parquet", "all.jsonl", "all.csv"):
        assert printed("export", news, "-o", name)["counts"]["exported"] == 5
    assert pq.read_table("all.parquet")["id"].to_pylist() == list(TEXTS)
    assert [row["kept_id"] for row in lines("all.jsonl")] == [None, "a", "a", None, None]
    assert len(Path("all.csv").read_text().splitlines()) == 6


def test_an_empty_index_is_exported_with_its_columns(news):
    run("export", news, "-o", "none.parquet")
    assert "kept_id" in pq.read_table("none.parquet").schema.names


def test_info_shows_what_the_library_returns(news):
    run("add-if-new", news, "in.jsonl")
    with neardup.Index.open(news, read_only=True) as index:
        assert printed("info", news) == index.info()
    shown = run("info", news).stdout
    assert re.search(r"Kept +3 ", shown)
    for part in ("threshold=0.7", "synced to disk", "bytes a document"):
        assert part in shown


def test_verify_compact_and_backup(news):
    run("add-if-new", news, "in.jsonl")
    assert "no damage found" in run("verify", news).stdout
    assert printed("verify", news)["damages"] == []
    run("remove", news, "b")
    assert run("compact", news, "--quiet").exit_code == 0
    assert printed("backup", news, "copy.index")["documents"] == {"kept": 3, "removed": 1}
    assert printed("query", "copy.index", "in.jsonl")["counts"]["found"] == 4


def test_verify_of_a_damaged_index_exits_with_1(news):
    run("add", news, "in.jsonl", "--quiet")
    run("compact", news, "--quiet")
    largest = max(Path(news).glob("*-0*"), key=lambda path: path.stat().st_size)
    data = bytearray(largest.read_bytes())
    data[len(data) // 2] ^= 255
    largest.write_bytes(data)
    result = run("verify", news)
    assert result.exit_code in (1, 2)
    assert largest.name in result.stderr


def test_merge_adds_what_is_new(news):
    run("add-if-new", news, "in.jsonl")
    run("create", "other.index", "--threshold", "0.7")
    assert printed("merge", "other.index", news) == {
        "read": 3,
        "kept": 3,
        "removed": 0,
        "repeated": 0,
    }
    assert "3 already in the index" in run("merge", "other.index", news).stdout
    run("create", "third.index", "--threshold", "0.8")
    assert "threshold" in run("merge", "third.index", news).stderr


def test_rebuild_makes_an_index_with_another_limit():
    run("create", "long.index", "--threshold", "0.7", "--num-hashes", "256")
    run("add-if-new", "long.index", "in.jsonl")
    info = printed("rebuild", "long.index", "strict.index", "--threshold", "0.9")
    assert info["method"]["threshold"] == 0.9
    assert info["documents"] == {"kept": 3, "removed": 2}
    assert printed("query", "strict.index", "in.jsonl")["counts"]["found"] == 3
    assert (
        "does not apply to" in run("rebuild", "long.index", "x.index", "--max-distance", "2").stderr
    )


def test_an_index_is_made_of_what_a_run_kept():
    neardup.dedup("in.jsonl", threshold=0.7, output="out")
    assert printed("create", "run.index", "--from-run", "out")["documents"] == {
        "kept": 3,
        "removed": 0,
    }
    report = printed("add-if-new", "run.index", "in.jsonl", "-o", "kept.jsonl")
    assert report["counts"]["kept"] == 3
    assert Path("kept.jsonl").read_bytes() == Path("out/kept/in.jsonl").read_bytes()
    assert (
        "method of the run" in run("create", "x.index", "--from-run", "out", "--ngram", "3").stderr
    )


def test_a_payload_column_is_refused_without_a_run():
    result = run("create", "x.index", "--payload-column", "url")
    assert result.exit_code == 2
    assert "without --from-run" in result.stderr
    assert not Path("x.index").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("info",),
        ("add", "in.jsonl"),
        ("query", "in.jsonl"),
        ("get", "a"),
        ("expire", "--older-than", "1d"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_index_that_is_not_there_is_one_line(arguments):
    result = run(arguments[0], "none.index", *arguments[1:])
    assert result.exit_code == 2
    assert result.stderr.startswith("neardup: error: There is no index at none.index")


@pytest.mark.parametrize(
    "arguments",
    [
        ("add-if-new", "news.index", "in.jsonl"),
        ("info", "news.index"),
        ("verify", "news.index"),
        ("remove", "news.index", "a"),
        ("expire", "news.index", "--older-than", "1d"),
        ("imports", "list", "news.index"),
        ("query", "news.index", "in.jsonl", "-o", "h.jsonl"),
    ],
    ids=" ".join,
)
def test_quiet_prints_nothing(news, arguments):
    run("add", news, "in.jsonl")
    result = run(*arguments, "--quiet")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("server", ["postgres_server", "redis_server"])
def test_the_commands_work_on_a_server(server, request):
    address = request.getfixturevalue(server).address("commands")
    assert run("create", address, "--threshold", "0.7").exit_code == 0
    assert printed("add-if-new", address, "in.jsonl", "-o", "kept.jsonl")["counts"]["kept"] == 3
    assert printed("query", address, "in.jsonl")["counts"]["found"] == 4
    out = CliRunner().invoke(
        cli, ["dedup", "in.jsonl", "--against", address, "-o", "out", "--json"]
    )
    assert json.loads(out.stdout)["counts"]["kept"] == 1  # the document without features
    assert printed("export", address, "-o", "all.jsonl")["counts"]["exported"] == 5
    assert printed("remove", address, "a")["forgotten"] == 1
    assert printed("verify", address)["damages"] == []
    assert "exists" in run("create", address).stderr
    assert "tools" in run("backup", address, "copy.index").stderr or Path("copy.index").exists()


@pytest.mark.slow
def test_no_output_has_the_password_of_a_server(redis_server):
    address = redis_server.address("secret").replace("redis://", "redis://default:hush@")
    outputs = [run("create", address).output, run("info", address, "--json").output]
    outputs.append(run("add", address, "in.jsonl", "--json").output)
    CliRunner().invoke(cli, ["dedup", "in.jsonl", "--against", address, "-o", "out"])
    outputs.append(Path("out/report.html").read_text() + Path("out/report.json").read_text())
    outputs.append(str(pq.read_table("out/removed.parquet").to_pylist()))
    assert all("secret" in output and "hush" not in output for output in outputs)
