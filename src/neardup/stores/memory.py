"""A store in memory, for tests and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import pyarrow as pa

from neardup.errors import StoreError
from neardup.stores.base import Changes, Import, Store, Writer
from neardup.stores.settings import StoreSettings
from neardup.stores.state import State, View
from neardup.stores.writing import StateWriter


class MemoryStore(Store):
    """A store in the memory of this process.

    Parameters
    ----------
    address : as the user named it.
    settings : of the store.
    """

    durable = False
    promise = "Documents are in memory only: they are lost when the process ends."

    def __init__(self, address: str, settings: StoreSettings) -> None:
        super().__init__(address, address, read_only=False)
        self.settings = settings
        self._staged: dict[str, tuple[int, tuple[pa.Table, ...]]] = {}
        self._state = State(settings.layout, settings.schema)
        self._lock = RLock()
        self._latest = self._view()

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Open the latest state."""
        self.require_open()
        yield self._latest

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Wait for other writers of this process, and open the store."""
        with self._lock:
            self.require_open()
            yield self.writer()

    def writer(self) -> Writer:
        """Return a writer without waiting for others: of a store that one thread has."""
        return StateWriter(lambda: self._latest, self._write, self._stage)

    def attachment(self, name: str) -> bytes | None:
        """Return a file that was stored when the index was created, or None."""
        return self.settings.attachments.get(name)

    def describe(self) -> dict[str, Any]:
        """Return sizes for `info`."""
        self.require_open()
        keys = self._state.keys
        documents = sum(chunk.batch.nbytes for chunk in self._state.documents.chunks)
        tables = sum(run.num_bytes for run in keys.runs) + keys.tail_bytes
        return {"bytes": documents + tables, "documents_bytes": documents, "tables_bytes": tables}

    def verify(self) -> list[str]:
        """Return the damage: none, since memory has no checksums."""
        self.require_open()
        return []

    def compact(self) -> None:
        """Drop forgotten rows and merge all runs."""
        with self._lock:
            self.require_open()
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
            self.closed = True
            self._state, self._staged = State(self.settings.layout, self.settings.schema), {}
            self._latest = self._view()

    def _write(self, changes: Changes) -> None:
        self._state.check(changes)
        self._state.apply(changes)
        if changes.ended_import is not None:
            self._staged = {name: staged for name, staged in self._staged.items() if name != changes.ended_import}
        self._latest = self._view()

    def _stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        since, tables = self._staged.get(import_name, (opened, ()))
        added = () if documents is None else (documents,)
        self._staged = {**self._staged, import_name: (since, (*tables, *added))}
        self._latest = self._view()

    def _view(self) -> View:
        staged = self._staged  # replaced, never changed
        imports = [Import(name, opened, sum(map(len, tables))) for name, (opened, tables) in staged.items()]
        return self._state.view(
            lambda: sorted(imports, key=lambda staged: staged.opened),
            lambda name: iter(staged[name][1] if name in staged else ()),
        )
