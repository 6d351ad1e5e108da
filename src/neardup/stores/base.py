"""The protocol of a store: the rows of an index in memory, in files, or on a database server.

A store contains the rows of documents, numbered in the order of arrival, and tables of keys that
list the rows. It knows nothing of texts and methods: `index/` computes the keys and decides.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Rows, Words
from neardup.candidates.lookups import Entries, Found, Layout
from neardup.errors import StoreError
from neardup.files import JsonObject
from neardup.stores.documents import SKETCHED, Sketched, array_of, as_batch, sketched_of

# Tables of keys, files and servers store the number of a row in 32 bits.
MAX_ROWS = 2**32 - 1
META = "meta"
LAYOUT = "layout"
SCHEMA = "schema"


class StoreSettings(NamedTuple):
    """The settings of a store, which never change.

    meta : settings of the index, values for JSON. layout : the tables of keys. schema : the columns
    of documents. attachments : files by name.
    """

    meta: Mapping[str, Any]
    layout: Layout
    schema: pa.Schema
    attachments: Mapping[str, bytes] = {}

    def encode(self) -> dict[str, bytes]:
        """Return the settings as bytes by name."""
        return {
            META: dump(self.meta),
            LAYOUT: dump(self.layout._asdict()),
            SCHEMA: self.schema.serialize().to_pybytes(),
            **{attachment_name(name): data for name, data in self.attachments.items()},
        }


def decode_settings(stored: Callable[[str], bytes]) -> StoreSettings:
    """Return the settings that `encode` encoded, without attachments.

    stored : returns the bytes of a name.
    """
    layout = json.loads(stored(LAYOUT))
    return StoreSettings(
        meta=json.loads(stored(META)),
        layout=Layout(tuple(layout["prefix_bits"]), layout["max_distance"]),
        schema=pa.ipc.read_schema(pa.py_buffer(stored(SCHEMA))),
    )


def attachment_name(name: str) -> str:
    """Return the name of the setting that contains an attachment."""
    return f"attachment {name}"


def dump(values: Mapping[str, Any]) -> bytes:
    """Return values as JSON in UTF-8."""
    return json.dumps(values, ensure_ascii=False).encode()


class Counts(NamedTuple):
    """The number of documents that were kept, and that were removed as duplicates.

    Forgotten documents are not counted.
    """

    kept: int
    removed: int


class Import(NamedTuple):
    """An open import. opened : microseconds since 1970. num_documents : staged so far."""

    name: str
    opened: int
    num_documents: int


def _no_rows() -> Rows:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Changes:
    """One atomic change of a store.

    Attributes
    ----------
    documents : new rows, `schemas.indexed_schema`; `row` counts on from `Snapshot.num_rows` without
        gaps.
    entries : the keys of new members of buckets; `document` is the position in `documents`.
    seen : rows, also new ones, whose `last_seen` becomes `seen_at`.
    seen_at : microseconds since 1970.
    forgotten : rows, without repeats, that no later call finds.
    ended_import : the name of an import whose staged documents are dropped.
    """

    documents: pa.Table | None = None
    entries: Entries | None = None
    seen: Rows = field(default_factory=_no_rows)
    seen_at: int = 0
    forgotten: Rows = field(default_factory=_no_rows)
    ended_import: str | None = None

    @property
    def num_documents(self) -> int:
        """The number of new documents."""
        return 0 if self.documents is None else len(self.documents)

    @cached_property
    def batch(self) -> pa.RecordBatch | None:
        """The new documents as one batch, None if there are none."""
        return as_batch(self.documents) if self.num_documents else None


def join_changes(parts: Iterable[Changes]) -> Changes:
    """Return several changes as one.

    parts : each applies to the state after the parts before it; the last `ended_import` counts.
    """
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    tables = [part.documents for part in parts if part.documents is not None]
    # `concatenate` needs an array, even without parts.
    forgotten = np.concatenate([_no_rows(), *(part.forgotten for part in parts)])
    seen = np.concatenate([_no_rows(), *(part.seen for part in parts)])
    ended_imports = [part.ended_import for part in parts if part.ended_import is not None]
    return Changes(
        documents=pa.concat_tables(tables) if tables else None,
        entries=join_entries((part.entries, part.num_documents) for part in parts),
        # A later part may forget a row that an earlier one saw: its time would belong to no row.
        seen=np.setdiff1d(seen, forgotten),
        seen_at=max((part.seen_at for part in parts), default=0),
        forgotten=forgotten,
        ended_import=ended_imports[-1] if ended_imports else None,
    )


def join_entries(parts: Iterable[tuple[Entries | None, int]]) -> Entries:
    """Return the entries of adjacent batches of documents as one.

    parts : the entries of each batch, and the number of its documents.
    """
    documents = [_no_rows()]
    tables = [np.empty(0, np.uint16)]
    keys = [np.empty(0, np.uint64)]
    first = 0
    for entries, num_documents in parts:
        if entries is not None:
            # The journal returns positions as uint32; the sum must not wrap around.
            documents.append(np.add(entries.document, first, dtype=np.int64))
            tables.append(entries.table)
            keys.append(entries.key)
        # Documents without entries, too, move the positions of later parts.
        first += num_documents
    return Entries(
        document=np.concatenate(documents),
        table=np.concatenate(tables),
        key=np.concatenate(keys),
    )


def check_changes(changes: Changes, num_rows: int, schema: pa.Schema) -> None:
    """Raise StoreError if there are too many rows, ValueError if the changes break the rules of
    `Changes`.

    num_rows, schema : the number of rows and the columns of the store.
    """
    stop = num_rows + changes.num_documents
    if stop > MAX_ROWS:
        raise StoreError(
            f"An index numbers up to {MAX_ROWS:,} documents, also those that were removed: got "
            f"{stop:,}. Create a second index, or rebuild this one without the documents that were "
            "forgotten."
        )
    if changes.batch is not None:
        _check_documents(changes.batch, num_rows, schema)
    for rows in (changes.seen, changes.forgotten):
        if len(rows) and not (rows.min() >= 0 and rows.max() < stop):
            raise ValueError(f"rows must be from 0 to {stop - 1}: got {rows.min()} to {rows.max()}")


def _check_documents(documents: pa.RecordBatch, num_rows: int, schema: pa.Schema) -> None:
    rows = documents.column("row").to_numpy()
    # Only both ends are compared, so the check costs the same for a batch of any length.
    if rows[0] != num_rows or rows[-1] != num_rows + len(rows) - 1:
        raise ValueError(f"rows must count on from {num_rows}: got {rows[0]} to {rows[-1]}")
    if not schema.equals(documents.schema):
        raise ValueError(
            f"columns must be those of the store, {schema.names}: got {documents.schema}"
        )


class Snapshot(ABC):
    """A consistent state of a store, perhaps with changes that are not written yet.

    For one thread at a time; a store gives each thread its own snapshot.
    """

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """The number of rows ever written, forgotten rows included: the number of the next row."""

    @abstractmethod
    def find(self, lookups: Entries, limit: int) -> Found:
        """Return the rows in the buckets of keys.

        Parameters
        ----------
        lookups : each finds the rows whose key in `table` has the same upper `prefix_bits` bits and
            differs in `max_distance` bits or fewer.
        limit : the earliest `limit` rows of each key (all 64 bits) are listed.
        """

    @abstractmethod
    def rows_of_ids(self, ids: pa.Array) -> Rows:
        """Return the row of each id, large_string without nulls; -1 if there is none."""

    @abstractmethod
    def rows_of_contents(self, contents: Words) -> Rows:
        """Return the earliest kept row that is a member of buckets and has the content; otherwise
        the earliest removed one; otherwise -1.

        contents : uint64 (n, 2).
        """

    @abstractmethod
    def without(self, rows: Rows) -> Snapshot:
        """Return the state without some rows: `find` and `rows_of_*` skip them."""

    @abstractmethod
    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        """Return columns of some rows, in this order; rows may repeat.

        Requires: none of the rows was forgotten.
        """

    def take_sketched(
        self, rows: Rows, details: Sequence[str], columns: Sequence[str]
    ) -> tuple[Sketched, list[pa.Array]]:
        """Return the columns of some rows that comparisons read, and other columns.

        Requires: none of the rows was forgotten.

        details : names for `Sketched.details`.
        """
        table = self.take(rows, (*SKETCHED, *details, *columns))
        return sketched_of(table, details), [array_of(table.column(name)) for name in columns]


class StoredSnapshot(Snapshot):
    """A consistent state of a store."""

    @abstractmethod
    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of all rows in their order, some thousand at a time."""

    @abstractmethod
    def count(self) -> Counts:
        """Return the number of documents."""

    @abstractmethod
    def imports(self) -> list[Import]:
        """Return the open imports, by the time they were opened."""

    @abstractmethod
    def staged(self, import_name: str) -> Iterator[pa.Table]:
        """Yield the tables that were staged in an open import, in their order."""


