"""A run of dedup on top of an index: each document is decided as `add_if_new` decides, and nothing
is written before the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import schemas
from neardup.arrays import Mask, Positions, Rows, arrow_of_strings, grow
from neardup.decide.outcome import SHORT
from neardup.decide.rule import Confirmed, Found, Queue, refuse_to_measure
from neardup.documents.batch import Columns, Corpus, DocumentBatch, Reject
from neardup.engines.base import Engine, Searched
from neardup.errors import InputError, NeardupError
from neardup.executor import group_small
from neardup.files import JsonObject, read_json, write_json
from neardup.formats.reading import Task, known_total
from neardup.formats.tables import TablePart
from neardup.index import collection, maintenance
from neardup.index.documents import batch_of_documents, find
from neardup.index.incoming import Incoming, decompress, new_prefix, store_settings
from neardup.index.open_index import Batch, OpenIndex, now
from neardup.index.overlay import Overlay
from neardup.output import write as writing
from neardup.output.kept import refuse_unwritable
from neardup.progress import Progress, Stages
from neardup.report.contents import refuse_incomplete
from neardup.report.record import EngineFacts
from neardup.runs.directory import OutputDirectory
from neardup.runs.locations import LocationsAfter
from neardup.runs.reading import Reading, locations, read_all
from neardup.runs.run import Run
from neardup.runs.scratch import Scratch, prepare
from neardup.stores import embedded
from neardup.stores.base import Changes, StoredSnapshot, Writer
from neardup.verify.measured import Measured, measured_of_copies

_NO_TEXT = "(The index stores no text.)"
_TEXTS_AT_ONCE = 1024
_ROWS_AT_ONCE = 1 << 16  # of decisions
_DOCUMENTS = "documents"  # the folder of those of the run
_MEMORY_BYTES, _PART_BYTES = (
    64 << 20,
    32 << 20,
)  # of these in memory; of a part that is added to the index


class _Decisions(NamedTuple):
    """The decisions about the documents of the run.

    truncated : int64, the numbers of kept documents of which a bucket had more documents than were
    compared. num_repeated : documents that the index had, or that the run had before. removed,
    keeper : int64 (num_removed,), the numbers of removed documents, and the rows of those that
    removed them. measured : of these pairs. seen : rows of the index.
    """

    truncated: Rows
    num_repeated: int
    removed: Rows
    keeper: Rows
    measured: Measured
    seen: Rows


class _Kept(TablePart):
    """The documents of an index that removed one of the run, as an input of it. Their texts are
    read on demand.
    """

    def __init__(self, address: str, snapshot: StoredSnapshot, rows: Rows, is_gone: Mask) -> None:
        super().__init__(pa.table({schemas.ROWS.name: rows}), address)
        self.format, self._snapshot, self._rows, self._is_gone = "index", snapshot, rows, is_gone

    def read(
        self, columns: Columns, reject: Reject, *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Yield the documents with their texts, if the index stores them."""
        for start in range(0, len(self._rows), _TEXTS_AT_ONCE):
            part = slice(start, start + _TEXTS_AT_ONCE)
            shown = [_NO_TEXT] * len(self._rows[part])
            alive = np.flatnonzero(~self._is_gone[part])
            texts = decompress(
                self._snapshot.take(self._rows[part][alive], ["text"])["text"].to_pylist()
            )
            for place, text in zip(alive.tolist(), texts, strict=True):
                shown[place] = _NO_TEXT if text is None else text
            yield DocumentBatch(arrow_of_strings(shown), np.arange(start, start + len(shown)))


