"""The store of an index in a folder: SQLite and immutable files that are mapped into memory."""

from __future__ import annotations

import os
import shutil
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import chain
from pathlib import Path
from threading import RLock

import pyarrow as pa

from neardup.errors import StoreError
from neardup.files import JsonObject
from neardup.stores.base import (
    Changes,
    Import,
    Store,
    StoreSettings,
    attachment_name,
    decode_settings,
    join_changes,
)
from neardup.stores.embedded import row_files
from neardup.stores.embedded.array_files import FileInfo
from neardup.stores.embedded.database import NAME, Database, create_database
from neardup.stores.embedded.folder import (
    Reserve,
    check_new,
    copy_index,
    lock_for_writing,
    publish_folder,
    remove_files,
    store_errors,
)
from neardup.stores.embedded.loading import COUNTERS, Counters, Loader, encode
from neardup.stores.embedded.maintenance import Job, Maintenance, clean, lower_priority
from neardup.stores.hashed import check_rows
from neardup.stores.packed_rows import decode_table, encode_table
from neardup.stores.state import RowChanges, StateStore, View

MEMORY_BYTES = 256 << 20

# Tasks in the background: to move the journal to files, and to merge files.
_FLUSH = "flush"
_MERGE = "merge"

_MAX_RECORDS = 8192  # records in the journal; to read them takes a tenth of a second
_MAX_RECORDS_AT_CLOSE = 512
# The memory is divided into parts: changes since the last flush, changes that are being flushed,
# copies of both, the batch that is added, and merges.
_PARTS = 8
# Larger changes are written to files, not to the journal. With less memory, fewer bytes are enough.
_THROUGH_DOCUMENTS = 100  # bytes of smaller parts are not counted
_THROUGH_BYTES = 8 << 20
_MAX_KEY_FILES = 32  # with more, a writer waits for merges
_BYTES_PER_ROW = 64  # memory of a row, besides its bytes in the journal
_RECORD_BYTES = 64 << 20  # maximum of a row in the database; the limit of SQLite is 1e9


