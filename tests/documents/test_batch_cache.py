"""Documents stay in memory between the passes of a run if they fit; that changes no result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.documents.batch import DocumentBatch, Entry, Rejected, bytes_of
from neardup.documents.batch_cache import BatchCache
from reference.made_up import corpus, texts

METHOD = neardup.MinHash(threshold=0.6)
ROW = Rejected("in.jsonl", 1, 2, 0, "no JSON")


class Part:
    """Three batches of ten bytes, the second after a rejected row, and how often they were
    decoded.
    """

    def __init__(self) -> None:
        self.num_reads = 0

    def read(self) -> Iterator[Entry]:
        self.num_reads += 1
        for first in range(3):
            if first == 1:
                yield ROW
            yield DocumentBatch(pa.array(["0123456789"], pa.large_string()), np.array([first]))


def read(cache: BatchCache, part: Part) -> Iterable[Entry]:
    return cache.stored("part") or cache.store("part", part.read())


def rows_of(cache: BatchCache, part: Part) -> list[int | Rejected]:
    return [
        entry if isinstance(entry, Rejected) else int(entry.rows[0]) for entry in read(cache, part)
    ]


def test_documents_that_fit_are_decoded_once_and_rejected_rows_are_reported_each_time() -> None:
    cache = BatchCache(1 << 20, with_payload=False)
    part = Part()
    assert [rows_of(cache, part) for _ in range(2)] == [[0, ROW, 1, 2]] * 2
    assert part.num_reads == 1


def test_documents_that_do_not_fit_are_decoded_each_time() -> None:
    # a batch and its objects
    cache = BatchCache(5000, with_payload=False)
    part = Part()
    assert [rows_of(cache, part) for _ in range(2)] == [[0, ROW, 1, 2]] * 2
    assert part.num_reads == 2


def test_a_part_that_was_not_read_to_its_end_is_decoded_again() -> None:
    cache = BatchCache(1 << 20, with_payload=False)
    part = Part()
    assert next(iter(read(cache, part))).rows[0] == 0
    assert rows_of(cache, part) == [0, ROW, 1, 2]
    assert part.num_reads == 2


@pytest.mark.parametrize("cache_bytes", [pytest.param(0, marks=pytest.mark.slow), 100_000, None])
def test_the_result_is_the_same_whatever_fits(tmp_path: Path, cache_bytes: int | None) -> None:
    source = corpus(tmp_path / "in.parquet", 600)
    (tmp_path / "more.jsonl").write_text(
        '{"id": "a", "text": "one two"}\n{"text": \n{"id": "b", "text": "ONE two"}\n'
    )
    files = [source, tmp_path / "more.jsonl"]
    expected = neardup.dedup(files, method=METHOD, on_error="skip")
    result = neardup.dedup(
        files, method=METHOD, output=tmp_path / "out", cache_bytes=cache_bytes, on_error="skip"
    )
    assert result.removed.num_rows > 50
    assert result.removed.equals(expected.removed)
    assert result.kept.equals(expected.kept)
    assert result.report["counts"] == expected.report["counts"]
    kept = pa.parquet.read_table(tmp_path / "out" / "kept" / "in.parquet")
    assert kept["id"].to_pylist() == result.kept["id"].to_pylist()[: kept.num_rows]
    assert (
        tmp_path / "out" / "kept" / "more.jsonl"
    ).read_text() == '{"id": "a", "text": "one two"}\n'


def test_a_file_that_changes_before_its_candidates_are_read_again_is_an_error(
    tmp_path: Path,
) -> None:
    source = corpus(tmp_path / "in.parquet", 600)

    class Changer:
        def begin(self, stage: str, total_documents: int | None) -> None:
            if stage == "sort":
                corpus(source, 600, seed=1)

        def advance(self, documents: int, num_bytes: int) -> None: ...

        def end(self, stage: str, seconds: float) -> None: ...

    with pytest.raises(neardup.InputError, match="changed during the run"):
        neardup.dedup(source, method=METHOD, cache_bytes=0, progress=Changer())


def test_containment_chains_and_pairs_compare_the_same_sets(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.parquet", 300)
    table = pa.table({"id": [f"doc-{number}" for number in range(300)], "text": texts(300)})
    for method, linkage in (
        (METHOD, "connected"),
        (neardup.MinHash(similarity="containment"), "sieve"),
    ):
        expected = neardup.dedup(table, method=method, linkage=linkage).removed.drop(
            ["source_file", "kept_source_file"]
        )
        found = neardup.dedup(source, method=method, linkage=linkage, cache_bytes=0).removed
        assert found.drop(["source_file", "kept_source_file"]).equals(expected)


def test_a_column_that_is_the_text_itself_counts_once() -> None:
    text = pa.array(["0123456789"] * 100, pa.large_string())
    other = pa.array(["01234"] * 100, pa.large_string())
    table = pa.RecordBatch.from_arrays([text, other], ["text", "other"])
    batch = DocumentBatch(table.column(0), np.arange(100), payload=table)
    assert bytes_of(batch) == text.nbytes + other.nbytes + batch.rows.nbytes
    copied = DocumentBatch(
        pa.array(text.to_pylist(), pa.large_string()), np.arange(100), payload=table
    )
    assert bytes_of(copied) == bytes_of(batch) + text.nbytes
