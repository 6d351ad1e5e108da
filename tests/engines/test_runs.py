"""Check whole runs: the files of the output, a full disk, and bad input."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.methods.registry import method_of
from neardup.runs.directory import OutputDirectory
from neardup.schemas import removed_schema
from reference.made_up import corpus, texts

METHOD = neardup.MinHash(threshold=0.6)


def test_the_output_holds_every_document_once_and_accounts_for_each(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.parquet", 300)
    result = neardup.dedup(source, method=METHOD, output=tmp_path / "out")
    out = tmp_path / "out"
    assert sorted(os.listdir(out)) == [
        "kept",
        "rejected.jsonl",
        "removed.parquet",
        "report.html",
        "report.json",
    ]
    assert (out / "rejected.jsonl").read_text() == ""
    kept = pq.read_table(out / "kept" / "in.parquet")
    removed = pq.read_table(out / "removed.parquet")
    assert kept.schema.names == ["id", "text", "n"]
    assert removed.schema.equals(removed_schema(method_of(METHOD).measures), check_metadata=True)
    assert sorted(kept["n"].to_pylist() + removed["row"].to_pylist()) == list(range(300))
    assert kept["n"].to_pylist() == sorted(kept["n"].to_pylist())
    assert set(removed["kept_id"].to_pylist()) <= set(kept["id"].to_pylist())
    report = json.loads((out / "report.json").read_text())
    assert report["counts"]["kept"] == kept.num_rows
    assert report["counts"]["removed"] == removed.num_rows > 50
    assert result.removed.equals(removed)
    assert result.kept.equals(kept)
    assert not (tmp_path / "out.partial").exists()


def test_new_documents_are_held_against_old_ones_which_stay(tmp_path: Path) -> None:
    old = corpus(tmp_path / "old.parquet", 90)
    table = pq.read_table(old)
    new = pa.table(
        {
            "id": ["n0", "n1", "n2"],
            "text": [table["text"][5].as_py(), "something else entirely", "new"],
        }
    )
    pq.write_table(new, tmp_path / "new.parquet")
    result = neardup.dedup(
        tmp_path / "new.parquet", against=old, output=tmp_path / "out", method=METHOD
    )
    assert result.removed.select(["id", "row", "kept_id", "exact"]).to_pylist() == [
        {"id": "n0", "row": 0, "kept_id": "doc-5", "exact": True}
    ]
    assert os.listdir(tmp_path / "out" / "kept") == ["new.parquet"]
    assert result.report["counts"]["against"] == 90


def test_a_table_and_the_file_it_was_saved_to_are_the_same_setting(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.parquet", 300)
    table = neardup.document_frequencies(texts(100))
    table.save(tmp_path / "idf.parquet")
    results = [
        neardup.dedup(
            source,
            method=neardup.SimHash(weights="tfidf", idf=idf, max_distance=12),
            output=tmp_path / name,
        )
        for name, idf in (("table", table), ("file", str(tmp_path / "idf.parquet")))
    ]
    assert results[0].removed.equals(results[1].removed)
    assert [result.report["scheme"]["idf"] for result in results] == [table.version] * 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of one megabyte."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk takes root")
    yield mount
    gc.collect()  # the error of a future refers to itself, and so to the columns that were mapped
    subprocess.run(["umount", str(mount)], check=True)


def test_a_full_disk_is_a_clear_error_and_leaves_no_half_result(
    tmp_path: Path, small_disk: Path
) -> None:
    source = corpus(tmp_path / "in.parquet", 6000)
    with pytest.raises(
        neardup.errors.OutputError,
        match=r"The disk is full: .*Free some space and run again with resume=True",
    ):
        neardup.dedup(source, output=small_disk / "out")
    assert os.listdir(small_disk) == ["out.partial"]
    assert sorted(os.listdir(small_disk / "out.partial")) == ["lock", "scratch"]


def test_an_output_that_exists_is_refused_and_replaced_only_when_asked(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.parquet", 30)
    out = tmp_path / "out"
    neardup.dedup(source, output=out)
    (out / "kept" / "mark.txt").write_text("old")
    with pytest.raises(neardup.errors.OutputError, match="already exists"):
        neardup.dedup(source, output=out)
    assert (out / "kept" / "mark.txt").exists()
    neardup.dedup(source, output=out, overwrite=True)
    assert not (out / "kept" / "mark.txt").exists()


def test_an_output_that_cannot_be_replaced_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = corpus(tmp_path / "in.parquet", 30)
    with pytest.raises(neardup.errors.OutputError, match=r"is a file\. Use a folder"):
        neardup.dedup(source, output=source)
    out = tmp_path / "mounted"
    out.mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == out)
    with pytest.raises(neardup.errors.OutputError, match="a file system is mounted there"):
        neardup.dedup(source, output=out, overwrite=True)


def test_a_second_run_with_the_output_of_another_is_refused_until_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = corpus(tmp_path / "in.parquet", 60)
    out = tmp_path / "out"

    class Second:
        stages = 0

        def begin(self, stage: str, total_documents: int | None) -> None:
            for resume in (False, True):
                with pytest.raises(
                    neardup.errors.OutputError,
                    match=r"out is being written by .*, in process \d+\. Wait",
                ):
                    neardup.dedup(source, output=out, resume=resume)
            self.stages += 1

        def advance(self, documents: int, num_bytes: int) -> None:
            pass

        def end(self, stage: str, seconds: float) -> None:
            pass

    second = Second()
    neardup.dedup(source, output=out, progress=second)
    assert second.stages > 3
    assert (out / "kept" / "in.parquet").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out"]
    monkeypatch.setattr("neardup.api.removal.dedup_report", lambda *_, **__: 1 / 0)
    for _ in range(2):  # an error ends the run, too
        with pytest.raises(ZeroDivisionError):
            neardup.dedup(source, output=tmp_path / "failed")


class MakesFolder:
    """A progress display that makes a folder of the user's while documents are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, stage: str, total_documents: int | None) -> None:
        if stage == "write":
            self.folder.mkdir()
            (self.folder / "thesis.txt").write_text("mine")

    def advance(self, documents: int, num_bytes: int) -> None:
        pass

    def end(self, stage: str, seconds: float) -> None:
        pass


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_that_appears_during_a_run_is_not_replaced(
    tmp_path: Path, overwrite: bool
) -> None:
    source = corpus(tmp_path / "in.parquet", 60)
    out = tmp_path / "out"
    with pytest.raises(neardup.errors.OutputError, match=r"already exists|is not replaced"):
        neardup.dedup(source, output=out, progress=MakesFolder(out), overwrite=overwrite)
    assert (out / "thesis.txt").read_text() == "mine"
    (out / "thesis.txt").unlink()
    out.rmdir()
    assert neardup.dedup(source, output=out, resume=True).report["counts"]["read"] == 60


