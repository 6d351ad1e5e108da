"""Tables of keys that list rows: sorted runs, and a tail of the latest entries.

Appending is cheap: entries go to the tail, which becomes a run when it is long. Runs are merged so
that each has at least twice as many entries as the next, so a lookup visits few of them. A view
stays as it is while entries are appended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Rows, Uint16s, Uint32s, Words
from neardup.candidates.lookups import Found
from neardup.errors import StoreError
from neardup.stores.damage import damaged

GROWTH = 2
"""The minimum ratio of the sizes of a run and the next. With 2, merging 47 equal runs writes each
entry four times; with 4, six times.
"""
MAX_ENTRIES = 2**32 - 1
"""Entries of a table in one run: cells count in 32 bits."""
ALL = 2**62
"""A limit that no bucket reaches."""
_TAIL_ENTRIES = 512  # of a table, scanned in a quarter of a microsecond
_MANY_LOOKUPS = 1024
_MANY_ENTRIES = 1 << 22  # of tables that do not fit the caches of a processor
_ENTRIES_PER_CELL_BITS = 3
# The starts of 2^24 cells take 64 MiB.
_MAX_CELL_BITS = 24


class KeyEntries(NamedTuple):
    """Keys of rows in tables, ordered by row.

    table : uint16, key : uint64, row : uint32 (num_entries,).
    """

    table: Uint16s
    key: Words
    row: Uint32s


class SortedTable(NamedTuple):
    """Entries of one table by key, then row.

    keys : uint64, rows : uint32 (num_entries,). starts : uint32 (num_cells + 1,). Cell c has the
    entries from starts[c] to starts[c + 1]: the keys with key >> shift == c.
    """

    keys: Words
    rows: Uint32s
    starts: Uint32s
    shift: int


@dataclass(frozen=True, eq=False)
class KeyRun:
    """Entries of the rows from `first` to `stop` in all tables.

    name : of the file that contains them, if any.
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
        return sum(
            table.keys.nbytes + table.rows.nbytes + table.starts.nbytes for table in self.tables
        )


