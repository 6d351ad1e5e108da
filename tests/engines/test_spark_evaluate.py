"""An evaluation on Spark gives the scores of a local one."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from reference.corpora import random_texts
from spark_session import IGNORED, require_spark

require_spark()
pytestmark = [pytest.mark.filterwarnings(IGNORED), pytest.mark.slow]

METHODS = {
    "bands": neardup.MinHash(ngram=2, threshold=0.5),
    "containment": neardup.MinHash(ngram=1, threshold=0.6, similarity="containment"),
    "fingerprints of rare words": neardup.SimHash(max_distance=12, weights="tfidf"),
}
# Times, and counts that the local engine makes while it decides.
OWN = {"timings", "seconds", "compile_seconds", "megabytes_per_second", "documents_per_second"}
OWN |= {"peak_memory_bytes", "counts", "recall", "fingerprints"}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two files of texts with labels, some unknown, and judged pairs of their ids."""
    folder = tmp_path_factory.mktemp("labelled")
    draw = random.Random(3)
    texts = random_texts(3, 120)
    for number in range(2):
        rows = {
            "id": [f"{number}-{row}" for row in range(60)],
            "text": pa.array(texts[number::2], pa.string()),
            "cluster": [draw.choice(["a", "b", "c", None]) for _ in range(60)],
        }
        pq.write_table(pa.table(rows), folder / f"{number}.parquet")
    judged = {
        "left_id": [f"0-{row}" for row in range(60)],
        "right_id": [f"1-{row}" for row in range(60)],
        "duplicate": [draw.random() < 0.5 for _ in range(60)],
    }
    pq.write_table(pa.table(judged), folder / "judged.parquet")
    return folder


def report_of(result: neardup.Evaluation) -> dict:
    """Return a report without the parts of one engine."""
    return {name: value for name, value in result.report.items() if name not in OWN}


@pytest.mark.parametrize("name", METHODS)
def test_the_scores_of_labels_are_those_of_a_local_run(spark, labelled, tmp_path, name):
    found, expected = (
        neardup.evaluate(
            [str(labelled / "0.parquet"), str(labelled / "1.parquet")],
            method=METHODS[name],
            engine=engine,
            errors=tmp_path / f"{engine}.html",
        )
        for engine in ("spark", "local")
    )
    assert expected.at_threshold.found > 10
    assert found.at_threshold == expected.at_threshold
    assert found.curve.equals(expected.curve)
    assert found.by_length.equals(expected.by_length)
    assert found.adjusted_rand == expected.adjusted_rand
    assert found.adjusted_rand_connected == expected.adjusted_rand_connected
    assert report_of(found) == report_of(expected)
    pages = [(tmp_path / f"{engine}.html").read_text() for engine in ("spark", "local")]
    assert pages[0] == pages[1]


def test_the_scores_of_judged_pairs_and_rejected_rows_are_those_of_a_local_run(
    spark, labelled, tmp_path
):
    broken = tmp_path / "x.jsonl"
    broken.write_text('{"id": "x", "text": "a b"}\nnot json\n')
    sources = [str(labelled / "0.parquet"), str(labelled / "1.parquet"), str(broken)]
    found, expected = (
        neardup.evaluate(
            sources,
            pairs=str(labelled / "judged.parquet"),
            method=METHODS["bands"],
            engine=engine,
            max_unreadable=1,
        )
        for engine in ("spark", "local")
    )
    assert expected.at_threshold.positives > 10
    assert len(expected.report["rejected"]) == 1
    assert found.at_threshold == expected.at_threshold
    assert found.curve.equals(expected.curve)
    assert report_of(found) == report_of(expected)


def test_methods_are_compared_as_on_this_machine(spark, labelled):
    source = str(labelled / "0.parquet")
    found, expected = (
        neardup.compare_methods(source, ["minhash", "simhash"], engine=engine)
        for engine in ("spark", "local")
    )
    assert {name: result.best for name, result in found.items()} == {
        name: result.best for name, result in expected.items()
    }
