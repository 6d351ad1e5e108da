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
import pyarrow.compute as pc

from neardup import schemas
from neardup.api.documents_of_index import Batch, read_batches, tasks_for
from neardup.api.index import Index
from neardup.api.inputs import Inputs, named_paths
from neardup.api.runs import NamedMethod, Run
from neardup.arrays import arrow_of, flatten_strings, numpy_type
from neardup.decide.decisions import Pairs, Removals
from neardup.decide.outcome import SHORT, Outcome, count_decisions
from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.documents.corpus import MAX_UNREAD_NAMED, Corpus, Tally, describe_rejected
from neardup.documents.reading import Task, known_total
from neardup.documents.tables import TablePart
from neardup.engines.local.scratch import Scratch
from neardup.errors import InputError, NeardupError, SchemeError, SettingError
from neardup.executor import count_threads, map_ordered
from neardup.index import collection, meta
from neardup.index.incoming import Incoming, decompress
from neardup.index.overlay import Overlay
from neardup.output import write as writing
from neardup.output.directory import OutputDirectory
from neardup.output.report import drop_near_counts
from neardup.output.tables import DocumentLocations
from neardup.progress import Stages
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import MethodSettings
from neardup.settings.presets import method_named
from neardup.settings.run import RunSettings, SelectionSettings
from neardup.stores.addresses import is_index, shown_address
from neardup.stores.base import Rows, Snapshot, Writer
from neardup.verify.measured import Measured

