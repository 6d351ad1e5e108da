"""The immutable files of an index: documents in Arrow IPC; keys, times and forgotten rows as
arrays.

A file of arrays has a header with checksums, then arrays that are mapped into memory::

    0    8 bytes  "ndarrays"
    8    uint32   version of the format, 1
    12   uint32   CRC-32 of the description
    16   uint32   bytes of the description
    20   JSON     the description: {"kind", "first", "stop", "arrays": [ARRAY, ...]}, where ARRAY is
                  {"name", "type", "offset", "size", "checksum"}
         zeros    to the first array; each array begins at a multiple of 64

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

import json
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Array, Bytes, Rows, Words
from neardup.errors import StoreError
from neardup.stores.damage import damaged
from neardup.stores.documents import NARROW, Chunk, Seen, all_of, as_batch, bits_at
from neardup.stores.key_tables import (
    KeyRun,
    SortedTable,
    choose_shift,
    damaged_keys,
    parts_of,
    parts_of_table,
)

KINDS = DOCUMENTS, KEYS, SEEN, FORGOTTEN = "documents", "keys", "seen", "forgotten"
"""The kinds of files."""
_SUFFIXES = {DOCUMENTS: "arrow", KEYS: "keys", SEEN: "seen", FORGOTTEN: "bits"}
_MAGIC = b"ndarrays"
_VERSION = 1
_HEAD = struct.Struct("<8sIII")
_DESCRIPTION_BYTES = 256  # upper bound on the description of a file without arrays
_BYTES_PER_ARRAY = 128  # upper bound on the description of an array
_ALIGNMENT = 64  # bytes, of arrays
_PAGE = 4096  # bytes, of the header
_STEP = 1 << 20  # bytes that are read or written at once
_ENTRIES_AT_ONCE = 1 << 19
_BITS_AT_ONCE = 1 << 20


class FileInfo(NamedTuple):
    """A file as the database lists it.

    first, stop : its rows; for times, its records of the journal. checksum : CRC-32 of a whole file
    of documents, or of the header of a file of arrays.
    """

    name: str
    kind: str
    first: int
    stop: int
    num_bytes: int
    checksum: int


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

    Raises OSError; there is no file then.
    """
    first = chunks[0].first
    stop = chunks[-1].stop
    whole = as_batch(pa.concat_tables([all_of(chunk, schema) for chunk in chunks]))
    batch = _narrow(whole, num_rows=stop - first)
    path = folder / file_name(DOCUMENTS, number)
    try:
        with path.open("xb") as file:
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
        write_at(self._file, view, self.num_bytes)
        self.num_bytes += len(view)
        return len(view)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""


def _narrow(batch: pa.RecordBatch, num_rows: int) -> pa.RecordBatch:
    """Return the columns that a file needs, in narrower types; `Chunk` defines the missing ones."""
    fields = []
    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        counts_on = field.name == "row" and len(column) == num_rows
        is_first_seen = field.name == "last_seen" and column.equals(batch.column("first_seen"))
        has_nulls_only = len(column) and column.null_count == len(column)
        if counts_on or is_first_seen or has_nulls_only:
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
        rows = dict(zip(batch.schema.names, batch.columns, strict=True)).get("row")
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(folder / info.name, f"it is no file of Arrow IPC, {error}") from error
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

    Raises OSError; there is no file then.

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
        if keys is None or rows is None or starts is None:
            raise _incomplete(folder, info, table)
        # Three starts are two cells: with one cell, the shift would be by 64 bits, which is
        # undefined.
        if len(keys) != len(rows) or len(starts) < 3:
            raise _incomplete(folder, info, table)
        cell_bits = (len(starts) - 1).bit_length() - 1
        tables.append(SortedTable(keys, rows, starts, 64 - cell_bits))
    run = KeyRun(info.first, info.stop, tuple(tables), info.name)
    return KeyFile(run, arrays["kept"])


