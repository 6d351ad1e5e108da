"""Decide about files on a cluster: the driver does, or workers in a larger run.

find (tables of the result)       the driver collects documents and pairs, and the job writes
deliver (files of an output)      as `find`, but workers write the kept documents
deliver, too large to collect     workers decide, too, and the driver collects counts
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
from neardup.decide.outcome import Removals, Totals
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
        """Release the stored frames of the run, from which a rule measures further pairs."""
        self._opened.close()

    @contextmanager
    def open(
        self, inputs: Inputs, stages: Stages, shared: output.SharedFolder | None = None
    ) -> Iterator[tuple[pipeline.Run, Files]]:
        """Open the flow of the run on a cluster, over the parts that were found."""
        run = self.run
        rule = run.rule
        selection = run.selection

        def order(listed: DataFrame, num_documents: int) -> pa.Table:
            if shared is not None:
                self.refuse_size(num_documents)
            return place_documents(list_documents(listed, rule, inputs.tasks, selection.keep))

        with translated():
            spark = open_session(self.master)
            if shared is not None:
                shared.use(spark)
            corpus = Files(
                spark,
                spark.sparkContext.broadcast(inputs.tasks),
                run.settings.on_error,
                selection.within is not None,
            )
            with pipeline.Run(
                spark,
                corpus,
                inputs.method,
                inputs.selection,
                stages,
                all_pairs=rule.pairs == "all",
                distinct=rule.pairs == "distinct",
                order=order if rule.reorders else None,
            ) as flow:
                try:
                    yield flow, corpus
                finally:
                    flow.release()

    def refuse_size(self, num_documents: int, num_pairs: int = 0) -> None:
        """Raise SettingError if workers must decide about documents and pairs, and cannot."""
        if not pipeline.fits_driver(num_documents, num_pairs):
            size = large_spark_of(num_documents, num_pairs, pipeline.driver_limit())
            size.refuse("dedup", self.run.options)

    def identified_inputs(self) -> Inputs:
        """Find the inputs, with the identities of the files now, by which changes are noticed."""
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
        """Collect the documents and pairs of a search on the driver."""
        run = self.run
        tasks = inputs.tasks
        with flow.named("decide"):
            listed = list_documents(search.listed, run.rule, tasks, run.selection.keep)
            put_rejected(scratch, listed.rejected)
            searched = find_here(flow, search, listed, tasks, run.rule)
        audited = None
        sample_size = run.selection.audit_sample
        if sample_size:
            with flow.named("audit"):
                sample = listed.keys[draw_sample(listed.sizes > 0, sample_size)]
                audited = flow.audit(sample, flow.method.value.settings.threshold)
        has_ids = any(task.columns.id is not None for task in tasks)
        hashes = hash_ids(listed.ids) if has_ids else np.empty(0, np.uint64)
        repeated = check_ids(run, hashes, searched.corpus, searched.locations)
        warnings = inputs.warnings + repeated
        return replace(searched, warnings=warnings, audited=audited, engine=_facts(rounds=0))


def _facts(rounds: int) -> EngineFacts:
    """Return the facts of a run. rounds : of the sieve on the cluster, 0 if the driver decided."""
    return EngineFacts(engine={"name": "spark", "rounds": rounds})


def put_rejected(scratch: Scratch, lines: list[str]) -> None:
    """Put the lines of rejected.jsonl into scratch files."""
    text = "".join(f"{line}\n" for line in lines)
    scratch.append(schemas.REJECTED, np.frombuffer(text.encode("utf-8", "replace"), np.uint8))
    scratch.close_columns()


def sign_files(
    run: Run, master: str | None, found: Found, counts: SignedCounts, stages: Stages
) -> tuple[Sketcher, Iterator[Sketches]]:
    """Sign the documents of files on a cluster; the driver collects their sketches.

    counts : is updated.
    """
    inputs = Inputs(found.tasks, found.method, run.selection, found.warnings)
    with SparkEngine(run, master).open(inputs, stages) as (flow, _), flow.named("sign"):
        signed = flow.sign()
        sketcher = flow.method.value.sketcher
        lines = output.rejected_lines(signed)
        rows = signed.filter("rejected is null").orderBy("document").toArrow()
    counts.rejected += [Rejected(**json.loads(line)) for line in lines]
    counts.read = len(rows)
    counts.without_features = pc.sum(rows["empty"], min_count=0).as_py()
    counts.short = pc.sum(rows["short"], min_count=0).as_py()
    counts.text_bytes = pc.sum(rows["bytes"], min_count=0).as_py()
    has_ids = any(task.columns.id is not None for task in found.tasks)
    return sketcher, _sketches_of(rows, sketcher, has_ids)


def _sketches_of(rows: pa.Table, sketcher: Sketcher, has_ids: bool) -> Iterator[Sketches]:
    """Yield the sketches of documents, schemas.SIGNED; without ids, documents are numbered."""
    kind = sketcher.method.sketches
    first = 0
    for batch in rows.to_batches():
        values = flat_numbers(batch["sketch"], kind.dtype).reshape(len(batch), sketcher.width)
        is_empty = batch["empty"].to_numpy(zero_copy_only=False)
        stop = first + len(batch)
        ids = batch["id"]
        if not has_ids:
            ids = arrow_of(np.arange(first, stop)).cast(pa.string())
        yield kind(values, sketcher.scheme, ids, is_empty)
        first = stop


class Delivery(NamedTuple):
    """The decisions of a run whose documents workers write.

    decided : the decisions of the driver, or counts. removed : yields the rows of removed.parquet.
    lists : returns the parts of removed documents, with their numbers in the part, and the columns
    that an outcome adds to the others. sample : removed documents among which the report shows
    some, and their locations.
    """

    flow: pipeline.Run
    corpus: Files
    decided: Decided | Counted
    removed: Callable[[], Iterator[pa.RecordBatch]]
    lists: Callable[[Totals], DataFrame]
    sample: Callable[[], tuple[Removals, DocumentLocations]]

    def write_kept(self, folder: OutputDirectory, progress: Progress) -> None:
        """Let workers write the kept documents."""
        with self.flow.labelled("write", progress):
            outcome = self.decided.outcome
            output.write_kept(self.corpus, self.lists(outcome), outcome, folder)

    def examples(self) -> list[Example]:
        """Return the removed documents that the report shows."""
        with self.flow.named("report"):
            removals, locations = self.sample()
            outcome = self.decided.outcome
            method = self.decided.method
            return output.show_examples(self.corpus, removals, locations, outcome, method)


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
    shared = output.SharedFolder(folder, scratch_folder)
    has_begun = False
    try:
        inputs = engine.identified_inputs()
        folder.begin(resume=False)
        has_begun = True
        with engine.open(inputs, stages, shared) as (flow, corpus):
            search = flow.search()
            if search.fits_driver:
                searched = engine.collect(flow, search, inputs, scratch)
                yield _decide_here(engine, flow, corpus, searched)
            else:
                engine.refuse_size(search.num_documents, search.num_pairs)
                yield _decide_on_workers(
                    engine, flow, corpus, search, inputs=inputs, scratch=scratch, shared=shared
                )
    except BaseException:
        if not folder.is_published:
            folder.discard()
            if has_begun and folder.remote is not None:
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
    removals = outcome.removals
    gone = output.keys_of(np.flatnonzero(~outcome.edits.kept), outcome.corpus)
    return Delivery(
        flow=flow,
        corpus=corpus,
        decided=decided,
        removed=partial(removed_batches, removals, decided.locations, decided.method.measures),
        lists=partial(output.lists_of_removed, corpus, gone),
        sample=lambda: (removals, decided.locations),
    )


def _decide_on_workers(
    engine: SparkEngine,
    flow: pipeline.Run,
    corpus: Files,
    search: pipeline.Search,
    *,
    inputs: Inputs,
    scratch: Scratch,
    shared: output.SharedFolder,
) -> Delivery:
    """Decide about more documents than the driver can collect."""
    tasks = inputs.tasks
    method = flow.method.value
    outcome = flow.decide(search)
    with flow.named("write"):
        lines = output.rejected_lines(search.described)
        put_rejected(scratch, lines)
        output.sort_removed(search, outcome, shared)
        counted = output.corpus_of(flow.count_parts(search.listed), lines, tasks)
        blocks = partial(output.removed_blocks, counted, tasks, method, shared)
        totals = output.summarise(search, outcome, counted, method, blocks())
        by_value = output.count_by_value(search, outcome, engine.run.counted)

    def removed_rows() -> Iterator[pa.RecordBatch]:
        for block in blocks():
            yield from removed_batches(block.removals, block.locations, method.measures)

    return Delivery(
        flow=flow,
        corpus=corpus,
        decided=Counted(
            tasks=tasks,
            method=method,
            warnings=inputs.warnings,
            outcome=totals,
            by_value=by_value,
            engine=_facts(outcome.rounds),
        ),
        removed=removed_rows,
        lists=lambda _: output.list_removed(search, outcome),
        sample=partial(output.sample_removals, totals, tasks, method, shared),
    )
