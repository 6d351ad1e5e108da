"""The documents of an index: add, add if new, look up, forget.

Everything is decided here, and is the same for every store; a store finds rows and writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schemas
from neardup.arrays import Array, Mask, Rows, arrow_of, begins_run, find_in, numpy_type, rank_in_run
from neardup.candidates.lookups import CandidateRows, take_entries
from neardup.errors import InputError
from neardup.index.decisions import (
    Rules,
    Verdicts,
    are_kept,
    judge,
    keep_all,
    measure_stored,
    stored_representatives,
)
from neardup.index.incoming import Incoming, stored_columns
from neardup.index.overlay import Overlay
from neardup.schemas import KEPT, REMOVED, TIME
from neardup.stores.base import MAX_ROWS, Changes, Snapshot, Writer
from neardup.stores.documents import contents_of
from neardup.verify.measured import Measured

_TIMESTAMPS = ("first_seen", "last_seen", "payload")


class Step(NamedTuple):
    """The answers and changes for the first documents of a batch.

    answers : `schemas.answers_schema`, a row for each of them. rows : int64, the row of each, which
    the index has or will have. changes : of the store.
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
    """Add documents, or those that are new, in one change, and return the answers.

    Parameters
    ----------
    incoming : documents with ids, which may be there already.
    now : microseconds since 1970.
    if_new : whether a document that is a duplicate of a kept one is removed: stored with its
        answer, never found again.
    import_name : the name of the import that brings them.
    """
    if not len(incoming):
        return schemas.answers_schema(rules.method.measures).empty_table()
    step = next_step(rules, writer, incoming, now, if_new, import_name)
    if len(step.rows) == len(incoming):
        writer.write(step.changes)
        return step.answers
    overlay = Overlay(writer, rules)
    overlay.write(step.changes)
    rest = incoming.take(np.arange(len(step.rows), len(incoming)))
    decided = [step, *steps(rules, overlay, rest, now, if_new, import_name)]
    writer.write_all([step.changes for step in decided])
    return pa.concat_tables([step.answers for step in decided])


def steps(
    rules: Rules,
    overlay: Overlay,
    incoming: Incoming,
    now: int,
    if_new: bool = True,
    import_name: str | None = None,
) -> Iterator[Step]:
    """Decide about documents as if they came one by one, and yield the decisions once they are
    written.
    """
    start, size = 0, len(incoming)
    while start < len(incoming):
        part = incoming.take(np.arange(start, min(start + size, len(incoming))))
        step = next_step(rules, overlay, part, now, if_new, import_name)
        overlay.write(step.changes)
        yield step
        start += len(step.rows)
        size = 2 * len(
            step.rows
        )  # so that a batch that is cut often takes no time for what is behind the cuts


def next_step(
    rules: Rules,
    snapshot: Snapshot,
    incoming: Incoming,
    now: int,
    if_new: bool,
    import_name: str | None,
) -> Step:
    """Decide about as many of the documents as can be decided at once, one at least."""
    existing = snapshot.rows_of_ids(incoming.ids)
    same = _are_same(snapshot, incoming, existing)
    replacing = (existing >= 0) & ~same
    stop = _first_repeated_id(incoming.ids)
    if replacing[1:stop].any():
        distinct = incoming.take(np.arange(stop))
        stop = _first_conflict(rules, snapshot, distinct, existing[:stop], replacing[:stop], if_new)
    forgotten = existing[:stop][replacing[:stop]]
    view = snapshot.without(forgotten) if len(forgotten) else snapshot
    new = np.flatnonzero(~same[:stop])
    arriving = incoming.take(new)
    verdicts = judge(rules, view, arriving) if if_new and len(new) else keep_all(rules, arriving)
    num_decided = len(verdicts.kept)
    if num_decided < len(new):
        stop, new, arriving = (
            int(new[num_decided]),
            new[:num_decided],
            arriving.take(np.arange(num_decided)),
        )
        forgotten = existing[:stop][replacing[:stop]]
    if snapshot.num_rows + len(new) > MAX_ROWS:
        raise InputError(
            f"An index has at most {MAX_ROWS:,} documents over its lifetime: it is full. "
            "Rebuild it."
        )
    documents = _documents(rules, snapshot, arriving, verdicts, now, import_name)
    repeated = existing[:stop][same[:stop]]
    seen = np.unique(np.concatenate([verdicts.remover[~verdicts.kept], repeated]))
    entries = take_entries(rules.lookup.entries(arriving.described.keys), verdicts.member)
    answers, rows = _answers(rules, view, documents, repeated), existing[:stop].copy()
    changes = Changes(documents, entries, seen, _seen_at(view, answers, repeated, now), forgotten)
    rows[new] = snapshot.num_rows + np.arange(len(new))
    if len(repeated):
        places = np.argsort(
            np.argsort(same[:stop], kind="stable")
        )  # the answers to repeated documents come last
        answers = answers.take(arrow_of(places))
    return Step(answers, rows, changes)


