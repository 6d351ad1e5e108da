"""The rows of a store as a process has them: tables of keys, documents, bits of rows; and views of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import arrow_of, view_strings, writable
from neardup.schemas import KEPT
from neardup.stores.base import Changes, Counts, Entries, Found, Layout, Rows, Run, Snapshot, check_changes
from neardup.stores.chunks import Chunk, bits_at
from neardup.stores.documents import Documents, DocumentsView, Seen, Sketched, add_seen, seen_at
from neardup.stores.key_tables import ALL, KeyEntries, KeyRun, KeyTables, KeyView, merge_runs

if TYPE_CHECKING:
    from neardup.kernels.key_tables import States

_MOST_COPIES = 64
"""Members of one content that are looked at: only `add` makes more than one, and all of these are kept."""
Bits = npt.NDArray[np.uint64]


class State:
    """The rows of a store, changed by one thread at a time.

    The last two tables of `keys` find rows by the hash of the id, and members by the first half of their content.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.num_rows = 0
        self.keys = KeyTables((*layout.prefix_bits, 64, 64), layout.max_distance)
        self.documents = Documents()
        self.kept, self.forgotten = np.zeros(16, np.uint64), np.zeros(16, np.uint64)
        self.num_kept = self.num_removed = 0  # without those forgotten
        self.least_row = 0  # rows from here on are in memory only
        self._viewed = False  # whether views have `forgotten`

    def apply(self, changes: Changes) -> None:
        """Apply the changes of rows. Requires: they were checked by `check`."""
        seen = None
        if len(changes.seen):
            seen = seen_at(changes.seen, np.full(len(changes.seen), changes.seen_at, np.int64))
        self.apply_all(changes.documents, changes.entries, seen, changes.forgotten)

    def apply_all(
        self, documents: pa.Table | None, entries: Entries | None, seen: Seen | None, forgotten: Rows
    ) -> None:
        """Apply several changes as one: documents and their entries, times, rows to forget."""
        if documents is not None and len(documents):
            stop = self.num_rows + len(documents)
            self.keys.append(self.entries_of(documents, entries, self.num_rows), stop)
            self.documents.append(documents, self.num_rows, self.least_row)
            self.count_rows(documents.column("state").to_numpy() == KEPT)
            self.keys.merge_latest(self.forgotten, self.least_row)
        if seen is not None and len(seen.rows):
            self.documents.seen = add_seen(self.documents.seen, seen)
        if len(forgotten):
            self.forget(forgotten)

    def append_files(self, kept: npt.NDArray[np.bool_], run: KeyRun, chunk: Chunk) -> None:
        """Append documents that are in files. Requires: all earlier ones are."""
        self.keys.append_run(run)
        self.documents.chunks.append(chunk)
        self.count_rows(kept)
        self.least_row = self.num_rows

    def restore(
        self, runs: Sequence[KeyRun], chunks: Sequence[Chunk], seen: Sequence[Seen], kept: Bits, forgotten: Bits
    ) -> None:
        """Begin with what files contain.

        Parameters
        ----------
        runs : of all rows, without gaps.
        chunks : the documents of all rows.
        seen : times, the latest last.
        kept, forgotten : bits of all rows.
        """
        self.num_rows = self.least_row = runs[-1].stop if runs else 0
        self.keys.restore(runs, self.num_rows)
        self.documents.restore(chunks, seen)
        self.kept, self.forgotten = lengthen(kept, self.num_rows), lengthen(forgotten, self.num_rows)
        self.num_kept = int(kernels.key_tables.count_bits(self.kept & ~self.forgotten))
        self.num_removed = self.num_rows - int(kernels.key_tables.count_bits(self.forgotten)) - self.num_kept

    def check(self, changes: Changes) -> None:
        """Raise StoreError if there are too many rows, ValueError if the changes break the rules of `Changes`."""
        check_changes(changes, self.num_rows, self.documents.schema)

    def entries_of(self, documents: pa.Table, entries: Entries | None, first: int) -> KeyEntries:
        """Return the entries of new documents in all tables; first : the row of the first."""
        size, num_tables = len(documents), len(self.layout.prefix_bits)
        members = documents.column("member").to_numpy().nonzero()[0]
        stop = size + len(members)
        total = stop + (0 if entries is None else len(entries.key))
        found = KeyEntries(np.empty(total, np.uint16), np.empty(total, np.uint64), np.empty(total, np.int64))
        found.table[:size], found.table[size:stop] = num_tables, num_tables + 1
        found.key[:size] = hash_ids(documents.column("id"))
        found.key[size:stop] = contents_of(documents.column("content"))[members, 0]
        found.row[:size], found.row[size:stop] = np.arange(size), members
        if entries is not None:
            found.table[stop:], found.key[stop:], found.row[stop:] = entries.table, entries.key, entries.document
        return found._replace(row=(found.row + first).astype(np.uint32))

    def count_rows(self, kept: npt.NDArray[np.bool_]) -> None:
        """Take account of new documents: their number, and which were kept."""
        first, self.num_rows = self.num_rows, self.num_rows + len(kept)
        self.kept = lengthen(self.kept, self.num_rows)
        longer = lengthen(self.forgotten, self.num_rows)
        self._viewed &= longer is self.forgotten
        self.forgotten = longer
        kernels.key_tables.set_bits(self.kept, first + np.flatnonzero(kept))
        num_kept = int(kept.sum())
        self.num_kept += num_kept
        self.num_removed += len(kept) - num_kept

    def forget(self, rows: Rows) -> None:
        """Forget rows; views do not change."""
        if self._viewed:
            self.forgotten, self._viewed = self.forgotten.copy(), False
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

    def view(self, runs: Callable[[], list[Run]], staged: Callable[[str], Iterator[pa.Table]]) -> View:
        """Return the rows of this moment. runs, staged : answer the methods of that name."""
        self._viewed = True
        states = kernels.key_tables.States(self.forgotten, self.kept)
        counts = Counts(self.num_kept, self.num_removed)
        return View(self.num_rows, self.keys.view(), self.documents.view(), states, counts, runs, staged)


