"""The journal of an index, a record for each change of rows; and the loader, which opens the files
and follows the commits of the writer.

A record, in little-endian numbers::

    head       6 int64  see `_Head`
    batch      bytes    the documents, a record batch message of Arrow IPC without the schema
    document   uint32   of each entry, its position in the batch
    table      uint16   of each entry
    key        uint64   of each entry
    seen       uint32   rows
    forgotten  uint32   rows; or uint8, a bit for each row, the lowest first, if that is shorter
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Array, Rows, mask_of
from neardup.candidates.lookups import Entries
from neardup.stores.base import Changes, StoreSettings, dump, join_entries
from neardup.stores.damage import damaged
from neardup.stores.documents import Chunk, Seen, as_batch, seen_at
from neardup.stores.embedded import row_files
from neardup.stores.embedded.array_files import FileInfo
from neardup.stores.embedded.database import Database
from neardup.stores.embedded.row_files import ForgottenBits, KeyFile, Opened
from neardup.stores.key_tables import KeyRun
from neardup.stores.state import RowChanges, State

COUNTERS = "counters"
"""The setting that contains `Counters`, as JSON."""
_ATTEMPTS = 100
_HEAD = struct.Struct("<qqqqqq")
_ROW = np.dtype("<u4")
_TABLE = np.dtype("<u2")
_KEY = np.dtype("<u8")
_BITS = np.dtype("|u1")
_ENTRY_BYTES = _ROW.itemsize + _TABLE.itemsize + _KEY.itemsize


class _Head(NamedTuple):
    """The head of a record. num_forgotten : minus the number of bytes if the rows are bits."""

    num_documents: int
    batch_bytes: int
    num_entries: int
    num_seen: int
    seen_at: int
    num_forgotten: int


def encode(changes: Changes) -> bytes:
    """Return the record of a change.

    changes : documents, entries, times and forgotten rows; the journal has no ended imports.
    """
    batch = b"" if changes.batch is None else changes.batch.serialize()
    arrays = []
    entries = changes.entries
    if entries is not None:
        arrays.append(entries.document.astype(_ROW))
        arrays.append(entries.table.astype(_TABLE, copy=False))
        arrays.append(entries.key.astype(_KEY, copy=False))
    arrays.append(changes.seen.astype(_ROW))
    forgotten = _encode_rows(changes.forgotten)
    arrays.append(forgotten)
    head = _Head(
        num_documents=changes.num_documents,
        batch_bytes=len(batch),
        num_entries=0 if entries is None else len(entries.key),
        num_seen=len(changes.seen),
        seen_at=changes.seen_at,
        num_forgotten=len(forgotten) if forgotten.dtype == _ROW else -len(forgotten),
    )
    return b"".join([_HEAD.pack(*head), batch, *(array.data for array in arrays)])


def _encode_rows(rows: Rows) -> Array:
    """Return rows, or a bit for each row if that is shorter."""
    if not len(rows) or rows.max() // 8 + 1 >= _ROW.itemsize * len(rows):
        return rows.astype(_ROW)
    bits = mask_of(rows, rows.max() + 1)
    return np.packbits(bits, bitorder="little")


class _Record(NamedTuple):
    """A decoded record. batch : None without documents. seen, times : of the same length."""

    num_documents: int
    batch: pa.RecordBatch | None
    entries: Entries
    seen: Array
    times: Rows
    forgotten: Array


def replay(records: Iterable[bytes], schema: pa.Schema) -> RowChanges:
    """Return the changes of records as one.

    Parameters
    ----------
    records : as `encode` returned them, in their order.
    schema : of the documents.
    """
    decoded = [_decode(record, schema) for record in records]
    batches = [record.batch for record in decoded if record.batch is not None]
    no_rows = np.empty(0, np.int64)
    seen = np.concatenate([no_rows, *(record.seen for record in decoded)])
    times = np.concatenate([no_rows, *(record.times for record in decoded)])
    return RowChanges(
        batch=as_batch(pa.Table.from_batches(batches)) if batches else None,
        entries=join_entries((record.entries, record.num_documents) for record in decoded),
        seen=seen_at(seen, times),
        forgotten=np.concatenate([no_rows, *(record.forgotten for record in decoded)]),
    )


def _decode(record: bytes, schema: pa.Schema) -> _Record:
    head = _Head._make(_HEAD.unpack_from(record))
    offset = _HEAD.size
    batch = None
    if head.batch_bytes:
        # The batch refers to the bytes of the record; nothing is copied.
        message = pa.py_buffer(record).slice(offset, head.batch_bytes)
        batch = pa.ipc.read_record_batch(message, schema)
        offset += head.batch_bytes
    entries = _decode_entries(record, head.num_entries, offset)
    offset += _ENTRY_BYTES * head.num_entries
    seen = np.frombuffer(record, _ROW, head.num_seen, offset)
    # One time a record, but `seen_at` merges records, so each row needs its own.
    times = np.full(head.num_seen, head.seen_at, np.int64)
    forgotten = _decode_rows(record, head.num_forgotten, offset + seen.nbytes)
    return _Record(head.num_documents, batch, entries, seen, times, forgotten)


def _decode_entries(record: bytes, size: int, offset: int) -> Entries:
    document: Array = np.frombuffer(record, _ROW, size, offset)
    offset += document.nbytes
    table = np.frombuffer(record, _TABLE, size, offset)
    offset += table.nbytes
    key = np.frombuffer(record, _KEY, size, offset)
    return Entries(document, table, key)


def _decode_rows(record: bytes, size: int, offset: int) -> Array:
    """Return the rows that `_encode_rows` encoded. size : of rows, or minus the bytes of bits."""
    if size >= 0:
        return np.frombuffer(record, _ROW, size, offset)
    bits = np.frombuffer(record, _BITS, -size, offset)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little"))


class Counters(NamedTuple):
    """Numbers that are never used again.

    record : the last record of the journal that is in files. file : the number of the last file.
    """

    record: int = 0
    file: int = 0

    def encode(self) -> bytes:
        """Return the value of the setting COUNTERS."""
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
    state : the rows.
    files : by name.
    last_record : the last record of the journal that is in `state`.
    flushed : the last record of the journal that is in files.
    file_numbers : of new files.
    forgotten_on_disk : bits of the rows that files list as forgotten.
    """

    def __init__(self, folder: Path, database: Database, settings: StoreSettings) -> None:
        self.folder = folder
        self.database = database
        self._settings = settings
        self.state = State(settings.layout, settings.schema)
        self.files: dict[str, FileInfo] = {}
        self.last_record = 0
        self.flushed = 0
        self.file_numbers: Iterator[int] = count()
        self.forgotten_on_disk = self.state.forgotten
        self._loaded = False
        self._opened: dict[FileInfo, Opened] = {}

    def load(self) -> None:
        """Bring the state up to date with the database.

        Raises
        ------
        StoreError
            If a file is missing or damaged.
        """
        missing: FileNotFoundError | None = None
        for _ in range(_ATTEMPTS):
            # One transaction, so that files, counters and records are of the same commit.
            with self.database.transaction(writing=False):
                files = {info.name: info for info in self.database.files()}
                has_files = self._loaded and files == self.files
                counters = self.counters()
                records = self.database.records(
                    # With the same files, only new records are missing; otherwise all records that
                    # the files do not have.
                    after=self.last_record if has_files else counters.record
                )
            # The list was read again: a file that is still in it is lost, not replaced.
            if missing is not None and _is_listed(missing, self.folder, files):
                raise damaged(Path(missing.filename), "it is missing") from missing
            try:
                if not has_files:
                    self._take_files(files, counters)
            except FileNotFoundError as error:  # the writer has replaced the file since
                missing = error
                continue
            if records:
                changes = replay(records.values(), self._settings.schema)
                self.state.apply(self.state.prepare(changes))
                self.last_record = max(records)
            return
        raise damaged(self.folder, "its files change faster than they can be opened")

    def counters(self) -> Counters:
        """Return the counters in the database."""
        return Counters(**json.loads(self.database.required_setting(COUNTERS)))

    def add_file(self, info: FileInfo, opened: Opened) -> None:
        """List a file that this process wrote."""
        self.files[info.name] = info
        self._opened[info] = opened

    def drop_files(self, names: Sequence[str]) -> None:
        """Drop files that are no longer listed."""
        for name in names:
            self._opened.pop(self.files.pop(name), None)

    def _take_files(self, files: dict[str, FileInfo], counters: Counters) -> None:
        """Replace the state by the contents of files."""
        self.state = self._restore(files.values())
        self.files = files
        self._opened = {info: opened for info, opened in self._opened.items() if info.name in files}
        self.last_record = counters.record
        self.flushed = counters.record
        self.file_numbers = count(counters.file + 1)
        # A copy, because the state sets bits in its own array.
        self.forgotten_on_disk = self.state.forgotten.copy()
        self._loaded = True

    def _restore(self, files: Iterable[FileInfo]) -> State:
        """Return the state that files contain."""
        state = State(self._settings.layout, self._settings.schema)
        contents = [self._open(info, len(state.keys.prefix_bits)) for info in files]
        keys = [opened for opened in contents if isinstance(opened, KeyFile)]
        runs = [file.run for file in keys]
        chunks = [opened for opened in contents if isinstance(opened, Chunk)]
        num_rows = self._check_rows(runs, chunks)
        kept = np.zeros((num_rows >> 6) + 2, np.uint64)
        for file in keys:
            row_files.place_bits(file.kept, file.run.first, file.run.stop, kept)
        forgotten = np.zeros_like(kept)
        for opened in contents:
            if isinstance(opened, ForgottenBits):
                row_files.place_bits(opened.bits, 0, 8 * len(opened.bits), forgotten)
        seen = [opened for opened in contents if isinstance(opened, Seen)]
        state.restore(runs, chunks, seen, kept=kept, forgotten=forgotten)
        return state

    def _open(self, info: FileInfo, num_tables: int) -> Opened:
        """Return the contents of a file, which is opened once."""
        if info not in self._opened:
            self._opened[info] = row_files.open_file(self.folder, info, num_tables)
        return self._opened[info]

    def _check_rows(self, runs: Sequence[KeyRun], chunks: Sequence[Chunk]) -> int:
        """Return the number of rows. Raises StoreError if they differ, have gaps or overlap."""
        num_rows = []
        for parts in (runs, chunks):
            stop = 0
            # The database lists files by kind and rows, so the parts are in order.
            for part in parts:
                if part.first != stop:
                    raise damaged(self.database.path, f"row {stop} is in no file, or in two")
                stop = part.stop
            num_rows.append(stop)
        if num_rows[0] != num_rows[1]:
            raise damaged(
                self.database.path, "the rows of the files of documents and of keys differ"
            )
        return num_rows[0]


def _is_listed(missing: FileNotFoundError, folder: Path, files: Iterable[str]) -> bool:
    """Return whether a file that could not be found is still in the list."""
    return str(missing.filename) in {str(folder / name) for name in files}
