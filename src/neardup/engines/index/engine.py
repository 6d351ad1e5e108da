"""Run dedup on top of an index: decide about each document as `add_if_new` does, and write nothing
before the end.
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
from neardup.arrays import Mask, Positions, Rows, Words, arrow_of_strings, grow, mask_of
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
from neardup.index.documents import Origin, batch_of_documents, find, names_of_inputs, with_origin
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
from neardup.runs.reading import Reading, described_values, locations, read_all
from neardup.runs.run import Run
from neardup.runs.scratch import Scratch, prepare
from neardup.stores import embedded
from neardup.stores.base import Changes, StoredSnapshot, Writer
from neardup.verify.measured import Measured

_NO_TEXT = "(The index stores no text.)"
_NO_SOURCES = (
    "The index {index} tracks sources, and the documents of this run enter it without a source: "
    "sources (--sources) is not set."
)
_TEXTS_AT_ONCE = 1024  # texts in a batch
_ROWS_AT_ONCE = 1 << 16  # decisions that are read at once
_DOCUMENTS = "documents"  # the folder of the store of the run
_MEMORY_BYTES = 64 << 20  # memory of that store
_PART_BYTES = 32 << 20  # size of a part that is added to the index


class _Decisions(NamedTuple):
    """The decisions about documents of the run.

    truncated : int64, the numbers of kept documents that looked up a bucket with more documents
    than were compared. num_repeated : documents that the index or the run had before. removed,
    keepers : int64 (num_removed,), the numbers of removed documents, and the rows of the documents
    that removed them. measured : the measures of these pairs. seen : rows of the index.
    """

    truncated: Rows
    num_repeated: int
    removed: Rows
    keepers: Rows
    measured: Measured
    seen: Rows


class _Nodes(NamedTuple):
    """The documents of an index that removed documents of the run.

    rows : int64 (num_nodes,), rising, their rows in the index. examples : int64 (num_nodes,), the
    index of one removed document in `_Decisions.removed`. numbers : uint32 (num_removed,), the
    number of each keeper: nodes are numbered first, then the documents of the run.
    """

    rows: Rows
    examples: Rows
    numbers: Positions


class _Kept(TablePart):
    """The documents of an index that removed documents of the run, as an input of the run. Their
    texts are read on demand.
    """

    def __init__(self, address: str, snapshot: StoredSnapshot, rows: Rows, is_gone: Mask) -> None:
        super().__init__(pa.table({schemas.ROWS.name: rows}), address)
        self.format = "index"
        self._snapshot = snapshot
        self._rows = rows
        self._is_gone = is_gone

    def read(
        self, columns: Columns, reject: Reject, *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Yield the documents with their texts, if the index stores them."""
        for start in range(0, len(self._rows), _TEXTS_AT_ONCE):
            part = slice(start, start + _TEXTS_AT_ONCE)
            rows = self._rows[part]
            shown = [_NO_TEXT] * len(rows)
            present = np.flatnonzero(~self._is_gone[part])
            compressed = self._snapshot.take(rows[present], ["text"])["text"].to_pylist()
            for number, text in zip(present.tolist(), decompress(compressed), strict=True):
                shown[number] = _NO_TEXT if text is None else text
            yield DocumentBatch(arrow_of_strings(shown), np.arange(start, start + len(shown)))


