"""Opening compressed files."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import IO, Any

import pyarrow as pa

MAGIC: dict[bytes, str] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}
"""First bytes -> name of the compression of a whole file."""


_STANDARD_READERS: dict[str | None, Callable[..., Any]] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}


def open_decompressed(raw: str | pa.NativeFile, compression: str | None) -> IO[bytes] | pa.NativeFile:
    """Return a stream of the bytes inside a local path or an open file; concatenated members are read as one.

    The standard library reads gzip, bz2 and xz, because its readers yield everything before the cut of a truncated
    stream; Arrow's readers are as fast, but lose the last buffer.
    """
    stream: Any
    if compression in _STANDARD_READERS:
        stream = _STANDARD_READERS[compression](raw, "rb")
    elif compression == "zstd":
        stream = pa.CompressedInputStream(pa.OSFile(raw) if isinstance(raw, str) else raw, "zstd")
    else:
        stream = open(raw, "rb", buffering=0) if isinstance(raw, str) else raw  # noqa: SIM115
    return stream


def open_compressed(path: str, compression: str | None) -> IO[bytes] | pa.NativeFile:
    """Open a new local file that compresses what is written to it."""
    if compression == "xz":
        return lzma.open(path, "wb", preset=1)
    if compression is None:
        return open(path, "wb")
    return pa.CompressedOutputStream(pa.OSFile(path, "wb"), compression)
