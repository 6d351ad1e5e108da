"""Immutable files of arrays: a header with checksums, then arrays that are mapped into memory.

::

    0    8 bytes  "ndarrays"
    8    uint32   version of the format, 1
    12   uint32   CRC-32 of the description
    16   uint32   bytes of the description
    20   JSON     the description: {"kind", "first", "stop", "arrays": [{"name", "type", "offset", "size", "checksum"}]}
         zeros    to the first array; each array begins at a multiple of 64

Numbers are little-endian. See docs/index-format.md.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.stores.damage import damaged

MAGIC, VERSION = b"ndarrays", 1
_HEAD = struct.Struct("<8sIII")
_BYTES_AN_ARRAY, _ALIGNMENT, _PAGE = 128, 64, 4096
_STEP = 1 << 20


class FileInfo(NamedTuple):
    """A file as the database lists it. first, stop : its rows. checksum : CRC-32 of the header or of the whole file."""

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
    """A file that is being written, some elements at a time. As a context manager it removes a file that failed.

    Parameters
    ----------
    path : of the file, which is not there yet.
    kind, first, stop : for the description.
    spaces : the arrays, in their order in the file.
    """

    def __init__(self, path: Path, kind: str, first: int, stop: int, spaces: Sequence[ArraySpace]) -> None:
        self.path, self._rows = path, (kind, first, stop)
        offset = -(-(_HEAD.size + 256 + _BYTES_AN_ARRAY * len(spaces)) // _PAGE) * _PAGE
        self._arrays: dict[str, dict[str, Any]] = {}
        for name, dtype, size in spaces:
            self._arrays[name] = {"name": name, "type": dtype, "offset": offset, "size": 0, "checksum": 0}
            offset += -(-size * np.dtype(dtype).itemsize // _ALIGNMENT) * _ALIGNMENT
        self._end = offset

    def __enter__(self) -> ArrayFile:
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        os.close(self._file)
        if error is not None:
            self.path.unlink(missing_ok=True)

    def append(self, name: str, values: npt.NDArray[Any]) -> None:
        """Append elements to an array. Raises OSError."""
        array = self._arrays[name]
        dtype = np.dtype(array["type"])
        data = np.ascontiguousarray(values, dtype).data.cast("B")
        array["checksum"] = zlib.crc32(data, array["checksum"])
        write_at(self._file, data, array["offset"] + array["size"] * dtype.itemsize)
        array["size"] += len(values)

    def finish(self) -> FileInfo:
        """Write the header and sync the file. Raises OSError."""
        fields: dict[str, Any] = dict(zip(("kind", "first", "stop"), self._rows, strict=True))
        text = json.dumps(fields | {"arrays": list(self._arrays.values())}).encode()
        header = _HEAD.pack(MAGIC, VERSION, zlib.crc32(text), len(text)) + text
        assert len(header) <= min((array["offset"] for array in self._arrays.values()), default=self._end)
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


def open_arrays(folder: Path, info: FileInfo, checked: Collection[str] = ()) -> dict[str, npt.NDArray[Any]]:
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
    """Check all of a file. Raises as `open_arrays` does, also if bytes between arrays are not zero."""
    data, description = _open(folder, info)
    arrays = sorted(description["arrays"], key=lambda array: int(array["offset"]))
    open_arrays(folder, info, [array["name"] for array in arrays])
    last = _HEAD.size + _HEAD.unpack_from(data)[3]
    with (folder / info.name).open("rb", 0) as file:
        for array in [*arrays, {"offset": len(data), "size": 0, "type": "|u1"}]:
            if not _is_zero(file.fileno(), last, array["offset"]):
                raise damaged(folder / info.name, f"bytes behind {last}, which belong to no array, are not zero")
            last = array["offset"] + array["size"] * np.dtype(array["type"]).itemsize


def _is_zero(file: int, first: int, stop: int) -> bool:
    """Return whether some bytes of a file are zero. They are read: a page of a hole that is mapped needs space."""
    return not any(any(os.pread(file, min(_STEP, stop - offset), offset)) for offset in range(first, stop, _STEP))


def map_file(folder: Path, info: FileInfo) -> mmap.mmap:
    """Return a file in memory. Raises StoreError if it is not as long as listed, FileNotFoundError."""
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
