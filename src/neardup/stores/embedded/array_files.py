"""Files of arrays with names and checksums, mapped into memory.

A file has a header with checksums, then its arrays::

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
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.arrays import Array
from neardup.stores.damage import damaged

_MAGIC = b"ndarrays"
_VERSION = 1
_HEAD = struct.Struct("<8sIII")
_DESCRIPTION_BYTES = 256  # upper bound on the description of a file without arrays
_BYTES_PER_ARRAY = 128  # upper bound on the description of an array
_ALIGNMENT = 64  # bytes, of arrays
_PAGE = 4096  # bytes, of the header
_STEP = 1 << 20  # bytes that are read or written at once


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
        self._sizes = {space.name: space.size for space in spaces}
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
        """Append elements to an array, at most as many as its space has left. Raises OSError."""
        array = self._arrays[name]
        # More elements would overwrite the next array.
        assert array.size + len(values) <= self._sizes[name]
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
        If the header or a checked array is damaged, or the file is not as long as listed.
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
                    f"bytes after {start}, which belong to no array, are not zero",
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
