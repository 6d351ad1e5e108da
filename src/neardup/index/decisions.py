"""The sieve of an index: decide about a batch of documents, given the stored documents.

The decisions are equal to `dedup` of the same documents in the same order, whatever the batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import Mask, Positions, Rows, filled, mask_of, rank_in_run
from neardup.candidates.lookups import CandidateRows, Entries, Found, Layout, Lookup, take_entries
from neardup.candidates.sorted_members import find_copies
from neardup.decide.sieve import Decisions, decide
from neardup.features.binary import binary_rows
from neardup.index.incoming import DETAILS, Incoming, stored_described
from neardup.methods.base import Described, Method
from neardup.schemas import DATE_COLUMNS, KEPT, SOURCE_COLUMNS, answers_schema, indexed_schema
from neardup.stores.base import Snapshot
from neardup.stores.key_tables import KeyEntries, KeyTables
from neardup.verify.measured import Measured, measured_of_copies


class Rules(NamedTuple):
    """The settings of an index by which it decides.

    max_bucket_size : the greatest number of rows that a bucket lists. tracks_sources : whether
    documents have sources; see index.sources. tracks_dates : whether they have dates, too.
    """

    method: Method
    lookup: Lookup
    storage: str
    max_bucket_size: int
    tracks_sources: bool = False
    tracks_dates: bool = False

    @property
    def limit(self) -> int:
        """The number of rows of a bucket that may remove a document."""
        return self.lookup.limit(self.max_bucket_size)

    @property
    def source_table(self) -> int:
        """The table of keys that lists sources, after the tables of the method."""
        return len(self.lookup.layout.prefix_bits)

    @property
    def schema(self) -> pa.Schema:
        """The schema of stored documents."""
        return indexed_schema(self.method.measures, tracks_sources=self.tracks_sources)

    @property
    def answers(self) -> pa.Schema:
        """The schema of answers."""
        return answers_schema(self.method.measures, tracked=self.tracked)

    @property
    def tracked(self) -> tuple[str, ...]:
        """The columns of sources and of dates that answers and the export have."""
        sources = tuple(SOURCE_COLUMNS) if self.tracks_sources else ()
        return sources + (tuple(DATE_COLUMNS) if self.tracks_dates else ())


class BatchDecisions(NamedTuple):
    """The decisions about the first documents of a batch; the others must see these stored.

    kept : bool (num_decided,). remover : int64, the row that removed each document, stored or of
    this batch; -1 if it is kept. measured : of each document with its remover, of a kept document
    with itself. truncated : bool, whether a bucket had more documents than were compared. member :
    bool, whether buckets will list the document.
    """

    kept: Mask
    remover: Rows
    measured: Measured
    truncated: Mask
    member: Mask

    def first(self, size: int) -> BatchDecisions:
        """Return the decisions about the first `size` documents."""
        return BatchDecisions(
            kept=self.kept[:size],
            remover=self.remover[:size],
            measured=self.measured.take(slice(size)),
            truncated=self.truncated[:size],
            member=self.member[:size],
        )

    def joined(self, later: BatchDecisions) -> BatchDecisions:
        """Return the decisions with later ones after them."""
        return BatchDecisions(
            kept=np.concatenate([self.kept, later.kept]),
            remover=np.concatenate([self.remover, later.remover]),
            measured=Measured.join([self.measured, later.measured]),
            truncated=np.concatenate([self.truncated, later.truncated]),
            member=np.concatenate([self.member, later.member]),
        )


class _Copies(NamedTuple):
    """The documents with the content of each document of a batch.

    stored_row : int64 (num_documents,), the stored row with the content, or -1. is_kept : bool,
    whether this row is of a kept document. first : int64, the first position of the batch with the
    content; the position itself for a document with a stored row or without features. is_new :
    bool, whether a document with features is the first one with its content.
    """

    stored_row: Rows
    is_kept: Mask
    first: Rows
    is_new: Mask

    @property
    def is_stored(self) -> Mask:
        """The documents whose content the index has: bool (num_documents,)."""
        return self.stored_row >= 0


class _Lookups(NamedTuple):
    """The lookups of a batch, and the stored rows that they found."""

    probes: Entries
    found: Found


class _Candidates(NamedTuple):
    """The candidates of a batch.

    stored : kept rows of the index. inner : earlier documents of the batch. truncated : bool
    (num_documents,), whether a bucket had more of them, if the method compares their sets.
    """

    stored: CandidateRows
    inner: CandidateRows
    truncated: Mask


class _Duplicates(NamedTuple):
    """The confirmed pairs of positions: the stored rows in question first, then the documents."""

    left: Positions
    right: Positions
    measured: Measured


def decide_batch(rules: Rules, snapshot: Snapshot, incoming: Incoming) -> BatchDecisions:
    """Decide about documents that the index does not have."""
    probes = take_entries(rules.lookup.probes(incoming.described.keys), incoming.featured)
    found = snapshot.find(probes, rules.limit)
    # A copy has the same keys: documents whose buckets are empty need not be looked up again.
    may_be_stored = mask_of(probes.document[found.entry], len(incoming))
    copies = _copies_of(snapshot, incoming, may_be_stored)
    candidates = _propose(rules, snapshot, incoming, _Lookups(probes, found), copies.is_new)
    num_candidates = len(candidates.stored.row) + len(candidates.inner.row)
    # Neither a candidate nor a copy.
    if not num_candidates and bool((copies.is_new | ~incoming.featured).all()):
        return keep_all(rules, incoming, candidates.truncated)
    decided = _sieve(rules, snapshot, incoming, copies, candidates)
    # A stored document was removed, and its remover is gone: its copy in the batch is kept. The
    # documents after this copy must find it stored.
    kept_again = np.flatnonzero(decided.kept & copies.is_stored)
    return decided.first(int(kept_again[0]) + 1) if len(kept_again) else decided


def _sieve(
    rules: Rules, snapshot: Snapshot, incoming: Incoming, copies: _Copies, candidates: _Candidates
) -> BatchDecisions:
    """Decide about documents with copies or candidates."""
    # Positions, in the order of priority:
    #     0 .. len(stored_rows) - 1      the stored rows in question, all kept
    #     len(stored_rows) ..            the documents of the batch, in their order
    kept_copies = copies.stored_row[copies.is_kept]
    stored_rows = np.unique(np.concatenate([candidates.stored.row, kept_copies]))
    duplicates = _confirm(rules, snapshot, incoming, candidates, stored_rows)
    decisions = decide(
        duplicates.left,
        duplicates.right,
        rules.method.strength(duplicates.measured),
        _representatives(copies, stored_rows),
        len(stored_rows),
    )
    kept = decisions.kept[len(stored_rows) :]
    pair = decisions.pair[len(stored_rows) :]
    is_compared = kept | (pair >= 0)  # the other documents are copies
    member = kept & incoming.featured
    # Also removed documents of a new content: as in a run of dedup, buckets list the first
    # documents of each content.
    if rules.method.confirms_sets:
        member |= copies.is_new
    return BatchDecisions(
        kept=kept,
        remover=_removers(decisions, stored_rows, snapshot.num_rows),
        measured=_measures_of(rules.method, duplicates.measured, pair),
        truncated=candidates.truncated & is_compared,
        member=member,
    )


def keep_all(rules: Rules, incoming: Incoming, truncated: Mask | None = None) -> BatchDecisions:
    """Return the decisions about documents that are kept. truncated : as in `BatchDecisions`; None
    for documents that are compared with none.
    """
    size = len(incoming)
    return BatchDecisions(
        kept=filled(size, True, np.bool_),
        remover=filled(size, -1, np.int64),
        measured=measured_of_copies(size, rules.method.measures),
        truncated=np.zeros(size, np.bool_) if truncated is None else truncated,
        member=incoming.featured,
    )


def _copies_of(snapshot: Snapshot, incoming: Incoming, may_be_stored: Mask) -> _Copies:
    stored_row = stored_representatives(snapshot, incoming, may_be_stored)
    is_kept = are_kept(snapshot, stored_row)
    positions = np.arange(len(incoming))
    first = positions
    if len(incoming) > 1:
        copied = find_copies(incoming.content, positions.astype(np.uint32), incoming.featured)
        # A document with a stored copy follows the stored row, not the batch.
        first = np.where(stored_row >= 0, positions, copied.astype(np.int64))
    is_new = incoming.featured & (stored_row < 0) & (first == positions)
    return _Copies(stored_row=stored_row, is_kept=is_kept, first=first, is_new=is_new)


def stored_representatives(snapshot: Snapshot, incoming: Incoming, chosen: Mask) -> Rows:
    """Return the stored row with the content of each chosen document, or -1.

    chosen : bool (num_documents,), false without features.
    """
    rows = filled(len(incoming), -1, np.int64)
    if chosen.any():
        rows[chosen] = snapshot.rows_of_contents(incoming.content[chosen])
    return rows


def are_kept(snapshot: Snapshot, rows: Rows) -> Mask:
    """Return which rows are of kept documents; -1 is not."""
    kept = rows >= 0
    if kept.any():
        kept[kept] = snapshot.take(rows[kept], ["state"])["state"].to_numpy() == KEPT
    return kept


def _representatives(copies: _Copies, stored_rows: Rows) -> Positions:
    """Return the first position with the same content, of stored rows and then of documents."""
    num_stored = len(stored_rows)
    of_documents = num_stored + copies.first
    kept_copies = copies.stored_row[copies.is_kept]
    of_documents[copies.is_kept] = np.searchsorted(stored_rows, kept_copies)
    return np.concatenate([np.arange(num_stored), of_documents]).astype(np.uint32)


def _removers(decisions: Decisions, stored_rows: Rows, num_rows: int) -> Rows:
    """Return the row of the remover of each document, or -1; num_rows : the row of the first."""
    num_stored = len(stored_rows)
    kept = decisions.kept[num_stored:]
    new_rows = num_rows + np.arange(len(kept))
    row_of_position = np.concatenate([stored_rows, new_rows]).astype(np.int64)
    # Any position will do for kept documents, which get -1 below.
    remover = np.where(kept, 0, decisions.remover[num_stored:])
    return np.where(kept, -1, row_of_position[remover])


def _measures_of(method: Method, measured: Measured, pair: Rows) -> Measured:
    """Return the measures of the pair that removed each document; of itself where pair is -1."""
    columns = measured_of_copies(len(pair), method.measures).columns
    is_paired = pair >= 0
    for name, values in columns.items():
        values[is_paired] = measured[name][pair[is_paired]]
    return Measured(columns)


_NO_CANDIDATES = CandidateRows(
    query=np.empty(0, np.int64), row=np.empty(0, np.int64), kept=np.empty(0, np.bool_)
)


def _propose(
    rules: Rules, snapshot: Snapshot, incoming: Incoming, lookups: _Lookups, members: Mask
) -> _Candidates:
    """Return the candidates of documents. members : the documents that buckets may list."""
    lookup = rules.lookup
    probes, found = lookups
    stored = lookup.select(probes, found)
    is_truncated = found.truncated
    inner = _NO_CANDIDATES
    if len(incoming) > 1 and members.any():
        earlier = _find_inner(rules, incoming, members, probes)

        # A function: sketches are read only if a bucket is crowded.
        def sketches() -> tuple[pa.Array, pa.Array]:
            return sketches_of(snapshot, found.row), binary_rows(incoming.sketch[earlier.row])

        listed = list_after(found, earlier, rules.limit, lookup.layout, sketches)
        is_truncated = is_truncated | listed.truncated
        inner = lookup.select(probes, listed)
    truncated = np.zeros(len(incoming), np.bool_)
    if rules.method.confirms_sets:
        truncated[probes.document[is_truncated]] = True
    return _Candidates(stored=stored.take(stored.kept), inner=inner, truncated=truncated)


def _find_inner(rules: Rules, incoming: Incoming, members: Mask, probes: Entries) -> Found:
    """Return the earlier documents of the batch in the buckets of each document.

    A bucket lists one document more than its limit, so that an overflow is seen.
    """
    layout = rules.lookup.layout
    num_documents = len(incoming)
    tables = KeyTables(layout.prefix_bits, layout.max_distance)
    entries = take_entries(rules.lookup.entries(incoming.described.keys), members)
    rows = entries.document.astype(np.uint32)
    tables.append(KeyEntries(entries.table, entries.key, rows), num_documents)
    # No row of the batch is forgotten, and none is known to be kept.
    none = np.zeros(num_documents // 64 + 1, np.uint64)
    states = kernels.key_tables.States(none, none)
    # One row more than the limit shows that a bucket overflows.
    found = tables.view().find(probes.table, probes.key, rules.limit + 1, states)
    # A bucket also lists the document itself, and later ones.
    is_earlier = found.row < probes.document[found.entry]
    return found.take(is_earlier)._replace(truncated=np.zeros(len(probes.key), np.bool_))


def _confirm(
    rules: Rules,
    snapshot: Snapshot,
    incoming: Incoming,
    candidates: _Candidates,
    stored_rows: Rows,
) -> _Duplicates:
    """Return the candidates that are duplicates. stored_rows : the row of the first positions."""
    method = rules.method
    described = incoming.described
    stored = candidates.stored
    inner = candidates.inner
    # The order of `left` and `right` below: pairs of the batch, then pairs with stored rows.
    parts = []
    if len(inner.row) or not len(stored.row):
        parts.append(method.measure(described, described, inner.row, inner.query))
    if len(stored.row):
        parts.append(measure_stored(rules, snapshot, described, stored).measured)
    measured = Measured.join(parts)
    num_stored = len(stored_rows)
    left = np.concatenate([num_stored + inner.row, np.searchsorted(stored_rows, stored.row)])
    right = num_stored + np.concatenate([inner.query, stored.query])
    is_duplicate = method.is_duplicate(measured) | measured.exact
    return _Duplicates(
        left=left[is_duplicate].astype(np.uint32),
        right=right[is_duplicate].astype(np.uint32),
        measured=measured.take(is_duplicate),
    )


class StoredPairs(NamedTuple):
    """The measures of pairs of a document and a stored row.

    columns : of distinct stored rows. positions : int64 (num_pairs,), the position of each pair in
    `columns`.
    """

    measured: Measured
    columns: list[pa.Array]
    positions: Rows


def measure_stored(
    rules: Rules, snapshot: Snapshot, described: Described, pairs: CandidateRows, *columns: str
) -> StoredPairs:
    """Measure documents with stored rows. columns : names of columns of these rows to return."""
    rows = pairs.row
    positions = np.arange(len(rows))
    is_rising = len(rows) < 2 or bool((rows[1:] > rows[:-1]).all())
    if not is_rising:  # the rows of one query rise
        rows, positions = np.unique(rows, return_inverse=True)
    sketched, taken = snapshot.take_sketched(rows, DETAILS[rules.storage], columns)
    stored = stored_described(sketched, rules.method)
    measured = rules.method.measure(stored, described, positions, pairs.query)
    return StoredPairs(measured=measured, columns=taken, positions=positions)


Sketches = Callable[[], tuple[pa.Array, pa.Array]]


def list_after(
    stored: Found, later: Found, limit: int, layout: Layout, sketches: Sketches
) -> Found:
    """Return the later rows that buckets list after their stored rows.

    `truncated` of the result is true where a bucket does not list all of its rows.

    Parameters
    ----------
    stored, later : results of the same lookups; all rows of `later` come after all of `stored`.
    limit : the greatest number of rows that a bucket lists.
    sketches : returns the sketches of the rows of `stored` and of `later`, large_binary. Rows of
        one lookup are in one bucket if keys must be equal; otherwise if their sketches are equal.
    """
    num_lookups = len(later.truncated)
    num_stored = np.bincount(stored.entry, minlength=num_lookups)
    num_later = np.bincount(later.entry, minlength=num_lookups)
    # Mostly no bucket is full, and all later rows are listed.
    is_crowded = num_stored + num_later > limit
    if not is_crowded.any():
        return later
    buckets = _buckets(stored, later, layout, sketches)
    stored_buckets = buckets[: len(stored.entry)]
    later_buckets = buckets[len(stored.entry) :]
    in_crowd = is_crowded[later.entry]
    is_listed = np.ones(len(later.entry), np.bool_)
    is_listed[in_crowd] = _are_listed(
        stored_buckets[is_crowded[stored.entry]],
        later_buckets[in_crowd],
        later.row[in_crowd],
        limit,
    )
    truncated = later.truncated.copy()
    truncated[later.entry[~is_listed]] = True
    return later.take(is_listed)._replace(truncated=truncated)


def _buckets(stored: Found, later: Found, layout: Layout, sketches: Sketches) -> Rows:
    """Return a number of the bucket of each row, stored rows first."""
    buckets = np.concatenate([stored.entry, later.entry])
    if not layout.max_distance:
        return buckets
    # A table lists keys within a distance: the bucket of a row is its lookup with its sketch.
    codes = pc.dictionary_encode(pa.concat_arrays(list(sketches()))).indices.to_numpy()
    # A number for each pair of a lookup and a sketch.
    return np.asarray(buckets * (len(codes) + 1) + codes, np.int64)


def _are_listed(stored_buckets: Rows, later_buckets: Rows, later_rows: Rows, limit: int) -> Mask:
    """Return which later rows are among the first `limit` of their buckets, after stored ones."""
    num_stored = len(stored_buckets)
    both = np.concatenate([stored_buckets, later_buckets])
    _, numbers = np.unique(both, return_inverse=True)
    bucket = numbers[num_stored:]
    stored_in_bucket = np.bincount(numbers[:num_stored], minlength=len(numbers))
    order = np.lexsort((later_rows, bucket))
    rank = np.empty(len(order), np.int64)
    rank[order] = rank_in_run(bucket[order])
    is_listed: Mask = stored_in_bucket[bucket] + rank < limit
    return is_listed


def sketches_of(snapshot: Snapshot, rows: Rows) -> pa.Array:
    """Return the sketches of rows, large_binary."""
    return snapshot.take(rows, ["sketch"])["sketch"].combine_chunks()
