"""The store of an index in PostgreSQL."""

from __future__ import annotations

import time
import weakref
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager

import psycopg

from neardup.errors import StoreError
from neardup.files import JsonObject
from neardup.stores.base import StoredSnapshot, StoreSettings, Writer
from neardup.stores.postgres import statements
from neardup.stores.postgres.connections import Pool, schema_of
from neardup.stores.postgres.snapshot import PostgresSnapshot, PostgresWriter
from neardup.stores.servers import ServerStore

_PAUSE_S = 0.1  # between two looks of a compaction at whether another one is done


class PostgresStore(ServerStore):
    """An index in a schema of a database: postgresql://user@host:port/database?index=NAME; other
    options of libpq may follow.
    """

    def _connect(self) -> None:
        self._pool = Pool(self.server_address)
        # Connections are closed also if the caller never calls `close`.
        weakref.finalize(self, self._pool.close)

    def _create(self, new: StoreSettings, encoded: dict[str, bytes]) -> bool:
        """Create the schema and its tables in one transaction."""
        schema = schema_of(self.server_address)
        with self._pool.session() as session, session.transaction():
            # Until the end of the transaction: of several calls at once, one creates the index.
            session.row(statements.LOCK_NAME, schema)
            if session.row(statements.EXISTS)[0] is not None:
                return False
            # An empty schema may exist: a user may lack the right to create one.
            if not session.rows("SELECT FROM pg_namespace WHERE nspname = %s", schema):
                session.execute(f'CREATE SCHEMA "{schema}"')
            for statement in statements.create_statements(new.schema, new.layout):
                session.execute(statement)
            for name, data in encoded.items():
                session.execute("INSERT INTO settings VALUES (%s, %s)", name, data)
        return True

    def _stored(self, names: Collection[str]) -> dict[str, bytes]:
        with self._pool.session() as session:
            if session.row(statements.EXISTS)[0] is None:
                return {}
            return dict(
                session.rows("SELECT name, data FROM settings WHERE name = ANY(%s)", list(names))
            )

    def _drop_setting(self, name: str) -> None:
        with self._pool.session() as session:
            session.execute("DELETE FROM settings WHERE name = %s", name)

    def _names(self) -> list[str]:
        with self._pool.session() as session:
            found = session.rows(
                # The name begins at character 9, after "neardup_". A schema may be empty.
                r"SELECT substr(nspname::text, 9) FROM pg_namespace AS n JOIN pg_class AS c ON "
                r"c.relnamespace = n.oid WHERE nspname LIKE 'neardup\_%%' AND relname = 'settings'"
            )
        return [name for (name,) in found]

    def _promise(self) -> tuple[bool, str]:
        with self._pool.session() as session:
            (fsync,) = session.row("SELECT current_setting('fsync')")
            (commit,) = session.row("SELECT current_setting('synchronous_commit')")
        return _promise_of(fsync, commit)

    @property
    def _deletion(self) -> str:
        return f'drop it in psql: DROP SCHEMA "{schema_of(self.server_address)}" CASCADE.'

    def _backup_command(self, path: str) -> str:
        schema = schema_of(self.server_address)
        return f"pg_dump --format=custom --schema='\"{schema}\"' --file={path} DATABASE"

    @contextmanager
    def reading(self) -> Iterator[StoredSnapshot]:
        self.require_open()
        with self._pool.session() as session:
            session.execute(statements.BEGIN_READING)
            try:
                yield PostgresSnapshot(session, self.settings)
            finally:
                # Not by ROLLBACK, after which psycopg would plan all statements anew. A failed
                # transaction is over already.
                try:
                    session.connection.commit()
                except psycopg.Error:
                    session.close()

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        self.require_open(for_writing=True)
        with self._pool.session() as session:
            session.row(statements.LOCK)
            try:
                yield PostgresWriter(session, self.settings)
            finally:
                # The lock belongs to the connection, and ends with it if it cannot be released.
                if session.usable:
                    session.row(statements.UNLOCK)
                else:
                    session.close()

    def describe(self) -> JsonObject:
        self.require_open()
        with self._pool.session() as session:
            session.row(statements.COUNTS)  # raises StoreError if the index was dropped
            sizes = dict(session.rows(statements.SIZES))
            version = session.connection.info.server_version
        names = ("documents", "entries", "staged")
        return {
            "store": "postgresql",
            "server": ".".join(map(str, divmod(version, 10_000))),
            "schema": schema_of(self.server_address),
            "bytes": sum(sizes.values()),
            **{f"{name}_bytes": sizes[name] for name in names},
        }

    def verify(self) -> list[str]:
        self.require_open()
        found = []
        # Closed afterwards: a changed setting must not reach the next user of the connection. The
        # same in `compact`.
        with self._pool.session() as session, closing(session):
            try:
                # The checks read whole tables, for which a scan is the best plan.
                session.row("SELECT set_config('enable_seqscan', 'on', false)")
                session.execute(statements.BEGIN_READING)
                for sentence, statement in statements.CHECKS.items():
                    (wrong,) = session.row(statement)
                    if wrong:
                        found.append(sentence.format(wrong))
            except StoreError as error:
                found.append(str(error))
        return found

    def compact(self) -> None:
        self.require_open(for_writing=True)
        with self._pool.session() as session, closing(session):
            session.execute("SET lock_timeout = 0")
            # Two compactions at once would wait for each other. The lock ends with the connection.
            while not session.row(statements.TRY_LOCK_COMPACTION)[0]:
                time.sleep(_PAUSE_S)
            for table in ("documents", "entries", "staged", "imports", "counts"):
                session.execute(f"VACUUM (ANALYZE) {table}")
            # Readers and writers do not wait for it.
            session.execute("REINDEX TABLE CONCURRENTLY entries")

    def close(self) -> None:
        self.closed = True
        self._pool.close()


def _promise_of(fsync: str, synchronous_commit: str) -> tuple[bool, str]:
    """Return whether acknowledged documents survive the server's process, and the sentence about
    it.
    """
    if synchronous_commit == "off":
        return False, (
            "The server acknowledges before it writes (synchronous_commit=off): a crash of the "
            "server may lose the changes of the last second."
        )
    if fsync != "on":
        return True, (
            "Acknowledged changes survive a crash of the client or of PostgreSQL, but not of the "
            "server's machine or its power (fsync=off)."
        )
    return True, (
        "Acknowledged changes are on the disk of the server: they survive a crash of the client, "
        f"of PostgreSQL and of its machine (fsync=on, synchronous_commit={synchronous_commit})."
    )


create = PostgresStore.create
open = PostgresStore
