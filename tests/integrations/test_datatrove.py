"""The filter for datatrove, in real pipelines over files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

import neardup
from neardup import Index, MinHash
from neardup.errors import StoreError

pytestmark = pytest.mark.slow
pytest.importorskip("datatrove", reason="no datatrove: pip install datatrove to test its filter")
FOX = "the quick brown fox jumps over the lazy dog near the river bank"
TEXTS = [
    FOX,
    FOX + ", again",
    "an entirely different sentence about databases and their journals",
    FOX.upper() + "!",
]
METHOD = MinHash(ngram=2, threshold=0.7)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    with open(tmp_path / "raw" / "a.jsonl", "w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"id": f"d{number}", "text": text}) + "\n"
            for number, text in enumerate(TEXTS)
        )
    Index.create(tmp_path / "seen.index", method=METHOD).close()
    return tmp_path


def run(folder: Path, name: str, **options) -> tuple[list[dict], list[dict]]:
    """Return the rows that a pipeline writes, and those that it excludes."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    from neardup.integrations.datatrove import SeenBeforeFilter

    removed = JsonlWriter(str(folder / name / "removed"))
    step = SeenBeforeFilter(str(folder / "seen.index"), exclusion_writer=removed, **options)
    pipeline = [JsonlReader(str(folder / "raw")), step, JsonlWriter(str(folder / name / "kept"))]
    LocalPipelineExecutor(pipeline, tasks=1, logging_dir=str(folder / name / "logs")).run()
    return rows(folder / name / "kept"), rows(folder / name / "removed")


def rows(folder: Path) -> list[dict]:
    lines: list[dict] = []
    for file in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as opened:
            lines += [json.loads(line) for line in opened]
    return lines


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
def test_a_pipeline_keeps_what_dedup_keeps_and_says_why_the_others_go(
    folder: Path, batch_size: int
) -> None:
    kept, removed = run(folder, "first", batch_size=batch_size)
    expected = neardup.dedup(pa.table({"text": TEXTS}), method=METHOD)
    assert [row["id"] for row in kept] == [
        f"d{row}" for row in range(4) if row not in expected.removed["row"].to_pylist()
    ]
    assert [
        (row["id"], row["metadata"]["filter_reason"], row["metadata"]["kept_id"]) for row in removed
    ] == [
        ("d1", "near_duplicate", "d0"),
        ("d3", "exact_copy", "d0"),
    ]
    assert [row["metadata"]["similarity"] for row in removed] == expected.removed[
        "similarity"
    ].to_pylist()


def test_a_task_that_runs_again_writes_the_same(folder: Path) -> None:
    assert run(folder, "first") == run(folder, "second")


def test_documents_that_the_index_has_pass_again_unless_only_new_ones_are_wanted(
    folder: Path,
) -> None:
    assert [row["id"] for row in run(folder, "first", only_new=True)[0]] == ["d0", "d2"]
    assert [row["id"] for row in run(folder, "again")[0]] == ["d0", "d2"]
    kept, removed = run(folder, "new", only_new=True)
    assert kept == []
    assert [row["metadata"]["filter_reason"] for row in removed] == [
        "repeated",
        "near_duplicate",
        "repeated",
        "exact_copy",
    ]


def test_a_second_writer_of_a_folder_is_refused(folder: Path) -> None:
    from neardup.integrations.datatrove import SeenBeforeFilter

    with Index.open(folder / "seen.index"), pytest.raises(StoreError, match="writ"):
        list(SeenBeforeFilter(str(folder / "seen.index")).run(iter([])))
