"""Methods of one's own, each in one module: they work wherever MinHash and SimHash do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from byte_grams import ByteGrams
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import SettingError
from neardup.fingerprints import minhash
from neardup.methods import MethodSettings, register
from neardup.methods.registry import method_of
from neardup.settings.methods import METHODS
from reference.service import RunningService
from spark_session import IGNORED, frame_of, removed_by_spark, removed_locally, require_spark

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent
NAMED = METHODS.pop(
    "bytes"
)  # its name is known to the tests that ask for it: others list the names


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setitem(METHODS, "bytes", NAMED)


TEXTS = [
    "the same text",
    "the same text",
    "the same texts",
    "another one",
    "the sane text",
    "",
    None,
]


def runs_of(text: str, width: int = 7) -> frozenset[bytes]:
    data = text.encode()
    width = min(width, len(data))
    return frozenset(data[start : start + width] for start in range(len(data) - width + 1) if width)


def jaccard(left: str, right: str) -> float:
    first = runs_of(left)
    second = runs_of(right)
    return len(first & second) / len(first | second)


@given(st.lists(st.text("ab ", max_size=12), max_size=12))
def test_it_removes_what_the_sieve_by_hand_removes(texts):
    method = ByteGrams(threshold=0.3)
    found = neardup.find_pairs(pa.table({"text": pa.array(texts, pa.string())}), method=method)
    pairs = {
        (int(row["left_id"]), int(row["right_id"])): row["similarity"]
        for row in found.pairs.to_pylist()
    }
    for (left, right), similarity in pairs.items():
        assert similarity == jaccard(texts[left], texts[right]) >= 0.3
    kept: list[int] = []
    removed = {}
    for number in range(len(texts)):
        similar = [(-pairs[other, number], other) for other in kept if (other, number) in pairs]
        if similar:
            removed[number] = min(similar)[1]
        else:
            kept.append(number)
    result = neardup.dedup(pa.table({"text": pa.array(texts, pa.string())}), method=method)
    assert {int(row["id"]): int(row["kept_id"]) for row in result.removed.to_pylist()} == removed


def test_dedup_writes_its_report_and_resumes_by_its_settings(tmp_path):
    result = neardup.dedup(TEXTS, method=ByteGrams(width=3, threshold=0.6), output=tmp_path / "out")
    assert result.removed["id"].to_pylist() == ["1", "2"]
    assert result.removed["kept_id"].to_pylist() == ["0", "0"]
    assert result.removed["similarity"].to_pylist() == [1.0, 11 / 12]
    assert result.report["scheme"]["name"] == "ByteGrams"
    assert result.report["scheme"]["width"] == 3
    assert result.report["settings"]["threshold"] == 0.6
    assert (
        sum(result.report["similarities"]["counts"]) == result.report["counts"]["removed_near"] > 0
    )
    assert result.report["counts"]["without_features"] == 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "the same texts" in page


def test_pairs_clusters_and_chains_are_found():
    method = ByteGrams(threshold=0.6)
    assert neardup.find_pairs(TEXTS, method=method).pairs.num_rows >= 2
    assert neardup.cluster(TEXTS, method=method).documents["cluster"].to_pylist()[:3] == [0, 0, 0]
    assert neardup.dedup(TEXTS, method=method, linkage="connected").removed.num_rows >= 2


def test_evaluate_scores_it():
    table = pa.table({"text": TEXTS[:5], "cluster": ["a", "a", "a", "b", "c"]})
    result = neardup.evaluate(table, method=ByteGrams(threshold=0.6))
    assert result.at_threshold.limit == 0.6
    assert result.at_threshold.recall == 1.0
    assert result.curve.column_names[0] == "threshold"


def test_compare_measures_two_texts():
    found = neardup.compare("the same text", "the same texts", method=ByteGrams(threshold=0.6))
    assert found.similarity == jaccard("the same text", "the same texts")
    assert found.duplicate
    assert not neardup.compare("the same text", "", method=ByteGrams()).duplicate


def test_settings_without_a_method_are_refused():
    @dataclass(frozen=True, kw_only=True)
    class Nothing(MethodSettings):
        pass

    with pytest.raises(
        neardup.SettingError, match=r"method must be .*ByteGrams or .*SimHash or Vectors: got "
    ):
        neardup.dedup(TEXTS, method=Nothing())


def test_its_name_goes_wherever_a_method_is_named(named):
    expected = neardup.dedup(TEXTS, method=ByteGrams(threshold=0.6)).removed
    assert neardup.dedup(TEXTS, method="bytes", threshold=0.6).removed == expected
    with pytest.raises(
        SettingError, match=r"method must be one of .*, bytes, .*got 'byts'. Did you mean 'bytes'"
    ):
        neardup.dedup(TEXTS, method="byts")
    with pytest.raises(
        SettingError, match="The name 'minhash' belongs to MinHash: got it for ByteGrams"
    ):
        register(ByteGrams, type(method_of(ByteGrams())), {"minhash": ByteGrams()})


def test_sign_returns_its_sketches(tmp_path, named):
    signed = neardup.sign(TEXTS, method="bytes")
    method = method_of(ByteGrams())
    sets = method.describe(pa.array(TEXTS)).sets
    assert (signed.values == minhash.sign(*sets, 64, 1)).all()
    assert signed.scheme["width"] == 7
    assert signed.empty.tolist() == [not text for text in TEXTS]
    signed.save(tmp_path / "signed.parquet")
    assert (neardup.Signatures.open(tmp_path / "signed.parquet").values == signed.values).all()
    with pytest.raises(SettingError, match="ByteGrams signs texts only: got lists of tokens"):
        neardup.sign([["a", "b"]], method="bytes")


def answers_of(index: neardup.Index, texts: list[str]) -> list[tuple[Any, ...]]:
    found = [index.add_if_new(text, id=str(number)) for number, text in enumerate(texts)]
    return [(answer.kept, answer.kept_id, answer.similarity) for answer in found]


@pytest.mark.parametrize("address", ["memory:", pytest.param("folder", marks=pytest.mark.slow)])
@pytest.mark.parametrize("storage", ["features", "text"])
def test_an_index_decides_as_dedup_does(tmp_path, address, storage):
    texts = [text or "" for text in TEXTS]
    place = str(tmp_path / "index") if address == "folder" else address
    removed = {
        row["id"]: row
        for row in neardup.dedup(texts, method=ByteGrams(threshold=0.6)).removed.to_pylist()
    }
    with neardup.Index.create(place, method=ByteGrams(threshold=0.6), storage=storage) as index:
        answers = answers_of(index, texts)
    for number, (kept, kept_id, similarity) in enumerate(answers):
        row = removed.get(str(number), {"kept_id": None, "similarity": None})
        assert (kept, kept_id, similarity) == (
            str(number) not in removed,
            row["kept_id"],
            row["similarity"],
        )
    if address == "folder":
        with neardup.Index.open(place) as index:
            assert [hit.id for hit in index.query("the same text")] == ["0"]
        result = neardup.dedup(["the same texts", "something else"], against=place)
        assert result.mask.tolist() == [False, True]


@pytest.fixture
def registered(monkeypatch):
    """Processes find the method as those of a user do."""
    monkeypatch.setenv("NEARDUP_METHODS", "byte_grams")
    paths = [
        str(FOLDER),
        str(Path(neardup.__file__).parent.parent),
        os.environ.get("PYTHONPATH", ""),
    ]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


@pytest.mark.slow
def test_the_service_answers_by_it(tmp_path, registered):
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    neardup.Index.create(tmp_path / "index", method=ByteGrams(threshold=0.6)).close()
    with RunningService(tmp_path / "index") as service:
        documents = [
            {"id": str(number), "text": text or ""} for number, text in enumerate(TEXTS[:5])
        ]
        response = service.request(
            "POST", "/v1/documents", {"documents": documents, "mode": "add-if-new"}
        )
        assert [answer["kept_id"] for answer in response.json["answers"]] == [
            None,
            "0",
            "0",
            None,
            None,
        ]
        assert response.json["answers"][2]["similarity"] == jaccard(
            "the same text", "the same texts"
        )


@pytest.mark.slow
@pytest.mark.filterwarnings(IGNORED)
def test_spark_removes_and_signs_the_same(spark):
    require_spark()
    spark.sparkContext.addPyFile(str(FOLDER / "byte_grams.py"))
    method = ByteGrams(threshold=0.6)
    table = pa.table({"id": range(len(TEXTS)), "text": TEXTS})
    frame = frame_of(spark, TEXTS, 3)
    found = neardup.spark.dedup(frame, id_column="id", method=method)
    expected = neardup.dedup(table, method=method, id_column="id")
    assert removed_by_spark(found, method) == removed_locally(expected, method) != []
    pairs = neardup.spark.find_pairs(frame, id_column="id", method=method).toArrow()
    local = neardup.find_pairs(table, method=method, id_column="id").pairs
    assert sorted(pairs["similarity"].to_pylist()) == sorted(local["similarity"].to_pylist())
    signed = {
        row["id"]: row["values"]
        for row in neardup.spark.sign(frame, id_column="id", method=method).collect()
    }
    assert [signed[number] for number in range(len(TEXTS))] == neardup.sign(
        TEXTS, method=method
    ).values.tolist()


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "neardup", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_command_line_has_its_name_and_its_options(tmp_path, registered):
    pq.write_table(pa.table({"text": [text or "" for text in TEXTS]}), tmp_path / "in.parquet")
    options = ("--method", "bytes", "--width", "6", "--threshold", "0.7")
    done = run(tmp_path, "dedup", "in.parquet", "-o", "out", *options, "--json")
    assert json.loads(done.stdout)["scheme"]["width"] == 6, done.stderr
    assert pq.read_table(tmp_path / "out" / "removed.parquet")["id"].to_pylist() == ["1", "2"]
    done = run(
        tmp_path, "dedup", "in.parquet", "-o", "again", "--config", "out/report.json", "--json"
    )
    assert json.loads(done.stdout)["scheme"]["width"] == 6, done.stderr
    done = run(tmp_path, "dedup", "in.parquet", "-o", "other", "--width", "6")
    assert "--width belongs to --method bytes: got it with MinHash" in done.stderr
    assert "ByteGrams (--method bytes):" in run(tmp_path, "find-pairs", "--help-all").stdout


@pytest.mark.slow
def test_every_command_takes_it(tmp_path, registered):
    rows = {"text": [text or "" for text in TEXTS], "cluster": [0, 0, 0, 1, 2, 3, 4]}
    pq.write_table(pa.table(rows), tmp_path / "in.parquet")
    method = ("--method", "bytes")
    for command in (
        ("find-pairs", "in.parquet", "-o", "pairs.parquet", *method),
        ("cluster", "in.parquet", "-o", "clusters", *method),
        ("sign", "in.parquet", "-o", "signed.parquet", *method, "--width", "5"),
        ("evaluate", "in.parquet", "--label", "cluster", *method),
        (
            "evaluate",
            "in.parquet",
            "--label",
            "cluster",
            "--compare-methods",
            "minhash",
            "--compare-methods",
            "bytes",
        ),
        ("index", "create", "texts.index", *method),
        ("index", "add-if-new", "texts.index", "in.parquet"),
        ("dedup", "in.parquet", "--against", "texts.index", "-o", "out"),
    ):
        done = run(tmp_path, *command)
        assert done.returncode == 0, done.stderr
    assert neardup.Signatures.open(tmp_path / "signed.parquet").scheme["width"] == 5


@pytest.mark.parametrize("name", ["no_such_module", "./no_such_module"])
def test_a_module_of_methods_that_does_not_exist_is_an_error(
    tmp_path, registered, monkeypatch, name
):
    monkeypatch.setenv("NEARDUP_METHODS", name)
    done = run(tmp_path, "dedup", "in.parquet", "-o", "out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"NEARDUP_METHODS names modules that register methods: got {name}" in done.stderr