class IndexEngine(Engine):
    """The decisions of a run on top of a snapshot of an index.

    Its documents are in a store among the scratch files until `commit` adds them. That store is
    also what a run is resumed from: the documents after the last checkpoint are found there as
    repeated, with their answers.
    """

    def __init__(self, run: Run, index: OpenIndex, snapshot: StoredSnapshot) -> None:
        super().__init__(run)
        self.index, self._snapshot, self._updates = index, snapshot, isinstance(snapshot, Writer)

    def paths(self) -> list[str]:
        """Return the paths that the run reads, with that of the index."""
        return [*super().paths(), self.index.address]

    def find(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Searched:
        """Read the inputs, and decide about each document as it comes; the index performs the
        sieve.

        Raises
        ------
        InputError
            If the index is to be updated, and inputs could not be read completely.
        """
        snapshot, method = self._snapshot, self.index.rules.method
        found, _, warnings = find(self.run)
        refuse_unwritable(found, self.run.inputs)
        tasks = [task.identified() for task in found]
        selection = self.run.selection
        resuming = prepare(scratch, tasks, method.all_settings(selection), self.run.resume)
        created, note = self.index.store.settings.meta["created"], scratch.directory / "index.json"
        state = [self.index.address, created, snapshot.num_rows, *snapshot.count()]
        if resuming and not _is_noted(note, state):
            warnings.append(
                "The index has changed since the run was interrupted: all documents were "
                "decided again."
            )
            resuming = prepare(scratch, tasks, method.all_settings(selection), resume=False)
        write_json(note, state)
        if folder is not None:
            folder.begin(resume=resuming)
        self._reading = Reading(
            tasks, method, scratch, selection, self.run.settings, stores_sets=False
        )
        self._open(scratch)
        with stages.stage("read", known_total(tasks)) as progress:
            corpus = read_all(self._reading, progress, self._describe, self._decide)
        with stages.stage("decide", corpus.num_documents) as progress:
            decisions = self._decisions(scratch.column(schemas.INDEX_ROWS), progress)
        if self._updates:
            refuse_incomplete(corpus.tally.losses, self.run.settings.on_error)
        self._seen = decisions.seen
        return self._searched(tasks, corpus, decisions, warnings)

    def _open(self, scratch: Scratch) -> None:
        """Open the store of the run's documents, and take account of those that were decided
        before.
        """
        self._scratch, rules, path = scratch, self.index.rules, scratch.directory / _DOCUMENTS
        if path.exists():
            store = embedded.open(str(path), memory_bytes=_MEMORY_BYTES)
        else:
            settings = store_settings({"prefix": new_prefix()}, rules.method)
            store = embedded.create(str(path), settings, memory_bytes=_MEMORY_BYTES)
        scratch.close_with(closing(store))
        self._prefix: str = store.settings.meta["prefix"]
        with store.writing() as top:  # nobody else writes to it
            self._top, self._overlay = top, Overlay(self._snapshot, rules, top)
        self._was_read = np.zeros(self._overlay.num_rows, np.bool_)
        self._was_read[scratch.column(schemas.INDEX_ROWS)] = True

    def _describe(self, batches: list[DocumentBatch]) -> Incoming:
        if (
            not self._updates
        ):  # the index is an earlier collection: its ids are those of other documents
            batches = [dataclasses.replace(batch, ids=None) for batch in batches]
        elif any(batch.ids is None for batch in batches):
            raise InputError(
                "A run that updates an index needs the ids of its documents, to recognise "
                "them when it is repeated: "
                "got documents without ids. Name their column with id_column (--id-column), "
                "or add them with "
                "Index.add_many_if_new (neardup index add-if-new), which gives each an id."
            )
        return self.index.describe(Batch.join([batch_of_documents(batch, []) for batch in batches]))

    def _decide(self, incoming: Incoming) -> None:
        """Decide about the next documents, and put them into the store of the run."""
        tally, first = self._reading.tally, self._snapshot.num_rows
        sizes = incoming.described.features.sets.sizes
        tally.without_features += int(np.count_nonzero(~incoming.featured))
        tally.short += int(np.count_nonzero((sizes > 0) & (sizes < SHORT)))
        if not self._updates:
            incoming = incoming.numbered(self._prefix, first + tally.documents)
        for step in collection.steps(self.index.rules, self._overlay, incoming, now()):
            self._refuse_replaced(step.changes.forgotten)
            self._was_read = grow(self._was_read, self._overlay.num_rows)
            self._was_read[step.rows] = True
            self._scratch.append(schemas.INDEX_ROWS, step.rows)

    def _refuse_replaced(self, forgotten: Rows) -> None:
        """Raise InputError if documents of the run are replaced by others of the run."""
        own = forgotten[self._was_read[forgotten]]
        if len(own):
            (id,) = self._overlay.take(own[:1], ["id"])["id"].to_pylist()
            raise InputError(
                f"The id {id!r} belongs to two documents of the run with different texts, and "
                "an index has one "
                "document of an id: nothing was written. Name another id_column "
                "(--id-column), or leave one out."
            )

    def _decisions(self, rows: Rows, progress: Progress) -> _Decisions:
        """Return the decisions about all documents; rows : of each, in the index.

        A document that the index had before the run has its answer of then, so that a run that is
        repeated has the same output. One that the run has twice is removed as a copy of itself, if
        it has features.
        """
        first, measures = self._snapshot.num_rows, self.index.rules.method.measures
        was_read = np.zeros(self._overlay.num_rows, np.bool_)
        num_repeated = 0
        truncated, removed, keepers, seen = ([np.empty(0, np.int64)] for _ in range(4))
        measured = [measured_of_copies(0, measures)]
        columns = [
            "state",
            "kept_row",
            "truncated",
            "featured",
            *(measure.name for measure in measures),
        ]
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            row = rows[start : start + _ROWS_AT_ONCE]
            stored = self._overlay.take(row, columns)
            distinct, place = np.unique(row, return_index=True)
            again = np.ones(len(row), np.bool_)
            again[place] = was_read[distinct]
            was_read[distinct] = True
            is_kept = stored["state"].to_numpy() == schemas.KEPT
            itself = is_kept & stored["featured"].to_numpy() & again
            keeper = np.where(
                is_kept, row, stored["kept_row"].fill_null(0).to_numpy().astype(np.int64)
            )
            is_kept &= ~itself
            truncated.append(start + np.flatnonzero(stored["truncated"].to_numpy() & is_kept))
            gone, repeated = np.flatnonzero(~is_kept), again | (row < first)
            num_repeated += int(np.count_nonzero(repeated))
            seen.append(np.unique(np.where(repeated, row, keeper)))
            seen[-1] = seen[-1][seen[-1] < first]
            removed.append(start + gone)
            keepers.append(keeper[gone])
            values = {}
            for measure in measures:
                column = (
                    stored[measure.name]
                    .fill_null(pa.scalar(measure.of_itself, measure.type))
                    .to_numpy()[gone]
                )
                values[measure.name] = np.where(itself[gone], measure.of_itself, column).astype(
                    column.dtype
                )
            measured.append(Measured(values))
            progress.advance(len(row), 0)
        return _Decisions(
            np.concatenate(truncated),
            num_repeated,
            np.concatenate(removed),
            np.concatenate(keepers),
            Measured(
                {m.name: np.concatenate([part[m.name] for part in measured]) for m in measures}
            ),
            np.unique(np.concatenate(seen)),
        )

    def _searched(
        self, tasks: list[Task], corpus: Corpus, decisions: _Decisions, warnings: list[str]
    ) -> Searched:
        """Return the searched corpus; the documents of the index that removed others come before
        it.
        """
        scratch, removed, method = self._scratch, decisions.removed, self.index.rules.method
        nodes, places, numbers = _place(
            scratch.column(schemas.INDEX_ROWS), removed, decisions.keeper
        )
        remembered = self._overlay.take(
            scratch.column(schemas.INDEX_ROWS)[removed[places]], ["kept_id"]
        )
        node_ids = remembered["kept_id"].combine_chunks()
        located = locations(tasks, corpus, scratch)
        corpus.tally.documents += len(nodes)
        ends, rejected = (
            np.append(len(nodes), len(nodes) + corpus.part_ends),
            np.append(0, corpus.part_rejected),
        )
        corpus = dataclasses.replace(
            corpus, part_ends=ends, part_rejected=rejected, num_against=len(nodes)
        )
        found = Found(
            queue=_queue_of(corpus),
            confirmed=_confirmed(corpus, decisions, numbers),
            method=method,
            lengths=np.append(np.zeros(len(nodes), np.int64), scratch.column(schemas.LENGTHS)),
            values=np.append(np.zeros(len(nodes), np.uint64), scratch.column(schemas.VALUES)),
            unlisted=lambda: [],
            measure=refuse_to_measure,
            sieved=True,
        )
        is_gone = self._snapshot.rows_of_ids(node_ids) != nodes
        part = _Kept(self.index.address, self._snapshot, nodes, is_gone)
        names = [part.name, *(task.part.name for task in tasks)]
        return Searched(
            tasks=[Task(part, Columns("text", "id"), True), *tasks],
            method=method,
            corpus=corpus,
            locations=LocationsAfter(names, corpus, nodes, node_ids, located),
            warnings=warnings,
            found=found,
            short=corpus.tally.short,
            engine=EngineFacts(
                against=self._snapshot.count().kept,
                repeated=decisions.num_repeated,
                updated=self._updates,
            ),
        )

    def commit(self, report: JsonObject, folder: OutputDirectory | None) -> None:
        """Add the documents of the run to the index, if it was opened to be updated, and write the
        report of that.
        """
        if not isinstance(self._snapshot, Writer):
            return
        try:
            self._snapshot.write_all(self._changes())
        except NeardupError as error:
            where = (
                ""
                if folder is None
                else f"The output {folder.path} is complete, but the index was not updated. "
            )
            raise type(error)(
                f"{where}{error} After that, repeat the "
                f"run{' with overwrite=True (--overwrite)' if where else ''}: it "
                "decides as before."
            ) from error
        if folder is not None:
            folder.replace(writing.REPORT, writing.report_bytes(report))

    def _changes(self) -> Iterator[Changes]:
        """Yield what the run changes in the index, a part at a time."""
        rules, first = self.index.rules, self._snapshot.num_rows
        yield Changes(forgotten=self._overlay.replaced)
        names = schemas.indexed_schema(rules.method.measures).names
        for tables in group_small(self._top.scan(names), lambda table: table.nbytes, _PART_BYTES):
            yield maintenance.changes_of(rules, pa.concat_tables(tables), first)
        yield Changes(seen=self._seen, seen_at=now())


def _queue_of(corpus: Corpus) -> Queue:
    """Return the documents in the order in which they came; copies are pairs of documents as all
    others.
    """
    order = np.arange(corpus.num_documents, dtype=np.uint32)
    return Queue(order, order, np.ones(len(order), np.bool_), corpus.num_against)


def _confirmed(corpus: Corpus, decisions: _Decisions, keepers: Positions) -> Confirmed:
    """Return the pairs that removed documents. keepers : uint32, the number of each."""
    removed = (corpus.num_against + decisions.removed).astype(np.uint32)
    kept = np.ones(corpus.num_documents, np.bool_)
    kept[removed] = False
    left_out = np.zeros(corpus.num_documents, np.bool_)
    left_out[corpus.num_against + decisions.truncated] = True
    return Confirmed(
        kept,
        keepers,
        removed,
        decisions.measured,
        np.ones(len(removed), np.bool_),
        left_out,
        None,
        None,
    )


def _is_noted(note: Path, state: list[Any]) -> bool:
    """Return whether an interrupted run noted this state of the index; a damaged note has none."""
    try:
        return note.exists() and bool(read_json(note) == state)
    except ValueError:
        return False


def _place(rows: Rows, removed: Rows, keeper: Rows) -> tuple[Rows, Rows, Positions]:
    """Return the rows of the index that removed documents, a place of each among those removed, and
    the number of each keeper.

    Documents of the run are numbered after those of the index. A keeper is a document of the run if
    it comes before the one that it removes.

    rows : of the documents of the run. removed, keeper : as in `_Decisions`.
    """
    by_row = np.argsort(rows, kind="stable")  # of a document that is repeated, the first
    own = by_row[np.minimum(np.searchsorted(rows, keeper, sorter=by_row), max(0, len(by_row) - 1))]
    is_stored = (rows[own] != keeper) | (own >= removed)
    nodes, places = np.unique(keeper[is_stored], return_index=True)
    numbers = np.where(is_stored, np.searchsorted(nodes, keeper), len(nodes) + own)
    return nodes, np.flatnonzero(is_stored)[places], numbers.astype(np.uint32)
