"""Decide about files on a cluster: the driver decides with the code of the local engine, or workers in a larger run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from neardup import schemas
from neardup.arrays import Floats, Ints, Mask, Positions, Words, arrow_of, begins_run, ranges
from neardup.decide.clusters import first_members
from neardup.decide.outcome import SHORT, Outcome, Pairs, Removals, Totals, count_decisions
from neardup.decide.sieve import decide
from neardup.documents.batch import Rejected, ValueNames
from neardup.engines.base import Decided, Engine, count_by_value
from neardup.engines.spark import output, pipeline
from neardup.engines.spark.blocks import collect
from neardup.engines.spark.pipeline import LISTED, PLACES, Search
from neardup.engines.spark.session import open_session, translated
from neardup.engines.spark.source import NEW, PART_SHIFT, Files
from neardup.features.binary import flat_numbers
from neardup.features.grouping import hash_ids, hash_values
from neardup.files import write_text
from neardup.fingerprints.sketches import Sketches
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.sketcher import Sketcher
from neardup.output import write
from neardup.output.kept import try_sinks
from neardup.output.tables import removed_batches
from neardup.progress import Stages
from neardup.report.contents import build_report, drop_near_counts, warn_of_losses
from neardup.report.dedup_html import render_report
from neardup.report.items import Example
from neardup.runs.directory import OutputDirectory
from neardup.runs.ids import check_ids
from neardup.runs.locations import DocumentLocations
from neardup.runs.run import Found, Run
from neardup.runs.scratch import Scratch
from neardup.runs.signed import SignedCounts
from neardup.schemas import CANDIDATES, confirmed_schema
from neardup.verify.measured import Measured, measured_of_copies
from neardup.verify.recall import Recall, estimate_recall


class Decisions(NamedTuple):
    """The decisions of a run.

    rejected : the lines of rejected.jsonl. id_hashes, value_hashes : uint64 by document, of its id and of the counted
    value; empty if there are none.
    """

    outcome: Outcome
    locations: DocumentLocations
    rejected: list[str]
    id_hashes: Words
    value_hashes: Words


class _Queue(NamedTuple):
    """Documents with features in the order of priority.

    positions : int64, rising. numbers : uint32, their running numbers. first : int64, the place in the queue of the
    first document of the same content. num_against : those of the earlier corpus.
    """

    positions: Ints
    numbers: Positions
    first: Ints
    num_against: int


class _Found(NamedTuple):
    """Pairs of documents, by their places in the queue. row : of the measured pairs, or -1 for a copy."""

    left: Ints
    right: Ints
    row: Ints

    def take(self, rows: Ints) -> _Found:
        """Return some of the pairs."""
        return _Found(*(column[rows] for column in self))


def decide_here(search: Search, tasks: list[Task], method: Method, *, all_pairs: bool) -> Decisions:
    """Collect the documents, without their texts, and the pairs of a run, and decide."""
    light = collect(search.listed, LISTED)
    rejected, light = (light.filter(mask) for mask in (light["rejected"].is_valid(), light["rejected"].is_null()))
    light = light.sort_by("document")
    keys, num_bytes, sizes = (light[name].to_numpy() for name in ("document", "bytes", "size"))
    at = [rows["document"].to_numpy() >> PART_SHIFT for rows in (light, rejected, light)]
    weighed = zip(at, (None, None, num_bytes), strict=True)
    counts = np.stack([np.bincount(parts, weights, len(tasks)) for parts, weights in weighed]).astype(np.int64)
    lines = _in_order(rejected)
    counted = light["count_by"].combine_chunks()
    value_hashes = np.empty(0, np.uint64) if counted.null_count == len(counted) else hash_values(counted)
    corpus = output.corpus_of_counts(counts, int(np.count_nonzero(sizes == 0)), lines, tasks)
    corpus = replace(corpus, names=_names(counted, value_hashes, corpus.num_against))
    queue = _queue(search, keys)
    found, measured, removed, expected = _decide(search, queue, method, all_pairs)
    removals = Removals(queue.numbers[removed.right], queue.numbers[removed.left], measured[1].take(removed.row))
    pairs = Pairs(queue.numbers[found.left], queue.numbers[found.right], measured[0].take(found.row))
    num_overflows = _num_overflows(search, queue, method, removed.right)
    outcome = Outcome(
        corpus=corpus,
        counts=count_decisions(removals, pairs, corpus, num_bytes),
        short=int(np.count_nonzero((sizes > 0) & (sizes < SHORT))),
        compared=search.compared,
        num_bucket_overflows=num_overflows,
        recall=None if num_overflows else _recall(found, pairs.measured.exact, expected, len(keys), method),
        removals=removals,
        pairs=pairs,
    )
    ids = light["id"].combine_chunks() if any(task.columns.id is not None for task in tasks) else None
    parts = [task.part.name for task in tasks]
    locations = DocumentLocations(parts, corpus, light["row"].to_numpy(), ids, lambda: None)
    hashes = np.empty(0, np.uint64) if ids is None else hash_ids(ids)
    return Decisions(outcome, locations, lines, hashes, value_hashes)


def _in_order(rejected: pa.Table) -> list[str]:
    """Return the lines of rejected.jsonl, by file and row."""

    def place(number: int) -> list[int]:
        row = json.loads(lines[number])
        # That a file is lost, which has neither, comes after its rows.
        numbers = (sys.maxsize if row[name] is None else row[name] for name in ("row", "line"))
        return [documents[number], *numbers]

    lines, documents = rejected["rejected"].to_pylist(), rejected["document"].to_pylist()
    return [lines[number] for number in sorted(range(len(lines)), key=place)]


def _queue(search: Search, keys: Ints) -> _Queue:
    placed = collect(search.placed, PLACES).sort_by("position")
    document, positions, first = (column.to_numpy() for column in placed.columns)
    numbers = np.searchsorted(keys, document).astype(np.uint32)
    return _Queue(positions, numbers, np.searchsorted(positions, first), int(np.searchsorted(positions, NEW)))


def _decide(
    search: Search, queue: _Queue, method: Method, all_pairs: bool
) -> tuple[_Found, tuple[Measured, Measured], _Found, Floats]:
    """Return all pairs, the measures of the rows of these and of the removals, the removals, and what is expected."""
    confirmed, found = _collect(search.confirmed, queue, method)
    measured, expected = _measured(confirmed, method), confirmed["expected"].to_numpy()
    kept = np.ones(len(queue.first), np.bool_)
    if search.clusters is not None:
        clusters, edges = _collect(search.clusters, queue, method)
        kept[edges.right] = False
        removed, of_removed = _with_copies(edges, kept, queue), _measured(clusters, method)
    elif all_pairs:
        removed, of_removed = found.take(np.empty(0, np.int64)), measured
    else:
        later = (found.left < found.right) & (found.right >= queue.num_against)
        left, right = (end[later].astype(np.uint32) for end in (found.left, found.right))
        # Strength does not change which documents are kept, only by which of them another is removed.
        kept = decide(left, right, np.ones(len(left)), np.arange(len(kept), dtype=np.uint32), queue.num_against).kept
        found, of_removed = _with_copies(found, kept, queue), measured
        strength = np.append(confirmed["strength"].to_numpy(), np.inf)[found.row]
        best = np.lexsort((found.left, -strength, found.right))
        removed = found.take(best[begins_run(found.right[best])])
    return found, (measured, of_removed), removed.take(np.argsort(queue.numbers[removed.right])), expected


def _collect(blocks: DataFrame, queue: _Queue, method: Method) -> tuple[pa.Table, _Found]:
    """Return measured pairs, by the later document and then by the earlier."""
    rows = collect(blocks, confirmed_schema(method.measures)).sort_by([("right", "ascending"), ("left", "ascending")])
    left, right = (np.searchsorted(queue.positions, rows[name].to_numpy()) for name in ("left", "right"))
    return rows, _Found(left, right, np.arange(len(rows)))


def _measured(rows: pa.Table, method: Method) -> Measured:
    """Return the measures of pairs, and behind them those of a document and its copy."""
    columns, copy = output.measured_of(rows, method.measures).columns, measured_of_copies(1, method.measures).columns
    return Measured({name: np.append(values, copy[name]) for name, values in columns.items()})


def _with_copies(found: _Found, kept: Mask, queue: _Queue) -> _Found:
    """Return the pairs of a kept document and a removed one, those of its copies, and those of copies of kept ones."""
    members = np.argsort(queue.first, kind="stable")
    numbers, starts, sizes = np.unique(queue.first[members], return_index=True, return_counts=True)
    alone = np.flatnonzero(kept[numbers] & (sizes > 1))
    chosen = np.flatnonzero(kept[found.left] & ~kept[found.right])
    left, first = np.append(found.left[chosen], numbers[alone]), np.append(found.right[chosen], numbers[alone])
    group = np.searchsorted(numbers, first)
    right = members[ranges(starts[group], sizes[group])]
    left = np.repeat(left, sizes[group])
    row = np.repeat(np.append(chosen, np.full(len(alone), -1)), sizes[group])
    later = np.flatnonzero((left < right) & (right >= queue.num_against))
    pairs = _Found(left, right, row).take(later)
    return pairs.take(np.lexsort((pairs.left, pairs.right)))


def _num_overflows(search: Search, queue: _Queue, method: Method, removed: Ints) -> int:
    """Return the same as `output.num_overflows`."""
    hidden = collect(search.hidden, CANDIDATES)
    ends = ~hidden["left"].to_numpy(), hidden["right"].to_numpy()
    left, right = (np.searchsorted(queue.positions, end) for end in ends)
    if search.clusters is not None:
        first, (_, edges) = np.arange(len(queue.first)), _collect(search.clusters, queue, method)
        first[edges.right] = edges.left
        return len(np.unique(right[first[left] != first[right]]))
    unlisted = np.full(len(queue.first), len(queue.first))
    np.minimum.at(unlisted, right, left)
    behind = np.arange(len(queue.first)) > unlisted[queue.first]
    behind[: queue.num_against] = False
    behind[removed] = False
    return int(np.count_nonzero(behind))


def _recall(found: _Found, exact: Mask, expected: Floats, num_documents: int, method: Method) -> Recall | None:
    if method.hit_probability is None:
        return None
    left, right = (end[~exact].astype(np.uint32) for end in (found.left, found.right))
    clusters = first_members(num_documents, left, right)[left]
    return estimate_recall(expected[found.row[~exact]], clusters, method.hit_probability)


def _names(column: pa.Array, hashes: Words, num_against: int) -> ValueNames:
    """Return the values of the counted column, each once; hashes : of the values, by document."""
    distinct, first = np.unique(hashes[num_against:], return_index=True)
    return ValueNames(distinct, column.take(arrow_of(first + num_against)))


class SparkEngine(Engine):
    """Decides about files on a cluster.

    The driver collects the id, the row and the length of each document, and all pairs. In a larger run of
    `dedup_files`, it collects counts only.
    """

    def __init__(self, run: Run, master: str | None) -> None:
        super().__init__(run)
        self.master, self.rounds = master, 0

    @contextmanager
    def open(
        self, found: list[Task], method: Method, stages: Stages, shared: output.SharedFolder | None
    ) -> Iterator[tuple[pipeline.Run, Files]]:
        """Open the flow of the run on a cluster, over the parts that were found."""
        run = self.run
        selection = method.in_all_pairs(run.selection) if run.all_pairs else run.selection
        with translated():
            spark = open_session(self.master)
            if shared is not None:
                shared.use(spark)
            tasks = spark.sparkContext.broadcast(found)
            corpus = Files(spark, tasks, run.settings.on_error, run.selection.within is not None)
            with pipeline.Run(spark, corpus, method, selection, stages, all_pairs=run.all_pairs) as flow:
                try:
                    yield flow, corpus
                finally:
                    flow.release()

    def perform(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Decided:
        """Read the inputs and decide about their documents."""
        run = self.run
        found = run.find()
        if run.copies:
            try_sinks(found.tasks)
        tasks, method, warnings = [task.identified() for task in found.tasks], found.method.resolve(), found.warnings
        if folder is not None:
            folder.begin(resume=False)
        with self.open(tasks, method, stages, None) as (flow, _):
            search = flow.search()
            with flow.named("decide"):
                made = decide_here(search, tasks, method, all_pairs=run.all_pairs)
                lines = "".join(f"{line}\n" for line in made.rejected)
                scratch.append(schemas.REJECTED, np.frombuffer(lines.encode("utf-8", "replace"), np.uint8))
                scratch.close_columns()
        warnings += check_ids(run, made.id_hashes, made.outcome.corpus, made.locations)
        by_value = count_by_value(run, made.outcome, made.value_hashes)
        return Decided(tasks, method, made.outcome, made.locations, warnings, by_value)

    def complete(self, report: dict[str, Any]) -> None:
        """Name the engine in the report, which has no counts of near fingerprints."""
        report["engine"] = {"name": "spark", "rounds": self.rounds}
        drop_near_counts(report)


def sign_files(
    run: Run, master: str | None, found: Found, counts: SignedCounts, stages: Stages
) -> tuple[Sketcher, Iterator[Sketches]]:
    """Sign the documents of files on a cluster; the driver collects the rows. counts : is updated."""
    with SparkEngine(run, master).open(found.tasks, found.method, stages, None) as (flow, _), flow.named("sign"):
        signed, sketcher = flow.sign(), flow.method.value.sketcher
        counts.rejected += [Rejected(**json.loads(line)) for line in output.rejected_lines(signed)]
        rows = signed.filter("rejected is null").orderBy("document").toArrow()
    counts.read = len(rows)
    totals = (pc.sum(rows[name], min_count=0).as_py() for name in ("empty", "short", "bytes"))
    counts.without_features, counts.short, counts.text_bytes = totals
    has_ids = any(task.columns.id is not None for task in found.tasks)
    return sketcher, _sketches_of(rows, sketcher, has_ids)


def _sketches_of(rows: pa.Table, sketcher: Sketcher, has_ids: bool) -> Iterator[Sketches]:
    """Yield the rows of documents, which are numbered without a column of ids."""
    kind, first = sketcher.method.sketches, 0
    for batch in rows.to_batches():
        values = flat_numbers(batch["sketch"], kind.dtype).reshape(len(batch), sketcher.width)
        ids = batch["id"] if has_ids else arrow_of(np.arange(first, first + len(batch))).cast(pa.string())
        yield kind(values, sketcher.scheme, ids, batch["empty"].to_numpy(zero_copy_only=False))
        first += len(batch)


def dedup_files(
    engine: Engine,
    folder: OutputDirectory,
    wanted: str,
    lang: str,
    scratch: str | os.PathLike[str] | None,
    stages: Stages,
) -> dict[str, Any]:
    """Remove the near-duplicates of files: workers write the kept documents, and the driver collects counts.

    Parameters
    ----------
    wanted : kept; or removed, to write no documents but removed.parquet.
    scratch : a folder that the driver and all workers share. Default: next to the output; for an address, which Spark
        must be configured to write to, the address with .partial at its end.

    Returns
    -------
    dict
        The report, which is in the folder too.
    """
    assert isinstance(engine, SparkEngine)
    shared, begun = output.SharedFolder(folder, scratch), False
    try:
        folder.refuse_inputs_inside(engine.paths())
        found = engine.run.find()
        if engine.run.copies:
            try_sinks(found.tasks)
        tasks, method, warnings = found.tasks, found.method.resolve(), found.warnings
        folder.begin(resume=False)
        begun = True
        with engine.open(tasks, method, stages, shared) as (flow, corpus):
            search = flow.search()
            finish = _finish_here if search.fits_driver else _finish_on_workers
            totals, by_value, shown = finish(engine, flow, corpus, search, _Output(folder, shared, wanted))
        warnings += warn_of_losses(tasks, totals, by_value)
        of_run = tasks, method, engine.run.selection, totals, stages, warnings
        report = build_report("dedup", *of_run, options=engine.run.given)
        report |= {"write": wanted, "by_value": by_value, "lang": lang}
        engine.complete(report)
        write.write_report(report, render_report(report, shown), folder.result)
        folder.finish()
    except BaseException:
        folder.discard()
        if begun and folder.remote is not None:
            folder.remote.delete()
        raise
    finally:
        shared.delete()
    return report


Finished = tuple[Totals, dict[str, Any] | None, list[Example]]


class _Output(NamedTuple):
    """Where the output of a run goes. wanted : as in `dedup_files`."""

    folder: OutputDirectory
    shared: output.SharedFolder
    wanted: str


def _finish_here(
    engine: SparkEngine, flow: pipeline.Run, corpus: Files, search: pipeline.Search, to: _Output
) -> Finished:
    """Decide on the driver, and write the output; workers write the kept documents."""
    tasks, method = corpus.tasks.value, flow.method.value
    with flow.named("decide"):
        found = decide_here(search, tasks, method, all_pairs=False)
        removals = found.outcome.removals
    with flow.named("write"):
        rows = removed_batches(removals, found.locations, method.measures)
        write.write_parquet(rows, schemas.removed_schema(method.measures), to.folder.result / "removed.parquet")
        _write_rejected(found.rejected, to.folder)
        if to.wanted == "kept":
            keys = output.keys_of(removals.documents.astype(np.int64), found.outcome.corpus)
            output.write_kept(corpus, output.lists_of_removed(corpus, keys), found.outcome, to.folder)
    with flow.named("report"):
        shown = output.show_examples(corpus, removals, found.locations, found.outcome, method)
    return found.outcome, count_by_value(engine.run, found.outcome, found.value_hashes), shown


def _finish_on_workers(
    engine: SparkEngine, flow: pipeline.Run, corpus: Files, search: pipeline.Search, to: _Output
) -> Finished:
    """Decide about more documents than the driver can collect, and write the output."""
    tasks, method = corpus.tasks.value, flow.method.value
    outcome = flow.decide(search)
    with flow.named("write"):
        totals = output.summarise(outcome, tasks, method)
        output.write_removed(outcome, totals, tasks, method, to.shared, to.folder.result / "removed.parquet")
        _write_rejected(output.rejected_lines(outcome.light), to.folder)
        if to.wanted == "kept":
            output.write_kept(corpus, output.list_removed(outcome), totals, to.folder)
    with flow.named("report"):
        by_value = output.count_by_value(outcome, engine.run.counted)
        shown = output.show_examples(corpus, *output.sample_removals(outcome, totals, tasks, method), totals, method)
    engine.rounds = outcome.rounds
    return totals, by_value, shown


def _write_rejected(lines: list[str], folder: OutputDirectory) -> None:
    write_text(folder.result / "rejected.jsonl", "".join(f"{line}\n" for line in lines))
