"""The immutable files of an index: documents in Arrow IPC; runs of keys, times and forgotten rows
as arrays.

A file of arrays has a header with checksums, then arrays that are mapped into memory::

    0    8 bytes  "ndarrays"
    8    uint32   version of the format, 1
    12   uint32   CRC-32 of the description
    16   uint32   bytes of the description
    20   JSON     the description: {"kind", "first", "stop", "arrays": [ARRAY, ...]}, where ARRAY is
                  {"name", "type", "offset", "size", "checksum"}
         zeros    to the first array; each array begins at a multiple of 64

Numbers are little-endian. See docs/index-format.md.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Array, Bytes, Rows, Words
from neardup.errors import StoreError
from neardup.files import JsonObject
from neardup.stores.damage import damaged
from neardup.stores.documents import NARROW, Chunk, Seen, all_of, as_batch, bits_at
from neardup.stores.key_tables import KeyRun, SortedTable, choose_shift, damaged_keys, parts_of

KINDS = DOCUMENTS, KEYS, SEEN, FORGOTTEN = "documents", "keys", "seen", "forgotten"
"""The kinds of files."""
_SUFFIXES = {DOCUMENTS: "arrow", KEYS: "keys", SEEN: "seen", FORGOTTEN: "bits"}
_ENTRIES_AT_ONCE, _BITS_AT_ONCE = 1 << 19, 1 << 20
MAGIC, VERSION = b"ndarrays", 1
_HEAD = struct.Struct("<8sIII")
_BYTES_AN_ARRAY, _ALIGNMENT, _PAGE = 128, 64, 4096
_STEP = 1 << 20


class FileInfo(NamedTuple):
    """A file as the database lists it. first, stop : its rows. checksum : CRC-32 of the header or
    of the whole file.
    """

    name: str
    kind: str
    first: int
    stop: int
    num_bytes: int
    checksum: int


class ArraySpace(NamedTuple):
    """An array to be written. size : the greatest number of elements."""

    name: str
    dtype: str
    size: int


class ArrayFile:
    """A file that is being written, some elements at a time. As a context manager it removes a file
    that failed.

    Parameters
    ----------
    path : of the file, which is not there yet.
    kind, first, stop : for the description.
    spaces : the arrays, in their order in the file.
    """

    def __init__(
        self, path: Path, kind: str, first: int, stop: int, spaces: Sequence[ArraySpace]
    ) -> None:
        self.path, self._rows = path, (kind, first, stop)
        offset = -(-(_HEAD.size + 256 + _BYTES_AN_ARRAY * len(spaces)) // _PAGE) * _PAGE
        self._arrays: dict[str, JsonObject] = {}
        for name, dtype, size in spaces:
            self._arrays[name] = {
                "name": name,
                "type": dtype,
                "offset": offset,
                "size": 0,
                "checksum": 0,
            }
            offset += -(-size * np.dtype(dtype).itemsize // _ALIGNMENT) * _ALIGNMENT
        self._end = offset

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
        dtype = np.dtype(array["type"])
        data = np.ascontiguousarray(values, dtype).data.cast("B")
        array["checksum"] = zlib.crc32(data, array["checksum"])
        write_at(self._file, data, array["offset"] + array["size"] * dtype.itemsize)
        array["size"] += len(values)

    def finish(self) -> FileInfo:
        """Write the header and sync the file. Raises OSError."""
        fields: JsonObject = dict(zip(("kind", "first", "stop"), self._rows, strict=True))
        text = json.dumps(fields | {"arrays": list(self._arrays.values())}).encode()
        header = _HEAD.pack(MAGIC, VERSION, zlib.crc32(text), len(text)) + text
        assert len(header) <= min(
            (array["offset"] for array in self._arrays.values()), default=self._end
        )
        write_at(self._file, memoryview(header), 0)
        os.ftruncate(self._file, self._end)
        os.fsync(self._file)
        return FileInfo(self.path.name, *self._rows, self._end, zlib.crc32(header))


def write_at(file: int, data: memoryview, offset: int) -> None:
    """Write all bytes at an offset of an open file. Raises OSError.

    Steps are synced one by one: a sync of much data at the end makes the syncs of a writer wait.
    """
    while len(data):
        written = os.pwrite(file, data[:_STEP], offset)
        data, offset = data[written:], offset + written
        if written == _STEP:
            os.fsync(file)


def open_arrays(folder: Path, info: FileInfo, checked: Collection[str] = ()) -> dict[str, Array]:
    """Return the arrays of a file by name, mapped into memory.

    checked : arrays whose contents are compared with their checksums.

    Raises
    ------
    StoreError
        If the header or such an array is damaged, or the file is not as long as listed.
    FileNotFoundError
        If there is no such file.
    """
    data, description = _open(folder, info)
    arrays = {}
    for array in description["arrays"]:
        values = np.frombuffer(data, array["type"], array["size"], array["offset"])
        if array["name"] in checked and zlib.crc32(values.data) != array["checksum"]:
            raise damaged(folder / info.name, f"the checksum of array {array['name']} differs")
        arrays[array["name"]] = values
    return arrays


def check_arrays(folder: Path, info: FileInfo) -> None:
    """Check all of a file. Raises as `open_arrays` does, also if bytes between arrays are not
    zero.
    """
    data, description = _open(folder, info)
    arrays = sorted(description["arrays"], key=lambda array: int(array["offset"]))
    open_arrays(folder, info, [array["name"] for array in arrays])
    last = _HEAD.size + _HEAD.unpack_from(data)[3]
    with (folder / info.name).open("rb", 0) as file:
        for array in [*arrays, {"offset": len(data), "size": 0, "type": "|u1"}]:
            if not _is_zero(file.fileno(), last, array["offset"]):
                raise damaged(
                    folder / info.name,
                    f"bytes behind {last}, which belong to no array, are not zero",
                )
            last = array["offset"] + array["size"] * np.dtype(array["type"]).itemsize


def _is_zero(file: int, first: int, stop: int) -> bool:
    """Return whether some bytes of a file are zero. They are read: a page of a hole that is mapped
    needs space.
    """
    return not any(
        any(os.pread(file, min(_STEP, stop - offset), offset))
        for offset in range(first, stop, _STEP)
    )


def map_file(folder: Path, info: FileInfo) -> mmap.mmap:
    """Return a file in memory. Raises StoreError if it is not as long as listed,
    FileNotFoundError.
    """
    path = folder / info.name
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size != info.num_bytes:
            raise damaged(path, f"it has {size:,} bytes, {info.num_bytes:,} were written")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _open(folder: Path, info: FileInfo) -> tuple[mmap.mmap, Mapping[str, Any]]:
    """Return a file in memory and its description."""
    path, data = folder / info.name, map_file(folder, info)
    magic, version, checksum, length = _HEAD.unpack_from(data)
    if (magic, version) != (MAGIC, VERSION):
        raise damaged(path, f"it does not begin as a file of arrays of version {VERSION}")
    header = data[: _HEAD.size + length]
    if zlib.crc32(header) != info.checksum or zlib.crc32(header[_HEAD.size :]) != checksum:
        raise damaged(path, "the checksum of its header differs")
    return data, json.loads(header[_HEAD.size :])


def file_name(kind: str, number: int) -> str:
    """Return the name of a file."""
    return f"{kind}-{number:08}.{_SUFFIXES[kind]}"


def is_file_name(name: str) -> bool:
    """Return whether an index writes files of this name."""
    kind, _, rest = name.partition("-")
    number, _, suffix = rest.partition(".")
    return kind in _SUFFIXES and number.isdecimal() and suffix == _SUFFIXES[kind]


def open_file(folder: Path, info: FileInfo, num_tables: int) -> Any:
    """Return the contents of a file, mapped into memory: a `Chunk`, a `KeyRun` and its kept rows,
    `Seen`, or bits.

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
    arrays = open_arrays(folder, info, ["rows", "times", "bits"])
    return Seen(arrays["rows"], arrays["times"], info.name) if info.kind == SEEN else arrays["bits"]


