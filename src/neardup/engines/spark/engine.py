"""Decide about files on a cluster: the driver decides with the rules of all engines, or workers in
a larger run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from neardup import schemas
from neardup.arrays import arrow_of
from neardup.decide.outcome import Removals
from neardup.documents.batch import Rejected
from neardup.engines.base import Counted, Decided, Engine, Inputs, Searched, decide
from neardup.engines.capabilities import large_spark_of
from neardup.engines.spark import output, pipeline
from neardup.engines.spark.found import find_here, list_documents, place_documents
from neardup.engines.spark.session import open_session, translated
from neardup.engines.spark.source import Files
from neardup.features.binary import flat_numbers
from neardup.features.grouping import hash_ids
from neardup.files import AnyPath
from neardup.fingerprints.sketches import Sketches
from neardup.methods.sketcher import Sketcher
from neardup.output.tables import removed_batches
from neardup.progress import Progress, Stages
from neardup.report.items import Example
from neardup.report.record import EngineFacts
from neardup.runs.directory import OutputDirectory
from neardup.runs.ids import check_ids
from neardup.runs.locations import DocumentLocations
from neardup.runs.run import Found, Run
from neardup.runs.scratch import Scratch
from neardup.runs.signed import SignedCounts
from neardup.verify.audit import draw_sample


class SparkEngine(Engine):
    """Decides about files on a cluster.

    The driver collects the id, the row and the length of each document, and all pairs. In a larger
    run whose documents workers write, it collects counts only.
    """

    has_workers = True

    def __init__(self, run: Run, master: str | None) -> None:
        super().__init__(run)
        self.master = master
        self._opened = ExitStack()

    def close(self) -> None:
        """Release what Spark stores of the run, from which a rule measures further pairs."""
        self._opened.close()

    @contextmanager
    def open(
        self, inputs: Inputs, stages: Stages, shared: output.SharedFolder | None = None
    ) -> Iterator[tuple[pipeline.Run, Files]]:
        """Open the flow of the run on a cluster, over the parts that were found."""
        run, tasks = self.run, inputs.tasks

        def order(listed: DataFrame, num_documents: int) -> pa.Table:
            if shared is not None:
                self.refuse_size(num_documents)
            return place_documents(list_documents(listed, run.rule, tasks, run.selection.keep))

        with translated():
            spark = open_session(self.master)
            if shared is not None:
                shared.use(spark)
            corpus = Files(
                spark,
                spark.sparkContext.broadcast(tasks),
                run.settings.on_error,
                run.selection.within is not None,
            )
            given = spark, corpus, inputs.method, inputs.selection, stages
            reordered = order if run.rule.reorders else None
            pairs = run.rule.pairs
            with pipeline.Run(
                *given, all_pairs=pairs == "all", distinct=pairs == "distinct", order=reordered
            ) as flow:
                try:
                    yield flow, corpus
                finally:
                    flow.release()

    def refuse_size(self, num_documents: int, num_pairs: int = 0) -> None:
        """Raise SettingError if workers have to decide about so many documents and pairs, and
        cannot.
        """
        if not pipeline.fits_driver(num_documents, num_pairs):
            large_spark_of(num_documents, num_pairs, pipeline.driver_limit()).refuse(
                "dedup", self.run.options
            )

    def identified_inputs(self) -> Inputs:
        """Find the inputs, with the identities that they have now."""
        inputs = self.inputs()
        return inputs._replace(tasks=[task.identified() for task in inputs.tasks])

    def find(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Searched:
        """Read the inputs, and find the pairs that the rule of the run needs."""
        inputs = self.identified_inputs()
        if folder is not None:
            folder.begin(resume=False)
        with translated():
            flow, _ = self._opened.enter_context(self.open(inputs, stages))
            searched = self.collect(flow, flow.search(), inputs, scratch)
            return replace(searched, release=self.close)

    def collect(
        self, flow: pipeline.Run, search: pipeline.Search, inputs: Inputs, scratch: Scratch
    ) -> Searched:
        """Collect what was found on the driver."""
        run, method = self.run, flow.method.value
        with flow.named("decide"):
            listed = list_documents(search.listed, run.rule, inputs.tasks, run.selection.keep)
            put_rejected(scratch, listed.rejected)
            searched = find_here(flow, search, listed, inputs.tasks, run.rule)
        audited = None
        if run.selection.audit_sample:
            with flow.named("audit"):
                sample = listed.keys[draw_sample(listed.sizes > 0, run.selection.audit_sample)]
                audited = flow.audit(sample, method.settings.threshold)
        has_ids = any(task.columns.id is not None for task in inputs.tasks)
        hashes = hash_ids(listed.ids) if has_ids else np.empty(0, np.uint64)
        repeated = check_ids(run, hashes, searched.corpus, searched.locations)
        return replace(
            searched, warnings=inputs.warnings + repeated, audited=audited, engine=_facts(rounds=0)
        )


def _facts(rounds: int) -> EngineFacts:
    return EngineFacts(engine={"name": "spark", "rounds": rounds})


def put_rejected(scratch: Scratch, lines: list[str]) -> None:
    """Put the lines of rejected.jsonl into scratch files."""
    text = "".join(f"{line}\n" for line in lines)
    scratch.append(schemas.REJECTED, np.frombuffer(text.encode("utf-8", "replace"), np.uint8))
    scratch.close_columns()


def sign_files(
    run: Run, master: str | None, found: Found, counts: SignedCounts, stages: Stages
) -> tuple[Sketcher, Iterator[Sketches]]:
    """Sign the documents of files on a cluster; the driver collects the rows. counts : is
    updated.
    """
    inputs = Inputs(found.tasks, found.method, run.selection, found.warnings)
    with SparkEngine(run, master).open(inputs, stages) as (flow, _), flow.named("sign"):
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
        ids = (
            batch["id"]
            if has_ids
            else arrow_of(np.arange(first, first + len(batch))).cast(pa.string())
        )
        yield kind(values, sketcher.scheme, ids, batch["empty"].to_numpy(zero_copy_only=False))
        first += len(batch)


class Delivery(NamedTuple):
    """The decisions of a run whose documents workers write.

    decided : by the driver, or as counts. removed : yields the rows of removed.parquet. lists : the
    parts of removed documents, with their places there. sample : removed documents among which the
    report shows some, and where they are.
    """

    flow: pipeline.Run
    corpus: Files
    decided: Decided | Counted
    removed: Callable[[], Iterator[pa.RecordBatch]]
    lists: Callable[[], DataFrame]
    sample: Callable[[], tuple[Removals, DocumentLocations]]

    def write_kept(self, folder: OutputDirectory, progress: Progress) -> None:
        """Let workers write the kept documents."""
        with self.flow.labelled("write", progress):
            output.write_kept(self.corpus, self.lists(), self.decided.outcome, folder)

    def examples(self) -> list[Example]:
        """Return the removed documents that the report shows."""
        with self.flow.named("report"):
            decided = self.decided
            return output.show_examples(
                self.corpus, *self.sample(), decided.outcome, decided.method
            )


@contextmanager
def deliver(
    engine: Engine,
    folder: OutputDirectory,
    scratch: Scratch,
    scratch_folder: AnyPath | None,
    stages: Stages,
) -> Iterator[Delivery]:
    """Find and decide; the workers wait to write the kept documents.

    Parameters
    ----------
    scratch_folder : a folder that the driver and all workers share. Default: next to the output;
        for an address, which Spark must be configured to write to, the address with .partial at its
        end.
    """
    assert isinstance(engine, SparkEngine)
    shared, begun = output.SharedFolder(folder, scratch_folder), False
    try:
        inputs = engine.identified_inputs()
        folder.begin(resume=False)
        begun = True
        with engine.open(inputs, stages, shared) as (flow, corpus):
            search = flow.search()
            if search.fits_driver:
                yield _decide_here(
                    engine, flow, corpus, engine.collect(flow, search, inputs, scratch)
                )
            else:
                engine.refuse_size(search.num_documents, search.num_pairs)
                yield _decide_on_workers(engine, flow, corpus, search, inputs, scratch, shared)
    except BaseException:
        if not folder.is_published:
            folder.discard()
            if begun and folder.remote is not None:
                folder.remote.delete()
        raise
    finally:
        shared.delete()


def _decide_here(
    engine: SparkEngine, flow: pipeline.Run, corpus: Files, searched: Searched
) -> Delivery:
    """Decide on the driver."""
    decided = decide(engine.run, searched)
    outcome = decided.outcome
    gone = output.keys_of(np.flatnonzero(~outcome.edits.kept), outcome.corpus)
    return Delivery(
        flow,
        corpus,
        decided,
        removed=partial(
            removed_batches, outcome.removals, decided.locations, decided.method.measures
        ),
        lists=partial(output.lists_of_removed, corpus, gone),
        sample=lambda: (outcome.removals, decided.locations),
    )


def _decide_on_workers(
    engine: SparkEngine,
    flow: pipeline.Run,
    corpus: Files,
    search: pipeline.Search,
    inputs: Inputs,
    scratch: Scratch,
    shared: output.SharedFolder,
) -> Delivery:
    """Decide about more documents than the driver can collect."""
    tasks, method = inputs.tasks, flow.method.value
    outcome = flow.decide(search)
    with flow.named("write"):
        put_rejected(scratch, output.rejected_lines(outcome.light))
        output.sort_removed(outcome, shared)
        totals = output.summarise(outcome, tasks, method, shared)
        by_value = output.count_by_value(outcome, engine.run.counted)

    def rows() -> Iterator[pa.RecordBatch]:
        for block in output.removed_blocks(totals.corpus, tasks, method, shared):
            yield from removed_batches(block.removals, block.locations, method.measures)

    return Delivery(
        flow,
        corpus,
        Counted(tasks, method, inputs.warnings, totals, by_value, _facts(outcome.rounds)),
        removed=rows,
        lists=partial(output.list_removed, outcome),
        sample=partial(output.sample_removals, outcome, totals, tasks, method),
    )
