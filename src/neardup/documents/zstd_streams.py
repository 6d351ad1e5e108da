"""Open zstd files: with Arrow, or with Python's reader if a file needs more than Arrow has.

Arrow's reader takes windows of up to 128 MiB and no dictionary. Python's module `compression.zstd`,
which is the package backports.zstd before Python 3.14, takes both, at the same speed.

A zstd file is a sequence of frames (RFC 8878, section 3.1). Web archives of the IIPC draft begin
with a dictionary, and have a frame for each record:

    frame        magic 4 | descriptor 1 | window 0 or 1 | dictionary id 0 to 4 | content size 0 to 8
                 | blocks | checksum 0 or 4
    skippable    magic 4 | size 4 | bytes
    archive      skippable frame with the dictionary | frame | frame | ...
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Any, NamedTuple

import pyarrow as pa

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
DICTIONARY_FRAME_MAGIC = b"\x5d\x2a\x4d\x18"
_SKIPPABLE = 0x184D2A50  # the first of 16 numbers, up to 0x184D2A5F
_DICTIONARY_MAGIC = b"\x37\xa4\x30\xec"

MAX_DICTIONARY_BYTES = 1 << 23
"""The longest dictionary, compressed or not, that readers must support by the draft."""

MAX_WINDOW_BYTES = 1 << 31
"""The widest window that is read: of `zstd --long=31`. It fills as the file is read."""

_MAX_WINDOW_OF_ARROW = 1 << 27
_SKIPPABLE_HEAD_BYTES = 8
_HEAD_BYTES = 18  # the longest header of a frame
_READ_BYTES = 1 << 16
_MIB = 1 << 20
_MODULE = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


class CannotDecompress(OSError):
    """A zstd file cannot be opened as it is; the message has the next step."""


class _Frame(NamedTuple):
    """The demands of a frame on its reader."""

    window_bytes: int
    has_dictionary: bool


class _Demands(NamedTuple):
    """The demands of the first frame of a file, and the dictionary before it, if there is one."""

    window_bytes: int = 0
    dictionary: bytes | None = None

    @property
    def suit_arrow(self) -> bool:
        return self.dictionary is None and self.window_bytes <= _MAX_WINDOW_OF_ARROW


def open_zstd(file: pa.NativeFile) -> Any:
    """Return a stream of the bytes inside a zstd file.

    Raises
    ------
    CannotDecompress
        If its window or its dictionary is too large, the dictionary is elsewhere, or the package
        that can read it is not installed.
    """
    demands = _demands(file)
    file.seek(0)
    if demands.suit_arrow:
        return pa.CompressedInputStream(file, "zstd")
    return _python_stream(file, _python_zstd(_why_not_arrow(demands)), demands.dictionary)


def suits_arrow(file: pa.NativeFile) -> bool:
    """Return whether Arrow can read a zstd file, so that its frames can be read one by one."""
    try:
        return _demands(file).suit_arrow
    except CannotDecompress:
        return False


def _demands(file: pa.NativeFile) -> _Demands:
    """Return the demands of a file by its beginning; of a damaged one none, so that Arrow names the
    damage.
    """
    head = file.read_at(_SKIPPABLE_HEAD_BYTES, 0)
    dictionary = None
    position = 0
    if _is_skippable(head):
        size = int.from_bytes(head[4:], "little")
        position = _SKIPPABLE_HEAD_BYTES + size
        if head.startswith(DICTIONARY_FRAME_MAGIC):
            dictionary = _dictionary(file, size)
    frame = _parse_head(file.read_at(_HEAD_BYTES, position))
    if frame is None:
        return _Demands(dictionary=dictionary)
    if frame.has_dictionary and dictionary is None:
        raise CannotDecompress(
            "it was compressed with a dictionary that it does not contain. Decompress it first: "
            "zstd -d -D DICTIONARY"
        )
    if frame.window_bytes > MAX_WINDOW_BYTES:
        raise CannotDecompress(
            f"it takes {frame.window_bytes // _MIB:,} MiB to decompress, and at most "
            f"{MAX_WINDOW_BYTES // _MIB:,} MiB are used. Compress it with zstd --long=31 or less"
        )
    return _Demands(window_bytes=frame.window_bytes, dictionary=dictionary)


def _is_skippable(head: bytes) -> bool:
    is_complete = len(head) == _SKIPPABLE_HEAD_BYTES
    return is_complete and int.from_bytes(head[:4], "little") & ~0xF == _SKIPPABLE


def _parse_head(head: bytes) -> _Frame | None:
    """Return the demands of the frame with these first bytes; None without a frame."""
    if len(head) < 6 or not head.startswith(ZSTD_MAGIC):
        return None
    layout = _layout_of(head[4])
    if layout.window_bytes:
        exponent = head[5] >> 3
        mantissa = head[5] & 7
        window_bytes = (8 + mantissa) << (exponent + 7)  # (1 + mantissa / 8) << (exponent + 10)
    else:
        # A single segment is its own window.
        begin = 5 + layout.dictionary_bytes
        window_bytes = int.from_bytes(head[begin : begin + layout.size_bytes], "little")
    return _Frame(window_bytes=window_bytes, has_dictionary=layout.dictionary_bytes > 0)


class _Layout(NamedTuple):
    """The lengths of the fields of a frame header after its descriptor, and of the checksum at the
    end of the frame.
    """

    window_bytes: int
    dictionary_bytes: int
    size_bytes: int
    checksum_bytes: int


def _layout_of(descriptor: int) -> _Layout:
    # The bits of the descriptor, from the highest:
    #   content size 2 | single segment 1 | unused 1 | reserved 1 | checksum 1 | dictionary 2
    is_single_segment = bool(descriptor & 0x20)
    return _Layout(
        window_bytes=0 if is_single_segment else 1,
        dictionary_bytes=(0, 1, 2, 4)[descriptor & 3],
        size_bytes=(1 if is_single_segment else 0, 2, 4, 8)[descriptor >> 6],
        checksum_bytes=4 if descriptor & 4 else 0,
    )


def frame_end(file: pa.NativeFile, position: int, size: int) -> int | None:
    """Return the end of the zstd frame at a position; None without a frame.

    It follows from the headers of the frame and its blocks (RFC 8878, sections 3.1.1 and 3.1.2).
    """
    head = file.read_at(9, position)
    if _is_skippable(head[:_SKIPPABLE_HEAD_BYTES]):
        return position + _SKIPPABLE_HEAD_BYTES + int.from_bytes(head[4:8], "little")
    # No frame is shorter than nine bytes: magic 4, descriptor 1, header 1, block header 3.
    if not head.startswith(ZSTD_MAGIC) or len(head) < 9:
        return None
    layout = _layout_of(head[4])
    position += 5 + layout.window_bytes + layout.dictionary_bytes + layout.size_bytes
    is_last = False
    while not is_last and position < size:
        # A header of 24 bits, from the lowest: last block, 1; type, 2; size, 21.
        block = int.from_bytes(file.read_at(3, position), "little")
        is_last = bool(block & 1)
        is_run = block >> 1 & 3 == 1  # one byte, repeated
        position += 3 + (1 if is_run else block >> 3)
    return position + layout.checksum_bytes


def _why_not_arrow(demands: _Demands) -> str:
    """Return why Python's reader is needed, and the other way out, if there is one."""
    if demands.dictionary is not None:
        return "it begins with a zstd dictionary. Install"
    window_log = (demands.window_bytes - 1).bit_length()
    return (
        f"it was compressed by zstd --long={window_log}, which takes "
        f"{demands.window_bytes // _MIB:,} MiB to decompress. Decompress it first: zstd -d "
        f"--long={window_log}. Or install"
    )


