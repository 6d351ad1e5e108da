"""States of an index in Redis: what a client knows of its rows, reads of a snapshot, changes of the
writer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Mask, Rows, Uint16s, Uint32s, Words, begins_run, grow, rank_in_run
from neardup.candidates.lookups import Entries, Found
from neardup.errors import StoreError
from neardup.schemas import KEPT
from neardup.stores.base import (
    Changes,
    Counts,
    Import,
    StoreSettings,
    Writer,
    check_changes,
    join_changes,
)
from neardup.stores.hashed import NUM_HASHED, HashedSnapshot, entries_of
from neardup.stores.packed_rows import decode_table, encode_table, pack_table, unpack_table
from neardup.stores.redis import scripts
from neardup.stores.redis.connection import Connection, WriterLock

LETTERS = {"features": "f", "tags": "g", "text": "x"}
"""Columns with a key of their own for each row that has a value; the others are packed together."""
APART = ("row", "last_seen", *LETTERS)
_ROWS_A_CALL, _LARGE_ROWS_A_CALL = 4_000, 200
_FIRST_BYTES, _GROWTH = kernels.packed_entries.WIDTH * 1024, 16
_ALL_BYTES = 2**40
_NEVER = 2**32 - 1
_GROUPS_A_CALL, _SEEN_A_CALL, _ENTRIES_A_BUCKET = 50_000, 100_000, 32
_HEAD = np.dtype([("table", ">u2"), ("level", "u1"), ("number", ">u4"), ("size", ">u4")])
ENTRY = np.dtype([("key", ">u8"), ("row", "<u4")])


class Header(NamedTuple):
    """The state of an index at one moment.

    states, forgotten_at, num_rows, num_forgotten : as in `kernels.packed_entries.Alive`. dropped :
    how many of the forgotten rows have no entries and documents any more. counts : of the rows that
    were not forgotten. buckets, entries : int64, how many there are, by table of keys.
    """

    states: Bytes
    forgotten_at: Uint32s
    num_rows: int
    num_forgotten: int
    dropped: int
    counts: Counts
    buckets: Rows
    entries: Rows


class KnownRows:
    """Rows as far as this client has read them: five bytes each at most. May be used by several
    threads at once.

    States are appended and never change, and each forgotten row is noted with its number, so that a
    snapshot goes on to see the rows of its moment.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()
        self._made, self._id = 0, b""
        self._forget_all(0)

    def read(self) -> Header:
        """Return the latest state, in one round trip as a rule."""
        while True:
            with self._lock:
                made = self._connection.made
                if made != self._made:
                    self._forget_all(0)
                    self._made = made
                known, forgotten = self._num_rows, self._num_forgotten
            answer = self._connection.run(scripts.STATE, known, forgotten)
            if self._connection.made == made:
                return self._take_answer(answer, known, forgotten)

    def _take_answer(self, answer: list[bytes] | None, known: int, forgotten: int) -> Header:
        """Return the state in the answer of `scripts.STATE` to a client that knew so much."""
        if answer is None or answer[10] != (self._id or answer[10]):
            shown = self._connection.address.shown
            raise StoreError(
                f"The index is gone: {shown}, keys neardup:{self._connection.address.name}:*. It "
                "was there when it was opened. Restore the server's files from a backup, or open "
                "the index again if another has its name now."
            )
        self._id = answer[10]
        num_rows, num_forgotten, dropping, dropped, kept, removed = (
            int(number) for number in answer[:6]
        )
        states, rows = np.frombuffer(answer[7], np.uint8), np.frombuffer(answer[8], "<u4")
        with self._lock:
            if forgotten < dropped:  # some that are not known were dropped, so all was read
                self._forget_all(dropped)
                known, forgotten = 0, dropped
            self._learn(states, known, rows, forgotten)
            states, forgotten_at = self._states, self._forgotten_at
        buckets = np.frombuffer(answer[6], ">u4").astype(np.int64)
        entries = np.frombuffer(answer[9], "<u8").astype(np.int64)
        return Header(
            states,
            forgotten_at,
            num_rows,
            num_forgotten,
            dropping,
            Counts(kept, removed),
            buckets,
            entries,
        )

    def _forget_all(self, dropped: int) -> None:
        """Know nothing but that so many rows were dropped. Snapshots keep their arrays."""
        self._states, self._forgotten_at = np.empty(0, np.uint8), np.empty(0, np.uint32)
        self._num_rows, self._num_forgotten = 0, dropped

    def _learn(self, states: Bytes, known: int, rows: Uint32s, forgotten: int) -> None:
        """Note the states from row `known` on, and the rows that were forgotten after so many."""
        new = states[self._num_rows - known :] if self._num_rows >= known else states[:0]
        if len(new):
            end = self._num_rows + len(new)
            self._states = grow(self._states, end)
            self._states[self._num_rows : end] = new
            self._num_rows = end
        later = (
            rows[self._num_forgotten - forgotten :]
            if self._num_forgotten >= forgotten
            else rows[:0]
        )
        if len(later):
            if len(self._forgotten_at) < self._num_rows:
                grown = np.full(len(self._states), _NEVER, np.uint32)
                grown[: len(self._forgotten_at)] = self._forgotten_at
                self._forgotten_at = grown
            self._forgotten_at[later] = self._num_forgotten + np.arange(len(later))
            self._num_forgotten += len(later)


