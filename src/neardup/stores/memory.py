"""A store in memory, for tests and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any

import pyarrow as pa

from neardup.errors import StoreError
from neardup.stores.base import Changes, Layout, Run, Store, Writer
from neardup.stores.state import State, View
from neardup.stores.writing import StateWriter


class MemoryStore(Store):
    """A store in the memory of this process.

    Parameters
    ----------
    address : as the user named it.
    meta : settings of the index, values for JSON.
    layout : of the tables of keys.
    attachments : files by name.
    """

    durable = False
    promise = "Documents are in memory only: they are lost when the process ends."

    def __init__(
        self, address: str, meta: Mapping[str, Any], layout: Layout, attachments: Mapping[str, bytes] | None = None
    ) -> None:
        self.address, self.meta, self.layout = address, dict(meta), layout
        self._attachments = dict(attachments or {})
        self._staged: dict[str, tuple[int, tuple[pa.Table, ...]]] = {}
        self._state = State(layout)
        self._lock = RLock()
        self._closed = False
        self._latest = self._view()

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Open the latest state."""
        self._check_open()
        yield self._latest

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Wait for other writers of this process, and open the store."""
        with self._lock:
            self._check_open()
            yield self.writer()

    def writer(self) -> Writer:
        """Return a writer without waiting for others: of a store that one thread has."""
        return StateWriter(lambda: self._latest, self._write, self._stage)

    def attachment(self, name: str) -> bytes | None:
        """Return a file that was stored when the index was created, or None."""
        return self._attachments.get(name)

    def describe(self) -> dict[str, Any]:
        """Return sizes for `info`."""
        self._check_open()
        keys = self._state.keys
        documents = sum(chunk.batch.nbytes for chunk in self._state.documents.chunks)
        tables = sum(run.num_bytes for run in keys.runs) + keys.tail_bytes
        return {"bytes": documents + tables, "documents_bytes": documents, "tables_bytes": tables}

    def verify(self) -> list[str]:
        """Return the damage: none, since memory has no checksums."""
        self._check_open()
        return []

    def compact(self) -> None:
        """Drop forgotten rows and merge all runs."""
        with self._lock:
            self._check_open()
            self._state.compact()
            self._latest = self._view()

    def backup(self, path: str) -> None:
        """Raise StoreError: a memory store has no files."""
        raise StoreError(
            f"An index in memory cannot be backed up to files: got {path}. Create the index in a folder, and copy the "
            "documents with `neardup index merge`."
        )

    def close(self) -> None:
        """Release the memory."""
        with self._lock:
            self._closed = True
            self._state, self._staged = State(self.layout), {}
            self._latest = self._view()

    def _write(self, changes: Changes) -> None:
        self._state.check(changes)
        self._state.apply(changes)
        if changes.ended_run is not None:
            self._staged = {name: run for name, run in self._staged.items() if name != changes.ended_run}
        if changes.meta is not None:
            self.meta = dict(changes.meta)
        self._latest = self._view()

    def _stage(self, run: str, opened: int, documents: pa.Table | None) -> None:
        since, tables = self._staged.get(run, (opened, ()))
        added = () if documents is None else (documents,)
        self._staged = {**self._staged, run: (since, (*tables, *added))}
        self._latest = self._view()

    def _view(self) -> View:
        staged = self._staged  # replaced, never changed
        runs = [Run(name, opened, sum(map(len, tables))) for name, (opened, tables) in staged.items()]
        return self._state.view(
            lambda: sorted(runs, key=lambda run: run.opened),
            lambda name: iter(staged[name][1] if name in staged else ()),
        )

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"The index {self.address} was closed. Open it again.")
