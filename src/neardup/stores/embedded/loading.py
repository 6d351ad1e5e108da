"""The journal of an index, a record for each change of rows; open it with the files, follow what
the writer commits.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Array, Rows
from neardup.candidates.lookups import Entries
from neardup.stores.base import Changes, StoreSettings, dump
from neardup.stores.damage import damaged
from neardup.stores.documents import Seen, as_batch, seen_at
from neardup.stores.embedded import row_files
from neardup.stores.embedded.database import Database
from neardup.stores.embedded.row_files import FileInfo
from neardup.stores.state import State

COUNTERS = "counters"
"""The setting that contains `Counters`, as JSON."""
_ATTEMPTS = 100
# Documents, bytes of their batch, entries, seen, its time, forgotten; or minus the bytes of bits.
_HEAD = struct.Struct("<qqqqqq")
_ROW, _TABLE, _KEY, _BITS = np.dtype("<u4"), np.dtype("<u2"), np.dtype("<u8"), np.dtype("|u1")
_ENTRY: tuple[np.dtype[Any], ...] = (_ROW, _TABLE, _KEY)


def encode(changes: Changes) -> bytes:
    """Return the record of a change: the documents as a message of Arrow IPC without the schema,
    then arrays.

    changes : documents, entries, times and forgotten rows; the rest is not in the journal.
    """
    documents, entries = changes.documents, changes.entries
    num_documents = 0 if documents is None else len(documents)
    batch = as_batch(documents).serialize() if documents is not None and num_documents else b""
    num_entries = 0 if entries is None else len(entries.key)
    columns: tuple[Array, ...] = entries or ()
    keys = [column.astype(kind) for column, kind in zip(columns, _ENTRY, strict=False)]
    forgotten = _encode_rows(changes.forgotten)
    num_forgotten = len(forgotten) if forgotten.dtype == _ROW else -len(forgotten)
    head = (
        num_documents,
        len(batch),
        num_entries,
        len(changes.seen),
        changes.seen_at,
        num_forgotten,
    )
    arrays = (*keys, changes.seen.astype(_ROW), forgotten)
    return b"".join([_HEAD.pack(*head), batch, *(array.data for array in arrays)])


def _encode_rows(rows: Rows) -> Array:
    """Return rows; or a bit for each row, the lowest first, if these are fewer bytes."""
    if not len(rows) or rows.max() // 8 + 1 >= _ROW.itemsize * len(rows):
        return rows.astype(_ROW)
    bits = np.zeros(rows.max() + 1, np.bool_)
    bits[rows] = True
    return np.packbits(bits, bitorder="little")


def replay(
    records: Iterable[bytes], schema: pa.Schema
) -> tuple[pa.Table | None, Entries, Seen, Rows]:
    """Return the changes of records as one, in the arguments of `State.apply_all`.

    Parameters
    ----------
    records : as `encode` returned them, in their order.
    schema : of the documents.
    """
    batches: list[pa.RecordBatch] = []
    columns: tuple[list[Array], ...] = ([], [], [], [], [], [])
    num_documents = 0
    for record in records:
        size, batch_bytes, num_entries, num_seen, time, num_forgotten = _HEAD.unpack_from(record)
        offset = _HEAD.size
        if batch_bytes:
            message = pa.py_buffer(record).slice(offset, batch_bytes)
            batches.append(pa.ipc.read_record_batch(message, schema))
            offset += batch_bytes
        counts = (num_entries, num_entries, num_entries, num_seen, abs(num_forgotten))
        kinds = (*_ENTRY, _ROW, _ROW if num_forgotten > 0 else _BITS)
        for column, number, kind in zip(columns, counts, kinds, strict=False):
            if number:
                column.append(np.frombuffer(record, kind, number, offset))
            offset += number * kind.itemsize
        if num_entries:
            columns[0][-1] = columns[0][-1].astype(np.int64) + num_documents
        if num_forgotten < 0:
            columns[4][-1] = np.flatnonzero(np.unpackbits(columns[4][-1], bitorder="little"))
        if num_seen:
            columns[5].append(np.full(num_seen, time, np.int64))
        num_documents += size
    document, table, key, seen, forgotten, times = (
        np.concatenate(column) if column else np.empty(0, kind)
        for column, kind in zip(
            columns, (np.int64, np.uint16, np.uint64, np.int64, np.int64, np.int64), strict=True
        )
    )
    documents = pa.Table.from_batches(batches) if batches else None
    return (
        documents,
        Entries(document, table, key),
        seen_at(seen, times),
        forgotten.astype(np.int64),
    )


class Counters(NamedTuple):
    """Numbers that never repeat. record : the last of the journal that is in files. file : the last
    file.
    """

    record: int = 0
    file: int = 0

    def encode(self) -> bytes:
        """Return the counters as the setting COUNTERS has them."""
        return dump(self._asdict())


class Loader:
    """The rows of an index, as the database lists them.

    Parameters
    ----------
    folder : of the index.
    database : a connection.
    settings : of the store.

    Attributes
    ----------
    state : of the rows. files : by name. number : of the last record of the journal that is in
        `state`. file_numbers :
    of new files. flushed : the last record that is in files. forgotten_on_disk : bits in files.
    """

    def __init__(self, folder: Path, database: Database, settings: StoreSettings) -> None:
        self.folder, self.database, self._settings = folder, database, settings
        self.state = State(settings.layout, settings.schema)
        self.files: dict[str, FileInfo] = {}
        self.number = self.flushed = 0
        self.file_numbers: Iterator[int] = count()
        self.forgotten_on_disk = self.state.forgotten
        self._loaded = False
        self._opened: dict[FileInfo, Any] = {}

    def load(self) -> None:
        """Bring the state up to date with the database.

        Raises
        ------
        StoreError
            If a file is missing or damaged.
        """
        missing: FileNotFoundError | None = None
        for _ in range(_ATTEMPTS):
            with self.database.transaction(writing=False):
                files = self.database.files()
                known = self._loaded and {info.name: info for info in files} == self.files
                counters = self.counters()
                records = self.database.records(self.number if known else counters.record)
            if missing is not None and str(missing.filename) in {
                str(self.folder / info.name) for info in files
            }:
                raise damaged(Path(missing.filename), "it is missing") from missing
            try:
                if not known:
                    self._take_files(files, counters)
                if records:
                    self.state.apply_all(*replay(records.values(), self._settings.schema))
                    self.number = max(records)
            except FileNotFoundError as error:  # the writer has replaced it since
                missing = error
                continue
            return
        raise damaged(self.folder, "its files change faster than they can be opened")

    def counters(self) -> Counters:
        """Return the counters in the database."""
        return Counters(**json.loads(self.database.needed_setting(COUNTERS)))

    def keep(self, info: FileInfo, opened: Any) -> None:
        """Take note of a file that this process wrote."""
        self.files[info.name], self._opened[info] = info, opened

    def forget(self, names: Sequence[str]) -> None:
        """Drop files that are no longer listed."""
        for name in names:
            self._opened.pop(self.files.pop(name), None)

    def _take_files(self, files: Sequence[FileInfo], counters: Counters) -> None:
        self.state = self._restore(files)
        self.files = {info.name: info for info in files}
        self._opened = {
            info: opened for info, opened in self._opened.items() if info.name in self.files
        }
        self.number = self.flushed = counters.record
        self.file_numbers, self.forgotten_on_disk = (
            count(counters.file + 1),
            self.state.forgotten.copy(),
        )
        self._loaded = True

    def _restore(self, files: Sequence[FileInfo]) -> State:
        """Return the state that files contain."""
        state = State(self._settings.layout, self._settings.schema)
        num_tables = len(state.keys.prefix_bits)
        opened: dict[str, list[Any]] = {kind: [] for kind in row_files.KINDS}
        for info in files:
            if info not in self._opened:
                self._opened[info] = row_files.open_file(self.folder, info, num_tables)
            opened[info.kind].append(self._opened[info])
        keys, chunks = opened[row_files.KEYS], opened[row_files.DOCUMENTS]
        num_rows = self._check_rows([run for run, _ in keys])
        if self._check_rows(chunks) != num_rows:
            raise damaged(
                self.database.path, "the rows of the files of documents and of keys differ"
            )
        kept, forgotten = (
            np.zeros((num_rows >> 6) + 2, np.uint64),
            np.zeros((num_rows >> 6) + 2, np.uint64),
        )
        for run, bits in keys:
            row_files.place_bits(bits, run.first, run.stop, kept)
        for bits in opened[row_files.FORGOTTEN]:
            row_files.place_bits(bits, 0, 8 * len(bits), forgotten)
        state.restore([run for run, _ in keys], chunks, opened[row_files.SEEN], kept, forgotten)
        return state

    def _check_rows(self, ranges: Sequence[Any]) -> int:
        """Return the end of ranges of rows. Raises StoreError if they leave gaps or overlap."""
        stop = 0
        for part in ranges:
            if part.first != stop:
                raise damaged(self.database.path, f"row {stop} is in no file, or in two")
            stop = part.stop
        return stop