def check_file(folder: Path, info: FileInfo) -> None:
    """Compare a file with its checksums. Raises StoreError if it is damaged, FileNotFoundError."""
    if info.kind != DOCUMENTS:
        check_arrays(folder, info)
    elif zlib.crc32(map_file(folder, info)) != info.checksum:
        raise damaged(folder / info.name, "its checksum differs")


def check_files(folder: Path, list_files: Callable[[], list[FileInfo]]) -> Iterator[str]:
    """Yield what is wrong with files, a sentence each; files that were replaced meanwhile are left
    out.
    """
    for info in list_files():
        try:
            check_file(folder, info)
        except StoreError as error:  # noqa: PERF203 - a file is read
            yield str(error)
        except FileNotFoundError:
            if info in list_files():
                yield f"{info.name}: it is missing"


# Documents.


class _Checked:
    """A file that is written, with the CRC-32 and number of its bytes."""

    closed = False

    def __init__(self, file: int) -> None:
        self._file, self.checksum, self.num_bytes = file, 0, 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.checksum = zlib.crc32(view, self.checksum)
        write_at(self._file, view, self.num_bytes)
        self.num_bytes += len(view)
        return len(view)

    def flush(self) -> None:
        """Nothing is buffered."""


def write_documents(
    folder: Path, number: int, chunks: Sequence[Chunk], schema: pa.Schema
) -> FileInfo:
    """Write adjacent chunks as one, with the columns of a schema. Raises OSError; there is no file
    then.
    """
    first, stop = chunks[0].first, chunks[-1].stop
    batch = _narrow(
        as_batch(pa.concat_tables([all_of(chunk, schema) for chunk in chunks])), stop - first
    )
    path = folder / file_name(DOCUMENTS, number)
    try:
        with path.open("xb") as file:
            checked = _Checked(file.fileno())
            with pa.ipc.new_file(pa.PythonFile(checked, mode="w"), batch.schema) as writer:
                writer.write_batch(batch)
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileInfo(path.name, DOCUMENTS, first, stop, checked.num_bytes, checked.checksum)


