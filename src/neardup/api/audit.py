"""Audit the removals of a deduplication, ours or another tool's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Ints
from neardup.decide.referee import Referee, judge, remaining_duplicates, sieve_in_order
from neardup.documents.batch import Losses, Rejected
from neardup.engines.audit import Findings, unmatched_batches
from neardup.engines.audit_examples import examples_of
from neardup.engines.base import Searched
from neardup.engines.choose import open_engine
from neardup.engines.local.nearest import Collection, find_nearest
from neardup.engines.local.pipeline import LocalEngine
from neardup.errors import InputError, SettingError
from neardup.files import AnyPath, JsonObject, Output
from neardup.formats.reading import Task, identified, ignore
from neardup.formats.tables import rereadable
from neardup.methods.registry import method_of
from neardup.output.job import Job, Product, Table, open_job
from neardup.report.audit import AuditReport, headline, render_audit
from neardup.report.contents import (
    describe_cost,
    describe_inputs,
    describe_losses,
    warn_of_textless,
)
from neardup.report.items import Example
from neardup.results import filled
from neardup.runs.find import LeftOut
from neardup.runs.foreign_ids import Clustered, Named, Original, read_clusters, read_removed
from neardup.runs.kept_rows import Matched, Rows, match_rows, read_rows
from neardup.runs.run import (
    CacheOptions,
    Run,
    Source,
    Unpack,
    named_paths,
    run_of,
    spelled_out,
    tasks_of,
)
from neardup.schemas import judged_schema, pairs_schema, unmatched_schema
from neardup.settings.audit import AuditOutput, AuditSettings, KeptSettings
from neardup.settings.constraints import ColumnNames, check_columns, check_path
from neardup.settings.methods import MethodSettings, method_named
from neardup.settings.run import Language

_SEED = 20261128  # fixed: the same removals draw the same sample
_COUNTED = ("source", "language", "lang")


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of `audit`.

    Attributes
    ----------
    removals : Arrow table, schemas.judged_schema: the removed documents with their verdicts.
    left : Arrow table, schemas.pairs_schema: the near-duplicates among the kept documents.
    unmatched : Arrow table, schemas.unmatched_schema: the kept documents that are not in the
        original.
    report, output : as in `Deduplication`, with shares and faults.
    """

    _tables: Mapping[str, pa.Table] = field(repr=False)
    report: JsonObject = field(repr=False)
    output: Output

    def __str__(self) -> str:
        """Return the result in one sentence."""
        return headline(self.report)

    @property
    def removals(self) -> pa.Table:
        """The removed documents."""
        return filled(self._tables.get("removals"), "removals", self.output)

    @property
    def left(self) -> pa.Table:
        """The near-duplicates among the kept documents."""
        return filled(self._tables.get("left"), "left", self.output)

    @property
    def unmatched(self) -> pa.Table:
        """The kept documents that are not in the original."""
        return filled(self._tables.get("unmatched"), "unmatched", self.output)

    @property
    def sound(self) -> float:
        """The estimated share of removed documents that a kept document is similar to."""
        return float(self.report["sound"]["share"])

    @property
    def lost(self) -> float:
        """The estimated share of removed documents that no kept document is similar to."""
        return float(self.report["lost"]["share"])

    @property
    def faults(self) -> list[str]:
        """The names of the faults that were seen."""
        return [fault["fault"] for fault in self.report["faults"]]