class KeyView(NamedTuple):
    """The entries at one moment. runs : owners of the memory that `parts` points to."""

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
        limit : the maximum number of rows per key.
        states : bits of all rows.

        Raises
        ------
        StoreError
            If a part that is needed is damaged.
        """
        if len(key) < _MANY_LOOKUPS or self._num_entries < _MANY_ENTRIES:
            return self._find(table, key, limit, states)
        # Lookups in the order of the tables: neighbours share pages, which saves a third of the
        # time.
        order = np.lexsort((key, table))
        found = self._find(table[order], key[order], limit, states)
        entry = order[found.entry]
        # Back to the order of the lookups; a stable sort keeps the rows of a lookup in order.
        by_entry = np.argsort(entry, kind="stable")
        truncated = np.empty_like(found.truncated)
        truncated[order] = found.truncated
        return Found(entry[by_entry], found.row[by_entry], found.kept[by_entry], truncated)

    @property
    def _num_entries(self) -> int:
        """The number of entries in all runs."""
        return int(self.parts.fields[:, kernels.key_tables.SIZE].sum())

    def _find(
        self, table: Uint16s, key: Words, limit: int, states: kernels.key_tables.States
    ) -> Found:
        rules = (self.prefix_bits, self.max_distance, limit)
        *found, damaged_part = kernels.key_tables.find_rows(
            table, key, *self.parts, *self.tail, *rules, *states
        )
        if damaged_part >= 0:
            runs = [run for run, _ in _tables_with_entries(self.runs, len(self.prefix_bits))]
            raise damaged_keys(runs[damaged_part].name)
        return Found(*found)

    def tables(self, limit: int) -> kernels.key_tables.Tables:
        """Return the view for kernels; lookups return at most `limit` rows per key."""
        rules = kernels.key_tables.Rules(self.prefix_bits, self.max_distance, limit)
        return kernels.key_tables.Tables(self.parts, self.tail, rules)


class KeyTables:
    """Growing tables of keys. Only views may be used by several threads at once.

    Attributes
    ----------
    runs : by rows, without gaps.
    first : the first row of the tail.
    stop : the row after the last.
    """

    def __init__(self, prefix_bits: Sequence[int], max_distance: int) -> None:
        self.prefix_bits = np.array(prefix_bits, np.int64)
        self.max_distance = max_distance
        self.runs: list[KeyRun] = []
        self.first = 0
        self.stop = 0
        self._parts: kernels.key_tables.Parts | None = None  # of `runs`, built by `view`
        self._merged: KeyRun | None = None  # the last run at the latest merge
        self._sizes: Rows
        self._clear_tail()

    def restore(self, runs: Sequence[KeyRun], stop: int) -> None:
        """Begin with runs that cover the rows below `stop`."""
        self.runs = list(runs)
        self.first = stop
        self.stop = stop
        self._parts = None

    def append(self, entries: KeyEntries, stop: int) -> None:
        """Append the entries of the rows below `stop` that have none yet."""
        sizes = self._sizes.copy()  # because views have the old array
        if kernels.key_tables.append_entries(*entries, sizes, self._keys, self._rows):
            self._sizes = sizes
        else:
            self._end_run(entries, stop)
        self.stop = stop

    def append_columns(self, keys: Words, rows: Uint32s, stop: int) -> None:
        """Append rows that have a key in every table, as all rows before them have.

        Parameters
        ----------
        keys : uint64 (num_tables, num_rows); sorted in place if they become a run.
        rows : uint32 (num_rows,), the row of each key, rising.
        stop : the row after the last; a row below it that is not listed has no entries.
        """
        if self._sizes.max(initial=0) + len(rows) > _TAIL_ENTRIES:
            self.seal_tail()
        if len(rows) > _TAIL_ENTRIES:
            self._append_sorted(keys, rows, stop)
            return
        begin = int(self._sizes[0])
        end = begin + len(rows)
        self._keys[:, begin:end] = keys
        self._rows[:, begin:end] = rows
        self._sizes = self._sizes + len(rows)  # a new array, because views have the old one
        self.stop = stop

    def _append_sorted(self, keys: Words, rows: Uint32s, stop: int) -> None:
        """Append a run of all columns. Requires: the tail is sealed."""
        tables = tuple(
            # A copy of the rows, because each table sorts its arrays in place.
            sort_table(keys[table], rows.copy(), bits)
            for table, bits in enumerate(self.prefix_bits.tolist())
        )
        self.append_run(KeyRun(self.first, stop, tables))

    def append_run(self, run: KeyRun) -> None:
        """Append the entries of the next rows. Requires: the tail is sealed."""
        self.runs.append(run)
        self.first = run.stop
        self.stop = run.stop
        self._parts = None

    def seal_tail(self) -> None:
        """Make a run of the tail, if it has rows."""
        if self.first < self.stop:
            no_entries = KeyEntries(
                table=np.empty(0, np.uint16), key=np.empty(0, np.uint64), row=np.empty(0, np.uint32)
            )
            self._end_run(no_entries, self.stop)

    def _end_run(self, entries: KeyEntries, stop: int) -> None:
        """Make a run of the tail and of later entries, whose rows are below `stop`."""
        self.runs.append(sort_entries(entries, self.prefix_bits, self.first, stop, self._tail()))
        self.first = stop
        self._parts = None
        self._clear_tail()

    def merge_latest(self, forgotten: Words, min_row: int) -> None:
        """Merge the latest runs as `GROWTH` requires, but none that begins before `min_row`."""
        # Nothing has become a run since the latest merge.
        if not self.runs or self.runs[-1] is self._merged:
            return
        # A run in a file, or before `min_row`, is too large to be merged.
        sizes = [
            run.num_entries if run.name is None and run.first >= min_row else MAX_ENTRIES
            for run in self.runs
        ]
        begin = first_to_merge(sizes)
        if len(self.runs) - begin > 1:
            self.replace(merge_runs(self.runs[begin:], self.prefix_bits, forgotten))
        self._merged = self.runs[-1]

    def replace(self, run: KeyRun) -> None:
        """Replace the runs whose rows a run covers by this run."""
        covered = [
            i for i, old in enumerate(self.runs) if run.first <= old.first and old.stop <= run.stop
        ]
        self.runs[covered[0] : covered[-1] + 1] = [run]
        self._parts = None

    @property
    def tail_bytes(self) -> int:
        """The size of the arrays of the tail."""
        return self._keys.nbytes + self._rows.nbytes

    def view(self) -> KeyView:
        """Return the current entries; later changes do not affect the view."""
        if self._parts is None:
            self._parts = parts_of(self.runs, len(self.prefix_bits))
        return KeyView(
            self.prefix_bits, self.max_distance, self._parts, self._tail(), tuple(self.runs)
        )

    def _tail(self) -> kernels.key_tables.Tail:
        return kernels.key_tables.Tail(self._keys, self._rows, self._sizes)

    def _clear_tail(self) -> None:
        """Begin a tail in new arrays, because views may have the old ones."""
        num_tables = len(self.prefix_bits)
        self._keys = np.empty((num_tables, _TAIL_ENTRIES), np.uint64)
        self._rows = np.empty((num_tables, _TAIL_ENTRIES), np.uint32)
        self._sizes = np.zeros(num_tables, np.int64)


def first_to_merge(sizes: Sequence[int], max_size: int = MAX_ENTRIES) -> int:
    """Return the first of the runs to merge with the last one; the last one if there is none.

    sizes : of all runs. max_size : of the merged run.
    """
    begin = len(sizes) - 1
    total = sum(sizes[-1:])
    while begin > 0:
        size = sizes[begin - 1]
        if size >= GROWTH * total or size + total > max_size:
            break
        begin -= 1
        total += size
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
    entries : of the rows after the tail, or of all rows.
    prefix_bits : of each table.
    first, stop : the rows of the run.
    tail : the entries of earlier rows.
    """
    num_tables = len(prefix_bits)
    tail_sizes = np.zeros(num_tables, np.int64) if tail is None else tail.sizes
    sizes = tail_sizes + np.bincount(entries.table, minlength=num_tables)

    # The entries of all tables lie in one array: table by table, the tail before the new entries.
    ends = np.cumsum(sizes)
    begins = ends - sizes
    keys = np.empty(ends[-1], np.uint64)
    rows = np.empty(ends[-1], np.uint32)
    if tail is not None:
        _copy_tail(tail, begins, keys, rows)
    kernels.key_tables.split_tables(*entries, begins + tail_sizes, keys, rows)

    tables = tuple(
        sort_table(keys[begin:end], rows[begin:end], bits)
        for begin, end, bits in zip(begins, ends, prefix_bits.tolist(), strict=True)
    )
    return KeyRun(first, stop, tables)


