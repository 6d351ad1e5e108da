"""Plain text: each line is a document, or each file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from neardup.arrays import Integers, arrow_of_bytes, offsets_from_lengths
from neardup.documents.batch import (
    Columns,
    DocumentBatch,
    RawLines,
    Reject,
    lost_file,
    replace_lines,
)
from neardup.documents.lines import (
    BYTE_ORDER_MARK,
    LineBlock,
    read_line_blocks,
    wide_encoding_of,
)
from neardup.documents.sinks import sink_of_lines
from neardup.documents.sources import Source, Stretch
from neardup.documents.stretches import stretches_of_lines
from neardup.documents.texts import invalid_utf8_rows
from neardup.formats.registry import Handler
from neardup.formats.whole_files import batch_of_file, read_data, rejected_file

_HEAD_BYTES = 1024
MAX_FILE_BYTES = 1 << 30
"""A longer file is rejected as one document."""


def read(
    file: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of a text file; the id of a document that is a file, if wanted, is its
    path.
    """
    if file.unit == "file":
        return read_whole(file, reject, with_id=columns.id is not None, with_payload=with_payload)
    return read_lines(file, reject, with_payload=with_payload)


def read_lines(
    source: Source, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield each line as a document, without its line end; an empty line is an empty document."""
    for block in read_line_blocks(source, reject):
        if block.begins_file and wide_encoding_of(block.data[:_HEAD_BYTES].tobytes()):
            reject(lost_file(source.name, "no row of the file can be read"))
            return
        rows = np.arange(block.num_lines, dtype=np.int64) + block.first_line
        payload = RawLines(pa.py_buffer(block.data), block.offsets) if with_payload else None
        batch = DocumentBatch(_texts(block), rows, payload=payload)
        bad = invalid_utf8_rows(batch.text)
        if bad:
            for index in bad:
                reject(block.rejected(source, index, _why_not_utf8(block.line(index), "line")))
            batch = batch.filter(~np.isin(np.arange(block.num_lines), bad))
        if len(batch.rows):
            yield batch


def _texts(block: LineBlock) -> pa.LargeStringArray:
    """Return the lines without line ends (LF or CRLF), and without the byte order mark of the
    file.
    """
    begins = block.offsets[:-1]
    ends = block.offsets[1:]
    lengths = ends - begins
    has_newline = block.data[ends - 1] == ord("\n")
    last_but_one = np.maximum(ends - 2, begins)
    has_return = has_newline & (lengths > 1) & (block.data[last_but_one] == ord("\r"))
    lengths = lengths - has_newline - has_return

    # The bytes of all lines are filtered at once; a return alone is part of its line.
    data = block.data.tobytes()
    if has_return.any():
        data = data.replace(b"\r\n", b"\n")
    data = data.translate(None, b"\n")
    # The line ends are gone: bytes of several short lines may look like a mark.
    starts_with_mark = block.begins_file and data.startswith(BYTE_ORDER_MARK)
    if starts_with_mark and lengths[0] >= len(BYTE_ORDER_MARK):
        data = data[len(BYTE_ORDER_MARK) :]
        lengths[0] -= len(BYTE_ORDER_MARK)
    return arrow_of_bytes(data, offsets_from_lengths(lengths)).view(pa.large_string())


def read_whole(
    source: Source, reject: Reject, *, with_id: bool = False, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the file as one document, or reject it; its id, if wanted, is its path."""
    data = read_data(source, reject, MAX_FILE_BYTES)
    if data is None:
        return
    if wide_encoding_of(data):
        reject(lost_file(source.name, "the file is not valid UTF-8", row=0))
        return
    try:
        data.decode("utf-8")  # raises if it is not UTF-8
    except UnicodeDecodeError:
        reject(rejected_file(source, _why_not_utf8(data, "file")))
        return
    begin = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
    text = arrow_of_bytes(data, np.array([begin, len(data)], np.int64)).view(pa.large_string())
    yield batch_of_file(source, data, text, with_id=with_id, with_payload=with_payload)


def _why_not_utf8(data: bytes, unit: str) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"the {unit} is not valid UTF-8: {error.reason} at byte {error.start} of the {unit}"
    return f"the {unit} is not valid UTF-8"


def _replace_texts(
    batch: DocumentBatch, _: str, rows: Integers, texts: pa.LargeStringArray
) -> RawLines:
    """Return lines, or a file, with other texts; the byte order mark and the line ends do not
    change.

    A text with a carriage return at its end gets the line end CRLF: before LF, a reader would drop
    the return.
    """

    def change(row: int, line: bytes) -> bytes:
        has_mark = batch.rows[row] == 0 and line.startswith(BYTE_ORDER_MARK)
        mark = BYTE_ORDER_MARK if has_mark else b""
        # The text is the begin of the line, byte for byte.
        line_end = line[len(mark) + len(batch.text[row].as_buffer()) :]
        text: bytes = texts[row].as_buffer().to_pybytes()
        # Before LF alone, the return would be read as a part of the line end.
        if text.endswith(b"\r") and line_end == b"\n":
            line_end = b"\r\n"
        return mark + text + line_end

    return replace_lines(batch, rows, change)


def _stretches(file: Source) -> list[Stretch]:
    return [] if file.unit == "file" else stretches_of_lines(file)


HANDLER = Handler(read, sink_of_lines, replace_texts=_replace_texts, stretches=_stretches)
