"""Local files for kept payloads, complete at `close`."""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import IO, Any, Protocol, runtime_checkable

import pyarrow as pa

from neardup.arrays import arrow_file
from neardup.documents.sources import Source
from neardup.executor import Encoders, InOrder

_BLOCK_BYTES = 1 << 18  # a gzip file of JSON lines in such blocks is 0.04 % larger than in one
_WINDOW_BYTES = 1 << 15  # the distance over which deflate refers back (RFC 1951)
# The start of a gzip member (RFC 1952): no time, unknown operating system.
_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
_LAST_BLOCK = b"\x03\x00"  # the empty last block of a deflate stream


class Sink(Protocol):
    """A file being written: `write` any number of times, then `close` or `discard`."""

    def write(self, payload: Any, /) -> None:
        """Append the payload of a batch."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...

    def discard(self) -> None:
        """Close a file that is not complete; the caller removes it."""
        ...


@runtime_checkable
class ParallelSink(Sink, Protocol):
    """A file that other threads can encode; its bytes are the same with and without them."""

    def encode_on(self, encoders: Encoders) -> None:
        """Encode on these threads. Requires: nothing is written yet."""
        ...


class ByteSink:
    """A file of bytes, compressed as a whole.

    compression : a name of `COMPRESSIONS`, or None. to_bytes : returns the bytes of a payload.
    """

    def __init__(self, path: str, compression: str | None, to_bytes: Callable[[Any], Any]) -> None:
        is_gzip = compression == "gzip"
        self._stream: Any = GzipFile(path) if is_gzip else open_compressed(path, compression)
        self._to_bytes = to_bytes

    def encode_on(self, encoders: Encoders) -> None:
        """Encode on these threads if the file is gzip (see ParallelSink)."""
        if isinstance(self._stream, GzipFile):
            self._stream.jobs.encoders = encoders

    def write(self, payload: Any) -> None:
        """Append the payload of a batch."""
        self._stream.write(self._to_bytes(payload))

    def close(self) -> None:
        """Finish the file."""
        self._stream.close()

    discard = close


class GzipFile:
    """A gzip file of one member; encoders compress its blocks in parallel.

    Notes
    -----
    The bytes of the file are the same for any number of threads: as in pigz (Adler), all blocks but
    the last have the same size, refer back to the end of the block before, and end at a byte.
    """

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb")  # noqa: SIM115
        self._file.write(_HEADER)
        self.jobs = InOrder(self._file.write)
        self._waiting = bytearray()
        self._window = b""  # the end of the block before
        self._crc = 0
        self._size = 0

    def write(self, data: Any) -> None:
        """Append bytes."""
        self._waiting += memoryview(data)
        while len(self._waiting) >= _BLOCK_BYTES:
            self._compress_block()

    def _compress_block(self) -> None:
        """Compress the first block of the waiting bytes, which are fewer only at the end."""
        block = bytes(self._waiting[:_BLOCK_BYTES])
        del self._waiting[:_BLOCK_BYTES]
        # The checksum follows the order of the bytes, so this thread adds it up; only the
        # compression may be on another.
        self._crc = zlib.crc32(block, self._crc)
        self._size += len(block)
        self.jobs.put(partial(_deflated, block, self._window), len(block))
        self._window = block[-_WINDOW_BYTES:]

    def close(self) -> None:
        """Write the last block and the end of the member."""
        with self._file:
            self._compress_block()
            self.jobs.finish()
            # The size modulo 2**32, as RFC 1952 has it.
            trailer = struct.pack("<II", self._crc, self._size % 2**32)
            self._file.write(_LAST_BLOCK + trailer)


def _deflated(block: bytes, window: bytes) -> bytes:
    """Return a compressed block. window : the bytes before it, to which it may refer."""
    # A sync flush ends the block at a byte, so that the next one can be appended.
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=window)
    return compressor.compress(block) + compressor.flush(zlib.Z_SYNC_FLUSH)


class RowSink:
    """A file of rows of one schema; other rows are cast to it.

    stream : the open file. make_writer : returns Arrow's writer of rows, from the stream and the
    schema.
    """

    def __init__(
        self, stream: Any, schema: pa.Schema, make_writer: Callable[[Any, pa.Schema], Any]
    ) -> None:
        self._stream = stream
        self._schema = schema
        self._writer = make_writer(stream, schema)

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if rows.schema != self._schema:
            rows = rows.cast(self._schema)
        self._writer.write_batch(rows)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()
        self._stream.close()

    discard = close


def sink_of_lines(source: Source) -> Callable[[str], ByteSink]:
    """Return a function that opens a file for payload lines, compressed like the source."""
    return partial(ByteSink, compression=source.compression, to_bytes=attrgetter("data"))


def open_compressed(path: str, compression: str | None) -> IO[bytes] | pa.NativeFile:
    """Open a new local file that compresses the bytes written to it."""
    if compression == "xz":
        return lzma.open(path, "wb", preset=1)
    if compression is None:
        return open(path, "wb")
    return pa.CompressedOutputStream(arrow_file(path, "wb"), compression)
