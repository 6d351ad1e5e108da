"""The index in Redis: how it is created and opened, and its states."""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from neardup.stores.base import StoreSettings
from neardup.stores.hashed import NUM_HASHED
from neardup.stores.redis import care, scripts
from neardup.stores.redis.connection import NAMES, Connection, promise_of
from neardup.stores.redis.lock import WriterLock
from neardup.stores.redis.snapshot import KnownRows, RedisSnapshot
from neardup.stores.redis.writer import RedisWriter
from neardup.stores.servers import ServerStore


class RedisStore(ServerStore):
    """An index under one prefix of keys: redis://user:password@host:port/database?index=NAME; rediss:// for TLS; other
    options of redis-py may follow.
    """

    def _connect(self) -> None:
        self._connection = connection = Connection(self.place)
        self._known, self._lock = KnownRows(connection), WriterLock(connection)
        self._finish = weakref.finalize(self, _close, connection, self._lock)

    def _create(self, new: StoreSettings, encoded: dict[str, bytes]) -> bool:
        num_tables = len(new.layout.prefix_bits) + NUM_HASHED
        with self._connection.our_errors():
            created = self._connection.client.eval(
                scripts.CREATE,
                2,
                self._connection.prefix,
                NAMES,
                np.ones(num_tables, ">u4").tobytes(),
                np.zeros(num_tables, "<u8").tobytes(),
                secrets.token_hex(16),
                self.place.name,
                *chain.from_iterable(encoded.items()),
            )
        return bool(created)

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

    def describe(self) -> dict[str, Any]:
        with self.reading() as snapshot:
            return care.describe(snapshot)

    def verify(self) -> list[str]:
        # Buckets that another writer splits would be missing here and there.
        with self.reading() if self.read_only else self.writing() as snapshot:
            return care.verify(snapshot)

    def compact(self) -> None:
        with self.writing() as writer:
            care.compact(writer, self._lock)

    def close(self) -> None:
        self.closed = True
        self._finish()


def _close(connection: Connection, lock: WriterLock) -> None:
    lock.close()
    connection.close()


create, open = RedisStore.create, RedisStore
