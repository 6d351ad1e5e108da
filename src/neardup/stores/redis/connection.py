"""The connection to Redis: its keys, its errors as ours, and the promise of its settings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from neardup.errors import StoreError
from neardup.stores.servers import REPEATED, Sentences, ServerAddress, explain_error

NAMES = "neardup:indexes"
_CONNECT_TIMEOUT_S, _ANSWER_TIMEOUT_S = 10, 60  # the address may set others


class Connection:
    """A pool of connections to the server of an index. May be used by several threads at once.

    made : how many connections were made so far. A server that was restarted may have lost changes, and is reached by a
    new connection; so what was read before the last one was made may not hold any more.
    """

    def __init__(self, address: ServerAddress) -> None:
        self.address, self.prefix = address, f"neardup:{address.name}:".encode()
        self.made = 0
        scheme, _, rest = address.server.partition("://")
        url = f"{scheme.replace('valkey', 'redis')}://{rest}"
        of_tcp = {"socket_connect_timeout": _CONNECT_TIMEOUT_S, "socket_keepalive": True} if scheme != "unix" else {}
        try:  # a change is never sent twice: whether it arrived is not known when a connection breaks
            self.client: Any = redis.Redis.from_url(
                url,
                socket_timeout=_ANSWER_TIMEOUT_S,
                retry=Retry(NoBackoff(), 0),
                redis_connect_func=self._connected,
                **of_tcp,
            )
        except ValueError as error:
            raise StoreError(
                f"The address is not one of a Redis server: got {address.shown}: {error}. An address is like "
                "redis://host:6379/0?index=news. Correct it."
            ) from error

    def key(self, name: str) -> bytes:
        """Return the name of a key of the index."""
        return self.prefix + name.encode()

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script on the index and return its result."""
        with self.our_errors():
            return self.client.eval(script, 1, self.prefix, *arguments)

    def call(self, command: str, *arguments: Any) -> Any:
        """Send a command and return the answer."""
        with self.our_errors():
            return self.client.execute_command(command, *arguments)

    @contextmanager
    def our_errors(self) -> Iterator[None]:
        """Raise a StoreError in place of an error of the client."""
        try:
            yield
        except exceptions.RedisError as error:
            raise explain(error, self.address) from error

    def _connected(self, connection: Any) -> None:
        self.made += 1
        connection.on_connect()

    def close(self) -> None:
        """Close all connections."""
        self.client.close()
        self.client.connection_pool.disconnect()


_SENTENCES: Sentences = {
    (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError, "NOAUTH"): "The "
    "server refused the user {where}: {reason}. A user and password of that server, with all commands on keys that "
    "begin with neardup:, are needed. Name them as in redis://user:password@host:6379/0.",
    (exceptions.OutOfMemoryError, exceptions.ExecAbortError, "OOM"): "The server has no memory left {where}: {reason}. "
    "The index is as it was before this change. Raise maxmemory, or remove documents and run `neardup index compact`; "
    "then repeat the change.",
    ("MISCONF",): "The server cannot write its files {where}: {reason}. The index is as it was before this change. "
    "Free space on the server's disk, then repeat the change.",
    (exceptions.ReadOnlyError,): "The server is a replica {where}: {reason}. Changes need the primary server. Name its "
    "address, or open the index for reading only.",
    (exceptions.ConnectionError, exceptions.TimeoutError): "The server cannot be reached or ended the connection "
    "{where}: {reason}. A running Redis or Valkey server is needed. Check the address and the server, then "
    f"{REPEATED}",
    (exceptions.RedisError,): "Redis reported an error {where}: {reason}. The index is as it was before this call. "
    "Check the log of the server, and run `neardup index verify`.",
}


def explain(error: exceptions.RedisError, address: ServerAddress) -> StoreError:
    """Return the error to raise for one of redis-py's."""
    return explain_error(_SENTENCES, error, " ".join(str(error).split()) or type(error).__name__, address)


_PROMISES = {
    "always": "are on the disk of the server: they survive a crash of the client, of Redis and of its machine",
    "everysec": "survive a crash of the client or of Redis; a crash of the server's machine may lose the changes of "
    "the last second, or two under load",
    "no": "survive a crash of the client or of Redis; a crash of the server's machine may lose what its system had not "
    "written, often half a minute",
}
"""By the setting appendfsync."""


def promise_of(connection: Connection) -> tuple[bool, str]:
    """Return whether acknowledged documents survive the server's process, and the sentence about it."""
    synced: str | None = None
    with connection.our_errors():
        persistence, memory = connection.client.info("persistence"), connection.client.info("memory")
        with contextlib.suppress(exceptions.ResponseError):  # services that manage servers hide their settings
            synced = connection.client.config_get("appendfsync").get("appendfsync")
    policy = memory.get("maxmemory_policy", "")
    if memory.get("maxmemory") and policy.startswith("allkeys"):
        return False, (
            f"The server deletes any keys when its memory is full (maxmemory-policy {policy}), those of the index too: "
            "documents may be lost at any time. Set maxmemory-policy noeviction."
        )
    if not persistence.get("aof_enabled"):
        return False, (
            "The server does not log its changes (appendonly no): a crash or restart of the server loses all changes "
            "since its last snapshot, or the whole index if it takes none."
        )
    if synced is None:
        return True, (
            "Acknowledged changes survive a crash of the client or of Redis (appendonly yes); the server does not tell "
            "when it syncs them, so a crash of its machine may lose some."
        )
    return True, f"Acknowledged changes {_PROMISES[synced]} (appendonly yes, appendfsync {synced})."
