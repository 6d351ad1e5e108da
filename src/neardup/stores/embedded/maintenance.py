"""Move the journal to files, merge files, drop forgotten rows, beside writes and reads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Mask, Words
from neardup.schemas import KEPT
from neardup.stores.base import Changes, check_changes, join_changes
from neardup.stores.documents import Chunk, Seen, as_batch, bits_at, merge_seen, seen_at, without
from neardup.stores.embedded import row_files
from neardup.stores.embedded.database import Database
from neardup.stores.embedded.folder import remove_files, sync
from neardup.stores.embedded.loading import COUNTERS, Counters, Loader
from neardup.stores.embedded.row_files import FileInfo
from neardup.stores.key_tables import KeyRun, first_to_merge, sort_entries
from neardup.stores.state import lengthen

FROZEN = ""
"""The name of times in memory that are being written to a file."""
_MAX_DOCUMENTS_BYTES = 32 << 20  # of files that are merged, in memory
_NICENESS = 10
_RECORDS_AT_ONCE = 4  # deleted with each write, which appends one: faster than the journal grows


@dataclass
class Job:
    """Files to write, in any thread, and to install by the writer.

    write : writes them. replaced : the files that they replace. record : all changes up to that
    number are in files then. forgotten : those on disk then, if they change. written : what was
    written, as it is opened.
    """

    write: Callable[[Job], None]
    replaced: list[FileInfo]
    record: int | None = None
    forgotten: Words | None = None
    written: dict[FileInfo, Any] = field(default_factory=dict)


class Maintenance:
    """The files of an index, for its only writer.

    Only `run` may be called by another thread: it takes no lock, so that a thread of low priority
    that holds one makes nobody wait. Of flushes one at a time is under way, and one of merges.

    Parameters
    ----------
    folder : of the index.
    database : the connection of the writer.
    loader : has the state.
    lock : is held while the state or the database is used.
    publish : is called, with the lock held, after the state has changed.
    """

    def __init__(
        self,
        folder: Path,
        database: Database,
        loader: Loader,
        lock: Any,
        publish: Callable[[], None],
    ) -> None:
        self._folder, self._database, self._loader = folder, database, loader
        self._state, self._lock, self._publish = loader.state, lock, publish
        self._unmerged = True  # whether there may be files to merge
        self._trimmed = (
            database.first_record() or loader.flushed + 1
        ) - 1  # as far as its records were deleted
        # Files whose commit failed: it may still be in the log, so they are removed after the next
        # commit.
        self._leftovers: list[str] = []

    @property
    def num_key_files(self) -> int:
        """The number of files that a lookup visits."""
        return len(self._infos(row_files.KEYS))

    def flush(self) -> None:
        """Move the journal to files. Raises OSError, sqlite3.Error; the journal is as before
        then.
        """
        self._finish(self.begin_flush())

    def merge(self) -> None:
        """Merge files until their sizes differ enough. Raises OSError, sqlite3.Error."""
        while (job := self.begin_merge()) is not None:
            self._finish(job)

    def begin_flush(self) -> Job | None:
        """Return the job that moves the journal to files, None if all of it is."""
        with self._lock:
            state, record, flushed = self._state, self._loader.number, self._loader.flushed
            schema = state.documents.schema
            state.keys.seal_tail()
            runs = [run for run in state.keys.runs if run.name is None]
            chunks = [chunk for chunk in state.documents.chunks if chunk.name is None]
            on_disk = tuple(run for run in state.documents.seen if run.name)
            seen = tuple(run._replace(name=FROZEN) for run in state.documents.seen if not run.name)
            state.documents.seen = (*on_disk, *seen)
            forgotten, kept, num_rows = state.forgotten.copy(), state.kept, state.num_rows
            state.least_row = num_rows
            self._publish()
        changed = not _same_bits(forgotten, self._loader.forgotten_on_disk)
        if not (runs or seen or changed):
            return None

        def write(job: Job) -> None:
            if runs:
                self._write(
                    job, row_files.write_keys, runs, state.keys.prefix_bits, kept, forgotten
                )
                alive = [without(chunk, forgotten, schema) for chunk in chunks]
                self._write(job, row_files.write_documents, alive, schema)
            if seen:
                self._write(job, row_files.write_seen, flushed, record, merge_seen(seen))
            if changed:
                self._write(job, row_files.write_forgotten, num_rows, forgotten)

        replaced = self._infos(row_files.FORGOTTEN) if changed else []
        return Job(write, replaced, record, forgotten if changed else None)

    def begin_merge(self) -> Job | None:
        """Return the next job that merges files, None if their sizes differ enough."""
        if not self._unmerged:
            return None
        self._unmerged = (
            False  # until files are installed: those of this job, or if it fails, of a flush
        )
        return (
            self._begin_merge_of_keys()
            or self._begin_merge_of_documents()
            or self._begin_merge_of_seen()
        )

    def write_through(self, parts: Iterable[Changes]) -> None:
        """Write large changes to files at once, not to the journal: it takes a third of the time.

        Requires: the journal is in files, and nothing else is written. Raises OSError,
        sqlite3.Error; nothing has changed then.

        Parameters
        ----------
        parts : each of the state after those before it; only one is in memory at a time.
        """
        state, record = self._state, self._loader.number + 1
        bits, schema = state.keys.prefix_bits, state.documents.schema
        rest = Changes()
        added: list[tuple[Mask, KeyRun, Chunk]] = []

        def write(job: Job) -> None:
            nonlocal rest
            others: list[Changes] = []
            stop = state.num_rows
            kept, forgotten = state.kept.copy(), state.forgotten.copy()
            for part in parts:
                check_changes(part, stop, schema)
                others.append(replace(part, documents=None, entries=None))
                first, stop = stop, stop + (0 if part.documents is None else len(part.documents))
                kept, forgotten = lengthen(kept, stop), lengthen(forgotten, stop)
                kernels.key_tables.set_bits(forgotten, part.forgotten)
                if part.documents is None or first == stop:
                    continue
                is_kept = part.documents.column("state").to_numpy() == KEPT
                kernels.key_tables.set_bits(kept, first + np.flatnonzero(is_kept))
                run = sort_entries(
                    state.entries_of(part.documents, part.entries, first), bits, first, stop
                )
                run, _ = self._write(job, row_files.write_keys, [run], bits, kept, forgotten)
                chunk = Chunk(first, stop, as_batch(part.documents))
                added.append(
                    (is_kept, run, self._write(job, row_files.write_documents, [chunk], schema))
                )
            rest = join_changes(others)
            if len(rest.seen):
                times = np.full(len(rest.seen), rest.seen_at, np.int64)
                self._write(
                    job,
                    row_files.write_seen,
                    self._loader.flushed,
                    record,
                    seen_at(rest.seen, times),
                )
            if not _same_bits(forgotten, self._loader.forgotten_on_disk):
                job.replaced += self._infos(row_files.FORGOTTEN)
                job.forgotten = forgotten
                self._write(job, row_files.write_forgotten, stop, forgotten)

        def use(job: Job) -> None:
            for is_kept, run, chunk in added:
                state.append_files(is_kept, run, chunk)
            seen = [opened for info, opened in job.written.items() if info.kind == row_files.SEEN]
            state.documents.seen = (*state.documents.seen, *seen)
            state.forget(rest.forgotten)
            self._loader.number = record

        job = Job(write, [], record)
        self.run(job)
        clean(self._folder, self.install(job, use, rest.ended_import))

    def compact(self) -> None:
        """Drop forgotten rows, and merge runs of keys to one and times to one. Raises OSError,
        sqlite3.Error.

        First, what frees space: the files of documents of which most were forgotten.
        """
        state = self._state
        forgotten = state.forgotten.copy()

        def count_alive(chunk: Chunk) -> int:
            return int((~bits_at(forgotten, chunk.rows(0, chunk.batch.num_rows))).sum())

        # Names, since a file that is mapped takes space.
        for name in [
            chunk.name for chunk in sorted(state.documents.chunks, key=count_alive) if chunk.name
        ]:
            self._drop_forgotten(name, forgotten)
        self.flush()
        while (job := self._begin_merge_of_documents()) is not None:
            self._finish(job)
        runs = list(state.keys.runs)
        listed = sum(len(run.tables[-2].keys) for run in runs)  # in the table of ids
        if len(runs) > 1 or listed > state.num_kept + state.num_removed:
            self._finish(self._job_of_keys(runs))
        self._finish(self._begin_merge_of_seen(everything=True))

    def _drop_forgotten(self, name: str, forgotten: Words) -> None:
        """Write a file of documents again if some of its rows were forgotten."""
        chunk = next(chunk for chunk in self._state.documents.chunks if chunk.name == name)
        smaller = without(chunk, forgotten, self._state.documents.schema)
        if smaller is not chunk:
            self._finish(self._job_of_documents([smaller], [chunk]))

    def _begin_merge_of_keys(self) -> Job | None:
        runs = [run for run in self._state.keys.runs if run.name]
        runs = runs[first_to_merge([run.num_entries for run in runs]) :] if runs else []
        return self._job_of_keys(runs) if len(runs) > 1 else None

    def _begin_merge_of_documents(self) -> Job | None:
        chunks = [chunk for chunk in self._state.documents.chunks if chunk.name]
        sizes = [self._loader.files[chunk.name or ""].num_bytes for chunk in chunks]
        chunks = chunks[first_to_merge(sizes, _MAX_DOCUMENTS_BYTES) :] if chunks else []
        return self._job_of_documents(chunks, chunks) if len(chunks) > 1 else None

    def _begin_merge_of_seen(self, everything: bool = False) -> Job | None:
        runs = [run for run in self._state.documents.seen if run.name]
        runs = runs[
            0 if everything or not runs else first_to_merge([len(run.rows) for run in runs]) :
        ]
        if len(runs) < 2:
            return None
        infos = self._infos_of(runs)
        first, stop = infos[0].first, infos[-1].stop
        return Job(
            lambda job: self._write(job, row_files.write_seen, first, stop, merge_seen(runs)), infos
        )

    def trim_journal(self, everything: bool = False) -> None:
        """Delete the records of the journal that are in files: a few, or all of them. Requires: the
        lock.

        To delete 64 MB at once takes 0.3 s, so each write deletes a few records.
        """
        if self._trimmed < self._loader.flushed:
            last = (
                self._loader.flushed
                if everything
                else min(self._loader.flushed, self._trimmed + _RECORDS_AT_ONCE)
            )
            self._database.drop_records(last)
            self._trimmed = last

    # Writing files.

    def run(self, job: Job) -> Job:
        """Write the files of a job. Raises OSError, StoreError; there are none then.

        Files that are replaced are checked before: damage would get a checksum that is right.
        """
        for info in job.replaced:
            row_files.check_file(self._folder, info)
        try:
            job.write(job)
            sync(self._folder)
        except BaseException:
            remove_files(self._folder, [info.name for info in job.written])
            raise
        return job

    def _write(self, job: Job, write: Callable[..., FileInfo], *arguments: Any) -> Any:
        """Write a file of a job, and return what it contains. write : of `row_files`."""
        info = write(self._folder, next(self._loader.file_numbers), *arguments)
        job.written[info] = None
        job.written[info] = row_files.open_file(
            self._folder, info, len(self._state.keys.prefix_bits)
        )
        return job.written[info]

    def _job_of_keys(self, runs: Sequence[KeyRun]) -> Job:
        bits, kept, forgotten = (
            self._state.keys.prefix_bits,
            self._state.kept,
            self._state.forgotten.copy(),
        )
        infos = self._infos_of(runs)
        return Job(
            lambda job: self._write(job, row_files.write_keys, runs, bits, kept, forgotten), infos
        )

    def _job_of_documents(self, chunks: Sequence[Chunk], replaced: Sequence[Chunk]) -> Job:
        schema = self._state.documents.schema
        return Job(
            lambda job: self._write(job, row_files.write_documents, chunks, schema),
            self._infos_of(replaced),
        )

    # Installing them.

    def _finish(self, job: Job | None) -> None:
        """Do a job, if there is one."""
        if job is not None:
            clean(self._folder, self.install(self.run(job)))

    def install(
        self, job: Job, use: Callable[[Job], None] | None = None, ended_import: str | None = None
    ) -> list[str]:
        """List the files of a job in the database, and use them; return the files that may be
        removed.

        Parameters
        ----------
        job : was run.
        use : is called with the lock held, after the commit, instead of `_use`.
        ended_import : is dropped in the same transaction.
        """
        with self._lock:
            record = self._loader.flushed if job.record is None else job.record
            replaced = [info.name for info in job.replaced]
            counters = Counters(record, next(self._loader.file_numbers))  # above all that were used
            self._leftovers += [info.name for info in job.written]
            with self._database.transaction():
                if ended_import is not None:
                    self._database.end_import(ended_import)
                self._database.drop_files(replaced)
                for info in job.written:
                    self._database.insert("files", *info)
                self._database.insert("settings", COUNTERS, counters.encode())
            self._loader.flushed, self._unmerged = record, True
            if job.forgotten is not None:
                self._loader.forgotten_on_disk = job.forgotten
            self._loader.forget(replaced)
            for info, opened in job.written.items():
                self._loader.keep(info, opened)
                self._leftovers.remove(info.name)
            (use or self._use)(job)
            self._publish()
            gone = [*replaced, *self._leftovers]
            self._leftovers.clear()
        return gone

    def _use(self, job: Job) -> None:
        """Put what files contain where it was in memory or in other files."""
        state = self._state
        for info, opened in job.written.items():
            if info.kind == row_files.KEYS:
                state.keys.replace(opened[0])
            elif info.kind == row_files.DOCUMENTS:
                state.documents.replace(opened)
            elif info.kind == row_files.SEEN:
                names = [info.name for info in job.replaced] if job.record is None else [FROZEN]
                runs = list(state.documents.seen)
                first = next(i for i, run in enumerate(runs) if run.name in names)
                rest = [run for run in runs if run.name not in names]
                state.documents.seen = (*rest[:first], opened, *rest[first:])

    def _infos(self, kind: str) -> list[FileInfo]:
        return [info for info in self._loader.files.values() if info.kind == kind]

    def _infos_of(self, parts: Sequence[KeyRun | Chunk | Seen]) -> list[FileInfo]:
        """Return the files that contain runs, chunks or times."""
        return [self._loader.files[part.name or ""] for part in parts]


def clean(folder: Path, names: Sequence[str]) -> None:
    """Remove files that nobody needs, and give memory back to the system."""
    remove_files(folder, names)
    for pool in (
        pa.default_memory_pool(),
        pa.system_memory_pool(),
    ):  # the latter has the memory of NumPy too
        pool.release_unused()


def lower_priority() -> None:
    """Let other threads go before this one, so that a flush does not take half of the processor of
    writers.
    """
    if sys.platform == "linux":  # elsewhere a process has one priority for all its threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _same_bits(left: Words, right: Words) -> bool:
    """Return whether two arrays of bits differ in zeros at the end at most."""
    size = min(len(left), len(right))
    return bool(
        (left[:size] == right[:size]).all() and not left[size:].any() and not right[size:].any()
    )