def _incomplete(folder: Path, info: FileInfo, table: int) -> StoreError:
    return damaged(folder / info.name, f"table {table} is not complete")


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

    Raises OSError; there is no file then.
    """
    return _write_arrays(folder, number, SEEN, first, stop, rows=seen.rows, times=seen.times)


def write_forgotten(folder: Path, number: int, num_rows: int, forgotten: Words) -> FileInfo:
    """Write the bits of all rows. Raises OSError; there is no file then."""
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


# Files of arrays.


class ArraySpace(NamedTuple):
    """An array to be written. size : the greatest number of elements."""

    name: str
    dtype: str
    size: int


@dataclass
class _StoredArray:
    """An array as the description of its file lists it; the names are the keys of its JSON."""

    name: str
    type: str
    offset: int
    size: int = 0
    checksum: int = 0

    @property
    def stop(self) -> int:
        """The offset after the last element."""
        return self.offset + self.size * np.dtype(self.type).itemsize


class ArrayFile:
    """A file of arrays, written some elements at a time.

    As a context manager it removes the file if the block fails.

    Parameters
    ----------
    path : of the file, which does not exist yet.
    kind, first, stop : for the description.
    spaces : the arrays, in their order in the file.
    """

    def __init__(
        self, path: Path, kind: str, first: int, stop: int, spaces: Sequence[ArraySpace]
    ) -> None:
        self.path = path
        self._kind = kind
        self._first = first
        self._stop = stop
        self._arrays: dict[str, _StoredArray] = {}
        # The header contains the checksums of the arrays and is written last, so its space is
        # reserved by an upper bound.
        description_bytes = _DESCRIPTION_BYTES + _BYTES_PER_ARRAY * len(spaces)
        self._header_bytes = _round_up(_HEAD.size + description_bytes, _PAGE)
        offset = self._header_bytes
        for space in spaces:
            self._arrays[space.name] = _StoredArray(space.name, space.dtype, offset)
            offset += _round_up(space.size * np.dtype(space.dtype).itemsize, _ALIGNMENT)
        self._num_bytes = offset

    def __enter__(self) -> ArrayFile:
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        os.close(self._file)
        if error is not None:
            self.path.unlink(missing_ok=True)

    def append(self, name: str, values: Array) -> None:
        """Append elements to an array. Raises OSError."""
        array = self._arrays[name]
        data = np.ascontiguousarray(values, array.type).data.cast("B")
        array.checksum = zlib.crc32(data, array.checksum)
        write_at(self._file, data, array.stop)
        array.size += len(values)

    def finish(self) -> FileInfo:
        """Write the header and sync the file. Raises OSError."""
        description = {
            "kind": self._kind,
            "first": self._first,
            "stop": self._stop,
            "arrays": [asdict(array) for array in self._arrays.values()],
        }
        text = json.dumps(description).encode()
        header = _HEAD.pack(_MAGIC, _VERSION, zlib.crc32(text), len(text)) + text
        assert len(header) <= self._header_bytes
        write_at(self._file, memoryview(header), 0)
        # Arrays that are shorter than their space leave holes, which read as zeros.
        os.ftruncate(self._file, self._num_bytes)
        os.fsync(self._file)
        return FileInfo(
            name=self.path.name,
            kind=self._kind,
            first=self._first,
            stop=self._stop,
            num_bytes=self._num_bytes,
            checksum=zlib.crc32(header),
        )


def _round_up(num_bytes: int, unit: int) -> int:
    return -(-num_bytes // unit) * unit


def write_at(file: int, data: memoryview, offset: int) -> None:
    """Write all bytes at an offset of an open file. Raises OSError.

    Each step is synced: a sync of much data at the end delays the syncs of other writers.
    """
    while len(data):
        written = os.pwrite(file, data[:_STEP], offset)
        data = data[written:]
        offset += written
        if written == _STEP:
            os.fsync(file)


def open_arrays(folder: Path, info: FileInfo, checked: Collection[str]) -> dict[str, Array]:
    """Return the arrays of a file by name, mapped into memory.

    checked : arrays whose contents are compared with their checksums.

    Raises
    ------
    StoreError
        If the header or such an array is damaged, or the file is not as long as listed.
    FileNotFoundError
        If there is no such file.
    """
    data = map_file(folder, info)
    arrays = {}
    for array in _read_header(folder, info, data).arrays:
        values = np.frombuffer(data, array.type, array.size, array.offset)
        if array.name in checked and zlib.crc32(values.data) != array.checksum:
            raise damaged(folder / info.name, f"the checksum of array {array.name} differs")
        arrays[array.name] = values
    return arrays


def check_arrays(folder: Path, info: FileInfo) -> None:
    """Check all of a file. Raises as `open_arrays` does, also if bytes between arrays are not
    zero.
    """
    data = map_file(folder, info)
    header = _read_header(folder, info, data)
    open_arrays(folder, info, checked=[array.name for array in header.arrays])
    arrays = sorted(header.arrays, key=lambda array: array.offset)
    gap_starts = [header.num_bytes, *(array.stop for array in arrays)]
    gap_stops = [*(array.offset for array in arrays), len(data)]
    with (folder / info.name).open("rb", 0) as file:
        for start, stop in zip(gap_starts, gap_stops, strict=True):
            if not _is_zero(file.fileno(), start, stop):
                raise damaged(
                    folder / info.name,
                    f"bytes behind {start}, which belong to no array, are not zero",
                )


def _is_zero(file: int, first: int, stop: int) -> bool:
    """Return whether a range of bytes of a file is zero.

    Uses pread: mapping the pages of a hole would allocate memory for them.
    """
    for offset in range(first, stop, _STEP):
        if any(os.pread(file, min(_STEP, stop - offset), offset)):
            return False
    return True


def map_file(folder: Path, info: FileInfo) -> mmap.mmap:
    """Map a file into memory. Raises FileNotFoundError, StoreError if it is not as long as
    listed.
    """
    path = folder / info.name
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        # Before mapping: reading a map beyond the end of its file ends the process (SIGBUS).
        if size != info.num_bytes:
            raise damaged(path, f"it has {size:,} bytes, {info.num_bytes:,} were written")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Header(NamedTuple):
    """The header of a file. num_bytes : of the header, to the end of the description."""

    num_bytes: int
    arrays: list[_StoredArray]


def _read_header(folder: Path, info: FileInfo, data: mmap.mmap) -> _Header:
    """Return the header of a file. Raises StoreError if it is damaged."""
    path = folder / info.name
    magic, version, checksum, length = _HEAD.unpack_from(data)
    if (magic, version) != (_MAGIC, _VERSION):
        raise damaged(path, f"it does not begin as a file of arrays of version {_VERSION}")
    header = data[: _HEAD.size + length]
    description = header[_HEAD.size :]
    if zlib.crc32(header) != info.checksum or zlib.crc32(description) != checksum:
        raise damaged(path, "the checksum of its header differs")
    arrays = [_StoredArray(**array) for array in json.loads(description)["arrays"]]
    return _Header(len(header), arrays)