@spelled_out(CacheOptions, is_reported=True)
def audit(
    source: Source,
    *,
    kept: Source | None = None,
    removed_ids: AnyPath | None = None,
    clusters: AnyPath | None = None,
    cluster_column: str | None = None,
    match: Literal["auto", "id", "text"] = "auto",
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    sample: int = 1_000,
    count_by: ColumnNames = None,
    lang: Language = "en",
    tables: bool = True,
    **options: Unpack[CacheOptions],
) -> Audit:
    """Check the removals of a deduplication, by neardup or another tool: is each removed document
    similar to a kept one?

    Parameters
    ----------
    source : the original documents.
    kept : the documents that were kept, in any format that `source` may have.
    removed_ids : instead of `kept`, the removed documents: lines of ids, a table with a column of
        ids, or a folder of .remove files of datatrove. Without an id column in the original, ids
        are numbers from 0.
    clusters : the clusters of the other tool: a table with a column of ids and a column of
        clusters, or a folder of .clusters files of datatrove.
    cluster_column : the column of clusters. Default: the first known name, such as cluster or
        __CLUSTER__.
    match : the key that finds kept documents in the original: id, the exact text, or auto: id if
        both sides share ids and no id of the original repeats or is null. If m of n copies of a
        text were kept, the first m count as kept.
    method, threshold : as in `dedup`; minhash, or its settings with Jaccard similarity.
    sample : the maximum number of removals to compare with all kept documents, if the search found
        no similar one; of more removals, a sample. Shares from a sample have an interval.
    count_by : columns by whose values removals are counted. Default: source, language and lang.
    output : a folder for removals.parquet, left.parquet, unmatched.parquet and the report.
    lang, tables, overwrite, scratch, resume : as in `dedup`.
    text_column, roles, id_column, text_unit, in_format, quote, max_document_bytes : as in `dedup`,
        of both sides.
    threads, batch_rows, cache_bytes, on_error, max_unreadable, progress : as in `dedup`.

    Returns
    -------
    Audit

    Raises
    ------
    SettingError
        Unless one of `kept` and `removed_ids` is given.
    InputError
        If no kept document is in the original.
    SettingError, InputError, ColumnError, OutputError, ResumeError
        As in `dedup`.

    Examples
    --------
    >>> import neardup
    >>> fox = "the quick brown fox jumps over the lazy dog"
    >>> original = [fox, "nothing like it in this whole corpus", fox + "!"]
    >>> result = neardup.audit(original, kept=[fox])
    >>> result.removals.select(["id", "verdict", "kept_id"]).to_pylist()
    [{'id': '1', 'verdict': 'alone', 'kept_id': None},
     {'id': '2', 'verdict': 'copy', 'kept_id': '0'}]
    >>> result.lost, result.faults
    (0.5, ['unlike'])
    """
    settings = AuditSettings(sample=sample)
    AuditOutput(lang=lang)
    decisions = _Decisions(kept, removed_ids, clusters, cluster_column, match)
    decisions.check()
    # The original is read for its columns, for its ids and by the engine.
    run = run_of("audit", rereadable(source), options, method=method_named(method, threshold))
    run = _with_counted(_checked(run), count_by)
    paths = [*named_paths(source), *named_paths(kept)]
    with open_engine(run) as engine, open_job(run, paths) as job:
        assert isinstance(engine, LocalEngine)  # the only one that performs an audit
        original = _read_original(job, engine)
        with job.stages.stage("match"):
            kept_side = decisions.read(job, original)
        # The rule needs to know the kept documents, which are known only now.
        engine.run = replace(run, rule=Referee(kept_side.matched.is_kept))
        searched = engine.find(job.folder, job.scratch, job.stages)
        findings = _judge(job, searched, original.rows, kept_side, settings)
        product = _AuditProduct(
            job=job,
            findings=findings,
            kept_side=kept_side,
            settings=settings,
            lang=lang,
            fills_tables=tables,
        )
        return job.finish(product)


def _checked(run: Run) -> Run:
    """Return the run. Raise SettingError unless its method measures Jaccard similarity, by which
    the nearest documents are found.
    """
    try:
        method_of(run.method).refuse_recall_sample(1)
    except SettingError as error:
        raise SettingError(
            f"An audit measures Jaccard similarity: got {run.method!r}. Use method='minhash' "
            "(--method minhash) with similarity='jaccard'."
        ) from error
    return run


def _with_counted(run: Run, count_by: ColumnNames) -> Run:
    """Return the run with the columns by whose values removals are counted."""
    if count_by is None:
        types = [task.part.column_types() or {} for task in run.find().tasks]
        names = [name for name in _COUNTED if types and all(name in known for known in types)]
    else:
        names = list(check_columns(count_by))
    return replace(run, inputs=run.inputs._replace(described=tuple(names)))


def _read_original(job: Job, engine: LocalEngine) -> Original:
    """Read the ids and texts of the original. The engine reads it again, perhaps from memory."""
    inputs = engine.inputs()
    with job.stages.stage("hash") as progress:
        tasks = identified(inputs.tasks, engine.cache)
        rows = read_rows(tasks, job.run.threads, progress, ignore)
    return Original(rows, inputs.tasks[0].columns.id if inputs.tasks else None)


class _KeptSide(NamedTuple):
    """The decisions of the other tool, as they were read.

    tasks, rows : the kept documents; none if their ids were given. num_rows : kept documents, or
    removed ones that are listed. num_unknown : listed ids that are not in the original. rejected :
    kept rows that could not be read. skipped : warnings about files that were left out.
    """

    matched: Matched
    clusters: Clustered | None
    tasks: list[Task]
    rows: Rows | None
    num_rows: int
    num_unknown: int
    rejected: list[Rejected]
    skipped: list[str]


