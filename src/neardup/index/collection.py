"""The documents of an index: add, add if new, look up, forget.

Everything is decided here, and is the same for every store; a store finds rows and writes them.

A batch is decided at once, as if its documents came one by one. Where a document depends on an
earlier one of the batch, such as by its id, the batch is cut before it, and the rest is decided in
the next step, on top of the changes of this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schemas
from neardup.arrays import (
    Array,
    Mask,
    Rows,
    arrow_of,
    arrow_of_strings,
    begins_run,
    filled,
    find_in,
    numpy_type,
    rank_in_run,
)
from neardup.candidates.lookups import CandidateRows, Entries, take_entries
from neardup.errors import InputError
from neardup.index.decisions import (
    BatchDecisions,
    Rules,
    StoredPairs,
    are_kept,
    decide_batch,
    keep_all,
    measure_stored,
    stored_representatives,
)
from neardup.index.incoming import Incoming, new_prefix, stored_columns
from neardup.index.overlay import Overlay
from neardup.index.records import columns_of
from neardup.index.sources import SOURCE, Sources, entries_of, sources_of
from neardup.schemas import KEPT, REMOVED, TIME
from neardup.stores.base import MAX_ROWS, Changes, Snapshot, Writer, join_entries
from neardup.stores.documents import array_of, contents_of
from neardup.verify.measured import Measured

_TIMESTAMPS = ("first_seen", "last_seen", "payload")
_STRING = pa.large_string()


class Step(NamedTuple):
    """The answers and changes for the first documents of a batch.

    answers : `schemas.answers_schema`, a row for each document. rows : int64, the row of each
    document, which the index has or will have. changes : the changes of the store.
    """

    answers: pa.Table
    rows: Rows
    changes: Changes


def add(
    rules: Rules,
    writer: Writer,
    incoming: Incoming,
    now: int,
    *,
    if_new: bool = True,
    import_name: str | None = None,
) -> pa.Table:
    """Add documents, or the new ones among them, in one change, and return the answers.

    Parameters
    ----------
    incoming : documents with ids; the index may have these ids already.
    now : microseconds since 1970.
    if_new : whether a document that is a duplicate of a kept one is removed: stored with its
        answer, never found again.
    import_name : the name of the import that brings them.
    """
    if not len(incoming):
        return rules.answers.empty_table()
    step = next_step(rules, writer, incoming, now, if_new=if_new, import_name=import_name)
    # Nearly always, the batch is not cut: no overlay is needed.
    if len(step.rows) == len(incoming):
        writer.write(step.changes)
        return step.answers
    # The batch was cut: the rest is decided with the first documents on top of the index, and all
    # of it is written in one change.
    overlay = Overlay(writer, rules)
    overlay.write(step.changes)
    rest = incoming.take(np.arange(len(step.rows), len(incoming)))
    later = steps(rules, overlay, rest, now, if_new=if_new, import_name=import_name)
    decided = [step, *later]
    writer.write_all([step.changes for step in decided])
    return pa.concat_tables([step.answers for step in decided])


def steps(
    rules: Rules,
    overlay: Overlay,
    incoming: Incoming,
    now: int,
    *,
    if_new: bool = True,
    import_name: str | None = None,
) -> Iterator[Step]:
    """Decide about documents as if they came one by one, and yield each step once it is written."""
    start = 0
    size = len(incoming)
    while start < len(incoming):
        part = incoming.take(np.arange(start, min(start + size, len(incoming))))
        step = next_step(rules, overlay, part, now, if_new=if_new, import_name=import_name)
        overlay.write(step.changes)
        yield step
        start += len(step.rows)
        # The documents after a cut are decided again: a batch with many cuts takes small parts.
        size = 2 * len(step.rows)


def next_step(
    rules: Rules,
    snapshot: Snapshot,
    incoming: Incoming,
    now: int,
    *,
    if_new: bool,
    import_name: str | None,
) -> Step:
    """Decide about as many of the documents as can be decided at once, at least one."""
    decided = _decide_first(rules, snapshot, incoming, if_new=if_new)
    arriving, view, _, decisions = decided
    written = _written(rules, incoming, decided)
    _refuse_too_many(snapshot.num_rows + len(written.documents))
    moment = arrow_of(filled(len(written.documents), now, np.int64)).view(TIME)
    keepers = _keepers(view, written.documents, written.decisions, moment)
    columns = _columns(
        rules, view.num_rows, written, keepers, moment=moment, import_name=import_name
    )
    answers = _answers(rules, columns, decisions.kept, keepers)
    answers = _with_repeated(answers, rules, view, arriving, written.sources)
    repeated = arriving.repeated_rows()
    seen = _seen_rows(view, decisions, repeated)
    changes = Changes(
        documents=_table(columns, rules.schema),
        entries=written.entries,
        seen=seen,
        seen_at=_seen_at(view, answers, repeated, now) if len(seen) else now,
        forgotten=arriving.replaced_rows(),
    )
    return Step(answers=answers, rows=arriving.rows(snapshot.num_rows), changes=changes)


def _refuse_too_many(num_rows: int) -> None:
    if num_rows > MAX_ROWS:
        raise InputError(
            f"An index has at most {MAX_ROWS:,} documents over its lifetime: it is full. Rebuild "
            "it."
        )


def _seen_rows(snapshot: Snapshot, decisions: BatchDecisions, repeated: Rows) -> Rows:
    """Return the rows of repeated documents and of the kept documents of all, each once.

    A kept document is seen whenever a duplicate is sent: otherwise it would expire while its
    duplicates, which stay removed, still come.
    """
    keepers = repeated_keepers(snapshot, repeated)
    known = keepers[keepers >= 0]
    rows = np.concatenate([decisions.remover[~decisions.kept], repeated, known])
    return np.unique(rows) if len(rows) > 1 else rows


class _Arrivals(NamedTuple):
    """The ids of documents in the index.

    existing : int64 (num_documents,), the row of the id of each document, or -1. is_repeated :
    bool, whether this row has the content of the document.
    """

    existing: Rows
    is_repeated: Mask

    @classmethod
    def of_new(cls, size: int) -> _Arrivals:
        """Return the arrivals of documents that the index does not have."""
        return cls(existing=filled(size, -1, np.int64), is_repeated=np.zeros(size, np.bool_))

    @property
    def is_replacing(self) -> Mask:
        """The documents that replace the row of their id, which has other content: bool."""
        return (self.existing >= 0) & ~self.is_repeated

    def repeated_rows(self) -> Rows:
        """Return the rows of the documents that the index has."""
        return self.existing[self.is_repeated]

    def new_positions(self) -> Rows:
        """Return the positions of the documents that become rows."""
        return np.flatnonzero(~self.is_repeated)

    def replaced_rows(self) -> Rows:
        """Return the rows that documents replace."""
        return self.existing[self.is_replacing]

    def first(self, size: int) -> _Arrivals:
        """Return the first `size` documents."""
        return _Arrivals(self.existing[:size], self.is_repeated[:size])

    def rows(self, num_rows: int) -> Rows:
        """Return the row of each document; new ones have the rows from `num_rows` on."""
        rows = self.existing.copy()
        is_new = ~self.is_repeated
        rows[is_new] = num_rows + np.arange(np.count_nonzero(is_new))
        return rows


class _Decided(NamedTuple):
    """Decisions about the first documents of a batch, in a view without the rows they replace.

    new : the documents that become rows. decisions : about `new`.
    """

    arriving: _Arrivals
    view: Snapshot
    new: Incoming
    decisions: BatchDecisions


def _decide_first(
    rules: Rules, snapshot: Snapshot, incoming: Incoming, *, if_new: bool
) -> _Decided:
    arriving = _first_arrivals(rules, snapshot, incoming, if_new=if_new)
    replaced = arriving.replaced_rows()
    # A document is not compared with the row that it replaces.
    view = snapshot.without(replaced) if len(replaced) else snapshot
    positions = arriving.new_positions()
    new = incoming.take(positions)
    is_sieved = if_new and len(new) > 0
    # Without `if_new`, buckets list the documents all the same: later ones are compared with them.
    decisions = decide_batch(rules, view, new) if is_sieved else keep_all(rules, new)
    num_decided = len(decisions.kept)
    if num_decided < len(new):
        arriving = arriving.first(int(positions[num_decided]))
        new = new.take(np.arange(num_decided))
    return _Decided(arriving=arriving, view=view, new=new, decisions=decisions)


def _first_arrivals(
    rules: Rules, snapshot: Snapshot, incoming: Incoming, *, if_new: bool
) -> _Arrivals:
    """Return the documents up to one whose id depends on an earlier one of the batch."""
    if incoming.has_new_ids:
        return _Arrivals.of_new(len(incoming))
    existing = snapshot.rows_of_ids(incoming.ids)
    arrivals = _Arrivals(existing, _are_same(snapshot, incoming, existing))
    stop = _first_repeated_id(incoming.ids)
    arriving = arrivals.first(stop)
    # Before the first document there is none to be compared with the row that it replaces.
    if arriving.is_replacing[1:].any():
        distinct = incoming.take(np.arange(stop))
        stop = _first_conflict(rules, snapshot, distinct, arriving, if_new=if_new)
    return arriving.first(stop)


def _seen_at(snapshot: Snapshot, answers: pa.Table, repeated: Rows, now: int) -> int:
    """Return the time at which documents are seen: not before they were added."""
    added = [answers["first_seen"]]
    if len(repeated):
        added.append(snapshot.take(repeated, ["first_seen"])["first_seen"])
    latest = [pc.max(times).value or 0 for times in added]
    # The clock of the system may have been set back.
    return max(now, *latest)


def _first_conflict(
    rules: Rules,
    snapshot: Snapshot,
    incoming: Incoming,
    arriving: _Arrivals,
    *,
    if_new: bool,
) -> int:
    """Return the first document that replaces a row to which an earlier document may be compared.

    Returns the number of documents if there is none. All other replaced rows may be forgotten
    before the first document is decided: no decision depends on them.
    """
    # The answer about a repeated document is about the row that removed it.
    repeated = np.flatnonzero(arriving.is_repeated)
    # Row 0 for a kept document, which no other one removed: at worst the batch is cut without need.
    kept_rows = snapshot.take(arriving.existing[repeated], ["kept_row"])["kept_row"]
    documents = [repeated]
    rows = [kept_rows.fill_null(0).to_numpy().astype(np.int64)]
    replacing = np.flatnonzero(arriving.is_replacing)
    if if_new:
        found_documents, found_rows = _compared(rules, snapshot, incoming, len(replacing))
        documents.append(found_documents)
        rows.append(found_rows)
    # A conflict: a comparison with a row, before the document that replaces this row.
    document = np.concatenate(documents)
    replacing = replacing[np.argsort(arriving.existing[replacing])]
    index, is_replaced = find_in(arriving.existing[replacing], np.concatenate(rows))
    replacer = replacing[index[is_replaced]]
    conflicts = replacer[document[is_replaced] < replacer]
    return int(conflicts.min(initial=len(incoming)))


def _compared(
    rules: Rules, snapshot: Snapshot, incoming: Incoming, num_replaced: int
) -> tuple[Rows, Rows]:
    """Return documents and the stored rows with which they may be compared, if any are replaced."""
    probes = take_entries(rules.lookup.probes(incoming.described.keys), incoming.featured)
    # A bucket lists further rows once replaced rows are forgotten; one row more shows that it is
    # full.
    found = snapshot.find(probes, rules.limit + num_replaced + 1)
    documents = np.concatenate([probes.document[found.entry], np.arange(len(incoming))])
    rows = np.concatenate(
        [found.row, stored_representatives(snapshot, incoming, incoming.featured)]
    )
    return documents, rows


def _first_repeated_id(ids: pa.Array) -> int:
    """Return the first position whose id occurred before, or the number of ids."""
    # The usual call of `add_if_new`.
    if len(ids) == 1:
        return 1
    codes = pc.dictionary_encode(ids).indices.to_numpy()
    # A new id has a greater code than all ids before it.
    repeated = np.flatnonzero(codes[1:] <= np.maximum.accumulate(codes)[:-1])
    return int(repeated[0]) + 1 if len(repeated) else len(codes)


def _are_same(snapshot: Snapshot, incoming: Incoming, existing: Rows) -> Mask:
    """Return which documents are stored already, with the same content.

    All documents without features have one content.
    """
    same = existing >= 0
    if same.any():
        stored = snapshot.take(existing[same], ["content", "featured"])
        featured = stored["featured"].to_numpy()
        equal = (contents_of(stored["content"]) == incoming.content[same]).all(axis=1)
        # Without features, contents are equal whatever the text.
        same[same] = (featured == incoming.featured[same]) & (equal | ~featured)
    return same


class _Keepers(NamedTuple):
    """The document that each new document is similar to, or the new document itself.

    ids : large_string (num_documents,), null for kept documents. timestamps : the columns
    `_TIMESTAMPS`.
    """

    ids: pa.Array
    timestamps: list[pa.Array]


def _keepers(
    snapshot: Snapshot, new: Incoming, decisions: BatchDecisions, moment: pa.Array
) -> _Keepers:
    """Return the keepers of new documents. moment : the time of each document."""
    kept = decisions.kept
    # The columns "id" and _TIMESTAMPS of the new documents.
    added = [new.ids, moment, moment, new.payloads]
    if kept.all():
        return _Keepers(pa.nulls(len(kept), _STRING), added[1:])
    num_stored = snapshot.num_rows
    rows = np.where(kept, num_stored + np.arange(len(kept)), decisions.remover)
    ids, *timestamps = _take(snapshot, rows, ["id", *_TIMESTAMPS], added)
    if kept.any():
        ids = pc.if_else(arrow_of(~kept), ids, pa.scalar(None, _STRING))
    return _Keepers(ids, timestamps)


def _take(
    snapshot: Snapshot, rows: Rows, names: Sequence[str], added: Sequence[pa.Array]
) -> list[pa.Array]:
    """Return columns of rows. added : the same columns of the documents after the stored rows."""
    is_stored = rows < snapshot.num_rows
    stored_rows = rows[is_stored]
    if not len(stored_rows):
        positions = arrow_of(rows - snapshot.num_rows)
        return [column.take(positions) for column in added]
    table = snapshot.take(stored_rows, names)
    stored = [array_of(table.column(name)) for name in names]
    if len(stored_rows) == len(rows):
        return stored
    # Positions in the stored columns, followed by the added ones.
    index = rows - snapshot.num_rows + len(stored_rows)
    index[is_stored] = np.arange(len(stored_rows))
    positions = arrow_of(index)
    return [
        pa.concat_arrays([column, more]).take(positions)
        for column, more in zip(stored, added, strict=True)
    ]


def _columns(
    rules: Rules,
    first_row: int,
    written: _Written,
    keepers: _Keepers,
    *,
    moment: pa.Array,
    import_name: str | None,
) -> dict[str, pa.Array]:
    """Return the columns of the rows to write, numbered from `first_row`."""
    new = written.documents
    decisions = written.decisions
    kept = decisions.kept
    size = len(new)
    imports = pa.nulls(size, _STRING)
    if import_name is not None:
        imports = arrow_of_strings([import_name] * size)
    columns = {
        "row": arrow_of(np.arange(first_row, first_row + size, dtype=np.uint32)),
        "id": new.ids,
        "state": arrow_of(np.where(kept, np.uint8(KEPT), np.uint8(REMOVED))),
        "member": arrow_of(decisions.member),
        "truncated": arrow_of(decisions.truncated),
        **stored_columns(new, rules.method, rules.storage, kept),
        "first_seen": moment,
        "last_seen": moment,
        "payload": new.payloads,
        "import_name": imports,
        "kept_id": keepers.ids,
        **_columns_of_pairs(rules.method.measures, decisions),
    }
    if rules.tracks_sources:
        columns[SOURCE] = new.sources
    return columns


class _Written(NamedTuple):
    """The documents of a step that become rows.

    documents, decisions : the new documents, then copies of repeated documents that bring a new
    source. entries : their entries in the tables of keys. sources : of the kept documents of all
    documents of the step; None if the index does not track them.
    """

    documents: Incoming
    decisions: BatchDecisions
    entries: Entries
    sources: Sources | None


def _written(rules: Rules, incoming: Incoming, decided: _Decided) -> _Written:
    """Return the rows to write. incoming : all documents of the batch."""
    arriving, view, new, decisions = decided
    entries = take_entries(rules.lookup.entries(new.described.keys), decisions.member)
    if not rules.tracks_sources:
        return _Written(new, decisions, entries, None)
    keepers = _keepers_of_all(decided)
    found = sources_of(rules.source_table, view, keepers, incoming.sources[: len(keepers)])
    # A new document that is kept needs no entry: its own row has its source.
    is_other = arriving.is_repeated | (keepers != arriving.rows(view.num_rows))
    is_listed = found.is_first & is_other
    copied = np.flatnonzero(is_listed & arriving.is_repeated)
    if len(copied):
        new = _joined_copies(incoming, decided, copied)
        decisions = decisions.joined(_decisions_of_copies(rules, decided, copied, keepers))
    order = np.concatenate([arriving.new_positions(), copied])
    of_sources = entries_of(rules.source_table, keepers[order], is_listed[order])
    entries = join_entries([(entries, 0), (of_sources, 0)])
    return _Written(new, decisions, entries, found)


def _joined_copies(incoming: Incoming, decided: _Decided, copied: Rows) -> Incoming:
    """Return the new documents of a step, and then copies of repeated ones. copied : the positions
    of these.
    """
    new = decided.arriving.new_positions()
    first = decided.view.num_rows + len(new)
    copies = incoming.take(copied).numbered(new_prefix(), first)
    ids = pa.concat_arrays([decided.new.ids, copies.ids])
    return replace(incoming.take(np.concatenate([new, copied])), ids=ids)


def _keepers_of_all(decided: _Decided) -> Rows:
    """Return the row of the kept document of each document of a step: itself, or its remover.

    -1 if the remover was forgotten since.
    """
    arriving, view, _, decisions = decided
    keepers = arriving.rows(view.num_rows)
    is_new = ~arriving.is_repeated
    keepers[is_new] = np.where(decisions.kept, keepers[is_new], decisions.remover)
    keepers[arriving.is_repeated] = repeated_keepers(view, arriving.repeated_rows())
    return keepers


def repeated_keepers(snapshot: Snapshot, repeated: Rows) -> Rows:
    """Return the kept row of each document that is sent again, as `_first_keepers`."""
    if not len(repeated):
        return repeated
    answered = snapshot.take(repeated, ["state", "kept_row", "kept_id"])
    is_kept = answered["state"].to_numpy() == KEPT
    return _first_keepers(snapshot, answered, is_kept, repeated)


def _decisions_of_copies(
    rules: Rules, decided: _Decided, copied: Rows, keepers: Rows
) -> BatchDecisions:
    """Return the decisions about copies of repeated documents: removed, as these are.

    copied : the positions of the repeated documents. keepers : by document of the step.
    """
    measures = rules.method.measures
    rows = decided.arriving.existing[copied]
    stored = decided.view.take(rows, [measure.name for measure in measures])
    measured = {
        # Null for a kept document, whose copy is similar to itself.
        measure.name: stored[measure.name]
        .fill_null(pa.scalar(measure.of_itself, measure.type))
        .to_numpy()
        for measure in measures
    }
    none = np.zeros(len(copied), np.bool_)
    return BatchDecisions(
        kept=none,
        remover=keepers[copied],
        measured=Measured(measured),
        truncated=none,
        member=none,
    )


def _columns_of_pairs(measures: schemas.Measures, decisions: BatchDecisions) -> dict[str, pa.Array]:
    """Return the row that removed each document, and its measures; null for a kept document."""
    kept = decisions.kept
    types = {"kept_row": pa.uint32()} | {measure.name: measure.type for measure in measures}
    if kept.all():
        return {name: pa.nulls(len(kept), kind) for name, kind in types.items()}
    values = {"kept_row": decisions.remover, **decisions.measured.columns}
    return {name: _nullable(values[name], kind, kept) for name, kind in types.items()}


def _nullable(values: Array, kind: pa.DataType, mask: Mask) -> pa.Array:
    """Return numbers as an Arrow array, null where the mask is true."""
    # Values under the mask may be -1, which unsigned types cannot represent.
    array = arrow_of(np.where(mask, 0, values).astype(numpy_type(kind)))
    valid = arrow_of(~mask).buffers()[1]
    return pa.Array.from_buffers(kind, len(mask), [valid, array.buffers()[1]])


def _table(columns: dict[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """Return columns as a table, in the order of a schema."""
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _answers(rules: Rules, columns: dict[str, pa.Array], kept: Mask, keepers: _Keepers) -> pa.Table:
    """Return the answers about new documents without their sources. columns, keepers : of the new
    documents, and perhaps of copies after them.
    """
    answers = columns | {
        "kept": arrow_of(kept),
        "repeated": arrow_of(np.zeros(len(kept), np.bool_)),
        **dict(zip(_TIMESTAMPS, keepers.timestamps, strict=True)),
    }
    schema = schemas.answers_schema(rules.method.measures)
    if len(kept) < len(columns["id"]):
        answers = {name: answers[name][: len(kept)] for name in schema.names}
    return _table(answers, schema)


def _with_repeated(
    answers: pa.Table,
    rules: Rules,
    snapshot: Snapshot,
    arriving: _Arrivals,
    sources: Sources | None,
) -> pa.Table:
    """Return the answers about all documents in their order. answers : about new ones. sources :
    of the kept documents of all documents, if the index tracks them.
    """
    any_repeated = arriving.is_repeated.any()
    if sources is None and not any_repeated:
        return answers  # the usual answer needs no other table
    if any_repeated:
        repeated = _repeated_answers(rules, snapshot, arriving.repeated_rows())
        # The document of each answer, and by its inverse the answer of each document.
        document_of_answer = np.argsort(arriving.is_repeated, kind="stable")
        answer_of_document = np.argsort(document_of_answer)
        answers = pa.concat_tables([answers, repeated]).take(arrow_of(answer_of_document))
    columns = [] if sources is None else sources.columns(dated=rules.tracks_dates)
    return pa.Table.from_arrays([*answers.columns, *columns], schema=rules.answers)


def _repeated_answers(rules: Rules, snapshot: Snapshot, repeated: Rows) -> pa.Table:
    """Return the first answers about documents that the index has, without their sources."""
    names = [measure.name for measure in rules.method.measures]
    answered = snapshot.take(repeated, ["id", "state", "kept_row", "kept_id", *names, "truncated"])
    is_kept = answered["state"].to_numpy() == KEPT
    keeper = _first_keepers(snapshot, answered, is_kept, repeated)
    is_known = keeper >= 0
    timestamps = snapshot.take(keeper[is_known], _TIMESTAMPS)
    if not is_known.all():
        # Null for unknown keepers.
        timestamps = timestamps.take(_nullable(np.cumsum(is_known) - 1, pa.int64(), ~is_known))
    columns = [
        answered["id"],
        arrow_of(is_kept),
        arrow_of(np.ones(len(repeated), np.bool_)),
        *answered.select(["kept_id", *names, "truncated"]).columns,
        *timestamps.columns,
    ]
    return pa.Table.from_arrays(columns, schema=schemas.answers_schema(rules.method.measures))


def _first_keepers(snapshot: Snapshot, answered: pa.Table, is_kept: Mask, rows: Rows) -> Rows:
    """Return the kept row of each stored document: the document itself or its remover.

    -1 if the remover was forgotten since, or replaced by another row.
    """
    remover = answered["kept_row"].fill_null(0).to_numpy().astype(np.int64)
    keeper = np.where(is_kept, rows, remover)
    removed = np.flatnonzero(~is_kept)
    if len(removed):
        ids = array_of(answered["kept_id"]).take(arrow_of(removed))
        # The id may belong to another document since: only the same row is the keeper.
        is_gone = snapshot.rows_of_ids(ids) != remover[removed]
        keeper[removed[is_gone]] = -1
    return keeper


def query(rules: Rules, snapshot: Snapshot, incoming: Incoming, limit: int) -> dict[str, pa.Array]:
    """Return the kept documents that would remove each document: the columns of
    `schemas.hits_schema`.

    The hits come by query, the most similar first, at most `limit` of a query.

    Parameters
    ----------
    incoming : the queries; their ids do not matter.
    """
    described = incoming.described
    probes = take_entries(rules.lookup.probes(described.keys), incoming.featured)
    found = snapshot.find(probes, rules.max_bucket_size)
    candidates = rules.lookup.select(probes, found)
    pairs = candidates.take(candidates.kept)
    # A full bucket may not list a copy: copies are also found by their content.
    if found.truncated.any():
        pairs = _with_copies(snapshot, incoming, pairs)
    if not len(pairs.row):
        return _no_hits(rules.method.measures)
    stored = measure_stored(rules, snapshot, described, pairs, "id", *_TIMESTAMPS)
    best = _best(rules, pairs, stored.measured, limit)
    return _hits(rules.method.measures, pairs, stored, best)


def _hits(
    measures: schemas.Measures, pairs: CandidateRows, stored: StoredPairs, best: Rows
) -> dict[str, pa.Array]:
    """Return some pairs as hits. best : their positions among `pairs`."""
    ids, *timestamps = stored.columns
    # One hit of one pair, the usual answer, needs no copy.
    if len(best) != len(stored.positions) or len(best) > 1:
        positions = arrow_of(stored.positions[best])
        ids, *timestamps = [column.take(positions) for column in stored.columns]
    measured = {measure.name: arrow_of(stored.measured[measure.name][best]) for measure in measures}
    return {
        "query": arrow_of(pairs.query[best]),
        "id": ids,
        **measured,
        **dict(zip(_TIMESTAMPS, timestamps, strict=True)),
    }


@cache
def _no_hits(measures: schemas.Measures) -> dict[str, pa.Array]:
    """Return hits without rows. New arrays would take 25 microseconds."""
    return columns_of(schemas.hits_schema(measures).empty_table())


def _with_copies(snapshot: Snapshot, incoming: Incoming, pairs: CandidateRows) -> CandidateRows:
    """Return the candidates and the kept rows with the content of a query, each pair once."""
    copies = stored_representatives(snapshot, incoming, incoming.featured)
    with_copy = np.flatnonzero(are_kept(snapshot, copies))
    if not len(with_copy):
        return pairs
    query = np.concatenate([pairs.query, with_copy])
    row = np.concatenate([pairs.row, copies[with_copy]])
    order = np.lexsort((row, query))
    query = query[order]
    row = row[order]
    is_new = begins_run(query, row)
    return CandidateRows(
        query=query[is_new],
        row=row[is_new],
        kept=np.ones(np.count_nonzero(is_new), np.bool_),
    )


def _best(rules: Rules, pairs: CandidateRows, measured: Measured, limit: int) -> Rows:
    """Return the duplicates among pairs, by query, the strongest first, at most `limit` of each."""
    confirmed: Rows = (rules.method.is_duplicate(measured) | measured.exact).nonzero()[0]
    if len(confirmed) < 2:
        return confirmed
    strength = rules.method.strength(measured.take(confirmed))
    # `lexsort` sorts by its last key first: by query, the strongest first, then the earliest row.
    order = confirmed[np.lexsort((pairs.row[confirmed], -strength, pairs.query[confirmed]))]
    return order[rank_in_run(pairs.query[order]) < limit]
