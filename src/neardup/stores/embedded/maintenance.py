"""Move the journal to files, merge files, drop forgotten rows, beside writes and reads."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.schemas import KEPT
from neardup.stores.base import Changes
from neardup.stores.documents import Chunk, Seen, all_of, as_batch, merge_seen, seen_at, without
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
_NICENESS = 10
_RECORDS_AT_ONCE = 4  # deleted with each write, which appends one: faster than the journal grows


@dataclass
class Written:
    """Files that were written and what they replace. record : all changes up to that number are in files then."""

    infos: list[FileInfo]
    opened: list[Any]
    replaced: list[str]
    record: int | None = None


class Maintenance:
    """The files of an index, for its only writer.

    One thread at a time may call `flush` or `write_through`, and another one `merge`; nobody else while `compact` runs.

    Parameters
    ----------
    folder : of the index.
    database : the connection of the writer.
    loader : has the state.
    lock : is held while the state or the database is used, never while files are written.
    publish : is called, with the lock held, after the state has changed.
    """

    def __init__(
        self, folder: Path, database: Database, loader: Loader, lock: Any, publish: Callable[[], None]
    ) -> None:
        self._folder, self._database, self._loader = folder, database, loader
        self._lock, self._publish = lock, publish
        self._forgotten_on_disk = loader.forgotten_on_disk
        self.flushed = loader.flushed  # as far as the journal is in files
        self.unmerged = True  # whether there may be files to merge
        self._trimmed = (database.first_record() or self.flushed + 1) - 1  # as far as its records were deleted
        # Files whose commit failed: it may still be in the log, so they are removed after the next commit.
        self._leftovers: list[str] = []

    @property
    def _state(self) -> State:
        return self._loader.state

    def merge(self) -> None:
        """Merge files until their sizes differ enough. Raises OSError, sqlite3.Error."""
        while self.unmerged:
            self.unmerged = False
            while self._merge_keys() or self._merge_documents() or self._merge_seen():
                pass

    @property
    def num_key_files(self) -> int:
        """The number of files that a lookup visits."""
        return len(self._names(row_files.KEYS))

    def flush(self) -> None:
        """Move the journal to files. Raises OSError, sqlite3.Error; the journal is as before then."""
        with self._lock:
            state, record = self._state, self._loader.number
            state.keys.seal_tail()
            runs = [run for run in state.keys.runs if run.name is None]
            chunks = [chunk for chunk in state.documents.chunks if chunk.name is None]
            on_disk = tuple(run for run in state.documents.seen if run.name)
            memory = [run for run in state.documents.seen if not run.name]
            seen = merge_seen(memory)._replace(name=FROZEN) if memory else None
            state.documents.seen = (*on_disk, *([seen] if seen else []))
            forgotten, kept, num_rows = state.forgotten.copy(), state.kept, state.num_rows
            state.least_row = num_rows
            self._publish()
        written = Written([], [], [], record)
        try:
            if runs:
                self._write_keys(written, runs, kept, forgotten)
                self._write_documents(written, chunks)
            if seen:
                self._write_seen(written, self.flushed, record, seen)
            if not _same_bits(forgotten, self._forgotten_on_disk):
                self._write_forgotten(written, num_rows, forgotten)
        except BaseException:
            self._discard(written)
            raise
        if written.infos:
            self._install(written, lambda: self._use(written))
            self._forgotten_on_disk = forgotten
        for pool in (pa.default_memory_pool(), pa.system_memory_pool()):  # the latter has the memory of NumPy too
            pool.release_unused()

    def write_through(self, changes: Changes, write_settings: Callable[[], None]) -> None:
        """Write a large change to files at once, not to the journal: it takes a third of the time.

        Requires: the journal is in files, and nothing else is written. Raises OSError, sqlite3.Error; nothing has
        changed then.

        Parameters
        ----------
        changes : with documents, checked.
        write_settings : is called in the transaction.
        """
        state, documents, record = self._state, changes.documents, self._loader.number + 1
        assert documents is not None
        first, stop = state.num_rows, state.num_rows + len(documents)
        run = sort_entries(state.entries_of(documents, changes.entries), state.keys.prefix_bits, first, stop)
        kept, forgotten = (lengthen(bits, stop).copy() for bits in (state.kept, state.forgotten))
        kernels.key_tables.set_bits(kept, first + np.flatnonzero(documents.column("state").to_numpy() == KEPT))
        kernels.key_tables.set_bits(forgotten, changes.forgotten)
        seen = seen_at(changes.seen, np.full(len(changes.seen), changes.seen_at, np.int64))
        written = Written([], [], [], record)
        try:
            self._write_keys(written, [run], kept, forgotten)
            self._write_documents(written, [Chunk(first, stop, as_batch(documents))], documents.schema)
            if len(seen.rows):
                self._write_seen(written, self.flushed, record, seen)
            if not _same_bits(forgotten, self._forgotten_on_disk):
                self._write_forgotten(written, stop, forgotten)
        except BaseException:
            self._discard(written)
            raise

        def use() -> None:
            opened = {info.kind: opened for info, opened in zip(written.infos, written.opened, strict=True)}
            state.append_files(documents, opened[row_files.KEYS][0], opened[row_files.DOCUMENTS])
            if row_files.SEEN in opened:
                state.documents.seen = (*state.documents.seen, opened[row_files.SEEN])
            state.forget(changes.forgotten)
            self._loader.number = record

        self._install(written, use, write_settings)
        self._forgotten_on_disk = forgotten

    def compact(self) -> None:
        """Drop forgotten rows, and merge runs of keys to one and times to one. Raises OSError, sqlite3.Error."""
        self.flush()
        self.merge()
        state = self._state
        forgotten = state.forgotten.copy()
        for chunk in list(state.documents.chunks):
            smaller = without(chunk, forgotten, state.documents.schema)
            if smaller is not chunk:
                self._replace_documents([smaller], [chunk.name or ""])
        while self._merge_documents():
            pass
        runs = list(state.keys.runs)
        listed = sum(len(run.tables[-2].keys) for run in runs)  # in the table of ids
        if len(runs) > 1 or listed > state.num_kept + state.num_removed:
            names = [run.name or "" for run in runs]
            self._write(Written([], [], names), lambda w: self._write_keys(w, runs, state.kept, forgotten))
        self._merge_seen(everything=True)

    def _merge_keys(self) -> bool:
        """Merge the latest runs in files, if their sizes demand it; return whether they did."""
        with self._lock:
            runs = [run for run in self._state.keys.runs if run.name]
            kept, forgotten = self._state.kept, self._state.forgotten.copy()
        runs = runs[first_to_merge([run.num_entries for run in runs]) :] if runs else []
        if len(runs) < 2:
            return False
        names = [run.name or "" for run in runs]
        self._write(Written([], [], names), lambda written: self._write_keys(written, runs, kept, forgotten))
        return True

    def _merge_documents(self) -> bool:
        with self._lock:
            chunks = [chunk for chunk in self._state.documents.chunks if chunk.name]
            sizes = [self._loader.files[chunk.name or ""].num_bytes for chunk in chunks]
        chunks = chunks[first_to_merge(sizes, _MAX_DOCUMENTS_BYTES) :] if chunks else []
        if len(chunks) < 2:
            return False
        self._replace_documents(chunks, [chunk.name or "" for chunk in chunks])
        return True

    def _merge_seen(self, everything: bool = False) -> bool:
        with self._lock:
            runs = [run for run in self._state.documents.seen if run.name]
        begin = 0 if everything or not runs else first_to_merge([len(run.rows) for run in runs])
        runs = runs[begin:]
        if len(runs) < 2:
            return False
        infos = [self._loader.files[run.name or ""] for run in runs]
        written = Written([], [], [info.name for info in infos])
        merged = merge_seen(runs)
        self._write(written, lambda written: self._write_seen(written, infos[0].first, infos[-1].stop, merged))
        return True

    def trim_journal(self, everything: bool = False) -> None:
        """Delete the records of the journal that are in files: a few, or all of them. Requires: the lock.

        To delete 64 MB at once takes 0.3 s, so each write deletes a few records.
        """
        if self._trimmed < self.flushed:
            self._trimmed = self.flushed if everything else min(self.flushed, self._trimmed + _RECORDS_AT_ONCE)
            self._database.drop_records(self._trimmed)

    # Writing files, without the lock.

    def _replace_documents(self, chunks: Sequence[Chunk], names: list[str]) -> None:
        self._write(Written([], [], names), lambda written: self._write_documents(written, chunks))

    def _write(self, written: Written, write: Callable[[Written], None]) -> None:
        try:
            write(written)
        except BaseException:
            self._discard(written)
            raise
        self._install(written, lambda: self._use(written))

    def _write_keys(self, written: Written, runs: Sequence[KeyRun], kept: Bits, forgotten: Bits) -> None:
        keys = self._state.keys
        info = row_files.write_keys(self._folder, self._next(), runs, keys.prefix_bits, kept, forgotten)
        written.infos.append(info)
        written.opened.append(row_files.open_keys(self._folder, info, len(keys.prefix_bits)))

    def _write_documents(self, written: Written, chunks: Sequence[Chunk], schema: pa.Schema | None = None) -> None:
        schema = schema or self._state.documents.schema
        first, stop = chunks[0].first, chunks[-1].stop
        batch = as_batch(pa.concat_tables([all_of(chunk, schema) for chunk in chunks]))
        info = row_files.write_documents(self._folder, self._next(), first, stop, batch)
        written.infos.append(info)
        written.opened.append(row_files.open_documents(self._folder, info))

    def _write_seen(self, written: Written, first: int, stop: int, seen: Seen) -> None:
        info = row_files.write_seen(self._folder, self._next(), first, stop, seen)
        written.infos.append(info)
        written.opened.append(row_files.open_seen(self._folder, info))

    def _write_forgotten(self, written: Written, num_rows: int, forgotten: Bits) -> None:
        written.infos.append(row_files.write_forgotten(self._folder, self._next(), num_rows, forgotten))
        written.opened.append(None)
        written.replaced += self._names(row_files.FORGOTTEN)

    def _next(self) -> int:
        with self._lock:
            self._loader.file_number += 1
            return self._loader.file_number

    def _discard(self, written: Written) -> None:
        remove_files(self._folder, [info.name for info in written.infos])

    # Listing files, with the lock.

    def _install(
        self, written: Written, use: Callable[[], None], write_settings: Callable[[], None] | None = None
    ) -> None:
        """List files in the database, use them, and remove those that they replace.

        Parameters
        ----------
        use : is called with the lock held, after the commit.
        write_settings : is called in the transaction, if given.
        """
        sync_folder(self._folder)
        with self._lock:
            record = self.flushed if written.record is None else written.record
            counters = Counters(record, self._loader.file_number)
            self._leftovers += [info.name for info in written.infos]
            with self._database.transaction():
                if write_settings is not None:
                    write_settings()
                self._database.drop_files(written.replaced)
                for info in written.infos:
                    self._database.add_file(info)
                self._database.set_setting(COUNTERS, json.dumps(counters._asdict()).encode())
            self.flushed, self.unmerged = record, True
            self._loader.forget(written.replaced)
            for info, opened in zip(written.infos, written.opened, strict=True):
                self._loader.keep(info, opened)
                self._leftovers.remove(info.name)
            use()
            self._publish()
            gone = [*written.replaced, *self._leftovers]
            self._leftovers.clear()
        remove_files(self._folder, gone)

    def _use(self, written: Written) -> None:
        """Put what files contain where it was in memory or in other files."""
        state = self._state
        for info, opened in zip(written.infos, written.opened, strict=True):
            if info.kind == row_files.KEYS:
                state.keys.replace(opened[0])
            elif info.kind == row_files.DOCUMENTS:
                state.documents.replace(opened)
            elif info.kind == row_files.SEEN:
                names = written.replaced if written.record is None else [FROZEN]
                runs = list(state.documents.seen)
                first = next(i for i, run in enumerate(runs) if run.name in names)
                rest = [run for run in runs if run.name not in names]
                state.documents.seen = (*rest[:first], opened, *rest[first:])

    def _names(self, kind: str) -> list[str]:
        return [info.name for info in self._loader.files.values() if info.kind == kind]


def lower_priority() -> None:
    """Let other threads go before this one, so that a flush does not take half of the processor of writers."""
    if sys.platform == "linux":  # elsewhere a process has one priority for all its threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _same_bits(left: Bits, right: Bits) -> bool:
    """Return whether two arrays of bits differ in zeros at the end at most."""
    size = min(len(left), len(right))
    return bool((left[:size] == right[:size]).all() and not left[size:].any() and not right[size:].any())
