"""Writing Arrow IPC as the source was written: file or stream, codec, metadata."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from neardup.output.kept_sinks import SourcePart

_CODECS = ("lz4", "zstd")
_FILE_MAGIC = b"ARROW1"


@dataclass(frozen=True)
class ArrowLayout:
    """How an Arrow IPC file is laid out."""

    schema: pa.Schema
    is_stream: bool = False
    codec: str | None = None


def arrow_layout(part: SourcePart) -> ArrowLayout:
    """Return the layout of an Arrow IPC file."""
    with part.open_file() as file:
        is_stream = file.read(len(_FILE_MAGIC)) != _FILE_MAGIC
        file.seek(0)
        schema = (pa.ipc.open_stream(file) if is_stream else pa.ipc.open_file(file)).schema
        # Behind its magic, padded to 8 bytes, the file format holds the messages of the stream format.
        file.seek(0 if is_stream else 8)
        return ArrowLayout(schema, is_stream, _codec(file))


def _codec(file: pa.NativeFile) -> str | None:
    """Return the codec of the first record batch; pyarrow does not tell it, the message header does."""
    try:
        for message in pa.ipc.MessageReader.open_stream(file):
            if message.type == "record batch":
                return _codec_of_message(message.metadata.to_pybytes())
    except (pa.ArrowException, OSError, struct.error, IndexError):
        return None
    return None


def _codec_of_message(header: bytes) -> str | None:
    """Read Message.header.compression.codec from its flatbuffer (Arrow's format/Message.fbs)."""
    message = struct.unpack_from("<I", header, 0)[0]
    batch_at = _field(header, message, 2)
    if batch_at is None:
        return None
    batch = batch_at + struct.unpack_from("<I", header, batch_at)[0]
    compression_at = _field(header, batch, 3)
    if compression_at is None:
        return None
    compression = compression_at + struct.unpack_from("<I", header, compression_at)[0]
    codec_at = _field(header, compression, 0)
    return _CODECS[0 if codec_at is None else header[codec_at]]


def _field(header: bytes, table: int, index: int) -> int | None:
    """Return where a field of a flatbuffer table stands, or None if it has its default."""
    vtable = table - struct.unpack_from("<i", header, table)[0]
    size = struct.unpack_from("<H", header, vtable)[0]
    if 4 + 2 * index >= size:
        return None
    offset = struct.unpack_from("<H", header, vtable + 4 + 2 * index)[0]
    return table + offset if offset else None


class ArrowSink:
    """An Arrow IPC file or stream."""

    def __init__(self, path: str, layout: ArrowLayout | None = None, schema: pa.Schema | None = None) -> None:
        if layout is None:
            assert schema is not None
            layout = ArrowLayout(schema)
        self._schema = layout.schema
        self._file = pa.OSFile(path, "wb")
        options = pa.ipc.IpcWriteOptions(compression=layout.codec, use_threads=False)
        make = pa.ipc.new_stream if layout.is_stream else pa.ipc.new_file
        self._writer = make(self._file, layout.schema, options=options)

    def write(self, rows: Any) -> None:
        """Write a RecordBatch."""
        self._writer.write_batch(rows.cast(self._schema) if rows.schema != self._schema else rows)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()
        self._file.close()

    discard = close
