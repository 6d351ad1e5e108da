"""The index in Redis: how it is created and opened, and its states."""

from __future__ import annotations

import random
import secrets
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain

import numpy as np

from neardup.files import JsonObject
from neardup.stores.base import StoreSettings
from neardup.stores.hashed import NUM_HASHED, check_rows
from neardup.stores.redis import scripts
from neardup.stores.redis.connection import NAMES, Connection, WriterLock, promise_of
from neardup.stores.redis.snapshot import (
    ENTRY,
    LETTERS,
    Header,
    KnownRows,
    RedisSnapshot,
    RedisWriter,
    bucket_of,
)
from neardup.stores.servers import ServerStore

_BUCKETS_A_CALL, _ROWS_A_CALL, _SAMPLES = 2_000, 20_000, 200


class RedisStore(ServerStore):
    """An index under one prefix of keys: redis://user:password@host:port/database?index=NAME;
    rediss:// for TLS; other options of redis-py may follow.
    """

    def _connect(self) -> None:
        self._connection = connection = Connection(self.place)
        self._known, self._lock = KnownRows(connection), WriterLock(connection)
        self._finish = weakref.finalize(self, _close, connection, self._lock)

    def _create(self, new: StoreSettings, encoded: dict[str, bytes]) -> bool:
        num_tables = len(new.layout.prefix_bits) + NUM_HASHED
        buckets, entries = (
            np.ones(num_tables, ">u4").tobytes(),
            np.zeros(num_tables, "<u8").tobytes(),
        )
        arguments = (
            buckets,
            entries,
            secrets.token_hex(16),
            self.place.name,
            *chain.from_iterable(encoded.items()),
        )
        with self._connection.our_errors():
            return bool(
                self._connection.client.eval(
                    scripts.CREATE, 2, self._connection.prefix, NAMES, *arguments
                )
            )

    def _stored(self, names: Collection[str]) -> dict[str, bytes]:
        found = self._connection.call("HMGET", self._connection.key("settings"), *names)
        return {name: data for name, data in zip(names, found, strict=True) if data is not None}

    def _drop_setting(self, name: str) -> None:
        self._connection.call("HDEL", self._connection.key("settings"), name)

    def _names(self) -> list[str]:
        return [name.decode() for name in self._connection.call("SMEMBERS", NAMES)]

    def _promise(self) -> tuple[bool, str]:
        return promise_of(self._connection)

    @property
    def _deletion(self) -> str:
        pattern = f"'neardup:{self.place.name}:*'"
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
        """Return sizes for `info`. Memory is estimated: from some buckets, documents and values,
        chosen at random.
        """
        connection, chance = self._connection, random.Random(0)
        with self.reading() as snapshot:
            num_rows, buckets = snapshot.num_rows, snapshot.header.buckets.tolist()

        def estimate(number: int, name_of: Callable[[int], str]) -> int:
            """Return the memory of so many keys."""
            chosen = chance.sample(range(number), min(number, _SAMPLES))
            return _memory_of(connection, map(name_of, chosen)) * number // max(len(chosen), 1)

        tables = sum(
            estimate(count, partial(_bucket_name, table, count))
            for table, count in enumerate(buckets)
        )
        documents = estimate(-(-num_rows // scripts.DOCUMENTS_A_LIST), "d{}".format)
        documents += estimate(-(-num_rows // scripts.TIMES_A_STRING), "s{}".format)
        documents += sum(estimate(num_rows, f"{letter}{{}}".format) for letter in LETTERS.values())
        rest = _memory_of(
            connection, ["settings", "state", "states", "forgotten", "buckets", "imports"]
        )
        with connection.our_errors():
            server, memory = connection.client.info("server"), connection.client.info("memory")
        return {
            "store": "redis",
            "server": server["redis_version"],
            "prefix": connection.prefix.decode(),
            "bytes": documents + tables + rest,
            "documents_bytes": documents,
            "tables_bytes": tables,
            "server_bytes": memory["used_memory"],
        }

    def verify(self) -> list[str]:
        """Return the damage: entries, documents and counts that do not agree."""
        # Buckets that another writer splits would be missing here and there.
        with self.reading() if self.read_only else self.writing() as snapshot:
            states = self._connection.call("STRLEN", self._connection.key("states"))
            if states != snapshot.num_rows:
                return [f"There are states of {states} rows, but {snapshot.num_rows} rows."]
            tables = range(len(snapshot.header.buckets))
            return [
                *chain.from_iterable(_check_table(snapshot, table) for table in tables),
                *check_rows(snapshot),
            ]

    def compact(self) -> None:
        """Drop the entries and documents of forgotten rows, which gives their memory back."""
        with self.writing() as writer:
            header, key = writer.header, self._connection.key
            if header.dropped != header.num_forgotten or self._connection.call(
                "EXISTS", key("forgotten")
            ):
                self._drop_forgotten(writer, header)

    def _drop_forgotten(self, writer: RedisWriter, header: Header) -> None:
        key, lock = self._connection.key, self._lock
        gone = np.zeros(header.num_rows, np.bool_)
        gone[: len(header.forgotten_at)] = (
            header.forgotten_at[: header.num_rows] < header.num_forgotten
        )
        with (
            lock.guarded() as pipeline
        ):  # from here on, snapshots that still have these rows are refused
            pipeline.hset(key("state"), "dropping", header.num_forgotten)
        entries = header.entries.copy()
        for table in range(len(header.buckets)):
            for names, values in _buckets_of(writer, table):
                with lock.guarded() as pipeline:
                    for name, value in zip(names, values, strict=True):
                        listed = np.frombuffer(value, ENTRY)
                        stays = ~gone[listed["row"]]
                        if not stays.all():
                            entries[table] -= int((~stays).sum())
                            data = listed[stays].tobytes()
                            pipeline.set(key(name), data) if data else pipeline.delete(key(name))
                    pipeline.hset(key("state"), "entries", entries.astype("<u8").tobytes())
        rows = np.flatnonzero(gone & (header.states[: header.num_rows] != 0)).astype("<u4")
        for begin in range(0, len(rows), _ROWS_A_CALL):
            with lock.guarded() as pipeline:
                pipeline.eval(
                    scripts.DROP,
                    1,
                    self._connection.prefix,
                    rows[begin : begin + _ROWS_A_CALL].tobytes(),
                )
        with lock.guarded() as pipeline:
            pipeline.delete(key("forgotten"))
            pipeline.hset(key("state"), "dropped", header.num_forgotten)

    def close(self) -> None:
        self.closed = True
        self._finish()


def _close(connection: Connection, lock: WriterLock) -> None:
    lock.close()
    connection.close()


def _memory_of(connection: Connection, names: Iterable[str]) -> int:
    """Return the memory of keys; that of missing ones is 0."""
    with connection.our_errors():
        pipeline = connection.client.pipeline(transaction=False)
        for name in names:
            pipeline.memory_usage(connection.key(name), samples=0)
        return int(sum(size or 0 for size in pipeline.execute()))


def _bucket_name(table: int, count: int, number: int) -> str:
    """Return the name of one of the `count` buckets of a table."""
    level = count.bit_length() - 1
    split = count - (1 << level)
    if number < 2 * split:
        return f"t{table}:{level + 1}:{number}"
    return f"t{table}:{level}:{number - split}"


def _buckets_of(snapshot: RedisSnapshot, table: int) -> Iterator[tuple[list[str], list[bytes]]]:
    """Yield the names and the entries of buckets that have any."""
    count = int(snapshot.header.buckets[table])
    for begin in range(0, count, _BUCKETS_A_CALL):
        names = [
            _bucket_name(table, count, number)
            for number in range(begin, min(count, begin + _BUCKETS_A_CALL))
        ]
        values = snapshot.connection.call("MGET", *map(snapshot.connection.key, names))
        there = [(name, value) for name, value in zip(names, values, strict=True) if value]
        yield [name for name, _ in there], [value for _, value in there]


def _check_table(snapshot: RedisSnapshot, table: int) -> Iterator[str]:
    """Yield what is wrong with the buckets of a table."""
    num_entries = 0
    for names, values in _buckets_of(snapshot, table):
        sizes = np.array([len(value) for value in values], np.int64)
        if np.any(sizes % ENTRY.itemsize):
            cut = names[int(np.flatnonzero(sizes % ENTRY.itemsize)[0])]
            yield f"The size of the bucket {cut} is no multiple of {ENTRY.itemsize} bytes."
            continue
        entries = np.frombuffer(b"".join(values), ENTRY)
        key, row = entries["key"].astype(np.uint64), entries["row"].astype(np.int64)
        place = np.array([name.split(":")[1:] for name in names], np.int64).reshape(-1, 2)
        bucket = np.repeat(np.arange(len(names)), sizes // ENTRY.itemsize)
        level, number = bucket_of(np.full(len(key), table), key, snapshot.header.buckets)
        wrong = (level != place[bucket, 0]) | (number != place[bucket, 1])
        wrong[1:] |= (bucket[1:] == bucket[:-1]) & (row[1:] < row[:-1])
        if wrong.any():
            yield (
                f"The bucket {names[bucket[wrong][0]]} has entries of other buckets, or not in "
                "the order of rows."
            )
        num_entries += len(entries)
    if num_entries != snapshot.header.entries[table]:
        yield (
            f"The table {table} has {num_entries} entries, but {snapshot.header.entries[table]} "
            "were written."
        )


create, open = RedisStore.create, RedisStore
