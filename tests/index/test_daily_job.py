"""A job that updates an index each day: whatever it is repeated after, it writes the same
output.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup import Index, MinHash
from neardup.errors import InputError, OutputError, StoreError
from reference.index_cases import make_texts

pytestmark = pytest.mark.slow

METHOD = MinHash(threshold=0.5, ngram=2)


def day(seed: int, count: int = 60) -> list[dict]:
    """Return the documents of a day: near-duplicates and copies of those of other days, some under
    their ids.
    """
    draw = random.Random(seed)
    pages = {
        f"page-{draw.randrange(90)}": text
        for text in draw.sample(make_texts(1, 150) + make_texts(seed, 50), count)
    }
    rows = [{"id": id, "text": text} for id, text in pages.items()]
    return [*rows, *draw.sample(rows, 5)]  # some are there twice


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def output_of(folder: Path) -> tuple[bytes, list[dict]]:
    """Return the kept file, and the removed documents but for the number of their cluster."""
    (kept,) = (folder / "kept").iterdir()
    return kept.read_bytes(), pq.read_table(folder / "removed.parquet").to_pylist()


def contents_of(index: Index) -> list[tuple]:
    return sorted(
        (row["id"], row["kept"], row["kept_id"])
        for part in index.documents()
        for row in part.to_pylist()
    )


def update(source: Path, index: Index | Path, folder: Path, **options) -> neardup.Deduplication:
    return neardup.dedup(source, against=index, update=True, output=folder, **options)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))]
)
def test_a_job_that_is_repeated_writes_the_same_output(seed, tmp_path):
    with Index.create("memory:", method=METHOD) as index:
        for number in range(4):  # the last one fills in a day that was left out
            source = write(
                tmp_path / f"{number}.jsonl", day(10 * seed + (5 - number if number < 3 else 9))
            )
            first = update(source, index, tmp_path / f"{number}")
            expected = output_of(tmp_path / f"{number}")
            stored = contents_of(index)
            assert first.report["counts"]["repeated"] >= 5
            assert 5 < first.report["counts"]["kept"] < 60
            for _ in range(2):
                again = update(source, index, tmp_path / f"{number}", overwrite=True)
                assert output_of(tmp_path / f"{number}") == expected
                assert contents_of(index) == stored
            assert again.report["counts"]["repeated"] == again.report["counts"]["read"]


def test_a_run_decides_as_its_documents_would_one_by_one_but_drops_what_it_has_twice(tmp_path):
    rows = day(3)
    with (
        Index.create("memory:", method=METHOD) as index,
        Index.create("memory:", method=METHOD) as twin,
    ):
        for each in (index, twin):
            each.add_many(pa.Table.from_pylist(day(4)[:60]))
        result = update(write(tmp_path / "in.jsonl", rows), index, tmp_path / "out")
        answers = [twin.add_if_new(row["text"], id=row["id"]) for row in rows]
        ids = [row["id"] for row in rows]
        assert result.mask.tolist() == [
            answer.kept and (number == ids.index(answer.id) or not row["text"])
            for number, (row, answer) in enumerate(zip(rows, answers, strict=True))
        ]
        assert contents_of(index) == contents_of(twin)


def test_documents_without_ids_cannot_update_an_index(tmp_path):
    with Index.create("memory:", method=METHOD) as index:
        with pytest.raises(InputError, match=r"needs the ids of its documents.*id_column, or"):
            update(["one two three four"], index, tmp_path / "out")
        assert len(index) == 0
        assert not (tmp_path / "out").exists()


def test_an_id_with_two_texts_cannot_update_an_index(tmp_path):
    source = write(
        tmp_path / "in.jsonl",
        [{"id": "1", "text": text} for text in ("one two three", "four five six")],
    )
    with Index.create("memory:", method=METHOD) as index:
        index.add("seven eight nine", id="1")
        with pytest.raises(InputError, match="The id '1' belongs to two documents of the run"):
            update(source, index, tmp_path / "out")
        assert index.query("seven eight nine")
        assert not (tmp_path / "out").exists()
        assert neardup.dedup(source, against=index).mask.tolist() == [
            True,
            True,
        ]  # without an update, both are read


# What the report and the error of an update that fails promise.


def test_an_update_that_fails_leaves_a_complete_output_that_says_so(tmp_path, monkeypatch):
    source = write(tmp_path / "in.jsonl", day(1))
    with Index.create("memory:", method=METHOD) as index:

        def fail(*_):
            raise StoreError("The disk is full. Free some space.")

        with monkeypatch.context() as patch:
            patch.setattr(index.opened.store, "_write_all", fail)
            with pytest.raises(
                StoreError,
                match=(
                    r"out is complete, but the index was not updated\. The disk is "
                    r"full.*overwrite=True"
                ),
            ):
                update(source, index, tmp_path / "out")
        assert json.loads((tmp_path / "out" / "report.json").read_text())["updated"] is False
        assert len(index) == 0
        expected = output_of(tmp_path / "out")
        with pytest.raises(OutputError, match="overwrite"):
            update(source, index, tmp_path / "out")
        result = update(source, index, tmp_path / "out", overwrite=True)
        assert output_of(tmp_path / "out") == expected
        assert json.loads((tmp_path / "out" / "report.json").read_text()) == result.report
        assert result.report["updated"] is True


# Kills.

KILLED = """
import os, signal, sys
import neardup
from neardup.stores.embedded.store import EmbeddedStore
last, seen = int(sys.argv[4]), 0
def step(event, args):
    global seen
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree", "written"):
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)
write = EmbeddedStore._write_all
def written(*args):
    sys.audit("written")
    write(*args)
    sys.audit("written")
EmbeddedStore._write_all = written
sys.addaudithook(step)
neardup.dedup(sys.argv[1], against=sys.argv[2], update=True, output=sys.argv[3], overwrite=True, threads=1)
print(seen)
"""  # noqa: E501


def run(source: Path, index: Path, out: Path, kill_at: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", KILLED, str(source), str(index), str(out), str(kill_at)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_job_that_is_killed_at_any_step_and_repeated_leaves_the_output_and_the_index_of_one_that_was_not(  # noqa: E501
    tmp_path,
):
    address = tmp_path / "news.index"
    out = tmp_path / "out"
    with Index.create(tmp_path / "old.index", method=METHOD) as index:
        update(write(tmp_path / "0.jsonl", day(0)), index, tmp_path / "0")
    source = write(tmp_path / "1.jsonl", day(1))
    shutil.copytree(tmp_path / "old.index", address)
    whole = run(source, address, out, 0)
    assert whole.returncode == 0, whole.stderr
    expected = output_of(out)
    with Index.open(address, read_only=True) as index:
        stored = contents_of(index)
    states = set()
    for step in range(1, int(whole.stdout) + 1):
        for folder in (address, out, tmp_path / "out.partial"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "old.index", address)
        assert run(source, address, out, step).returncode == -signal.SIGKILL
        is_written = out.exists()
        if is_written:
            assert output_of(out) == expected
        with Index.open(address) as index:
            is_updated = contents_of(index) == stored
            assert is_written or not is_updated  # the output comes first
            states.add((is_written, is_updated))
            if is_written and json.loads((out / "report.json").read_text())["updated"]:
                assert is_updated
            update(source, index, out, overwrite=True, resume=step % 2 == 1)
            assert output_of(out) == expected
            assert contents_of(index) == stored
            assert index.verify() == []
            assert not (tmp_path / "out.partial").exists()
    assert states == {(False, False), (True, False), (True, True)}
