"""Changes of an index in Redis: one transaction each, which the lock of the writer guards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import Rows, Words, begins_run
from neardup.candidates.entries import Entries
from neardup.kernels import packed_entries
from neardup.schemas import KEPT
from neardup.stores.base import Changes, StoreSettings, Writer, check_changes, join_changes
from neardup.stores.hashed import NUM_HASHED, entries_of
from neardup.stores.packed_rows import encode_table, pack_table
from neardup.stores.redis import scripts
from neardup.stores.redis.connection import Connection
from neardup.stores.redis.lock import WriterLock
from neardup.stores.redis.snapshot import APART, LETTERS, Header, KnownRows, RedisSnapshot

_GROUPS_A_CALL, _ROWS_A_CALL = 50_000, 100_000
_ENTRIES_A_BUCKET = 32
_HEAD = np.dtype([("table", ">u2"), ("level", "u1"), ("number", ">u4"), ("size", ">u4")])
ENTRY = np.dtype([("key", ">u8"), ("row", "<u4")])


def bucket_of(table: Rows, keys: Words, buckets: Rows) -> tuple[Rows, Rows]:
    """Return the level and the number of the bucket of each key; see `scripts`. buckets : by table, how many it has."""
    levels = np.array([count.bit_length() - 1 for count in buckets.tolist()])
    top, level = (keys >> np.uint64(32)).astype(np.int64), levels[table]
    level = level + (top >> (32 - level) < buckets[table] - (1 << level))
    return level, top >> (32 - level)


def group_entries(table: Rows, keys: Words, row: Rows, buckets: Rows) -> Iterator[bytes]:
    """Yield entries for `scripts.ENTER`, some thousand buckets at a time; entries of a bucket stay in their order."""
    level, number = bucket_of(table, keys, buckets)
    order = np.lexsort((number, level, table))
    table, level, number = table[order], level[order], number[order]
    entries = np.empty(len(order), ENTRY)
    entries["key"], entries["row"] = keys[order], row[order]
    begins = np.append(np.flatnonzero(begins_run(table, level, number)), len(order))
    for first in range(0, len(begins) - 1, _GROUPS_A_CALL):
        bounds = begins[first : first + _GROUPS_A_CALL + 1]
        heads = np.empty(len(bounds) - 1, _HEAD)
        heads["table"], heads["level"], heads["number"] = (column[bounds[:-1]] for column in (table, level, number))
        heads["size"] = packed_entries.WIDTH * np.diff(bounds)
        yield _interleave(heads, entries[bounds[0] : bounds[-1]], np.diff(bounds))


def _interleave(heads: npt.NDArray[np.void], entries: npt.NDArray[np.void], sizes: Rows) -> bytes:
    """Return each head and the entries behind it."""
    packed = np.empty(heads.nbytes + entries.nbytes, np.uint8)
    group = np.repeat(np.arange(len(heads)), sizes)
    at = _HEAD.itemsize * (group + 1) + packed_entries.WIDTH * np.arange(len(entries))
    packed[at[:, None] + np.arange(packed_entries.WIDTH)] = entries.view(np.uint8).reshape(-1, packed_entries.WIDTH)
    at = _HEAD.itemsize * np.arange(len(heads)) + packed_entries.WIDTH * (np.cumsum(sizes) - sizes)
    packed[at[:, None] + np.arange(_HEAD.itemsize)] = heads.view(np.uint8).reshape(-1, _HEAD.itemsize)
    return packed.tobytes()


class RedisWriter(RedisSnapshot, Writer):
    """The writer of an index."""

    def __init__(self, connection: Connection, known: KnownRows, settings: StoreSettings, lock: WriterLock) -> None:
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
        for begin in range(0, len(changes.seen), _ROWS_A_CALL):
            rows = changes.seen[begin : begin + _ROWS_A_CALL].astype("<u4")
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
            pipeline.hset(self.connection.key("imports"), import_name.encode(), json.dumps([opened, before + size]))
            if documents is not None:
                pipeline.rpush(self.connection.key(f"import:{import_name}"), encode_table(documents))

    def _still_there(self, rows: Rows) -> Rows:
        """Return those of some rows that were not forgotten before; new rows too."""
        known = rows < min(self.num_rows, len(self.header.forgotten_at))
        gone = np.zeros(len(rows), np.bool_)
        gone[known] = self.header.forgotten_at[rows[known]] < self.header.num_forgotten
        old = rows < self.num_rows
        gone[old] |= self.header.states[rows[old]] == packed_entries.GONE
        return rows[~gone]

    def _add(self, pipeline: Any, documents: pa.Table, entries: Entries | None) -> None:
        """Put new documents and their entries in the transaction."""
        key, first = self.connection.key, self.num_rows
        packed = pack_table(documents.drop_columns(list(APART)), compact=True)
        data, offsets = memoryview(packed.data.tobytes()), packed.offsets.tolist()
        for begin, end in chunks(first, documents.num_rows, scripts.DOCUMENTS_A_LIST):
            values = [data[offsets[i] : offsets[i + 1]] for i in range(begin - first, end - first)]
            pipeline.rpush(key(f"d{begin // scripts.DOCUMENTS_A_LIST}"), *values)
        times = memoryview(documents.column("last_seen").cast(pa.int64()).to_numpy().tobytes())
        for begin, end in chunks(first, documents.num_rows, scripts.TIMES_A_STRING):
            name = key(f"s{begin // scripts.TIMES_A_STRING}")
            pipeline.setrange(
                name, 8 * (begin % scripts.TIMES_A_STRING), times[8 * (begin - first) : 8 * (end - first)]
            )
        for column_name, letter in LETTERS.items():
            column = documents.column(column_name)
            apart = {
                key(f"{letter}{first + i}"): value
                for i, value in enumerate(column.to_pylist() if column.null_count < len(column) else [])
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
    """Yield the begin and end of the parts of a range of rows that lie in one of the pieces of `size` rows."""
    begin, last = first, first + number
    while begin < last:
        end = min(last, (begin // size + 1) * size)
        yield begin, end
        begin = end
