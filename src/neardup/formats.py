"""The file formats neardup knows: their suffixes, their compressions, how lines are held.

Both the stage that reads and the one that writes need these, and stages do not import each other.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import arrow_of

BLOCK_BYTES = 4 << 20
"""Text handed on at a time: large enough for Arrow to be at full speed, small enough for the cache."""


class Format(NamedTuple):
    """A file format: the suffixes it is known by (the first is written), and whether it may be compressed."""

    suffixes: tuple[str, ...]
    compressible: bool = False


FORMATS: dict[str, Format] = {
    "parquet": Format((".parquet", ".pq")),
    "arrow": Format((".arrow", ".feather", ".ipc")),
    "jsonl": Format((".jsonl", ".ndjson", ".json"), compressible=True),
    "csv": Format((".csv",), compressible=True),
    "tsv": Format((".tsv",), compressible=True),
    "text": Format((".txt", ".text", ".md"), compressible=True),
    "html": Format((".html", ".htm", ".xhtml"), compressible=True),
    "warc": Format((".warc",), compressible=True),
    "table": Format(()),
}
"""Every value of `Part.format`; "table" is a table in memory, all others are files."""

FILE_FORMATS = tuple(name for name, known in FORMATS.items() if known.suffixes)

PAGE_FORMATS = ("html", "warc")
"""Formats whose documents are web pages: their text is HTML."""

COMPRESSIONS: dict[str, str] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}
"""Suffix -> name of the compression of a whole file."""


_STANDARD_READERS: dict[str | None, Callable[..., Any]] = {
    "gzip": gzip.open,
    "bz2": bz2.open,
    "xz": lzma.open,
}


def is_pages(format_name: str) -> bool:
    """Return whether the documents of a format are web pages."""
    return format_name in PAGE_FORMATS


def split_name(name: str) -> tuple[str, str | None, str | None]:
    """Return a file's name without its suffixes, its format and its compression.

    Examples
    --------
    >>> split_name("corpus/part-1.jsonl.gz")
    ('corpus/part-1', 'jsonl', 'gzip')
    >>> split_name("notes")
    ('notes', None, None)
    """
    stem, compression = name, None
    for suffix, codec in COMPRESSIONS.items():
        if stem.lower().endswith(suffix):
            stem, compression = stem[: -len(suffix)], codec
    for format_name, known in FORMATS.items():
        for suffix in known.suffixes:
            if stem.lower().endswith(suffix) and (compression is None or known.compressible):
                return stem[: -len(suffix)], format_name, compression
    return name, None, None


def compression_of(name: str) -> str | None:
    """Return the compression that a file's last suffix stands for."""
    return next((codec for suffix, codec in COMPRESSIONS.items() if name.lower().endswith(suffix)), None)


def accepted_suffixes() -> str:
    """Return the sentence that tells which files can be read."""
    plain = ", ".join(suffix for known in FORMATS.values() for suffix in known.suffixes)
    return f"{plain}; lines, tables of text and pages also with {', '.join(COMPRESSIONS)}"


def open_decompressed(raw: str | pa.NativeFile, compression: str | None) -> IO[bytes] | pa.NativeFile:
    """Return a stream of the bytes inside a local path or an open file; members in a row are read as one.

    The standard library's readers are chosen for gzip, bz2 and xz because a stream cut short still yields all
    that stood before the cut; Arrow's, otherwise as fast, loses its last buffer.
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
    """Open a new local file for writing; what is written is compressed on the way."""
    if compression == "xz":
        return lzma.open(path, "wb", preset=1)
    if compression is None:
        return open(path, "wb")
    return pa.CompressedOutputStream(pa.OSFile(path, "wb"), compression)


class Lines(Protocol):
    """Lines held as bytes and offsets; `documents.batch.RawLines` is one."""

    @property
    def data(self) -> bytes | pa.Buffer:
        """The bytes of the lines, line ends included."""
        ...

    @property
    def offsets(self) -> np.ndarray:
        """int64 array of shape (num_rows + 1,)."""
        ...


@dataclass(frozen=True)
class Pages:
    """Web pages as they stood in their file, to be copied, and as rows, to be written in another format.

    records : the bytes of each page, of a WARC its record. A record that stood in a gzip member of its own is that
    member, others are not compressed.
    notes : records that belong to the file, each with the number of pages of this batch that stood before it.
    rows : returns one row a page.
    """

    records: list[bytes]
    notes: list[tuple[int, bytes]]
    rows: Callable[[], pa.RecordBatch]

    def select(self, mask: np.ndarray) -> Pages:
        """Return the pages where `mask` is true, with all notes."""
        before = np.concatenate([[0], np.cumsum(mask)])
        records = [record for record, chosen in zip(self.records, mask, strict=True) if chosen]
        notes = [(int(before[place]), note) for place, note in self.notes]
        return Pages(records, notes, lambda: filter_rows(self.rows(), pa.array(mask, pa.bool_())))


def lines_array(data: bytes | pa.Buffer, offsets: np.ndarray) -> pa.LargeBinaryArray:
    """Return the lines as an Arrow array, without a copy."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, dtype=np.int64)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def select_lines(data: bytes | pa.Buffer, offsets: np.ndarray, mask: np.ndarray) -> tuple[pa.Buffer, np.ndarray]:
    """Return data and offsets of the lines where `mask` is true; the data are contiguous."""
    if bool(mask.all()):
        begin, end = int(offsets[0]), int(offsets[-1])
        return pa.py_buffer(data).slice(begin, end - begin), offsets - begin
    chosen = lines_array(data, offsets).filter(arrow_of(mask))
    _, offset_buffer, data_buffer = chosen.buffers()
    chosen_offsets = np.frombuffer(offset_buffer, dtype=np.int64)[: len(chosen) + 1]
    return (pa.py_buffer(b"") if data_buffer is None else data_buffer), chosen_offsets


def filter_rows(rows: Any, mask: Any) -> Any:
    """Return the rows of a RecordBatch or Table where `mask` is true.

    Arrow has no filter for its views, nor for runs; their columns take the way over plain ones.
    """
    if not any(_has_no_filter(kind) for kind in rows.schema.types):
        return rows.filter(mask)
    columns = [_filter_column(column, mask) for column in rows.columns]
    return type(rows).from_arrays(columns, schema=rows.schema)


def _has_no_filter(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) or pa.types.is_run_end_encoded(kind))


def _filter_column(column: Any, mask: Any) -> Any:
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        plain = pc.run_end_decode(column).filter(mask)
        return pc.run_end_encode(plain, run_end_type=kind.run_end_type)
    if _has_no_filter(kind):
        return (
            column.cast(pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary())
            .filter(mask)
            .cast(kind)
        )
    return column.filter(mask)


def without_views(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain strings and bytes in the place of views."""
    for index, column in enumerate(schema):
        if pa.types.is_string_view(column.type):
            schema = schema.set(index, column.with_type(pa.large_string()))
        elif pa.types.is_binary_view(column.type):
            schema = schema.set(index, column.with_type(pa.large_binary()))
    return schema
