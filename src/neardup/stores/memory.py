"""A store in memory, for tests and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from neardup.errors import StoreError
from neardup.files import JsonObject
from neardup.stores.base import Changes, Import, StoreSettings, join_changes
from neardup.stores.state import RowChanges, State, StateStore, View


class _Staged(NamedTuple):
    """The documents of an open import."""

    opened: int
    tables: list[pa.Table]


class MemoryStore(StateStore):
    """A store in the memory of this process.

    Parameters
    ----------
    address : as the user named it.
    settings : of the store.
    """

    durable = False
    promise = "Documents are in memory only: they are lost when the process ends."

    def __init__(self, address: str, settings: StoreSettings) -> None:
        super().__init__(address, read_only=False)
        self.settings = settings
        self._clear()

    def _clear(self) -> None:
        self._imports: dict[str, _Staged] = {}
        self._state = State(self.settings.layout, self.settings.schema)
        self._publish()

    def _publish(self) -> None:
        self._latest = View(self, self._state.moment())

    def attachment(self, name: str) -> bytes | None:
        """Return a file that was stored when the index was created, or None."""
        return self.settings.attachments.get(name)

    def describe(self) -> JsonObject:
        """Return sizes for `info`."""
        self.require_open()
        keys = self._state.keys
        documents = sum(chunk.batch.nbytes for chunk in self._state.documents.chunks)
        tables = sum(run.num_bytes for run in keys.runs) + keys.tail_bytes
        return {"bytes": documents + tables, "documents_bytes": documents, "tables_bytes": tables}

    def verify(self) -> list[str]:
        """Return no damage: memory has no checksums."""
        self.require_open()
        return []

    def compact(self) -> None:
        """Drop forgotten rows and merge all runs."""
        with self.writing():
            self._state.compact()
            self._publish()

    def backup(self, path: str) -> None:
        """Raise StoreError: a memory store has no files."""
        raise StoreError(
            f"An index in memory cannot be backed up to files: got {path}. Create an index in a "
            "folder, and add the documents with its `merge`."
        )

    def close(self) -> None:
        """Release the memory."""
        with self._writers:
            self.closed = True
            self._clear()

    def _write_all(self, parts: Iterable[Changes]) -> None:
        changes = join_changes(parts)
        self._state.check(changes)
        self._state.apply(self._state.prepare(RowChanges.of(changes)))
        if changes.ended_import is not None:
            self._imports.pop(changes.ended_import, None)
        self._publish()

    def _stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        staged = self._imports.setdefault(import_name, _Staged(opened, []))
        if documents is not None:
            staged.tables.append(documents)

    def _list_imports(self) -> list[Import]:
        imports = [
            Import(name, staged.opened, sum(map(len, staged.tables)))
            # A copy of the items, because another thread may open an import meanwhile.
            for name, staged in list(self._imports.items())
        ]
        return sorted(imports, key=lambda found: found.opened)

    def _read_staged(self, import_name: str) -> Iterator[pa.Table]:
        staged = self._imports.get(import_name)
        return iter(staged.tables if staged else [])
