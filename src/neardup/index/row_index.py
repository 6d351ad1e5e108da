"""What the indexes share: rows in a store, a searcher that finds them, and the file of both."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import InputError, SettingError
from neardup.executor import count_processors
from neardup.fingerprints.files import INDEX_KEY, UNKNOWN, read_batches, read_json, require_same, write_tables
from neardup.fingerprints.signatures import Signatures
from neardup.index.row_store import Rows, RowStore
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import MinHash

SearcherT = TypeVar("SearcherT", bound="Searcher")
IndexT = TypeVar("IndexT", bound="RowIndex")


class Searcher(Protocol):
    """Finds rows of a store by their numbers."""

    def add(self, store: RowStore, first: int) -> None:
        """Take in the rows of a store from `first` on."""


class RowIndex(ABC):
    """Base of the indexes: a store of rows and a searcher, which is made again when removed rows are left out."""

    def __init__(self, store: RowStore, threads: int | None) -> None:
        self._store, self._threads = store, threads or count_processors()
        self._searcher = self._new_searcher()

    @abstractmethod
    def _new_searcher(self) -> Any:
        """Return a searcher of no rows."""

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
            self._searcher = self._new_searcher()
            self._searcher.add(self._store, 0)

    def _add(self, ids: Any, sketches: Any, sizes: npt.NDArray[np.int64] | None = None) -> None:
        first = self._store.append(ids, sketches, sizes)
        if self._store.num_rows > first:
            self._searcher.add(self._store, first)

    def _hits(self, rows: npt.NDArray[np.int64], measured: npt.NDArray[Any]) -> list[tuple[str | int, Any]]:
        """Return the ids that a query found, and the measures of each."""
        return list(zip(self._store.ids_of(rows).to_pylist(), measured.tolist(), strict=True))

    def _table(self, query: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], **measured: Any) -> pa.Table:
        """Return the results of many queries: the position of each query, ids, and measures by name."""
        return pa.table({"query": query, "id": self._store.ids_of(rows), **measured})

    def _merge(self, other: RowIndex) -> None:
        if type(other) is not type(self):
            raise InputError(
                f"An {type(self).__name__} can only be merged with one of the same type: got {type(other).__name__}."
            )
        if self.scheme is not None and other.scheme is not None:
            kind = f"{self._store.noun.capitalize()}s"
            require_same(self.scheme, other.scheme, "the index", "the one to be merged", kind=kind)
        rows = Rows(*map(_concatenate, zip(*other._store.batches(), strict=True)))
        if len(rows.ids):
            self._add(rows.ids, rows.values, rows.sizes)
            self._store.scheme = self._store.scheme or other._store.scheme

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write ids and rows to a Parquet file, the scheme and the settings in its metadata.

        `Signatures.open` or `Fingerprints.open` reads it, too. The file appears when it is complete; tables are built
        again when it is opened. Raises OutputError if the file exists and is not to be replaced.
        """
        settings = {"kind": type(self).__name__, **self._settings()}
        write_tables(path, (self._to_table(rows, settings) for rows in self._store.batches()), overwrite)

    def _to_table(self, rows: Rows, settings: dict[str, Any]) -> pa.Table:
        table = self._store.to_sketches(rows).to_table()
        if rows.sizes is not None:
            table = table.append_column("size", pa.array(rows.sizes))
        metadata = {**(table.schema.metadata or {}), INDEX_KEY: json.dumps(settings).encode()}
        return table.replace_schema_metadata(metadata)


def _concatenate(columns: tuple[Any, ...]) -> Any:
    if columns[0] is None:
        return None
    return pa.concat_arrays(columns) if isinstance(columns[0], pa.Array) else np.concatenate(columns)


def open_signatures(
    path: str | os.PathLike[str], kind: type[IndexT], make: Callable[[dict[str, Any], Any], IndexT]
) -> IndexT:
    """Return the index of the signatures in a file: of an index of this kind, or of Signatures.

    make : returns an empty index, given the settings in the file, if it has any, and the scheme.

    Raises
    ------
    InputError
        If it cannot be read, is no file of signatures, or is one of another kind of index.
    """
    index, name = None, os.fspath(path)
    for table in read_batches(path):
        signatures = Signatures._from_table(table, name)
        if index is None:
            settings = read_json(table.schema, INDEX_KEY)[0] or {"kind": kind.__name__}
            writer = settings.pop("kind", None)
            if writer != kind.__name__:
                raise InputError(f"{name} was saved by {writer}: got {kind.__name__}.open. Open it with {writer}.open.")
            scheme = None if signatures.scheme.get("name") == UNKNOWN else signatures.scheme
            index = make(settings, scheme)
        if not table.num_rows:
            continue
        sizes = None
        if index._store.sizes is not None:
            if "size" not in table.schema.names:
                raise InputError(f"{name} has no column 'size'. Sign the sets again and add them with their sizes.")
            sizes = table["size"].to_numpy()
        index._add(signatures.ids, signatures.values, sizes)
    assert index is not None  # there is one table at least
    return index


def check_num_hashes(num_hashes: int | None) -> None:
    """Raise SettingError unless it is the length of a signature, or None."""
    constraint = constraints_of(MinHash)["num_hashes"]
    if not constraint.accepts(num_hashes):
        raise SettingError(
            f"num_hashes must be {constraint.describe()}: got {num_hashes!r}. Pass the length of a signature."
        )


def least_equal(min_similarity: float, num_hashes: int, name: str = "min_similarity") -> int:
    """Return how many hashes agree at least where the estimated similarity is at least so much."""
    number = isinstance(min_similarity, (int, float, np.number)) and not isinstance(min_similarity, bool)
    if not number or not 0 <= min_similarity <= 1:
        raise SettingError(f"{name} must be a number from 0 to 1, or None: got {min_similarity!r}. Change {name}.")
    return int(np.searchsorted(np.arange(num_hashes + 1) / num_hashes, min_similarity))
