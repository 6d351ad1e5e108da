"""Decompress a WARC file, and keep track of its gzip members.

Usually each record is a gzip member: then a damaged member loses one record only, and a record can
be copied byte for byte.

A *byte* is an offset in the file, a *position* an offset in the decompressed bytes; without gzip
the two are equal. The reader of a gzip file has these buffers:

    file          ──┬────────────────┬──────────────┬─────────>  not read yet
               _kept_byte        _raw_byte          │
                    │<───────────  _kept  ─────────>│  copy of the file, if records are copied
                                     │<───  _raw  ─>│  read, not inflated yet
                                     │
    decompressed  ──────┬────────────┬───────────────────────>
                    position   position + len(data)
                        │<── data ──>│  inflated, not taken yet
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from typing import IO, NamedTuple

import pyarrow as pa

from neardup.documents.lines import STREAM_ERRORS
from neardup.documents.sources import Stretch

RECORD_MAGIC = b"WARC/"

MAX_SKIPPED_BYTES = 1 << 30
"""A record that would inflate to more is not skipped by inflating it: the next gzip member is
searched for instead.
"""

_PIECE_BYTES = 1 << 16  # read at a time
_INFLATED_BYTES = 1 << 18  # inflated at a time, at most
_MAX_KEPT_BYTES = 32 << 20  # of the file, copied until their record ends
_MAX_MEMBERS = 4096  # begins of members that are remembered
_TRIAL_BYTES = 512  # inflated to see whether a member begins with a record
_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP = 31  # window bits of zlib: 15, and 16 for gzip's header
_BLANK = re.compile(rb"[\r\n]+")


class Damage(Exception):
    """The file cannot be read any further.

    byte : the offset in the file; reason : the fault; start : the offset of the damage in the
    decompressed bytes; is_final : whether nothing after it can be read.
    """

    def __init__(self, byte: int, reason: str, start: int, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.byte = byte
        self.reason = reason
        self.start = start
        self.is_final = is_final


class WarcBytes:
    """A stream with lookahead: `data` begins at the end of the last `take` or `skip`.

    stream : the file from the beginning of the stretch on.
    """

    max_skipped_bytes: int | None = None

    def __init__(self, stream: IO[bytes] | pa.NativeFile, stretch: Stretch | None = None) -> None:
        self._stream = stream
        self._stretch = stretch
        self.data = bytearray()
        self.begin = 0 if stretch is None else stretch.begin
        self.position = self.begin

    @property
    def byte(self) -> int:
        """Offset of `data` in the file; inside a gzip member, the offset of the member."""
        return self.position

    @property
    def starts_here(self) -> bool:
        """True if a new part of the file, such as a gzip member, begins with `data`."""
        return True

    def ends_stretch(self) -> bool:
        """Return whether the stretch ends before `data`, and note it."""
        stretch = self._stretch
        if stretch is None:
            return False
        byte = self.byte
        is_end = byte != self.begin and byte in stretch.ends and self.starts_here
        if is_end:
            stretch.reached = byte
        return is_end

    def more(self) -> bool:
        """Add to `data`; return False at the end of the file. Raises Damage."""
        piece = self._read()
        self.data += piece
        return bool(piece)

    def _read(self) -> bytes:
        try:
            return bytes(self._stream.read(_PIECE_BYTES))
        except STREAM_ERRORS as error:
            reason = f"the file cannot be read: {error}"
            end = self.position + len(self.data)
            raise Damage(self.byte, reason, end, is_final=True) from error

    def skip(self, size: int) -> int:
        """Skip up to `size` bytes, fewer at the end of the file; return their number."""
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
        # Without the view, the bytes would be copied twice.
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
        """Note that a WARC record begins here."""

    def member(self) -> bytes | None:
        """Return the gzip member with exactly the bytes since `begin_record`, None if there is
        none.
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
        """Skip `data` up to a line that may begin a record; return False if it has none."""
        index = self.data.find(b"\n" + RECORD_MAGIC)
        if index >= 0:
            self.skip(index + 1)
            return True
        # The first characters of such a line may be the last bytes.
        self.skip(max(0, len(self.data) - len(RECORD_MAGIC)))
        return False


class _Member(NamedTuple):
    """The beginning of a gzip member: in the decompressed bytes, and in the file."""

    position: int
    byte: int


