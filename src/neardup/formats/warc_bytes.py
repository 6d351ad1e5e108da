"""Decompress a WARC file, and keep track of its gzip members.

Usually each record has a gzip member to itself: then a damaged member loses that record only, and a
record can be copied byte for byte.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from typing import IO

import pyarrow as pa

from neardup.documents.lines import STREAM_ERRORS
from neardup.documents.sources import Stretch

RECORD_MAGIC = b"WARC/"

MAX_SKIPPED_BYTES = 1 << 30
"""A record that would inflate to more is not inflated to be skipped: the next gzip member is
searched for instead.
"""

_PIECE_BYTES = 1 << 16
_INFLATED_BYTES = 1 << 18
_KEPT_BYTES = 32 << 20
_MAX_MEMBERS = 4096
_TRIAL_BYTES = 512
_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP = 31
_BLANK = re.compile(rb"[\r\n]+")


class Damage(Exception):
    """The file cannot be read any further.

    byte : the position in the file; reason : the fault; start : the position in the decompressed
    bytes where the damage begins; is_final : whether nothing after it can be read.
    """

    def __init__(self, byte: int, reason: str, start: int, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.byte, self.reason, self.start, self.is_final = byte, reason, start, is_final


class WarcBytes:
    """A stream with lookahead: `data` begins where the last `take` or `skip` ended.

    stream : begins where the stretch does.
    """

    max_skipped_bytes: int | None = None

    def __init__(self, stream: IO[bytes] | pa.NativeFile, stretch: Stretch | None = None) -> None:
        self._stream, self._stretch = stream, stretch
        self.data = bytearray()
        self.begin = self.position = 0 if stretch is None else stretch.begin

    @property
    def byte(self) -> int:
        """The position of `data` in the file; inside a gzip member, that of the member."""
        return self.position

    @property
    def starts_here(self) -> bool:
        """Whether a new part of the file, such as a gzip member, begins with `data`."""
        return True

    def ends_stretch(self) -> bool:
        """Return whether the stretch ends before `data`, and note it."""
        stretch, byte = self._stretch, self.byte
        if (
            stretch is None
            or byte == self.begin
            or byte not in stretch.ends
            or not self.starts_here
        ):
            return False
        stretch.reached = byte
        return True

    def more(self) -> bool:
        """Add to `data`; return False at the end of the file. Raises Damage."""
        piece = self._read()
        self.data += piece
        return bool(piece)

    def _read(self) -> bytes:
        try:
            return bytes(self._stream.read(_PIECE_BYTES))
        except STREAM_ERRORS as error:
            end = self.position + len(self.data)
            raise Damage(
                self.byte, f"the file cannot be read: {error}", end, is_final=True
            ) from error

    def skip(self, size: int) -> int:
        """Skip up to `size` bytes; return how many there were."""
        left = size
        while True:
            step = min(left, len(self.data))
            del self.data[:step]
            self.position += step
            left -= step
            if not left or not self.more():
                return size - left

    def take(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end of the file."""
        while len(self.data) < size and self.more():
            pass
        taken = bytes(memoryview(self.data)[:size])
        self.skip(len(taken))
        return taken

    def skip_blank(self, limit: int) -> None:
        """Skip line ends, up to about `limit` bytes."""
        passed = 0
        while passed < limit and (self.data or self.more()):
            blank = _BLANK.match(self.data)
            if blank is None:
                return
            passed += self.skip(blank.end())

    def begin_record(self) -> None:
        """Record that a WARC record begins here."""

    def member(self) -> bytes | None:
        """Return the gzip member that contains exactly the bytes since `begin_record`; None if
        there is none.
        """
        return None

    def resume(self) -> bool:
        """Skip to the next possible beginning of a record; return False if there is none. Raises
        Damage.
        """
        found = self._find_record()
        while not found and self.more():
            found = self._find_record()
        return found

    def _find_record(self) -> bool:
        """Skip `data` up to a line that may begin a record, else to its end, except for the start
        of such a line.
        """
        index = self.data.find(b"\n" + RECORD_MAGIC)
        self.skip(index + 1 if index >= 0 else max(0, len(self.data) - len(RECORD_MAGIC)))
        return index >= 0