def _open_documents(folder: Path, info: FileInfo) -> Chunk:
    data = map_file(folder, info)
    try:
        batch = pa.ipc.open_file(pa.py_buffer(data)).get_batch(0)
        batch.validate()  # buffers are as long as the columns need; their contents are not read
        rows = dict(zip(batch.schema.names, batch.columns, strict=True)).get("row")
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(folder / info.name, f"it is no file of Arrow IPC, {error}") from error
    chunk = Chunk(info.first, info.stop, batch, info.name)
    missing = info.stop - info.first - batch.num_rows
    if missing < 0 or (missing and (rows is None or rows.type != pa.uint32() or rows.null_count)):
        raise chunk.damaged
    return chunk


def _narrow(batch: pa.RecordBatch, num_rows: int) -> pa.RecordBatch:
    """Return columns without those that need not be written, in narrower types; see `Chunk`."""
    fields, columns = [], []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        counts_on = field.name == "row" and len(column) == num_rows
        same = field.name == "last_seen" and column.equals(batch.column("first_seen"))
        if counts_on or same or (len(column) and column.null_count == len(column)):
            continue
        column = _narrow_column(column)
        fields.append(field.with_type(column.type))
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _narrow_column(column: pa.Array) -> pa.Array:
    """Return strings with offsets of 32 bits; bytes without offsets where all are of one length."""
    if column.type == pa.large_binary() and len(column) and not column.null_count:
        offsets = np.frombuffer(column.buffers()[1], np.int64, len(column) + 1, 8 * column.offset)
        width, data = int(offsets[1] - offsets[0]), column.buffers()[2]
        if width and data is not None and (np.diff(offsets) == width).all():
            buffers = [None, data.slice(int(offsets[0]), width * len(column))]
            return pa.Array.from_buffers(pa.binary(width), len(column), buffers)
    return (
        column.cast(NARROW[column.type])
        if column.type in NARROW and column.nbytes < 2**31
        else column
    )


# Keys.