def test_an_output_inside_the_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    corpus(tmp_path / "data" / "in.parquet", 3)
    with pytest.raises(neardup.errors.OutputError, match="overlap"):
        neardup.dedup(tmp_path / "data", output=tmp_path / "data" / "out")
    assert os.listdir(tmp_path / "data") == ["in.parquet"]


def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.parquet", 3)
    (tmp_path / "file").write_text("")
    with pytest.raises(neardup.errors.OutputError, match="cannot be written"):
        neardup.dedup(source, output=tmp_path / "file" / "out")


def test_ids_that_repeat_are_told_apart(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"key": ["a", "b", "a"], "text": ["one", "two", "three"]}), tmp_path / "in.parquet"
    )
    with pytest.raises(neardup.InputError, match=r"id 'a' .* rows? 0 .* 2"):
        neardup.dedup(tmp_path / "in.parquet", id_column="key")
    pq.write_table(
        pa.table({"id": ["a", "b", "a"], "text": ["one", "two", "three"]}),
        tmp_path / "guessed.parquet",
    )
    result = neardup.dedup(tmp_path / "guessed.parquet")
    assert any("'a'" in warning for warning in result.report["warnings"])


class Counter:
    """Counts the documents that a run has described."""

    documents = 0

    def begin(self, stage: str, total_documents: int | None) -> None: ...

    def advance(self, documents: int, num_bytes: int) -> None:
        self.documents += documents

    def end(self, stage: str, seconds: float) -> None: ...


def test_pairs_name_documents_by_ids_that_must_differ() -> None:
    table = pa.table({"id": ["a", "a"], "text": ["one two three four five"] * 2})
    [warning] = neardup.find_pairs(table).report["warnings"]
    assert "The id 'a' belongs to two documents, row 0 of source and row 1 of source." in warning
    assert "Pairs name documents by id alone." in warning
    with pytest.raises(neardup.InputError, match="Ids in the column 'id' must differ"):
        neardup.find_pairs(table, id_column="id")


