"""The immutable files of an index: documents in Arrow IPC; keys, times and forgotten rows in files
of arrays.

The arrays of each kind, for rows from `first` to `stop` and tables T::

    keys         kept      uint8   one bit for each row, the lowest first
                 keys.T    uint64  sorted
                 rows.T    uint32  the row of each key; rows of equal keys rise
                 starts.T  uint32  cell c has the entries from starts[c] to starts[c + 1]
    seen         rows      uint32  rising
                 times     int64   microseconds since 1970
    forgotten    bits      uint8   one bit for each row, the lowest first

Numbers are little-endian. See docs/index-format.md.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Array, Bytes, Rows, Words
from neardup.errors import StoreError
from neardup.stores.damage import damaged
from neardup.stores.documents import NARROW, Chunk, Seen, all_of, as_batch, bits_at
from neardup.stores.embedded import array_files
from neardup.stores.embedded.array_files import (
    ArrayFile,
    ArraySpace,
    FileInfo,
    check_arrays,
    map_file,
    open_arrays,
)
from neardup.stores.key_tables import (
    KeyRun,
    SortedTable,
    choose_shift,
    damaged_keys,
    parts_of,
    parts_of_table,
)

DOCUMENTS = "documents"
KEYS = "keys"
SEEN = "seen"
FORGOTTEN = "forgotten"
KINDS = (DOCUMENTS, KEYS, SEEN, FORGOTTEN)
"""The kinds of files."""
_SUFFIXES = {DOCUMENTS: "arrow", KEYS: "keys", SEEN: "seen", FORGOTTEN: "bits"}
_ENTRIES_AT_ONCE = 1 << 19
_BITS_AT_ONCE = 1 << 20


class KeyFile(NamedTuple):
    """The contents of a file of keys. kept : uint8, a bit for each row, the lowest first."""

    run: KeyRun
    kept: Bytes


class ForgottenBits(NamedTuple):
    """The contents of a file of forgotten rows. bits : uint8, a bit for each row from 0."""

    bits: Bytes


Opened: TypeAlias = Chunk | KeyFile | Seen | ForgottenBits
"""The contents of a file of each kind, mapped into memory."""


def file_name(kind: str, number: int) -> str:
    """Return the name of a file."""
    return f"{kind}-{number:08}.{_SUFFIXES[kind]}"


def is_file_name(name: str) -> bool:
    """Return whether an index writes files of this name."""
    kind, _, rest = name.partition("-")
    number, _, suffix = rest.partition(".")
    return kind in _SUFFIXES and number.isdecimal() and suffix == _SUFFIXES[kind]


def open_file(folder: Path, info: FileInfo, num_tables: int) -> Opened:
    """Return the contents of a file, mapped into memory.

    Raises
    ------
    StoreError
        If it is damaged.
    FileNotFoundError
        If there is no such file.
    """
    if info.kind == DOCUMENTS:
        return _open_documents(folder, info)
    if info.kind == KEYS:
        return _open_keys(folder, info, num_tables)
    # These are small and read completely anyway. Keys and rows are not: their checksums would make
    # opening as slow as reading the whole index.
    arrays = open_arrays(folder, info, checked=["rows", "times", "bits"])
    if info.kind == SEEN:
        return Seen(arrays["rows"], arrays["times"], info.name)
    return ForgottenBits(arrays["bits"])


def check_file(folder: Path, info: FileInfo) -> None:
    """Compare a file with its checksums. Raises StoreError if it is damaged, FileNotFoundError."""
    if info.kind != DOCUMENTS:
        check_arrays(folder, info)
    elif zlib.crc32(map_file(folder, info)) != info.checksum:
        raise damaged(folder / info.name, "its checksum differs")


def check_files(folder: Path, list_files: Callable[[], list[FileInfo]]) -> Iterator[str]:
    """Yield a sentence for each damaged file, except for files that were replaced meanwhile."""
    for info in list_files():
        try:
            check_file(folder, info)
        except StoreError as error:  # noqa: PERF203 - a file is read
            yield str(error)
        except FileNotFoundError:
            if info in list_files():
                yield f"{info.name}: it is missing"


# Documents.


def write_documents(
    folder: Path, number: int, chunks: Sequence[Chunk], schema: pa.Schema
) -> FileInfo:
    """Write adjacent chunks as one file, with the columns of a schema.

    Raises OSError; it leaves no file then.
    """
    first = chunks[0].first
    stop = chunks[-1].stop
    whole = as_batch(pa.concat_tables([all_of(chunk, schema) for chunk in chunks]))
    batch = _narrow(whole, num_rows=stop - first)
    path = folder / file_name(DOCUMENTS, number)
    # Outside the block below, which removes the file: it must not remove one that exists already.
    file = path.open("xb")
    try:
        with file:
            checked = _CheckedFile(file.fileno())
            with pa.ipc.new_file(pa.PythonFile(checked, mode="w"), batch.schema) as writer:
                writer.write_batch(batch)
            # The database lists the file next, and may list only bytes that are on disk.
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileInfo(
        name=path.name,
        kind=DOCUMENTS,
        first=first,
        stop=stop,
        num_bytes=checked.num_bytes,
        checksum=checked.checksum,
    )


class _CheckedFile:
    """A file for Arrow to write to, which counts its bytes and computes their CRC-32."""

    # pa.PythonFile asks for `closed`, `write` and `flush`.
    closed = False

    def __init__(self, file: int) -> None:
        self._file = file
        self.checksum = 0
        self.num_bytes = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.checksum = zlib.crc32(view, self.checksum)
        array_files.write_at(self._file, view, self.num_bytes)
        self.num_bytes += len(view)
        return len(view)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""


def _narrow(batch: pa.RecordBatch, num_rows: int) -> pa.RecordBatch:
    """Return the columns that a file needs, in narrower types; `Chunk` defines the missing ones."""
    fields = []
    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        is_consecutive = field.name == "row" and len(column) == num_rows
        is_first_seen = field.name == "last_seen" and column.equals(batch.column("first_seen"))
        has_nulls_only = len(column) and column.null_count == len(column)
        if is_consecutive or is_first_seen or has_nulls_only:
            continue
        narrow = _narrow_column(column)
        fields.append(field.with_type(narrow.type))
        columns.append(narrow)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _narrow_column(column: pa.Array) -> pa.Array:
    """Return bytes of one length without offsets, and other strings with offsets of 32 bits."""
    if column.type == pa.large_binary() and len(column) and not column.null_count:
        fixed = _without_offsets(column)
        if fixed is not None:
            return fixed
    if column.type in NARROW and column.nbytes < 2**31:
        return column.cast(NARROW[column.type])
    return column


def _without_offsets(column: pa.LargeBinaryArray) -> pa.FixedSizeBinaryArray | None:
    """Return bytes as fixed_size_binary without a copy, or None if they differ in length.

    Requires: the column has a row or more, and no nulls.
    """
    _, offsets_buffer, data = column.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, len(column) + 1, 8 * column.offset)
    begin = int(offsets[0])
    width = int(offsets[1]) - begin
    if width == 0 or data is None or (np.diff(offsets) != width).any():
        return None
    values = data.slice(begin, width * len(column))
    return pa.Array.from_buffers(pa.binary(width), len(column), [None, values])


def _open_documents(folder: Path, info: FileInfo) -> Chunk:
    data = map_file(folder, info)
    try:
        batch = pa.ipc.open_file(pa.py_buffer(data)).get_batch(0)
        batch.validate()  # checks the lengths of buffers, but does not read their contents
        # Not `batch.column`, which fails if a damaged footer repeats a name.
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(folder / info.name, f"it is no file of Arrow IPC, {error}") from error
    rows = columns.get("row")
    chunk = Chunk(info.first, info.stop, batch, info.name)
    num_missing = info.stop - info.first - batch.num_rows
    lists_rows = rows is not None and rows.type == pa.uint32() and not rows.null_count
    if num_missing < 0 or (num_missing and not lists_rows):
        raise chunk.damaged
    return chunk


# Keys.


def write_keys(
    folder: Path,
    number: int,
    runs: Sequence[KeyRun],
    prefix_bits: Rows,
    *,
    kept: Words,
    forgotten: Words,
) -> FileInfo:
    """Write adjacent runs as one file, without the entries of forgotten rows.

    Raises OSError; it leaves no file then.

    Parameters
    ----------
    folder, number : of the file.
    runs : by rows.
    prefix_bits : of each table.
    kept, forgotten : bits of all rows; the bits of kept rows are written for the rows of the runs.
    """
    first = runs[0].first
    stop = runs[-1].stop
    # The space of an array is an upper bound: entries of forgotten rows are left out below.
    spaces = [ArraySpace("kept", "|u1", _bytes_of_bits(stop - first))]
    shifts = []
    for table, bits in enumerate(prefix_bits.tolist()):
        size = sum(len(run.tables[table].keys) for run in runs)
        shift = choose_shift(size, bits)
        spaces += _spaces_of_table(table, size, shift)
        shifts.append(shift)
    parts = parts_of(runs, len(prefix_bits))
    with ArrayFile(folder / file_name(KEYS, number), KEYS, first, stop, spaces) as file:
        for begin in range(first, stop, _BITS_AT_ONCE):
            rows = np.arange(begin, min(begin + _BITS_AT_ONCE, stop))
            file.append("kept", np.packbits(bits_at(kept, rows), bitorder="little"))
        for table, shift in enumerate(shifts):
            _merge_into(file, table, parts_of_table(parts, table), shift, forgotten)
        return file.finish()


def _spaces_of_table(table: int, size: int, shift: int) -> list[ArraySpace]:
    return [
        ArraySpace(f"keys.{table}", "<u8", size),
        ArraySpace(f"rows.{table}", "<u4", size),
        ArraySpace(f"starts.{table}", "<u4", _num_starts(shift)),
    ]


def _num_starts(shift: int) -> int:
    """Return the length of `SortedTable.starts`: one more than there are cells."""
    return (1 << (64 - shift)) + 1


def _merge_into(file: ArrayFile, table: int, parts: Rows, shift: int, forgotten: Words) -> None:
    """Write the merged entries of the parts of a table, some at a time."""
    keys = np.empty(_ENTRIES_AT_ONCE, np.uint64)
    rows = np.empty(_ENTRIES_AT_ONCE, np.uint32)
    cursors = np.zeros(len(parts), np.int64)
    counts = np.zeros(_num_starts(shift), np.uint32)
    size = len(keys)
    # A step that does not fill the arrays was the last one.
    while size == len(keys):
        size = kernels.key_tables.merge_parts(parts, cursors, forgotten, keys, rows)
        if size < 0:
            raise damaged_keys(None)
        kernels.key_tables.count_cells(keys[:size], shift, counts)
        file.append(f"keys.{table}", keys[:size])
        file.append(f"rows.{table}", rows[:size])
    # The starts of cells are known after the last entry only, and have their space already.
    file.append(f"starts.{table}", np.cumsum(counts, dtype=np.uint32))


def _open_keys(folder: Path, info: FileInfo, num_tables: int) -> KeyFile:
    arrays = open_arrays(folder, info, checked=["kept"])
    tables = []
    for table in range(num_tables):
        keys = arrays.get(f"keys.{table}")
        rows = arrays.get(f"rows.{table}")
        starts = arrays.get(f"starts.{table}")
        incomplete = damaged(folder / info.name, f"table {table} is not complete")
        if keys is None or rows is None or starts is None:
            raise incomplete
        # Three starts are two cells: with one cell, the shift would be by 64 bits, which is
        # undefined.
        if len(keys) != len(rows) or len(starts) < 3:
            raise incomplete
        cell_bits = (len(starts) - 1).bit_length() - 1
        tables.append(SortedTable(keys, rows, starts, 64 - cell_bits))
    run = KeyRun(info.first, info.stop, tuple(tables), info.name)
    return KeyFile(run, arrays["kept"])


def place_bits(packed: Bytes, first: int, stop: int, bits: Words) -> None:
    """Set the bits of the rows from `first` to `stop`. packed : as `write_keys` writes them."""
    target = bits.view(np.uint8)[first // 8 : _bytes_of_bits(stop)]
    # The bits of a file begin at its first row, which may be any bit of a byte.
    if first % 8:
        bools = np.unpackbits(packed, count=stop - first, bitorder="little")
        before = np.zeros(first % 8, np.uint8)
        packed = np.packbits(np.concatenate([before, bools]), bitorder="little")
    target |= packed


def _bytes_of_bits(num_bits: int) -> int:
    return -(-num_bits // 8)


# Times, and forgotten rows.


def write_seen(folder: Path, number: int, first: int, stop: int, seen: Seen) -> FileInfo:
    """Write the times of the records of the journal after `first`, up to `stop`.

    Raises OSError; it leaves no file then.
    """
    return _write_arrays(folder, number, SEEN, first, stop, rows=seen.rows, times=seen.times)


def write_forgotten(folder: Path, number: int, num_rows: int, forgotten: Words) -> FileInfo:
    """Write the bits of all rows. Raises OSError; it leaves no file then."""
    # In little-endian words, row r is bit r % 8 of byte r // 8, as files have it.
    bits = forgotten.view(np.uint8)[: _bytes_of_bits(num_rows)]
    return _write_arrays(folder, number, FORGOTTEN, 0, num_rows, bits=bits)


def _write_arrays(
    folder: Path, number: int, kind: str, first: int, stop: int, **arrays: Array
) -> FileInfo:
    spaces = [ArraySpace(name, array.dtype.str, len(array)) for name, array in arrays.items()]
    with ArrayFile(folder / file_name(kind, number), kind, first, stop, spaces) as file:
        for name, array in arrays.items():
            file.append(name, array)
        return file.finish()
