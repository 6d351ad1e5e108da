"""The cosine of vectors, found by random hyperplanes: equal to brute force, wherever methods of
texts work.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup import Vectors
from neardup.errors import ColumnError, InputError, SettingError
from neardup.features.vectors import array_of_documents
from neardup.methods.registry import method_of
from reference.service import RunningService
from spark_session import IGNORED, removed_by_spark, removed_locally, require_spark

# Of some 30 pairs at the threshold or above, brute force finds one more in 30,000 runs: the seed is
# fixed.
METHOD = Vectors(threshold=0.95, recall=0.999999)
INDEXED = Vectors(threshold=0.95, recall=0.999999, dimensions=5)


def make_vectors() -> np.ndarray:
    """Return 40 random vectors, 20 that are near to one of them each, three copies, and zeros."""
    random = np.random.default_rng(7)
    first = random.standard_normal((40, 5))
    near = first[:20] * random.uniform(0.5, 2, (20, 1)) + 0.05 * random.standard_normal((20, 5))
    return np.concatenate([first, near, first[5:8], np.zeros((1, 5))]).astype(np.float32)


VECTORS = make_vectors()
LISTS = VECTORS.tolist()


def cosines(vectors: Any) -> np.ndarray:
    """Return the cosine of every pair, the naive way; 0 with a vector of zeros."""
    table = np.zeros((len(vectors), len(vectors)))
    for i, left in enumerate(vectors):
        for j, right in enumerate(vectors):
            product = sum(float(a) * float(b) for a, b in zip(left, right, strict=True))
            squares = sum(float(a) ** 2 for a in left) * sum(float(b) ** 2 for b in right)
            table[i, j] = product / squares**0.5 if squares else 0.0
    return table


COSINES = cosines(VECTORS)


def pairs_by_hand(table: np.ndarray, threshold: float) -> set[tuple[int, int]]:
    return {(i, j) for j in range(len(table)) for i in range(j) if table[i, j] >= threshold}


def removed_by_hand(table: np.ndarray, threshold: float) -> dict[int, int]:
    """Return each removed vector with the kept one that is most similar, the earlier of equals."""
    kept: list[int] = []
    removed = {}
    for number in range(len(table)):
        similar = [
            (-table[other, number], other) for other in kept if table[other, number] >= threshold
        ]
        if similar:
            removed[number] = min(similar)[1]
        else:
            kept.append(number)
    return removed


REMOVED = removed_by_hand(COSINES, 0.95)


@pytest.mark.parametrize("threshold", [0.8, 0.9, 0.99])
def test_a_result_answers_at_a_higher_threshold_without_a_new_run(threshold):
    table = pa.table({"embedding": pa.array(LISTS)})
    sure = {"planes": 1, "recall": 0.999999}
    run = Vectors(threshold=0.8, **sure)
    result = neardup.dedup(
        table, method=run, text_column="embedding", rethreshold=True
    ).rethreshold(threshold)
    removed = {int(row["id"]): int(row["kept_id"]) for row in result.removed.to_pylist()}
    assert removed == removed_by_hand(COSINES, threshold)
    fresh = neardup.dedup(
        table, method=Vectors(threshold=threshold, **sure), text_column="embedding"
    )
    assert result.removed.equals(fresh.removed)
    assert result.pairs.equals(fresh.pairs)


def table_of(kind: pa.DataType, **columns: Any) -> pa.Table:
    return pa.table(
        {"vector": pa.array(LISTS, pa.list_(pa.float64())).cast(kind, safe=False), **columns}
    )


def removed_of(result: Any) -> dict[int, int]:
    return {int(row["id"]): int(row["kept_id"]) for row in result.removed.to_pylist()}


def found_of(pairs: pa.Table) -> dict[tuple[int, int], float]:
    return {
        (int(row["left_id"]), int(row["right_id"])): row["similarity"] for row in pairs.to_pylist()
    }


KINDS = [
    pa.list_(pa.float32()),
    pa.list_(pa.float64()),
    pa.large_list(pa.float32()),
    pa.list_(pa.float32(), 5),
    pa.list_(pa.float64(), 5),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_all_columns_of_lists_of_numbers_are_vectors(kind):
    found = found_of(neardup.find_pairs(table_of(kind), method=METHOD).pairs)
    assert found.keys() == pairs_by_hand(COSINES, 0.95)
    assert all(
        similarity == pytest.approx(COSINES[pair], abs=1e-6) for pair, similarity in found.items()
    )
    assert len(REMOVED) > 20
    assert removed_of(neardup.dedup(table_of(kind), method=METHOD)) == REMOVED


def test_half_precision_and_whole_numbers_are_vectors():
    halves = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.astype(np.float16).reshape(-1)), 5)
    assert removed_of(neardup.dedup(pa.table({"embedding": halves}), method=METHOD)) == REMOVED
    whole = pa.table({"vector": [[3, 4], [6, 8], [4, -3]]})
    assert removed_of(neardup.dedup(whole, method=METHOD)) == {1: 0}


def test_a_list_of_vectors_may_begin_with_none():
    result = neardup.dedup([None, [1.0, 2.0], None, [2.0, 4.0]], method=METHOD)
    assert removed_of(result) == {3: 1}


@pytest.mark.parametrize(
    "source",
    [LISTS, VECTORS, list(VECTORS), pa.array(LISTS), table_of(KINDS[3])],
    ids=["lists", "array", "list of arrays", "Arrow array", "table"],
)
def test_vectors_of_any_container_are_read_alike(source):
    assert removed_of(neardup.dedup(source, method=METHOD)) == REMOVED


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_a_slice_of_a_table_is_read_like_the_whole(batch_rows):
    padded = pa.concat_tables([table_of(KINDS[0]).slice(3, 4), table_of(KINDS[0])])
    result = neardup.dedup(padded.slice(4), method=METHOD, batch_rows=batch_rows)
    assert removed_of(result) == REMOVED


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=8))
def test_copies_are_exact_and_every_pair_is_one_of_the_naive_twin(rows):
    table = cosines(rows)
    found = neardup.find_pairs(pa.table({"vector": rows}), method=Vectors(threshold=0.8)).pairs
    assert found_of(found).keys() <= pairs_by_hand(table, 0.8 - 1e-9)
    exact = {
        (int(row["left_id"]), int(row["right_id"])) for row in found.to_pylist() if row["exact"]
    }
    assert exact == pairs_by_hand(table, 1 - 1e-9)  # of equal direction, whatever the length


def test_files_keep_their_format_and_their_vectors(tmp_path):
    pq.write_table(table_of(KINDS[3], id=range(len(LISTS))), tmp_path / "in.parquet")
    lines = [json.dumps({"id": number, "vector": vector}) for number, vector in enumerate(LISTS)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    kept = [number for number in range(len(LISTS)) if number not in REMOVED]
    for name in ("in.parquet", "in.jsonl"):
        result = neardup.dedup(
            tmp_path / name, method=METHOD, output=tmp_path / f"of-{name}", max_unreadable=1
        )
        assert removed_of(result) == REMOVED
        assert result.report["counts"]["without_features"] == 1
        assert result.report["scheme"] == {
            "name": "hyperplanes",
            "version": 1,
            "dimensions": None,
            "planes": method_of(METHOD).for_corpus(len(LISTS)).bands.rows_per_band,
            "seed": 1,
        }
        page = (tmp_path / f"of-{name}" / "report.html").read_text()
        assert json.dumps(LISTS[0])[:6] in page
    assert (
        pq.read_table(tmp_path / "of-in.parquet" / "kept" / "in.parquet")
        .schema.field("vector")
        .type
        == KINDS[3]
    )
    assert (tmp_path / "of-in.jsonl" / "kept" / "in.jsonl").read_text().splitlines() == [
        lines[row] for row in kept
    ]


def test_the_report_shows_the_first_numbers_of_a_long_vector(tmp_path):
    rows = np.random.default_rng(3).standard_normal((3, 64))
    neardup.dedup(np.concatenate([rows, rows * 1.0001]), method=METHOD, output=tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "(64 numbers)" in page
    assert str(np.float32(rows[0, 7])) in page
    assert str(np.float32(rows[0, 8])) not in page
    assert "the same words" not in page


def test_rows_that_cannot_be_compared_are_rejected_with_the_reason(tmp_path):
    rows = [
        [1.0, 2.0],
        [1.0],
        [float("nan"), 1.0],
        None,
        [],
        [1.0, None],
        [1e300, 1.0],
        [0.0, 0.0],
        [2.0, 4.0],
    ]
    pq.write_table(pa.table({"vector": rows}), tmp_path / "in.parquet")
    lines = [json.dumps({"vector": row}) for row in rows] + ['{"vector": [1, "a"]}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    for name in ("in.parquet", "in.jsonl"):
        result = neardup.dedup(
            tmp_path / name, method=METHOD, output=tmp_path / f"of-{name}", max_unreadable=1
        )
        assert result.removed["row"].to_pylist() == [8]
        assert result.report["counts"]["without_features"] == 3
        rejected = [
            json.loads(line)
            for line in (tmp_path / f"of-{name}" / "rejected.jsonl").read_text().splitlines()
        ]
        reasons = {row["row"]: row["reason"] for row in rejected}
        assert list(reasons)[:4] == [1, 2, 5, 6]
        assert "the vector has 1 numbers, and others have 2" in reasons[1]
        assert "the vector has a number that is null, NaN or infinite in 32 bits" in reasons[2]
    assert "Could not convert 'a'" in reasons[9]
    with pytest.raises(InputError, match=r"row 1: the vector has 1 numbers, and others have 2"):
        neardup.dedup(tmp_path / "in.parquet", method=METHOD, on_error="stop")


def test_lengths_are_those_of_the_first_vector_or_of_the_settings():
    known = pa.table({"vector": [[1.0, 0.0]]})
    new = pa.table({"vector": [[1.0, 0.0, 0.0], [2.0, 0.0]]})
    result = neardup.dedup(new, method=METHOD, against=known, max_unreadable=1)
    assert (result.mask.tolist(), result.report["counts"]["rejected"]) == ([False, False], 1)
    assert (
        neardup.dedup(new, method=Vectors(dimensions=3), max_unreadable=1).report["counts"][
            "rejected"
        ]
        == 1
    )
    with pytest.raises(
        InputError, match=r"Vectors of different lengths cannot be compared: got \[2, 3\]"
    ):
        neardup.compare([1, 0], [1, 0, 0], method=METHOD)


def test_other_columns_are_refused():
    texts = pa.table({"text": ["a"], "tags": [["a", "b"]], "embedding": [[0.5]]})
    assert neardup.dedup(texts, method=METHOD).kept.num_rows == 1  # the column embedding
    with pytest.raises(
        ColumnError,
        match=r"'text' in source holds string, which cannot be a vector. Columns of lists",
    ):
        neardup.dedup(texts, method=METHOD, text_column="text")
    with pytest.raises(
        ColumnError, match=r"'tags' in source holds list<.*string>, which cannot be a vector"
    ):
        neardup.dedup(texts, method=METHOD, text_column="tags")
    with pytest.raises(
        ColumnError,
        match=r"No column of vectors in source: it has 'text'. Looked for vector, embedd",
    ):
        neardup.dedup(["a text"], method=METHOD)
    with pytest.raises(
        ColumnError, match=r"A vector is in one column: got 'embedding', 'embedding'"
    ):
        neardup.dedup(texts, method=METHOD, text_column=["embedding", "embedding"])
    with pytest.raises(
        ColumnError, match=r"'embedding' in source holds list<.*double>, which cannot be text"
    ):
        neardup.dedup(texts, text_column="embedding")


@pytest.mark.parametrize("name", ["a.txt", "a.html"])
def test_lines_of_text_and_pages_are_no_vectors(tmp_path, name):
    (tmp_path / name).write_text("[1, 2]\n[2, 4, 6]\n")
    (tmp_path / "b.jsonl").write_text('{"vector": [1, 2]}\n')
    for inputs in ([tmp_path / name], [tmp_path / "b.jsonl", tmp_path / name]):
        with pytest.raises(
            ColumnError, match=rf"No column of vectors in .*{name}, which is text or a page"
        ):
            neardup.dedup(inputs, method=METHOD, batch_rows=1)


def test_pairs_clusters_and_chains_are_found():
    table = table_of(KINDS[0])
    clusters = neardup.cluster(table, method=METHOD).documents["cluster"].to_pylist()
    assert all(clusters[number] == clusters[kept] for number, kept in REMOVED.items())
    named = neardup.cluster(table, method=METHOD).clusters
    assert named["name"].to_pylist() == named["first_id"].to_pylist()
    assert set(removed_of(neardup.dedup(table, method=METHOD, linkage="connected"))) >= set(REMOVED)


def test_groups_are_kept_apart():
    half = len(LISTS) // 2
    table = table_of(KINDS[0], shard=["a"] * half + ["b"] * (len(LISTS) - half))
    apart = COSINES * (np.arange(len(LISTS))[:, None] // half == np.arange(len(LISTS)) // half)
    result = neardup.dedup(table, method=METHOD, within="shard")
    assert removed_of(result) == removed_by_hand(apart, 0.95) != REMOVED


def test_evaluate_scores_it(tmp_path):
    labels = list(range(40)) + list(range(20)) + [5, 6, 7, 99]
    result = neardup.evaluate(
        table_of(KINDS[0], cluster=list(map(str, labels))),
        method=METHOD,
        errors=tmp_path / "e.html",
    )
    assert result.at_threshold.limit == 0.95
    assert result.at_threshold.recall > 0.8
    assert "[" in (tmp_path / "e.html").read_text()


def test_compare_measures_two_vectors():
    found = neardup.compare([3, 4], "[6, 8.5]", method=METHOD)
    assert found.similarity == pytest.approx(cosines([[3, 4], [6, 8.5]])[0, 1])
    assert found.duplicate
    assert not found.measures.same_text
    assert neardup.compare([3, 4], [3.0, 4.0], method=METHOD).measures.same_text
    with pytest.raises(InputError, match="A vector is a list of numbers, or the JSON of one"):
        neardup.compare("a text", [1], method=METHOD)


@pytest.mark.parametrize("vector", [b"\x00\x00\x80?", bytearray(4), {1.0, 2.0}])
def test_bytes_and_sets_are_no_vectors(vector):
    with pytest.raises(InputError, match=f"or the JSON of one: got {type(vector).__name__}"):
        neardup.compare(vector, vector, method=METHOD)


def test_sign_returns_the_sides_of_hyperplanes(tmp_path):
    signed = neardup.sign(LISTS, method="vectors", output=tmp_path / "signed.parquet")
    assert (signed.scheme["name"], signed.scheme["planes"]) == ("hyperplanes", 20)
    assert signed.num_hashes == 100
    assert signed.empty.tolist() == [not any(vector) for vector in LISTS]
    assert (neardup.sign(table_of(KINDS[3]), method="vectors").values == signed.values).all()
    assert signed[5].similarity(signed[60])[0] == 1.0
    assert removed_of(neardup.dedup(LISTS, method="vectors", threshold=0.95)) == REMOVED


@pytest.mark.parametrize("address", ["memory:", "folder"])
@pytest.mark.parametrize("storage", ["features", "text"])
def test_an_index_decides_as_dedup_does(tmp_path, address, storage):
    place = str(tmp_path / "index") if address == "folder" else address
    with neardup.Index.create(place, method=INDEXED, storage=storage) as index:
        answers = [
            index.add_if_new(vector, id=str(number)) for number, vector in enumerate(LISTS[:30])
        ]
        answers += [
            neardup.Answer(**{**_times(row)}) for row in index.add_many_if_new(rest()).to_pylist()
        ]
        removed = {int(answer.id): int(answer.kept_id) for answer in answers if not answer.kept}
        assert removed == REMOVED
        assert [hit.id for hit in index.query(VECTORS[0], limit=1)] == ["0"]
        assert index.query_many([LISTS[1], LISTS[2]], limit=1)["id"].to_pylist() == ["1", "2"]
        shown = index.get("3").text
        assert (
            shown is None
            if storage == "features"
            else np.float32(json.loads(shown)).tolist() == LISTS[3]
        )
        with pytest.raises(InputError, match="the vector has 2 numbers, and others have 5"):
            index.query([1.0, 2.0])
        with pytest.raises(
            InputError, match="the vector has a number that is null, NaN or infinite"
        ):
            index.add([1.0, 2.0, 3.0, 4.0, float("inf")])
        index.open_import("later")
        index.stage("later", pa.table({"id": ["x"], "vector": [LISTS[4]]}))
        assert index.commit_import("later")["kept_id"].to_pylist() == ["4"]
        lines = [
            json.dumps({"id": "y", "vector": LISTS[1]}),
            json.dumps({"id": "z", "vector": [1]}),
            '{"id": "q"}',
        ]
        [found] = index.answer_lines([[line.encode() for line in lines]])
        assert found[0][1]["kept_id"] == "1"
        assert "the vector has 1 numbers" in found[1][1]["error"]
    if address == "folder":
        with neardup.Index.open(place, read_only=True) as index:
            assert index.verify() == []
        result = neardup.dedup(
            [LISTS[0], [9.0, -9.0, 1.0, 1.0, 1.0]], against=place, output=tmp_path / "out"
        )
        assert result.mask.tolist() == [False, True]


def _times(row: dict[str, Any]) -> dict[str, Any]:
    return {"distance": None, "structure": None, "payload": None, **row}


def rest() -> pa.Table:
    return table_of(KINDS[0], id=list(map(str, range(len(LISTS))))).slice(30)


def test_an_index_of_a_run_takes_the_length_of_its_vectors(tmp_path):
    pq.write_table(table_of(KINDS[0]), tmp_path / "in.parquet")
    result = neardup.dedup(tmp_path / "in.parquet", method=METHOD, output=tmp_path / "out")
    with neardup.Index.from_run("memory:", tmp_path / "out") as index:
        assert index.method.dimensions == len(LISTS[0])
        assert len(index) == result.kept.num_rows
        with pytest.raises(
            InputError, match=r"the vector has 2 numbers, and others have 5\. Correct the document"
        ):
            index.add_many([[1.0, 2.0]])


def test_an_index_needs_the_length_of_its_vectors():
    with pytest.raises(
        SettingError,
        match=r"An index needs the length of its vectors: got dimensions=None. Set dim",
    ):
        neardup.Index.create("memory:", method=METHOD)


@pytest.mark.slow
def test_the_service_answers_by_it(tmp_path):
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    neardup.Index.create(tmp_path / "index", method=INDEXED).close()
    with RunningService(tmp_path / "index") as service:
        documents = [{"id": str(number), "text": vector} for number, vector in enumerate(LISTS)]
        response = service.request(
            "POST", "/v1/documents", {"documents": documents, "mode": "add-if-new"}
        )
        answers = response.json["answers"]
        assert {
            int(answer["id"]): int(answer["kept_id"]) for answer in answers if not answer["kept"]
        } == REMOVED
        response = service.request(
            "POST", "/v1/query", {"texts": [LISTS[2], json.dumps(LISTS[3])], "limit": 1}
        )
        assert [hits[0]["id"] for hits in response.json["results"]] == ["2", "3"]
        response = service.request("POST", "/v1/query", {"texts": [[1.0]]})
        assert response.status == 422
        assert "the vector has 1 numbers, and others have 5" in response.json["detail"]
        response = service.request("POST", "/v1/compare", {"left": LISTS[0], "right": LISTS[0]})
        assert response.json["similarity"] == 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings(IGNORED)
def test_spark_removes_and_signs_the_same(spark, tmp_path):
    require_spark()
    table = table_of(KINDS[1], id=range(len(LISTS)))
    frame = spark.createDataFrame(
        list(enumerate(LISTS)), "id long, vector array<float>"
    ).repartition(3)
    columns = {"id_column": "id", "text_column": "vector", "method": METHOD}
    found = neardup.spark.dedup(frame, **columns)
    expected = neardup.dedup(table, **columns)
    assert removed_by_spark(found, METHOD) == removed_locally(expected, METHOD) != []
    pairs = neardup.spark.find_pairs(frame, **columns).toArrow()
    assert found_of(pairs).keys() == pairs_by_hand(COSINES, 0.95)
    signed = {row["id"]: row["values"] for row in neardup.spark.sign(frame, **columns).collect()}
    assert [signed[number] for number in range(len(LISTS))] == neardup.sign(
        LISTS, method=METHOD
    ).values.tolist()
    pq.write_table(table, tmp_path / "in.parquet")
    result = neardup.dedup(
        tmp_path / "in.parquet", method=METHOD, engine="spark", output=tmp_path / "out"
    )
    assert removed_of(result) == REMOVED
    # The engines choose the same planes, which rejected rows do not change: the same are missed.
    lines = [json.dumps({"vector": vector}) for vector in [*LISTS, *([[1.0]] * 2 * len(LISTS))]]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    missing = {"method": Vectors(threshold=0.95, recall=0.2), "max_unreadable": 1}
    here = neardup.dedup(tmp_path / "in.jsonl", **missing)
    there = neardup.dedup(tmp_path / "in.jsonl", engine="spark", **missing)
    assert there.report["scheme"] == here.report["scheme"]
    assert there.removed.equals(here.removed)
    assert here.report["counts"]["rejected"] == 2 * len(LISTS)
    files = {"output": tmp_path / "files", "tables": False}
    report = neardup.dedup(tmp_path / "in.parquet", method=METHOD, engine="spark", **files).report
    assert report["counts"]["removed"] == len(REMOVED)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "neardup", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_every_command_takes_it(tmp_path):
    pq.write_table(
        table_of(KINDS[3], cluster=[number % 40 for number in range(len(LISTS))]),
        tmp_path / "in.parquet",
    )
    (tmp_path / "a.json").write_text("[1, 2, 3]")
    (tmp_path / "b.json").write_text("[1, 2, 3.5]")
    method = ("--method", "vectors")
    for command in (
        ("dedup", "in.parquet", "-o", "out", *method, "--threshold", "0.95"),
        ("dedup", "in.parquet", "-o", "again", "--config", "out/report.json"),
        ("find-pairs", "in.parquet", "-o", "pairs.parquet", *method),
        ("cluster", "in.parquet", "-o", "clusters", *method, "--vector-column", "vector"),
        ("sign", "in.parquet", "-o", "signed.parquet", *method, "--planes", "8"),
        ("evaluate", "in.parquet", "--label", "cluster", *method),
        ("compare", "a.json", "b.json", *method),
        ("index", "create", "vectors.index", *method, "--dimensions", "5", "--threshold", "0.95"),
        ("index", "add-if-new", "vectors.index", "in.parquet"),
        ("dedup", "in.parquet", "--against", "vectors.index", "-o", "new"),
    ):
        done = run(tmp_path, *command)
        assert done.returncode == 0, done.stderr
    for folder in ("out", "again"):
        assert pq.read_table(tmp_path / folder / "removed.parquet")["row"].to_pylist() == list(
            REMOVED
        )
    assert (
        pq.read_table(tmp_path / "new" / "removed.parquet").num_rows == len(LISTS) - 1
    )  # all but the zeros
    done = run(tmp_path, "dedup", "in.parquet", "-o", "other", *method, "--ngram", "3")
    assert "--ngram belongs to --method minhash: got it with Vectors" in done.stderr


def test_vectors_of_one_direction_are_copies():
    result = neardup.dedup([[1.0, 2.0], [2.0, 4.0], [-1.0, -2.0]], method="vectors", threshold=0.5)
    assert result.removed.select(["id", "kept_id", "similarity", "exact"]).to_pylist() == [
        {"id": "1", "kept_id": "0", "similarity": 1.0, "exact": True}
    ]


@pytest.mark.parametrize("threshold", [0.01, 0.3, 0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("recall", [0.5, 0.99, 0.999999])
@pytest.mark.parametrize("num_documents", [0, 1, 10_000, 2**31])
def test_bands_reach_the_recall_and_one_band_less_does_not(threshold, recall, num_documents):
    method = method_of(Vectors(threshold=threshold, recall=recall)).for_corpus(num_documents)
    num_bands, num_bits = method.bands
    agreement = (1 - math.acos(threshold) / math.pi) ** num_bits  # of one band, by the angle
    reached = 1 - (1 - agreement) ** num_bands
    assert reached >= recall - 1e-9
    assert method.hit_probability(np.array([threshold])) == pytest.approx(reached, rel=1e-9)
    assert threshold == 1.0 or 1 - (1 - agreement) ** (num_bands - 1) < recall


# The fastest of the planes that benchmarks/results/vectors.md compares, or within 1.2 of them.
FASTEST = {10_000: 15, 100_000: 18, 300_000: 20, 1_000_000: 22}


@pytest.mark.parametrize("num_documents", FASTEST)
def test_planes_are_the_fastest_for_the_number_of_vectors(num_documents):
    method = method_of(Vectors(threshold=0.9))
    assert method.for_corpus(num_documents).bands.rows_per_band == FASTEST[num_documents]
    set_planes = method_of(Vectors(threshold=0.9, planes=17)).for_corpus(num_documents)
    assert set_planes.bands.rows_per_band == 17


@pytest.mark.parametrize(
    "options",
    [{"threads": 1}, {"threads": 3}, {"batch_rows": 7}, {"keep": "last"}, {"linkage": "connected"}],
    ids=str,
)
def test_planes_depend_on_the_number_of_vectors_alone(options):
    method = Vectors(threshold=0.95)
    expected = neardup.dedup(LISTS, method=method).report
    report = neardup.dedup(LISTS[::-1], method=method, **options).report
    assert report["bands"] == expected["bands"]
    assert report["scheme"] == expected["scheme"]
    assert report["bands"]["rows_per_band"] == expected["scheme"]["planes"]
    more = neardup.dedup(LISTS * 20, method=method).report
    assert more["scheme"]["planes"] > expected["scheme"]["planes"]


def test_keys_that_are_made_after_reading_are_those_of_the_same_planes():
    # Of a low recall, so that some pairs are missed: the same ones.
    counted = neardup.dedup(LISTS, method=Vectors(threshold=0.95, recall=0.2))
    planes = counted.report["scheme"]["planes"]
    read = neardup.dedup(LISTS, method=Vectors(threshold=0.95, recall=0.2, planes=planes))
    assert counted.removed.equals(read.removed)
    assert counted.report["counts"] == read.report["counts"]
    assert 0 < counted.removed.num_rows < len(REMOVED)


class StopAt:
    """Progress that interrupts a run where a stage begins."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def begin(self, stage: str, total: int | None) -> None:
        if stage == self.stage:
            raise KeyboardInterrupt

    def advance(self, documents: int, num_bytes: int) -> None:
        pass

    def end(self, stage: str, seconds: float) -> None:
        pass


