"""The connection to Redis: its errors as ours, its promise of durability, the writer's lock."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, TimeoutError, WatchError
from redis.retry import Retry

from neardup.errors import StoreError
from neardup.stores.redis import scripts
from neardup.stores.servers import REPEATED, Explanation, ServerAddress, explain_error

NAMES = "neardup:indexes"
# An address may set other timeouts.
_CONNECT_TIMEOUT_S = 10
_ANSWER_TIMEOUT_S = 60


def prefix_of(name: str) -> bytes:
    """Return the prefix of the keys of an index."""
    return f"neardup:{name}:".encode()


class Connection:
    """A pool of connections to the server of an index. May be used by several threads at once.

    answer_timeout_s : how long an answer is waited for. made : the number of connections made so
    far. A restarted server may have lost changes, and is reached by a new connection, so data that
    was read before a new connection may be outdated.
    """

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self.prefix = prefix_of(address.name)
        self.made = 0
        scheme, _, rest = address.server.partition("://")
        # redis-py knows no scheme of Valkey.
        url = f"{scheme.replace('valkey', 'redis')}://{rest}"
        options: dict[str, Any] = {"socket_timeout": _ANSWER_TIMEOUT_S}
        # Connections by Unix sockets do not accept these options.
        if scheme != "unix":
            options["socket_connect_timeout"] = _CONNECT_TIMEOUT_S
            options["socket_keepalive"] = True
        try:
            self.client: Any = redis.Redis.from_url(url, **options)
            pool = self.client.connection_pool
            # An address may set other options, but not these.
            pool.connection_kwargs |= {
                # A change is never sent twice: if a connection breaks, it may have arrived.
                "retry": Retry(NoBackoff(), 0),
                "redis_connect_func": self._connected,
                "decode_responses": False,
            }
            self.answer_timeout_s = float(pool.connection_kwargs["socket_timeout"])
            pool.connection_class(**pool.connection_kwargs)  # checks options, connects nowhere
        # Of an unknown option; of a wrong value; of a wrong value for TLS.
        except (TypeError, ValueError, exceptions.RedisError) as error:
            raise StoreError(
                f"The address is not one of a Redis server: got {address.shown}: {error}. An "
                "address is like redis://host:6379/0?index=news. Correct it."
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
        # redis-py calls this function in place of its own, which has to run nevertheless.
        connection.on_connect()

    def close(self) -> None:
        """Close all connections."""
        self.client.close()
        self.client.connection_pool.disconnect()


_EXPLANATIONS = (
    Explanation(
        causes=(
            exceptions.AuthenticationError,
            exceptions.AuthorizationError,
            exceptions.NoPermissionError,
            "NOAUTH",
        ),
        sentence=(
            "The server refused the user {where}: {reason}. A user and password of that server, "
            "with all commands on keys that begin with neardup:, are needed. Name them as in "
            "redis://user:password@host:6379/0."
        ),
    ),
    Explanation(
        causes=(exceptions.OutOfMemoryError, exceptions.ExecAbortError, "OOM"),
        sentence=(
            "The server has no memory left {where}: {reason}. The index is as it was before this "
            "change. Raise maxmemory, or remove documents and run `neardup index compact`; then "
            "repeat the change."
        ),
    ),
    Explanation(
        causes=("MISCONF",),
        sentence=(
            "The server cannot write its files {where}: {reason}. The index is as it was before "
            "this change. Free space on the server's disk, then repeat the change."
        ),
    ),
    Explanation(
        causes=(exceptions.ReadOnlyError,),
        sentence=(
            "The server is a replica {where}: {reason}. Changes need the primary server. Name its "
            "address, or open the index for reading only."
        ),
    ),
    Explanation(
        causes=(exceptions.ConnectionError, exceptions.TimeoutError),
        sentence=(
            "The server cannot be reached or ended the connection {where}: {reason}. A running "
            f"Redis or Valkey server is needed. Check the address and the server, then {REPEATED}"
        ),
    ),
    Explanation(
        causes=(exceptions.RedisError,),
        sentence=(
            "Redis reported an error {where}: {reason}. The index is as it was before this call. "
            "Check the log of the server, and run `neardup index verify`."
        ),
    ),
)


def explain(error: exceptions.RedisError, address: ServerAddress) -> StoreError:
    """Return the error to raise for an error of redis-py."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return explain_error(_EXPLANATIONS, error, reason, address)


_PROMISES = {
    "always": (
        "are on the disk of the server: they survive a crash of the client, of Redis and of its "
        "machine"
    ),
    "everysec": (
        "survive a crash of the client or of Redis; a crash of the server's machine may lose the "
        "changes of the last second, or two under load"
    ),
    "no": (
        "survive a crash of the client or of Redis; a crash of the server's machine may lose what "
        "its system had not written, often half a minute"
    ),
}
"""By the setting appendfsync."""


def promise_of(connection: Connection) -> tuple[bool, str]:
    """Return whether acknowledged documents survive the server's process, and the sentence about
    it.
    """
    synced: str | None = None
    with connection.our_errors():
        persistence = connection.client.info("persistence")
        memory = connection.client.info("memory")
        # Managed services hide their settings.
        with contextlib.suppress(exceptions.ResponseError):
            synced = connection.client.config_get("appendfsync").get("appendfsync")
    policy = memory.get("maxmemory_policy", "")
    if memory.get("maxmemory") and policy.startswith("allkeys"):
        return False, (
            f"The server deletes any keys when its memory is full (maxmemory-policy {policy}), "
            "those of the index too: documents may be lost at any time. Set maxmemory-policy "
            "noeviction."
        )
    if not persistence.get("aof_enabled"):
        return False, (
            "The server does not log its changes (appendonly no): a crash or restart of the server "
            "loses all changes since its last snapshot, or the whole index if it takes none."
        )
    if synced is None:
        return True, (
            "Acknowledged changes survive a crash of the client or of Redis (appendonly yes); the "
            "server does not tell when it syncs them, so a crash of its machine may lose some."
        )
    return True, f"Acknowledged changes {_PROMISES[synced]} (appendonly yes, appendfsync {synced})."


