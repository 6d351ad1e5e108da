"""Open the engine that a user named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from neardup.documents.batch_cache import BatchCache
from neardup.engines.base import Engine
from neardup.engines.capabilities import LOCAL, SPARK
from neardup.engines.local.pipeline import LocalEngine
from neardup.errors import MissingExtraError
from neardup.methods.registry import method_of
from neardup.runs.refusals import refuse_together
from neardup.runs.run import Run


@contextmanager
def open_engine(run: Run) -> Iterator[Engine]:
    """Open the engine of a run.

    Raises
    ------
    SettingError
        If it does not take an option.
    MissingExtraError
        If PySpark is not installed.
    """
    on_spark = accepted_by_spark(run)
    if not method_of(run.method).keeps_groups_apart:
        refuse_together("fingerprints", within=run.selection.within)
    if on_spark:
        # Imported late, because PySpark is optional.
        from neardup.engines.spark.engine import SparkEngine

        with closing(SparkEngine(run)) as spark:
            yield spark
        return
    cache = BatchCache(run.settings.cache_bytes, with_payload=run.inputs.copies)
    try:
        yield LocalEngine(run, cache)
    finally:
        cache.clear()


def accepted_by_spark(run: Run) -> bool:
    """Return whether the engine of a run is Spark. Raise SettingError if the engine does not take
    an option.
    """
    on_spark = is_spark(run)
    (SPARK if on_spark else LOCAL).refuse(run.command, run.options)
    return on_spark


def is_spark(run: Run) -> bool:
    """Return whether the engine of a run is Spark. Raises MissingExtraError without PySpark."""
    uses_spark = run.engine.engine == "spark"
    if uses_spark:
        require_spark()
    return uses_spark


def require_spark() -> None:
    """Raise MissingExtraError without PySpark."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "Spark needs PySpark, which is not installed. Install it: pip install 'neardup[spark]'."
        ) from error