@pytest.mark.parametrize("stage", ["propose", "sort", "write"])
def test_an_interrupted_run_makes_its_keys_anew(tmp_path, stage):
    shards = ["a"] * 50 + ["b"] * (len(LISTS) - 50)
    pq.write_table(table_of(KINDS[3], shard=shards), tmp_path / "in.parquet")
    options = {"method": METHOD, "within": "shard"}
    expected = neardup.dedup(tmp_path / "in.parquet", **options)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        neardup.dedup(tmp_path / "in.parquet", output=out, progress=StopAt(stage), **options)
    resumed = neardup.dedup(tmp_path / "in.parquet", output=out, resume=True, **options)
    assert resumed.removed.equals(expected.removed)
    assert resumed.report["counts"] == expected.report["counts"]


def test_an_index_keeps_the_planes_of_its_creation(tmp_path):
    method = Vectors(threshold=0.95, dimensions=5)
    with neardup.Index.create(tmp_path / "index", method=method) as index:
        planes = index.method.planes
        index.add_many(LISTS)
        assert index.method.planes == planes == method_of(method).bands.rows_per_band


def test_bands_that_cannot_reach_the_recall_are_refused():
    with pytest.raises(
        SettingError,
        match=r"recall=0.99 at threshold=0.5 needs more than 512 bands of 20 hyperplanes",
    ):
        neardup.dedup(LISTS, method=Vectors(threshold=0.5, planes=20))


