"""A view of an index with documents that are not written to it yet."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Rows, Words
from neardup.candidates.lookups import Entries, Found
from neardup.index.decisions import Rules, are_kept, list_after, sketches_of
from neardup.index.incoming import replace_column, store_settings
from neardup.stores.base import Changes, Snapshot, Writer
from neardup.stores.documents import array_of
from neardup.stores.memory import MemoryStore
from neardup.stores.state import StateWriter


class Overlay(Snapshot):
    """A snapshot with documents on top.

    The documents on top have the rows after the last row of the snapshot, so a bucket lists rows of
    the snapshot first:

        rows     0 1 2 3 4 | 5 6 7        first_row = 5
        store    base        top, whose rows are 0 1 2

    Parameters
    ----------
    base : the snapshot.
    rules : the rules of the index.
    top : a writer of the store of the documents on top; it may contain documents that an earlier
        overlay on the same snapshot wrote. Default: an empty store in memory.
    """

    def __init__(self, base: Snapshot, rules: Rules, top: Writer | None = None) -> None:
        self._layout = rules.lookup.layout
        self._first_row = base.num_rows  # the row of the first document on top
        if top is None:
            settings = store_settings({}, rules.method, tracks_sources=rules.tracks_sources)
            top = StateWriter(MemoryStore("memory:", settings))
        self._top: Snapshot = top
        # An id on top replaces the row of the same id in the snapshot.
        ids = (array_of(table["id"]) for table in top.scan(["id"]))
        self._replaced = [rows[rows >= 0] for rows in map(base.rows_of_ids, ids)]
        replaced = self.replaced
        self._base = base.without(replaced) if len(replaced) else base

    @property
    def replaced(self) -> Rows:
        """The rows of the snapshot that were forgotten."""
        return np.concatenate([np.empty(0, np.int64), *self._replaced])

    @property
    def num_rows(self) -> int:
        return self._first_row + self._top.num_rows

    def find(self, lookups: Entries, limit: int) -> Found:
        stored = self._base.find(lookups, limit)
        # One row more than the limit shows that a bucket overflows.
        added = self._top.find(lookups, limit + 1)
        # `list_after` adds the buckets that the limit cuts to the ones truncated in the snapshot.
        added = added._replace(truncated=stored.truncated)

        def sketches() -> tuple[pa.Array, pa.Array]:
            return sketches_of(self._base, stored.row), sketches_of(self._top, added.row)

        later = list_after(stored, added, limit, self._layout, sketches)
        entry = np.concatenate([stored.entry, later.entry])
        # Rows on top have numbers after the rows of the snapshot.
        row = np.concatenate([stored.row, later.row + self._first_row])
        kept = np.concatenate([stored.kept, later.kept])
        # Within a look-up, stored rows stay before later ones.
        order = np.argsort(entry, kind="stable")
        return Found(
            entry=entry[order],
            row=row[order],
            kept=kept[order],
            truncated=later.truncated,
        )

    def rows_of_ids(self, ids: pa.Array) -> Rows:
        stored = self._base.rows_of_ids(ids)
        added = self._top.rows_of_ids(ids)
        return np.where(added >= 0, added + self._first_row, stored)

    def rows_of_contents(self, contents: Words) -> Rows:
        stored = self._base.rows_of_contents(contents)
        added = self._top.rows_of_contents(contents)
        # A kept row precedes a removed one, even if it is on top.
        only_added_is_kept = are_kept(self._top, added) & ~are_kept(self._base, stored)
        prefer_added = (added >= 0) & ((stored < 0) | only_added_is_kept)
        return np.where(prefer_added, added + self._first_row, stored)

    def without(self, rows: Rows) -> Overlay:
        # A shallow copy, to read: the documents on top are shared.
        overlay = copy(self)
        is_on_top = rows >= self._first_row
        overlay._base = self._base.without(rows[~is_on_top])
        overlay._top = self._top.without(rows[is_on_top] - self._first_row)
        return overlay

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        is_on_top = rows >= self._first_row
        stored = self._base.take(rows[~is_on_top], columns)
        added = self._top.take(rows[is_on_top] - self._first_row, columns)
        both = pa.concat_tables([stored, added.cast(stored.schema)])
        # `both` has the rows in the order of `order`; its inverse restores the order asked for.
        order = np.argsort(is_on_top, kind="stable")
        return both.take(pa.array(np.argsort(order)))

    def write(self, changes: Changes) -> None:
        """Apply changes to this state; the store of the snapshot does not change."""
        assert isinstance(self._top, Writer)  # not after `without`, which leaves a snapshot
        is_on_top = changes.forgotten >= self._first_row
        if not is_on_top.all():
            replaced = changes.forgotten[~is_on_top]
            self._replaced.append(replaced)
            self._base = self._base.without(replaced)
        documents = changes.documents
        if documents is not None:
            rows = pc.subtract(documents["row"], pa.scalar(self._first_row, "uint32"))
            documents = replace_column(documents, "row", rows)
        # The same changes, with the rows that the store on top counts from 0.
        changes_on_top = Changes(
            documents=documents,
            entries=changes.entries,
            seen=changes.seen[changes.seen >= self._first_row] - self._first_row,
            seen_at=changes.seen_at,
            forgotten=changes.forgotten[is_on_top] - self._first_row,
        )
        self._top.write(changes_on_top)
