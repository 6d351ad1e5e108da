"""Decide about files on a cluster: the driver does, or workers in a larger run.

find (tables of the result)       the driver collects documents and pairs, and the job writes
deliver (files of an output)      as `find`, but workers write the kept documents
deliver, too large to collect     workers decide, too, and the driver collects counts
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
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
from neardup.decide.outcome import Totals
from neardup.documents.batch import Rejected
from neardup.engines.base import (
    Counted,
    Decided,
    Engine,
    Inputs,
    Search,
    Searched,
    SearchOutcome,
    decide,
)
from neardup.engines.capabilities import large_spark_of
from neardup.engines.spark import output, pipeline
from neardup.engines.spark.found import find_here, list_documents, place_documents
from neardup.engines.spark.session import open_session, translated
from neardup.engines.spark.source import PART_SHIFT, Files
from neardup.features.binary import flat_numbers
from neardup.features.grouping import hash_ids
from neardup.features.idf import IdfTable
from neardup.fingerprints.sketches import Sketches
from neardup.formats.reading import Part, Task
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.methods.sketcher import Sketcher
from neardup.output.job import Job
from neardup.output.tables import removed_batches
from neardup.output.write import Shown, pick_examples
from neardup.progress import Progress, Stages
from neardup.report.contents import removed_by_input
from neardup.report.items import Example
from neardup.report.record import EngineFacts
from neardup.runs.directory import OutputDirectory
from neardup.runs.ids import check_ids
from neardup.runs.locations import DocumentLocations
from neardup.runs.run import Found, Run
from neardup.runs.scratch import Scratch
from neardup.runs.signed import SignedCounts
from neardup.settings.methods import MinHash, Shingling
from neardup.verify.recall_sample import draw_sample


class SparkEngine(Engine):
    """Decides about files on a cluster.

    The driver collects the id, the row and the length of each document, and all pairs. In a larger
    run whose documents workers write, it collects counts only.
    """

    has_workers = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
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
            # As soon as the number is known, before the expensive stages.
            if shared is not None:
                self.refuse_size(num_documents)
            return place_documents(list_documents(listed, rule, inputs.tasks, selection.keep))

        with translated():
            spark = open_session(run.engine.master)
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
        sampled_recall = None
        sample_size = run.selection.recall_sample
        if sample_size:
            with flow.named("recall_sample"):
                sample = listed.keys[draw_sample(listed.sizes > 0, sample_size)]
                sampled_recall = flow.measure_recall(sample, flow.method.value.settings.threshold)
        has_ids = any(task.columns.id is not None for task in tasks)
        hashes = hash_ids(listed.ids) if has_ids else np.empty(0, np.uint64)
        repeated = check_ids(run, hashes, searched.corpus, searched.locations)
        warnings = inputs.warnings + repeated
        return replace(
            searched, warnings=warnings, sampled_recall=sampled_recall, engine=_facts(rounds=0)
        )


def run_searches(
    job: Job, tasks: list[Task], searches: Sequence[Search]
) -> Generator[SearchOutcome, None, None]:
    """Yield the decisions of each search among the documents of files. Each reads them anew."""
    tasks = [task.identified() for task in tasks]
    for number, search in enumerate(searches):
        rule = search.rule
        inputs = Inputs(tasks, search.method, search.selection, [])
        of_search = replace(job.run, selection=search.selection, rule=rule)
        with SparkEngine(of_search).open(inputs, job.stages) as (flow, _):
            found = flow.search()
            with flow.named("decide"):
                listed = list_documents(found.listed, rule, tasks, search.selection.keep)
                outcome = find_here(flow, found, listed, tasks, rule).decide(rule)
        if number == 0:  # the others read the same documents
            put_rejected(job.scratch, listed.rejected)
        yield outcome


def _facts(rounds: int) -> EngineFacts:
    """Return the facts of a run. rounds : of the sieve on the cluster, 0 if the driver decided."""
    return EngineFacts(engine={"name": "spark", "rounds": rounds})


def put_rejected(scratch: Scratch, lines: list[str]) -> None:
    """Put the lines of rejected.jsonl into scratch files."""
    text = "".join(f"{line}\n" for line in lines)
    # A name may contain lone surrogates, which UTF-8 cannot encode.
    scratch.append(schemas.REJECTED, np.frombuffer(text.encode("utf-8", "replace"), np.uint8))
    scratch.close_columns()


def count_files(run: Run, tasks: list[Task], counted: Shingling, stages: Stages) -> IdfTable:
    """Count the documents of each feature of files on a cluster; the driver collects the counts.

    counted : the settings that make the features.
    """
    # No document is compared, so any method will do.
    inputs = Inputs(tasks, method_of(MinHash()), run.selection, [])
    with SparkEngine(run).open(inputs, stages) as (flow, _):
        found = flow.count(counted)
    lines = output.in_order(found.rejected)
    return replace(
        found.frequencies, rejected=tuple(Rejected(**json.loads(line)) for line in lines)
    )


def sign_files(
    run: Run, found: Found, counts: SignedCounts, stages: Stages
) -> tuple[Sketcher, Iterator[Sketches]]:
    """Sign the documents of files on a cluster; the driver collects their sketches.

    counts : is updated.
    """
    inputs = Inputs(found.tasks, found.method, run.selection, found.warnings)
    with SparkEngine(run).open(inputs, stages) as (flow, _), flow.named("sign"):
        signed = flow.sign()
        sketcher = flow.method.value.sketcher
        lines = output.rejected_lines(signed)
        # In the order of the inputs, as locally.
        rows = signed.filter("rejected is null").orderBy("document").toArrow()
    for line in lines:
        counts.reject(Rejected(**json.loads(line)))
    output.add_textless(counts.losses, _parts_without_text(rows, found.tasks))
    counts.read = len(rows)
    # Without min_count, the sum of no rows is null.
    counts.without_features = pc.sum(rows["empty"], min_count=0).as_py()
    counts.short = pc.sum(rows["short"], min_count=0).as_py()
    counts.text_bytes = pc.sum(rows["bytes"], min_count=0).as_py()
    has_ids = any(task.columns.id is not None for task in found.tasks)
    return sketcher, _sketches_of(rows, sketcher, has_ids)


def _parts_without_text(rows: pa.Table, tasks: Sequence[Task]) -> list[Part]:
    """Return the parts that have a signed document, schemas.SIGNED, without text."""
    documents = rows["document"].filter(pc.equal(rows["bytes"], 0)).to_numpy()
    return [tasks[number].part for number in np.unique(documents >> PART_SHIFT).tolist()]


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
    that an outcome adds to the others. shown : the removed documents that the report shows.
    locations : of these, at least.
    """

    flow: pipeline.Run
    corpus: Files
    decided: Decided | Counted
    removed: Callable[[], Iterator[pa.RecordBatch]]
    lists: Callable[[Totals], DataFrame]
    shown: Shown
    locations: DocumentLocations

    def write_kept(self, folder: OutputDirectory, progress: Progress) -> None:
        """Let workers write the kept documents."""
        outcome = self.decided.outcome
        sizes = output.PartSizes(outcome.corpus.part_ends, removed_by_input(outcome))
        with self.flow.labelled("write", progress):
            output.write_kept(self.corpus, self.lists(outcome), sizes, folder, self.shown)

    def examples(self) -> list[Example]:
        """Return the removed documents that the report shows."""
        with self.flow.named("report"):
            return output.show_examples(
                self.corpus,
                self.shown,
                self.locations,
                self.decided.outcome,
                self.decided.method,
            )


@contextmanager
def deliver(
    engine: Engine,
    folder: OutputDirectory,
    scratch: Scratch,
    stages: Stages,
) -> Iterator[Delivery]:
    """Find and decide; the workers wait to write the kept documents.

    The scratch folder is one that the driver and all workers share. Default: next to the output;
    for an address, which Spark must be configured to write to, the address with .partial at its
    end.
    """
    assert isinstance(engine, SparkEngine)
    shared = output.SharedFolder(folder, engine.run.folder.scratch)
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
        # An error after the publication leaves the complete output in place.
        if not folder.is_published:
            folder.discard()
            # Before `begin`, the remote folder may belong to others.
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
        shown=pick_examples(removals, decided.method.strength(removals.measured)),
        locations=decided.locations,
    )


def _removed_rows(
    blocks: Iterator[output.RemovedBlock], method: Method
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of removed.parquet."""
    for block in blocks:
        yield from removed_batches(block.removals, block.locations, method.measures)


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
        shown, locations = output.sample_removals(totals, tasks, method, shared)
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
        removed=lambda: _removed_rows(blocks(), method),
        lists=lambda _: output.list_removed(search, outcome),
        shown=shown,
        locations=locations,
    )
