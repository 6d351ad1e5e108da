"""Open inputs: local files, and files of remote storage by their addresses."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from neardup.arrays import arrow_file
from neardup.documents.batch import BLOCK_BYTES
from neardup.documents.decompressed import BoundedStream, open_decompressed
from neardup.documents.zstd_streams import CannotDecompress
from neardup.errors import InputError, MissingExtraError, NeardupError
from neardup.files import public_address

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-]+://")
_OF_ARROW = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_HADOOP_S3 = re.compile(r"^s3[an]://")  # the same storage, as Hadoop and Spark name it


class CannotOpen(InputError):
    """A file is gone, or may not be read."""


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
            # Clients of storage set the type of the error, or its number.
            is_missing = (
                isinstance(error, FileNotFoundError)
                or getattr(error, "errno", None) == errno.ENOENT
            )
            why = "it is no longer there" if is_missing else str(error)
            raise CannotOpen(
                f"Cannot open {self.name}: {why}. Check the path and the access rights, then run "
                "again."
            ) from error


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
            f"'{scheme}://' needs a package that is not installed ({error}), for "
            f"{public_address(address)}. Run: "
            "pip install 'neardup[remote]', then fsspec's package for it (s3fs, gcsfs, aiohttp)."
        ) from error
    except Exception as error:
        raise unreachable(address, f"{error} ({refused})") from error


def unreachable(address: str, why: object) -> InputError:
    """Return the error for an address that cannot be reached."""
    # The reason may repeat the address, with its password.
    reason = re.sub(r"[\w+.-]+://\S+", lambda found: public_address(found[0]), str(why))
    return InputError(
        f"Cannot reach {public_address(address)}: {reason}. Check the address, the network and the "
        "access rights."
    )
