"""Check that runs killed at any moment resume to the answer of an uninterrupted run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.runs.directory import OutputDirectory
from reference.made_up import corpus, texts

pytestmark = pytest.mark.slow

MINHASH = "MinHash(threshold=0.6)"
SIMHASH = "SimHash(max_distance=12, confirm='hamming')"
CONFIRMED = "SimHash(max_distance=14, confirm='jaccard', threshold=0.6)"
TFIDF = "SimHash(max_distance=12, weights='tfidf', confirm='hamming')"


def made(method: str) -> neardup.MinHash | neardup.SimHash:
    return eval(f"neardup.{method}")


METHOD = made(MINHASH)


_KILLED_RUN = """
import os, signal, sys
import neardup
class Killer:
    seen = 0
    def begin(self, stage, total): pass
    def end(self, stage, seconds): pass
    def advance(self, documents, num_bytes):
        Killer.seen += documents
        if Killer.seen >= int(sys.argv[3]): os.kill(os.getpid(), signal.SIGKILL)
neardup.dedup(sys.argv[1], method=eval("neardup." + sys.argv[5]), output=sys.argv[2], batch_rows=3, threads=2,
              resume=sys.argv[4] == "resume", progress=Killer())
"""  # noqa: E501


def kill_a_run(
    source: Path, out: Path, after: int, attempt: str = "anew", method: str = MINHASH
) -> None:
    """Start a run in a process of its own, which dies once so many documents went through its
    stages.
    """
    run = subprocess.run(
        [sys.executable, "-c", _KILLED_RUN, str(source), str(out), str(after), attempt, method],
        check=False,
    )
    assert run.returncode == -signal.SIGKILL
    assert not out.exists()
    assert out.with_name(f"{out.name}.partial").exists()


@pytest.mark.parametrize(
    ("killed_after", "method"),
    [
        (700, MINHASH),
        *(
            pytest.param(after, method, marks=pytest.mark.slow)
            for after in (100, 700, 1500)
            for method in (MINHASH, SIMHASH, CONFIRMED)
        ),
    ],
)
def test_a_killed_run_resumes_to_the_same_answer(
    tmp_path: Path, killed_after: int, method: str
) -> None:
    # 900 documents in batches of 3: a checkpoint every 64 batches; later kills fall into the stages
    # after reading.
    source = corpus(tmp_path / "in.parquet", 900)
    expected = neardup.dedup(source, method=made(method))
    assert expected.removed.num_rows > 50
    out = tmp_path / "out"
    kill_a_run(source, out, killed_after, "anew", method)
    kill_a_run(source, out, 200, "resume", method)
    resumed = neardup.dedup(source, method=made(method), output=out, resume=True)
    assert resumed.removed.equals(expected.removed)
    assert resumed.kept.equals(expected.kept)
    assert resumed.report["counts"] == expected.report["counts"]
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.slow
@pytest.mark.parametrize("killed_after", [100, 1600, 2500])
def test_a_killed_run_counts_the_words_of_its_corpus_once(
    tmp_path: Path, killed_after: int
) -> None:
    # 900 documents are counted first, then read, then sorted and compared.
    source = corpus(tmp_path / "in.parquet", 900)
    expected = neardup.dedup(source, method=made(TFIDF))
    assert expected.removed.num_rows > 50
    out = tmp_path / "out"
    table = tmp_path / "out.partial" / "scratch" / "idf.parquet"
    kill_a_run(source, out, killed_after, "anew", TFIDF)
    assert table.exists() == (killed_after > 900)
    kill_a_run(source, out, 1000, "resume", TFIDF)
    first = table.stat()
    kill_a_run(source, out, 200, "resume", TFIDF)
    assert (table.stat().st_ino, table.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    resumed = neardup.dedup(source, method=made(TFIDF), output=out, resume=True)
    assert resumed.removed.equals(expected.removed)
    assert resumed.kept.equals(expected.kept)
    assert sorted(os.listdir(out)) == [
        "kept",
        "rejected.jsonl",
        "removed.parquet",
        "report.html",
        "report.json",
    ]


@pytest.mark.slow
def test_rejected_rows_are_listed_once_after_a_resume(tmp_path: Path) -> None:
    lines = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(texts(900))]
    for bad in (5, 450, 451, 899):
        lines[bad] = '{"id": '
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(lines) + "\n")
    out = tmp_path / "out"
    kill_a_run(source, out, 700)
    result = neardup.dedup(source, method=METHOD, output=out, resume=True)
    rejected = [json.loads(line) for line in (out / "rejected.jsonl").read_text().splitlines()]
    assert [row["line"] for row in rejected] == [6, 451, 452, 900]
    assert result.report["counts"]["rejected"] == 4
    assert result.report["counts"]["read"] == 896


@pytest.mark.parametrize(
    ("method", "other"),
    [
        (MINHASH, "MinHash()"),
        *(
            pytest.param(*both, marks=pytest.mark.slow)
            for both in (
                (SIMHASH, "SimHash(max_distance=11)"),
                (SIMHASH, TFIDF),
                (SIMHASH, "SimHash(max_distance=12, bits=128)"),
                (CONFIRMED, SIMHASH),
                (SIMHASH, MINHASH),
            )
        ),
    ],
)
def test_a_run_is_not_resumed_with_other_settings(tmp_path: Path, method: str, other: str) -> None:
    source = corpus(tmp_path / "in.parquet", 900)
    kill_a_run(source, tmp_path / "out", 700, "anew", method)
    with pytest.raises(neardup.errors.ResumeError, match=r"a different run: it had .*now"):
        neardup.dedup(source, method=made(other), output=tmp_path / "out", resume=True)


@pytest.mark.slow
def test_a_run_is_not_resumed_with_another_table_in_the_place_of_the_first(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.parquet", 900)
    table = tmp_path / "idf.parquet"
    neardup.document_frequencies(texts(100)).save(table)
    method = f"SimHash(weights='tfidf', idf={str(table)!r})"
    kill_a_run(source, tmp_path / "out", 700, "anew", method)
    neardup.document_frequencies(texts(99)).save(table)
    with pytest.raises(neardup.errors.ResumeError, match=r"a different run: it had .*now"):
        neardup.dedup(source, method=made(method), output=tmp_path / "out", resume=True)


@pytest.mark.slow
def test_an_input_that_changed_is_not_resumed(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.parquet", 900)
    kill_a_run(source, tmp_path / "out", 700)
    corpus(source, 901)
    with pytest.raises(neardup.errors.ResumeError, match="it had other inputs"):
        neardup.dedup(source, method=METHOD, output=tmp_path / "out", resume=True)


_TIMED_RUN = """
import signal, sys
import neardup
class Timer:
    def begin(self, stage, total):
        if stage == sys.argv[3]: signal.setitimer(signal.ITIMER_REAL, float(sys.argv[4]))
    def advance(self, documents, num_bytes): pass
    def end(self, stage, seconds): pass
