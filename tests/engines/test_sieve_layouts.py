"""Check that the answer depends on the documents, their order and the settings only."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup
from neardup.settings.methods import MinHash
from reference import corpora, runs

pytestmark = pytest.mark.slow

METHOD = MinHash(threshold=0.5, ngram=2, num_bands=16, rows_per_band=2)
REAL = {
    "en_licenses": METHOD,
    "zh_poetry": METHOD,
    "zh_laws": MinHash(threshold=0.7, num_bands=8, rows_per_band=3),
}


def facts_of(result: neardup.Deduplication) -> tuple:
    """Return the facts of a report about the documents, without time and memory."""
    summary = {
        name: result.report[name]
        for name in ("counts", "recall", "bound", "similarities", "cluster_sizes")
    }
    return runs.answer_of(result), summary


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "zh_laws" else pytest.mark.slow)
        for name in sorted(REAL)
    ],
)
def test_threads_and_batches_change_nothing(name, real_texts):
    texts = real_texts(name, 100_000)
    expected = runs.expected(texts, REAL[name])
    answers = [
        facts_of(runs.run(texts, REAL[name], threads=threads, batch_rows=batch_rows))
        for threads in (1, 2)
        for batch_rows in (1, 7, 100, 10_000)
    ]
    assert answers[0][0] == expected
    assert all(answer == answers[0] for answer in answers)


def alike(seed: int, count: int = 500) -> list[str]:
    """Return texts; most are copies or edits of an earlier text, nearby or far away."""
    random_ = random.Random(seed)
    texts = [[random_.choice("abcdefghijklmnop") for _ in range(12)]]
    for number in range(count):
        words = list(
            texts[random_.randrange(max(0, number - random_.choice([5, 500])), number + 1)]
        )
        for _ in range(random_.choice([0, 0, 1, 1, 2, 12])):
            words[random_.randrange(12)] = random_.choice("abcdefghijklmnop")
        texts.append(words)
    return [" ".join(words) for words in texts]


@pytest.mark.parametrize(
    "stretch", [7, *(pytest.param(stretch, marks=pytest.mark.slow) for stretch in (1, 64))]
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"against": alike(3, 100)},
        {"max_bucket_size": 2},
        {"linkage": "connected"},
        {"keep": "longest", "against": alike(5, 40), "max_bucket_size": 5},
    ],
    ids=["", "against", "full buckets", "connected", "longest"],
)
def test_what_threads_measure_ahead_of_the_sieve_changes_no_row(monkeypatch, options, stretch):
    texts = alike(1)
    method = METHOD
    rows = [runs.run(texts, method, threads=1, **options)]
    monkeypatch.setattr("neardup.engines.local.searches._FEW", 0)
    monkeypatch.setattr("neardup.engines.local.searches._STRETCH_AHEAD", stretch)
    monkeypatch.setattr("neardup.engines.local.searches._PAIRS_AHEAD", 0)  # the least room
    rows += [runs.run(texts, method, threads=threads, **options) for threads in (2, 7, 64)]
    if "connected" not in options.values():
        assert runs.answer_of(rows[0]) == runs.expected(
            texts, method, **{"max_bucket_size": 64} | options
        )
    for row in rows[1:]:
        assert row.removed.equals(rows[0].removed)
        assert row.pairs.equals(rows[0].pairs)
        assert facts_of(row) == facts_of(rows[0])
    assert rows[0].removed.num_rows > 100


@pytest.mark.parametrize("bytes_of_bands", [0, 1 << 26])
def test_threads_find_the_same_pairs_in_the_same_order(monkeypatch, bytes_of_bands):
    table = runs.table_of(alike(2))
    pairs = neardup.find_pairs(table, method=METHOD, threads=1)
    for name, value in (("_FEW", 0), ("_STRETCH_AHEAD", 16), ("_BYTES_OF_BANDS", bytes_of_bands)):
        monkeypatch.setattr(f"neardup.engines.local.searches.{name}", value)
    assert pairs.pairs.num_rows > 1000
    for threads in (2, 7, 64):
        again = neardup.find_pairs(table, method=METHOD, threads=threads)
        assert again.pairs.equals(pairs.pairs)
        assert again.report["counts"] == pairs.report["counts"]


def test_the_recall_sample_is_the_same_for_every_number_of_threads(real_texts):
    texts = real_texts("en_licenses", 100_000)
    samples = [
        runs.run(texts, METHOD, recall_sample=30, threads=threads, batch_rows=batch_rows).report[
            "recall_sample"
        ]
        for threads, batch_rows in ((1, 1), (2, 7), (2, None))
    ]
    assert samples[0] == samples[1] == samples[2]
    assert samples[0]["pairs"] > 0


@pytest.mark.slow
@given(corpora.corpora(), corpora.methods(), st.integers(1, 2), st.integers(1, 5))
def test_small_batches_of_any_texts_change_nothing(texts, method, threads, batch_rows):
    result = runs.run(texts, method, threads=threads, batch_rows=batch_rows)
    assert runs.answer_of(result) == runs.expected(texts, method)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), "dictionary"]
)
@settings(max_examples=15)
@given(
    texts=corpora.corpora(), cuts=st.lists(st.integers(0, 14), max_size=4), before=st.integers(0, 3)
)
def test_chunks_slices_and_string_types_change_nothing(kind, texts, cuts, before):
    everything = [*["cut away"] * before, *texts, "cut away too"]
    if kind == "dictionary":
        array = pa.array(everything, pa.string()).dictionary_encode()
    else:
        array = pa.array(
            [None if one is None else one.encode() for one in everything], pa.binary()
        ).cast(kind)
    places = sorted({0, len(texts), *(cut for cut in cuts if cut < len(texts))})
    chunks = [array[before + start : before + stop] for start, stop in itertools.pairwise(places)]
    ids = [
        pa.array([str(i) for i in range(a, b)], pa.string()) for a, b in itertools.pairwise(places)
    ]
    table = pa.table(
        {"id": pa.chunked_array(ids, pa.string()), "text": pa.chunked_array(chunks, array.type)}
    )
    assert runs.answer_of(neardup.dedup(table, method=METHOD)) == runs.expected(texts, METHOD)


# Every format, with documents that it can hold: text as lines has no ids and no line ends.
def _parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=5)


def _arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)


def _arrow_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def _feather(table: pa.Table, path: Path) -> None:
    pyarrow.feather.write_feather(table, path, compression="zstd")


def _jsonl(table: pa.Table, path: Path) -> None:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
    path.write_bytes(_compressed(lines.encode(), path))


def _delimited(table: pa.Table, path: Path) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="\t" if ".tsv" in path.name else ",")
    writer.writerow(table.schema.names)
    writer.writerows(row.values() for row in table.to_pylist())
    path.write_bytes(_compressed(buffer.getvalue().encode(), path))


def _lines(table: pa.Table, path: Path) -> None:
    path.write_bytes(
        _compressed("".join(text + "\n" for text in table["text"].to_pylist()).encode(), path)
    )


def _compressed(data: bytes, path: Path) -> bytes:
    if path.suffix == ".zst":
        return pa.compress(data, "zstd", asbytes=True)
    return {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(
        path.suffix, bytes
    )(data)


WRITERS = {
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".ipc": _arrow_stream,
    ".feather": _feather,
    ".jsonl": _jsonl,
    ".jsonl.gz": _jsonl,
    ".jsonl.zst": _jsonl,
    ".jsonl.bz2": _jsonl,
    ".jsonl.xz": _jsonl,
    ".csv": _delimited,
    ".csv.gz": _delimited,
    ".tsv": _delimited,
    ".tsv.zst": _delimited,
    ".txt": _lines,
    ".txt.gz": _lines,
}


def write_split(texts: list[str], folder: Path, suffixes: list[str], seed: int) -> list[str]:
    """Write texts to several files, cut at random places; return their paths in order."""
    table = runs.table_of(texts)
    cuts = sorted(random.Random(seed).sample(range(1, len(texts)), len(suffixes) - 1))
    places = [0, *cuts, len(texts)]
    paths = []
    for number, (suffix, start, stop) in enumerate(zip(suffixes, places, places[1:], strict=False)):
        path = folder / f"part-{number:02}{suffix}"
        WRITERS[suffix](table.slice(start, stop - start), path)
        paths.append(str(path))
    return paths


def real_lines(real_texts) -> list[str]:
    """Return real texts of one line each, an empty one and one of punctuation among them."""
    texts = [
        " ".join(text.split())
        for text in real_texts("zh_poetry", 25_000) + real_texts("en_licenses", 40_000)
    ]
    return [
        *texts[:20],
        "",
        "...",
        *texts[20:],
        texts[3],
        'quoted "text", with\ttab and comma',
        texts[0].upper(),
    ]


def removals_of(result: neardup.Deduplication) -> list[tuple]:
    return [
        tuple(row[name] for name in ("id", "kept_id", "similarity", "exact"))
        for row in result.removed.to_pylist()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", sorted(WRITERS))
def test_every_format_gives_the_answer_of_the_table(suffix, real_texts, tmp_path):
    texts = real_lines(real_texts)
    expected = runs.run(texts, METHOD)
    assert len(removals_of(expected)) > 10
    for seed, num_files in ((1, 1), (2, 3)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        paths = write_split(texts, folder, [suffix] * num_files, seed)
        result = neardup.dedup(paths, method=METHOD, text_unit="line", threads=2, batch_rows=7)
        assert removals_of(result) == removals_of(expected)
        assert result.pairs.equals(expected.pairs)
        assert result.kept["text"].to_pylist() == expected.kept["text"].to_pylist()
        assert {row["source_file"] for row in result.removed.to_pylist()} <= set(paths)
        by_folder = neardup.dedup(str(folder), method=METHOD, text_unit="line")
        assert removals_of(by_folder) == removals_of(expected)


def test_files_of_all_formats_together_are_one_collection(real_texts, tmp_path):
    texts = real_lines(real_texts)
    expected = runs.run(texts, METHOD)
    for seed in range(3):
        suffixes = random.Random(seed).sample(sorted(WRITERS), len(WRITERS))
        folder = tmp_path / str(seed)
        folder.mkdir()
        paths = write_split(texts, folder, suffixes, seed)
        result = neardup.dedup(paths, method=METHOD, text_unit="line")
        assert removals_of(result) == removals_of(expected)
        assert result.pairs.equals(expected.pairs)


def test_the_row_and_file_of_a_removed_document_are_where_it_stands(real_texts, tmp_path):
    texts = real_lines(real_texts)
    paths = write_split(texts, tmp_path, [".parquet", ".jsonl.gz", ".csv"], 5)
    originals = {
        paths[0]: pq.read_table(paths[0])["text"].to_pylist(),
        paths[1]: [
            json.loads(line)["text"]
            for line in gzip.decompress(Path(paths[1]).read_bytes()).splitlines()
        ],
        paths[2]: [
            row["text"] for row in csv.DictReader(io.StringIO(Path(paths[2]).read_bytes().decode()))
        ],
    }
    result = neardup.dedup(paths, method=METHOD)
    assert len({row["source_file"] for row in result.removed.to_pylist()}) > 1
    for row in result.removed.to_pylist():
        assert originals[row["source_file"]][row["row"]] == texts[int(row["id"])]


def test_an_earlier_corpus_may_be_of_another_format(real_texts, tmp_path):
    texts = real_lines(real_texts)
    half = len(texts) // 2
    expected = runs.run(texts[half:], METHOD, against=texts[:half])
    (old,) = write_split(texts[:half], tmp_path, [".jsonl.zst"], 0)
    WRITERS[".parquet"](runs.table_of(texts[half:], half), tmp_path / "new.parquet")
    result = neardup.dedup(str(tmp_path / "new.parquet"), against=old, method=METHOD)
    assert removals_of(result) == removals_of(expected)


def test_the_same_run_twice_is_equal_to_the_last_bit(real_texts):
    texts = real_texts("en_licenses", 60_000)
    first, second = (runs.run(texts, METHOD) for _ in range(2))
    assert first.removed.equals(second.removed)
    assert first.pairs.equals(second.pairs)


def test_of_an_input_without_documents_the_kept_table_has_its_columns():
    table = pa.table(
        {
            "id": pa.array([], pa.string()),
            "text": pa.array([], pa.string()),
            "n": pa.array([], pa.int8()),
        }
    )
    result = neardup.dedup(table)
    assert result.kept.schema.names == ["id", "text", "n"]
    assert result.removed.num_rows == 0
    assert result.report["counts"]["read"] == 0


@pytest.mark.parametrize("batch_rows", [None, 10])
def test_many_documents_of_one_set_in_small_and_large_batches_are_one_cluster(batch_rows):
    texts = [f"{'same text again and again ' * 3}" for _ in range(3000)]
    result = neardup.dedup(pa.table({"text": texts}), batch_rows=batch_rows)
    assert np.all(np.array(result.removed["cluster"]) == 0)
    assert result.removed.num_rows == 2999
