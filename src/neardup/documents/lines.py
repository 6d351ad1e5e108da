"""Cut a stream of bytes into blocks of whole lines."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Bytes, Ints
from neardup.documents.batch import BLOCK_BYTES, Reject, Rejected
from neardup.documents.sources import Source
from neardup.documents.stretches import lines_of
from neardup.executor import group_small

MAX_LINE_BYTES = 1 << 30
"""A longer line is rejected, so that memory is bounded."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

STREAM_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException)
"""The errors of a damaged or truncated stream."""

MAX_BLOCK_LINES = 1 << 17
"""A block has no more lines: their offsets, and what is made of each, take far more memory than an
empty line.
"""

_WIDE_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_HEAD_BYTES = 1024

_NEWLINE = 10
# Searched piece by piece so that the mask of one piece stays in the cache: 3.7 GB/s against 1.6 at
# once.
_SEARCH_BYTES = 1 << 18
_ZSTD_READ_BYTES = 1 << 16


def wide_encoding_of(data: bytes) -> str | None:
    """Return UTF-16 or UTF-32 if text begins in such an encoding, also without a byte order mark;
    else None.

    Without a mark, every other byte of text in Latin letters is zero.
    """
    head = data[:_HEAD_BYTES]
    for mark, name in _WIDE_MARKS.items():
        if head.startswith(mark):
            return name
    if b"\0" not in head or len(head) < 4:
        return None
    zeros = [head[first::2].count(0) for first in (0, 1)]
    if max(zeros) < 0.8 * (len(head) // 2) or min(zeros) > 0.2 * (len(head) // 2):
        return None
    return "UTF-16BE" if zeros[0] > zeros[1] else "UTF-16LE"


def why_wide(encoding: str) -> str:
    """Return the advice about text in another encoding, as the end of a sentence."""
    return f": it is {encoding}. Convert it to UTF-8, for example by iconv -f {encoding} -t UTF-8"


class LineBlock(NamedTuple):
    """Whole lines in order, line ends included.

    data : their bytes, uint8; offsets : int64 array of shape (num_lines + 1,); first_line,
    first_byte : the position of the block in the (decompressed) file or stretch, both from 0.
    begins_file : whether it is the first of the file.
    """

    data: Bytes
    offsets: Ints
    first_line: int
    first_byte: int
    begins_file: bool = False

    @property
    def num_lines(self) -> int:
        """The number of lines."""
        return len(self.offsets) - 1

    def line(self, index: int) -> bytes:
        """Return one line, its line end included."""
        return self.data[int(self.offsets[index]) : int(self.offsets[index + 1])].tobytes()

    def ends_in_line(self, index: int) -> bool:
        """Return whether a line is the last of the file, and has no line end."""
        return index == self.num_lines - 1 and self.data[-1] != _NEWLINE

    def rejected(self, source: Source, index: int, reason: str) -> Rejected:
        """Return the record of a line of this block that could not be read."""
        line = self.first_line + index
        return Rejected(
            source.name, line, line + 1, self.first_byte + int(self.offsets[index]), reason
        )


def line_offsets(values: Bytes) -> Ints:
    """Return where each line of uint8 begins, then where the last one ends: int64 of shape
    (num_lines + 1,).
    """
    pieces = [np.zeros(1, dtype=np.int64)]
    begins = range(0, len(values), _SEARCH_BYTES)
    pieces += [
        np.flatnonzero(values[begin : begin + _SEARCH_BYTES] == _NEWLINE) + (begin + 1)
        for begin in begins
    ]
    if len(values) and values[-1] != _NEWLINE:
        pieces.append(np.array([len(values)], dtype=np.int64))
    return np.concatenate(pieces)


def read_line_blocks(source: Source, reject: Reject) -> Iterator[LineBlock]:
    """Yield the lines of a file in blocks of about `BLOCK_BYTES`.

    A line that grows beyond `MAX_LINE_BYTES` is rejected. A stream that breaks off yields the whole
    lines before the break; the rest is rejected once, with the line and byte where it begins.
    """
    pending: list[bytes] = []  # of a line that has not ended
    line, byte, skips = 0, 0, False
    stretch = source.stretch
    is_head = stretch is None or stretch.begin == 0
    lines = _pieces(source) if stretch is None else lines_of(source, stretch)
    try:
        for pieces in group_small(lines, len, BLOCK_BYTES):
            chunk = b"".join(pieces)
            if skips:  # the rest of a line that is too long
                end = chunk.find(b"\n") + 1
                byte += end or len(chunk)
                if not end:
                    continue
                chunk, line, skips = chunk[end:], line + 1, False
            cut = chunk.rfind(b"\n") + 1
            if cut:
                block = _block(
                    [*pending, memoryview(chunk)[:cut]],
                    line,
                    byte,
                    begins_file=is_head and not byte,
                )
                yield from _in_pieces(block)
                line, byte, pending = line + block.num_lines, byte + len(block.data), [chunk[cut:]]
                continue
            pending.append(chunk)
            num_bytes = sum(map(len, pending))
            if num_bytes > MAX_LINE_BYTES:
                reason = f"the line is longer than {MAX_LINE_BYTES} bytes, the longest that is read"
                reject(
                    Rejected(
                        source.name, line, line + 1, byte, reason, excluded=True, too_long=True
                    )
                )
                pending, byte, skips = [], byte + num_bytes, True
    except STREAM_ERRORS as error:
        reason = f"the rest of the file cannot be read: {error}"
        reject(Rejected(source.name, None, line + 1, byte, reason, rest_of_file=True))
        return
    if any(pending):
        block = _block(pending, line, byte, begins_file=is_head and not byte)
        yield block
        line, byte = line + block.num_lines, byte + len(block.data)
    if stretch is not None:
        stretch.rows, stretch.num_bytes = line, byte


def _block(
    pieces: Sequence[bytes | memoryview], line: int, byte: int, *, begins_file: bool
) -> LineBlock:
    data = np.concatenate(
        [np.frombuffer(piece, np.uint8) for piece in pieces]
    )  # without the interpreter's lock
    return LineBlock(data, line_offsets(data), line, byte, begins_file)


def _in_pieces(block: LineBlock) -> Iterator[LineBlock]:
    """Yield a block in blocks of at most `MAX_BLOCK_LINES` lines."""
    if block.num_lines <= MAX_BLOCK_LINES:
        yield block
        return
    for first in range(0, block.num_lines, MAX_BLOCK_LINES):
        offsets = block.offsets[first : first + MAX_BLOCK_LINES + 1]
        begin, end = int(offsets[0]), int(offsets[-1])
        yield LineBlock(
            data=block.data[begin:end],
            offsets=offsets - begin,
            first_line=block.first_line + first,
            first_byte=block.first_byte + begin,
            begins_file=block.begins_file and first == 0,
        )


def _pieces(source: Source) -> Iterator[bytes]:
    size = _ZSTD_READ_BYTES if source.compression == "zstd" else BLOCK_BYTES
    with source.open_stream() as stream:
        # read1 returns the bytes before an error; Arrow's streams have no read1, and are read in
        # small steps.
        take = getattr(stream, "read1", stream.read) if source.compression else stream.read
        while piece := take(size):
            yield piece
