"""Decide about files on a cluster: the driver decides with the code of the local engine, or workers in a larger run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schemas
from neardup.arrays import arrow_of
from neardup.decide.outcome import Totals
from neardup.documents.batch import Rejected
from neardup.engines.base import Engine, Searched, decide
from neardup.engines.spark import output, pipeline
from neardup.engines.spark.found import collect_found
from neardup.engines.spark.session import open_session, translated
from neardup.engines.spark.source import Files
from neardup.features.binary import flat_numbers
from neardup.files import AnyPath, write_text
from neardup.fingerprints.sketches import Sketches
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.sketcher import Sketcher
from neardup.output import write
from neardup.output.kept import try_sinks
from neardup.output.tables import removed_batches
from neardup.progress import Stages
from neardup.report.contents import Findings, dedup_report
from neardup.report.dedup_html import render_report
from neardup.report.items import Example
from neardup.report.record import EngineFacts
from neardup.runs.directory import OutputDirectory
from neardup.runs.ids import check_ids
from neardup.runs.run import Found, Run
from neardup.runs.scratch import Scratch
from neardup.runs.signed import SignedCounts


class SparkEngine(Engine):
    """Decides about files on a cluster.

    The driver collects the id, the row and the length of each document, and all pairs. In a larger run of
    `dedup_files`, it collects counts only.
    """

    def __init__(self, run: Run, master: str | None) -> None:
        super().__init__(run)
        self.master = master

    @contextmanager
    def open(
        self, found: list[Task], method: Method, stages: Stages, shared: output.SharedFolder | None
    ) -> Iterator[tuple[pipeline.Run, Files]]:
        """Open the flow of the run on a cluster, over the parts that were found."""
        run = self.run
        selection = method.in_all_pairs(run.selection) if run.rule.pairs == "all" else run.selection
        with translated():
            spark = open_session(self.master)
            if shared is not None:
                shared.use(spark)
            tasks = spark.sparkContext.broadcast(found)
            corpus = Files(spark, tasks, run.settings.on_error, run.selection.within is not None)
            with pipeline.Run(spark, corpus, method, selection, stages, all_pairs=run.rule.pairs == "all") as flow:
                try:
                    yield flow, corpus
                finally:
                    flow.release()

    def find(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Searched:
        """Read the inputs, and find the pairs that the rule of the run needs."""
        run = self.run
        found = run.find()
        if run.copies:
            try_sinks(found.tasks)
        tasks, method = [task.identified() for task in found.tasks], found.method.resolve()
        run.rule.refuse(method)
        if folder is not None:
            folder.begin(resume=False)
        with self.open(tasks, method, stages, None) as (flow, _):
            search = flow.search()
            with flow.named("decide"):
                made = collect_found(search, run.rule, tasks, flow.method.value, flow.selection)
                lines = "".join(f"{line}\n" for line in made.rejected)
                scratch.append(schemas.REJECTED, np.frombuffer(lines.encode("utf-8", "replace"), np.uint8))
                scratch.close_columns()
        searched = made.searched
        warnings = found.warnings + check_ids(run, made.id_hashes, searched.corpus, searched.locations)
        return replace(searched, warnings=warnings, engine=_facts(rounds=0))


def _facts(rounds: int) -> EngineFacts:
    return EngineFacts(engine={"name": "spark", "rounds": rounds})


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
    engine: Engine, folder: OutputDirectory, wanted: str, lang: str, scratch: AnyPath | None, stages: Stages
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
            done = finish(engine, flow, corpus, search, _Output(folder, shared, wanted))
        findings = Findings(
            tasks=tasks,
            method=method,
            selection=engine.run.selection,
            outcome=done.totals,
            stages=stages,
            warnings=warnings,
            engine=_facts(done.rounds),
            options=engine.run.given,
        )
        report = dedup_report(findings, by_value=done.by_value, write=wanted, lang=lang).to_dict()
        write.write_report(report, render_report(report, done.shown), folder.result)
        folder.finish()
    except BaseException:
        folder.discard()
        if begun and folder.remote is not None:
            folder.remote.delete()
        raise
    finally:
        shared.delete()
    return report


class _Finished(NamedTuple):
    """The totals of a run whose output is written. shown : the examples of its page. rounds : of the sieve."""

    totals: Totals
    by_value: dict[str, Any] | None
    shown: list[Example]
    rounds: int = 0


class _Output(NamedTuple):
    """Where the output of a run goes. wanted : as in `dedup_files`."""

    folder: OutputDirectory
    shared: output.SharedFolder
    wanted: str


def _finish_here(
    engine: SparkEngine, flow: pipeline.Run, corpus: Files, search: pipeline.Search, to: _Output
) -> _Finished:
    """Decide on the driver, and write the output; workers write the kept documents."""
    tasks, method = corpus.tasks.value, flow.method.value
    with flow.named("decide"):
        made = collect_found(search, engine.run.rule, tasks, method, flow.selection)
        found = decide(engine.run, made.searched)
        outcome, locations = found.outcome, found.locations
        removals = outcome.removals
    with flow.named("write"):
        rows = removed_batches(removals, locations, method.measures)
        write.write_parquet(rows, schemas.removed_schema(method.measures), to.folder.result / "removed.parquet")
        _write_rejected(made.rejected, to.folder)
        if to.wanted == "kept":
            keys = output.keys_of(removals.documents.astype(np.int64), outcome.corpus)
            output.write_kept(corpus, output.lists_of_removed(corpus, keys), outcome, to.folder)
    with flow.named("report"):
        shown = output.show_examples(corpus, removals, locations, outcome, method)
    return _Finished(totals=outcome, by_value=found.by_value, shown=shown)


def _finish_on_workers(
    engine: SparkEngine, flow: pipeline.Run, corpus: Files, search: pipeline.Search, to: _Output
) -> _Finished:
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
    return _Finished(totals=totals, by_value=by_value, shown=shown, rounds=outcome.rounds)


def _write_rejected(lines: list[str], folder: OutputDirectory) -> None:
    write_text(folder.result / "rejected.jsonl", "".join(f"{line}\n" for line in lines))
