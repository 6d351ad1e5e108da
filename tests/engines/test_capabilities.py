"""Check that each engine runs a command with an option, or refuses it by its sentence."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pytest

import neardup
from neardup.engines.capabilities import (
    COMMANDS,
    FRAMES,
    INDEX,
    LARGE_SPARK,
    LOCAL,
    SPARK,
    Capabilities,
    Limit,
    index_of,
)

TEXTS = [
    "the quick brown fox jumps over it",
    "The quick brown fox jumps over it!",
    "another text",
    "a fourth one",
]
TABLE = pa.table(
    {"text": TEXTS, "id": list("abcd"), "site": ["x", "x", "y", "y"], "date": [1, 2, 3, 4]}
)
VALUES: dict[str, tuple[Any, ...]] = {
    "keep": (
        "first",
        "last",
        "longest",
        "max:date",
        "source",
        "max:date,longest",
        "longest:2",
        "none",
    ),
    "within": (None, "site"),
    "count_by": (None, "site"),
    "sources": (None, "site", "input"),
    "dates": (None, "date"),
    "linkage": ("sieve", "connected"),
    "recall_sample": (0, 2),
    "threads": (None, 2),
    "batch_rows": (None, 2),
    "cache_bytes": (None, 0),
    "on_error": ("reject", "skip"),
    "max_bucket_size": (None, 7),
    "update": (False, True),
    "passages": (None, 200),
    "group_by": (None, "id"),
    "rethreshold": (False, True),
}
STAYING = {"longest:2": 4, "none": 2}  # of the four texts, where 3 is not the answer
ENGINES = (LOCAL, INDEX, SPARK)
CELLS = [
    (engine, option, value) for engine in ENGINES for option in VALUES for value in VALUES[option]
]


def limit_of(engine: Capabilities, option: str) -> Limit | None:
    return next((limit for limit in engine.limits if limit.option == option), None)


def run(engine: Capabilities, source: Any = TABLE, **options: Any) -> neardup.Deduplication:
    if engine is INDEX:
        with neardup.Index.create("memory:") as index:
            return neardup.dedup(source, against=index, **options)
    return neardup.dedup(source, engine=engine.name, **options)


@pytest.mark.parametrize(
    ("engine", "option", "value"), CELLS, ids=lambda cell: getattr(cell, "name", str(cell))
)
def test_an_option_works_or_is_refused_with_the_sentence_of_the_engine(
    engine, option, value, tmp_path, request
):
    limit = limit_of(engine, option)
    if limit is not None and not limit.accepts(value):
        if engine is SPARK:
            pytest.importorskip("pyspark")
        with pytest.raises(neardup.SettingError) as caught:
            run(engine, **{option: value})
        known = limit_of(index_of(64), option) if engine is INDEX else limit
        assert known is not None
        assert caught.value.args[0] == engine.refusal(known, value)
        assert limit.reason in str(caught.value)
    elif engine is not SPARK:  # test_spark_commands.py has what works there
        assert run(engine, **{option: value}).mask.sum() == STAYING.get(value, 3)


def test_every_limit_is_tried():
    # Of linkage, a rule that is registered. test_spark_contamination.py refuses an index as corpus.
    elsewhere = ("against", "resume", "linkage", "corpus")
    for engine in (*ENGINES, LARGE_SPARK):  # test_spark_files.py has what is refused to a large run
        for limit in engine.limits:
            tried = VALUES.get(limit.option, ())
            assert any(not limit.accepts(value) for value in tried) or limit.option in elsewhere, (
                limit
            )


def test_an_index_and_an_interrupted_run_are_refused_on_spark(tmp_path):
    pytest.importorskip("pyspark")
    limits = {limit.option: limit for limit in SPARK.limits}
    with neardup.Index.create("memory:") as index, pytest.raises(neardup.SettingError) as caught:
        neardup.dedup(TABLE, against=index, engine="spark")
    assert caught.value.args[0] == SPARK.refusal(limits["against"], "an index")
    with pytest.raises(neardup.SettingError) as caught:
        neardup.dedup(TABLE, engine="spark", output=tmp_path / "out", resume=True)
    assert caught.value.args[0] == SPARK.refusal(limits["resume"], True)


@pytest.mark.parametrize("output", ["out", "s3a://bucket/out"])
def test_the_scratch_of_a_run_on_spark_exists_whatever_the_output(output, tmp_path):
    pytest.importorskip("pyspark")
    with pytest.raises(
        neardup.SettingError, match=r"scratch must be an existing folder: got .*missing"
    ):
        neardup.dedup(
            TEXTS, engine="spark", output=output, scratch=tmp_path / "missing", tables=False
        )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_an_engine_if_spark_runs_it(command):
    parameters = inspect.signature(getattr(neardup, command)).parameters
    assert ("engine" in parameters) == (command in SPARK.commands)
    assert command in LOCAL.commands


def test_clusters_are_not_found_on_top_of_an_index():
    with neardup.Index.create("memory:") as index, pytest.raises(neardup.SettingError) as caught:
        neardup.cluster(TEXTS, against=index)
    assert caught.value.args[0] == INDEX.command_refusal("cluster")


def test_a_run_on_top_of_an_index_counts_by_the_values_of_a_column():
    rows = run(INDEX, count_by="site").report["by_value"]
    assert rows == run(LOCAL, count_by="site").report["by_value"]
    assert [row["removed"] for row in rows["values"]] == [1, 0]


@pytest.mark.parametrize(("engine", "master"), [("slurm", None), ("local", "spark://host:7077")])
def test_an_engine_that_there_is_not_is_refused(engine, master):
    with pytest.raises(neardup.SettingError, match="engine"):
        neardup.dedup(TEXTS, engine=engine, master=master)


def test_a_column_to_keep_by_may_have_any_name():
    FRAMES.refuse("dedup", {"keep": "max:a\nb,min:c:d,longest"})
    with pytest.raises(neardup.SettingError, match="keep must be"):
        FRAMES.refuse("dedup", {"keep": "max:a\nb,source"})
