"""The sieve of an index: decide about a batch of documents, given those that are stored.

The decisions are those of `dedup` on the same documents in the same order, whatever the batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import Mask, Rows, rank_in_run
from neardup.candidates.lookups import CandidateRows, Entries, Found, Layout, Lookup, take_entries
from neardup.candidates.sorted_members import find_copies
from neardup.decide.sieve import decide
from neardup.features.binary import binary_rows
from neardup.index.incoming import DETAILS, Incoming, stored_described
from neardup.methods.base import Described, Method
from neardup.schemas import KEPT
from neardup.stores.base import Snapshot
from neardup.stores.key_tables import KeyEntries, KeyTables
from neardup.verify.measured import Measured, measured_of_copies


class Rules(NamedTuple):
    """What an index needs of its settings to decide. limit : the greatest number of rows that a
    bucket lists.
    """

    method: Method
    lookup: Lookup
    storage: str
    max_bucket_size: int

    @property
    def limit(self) -> int:
        """The number of rows of a bucket that may remove a document."""
        return self.lookup.limit(self.max_bucket_size)


class Verdicts(NamedTuple):
    """The decisions about a batch, up to the document that needs those before it to be stored.

    kept : bool (num_decided,). remover : int64, the row that removed each, or that it will have in
    this batch; -1 if it is kept. measured : of each with its remover; of a kept document with
    itself. truncated : bool, whether a bucket had more documents than were compared. member : bool,
    whether buckets are to list it.
    """

    kept: Mask
    remover: Rows
    measured: Measured
    truncated: Mask
    member: Mask


def judge(rules: Rules, snapshot: Snapshot, incoming: Incoming) -> Verdicts:
    """Decide about documents that the index does not have."""
    representatives = stored_representatives(snapshot, incoming)
    stored_kept = are_kept(snapshot, representatives)
    first = np.arange(len(incoming))
    if len(incoming) > 1:
        first = find_copies(incoming.content, first.astype(np.uint32), incoming.featured).astype(
            np.int64
        )
    stored = representatives >= 0
    first[stored] = stored.nonzero()[0]
    members = incoming.featured & ~stored & (first == np.arange(len(incoming)))
    found, inner, truncated = _propose(rules, snapshot, incoming, members)
    truncated &= rules.method.confirms_sets
    if not len(found.row) + len(inner.row) and bool((members | ~incoming.featured).all()):
        return keep_all(rules, incoming)._replace(truncated=truncated)
    nodes = np.unique(np.concatenate([found.row, representatives[stored_kept]]))
    left, right, measured = _confirm(rules, snapshot, incoming, found, inner, nodes)
    # Positions: stored rows first, then the documents.
    own = len(nodes) + np.arange(len(incoming))
    representative = np.concatenate([np.arange(len(nodes)), len(nodes) + first])
    representative[own[stored_kept]] = np.searchsorted(nodes, representatives[stored_kept])
    pairs = left.astype(np.uint32), right.astype(np.uint32), rules.method.strength(measured)
    decisions = decide(*pairs, representative.astype(np.uint32), len(nodes))
    kept, pair = decisions.kept[own], decisions.pair[own]
    remover = np.where(kept, 0, decisions.remover[own]).astype(np.int64)
    rows = np.concatenate([nodes, snapshot.num_rows + np.arange(len(incoming))]).astype(np.int64)
    columns = measured_of_copies(len(incoming), rules.method.measures).columns
    for name, values in columns.items():
        values[pair >= 0] = measured[name][pair[pair >= 0]]
    truncated &= kept | (pair >= 0)  # not of copies
    member = kept & incoming.featured
    if rules.method.confirms_sets:
        member |= members
    verdicts = Verdicts(
        kept, np.where(kept, -1, rows[remover]), Measured(columns), truncated, member
    )
    # The copy of a document whose own remover is gone takes its place: those after it must see it.
    revived = np.flatnonzero(kept & stored)
    return _first_verdicts(verdicts, int(revived[0]) + 1) if len(revived) else verdicts


def keep_all(rules: Rules, incoming: Incoming) -> Verdicts:
    """Return the verdicts of documents that are added whatever they are similar to."""
    size, measures = len(incoming), rules.method.measures
    kept, remover = np.ones(size, np.bool_), np.full(size, -1, np.int64)
    return Verdicts(kept, remover, measured_of_copies(size, measures), ~kept, incoming.featured)


def _first_verdicts(verdicts: Verdicts, stop: int) -> Verdicts:
    kept, remover, measured, truncated, member = verdicts
    return Verdicts(
        kept[:stop], remover[:stop], measured.take(slice(stop)), truncated[:stop], member[:stop]
    )


def stored_representatives(snapshot: Snapshot, incoming: Incoming) -> Rows:
    """Return the stored row with the content of each document, or -1."""
    rows = np.full(len(incoming), -1, np.int64)
    if incoming.featured.any():
        rows[incoming.featured] = snapshot.rows_of_contents(incoming.content[incoming.featured])
    return rows


def are_kept(snapshot: Snapshot, rows: Rows) -> Mask:
    """Return which rows are of kept documents; -1 is not."""
    kept = rows >= 0
    if kept.any():
        kept[kept] = snapshot.take(rows[kept], ["state"])["state"].to_numpy() == KEPT
    return kept


def _propose(
    rules: Rules, snapshot: Snapshot, incoming: Incoming, members: Mask
) -> tuple[CandidateRows, CandidateRows, Mask]:
    """Return the candidates among stored rows, and among earlier documents; and whose buckets had
    more of them.
    """
    lookup, keys = rules.lookup, incoming.described.keys
    probes = take_entries(lookup.probes(keys), incoming.featured)
    found = snapshot.find(probes, rules.limit)
    stored = lookup.select(probes, found)
    truncated = found.truncated.copy()
    inner = CandidateRows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))
    if len(incoming) > 1 and members.any():
        entries = take_entries(lookup.entries(keys), members)
        earlier = _find_inner(lookup.layout, entries, probes, len(incoming), rules.limit)

        def sketches() -> tuple[pa.Array, pa.Array]:
            return sketches_of(snapshot, found.row), binary_rows(incoming.sketch[earlier.row])

        listed = list_after(found, earlier, rules.limit, lookup.layout, sketches)
        truncated |= listed.truncated
        inner = lookup.select(probes, listed)
    overflows = np.zeros(len(incoming), np.bool_)
    overflows[probes.document[truncated]] = True
    return stored.take(stored.kept), inner, overflows


def _find_inner(
    layout: Layout, entries: Entries, probes: Entries, num_documents: int, limit: int
) -> Found:
    """Return the earlier documents of the batch in the buckets of each, one more than a bucket
    lists.
    """
    tables = KeyTables(layout.prefix_bits, layout.max_distance)
    tables.append(
        KeyEntries(entries.table, entries.key, entries.document.astype(np.uint32)), num_documents
    )
    none = np.zeros(num_documents // 64 + 1, np.uint64)
    states = kernels.key_tables.States(none, none)
    found = tables.view().find(probes.table, probes.key, limit + 1, states)
    earlier = found.row < probes.document[found.entry]
    return found.take(earlier)._replace(truncated=np.zeros(len(probes.key), np.bool_))


def _confirm(
    rules: Rules,
    snapshot: Snapshot,
    incoming: Incoming,
    stored: CandidateRows,
    inner: CandidateRows,
    nodes: Rows,
) -> tuple[Rows, Rows, Measured]:
    """Return the pairs that are duplicates, as positions, with their measures."""
    method, described = rules.method, incoming.described
    parts = [method.measure(described, described, inner.row, inner.query)]
    if len(stored.row):
        parts.append(measure_stored(rules, snapshot, described, stored)[0])
    left = np.concatenate([len(nodes) + inner.row, np.searchsorted(nodes, stored.row)])
    right = len(nodes) + np.concatenate([inner.query, stored.query])
    measured = Measured(
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns}
    )
    confirmed = method.is_duplicate(measured) | measured.exact
    return left[confirmed], right[confirmed], measured.take(confirmed)


def measure_stored(
    rules: Rules, snapshot: Snapshot, described: Described, pairs: CandidateRows, *columns: str
) -> tuple[Measured, list[pa.Array], Rows]:
    """Return the measures of documents with stored rows. columns : of these, wanted besides.

    Returns
    -------
    The measures; `columns` of the stored rows; and the row of each pair in them.
    """
    rows, position = pairs.row, np.arange(len(pairs.row))
    if len(rows) > 1 and not bool((rows[1:] > rows[:-1]).all()):  # they rise for one query
        rows, position = np.unique(pairs.row, return_inverse=True)
    sketched, taken = snapshot.take_sketched(rows, DETAILS[rules.storage], columns)
    stored = stored_described(sketched, rules.method)
    return rules.method.measure(stored, described, position, pairs.query), taken, position


Sketches = Callable[[], tuple[pa.Array, pa.Array]]


def list_after(
    stored: Found, later: Found, limit: int, layout: Layout, sketches: Sketches
) -> Found:
    """Return the later rows that buckets list after their stored rows; truncated : whether some are
    not listed.

    Parameters
    ----------
    stored, later : what the same lookups found; all rows of `later` come after those of `stored`.
    limit : the greatest number of rows that a bucket lists.
    sketches : returns the sketches of all rows found, stored and later, large_binary. Rows of one
        lookup are in one bucket if keys must be equal, else if their sketches are equal.
    """
    num_lookups = len(later.truncated)
    total = np.bincount(stored.entry, minlength=num_lookups) + np.bincount(
        later.entry, minlength=num_lookups
    )
    crowded = total > limit
    if not crowded.any():
        return later
    bucket = np.concatenate([stored.entry, later.entry])
    if layout.max_distance:
        codes = pc.dictionary_encode(pa.concat_arrays(list(sketches()))).indices.to_numpy()
        bucket = bucket * (len(codes) + 1) + codes
    in_stored, in_later = (
        np.flatnonzero(crowded[stored.entry]),
        np.flatnonzero(crowded[later.entry]),
    )
    _, number = np.unique(
        bucket[np.append(in_stored, len(stored.entry) + in_later)], return_inverse=True
    )
    own = number[len(in_stored) :]
    before = np.bincount(number[: len(in_stored)], minlength=len(number))
    order = np.lexsort((later.row[in_later], own))
    rank = np.empty(len(order), np.int64)
    rank[order] = rank_in_run(own[order])
    fits = np.ones(len(later.entry), np.bool_)
    fits[in_later] = before[own] + rank < limit
    truncated = later.truncated.copy()
    truncated[later.entry[~fits]] = True
    return later.take(fits)._replace(truncated=truncated)


def sketches_of(snapshot: Snapshot, rows: Rows) -> pa.Array:
    """Return the sketches of rows, large_binary."""
    return snapshot.take(rows, ["sketch"])["sketch"].combine_chunks()
