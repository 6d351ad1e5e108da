"""The index in Redis: how it is created and opened, and its states."""

from __future__ import annotations

import json
import secrets
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from neardup.errors import StoreError
from neardup.stores.base import Layout, Snapshot, Store, Writer
from neardup.stores.redis import care, scripts
from neardup.stores.redis.connection import NAMES, Connection, promise_of
from neardup.stores.redis.lock import WriterLock
from neardup.stores.redis.rows import KnownRows
from neardup.stores.redis.snapshot import Columns, RedisSnapshot
from neardup.stores.redis.writer import RedisWriter
from neardup.stores.server_address import parse_server_address

FORMAT = 1


def create(
    address: str, meta: Mapping[str, Any], layout: Layout, attachments: Mapping[str, bytes] | None = None
) -> RedisStore:
    """Create the keys of an index at once, and open it for writing.

    Parameters
    ----------
    address : redis://user:password@host:port/database?index=NAME; rediss:// for TLS; other options of redis-py may
        follow. The default of NAME is "index".
    meta : settings of the index, values for JSON.
    layout : the tables of keys.
    attachments : files by name.

    Raises
    ------
    StoreError
        If the index exists, or the server cannot be reached.
    """
    place = parse_server_address(address)
    connection = Connection(place)
    num_tables = len(layout.prefix_bits) + 2
    files = [part for name, data in (attachments or {}).items() for part in (name, data)]
    try:
        with connection.our_errors():
            created = connection.client.eval(
                scripts.CREATE, 2, connection.prefix, NAMES, FORMAT, json.dumps(dict(meta)), json.dumps(layout),
                np.ones(num_tables, ">u4").tobytes(), np.zeros(num_tables, "<u8").tobytes(), secrets.token_hex(16),
                place.name, *files,
            )  # fmt: skip
    finally:
        connection.close()
    if not created:
        raise StoreError(
            f"The index exists already: {place.shown}, keys neardup:{place.name}:*. A new index needs a name that is "
            "free. Open it, choose another name with ?index=NAME, or delete its keys: redis-cli --scan --pattern "
            f"'neardup:{place.name}:*' | xargs redis-cli unlink"
        )
    return open(address, read_only=False)


def open(address: str, read_only: bool) -> RedisStore:
    """Open an index on a server.

    Parameters
    ----------
    address : as in `create`.
    read_only : whether `writing` is refused.

    Raises
    ------
    StoreError
        If there is no such index, it has another format, or the server cannot be reached.
    """
    place = parse_server_address(address)
    connection = Connection(place)
    try:
        settings = connection.hash("settings")
        if not settings:
            with connection.our_errors():
                found = connection.client.smembers(NAMES)
            names = ", ".join(sorted(repr(name.decode()) for name in found)) or "none"
            raise StoreError(
                f"There is no index {place.name!r} at {place.shown}: the key neardup:{place.name}:settings is missing. "
                f"Indexes there: {names}. Name one of them with ?index=NAME, or create it with `neardup index create`."
            )
        version = settings[b"format"].decode()
        if version != str(FORMAT):
            raise StoreError(
                f"The index is of another format: version {version} at {place.shown}. This neardup reads version "
                f"{FORMAT}. Use the version of neardup that made it, or create the index again."
            )
        return RedisStore(address, connection, settings, read_only)
    except BaseException:
        connection.close()
        raise


class RedisStore(Store):
    """An index under one prefix of keys. Many hosts may write; they take turns."""

    def __init__(self, address: str, connection: Connection, settings: dict[bytes, bytes], read_only: bool) -> None:
        self.address, self._connection, self._read_only, self._closed = address, connection, read_only, False
        self.meta = json.loads(settings[b"meta"])
        prefix_bits, max_distance = json.loads(settings[b"layout"])
        self.layout = Layout(tuple(prefix_bits), max_distance)
        self.durable, self.promise = promise_of(connection)
        self._known, self._columns, self._lock = KnownRows(connection), Columns(connection), WriterLock(connection)
        self._finish = weakref.finalize(self, _close, connection, self._lock)

    @contextmanager
    def reading(self) -> Iterator[Snapshot]:
        yield self._snapshot()

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        with self._writer() as writer:
            yield writer

    def _snapshot(self) -> RedisSnapshot:
        self._check_open()
        return RedisSnapshot(self._connection, self._known.read(), self.layout, self._columns)

    @contextmanager
    def _writer(self) -> Iterator[RedisWriter]:
        self._check_open()
        if self._read_only:
            raise StoreError(
                f"The index was opened for reading only: {self._connection.address.shown}. Changes need an index that "
                "is open for writing. Open it without read_only."
            )
        with self._lock.held():
            self.meta = json.loads(self._connection.call("HGET", self._connection.key("settings"), "meta"))
            yield RedisWriter(self._connection, self._known, self.layout, self._columns, self._lock, self._set_meta)

    def attachment(self, name: str) -> bytes | None:
        self._check_open()
        data: bytes | None = self._connection.call("HGET", self._connection.key("attachments"), name)
        return data

    def describe(self) -> dict[str, Any]:
        return care.describe(self._connection, self._snapshot())

    def verify(self) -> list[str]:
        if self._read_only:
            return care.verify(self._snapshot())
        with self._writer() as writer:  # buckets that another writer splits would be missing here and there
            return care.verify(writer)

    def compact(self) -> None:
        with self._writer() as writer:
            care.compact(writer, self._lock)

    def backup(self, path: str) -> None:
        raise StoreError(
            f"neardup does not back up a server: got {path!r} for {self._connection.address.shown}. Redis's own tools "
            f"do, while the index is in use. Run: redis-cli --rdb {path}, which copies all databases of the server."
        )

    def close(self) -> None:
        self._closed = True
        self._finish()

    def _set_meta(self, meta: dict[str, Any]) -> None:
        self.meta = meta

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(
                f"The index was closed: {self._connection.address.shown}. An open index is needed. Open it again first."
            )


def _close(connection: Connection, lock: WriterLock) -> None:
    lock.close()
    connection.close()
