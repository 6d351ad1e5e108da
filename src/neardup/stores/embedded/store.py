"""The store of an index in a folder: SQLite and immutable files that are mapped into memory."""

from __future__ import annotations

import os
import shutil
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
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
from neardup.stores.embedded.row_files import FileInfo
from neardup.stores.hashed import check_rows
from neardup.stores.packed_rows import decode_table, encode_table
from neardup.stores.state import StateStore, View

MEMORY_BYTES = 256 << 20
_FLUSH, _MERGE = "flush", "merge"  # tasks in the background
_RECORDS_IN_JOURNAL = 8192  # read when the index is opened: a tenth of a second
# of the memory: one that grows, one that is written, copies of these, the batch that is added,
# merges
_PARTS = 8
_THROUGH_DOCUMENTS, _THROUGH_BYTES = (
    100,
    8 << 20,
)  # of a change that is written to files at once; fewer of less memory
_MAX_KEY_FILES = 32  # a writer that is ahead of the merges waits then
_BYTES_A_ROW = 64  # of memory, beside as many as in the journal
_RECORDS_AT_CLOSE = 512  # fewer stay in the journal
_RECORD_BYTES = 64 << 20  # of a row in the database, which has at most a billion


class EmbeddedStore(StateStore):
    """The store of an index in a folder.

    Parameters
    ----------
    address : the folder.
    read_only : whether `writing` is refused.
    memory_bytes : about the most memory of documents and keys that are not in files yet.

    Raises
    ------
    StoreError
        If there is no index, or it is damaged, open for writing elsewhere, or of a later version.
    """

    durable = True
    promise = (
        "A call returns when its documents are synced to disk: they survive a crash of the "
        "process or of the system, and a loss of power."
    )

    def __init__(
        self, address: str, read_only: bool = False, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        super().__init__(address, read_only)
        self._folder, self._lock = Path(address), RLock()
        self._part_bytes = memory_bytes // _PARTS  # wait in memory for the next flush
        self._through_bytes = min(
            _THROUGH_BYTES, self._part_bytes
        )  # documents of more are written to files at once
        self._reserve = Reserve(self._folder)
        with store_errors(self._folder), ExitStack() as opened:
            # Before the lock makes a file where there is no index.
            self._database = opened.enter_context(closing(self._connect(read_only=True)))
            if not read_only:
                opened.callback(os.close, lock_for_writing(self._folder))
                self._database.close()
                self._database = opened.enter_context(closing(self._connect(read_only=False)))
            self._open()
            self._opened = opened.pop_all()

    def _connect(self, read_only: bool) -> Database:
        if self.read_only:
            return Database(self._folder, True)
        return self._reserve.use(lambda: Database(self._folder, read_only))

    def _open(self) -> None:
        self._version = self._database.data_version()
        self.settings = decode_settings(self._database.needed_setting)
        self._loader = Loader(self._folder, self._database, self.settings)
        self._loader.load()
        self._publish()
        if not self.read_only:
            files = {
                path.name for path in self._folder.iterdir() if row_files.is_file_name(path.name)
            }
            remove_files(self._folder, files - set(self._loader.files))
            self._maintenance = Maintenance(
                self._folder, self._database, self._loader, self._lock, self._publish
            )
            self._pool = ThreadPoolExecutor(2, "neardup-store", lower_priority)
            self._tasks: dict[str, Future[Job]] = {}
            self._pending_bytes = 0

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Open the latest state."""
        if self.read_only:
            with self._lock, store_errors(self._folder):
                self.require_open()
                self._follow()
        with super().reading() as snapshot:
            yield snapshot

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
        sizes = {
            kind: sum(info.num_bytes for info in infos if info.kind == kind)
            for kind in row_files.KINDS
        }
        database = self._database.num_bytes()
        return {
            "bytes": database + sum(sizes.values()),
            "database_bytes": database,
            **{f"{kind}_bytes": size for kind, size in sizes.items()},
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
        """Drop the documents of forgotten rows, and merge what makes lookups slower."""
        with self.writing(), store_errors(self._folder):
            self._reserve.use(self._compact)

    def _compact(self) -> None:
        try:
            self._finish_tasks()
        except StoreError:
            raise
        except (OSError, sqlite3.Error):
            pass  # the disk was full; what they were to do is done here
        self._maintenance.compact()
        with self._lock:
            self._shorten_database()

    def backup(self, path: str) -> None:
        """Write a copy of the latest state to a new folder, while the store is in use."""
        self.require_open()
        with store_errors(Path(path)):
            copy_index(self._folder, Path(path))

    def close(self) -> None:
        """Wait for what is being written, and release files and the lock.

        Every change is on disk before. A disk that is full, or a file that is found damaged, is a
        warning here.
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
                if not self.read_only:
                    self._pool.shutdown()
                with self._lock:
                    self.closed = True
                    self._database.close()
                    if not self.read_only:
                        with suppress(OSError):
                            self._keep_reserve()
                        del self._maintenance
                    self._opened.close()
                    del (
                        self._latest,
                        self._loader,
                    )  # files that were removed take space while they are mapped

    def _tidy(self) -> None:
        """Move a long journal to files, and make the database small."""
        self._finish_tasks()
        if self._loader.number - self._loader.flushed > _RECORDS_AT_CLOSE:
            self._maintenance.flush()
            self._maintenance.merge()
        with self._lock:
            self._shorten_database()

    def _shorten_database(self) -> None:
        self._maintenance.trim_journal(everything=True)
        self._database.vacuum()

    # Reading.

    def _follow(self) -> None:
        """Take in what the writer has committed. Requires: the lock."""
        version = self._database.data_version()
        if version != self._version:
            self._loader.load()
            self._version = version
            self._publish()

    def _publish(self) -> None:
        """Let calls of `reading` return the state of now. Requires: the lock."""
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
        """Apply several changes or none: as one, or if they are large, by files that are listed at
        the end.
        """
        rest, small, num_bytes = iter(parts), list[Changes](), 0
        for part in rest:
            small.append(part)
            if part.documents is not None and (
                len(small) > 1 or len(part.documents) >= _THROUGH_DOCUMENTS
            ):
                num_bytes += part.documents.nbytes  # to count these takes 70 microseconds
            if num_bytes > self._through_bytes:
                break
        changes = join_changes(small)
        with store_errors(self._folder):
            self.require_open()
            self._loader.state.check(changes)
            if changes.documents is None:
                self._reserve.use(lambda: self._write_journal(changes, encode(changes)))
            else:
                self._limit_memory()
                self._keep_reserve()
                record = None if num_bytes > self._through_bytes else encode(changes)
                if record is None or len(record) > _RECORD_BYTES:
                    self._write_through(chain([changes], rest))
                else:
                    self._write_journal(changes, record)
            self._start_tasks()

    def _write_through(self, parts: Iterable[Changes]) -> None:
        """Write large changes to files, after what is in the journal."""
        self._finish(_FLUSH)
        if self._loader.number > self._loader.flushed:
            self._maintenance.flush()
            self._pending_bytes = 0
        self._maintenance.write_through(parts)

    def _write_journal(self, changes: Changes, record: bytes) -> None:
        with self._lock:
            with self._database.transaction():
                if changes.ended_import is not None:
                    self._database.end_import(changes.ended_import)
                self._database.insert("journal", self._loader.number + 1, record)
                self._maintenance.trim_journal()
            self._loader.number += 1
            self._loader.state.apply(changes)
            self._publish()
        rows = 0 if changes.documents is None else len(changes.documents)
        self._pending_bytes += len(record) + _BYTES_A_ROW * rows

    def _keep_reserve(self) -> None:
        """Keep the space that documents will be forgotten with. Raises OSError if the disk is
        full.
        """
        files = sum(info.num_bytes for info in self._loader.files.values())
        self._reserve.keep(self._latest.num_rows, self._database.num_bytes() + files)

    def _stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        with store_errors(self._folder), self._lock:
            self.require_open()
            self._keep_reserve()
            with self._database.transaction():
                self._database.open_import(import_name, opened)
                if documents is not None:
                    rows = max(1, len(documents) * _RECORD_BYTES // max(1, documents.nbytes))
                    for begin in range(0, len(documents), rows):
                        part = documents.slice(begin, rows)
                        self._database.stage(import_name, len(part), encode_table(part))

    def _start_tasks(self) -> None:
        """Move the journal to files in the background if it is long, and merge files."""
        records = self._loader.number - self._loader.flushed
        if _FLUSH not in self._tasks and (
            self._pending_bytes > self._part_bytes or records > _RECORDS_IN_JOURNAL
        ):
            self._pending_bytes = 0
            self._start(_FLUSH, self._maintenance.begin_flush())
        if _MERGE not in self._tasks:
            self._start(_MERGE, self._maintenance.begin_merge())

    def _start(self, task: str, job: Job | None) -> None:
        if job is not None:
            self._tasks[task] = self._pool.submit(self._maintenance.run, job)

    def _limit_memory(self) -> None:
        """Install what is written; wait for it where the next is due. Raises what its thread
        raised.
        """
        flush_is_due = self._pending_bytes > self._part_bytes
        merge_is_due = self._maintenance.num_key_files > _MAX_KEY_FILES
        for task, is_due in ((_FLUSH, flush_is_due), (_MERGE, merge_is_due)):
            if task in self._tasks and (is_due or self._tasks[task].done()):
                self._finish(task)

    def _finish(self, task: str) -> None:
        """Wait for a task that runs in the background, if it does, and install its files."""
        running = self._tasks.pop(task, None)
        if running is not None:
            self._pool.submit(clean, self._folder, self._maintenance.install(running.result()))

    def _finish_tasks(self) -> None:
        """Wait for what runs in the background."""
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
    address : the folder, which is not there yet or empty.
    settings : of the store.
    fill : writes the first documents. Until it has returned, the index is in the folder
        NAME.partial, which is replaced if it is there from an interrupted call.
    memory_bytes : as for `open`.

    Raises
    ------
    StoreError
        If there is something at the address, or it cannot be written, or another process fills it.
    """
    folder = Path(address)
    check_new(folder)
    partial = folder.with_name(
        f".{folder.name}.partial-{os.getpid()}" if fill is None else f"{folder.name}.partial"
    )
    with store_errors(folder):
        if fill is not None and partial.exists():
            os.close(lock_for_writing(partial))
            shutil.rmtree(partial)
        partial.mkdir(parents=True)
    try:
        with store_errors(folder):
            create_database(partial / NAME, settings.encode() | {COUNTERS: Counters().encode()})
        if fill is not None:
            with closing(EmbeddedStore(str(partial))) as store:
                fill(store)
        with store_errors(folder):
            publish_folder(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return EmbeddedStore(address, memory_bytes=memory_bytes)