_NO_TEXT = "(The index stores no text.)"
_TEXTS_AT_ONCE = 1024


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
) -> Iterator[IndexRun]:
    """Open an index for a run of dedup; an index that was passed stays open afterwards.

    Parameters
    ----------
    found : as `index_in` returns it.
    named : the index must have been made with it.
    inputs, selection, run_settings : of the run.
    update : whether the documents of the run are added to the index.

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
            yield IndexRun(index, snapshot, inputs, run_settings)


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


_KINDS = (np.int64, np.int64, np.bool_, np.bool_)


class _Decided(NamedTuple):
    """Some documents of the run, decided. row : in the index, or that it will have there. keeper : the row of the
    document that removed it; its own if it is kept. kept_id : null if it is kept.
    """

    row: Rows
    keeper: Rows
    kept: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    kept_id: pa.Array
    measured: Measured


class _Read(NamedTuple):
    """What was read, by batch: ids, rows and lengths of documents; and by part: the number of documents at its end, and
    of its rejected rows.
    """

    ids: list[pa.Array]
    rows: list[npt.NDArray[np.int64]]
    lengths: list[npt.NDArray[np.int64]]
    ends: list[int]
    rejected: list[int]


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
    """The decisions of a run on top of a snapshot of an index."""

    can_resume = False

    def __init__(self, index: Index, snapshot: Snapshot, inputs: Inputs, run_settings: RunSettings) -> None:
        self.index, self._snapshot, self._inputs, self._run_settings = index, snapshot, inputs, run_settings
        self._overlay = Overlay(snapshot, index._store.layout)
        self._updates = isinstance(snapshot, Writer)
        self._sent = np.zeros(snapshot.num_rows if self._updates else 0, np.bool_)  # rows that the run repeats
        self._tally, self._unread, self._num_repeated = Tally(), list[str](), 0

    def decide(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Run:
        """Read the inputs and decide about their documents."""
        inputs, run_settings = self._inputs, self._run_settings
        if folder is not None:
            folder.refuse_inputs_inside([*named_paths(inputs.source), self.index.address])
        warnings: list[str] = []
        tasks = tasks_for(inputs, self.index.method, warnings)
        identities = [task.part.identity() for task in tasks]
        if folder is not None:
            folder.begin(resume=False)
        read, decided = _Read([], [], [], [], []), list[_Decided]()
        with (
            stages.stage("read", known_total(tasks)) as progress,
            open(scratch.directory / schemas.REJECTED.name, "w", encoding="utf-8") as log,
        ):
            for documents, incoming in self._described(tasks, run_settings, log.write):
                if documents is None or incoming is None:
                    read.ends.append(self._tally.documents)
                    read.rejected.append(self._tally.part_rejected)
                    self._tally.part_rejected = 0
                    continue
                read.ids.append(self._shown_ids(documents))
                read.rows.append(documents.rows)
                read.lengths.append(np.diff(flatten_strings(documents.text)[1]))
                decided += self._decide(incoming, run_settings.batch_rows)
                self._count(documents, incoming)
                progress.advance(len(documents.rows), int(documents.text.nbytes))
        return self._run(tasks, identities, read, _join(decided, self.index._rules.method.measures), warnings)

    def _described(
        self, tasks: list[Task], settings: RunSettings, log: Callable[[str], Any]
    ) -> Iterator[tuple[DocumentBatch | None, Incoming | None]]:
        """Yield the documents of all parts, described on threads; after each part, none."""

        def reject(row: Rejected) -> None:
            if settings.on_error == "stop":
                raise InputError(
                    f"{describe_rejected(row)}. The run stops at the first such document because of on_error='stop'. "
                    "Use on_error='reject' (--on-error reject) to list it in rejected.jsonl instead."
                )
            log(json.dumps(row._asdict(), ensure_ascii=False) + "\n")
            self._tally.part_rejected += 1
            if row.rest_of_file:
                self._tally.unread_files += 1
                self._unread = [*self._unread, row.file][:MAX_UNREAD_NAMED]
            else:
                self._tally.rejected += 1

        def pieces() -> Iterator[tuple[DocumentBatch | None, Batch | None]]:
            for task in tasks:
                yield from read_batches(task, (), reject)
                yield None, None

        threads = count_threads(settings.threads)
        for (documents, _), incoming in map_ordered(
            pieces(), lambda piece: None if piece[1] is None else self._incoming(piece[1]), threads,
            bytes_of=lambda piece: 0 if piece[1] is None else int(piece[1].texts.nbytes),
        ):  # fmt: skip
            yield documents, incoming

    def _incoming(self, batch: Batch) -> Incoming:
        if self._updates and batch.is_unnamed:
            raise InputError(
                "A run that updates an index needs the ids of its documents, to recognise them when it is repeated: "
                "got documents without ids. Name their column with id_column (--id-column), or add them with "
                "Index.add_many_if_new (neardup index add-if-new), which gives each an id."
            )
        return self.index._describe(batch)

    def _shown_ids(self, documents: DocumentBatch) -> pa.Array:
        """Return the ids of documents for the tables: their column, else their running numbers."""
        if documents.ids is not None:
            return documents.ids.cast(pa.large_string())
        first = self._tally.documents
        return arrow_of(np.arange(first, first + len(documents.rows))).cast(pa.large_string())

    def _count(self, documents: DocumentBatch, incoming: Incoming) -> None:
        sizes = incoming.described.features.sets.sizes
        self._tally.documents += len(documents.rows)
        self._tally.without_features += int(np.count_nonzero(~incoming.featured))
        self._tally.shingles += int(np.count_nonzero((sizes > 0) & (sizes < SHORT)))

    def _decide(self, incoming: Incoming, batch_rows: int | None) -> Iterator[_Decided]:
        """Yield the decisions about documents, some at a time."""
        if not self._updates:  # the index is an earlier collection: its ids are those of other documents
            incoming = incoming.numbered(self.index._prefix, self._overlay.num_rows)
        for start in range(0, len(incoming), batch_rows or len(incoming)):
            stop = min(len(incoming), start + (batch_rows or len(incoming)))
            part, now = incoming.take(np.arange(start, stop)), time.time_ns() // 1000
            for step in collection.steps(self.index._rules, self._overlay, part, now):
                yield self._decided(step, incoming.featured[start : start + len(step.rows)])
                start += len(step.rows)

    def _decided(self, step: collection.Step, featured: npt.NDArray[np.bool_]) -> _Decided:
        """Return the decisions of a step.

        A document that the index had before the run has its answer of then, so that a run that is repeated has the same
        output. One that the run has twice is removed as a copy of itself, if it has features.
        """
        answers, documents, row = step.answers, step.changes.documents, step.rows
        assert documents is not None
        first = self._snapshot.num_rows
        self._refuse_replaced(step.changes.forgotten, first)
        repeated, kept = answers["repeated"].to_numpy(), answers["kept"].to_numpy()
        keeper, removers = row.copy(), documents["kept_row"]
        keeper[~repeated] = np.where(removers.is_valid().to_numpy(), _rows(removers), row[~repeated])
        removed = np.flatnonzero(repeated & ~kept)
        if len(removed):
            keeper[removed] = _rows(self._overlay.take(row[removed], ["kept_row"])["kept_row"])
        earlier = repeated & (row < first)
        itself = kept & featured & repeated & ~earlier
        itself[earlier] = (kept & featured)[earlier] & self._sent[row[earlier]]
        self._sent[row[earlier]] = True
        self._num_repeated += int(np.count_nonzero(repeated))
        kept_id = pc.if_else(arrow_of(itself), answers["id"], answers["kept_id"]).combine_chunks()
        measured = {}
        for measure in self.index._rules.method.measures:
            values = answers[measure.name].fill_null(pa.scalar(measure.of_itself, measure.type))
            measured[measure.name] = values.to_numpy()
        truncated = answers["truncated"].to_numpy()
        return _Decided(row, keeper, kept & ~itself, truncated, kept_id, Measured(measured))

    def _refuse_replaced(self, forgotten: Rows, first: int) -> None:
        """Raise InputError if documents of the run are replaced by others of the run."""
        own = forgotten >= first
        own[~own] = self._sent[forgotten[~own]]
        if own.any():
            (id,) = self._overlay.take(forgotten[own][:1], ["id"])["id"].to_pylist()
            raise InputError(
                f"The id {id!r} belongs to two documents of the run with different texts, and an index has one "
                "document of an id: nothing was written. Name another id_column (--id-column), or leave one out."
            )

    def _run(
        self,
        tasks: list[Task],
        identities: list[tuple[str, int, float]],
        read: _Read,
        decided: _Decided,
        warnings: list[str],
    ) -> Run:
        """Return the run: the documents of the index that removed others come first, as the earlier collection."""
        nodes, node_ids, removals = _place(decided)
        num_short, self._tally.shingles = self._tally.shingles, 0
        self._tally.documents += len(nodes)
        self._tally.text_bytes = sum(int(lengths.sum()) for lengths in read.lengths)
        corpus = Corpus(
            np.append(len(nodes), len(nodes) + np.array(read.ends, np.int64)),
            np.append(0, np.array(read.rejected, np.int64)),
            tuple(self._unread), len(nodes), self._tally,
        )  # fmt: skip
        kept = np.append(np.ones(len(nodes), np.bool_), decided.kept)
        pairs = Pairs(removals.kept, removals.documents, removals.measured)
        lengths = np.concatenate([np.zeros(len(nodes), np.int64), *read.lengths])
        outcome = Outcome(
            corpus, count_decisions(removals, pairs, corpus, lengths), 0,
            int(np.count_nonzero(decided.truncated & decided.kept)), 0, 0, 0, None, None, num_short, kept, removals,
            pairs,
        )  # fmt: skip
        is_gone = self._snapshot.rows_of_ids(node_ids) != nodes
        part = _Kept(self.index.address, self._snapshot, nodes, is_gone)
        names = [part.name, *(task.part.name for task in tasks)]
        rows, ids = np.concatenate([nodes, *read.rows]), pa.concat_arrays([node_ids, *read.ids])
        locations = DocumentLocations(names, corpus, rows, ids, lambda: None)
        return Run(
            [Task(part, Columns("text", "id"), True), *tasks], [part.identity(), *identities],
            self.index._rules.method, outcome, locations, warnings,
        )  # fmt: skip

    def complete(self, report: dict[str, Any]) -> None:
        """Change a report of the run, where the documents of the index are those that removed others, to one of all."""
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
            self._snapshot.write(self._overlay.changes())
        except NeardupError as error:
            where = "" if folder is None else f"The output {folder.path} is complete, but the index was not updated. "
            raise type(error)(
                f"{where}{error} After that, repeat the run{' with overwrite=True (--overwrite)' if where else ''}: it "
                "decides as before."
            ) from error
        report["updated"] = True
        if folder is not None:
            folder.replace(writing.REPORT, writing.report_bytes(report))


def _rows(column: pa.ChunkedArray) -> Rows:
    rows: Rows = column.fill_null(0).to_numpy().astype(np.int64)
    return rows


def _join(parts: list[_Decided], measures: schemas.Measures) -> _Decided:
    """Return all decisions as one."""
    row, keeper, kept, truncated = (
        np.concatenate([np.empty(0, kind), *(part[place] for part in parts)]) for place, kind in enumerate(_KINDS)
    )
    measured = {
        measure.name: np.concatenate(
            [np.empty(0, numpy_type(measure.type)), *(part.measured[measure.name] for part in parts)]
        )
        for measure in measures
    }
    kept_id = pa.concat_arrays([pa.array([], pa.large_string()), *(part.kept_id for part in parts)])
    return _Decided(row, keeper, kept, truncated, kept_id, Measured(measured))


def _place(decided: _Decided) -> tuple[Rows, pa.Array, Removals]:
    """Return the rows of the index that removed documents, their ids, and the removals by number of document.

    Documents of the run are numbered after those of the index. A keeper is a document of the run if it comes before
    the one that it removes.
    """
    removed = np.flatnonzero(~decided.kept)
    keeper = decided.keeper[removed]
    by_row = np.argsort(decided.row, kind="stable")  # of a document that is repeated, the first
    place = np.minimum(np.searchsorted(decided.row[by_row], keeper), max(0, len(by_row) - 1))
    own = by_row[place]
    is_stored = (decided.row[own] != keeper) | (own >= removed)
    nodes, places = np.unique(keeper[is_stored], return_index=True)
    number = np.where(is_stored, np.searchsorted(nodes, keeper), len(nodes) + own)
    removals = Removals(
        (len(nodes) + removed).astype(np.uint32), number.astype(np.uint32), decided.measured.take(removed)
    )
    return nodes, decided.kept_id.take(arrow_of(removed[is_stored][places])), removals


def refuse_selection(selection: SelectionSettings, *, resume: bool, count_by: str | None) -> None:
    """Raise SettingError if documents are not to be selected as an index does."""
    reasons = (
        ("keep", selection.keep, "first", "an index keeps the first document, which it has already"),
        ("within", selection.within, None, "an index compares all its documents"),
        ("count_by", count_by, None, "such a run counts removals by input only"),
        ("linkage", selection.linkage, "sieve", "an index decides about each document once, and does not form chains"),
        ("audit_sample", selection.audit_sample, 0, "an index has no scratch files to compare all documents from"),
        ("resume", resume, False, "such a run has no checkpoints; nothing is written before its end"),
    )
    for name, value, accepted, reason in reasons:
        if value != accepted:
            raise SettingError(
                f"{name} must be {accepted!r} with an index as against: got {value!r}; {reason}. Leave {name} "
                f"(--{name.replace('_', '-')}) out."
            )
