"""Cut large files into stretches that threads read independently, joined in order afterwards."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Collection, Iterator

import pyarrow as pa

from neardup.documents.batch import BLOCK_BYTES
from neardup.documents.decompressed import BoundedStream
from neardup.documents.limits import check_expansion
from neardup.documents.sources import Source, Stretch
from neardup.documents.zstd_streams import frame_end, suits_arrow

STRETCH_BYTES = 16 << 20
"""Bytes of a stretch of an uncompressed file."""
_COMPRESSED_BYTES = STRETCH_BYTES // 4  # bytes of a stretch of a compressed file
_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP_WINDOW = 31  # window bits of zlib: 15, and 16 for gzip's header
_MAX_SEARCHED = 8  # stretches without a member, after which a file counts as one stream
_SEARCHED_BYTES = 1 << 17  # bytes that one step of a search reads
_TRIAL_BYTES = 1 << 14  # bytes that are inflated to see whether a member starts
_READ_BYTES = 1 << 16


def cut(starts: Collection[int], size: int) -> list[Stretch]:
    """Return the stretches of a file, which begin at 0 and at each of `starts`.

    starts, size : in bytes or row groups; the last stretch ends at `size`.
    """
    limits = [0, *sorted(starts), size]
    ends = frozenset(limits[1:])
    return [Stretch(begin, end, ends) for begin, end in itertools.pairwise(limits)]


def stretches_of_lines(source: Source) -> list[Stretch]:
    """Return the stretches of a file of lines.

    A line belongs to the stretch with the line end before it.
    """
    size, _ = source.stat()
    if source.compression is None:
        return cut(range(STRETCH_BYTES, size, STRETCH_BYTES), size)
    has_parts = source.compression in ("gzip", "zstd")
    if not source.is_local or not has_parts or size <= _COMPRESSED_BYTES:
        return cut([], size)
    with source.open_file() as file:
        is_gzip = source.compression == "gzip"
        starts = member_starts(file, _is_member) if is_gzip else _frame_starts(file)
    return cut(starts, size)


def member_starts(
    file: pa.NativeFile, begins: Callable[[bytes], bool], mark: bytes = _GZIP_MAGIC
) -> list[int]:
    """Return probable starts of gzip members or other parts, at most one per _COMPRESSED_BYTES.

    Parameters
    ----------
    begins : returns whether a part begins with the given bytes, up to _TRIAL_BYTES.
    mark : the first bytes of a part.
    """
    size = file.size()
    starts: list[int] = []
    for low in range(_COMPRESSED_BYTES, size, _COMPRESSED_BYTES):
        high = min(low + _COMPRESSED_BYTES, size)
        found = (_find(file, at, begins, mark) for at in range(low, high, _SEARCHED_BYTES))
        start = next(filter(None, found), None)
        if start is not None:
            starts.append(start)
        elif not starts and low >= _MAX_SEARCHED * _COMPRESSED_BYTES:
            break  # one stream, which only its reader can cut
    return starts


def _find(
    file: pa.NativeFile, first: int, begins: Callable[[bytes], bool], mark: bytes
) -> int | None:
    """Return the first probable start of a part in the next _SEARCHED_BYTES; None without one."""
    # The read goes on for _TRIAL_BYTES, so that a mark at the end of the searched bytes is tried.
    data = file.read_at(_SEARCHED_BYTES + _TRIAL_BYTES, first)
    limit = _SEARCHED_BYTES + len(mark) - 1  # a mark must begin in the searched bytes
    index = data.find(mark, 0, limit)
    while index >= 0 and not begins(data[index : index + _TRIAL_BYTES]):
        index = data.find(mark, index + 1, limit)
    return first + index if index >= 0 else None


def _is_member(data: bytes) -> bool:
    """Return whether a gzip member begins with some bytes: they can be inflated."""
    try:
        inflater = zlib.decompressobj(_GZIP_WINDOW)
        # A member without contents yields no bytes, but ends.
        return bool(inflater.decompress(data)) or inflater.eof
    except zlib.error:
        return False


def _frame_starts(file: pa.NativeFile) -> list[int]:
    """Return starts of zstd frames, at least _COMPRESSED_BYTES apart; none if Arrow cannot read
    them.
    """
    if not suits_arrow(file):
        return []
    size = file.size()
    starts = [0]
    position = 0
    while position < size:
        if position - starts[-1] >= _COMPRESSED_BYTES:
            starts.append(position)
        end = frame_end(file, position, size)
        if end is None:
            break  # the reader reports it
        position = end
    return starts[1:]


def lines_of(source: Source, stretch: Stretch) -> Iterator[bytes]:
    """Yield the decompressed bytes of the lines of a stretch in pieces.

    They are the lines that begin after the line ends in the stretch; in the first stretch, the
    first line of the file, too:

        stretches    | a a ; b b | b ; c c |
        lines        | a a ; b b   b ;     |    of the first stretch; ";" is a line end
    """
    is_before_first_line = stretch.begin > 0
    for piece in _pieces(source, stretch):
        if isinstance(piece, int):
            stretch.reached = piece
            if is_before_first_line:  # no line begins here
                return
            continue
        if is_before_first_line:
            begin = piece.find(b"\n") + 1
            is_before_first_line = not begin
            piece = piece[begin:] if begin else b""
        # After the end of the stretch, the first line end is the last byte to read.
        end = piece.find(b"\n") + 1 if stretch.reached else 0
        yield piece[:end] if end else piece
        if end:
            return


def _pieces(source: Source, stretch: Stretch) -> Iterator[bytes | int]:
    """Yield the decompressed bytes from the start of a stretch to the end of the file.

    Between them comes one int, the offset in the file at which the stretch ends.
    """
    with source.open_file() as file:
        size = file.size()
        if source.compression == "gzip":
            stream = file.get_stream(stretch.begin, size - stretch.begin)
            yield from _inflate(stream, stretch)
            return
        yield from _read_range(file, stretch.begin, stretch.end, source.compression)
        yield stretch.end
        yield from _read_range(file, stretch.end, size, source.compression)


def _read_range(
    file: pa.NativeFile, begin: int, end: int, compression: str | None
) -> Iterator[bytes]:
    """Yield the decompressed bytes between two offsets in the file."""
    stream = file.get_stream(begin, end - begin)
    if compression is not None and begin < end:
        stream = BoundedStream(pa.CompressedInputStream(stream, compression), end - begin)
    step = BLOCK_BYTES if compression is None else _READ_BYTES
    while piece := stream.read(step):
        yield piece


def _inflate(file: pa.NativeFile, stretch: Stretch) -> Iterator[bytes | int]:
    """Yield the bytes of the members of a gzip file, and the end of the stretch, as `_pieces` does.

    A stretch ends only where a member ends: a start that was found inside a member is no end, and
    the stretch goes on to a later one.
    """
    position = stretch.begin  # offset in the file of the first byte of `raw`
    num_bytes = 0  # inflated bytes
    is_within = True  # until the end of the stretch is yielded
    raw = b""  # compressed bytes that are read, but not inflated
    inflater: zlib._Decompress | None = None  # None between members
    while True:
        raw = raw or file.read(_READ_BYTES)
        if inflater is None:
            is_end_of_file = not raw
            unpadded = raw.lstrip(b"\0")  # zeros may pad members
            position += len(raw) - len(unpadded)
            raw = unpadded
            if is_within and position > stretch.begin and position in stretch.ends:
                yield position
                is_within = False
            if is_end_of_file:
                return
            if not raw:
                continue
            inflater = zlib.decompressobj(_GZIP_WINDOW)
        elif not raw:
            raise EOFError("the compressed file is cut short")
        data = inflater.decompress(raw, BLOCK_BYTES)
        rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        position += len(raw) - len(rest)
        raw = rest
        num_bytes += len(data)
        check_expansion(num_bytes, position - stretch.begin)
        if inflater.eof:
            inflater = None
        if data:
            yield data
