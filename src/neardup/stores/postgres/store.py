"""The index in PostgreSQL: how it is created and opened, its states and its care."""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from neardup.errors import StoreError
from neardup.schemas import indexed_schema
from neardup.stores.base import Layout, Snapshot, Store, Writer
from neardup.stores.postgres import statements
from neardup.stores.postgres.connections import Pool, Session, schema_of
from neardup.stores.postgres.snapshot import Columns, PostgresSnapshot
from neardup.stores.postgres.writer import PostgresWriter
from neardup.stores.server_address import ServerAddress, parse_server_address

FORMAT = 1


def create(
    address: str, meta: Mapping[str, Any], layout: Layout, attachments: Mapping[str, bytes] | None = None
) -> PostgresStore:
    """Create an index in a database, its schema and tables in one transaction, and open it for writing.

    Parameters
    ----------
    address : postgresql://user@host:port/database?index=NAME; other options of libpq may follow. The default of NAME is
        "index".
    meta : settings of the index, values for JSON.
    layout : the tables of keys.
    attachments : files by name.

    Raises
    ------
    StoreError
        If the index exists, the server cannot be reached, or the user may not create a schema.
    """
    place = parse_server_address(address)
    session = Session(place)
    try:
        with session.transaction():
            if session.row("SELECT to_regclass('settings')")[0] is not None:
                raise StoreError(
                    f"The index exists already: {place.shown}, schema {schema_of(place)}. A new index needs a name "
                    'that is free. Open it, choose another name with ?index=NAME, or drop it in psql: DROP SCHEMA "'
                    f'{schema_of(place)}" CASCADE.'
                )
            if not session.rows("SELECT FROM pg_namespace WHERE nspname = %s", schema_of(place)):
                session.execute(f'CREATE SCHEMA "{schema_of(place)}"')  # an empty one may be there for this user
            for statement in statements.create_statements(list(indexed_schema(())), layout):
                session.execute(statement)
            session.execute(
                "INSERT INTO settings (format, meta, prefix_bits, max_distance) VALUES (%s, %s, %s, %s)",
                FORMAT, json.dumps(dict(meta)), list(layout.prefix_bits), layout.max_distance,
            )  # fmt: skip
            for name, data in (attachments or {}).items():
                session.execute("INSERT INTO attachments VALUES (%s, %s)", name, data)
    finally:
        session.close()
    return open(address, read_only=False)