def test_the_estimated_recall_is_that_of_the_angles():
    result = neardup.find_pairs(LISTS, method=Vectors(threshold=0.95, recall=0.5))
    near = [row["similarity"] for row in result.pairs.to_pylist() if not row["exact"]]
    method = method_of(Vectors(threshold=0.95, recall=0.5))
    bands = method.for_corpus(len(LISTS)).bands
    found = 1 - (1 - (1 - np.arccos(near) / np.pi) ** bands.rows_per_band) ** bands.num_bands
    assert result.report["recall"]["estimated"] == pytest.approx(len(near) / np.sum(1 / found))
    with pytest.raises(
        SettingError, match="recall_sample measures the recall of Jaccard similarity only"
    ):
        neardup.dedup(LISTS, method="vectors", recall_sample=3)
    with pytest.raises(
        SettingError,
        match="passages are cut from texts: got passages=50 with Vectors, which compares",
    ):
        neardup.dedup(LISTS, method="vectors", passages=50)


def test_results_do_not_depend_on_threads_or_batches(tmp_path):
    vectors = np.repeat(np.random.default_rng(5).standard_normal((300, 7)), 2, axis=0)
    vectors[1::2] += 0.1 * np.random.default_rng(6).standard_normal((300, 7))
    table = pa.table({"vector": pa.array(vectors.tolist())})
    runs = [{"threads": 1}, {"threads": 3}, {"threads": 2, "batch_rows": 17}]
    results = [neardup.find_pairs(table, method=Vectors(recall=0.5), **run).pairs for run in runs]
    assert results[0].num_rows > 50
    assert all(result.equals(results[0]) for result in results)


@pytest.mark.parametrize("documents", [[None], ["a text", None], [None, 5], ["a text", [1.0]]])
def test_where_texts_are_compared_each_document_is_a_string(documents):
    wrong = next(document for document in documents if not isinstance(document, str))
    with pytest.raises(InputError, match=re.escape(f"compares texts: got {wrong!r}. Pass strings")):
        array_of_documents(documents, None)