def _python_zstd(why: str) -> Any:
    """Return Python's module of zstd. why : the reason for it, as the beginning of a message."""
    try:
        return import_module(_MODULE)
    except ImportError:
        advice = "the reader of Python: pip install 'neardup[zstd]'"
        raise CannotDecompress(f"{why} {advice}") from None


def _dictionary(file: pa.NativeFile, size: int) -> bytes | None:
    """Return the dictionary in the first frame, which may be compressed; None for other bytes."""
    if size > MAX_DICTIONARY_BYTES:
        raise _too_long_dictionary()
    data: bytes = file.read_at(size, _SKIPPABLE_HEAD_BYTES)
    if data.startswith(_DICTIONARY_MAGIC):
        return data
    if not data.startswith(ZSTD_MAGIC):
        return None
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            dictionary: bytes = stream.read(MAX_DICTIONARY_BYTES + 1)
    except (OSError, pa.ArrowException) as error:
        raise _damaged_dictionary(error) from error
    if len(dictionary) > MAX_DICTIONARY_BYTES:
        raise _too_long_dictionary()
    return dictionary


def _too_long_dictionary() -> CannotDecompress:
    return CannotDecompress(
        f"its zstd dictionary has more than {MAX_DICTIONARY_BYTES:,} bytes, the longest that is "
        "read. Decompress the file first"
    )


def _damaged_dictionary(error: Exception) -> CannotDecompress:
    return CannotDecompress(f"its zstd dictionary is damaged: {error}")


def _python_stream(file: pa.NativeFile, zstd: Any, dictionary: bytes | None) -> _PythonStream:
    """Return the bytes inside a zstd file, by Python's reader.

    zstd : the module. dictionary : None without one.
    """
    # Python's reader asks for 8 KiB at a time, each a request to a remote storage.
    buffered = io.BufferedReader(file, _READ_BYTES)
    window_log = MAX_WINDOW_BYTES.bit_length() - 1
    try:
        stream = zstd.ZstdFile(
            buffered,
            options={zstd.DecompressionParameter.window_log_max: window_log},
            zstd_dict=None if dictionary is None else zstd.ZstdDict(dictionary),
        )
    except (zstd.ZstdError, ValueError) as error:
        raise _damaged_dictionary(error) from error
    return _PythonStream(file, stream, zstd.ZstdError)


class _PythonStream(io.RawIOBase):
    """The bytes of a stream of Python's reader, over a file; its errors become OSError."""

    def __init__(self, file: pa.NativeFile, stream: Any, error: type[Exception]) -> None:
        self._file = file
        self._stream = stream
        self._error = error

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1) -> bytes:
        """Return some bytes; none at the end. Raises EOFError or OSError for damage."""
        try:
            return bytes(self._stream.read1(size))
        except self._error as error:
            raise OSError(str(error)) from error

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, or all, fewer at the end."""
        pieces = []
        while size and (piece := self.read1(size)):
            pieces.append(piece)
            size -= len(piece) if size > 0 else 0
        return b"".join(pieces)

    def close(self) -> None:
        self._stream.close()
        self._file.close()
        super().close()
