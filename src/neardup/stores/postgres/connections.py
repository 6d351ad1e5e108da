"""Connections to PostgreSQL: their settings, the pool of idle ones, and their errors as ours."""

from __future__ import annotations

import select
import struct
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import psycopg
from psycopg import errors
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format, TransactionStatus

from neardup.arrays import Rows
from neardup.errors import StoreError
from neardup.stores.servers import REPEATED, Explanation, ServerAddress, explain_error

WRITER_TIMEOUT_S = 60
CONNECT_TIMEOUT_S = 10
PATIENCE_S = 30
OLDEST_VERSION = 140_000
_MAX_IDLE = 8
_BIGINT_OID = 20  # the type bigint
_BIGINTS_OID = 1016  # the type bigint[]
SETTINGS = {
    # A plan is made once and used for tables of any size, so it must not scan a table that was
    # small at first.
    "enable_seqscan": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "lock_timeout": f"{WRITER_TIMEOUT_S}s",
    # The server notices a vanished host, and releases the lock of its writer, within a minute.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}


class Bigints(NamedTuple):
    """Numbers as a parameter of a statement: bigint[] in binary."""

    data: bytes


def bigints(values: Rows) -> Bigints:
    """Return numbers as a parameter of a statement."""
    return slices_of_bigints(values, [0, len(values)])[0]


def slices_of_bigints(values: Rows, bounds: Sequence[int]) -> list[Bigints]:
    """Return numbers cut into several parameters, the first of them values[bounds[0]:bounds[1]]."""
    elements = np.empty(len(values), [("size", ">i4"), ("value", ">i8")])
    elements["size"] = 8
    elements["value"] = values
    data = elements.tobytes()
    width = elements.itemsize
    parameters = []
    for start, stop in pairwise(bounds):
        # The header: dimensions, whether there are nulls, the type; and if there are elements,
        # their number and the first index.
        if start == stop:
            parameters.append(Bigints(struct.pack(">iiI", 0, 0, _BIGINT_OID)))
        else:
            header = struct.pack(">iiIii", 1, 0, _BIGINT_OID, stop - start, 1)
            parameters.append(Bigints(header + data[start * width : stop * width]))
    return parameters


class _BigintsDumper(Dumper):
    format = Format.BINARY
    oid = _BIGINTS_OID

    def dump(self, numbers: Bigints) -> bytes:
        return numbers.data


class _Connection(psycopg.Connection[Any]):
    """A connection that notices a frozen server. address : of the server, set after `connect`."""

    address = ""

    def wait(self, generator: Any, *arguments: Any, **options: Any) -> Any:  # type: ignore[override]
        return super().wait(self._watched(generator), *arguments, **options)

    def _watched(self, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Pass on the events that a generator of psycopg waits for.

        After PATIENCE_S seconds without one, test whether the server accepts another connection: a
        statement may take hours, and TCP cannot tell a busy server from a frozen one.
        """
        try:
            awaited = next(generator)
            due = time.monotonic() + PATIENCE_S
            while True:
                ready = yield awaited
                if ready:
                    due = time.monotonic() + PATIENCE_S
                elif self.address and time.monotonic() > due:
                    self._require_server()
                    due = time.monotonic() + PATIENCE_S
                awaited = generator.send(ready)
        except StopIteration as end:
            return end.value

    def _require_server(self) -> None:
        """Close the connection and raise OperationalError if the server does not answer another."""
        try:
            # A server that still accepts connections is only busy with the statement.
            psycopg.connect(**_parameters(self.address)).close()
        except errors.ConnectionTimeout as error:
            self.close()
            raise psycopg.OperationalError(
                f"it has not answered for {PATIENCE_S} seconds and does not accept another "
                "connection"
            ) from error
        except psycopg.Error:
            return  # the server has answered


def _parameters(server: str) -> dict[str, Any]:
    """Return the parameters of a connection: defaults, overridden by the address."""
    defaults = {"application_name": "neardup", "connect_timeout": CONNECT_TIMEOUT_S}
    return defaults | conninfo_to_dict(server)


class Session:
    """A connection whose errors are StoreErrors. Used by one thread at a time."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        with self._our_errors():
            self.connection = _Connection.connect(**_parameters(address.server), autocommit=True)
            self.connection.address = address.server
            self.connection.prepare_threshold = 0  # each statement is planned once
            self.connection.adapters.register_dumper(Bigints, _BigintsDumper)
        try:
            if self.connection.info.server_version < OLDEST_VERSION:
                raise StoreError(
                    "The server is too old: PostgreSQL "
                    f"{self.connection.info.server_version // 10_000} at {address.shown}. An index "
                    "needs PostgreSQL 14 or later. Upgrade the server, or use another one."
                )
            settings = SETTINGS | {"search_path": f'"{schema_of(address)}"'}
            # `SET` takes no parameters; one SELECT sets all of them in one round trip.
            calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
            self.row(f"SELECT {calls}", *chain.from_iterable(settings.items()))
        except BaseException:
            self.connection.close()
            raise

    def row(self, statement: str, *parameters: Any) -> tuple[Any, ...]:
        """Execute a statement and return its only row."""
        found = self.rows(statement, *parameters)
        if len(found) != 1:
            raise StoreError(
                f"The index is damaged at {self.address.shown}: {statement!r} returned "
                f"{len(found)} rows. One row is needed. Restore the schema from a backup."
            )
        return found[0]

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows; values of type bytea are bytes."""
        with self._our_errors():
            # Bytes, because psycopg's types accept only literals as str. The same holds for other
            # statements.
            return self.connection.execute(statement.encode(), parameters, binary=True).fetchall()

    def execute(self, statement: str, *parameters: Any) -> int:
        """Execute a statement and return the number of rows that it changed."""
        with self._our_errors():
            return self.connection.execute(statement.encode(), parameters).rowcount

    def copy(self, statement: str, parts: Sequence[bytes]) -> None:
        """Send bytes to a COPY ... FROM STDIN."""
        with (
            self._our_errors(),
            self.connection.cursor() as cursor,
            cursor.copy(statement.encode()) as copy,
        ):
            for part in parts:
                copy.write(part)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the statements of the block together, or none of them."""
        with self._our_errors(), self.connection.transaction():
            yield

    def close(self) -> None:
        """Close the connection; the server releases its locks."""
        self.connection.close()

    @property
    def usable(self) -> bool:
        """True if the connection works, as far as this end knows, and has no open transaction.

        An idle connection with bytes to read was ended by the server.
        """
        if self.connection.closed:
            return False
        if self.connection.info.transaction_status != TransactionStatus.IDLE:
            return False
        waiting = select.poll()
        waiting.register(self.connection.fileno(), select.POLLIN)
        return not waiting.poll(0)

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise explain(error, self.address) from error


class Pool:
    """Connections that are not in use, for the next thread that needs one."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._idle: list[Session] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Lend a connection, a new one if none is idle; it is kept if it is usable afterwards."""
        session = self._next() or Session(self._address)
        try:
            yield session
        finally:
            with self._lock:
                keep = session.usable and not self._closed and len(self._idle) < _MAX_IDLE
                if keep:
                    self._idle.append(session)
            # Outside of the lock, because closing may wait for the network.
            if not keep:
                session.close()

    def close(self) -> None:
        """Close all connections; lent connections are closed when they come back."""
        with self._lock:
            self._closed = True
            idle = self._idle
            self._idle = []
        for session in idle:
            session.close()

    def _next(self) -> Session | None:
        with self._lock:
            while self._idle:
                session = self._idle.pop()
                if session.usable:
                    return session
                session.close()
            return None


def schema_of(address: ServerAddress) -> str:
    """Return the name of the schema of an index."""
    return f"neardup_{address.name}"


# The first match counts, so special errors come before their base classes.
_EXPLANATIONS = (
    Explanation(
        causes=(errors.InvalidPassword, errors.InvalidAuthorizationSpecification, "password"),
        sentence=(
            "The server refused the user {where}: {reason}. A user and password of that server are "
            "needed. Name them as in postgresql://user:password@host/database, or set PGPASSWORD "
            "or a file ~/.pgpass."
        ),
    ),
    Explanation(
        causes=(errors.LockNotAvailable,),
        sentence=(
            "The index is in use {where}: another writer kept it for more than "
            f"{WRITER_TIMEOUT_S} seconds. One writer at a time is possible. Wait for it, or end "
            "it: the database lists it in pg_stat_activity as 'neardup'."
        ),
    ),
    Explanation(
        causes=(errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn),
        sentence=(
            "The index was dropped or changed while it was open {where}: {reason}. The tables of "
            "the schema neardup_{name} are needed. Restore them from a backup, or create the index "
            "again."
        ),
    ),
    Explanation(
        causes=(errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction),
        sentence=(
            "The server refused a change {where}: {reason}. A user that may create and change the "
            "schema neardup_{name} on the primary server is needed. Use such a user, or open the "
            "index for reading only."
        ),
    ),
    Explanation(
        causes=(errors.DiskFull, errors.OutOfMemory, errors.ProgramLimitExceeded),
        sentence=(
            "The server has no space left {where}: {reason}. The index is as it was before this "
            "change. Free space on the server, then repeat the change."
        ),
    ),
    Explanation(
        causes=(errors.DataCorrupted, errors.IndexCorrupted),
        sentence=(
            "The database is damaged {where}: {reason}. Undamaged tables are needed. Restore the "
            "schema neardup_{name} from a backup, or repair it with the tools of PostgreSQL."
        ),
    ),
    Explanation(
        causes=(psycopg.OperationalError, psycopg.InterfaceError),
        sentence=(
            "The server cannot be reached or ended the connection {where}: {reason}. A running "
            f"PostgreSQL server is needed. Check the address and the server, then {REPEATED}"
        ),
    ),
    Explanation(
        causes=(psycopg.Error,),
        sentence=(
            "PostgreSQL reported an error {where}: {reason}. The index is as it was before this "
            "call. Check the log of the server, and run `neardup index verify`."
        ),
    ),
)


def explain(error: psycopg.Error, address: ServerAddress) -> StoreError:
    """Return the error to raise for an error of psycopg."""
    reason = error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__
    return explain_error(_EXPLANATIONS, error, reason, address)
