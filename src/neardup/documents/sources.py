"""Open local paths and addresses of remote storage."""

from __future__ import annotations

import bz2
import errno
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from neardup.arrays import arrow_file
from neardup.documents.batch import BLOCK_BYTES
from neardup.documents.zstd_streams import (
    DICTIONARY_FRAME_MAGIC,
    ZSTD_MAGIC,
    CannotDecompress,
    open_zstd,
)
from neardup.errors import InputError, MissingExtraError, NeardupError
from neardup.files import public_address

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-]+://")
_OF_ARROW = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_HADOOP_S3 = re.compile(r"^s3[an]://")  # the same storage, as Hadoop and Spark name it


_MAGIC = {
    b"\x1f\x8b": "gzip",
    ZSTD_MAGIC: "zstd",
    DICTIONARY_FRAME_MAGIC: "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
}


def compression_of(head: bytes) -> str | None:
    """Return the name of the compression of a whole file from its first bytes, or None."""
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    return None


_DECOMPRESSORS: dict[str | None, Callable[[], Any]] = {
    # Window bits of zlib: 15, and 16 for gzip's header.
    "gzip": lambda: zlib.decompressobj(31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
}
_MAGIC_OF = {name: magic for magic, name in _MAGIC.items()}
_READ_BYTES = 1 << 16
_DECOMPRESSED_BYTES = 1 << 20  # at a time: a bomb must meet its limit before it fills the memory


class _JoinedStreams(io.RawIOBase):
    """The bytes inside a file of gzip members, or of bz2 or xz streams, one after the other.

    The readers of the standard library ignore other bytes after a stream, and with them all later
    streams. Zeros at the end are padding.
    """

    def __init__(self, raw: Any, compression: str) -> None:
        self._raw = raw
        self._compression = compression
        self._decompressor: Any = None  # None between streams
        self._waiting = b""  # compressed bytes
        self._decompressed = b""  # not returned yet

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, or all; fewer before an error, which the next call raises."""
        pieces = []
        while size and (piece := self.read1(size)):
            pieces.append(piece)
            size -= len(piece) if size > 0 else 0
        return b"".join(pieces)

    def read1(self, size: int = -1) -> bytes:
        """Return some bytes, also before an error; none at the end.

        Raises
        ------
        EOFError
            If the last stream has no end.
        OSError
            If other bytes follow a stream; besides, the errors of the decompressor.
        """
        while not self._decompressed:
            # A decompressor of bz2 or xz may have compressed bytes of its own left.
            has_input = not getattr(self._decompressor, "needs_input", True)
            if not self._waiting and not has_input:
                self._waiting = self._raw.read(_READ_BYTES)
                if not self._waiting and self._decompressor is not None:
                    raise EOFError(
                        "Compressed file ended before the end-of-stream marker was reached"
                    )
                if not self._waiting:
                    return b""
            # Only padding was read: the loop reads on, to the end or to an error.
            if self._decompressor is None and not self._begin():
                continue
            self._decompress()
        end = len(self._decompressed) if size < 0 else size
        taken = self._decompressed[:end]
        self._decompressed = self._decompressed[end:]
        return taken

    def _decompress(self) -> None:
        decompressor = self._decompressor
        self._decompressed = decompressor.decompress(self._waiting, _DECOMPRESSED_BYTES)
        if decompressor.eof:
            # The begin of the next stream.
            self._waiting = decompressor.unused_data
            self._decompressor = None
        else:
            # zlib gives back the bytes that it did not use; bz2 and lzma keep them.
            self._waiting = getattr(decompressor, "unconsumed_tail", b"")

    def _begin(self) -> bool:
        """Begin the next stream; return False if there is only padding."""
        magic = _MAGIC_OF[self._compression]
        # The magic bytes may be split between two reads.
        while len(self._waiting) < len(magic) and (more := self._raw.read(_READ_BYTES)):
            self._waiting += more
        if self._waiting.startswith(magic):
            self._decompressor = _DECOMPRESSORS[self._compression]()
            return True
        # Zeros may pad the end of a file; anything after them is an error.
        if not self._waiting.strip(b"\0"):
            self._waiting = self._raw.read(_READ_BYTES)
            if not self._waiting.strip(b"\0"):
                return False
        raise OSError(f"no {self._compression} stream begins after the one before it")

    def close(self) -> None:
        self._raw.close()
        super().close()


def open_decompressed(
    raw: str | pa.NativeFile, compression: str | None
) -> IO[bytes] | pa.NativeFile:
    """Return a stream of the bytes inside a local path or an open file; concatenated members are
    read as one.

    Arrow's readers of gzip and bz2 are as fast, but lose the last buffer of a truncated stream.
    """
    if compression == "zstd":
        return open_zstd(arrow_file(raw) if isinstance(raw, str) else raw)
    stream = _open_raw(raw)
    return stream if compression is None else _JoinedStreams(stream, compression)


def _open_raw(raw: str | pa.NativeFile) -> IO[bytes] | pa.NativeFile:
    return open(raw, "rb", buffering=0) if isinstance(raw, str) else raw


class CannotOpen(InputError):
    """A file is gone, or may not be read."""


def is_remote(name: str) -> bool:
    """Return whether a name is an address such as `s3://bucket/file`, not a path."""
    return _SCHEME.match(name) is not None


def local_path(name: str) -> str:
    """Return the path of a `file://` address, any other name unchanged."""
    if not name.startswith("file://"):
        return name
    from urllib.request import url2pathname  # loads clients of HTTP and mail

    return url2pathname(urlsplit(name).path)


@lru_cache(maxsize=64)
def resolve(address: str, options: str = "") -> tuple[Any, str]:
    """Return the `pyarrow.fs.FileSystem` of an address and the path in it.

    address : not percent-encoded. options : of pyarrow's client, with a leading question mark.

    Raises
    ------
    MissingExtraError
        If neither pyarrow nor an installed package knows the scheme.
    InputError
        If the address is malformed or the storage refuses.
    """
    scheme, _, rest = _HADOOP_S3.sub("s3://", address).partition("://")
    if scheme in _OF_ARROW:
        server, slash, key = rest.partition("/")
        # Arrow parses a URI, in which a key must be escaped.
        rest = f"{server}{slash}{quote(key)}"
    try:
        filesystem, path = pafs.FileSystem.from_uri(f"{scheme}://{rest}{options}")
        return filesystem, path
    except Exception as error:  # with fsspec, also the ImportError of a missing package
        refused = error
    # A storage for which this Arrow was not built is left to fsspec.
    if scheme in _OF_ARROW and not isinstance(refused, pa.ArrowNotImplementedError):
        raise unreachable(address, refused) from refused
    try:
        import fsspec

        filesystem, path = fsspec.core.url_to_fs(address + options)
        return pafs.PyFileSystem(pafs.FSSpecHandler(filesystem)), path
    except ImportError as error:
        raise MissingExtraError(
            f"'{scheme}://' needs a package that is not installed ({error}), for {address}. Run: "
            "pip install 'neardup[remote]', then fsspec's package for it (s3fs, gcsfs, aiohttp)."
        ) from error
    except Exception as error:
        raise unreachable(address, f"{error} ({refused})") from error


def unreachable(address: str, why: object) -> InputError:
    """Return the error for an address that cannot be reached."""
    return InputError(
        f"Cannot reach {public_address(address)}: {why}. Check the address, the network and the "
        "access rights."
    )


MAX_EXPANSION = 200
"""Largest factor by which a compressed file may expand beyond FREE_BYTES; text expands by 3 to 20.
"""

FREE_BYTES = 64 << 20
"""Decompressed bytes that are never too many."""

FREE_BYTES_OF_TABLE = 4 << 30
"""FREE_BYTES for files that are compressed inside, such as Parquet: one text may be in all rows."""


def check_expansion(
    num_bytes: int,
    compressed_bytes: int,
    free_bytes: int = FREE_BYTES,
    *,
    advice: str = "Decompress it yourself if you trust it",
) -> None:
    """Raise OSError if the decompressed bytes are too many for the compressed bytes."""
    if num_bytes > max(free_bytes, MAX_EXPANSION * compressed_bytes):
        raise OSError(f"it expands to more than {MAX_EXPANSION} times its size. {advice}")


MAX_COLUMNS = 10_000
"""Largest number of columns of a table: each costs time and memory in every batch, read or not."""


def check_columns(num_columns: int) -> None:
    """Raise OSError if a table has more than MAX_COLUMNS columns."""
    if num_columns > MAX_COLUMNS:
        raise OSError(
            f"it has {num_columns:,} columns, more than the {MAX_COLUMNS:,} that are read. Write "
            "the columns that are needed to another file"
        )


_STEP_BYTES = 1 << 16  # lost at most by an error of a stream without read1


class BoundedStream(io.RawIOBase):
    """A decompressed stream that raises an OSError once it is too long for its compressed file.

    The bytes before an error are returned, and the next call raises it.
    """

    def __init__(self, stream: Any, compressed_bytes: int) -> None:
        self._stream = stream
        self._compressed_bytes = compressed_bytes
        self._num_bytes = 0
        # read1 returns the bytes before an error; Arrow's streams have no read1.
        self._take = getattr(stream, "read1", stream.read)
        self._error: Exception | None = None  # for the next call

    def _count(self, data: bytes) -> bytes:
        self._num_bytes += len(data)
        check_expansion(self._num_bytes, self._compressed_bytes)
        return data

    def read(self, size: int = -1) -> bytes:
        if self._error is not None:
            raise self._error
        max_bytes = max(FREE_BYTES, MAX_EXPANSION * self._compressed_bytes)
        # One byte more than is accepted, which `_count` then refuses.
        left = size if size >= 0 else max_bytes + 1
        pieces = []
        try:
            while left and (piece := self._take(min(left, _STEP_BYTES))):
                pieces.append(piece)
                left -= len(piece)
        except Exception as error:  # decompressors raise many types
            # First the bytes before the error, then the error.
            if not pieces:
                raise
            self._error = error
        return self._count(b"".join(pieces))

    def read1(self, size: int = -1) -> bytes:
        return self._count(self._take(size if size >= 0 else BLOCK_BYTES))

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()


@dataclass
class Stretch:
    """A stretch of a file, and the results of its reader.

    begin, end : offsets in the file, in bytes or row groups. ends : the ends of all stretches of
    the file; if nothing begins at `end`, the reader goes on to a later end. rows, num_bytes : of
    the stretch, by which positions in the next stretch are moved. reached : the actual end.
    """

    begin: int
    end: int
    ends: Collection[int]
    rows: int = 0
    num_bytes: int = 0
    reached: int = 0


class Identity(NamedTuple):
    """The state of an input, which differs after a change: name, bytes, time of last change."""

    name: str
    num_bytes: int
    changed_at: float


@dataclass(frozen=True)
class Source:
    """A file that can be read again and again.

    name : as the user wrote it; location : the path or address to open; compression : of the whole
    file. format : a key of `formats.registry.FORMATS`. unit : the extent of a document: "row"; for
    text files "line" or "file", for HTML files "file". stretch : the part of the file to read, None
    for the whole file.
    """

    name: str
    location: str
    compression: str | None = None
    format: str = "text"
    unit: str = "row"
    stretch: Stretch | None = field(default=None, compare=False, kw_only=True)

    @property
    def keys(self) -> dict[str, str | None]:
        """The keys of its folders with their values: {"year": "2024"} of year=2024/a.parquet.

        A null is written as in Hive.
        """
        keys: dict[str, str | None] = {}
        if "=" not in self.name:
            return keys  # most names; there may be a hundred thousand files
        *folders, _ = self.name.replace(os.sep, "/").split("/")
        for folder in folders:
            key, equals, value = folder.partition("=")
            if key and equals:
                value = unquote(value)
                keys[unquote(key)] = None if value == _HIVE_NULL else value
        return keys

    @property
    def is_local(self) -> bool:
        """True if the bytes are in a local file."""
        return not is_remote(self.location)

    def open_file(self) -> pa.NativeFile:
        """Open for random access, uncompressed.

        A local file is read, not mapped: mapped pages count as memory of this process while the
        file is open.
        """
        with self._reaching():
            if self.is_local:
                if os.path.getsize(self.location) == 0:
                    return pa.BufferReader(b"")
                return arrow_file(self.location)
            filesystem, path = resolve(self.location)
            return filesystem.open_input_file(path)

    def open_stream(self) -> Any:
        """Open for reading from the beginning, as a binary file; the bytes are decompressed."""
        with self._reaching():
            if self.is_local:
                stream = open_decompressed(self.location, self.compression)
            else:
                filesystem, path = resolve(self.location)
                stream = open_decompressed(filesystem.open_input_file(path), self.compression)
            if self.compression is None:
                return stream
            compressed_bytes, _ = self.stat()
            return BoundedStream(stream, compressed_bytes)

    def read_bytes(self, limit: int) -> bytes:
        """Return the decompressed bytes, at most `limit`."""
        pieces = []
        with self.open_stream() as stream:
            if self.is_local and self.compression is None:
                num_bytes = os.fstat(stream.fileno()).st_size
                # A raw file allocates all bytes of a request, so `limit` alone would be too much.
                return bytes(stream.read(min(limit, num_bytes + 1)))
            while limit and (piece := stream.read(min(limit, BLOCK_BYTES))):
                pieces.append(piece)
                limit -= len(piece)
        return b"".join(pieces)

    def stat(self) -> tuple[int, float]:
        """Return the size in bytes and the time of last change, 0.0 if the storage has no
        time.
        """
        with self._reaching():
            if self.is_local:
                status = os.stat(self.location)
                return status.st_size, status.st_mtime
            filesystem, path = resolve(self.location)
            info = filesystem.get_file_info(path)
        return int(info.size or 0), float((info.mtime_ns or 0) / 1e9)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Raise CannotOpen for any error of the operating system or of the client of the
        storage.
        """
        try:
            yield
        except NeardupError:
            raise
        except CannotDecompress as error:
            raise CannotOpen(f"Cannot open {self.name}: {error}.") from error
        except Exception as error:
            has_code = getattr(error, "errno", None) == errno.ENOENT
            is_missing = has_code or isinstance(error, FileNotFoundError)
            why = "it is no longer there" if is_missing else str(error)
            raise CannotOpen(
                f"Cannot open {self.name}: {why}. Check the path and the access rights, then run "
                "again."
            ) from error
