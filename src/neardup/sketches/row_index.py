"""Base of the indexes in memory: rows in a store, a searcher that finds them, and their file."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Array, Ints, Mask
from neardup.errors import InputError
from neardup.executor import count_threads, map_all
from neardup.files import AnyPath, JsonObject
from neardup.fingerprints.sketches import INDEX_KEY, Scheme, require_same, write_tables
from neardup.settings.run import RunSettings
from neardup.sketches.row_store import IdsLike, Rows, RowStore

_BLOCK_ROWS = 1 << 14  # entered or looked up at once

SearcherT = TypeVar("SearcherT", bound="Searcher")
SearchBlock = Callable[[int, "kernels.matches.Found"], int]
"""Fills buffers with the matches of a block of queries, from a given query on; returns the first
query whose matches did not fit, or the number of queries.
"""


class Searcher(Protocol):
    """Finds rows of a store by their numbers."""

    def add(self, store: RowStore, first: int) -> None:
        """Enter the rows of a store from `first` on."""


class Matches(NamedTuple):
    """Rows that queries found, by query, then the most similar, then row.

    query, row : int64 (num_matches,). equal : int64, the number of equal hashes or bits.
    """

    query: Ints
    row: Ints
    equal: Ints

    def take(self, chosen: Mask | Ints) -> Matches:
        """Return some of the matches."""
        return Matches(self.query[chosen], self.row[chosen], self.equal[chosen])


def find_in_blocks(
    queries: Array, prepare: Callable[[Array], SearchBlock], threads: int
) -> Matches:
    """Return the results of all queries, in order.

    prepare : returns the search for a block of the queries.
    """

    def find_block(span: tuple[int, int]) -> list[Matches]:
        start, stop = span
        block = np.array(queries[start:stop])  # contiguous: kernels are compiled for one layout
        return _collect(len(block), start, prepare(block))

    parts = map_all(list(spans(0, len(queries))), find_block, threads)
    return _in_order([match for part in parts for match in part])


def _collect(num_queries: int, first: int, search: SearchBlock) -> list[Matches]:
    """Return the matches of a block of queries, in buffers that grow as needed.

    first : the number of the first query of the block.
    """
    # A search stops before the first query whose matches do not fit, and continues with it.
    parts = []
    begin = 0
    size = 64 + 2 * num_queries
    while begin < num_queries:
        found = kernels.matches.Found(
            np.empty(size, np.uint32),
            np.empty(size, np.uint32),
            np.empty(size, np.uint32),
            np.zeros(1, np.int64),
        )
        reached = search(begin, found)
        num_matches = int(found.used[0])
        part = Matches(
            query=found.query[:num_matches].astype(np.int64) + first,
            row=found.row[:num_matches].astype(np.int64),
            equal=found.equal[:num_matches].astype(np.int64),
        )
        parts.append(part)
        if reached == begin:
            size *= 4  # the matches of this query alone do not fit
        begin = reached
    return parts


def spans(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the blocks from `first` to `stop`."""
    for start in range(first, stop, _BLOCK_ROWS):
        yield start, min(start + _BLOCK_ROWS, stop)


def _in_order(parts: list[Matches]) -> Matches:
    empty = np.empty(0, np.int64)
    columns = zip(Matches(query=empty, row=empty, equal=empty), *parts, strict=True)
    matches = Matches(*map(np.concatenate, columns))
    return matches.take(np.lexsort((matches.row, -matches.equal, matches.query)))


class RowIndex(ABC, Generic[SearcherT]):
    """Base of the indexes: a store of rows, and a searcher, rebuilt when the store is compacted."""

    def __init__(
        self, store: RowStore, make_searcher: Callable[[], SearcherT], threads: int | None
    ) -> None:
        self._store = store
        self._threads = count_threads(RunSettings(threads=threads).threads)
        self._make_searcher = make_searcher
        self._searcher = make_searcher()

    @abstractmethod
    def _settings(self) -> JsonObject:
        """Return the arguments of `open` besides rows and scheme, as values for JSON."""

    @property
    def scheme(self) -> Scheme | None:
        """The scheme of the rows; None until rows with a scheme are added."""
        return self._store.scheme

    def __len__(self) -> int:
        """Return the number of rows."""
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

    def _hits(self, rows: Ints, measured: Array) -> list[tuple[str | int, Any]]:
        """Return the ids that a query found, and the measures of each."""
        return list(zip(self._store.ids_of(rows).to_pylist(), measured.tolist(), strict=True))

    def _table(self, query: Ints, rows: Ints, **measured: Any) -> pa.Table:
        """Return the results of many queries. measured : the columns of measures, by name."""
        return pa.table({"query": query, "id": self._store.ids_of(rows), **measured})

    def _merge(self, other: RowIndex[SearcherT]) -> None:
        if type(other) is not type(self):
            raise InputError(
                f"An {type(self).__name__} can only be merged with one of the same type: got "
                f"{type(other).__name__}."
            )
        if self.scheme is not None and other.scheme is not None:
            kind = f"{self._store.noun.capitalize()}s"
            require_same(self.scheme, other.scheme, "the index", "the one to be merged", kind=kind)
        if len(other):
            ids, values = zip(*other._store.batches(), strict=True)
            self._add(pa.concat_arrays(ids), np.concatenate(values))
            self._store.scheme = self._store.scheme or other._store.scheme

    def save(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write ids and rows to a Parquet file, the scheme and the settings in its metadata.

        `Signatures.open` or `Fingerprints.open` can read it, too. The file appears when it is
        complete; `open` builds the tables again. Raises OutputError if the file exists and
        `overwrite` is false.
        """
        write_tables(path, map(self._to_table, self._store.batches()), overwrite)

    def _to_table(self, rows: Rows) -> pa.Table:
        table = self._store.to_sketches(rows).to_table()
        metadata = dict(table.schema.metadata or {})
        metadata[INDEX_KEY] = json.dumps(self._settings()).encode()
        return table.replace_schema_metadata(metadata)
