"""Find all pairs of duplicates."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from neardup.api.inputs import Inputs, Source, tasks_of
from neardup.config import Method, MinHash, Running, Sieve
from neardup.engines import local, write
from neardup.engines.report import build_report
from neardup.engines.scratch import Scratch
from neardup.engines.stages import Nobody, Stages, Watcher
from neardup.engines.tell import Places, pair_batches
from neardup.results import DuplicatePairs
from neardup.schemas import pairs_schema


def find_pairs(
    source: Source,
    *,
    method: Method = MinHash(),  # noqa: B008 - frozen
    max_bucket: int = 1000,
    text_column: str | None = None,
    id_column: str | None = None,
    text_unit: str = "auto",
    threads: int | None = None,
    batch_rows: int | None = None,
    on_error: str = "reject",
    watcher: Watcher | None = None,
) -> DuplicatePairs:
    """Find all pairs of duplicates of a collection, with their exact similarity.

    Parameters
    ----------
    source, method, text_column, id_column, text_unit, threads, batch_rows, on_error, watcher : as in `dedup`.
    max_bucket : documents of one bucket that each other one is compared with at most, the earliest.

    Returns
    -------
    DuplicatePairs

    Examples
    --------
    >>> import neardup
    >>> neardup.find_pairs(["a b c d e f", "x y z", "A b c d e f."]).pairs.to_pylist()
    [{'left_id': '0', 'right_id': '2', 'similarity': 1.0, 'exact': True}]
    """
    collected: list[pa.RecordBatch] = []
    report = run_pairs(
        Inputs(source, None, text_column, id_column, text_unit),
        method,
        Sieve(max_bucket=max_bucket),
        Running(threads=threads, batch_rows=batch_rows, on_error=on_error),
        lambda batches, _: collected.extend(batches),
        watcher=watcher,
    )
    return DuplicatePairs(write.to_table(collected, pairs_schema(method.measures)), report)


def run_pairs(
    inputs: Inputs,
    method: Method,
    sieve: Sieve,
    running: Running,
    take: Callable[[Iterator[pa.RecordBatch], pa.Schema], None],
    *,
    watcher: Watcher | None,
) -> dict[str, Any]:
    """Do what `find_pairs` does, but hand the pairs to `take`, batch by batch; return the report."""
    stages = Stages(watcher or Nobody())
    with tempfile.TemporaryDirectory(prefix="neardup-") as directory, Scratch(Path(directory)) as scratch:
        tasks = tasks_of(inputs, sieve.keep)
        outcome = local.run(tasks, method, sieve, running, scratch, stages, all_pairs=True)
        places = Places(tasks, outcome.corpus, scratch)
        with stages.stage("write"):
            take(pair_batches(outcome.pairs, places, method.measures), pairs_schema(method.measures))
        report = build_report("pairs", tasks, method, sieve, outcome, stages)
        report["rejected"] = write.read_rejected(scratch.directory)
    return report