class _Decisions(NamedTuple):
    """The options that name the decisions of the other tool; see `audit`."""

    kept: Source | None
    removed_ids: AnyPath | None
    clusters: AnyPath | None
    cluster_column: str | None
    match: Literal["auto", "id", "text"]

    def check(self) -> None:
        """Raise SettingError unless there is one list of kept or removed documents."""
        KeptSettings(cluster_column=self.cluster_column, match=self.match)
        if (self.kept is None) == (self.removed_ids is None):
            given = "none" if self.kept is None else "both"
            raise SettingError(
                f"An audit needs the kept documents or the removed ids: got {given}. Pass kept "
                "(--kept PATH) or removed_ids (--removed-ids PATH)."
            )

    def read(self, job: Job, original: Original) -> _KeptSide:
        """Read the kept documents or the removed ids, and match them with the original."""
        left_out = LeftOut()
        clusters = None
        if self.clusters is not None:
            path = check_path("clusters", self.clusters)
            clusters = read_clusters(path, self.cluster_column, original, left_out)
        if self.removed_ids is not None:
            path = check_path("removed_ids", self.removed_ids)
            removed = read_removed(path, original, left_out)
            return _listed(path, removed, original, clusters, left_out.warnings())
        return self._read_kept(job, original, clusters, left_out.warnings())

    def _read_kept(
        self, job: Job, original: Original, clusters: Clustered | None, skipped: list[str]
    ) -> _KeptSide:
        inputs = job.run.inputs._replace(source=self.kept, described=())
        tasks = tasks_of(inputs, "first", skipped)
        max_unreadable = job.run.settings.max_unreadable
        tasks = [task._replace(max_unreadable=max_unreadable) for task in tasks]
        rejected: list[Rejected] = []
        rows = read_rows(
            tasks, job.run.threads, job.stages.progress, job.run.rejecter(rejected.append)
        )
        return _KeptSide(
            matched=match_rows(original.rows, rows, self.match),
            clusters=clusters,
            tasks=tasks,
            rows=rows,
            num_rows=len(rows.texts),
            num_unknown=0,
            rejected=rejected,
            skipped=skipped,
        )


def _listed(
    path: str,
    removed: Named,
    original: Original,
    clusters: Clustered | None,
    skipped: list[str],
) -> _KeptSide:
    """Return the decisions of a list of removed documents. skipped : as in `_KeptSide`."""
    is_kept = np.ones(len(original.rows.texts), np.bool_)
    is_kept[removed.documents] = False
    if is_kept.all() and removed.num_unknown:
        raise InputError(
            f"None of the {removed.num_unknown:,} ids of {path} is in the original. "
            "Name the id column of the original: id_column (--id-column)."
        )
    return _KeptSide(
        matched=Matched(is_kept, "removed_ids", np.empty(0, np.int64)),
        clusters=clusters,
        tasks=[],
        rows=None,
        num_rows=len(removed.documents) + removed.num_unknown,
        num_unknown=removed.num_unknown,
        rejected=[],
        skipped=skipped,
    )


def _judge(
    job: Job, searched: Searched, rows: Rows, kept_side: _KeptSide, settings: AuditSettings
) -> Findings:
    """Judge the removed documents; compare a sample of the doubtful ones with all kept ones."""
    found = searched.found
    is_kept = kept_side.matched.is_kept
    with job.stages.stage("decide"):
        judgement = judge(found, is_kept)
        remaining = remaining_duplicates(found, is_kept)
        ours = sieve_in_order(found)
    sample = _draw(np.flatnonzero(judgement.is_unfound), settings.sample)
    if len(sample):
        with job.stages.stage("compare", int(np.count_nonzero(is_kept))) as progress:
            collection = Collection(
                searched.tasks, searched.corpus, searched.method, job.run.threads
            )
            nearest = find_nearest(collection, sample, is_kept, progress)
        judgement = judgement.with_nearest(
            sample, nearest.documents, nearest.similarity, searched.method.limit.value
        )
    return Findings(
        searched=searched,
        rows=rows,
        matched=kept_side.matched,
        judgement=judgement,
        remaining=remaining,
        ours=ours,
        clusters=kept_side.clusters,
    )


def _draw(documents: Ints, size: int) -> Ints:
    """Return documents drawn at random, rising; all if they are few."""
    if len(documents) <= size:
        return documents
    return np.sort(np.random.default_rng(_SEED).choice(documents, size, replace=False))