def _seen_at(snapshot: Snapshot, answers: pa.Table, repeated: Rows, now: int) -> int:
    """Return the time of the documents that are seen: not before they were added, even if the clock
    was set back.
    """
    added = [
        answers["first_seen"],
        *([snapshot.take(repeated, ["first_seen"])["first_seen"]] if len(repeated) else []),
    ]
    return max(now, *(pc.max(column.cast("int64")).as_py() or 0 for column in added))


def _first_conflict(
    rules: Rules,
    snapshot: Snapshot,
    incoming: Incoming,
    existing: Rows,
    replacing: Mask,
    if_new: bool,
) -> int:
    """Return the first document that replaces a row which an earlier one may be compared with, or
    their number.

    All other rows that are replaced may be forgotten before the first document is decided: no
    decision depends on them.

    existing : the row of each id, or -1. replacing : whether the document has other content than
    that row.
    """
    again = np.flatnonzero(
        (existing >= 0) & ~replacing
    )  # their answers are about the row that removed them
    removers = (
        snapshot.take(existing[again], ["kept_row"])["kept_row"]
        .fill_null(0)
        .to_numpy()
        .astype(np.int64)
    )
    queries, rows = [again], [removers]
    if if_new:
        probes = take_entries(rules.lookup.probes(incoming.described.keys), incoming.featured)
        # The rows that a bucket lists once any of the others are forgotten, and one more, which
        # tells that it is full.
        found = snapshot.find(probes, rules.limit + int(replacing.sum()) + 1)
        queries += [probes.document[found.entry], np.arange(len(incoming))]
        rows += [found.row, stored_representatives(snapshot, incoming)]
    position = np.flatnonzero(replacing)[np.argsort(existing[replacing])]
    row = np.concatenate(rows)
    place, is_replaced = find_in(existing[position], row)
    replacer = position[place[is_replaced]]
    return int(replacer[np.concatenate(queries)[is_replaced] < replacer].min(initial=len(incoming)))


def _first_repeated_id(ids: pa.Array) -> int:
    """Return the first position whose id occurred before, or the number of ids."""
    if len(ids) == 1:
        return 1
    codes = pc.dictionary_encode(ids).indices.to_numpy()
    repeated = np.flatnonzero(
        codes[1:] <= np.maximum.accumulate(codes)[:-1]
    )  # codes count up as ids are new
    return int(repeated[0]) + 1 if len(repeated) else len(codes)


def _are_same(snapshot: Snapshot, incoming: Incoming, existing: Rows) -> Mask:
    """Return which documents are stored already, with the same content; those without features have
    one content.
    """
    same = existing >= 0
    if same.any():
        stored = snapshot.take(existing[same], ["content", "featured"])
        featured = stored["featured"].to_numpy()
        equal = (contents_of(stored["content"]) == incoming.content[same]).all(axis=1)
        same[same] = (featured == incoming.featured[same]) & (equal | ~featured)
    return same


def _documents(
    rules: Rules,
    snapshot: Snapshot,
    arriving: Incoming,
    verdicts: Verdicts,
    now: int,
    import_name: str | None,
) -> pa.Table:
    """Return the rows to write."""
    kept, size = verdicts.kept, len(arriving)
    moment = arrow_of(np.full(size, now, np.int64)).view(TIME)
    removers = _array(verdicts.remover, pa.uint32(), kept)
    columns = {
        "row": arrow_of((snapshot.num_rows + np.arange(size)).astype(np.uint32)),
        "id": arriving.ids,
        "state": arrow_of(np.where(kept, KEPT, REMOVED).astype(np.uint8)),
        "member": arrow_of(verdicts.member),
        "truncated": arrow_of(verdicts.truncated),
        **stored_columns(arriving, rules.method, rules.storage, kept),
        "first_seen": moment,
        "last_seen": moment,
        "payload": arriving.payloads,
        "import_name": pa.array([import_name] * size, "large_string"),
        "kept_row": removers,
        "kept_id": _ids_of(snapshot, arriving, verdicts.remover),
    }
    for measure in rules.method.measures:
        columns[measure.name] = _array(verdicts.measured[measure.name], measure.type, kept)
    schema = schemas.indexed_schema(rules.method.measures)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _array(values: Array, kind: pa.DataType, mask: Mask) -> pa.Array:
    """Return numbers as an Arrow array, null where the mask is true."""
    if mask.all():
        return pa.nulls(len(mask), kind)
    return pa.array(np.where(mask, 0, values).astype(numpy_type(kind)), kind, mask=mask)


def _ids_of(snapshot: Snapshot, arriving: Incoming, rows: Rows) -> pa.Array:
    """Return the id of each row, stored or of the batch; null for -1."""
    if (rows < 0).all():
        return pa.nulls(len(rows), "large_string")
    return _take(snapshot, pa.table({"id": arriving.ids}), rows, ["id"])["id"].combine_chunks()


