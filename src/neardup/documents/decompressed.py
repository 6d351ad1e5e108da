"""Decompress files as streams, which never expand beyond the limit of `check_expansion`."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any

import pyarrow as pa

from neardup.arrays import arrow_file
from neardup.documents.batch import BLOCK_BYTES
from neardup.documents.limits import FREE_BYTES, MAX_EXPANSION, check_expansion
from neardup.documents.zstd_streams import DICTIONARY_FRAME_MAGIC, ZSTD_MAGIC, open_zstd

_MAGIC = {
    b"\x1f\x8b": "gzip",
    ZSTD_MAGIC: "zstd",
    DICTIONARY_FRAME_MAGIC: "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
}
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    # Window bits of zlib: 15, and 16 for gzip's header.
    "gzip": lambda: zlib.decompressobj(31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
}
_MAGIC_OF = {name: magic for magic, name in _MAGIC.items()}
_READ_BYTES = 1 << 16
_DECOMPRESSED_BYTES = 1 << 20  # at a time: a bomb must meet its limit before it fills the memory
_STEP_BYTES = 1 << 16  # lost at most by an error of a stream without read1


def compression_of(head: bytes) -> str | None:
    """Return the name of the compression of a whole file from its first bytes, or None."""
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    return None


def open_decompressed(raw: str | pa.NativeFile, compression: str | None) -> Any:
    """Return a stream of the bytes inside a local path or an open file; concatenated members are
    read as one. Read a compressed one through `BoundedStream`.

    Arrow's readers of gzip and bz2 are as fast, but lose the last buffer of a truncated stream.
    """
    if compression == "zstd":
        return open_zstd(arrow_file(raw) if isinstance(raw, str) else raw)
    stream = _open_raw(raw)
    return stream if compression is None else _JoinedStreams(stream, compression)


def _open_raw(raw: str | pa.NativeFile) -> IO[bytes] | pa.NativeFile:
    return open(raw, "rb", buffering=0) if isinstance(raw, str) else raw


class BoundedStream(io.RawIOBase):
    """A decompressed stream that raises an OSError once it is too long for its compressed file.

    The bytes before an error are returned, and the next call raises it.
    """

    def __init__(self, stream: Any, compressed_bytes: int) -> None:
        self._stream = stream
        self._compressed_bytes = compressed_bytes
        self._num_bytes = 0
        # read1 returns the bytes before an error; Arrow's streams have no read1.
        self._take = stream.read1 if hasattr(stream, "read1") else stream.read
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
        if self._error is not None:
            raise self._error
        return self._count(self._take(size if size >= 0 else BLOCK_BYTES))

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()


class _JoinedStreams:
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