@dataclass
class _AuditProduct(Product[Audit]):
    """The product of `audit`. fills_tables : whether the result has its tables in memory."""

    job: Job
    findings: Findings
    kept_side: _KeptSide
    settings: AuditSettings
    lang: Language
    fills_tables: bool

    def tables(self) -> Sequence[Table]:
        """Return removals.parquet, left.parquet and unmatched.parquet."""
        measures = self.findings.searched.method.measures
        return [
            Table("removals", judged_schema(), self.findings.judged_batches),
            Table("left", pairs_schema(measures), self.findings.remaining_batches),
            Table("unmatched", unmatched_schema(), self._unmatched_batches),
        ]

    def _unmatched_batches(self) -> Sequence[pa.RecordBatch]:
        kept = self.kept_side
        if kept.rows is None:
            return []
        names = [task.part.name for task in kept.tasks]
        return list(unmatched_batches(names, kept.rows, kept.matched.unmatched))

    def report(self) -> AuditReport:
        """Return the report."""
        findings = self.findings
        searched = findings.searched
        tally = searched.corpus.tally
        losses = Losses.of(self.kept_side.rejected) + tally.losses
        return AuditReport(
            options=self.job.run.given,
            scheme=searched.method.scheme(),
            **self._settings(),
            **self._shares(),
            faults=findings.faults(),
            groups=findings.groups(),
            keepers=findings.keepers(),
            left=findings.remaining_among_kept(),
            ours=findings.ours_beside_theirs(),
            sources=findings.sources(),
            clusters=findings.of_clusters(),
            inputs=describe_inputs(searched.tasks, searched.corpus),
            losses=describe_losses(losses, tally.documents + self.kept_side.num_rows),
            cost=describe_cost(self.job.stages, tally.documents, tally.text_bytes),
            warnings=[
                *searched.warnings,
                *(new for new in self.kept_side.skipped if new not in searched.warnings),
                *warn_of_textless(losses),
                *self._warnings(),
            ],
            rejected=[row._asdict() for row in self.kept_side.rejected] + self.job.rejected(),
            lang=self.lang,
        )

    def _settings(self) -> JsonObject:
        """Return the settings and the columns, as fields of the report."""
        searched = self.findings.searched
        columns = searched.tasks[0].columns if searched.tasks else None
        return {
            "settings": {
                "threshold": searched.method.limit.value,
                "sample": self.settings.sample,
                "match": self.findings.matched.key,
            },
            "columns": {
                "text": columns and columns.text,
                "id": columns and columns.id,
            },
        }

    def _shares(self) -> JsonObject:
        """Return the counts and the shares of removals, as fields of the report."""
        lost = self.findings.lost()
        counts = self.findings.counts()
        kept_side = self.kept_side
        # Without removals, both shares are 0.
        whole = 1.0 if counts["judged"] else 0.0
        return {
            "counts": {
                **counts,
                "rejected": counts["rejected"] + Losses.of(kept_side.rejected).rejected,
                "listed": kept_side.num_rows,
                "unknown": kept_side.num_unknown,
            },
            "lost": lost._asdict(),
            "sound": {
                "documents": counts["judged"] - lost.documents,
                "share": whole - lost.share,
                "low": whole - lost.high,
                "high": whole - lost.low,
                "is_exact": lost.is_exact,
            },
            "similarities": self.findings.similarities(),
        }

    def _warnings(self) -> list[str]:
        """Return warnings about rows that do not match."""
        matched = self.findings.matched
        warnings = []
        if len(matched.unmatched):
            kept = self.kept_side
            assert kept.rows is not None  # only kept documents are unmatched
            first = matched.unmatched[:1]
            name = kept.tasks[int(kept.rows.parts(first)[0])].part.name
            warnings.append(
                f"{len(matched.unmatched):,} kept documents are not in the original, the first in "
                f"row {int(kept.rows.numbers[first[0]])} of {name}. unmatched.parquet has all."
            )
        if matched.num_changed:
            warnings.append(
                f"{matched.num_changed:,} kept documents have another text than the document of "
                "the original with their id. The audit compares the texts of the original."
            )
        if self.kept_side.num_unknown:
            warnings.append(
                f"{self.kept_side.num_unknown:,} ids of removed documents are not in the original."
            )
        return warnings

    def pages(self, report: JsonObject, output: Output) -> dict[str, str]:
        """Return the page of the worst removals."""
        examples: Mapping[str, Sequence[Example]] = examples_of(self.findings)
        return {"report.html": render_audit(report, examples)}

    def result(self, report: JsonObject, output: Output) -> Audit:
        """Return the result."""
        tables = self.tables() if self.fills_tables else []
        return Audit({table.name: table.read() for table in tables}, report, output)