def _take(snapshot: Snapshot, documents: pa.Table, rows: Rows, columns: Sequence[str]) -> pa.Table:
    """Return columns of rows that are stored or in `documents`, which are the next; nulls for
    -1.
    """
    if len(rows) == len(documents) and bool(
        (rows == snapshot.num_rows + np.arange(len(rows))).all()
    ):
        return documents.select(columns)
    is_stored = (rows >= 0) & (rows < snapshot.num_rows)
    if is_stored.all():
        return snapshot.take(rows, columns)
    stored = np.unique(rows[is_stored])
    both = documents.select(columns)
    if len(stored):
        both = pa.concat_tables([snapshot.take(stored, columns).cast(both.schema), both])
    places = np.where(
        is_stored, np.searchsorted(stored, rows), len(stored) + rows - snapshot.num_rows
    )
    return both.take(pa.array(np.maximum(places, 0), mask=rows < 0))


def _answers(rules: Rules, snapshot: Snapshot, documents: pa.Table, repeated: Rows) -> pa.Table:
    """Return the answers about new documents, then about repeated ones."""
    measures = [measure.name for measure in rules.method.measures]
    names = ["id", "state", "kept_row", "kept_id", *measures, "truncated"]
    rows = documents
    if len(repeated):
        rows = pa.concat_tables(
            [rows.select(names), snapshot.take(repeated, names).cast(rows.select(names).schema)]
        )
    kept = rows["state"].to_numpy() == KEPT
    timestamps = documents
    if len(repeated) or not kept.all():
        row_numbers = np.concatenate([snapshot.num_rows + np.arange(len(documents)), repeated])
        keeper = np.where(
            kept, row_numbers, rows["kept_row"].fill_null(0).to_numpy().astype(np.int64)
        )
        removed_repeats = np.flatnonzero(~kept & (row_numbers < snapshot.num_rows))
        if len(removed_repeats):
            alive = snapshot.rows_of_ids(
                rows["kept_id"].combine_chunks().take(arrow_of(removed_repeats))
            )
            keeper[removed_repeats] = np.where(alive == keeper[removed_repeats], alive, -1)
        timestamps = _take(snapshot, documents, keeper, _TIMESTAMPS)
    is_repeated = arrow_of(np.arange(len(rows)) >= len(documents))
    answered = rows.select(["kept_id", *measures, "truncated"]).columns
    columns = [
        rows["id"],
        arrow_of(kept),
        is_repeated,
        *answered,
        *timestamps.select(_TIMESTAMPS).columns,
    ]
    return pa.Table.from_arrays(columns, schema=schemas.answers_schema(rules.method.measures))


def query(rules: Rules, snapshot: Snapshot, incoming: Incoming, limit: int) -> pa.Table:
    """Return the kept documents that would remove each document; at most `limit` of them, the most
    similar.

    The table is of `schemas.hits_schema`, by query, the most similar first.

    Parameters
    ----------
    incoming : the queries; their ids do not matter.
    """
    described = incoming.described
    probes = take_entries(rules.lookup.probes(described.keys), incoming.featured)
    found = snapshot.find(probes, rules.max_bucket_size)
    candidates = rules.lookup.select(probes, found)
    pairs = candidates.take(candidates.kept)
    if found.truncated.any():
        pairs = _with_copies(snapshot, incoming, pairs)
    measures = rules.method.measures
    if not len(pairs.row):
        return _no_hits(measures)
    measured, stored, position = measure_stored(
        rules, snapshot, described, pairs, "id", *_TIMESTAMPS
    )
    chosen = _best(rules, pairs, measured, limit)
    if len(chosen) != len(position) or len(chosen) > 1:
        where = arrow_of(position[chosen])
        stored = [column.take(where) for column in stored]
    measures_of = [arrow_of(measured[measure.name][chosen]) for measure in measures]
    columns = [arrow_of(pairs.query[chosen]), stored[0], *measures_of, *stored[1:]]
    return pa.Table.from_arrays(columns, schema=schemas.hits_schema(measures))


@cache
def _no_hits(measures: schemas.Measures) -> pa.Table:
    """Return hits without rows, which take 25 microseconds to make."""
    return schemas.hits_schema(measures).empty_table()


def _with_copies(snapshot: Snapshot, incoming: Incoming, pairs: CandidateRows) -> CandidateRows:
    """Return the candidates, and the kept rows with the content of a query, which a crowded bucket
    may not list.
    """
    copies = stored_representatives(snapshot, incoming)
    query = np.flatnonzero(are_kept(snapshot, copies))
    if not len(query):
        return pairs
    both = np.concatenate([pairs.query, query]), np.concatenate([pairs.row, copies[query]])
    order = np.lexsort(both[::-1])
    query, row = both[0][order], both[1][order]
    new = begins_run(query, row)
    return CandidateRows(query[new], row[new], np.ones(int(new.sum()), np.bool_))


def _best(rules: Rules, pairs: CandidateRows, measured: Measured, limit: int) -> Rows:
    """Return the duplicates among pairs, by query, the strongest first, at most `limit` of a
    query.
    """
    confirmed: Rows = (rules.method.is_duplicate(measured) | measured.exact).nonzero()[0]
    if len(confirmed) < 2:
        return confirmed
    strength = rules.method.strength(measured.take(confirmed))
    order = confirmed[np.lexsort((pairs.row[confirmed], -strength, pairs.query[confirmed]))]
    return order[rank_in_run(pairs.query[order]) < limit]
