"""The database of an index in a folder: settings, the list of files, the journal, staged documents.

A row of each table has a checksum of its other values.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from neardup.errors import StoreError
from neardup.stores.base import Import
from neardup.stores.damage import damaged
from neardup.stores.embedded.array_files import FileInfo

NAME = "index.db"
APPLICATION_ID = 0x6E644978  # "ndIx" in ASCII; docs/index-format.md names it
FORMAT = 1
_PAGE_BYTES = 8192
# A commit moves the write-ahead log into the database (a checkpoint) if the log has more pages, and
# all calls wait: of 5,000 documents a second in the service, the slowest percent took 19 ms with
# 2 MB, 24 with 8 and 31 with 32. Calls of 50 documents take 1 % longer than with 8. A checkpoint on
# a second connection would not delay writers, but may lose commits before SQLite 3.51.3
# (sqlite.org/wal.html).
_LOG_PAGES = (2 << 20) // _PAGE_BYTES
# A step of `vacuum` frees one part of the free pages, but at least 2 MiB: each step ends with a
# checkpoint, which syncs.
_VACUUM_PARTS = 64
_MIN_VACUUM_PAGES = (2 << 20) // _PAGE_BYTES
_TABLES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, data BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE files (name TEXT PRIMARY KEY, kind TEXT NOT NULL, first INTEGER NOT NULL, stop INTEGER NOT NULL,
    bytes INTEGER NOT NULL, file_checksum INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE journal (number INTEGER PRIMARY KEY, data BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE imports (name TEXT PRIMARY KEY, opened INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE staged (number INTEGER PRIMARY KEY, import_name TEXT NOT NULL, documents INTEGER NOT NULL,
    data BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE INDEX staged_by_import ON staged (import_name);
"""  # noqa: E501
_COLUMNS = {  # the columns that the checksum of a row covers
    "settings": ("name", "data"),
    "files": ("name", "kind", "first", "stop", "bytes", "file_checksum"),
    "journal": ("number", "data"),
    "imports": ("name", "opened"),
    "staged": ("number", "import_name", "documents", "data"),
}


