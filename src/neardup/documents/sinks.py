"""Local files that kept payloads are written to, complete at `close`."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import IO, Any, Protocol

import pyarrow as pa

from neardup.documents.sources import Source


class Sink(Protocol):
    """A file being written: `write` any number of times, then `close` or `discard`."""

    def write(self, payload: Any, /) -> None:
        """Append the payload of a batch."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...

    def discard(self) -> None:
        """Release what is open; the caller removes the file."""
        ...


class ByteSink:
    """A file of bytes, compressed as a whole if `compression` is given; `to_bytes` turns a payload into bytes."""

    def __init__(self, path: str, compression: str | None, to_bytes: Callable[[Any], Any]) -> None:
        self._stream = open_compressed(path, compression)
        self._to_bytes = to_bytes

    def write(self, payload: Any) -> None:
        """Append the payload of a batch."""
        self._stream.write(self._to_bytes(payload))

    def close(self) -> None:
        """Finish the file."""
        self._stream.close()

    discard = close


class RowSink:
    """A file of rows of one schema, to which other rows are cast.

    stream : the open file. make_writer : returns Arrow's writer of rows, from the stream and the schema.
    """

    def __init__(self, stream: Any, schema: pa.Schema, make_writer: Callable[[Any, pa.Schema], Any]) -> None:
        self._stream, self._schema = stream, schema
        self._writer = make_writer(stream, schema)

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write_batch(rows.cast(self._schema) if rows.schema != self._schema else rows)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()
        self._stream.close()

    discard = close


def sink_of_lines(source: Source) -> Callable[[str], ByteSink]:
    """Return a function that makes a file of payload lines, compressed as the source is."""
    return partial(ByteSink, compression=source.compression, to_bytes=attrgetter("data"))


def open_compressed(path: str, compression: str | None) -> IO[bytes] | pa.NativeFile:
    """Open a new local file that compresses what is written to it."""
    if compression == "xz":
        return lzma.open(path, "wb", preset=1)
    if compression is None:
        return open(path, "wb")
    return pa.CompressedOutputStream(pa.OSFile(path, "wb"), compression)
