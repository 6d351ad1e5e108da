"""Move the journal to files, merge files, drop forgotten rows, beside writes and reads."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels
from neardup.schemas import KEPT
from neardup.stores.base import Changes, check_changes, join_changes
from neardup.stores.chunks import Chunk, all_of, as_batch, bits_at, without
from neardup.stores.documents import Seen, merge_seen, seen_at
from neardup.stores.embedded import row_files
from neardup.stores.embedded.array_files import FileInfo
from neardup.stores.embedded.database import Database
from neardup.stores.embedded.folder import remove_files, sync_folder
from neardup.stores.embedded.loading import COUNTERS, Counters, Loader
from neardup.stores.key_tables import Bits, KeyRun, first_to_merge, sort_entries
from neardup.stores.state import State, lengthen

FROZEN = ""
"""The name of times in memory that are being written to a file."""
_MAX_DOCUMENTS_BYTES = 32 << 20  # of files that are merged, in memory
_FILES_OF_A_JOB = 4  # at most
_NICENESS = 10
_RECORDS_AT_ONCE = 4  # deleted with each write, which appends one: faster than the journal grows


@dataclass
class Job:
    """Files to write, in any thread, and to install by the writer.

    write : writes them. numbers : for their names. replaced : the files that they replace. record : all changes up to
    that number are in files then. forgotten : those on disk then, if they change. infos, opened : what was written.
    """

    write: Callable[[Job], None]
    numbers: Iterator[int]
    replaced: list[FileInfo]
    record: int | None = None
    forgotten: Bits | None = None
    infos: list[FileInfo] = field(default_factory=list)
    opened: list[Any] = field(default_factory=list)


class Maintenance:
    """The files of an index, for its only writer.

    Only `run` may be called by another thread: it takes no lock, so that a thread of low priority that holds one makes
    nobody wait. Of flushes one at a time is under way, and one of merges.

    Parameters
    ----------
    folder : of the index.
    database : the connection of the writer.
    loader : has the state.
    lock : is held while the state or the database is used.
    publish : is called, with the lock held, after the state has changed.
    """

    def __init__(
        self, folder: Path, database: Database, loader: Loader, lock: Any, publish: Callable[[], None]
    ) -> None:
        self._folder, self._database, self._loader = folder, database, loader
        self._lock, self._publish = lock, publish
        self._forgotten_on_disk = loader.forgotten_on_disk
        self.flushed = loader.flushed  # as far as the journal is in files
        self._unmerged = True  # whether there may be files to merge
        self._trimmed = (database.first_record() or self.flushed + 1) - 1  # as far as its records were deleted
        # Files whose commit failed: it may still be in the log, so they are removed after the next commit.
        self._leftovers: list[str] = []

    @property
    def _state(self) -> State:
        return self._loader.state

    @property
    def num_key_files(self) -> int:
        """The number of files that a lookup visits."""
        return len(self._infos(row_files.KEYS))

    def flush(self) -> None:
        """Move the journal to files. Raises OSError, sqlite3.Error; the journal is as before then."""
        self._finish(self.begin_flush())

    def merge(self) -> None:
        """Merge files until their sizes differ enough. Raises OSError, sqlite3.Error."""
        while (job := self.begin_merge()) is not None:
            self._finish(job)

    def begin_flush(self) -> Job | None:
        """Return the job that moves the journal to files, None if all of it is."""
        with self._lock:
            state, record, flushed = self._state, self._loader.number, self.flushed
            state.keys.seal_tail()
            runs = [run for run in state.keys.runs if run.name is None]
            chunks = [chunk for chunk in state.documents.chunks if chunk.name is None]
            on_disk = tuple(run for run in state.documents.seen if run.name)
            seen = tuple(run._replace(name=FROZEN) for run in state.documents.seen if not run.name)
            state.documents.seen = (*on_disk, *seen)
            forgotten, kept, num_rows = state.forgotten.copy(), state.kept, state.num_rows
            state.least_row = num_rows
            self._publish()
        changed = not _same_bits(forgotten, self._forgotten_on_disk)
        if not (runs or seen or changed):
            return None

        def write(job: Job) -> None:
            if runs:
                self._write_keys(job, runs, kept, forgotten)
                self._write_documents(job, [without(chunk, forgotten, state.documents.schema) for chunk in chunks])
            if seen:
                self._write_seen(job, flushed, record, merge_seen(seen))
            if changed:
                self._write_forgotten(job, num_rows, forgotten)

        replaced = self._infos(row_files.FORGOTTEN) if changed else []
        return self._job(write, replaced, record, forgotten if changed else None)

    def begin_merge(self) -> Job | None:
        """Return the next job that merges files, None if their sizes differ enough."""
        if not self._unmerged:
            return None
        self._unmerged = False  # until files are installed: those of this job, or if it fails, of a flush
        return self._begin_merge_of_keys() or self._begin_merge_of_documents() or self._begin_merge_of_seen()

    def write_through(self, parts: Iterable[Changes]) -> None:
        """Write large changes to files at once, not to the journal: it takes a third of the time.

        Requires: the journal is in files, and nothing else is written. Raises OSError, sqlite3.Error; nothing has
        changed then.

        Parameters
        ----------
        parts : each of the state after those before it; only one is in memory at a time.
        """
        state, record = self._state, self._loader.number + 1
        rest = Changes()
        added: list[tuple[npt.NDArray[np.bool_], KeyRun, Chunk]] = []

        def write(job: Job) -> None:
            nonlocal rest
            others: list[Changes] = []
            stop = state.num_rows
            kept, forgotten = state.kept.copy(), state.forgotten.copy()
            for part in parts:
                check_changes(part, stop, state.documents.schema)
                others.append(replace(part, documents=None, entries=None))
                first, stop = stop, stop + (0 if part.documents is None else len(part.documents))
                kept, forgotten = lengthen(kept, stop), lengthen(forgotten, stop)
                kernels.key_tables.set_bits(forgotten, part.forgotten)
                if part.documents is None or first == stop:
                    continue
                is_kept = part.documents.column("state").to_numpy() == KEPT
                kernels.key_tables.set_bits(kept, first + np.flatnonzero(is_kept))
                entries = state.entries_of(part.documents, part.entries, first)
                self._write_keys(job, [sort_entries(entries, state.keys.prefix_bits, first, stop)], kept, forgotten)
                self._write_documents(job, [Chunk(first, stop, as_batch(part.documents))])
                added.append((is_kept, job.opened[-2][0], job.opened[-1]))
            rest = join_changes(others)
            if len(rest.seen):
                times = np.full(len(rest.seen), rest.seen_at, np.int64)
                self._write_seen(job, self.flushed, record, seen_at(rest.seen, times))
            if not _same_bits(forgotten, self._forgotten_on_disk):
                job.replaced += self._infos(row_files.FORGOTTEN)
                job.forgotten = forgotten
                self._write_forgotten(job, stop, forgotten)

        def use(job: Job) -> None:
            for is_kept, run, chunk in added:
                state.append_files(is_kept, run, chunk)
            for info, opened in zip(job.infos, job.opened, strict=True):
                if info.kind == row_files.SEEN:
                    state.documents.seen = (*state.documents.seen, opened)
            state.forget(rest.forgotten)
            self._loader.number = record

        job = self._job(write, [], record)
        job.numbers = self._file_numbers()
        self.run(job)
        clean(self._folder, self.install(job, use, rest.ended_import))

    def _file_numbers(self) -> Iterator[int]:
        while True:
            self._loader.file_number += 1
            yield self._loader.file_number

    def compact(self) -> None:
        """Drop forgotten rows, and merge runs of keys to one and times to one. Raises OSError, sqlite3.Error.

        First, what frees space: the files of documents of which most were forgotten.
        """
        state = self._state
        forgotten = state.forgotten.copy()

        def count_alive(chunk: Chunk) -> int:
            return int((~bits_at(forgotten, chunk.rows(0, chunk.batch.num_rows))).sum())

        # Names, since a file that is mapped takes space.
        for name in [chunk.name for chunk in sorted(state.documents.chunks, key=count_alive) if chunk.name]:
            self._drop_forgotten(name, forgotten)
        self.flush()
        while (job := self._begin_merge_of_documents()) is not None:
            self._finish(job)
        runs = list(state.keys.runs)
        listed = sum(len(run.tables[-2].keys) for run in runs)  # in the table of ids
        if len(runs) > 1 or listed > state.num_kept + state.num_removed:
            self._finish(self._job_of_keys(runs))
        self._finish(self._begin_merge_of_seen(everything=True))

    def _drop_forgotten(self, name: str, forgotten: Bits) -> None:
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
        runs = runs[0 if everything or not runs else first_to_merge([len(run.rows) for run in runs]) :]
        if len(runs) < 2:
            return None
        infos = self._infos_of(runs)
        first, stop = infos[0].first, infos[-1].stop
        return self._job(lambda job: self._write_seen(job, first, stop, merge_seen(runs)), infos)

    def trim_journal(self, everything: bool = False) -> None:
        """Delete the records of the journal that are in files: a few, or all of them. Requires: the lock.

        To delete 64 MB at once takes 0.3 s, so each write deletes a few records.
        """
        if self._trimmed < self.flushed:
            last = self.flushed if everything else min(self.flushed, self._trimmed + _RECORDS_AT_ONCE)
            self._database.drop_records(last)
            self._trimmed = last

    # Writing files.

    def run(self, job: Job) -> None:
        """Write the files of a job. Raises OSError, StoreError; there are none then.

        Files that are replaced are checked before: damage would get a checksum that is right.
        """
        for info in job.replaced:
            row_files.check_file(self._folder, info)
        try:
            job.write(job)
            sync_folder(self._folder)
        except BaseException:
            remove_files(self._folder, [info.name for info in job.infos])
            raise

    def _job(
        self,
        write: Callable[[Job], None],
        replaced: list[FileInfo],
        record: int | None = None,
        forgotten: Bits | None = None,
    ) -> Job:
        first = self._loader.file_number + 1
        self._loader.file_number += _FILES_OF_A_JOB
        return Job(write, iter(range(first, first + _FILES_OF_A_JOB)), replaced, record, forgotten)

    def _job_of_keys(self, runs: Sequence[KeyRun]) -> Job:
        kept, forgotten = self._state.kept, self._state.forgotten.copy()
        return self._job(lambda job: self._write_keys(job, runs, kept, forgotten), self._infos_of(runs))

    def _job_of_documents(self, chunks: Sequence[Chunk], replaced: Sequence[Chunk]) -> Job:
        return self._job(lambda job: self._write_documents(job, chunks), self._infos_of(replaced))

    def _write_keys(self, job: Job, runs: Sequence[KeyRun], kept: Bits, forgotten: Bits) -> None:
        prefix_bits = self._state.keys.prefix_bits
        info = row_files.write_keys(self._folder, next(job.numbers), runs, prefix_bits, kept, forgotten)
        job.infos.append(info)
        job.opened.append(row_files.open_keys(self._folder, info, len(prefix_bits)))

    def _write_documents(self, job: Job, chunks: Sequence[Chunk]) -> None:
        schema = self._state.documents.schema
        first, stop = chunks[0].first, chunks[-1].stop
        batch = as_batch(pa.concat_tables([all_of(chunk, schema) for chunk in chunks]))
        info = row_files.write_documents(self._folder, next(job.numbers), first, stop, batch)
        job.infos.append(info)
        job.opened.append(row_files.open_documents(self._folder, info))

    def _write_seen(self, job: Job, first: int, stop: int, seen: Seen) -> None:
        info = row_files.write_seen(self._folder, next(job.numbers), first, stop, seen)
        job.infos.append(info)
        job.opened.append(row_files.open_seen(self._folder, info))

    def _write_forgotten(self, job: Job, num_rows: int, forgotten: Bits) -> None:
        job.infos.append(row_files.write_forgotten(self._folder, next(job.numbers), num_rows, forgotten))
        job.opened.append(None)

    # Installing them.

    def _finish(self, job: Job | None) -> None:
        """Do a job, if there is one."""
        if job is not None:
            self.run(job)
            clean(self._folder, self.install(job))

    def install(self, job: Job, use: Callable[[Job], None] | None = None, ended_import: str | None = None) -> list[str]:
        """List the files of a job in the database, and use them; return the files that may be removed.

        Parameters
        ----------
        job : was run.
        use : is called with the lock held, after the commit, instead of `_use`.
        ended_import : is dropped in the same transaction.
        """
        with self._lock:
            record = self.flushed if job.record is None else job.record
            replaced = [info.name for info in job.replaced]
            counters = Counters(record, self._loader.file_number)
            self._leftovers += [info.name for info in job.infos]
            with self._database.transaction():
                if ended_import is not None:
                    self._database.end_import(ended_import)
                self._database.drop_files(replaced)
                for info in job.infos:
                    self._database.add_file(info)
                self._database.set_setting(COUNTERS, json.dumps(counters._asdict()).encode())
            self.flushed, self._unmerged = record, True
            if job.forgotten is not None:
                self._forgotten_on_disk = job.forgotten
            self._loader.forget(replaced)
            for info, opened in zip(job.infos, job.opened, strict=True):
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
        for info, opened in zip(job.infos, job.opened, strict=True):
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
    for pool in (pa.default_memory_pool(), pa.system_memory_pool()):  # the latter has the memory of NumPy too
        pool.release_unused()


def lower_priority() -> None:
    """Let other threads go before this one, so that a flush does not take half of the processor of writers."""
    if sys.platform == "linux":  # elsewhere a process has one priority for all its threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _same_bits(left: Bits, right: Bits) -> bool:
    """Return whether two arrays of bits differ in zeros at the end at most."""
    size = min(len(left), len(right))
    return bool((left[:size] == right[:size]).all() and not left[size:].any() and not right[size:].any())
