"""The lock of the writer of an index: a key with a random token, which expires unless it is renewed."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis.exceptions import ConnectionError, TimeoutError, WatchError

from neardup.errors import StoreError
from neardup.stores.redis import scripts
from neardup.stores.redis.connection import Connection, explain

WRITER_TIMEOUT_S = 60
EXPIRY_MS, _RENEWAL_S = 15_000, 5
_ENTRIES_A_SECOND = 20_000  # at least, on a busy server
LONGEST_WAIT_S = 1  # until a waiting writer looks whether the lock has expired


class WriterLock:
    """The lock of one store object. Its threads take turns here, then with other processes at the server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._key, self._next = connection.key("writer"), connection.key("writer-left")
        self._threads, self._busy = threading.Lock(), threading.Lock()
        self._token = self._unreleased = b""
        self._closed = threading.Event()
        self._renewing: threading.Thread | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for other writers, and have the lock in the block.

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
            silent = False
            try:
                yield
            except StoreError as error:
                silent = isinstance(error.__cause__, TimeoutError)
                raise
            finally:
                self._release(silent)
        finally:
            self._threads.release()

    @contextmanager
    def guarded(self, size: int = 0) -> Iterator[Any]:
        """Give a pipeline whose transaction fails if the lock was lost meanwhile. The lock is not renewed in the block.

        size : entries that the transaction writes: the server is busy with some 100,000 a second.

        Raises
        ------
        StoreError
            If the lock was lost.
        """
        with self._busy, self._connection.our_errors(), self._connection.client.pipeline() as pipeline:
            try:
                if size > _ENTRIES_A_SECOND and not self._prolong(self._token, 1000 * size // _ENTRIES_A_SECOND):
                    raise self._lost()
                pipeline.watch(self._key)
                if pipeline.get(self._key) != self._token:
                    raise self._lost()
                pipeline.multi()
                yield pipeline
                pipeline.execute()
            except WatchError as error:
                if "changed" in str(error):
                    raise self._lost() from error
                raise explain(ConnectionError(str(error)), self._connection.address) from error  # as redis-py has it

    def close(self) -> None:
        """Stop renewing."""
        self._closed.set()

    def _acquire(self, deadline: float) -> None:
        token = self._unreleased or secrets.token_hex(16).encode()
        there = self._unreleased and self._prolong(token)
        self._unreleased = token  # until the end of the block is acknowledged
        if not there:
            while not self._connection.call("SET", self._key, token, "NX", "PX", EXPIRY_MS):
                rest = deadline - time.monotonic()
                if rest <= 0:
                    raise self._in_use()
                self._connection.call("BLPOP", self._next, max(min(rest, LONGEST_WAIT_S), 0.01))
        self._token = token
        if self._renewing is None:
            self._renewing = threading.Thread(target=self._renew, name="neardup-writer", daemon=True)
            self._renewing.start()

    def _release(self, silent: bool) -> None:
        with self._busy:
            self._token = b""
        if silent:  # it would not answer this either
            return
        # Where the server is gone, the lock is in its files: it expires, or this writer takes it up again.
        with contextlib.suppress(StoreError), self._connection.our_errors():
            self._connection.client.eval(scripts.RELEASE, 2, self._key, self._next, self._unreleased, EXPIRY_MS)
            self._unreleased = b""

    def _renew(self) -> None:
        """Renew the lock while it is held; a failure shows at the next write."""
        while not self._closed.wait(_RENEWAL_S):
            with self._busy, contextlib.suppress(StoreError):
                if self._token:
                    self._prolong(self._token)

    def _prolong(self, token: bytes, more_ms: int = 0) -> bool:
        """Let the lock expire later, if it has the token; return whether it has."""
        with self._connection.our_errors():
            return bool(self._connection.client.eval(scripts.RENEW, 1, self._key, token, EXPIRY_MS + more_ms))

    def _in_use(self) -> StoreError:
        shown = self._connection.address.shown
        return StoreError(
            f"The index is in use at {shown}: another writer kept it for more than {WRITER_TIMEOUT_S} seconds. One "
            "writer at a time is possible. Wait for it, or end it; the lock of a writer that is gone expires within "
            f"{EXPIRY_MS // 1000} seconds."
        )

    def _lost(self) -> StoreError:
        return StoreError(
            f"The writer lost its turn at {self._connection.address.shown}: it did not renew its lock for "
            f"{EXPIRY_MS // 1000} seconds. A writer must reach the server all the time. Nothing was written; repeat "
            "the call."
        )