def test_ids_that_repeat_end_a_run_before_all_is_read() -> None:
    parts = [
        pa.table({"key": [f"{part}-{row}" for row in range(500)], "text": ["a b"] * 500})
        for part in range(100)
    ]
    parts[7] = parts[7].set_column(0, "key", [["3-499", *parts[7]["key"].to_pylist()[1:]]])
    counter = Counter()
    with pytest.raises(
        neardup.InputError, match=r"'3-499' .* row 1999 of source and row 3500 of source\. Ids in"
    ):
        neardup.dedup(pa.concat_tables(parts), id_column="key", progress=counter, threads=1)
    assert counter.documents < 25_000
    neardup.find_pairs(pa.concat_tables(parts[6:9]), id_column="key")


def test_the_run_stops_at_the_first_bad_document_when_asked(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "one"}\n{"text": \n')
    with pytest.raises(neardup.InputError, match=r"in\.jsonl, .*line 2.*on_error='stop'"):
        neardup.dedup(tmp_path / "in.jsonl", on_error="stop", output=tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["in.jsonl"]


def test_a_tokenizer_of_ones_own_is_used(tmp_path: Path) -> None:
    method = neardup.MinHash(tokens=lambda text: text.split("|"), ngram=1, threshold=0.5)
    result = neardup.dedup(["a b|c", "A B|C", "a|b|c"], method=method)
    assert result.removed["id"].to_pylist() == ["1"]


@pytest.mark.slow
def test_memory_grows_by_at_most_64_bytes_a_document(tmp_path: Path) -> None:
    peaks = {}
    for count in (300_000, 2_400_000):
        path = tmp_path / f"{count}.parquet"
        rng = np.random.default_rng(1)
        with pq.ParquetWriter(
            path, pa.schema([("id", pa.string()), ("text", pa.string())])
        ) as writer:
            for start in range(0, count, 50_000):
                numbers = rng.integers(0, 1000, (50_000, 20))
                numbers[1::3] = numbers[::3][: len(numbers[1::3])]  # a third has a near-duplicate
                numbers[1::3, 0] = 1000
                rows = [" ".join(map(str, row)) for row in numbers.tolist()]
                ids = [str(start + i) for i in range(50_000)]
                writer.write_table(pa.table({"id": ids, "text": rows}))
        command = [
            sys.executable,
            "-m",
            "neardup",
            "dedup",
            str(path),
            "-o",
            str(tmp_path / f"out-{count}"),
        ]
        # The row groups of kept files that are encoded at a time take memory for their own size,
        # not for each document.
        command += ["--cache-bytes", "0", "--write", "removed"]
        # of which the least counts: batches that wait for another thread take some memory too
        runs = [
            subprocess.run([*command, "--json", "--overwrite"], capture_output=True, check=True)
            for _ in range(2)
        ]
        peaks[count] = min(json.loads(run.stdout)["peak_memory_bytes"] for run in runs)
    assert (peaks[2_400_000] - peaks[300_000]) / 2_100_000 <= 64, peaks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "words"), [(1_200_000, 30), (150, 200_000)], ids=["short texts", "long texts"]
)
def test_a_run_takes_no_more_memory_than_planned(tmp_path: Path, count: int, words: int) -> None:
    """The documents are cached, which takes most of the memory."""
    rng = np.random.default_rng(1)
    with open(tmp_path / "in.jsonl", "w") as file:
        for number in range(count):
            text = " ".join(map(str, rng.integers(0, 100_000, words).tolist()))
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    command = [sys.executable, "-m", "neardup", "dedup", "in.jsonl", "-o", "out", "--json"]
    run = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout)
    plan = neardup.plan(documents=count, document_bytes=run["bytes"] / count)
    assert plan.cache_bytes > run["bytes"]
    assert run["peak_memory_bytes"] <= plan.memory_bytes
    assert run["peak_memory_bytes"] > plan.memory_bytes - plan.cache_bytes