class EmbeddedStore(StateStore):
    """The store of an index in a folder.

    Parameters
    ----------
    address : the folder.
    read_only : whether `writing` is refused.
    memory_bytes : approximate maximum memory of documents and keys that are not in files yet.

    Raises
    ------
    StoreError
        If there is no index, or it is damaged, open for writing elsewhere, or of a later version.
    """

    durable = True
    promise = (
        "A call returns when its documents are synced to disk: they survive a crash of the process "
        "or of the system, and a loss of power."
    )

    def __init__(
        self, address: str, read_only: bool = False, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        super().__init__(address, read_only)
        self._folder = Path(address)
        self._lock = RLock()
        self._part_bytes = memory_bytes // _PARTS  # the maximum in memory between two flushes
        self._through_bytes = min(_THROUGH_BYTES, self._part_bytes)
        self._reserve = Reserve(self._folder)
        # If a step fails, the earlier ones are undone; `close` undoes all.
        with store_errors(self._folder), ExitStack() as opened:
            # Reading first: the lock would create a file in a folder without an index.
            self._database = opened.enter_context(closing(self._connect(read_only=True)))
            if not read_only:
                opened.callback(os.close, lock_for_writing(self._folder))
                self._database.close()
                self._database = opened.enter_context(closing(self._connect(read_only=False)))
            self._open()
            self._opened = opened.pop_all()

    def _connect(self, read_only: bool) -> Database:
        """Open the database. A writer uses the reserve if the disk is full."""
        if self.read_only:
            return Database(self._folder, read_only=True)
        return self._reserve.use(lambda: Database(self._folder, read_only=read_only))

    def _open(self) -> None:
        """Load the state, and start the maintenance of a writer. Requires: the database is open."""
        self._version = self._database.data_version()
        self.settings = decode_settings(self._database.required_setting)
        self._loader = Loader(self._folder, self._database, self.settings)
        self._loader.load()
        self._publish()
        if not self.read_only:
            self._remove_unlisted_files()
            self._maintenance = Maintenance(
                self._folder, self._database, self._loader, self._lock, self._publish
            )
            # Two threads, because a flush and a merge may run at the same time.
            self._pool = ThreadPoolExecutor(2, "neardup-store", lower_priority)
            self._tasks: dict[str, Future[Job]] = {}
            self._pending_bytes = 0  # in memory since the last flush

    def _remove_unlisted_files(self) -> None:
        """Remove the files that an interrupted writer left."""
        names = {path.name for path in self._folder.iterdir() if row_files.is_file_name(path.name)}
        remove_files(self._folder, names - set(self._loader.files))

    def attachment(self, name: str) -> bytes | None:
        """Return a file that was stored when the index was created, or None."""
        with self._lock, store_errors(self._folder):
            self.require_open()
            return self._database.setting(attachment_name(name))

    def describe(self) -> JsonObject:
        """Return sizes for `info`."""
        with self._lock, store_errors(self._folder):
            self.require_open()
            infos = self._database.files()
            records = self._database.count_records(self._loader.counters().record)
        bytes_by_kind = dict.fromkeys(row_files.KINDS, 0)
        for info in infos:
            bytes_by_kind[info.kind] += info.num_bytes
        database_bytes = self._database.num_bytes()
        return {
            "bytes": database_bytes + sum(bytes_by_kind.values()),
            "database_bytes": database_bytes,
            **{f"{kind}_bytes": num_bytes for kind, num_bytes in bytes_by_kind.items()},
            "num_files": len(infos),
            "num_key_runs": sum(info.kind == row_files.KEYS for info in infos),
            "journal_records": records,
        }

    def verify(self) -> list[str]:
        """Return a sentence for each damaged part."""
        with self.reading() as snapshot, store_errors(self._folder):
            with self._lock:
                problems = list(self._database.problems())
            problems += row_files.check_files(self._folder, self._list_files)
            return problems or check_rows(snapshot)

    def compact(self) -> None:
        """Drop the documents of forgotten rows, and merge files."""
        with self.writing(), store_errors(self._folder):
            self._reserve.use(self._compact)

    def _compact(self) -> None:
        try:
            self._finish_tasks()
        # StoreError is an OSError, too: damage must end the call.
        except StoreError:
            raise
        except (OSError, sqlite3.Error):
            pass  # the disk was full; the steps below do the same work
        self._maintenance.compact()
        with self._lock:
            self._shorten_database()

    def backup(self, path: str) -> None:
        """Write a copy of the latest state to a new folder, while the store is in use."""
        self.require_open()
        with store_errors(Path(path)):
            copy_index(self._folder, Path(path))

    def close(self) -> None:
        """Wait for background tasks, and release files and the lock.

        All changes are on disk already, so a full disk or a damaged file is only a warning.
        """
        with self._writers:
            if self.closed:
                return
            try:
                if not self.read_only:
                    with store_errors(self._folder):
                        self._reserve.use(self._tidy)
            except StoreError as error:
                warnings.warn(
                    f"The index was closed, and all its documents are stored. {error}", stacklevel=2
                )
            finally:
                self._release()

    def _release(self) -> None:
        """Close threads, files and the lock. The order matters: tasks use the database."""
        if not self.read_only:
            self._pool.shutdown()
        with self._lock:
            self.closed = True
            self._database.close()
            if not self.read_only:
                # An index works without its reserve, so closing does not fail for it.
                with suppress(OSError):
                    self._keep_reserve()
                del self._maintenance
            self._opened.close()
            # Removed files take space as long as they are mapped.
            del self._latest
            del self._loader

    def _tidy(self) -> None:
        """Move a long journal to files, and make the database small."""
        self._finish_tasks()
        if self._loader.last_record - self._loader.flushed > _MAX_RECORDS_AT_CLOSE:
            self._maintenance.flush()
            self._maintenance.merge()
        with self._lock:
            self._shorten_database()

    def _shorten_database(self) -> None:
        self._maintenance.trim_journal(everything=True)
        self._database.vacuum()

    # Reading.

    def _follow(self) -> None:
        """Load the latest commits of the writer."""
        # A writer publishes its own commits.
        if not self.read_only:
            return
        with self._lock, store_errors(self._folder):
            self.require_open()
            version = self._database.data_version()
            if version != self._version:
                self._loader.load()
                self._version = version
                self._publish()

    def _publish(self) -> None:
        """Make the current state the latest for readers. Requires: the lock."""
        self._latest = View(self, self._loader.state.moment())

    def _list_files(self) -> list[FileInfo]:
        with self._lock:
            return self._database.files()

    def _list_imports(self) -> list[Import]:
        with self._lock, store_errors(self._folder):
            self.require_open()
            return self._database.imports()

    def _read_staged(self, import_name: str) -> Iterator[pa.Table]:
        number = 0
        while True:
            with self._lock, store_errors(self._folder):
                self.require_open()
                record = self._database.staged(import_name, number)
            if record is None:
                return
            number, data = record
            yield decode_table(data)

    # Writing.

    def _write_all(self, parts: Iterable[Changes]) -> None:
        """Apply all changes or none: small changes as one record of the journal, large ones as
        files.

        A record is one synced write. Files need several, but the data need not be written again
        when the journal is moved to files.
        """
        rest = iter(parts)
        first_parts, num_bytes = self._take_small(rest)
        changes = join_changes(first_parts)
        with store_errors(self._folder):
            self.require_open()
            self._loader.state.check(changes)
            if changes.documents is None:
                # The reserve is for changes that free space.
                self._reserve.use(lambda: self._write_journal(changes, encode(changes)))
            else:
                self._limit_memory()
                self._keep_reserve()
                record = None if num_bytes > self._through_bytes else encode(changes)
                if record is None or len(record) > _RECORD_BYTES:
                    # The first parts are joined already; the others are read while they are
                    # written.
                    self._write_through(chain([changes], rest))
                else:
                    self._write_journal(changes, record)
            self._start_tasks()

    def _take_small(self, parts: Iterator[Changes]) -> tuple[list[Changes], int]:
        """Return the first parts, up to the size that is written to files, and the bytes of their
        documents.

        The bytes of a single part of few documents are not counted, which takes 70 microseconds.
        """
        taken = []
        num_bytes = 0
        for part in parts:
            taken.append(part)
            documents = part.documents
            if documents is not None and (len(taken) > 1 or len(documents) >= _THROUGH_DOCUMENTS):
                num_bytes += documents.nbytes
            if num_bytes > self._through_bytes:
                break
        return taken, num_bytes

    def _write_through(self, parts: Iterable[Changes]) -> None:
        """Move the journal to files, then write large changes to files."""
        self._finish(_FLUSH)
        if self._loader.last_record > self._loader.flushed:
            self._maintenance.flush()
            self._pending_bytes = 0
        self._maintenance.write_through(parts)

    def _write_journal(self, changes: Changes, record: bytes) -> None:
        number = self._loader.last_record + 1
        # The caches of the processor are cold after the write, which waits for the disk.
        prepared = self._loader.state.prepare(RowChanges.of(changes))
        with self._lock:
            # One statement is a transaction by itself, without two more to begin and end it.
            if changes.ended_import is None and not self._maintenance.has_records_to_trim:
                self._database.insert("journal", number, record)
            else:
                with self._database.transaction():
                    if changes.ended_import is not None:
                        self._database.end_import(changes.ended_import)
                    self._database.insert("journal", number, record)
                    self._maintenance.trim_journal()
            # The state changes after the commit: an error leaves disk and memory as before.
            self._loader.last_record = number
            self._loader.state.apply(prepared)
            self._publish()
        self._pending_bytes += len(record) + _BYTES_PER_ROW * changes.num_documents

    def _keep_reserve(self) -> None:
        """Reserve the space for forgetting documents. Raises OSError if the disk is full."""
        files = sum(info.num_bytes for info in self._loader.files.values())
        self._reserve.keep(self._latest.num_rows, self._database.num_bytes() + files)

    def _stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        with store_errors(self._folder), self._lock:
            self.require_open()
            self._keep_reserve()
            with self._database.transaction():
                self._database.open_import(import_name, opened)
                if documents is not None:
                    # As many rows at once as a row of the database can hold on average.
                    num_rows = max(1, len(documents) * _RECORD_BYTES // max(1, documents.nbytes))
                    for begin in range(0, len(documents), num_rows):
                        part = documents.slice(begin, num_rows)
                        self._database.stage(import_name, len(part), encode_table(part))

    def _start_tasks(self) -> None:
        """Start to move a long journal to files, and to merge files, in the background."""
        num_records = self._loader.last_record - self._loader.flushed
        is_long = self._pending_bytes > self._part_bytes or num_records > _MAX_RECORDS
        if is_long and _FLUSH not in self._tasks:
            self._pending_bytes = 0
            self._start(_FLUSH, self._maintenance.begin_flush())
        if _MERGE not in self._tasks:
            self._start(_MERGE, self._maintenance.begin_merge())

    def _start(self, task: str, job: Job | None) -> None:
        if job is not None:
            self._tasks[task] = self._pool.submit(self._maintenance.run, job)

    def _limit_memory(self) -> None:
        """Install the files of tasks that are done. Wait for a running task if the next one of its
        kind is due: changes would grow faster than tasks write them.

        Raises the errors of the tasks.
        """
        flush_is_due = self._pending_bytes > self._part_bytes
        merge_is_due = self._maintenance.num_key_files > _MAX_KEY_FILES
        for task, is_due in ((_FLUSH, flush_is_due), (_MERGE, merge_is_due)):
            if task in self._tasks and (is_due or self._tasks[task].done()):
                self._finish(task)

    def _finish(self, task: str) -> None:
        """Wait for a task, if it runs, and install its files."""
        # Removed first, so that a failed task can start again.
        running = self._tasks.pop(task, None)
        if running is not None:
            # In the pool: the writer need not wait until large files are removed.
            self._pool.submit(clean, self._folder, self._maintenance.install(running.result()))

    def _finish_tasks(self) -> None:
        """Finish both tasks, also if the first one failed; raises the error of a task."""
        try:
            self._finish(_FLUSH)
        finally:
            self._finish(_MERGE)


def create(
    address: str,
    settings: StoreSettings,
    fill: Callable[[Store], None] | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> EmbeddedStore:
    """Create an index in a folder, which appears when it is complete, and open it for writing.

    Parameters
    ----------
    address : a folder that does not exist yet, or is empty.
    settings : the settings to store.
    fill : writes the first documents. Until it has returned, the index is in the folder
        NAME.partial, which replaces the folder of an interrupted call.
    memory_bytes : see `EmbeddedStore`.

    Raises
    ------
    StoreError
        If the address exists, cannot be written, or is being filled by another process.
    """
    folder = Path(address)
    check_new(folder)
    # The folder of `fill` has a fixed name, so that the next call can remove it after a crash.
    name = f".{folder.name}.partial-{os.getpid()}" if fill is None else f"{folder.name}.partial"
    partial = folder.with_name(name)
    with store_errors(folder):
        if fill is not None and partial.exists():
            # The user may have such a folder; without a database it is not of an interrupted call.
            if not (partial / NAME).exists():
                check_new(partial)
            # A call that still fills the folder has its lock: raise, in place of removing its
            # files.
            os.close(lock_for_writing(partial))
            shutil.rmtree(partial)
        partial.mkdir(parents=True)
    try:
        with store_errors(folder):
            create_database(partial / NAME, settings.encode() | {COUNTERS: Counters().encode()})
        if fill is not None:
            # Closed before the rename: a store opens files by the path of its folder.
            with closing(EmbeddedStore(str(partial))) as store:
                fill(store)
        with store_errors(folder):
            publish_folder(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return EmbeddedStore(address, memory_bytes=memory_bytes)