def alive_of(header: Header) -> kernels.packed_entries.Alive:
    """Return the rows of a state for kernels."""
    return kernels.packed_entries.Alive(
        header.states, header.forgotten_at, header.num_rows, header.num_forgotten
    )


class RedisSnapshot(HashedSnapshot):
    """The rows of one moment. Entries and documents are read when they are needed; later ones are
    ignored.
    """

    def __init__(self, connection: Connection, header: Header, settings: StoreSettings) -> None:
        self.connection, self._header, self.settings = connection, header, settings

    @property
    def header(self) -> Header:
        """The state of the index that is read."""
        return self._header

    @property
    def num_rows(self) -> int:
        return self.header.num_rows

    def find(self, lookups: Entries, limit: int) -> Found:
        lookup, key, row = self._matches(lookups.table, lookups.key, limit)
        order = np.lexsort((row, key, lookup))
        lookup, key, row = lookup[order], key[order], row[order]
        listed = rank_in_run(lookup, key) < limit
        truncated = np.zeros(len(lookups.key), np.bool_)
        truncated[lookup[~listed]] = True
        lookup, row = lookup[listed], row[listed]
        order = np.lexsort((row, lookup))
        lookup, row = lookup[order], row[order]
        return Found(lookup, row, self.are_kept(row), truncated)

    def without(self, rows: Rows) -> RedisSnapshot:
        states = self.header.states.copy()
        states[rows] = kernels.packed_entries.GONE
        return RedisSnapshot(self.connection, self.header._replace(states=states), self.settings)

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        schema = self.settings.schema
        wanted = pa.schema([schema.field(name) for name in columns])
        size = _rows_a_call(columns)
        parts = [self._take(rows[i : i + size], wanted, schema) for i in range(0, len(rows), size)]
        return pa.concat_tables(parts) if parts else wanted.empty_table()

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        rows, begin, alive = np.empty(_rows_a_call(columns), np.int64), 0, alive_of(self.header)
        while begin < self.num_rows:
            number, begin = kernels.packed_entries.list_alive(begin, alive, rows)
            if number:
                yield self.take(rows[:number], columns)

    def count(self) -> Counts:
        return self.header.counts

    def imports(self) -> list[Import]:
        found = self.connection.call("HGETALL", self.connection.key("imports"))
        imports = [Import(name.decode(), *json.loads(value)) for name, value in found.items()]
        return sorted(imports, key=lambda staged: (staged.opened, staged.name))

    def staged(self, import_name: str) -> Iterator[pa.Table]:
        number, name = 0, self.connection.key(f"import:{import_name}")
        while (data := self.connection.call("LINDEX", name, number)) is not None:
            yield decode_table(data)
            number += 1

    def _find_equal(self, table: int, keys: Words, limit: int) -> tuple[Rows, Rows]:
        number = len(self.settings.layout.prefix_bits) + table
        lookup, _, row = self._matches(np.full(len(keys), number, np.uint16), keys, limit)
        return lookup, row

    def are_kept(self, rows: Rows) -> Mask:
        kept: Mask = self.header.states[rows] == KEPT
        return kept

    def _matches(self, table: Uint16s, key: Words, limit: int) -> tuple[Rows, Words, Rows]:
        """Return the lookup, the key and the row of each entry that is wanted; of equal keys, more
        than `limit` or all.

        A bucket lists rows in their order, so of equal keys its beginning is enough where one of
        them is very common.
        """
        bits = np.array([*self.settings.layout.prefix_bits, *[64] * NUM_HASHED])[table]
        equal = (bits == 64) | (self.settings.layout.max_distance == 0)
        same = np.where(
            equal,
            np.uint64(2**64 - 1),
            ~((np.uint64(1) << (64 - np.maximum(bits, 1)).astype("u8")) - 1),
        )
        same[(bits == 0) & ~equal] = 0
        parts = []
        for chosen in (np.flatnonzero(~equal), np.flatnonzero(equal)):
            begin, size = 0, _FIRST_BYTES if len(chosen) and equal[chosen[0]] else _ALL_BYTES
            hits = np.zeros(len(table), np.int64)
            while len(chosen):
                sizes, data = self._fetch(table[chosen], key[chosen], begin, size)
                found = self._match(data, sizes, key[chosen], same[chosen])
                parts.append((chosen[found[0]], *found[1:]))
                hits += np.bincount(parts[-1][0], minlength=len(table))
                begin, size, more = begin + size, size * _GROWTH, sizes == size
                chosen = chosen[more & (hits[chosen] <= limit)]
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64)
        lookup, keys, rows = (np.concatenate(part) for part in zip(*parts, strict=True))
        return lookup, keys, rows

    def _match(self, data: Bytes, sizes: Rows, key: Words, same: Words) -> tuple[Rows, Words, Rows]:
        size = len(data) // kernels.packed_entries.WIDTH
        found = np.empty(size, np.int64), np.empty(size, np.uint64), np.empty(size, np.int64)
        lookups = kernels.packed_entries.Lookups(key, same, self.settings.layout.max_distance)
        entries = sizes // kernels.packed_entries.WIDTH
        number = kernels.packed_entries.match(data, entries, lookups, alive_of(self.header), *found)
        return found[0][:number], found[1][:number], found[2][:number]

    def _fetch(self, table: Uint16s, key: Words, begin: int, size: int) -> tuple[Rows, Bytes]:
        """Return bytes of the buckets of keys, and how many each has."""
        lookups = np.empty(len(key), [("table", ">u2"), ("top", ">u4")])
        lookups["table"], lookups["top"] = table, key >> np.uint64(32)
        dropping, sizes, data = self.connection.run(scripts.FETCH, lookups.tobytes(), begin, size)
        if int(dropping) > self.header.num_forgotten:
            raise self._outdated()
        return np.frombuffer(sizes, "<u4").astype(np.int64), np.frombuffer(data, np.uint8)

    def _take(self, rows: Rows, wanted: pa.Schema, schema: pa.Schema) -> pa.Table:
        """Return columns of rows in one round trip."""
        packed_fields = [field for field in schema if field.name not in APART]
        packed = rows.astype("<u4").tobytes()
        names = [name for name in wanted.names if name not in APART]
        apart = [name for name in wanted.names if name in LETTERS]
        key = self.connection.key
        with self.connection.our_errors():
            pipeline = self.connection.client.pipeline(transaction=False)
            if names:
                pipeline.eval(scripts.DOCUMENTS, 1, self.connection.prefix, packed)
            if "last_seen" in wanted.names:
                pipeline.eval(scripts.TIMES, 1, self.connection.prefix, packed)
            for name in apart:
                pipeline.mget([key(f"{LETTERS[name]}{row}") for row in rows.tolist()])
            answers = iter(pipeline.execute())
        columns = {"row": pa.array(rows, "uint32")}
        if names:
            table = self._unpack(next(answers), len(rows), packed_fields, names)
            columns |= dict(zip(names, table.columns, strict=True))
        if "last_seen" in wanted.names:
            kind = wanted.field("last_seen").type
            columns["last_seen"] = pa.Array.from_buffers(
                kind, len(rows), [None, pa.py_buffer(next(answers))]
            )
        columns |= {name: pa.array(next(answers), wanted.field(name).type) for name in apart}
        return pa.Table.from_arrays([columns[name] for name in wanted.names], schema=wanted)

    def _unpack(
        self, data: bytes | int, num_rows: int, fields: list[pa.Field], names: list[str]
    ) -> pa.Table:
        if isinstance(data, int):
            dropping = int(self.connection.call("HGET", self.connection.key("state"), "dropping"))
            outdated = dropping > self.header.num_forgotten
            raise self._outdated() if outdated else self._damaged(f"row {data} has no document")
        try:
            return unpack_table(np.frombuffer(data, np.uint8), num_rows, fields, True, names)
        except ValueError as error:
            raise self._damaged(str(error)) from error

    def _outdated(self) -> StoreError:
        return StoreError(
            f"The index was compacted while it was read: {self.connection.address.shown}, a state "
            f"with {self.header.num_forgotten} forgotten rows. A state that is read must be later "
            "than the last compaction. Repeat the call."
        )

    def _damaged(self, what: str) -> StoreError:
        return StoreError(
            f"The index is damaged at {self.connection.address.shown}: {what}. Each row that "
            "was not forgotten has a "
            "document. Run `neardup index verify`, and restore the server's files from a backup."
        )


