"""A run of dedup on top of an index: each document is decided as `add_if_new` decides, and nothing is written before
the end.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schemas
from neardup.api.documents_of_index import Batch, batch_of_documents, tasks_for
from neardup.api.index import Index
from neardup.api.inputs import Inputs, named_paths
from neardup.api.runs import NamedMethod, Run, refuse_resume
from neardup.decide.decisions import Pairs, Removals
from neardup.decide.outcome import SHORT, Outcome, count_decisions
from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.documents.corpus import Corpus
from neardup.documents.reading import Task, known_total
from neardup.documents.tables import TablePart
from neardup.engines.local.pipeline import locations
from neardup.engines.local.reading import Reading, read_all
from neardup.engines.local.resume import prepare
from neardup.engines.local.scratch import Scratch
from neardup.errors import InputError, NeardupError, SchemeError, SettingError
from neardup.executor import count_threads, group_small
from neardup.index import collection, maintenance, meta
from neardup.index.incoming import Incoming, decompress, new_prefix
from neardup.index.overlay import Overlay
from neardup.output import write as writing
from neardup.output.directory import OutputDirectory
from neardup.output.report import drop_near_counts
from neardup.output.tables import LocationsAfter
from neardup.progress import Progress, Stages
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import MethodSettings
from neardup.settings.presets import method_named
from neardup.settings.run import RunSettings, SelectionSettings
from neardup.stores import embedded
from neardup.stores.addresses import is_index, shown_address
from neardup.stores.base import Changes, Rows, Snapshot, Writer
from neardup.verify.measured import Measured, measured_of_copies

_NO_TEXT = "(The index stores no text.)"
_TEXTS_AT_ONCE = 1024
_ROWS_AT_ONCE = 1 << 16  # of decisions
_DOCUMENTS = "documents"  # the folder of those of the run
_MEMORY_BYTES, _PART_BYTES = 64 << 20, 32 << 20  # of these in memory; of a part that is added to the index


def index_in(against: Any) -> Index | str | None:
    """Return the index that `against` is, or its address; None if it is an earlier collection, or nothing.

    Raises
    ------
    SettingError
        If it lists an index beside something else.
    """
    if isinstance(against, Index):
        return against
    items = list(against) if isinstance(against, (list, tuple)) else []
    found = [item.address for item in items if isinstance(item, Index)]
    found += [name for name in named_paths(against) if is_index(name)]
    if found and len(items) > 1:
        raise SettingError(
            f"against is either one index or an earlier collection: got {len(items)} names, with the index "
            f"{shown_address(found[0])}. Add the others to the index first."
        )
    if not found:
        return None
    return items[0] if items and isinstance(items[0], Index) else found[0]


@contextmanager
def open_index_run(
    found: Index | str,
    named: NamedMethod,
    inputs: Inputs,
    selection: SelectionSettings,
    run_settings: RunSettings,
    *,
    update: bool,
    resume: bool,
) -> Iterator[IndexRun]:
    """Open an index for a run of dedup; an index that was passed stays open afterwards.

    Parameters
    ----------
    found : as `index_in` returns it.
    named : the index must have been made with it.
    inputs, selection, run_settings : of the run.
    update : whether the documents of the run are added to the index.
    resume : whether it continues an interrupted run.

    Raises
    ------
    SchemeError
        If the index was made with another method.
    SettingError
        If it was made with another bound of its buckets.
    """
    opened: AbstractContextManager[Index]
    opened = nullcontext(found) if isinstance(found, Index) else Index.open(found, read_only=not update)
    with opened as index:
        method, bound = _named(index, *named), index._rules.max_bucket_size
        if method is not None:
            meta.require_method(index._store.meta, method, index.address)
        if selection.max_bucket_size not in (None, bound):
            raise SettingError(
                f"max_bucket_size must be that of the index, {bound}: got {selection.max_bucket_size}. Leave "
                "max_bucket_size (--max-bucket-size) out."
            )
        state: AbstractContextManager[Snapshot] = index._store.writing() if update else index._store.reading()
        with state as snapshot:
            yield IndexRun(index, snapshot, inputs, run_settings, resume=resume)


def _named(
    index: Index, method: MethodSettings | str | None, threshold: float | None, max_distance: int | None
) -> MethodSettings | None:
    """Return the method that the user named beside the index, if any."""
    if method is not None:
        return method_named(method, threshold, max_distance)
    limits = {"threshold": threshold, "max_distance": max_distance}
    given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    unknown = next((name for name in given if name not in constraints_of(type(index.method))), None)
    if unknown is not None:
        raise SchemeError(
            f"The index {index.address} was made with {type(index.method).__name__}, which has no {unknown}: got "
            f"{unknown}={given[unknown]!r}. Leave it out."
        )
    return dataclasses.replace(index.method, **given) if given else None


class _Decisions(NamedTuple):
    """The decisions about the documents of the run.

    kept : bool (num_documents,). num_truncated : kept ones of which a bucket had more documents than were compared.
    num_repeated : that the index had, or that the run had before. removed, keeper : int64 (num_removed,), the numbers
    of removed documents, and the rows of those that removed them. measured : of these pairs. seen : rows of the index.
    """

    kept: npt.NDArray[np.bool_]
    num_truncated: int
    num_repeated: int
    removed: Rows
    keeper: Rows
    measured: Measured
    seen: Rows


class _Kept(TablePart):
    """The documents of an index that removed one of the run, as an input of it. Their texts are read on demand."""

    def __init__(self, address: str, snapshot: Snapshot, rows: Rows, is_gone: npt.NDArray[np.bool_]) -> None:
        super().__init__(pa.table({schemas.ROWS.name: rows}), address)
        self.format, self._snapshot, self._rows, self._is_gone = "index", snapshot, rows, is_gone

    def read(
        self, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Yield the documents with their texts, if the index stores them."""
        for start in range(0, len(self._rows), _TEXTS_AT_ONCE):
            part = slice(start, start + _TEXTS_AT_ONCE)
            stored: list[str | None] = [None] * len(self._rows[part])
            alive = np.flatnonzero(~self._is_gone[part])
            texts = decompress(self._snapshot.take(self._rows[part][alive], ["text"])["text"].to_pylist())
            for place, text in zip(alive.tolist(), texts, strict=True):
                stored[place] = text
            shown = pa.array([_NO_TEXT if text is None else text for text in stored], pa.large_string())
            yield DocumentBatch(shown, np.arange(start, start + len(shown)))