def _copy_tail(tail: kernels.key_tables.Tail, begins: Rows, keys: Words, rows: Uint32s) -> None:
    """Copy the entries of each table to `keys` and `rows`, from its begin on."""
    for table, size in enumerate(tail.sizes):
        copied = slice(begins[table], begins[table] + size)
        keys[copied] = tail.keys[table, :size]
        rows[copied] = tail.rows[table, :size]


def sort_table(keys: Words, rows: Uint32s, prefix_bits: int) -> SortedTable:
    """Return entries as a sorted table; keys and rows are sorted in place."""
    kernels.key_tables.sort_entries(keys, rows)
    return with_cells(keys, rows, prefix_bits)


def merge_runs(runs: Sequence[KeyRun], prefix_bits: Rows, forgotten: Words) -> KeyRun:
    """Return adjacent runs as one in memory, without the entries of forgotten rows."""
    parts = parts_of(runs, len(prefix_bits))
    tables = []
    for table, bits in enumerate(prefix_bits.tolist()):
        fields = parts_of_table(parts, table)
        max_size = int(fields[:, kernels.key_tables.SIZE].sum())
        keys = np.empty(max_size, np.uint64)
        rows = np.empty(max_size, np.uint32)
        cursors = np.zeros(len(fields), np.int64)
        size = kernels.key_tables.merge_parts(fields, cursors, forgotten, keys, rows)
        tables.append(with_cells(keys[:size], rows[:size], bits))
    return KeyRun(runs[0].first, runs[-1].stop, tuple(tables))


def choose_shift(size: int, prefix_bits: int) -> int:
    """Return the number of bits of a key below its cell, for a table of `size` entries.

    A cell has about six entries, or one bucket or more.
    """
    bits = min(max(1, size.bit_length() - _ENTRIES_PER_CELL_BITS), _MAX_CELL_BITS)
    return 64 - max(1, min(bits, prefix_bits))


def with_cells(keys: Words, rows: Uint32s, prefix_bits: int) -> SortedTable:
    """Return sorted entries as a table, which finds a key by the cell of its upper bits."""
    shift = choose_shift(len(keys), prefix_bits)
    num_cells = 1 << (64 - shift)
    counts = np.zeros(num_cells + 1, np.uint32)
    kernels.key_tables.count_cells(keys, shift, counts)
    return SortedTable(keys, rows, np.cumsum(counts, dtype=np.uint32), shift)


class _Part(NamedTuple):
    """A table of a run for kernels: the fields of `kernels.key_tables`, in their order.

    keys, rows, starts : addresses of the arrays.
    """

    keys: int
    rows: int
    starts: int
    shift: int
    size: int
    first: int
    stop: int


def parts_of(runs: Sequence[KeyRun], num_tables: int) -> kernels.key_tables.Parts:
    """Return the addresses of the tables of runs, without the tables that have no entries."""
    parts = []
    counts = np.zeros(num_tables + 1, np.int64)
    for run, number in _tables_with_entries(runs, num_tables):
        table = run.tables[number]
        part = _Part(
            # Addresses do not keep arrays alive: the runs in `KeyView` do.
            keys=table.keys.ctypes.data,
            rows=table.rows.ctypes.data,
            starts=table.starts.ctypes.data,
            shift=table.shift,
            size=len(table.keys),
            first=run.first,
            stop=run.stop,
        )
        parts.append(part)
        # One place later, so that table t has the parts from ends[t] to ends[t + 1].
        counts[number + 1] += 1
    fields = np.array(parts, np.int64).reshape(-1, len(_Part._fields))
    return kernels.key_tables.Parts(fields, np.cumsum(counts))


def parts_of_table(parts: kernels.key_tables.Parts, table: int) -> Rows:
    """Return the parts of one table, int64 (num_parts, 7)."""
    return parts.fields[parts.ends[table] : parts.ends[table + 1]]


def _tables_with_entries(runs: Sequence[KeyRun], num_tables: int) -> Iterator[tuple[KeyRun, int]]:
    """Yield each run and the number of a table, in the order of `Parts`: by table, then by run."""
    for table in range(num_tables):
        for run in runs:
            if len(run.tables[table].keys):
                yield run, table


def damaged_keys(name: str | None) -> StoreError:
    """Return the error of a file of keys with an invalid entry."""
    return damaged(
        name or "of keys",
        "an entry is outside of its table, or names a row that is not in the file",
    )
