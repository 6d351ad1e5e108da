"""The store of an index in Redis."""

from __future__ import annotations

import random
import secrets
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain

import numpy as np

from neardup.arrays import Mask
from neardup.files import JsonObject
from neardup.stores.base import StoreSettings
from neardup.stores.hashed import NUM_HASHED, check_rows
from neardup.stores.redis import scripts
from neardup.stores.redis.buckets import ENTRY, bucket_name, buckets_of
from neardup.stores.redis.connection import NAMES, Connection, WriterLock, prefix_of, promise_of
from neardup.stores.redis.known_rows import Header, KnownRows
from neardup.stores.redis.snapshot import LETTERS, RedisSnapshot
from neardup.stores.redis.writer import RedisWriter
from neardup.stores.servers import ServerStore

_BUCKETS_PER_CALL = 2_000
_ROWS_PER_CALL = 20_000
_NUM_SAMPLES = 200  # of the keys of each kind, to estimate their memory


class RedisStore(ServerStore):
    """An index under one prefix of keys: redis://user:password@host:port/database?index=NAME;
    rediss:// for TLS; other options of redis-py may follow.
    """

    def _connect(self) -> None:
        self._connection = Connection(self.server_address)
        self._known = KnownRows(self._connection)
        self._lock = WriterLock(self._connection)
        # A function without the store: a bound method would keep the store alive for ever.
        self._finish = weakref.finalize(self, _close, self._connection, self._lock)

    def _create(self, new: StoreSettings, encoded: dict[str, bytes]) -> bool:
        num_tables = len(new.layout.prefix_bits) + NUM_HASHED
        num_buckets = np.ones(num_tables, ">u4").tobytes()
        num_entries = np.zeros(num_tables, "<u8").tobytes()
        index_id = secrets.token_hex(16)
        settings = chain.from_iterable(encoded.items())
        arguments = (num_buckets, num_entries, index_id, self.server_address.name, *settings)
        keys = (self._connection.prefix, NAMES)
        with self._connection.our_errors():
            client = self._connection.client
            return bool(client.eval(scripts.CREATE, len(keys), *keys, *arguments))

    def _stored(self, names: Collection[str]) -> dict[str, bytes]:
        found = self._connection.call("HMGET", self._connection.key("settings"), *names)
        return {name: data for name, data in zip(names, found, strict=True) if data is not None}

    def _drop_setting(self, name: str) -> None:
        self._connection.call("HDEL", self._connection.key("settings"), name)

    def _names(self) -> list[str]:
        names = [name.decode() for name in self._connection.call("SMEMBERS", NAMES)]
        # An index is deleted by its keys, which leaves its name in the set.
        return [
            name for name in names if self._connection.call("EXISTS", prefix_of(name) + b"settings")
        ]

    def _promise(self) -> tuple[bool, str]:
        return promise_of(self._connection)

    @property
    def _deletion(self) -> str:
        pattern = f"'neardup:{self.server_address.name}:*'"
        return f"delete its keys: redis-cli --scan --pattern {pattern} | xargs redis-cli unlink"

    def _backup_command(self, path: str) -> str:
        return f"redis-cli --rdb {path}, which copies all databases of the server."

    @contextmanager
    def reading(self) -> Iterator[RedisSnapshot]:
        self.require_open()
        yield RedisSnapshot(self._connection, self._known.read(), self.settings)

    @contextmanager
    def writing(self) -> Iterator[RedisWriter]:
        self.require_open(for_writing=True)
        with self._lock.held():
            yield RedisWriter(self._connection, self._known, self.settings, self._lock)

    def describe(self) -> JsonObject:
        """Return sizes for `info`. The memory of documents and tables is estimated from samples."""
        connection = self._connection
        with self.reading() as snapshot:
            num_rows = snapshot.num_rows
            num_buckets = snapshot.header.buckets.tolist()
        estimate = partial(_estimate_memory, connection, random.Random(0))
        tables = 0
        for table, count in enumerate(num_buckets):
            tables += estimate(count, partial(bucket_name, table, count))
        documents = estimate(-(-num_rows // scripts.DOCUMENTS_PER_LIST), "d{}".format)
        documents += estimate(-(-num_rows // scripts.TIMES_PER_STRING), "s{}".format)
        for letter in LETTERS.values():
            documents += estimate(num_rows, f"{letter}{{}}".format)
        others = ["settings", "state", "states", "forgotten", "buckets", "imports"]
        with connection.our_errors():
            version = connection.client.info("server")["redis_version"]
            server_bytes = connection.client.info("memory")["used_memory"]
        return {
            "store": "redis",
            "server": version,
            "prefix": connection.prefix.decode(),
            "bytes": documents + tables + _memory_of(connection, others),
            "documents_bytes": documents,
            "tables_bytes": tables,
            "server_bytes": server_bytes,
        }

    def verify(self) -> list[str]:
        """Return a sentence for each damage: entries, documents and counts that do not agree."""
        # A reader could miss entries while a writer splits buckets.
        with self.reading() if self.read_only else self.writing() as snapshot:
            num_states = self._connection.call("STRLEN", self._connection.key("states"))
            if num_states != snapshot.num_rows:
                return [f"There are states of {num_states} rows, but {snapshot.num_rows} rows."]
            tables = range(len(snapshot.header.buckets))
            problems = [problem for table in tables for problem in _check_table(snapshot, table)]
            return [*problems, *check_rows(snapshot)]

    def compact(self) -> None:
        """Drop the entries and documents of forgotten rows, which releases their memory."""
        with self.writing() as writer:
            header = writer.header
            key = self._connection.key("forgotten")
            # An interrupted compaction leaves the list `forgotten`, and is repeated.
            is_complete = header.dropping == header.num_forgotten
            if not is_complete or self._connection.call("EXISTS", key):
                self._drop_forgotten(writer, header)

    def _drop_forgotten(self, writer: RedisWriter, header: Header) -> None:
        key = self._connection.key
        is_gone = np.zeros(header.num_rows, np.bool_)
        forgotten_at = header.forgotten_at[: header.num_rows]
        is_gone[: len(forgotten_at)] = forgotten_at < header.num_forgotten
        # From here on, snapshots that still have these rows are refused.
        with self._lock.guarded() as pipeline:
            pipeline.hset(key("state"), "dropping", header.num_forgotten)
        self._drop_entries(writer, is_gone)
        self._drop_documents(is_gone & (header.states[: header.num_rows] != 0))
        # Last, because until then an interrupted compaction must find the list.
        with self._lock.guarded() as pipeline:
            pipeline.delete(key("forgotten"))
            pipeline.hset(key("state"), "dropped", header.num_forgotten)

    def _drop_entries(self, writer: RedisWriter, is_gone: Mask) -> None:
        key = self._connection.key
        num_entries = writer.header.entries.copy()
        for table in range(len(num_entries)):
            for buckets in _buckets_of(writer, table):
                with self._lock.guarded() as pipeline:
                    for name, value in buckets.items():
                        entries = np.frombuffer(value, ENTRY)
                        left = entries[~is_gone[entries["row"]]]
                        num_entries[table] -= len(entries) - len(left)
                        if not len(left):
                            pipeline.delete(key(name))
                        elif len(left) < len(entries):
                            pipeline.set(key(name), left.tobytes())
                    pipeline.hset(key("state"), "entries", num_entries.astype("<u8").tobytes())

    def _drop_documents(self, is_dropped: Mask) -> None:
        rows = np.flatnonzero(is_dropped).astype("<u4")
        prefix = self._connection.prefix
        for begin in range(0, len(rows), _ROWS_PER_CALL):
            part = rows[begin : begin + _ROWS_PER_CALL]
            with self._lock.guarded() as pipeline:
                pipeline.eval(scripts.DROP, 1, prefix, part.tobytes())

    def close(self) -> None:
        self.closed = True
        self._finish()


def _close(connection: Connection, lock: WriterLock) -> None:
    lock.close()
    connection.close()


def _estimate_memory(
    connection: Connection, generator: random.Random, number: int, name_of: Callable[[int], str]
) -> int:
    """Return the memory of keys, estimated from random samples. name_of : from 0 to `number`."""
    chosen = generator.sample(range(number), min(number, _NUM_SAMPLES))
    return _memory_of(connection, map(name_of, chosen)) * number // max(len(chosen), 1)


def _memory_of(connection: Connection, names: Iterable[str]) -> int:
    """Return the memory of keys; a missing key has none."""
    with connection.our_errors():
        pipeline = connection.client.pipeline(transaction=False)
        for name in names:
            pipeline.memory_usage(connection.key(name), samples=0)
        return int(sum(size or 0 for size in pipeline.execute()))


def _buckets_of(snapshot: RedisSnapshot, table: int) -> Iterator[dict[str, bytes]]:
    """Yield the entries of buckets by name, some thousand at a time; empty buckets are left out."""
    connection = snapshot.connection
    num_buckets = int(snapshot.header.buckets[table])
    for begin in range(0, num_buckets, _BUCKETS_PER_CALL):
        indices = range(begin, min(num_buckets, begin + _BUCKETS_PER_CALL))
        names = [bucket_name(table, num_buckets, index) for index in indices]
        values = connection.call("MGET", *map(connection.key, names))
        yield {name: value for name, value in zip(names, values, strict=True) if value}


def _check_table(snapshot: RedisSnapshot, table: int) -> Iterator[str]:
    """Yield a sentence for each damage of the buckets of a table."""
    num_entries = 0
    for buckets in _buckets_of(snapshot, table):
        cut = [name for name, value in buckets.items() if len(value) % ENTRY.itemsize]
        if cut:
            yield f"The size of the bucket {cut[0]} is no multiple of {ENTRY.itemsize} bytes."
            continue
        name = _find_misplaced(snapshot, table, buckets)
        if name is not None:
            yield (f"The bucket {name} has entries of other buckets, or not in the order of rows.")
        num_entries += sum(map(len, buckets.values())) // ENTRY.itemsize
    if num_entries != snapshot.header.entries[table]:
        yield (
            f"The table {table} has {num_entries} entries, but {snapshot.header.entries[table]} "
            "were written."
        )


def _find_misplaced(snapshot: RedisSnapshot, table: int, buckets: dict[str, bytes]) -> str | None:
    """Return a bucket with an entry of another bucket, or not in the order of rows; None if there
    is none.
    """
    names = list(buckets)
    sizes = [len(value) // ENTRY.itemsize for value in buckets.values()]
    bucket = np.repeat(np.arange(len(sizes)), sizes)  # of each entry
    entries = np.frombuffer(b"".join(buckets.values()), ENTRY)
    rows = entries["row"].astype(np.int64)
    tables = np.full(len(entries), table)
    keys = entries["key"].astype(np.uint64)
    expected = buckets_of(tables, keys, snapshot.header.buckets)
    stored = np.array([name.split(":")[1:] for name in names], np.int64).reshape(-1, 2)
    is_wrong = (np.stack(expected, axis=1) != stored[bucket]).any(axis=1)
    is_wrong[1:] |= (np.diff(bucket) == 0) & (np.diff(rows) < 0)
    return names[bucket[is_wrong][0]] if is_wrong.any() else None


create = RedisStore.create
open = RedisStore
