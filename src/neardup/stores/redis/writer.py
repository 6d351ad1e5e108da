"""Changes of an index in Redis, each one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Rows
from neardup.candidates.lookups import Entries
from neardup.schemas import KEPT
from neardup.stores.base import Changes, StoreSettings, Writer, check_changes, join_changes
from neardup.stores.documents import as_batch
from neardup.stores.hashed import entries_of
from neardup.stores.packed_rows import encode_table, pack_table
from neardup.stores.redis import scripts
from neardup.stores.redis.buckets import group_entries
from neardup.stores.redis.connection import Connection, WriterLock
from neardup.stores.redis.known_rows import Header, KnownRows
from neardup.stores.redis.snapshot import APART, LETTERS, RedisSnapshot

_SEEN_PER_CALL = 100_000  # rows in one call of a script: an argument of 400 kB
_ENTRIES_PER_BUCKET = 32  # average size at which buckets are split: 384 bytes


class RedisWriter(RedisSnapshot, Writer):
    """The writer of an index."""

    def __init__(
        self, connection: Connection, known: KnownRows, settings: StoreSettings, lock: WriterLock
    ) -> None:
        super().__init__(connection, known.read(), settings)
        self._known = known
        self._lock = lock
        self._is_outdated = False

    @property
    def header(self) -> Header:
        """The latest state, read again when it is needed after a change."""
        if self._is_outdated:
            self._header = self._known.read()
            self._is_outdated = False
        return self._header

    def write_all(self, parts: Iterable[Changes]) -> None:
        changes = join_changes(parts)
        check_changes(changes, self.num_rows, self.settings.schema)
        num_entries = 0 if changes.entries is None else len(changes.entries.key)
        try:
            with self._lock.guarded(num_entries) as pipeline:
                self._write(pipeline, changes)
        finally:  # also if the connection breaks before the answer
            self._is_outdated = True

    def stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        key = self.connection.key
        name = import_name.encode()
        # Read before the transaction: the lock excludes other writers.
        found = self.connection.call("HGET", key("imports"), name)
        num_documents = 0
        if found is not None:
            # An import was opened when it was first staged.
            opened, num_documents = json.loads(found)
        if documents is not None:
            num_documents += documents.num_rows
        with self._lock.guarded() as pipeline:
            pipeline.hset(key("imports"), name, json.dumps([opened, num_documents]))
            if documents is not None:
                pipeline.rpush(key(f"import:{import_name}"), encode_table(documents))

    def _write(self, pipeline: Any, changes: Changes) -> None:
        """Put changes in the transaction."""
        header = self.header
        states = header.states[: header.num_rows]
        if changes.documents is not None and len(changes.documents):
            new_states = changes.documents.column("state").to_numpy()
            self._put_documents(pipeline, changes.documents, changes.entries)
            pipeline.append(self.connection.key("states"), new_states.tobytes())
            states = np.concatenate([states, new_states])
        self._put_seen(pipeline, changes)
        forgotten = self._without_forgotten(changes.forgotten)
        if len(forgotten):
            packed = forgotten.astype("<u4").tobytes()
            pipeline.append(self.connection.key("forgotten"), packed)
        if changes.ended_import is not None:
            pipeline.delete(self.connection.key(f"import:{changes.ended_import}"))
            pipeline.hdel(self.connection.key("imports"), changes.ended_import.encode())
        self._put_counts(pipeline, states, forgotten)

    def _put_counts(self, pipeline: Any, states: Bytes, forgotten: Rows) -> None:
        """Put the new counts in the transaction.

        states : uint8, the state of each row, new rows included.
        """
        header = self.header
        added = states[header.num_rows :]
        kept_change = _count_kept(added) - _count_kept(states[forgotten])
        state = {
            "rows": len(states),
            "forgotten": header.num_forgotten + len(forgotten),
            "kept": header.counts.kept + kept_change,
            "removed": header.counts.removed + len(added) - len(forgotten) - kept_change,
        }
        pipeline.hset(self.connection.key("state"), mapping=state)

    def _put_seen(self, pipeline: Any, changes: Changes) -> None:
        """Put the `last_seen` of rows that were seen again in the transaction."""
        time = np.int64(changes.seen_at).tobytes()
        for begin in range(0, len(changes.seen), _SEEN_PER_CALL):
            rows = changes.seen[begin : begin + _SEEN_PER_CALL].astype("<u4")
            self._eval(pipeline, scripts.SEE, rows.tobytes(), time)

    def _without_forgotten(self, rows: Rows) -> Rows:
        """Return rows, also new ones, without the rows that are forgotten already."""
        header = self.header
        is_gone = np.zeros(len(rows), np.bool_)
        # A forgotten row has its number in `forgotten_at`, or the state GONE if it was dropped
        # before this client read the state of the index.
        has_number = rows < min(header.num_rows, len(header.forgotten_at))
        is_gone[has_number] = header.forgotten_at[rows[has_number]] < header.num_forgotten
        is_old = rows < header.num_rows
        is_gone[is_old] |= header.states[rows[is_old]] == kernels.packed_entries.GONE
        return rows[~is_gone]

    def _put_documents(self, pipeline: Any, documents: pa.Table, entries: Entries | None) -> None:
        """Put new documents and their entries in the transaction."""
        self._put_packed(pipeline, documents.drop_columns(list(APART)))
        self._put_first_seen(pipeline, documents)
        for name, letter in LETTERS.items():
            column = documents.column(name)
            if column.null_count < len(column):
                values = {
                    self.connection.key(f"{letter}{row}"): value
                    for row, value in enumerate(column.to_pylist(), self.num_rows)
                    if value is not None
                }
                pipeline.mset(values)
        self._put_entries(pipeline, documents, entries)

    def _put_packed(self, pipeline: Any, documents: pa.Table) -> None:
        """Put packed documents in the transaction, in lists of DOCUMENTS_PER_LIST rows."""
        packed = pack_table(documents, compact=True)
        data = memoryview(packed.data.tobytes())
        offsets = packed.offsets.tolist()
        first = self.num_rows
        for begin, end in _split(first, len(documents), scripts.DOCUMENTS_PER_LIST):
            values = [data[offsets[i] : offsets[i + 1]] for i in range(begin - first, end - first)]
            name = f"d{begin // scripts.DOCUMENTS_PER_LIST}"
            pipeline.rpush(self.connection.key(name), *values)

    def _put_first_seen(self, pipeline: Any, documents: pa.Table) -> None:
        """Put the `last_seen` of new documents in the transaction, in strings of TIMES_PER_STRING
        rows.
        """
        times = documents.column("last_seen").cast("int64").to_numpy()
        first = self.num_rows
        for begin, end in _split(first, len(documents), scripts.TIMES_PER_STRING):
            number, index = divmod(begin, scripts.TIMES_PER_STRING)
            data = times[begin - first : end - first].tobytes()
            pipeline.setrange(self.connection.key(f"s{number}"), times.itemsize * index, data)

    def _put_entries(self, pipeline: Any, documents: pa.Table, entries: Entries | None) -> None:
        """Put the entries of new documents in the transaction: keys, ids and contents."""
        num_tables = len(self.settings.layout.prefix_bits)
        entered = entries_of(as_batch(documents), entries, self.num_rows, num_tables)
        table = entered.table.astype(np.int64)
        # The transaction splits first, because entries are packed for the new buckets.
        num_buckets = self._split_buckets(pipeline, table)
        row = entered.row.astype(np.int64)
        for packed in group_entries(table, entered.key, row, num_buckets):
            self._eval(pipeline, scripts.ENTER, packed)

    def _split_buckets(self, pipeline: Any, table: Rows) -> Rows:
        """Split buckets so that they stay short; return the number of buckets of each table.

        table : int64, the table of each new entry.
        """
        before = self.header.buckets
        entries = self.header.entries + np.bincount(table, minlength=len(before))
        # A bucket must contain all keys of a prefix, so there are no more buckets than prefixes.
        # The scripts use the upper 32 bits of keys.
        max_buckets = 2 ** np.minimum(self.prefix_bits, 31)
        wanted = np.minimum(entries // _ENTRIES_PER_BUCKET, max_buckets)
        after: Rows = np.maximum(wanted, before)
        for number in np.flatnonzero(after > before).tolist():
            self._eval(pipeline, scripts.SPLIT, number, int(before[number]), int(after[number]))
        pipeline.set(self.connection.key("buckets"), after.astype(">u4").tobytes())
        pipeline.hset(self.connection.key("state"), "entries", entries.astype("<u8").tobytes())
        return after

    def _eval(self, pipeline: Any, script: str, *arguments: Any) -> None:
        """Put the call of a script in the transaction; its only key is the prefix of the index."""
        pipeline.eval(script, 1, self.connection.prefix, *arguments)


def _count_kept(states: Bytes) -> int:
    """Return the number of kept documents."""
    return int((states == KEPT).sum())


def _split(first: int, num_rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of parts of `num_rows` rows, split at the multiples of `size`."""
    begin = first
    stop = first + num_rows
    while begin < stop:
        end = min(stop, (begin // size + 1) * size)
        yield begin, end
        begin = end
