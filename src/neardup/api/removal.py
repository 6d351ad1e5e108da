"""The product of `dedup`: tables, kept documents, the report and its page, and the result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.api.passages import passages_report
from neardup.arrays import Floats, Ints, Positions, arrow_of
from neardup.decide.outcome import Edits, Removals
from neardup.engines.base import Counted, Decided, Engine, Searched, decide, findings_of
from neardup.engines.local.passages import find_among_kept
from neardup.errors import InputError, NeardupError, SettingError
from neardup.files import AnyPath, JsonObject, Output
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.output import provenance
from neardup.output import write as writing
from neardup.output.annotated import Annotations, write_annotated
from neardup.output.job import Job, Product, Table
from neardup.output.passages import examples_of, passages_table
from neardup.output.tables import id_batches, mask_batches, pair_batches, removed_batches
from neardup.progress import Progress, Stages
from neardup.report import wording
from neardup.report.contents import Findings, dedup_report
from neardup.report.dedup_html import render_report
from neardup.report.items import Example
from neardup.report.passages_html import render_passages
from neardup.report.record import DedupReport, PassagesReport
from neardup.results import Deduplication
from neardup.runs.run import Run
from neardup.schemas import (
    ANNOTATIONS,
    ids_schema,
    least_similar_schema,
    mask_schema,
    pairs_schema,
    removed_schema,
)
from neardup.settings.constraints import Options, constraints_of, plain, without_none
from neardup.settings.methods import DocumentSettings
from neardup.settings.passages import PassageSettings
from neardup.settings.run import OutputSettings

if TYPE_CHECKING:
    from neardup.engines.spark.engine import Delivery


def needs_of(settings: OutputSettings, output: AnyPath | None) -> Options:
    """Return the needs of an output, as fields of the inputs of its run; see `runs.run.Inputs`."""
    copies = output is not None and settings.write in ("kept", "annotated")
    annotations = ANNOTATIONS if settings.write == "annotated" else ()
    needs = provenance.needs_of(settings)
    reserved = dict.fromkeys(annotations, "write='annotated'")
    return {
        **needs,
        "reserved": {**needs["reserved"], **reserved},
        "copies": copies,
        "cuts": settings.passages is not None and (copies or output is None),
    }


@contextmanager
def removal_of(
    engine: Engine,
    job: Job,
    settings: OutputSettings,
    *,
    tables: bool,
) -> Iterator[Product[Deduplication]]:
    """Find and decide; return the product, which workers write if the result has no tables.

    tables : whether the result has the tables of removals and pairs.
    """
    if (
        # Workers write if the driver needs no rows: no tables of the result, and documents in the
        # format of their inputs.
        engine.has_workers
        and job.folder is not None
        and not tables
        and settings.write in ("kept", "removed")
    ):
        from neardup.engines.spark.engine import deliver  # loads PySpark

        with deliver(engine, job.folder, job.scratch, job.stages) as delivery:
            decided = delivery.decided
            if isinstance(decided, Decided):
                decided = _with_columns(decided, job.run, settings)
                delivery = delivery._replace(decided=decided)
            yield RemovalByWorkers(job, settings, decided, delivery)
        return
    decided = engine.decide(job)
    if settings.passages is not None:
        cleaned = find_among_kept(job, decided, PassageSettings(min_length=settings.passages))
        outcome = replace(decided.outcome, passages=cleaned.edits)
        decided = decided._replace(outcome=outcome, cleaned=cleaned)
    yield Removal(job, settings, _with_columns(decided, job.run, settings), tables)


def _with_columns(decided: Decided, run: Run, settings: OutputSettings) -> Decided:
    """Return decisions with the columns that settings add to kept documents."""
    added = provenance.provenance_of(
        settings,
        run.inputs.source,
        decided.tasks,
        decided.outcome,
        decided.searched.described,
    )
    return decided._replace(outcome=replace(decided.outcome, added=added))


def _findings(decided: Decided | Counted, run: Run, stages: Stages) -> Findings:
    """Return the findings for the report, with the facts about added columns."""
    findings = findings_of(decided, run, stages)
    added = decided.outcome.added
    facts = added.facts if isinstance(added, provenance.Provenance) else {}
    return findings._replace(rule={**findings.rule, **facts})


class _AnyRemoval(Product[Deduplication]):
    """The product of `dedup`, whoever writes the documents."""

    job: Job
    settings: OutputSettings
    decided: Decided | Counted

    # Set by `report`, which a job calls before `pages` and `result`.
    _examples: list[Example]
    _passages_report: PassagesReport | None
    _report: DedupReport

    @abstractmethod
    def examples(self) -> list[Example]:
        """Return the removals that the page shows, once tables and documents are written."""

    def report(self) -> DedupReport:
        """Return the report."""
        self._examples = self.examples()
        passages = _passages_report(self.decided, self.settings, self.job)
        self._passages_report = passages
        self._report = dedup_report(
            _findings(self.decided, self.job.run, self.job.stages),
            by_value=self.decided.by_value,
            write=self.settings.write,
            lang=self.settings.lang,
            passages=None
            if passages is None
            else {"settings": passages.settings, "counts": passages.counts},
        )
        return self._report

    def pages(self, report: JsonObject, output: Output) -> dict[str, str]:
        """Return the page of the report."""
        return {"report.html": render_report(report, self._examples)}

    def _allow_rethreshold(self, result: Deduplication) -> Deduplication:
        """Return the result, with its method `rethreshold` if the rule keeps pairs."""
        if not self.job.run.rule.options.get("rethreshold", False):
            return result
        assert isinstance(self.decided, Decided)  # pairs are kept on the driver
        return with_rethreshold(
            result, self.job.run, self.decided, self._report, output=self.settings
        )


@dataclass
class Removal(_AnyRemoval):
    """The product of `dedup`, written by this process.

    fills_tables : whether the result has the tables of removals and pairs.
    """

    job: Job
    settings: OutputSettings
    decided: Decided
    fills_tables: bool
    # The examples, or the task that makes them beside the writing of documents.
    _marked: list[Example] = field(default_factory=list)
    _marking: Future[list[Example]] | None = None

    def __post_init__(self) -> None:
        self.num_documents = self.decided.outcome.corpus.num_documents
        # Other outputs take little time, and tables beside them would need more memory.
        self.writes_tables_beside = self.settings.write == "kept"

    def tables(self) -> Sequence[Table]:
        """Return removed.parquet, the other tables, and the tables of the rule."""
        decided = self.decided
        tables = [_removed_table(decided)]
        if self.settings.write == "mask":
            rows = partial(mask_batches, decided.tasks, decided.outcome, decided.locations)
            tables.append(Table("mask", mask_schema(), rows))
        if self.settings.write == "ids":
            rows = partial(id_batches, decided.outcome, decided.locations)
            tables.append(Table("ids", ids_schema(), rows))
        if decided.cleaned is not None:
            tables.append(passages_table(decided.cleaned.passages, decided.cleaned.locations))
        return [*tables, *tables_of_rule(decided)]

    def write_documents(self, folder: Path, progress: Progress, beside: Executor) -> None:
        """Write the kept documents, or all of them with annotations, and read the texts of the
        examples.
        """
        decided = self.decided
        threads = self.job.run.threads
        method = decided.method
        removals = decided.outcome.removals
        corpus = decided.outcome.corpus
        shown = writing.pick_examples(removals, method.strength(removals.measured))
        # `write_kept` collects the texts as it passes them. If no file must be decoded for them,
        # they are read first, and the examples are made beside.
        if self.settings.write != "kept" or all(task.is_cached for task in decided.tasks):
            shown.texts.update(
                writing.read_texts(decided.tasks, corpus.part_ends, shown.documents, threads)
            )
        if shown.texts:
            # On the thread beside, while documents are written. The page needs the sentences.
            beside.submit(wording.sentences)
            self._marking = beside.submit(writing.examples, shown, decided.locations, method)
        if self.settings.write == "kept":
            writing.write_kept(
                decided.tasks,
                decided.outcome,
                folder / "kept",
                shown=shown,
                progress=progress,
                threads=threads,
            )
        elif self.settings.write == "annotated":
            self._write_annotated(folder / "annotated", progress)
        if self._marking is None:
            self._marked = writing.examples(shown, decided.locations, method)

    def _write_annotated(self, folder: Path, progress: Progress) -> None:
        outcome = self.decided.outcome
        measures = self.decided.method.measures
        new_tasks = [task for task in self.decided.tasks if not task.against]
        columns = Annotations(outcome.removals, self.decided.locations, measures)
        write_annotated(new_tasks, columns, outcome.corpus.num_against, folder, progress)

    def examples(self) -> list[Example]:
        """Return the removals that the page shows."""
        if self._marking is None:
            return self._marked
        with self.job.stages.stage("report"):
            # The stage counts the time that is waited for it.
            return self._marking.result()

    def pages(self, report: JsonObject, output: Output) -> dict[str, str]:
        """Return the page of the report, and the page of passages if they are removed."""
        pages = super().pages(report, output)
        cleaned = self.decided.cleaned
        if cleaned is not None:
            assert self._passages_report is not None
            examples = examples_of(cleaned.passages, cleaned.pieces, cleaned.locations)
            pages["passages.html"] = render_passages(self._passages_report.to_dict(), examples)
        return pages

    def result(self, report: JsonObject, output: Output) -> Deduplication:
        """Return the result."""
        run = self.job.run
        result = _result(run, self.decided, report, output, fills_tables=self.fills_tables)
        return self._allow_rethreshold(result)


@dataclass
class RemovalByWorkers(_AnyRemoval):
    """The product of `dedup` without tables of the result, written by the workers of a cluster."""

    job: Job
    settings: OutputSettings
    decided: Decided | Counted
    delivery: Delivery

    def tables(self) -> Sequence[Table]:
        """Return removed.parquet, and the tables of the rule."""
        schema = removed_schema(self.decided.method.measures)
        return [Table("removed", schema, self.delivery.removed), *tables_of_rule(self.decided)]

    def write_documents(self, folder: Path, progress: Progress, beside: Executor) -> None:
        """Let workers write the kept documents."""
        assert self.job.folder is not None  # a job without one writes nothing
        if self.settings.write == "kept":
            self.delivery.write_kept(self.job.folder, progress)

    def examples(self) -> list[Example]:
        """Return the removals that the page shows."""
        return self.delivery.examples()

    def result(self, report: JsonObject, output: Output) -> Deduplication:
        """Return the result, without tables."""
        result = Deduplication(
            report,
            output,
            rule_tables={table.name: table.read() for table in tables_of_rule(self.decided)},
        )
        return self._allow_rethreshold(result)


def _removed_table(decided: Decided) -> Table:
    measures = decided.method.measures
    rows = partial(removed_batches, decided.outcome.removals, decided.locations, measures)
    return Table("removed", removed_schema(measures), rows)


def tables_of_rule(decided: Decided | Counted) -> list[Table]:
    """Return the tables of the rule of a run; rules that workers perform have none."""
    if not isinstance(decided, Decided):
        return []
    names = decided.searched.names()
    return [
        Table(table.name, table.schema, partial(table.rows, names))
        for table in decided.decision.tables
    ]


def _passages_report(
    decided: Decided | Counted, settings: OutputSettings, job: Job
) -> PassagesReport | None:
    """Return the report of the passages that are cut from kept documents, if there is one."""
    if decided.cleaned is None:
        return None
    assert settings.passages is not None
    return passages_report(
        asdict(PassageSettings(min_length=settings.passages)),
        decided.cleaned,
        job.stages,
        [],
        write=settings.write,
        lang=settings.lang,
    )


def _result(
    run: Run, decided: Decided, report: JsonObject, output: Output, *, fills_tables: bool
) -> Deduplication:
    """Return the result of a run, without the method `rethreshold`."""
    corpus = decided.outcome.corpus
    cleaned = decided.cleaned
    new_tasks = [task for task in decided.tasks if not task.against]
    edits = decided.outcome.edits.between(corpus.num_against, corpus.num_documents)
    passages = None
    if cleaned is not None:
        passages = passages_table(cleaned.passages, cleaned.locations).read()
    result = Deduplication(
        report,
        output,
        _mask=decided.row_mask(),
        _read_kept=partial(writing.kept_table, new_tasks, edits),
        _source=run.inputs.source,
        _added=None if edits.added is None else partial(_added_rows, edits),
        passages=passages,
        rule_tables={table.name: table.read() for table in tables_of_rule(decided)},
    )
    return _with_tables(result, decided) if fills_tables else result


def _added_rows(edits: Edits) -> pa.RecordBatch:
    """Return the columns that are added to kept documents."""
    assert edits.added is not None
    rows: pa.RecordBatch = edits.added.rows().filter(arrow_of(edits.kept))
    return rows


def _with_tables(result: Deduplication, decided: Decided) -> Deduplication:
    """Return a result with the tables of removals and pairs."""
    outcome = decided.outcome
    measures = decided.method.measures
    pairs = pair_batches(outcome.pairs, decided.locations.ids, measures)
    removed = _Removed(
        table=_removed_table(decided).read(),
        removals=outcome.removals,
        strength=decided.method.strength(outcome.removals.measured),
        # The texts of an index are not read again: it may change, or be closed.
        tasks=[None if task.part.format == "index" else task for task in decided.tasks],
        part_ends=outcome.corpus.part_ends,
    )
    return replace(
        result,
        _removed=removed.table,
        _pairs=pa.Table.from_batches(pairs, pairs_schema(measures)),
        _least=removed.least_similar,
    )


class _Removed(NamedTuple):
    """The removed documents of a run, in input order, whose texts can be read again.

    strength : float64 by removal. tasks : the inputs, None for one that is not read again.
    part_ends : int64 by input, the number of documents up to its end.
    """

    table: pa.Table
    removals: Removals
    strength: Floats
    tasks: list[Task | None]
    part_ends: Ints

    def least_similar(self, count: int) -> pa.Table:
        """Return the `count` removals of lowest strength with their texts."""
        count = plain(count)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"n must be a number of removals, 1 or more: got {count!r}. Change n.")
        # Of equal strength, in the order of the input.
        rows = np.argsort(self.strength, kind="stable")[:count]
        removed = self.removals.documents[rows]
        kept = self.removals.kept[rows]
        texts = self._texts(np.union1d(removed, kept))
        columns = [
            pa.array([texts.get(document) for document in side.tolist()], pa.string())
            for side in (removed, kept)
        ]
        shown = self.table.take(arrow_of(rows))
        schema = least_similar_schema(self.table.schema)
        return pa.table([*shown.columns, *columns], schema)

    def _texts(self, documents: Positions) -> dict[int, str]:
        """Return the texts of documents, except from inputs that are gone or have changed."""
        texts: dict[int, str] = {}
        first = 0
        for task, stop in zip(self.tasks, self.part_ends.tolist(), strict=True):
            # A text that cannot be read again is null.
            with suppress(NeardupError, OSError):
                if task is not None:
                    task.refuse_changed()
                    texts.update(writing.texts_of(task, first, stop, documents, 1))
            first = stop
        return texts


def with_rethreshold(
    result: Deduplication,
    run: Run,
    decided: Decided,
    report: DedupReport,
    *,
    output: OutputSettings,
) -> Deduplication:
    """Return a result with `rethreshold`: it decides again at stricter limits, from the pairs of
    the run, which it keeps in memory.
    """
    searched = decided.searched
    kept = replace(
        # The scratch files are deleted when the job ends.
        searched,
        found=searched.found.in_memory(),
        described={name: hashes.copy() for name, hashes in searched.described.items()},
        locations=searched.locations.in_memory(),
    )
    return replace(result, _again=partial(_rethreshold, run, kept, report, output))


def _rethreshold(
    run: Run, searched: Searched, report: DedupReport, output: OutputSettings, limits: Options
) -> Deduplication:
    """Return the result at other limits; a limit of None is the limit of the run."""
    given = _named_limits(searched.method, limits)
    settings = replace(searched.method.settings, **given)
    _refuse_looser(searched.method.settings, given)
    method = replace(searched.method, settings=settings)
    decided = decide(run, replace(searched, method=method, found=searched.found.at(method)))
    decided = _with_columns(decided, run, output)
    findings = _findings(decided, run, Stages())._replace(options={**run.given, **given})
    report = report.at_limit(
        dedup_report(findings, by_value=decided.by_value, write=report.write, lang=report.lang)
    )
    result = _result(run, decided, report.to_dict(), None, fills_tables=True)
    # The next limit may be less strict than this one, as far as the pairs of the run reach.
    return replace(result, _again=partial(_rethreshold, run, searched, report, output))


def _named_limits(method: Method, limits: Options) -> Options:
    """Return the limits that are not None, for the report numbers of Python. Raise SettingError
    unless the method has them.
    """
    named = {name: plain(limit) for name, limit in without_none(limits).items()}
    known = constraints_of(type(method.settings))
    if not named or not named.keys() <= known.keys():
        raise SettingError(
            f"rethreshold takes {' or '.join(limit for limit in limits if limit in known)} with "
            f"this method: got {limits}. Give a limit that the method has."
        )
    return named


def _refuse_looser(settings: DocumentSettings, limits: Options) -> None:
    """Raise SettingError if a limit is less strict than in the settings of the run."""
    for name, value in limits.items():
        limit = getattr(settings, name)
        # A threshold is a minimum, other limits are maxima (max_distance).
        is_looser = value < limit if name == "threshold" else value > limit
        if is_looser:
            raise SettingError(
                f"rethreshold answers at limits as strict as that of the run, {name}={limit:g}: "
                f"got {name}={value!r}. Run dedup(..., {name}={value!r}, rethreshold=True) for "
                "pairs that reach so far."
            )