class GzipBytes(WarcBytes):
    """The decompressed bytes of a WARC file in gzip, with lookahead.

    keep : whether `member` will be called.
    """

    max_skipped_bytes = MAX_SKIPPED_BYTES

    def __init__(
        self, stream: IO[bytes] | pa.NativeFile, stretch: Stretch | None = None, *, keep: bool
    ) -> None:
        super().__init__(stream, stretch)
        self._keep = keep
        self.position = 0
        self._kept = bytearray()
        self._kept_byte = self.begin
        self._raw = b""
        self._raw_byte = self.begin
        self._inflater: zlib._Decompress | None = None  # None between members
        self._member = _Member(position=0, byte=self.begin)  # the last to be inflated
        self._members = deque([self._member])  # from the member of `data[0]` on
        self._record_begin = 0

    @property
    def byte(self) -> int:
        """Offset in the file of the gzip member that contains the first byte of `data`.

        Reading it forgets the members before `data`. So nothing may read it between `begin_record`
        and `member`, except at the beginning of the record; `starts_here` needs it read here.
        """
        members = self._members
        while len(members) > 1 and members[1].position <= self.position:
            members.popleft()
        return members[0].byte

    @property
    def starts_here(self) -> bool:
        """True if a gzip member begins with `data`."""
        return self._members[0].position == self.position

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
        """Read the next piece of the file, and keep a copy if records are copied."""
        piece = self._read()
        if self._keep:
            self._kept += piece
            self._forget_kept(len(self._kept) - _MAX_KEPT_BYTES)
        return piece

    def _forget_kept(self, size: int) -> None:
        if size > 0:
            del self._kept[:size]
            self._kept_byte += size

    def _begin_member(self) -> bool:
        """Prepare to inflate the next member; return False at the end of the file."""
        self._skip_zeros()
        self._note_member()
        if not self._raw:
            return False
        if not self._raw.startswith(_GZIP_MAGIC):
            reason = "no gzip member begins here"
            raise Damage(self._raw_byte, reason, self.position + len(self.data))
        self._inflater = zlib.decompressobj(_GZIP)
        return True

    def _skip_zeros(self) -> None:
        """Skip zeros, which may pad members, and read enough for the magic of a member."""
        while True:
            bare = self._raw.lstrip(b"\0")
            self._raw_byte += len(self._raw) - len(bare)
            piece = self._pull() if len(bare) < len(_GZIP_MAGIC) else b""
            self._raw = bare + piece
            if not piece:
                return

    def _note_member(self) -> None:
        """Note that a member begins or the file ends here; of thousands of small members, only the
        first.
        """
        position = self.position + len(self.data)
        self._member = _Member(position, self._raw_byte)
        # An empty member, or zeros, gave no bytes: the next member replaces it.
        if self._members[-1].position == position:
            self._members.pop()
        if len(self._members) < _MAX_MEMBERS:
            self._members.append(self._member)

    def _inflate(self) -> bytes:
        """Inflate some of `_raw`; an empty result asks for more of the file."""
        inflater = self._inflater
        assert inflater is not None
        member = self._member
        try:
            data = inflater.decompress(self._raw, _INFLATED_BYTES)
        except zlib.error as error:
            self._inflater = None
            reason = f"the gzip member is damaged: {error}"
            raise Damage(member.byte, reason, member.position) from error
        # `more` has read before, so no bytes here mean the end of the file.
        if not data and not self._raw and not inflater.eof:
            self._inflater = None
            reason = "the file is cut short inside this gzip member"
            raise Damage(member.byte, reason, member.position, is_final=True)
        rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        self._raw_byte += len(self._raw) - len(rest)
        self._raw = rest
        if inflater.eof:
            self._inflater = None
        return data

    def begin_record(self) -> None:
        """Note that a record begins here, and forget the kept members before it."""
        self._forget_kept(min(self.byte - self._kept_byte, len(self._kept)))
        self._record_begin = self.position

    def member(self) -> bytes | None:
        """Return the gzip member, or members, with exactly the bytes since `begin_record`."""
        first = self._members[0]
        # `_note_member` notes the end of the file too, as the end of its last member.
        ends = (member.byte for member in self._members if member.position == self.position)
        end = next(ends, None)
        if first.position != self._record_begin or end is None or first.byte < self._kept_byte:
            return None
        kept = memoryview(self._kept)
        return bytes(kept[first.byte - self._kept_byte : end - self._kept_byte])

    def resume(self) -> bool:
        """Skip to a record in the bytes already inflated; if there is none, to a member that begins
        with a record.
        """
        if self._find_record():
            return True
        self.skip(len(self.data))
        self._inflater = None
        index = 1 if self._raw_byte == self._member.byte else 0  # not the damaged member again
        while True:
            index = self._raw.find(_GZIP_MAGIC, index)
            if index < 0 or len(self._raw) - index < _TRIAL_BYTES:
                # The magic, or the member after it, may continue in the next piece.
                passed = max(0, len(self._raw) - len(_GZIP_MAGIC) + 1) if index < 0 else index
                piece = self._pull()
                self._skip_raw(passed)
                self._raw += piece
                index = 0
                if piece:
                    continue
                if not self._raw.startswith(_GZIP_MAGIC):
                    return False
            if begins_with_record(self._raw[index : index + _TRIAL_BYTES]):
                self._skip_raw(index)
                return True
            index += 1

    def _skip_raw(self, size: int) -> None:
        self._raw = self._raw[size:]
        self._raw_byte += size


def begins_with_record(raw: bytes) -> bool:
    """Return whether these bytes begin a gzip member that begins with a WARC record."""
    try:
        return zlib.decompressobj(_GZIP).decompress(raw, len(RECORD_MAGIC)) == RECORD_MAGIC
    except zlib.error:
        return False