WRITER_TIMEOUT_S = 60
EXPIRY_MS = 15_000
# Two renewals may fail before the lock expires.
_RENEWAL_S = 5
_ENTRIES_PER_SECOND = 20_000  # the least that a busy server writes
LONGEST_WAIT_S = 1  # between two looks of a waiting writer at the lock, which may have expired


class WriterLock:
    """The lock of one store object.

    Threads of this process take turns with `_threads`, then with other processes at the server.
    `_busy` guards the token: the lock is not renewed during a transaction that watches it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._key = connection.key("writer")
        self._next = connection.key("writer-left")
        self._threads = threading.Lock()
        self._busy = threading.Lock()
        self._token = b""  # empty if the lock is not held
        self._unreleased = b""  # a token that the server may still have
        self._closed = threading.Event()
        self._renewing: threading.Thread | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for other writers, and hold the lock in the block.

        Raises
        ------
        StoreError
            If another writer has it for more than WRITER_TIMEOUT_S seconds.
        """
        deadline = time.monotonic() + WRITER_TIMEOUT_S
        if not self._threads.acquire(timeout=WRITER_TIMEOUT_S):
            raise self._in_use()
        try:
            self._acquire(deadline)
            is_silent = False
            try:
                yield
            except StoreError as error:
                # A release would wait as long again for a server that does not answer.
                is_silent = isinstance(error.__cause__, TimeoutError)
                raise
            finally:
                self._release(is_silent)
        finally:
            self._threads.release()

    @contextmanager
    def guarded(self, num_entries: int = 0) -> Iterator[Any]:
        """Give a pipeline whose transaction fails if the lock was lost meanwhile.

        The lock is not renewed in the block.

        num_entries : written by the transaction, about 100,000 a second.

        Raises
        ------
        StoreError
            If the lock was lost.
        """
        with (
            self._busy,
            self._connection.our_errors(),
            self._connection.client.pipeline() as pipeline,
        ):
            try:
                if num_entries > _ENTRIES_PER_SECOND:
                    more_ms = 1000 * num_entries // _ENTRIES_PER_SECOND
                    if not self._prolong(self._token, more_ms):
                        raise self._lost()
                # Watch first, then read: a change between both makes the transaction fail.
                pipeline.watch(self._key)
                if pipeline.get(self._key) != self._token:
                    raise self._lost()
                pipeline.multi()
                yield pipeline
                pipeline.execute()
            except WatchError as error:
                if "changed" in str(error):
                    raise self._lost() from error
                # redis-py also raises this error if the connection breaks while it watches a key.
                broken = ConnectionError(str(error))
                raise explain(broken, self._connection.address) from error

    def close(self) -> None:
        """Stop renewing."""
        self._closed.set()

    def _acquire(self, deadline: float) -> None:
        """Take the lock at the server; a lock that was not released is taken up again."""
        token = self._unreleased or secrets.token_hex(16).encode()
        is_held = self._unreleased and self._prolong(token)
        self._unreleased = token
        if not is_held:
            while not self._connection.call("SET", self._key, token, "NX", "PX", EXPIRY_MS):
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise self._in_use()
                # BLPOP takes 0 for "no limit", and must answer before the client gives up.
                longest = min(LONGEST_WAIT_S, self._connection.answer_timeout_s / 2)
                timeout = max(min(remaining, longest), 0.01)
                self._connection.call("BLPOP", self._next, timeout)
        self._token = token
        if self._renewing is None:
            self._renewing = threading.Thread(
                target=self._renew, name="neardup-writer", daemon=True
            )
            self._renewing.start()

    def _release(self, is_silent: bool) -> None:
        """Release the lock, unless the server does not answer."""
        # Not while the other thread renews: it must not prolong a lock that is being released.
        with self._busy:
            self._token = b""
        if is_silent:
            return
        # If the server is gone, the lock is in its files: it expires, or this writer takes it up
        # again.
        with contextlib.suppress(StoreError), self._connection.our_errors():
            keys = (self._key, self._next)
            client = self._connection.client
            client.eval(scripts.RELEASE, len(keys), *keys, self._unreleased, EXPIRY_MS)
            self._unreleased = b""

    def _renew(self) -> None:
        """Renew the lock while it is held. A failed renewal makes the next write fail."""
        while not self._closed.wait(_RENEWAL_S):
            with self._busy, contextlib.suppress(StoreError):
                if self._token:
                    self._prolong(self._token)

    def _prolong(self, token: bytes, more_ms: int = 0) -> bool:
        """Let the lock expire later if it has the token; return whether it has."""
        with self._connection.our_errors():
            client = self._connection.client
            return bool(client.eval(scripts.RENEW, 1, self._key, token, EXPIRY_MS + more_ms))

    def _in_use(self) -> StoreError:
        shown = self._connection.address.shown
        return StoreError(
            f"The index is in use at {shown}: another writer kept it for more than "
            f"{WRITER_TIMEOUT_S} seconds. One writer at a time is possible. Wait for it, or end "
            f"it; the lock of a writer that is gone expires within {EXPIRY_MS // 1000} seconds."
        )

    def _lost(self) -> StoreError:
        return StoreError(
            f"The writer lost its turn at {self._connection.address.shown}: it did not renew its "
            f"lock for {EXPIRY_MS // 1000} seconds. A writer must reach the server all the time. "
            "Nothing was written; repeat the call."
        )
