"""A run of dedup against an index, and an index of what a run kept."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup import Index, MinHash, SimHash
from neardup.cli.main import cli
from neardup.errors import InputError, SchemeError, SettingError
from neardup.index import collection, from_run
from neardup.index.open_index import OpenIndex
from neardup.runs import reading as local_reading
from reference.index_cases import METHODS, documents_for, idf_for, make_texts
from reference.office_files import docx

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
OLD, NEW = (REPOSITORY / "examples" / "data" / f"terms-{age}.jsonl.zst" for age in ("old", "new"))
NAMES_OF_KEPT = {"cluster", "kept_source_file", "kept_row", "source_file"}
METHOD = MinHash(threshold=0.5, ngram=2)
COUNTED = {
    "rare words",
    "tfidf",
    "structure",
    "page",
}  # whose features weigh by all documents of a run


def storage_of(method) -> str:
    return "fingerprints" if getattr(method, "confirm", None) == "hamming" else "features"


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., str]:
    """Return a function that makes an index of documents, and returns its address."""

    def make_index(documents, method=METHOD, **options) -> str:
        address = str(tmp_path / "old.index")
        with Index.create(address, method=method, **options) as index:
            index.add_many(documents)
        return address

    return make_index


def table(prefix: str, texts: list[str]) -> pa.Table:
    return pa.table({"id": [f"{prefix}{number}" for number in range(len(texts))], "text": texts})


def why(removed: pa.Table) -> list[dict]:
    """Return removals without the places of the kept documents, which files and an index name in
    their own way.
    """
    return removed.drop_columns(sorted(NAMES_OF_KEPT)).to_pylist()


QUICK = {"minhash", "minhash in crowded buckets", "simhash"}
DECIDING = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in METHODS
    if name not in COUNTED
]


@pytest.mark.parametrize("name", DECIDING)
def test_a_run_against_an_index_decides_as_against_its_files_and_as_add_if_new(name, tmp_path):
    method, options = METHODS[name]
    old = documents_for(method, 5, 120)
    if "max_bucket_size" in options:  # `add` lists copies too, which fill a bucket
        old = table("d", list(dict.fromkeys(old["text"].to_pylist())))
    new = documents_for(method, 6, 120).set_column(
        0, "id", [[f"n{number}" for number in range(120)]]
    )
    new = pa.concat_tables(
        [new, old.slice(0, 30).set_column(0, "id", [[f"copy{i}" for i in range(30)]])]
    )
    address = tmp_path / "old.index"
    with Index.create(address, method=method, storage=storage_of(method), **options) as index:
        index.add_many(old)
    expected = neardup.dedup(new, against=old, method=method, **options)
    found = neardup.dedup(new, against=address)
    assert found.report["removed_bytes"] == expected.report["removed_bytes"]
    assert why(found.removed) == why(expected.removed)
    assert found.mask.tolist() == expected.mask.tolist()
    assert found.kept.equals(expected.kept)
    assert found.removed["kept_role"].equals(expected.removed["kept_role"])
    with Index.open(address) as index:
        answers = index.add_many_if_new(new)
    assert answers["kept"].to_pylist() == found.mask.tolist()
    removed = answers.filter(pc.invert(answers["kept"]))
    assert removed["kept_id"].to_pylist() == found.removed["kept_id"].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COUNTED))
def test_methods_that_weigh_by_a_table_decide_as_add_if_new(name, tmp_path):
    method, options = METHODS[name]
    old = documents_for(method, 5, 120)
    new = documents_for(method, 6, 120).set_column(
        0, "id", [[f"n{number}" for number in range(120)]]
    )
    with Index.create(
        tmp_path / "old.index", method=method, idf=idf_for(method, old), **options
    ) as index:
        index.add_many(old)
        found = neardup.dedup(new, against=index)
        assert index.add_many_if_new(new)["kept"].to_pylist() == found.mask.tolist()


def test_nothing_is_written_to_the_index_unless_it_is_updated(make):
    address = make(table("a", make_texts(1, 60)))
    new = table("b", make_texts(2, 60))
    with Index.open(address, read_only=True) as index:
        before = [documents.to_pylist() for documents in index.documents()]
    first = neardup.dedup(new, against=address)
    with Index.open(address, read_only=True) as index:
        assert [documents.to_pylist() for documents in index.documents()] == before
    updated = neardup.dedup(new, against=address, update=True)
    assert (first.report["updated"], updated.report["updated"]) == (False, True)
    assert updated.kept.equals(first.kept)
    with Index.open(address, read_only=True) as index:
        assert all(
            index.get(id).kept == kept
            for id, kept in zip(new["id"].to_pylist(), first.mask, strict=True)
        )
        assert index.info()["documents"]["removed"] == first.report["counts"]["removed"]


@pytest.mark.parametrize("batch_rows", [1, 7, None])
def test_batches_change_nothing(make, batch_rows):
    address = make(table("a", make_texts(1, 60)))
    new = table("b", make_texts(2, 60))
    assert why(neardup.dedup(new, against=address, batch_rows=batch_rows).removed) == why(
        neardup.dedup(new, against=address).removed
    )


def test_an_index_that_is_not_updated_is_an_earlier_collection_whatever_its_ids(make):
    address = make(table("a", ["one two three four", "five six seven eight"]))
    new = pa.table(
        {
            "id": ["a0", "a1", "b", "b", "c"],
            "text": [
                "one two three four",
                "nine ten eleven",
                "nine ten eleven",
                "five six seven eight",
                "twelve",
            ],
        }
    )
    result = neardup.dedup(new, against=address)
    assert result.mask.tolist() == [False, True, False, False, True]
    assert [
        (row["id"], row["kept_id"], row["kept_role"], row["exact"])
        for row in result.removed.to_pylist()
    ] == [
        ("a0", "a0", "against", True),
        ("b", "a1", "source", True),
        ("b", "a1", "against", True),
    ]
    assert (
        result.mask.tolist()
        == neardup.dedup(new, against=["one two three four", "five six seven eight"]).mask.tolist()
    )


def test_copies_among_new_documents_are_found_whatever_their_ids(make):
    address = make(table("a", ["one two three four"]))
    new = pa.table(
        {"id": ["1", "1", "2"], "text": ["five six seven", "eight nine ten", "five six seven"]}
    )
    result = neardup.dedup(new, against=address)
    assert result.mask.tolist() == neardup.dedup(new).mask.tolist() == [True, True, False]


def test_a_document_without_features_is_kept_even_if_the_index_has_it(make):
    address = make(table("a", ["...", "one two three four"]))
    assert neardup.dedup(
        table("a", ["...", "one two three four"]), against=address
    ).mask.tolist() == [True, False]


def test_documents_without_ids_have_running_numbers(make):
    result = neardup.dedup(
        ["one two three four", "nine ten", "nine ten"],
        against=make(table("a", ["one two three four"])),
    )
    removed = [(row["id"], row["kept_id"], row["kept_role"]) for row in result.removed.to_pylist()]
    assert removed == [("0", "a0", "against"), ("2", "1", "source")]


def test_an_index_in_memory_is_taken_as_it_is():
    with Index.create("memory:", method=METHOD) as index:
        index.add("one two three four", id="a")
        assert neardup.dedup(["one two three four", "five six"], against=index).mask.tolist() == [
            False,
            True,
        ]
        assert index.query("one two three four")  # still open


@pytest.mark.parametrize("storage", ["features", pytest.param("text", marks=pytest.mark.slow)])
def test_the_output_is_that_of_other_runs(make, storage, tmp_path):
    address = make(str(OLD), MinHash(threshold=0.7), storage=storage)
    result = neardup.dedup(str(NEW), against=address, output=tmp_path / "out")
    out = tmp_path / "out"
    expected = neardup.dedup(str(NEW), against=str(OLD), threshold=0.7)
    assert sorted(path.name for path in out.iterdir()) == [
        "kept",
        "rejected.jsonl",
        "removed.parquet",
        "report.html",
        "report.json",
    ]
    assert pq.read_table(out / "removed.parquet").equals(result.removed)
    assert result.kept["id"].to_pylist() == expected.kept["id"].to_pylist()
    report = json.loads((out / "report.json").read_text())
    assert report == result.report
    assert report["counts"]["against"] == report["inputs"][0]["documents"] == 53
    assert (report["inputs"][0]["role"], report["inputs"][0]["format"]) == ("against", "index")
    page = (out / "report.html").read_text()
    assert "not estimated on top of an index" in page
    assert ("The index stores no text" in page) == (storage == "features")
    rows = (
        pq.read_table(out / "removed.parquet")
        .filter(pc.field("kept_role") == "against")
        .to_pylist()
    )
    assert {row["kept_source_file"] for row in rows} == {address}
    with Index.open(address, read_only=True) as index:
        stored = pa.concat_tables(index.documents())["id"].to_pylist()
    assert all(stored[row["kept_row"]] == row["kept_id"] for row in rows)


def test_rejected_rows_are_listed(make, tmp_path):
    address = make(table("a", ["one two three four"]))
    (tmp_path / "new.jsonl").write_text(
        '{"text": "one two three four"}\n{broken\n{"text": "five six"}\n'
    )
    options = {"output": tmp_path / "out", "max_unreadable": 1}
    result = neardup.dedup(tmp_path / "new.jsonl", against=address, **options)
    assert result.report["counts"]["rejected"] == 1
    assert json.loads((tmp_path / "out" / "rejected.jsonl").read_text())["line"] == 2
    assert (tmp_path / "out" / "kept" / "new.jsonl").read_text() == '{"text": "five six"}\n'
    with pytest.raises(InputError, match="line 2"):
        neardup.dedup(tmp_path / "new.jsonl", against=address, on_error="stop")


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"keep": "longest"}, SettingError, "keep must be 'first' with an index"),
        ({"linkage": "connected"}, SettingError, "linkage must be 'sieve' with an index"),
        ({"recall_sample": 5}, SettingError, "recall_sample must be 0"),
        ({"resume": True}, SettingError, "resume continues the run of an output folder"),
        ({"max_bucket_size": 7}, SettingError, "max_bucket_size must be None or 64 with an index"),
        (
            {"method": "simhash"},
            SchemeError,
            "was created with method='MinHash': got method='SimHash'. Open",
        ),
        ({"method": MinHash(threshold=0.5)}, SchemeError, "was created with ngram=2"),
        ({"threshold": 0.9}, SchemeError, "was created with threshold=0.5"),
        ({"max_distance": 3}, SchemeError, "no max_distance"),
    ],
)
def test_other_selections_and_methods_are_refused(
    make, options, error, told, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    address = make(table("a", ["one two three four"]))
    with pytest.raises(error, match=told):
        neardup.dedup(["five six"], against=address, **options)
    assert not Path("out").exists()
    assert not Path("out.partial").exists()


@pytest.mark.parametrize(
    "options", [{"method": METHOD}, {"threshold": 0.5}, {"max_bucket_size": 64}, {}]
)
def test_the_method_of_the_index_may_be_named(make, options):
    address = make(table("a", ["one two three four"]))
    assert neardup.dedup(["one two three four"], against=address, **options).mask.tolist() == [
        False
    ]


def test_a_command_may_name_the_threshold_of_the_index_alone(make, tmp_path):
    (tmp_path / "new.jsonl").write_text('{"text": "one two three four"}\n')
    command = [
        "dedup",
        str(tmp_path / "new.jsonl"),
        "--against",
        make(table("a", ["one two three four"])),
    ]
    command += ["-o", str(tmp_path / "out"), "--threshold"]
    assert CliRunner().invoke(cli, [*command, "0.5"]).exit_code == 0
    assert (
        "with threshold=0.5: got threshold=0.6."
        in CliRunner().invoke(cli, [*command, "0.6"]).stderr
    )


def test_an_index_beside_files_is_refused(make):
    with pytest.raises(SettingError, match="either one index or files and tables"):
        neardup.dedup(["five six"], against=[make(table("a", ["one two"])), str(OLD)])
    with (
        Index.create("memory:", method=METHOD) as index,
        pytest.raises(SettingError, match="either one index"),
    ):
        neardup.dedup(["five six"], against=[index, "five six"])


def test_update_needs_an_index():
    with pytest.raises(
        SettingError, match="update is not applicable on this machine: got True; there is no index"
    ):
        neardup.dedup(["a"], against=["b"], update=True)


def test_an_output_that_fails_leaves_the_index_as_it_was(make, tmp_path):
    address = make(table("a", ["one two three four"]))
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(neardup.errors.OutputError):
        neardup.dedup(["five six seven"], against=address, update=True, output=tmp_path / "out")
    with Index.open(address, read_only=True) as index:
        assert len(index) == 1


@pytest.mark.slow
def test_the_command_updates_the_index(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = make(str(OLD), MinHash())
    command = ["dedup", str(NEW), "--against", address, "-o", "out", "--json"]
    first = json.loads(CliRunner().invoke(cli, command).stdout)
    done = CliRunner().invoke(cli, [*command, "--update", "--overwrite"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["counts"] == first["counts"]
    last = json.loads(CliRunner().invoke(cli, [*command, "--overwrite"]).stdout)
    assert last["counts"]["kept"] == 0
    result = CliRunner().invoke(
        cli, [*command, "--overwrite", "--threshold", "0.9"], prog_name="neardup"
    )
    assert result.exit_code == 2
    assert "got threshold=0.9" in result.stderr


# An index of what a run kept.


def ids_of(index: Index) -> list[str]:
    return [id for documents in index.documents() for id in documents["id"].to_pylist()]


@pytest.mark.parametrize(
    "method",
    [METHOD, SimHash(max_distance=6), MinHash(similarity="containment")],
    ids=lambda method: method.tokens,
)
def test_an_index_of_a_run_has_its_method_and_its_kept_documents(method, tmp_path):
    result = neardup.dedup(str(OLD), method=method, output=tmp_path / "out")
    with Index.from_run(tmp_path / "run.index", tmp_path / "out") as index:
        assert ids_of(index) == result.kept["id"].to_pylist()
        assert index.method.threshold == method.threshold
        assert index.add_many_if_new(str(OLD))["kept"].to_pylist() == result.mask.tolist()


def test_documents_that_were_numbered_keep_their_numbers(tmp_path):
    texts = make_texts(1, 60)
    result = neardup.dedup(texts, method=METHOD, against=texts[:3], output=tmp_path / "out")
    (tmp_path / "run.index").mkdir()  # an empty folder becomes the index
    with Index.from_run(tmp_path / "run.index", tmp_path / "out") as index:
        removed = set(result.removed["id"].to_pylist())
        expected = [str(number) for number in range(3, 63) if str(number) not in removed]
        assert [id.split("-")[1] for id in ids_of(index)] == expected
        index.add_many(make_texts(9, 60))  # takes no id of these
        assert len(index) == len(expected) + 60


def test_documents_that_are_files_keep_their_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate(make_texts(1, 12)):
        path = Path(f"pages/{number % 3}/{number:02}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = neardup.dedup("pages", method=METHOD, output="out")
    with Index.from_run("run.index", "out") as index:
        removed = set(result.removed["id"].to_pylist())
        every = [
            str(path) for path in sorted(Path("pages").rglob("*.txt")) if str(path) not in removed
        ]
        assert ids_of(index) == every


@pytest.mark.parametrize("unit", ["file", "line"])
def test_a_file_that_alone_is_kept_is_read_as_its_run_read_it(unit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    for name in ("a.txt", "b.txt"):
        Path("texts", name).write_text("one two three\nfour five six\n")
    # A document of Word is a document in any case.
    Path("texts/c.docx").write_bytes(docx("<w:p><w:r><w:t>seven eight nine</w:t></w:r></w:p>"))
    result = neardup.dedup("texts", method=METHOD, text_unit=unit, output="out")
    with Index.from_run("run.index", "out") as index:
        assert len(index) == result.kept.num_rows == (2 if unit == "file" else 3)


def test_messages_of_a_mailbox_keep_the_rows_of_their_ids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies = ["one two three", "one two three", "four five six", "", "seven eight nine"]
    begin = "From a@b Mon Jan  5 10:00:00 2026\n"
    messages = [f"Subject: {body}\n\n{body}\n\n" if body else "no field\n\n" for body in bodies]
    Path("in.mbox").write_text("".join(begin + message for message in messages))
    neardup.dedup("in.mbox", method=METHOD, output="out", max_unreadable=1)
    with Index.from_run("run.index", "out") as index:
        assert ids_of(index) == ["in.mbox:0", "in.mbox:2", "in.mbox:4"]


def test_documents_may_be_as_long_as_in_the_run(tmp_path):
    documents = [{"text": "one two three"}, {"text": "four five " * 100}]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    neardup.dedup(path, output=tmp_path / "out", max_document_bytes=2000)
    report = json.loads((tmp_path / "out/report.json").read_text())
    (task,) = from_run._kept_tasks(tmp_path / "out", report, METHOD)
    assert task.max_document_bytes == 2000


def test_inputs_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, texts in (
        ("z.jsonl", ["one two three"]),
        ("a.jsonl", ["four five six", "seven eight nine"]),
    ):
        Path(name).write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    neardup.dedup(["z.jsonl", "a.jsonl"], method=METHOD, output="out")
    with Index.from_run("run.index", "out", storage="text") as index:
        assert [index.get(id).text for id in ids_of(index)] == [
            "one two three",
            "four five six",
            "seven eight nine",
        ]


def test_payloads_are_read_from_the_kept_files(tmp_path):
    neardup.dedup(
        pa.table({"id": ["a"], "text": ["one two"], "url": ["https://a"]}), output=tmp_path / "out"
    )
    with Index.from_run("memory:", tmp_path / "out", payload_column="url") as index:
        assert index.get("a").payload == "https://a"


def test_a_run_that_counted_its_documents_needs_their_table(tmp_path):
    method = MinHash(boost_rare=True, ngram=3)
    documents = table("a", make_texts(1, 60))
    neardup.dedup(documents, method=method, output=tmp_path / "out")
    with pytest.raises(
        SettingError,
        match=r"neardup document-frequencies INPUT\.\.\. --tokens words --ngram 3 -o idf\.parquet",
    ):
        Index.from_run(tmp_path / "run.index", tmp_path / "out")
    idf = neardup.document_frequencies(documents, method=method)
    with Index.from_run(tmp_path / "run.index", tmp_path / "out", idf=idf) as index:
        assert index.info()["idf"] == idf.describe()


def test_a_run_with_a_python_function_is_refused(tmp_path):
    neardup.dedup(["one two three"], method=MinHash(tokens=str.split), output=tmp_path / "out")
    with pytest.raises(SettingError, match="Python function"):
        Index.from_run(tmp_path / "run.index", tmp_path / "out")


def test_a_folder_that_is_no_run_of_dedup_is_refused(tmp_path):
    with pytest.raises(InputError, match="no report of a run"):
        Index.from_run(tmp_path / "run.index", tmp_path)
    neardup.cluster(["one two three", "four five"], output=tmp_path / "clusters")
    with pytest.raises(InputError, match="is of neardup cluster"):
        Index.from_run(tmp_path / "run.index", tmp_path / "clusters")


def test_a_run_that_cannot_be_read_leaves_no_index(tmp_path):
    neardup.dedup(str(OLD), output=tmp_path / "out")
    kept = tmp_path / "out" / "kept" / OLD.name
    kept.write_bytes(kept.read_bytes()[:1000])
    with pytest.raises(InputError, match="kept files changed"):
        Index.from_run(tmp_path / "run.index", tmp_path / "out")
    assert not (tmp_path / "run.index").exists()


# Runs that are resumed.


def interrupted(monkeypatch, documents, address, out, *, after: int, **options) -> None:
    """Begin a run that ends with an error once so many steps are decided, checkpoints after each
    second batch.
    """
    steps = collection.steps
    count = 0

    def some_steps(*arguments):
        nonlocal count
        for step in steps(*arguments):
            yield step
            count += 1
            if count == after:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(collection, "steps", some_steps)
        with pytest.raises(KeyboardInterrupt):
            neardup.dedup(documents, against=address, output=out, **options)


def output_of(folder: Path) -> tuple[list[bytes], list[dict], dict]:
    report = json.loads((folder / "report.json").read_text())
    kept = [path.read_bytes() for path in sorted((folder / "kept").iterdir())]
    return kept, pq.read_table(folder / "removed.parquet").to_pylist(), report["counts"]


def two_days(folder: Path) -> list[Path]:
    """Return files with documents that the index has already, or with another text, or that are
    there twice.
    """
    rows = [
        {"id": f"{'d' if n % 7 == 0 else 'n'}{n}", "text": text}
        for n, text in enumerate(make_texts(6, 120))
    ]
    days = [folder / "1.jsonl", folder / "2.jsonl"]
    for day, part in zip(days, (rows[:70], rows[60:]), strict=True):
        day.write_text("".join(json.dumps(row) + "\n" for row in part) + "{\n")
    return days


@pytest.mark.filterwarnings("ignore:.*rejected")
@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize(
    "after", [5, *(pytest.param(after, marks=pytest.mark.slow) for after in (1, 12))]
)
def test_a_run_that_is_resumed_writes_what_one_that_was_not_writes(
    make, tmp_path, monkeypatch, after, update
):
    monkeypatch.setattr(local_reading, "_CHECKPOINT_EVERY", 2)
    days = two_days(tmp_path)
    options = {"update": update, "batch_rows": 9, "on_error": "skip"}
    address = make(table("d", make_texts(5, 120)))
    twin = str(tmp_path / "twin.index")
    shutil.copytree(address, twin)
    neardup.dedup(days, against=twin, output=tmp_path / "whole", **options)
    interrupted(monkeypatch, days, address, tmp_path / "out", after=after, **options)
    neardup.dedup(days, against=address, output=tmp_path / "out", resume=True, **options)
    assert not (tmp_path / "out.partial").exists()
    assert output_of(tmp_path / "out") == output_of(tmp_path / "whole")
    with Index.open(address) as index, Index.open(twin) as expected:
        assert index.verify() == []
        resumed, whole = (
            pa.concat_tables(each.documents()).drop_columns(["first_seen", "last_seen"])
            for each in (index, expected)
        )
        assert resumed.equals(whole)
        assert len(resumed) > (120 if update else 119)


@pytest.mark.filterwarnings("ignore:.*rejected")
@pytest.mark.parametrize("begun_with", ["input", None], ids=["resumed", "begun again"])
def test_a_run_that_is_resumed_stores_the_sources_of_all_documents(
    tmp_path, monkeypatch, begun_with
):
    monkeypatch.setattr(local_reading, "_CHECKPOINT_EVERY", 2)
    days = two_days(tmp_path)
    options = {"update": True, "batch_rows": 9, "on_error": "skip"}
    sources = []
    for name in ("whole", "resumed"):
        address = str(tmp_path / f"{name}.index")
        Index.create(address, track_sources=True).close()
        out = tmp_path / name
        if name == "resumed":
            begun = {"after": 9, "sources": begun_with} | options
            interrupted(monkeypatch, days, address, out, **begun)
        resume = name == "resumed"
        neardup.dedup(days, against=address, output=out, resume=resume, sources="input", **options)
        with Index.open(address) as index:
            found = pa.concat_tables(index.documents())
        sources.append(found.filter(found["kept"]).select(["id", "sources"]).to_pylist())
    assert sources[0] == sources[1]
    assert {len(row["sources"]) for row in sources[0]} == {1, 2}


@pytest.mark.filterwarnings("ignore:.*rejected")
def test_a_run_that_is_resumed_reads_what_it_has_decided_no_more(make, tmp_path, monkeypatch):
    monkeypatch.setattr(local_reading, "_CHECKPOINT_EVERY", 2)
    address = make(table("d", make_texts(5, 120)))
    days = two_days(tmp_path)
    interrupted(monkeypatch, days, address, tmp_path / "out", after=7, batch_rows=9)
    described = []
    describe = OpenIndex.describe
    monkeypatch.setattr(
        OpenIndex, "describe", lambda *args: described.append(len(args[1].texts)) or describe(*args)
    )
    neardup.dedup(
        days, against=address, output=tmp_path / "out", resume=True, batch_rows=9, on_error="skip"
    )
    assert 40 < sum(described) <= 130 - 6 * 9


@pytest.mark.filterwarnings("ignore:.*rejected")
def test_a_run_whose_index_has_changed_since_begins_again(make, tmp_path, monkeypatch):
    address = make(table("d", make_texts(5, 120)))
    days = two_days(tmp_path)
    interrupted(monkeypatch, days, address, tmp_path / "out", after=7, batch_rows=9)
    with Index.open(address) as index:
        index.add(make_texts(6, 120)[1], id="other")
    options = {"resume": True, "batch_rows": 9, "on_error": "skip"}
    found = neardup.dedup(days, against=address, output=tmp_path / "out", **options)
    assert "has changed since the run was interrupted" in found.report["warnings"][0]
    assert found.removed["kept_id"].to_pylist().count("other") >= 1
    assert (
        found.mask.tolist() == neardup.dedup(days, against=address, on_error="skip").mask.tolist()
    )


GROWING = """
import json, random, sys
import neardup
count = int(sys.argv[2])
with open(sys.argv[3] + ".jsonl", "w") as file:
    for n in range(count):
        file.write(json.dumps({"id": str(n), "text": random.Random(n).randbytes(1500).hex(" ", 4)}) + "\\n")
result = neardup.dedup(file.name, against=sys.argv[1], update=True, output=sys.argv[3], write="removed", threads=1)
print(result.report["source_bytes"], result.report["peak_memory_bytes"])
"""  # noqa: E501


@pytest.mark.slow
def test_the_memory_of_a_run_does_not_grow_with_its_texts(tmp_path):
    # Caches of bounded size, such as SQLite's, are full from 60,000 documents on. Alike runs differ
    # by 50 MB, and the first one may compile kernels.
    peaks = []
    for number, count in enumerate((60_000, 60_000, 160_000, 160_000)):
        address = str(tmp_path / f"{number}.index")
        folder = str(tmp_path / f"{number}")
        Index.create(address, storage="text").close()
        command = [sys.executable, "-c", GROWING, address, str(count), folder]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        peaks.append([int(word) for word in done.stdout.split()])
    (few_bytes, few) = min(peaks[:2])
    (many_bytes, many) = min(peaks[2:])
    assert many_bytes > few_bytes + (250 << 20)
    # In memory, each text takes more than itself.
    assert many - few < (many_bytes - few_bytes) // 2, peaks
