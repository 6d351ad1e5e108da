"""Documents that are not written yet: an index as it would be with them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Rows, Words
from neardup.candidates.lookups import Entries, Found
from neardup.index.decisions import Rules, are_kept, list_after, sketches_of
from neardup.index.incoming import store_settings
from neardup.stores.base import Changes, Snapshot, Writer
from neardup.stores.documents import array_of
from neardup.stores.memory import MemoryStore
from neardup.stores.state import StateWriter


class Overlay(Snapshot):
    """A snapshot with documents on top.

    Its documents follow those of the snapshot, so that a bucket lists rows of the snapshot first.

    Parameters
    ----------
    base : the snapshot.
    rules : of the index.
    top : a writer of another store of such documents. It may have some already, of an overlay on
        the same snapshot.
    """

    def __init__(self, base: Snapshot, rules: Rules, top: Writer | None = None) -> None:
        self._layout, self._first = rules.lookup.layout, base.num_rows
        top = top or StateWriter(MemoryStore("memory:", store_settings({}, rules.method)))
        self._top: Snapshot = top
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
        return self._first + self._top.num_rows

    def find(self, lookups: Entries, limit: int) -> Found:
        stored, added = self._base.find(lookups, limit), self._top.find(lookups, limit + 1)

        def sketches() -> tuple[pa.Array, pa.Array]:
            return sketches_of(self._base, stored.row), sketches_of(self._top, added.row)

        later = list_after(
            stored, added._replace(truncated=stored.truncated), limit, self._layout, sketches
        )
        entry, row = (
            np.concatenate([stored.entry, later.entry]),
            np.concatenate([stored.row, later.row + self._first]),
        )
        order = np.argsort(entry, kind="stable")
        return Found(
            entry[order],
            row[order],
            np.concatenate([stored.kept, later.kept])[order],
            later.truncated,
        )

    def rows_of_ids(self, ids: pa.Array) -> Rows:
        stored, later = self._base.rows_of_ids(ids), self._top.rows_of_ids(ids)
        return np.where(later >= 0, later + self._first, stored)

    def rows_of_contents(self, contents: Words) -> Rows:
        stored, later = self._base.rows_of_contents(contents), self._top.rows_of_contents(contents)
        # A kept row comes before a removed one, wherever it is.
        for_later = (later >= 0) & (
            (stored < 0) | (are_kept(self._top, later) & ~are_kept(self._base, stored))
        )
        return np.where(for_later, later + self._first, stored)

    def without(self, rows: Rows) -> Overlay:
        overlay, is_later = copy(self), rows >= self._first
        overlay._base = self._base.without(rows[~is_later])
        overlay._top = self._top.without(rows[is_later] - self._first)
        return overlay

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        is_later = rows >= self._first
        parts = [
            self._base.take(rows[~is_later], columns),
            self._top.take(rows[is_later] - self._first, columns),
        ]
        parts[1] = parts[1].cast(parts[0].schema)
        places = np.argsort(np.argsort(is_later, kind="stable"))
        return pa.concat_tables(parts).take(pa.array(places))

    def write(self, changes: Changes) -> None:
        """Show the state with changes; the store itself does not change."""
        assert isinstance(self._top, Writer)  # not of a state without some rows
        is_later, documents = changes.forgotten >= self._first, changes.documents
        if not is_later.all():
            self._replaced.append(changes.forgotten[~is_later])
            self._base = self._base.without(changes.forgotten[~is_later])
        seen = changes.seen[changes.seen >= self._first] - self._first
        if documents is not None:
            at = documents.schema.get_field_index("row")
            rows = pc.subtract(documents["row"], pa.scalar(self._first, "uint32"))
            documents = documents.set_column(at, documents.schema.field(at), rows)
        forgotten = changes.forgotten[is_later] - self._first
        self._top.write(Changes(documents, changes.entries, seen, changes.seen_at, forgotten))
