"""Stores whose rows are in memory or mapped files of a process, and their snapshots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Mask, Rows, Words, filled, grow, writable
from neardup.candidates.lookups import Entries, Found, Layout
from neardup.schemas import KEPT
from neardup.stores.base import Changes, Counts, Import, Store, Writer, check_changes
from neardup.stores.documents import (
    Chunk,
    Documents,
    DocumentsView,
    Seen,
    Sketched,
    add_seen,
    bits_at,
    seen_at,
)
from neardup.stores.hashed import NUM_HASHED, HashedSnapshot, entries_of
from neardup.stores.key_tables import KeyEntries, KeyRun, KeyTables, KeyView, merge_runs


class RowChanges(NamedTuple):
    """Several changes of rows as one: new documents, their entries, times, rows to forget."""

    batch: pa.RecordBatch | None
    entries: Entries | None
    seen: Seen | None
    forgotten: Rows

    @classmethod
    def of(cls, changes: Changes) -> RowChanges:
        """Return the changes of rows of a change."""
        seen = None
        if len(changes.seen):
            seen = seen_at(changes.seen, changes.seen_at)
        return cls(
            batch=changes.batch,
            entries=changes.entries,
            seen=seen,
            forgotten=changes.forgotten,
        )


class NewRows(NamedTuple):
    """New documents, in the form that a state has.

    entries : in all tables. is_kept : bool (num_documents,).
    """

    batch: pa.RecordBatch
    entries: KeyEntries
    is_kept: Mask


class Prepared(NamedTuple):
    """Changes of rows that are ready for `State.apply`. new : None without documents."""

    new: NewRows | None
    seen: Seen | None
    forgotten: Rows


class State:
    """The rows of a store, changed by one thread at a time.

    Attributes
    ----------
    kept, forgotten : uint64, a bit for each row.
    num_kept, num_removed : without forgotten rows.
    first_in_memory : the first of the rows that no file has.
    """

    def __init__(self, layout: Layout, schema: pa.Schema) -> None:
        self.layout = layout
        self.num_rows = 0
        self.keys = KeyTables((*layout.prefix_bits, *[64] * NUM_HASHED), layout.max_distance)
        self.documents = Documents(schema)
        self.kept = np.zeros(16, np.uint64)
        self.forgotten = np.zeros(16, np.uint64)
        self.num_kept = 0
        self.num_removed = 0
        self.first_in_memory = 0
        self._is_viewed = False  # whether views have the array `forgotten`

    def prepare(self, changes: RowChanges) -> Prepared:
        """Do the work of `apply` that can be done before the changes are on disk.

        Requires: they were checked by `check`.
        """
        new = None
        batch = changes.batch
        if batch is not None:
            new = NewRows(
                batch=batch,
                entries=self.entries_of(batch, changes.entries, self.num_rows),
                is_kept=batch.column("state").to_numpy() == KEPT,
            )
        return Prepared(new=new, seen=changes.seen, forgotten=changes.forgotten)

    def apply(self, prepared: Prepared) -> None:
        """Apply changes of rows. Requires: there was no other change since `prepare`."""
        new = prepared.new
        if new is not None:
            # `num_rows` is the row of the first new document until `count_rows` changes it.
            self.keys.append(new.entries, self.num_rows + new.batch.num_rows)
            self.documents.append(new.batch, self.num_rows, self.first_in_memory)
            self.count_rows(new.is_kept)
            self.keys.merge_latest(self.forgotten, self.first_in_memory)
        if prepared.seen is not None and len(prepared.seen.rows):
            self.documents.seen = add_seen(self.documents.seen, prepared.seen)
        if len(prepared.forgotten):
            self.forget(prepared.forgotten)

    def append_files(self, kept: Mask, run: KeyRun, chunk: Chunk) -> None:
        """Append documents that are in files. Requires: all earlier documents are in files."""
        self.keys.append_run(run)
        self.documents.chunks.append(chunk)
        self.count_rows(kept)
        self.first_in_memory = self.num_rows

    def restore(
        self,
        runs: Sequence[KeyRun],
        chunks: Sequence[Chunk],
        seen: Sequence[Seen],
        *,
        kept: Words,
        forgotten: Words,
    ) -> None:
        """Begin with the contents of files.

        Parameters
        ----------
        runs : of all rows, without gaps.
        chunks : the documents of all rows.
        seen : times, the latest last.
        kept, forgotten : bits of all rows.
        """
        self.num_rows = runs[-1].stop if runs else 0
        self.first_in_memory = self.num_rows
        self.keys.restore(runs, self.num_rows)
        self.documents.restore(chunks, seen)
        self.kept = lengthen(kept, self.num_rows)
        self.forgotten = lengthen(forgotten, self.num_rows)
        num_forgotten = int(kernels.key_tables.count_bits(self.forgotten))
        self.num_kept = int(kernels.key_tables.count_bits(self.kept & ~self.forgotten))
        self.num_removed = self.num_rows - num_forgotten - self.num_kept

    def check(self, changes: Changes) -> None:
        """Raise StoreError if there are too many rows, ValueError if the changes break the rules of
        `Changes`.
        """
        check_changes(changes, self.num_rows, self.documents.schema)

    def entries_of(self, batch: pa.RecordBatch, entries: Entries | None, first: int) -> KeyEntries:
        """Return the entries of new documents in all tables; first : the row of the first."""
        return entries_of(batch, entries, first, len(self.layout.prefix_bits))

    def count_rows(self, kept: Mask) -> None:
        """Count new documents. kept : bool (num_documents,)."""
        first = self.num_rows
        self.num_rows += len(kept)
        # In place, also for views: they read no bits from their number of rows on.
        self.kept = lengthen(self.kept, self.num_rows)
        kernels.key_tables.set_bits(self.kept, first + kept.nonzero()[0])
        forgotten = lengthen(self.forgotten, self.num_rows)
        # A longer array is a copy, which no view has.
        if forgotten is not self.forgotten:
            self.forgotten = forgotten
            self._is_viewed = False
        num_kept = int(np.count_nonzero(kept))
        self.num_kept += num_kept
        self.num_removed += len(kept) - num_kept

    def forget(self, rows: Rows) -> None:
        """Forget rows; views do not change."""
        if self._is_viewed:
            self.forgotten = self.forgotten.copy()
            self._is_viewed = False
        rows = rows[~bits_at(self.forgotten, rows)]
        kernels.key_tables.set_bits(self.forgotten, rows)
        num_kept = int(bits_at(self.kept, rows).sum())
        self.num_kept -= num_kept
        self.num_removed -= len(rows) - num_kept

    def compact(self) -> None:
        """Drop the documents and entries of forgotten rows, and merge all runs."""
        self.keys.seal_tail()
        if self.keys.runs:
            self.keys.replace(merge_runs(self.keys.runs, self.keys.prefix_bits, self.forgotten))
        self.documents.drop(self.forgotten)

    def moment(self) -> Moment:
        """Return the current rows; later changes do not affect the result."""
        self._is_viewed = True
        return Moment(
            num_rows=self.num_rows,
            keys=self.keys.view(),
            documents=self.documents.view(),
            states=kernels.key_tables.States(self.forgotten, self.kept),
            counts=Counts(self.num_kept, self.num_removed),
        )


class Moment(NamedTuple):
    """The rows of a state at one moment."""

    num_rows: int
    keys: KeyView
    documents: DocumentsView
    states: kernels.key_tables.States
    counts: Counts


class StateStore(Store):
    """A store whose rows are in a `State`. Its writers are threads of this process."""

    _latest: View

    def __init__(self, address: str, read_only: bool) -> None:
        super().__init__(address, address, read_only)
        self._writers = RLock()

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Open the latest state."""
        self.require_open()
        self._follow()
        # One attribute that is replaced as a whole, so readers need no lock.
        yield self._latest

    def _follow(self) -> None:
        """Load the latest commits of other processes, if there can be any."""

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Wait for other writers of this process, and open the store."""
        with self._writers:
            self.require_open(for_writing=True)
            yield StateWriter(self)

    @abstractmethod
    def _write_all(self, parts: Iterable[Changes]) -> None:
        """Apply several changes or none, and put the state after them in `_latest`."""

    @abstractmethod
    def _stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        """Append documents to an import, which is opened by the first call."""

    @abstractmethod
    def _list_imports(self) -> list[Import]:
        """Return the open imports, by the time they were opened."""

    @abstractmethod
    def _read_staged(self, import_name: str) -> Iterator[pa.Table]:
        """Yield the tables that were staged in an open import."""


class View(HashedSnapshot):
    """The rows of a store at one moment. May be used by several threads at once."""

    def __init__(self, store: StateStore, moment: Moment) -> None:
        self._store = store
        self.moment = moment

    @property
    def num_rows(self) -> int:
        """The number of rows ever written."""
        return self.moment.num_rows

    def find(self, lookups: Entries, limit: int) -> Found:
        """Return the rows in the buckets of keys."""
        return self.moment.keys.find(
            writable(lookups.table), writable(lookups.key), limit, self.moment.states
        )

    def without(self, rows: Rows) -> View:
        """Return the state without some rows."""
        forgotten = self.moment.states.forgotten.copy()
        kernels.key_tables.set_bits(forgotten, rows)
        states = self.moment.states._replace(forgotten=forgotten)
        return View(self._store, self.moment._replace(states=states))

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        """Return columns of some rows, in this order."""
        return self.moment.documents.take(writable(np.asarray(rows), np.int64), columns)

    def take_sketched(
        self, rows: Rows, details: Sequence[str], columns: Sequence[str]
    ) -> tuple[Sketched, list[pa.Array]]:
        """Return the columns of some rows that comparisons read, and other columns."""
        return self.moment.documents.take_sketched(
            writable(np.asarray(rows), np.int64), details, columns
        )

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of all rows in their order."""
        return self.moment.documents.scan(columns, self.moment.states.forgotten)

    def count(self) -> Counts:
        """Return the number of documents."""
        return self.moment.counts

    def imports(self) -> list[Import]:
        """Return the open imports, by the time they were opened."""
        return self._store._list_imports()

    def staged(self, import_name: str) -> Iterator[pa.Table]:
        """Yield the tables that were staged in an open import."""
        return self._store._read_staged(import_name)

    def _find_equal(self, table: int, keys: Words, limit: int) -> tuple[Rows, Rows]:
        # The tables of hashes come last.
        first_hashed = len(self.moment.keys.prefix_bits) - NUM_HASHED
        tables = filled(len(keys), first_hashed + table, np.uint16)
        found = self.moment.keys.find(tables, keys, limit, self.moment.states)
        return found.entry, found.row

    def are_kept(self, rows: Rows) -> Mask:
        """Return which rows were kept."""
        return bits_at(self.moment.states.kept, rows)


class StateWriter(View, Writer):
    """A writer whose view is the latest one of its store."""

    def __init__(self, store: StateStore) -> None:
        super().__init__(store, store._latest.moment)

    def write_all(self, parts: Iterable[Changes]) -> None:
        """Apply several changes or none."""
        self._store._write_all(parts)
        self.moment = self._store._latest.moment

    def stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        """Append documents to an import, which is opened by the first call."""
        self._store._stage(import_name, opened, documents)


def lengthen(bits: Words, num_rows: int) -> Words:
    """Return bits of `num_rows` rows or more, the same array if it is long enough."""
    return grow(bits, (num_rows >> 6) + 1)