class Writer(StoredSnapshot):
    """The only writer of a store, while it is open. Its reads see its changes."""

    def write(self, changes: Changes) -> None:
        """Apply all changes or none. Raises as `write_all`.

        When this returns, a durable store has the changes on disk.
        """
        self.write_all([changes])

    @abstractmethod
    def write_all(self, parts: Iterable[Changes]) -> None:
        """Apply all changes or none; each applies to the state after the changes before it.

        Raises
        ------
        StoreError
            If they cannot be written. The store is then unchanged.
        """

    @abstractmethod
    def stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        """Append documents of any schema to an import, as durably as `write`.

        The first call opens the import.
        """


class Store(ABC):
    """A place for one index. `reading` and `writing` may be called by several threads at once.

    Attributes
    ----------
    address : the path or address, as the user named it.
    shown : the address without a password.
    read_only : whether `writing` is refused.
    closed : whether `close` was called.
    settings : the settings, without attachments.
    durable : whether documents survive the process.
    promise : one sentence about the failures that documents survive.
    """

    settings: StoreSettings
    durable: bool
    promise: str

    def __init__(self, address: str, shown: str, read_only: bool) -> None:
        self.address = address
        self.shown = shown
        self.read_only = read_only
        self.closed = False

    def require_open(self, for_writing: bool = False) -> None:
        """Raise StoreError if the store was closed, or is read-only and must be written."""
        if self.closed:
            raise StoreError(f"The index {self.shown} was closed. Open it again.")
        if for_writing and self.read_only:
            raise StoreError(
                f"The index {self.shown} was opened for reading only. Open it without read_only to "
                "change it."
            )

    @abstractmethod
    def reading(self) -> AbstractContextManager[StoredSnapshot]:
        """Open the latest state. Never waits for a writer."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Writer]:
        """Wait for other writers, and open the store for writing.

        A store on a server is shared by all hosts, other stores by the threads of this process.

        Raises
        ------
        StoreError
            If the store was opened for reading only, or it is not shared and another process has it
            open for writing.
        """

    @abstractmethod
    def attachment(self, name: str) -> bytes | None:
        """Return a file that was stored when the index was created, or None."""

    @abstractmethod
    def describe(self) -> JsonObject:
        """Return sizes and states for `info`, values for JSON; `bytes` is the total."""

    @abstractmethod
    def verify(self) -> list[str]:
        """Return a sentence for each damage: a checksum, a row that tables do not list, or the
        reverse.
        """

    @abstractmethod
    def compact(self) -> None:
        """Drop forgotten rows, and merge parts that slow down lookups."""

    @abstractmethod
    def backup(self, path: str) -> None:
        """Write a copy of the latest state to a new folder, while the store is in use.

        Raises
        ------
        StoreError
            If the server has its own tools for this; the message names them.
        """

    @abstractmethod
    def close(self) -> None:
        """Release files, connections and locks. Later calls raise StoreError."""
