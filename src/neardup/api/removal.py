"""What `dedup` delivers: tables, kept documents, the report and its page, and what the result
answers later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from neardup.api.passages import passages_report
from neardup.arrays import Floats, Ints, Positions, arrow_of
from neardup.engines.base import Counted, Decided, Searched, decide, findings_of
from neardup.engines.local.passages import find_among_kept
from neardup.errors import InputError, NeardupError, SettingError
from neardup.files import JsonObject, Output
from neardup.formats.reading import Task
from neardup.output import write as writing
from neardup.output.annotated import Annotations, write_annotated
from neardup.output.job import Job, Product, Table
from neardup.output.passages import examples_of, passages_table
from neardup.output.tables import id_batches, mask_batches, pair_batches, removed_batches
from neardup.progress import Progress, Stages
from neardup.report.contents import dedup_report
from neardup.report.dedup_html import render_report
from neardup.report.items import Example
from neardup.report.passages_html import render_passages
from neardup.report.record import DedupReport, PassagesReport
from neardup.results import Deduplication
from neardup.runs.directory import OutputDirectory
from neardup.runs.run import Run
from neardup.schemas import (
    ids_schema,
    least_similar_schema,
    mask_schema,
    pairs_schema,
    removed_schema,
)
from neardup.settings.constraints import Options, constraints_of
from neardup.settings.passages import PassageSettings


@dataclass
class Removal(Product[Deduplication]):
    """The product of `dedup`.

    write, lang : as in `dedup`. fills_tables : its `tables`.
    """

    run: Run
    decided: Decided
    stages: Stages
    write: str
    lang: str
    fills_tables: bool
    _examples: list[Example] | Future[list[Example]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.num_documents = self.decided.outcome.corpus.num_documents
        self.writes_tables_beside = (
            self.write == "kept"
        )  # others would take more memory and earn little

    def tables(self) -> Sequence[Table]:
        """Return removed.parquet, the other tables, and those of the rule."""
        decided, measures = self.decided, self.decided.method.measures
        outcome, located = decided.outcome, decided.locations
        rows = partial(removed_batches, outcome.removals, located, measures)
        tables = [Table("removed", removed_schema(measures), rows)]
        if self.write == "mask":
            tables.append(
                Table("mask", mask_schema(), partial(mask_batches, decided.tasks, outcome, located))
            )
        if self.write == "ids":
            tables.append(Table("ids", ids_schema(), partial(id_batches, outcome, located)))
        if decided.cleaned is not None:
            tables.append(passages_table(decided.cleaned.passages, decided.cleaned.locations))
        return [*tables, *tables_of_rule(decided)]

    def write_documents(self, folder: Path, progress: Progress, beside: Executor) -> None:
        """Write the kept documents, or all of them with annotations, and choose the removals that
        the page shows.
        """
        decided, method, threads = self.decided, self.decided.method, self.run.threads
        removals, ends = decided.outcome.removals, decided.outcome.corpus.part_ends
        shown = writing.pick_examples(removals, method.strength(removals.measured))
        if self.write != "kept" or all(task.is_cached for task in decided.tasks):
            shown.texts.update(writing.read_texts(decided.tasks, ends, shown.documents, threads))
            if shown.texts:
                self._examples = beside.submit(writing.examples, shown, decided.locations, method)
        if self.write == "kept":
            writing.write_kept(
                decided.tasks, decided.outcome, folder / "kept", shown, progress, threads
            )
        elif self.write == "annotated":
            new = [task for task in decided.tasks if not task.against]
            columns = Annotations(removals, decided.locations, method.measures)
            write_annotated(
                new, columns, decided.outcome.corpus.num_against, folder / "annotated", progress
            )
        if isinstance(self._examples, list):
            self._examples = writing.examples(shown, decided.locations, method)

    def report(self) -> DedupReport:
        """Return the report, once the removals that the page shows are marked."""
        if isinstance(self._examples, Future):
            with self.stages.stage("report"):
                self._examples = self._examples.result()
        self._report = _report(self)
        return self._report

    def pages(self, report: JsonObject, output: Output) -> dict[str, str]:
        """Return the page of the report, and of passages if any were looked for."""
        assert isinstance(self._examples, list)
        pages = {"report.html": render_report(report, self._examples)}
        if self.decided.cleaned is not None:
            cleaned = self.decided.cleaned
            examples = examples_of(cleaned.passages, cleaned.pieces, cleaned.locations)
            pages["passages.html"] = render_passages(_report_passages(self).to_dict(), examples)
        return pages

    def result(self, report: JsonObject, output: Output) -> Deduplication:
        """Return the result."""
        result = _result(self.run, self.decided, report, output, fills_tables=self.fills_tables)
        keeps_pairs = self.run.rule.options.get("rethreshold", False)
        return (
            with_rethreshold(result, self.run, self.decided, self._report)
            if keeps_pairs
            else result
        )


class Delivery(Protocol):
    """The decisions of a run whose documents workers write; see engines.spark.engine.Delivery."""

    @property
    def decided(self) -> Decided | Counted:
        """The decisions, or their counts."""

    @property
    def removed(self) -> Callable[[], Iterator[pa.RecordBatch]]:
        """Yield the rows of removed.parquet."""

    def write_kept(self, folder: OutputDirectory, progress: Progress) -> None:
        """Let workers write the kept documents."""

    def examples(self) -> list[Example]:
        """Return the removed documents that the report shows."""


@dataclass
class RemovalByWorkers(Product[Deduplication]):
    """The product of `dedup` without tables of the result, whose kept documents the workers of a
    cluster write.

    write, lang : as in `dedup`.
    """

    run: Run
    delivery: Delivery
    job: Job
    write: str
    lang: str
    writes_tables_beside = False

    @property
    def decided(self) -> Decided | Counted:
        """The decisions, or their counts."""
        return self.delivery.decided

    @property
    def stages(self) -> Stages:
        """The stages of the job."""
        return self.job.stages

    def tables(self) -> Sequence[Table]:
        """Return removed.parquet, and the tables of the rule."""
        removed = Table(
            "removed", removed_schema(self.decided.method.measures), self.delivery.removed
        )
        return [
            removed,
            *(tables_of_rule(self.decided) if isinstance(self.decided, Decided) else ()),
        ]

    def write_documents(self, folder: Path, progress: Progress, beside: Executor) -> None:
        """Let workers write the kept documents."""
        assert self.job.folder is not None  # a job without one writes nothing
        if self.write == "kept":
            self.delivery.write_kept(self.job.folder, progress)

    def report(self) -> DedupReport:
        """Return the report."""
        self._examples = self.delivery.examples()
        self._report = _report(self)
        return self._report

    def pages(self, report: JsonObject, output: Output) -> dict[str, str]:
        """Return the page of the report."""
        return {"report.html": render_report(report, self._examples)}

    def result(self, report: JsonObject, output: Output) -> Deduplication:
        """Return the result, without tables."""
        decided = self.decided
        result = Deduplication(None, None, None, report, output, None)
        if not isinstance(decided, Decided):
            return result
        result = replace(
            result, rule_tables={table.name: table.read() for table in tables_of_rule(decided)}
        )
        keeps_pairs = self.run.rule.options.get("rethreshold", False)
        return with_rethreshold(result, self.run, decided, self._report) if keeps_pairs else result


def tables_of_rule(decided: Decided) -> list[Table]:
    """Return the tables of the rule of a run."""
    names = decided.searched.names()
    return [
        Table(table.name, table.schema, partial(table.rows, names))
        for table in decided.decision.tables
    ]


def _report(product: Removal | RemovalByWorkers) -> DedupReport:
    """Return the report of a run."""
    decided, passages = product.decided, None
    if decided.cleaned is not None:
        cut = _report_passages(product)
        passages = {"settings": cut.settings, "counts": cut.counts}
    return dedup_report(
        findings_of(decided, product.run, product.stages),
        by_value=decided.by_value,
        write=product.write,
        lang=product.lang,
        passages=passages,
    )


def _report_passages(product: Removal | RemovalByWorkers) -> PassagesReport:
    """Return the report of the passages that were cut from kept documents."""
    run, cleaned = product.run, product.decided.cleaned
    assert cleaned is not None
    assert run.passages is not None
    settings = asdict(PassageSettings(min_length=run.passages))
    return passages_report(
        settings, cleaned, product.stages, [], write=product.write, lang=product.lang
    )


def _result(
    run: Run, decided: Decided, report: JsonObject, output: Output, *, fills_tables: bool
) -> Deduplication:
    """Return the result of a run, which answers no other limit."""
    outcome, measures = decided.outcome, decided.method.measures
    removed = pairs = least = None
    if fills_tables:
        removals, located = outcome.removals, decided.locations
        removed = pa.Table.from_batches(
            removed_batches(removals, located, measures), removed_schema(measures)
        )
        pairs = pa.Table.from_batches(
            pair_batches(outcome.pairs, located.ids, measures), pairs_schema(measures)
        )
        # The texts of an index are not read again: it may change, or be closed.
        tasks = [None if task.part.format == "index" else task for task in decided.tasks]
        sides = np.stack([removals.documents, removals.kept], axis=1)
        strength = decided.method.strength(removals.measured)
        least = partial(_least_similar, removed, strength, sides, tasks, outcome.corpus.part_ends)
    cut = None
    if decided.cleaned is not None:
        cut = passages_table(decided.cleaned.passages, decided.cleaned.locations).read()
    new, corpus = [task for task in decided.tasks if not task.against], outcome.corpus
    edits = outcome.edits.between(corpus.num_against, corpus.num_documents)
    return Deduplication(
        removed,
        pairs,
        decided.row_mask(),
        report,
        output,
        partial(writing.kept_table, new, edits),
        run.inputs.source,
        cut,
        {table.name: table.read() for table in tables_of_rule(decided)},
        least,
    )


def _least_similar(
    removed: pa.Table,
    strength: Floats,
    sides: Positions,
    tasks: list[Task | None],
    part_ends: Ints,
    count: int,
) -> pa.Table:
    """Return the removals of least strength with their texts. sides : (num_removed, 2), the removed
    and the kept.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"n must be a number of removals, 1 or more: got {count!r}. Change n.")
    rows = np.argsort(strength, kind="stable")[:count]
    asked, first = np.unique(sides[rows]), 0
    texts: dict[int, str] = {}
    for task, stop in zip(tasks, part_ends.tolist(), strict=True):
        with suppress(NeardupError, OSError):  # an input that is gone, or has changed, has no texts
            if task is not None:
                task.refuse_changed()
                texts.update(writing.texts_of(task, first, stop, asked, 1))
        first = stop
    columns = [
        pa.array([texts.get(document) for document in side], pa.string())
        for side in sides[rows].T.tolist()
    ]
    shown = removed.take(arrow_of(rows))
    return pa.table([*shown.columns, *columns], least_similar_schema(removed.schema))