def _rows_a_call(columns: Sequence[str]) -> int:
    return _LARGE_ROWS_A_CALL if LETTERS.keys() & set(columns) else _ROWS_A_CALL


def bucket_of(table: Rows, keys: Words, buckets: Rows) -> tuple[Rows, Rows]:
    """Return the level and the number of the bucket of each key; see `scripts`. buckets : by table,
    how many it has.
    """
    levels = np.array([count.bit_length() - 1 for count in buckets.tolist()])
    top, level = (keys >> np.uint64(32)).astype(np.int64), levels[table]
    level = level + (top >> (32 - level) < buckets[table] - (1 << level))
    return level, top >> (32 - level)


def group_entries(table: Rows, keys: Words, row: Rows, buckets: Rows) -> Iterator[bytes]:
    """Yield entries for `scripts.ENTER`, some thousand buckets at a time; entries of a bucket stay
    in their order.
    """
    level, number = bucket_of(table, keys, buckets)
    order = np.lexsort((number, level, table))
    table, level, number = table[order], level[order], number[order]
    entries = np.empty(len(order), ENTRY)
    entries["key"], entries["row"] = keys[order], row[order]
    begins = np.append(np.flatnonzero(begins_run(table, level, number)), len(order))
    for first in range(0, len(begins) - 1, _GROUPS_A_CALL):
        bounds = begins[first : first + _GROUPS_A_CALL + 1]
        heads = np.empty(len(bounds) - 1, _HEAD)
        heads["table"], heads["level"], heads["number"] = (
            column[bounds[:-1]] for column in (table, level, number)
        )
        heads["size"] = ENTRY.itemsize * np.diff(bounds)
        yield _interleave(heads, entries[bounds[0] : bounds[-1]], np.diff(bounds))