@dataclass(frozen=True, eq=False)
class View(Snapshot):
    """The rows of a store at one moment. May be used by several threads at once."""

    rows: int
    keys: KeyView
    documents: DocumentsView
    states: States
    counts: Counts
    list_runs: Callable[[], list[Run]]
    read_staged: Callable[[str], Iterator[pa.Table]]

    @property
    def num_rows(self) -> int:
        """The number of rows ever written."""
        return self.rows

    def find(self, lookups: Entries, limit: int) -> Found:
        """Return the rows in the buckets of keys."""
        return Found(*self.keys.find(writable(lookups.table), writable(lookups.key), limit, self.states))

    def rows_of_ids(self, ids: pa.Array) -> Rows:
        """Return the row of each id; -1 if there is none."""
        number, row = self._find_equal(len(self.keys.prefix_bits) - 2, hash_ids(ids))
        result = np.full(len(ids), -1, np.int64)
        if len(row):
            stored = self.documents.take(row, ["id"]).column("id")
            same = pc.equal(stored, ids.take(arrow_of(number))).to_numpy()
            result[number[same]] = row[same]
        return result

    def rows_of_contents(self, contents: npt.NDArray[np.uint64]) -> Rows:
        """Return the earliest kept row that is a member and has the content; else the earliest removed one; else -1."""
        keys = np.ascontiguousarray(contents[:, 0])
        number, row = self._find_equal(len(self.keys.prefix_bits) - 1, keys, _MOST_COPIES)
        result = np.full(len(contents), -1, np.int64)
        if len(row):
            stored = contents_of(self.documents.take(row, ["content"]).column("content"))
            same = (stored == contents[number]).all(axis=1)
            number, row = number[same], row[same]
            last = np.lexsort((-row, bits_at(self.states.kept, row), number))  # of equal numbers, the last is assigned
            result[number[last]] = row[last]
        return result

    def without(self, rows: Rows) -> View:
        """Return the state as if some rows had been forgotten."""
        forgotten = self.states.forgotten.copy()
        kernels.key_tables.set_bits(forgotten, rows)
        return replace(self, states=self.states._replace(forgotten=forgotten))

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        """Return columns of some rows, in this order."""
        return self.documents.take(writable(np.asarray(rows), np.int64), columns)

    def take_sketched(
        self, rows: Rows, details: Sequence[str], columns: Sequence[str]
    ) -> tuple[Sketched, list[pa.Array]]:
        """Return the features of some rows that comparisons read, and columns."""
        return self.documents.take_sketched(writable(np.asarray(rows), np.int64), details, columns)

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of all rows in their order."""
        return self.documents.scan(columns, self.states.forgotten)

    def count(self) -> Counts:
        """Return the number of documents."""
        return self.counts

    def runs(self) -> list[Run]:
        """Return the open runs, by the time they were opened."""
        return self.list_runs()

    def staged(self, run: str) -> Iterator[pa.Table]:
        """Yield the tables that were staged in an open run."""
        return self.read_staged(run)

    def _find_equal(self, table: int, keys: npt.NDArray[np.uint64], limit: int = ALL) -> tuple[Rows, Rows]:
        """Return the numbers of keys, and the rows that have them, at most `limit` of a key."""
        found = self.keys.find(np.full(len(keys), table, np.uint16), keys, limit, self.states)
        return found.entry, found.row


def hash_ids(ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """Return the keys of ids, large_string."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    data, offsets = view_strings(ids)
    hashes = np.empty(len(ids), np.uint64)
    kernels.strings.hash_strings(data, offsets, hashes)
    return hashes


def contents_of(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """Return a column of binary(16) as uint64 (n, 2)."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    data = column.buffers()[1]
    if data is None or not len(column):
        return np.empty((0, 2), np.uint64)
    return np.frombuffer(data, np.uint64, 2 * len(column), 16 * column.offset).reshape(-1, 2)


def lengthen(bits: Bits, num_rows: int) -> Bits:
    """Return bits of so many rows or more, the same array if it is long enough."""
    needed = (num_rows >> 6) + 1
    if needed <= len(bits):
        return bits
    longer = np.zeros(max(needed, 2 * len(bits)), np.uint64)
    longer[: len(bits)] = bits
    return longer