class IndexEngine(Engine):
    """The engine that decides on top of a snapshot of an index.

    The documents of the run are in a store among the scratch files until `commit` adds them to the
    index. A run is also resumed from that store: it contains the documents after the last
    checkpoint, which are then repeated documents, with their answers.
    """

    def __init__(
        self,
        run: Run,
        index: OpenIndex,
        snapshot: StoredSnapshot,
        origin: Origin = Origin(),  # noqa: B008 - immutable
    ) -> None:
        super().__init__(run)
        self.index = index
        self._method = index.rules.method
        self._snapshot = snapshot
        # The caller has locked the index, and holds the lock until `commit`.
        self._updates = isinstance(snapshot, Writer)
        self._tracks_sources = self._updates and index.rules.tracks_sources
        # The origin of documents, as the index stores it: none if it does not.
        self._origin = Origin(
            sources=origin.sources if self._tracks_sources else None,
            dates=origin.dates if self._updates and index.rules.tracks_dates else None,
        )

    def paths(self) -> list[str]:
        """Return the paths that the run reads, and the address of the index."""
        return [*super().paths(), self.index.address]

    def find(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Searched:
        """Read the inputs, and decide about each document as it comes; the index performs the
        sieve.

        Raises
        ------
        InputError
            If the index is to be updated, and inputs could not be read completely.
        """
        inputs = find(self.run)
        refuse_unwritable(inputs.tasks, self.run.inputs)
        tasks = [task.identified() for task in inputs.tasks]
        warnings = inputs.warnings + self._begin(tasks, scratch, folder)
        warnings += self._name_sources(tasks)
        self._reading = Reading(
            tasks,
            self._method,
            scratch,
            self.run.selection,
            self.run.settings,
            stores_sets=False,
        )
        self._open(scratch)
        with stages.stage("read", known_total(tasks)) as progress:
            corpus = read_all(self._reading, progress, self._describe, self._decide)
        with stages.stage("decide", corpus.num_documents) as progress:
            decisions = self._decisions(scratch.column(schemas.INDEX_ROWS), progress)
        if self._updates:
            # Before anything is written: documents that could not be read would be missing in the
            # index.
            refuse_incomplete(corpus.tally.losses, self.run.settings.on_error)
        self._seen = decisions.seen
        return self._searched(tasks, corpus, decisions, warnings)

    def _name_sources(self, tasks: list[Task]) -> list[str]:
        """Name the inputs that are sources; warn if an index that tracks sources gets none."""
        names = names_of_inputs(self.run.inputs.source, tasks, self._origin.sources)
        parts = [task.part.name for task in tasks]
        self._name_of_part = {} if names is None else dict(zip(parts, names, strict=True))
        if self._tracks_sources and self._origin.sources is None:
            return [_NO_SOURCES.format(index=self.index.address)]
        return []

    def _begin(
        self, tasks: list[Task], scratch: Scratch, folder: OutputDirectory | None
    ) -> list[str]:
        """Begin the run, or resume it unless the index has changed; return a warning then."""
        settings = self._method.all_settings(self.run.selection)
        warnings = []
        resuming = prepare(scratch, tasks, settings, self.run.folder.resume)
        note = scratch.directory / "index.json"
        created = self.index.store.settings.meta["created"]
        counts = self._snapshot.count()
        # Any change that matters to decisions adds a row or changes a count.
        state = [self.index.address, created, self._snapshot.num_rows, *counts]
        # Documents that were read before the interruption have their origin already.
        state += [name for name in self._origin if name is not None]
        # The decisions of an interrupted run are valid for one state of the index only.
        if resuming and not _is_noted(note, state):
            warnings.append(
                "The index, or sources (--sources), has changed since the run was interrupted: all "
                "documents were decided again."
            )
            # Deletes the scratch files.
            resuming = prepare(scratch, tasks, settings, resume=False)
        write_json(note, state)
        if folder is not None:
            folder.begin(resume=resuming)
        return warnings

    def _open(self, scratch: Scratch) -> None:
        """Open the store of the run's documents, and mark the documents that were decided
        before.
        """
        self._scratch = scratch
        rules = self.index.rules
        path = scratch.directory / _DOCUMENTS
        if path.exists():
            store = embedded.open(str(path), memory_bytes=_MEMORY_BYTES)
        else:
            # The prefix is stored: a resumed run gives the same documents the same ids.
            settings = store_settings(
                {"prefix": new_prefix()}, rules.method, tracks_sources=rules.tracks_sources
            )
            store = embedded.create(str(path), settings, memory_bytes=_MEMORY_BYTES)
        scratch.close_with(closing(store))
        self._prefix: str = store.settings.meta["prefix"]
        with store.writing() as top:  # no other process writes to it
            self._top = top
            self._overlay = Overlay(self._snapshot, rules, top)
        self._was_read = mask_of(scratch.column(schemas.INDEX_ROWS), self._overlay.num_rows)

    def _describe(self, batches: list[DocumentBatch], tasks: list[Task]) -> Incoming:
        if not self._updates:  # an earlier collection may have the same ids for other documents
            batches = [dataclasses.replace(batch, ids=None) for batch in batches]
        elif any(batch.ids is None for batch in batches):
            raise InputError(
                "A run that updates an index needs the ids of its documents, to recognise them "
                "when it is repeated: got documents without ids. Name their column with id_column "
                "(--id-column), or add them with Index.add_many_if_new (neardup index add-if-new), "
                "which gives each an id."
            )
        pairs = zip(batches, tasks, strict=True)
        return self.index.describe(Batch.join([self._batch_of(*pair) for pair in pairs]))

    def _batch_of(self, batch: DocumentBatch, task: Task) -> Batch:
        """Return documents as they enter the index, with their sources and dates."""
        name = self._name_of_part.get(task.part.name)
        return with_origin(batch_of_documents(batch, []), task, batch, self._origin, name)

    def _decide(self, incoming: Incoming) -> None:
        """Decide about the next documents, and put them into the store of the run."""
        tally = self._reading.tally
        sizes = incoming.described.features.sets.sizes
        # `Reading.store_features`, which counts them elsewhere, is not called.
        tally.without_features += int(np.count_nonzero(~incoming.featured))
        tally.short += int(np.count_nonzero((sizes > 0) & (sizes < SHORT)))
        if not self._updates:
            first = self._snapshot.num_rows + tally.documents
            # A resumed run may have put some of the documents into the store already.
            incoming = incoming.numbered(self._prefix, first, are_new=False)
        for step in collection.steps(self.index.rules, self._overlay, incoming, now()):
            self._refuse_replaced(step.changes.forgotten)
            self._was_read = grow(self._was_read, self._overlay.num_rows)
            self._was_read[step.rows] = True
            self._scratch.append(schemas.INDEX_ROWS, step.rows)

    def _refuse_replaced(self, forgotten: Rows) -> None:
        """Raise InputError if documents of the run are replaced by others of the run."""
        replaced = forgotten[self._was_read[forgotten]]
        if len(replaced):
            (id,) = self._overlay.take(replaced[:1], ["id"])["id"].to_pylist()
            raise InputError(
                f"The id {id!r} belongs to two documents of the run with different texts, and an "
                "index has one document of an id: nothing was written. Name another id_column "
                "(--id-column), or leave one out."
            )

    def _decisions(self, rows: Rows, progress: Progress) -> _Decisions:
        """Return the decisions about all documents.

        rows : int64 (num_documents,), the row of each document in the index.
        """
        parts = []
        was_read = np.zeros(self._overlay.num_rows, np.bool_)
        # One part at least: it has the columns of the result if there are no documents.
        for start in range(0, len(rows) or 1, _ROWS_AT_ONCE):
            part_rows = rows[start : start + _ROWS_AT_ONCE]
            is_again = _mark_read(was_read, part_rows)
            parts.append(self._decisions_of(part_rows, start, is_again))
            progress.advance(len(part_rows), 0)
        return _join(parts)

    def _decisions_of(self, rows: Rows, first: int, is_again: Mask) -> _Decisions:
        """Return the decisions about the documents from number `first` on.

        A document that the index had before the run keeps its earlier answer, so that a repeated
        run has the same output. A document that the run has twice is removed as a copy of itself,
        if it has features. is_again : bool (num_rows,), whether the run had the row before.
        """
        stored = self._overlay.take(rows, self._columns())
        is_kept = stored["state"].to_numpy() == schemas.KEPT
        # A kept document that the run contains again: the repetition is a copy of it.
        is_copy = is_kept & stored["featured"].to_numpy() & is_again
        # The row of a kept document is null.
        kept_rows = stored["kept_row"].fill_null(0).to_numpy().astype(np.int64)
        keepers = np.where(is_kept, rows, kept_rows)
        is_kept &= ~is_copy
        is_repeated = is_again | (rows < self._snapshot.num_rows)
        is_truncated = is_kept & stored["truncated"].to_numpy()
        removed = np.flatnonzero(~is_kept)
        return _Decisions(
            truncated=first + np.flatnonzero(is_truncated),
            num_repeated=int(np.count_nonzero(is_repeated)),
            removed=first + removed,
            keepers=keepers[removed],
            measured=self._measured(stored, removed, is_copy[removed]),
            seen=self._seen_rows(rows, keepers, is_repeated),
        )

    def _seen_rows(self, rows: Rows, keepers: Rows, is_repeated: Mask) -> Rows:
        """Return the rows of the index that it has seen: repeated documents, and the keepers of
        all.
        """
        known = collection.repeated_keepers(self._overlay, rows[is_repeated])
        seen = np.concatenate([np.where(is_repeated, rows, keepers), known])
        return np.unique(seen[(seen >= 0) & (seen < self._snapshot.num_rows)])

    def _columns(self) -> list[str]:
        """Return the columns of a document that contain its decision."""
        names = [measure.name for measure in self._method.measures]
        return ["state", "kept_row", "truncated", "featured", *names]

    def _measured(self, stored: pa.Table, removed: Rows, is_copy: Mask) -> Measured:
        """Return the measures of removed documents. is_copy : bool (num_removed,)."""
        values = {}
        for measure in self._method.measures:
            of_itself = pa.scalar(measure.of_itself, measure.type)
            column = stored[measure.name].fill_null(of_itself).to_numpy()[removed]
            column[is_copy] = measure.of_itself
            values[measure.name] = column
        return Measured(values)

    def _searched(
        self, tasks: list[Task], corpus: Corpus, decisions: _Decisions, warnings: list[str]
    ) -> Searched:
        """Return the searched corpus; the documents of the index that removed others come before
        it.
        """
        rows = self._scratch.column(schemas.INDEX_ROWS)
        nodes = _nodes_of(rows, decisions)
        # The id of a node is stored with the documents that it removed, even if the index has
        # deleted the node since.
        examples = rows[decisions.removed[nodes.examples]]
        node_ids = self._overlay.take(examples, ["kept_id"])["kept_id"].combine_chunks()
        located = locations(tasks, corpus, self._scratch)
        corpus = _add_nodes(corpus, len(nodes.rows))
        # The row of a document that was deleted since may belong to no id, or to another document.
        is_gone = self._snapshot.rows_of_ids(node_ids) != nodes.rows
        part = _Kept(self.index.address, self._snapshot, nodes.rows, is_gone)
        names = [part.name, *(task.part.name for task in tasks)]
        return Searched(
            tasks=[Task(part, Columns("text", "id"), against=True), *tasks],
            method=self._method,
            corpus=corpus,
            locations=LocationsAfter(names, corpus, nodes.rows, node_ids, located),
            warnings=warnings,
            found=self._found(corpus, decisions, nodes),
            described=self._described(tasks, len(nodes.rows)),
            short=corpus.tally.short,
            engine=self._facts(decisions),
        )

    def _described(self, tasks: list[Task], num_nodes: int) -> dict[str, Words]:
        """Return the hashes of the values that describe documents; nodes have no value."""
        of_nodes = np.zeros(num_nodes, np.uint64)
        values = described_values(tasks, self._scratch)
        return {name: np.append(of_nodes, hashes) for name, hashes in values.items()}

    def _facts(self, decisions: _Decisions) -> EngineFacts:
        """Return the facts for the report that only this engine knows."""
        return EngineFacts(
            against=self._snapshot.count().kept,
            repeated=decisions.num_repeated,
            updated=self._updates,
        )

    def _found(self, corpus: Corpus, decisions: _Decisions, nodes: _Nodes) -> Found:
        """Return the decisions as found pairs. Nodes have no length and no value."""
        num_nodes = len(nodes.rows)
        lengths = self._scratch.column(schemas.LENGTHS)
        values = self._scratch.column(schemas.VALUES)
        return Found(
            queue=_queue_of(corpus),
            confirmed=_confirmed(corpus, decisions, nodes.numbers),
            method=self._method,
            lengths=np.append(np.zeros(num_nodes, np.int64), lengths),
            values=np.append(np.zeros(num_nodes, np.uint64), values),
            unlisted=lambda: [],
            measure=refuse_to_measure,
            sieved=True,
        )

    def commit(self, report: JsonObject, folder: OutputDirectory | None) -> None:
        """Add the documents of the run to the index, if it was opened to be updated, and write the
        report again.
        """
        if not isinstance(self._snapshot, Writer):
            return
        try:
            self._snapshot.write_all(self._changes())
        except NeardupError as error:
            complete = ""
            option = ""
            if folder is not None:
                complete = f"The output {folder.path} is complete, but the index was not updated. "
                option = " with overwrite=True (--overwrite)"
            raise type(error)(
                f"{complete}{error} After that, repeat the run{option}: it decides as before."
            ) from error
        if folder is not None:
            folder.replace(writing.REPORT, writing.report_bytes(report))

    def _changes(self) -> Iterator[Changes]:
        """Yield the changes of the run to the index, a part at a time."""
        rules = self.index.rules
        first = self._snapshot.num_rows
        # First, because a new document may have the id of one that it replaces.
        yield Changes(forgotten=self._overlay.replaced)
        names = rules.schema.names
        for tables in group_small(self._top.scan(names), lambda table: table.nbytes, _PART_BYTES):
            yield maintenance.changes_of(rules, pa.concat_tables(tables), first)
        yield Changes(seen=self._seen, seen_at=now())


def _join(parts: list[_Decisions]) -> _Decisions:
    """Return the decisions about consecutive documents as one, `seen` rising."""
    return _Decisions(
        truncated=np.concatenate([part.truncated for part in parts]),
        num_repeated=sum(part.num_repeated for part in parts),
        removed=np.concatenate([part.removed for part in parts]),
        keepers=np.concatenate([part.keepers for part in parts]),
        measured=Measured.join([part.measured for part in parts]),
        seen=np.unique(np.concatenate([part.seen for part in parts])),
    )


def _mark_read(was_read: Mask, rows: Rows) -> Mask:
    """Mark rows as read; return for each whether it was marked before, or is repeated here."""
    distinct, first = np.unique(rows, return_index=True)
    is_again = np.ones(len(rows), np.bool_)
    is_again[first] = was_read[distinct]
    was_read[distinct] = True
    return is_again


def _queue_of(corpus: Corpus) -> Queue:
    """Return the documents in the order of arrival; copies are treated as all other documents."""
    order = np.arange(corpus.num_documents, dtype=np.uint32)
    return Queue(
        order=order,
        # The index has treated copies already.
        representative=order,
        featured=np.ones(len(order), np.bool_),
        num_against=corpus.num_against,
    )


def _add_nodes(corpus: Corpus, num_nodes: int) -> Corpus:
    """Return the corpus after a part with the nodes."""
    corpus.tally.documents += num_nodes
    return dataclasses.replace(
        corpus,
        part_ends=np.append(num_nodes, num_nodes + corpus.part_ends),
        part_rejected=np.append(0, corpus.part_rejected),
        num_against=num_nodes,
    )


def _confirmed(corpus: Corpus, decisions: _Decisions, keepers: Positions) -> Confirmed:
    """Return the pairs that removed documents. keepers : uint32, the number of each keeper."""
    removed = (corpus.num_against + decisions.removed).astype(np.uint32)
    kept = np.ones(corpus.num_documents, np.bool_)
    kept[removed] = False
    left_out = mask_of(corpus.num_against + decisions.truncated, corpus.num_documents)
    return Confirmed(
        kept=kept,
        left=keepers,
        right=removed,
        measured=decisions.measured,
        best=np.ones(len(removed), np.bool_),
        left_out=left_out,
        compared=None,
        collisions=None,
    )


def _is_noted(note: Path, state: list[Any]) -> bool:
    """Return whether an interrupted run noted this state of the index; False if its note is
    damaged.
    """
    try:
        return note.exists() and bool(read_json(note) == state)
    except ValueError:
        return False


def _nodes_of(rows: Rows, decisions: _Decisions) -> _Nodes:
    """Return the documents of the index that removed documents.

    A keeper is a document of the run if it comes before the document that it removes.

    rows : int64, the row of each document of the run.
    """
    keepers = decisions.keepers
    by_row = np.argsort(rows, kind="stable")  # the first of repeated documents comes first
    position = np.searchsorted(rows, keepers, sorter=by_row)
    # An absent keeper gets any document here; the next line compares the rows.
    documents = by_row[np.minimum(position, max(0, len(by_row) - 1))]
    # A keeper that the run reads only later was in the index before.
    is_node = (rows[documents] != keepers) | (documents >= decisions.removed)
    nodes, first = np.unique(keepers[is_node], return_index=True)
    numbers = np.where(is_node, np.searchsorted(nodes, keepers), len(nodes) + documents)
    return _Nodes(
        rows=nodes,
        examples=np.flatnonzero(is_node)[first],
        numbers=numbers.astype(np.uint32),
    )