def open(address: str, read_only: bool) -> PostgresStore:
    """Open an index in a database.

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
    session = Session(place)
    try:
        if session.row("SELECT to_regclass('settings')")[0] is None:
            found = session.rows(r"SELECT substr(nspname::text, 9) FROM pg_namespace WHERE nspname LIKE 'neardup\_%%'")
            names = ", ".join(sorted(repr(name) for (name,) in found)) or "none"
            raise StoreError(
                f"There is no index {place.name!r} at {place.shown}: the schema {schema_of(place)} is missing. "
                f"Indexes there: {names}. Name one of them with ?index=NAME, or create it with `neardup index create`."
            )
        version = session.row("SELECT format FROM settings")[0]
        if version != FORMAT:
            raise StoreError(
                f"The index is of another format: version {version} at {place.shown}. This neardup reads version "
                f"{FORMAT}. Use the version of neardup that made it, or create the index again."
            )
        return PostgresStore(address, place, session, read_only)
    finally:
        session.close()


class PostgresStore(Store):
    """An index in a schema of a database. Many hosts may write; they take turns."""

    def __init__(self, address: str, place: ServerAddress, session: Session, read_only: bool) -> None:
        self.address, self._place, self._read_only = address, place, read_only
        meta, prefix_bits, max_distance = session.row("SELECT meta, prefix_bits, max_distance FROM settings")
        self.meta = json.loads(meta)
        self.layout = Layout(tuple(prefix_bits), max_distance)
        self._server = ".".join(map(str, divmod(session.connection.info.server_version, 10_000)))
        synced, commits = (
            session.row("SELECT current_setting(%s)", name)[0] for name in ("fsync", "synchronous_commit")
        )
        self.durable, self.promise = _promise_of(synced, commits)
        self._pool, self._columns = Pool(place), Columns()
        weakref.finalize(self, self._pool.close)

    @contextmanager
    def reading(self) -> Iterator[Snapshot]:
        with self._pool.session() as session:
            session.execute(statements.BEGIN_READING)
            try:
                yield PostgresSnapshot(session, self.layout, self._columns)
            finally:
                _end(session)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        if self._read_only:
            raise StoreError(
                f"The index was opened for reading only: {self._place.shown}. Changes need an index that is open for "
                "writing. Open it without read_only."
            )
        with self._pool.session() as session:
            session.row(statements.LOCK, self._lock)
            try:
                self.meta = json.loads(session.row(statements.META)[0])
                yield PostgresWriter(session, self.layout, self._columns, self._set_meta)
            finally:
                if session.usable:
                    session.row(statements.UNLOCK, self._lock)
                else:
                    session.close()

    def _set_meta(self, meta: dict[str, Any]) -> None:
        self.meta = meta

    @property
    def _lock(self) -> int:
        """The number of the advisory lock: it is the same on all hosts."""
        return int.from_bytes(hashlib.sha256(schema_of(self._place).encode()).digest()[:8], "big", signed=True)

    def attachment(self, name: str) -> bytes | None:
        with self._pool.session() as session:
            found = session.rows("SELECT data FROM attachments WHERE name = %s", name)
        return found[0][0] if found else None

    def describe(self) -> dict[str, Any]:
        with self._pool.session() as session:
            sizes = dict(session.rows(statements.SIZES))
        names = ("documents", "entries", "staged")
        return {
            "store": "postgresql",
            "server": self._server,
            "schema": schema_of(self._place),
            "bytes": sum(sizes.values()),
            **{f"{name}_bytes": sizes[name] for name in names},
        }

    def verify(self) -> list[str]:
        found = []
        with self._pool.session() as session:
            try:
                session.row("SELECT set_config('enable_seqscan', 'on', false)")
                session.execute(statements.BEGIN_READING)
                for statement, sentence in statements.CHECKS.items():
                    (wrong,) = session.row(statement)
                    if wrong:
                        sentence = sentence.format(wrong)
                        found.append(f"{sentence[0].upper()}{sentence[1:]}.")
            except StoreError as error:
                found.append(str(error))
            finally:
                session.close()
        return found

    def compact(self) -> None:
        with self._pool.session() as session:
            try:
                session.execute("SET lock_timeout = 0")
                for table in ("documents", "entries", "staged", "runs", "counts"):
                    session.execute(f"VACUUM (ANALYZE) {table}")
                session.execute("REINDEX TABLE CONCURRENTLY entries")  # readers and writers do not wait for it
            finally:
                session.close()

    def backup(self, path: str) -> None:
        raise StoreError(
            f"neardup does not back up a database: got {path!r} for {self._place.shown}. PostgreSQL's own tools do, "
            "while the index is in use. Run: pg_dump --format=custom "
            f"--schema='\"{schema_of(self._place)}\"' --file={path} DATABASE"
        )

    def close(self) -> None:
        self._pool.close()


def _end(session: Session) -> None:
    """End a transaction of reads; one that failed is over with its connection.

    Not by ROLLBACK: psycopg would plan all statements anew.
    """
    try:
        session.connection.commit()
    except psycopg.Error:
        session.close()


def _promise_of(fsync: str, synchronous_commit: str) -> tuple[bool, str]:
    """Return whether acknowledged documents survive the server's process, and the sentence about it."""
    if synchronous_commit == "off":
        return False, (
            "The server acknowledges before it writes (synchronous_commit=off): a crash of the server may lose the "
            "changes of the last second."
        )
    if fsync != "on":
        return True, (
            "Acknowledged changes survive a crash of the client or of PostgreSQL, but not of the server's machine or "
            "its power (fsync=off)."
        )
    return True, (
        "Acknowledged changes are on the disk of the server: they survive a crash of the client, of PostgreSQL and of "
        f"its machine (fsync=on, synchronous_commit={synchronous_commit})."
    )