class IndexRun:
    """The decisions of a run on top of a snapshot of an index.

    Its documents are in a store among the scratch files until `commit` adds them. That store is also what a run is
    resumed from: the documents after the last checkpoint are found there as repeated, with their answers.
    """

    can_resume = True

    def __init__(
        self, index: Index, snapshot: Snapshot, inputs: Inputs, run_settings: RunSettings, *, resume: bool
    ) -> None:
        self.index, self._snapshot, self._inputs, self._run_settings = index, snapshot, inputs, run_settings
        self._updates, self._resume = isinstance(snapshot, Writer), resume

    def decide(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Run:
        """Read the inputs and decide about their documents."""
        inputs, snapshot, method = self._inputs, self._snapshot, self.index._rules.method
        refuse_resume(folder, resume=self._resume)
        if folder is not None:
            folder.refuse_inputs_inside([*named_paths(inputs.source), self.index.address])
        warnings: list[str] = []
        tasks = tasks_for(inputs, self.index.method, warnings)
        identities = [task.part.identity() for task in tasks]
        selection, run_settings = SelectionSettings(), self._run_settings
        resuming = prepare(scratch, tasks, identities, method, selection, self._resume)
        state, note = [self.index.address, snapshot.num_rows, *snapshot.count()], scratch.directory / "index.json"
        if resuming and not (note.exists() and json.loads(note.read_text()) == state):
            warnings.append("The index has changed since the run was interrupted: all documents were decided again.")
            resuming = prepare(scratch, tasks, identities, method, selection, resume=False)
        note.write_text(json.dumps(state))
        if folder is not None:
            folder.begin(resume=resuming)
        self._reading = Reading(tasks, method, scratch, selection, run_settings.on_error, stores_sets=False)
        if resuming:
            self._reading.resume()
        self._open(scratch)
        with stages.stage("read", known_total(tasks)) as progress:
            threads = count_threads(run_settings.threads)
            corpus = read_all(self._reading, threads, run_settings.batch_rows, progress, self._describe, self._decide)
        with stages.stage("decide", corpus.num_documents) as progress:
            decisions = self._decisions(scratch.column(schemas.INDEX_ROWS), progress)
        self._seen, self._num_repeated = decisions.seen, decisions.num_repeated
        return self._run(tasks, identities, corpus, decisions, warnings)

    def _open(self, scratch: Scratch) -> None:
        """Open the store of the run's documents, and take account of those that were decided before."""
        self._scratch, layout, path = scratch, self.index._store.layout, scratch.directory / _DOCUMENTS
        if path.exists():
            store = embedded.open(str(path), memory_bytes=_MEMORY_BYTES)
        else:
            store = embedded.create(str(path), {"prefix": new_prefix()}, layout, memory_bytes=_MEMORY_BYTES)
        scratch.close_with(store)
        self._prefix: str = store.meta["prefix"]
        with store.writing() as top:  # nobody else writes to it
            self._top, self._overlay = top, Overlay(self._snapshot, layout, top)
        self._was_read = np.zeros(self._overlay.num_rows, np.bool_)
        self._was_read[scratch.column(schemas.INDEX_ROWS)] = True

    def _describe(self, batches: list[DocumentBatch]) -> Incoming:
        if not self._updates:  # the index is an earlier collection: its ids are those of other documents
            batches = [dataclasses.replace(batch, ids=None) for batch in batches]
        elif any(batch.ids is None for batch in batches):
            raise InputError(
                "A run that updates an index needs the ids of its documents, to recognise them when it is repeated: "
                "got documents without ids. Name their column with id_column (--id-column), or add them with "
                "Index.add_many_if_new (neardup index add-if-new), which gives each an id."
            )
        return self.index._describe(Batch.join([batch_of_documents(batch, []) for batch in batches]))

    def _decide(self, incoming: Incoming) -> None:
        """Decide about the next documents, and put them into the store of the run."""
        tally, first = self._reading.tally, self._snapshot.num_rows
        sizes = incoming.described.features.sets.sizes
        tally.without_features += int(np.count_nonzero(~incoming.featured))
        tally.short += int(np.count_nonzero((sizes > 0) & (sizes < SHORT)))
        if not self._updates:
            incoming = incoming.numbered(self._prefix, first + tally.documents)
        for step in collection.steps(self.index._rules, self._overlay, incoming, _now()):
            self._refuse_replaced(step.changes.forgotten)
            if len(self._was_read) < self._overlay.num_rows:
                longer = np.zeros(2 * self._overlay.num_rows, np.bool_)
                longer[: len(self._was_read)] = self._was_read
                self._was_read = longer
            self._was_read[step.rows] = True
            self._scratch.append(schemas.INDEX_ROWS, step.rows)

    def _refuse_replaced(self, forgotten: Rows) -> None:
        """Raise InputError if documents of the run are replaced by others of the run."""
        own = forgotten[self._was_read[forgotten]]
        if len(own):
            (id,) = self._overlay.take(own[:1], ["id"])["id"].to_pylist()
            raise InputError(
                f"The id {id!r} belongs to two documents of the run with different texts, and an index has one "
                "document of an id: nothing was written. Name another id_column (--id-column), or leave one out."
            )

    def _decisions(self, rows: Rows, progress: Progress) -> _Decisions:
        """Return the decisions about all documents; rows : of each, in the index.

        A document that the index had before the run has its answer of then, so that a run that is repeated has the same
        output. One that the run has twice is removed as a copy of itself, if it has features.
        """
        first, measures = self._snapshot.num_rows, self.index._rules.method.measures
        was_read = np.zeros(self._overlay.num_rows, np.bool_)
        kept = np.ones(len(rows), np.bool_)
        num_truncated = num_repeated = 0
        removed, keepers, seen = ([np.empty(0, np.int64)] for _ in range(3))
        measured = [measured_of_copies(0, measures)]
        columns = ["state", "kept_row", "truncated", "featured", *(measure.name for measure in measures)]
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            row = rows[start : start + _ROWS_AT_ONCE]
            stored = self._overlay.take(row, columns)
            distinct, place = np.unique(row, return_index=True)
            again = np.ones(len(row), np.bool_)
            again[place] = was_read[distinct]
            was_read[distinct] = True
            is_kept = stored["state"].to_numpy() == schemas.KEPT
            itself = is_kept & stored["featured"].to_numpy() & again
            keeper = np.where(is_kept, row, stored["kept_row"].fill_null(0).to_numpy().astype(np.int64))
            is_kept &= ~itself
            kept[start : start + len(row)] = is_kept
            num_truncated += int(np.count_nonzero(stored["truncated"].to_numpy() & is_kept))
            gone, repeated = np.flatnonzero(~is_kept), again | (row < first)
            num_repeated += int(np.count_nonzero(repeated))
            seen.append(np.unique(np.where(repeated, row, keeper)))
            seen[-1] = seen[-1][seen[-1] < first]
            removed.append(start + gone)
            keepers.append(keeper[gone])
            values = {}
            for measure in measures:
                column = stored[measure.name].fill_null(pa.scalar(measure.of_itself, measure.type)).to_numpy()[gone]
                values[measure.name] = np.where(itself[gone], measure.of_itself, column).astype(column.dtype)
            measured.append(Measured(values))
            progress.advance(len(row), 0)
        return _Decisions(
            kept, num_truncated, num_repeated, np.concatenate(removed), np.concatenate(keepers),
            Measured({m.name: np.concatenate([part[m.name] for part in measured]) for m in measures}),
            np.unique(np.concatenate(seen)),
        )  # fmt: skip

    def _run(
        self,
        tasks: list[Task],
        identities: list[tuple[str, int, float]],
        corpus: Corpus,
        decisions: _Decisions,
        warnings: list[str],
    ) -> Run:
        """Return the run: the documents of the index that removed others come first, as the earlier collection."""
        scratch, removed = self._scratch, decisions.removed
        nodes, places, numbers = _place(scratch.column(schemas.INDEX_ROWS), removed, decisions.keeper)
        remembered = self._overlay.take(scratch.column(schemas.INDEX_ROWS)[removed[places]], ["kept_id"])
        node_ids = remembered["kept_id"].combine_chunks()
        located, num_short, tally = locations(tasks, corpus, scratch), corpus.tally.short, corpus.tally
        tally.documents += len(nodes)
        corpus = Corpus(
            np.append(len(nodes), len(nodes) + corpus.part_ends), np.append(0, corpus.part_rejected), corpus.unread,
            len(nodes), tally,
        )  # fmt: skip
        removals = Removals((len(nodes) + removed).astype(np.uint32), numbers, decisions.measured)
        pairs = Pairs(removals.kept, removals.documents, removals.measured)
        lengths = np.append(np.zeros(len(nodes), np.int64), scratch.column(schemas.LENGTHS))
        outcome = Outcome(
            corpus, count_decisions(removals, pairs, corpus, lengths), 0, decisions.num_truncated, 0, 0, 0, None, None,
            num_short, np.append(np.ones(len(nodes), np.bool_), decisions.kept), removals, pairs,
        )  # fmt: skip
        is_gone = self._snapshot.rows_of_ids(node_ids) != nodes
        part = _Kept(self.index.address, self._snapshot, nodes, is_gone)
        names = [part.name, *(task.part.name for task in tasks)]
        return Run(
            [Task(part, Columns("text", "id"), True), *tasks], [part.identity(), *identities],
            self.index._rules.method, outcome, LocationsAfter(names, corpus, nodes, node_ids, located), warnings,
        )  # fmt: skip

    def complete(self, report: dict[str, Any]) -> None:
        """Replace the partial counts of the index in the report by its totals."""
        counts = self.index.info()["documents"]
        report["inputs"][0]["documents"] = report["counts"]["against"] = counts["kept"]
        report["counts"] |= {"compared": None, "repeated": self._num_repeated}
        drop_near_counts(report)
        report["updated"] = False

    def commit(self, report: dict[str, Any], folder: OutputDirectory | None) -> None:
        """Add the documents of the run to the index, if it was opened to be updated, and note it in the report."""
        if not isinstance(self._snapshot, Writer):
            return
        try:
            self._snapshot.write_all(self._changes())
        except NeardupError as error:
            where = "" if folder is None else f"The output {folder.path} is complete, but the index was not updated. "
            raise type(error)(
                f"{where}{error} After that, repeat the run{' with overwrite=True (--overwrite)' if where else ''}: it "
                "decides as before."
            ) from error
        report["updated"] = True
        if folder is not None:
            folder.replace(writing.REPORT, writing.report_bytes(report))

    def _changes(self) -> Iterator[Changes]:
        """Yield what the run changes in the index, a part at a time."""
        rules, first = self.index._rules, self._snapshot.num_rows
        yield Changes(forgotten=self._overlay.replaced)
        for tables in group_small(
            self._top.scan(schemas.indexed_schema(rules.method.measures).names), lambda table: table.nbytes, _PART_BYTES
        ):
            yield maintenance.changes_of(rules, pa.concat_tables(tables), first)
        yield Changes(seen=self._seen, seen_at=_now())


def _now() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000


def _place(rows: Rows, removed: Rows, keeper: Rows) -> tuple[Rows, Rows, npt.NDArray[np.uint32]]:
    """Return the rows of the index that removed documents, a place of each among those removed, and the number of each
    keeper.

    Documents of the run are numbered after those of the index. A keeper is a document of the run if it comes before
    the one that it removes.

    rows : of the documents of the run. removed, keeper : as in `_Decisions`.
    """
    by_row = np.argsort(rows, kind="stable")  # of a document that is repeated, the first
    own = by_row[np.minimum(np.searchsorted(rows, keeper, sorter=by_row), max(0, len(by_row) - 1))]
    is_stored = (rows[own] != keeper) | (own >= removed)
    nodes, places = np.unique(keeper[is_stored], return_index=True)
    numbers = np.where(is_stored, np.searchsorted(nodes, keeper), len(nodes) + own)
    return nodes, np.flatnonzero(is_stored)[places], numbers.astype(np.uint32)


def refuse_selection(selection: SelectionSettings, count_by: str | None) -> None:
    """Raise SettingError if documents are not to be selected as an index does."""
    reasons = (
        ("keep", selection.keep, "first", "an index keeps the first document, which it has already"),
        ("within", selection.within, None, "an index compares all its documents"),
        ("count_by", count_by, None, "such a run counts removals by input only"),
        ("linkage", selection.linkage, "sieve", "an index decides about each document once, and does not form chains"),
        ("audit_sample", selection.audit_sample, 0, "an index has no scratch files to compare all documents from"),
    )
    for name, value, accepted, reason in reasons:
        if value != accepted:
            raise SettingError(
                f"{name} must be {accepted!r} with an index as against: got {value!r}; {reason}. Leave {name} "
                f"(--{name.replace('_', '-')}) out."
            )