neardup.dedup(sys.argv[1], method=eval("neardup." + sys.argv[5]), output=sys.argv[2], threads=2,
              resume=sys.argv[6] == "resume", progress=Timer())
"""


@pytest.mark.parametrize("first_left", ["checkpoint.json", "run.json", "keys-6"])
def test_a_run_that_is_killed_while_it_deletes_its_scratch_files_is_repeated(
    tmp_path: Path, monkeypatch, first_left: str
) -> None:
    """All files are deleted but those of `left`, in whichever order the system lists them."""
    source = corpus(tmp_path / "in.parquet", 900)
    out = tmp_path / "out"
    kill_a_run(source, out, 700)
    files = ["checkpoint.json", "run.json", "keys-6"]
    left = files[files.index(first_left) :]
    unlink = Path.unlink

    def kill(path: Path, missing_ok: bool = False) -> None:
        if path.name in left:
            time.sleep(0.2)  # the files that are deleted beside it are gone
            raise SystemExit("killed")
        unlink(path, missing_ok=missing_ok)

    folder = OutputDirectory(out, overwrite=False, resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", kill)
        with pytest.raises(SystemExit):
            folder.clear()
    folder.unlock()
    expected = neardup.dedup(source, method=METHOD)
    resumed = neardup.dedup(source, method=METHOD, output=out, resume=True)
    assert resumed.removed.equals(expected.removed)
    assert not (tmp_path / "out.partial").exists()


def long_texts(path: Path) -> Path:
    """Write 40 texts of 20,000 words, all but the first of each eight near-duplicates of it: sets
    take long to sort.
    """
    rng = np.random.default_rng(5)
    rows = []
    for number in range(40):
        if number % 8 == 0:
            words = rng.integers(0, 1_000_000, 20_000)
        else:
            words[rng.integers(0, 20_000, 40)] = rng.integers(0, 1_000_000, 40)
        rows.append(" ".join(map(str, words.tolist())))
    pq.write_table(
        pa.table({"id": [f"doc-{n}" for n in range(40)], "text": rows}), path, row_group_size=10
    )
    return path


PAGES = "MinHash(tokens='tags', ngram=2, similarity='cosine', boost_rare=True, threshold=0.6)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "kills"),
    [
        ("sort", 2),
        *(
            pytest.param(stage, 8, marks=pytest.mark.slow)
            for stage in ("read", "propose", "sort", "confirm", "write", "report")
        ),
    ],
)
def test_a_run_killed_at_any_moment_of_a_stage_resumes_to_the_same_answer(
    tmp_path: Path, stage: str, kills: int
) -> None:
    """A timer ends the process at any point, also while it writes the set of a document."""
    source = long_texts(tmp_path / "in.parquet")
    out = tmp_path / "out"
    method = "MinHash(threshold=0.9)"
    expected = neardup.dedup(source, method=made(method), output=tmp_path / "expected")
    assert expected.removed.num_rows >= 25
    seconds = {row["stage"]: row["seconds"] for row in expected.report["timings"]}[stage]
    rng = np.random.default_rng(7)
    killed = 0
    for attempt in range(kills):
        delay = max(1e-4, float(rng.uniform(0, seconds)))
        arguments = [str(source), str(out), stage, str(delay), method]
        for again in ("anew", "resume")[: 1 + attempt % 2]:
            run = subprocess.run([sys.executable, "-c", _TIMED_RUN, *arguments, again], check=False)
            killed += run.returncode == -signal.SIGALRM
            if run.returncode == 0:
                break
        resumed = neardup.dedup(
            source, method=made(method), output=out, overwrite=True, resume=True
        )
        assert resumed.removed.equals(expected.removed)
        assert (out / "removed.parquet").read_bytes() == (
            tmp_path / "expected" / "removed.parquet"
        ).read_bytes()
        assert resumed.report["counts"] == expected.report["counts"]
        shutil.rmtree(out)
    assert killed >= kills // 3
