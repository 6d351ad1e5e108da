"""A Spark session for tests, and the tables of both engines to compare."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import neardup
from neardup.methods.registry import method_of

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for processes of seconds: half of their time is its second compiler."""

# Of the drivers, the processes of a cluster, and the process that starts each of them.
for _name in ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(_name, BRIEF)

IGNORED = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def require_spark() -> None:
    """Skip the module where Spark cannot run."""
    if shutil.which("java") is None:
        pytest.skip(
            "no Java on the path: install openjdk-17-jre-headless to test Spark",
            allow_module_level=True,
        )
    try:
        import pyspark  # noqa: F401
    except ImportError:
        pytest.skip(
            "no pyspark: pip install 'pyspark[sql]>=4,<5' to test Spark", allow_module_level=True
        )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a session of two threads, shared by all tests."""
    require_spark()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 1g pyspark-shell"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "3")
            # A quarter of the time of small jobs is generated code and plans that adapt. Tests of a
            # cluster have both.
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def frame_of(spark: Any, texts: list[str | None], num_partitions: int, first_id: int = 0) -> Any:
    """Return a DataFrame of id and text, whose rows are spread over partitions in no order."""
    table = pa.table(
        {
            "id": pa.array(range(first_id, first_id + len(texts)), pa.int64()),
            "text": pa.array(texts, pa.string()),
        }
    )
    return spark.createDataFrame(table).repartition(num_partitions, "text")


def removed_by_spark(found: Any, method: Any) -> list[tuple]:
    """Return (id, kept_id, measures ...) of the removed documents, in their order."""
    names = ["id", "kept_id", *(measure.name for measure in method_of(method).measures)]
    rows = found.removed.select(*names).toArrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def removed_locally(found: neardup.Deduplication, method: Any) -> list[tuple]:
    """Return the same of the local engine; ids are numbers."""
    names = [measure.name for measure in method_of(method).measures]
    rows = found.removed.select(["id", "kept_id", *names]).to_pylist()
    return sorted(
        (int(row["id"]), int(row["kept_id"]), *(row[name] for name in names)) for row in rows
    )
