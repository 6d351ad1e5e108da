"""An index counts the documents that each kept one removed, as one run over all of them does."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pytest

import neardup
from neardup import Index, MinHash, SimHash

WORDS = "abcdefgh"
METHODS = {
    "minhash": MinHash(
        ngram=2, threshold=0.5, num_bands=64, rows_per_band=1
    ),  # misses a pair in 2e-20
    "simhash": SimHash(ngram=1, max_distance=12, confirm="hamming"),
}
FEW = range(6)
MANY = range(6, 300)


def made_up(draw: random.Random) -> pa.Table:
    """Return documents whose texts often differ in a word or two, or in nothing."""
    texts: list[list[str]] = []
    for _ in range(draw.randint(1, 24)):
        words = (
            list(draw.choice(texts))
            if texts and draw.random() < 0.8
            else draw.choices(WORDS, k=draw.randint(0, 9))
        )
        for _ in range(draw.randint(0, 2) if words else 0):
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        texts.append(words)
    return pa.table(
        {"id": [f"d{n}" for n in range(len(texts))], "text": [" ".join(words) for words in texts]}
    )


def counts_of(index: Index) -> dict[str, int | None]:
    rows = pa.concat_tables(index.documents()).select(["id", "duplicates"]).to_pylist()
    return {row["id"]: row["duplicates"] for row in rows}


def counts_at_once(table: pa.Table, method: MinHash | SimHash) -> dict[str, int | None]:
    """Count in the rows of removed.parquet."""
    removed = neardup.dedup(table, method=method).removed
    gone = removed["id"].to_pylist()
    keepers = removed["kept_id"].to_pylist()
    return {id: None if id in gone else keepers.count(id) for id in table["id"].to_pylist()}


def check(seed: int, name: str) -> None:
    draw = random.Random(seed)
    table = made_up(draw)
    method = METHODS[name]
    cuts = sorted(draw.choices(range(len(table) + 1), k=draw.randint(0, 5)))
    with Index.create("memory:", method=method) as index:
        for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
            index.add_many_if_new(table.slice(begin, end - begin))
            if draw.random() < 0.3:  # sent again, which does not count
                index.add_many_if_new(table.slice(0, end))
            if draw.random() < 0.3:
                index.compact()
        assert counts_of(index) == counts_at_once(table, method)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_the_counts_are_those_of_one_run_after_any_split(name: str) -> None:
    for seed in FEW:
        check(seed, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_the_counts_of_hundreds_of_splits_are_those_of_one_run(name: str) -> None:
    for seed in MANY:
        check(seed, name)


def test_the_counts_are_those_of_annotated_files(make, tmp_path: Path) -> None:
    table = made_up(random.Random(5))
    neardup.dedup(table, method=METHODS["minhash"], output=tmp_path / "out", write="annotated")
    (file,) = (tmp_path / "out" / "annotated").iterdir()
    annotated = pq.read_table(file).select(["id", "duplicates"])
    index = make(method=METHODS["minhash"])
    for begin in range(0, len(table), 5):
        index.add_many_if_new(table.slice(begin, 5))
    assert sum(count or 0 for count in annotated["duplicates"].to_pylist()) > 3
    assert (
        pa.concat_tables(index.documents()).select(["id", "duplicates"]).to_pylist()
        == annotated.to_pylist()
    )
    for suffix in ("parquet", "jsonl", "csv"):
        index.export(tmp_path / f"all.{suffix}")
    assert pq.read_table(tmp_path / "all.parquet")["duplicates"].equals(annotated["duplicates"])
    exported = [pa_csv.read_csv(tmp_path / "all.csv"), pa_json.read_json(tmp_path / "all.jsonl")]
    assert all(
        rows["duplicates"].to_pylist() == annotated["duplicates"].to_pylist() for rows in exported
    )


def test_forgotten_documents_no_longer_count(make) -> None:
    text = "a text of some words that comes again and again"
    index = make()
    index.add_many_if_new(pa.table({"id": list("abcd"), "text": [text] * 4}))
    assert counts_of(index) == {"a": 3, "b": None, "c": None, "d": None}
    index.remove("c")
    assert counts_of(index) == {"a": 2, "b": None, "d": None}
    index.remove("a")
    index.add_many_if_new(pa.table({"id": ["e"], "text": [text]}))
    index.compact()
    kept = counts_of(index)
    assert {id: count for id, count in kept.items() if count is not None} == {"e": 0}


def test_an_empty_index_exports_the_column_too(make, tmp_path: Path) -> None:
    make().export(tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").schema.field("duplicates").type == pa.int64()