class Database:
    """A connection to index.db. Not for use by several threads at once.

    Methods that read raise StoreError if the checksum of a row differs. All methods may raise
    sqlite3.Error.

    Parameters
    ----------
    folder : the folder of the index.
    read_only : whether nothing is written.

    Raises
    ------
    StoreError
        If the file is missing, is not the database of an index, or has a later format.
    """

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self.path = folder / NAME
        self._files = (str(self.path), f"{self.path}-wal")
        self._connection = connect(self.path, "ro" if read_only else "rw")
        try:
            self._check()
            if not read_only:
                # With NORMAL, a commit in WAL mode is not synced: a loss of power would undo it.
                self._run("PRAGMA synchronous = FULL")
                self._run("PRAGMA secure_delete = OFF")  # some builds overwrite deleted rows
                self._run(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        except BaseException:
            self._connection.close()
            raise

    def _check(self) -> None:
        """Raise StoreError unless the file is the database of an index, in a known format."""
        application = self._run("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION_ID:
            raise damaged(self.path, "it is not the database of an index of neardup")
        version = self._run("PRAGMA user_version").fetchone()[0]
        if version < FORMAT:
            raise damaged(
                self.path, f"its user_version is {version}, which no version of neardup writes"
            )
        if version > FORMAT:
            raise StoreError(
                f"The file {self.path} has format {version}; this version of neardup reads formats "
                f"up to {FORMAT}. Install a later version of neardup."
            )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def shorten_log(self) -> None:
        """Move the write-ahead log into the database, if there are no readers."""
        self._run("PRAGMA wal_checkpoint(TRUNCATE)")

    def num_bytes(self) -> int:
        """Return the size of the database and its write-ahead log."""
        total = 0
        for file in self._files:
            with suppress(FileNotFoundError):
                total += os.stat(file).st_size
        return total

    def vacuum(self) -> None:
        """Return free pages to the file system, step by step: each step goes through the log."""
        self.shorten_log()
        num_free = self._free_pages()
        while num_free:
            step = max(_MIN_VACUUM_PAGES, num_free // _VACUUM_PARTS)
            # `execute` would free a single page.
            self._connection.executescript(f"PRAGMA incremental_vacuum({step})")
            self.shorten_log()
            # A step that frees nothing must end the loop, whatever the cause.
            num_left = self._free_pages()
            if num_left >= num_free:
                return
            num_free = num_left

    def _free_pages(self) -> int:
        """Return the number of pages that contain nothing."""
        return int(self._run("PRAGMA freelist_count").fetchone()[0])

    def data_version(self) -> int:
        """Return a number that changes when another connection has committed."""
        return int(self._run("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def transaction(self, writing: bool = True) -> Iterator[None]:
        """Run a block as one transaction, all or nothing. Raises sqlite3.Error.

        writing : whether the block writes. The transaction then takes the lock of writers at its
        start; if it read first and took the lock later, it could fail in the middle.
        """
        self._run("BEGIN IMMEDIATE" if writing else "BEGIN")
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            # After some errors, such as a full disk, SQLite has rolled back by itself, and ROLLBACK
            # would fail.
            if self._connection.in_transaction:
                self._run("ROLLBACK")
            raise

    # Settings.

    def setting(self, name: str) -> bytes | None:
        """Return a setting, or None."""
        rows = self._rows("settings", "WHERE name = ?", (name,))
        return next((bytes(data) for _, data in rows), None)

    def required_setting(self, name: str) -> bytes:
        """Return a setting. Raises StoreError if it is missing."""
        data = self.setting(name)
        if data is None:
            raise damaged(self.path, f"the setting {name} is missing")
        return data

    # Files.

    def files(self) -> list[FileInfo]:
        """Return the files, by kind and rows."""
        return [FileInfo(*row) for row in self._rows("files", "ORDER BY kind, first, stop")]

    def drop_files(self, names: Sequence[str]) -> None:
        """Remove files from the list; the files themselves stay."""
        self._connection.executemany(
            "DELETE FROM files WHERE name = ?", [(name,) for name in names]
        )

    # The journal.

    def records(self, after: int) -> dict[int, bytes]:
        """Return the records of the journal after a number, by number."""
        return dict(self._rows("journal", "WHERE number > ? ORDER BY number", (after,)))

    def count_records(self, after: int) -> int:
        """Return the number of records of the journal after a number."""
        return int(
            self._run("SELECT count(*) FROM journal WHERE number > ?", (after,)).fetchone()[0]
        )

    def first_record(self) -> int | None:
        """Return the number of the first record of the journal, or None."""
        number: int | None = self._run("SELECT min(number) FROM journal").fetchone()[0]
        return number

    def drop_records(self, last: int) -> None:
        """Remove the records up to a number."""
        self._run("DELETE FROM journal WHERE number <= ?", (last,))

    # Imports.

    def imports(self) -> list[Import]:
        """Return the open imports, by the time they were opened."""
        counts = dict(
            self._run("SELECT import_name, sum(documents) FROM staged GROUP BY import_name")
        )
        rows = self._rows("imports", "ORDER BY opened, name")
        return [Import(name, opened, counts.get(name, 0)) for name, opened in rows]

    def open_import(self, name: str, opened: int) -> None:
        """Open an import, unless it is open."""
        # `insert` replaces a row: a second call must not change the time of opening.
        if not self._run("SELECT 1 FROM imports WHERE name = ?", (name,)).fetchone():
            self.insert("imports", name, opened)

    def end_import(self, name: str) -> None:
        """Delete an import and its staged documents."""
        self._run("DELETE FROM staged WHERE import_name = ?", (name,))
        self._run("DELETE FROM imports WHERE name = ?", (name,))

    def stage(self, import_name: str, num_documents: int, data: bytes) -> None:
        """Append a part to an import: documents, encoded."""
        number = self._run("SELECT coalesce(max(number), 0) + 1 FROM staged").fetchone()[0]
        self.insert("staged", number, import_name, num_documents, data)

    def staged(self, import_name: str, after: int) -> tuple[int, bytes] | None:
        """Return the number and the data of the next part of an import after a number, or None."""
        clause = "WHERE import_name = ? AND number > ? ORDER BY number LIMIT 1"
        rows = self._rows("staged", clause, (import_name, after))
        return next(((number, data) for number, _, _, data in rows), None)

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each problem: of the file's size, its structure, and its rows."""
        page_bytes = self._run("PRAGMA page_size").fetchone()[0]
        num_bytes = self.path.stat().st_size
        # `integrity_check` accepts bytes after the last page.
        if num_bytes % page_bytes:
            yield f"{NAME}: it has {num_bytes:,} bytes, no multiple of its pages of {page_bytes:,}"
        for (text,) in self._run("PRAGMA integrity_check"):
            if text != "ok":
                yield f"{NAME}: {text}"
        for table, columns in _COLUMNS.items():
            # Not `_rows`, which ends with the first damaged row.
            for *row, checksum in self._run(f"SELECT {', '.join(columns)}, checksum FROM {table}"):
                if _checksum(row) != checksum:
                    yield f"{NAME}: the checksum of {row[0]!r} in table {table} differs"

    def backup(self, path: Path) -> None:
        """Write a copy of the database to a new file."""
        with closing(sqlite3.connect(path)) as target:
            self._connection.backup(target)

    def insert(self, table: str, *row: Any) -> None:
        """Write a row with its checksum; replace the row of the same key.

        Outside of `transaction` this is a transaction of its own.
        """
        self._run(_insertion_into(table), (*row, _checksum(row)))

    def _rows(self, table: str, clause: str, values: Sequence[Any] = ()) -> Iterator[list[Any]]:
        """Yield rows of a table, without their checksums. Raises StoreError if one differs.

        clause : the SQL after the name of the table. values : the values of its question marks.
        """
        query = f"SELECT {', '.join(_COLUMNS[table])}, checksum FROM {table} {clause}"
        for *row, checksum in self._run(query, values):
            if _checksum(row) != checksum:
                raise damaged(self.path, f"the checksum of {row[0]!r} in table {table} differs")
            yield row

    def _run(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)


@cache
def _insertion_into(table: str) -> str:
    names = ", ".join(_COLUMNS[table])
    marks = ", ".join("?" * (len(_COLUMNS[table]) + 1))
    return f"INSERT OR REPLACE INTO {table} ({names}, checksum) VALUES ({marks})"


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection without implicit transactions.

    mode : "ro" to read, "rw" to read and write, or "rwc" to create the database as well.
    """
    if mode != "rwc" and not path.is_file():
        raise StoreError(
            f"There is no index at {path.parent}: it has no file {path.name}. Name the folder of "
            "an index, or create one with `neardup index create`."
        )
    address = f"{path.absolute().as_uri()}?mode={mode}"
    has_log = path.with_name(f"{path.name}-wal").exists()
    if mode == "ro" and not has_log and not os.access(path.parent, os.W_OK):
        # SQLite cannot create its log here, and there is no log to read.
        address += "&immutable=1"
    # isolation_level=None: the module must not begin transactions by itself. check_same_thread: all
    # callers hold the lock of the store. timeout: seconds to wait for SQLite's own lock.
    return sqlite3.connect(
        address, uri=True, isolation_level=None, check_same_thread=False, timeout=60
    )


def create_database(path: Path, settings: dict[str, bytes]) -> None:
    """Create index.db with settings. Raises sqlite3.Error."""
    with closing(connect(path, "rwc")) as connection:
        # Both take effect only before the first table, and page_size not in WAL mode.
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
        connection.execute("BEGIN")
        for name, data in settings.items():
            connection.execute(
                "INSERT INTO settings VALUES (?, ?, ?)", (name, data, _checksum((name, data)))
            )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
        # One complete file, before the caller renames the folder.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _checksum(row: Sequence[Any]) -> int:
    """Return the CRC-32 of the values of a row, each followed by a zero byte.

    Bytes count unchanged, text in UTF-8, integers in decimal digits. The zero separates values:
    ("ab", "c") and ("a", "bc") differ.
    """
    checksum = 0
    for value in row:
        data = value if isinstance(value, bytes) else str(value).encode()
        checksum = zlib.crc32(b"\0", zlib.crc32(data, checksum))
    return checksum
