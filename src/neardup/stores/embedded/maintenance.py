"""Move the journal to files, merge files, drop forgotten rows, beside writes and reads.

A job writes new files in any thread. The writer then installs them: it lists them in the database,
in one transaction with the removal of the files that they replace, and uses them from then on.

    begin_*   with the lock     choose the rows and the files to replace: a Job
    run       without a lock    check these files, write the new ones
    install   with the lock     commit the list of files, use the new ones, publish the state
    clean     without a lock    remove the files that were replaced
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Mask, Words
from neardup.schemas import KEPT
from neardup.stores.base import Changes, check_changes, join_changes
from neardup.stores.documents import Chunk, Seen, bits_at, merge_seen, seen_at, without
from neardup.stores.embedded import row_files
from neardup.stores.embedded.array_files import FileInfo
from neardup.stores.embedded.database import Database
from neardup.stores.embedded.folder import remove_files, sync
from neardup.stores.embedded.loading import COUNTERS, Counters, Loader
from neardup.stores.embedded.row_files import KeyFile, Opened
from neardup.stores.key_tables import KeyRun, first_to_merge, sort_entries
from neardup.stores.state import State, lengthen

FROZEN = ""
"""The name of times in memory that are being written to a file."""
_MAX_DOCUMENTS_BYTES = 32 << 20  # of merged files, because a merge has its documents in memory
_NICENESS = 10
_RECORDS_AT_ONCE = 4  # deleted with each write, which appends one, so the journal gets shorter


@dataclass
class Job:
    """Files to write, and to install by the writer.

    Attributes
    ----------
    write : writes the files, in any thread.
    replaced : the files that they replace.
    record : the last record of the journal that is in files afterwards; None if unchanged.
    forgotten : bits of the rows that files list as forgotten afterwards; None if unchanged.
    use : called after the commit, with the lock held, to use the files; None replaces the rows of
        the state by the same rows in files.
    ended_import : an import that is dropped in the same transaction.
    files : the files that were written.
    opened : their contents.
    """

    write: Callable[[Job], None]
    replaced: list[FileInfo]
    record: int | None = None
    forgotten: Words | None = None
    use: Callable[[Job], None] | None = None
    ended_import: str | None = None
    files: list[FileInfo] = field(default_factory=list)
    opened: dict[FileInfo, Opened] = field(default_factory=dict)


class _Frozen(NamedTuple):
    """The rows in memory that a flush writes to files.

    flushed, last_record : the records of the journal after `flushed`, up to `last_record`, changed
    these rows.
    """

    flushed: int
    last_record: int
    num_rows: int
    runs: list[KeyRun]
    chunks: list[Chunk]
    seen: list[Seen]
    kept: Words
    forgotten: Words


class _LargeChanges:
    """Changes on their way to files, beside a state that they change afterwards.

    Attributes
    ----------
    num_rows, kept, forgotten : as in the state after the changes so far.
    new_kept : bool (num_documents,) for each part with documents, whether each was kept.
    parts : without documents and entries.
    rest : the parts as one, once all are added.
    """

    def __init__(self, state: State) -> None:
        self.num_rows = state.num_rows
        self.kept = state.kept.copy()
        self.forgotten = state.forgotten.copy()
        self.new_kept: list[Mask] = []
        self.parts: list[Changes] = []
        self.rest = Changes()

    def add(self, part: Changes) -> None:
        """Add the next changes, except for their entries."""
        first = self.num_rows
        self.num_rows += part.num_documents
        self.kept = lengthen(self.kept, self.num_rows)
        self.forgotten = lengthen(self.forgotten, self.num_rows)
        kernels.key_tables.set_bits(self.forgotten, part.forgotten)
        if part.documents is not None and len(part.documents):
            is_kept = part.documents.column("state").to_numpy() == KEPT
            kernels.key_tables.set_bits(self.kept, first + np.flatnonzero(is_kept))
            self.new_kept.append(is_kept)
        self.parts.append(replace(part, documents=None, entries=None))


class Maintenance:
    """The files of an index, for its only writer.

    Only `run` may be called by another thread: it takes no lock, because a thread of low priority
    that holds a lock makes others wait. At most one flush and one merge run at a time.

    Parameters
    ----------
    folder : of the index.
    database : the connection of the writer.
    loader : has the state.
    lock : held while the state or the database is used.
    publish : called, with the lock held, after the state has changed.
    """

    def __init__(
        self,
        folder: Path,
        database: Database,
        loader: Loader,
        lock: AbstractContextManager[Any],
        publish: Callable[[], None],
    ) -> None:
        self._folder = folder
        self._database = database
        self._loader = loader
        self._state = loader.state
        self._lock = lock
        self._publish = publish
        self._may_merge = True  # whether there may be files to merge
        first_record = database.first_record() or loader.flushed + 1
        self._trimmed = first_record - 1  # the last record that was deleted from the journal
        # Files whose commit failed. The commit may still be in SQLite's log, so they are removed
        # after the next commit.
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

    # Flushes.

    def begin_flush(self) -> Job | None:
        """Return the job that moves the journal to files, None if all of it is in files."""
        frozen = self._freeze()
        bits_change = not _same_bits(frozen.forgotten, self._loader.forgotten_on_disk)
        if not (frozen.runs or frozen.seen or bits_change):
            return None
        return Job(
            write=lambda job: self._write_frozen(job, frozen),
            replaced=self._infos(row_files.FORGOTTEN) if bits_change else [],
            record=frozen.last_record,
            forgotten=frozen.forgotten if bits_change else None,
        )

    def _freeze(self) -> _Frozen:
        """Return the rows in memory; later rows enter new runs and chunks of the state."""
        with self._lock:
            state = self._state
            state.keys.seal_tail()
            state.first_in_memory = state.num_rows
            in_files = [run for run in state.documents.seen if run.name]
            seen = [run._replace(name=FROZEN) for run in state.documents.seen if not run.name]
            state.documents.seen = (*in_files, *seen)
            frozen = _Frozen(
                flushed=self._loader.flushed,
                last_record=self._loader.last_record,
                num_rows=state.num_rows,
                runs=[run for run in state.keys.runs if run.name is None],
                chunks=[chunk for chunk in state.documents.chunks if chunk.name is None],
                seen=seen,
                # Not copied: whether a row was kept never changes.
                kept=state.kept,
                forgotten=state.forgotten.copy(),
            )
            self._publish()
        return frozen

    def _write_frozen(self, job: Job, frozen: _Frozen) -> None:
        """Write the rows of a flush: keys, documents, times and forgotten rows, a file of each."""
        if frozen.runs:
            self._write_keys(job, frozen.runs, kept=frozen.kept, forgotten=frozen.forgotten)
            schema = self._state.documents.schema
            alive = [without(chunk, frozen.forgotten, schema) for chunk in frozen.chunks]
            self._write_documents(job, alive)
        if frozen.seen:
            seen = merge_seen(frozen.seen)
            self._write(job, row_files.write_seen, frozen.flushed, frozen.last_record, seen)
        if job.forgotten is not None:
            self._write(job, row_files.write_forgotten, frozen.num_rows, job.forgotten)

    # Large changes.

    def write_through(self, parts: Iterable[Changes]) -> None:
        """Write large changes to files, not to the journal, which saves two thirds of the time.

        Requires: the journal is in files, and no flush runs. Raises OSError, sqlite3.Error;
        nothing has changed then.

        Parameters
        ----------
        parts : each applies to the state after the parts before it; only one is in memory at a
            time.
        """
        changes = _LargeChanges(self._state)
        job = Job(
            write=lambda job: self._write_large(job, parts, changes),
            replaced=[],
            # The change counts as a record that is in files, although the journal never has it.
            record=self._loader.last_record + 1,
            use=lambda job: self._use_large(job, changes),
        )
        self._finish(job)

    def _write_large(self, job: Job, parts: Iterable[Changes], changes: _LargeChanges) -> None:
        """Write the documents of each part, then the times and forgotten rows of all parts."""
        for part in parts:
            first = changes.num_rows
            check_changes(part, first, self._state.documents.schema)
            changes.add(part)
            if part.batch is not None:
                self._write_part(job, part.batch, part, changes)
        rest = join_changes(changes.parts)
        changes.rest = rest
        job.ended_import = rest.ended_import
        if len(rest.seen):
            seen = seen_at(rest.seen, rest.seen_at)
            record = self._loader.last_record + 1
            self._write(job, row_files.write_seen, self._loader.flushed, record, seen)
        if not _same_bits(changes.forgotten, self._loader.forgotten_on_disk):
            job.replaced += self._infos(row_files.FORGOTTEN)
            job.forgotten = changes.forgotten
            self._write(job, row_files.write_forgotten, changes.num_rows, changes.forgotten)

    def _write_part(
        self, job: Job, batch: pa.RecordBatch, part: Changes, changes: _LargeChanges
    ) -> None:
        """Write the new documents of a part, which are the last rows of `changes`."""
        stop = changes.num_rows
        first = stop - batch.num_rows
        run = sort_entries(
            self._state.entries_of(batch, part.entries, first),
            self._state.keys.prefix_bits,
            first,
            stop,
        )
        self._write_keys(job, [run], kept=changes.kept, forgotten=changes.forgotten)
        del run  # as large as its file
        self._write_documents(job, [Chunk(first, stop, batch)])

    def _use_large(self, job: Job, changes: _LargeChanges) -> None:
        """Append the rows in the files of a job to the state, and forget rows."""
        state = self._state
        contents = job.opened.values()
        runs = [opened.run for opened in contents if isinstance(opened, KeyFile)]
        chunks = [opened for opened in contents if isinstance(opened, Chunk)]
        seen = [opened for opened in contents if isinstance(opened, Seen)]
        # Each part wrote a file of keys and one of documents, in the order of the parts.
        for is_kept, run, chunk in zip(changes.new_kept, runs, chunks, strict=True):
            state.append_files(is_kept, run, chunk)
        state.documents.seen = (*state.documents.seen, *seen)
        state.forget(changes.rest.forgotten)
        self._loader.last_record += 1

    # Merges.

    def begin_merge(self) -> Job | None:
        """Return the next job that merges files, None if their sizes differ enough."""
        if not self._may_merge:
            return None
        self._may_merge = False  # until this job, or a flush if it fails, installs files
        return (
            self._begin_merge_of_keys()
            or self._begin_merge_of_documents()
            or self._begin_merge_of_seen()
        )

    def _begin_merge_of_keys(self) -> Job | None:
        """Return the job that merges the last files of keys, None if their sizes differ enough."""
        runs = [run for run in self._state.keys.runs if run.name]
        sizes = [run.num_entries for run in runs]
        to_merge = runs[first_to_merge(sizes) :] if runs else []
        return self._job_of_keys(to_merge) if len(to_merge) > 1 else None

    def _begin_merge_of_documents(self) -> Job | None:
        """Return the job that merges the last files of documents, at most _MAX_DOCUMENTS_BYTES."""
        chunks = [chunk for chunk in self._state.documents.chunks if chunk.name]
        sizes = [info.num_bytes for info in self._infos_of(chunks)]
        to_merge = chunks[first_to_merge(sizes, _MAX_DOCUMENTS_BYTES) :] if chunks else []
        if len(to_merge) < 2:
            return None
        return self._job_of_documents(to_merge, replaced=to_merge)

    def _begin_merge_of_seen(self, everything: bool = False) -> Job | None:
        """Return the job that merges the last files of times, or all of them."""
        runs = [run for run in self._state.documents.seen if run.name]
        if runs and not everything:
            runs = runs[first_to_merge([len(run.rows) for run in runs]) :]
        if len(runs) < 2:
            return None
        infos = self._infos_of(runs)
        records = (infos[0].first, infos[-1].stop)
        return Job(
            write=lambda job: self._write(job, row_files.write_seen, *records, merge_seen(runs)),
            replaced=infos,
        )

    def compact(self) -> None:
        """Drop forgotten rows; merge all runs of keys to one, and all times to one.

        Raises OSError, sqlite3.Error.
        """
        state = self._state
        forgotten = state.forgotten.copy()

        def count_alive(chunk: Chunk) -> int:
            return int((~bits_at(forgotten, chunk.rows(0, chunk.batch.num_rows))).sum())

        # First the files with the fewest rows left: replacing them frees the most space. Only their
        # names are listed here, because a chunk keeps its file mapped, and with it the space.
        chunks = sorted(state.documents.chunks, key=count_alive)
        names = [chunk.name for chunk in chunks if chunk.name]
        del chunks
        for name in names:
            self._drop_forgotten(name, forgotten)
        self.flush()
        while (job := self._begin_merge_of_documents()) is not None:
            self._finish(job)
        runs = list(state.keys.runs)
        # The last two tables of a run are of ids and of contents. Ids beyond the documents are of
        # forgotten rows.
        num_ids = sum(len(run.tables[-2].keys) for run in runs)
        if len(runs) > 1 or num_ids > state.num_kept + state.num_removed:
            self._finish(self._job_of_keys(runs))
        self._finish(self._begin_merge_of_seen(everything=True))

    def _drop_forgotten(self, name: str, forgotten: Words) -> None:
        """Replace a file of documents if some of its rows were forgotten."""
        chunk = next(chunk for chunk in self._state.documents.chunks if chunk.name == name)
        smaller = without(chunk, forgotten, self._state.documents.schema)
        if smaller is not chunk:
            self._finish(self._job_of_documents([smaller], replaced=[chunk]))

    def _job_of_keys(self, runs: Sequence[KeyRun]) -> Job:
        """Return the job that writes runs of keys to one file, without the forgotten rows."""
        kept = self._state.kept
        forgotten = self._state.forgotten.copy()
        return Job(
            write=lambda job: self._write_keys(job, runs, kept=kept, forgotten=forgotten),
            replaced=self._infos_of(runs),
        )

    def _job_of_documents(self, chunks: Sequence[Chunk], replaced: Sequence[Chunk]) -> Job:
        """Return the job that writes chunks to one file, instead of the files of `replaced`."""
        return Job(
            write=lambda job: self._write_documents(job, chunks),
            replaced=self._infos_of(replaced),
        )

    @property
    def has_records_to_trim(self) -> bool:
        """True if records of the journal are in files."""
        return self._trimmed < self._loader.flushed

    def trim_journal(self, everything: bool = False) -> None:
        """Delete records of the journal that are in files: a few, or all of them. Requires: the
        lock.

        Deleting 64 MB at once takes 0.3 s, so each write deletes a few records.
        """
        if self.has_records_to_trim:
            last = self._loader.flushed
            if not everything:
                last = min(last, self._trimmed + _RECORDS_AT_ONCE)
            self._database.drop_records(last)
            self._trimmed = last

    # Writing files.

    def run(self, job: Job) -> Job:
        """Write the files of a job. Raises OSError, StoreError; there are no new files then.

        Files to replace are checked first: damage would get a valid checksum.
        """
        for info in job.replaced:
            row_files.check_file(self._folder, info)
        try:
            job.write(job)
            # The names of the files must be on disk before the database lists them.
            sync(self._folder)
        except BaseException:
            remove_files(self._folder, [info.name for info in job.files])
            raise
        return job

    def _write_keys(
        self, job: Job, runs: Sequence[KeyRun], *, kept: Words, forgotten: Words
    ) -> None:
        prefix_bits = self._state.keys.prefix_bits
        self._write(job, row_files.write_keys, runs, prefix_bits, kept=kept, forgotten=forgotten)

    def _write_documents(self, job: Job, chunks: Sequence[Chunk]) -> None:
        self._write(job, row_files.write_documents, chunks, self._state.documents.schema)

    def _write(
        self, job: Job, write: Callable[..., FileInfo], *contents: Any, **bits: Words
    ) -> None:
        """Write a file with the next number, and add it to a job.

        write : a function of `row_files`. contents, bits : its arguments after folder and number.
        """
        info = write(self._folder, next(self._loader.file_numbers), *contents, **bits)
        job.files.append(info)
        num_tables = len(self._state.keys.prefix_bits)
        job.opened[info] = row_files.open_file(self._folder, info, num_tables)

    # Installing files.

    def _finish(self, job: Job | None) -> None:
        """Run and install a job, if there is one."""
        if job is not None:
            clean(self._folder, self.install(self.run(job)))

    def install(self, job: Job) -> list[str]:
        """List the files of a job in the database, and use them; return the files to remove.

        Requires: the job was run.
        """
        with self._lock:
            replaced = [info.name for info in job.replaced]
            written = [info.name for info in job.files]
            self._leftovers += written
            self._commit(job, replaced)
            # The database lists the files from here on: after an error below they are in use, and
            # must not be removed as leftovers of a job that failed.
            unlisted = [*replaced, *(name for name in self._leftovers if name not in written)]
            self._leftovers.clear()
            if job.forgotten is not None:
                self._loader.forgotten_on_disk = job.forgotten
            self._loader.drop_files(replaced)
            for info, opened in job.opened.items():
                self._loader.add_file(info, opened)
            self._may_merge = True
            use = job.use or self._use
            use(job)
            self._publish()
        return unlisted

    def _commit(self, job: Job, replaced: Sequence[str]) -> None:
        """Change the list of files, and the record up to which they have the journal."""
        record = self._loader.flushed if job.record is None else job.record
        counters = Counters(record, file=next(self._loader.file_numbers))  # above all numbers used
        with self._database.transaction():
            if job.ended_import is not None:
                self._database.end_import(job.ended_import)
            self._database.drop_files(replaced)
            for info in job.files:
                self._database.insert("files", *info)
            self._database.insert("settings", COUNTERS, counters.encode())
        # After the commit only: a failed one leaves the journal in use.
        self._loader.flushed = record

    def _use(self, job: Job) -> None:
        """Replace rows in memory or in other files by the same rows in the files of a job."""
        for opened in job.opened.values():
            if isinstance(opened, KeyFile):
                self._state.keys.replace(opened.run)
            elif isinstance(opened, Chunk):
                self._state.documents.replace(opened)
            elif isinstance(opened, Seen):
                self._use_seen(job, opened)

    def _use_seen(self, job: Job, seen: Seen) -> None:
        """Replace frozen times by a flush, or the times of replaced files by a merge."""
        names = [info.name for info in job.replaced] if job.record is None else [FROZEN]
        runs = list(self._state.documents.seen)
        first = next(i for i, run in enumerate(runs) if run.name in names)
        others = [run for run in runs if run.name not in names]
        self._state.documents.seen = (*others[:first], seen, *others[first:])

    def _infos(self, kind: str) -> list[FileInfo]:
        """Return the files of a kind."""
        return [info for info in self._loader.files.values() if info.kind == kind]

    def _infos_of(self, parts: Sequence[KeyRun | Chunk | Seen]) -> list[FileInfo]:
        """Return the files that contain runs, chunks or times."""
        return [self._loader.files[part.name or ""] for part in parts]


def clean(folder: Path, names: Sequence[str]) -> None:
    """Remove files that nobody needs, and release memory to the system."""
    remove_files(folder, names)
    # NumPy's freed memory is returned by the system pool.
    for pool in (pa.default_memory_pool(), pa.system_memory_pool()):
        pool.release_unused()


def lower_priority() -> None:
    """Run this thread after others, so that a flush does not slow down writers.

    Only Linux has a priority for each thread of a process.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _same_bits(left: Words, right: Words) -> bool:
    """Return whether two arrays of bits are equal, except for zeros at the end."""
    size = min(len(left), len(right))
    have_same_start = (left[:size] == right[:size]).all()
    return bool(have_same_start and not left[size:].any() and not right[size:].any())