@pytest.mark.slow
@pytest.mark.parametrize("threads", [8, 32])
def test_more_threads_take_no_more_memory_than_planned(tmp_path: Path, threads: int) -> None:
    rng = np.random.default_rng(1)
    paragraphs = [" ".join(map(str, rng.integers(0, 100_000, 100).tolist())) for _ in range(3000)]
    count = 100_000
    with open(tmp_path / "in.jsonl", "w") as file:
        for number, drawn in enumerate(rng.integers(0, len(paragraphs), (count, 8)).tolist()):
            text = " ".join(paragraphs[place] for place in drawn)
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    command = [
        sys.executable,
        "-m",
        "neardup",
        "dedup",
        "in.jsonl",
        "-o",
        "out",
        "--json",
        "--cache-bytes",
        "0",
    ]
    command += ["--threads", str(threads)]
    runs = [
        json.loads(
            subprocess.run(
                [*command, "--overwrite"], cwd=tmp_path, capture_output=True, check=True
            ).stdout
        )
        for _ in range(3)
    ]
    # How threads meet differs from run to run, by a tenth.
    peak = statistics.median(run["peak_memory_bytes"] for run in runs)
    plan = neardup.plan(documents=count, document_bytes=runs[0]["bytes"] / count, threads=threads)
    assert peak <= plan.memory_bytes - plan.cache_bytes < runs[0]["bytes"] + 2.2e9


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(
        neardup.InputError, match="right text contains a lone surrogate at position 1"
    ):
        neardup.compare("a", "b\ud800")


def test_a_recall_sample_of_containment_is_refused_as_nothing_would_be_measured() -> None:
    with pytest.raises(
        neardup.SettingError, match="recall_sample measures the recall of Jaccard similarity"
    ):
        neardup.dedup(
            ["a", "b"], method=neardup.MinHash(similarity="containment"), recall_sample=10
        )


def test_bands_are_refused_where_samples_propose() -> None:
    with pytest.raises(
        neardup.SettingError, match="Containment finds pairs by samples and has no bands"
    ):
        neardup.MinHash(similarity="containment", num_bands=4, rows_per_band=4)


def test_a_misspelt_path_among_others_is_no_text(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.parquet", 3)
    with pytest.raises(neardup.InputError, match=r"missing\.parquet"):
        neardup.dedup([str(source), "missing.parquet"])


_FEW_FILES = """
import resource
import neardup
from neardup.runs.directory import OutputDirectory
resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
texts = [f"a text of words and the number {number} and {number * 7919}" for number in range(40)]
result = neardup.dedup([*texts, texts[3]], method=neardup.MinHash(num_bands=400, rows_per_band=5))
print(result.report["counts"]["kept"])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_search_with_more_bands_than_a_process_may_open_files_raises_the_limit():
    ended = subprocess.run([sys.executable, "-c", _FEW_FILES], capture_output=True, text=True)
    assert ended.stdout.split() == ["40"], ended.stderr


def test_a_second_run_into_one_output_is_told_to_wait_and_not_about_permissions(
    tmp_path: Path,
) -> None:
    first = OutputDirectory(tmp_path / "out", overwrite=False, resume=False)
    with pytest.raises(neardup.errors.OutputError) as raised:
        neardup.dedup(["a b c"], output=tmp_path / "out")
    assert str(raised.value) == (
        f"The output {tmp_path / 'out'} is being written by another run, in process {os.getpid()}. "
        "Wait until it ends, or use another folder. If it has ended, on a machine that was lost, "
        f"delete {tmp_path / 'out.partial'}."
    )
    first.discard()


def test_a_kept_file_that_does_not_fit_on_the_disk_is_told_to_free_space(
    tmp_path: Path, small_disk: Path
) -> None:
    source = corpus(tmp_path / "in.parquet", 6000)
    with pytest.raises(
        neardup.errors.OutputError, match=r"No space left on device\. Free some space"
    ) as raised:
        neardup.sign(source, output=small_disk / "signed.jsonl")
    assert "permission" not in str(raised.value)
    assert os.listdir(small_disk) == []


@pytest.mark.parametrize("damaged", ["", '{"version": "0', "[1, 2"])
@pytest.mark.parametrize("name", ["run.json", "checkpoint.json"])
def test_a_damaged_record_of_an_interrupted_run_says_to_start_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damaged: str
) -> None:
    source = corpus(tmp_path / "in.parquet", 30)
    with monkeypatch.context() as patch:
        patch.setattr("neardup.output.job.Job._write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            neardup.dedup(source, output=tmp_path / "out")
    (tmp_path / "out.partial" / "scratch" / name).write_text(damaged)
    with pytest.raises(
        neardup.errors.ResumeError,
        match=rf"{name} of the interrupted run is damaged: .*start again",
    ):
        neardup.dedup(source, output=tmp_path / "out", resume=True)
    assert neardup.dedup(source, output=tmp_path / "out").report["counts"]["read"] == 30


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt
