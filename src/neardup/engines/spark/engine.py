"""Decide about files on a cluster: the driver collects the decisions, or workers write the output of a larger run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schemas
from neardup.arrays import arrow_of
from neardup.decide.outcome import Outcome, Pairs, Removals, count_decisions
from neardup.documents.batch import Rejected
from neardup.documents.corpus import Corpus
from neardup.engines.base import Decided, Engine, check_ids
from neardup.engines.local.scratch import Scratch
from neardup.engines.local.sign import Counts
from neardup.engines.spark import output, pipeline
from neardup.engines.spark.session import open_session, translated
from neardup.engines.spark.source import Files
from neardup.features.binary import flat_numbers
from neardup.features.grouping import hash_values
from neardup.fingerprints.sketches import Sketches
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.sketcher import Sketcher
from neardup.output import write
from neardup.output.directory import OutputDirectory
from neardup.output.tables import DocumentLocations
from neardup.progress import Stages
from neardup.report.contents import build_report, drop_near_counts
from neardup.report.dedup_html import render_report
from neardup.report.losses import warn_of_losses
from neardup.runs.run import Found, Run


class SparkEngine(Engine):
    """Decides about files on a cluster.

    The driver collects what the local writers need: the id, the row and the length of each document, and all pairs.
    `dedup_files` writes the folder of a larger run.
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
                yield flow, corpus

    def perform(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Decided:
        """Read the inputs and decide about their documents."""
        run = self.run
        found = run.find()
        tasks, method, warnings = [task.identified() for task in found.tasks], found.method.resolve(), found.warnings
        if folder is not None:
            folder.begin(resume=False)
        with self.open(tasks, method, stages, None) as (flow, _):
            outcome = flow.decide()
            with flow.named("collect"):
                self.rounds = outcome.rounds
                lines = "".join(f"{line}\n" for line in output.rejected_lines(outcome.light))
                scratch.append(schemas.REJECTED, np.frombuffer(lines.encode("utf-8", "replace"), np.uint8))
                scratch.close_columns()
                decided, locations, hashes = _collect(outcome, tasks, method)
                by_value = output.count_by_value(outcome, run.counted)
        warnings += check_ids(run, hashes, decided.corpus, locations)
        return Decided(tasks, method, decided, locations, warnings, by_value)

    def complete(self, report: dict[str, Any]) -> None:
        """Name the engine in the report, which has no counts of near fingerprints."""
        report["engine"] = {"name": "spark", "rounds": self.rounds}
        drop_near_counts(report)


def sign_files(
    run: Run, master: str | None, found: Found, counts: Counts, stages: Stages
) -> tuple[Sketcher, Iterator[Sketches]]:
    """Sign the documents of files on a cluster; the driver collects the rows. counts : is updated."""
    with SparkEngine(run, master).open(found.tasks, found.method, stages, None) as (flow, _), flow.named("sign"):
        signed, sketcher = flow.sign(), flow.method.value.sketcher
        counts.rejected += [Rejected(**json.loads(line)) for line in output.rejected_lines(signed)]
        rows = signed.filter("rejected is null").orderBy("document").toArrow()
    counts.read = len(rows)
    counts.without_features, counts.short, counts.text_bytes = (
        pc.sum(rows[name], min_count=0).as_py() for name in ("empty", "short", "bytes")
    )
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


def _collect(
    found: pipeline.Outcome, tasks: list[Task], method: Method
) -> tuple[Outcome, DocumentLocations, npt.NDArray[np.uint64]]:
    """Return the decisions, the locations of all documents, and the hashes of their ids, if there are any."""
    corpus = output.corpus_of(found.light, tasks)
    rows = found.light.filter("rejected is null").orderBy("document").select("id", "row", "bytes").toArrow()
    ids = rows["id"].combine_chunks() if any(task.columns.id is not None for task in tasks) else None
    names = [task.part.name for task in tasks]
    locations = DocumentLocations(names, corpus, rows["row"].to_numpy(), ids, lambda: None)
    listed = output.located(found, found.found).orderBy("right", "left").toArrow()
    pairs = Pairs(*_sides(listed, corpus), output.measured_of(listed, method.measures))
    gone = listed.slice(0, 0)
    if found.removed is not None:
        gone = output.located(found, found.removed).orderBy("document").toArrow()
    kept_number, number = _sides(gone, corpus)
    removals = Removals(number, kept_number, output.measured_of(gone, method.measures))
    counts = count_decisions(removals, pairs, corpus, rows["bytes"].to_numpy().astype(np.int64))
    totals = output.totals_of(found, corpus, counts, method)
    hashes = np.empty(0, np.uint64) if ids is None else hash_values(ids)
    return Outcome(**vars(totals), removals=removals, pairs=pairs), locations, hashes


def _sides(rows: pa.Table, corpus: Corpus) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Return the running numbers of the earlier and of the later document of pairs."""
    earlier, later = (output.numbers_of(rows[name].to_numpy(), corpus) for name in ("kept_document", "document"))
    return earlier, later


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
        tasks, method, warnings = found.tasks, found.method.resolve(), found.warnings
        folder.begin(resume=False)
        begun = True
        with engine.open(tasks, method, stages, shared) as (flow, corpus):
            outcome = flow.decide()
            with flow.named("write"):
                totals = output.summarise(outcome, tasks, method)
                output.write_removed(outcome, totals, tasks, method, shared, folder.result / "removed.parquet")
                lines = output.rejected_lines(outcome.light)
                (folder.result / "rejected.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
                if wanted == "kept":
                    output.write_kept(corpus, outcome, totals, folder)
            with flow.named("report"):
                by_value = output.count_by_value(outcome, engine.run.counted)
                shown = output.show_examples(corpus, outcome, totals, tasks, method)
        engine.rounds = outcome.rounds
        warnings += warn_of_losses(tasks, totals, by_value)
        report = build_report("dedup", tasks, method, engine.run.selection, totals, stages, warnings)
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
