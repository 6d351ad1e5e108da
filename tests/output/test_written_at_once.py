"""Kept files are written several at once, and large ones by several threads; their bytes do not
show it.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.documents import sinks
from neardup.errors import InputError, OutputError
from neardup.executor import Encoders, InOrder, open_encoders
from neardup.formats.parquet import parquet_layout
from neardup.output import write
from neardup.output.kept import KeptWriter
from neardup.runs.input_files import list_inputs
from reference.made_up import texts
from reference.warc_files import info, page

pytestmark = pytest.mark.slow

TEXTS = [*texts(300), *texts(40)]
KINDS = ["parquet", "jsonl", "jsonl.gz", "jsonl.zst", "warc", "warc.gz", "html", "csv.gz"]


def make_inputs(folder: Path, kind: str) -> None:
    """Write the texts to four files of a kind, or each of them to a page."""
    folder.mkdir()
    quarters = [TEXTS[start : start + 85] for start in range(0, len(TEXTS), 85)]
    for number, these in enumerate(quarters):
        path = folder / f"{number}.{kind}"
        pages = [f"<html><p>{text}".encode() for text in these]
        if kind == "parquet":
            pq.write_table(pa.table({"text": these}), path, row_group_size=20, compression="zstd")
        elif kind == "html":
            for row, content in enumerate(pages):
                (folder / f"{number}-{row}.html").write_bytes(content)
        elif kind.startswith("warc"):
            records = [
                info(),
                *(page(content, f"http://{row}.test/") for row, content in enumerate(pages)),
            ]
            path.write_bytes(
                b"".join(map(gzip.compress, records) if kind.endswith("gz") else records)
            )
        else:
            lines = [
                json.dumps({"text": text}) if "json" in kind else text.replace(",", "")
                for text in these
            ]
            with sinks.open_compressed(
                str(path), {"gz": "gzip", "zst": "zstd"}.get(kind.split(".")[-1])
            ) as stream:
                stream.write(
                    "".join(
                        f"{line}\n" for line in (lines if "json" in kind else ["text", *lines])
                    ).encode()
                )


class Follower:
    """Counts the documents of each stage."""

    def __init__(self) -> None:
        self.documents: dict[str, int] = {}

    def begin(self, stage: str, total_documents: int | None) -> None:
        self.stage = stage

    def advance(self, documents: int, num_bytes: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        self.documents[self.stage] = self.documents.get(self.stage, 0) + documents

    def end(self, stage: str, seconds: float) -> None:
        pass


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind == "html" else ()) for kind in KINDS]
)
def test_the_files_are_the_same_with_any_number_of_threads(
    tmp_path: Path, monkeypatch, pytestconfig: pytest.Config, kind: str
) -> None:
    monkeypatch.setattr(write, "_LARGE", 1000)  # so that all but the pages are files of their own
    monkeypatch.setattr(sinks, "_BLOCK_BYTES", 4000)
    make_inputs(tmp_path / "in", kind)
    found = []
    for threads in (1, 2, 7, 64) if pytestconfig.getoption("--thorough") else (1, 7):
        out = tmp_path / f"out-{threads}"
        follower = Follower()
        neardup.dedup(str(tmp_path / "in"), output=out, threads=threads, progress=follower)
        assert follower.documents["write"] == len(TEXTS)
        found.append(files_in(out / "kept"))
        num_removed = pq.read_metadata(out / "removed.parquet").num_rows
        assert 40 <= num_removed < 200
        assert len(found[0]) == (len(TEXTS) - num_removed if kind == "html" else 4)
        assert found[-1] == found[0]


def rows(count: int) -> pa.Table:
    kinds = {
        "id": pa.array(range(count), pa.int64()),
        "text": pa.array([f"text {row}, é " * 9 if row % 10 else None for row in range(count)]),
        "lang": pa.array([("en", "fr")[row % 2] for row in range(count)]).dictionary_encode(),
        "tags": pa.array(
            [["a", None] if row % 3 else [] for row in range(count)], pa.list_(pa.string())
        ),
        "place": pa.array([{"x": row / 7, "on": row % 2 == 0} for row in range(count)]),
        "when": pa.array(range(count), pa.timestamp("us", "UTC")),
        **{f"column {number}": pa.array(range(count), pa.int16()) for number in range(20)},
    }
    return pa.table(kinds).replace_schema_metadata({"maker": "a test" * 40})


@pytest.mark.parametrize("count", [0, 1, 90, 91, 2000])
@pytest.mark.parametrize("compression", ["zstd", pytest.param("none", marks=pytest.mark.slow)])
def test_row_groups_encoded_on_threads_are_the_file_that_one_writer_writes(
    tmp_path: Path, count: int, compression: str
) -> None:
    source = tmp_path / "in.parquet"
    one = tmp_path / "one.parquet"
    several = tmp_path / "several.parquet"
    pq.write_table(
        rows(2000), source, row_group_size=90, compression=compression, use_dictionary=["lang"]
    )
    [part] = list_inputs([str(source)])
    for path, threads in ((one, 1), (several, 7)):
        with open_encoders(threads, 1) as encoders:
            sink = part.make_sink()(str(path))
            assert isinstance(sink, sinks.ParallelSink)
            if encoders is not None:
                sink.encode_on(encoders)
            for batch in rows(2000).slice(0, count).to_batches(max_chunksize=37):
                sink.write(batch)
            sink.close()
    assert pq.read_metadata(one).num_row_groups == -(-count // 90)
    assert pq.read_metadata(several).to_dict() == pq.read_metadata(one).to_dict()
    assert several.read_bytes() == one.read_bytes()
    assert pq.read_table(several).equals(pq.read_table(source).slice(0, count), check_metadata=True)
    if count == 2000:
        assert duckdb.sql(f"select sum(id), count(text) from '{several}'").fetchall() == [
            (1999 * 1000, 1800)
        ]
        assert polars.read_parquet(several, columns=["id"])["id"].sum() == 1999 * 1000


@pytest.mark.parametrize("size", [0, 1, (1 << 18) - 1, 1 << 18, 1_000_000])
def test_a_gzip_file_is_one_member_of_nearly_the_size_of_one_stream(
    tmp_path: Path, size: int
) -> None:
    data = " ".join(random.Random(1).choices(TEXTS, k=3000)).encode()[:size]
    stream = sinks.GzipFile(str(tmp_path / "out.gz"))
    for start in range(0, size, 999):
        stream.write(pa.py_buffer(data[start : start + 999]))
    stream.close()
    written = (tmp_path / "out.gz").read_bytes()
    member = zlib.decompressobj(31)
    assert member.decompress(written) == data
    assert member.eof
    assert not member.unused_data
    assert len(written) <= 1.01 * len(zlib.compress(data, 9)) + 32


def test_an_input_that_changes_ends_the_run_and_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    make_inputs(tmp_path / "in", "parquet")
    begin = write.write_kept

    def change_first(*arguments: object, **options: object) -> None:
        for name in ("1", "3"):
            (tmp_path / f"in/{name}.parquet").write_bytes(b"changed")
        begin(*arguments, **options)

    monkeypatch.setattr(write, "write_kept", change_first)
    monkeypatch.setattr(write, "_LARGE", 1000)
    for threads in (1, 2, 7):
        with pytest.raises(InputError, match=r"1\.parquet changed during the run"):
            neardup.dedup(
                str(tmp_path / "in"), output=tmp_path / "out", threads=threads, cache_bytes=0
            )
        assert not (tmp_path / "out").exists()
        assert not [path for path in tmp_path.rglob("*") if "kept" in path.parts]
        for path in (tmp_path / "in").iterdir():
            path.unlink()
        (tmp_path / "in").rmdir()
        make_inputs(tmp_path / "in", "parquet")


def test_the_largest_files_are_begun_first(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "in").mkdir()
    for name, count in (("a", 20), ("b", 3), ("c", 60), ("d", 20)):
        lines = [json.dumps({"text": f"{name} {number}"}) + "\n" for number in range(count)]
        (tmp_path / f"in/{name}.jsonl").write_text("".join(lines))
    monkeypatch.setattr(write, "_LARGE", 10)
    begun = []
    write_parts = write._write_parts

    def begin(parts: list, *arguments: object, **options: object):
        begun.extend(Path(part.task.part.name).stem for part in parts)
        return write_parts(parts, *arguments, **options)

    monkeypatch.setattr(write, "_write_parts", begin)
    neardup.dedup(str(tmp_path / "in"), output=tmp_path / "out", threads=1)
    assert begun == ["c", "a", "d", "b"]  # of equal files, the first one
    names = [Path(name).stem for name in files_in(tmp_path / "out/kept")]
    assert sorted(names) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("method", ["write", "close"])
def test_of_several_errors_that_of_the_largest_file_is_raised(
    tmp_path: Path, monkeypatch, threads, method
) -> None:
    make_inputs(tmp_path / "in", "jsonl")
    failing = [path for path in (tmp_path / "in").iterdir() if path.name != "0.jsonl"]
    largest = max(failing, key=lambda path: path.stat().st_size).name
    monkeypatch.setattr(write, "_LARGE", 1000)
    usual = getattr(sinks.ByteSink, method)

    def fail(self: sinks.ByteSink, *arguments: object) -> None:
        if "0.jsonl" not in self._stream.name:
            raise OSError(28, "No space left on device")
        usual(self, *arguments)

    monkeypatch.setattr(sinks.ByteSink, method, fail)
    with pytest.raises(OutputError, match=rf"{re.escape(largest)}: No space left"):
        neardup.dedup(str(tmp_path / "in"), output=tmp_path / "out", threads=threads)
    assert not list(tmp_path.rglob("*.partial/kept"))
    assert not list(tmp_path.rglob("*.jsonl.partial"))


def test_writers_and_encoders_at_work_are_no_more_than_the_threads() -> None:
    at_work = most = 0
    lock = threading.Lock()

    def job() -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        threading.Event().wait(0.002)
        with lock:
            at_work -= 1

    def write_jobs(encoders: Encoders) -> int:
        taken: list[None] = []
        with encoders:
            jobs = InOrder(taken.append)
            jobs.encoders = encoders
            for _ in range(30):
                jobs.put(job, 1)
            jobs.finish()
        return len(taken)

    with open_encoders(5, 3) as encoders, ThreadPoolExecutor(3) as writers:
        assert encoders is not None
        assert list(writers.map(write_jobs, [encoders] * 3)) == [30] * 3
    assert 2 < most <= 5


def test_no_more_waits_for_a_writer_than_its_bytes() -> None:
    begun = taken = most = 0
    lock = threading.Lock()

    def job() -> int:
        nonlocal begun
        with lock:
            begun += 1
        return begun

    def take(_: int) -> None:
        nonlocal taken, most
        with lock:
            most = max(most, begun - taken)
            taken += 1

    with ThreadPoolExecutor(16) as pool:
        jobs = InOrder(take)
        jobs.encoders = Encoders(pool, 16, 500)
        for _ in range(200):
            jobs.put(job, 100)
        jobs.finish()
    assert taken == 200
    assert most <= 5


def test_a_file_of_one_row_group_has_the_layout_of_its_source(tmp_path: Path) -> None:
    pq.write_table(rows(50), tmp_path / "in.parquet", compression="gzip")
    [part] = list_inputs([str(tmp_path / "in.parquet")])
    with (
        open_encoders(3, 1) as encoders,
        KeptWriter(part, tmp_path / "out", encoders=encoders) as writer,
    ):
        for batch in rows(50).to_batches():
            writer.write(batch, pa.array([True] * 50).to_numpy(zero_copy_only=False))
    [kept] = list_inputs([str(tmp_path / "out")])
    assert parquet_layout(kept).codecs == parquet_layout(part).codecs
