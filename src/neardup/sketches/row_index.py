"""What the indexes share: rows in a store, a searcher that finds them, and the file of both."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import InputError
from neardup.executor import count_processors
from neardup.fingerprints.files import INDEX_KEY, require_same, write_tables
from neardup.sketches.id_table import IdsLike
from neardup.sketches.row_store import Rows, RowStore

SearcherT = TypeVar("SearcherT", bound="Searcher")


class Searcher(Protocol):
    """Finds rows of a store by their numbers."""

    def add(self, store: RowStore, first: int) -> None:
        """Take in the rows of a store from `first` on."""


class RowIndex(ABC, Generic[SearcherT]):
    """Base of the indexes: a store of rows and a searcher, which is made again when removed rows are left out."""

    def __init__(self, store: RowStore, make_searcher: Callable[[], SearcherT], threads: int | None) -> None:
        self._store, self._threads = store, threads or count_processors()
        self._make_searcher, self._searcher = make_searcher, make_searcher()

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return the arguments of `open` besides rows and scheme, as values for JSON."""

    @property
    def scheme(self) -> Mapping[str, Any] | None:
        """How the rows were made; None until the first are added that have a scheme."""
        return self._store.scheme

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._store)

    def __contains__(self, id: object) -> bool:
        """Return whether an id is in the index."""
        return id in self._store

    def __iter__(self) -> Iterator[str | int]:
        """Yield the ids, in the order in which they were added."""
        return iter(self._store.ids_of(self._store.alive_rows()).to_pylist())

    def remove(self, id: str | int) -> None:
        """Remove an id. Raises InputError if it is not in the index."""
        self._store.remove(id)
        if self._store.is_sparse:
            self._store.compact()
            self._searcher = self._make_searcher()
            self._searcher.add(self._store, 0)

    def _add(self, ids: IdsLike, sketches: Any) -> None:
        first = self._store.append(ids, sketches)
        if self._store.num_rows > first:
            self._searcher.add(self._store, first)

    def _hits(self, rows: npt.NDArray[np.int64], measured: npt.NDArray[Any]) -> list[tuple[str | int, Any]]:
        """Return the ids that a query found, and the measures of each."""
        return list(zip(self._store.ids_of(rows).to_pylist(), measured.tolist(), strict=True))

    def _table(self, query: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], **measured: Any) -> pa.Table:
        """Return the results of many queries: the position of each query, ids, and measures by name."""
        return pa.table({"query": query, "id": self._store.ids_of(rows), **measured})

    def _merge(self, other: RowIndex[SearcherT]) -> None:
        if type(other) is not type(self):
            raise InputError(
                f"An {type(self).__name__} can only be merged with one of the same type: got {type(other).__name__}."
            )
        if self.scheme is not None and other.scheme is not None:
            kind = f"{self._store.noun.capitalize()}s"
            require_same(self.scheme, other.scheme, "the index", "the one to be merged", kind=kind)
        ids, values = zip(*other._store.batches(), strict=True)
        if len(other):
            self._add(pa.concat_arrays(ids), np.concatenate(values))
            self._store.scheme = self._store.scheme or other._store.scheme

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write ids and rows to a Parquet file, the scheme and the settings in its metadata.

        `Signatures.open` or `Fingerprints.open` reads it, too. The file appears when it is complete; tables are built
        again when it is opened. Raises OutputError if the file exists and is not to be replaced.
        """
        write_tables(path, map(self._to_table, self._store.batches()), overwrite)

    def _to_table(self, rows: Rows) -> pa.Table:
        table = self._store.to_sketches(rows).to_table()
        metadata = {**(table.schema.metadata or {}), INDEX_KEY: json.dumps(self._settings()).encode()}
        return table.replace_schema_metadata(metadata)
