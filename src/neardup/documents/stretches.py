"""Where a large file can be cut into stretches that are read independently, on threads, and joined
in order.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Collection, Iterator

import pyarrow as pa

from neardup.documents.batch import BLOCK_BYTES
from neardup.documents.sources import BoundedStream, Source, Stretch, check_expansion

STRETCH_BYTES = 16 << 20
"""Of a stretch of an uncompressed file; of a compressed one, a quarter."""
_GZIP_MAGIC, _ZSTD_MAGIC, _ZSTD_SKIPPED = b"\x1f\x8b\x08", 0xFD2FB528, 0x184D2A50
_GZIP, _MAX_SEARCHED = 31, 8
_SEARCHED_BYTES, _TRIAL_BYTES, _READ_BYTES = 1 << 17, 1 << 14, 1 << 16


def cut(starts: Collection[int], size: int) -> list[Stretch]:
    """Return the stretches of a file that begin at 0 and at `starts`; `size` : where the file
    ends.
    """
    limits = [0, *sorted(starts), size]
    ends = frozenset(limits[1:])
    return [Stretch(begin, end, ends) for begin, end in itertools.pairwise(limits)]


def stretches_of_lines(source: Source) -> list[Stretch]:
    """Return stretches of a file of lines: a line is of the stretch in which the line end before it
    is.
    """
    size, starts = source.stat()[0], []
    if source.compression is None:
        starts = list(range(STRETCH_BYTES, size, STRETCH_BYTES))
    elif source.is_local and source.compression in ("gzip", "zstd") and size > STRETCH_BYTES // 4:
        with source.open_file() as file:
            starts = (
                member_starts(file, _is_member)
                if source.compression == "gzip"
                else _frame_starts(file)
            )
    return cut(starts, size)


def member_starts(
    file: pa.NativeFile, begins: Callable[[bytes], bool], mark: bytes = _GZIP_MAGIC
) -> list[int]:
    """Return where members of gzip, or other parts, seem to begin, at most one in each
    STRETCH_BYTES / 4.

    Parameters
    ----------
    begins : whether a part begins with these bytes, some kilobytes of the file.
    mark : what a part begins with.
    """
    size, step, starts = file.size(), STRETCH_BYTES // 4, []
    for low in range(step, size, step):
        pieces = range(low, min(low + step, size), _SEARCHED_BYTES)
        if start := next(
            filter(None, (_find(file, first, begins, mark) for first in pieces)), None
        ):
            starts.append(start)
        elif not starts and low >= _MAX_SEARCHED * step:
            break  # one stream, which only its reader can cut
    return starts


def _find(
    file: pa.NativeFile, first: int, begins: Callable[[bytes], bool], mark: bytes
) -> int | None:
    """Return where a part seems to begin in the next _SEARCHED_BYTES."""
    data, last = (
        file.read_at(_SEARCHED_BYTES + _TRIAL_BYTES, first),
        _SEARCHED_BYTES + len(mark) - 1,
    )
    index = data.find(mark, 0, last)
    while index >= 0 and not begins(data[index : index + _TRIAL_BYTES]):
        index = data.find(mark, index + 1, last)
    return first + index if index >= 0 else None


def _is_member(data: bytes) -> bool:
    try:
        inflater = zlib.decompressobj(_GZIP)
        return bool(inflater.decompress(data)) or inflater.eof
    except zlib.error:
        return False


def _frame_starts(file: pa.NativeFile) -> list[int]:
    """Return where frames of zstd begin, some STRETCH_BYTES / 4 apart (RFC 8878, sections 3.1.1 and
    3.1.2).
    """
    size, position, starts = file.size(), 0, [0]
    while position < size:
        if position - starts[-1] >= STRETCH_BYTES // 4:
            starts.append(position)
        head = file.read_at(9, position)
        magic = int.from_bytes(head[:4], "little")
        if magic & ~0xF == _ZSTD_SKIPPED:
            position += 8 + int.from_bytes(head[4:8], "little")
            continue
        if magic != _ZSTD_MAGIC or len(head) < 9:
            break  # the reader reports it
        flags = head[4]
        content = (1 if flags & 0x20 else 0, 2, 4, 8)[flags >> 6]
        position += 5 + (not flags & 0x20) + (0, 1, 2, 4)[flags & 3] + content
        is_last = False
        while not is_last and position < size:
            block = int.from_bytes(file.read_at(3, position), "little")
            is_last = bool(block & 1)
            position += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        position += 4 * bool(flags & 4)
    return starts[1:]


def lines_of(source: Source, stretch: Stretch) -> Iterator[bytes]:
    """Yield the decompressed bytes of the lines of a stretch in pieces.

    Its lines are those that begin behind a line end in it, and in the first stretch the first line,
    too.
    """
    is_inside = stretch.begin > 0
    for piece in _pieces(source, stretch):
        if isinstance(piece, int):
            stretch.reached = piece
            if is_inside:
                return
            continue
        if is_inside:
            begin = piece.find(b"\n") + 1
            is_inside, piece = not begin, piece[begin:] if begin else b""
        end = piece.find(b"\n") + 1 if stretch.reached else 0
        yield piece[:end] if end else piece
        if end:
            return


def _pieces(source: Source, stretch: Stretch) -> Iterator[bytes | int]:
    """Yield the decompressed bytes from the begin of a stretch to the end of the file; in between,
    where it ends.
    """
    with source.open_file() as file:
        size = file.size()
        if source.compression == "gzip":
            yield from _inflate(file.get_stream(stretch.begin, size - stretch.begin), stretch)
            return
        for begin, end in ((stretch.begin, stretch.end), (stretch.end, size)):
            stream = file.get_stream(begin, end - begin)
            if source.compression is not None and begin < end:
                stream = BoundedStream(
                    pa.CompressedInputStream(stream, source.compression), end - begin
                )
            while piece := stream.read(BLOCK_BYTES if source.compression is None else _READ_BYTES):
                yield piece
            if begin == stretch.begin:
                yield end


def _inflate(file: pa.NativeFile, stretch: Stretch) -> Iterator[bytes | int]:
    """Yield the bytes in the members of a gzip file from the begin of a stretch, and where it ends;
    as `_pieces`.
    """
    position, num_bytes, within = stretch.begin, 0, True
    raw, inflater = b"", None
    while True:
        raw = raw or file.read(_READ_BYTES)
        if inflater is None:
            is_over, bare = not raw, raw.lstrip(b"\0")  # there may be zeros between members
            position, raw = position + len(raw) - len(bare), bare
            if within and position > stretch.begin and position in stretch.ends:
                yield position
                within = False
            if is_over:
                return
            if not raw:
                continue
            inflater = zlib.decompressobj(_GZIP)
        elif not raw:
            raise EOFError("the compressed file is cut short")
        data = inflater.decompress(raw, BLOCK_BYTES)
        rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        position, raw, num_bytes = position + len(raw) - len(rest), rest, num_bytes + len(data)
        check_expansion(num_bytes, position - stretch.begin)
        if inflater.eof:
            inflater = None
        if data:
            yield data