def write_keys(
    folder: Path,
    number: int,
    runs: Sequence[KeyRun],
    prefix_bits: Rows,
    kept: Words,
    forgotten: Words,
) -> FileInfo:
    """Write adjacent runs as one, without the entries of forgotten rows. Raises OSError; there is
    no file then.

    Parameters
    ----------
    folder, number : of the file.
    runs : by rows.
    prefix_bits : of each table.
    kept, forgotten : bits of all rows; those kept are written for the rows of the runs.
    """
    first, stop = runs[0].first, runs[-1].stop
    parts = parts_of(runs, len(prefix_bits))
    sizes = [sum(len(run.tables[table].keys) for run in runs) for table in range(len(prefix_bits))]
    shifts = [choose_shift(size, int(bits)) for size, bits in zip(sizes, prefix_bits, strict=True)]
    spaces = [ArraySpace("kept", "|u1", -(-(stop - first) // 8))]
    for table, size in enumerate(sizes):
        spaces.append(ArraySpace(f"keys.{table}", "<u8", size))
        spaces.append(ArraySpace(f"rows.{table}", "<u4", size))
        spaces.append(ArraySpace(f"starts.{table}", "<u4", (1 << (64 - shifts[table])) + 1))
    with ArrayFile(folder / file_name(KEYS, number), KEYS, first, stop, spaces) as file:
        for begin in range(first, stop, _BITS_AT_ONCE):
            rows = np.arange(begin, min(begin + _BITS_AT_ONCE, stop))
            file.append("kept", np.packbits(bits_at(kept, rows), bitorder="little"))
        for table, shift in enumerate(shifts):
            fields = parts.fields[parts.ends[table] : parts.ends[table + 1]]
            _merge_into(file, table, fields, shift, forgotten)
        return file.finish()


def _merge_into(file: ArrayFile, table: int, fields: Rows, shift: int, forgotten: Words) -> None:
    keys, rows = np.empty(_ENTRIES_AT_ONCE, np.uint64), np.empty(_ENTRIES_AT_ONCE, np.uint32)
    cursors = np.zeros(len(fields), np.int64)
    counts = np.zeros((1 << (64 - shift)) + 1, np.uint32)
    used = len(keys)
    while used == len(keys):
        used = kernels.key_tables.merge_parts(fields, cursors, forgotten, keys, rows)
        if used < 0:
            raise damaged_keys(None)
        kernels.key_tables.count_cells(keys[:used], shift, counts)
        file.append(f"keys.{table}", keys[:used])
        file.append(f"rows.{table}", rows[:used])
    file.append(f"starts.{table}", np.cumsum(counts, dtype=np.uint32))


def _open_keys(folder: Path, info: FileInfo, num_tables: int) -> tuple[KeyRun, Bytes]:
    arrays = open_arrays(folder, info, ["kept"])
    tables = []
    for table in range(num_tables):
        keys, rows, starts = (arrays.get(f"{name}.{table}") for name in ("keys", "rows", "starts"))
        if (
            keys is None
            or rows is None
            or starts is None
            or len(keys) != len(rows)
            or len(starts) < 3
        ):
            raise damaged(folder / info.name, f"table {table} is not complete")
        tables.append(SortedTable(keys, rows, starts, 64 - (len(starts) - 1).bit_length() + 1))
    return KeyRun(info.first, info.stop, tuple(tables), info.name), arrays["kept"]


def place_bits(packed: Bytes, first: int, stop: int, bits: Words) -> None:
    """Set the bits of the rows from `first` to `stop`. packed : as `write_keys` writes them."""
    target = bits.view(np.uint8)[first // 8 : -(-stop // 8)]
    if first % 8:
        bools = np.unpackbits(packed, count=stop - first, bitorder="little")
        packed = np.packbits(
            np.concatenate([np.zeros(first % 8, np.uint8), bools]), bitorder="little"
        )
    target |= packed


# Times, and forgotten rows.


def write_seen(folder: Path, number: int, first: int, stop: int, seen: Seen) -> FileInfo:
    """Write the times of records of the journal behind `first`, up to `stop`. Raises OSError; there
    is no file then.
    """
    return _write_arrays(folder, number, SEEN, first, stop, rows=seen.rows, times=seen.times)


def write_forgotten(folder: Path, number: int, num_rows: int, forgotten: Words) -> FileInfo:
    """Write the bits of all rows. Raises OSError; there is no file then."""
    return _write_arrays(
        folder, number, FORGOTTEN, 0, num_rows, bits=forgotten.view(np.uint8)[: -(-num_rows // 8)]
    )


def _write_arrays(
    folder: Path, number: int, kind: str, first: int, stop: int, **arrays: Array
) -> FileInfo:
    spaces = [ArraySpace(name, array.dtype.str, len(array)) for name, array in arrays.items()]
    with ArrayFile(folder / file_name(kind, number), kind, first, stop, spaces) as file:
        for name, array in arrays.items():
            file.append(name, array)
        return file.finish()