class GzipBytes(WarcBytes):
    """The bytes of a WARC file that is gzip.

    keep : whether `member` will be called.
    """

    max_skipped_bytes = MAX_SKIPPED_BYTES

    def __init__(
        self, stream: IO[bytes] | pa.NativeFile, stretch: Stretch | None = None, *, keep: bool
    ) -> None:
        super().__init__(stream, stretch)
        self._keep = keep
        self.position = 0
        self._kept, self._kept_byte = bytearray(), self.begin
        # The bytes not inflated yet, and their position in the file; where members begin,
        # decompressed and in the file.
        self._raw, self._raw_byte = b"", self.begin
        self._inflater: zlib._Decompress | None = None
        self._members: deque[tuple[int, int]] = deque([(0, self.begin)])
        self._member = (0, self.begin)
        self._record_begin = 0

    @property
    def byte(self) -> int:
        """The position in the file of the gzip member that contains the first byte of `data`."""
        while len(self._members) > 1 and self._members[1][0] <= self.position:
            self._members.popleft()
        return self._members[0][1]

    @property
    def starts_here(self) -> bool:
        """Whether a gzip member begins with `data`."""
        return self._members[0][0] == self.position

    def more(self) -> bool:
        """Inflate some more; return False at the end of the file. Raises Damage."""
        while True:
            if not self._raw:
                self._raw = self._pull()
            if self._inflater is None and not self._begin_member():
                return False
            data = self._inflate()
            if data:
                self.data += data
                return True

    def _pull(self) -> bytes:
        piece = self._read()
        if self._keep:
            self._kept += piece
            surplus = len(self._kept) - _KEPT_BYTES
            if surplus > 0:
                del self._kept[:surplus]
                self._kept_byte += surplus
        return piece

    def _begin_member(self) -> bool:
        """Prepare to inflate the next member; return False if there is none. There may be zeros
        between members.
        """
        while True:
            bare = self._raw.lstrip(b"\0")
            self._raw_byte += len(self._raw) - len(bare)
            piece = self._pull() if len(bare) < len(_GZIP_MAGIC) else b""
            self._raw = bare + piece
            if not piece:
                break
        self._note_member()
        if not self._raw:
            return False
        if not self._raw.startswith(_GZIP_MAGIC):
            reason = "no gzip member begins here"
            raise Damage(self._raw_byte, reason, self.position + len(self.data))
        self._inflater = zlib.decompressobj(_GZIP)
        return True

    def _note_member(self) -> None:
        """Note that a member begins or the file ends here; of very many small members, only the
        first.
        """
        self._member = (self.position + len(self.data), self._raw_byte)
        if self._members[-1][0] == self._member[0]:
            self._members.pop()
        if len(self._members) < _MAX_MEMBERS:
            self._members.append(self._member)

    def _inflate(self) -> bytes:
        inflater = self._inflater
        assert inflater is not None
        try:
            data = inflater.decompress(self._raw, _INFLATED_BYTES)
        except zlib.error as error:
            self._inflater = None
            begin, byte = self._member
            raise Damage(byte, f"the gzip member is damaged: {error}", begin) from error
        if not data and not self._raw and not inflater.eof:
            self._inflater = None
            begin, byte = self._member
            raise Damage(
                byte, "the file is cut short inside this gzip member", begin, is_final=True
            )
        rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        self._raw_byte += len(self._raw) - len(rest)
        self._raw = rest
        if inflater.eof:
            self._inflater = None
        return data

    def begin_record(self) -> None:
        """Note that a record begins here, and let go of the members before."""
        surplus = min(self.byte - self._kept_byte, len(self._kept))
        if surplus > 0:
            del self._kept[:surplus]
            self._kept_byte += surplus
        self._record_begin = self.position

    def member(self) -> bytes | None:
        """Return the gzip member, or members, that contain exactly the bytes since
        `begin_record`.
        """
        begin, byte = self._members[0]
        end = next((end for position, end in self._members if position == self.position), None)
        if begin != self._record_begin or end is None or byte < self._kept_byte:
            return None
        return bytes(memoryview(self._kept)[byte - self._kept_byte : end - self._kept_byte])

    def resume(self) -> bool:
        """Skip to a record in the bytes inflated already, else to a member that begins with one."""
        if self._find_record():
            return True
        self.skip(len(self.data))
        self._inflater = None
        index = 1 if self._raw_byte == self._member[1] else 0
        while True:
            index = self._raw.find(_GZIP_MAGIC, index)
            if index < 0 or len(self._raw) - index < _TRIAL_BYTES:
                # The magic, or the member after it, may continue in the next piece.
                kept = max(0, len(self._raw) - len(_GZIP_MAGIC) + 1) if index < 0 else index
                piece = self._pull()
                self._raw_byte += kept
                self._raw, index = self._raw[kept:] + piece, 0
                if not piece and not self._raw.startswith(_GZIP_MAGIC):
                    return False
                if piece:
                    continue
            if begins_with_record(self._raw[index : index + _TRIAL_BYTES]):
                self._raw_byte += index
                self._raw = self._raw[index:]
                return True
            index += 1


def begins_with_record(raw: bytes) -> bool:
    """Return whether a gzip member begins with these bytes, and a WARC record with it."""
    try:
        return zlib.decompressobj(_GZIP).decompress(raw, len(RECORD_MAGIC)) == RECORD_MAGIC
    except zlib.error:
        return False