def _interleave(heads: npt.NDArray[np.void], entries: npt.NDArray[np.void], sizes: Rows) -> bytes:
    """Return each head and the entries behind it."""
    packed = np.empty(heads.nbytes + entries.nbytes, np.uint8)
    group = np.repeat(np.arange(len(heads)), sizes)
    at = _HEAD.itemsize * (group + 1) + ENTRY.itemsize * np.arange(len(entries))
    packed[at[:, None] + np.arange(ENTRY.itemsize)] = entries.view(np.uint8).reshape(
        -1, ENTRY.itemsize
    )
    at = _HEAD.itemsize * np.arange(len(heads)) + ENTRY.itemsize * (np.cumsum(sizes) - sizes)
    packed[at[:, None] + np.arange(_HEAD.itemsize)] = heads.view(np.uint8).reshape(
        -1, _HEAD.itemsize
    )
    return packed.tobytes()


class RedisWriter(RedisSnapshot, Writer):
    """The writer of an index."""

    def __init__(
        self, connection: Connection, known: KnownRows, settings: StoreSettings, lock: WriterLock
    ) -> None:
        super().__init__(connection, known.read(), settings)
        self._known, self._lock, self._outdated_header = known, lock, False

    @property
    def header(self) -> Header:
        """The latest state, read again when it is needed after a change."""
        if self._outdated_header:
            self._header, self._outdated_header = self._known.read(), False
        return self._header

    def write_all(self, parts: Iterable[Changes]) -> None:
        changes = join_changes(parts)
        check_changes(changes, self.num_rows, self.settings.schema)
        size = 0 if changes.entries is None else len(changes.entries.key)
        try:
            with self._lock.guarded(size) as pipeline:
                self._write(pipeline, changes)
        finally:  # also if the connection breaks before the answer
            self._outdated_header = True

    def _write(self, pipeline: Any, changes: Changes) -> None:
        """Put changes in the transaction."""
        documents, header, key = changes.documents, self.header, self.connection.key
        added = 0 if documents is None else documents.num_rows
        counts, states = np.array(header.counts), header.states[: header.num_rows]
        if documents is not None and added:
            new = documents.column("state").to_numpy()
            self._add(pipeline, documents, changes.entries)
            pipeline.append(key("states"), new.tobytes())
            counts += (new == KEPT).sum(), (new != KEPT).sum()
            states = np.concatenate([states, new])
        time = np.int64(changes.seen_at).tobytes()
        for begin in range(0, len(changes.seen), _SEEN_A_CALL):
            rows = changes.seen[begin : begin + _SEEN_A_CALL].astype("<u4")
            self._eval(pipeline, scripts.SEE, rows.tobytes(), time)
        forgotten = self._still_there(changes.forgotten)
        if len(forgotten):
            pipeline.append(key("forgotten"), forgotten.astype("<u4").tobytes())
            kept = int((states[forgotten] == KEPT).sum())
            counts -= kept, len(forgotten) - kept
        if changes.ended_import is not None:
            pipeline.delete(key(f"import:{changes.ended_import}"))
            pipeline.hdel(key("imports"), changes.ended_import.encode())
        state = {
            "rows": header.num_rows + added,
            "forgotten": header.num_forgotten + len(forgotten),
            "kept": int(counts[0]),
            "removed": int(counts[1]),
        }
        pipeline.hset(key("state"), mapping=state)

    def stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        found = self.connection.call("HGET", self.connection.key("imports"), import_name.encode())
        opened, before = (opened, 0) if found is None else json.loads(found)
        size = 0 if documents is None else documents.num_rows
        with self._lock.guarded() as pipeline:
            pipeline.hset(
                self.connection.key("imports"),
                import_name.encode(),
                json.dumps([opened, before + size]),
            )
            if documents is not None:
                pipeline.rpush(
                    self.connection.key(f"import:{import_name}"), encode_table(documents)
                )

    def _still_there(self, rows: Rows) -> Rows:
        """Return those of some rows that were not forgotten before; new rows too."""
        known = rows < min(self.num_rows, len(self.header.forgotten_at))
        gone = np.zeros(len(rows), np.bool_)
        gone[known] = self.header.forgotten_at[rows[known]] < self.header.num_forgotten
        old = rows < self.num_rows
        gone[old] |= self.header.states[rows[old]] == kernels.packed_entries.GONE
        return rows[~gone]

    def _add(self, pipeline: Any, documents: pa.Table, entries: Entries | None) -> None:
        """Put new documents and their entries in the transaction."""
        key, first = self.connection.key, self.num_rows
        packed = pack_table(documents.drop_columns(list(APART)), compact=True)
        data, offsets = memoryview(packed.data.tobytes()), packed.offsets.tolist()
        for begin, end in chunks(first, documents.num_rows, scripts.DOCUMENTS_A_LIST):
            values = [data[offsets[i] : offsets[i + 1]] for i in range(begin - first, end - first)]
            pipeline.rpush(key(f"d{begin // scripts.DOCUMENTS_A_LIST}"), *values)
        times = memoryview(documents.column("last_seen").cast("int64").to_numpy().tobytes())
        for begin, end in chunks(first, documents.num_rows, scripts.TIMES_A_STRING):
            number, place = divmod(begin, scripts.TIMES_A_STRING)
            pipeline.setrange(
                key(f"s{number}"), 8 * place, times[8 * (begin - first) : 8 * (end - first)]
            )
        for column_name, letter in LETTERS.items():
            column = documents.column(column_name)
            apart = {
                key(f"{letter}{first + i}"): value
                for i, value in enumerate(
                    column.to_pylist() if column.null_count < len(column) else []
                )
                if value is not None
            }
            if apart:
                pipeline.mset(apart)
        self._enter(pipeline, documents, entries)

    def _enter(self, pipeline: Any, documents: pa.Table, entries: Entries | None) -> None:
        """Put the entries of new documents in the transaction: of keys, ids and contents."""
        num_tables = len(self.settings.layout.prefix_bits)
        table, keys, row = entries_of(documents, entries, self.num_rows, num_tables)
        buckets = self._grow(pipeline, np.bincount(table, minlength=num_tables + NUM_HASHED))
        for packed in group_entries(table.astype(np.int64), keys, row.astype(np.int64), buckets):
            self._eval(pipeline, scripts.ENTER, packed)

    def _grow(self, pipeline: Any, added: Rows) -> Rows:
        """Split buckets so that they stay short; return the number of buckets of each table."""
        before = self.header.buckets
        bits = np.minimum([*self.settings.layout.prefix_bits, *[64] * NUM_HASHED], 31)
        entries = self.header.entries + added
        after: Rows = np.maximum(np.minimum(entries // _ENTRIES_A_BUCKET, 2**bits), before)
        for table in np.flatnonzero(after > before).tolist():
            self._eval(pipeline, scripts.SPLIT, table, int(before[table]), int(after[table]))
        pipeline.set(self.connection.key("buckets"), after.astype(">u4").tobytes())
        pipeline.hset(self.connection.key("state"), "entries", entries.astype("<u8").tobytes())
        return after

    def _eval(self, pipeline: Any, script: str, *arguments: Any) -> None:
        pipeline.eval(script, 1, self.connection.prefix, *arguments)


def chunks(first: int, number: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of the parts of a range of rows that lie in one of the pieces of
    `size` rows.
    """
    begin, last = first, first + number
    while begin < last:
        end = min(last, (begin // size + 1) * size)
        yield begin, end
        begin = end