def with_rethreshold(
    result: Deduplication, run: Run, decided: Decided, report: DedupReport
) -> Deduplication:
    """Return a result that answers at stricter limits, from the pairs of a run; it keeps them in
    memory.
    """
    searched = decided.searched
    kept = replace(
        searched, found=searched.found.in_memory(), locations=searched.locations.in_memory()
    )
    return replace(result, _again=partial(_rethreshold, run, kept, report))


def _rethreshold(
    run: Run, searched: Searched, report: DedupReport, limits: Options
) -> Deduplication:
    """Return the result at other limits; those that are None are of the run."""
    method, given = (
        searched.method,
        {name: value for name, value in limits.items() if value is not None},
    )
    known = constraints_of(type(method.settings))
    if not given or not given.keys() <= known.keys():
        raise SettingError(
            f"rethreshold takes {' or '.join(limit for limit in limits if limit in known)} "
            "with this method: got "
            f"{limits}. Give a limit that the method has."
        )
    before, method = method.settings, replace(method, settings=replace(method.settings, **given))
    for name, value in given.items():
        least = getattr(before, name)
        if value < least if name == "threshold" else value > least:
            raise SettingError(
                "rethreshold answers at limits as strict as that of the run, "
                f"{name}={least:g}: got {name}={value!r}. "
                f"Run dedup(..., {name}={value!r}, rethreshold=True) for pairs that reach so far."
            )
    decided = decide(run, replace(searched, method=method, found=searched.found.at(method)))
    found = findings_of(decided, run, Stages())._replace(options={**run.given, **given})
    report = report.at_limit(
        dedup_report(found, by_value=decided.by_value, write=report.write, lang=report.lang)
    )
    result = _result(run, decided, report.to_dict(), None, fills_tables=True)
    return replace(
        result, _again=partial(_rethreshold, run, searched, report)
    )  # its pairs reach as far


def cut_passages(job: Job, decided: Decided, settings: PassageSettings) -> Decided:
    """Find the repeated passages of the documents that a run kept, which are cut from them."""
    cleaned = find_among_kept(job, decided, settings)
    outcome = replace(decided.outcome, passages=cleaned.edits)
    return decided._replace(outcome=outcome, cleaned=cleaned)
