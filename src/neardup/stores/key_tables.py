"""Tables of keys that list rows: sorted runs, and a tail of the latest entries.

Appending is cheap: entries go to the tail, which becomes a run when it is long. Runs are merged so
that each has at least twice as many entries as the next, so a lookup visits few of them. A view
stays as it is while entries are appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Rows, Uint16s, Uint32s, Words
from neardup.candidates.lookups import Found
from neardup.errors import StoreError
from neardup.stores.damage import damaged

GROWTH = 2
"""The least ratio of the sizes of a run and the next. Of 47 equal runs each is written four times;
with 4, six.
"""
MAX_ENTRIES = 2**32 - 1
"""Entries of a table in one run: cells count in 32 bits."""
ALL = 2**62
"""A limit that no bucket reaches."""
_TAIL_ENTRIES = 512  # of a table, scanned in a quarter of a microsecond
_MANY_LOOKUPS, _MANY_ENTRIES = 1024, 1 << 22  # of tables that do not fit the caches of a processor
_ENTRIES_A_CELL_BITS, _MAX_CELL_BITS = 3, 24


class KeyEntries(NamedTuple):
    """Keys of rows in tables. table : uint16, key : uint64, row : uint32 (num_entries,), rows not
    falling.
    """

    table: Uint16s
    key: Words
    row: Uint32s


class SortedTable(NamedTuple):
    """Entries of one table by key, then row.

    keys : uint64, rows : uint32 (num_entries,). starts : uint32, where each cell begins, the end
    last; cell c has the keys whose bits above `shift` are c.
    """

    keys: Words
    rows: Uint32s
    starts: Uint32s
    shift: int


@dataclass(frozen=True, eq=False)
class KeyRun:
    """Entries of all tables of the rows from `first` to `stop`. name : of the file that contains
    them, if any.
    """

    first: int
    stop: int
    tables: tuple[SortedTable, ...]
    name: str | None = None

    @property
    def num_entries(self) -> int:
        """The number of entries in all tables."""
        return sum(len(table.keys) for table in self.tables)

    @property
    def num_bytes(self) -> int:
        """The size of the arrays."""
        return sum(array.nbytes for table in self.tables for array in table[:3])


class KeyView(NamedTuple):
    """The entries at one moment. runs : keep alive the memory that `parts` points to."""

    prefix_bits: Rows
    max_distance: int
    parts: kernels.key_tables.Parts
    tail: kernels.key_tables.Tail
    runs: tuple[KeyRun, ...]

    def find(
        self, table: Uint16s, key: Words, limit: int, states: kernels.key_tables.States
    ) -> Found:
        """Return the rows in the buckets of keys, as `Snapshot.find` defines it.

        Parameters
        ----------
        table, key : of each lookup.
        limit : the greatest number of rows of one key.
        states : bits of all rows.

        Raises
        ------
        StoreError
            If a part that is needed is damaged.
        """
        if (
            len(key) < _MANY_LOOKUPS
            or self.parts.fields[:, kernels.key_tables.SIZE].sum() < _MANY_ENTRIES
        ):
            return self._find(table, key, limit, states)
        # In the order of the tables: neighbours share pages, which takes two thirds of the time.
        order = np.lexsort((key, table))
        found = self._find(table[order], key[order], limit, states)
        entry = order[found.entry]
        back = np.argsort(entry, kind="stable")
        truncated = np.empty_like(found.truncated)
        truncated[order] = found.truncated
        return Found(entry[back], found.row[back], found.kept[back], truncated)

    def _find(
        self, table: Uint16s, key: Words, limit: int, states: kernels.key_tables.States
    ) -> Found:
        rules = (self.prefix_bits, self.max_distance, limit)
        found = kernels.key_tables.find_rows(table, key, *self.parts, *self.tail, *rules, *states)
        if found[-1] >= 0:
            places = [
                run
                for i in range(len(self.prefix_bits))
                for run in self.runs
                if len(run.tables[i].keys)
            ]
            raise damaged_keys(places[found[-1]].name)
        return Found(*found[:-1])

    def tables(self, limit: int) -> kernels.key_tables.Tables:
        """Return the tables as kernels read them, of which as many rows of one key are found as
        `limit`.
        """
        rules = kernels.key_tables.Rules(self.prefix_bits, self.max_distance, limit)
        return kernels.key_tables.Tables(self.parts, self.tail, rules)


class KeyTables:
    """Growing tables of keys. Not for use by several threads at once, except for the views.

    Attributes
    ----------
    runs : by rows, without gaps. first : the first row of the tail. stop : the row after the last.
    """

    def __init__(self, prefix_bits: Sequence[int], max_distance: int) -> None:
        self.prefix_bits = np.array(prefix_bits, np.int64)
        self.max_distance = max_distance
        self.runs: list[KeyRun] = []
        self.first = self.stop = 0
        self._parts: kernels.key_tables.Parts | None = None
        self._merged: KeyRun | None = None  # the last run when runs were merged
        self._sizes: Rows
        self._clear_tail()

    def restore(self, runs: Sequence[KeyRun], stop: int) -> None:
        """Begin with runs that cover the rows below `stop`."""
        self.runs, self.first, self.stop, self._parts = list(runs), stop, stop, None

    def append(self, entries: KeyEntries, stop: int) -> None:
        """Append the entries of the rows below `stop` that have none yet."""
        counts = np.bincount(entries.table, minlength=len(self.prefix_bits))
        if (self._sizes + counts).max(initial=0) <= _TAIL_ENTRIES:
            cursors = self._sizes + np.arange(len(counts)) * _TAIL_ENTRIES
            kernels.key_tables.split_tables(
                *entries, cursors, self._keys.reshape(-1), self._rows.reshape(-1)
            )
            self._sizes = self._sizes + counts  # views have the array
        else:
            self._end_run(entries, stop)
        self.stop = stop

    def append_columns(self, keys: Words, rows: Uint32s, stop: int) -> None:
        """Append rows below `stop` that have no entries yet and a key in every table, as all have
        that came before.

        Parameters
        ----------
        keys : (num_tables, num_rows), sorted in place where they become a run.
        rows : their rows, rising.
        stop : the row after the last; those left out have no entries.
        """
        if self._sizes.max(initial=0) + len(rows) > _TAIL_ENTRIES:
            self.seal_tail()
        if len(rows) <= _TAIL_ENTRIES:
            begin = int(self._sizes[0])
            self._keys[:, begin : begin + len(rows)] = keys
            self._rows[:, begin : begin + len(rows)] = rows
            self._sizes, self.stop = self._sizes + len(rows), stop  # views have the array of sizes
            return
        tables = tuple(
            sort_table(keys[i], rows.copy(), bits)
            for i, bits in enumerate(self.prefix_bits.tolist())
        )
        self.runs.append(KeyRun(self.first, stop, tables))
        self.first, self.stop, self._parts = stop, stop, None

    def append_run(self, run: KeyRun) -> None:
        """Append the entries of the next rows. Requires: the tail is sealed."""
        self.runs.append(run)
        self.first = self.stop = run.stop
        self._parts = None

    def seal_tail(self) -> None:
        """Make the tail a run, if rows are in it."""
        if self.first < self.stop:
            none = KeyEntries(
                np.empty(0, np.uint16), np.empty(0, np.uint64), np.empty(0, np.uint32)
            )
            self._end_run(none, self.stop)

    def _end_run(self, entries: KeyEntries, stop: int) -> None:
        """Make a run of the tail, and of the entries of the rows below `stop` after it."""
        self.runs.append(sort_entries(entries, self.prefix_bits, self.first, stop, self._tail()))
        self.first, self._parts = stop, None
        self._clear_tail()

    def merge_latest(self, forgotten: Words, least_row: int) -> None:
        """Merge the latest runs as the ratio of sizes demands, none that begins before
        `least_row`.
        """
        if not self.runs or self.runs[-1] is self._merged:
            return
        free = [run.name is None and run.first >= least_row for run in self.runs]
        sizes = [run.num_entries if free[i] else MAX_ENTRIES for i, run in enumerate(self.runs)]
        begin = first_to_merge(sizes)
        if len(self.runs) - begin > 1:
            self.replace(merge_runs(self.runs[begin:], self.prefix_bits, forgotten))
        self._merged = self.runs[-1]

    def replace(self, run: KeyRun) -> None:
        """Put a run instead of those whose rows it covers."""
        inside = [
            i for i, old in enumerate(self.runs) if run.first <= old.first and old.stop <= run.stop
        ]
        self.runs[inside[0] : inside[-1] + 1] = [run]
        self._parts = None

    @property
    def tail_bytes(self) -> int:
        """The size of the arrays of the tail."""
        return self._keys.nbytes + self._rows.nbytes

    def view(self) -> KeyView:
        """Return the entries of this moment."""
        if self._parts is None:
            self._parts = parts_of(self.runs, len(self.prefix_bits))
        return KeyView(
            self.prefix_bits, self.max_distance, self._parts, self._tail(), tuple(self.runs)
        )

    def _tail(self) -> kernels.key_tables.Tail:
        return kernels.key_tables.Tail(self._keys, self._rows, self._sizes)

    def _clear_tail(self) -> None:
        """Begin a tail in new arrays, since views may have the old ones."""
        shape = (len(self.prefix_bits), _TAIL_ENTRIES)
        self._keys, self._rows = np.empty(shape, np.uint64), np.empty(shape, np.uint32)
        self._sizes = np.zeros(shape[0], np.int64)


def first_to_merge(sizes: Sequence[int], most: int = MAX_ENTRIES) -> int:
    """Return the first of the runs that are merged with the last, by their sizes; the last alone if
    none is.

    most : the greatest size of what is merged.
    """
    begin, total = len(sizes) - 1, sum(sizes[-1:])
    while begin > 0 and sizes[begin - 1] < GROWTH * total and sizes[begin - 1] + total <= most:
        begin -= 1
        total += sizes[begin]
    return begin


def sort_entries(
    entries: KeyEntries,
    prefix_bits: Rows,
    first: int,
    stop: int,
    tail: kernels.key_tables.Tail | None = None,
) -> KeyRun:
    """Return the entries of the rows from `first` to `stop` as a run.

    Parameters
    ----------
    entries : of the later rows, or all.
    prefix_bits : of each table.
    first, stop : the rows of the run.
    tail : the entries of earlier rows.
    """
    counts = np.bincount(entries.table, minlength=len(prefix_bits))
    earlier = np.zeros(len(prefix_bits), np.int64) if tail is None else tail.sizes
    ends = np.cumsum(counts + earlier)
    begins = ends - counts - earlier
    keys, rows = np.empty(ends[-1], np.uint64), np.empty(ends[-1], np.uint32)
    if tail is not None:
        for table, size in enumerate(earlier):
            keys[begins[table] : begins[table] + size] = tail.keys[table, :size]
            rows[begins[table] : begins[table] + size] = tail.rows[table, :size]
    kernels.key_tables.split_tables(*entries, begins + earlier, keys, rows)
    places = zip(begins, ends, prefix_bits.tolist(), strict=True)
    return KeyRun(
        first,
        stop,
        tuple(sort_table(keys[begin:end], rows[begin:end], bits) for begin, end, bits in places),
    )


def sort_table(keys: Words, rows: Uint32s, prefix_bits: int) -> SortedTable:
    """Return entries as a sorted table; keys and rows are sorted in place."""
    kernels.key_tables.sort_entries(keys, rows)
    return with_cells(keys, rows, prefix_bits)


def merge_runs(runs: Sequence[KeyRun], prefix_bits: Rows, forgotten: Words) -> KeyRun:
    """Return adjacent runs as one in memory, without the entries of forgotten rows."""
    parts = parts_of(runs, len(prefix_bits))
    tables = []
    for table, bits in enumerate(prefix_bits):
        fields = parts.fields[parts.ends[table] : parts.ends[table + 1]]
        size = int(fields[:, kernels.key_tables.SIZE].sum())
        keys, rows = np.empty(size, np.uint64), np.empty(size, np.uint32)
        used = kernels.key_tables.merge_parts(
            fields, np.zeros(len(fields), np.int64), forgotten, keys, rows
        )
        tables.append(with_cells(keys[:used], rows[:used], int(bits)))
    return KeyRun(runs[0].first, runs[-1].stop, tuple(tables))


def choose_shift(size: int, prefix_bits: int) -> int:
    """Return the bits of a key below its cell, for so many entries: about six in a cell, or one
    bucket or more.
    """
    bits = min(max(1, size.bit_length() - _ENTRIES_A_CELL_BITS), _MAX_CELL_BITS)
    return 64 - max(1, min(bits, prefix_bits))


def with_cells(keys: Words, rows: Uint32s, prefix_bits: int) -> SortedTable:
    shift = choose_shift(len(keys), prefix_bits)
    counts = np.zeros((1 << (64 - shift)) + 1, np.uint32)
    kernels.key_tables.count_cells(keys, shift, counts)
    return SortedTable(keys, rows, np.cumsum(counts, dtype=np.uint32), shift)


def parts_of(runs: Sequence[KeyRun], num_tables: int) -> kernels.key_tables.Parts:
    """Return where the tables of runs lie; those without entries are left out."""
    fields, ends = [], [0]
    for table in range(num_tables):
        for run in runs:
            keys, rows, starts, shift = run.tables[table]
            if len(keys):
                addresses = keys.ctypes.data, rows.ctypes.data, starts.ctypes.data
                fields.append((*addresses, shift, len(keys), run.first, run.stop))
        ends.append(len(fields))
    return kernels.key_tables.Parts(
        np.array(fields, np.int64).reshape(-1, 7), np.array(ends, np.int64)
    )


def damaged_keys(name: str | None) -> StoreError:
    """Return the error of a file of keys that a kernel could not follow."""
    return damaged(
        name or "of keys",
        "an entry is outside of its table, or names a row that is not in the file",
    )
