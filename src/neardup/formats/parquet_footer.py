"""Join row groups that were encoded apart to one Parquet file: their bytes in turn, their metadata
in one footer.

Arrow encodes a file on one thread. A row group can be encoded on any thread, as a file of its own:
only positions and ordinals in its footer differ then from those that one writer writes. The footer
is a struct of Thrift's compact protocol, of which everything else is copied byte for byte.
"""

from __future__ import annotations

from typing import BinaryIO, NamedTuple

import pyarrow as pa

_MAGIC = b"PAR1"
_TAIL = 8  # the length of the footer, and the magic bytes

# Types of Thrift's compact protocol. A field that is true or false has no further bytes.
_BYTE, _I16, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 3, 4, 6, 7, 8, 9, 10, 12

# Fields by their numbers in parquet.thrift: of the file, its row groups, their column chunks and
# the metadata of those.
_NUM_ROWS, _GROUPS, _ORDINAL = (3,), (4,), (4, 7)
_POSITIONS = {(4, 5), (4, 1, 2), *((4, 1, 3, number) for number in (9, 10, 11, 14))}
_PAGE_INDEXES = {(4, 1, 4), (4, 1, 6)}


class _Field(NamedTuple):
    """A number or a list of a footer, or a row group; its bytes are those in [start, stop)."""

    path: tuple[int, ...]
    start: int
    stop: int


class JoinedFile:
    """A Parquet file of row groups that arrive encoded: `append` for each in order, then `close`.

    file : has the magic bytes of its beginning only.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._groups, self._num_rows, self._length = file, list[bytes](), 0, len(_MAGIC)

    def append(self, encoded: pa.Buffer) -> None:
        """Append the row groups of a Parquet file without page indexes; there may be none."""
        data = memoryview(encoded)
        end = len(data) - _TAIL - int.from_bytes(data[-_TAIL:-4], "little")
        self._footer, self._fields = bytes(data[end:-_TAIL]), list[_Field]()
        _walk(self._footer, 0, _STRUCT, (), self._fields)
        for field in self._fields:
            assert field.path not in _PAGE_INDEXES
            if field.path == _NUM_ROWS:
                self._num_rows += self._number(field)
            elif field.path == (*_GROUPS, 0):
                self._groups.append(self._moved(field))
        self._file.write(data[len(_MAGIC) : end])
        self._length += end - len(_MAGIC)

    def close(self, empty: pa.Buffer) -> None:
        """Write the footer. empty : an encoded file without row groups, which has all else of the
        footer.
        """
        self.append(empty)
        rows, groups = (
            next(field for field in self._fields if field.path == path)
            for path in (_NUM_ROWS, _GROUPS)
        )
        count = len(self._groups)
        head = (
            bytes([count << 4 | _STRUCT])
            if count < 15
            else bytes([0xF0 | _STRUCT]) + _varint(count)
        )
        before, between = self._footer[: rows.start], self._footer[rows.stop : groups.start]
        rest = self._footer[groups.stop :]
        footer = b"".join([before, _varint(2 * self._num_rows), between, head, *self._groups, rest])
        self._file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)

    def _number(self, field: _Field) -> int:
        return _read_varint(self._footer, field.start)[0] >> 1

    def _moved(self, group: _Field) -> bytes:
        """Return the metadata of a row group at its place in this file."""
        pieces, at = [], group.start
        for field in self._fields:
            if not group.start <= field.start < group.stop:
                continue
            number = self._number(field)
            if field.path == _ORDINAL:
                number = len(self._groups)
            elif field.path in _POSITIONS and number:  # 0 is no position
                number += self._length - len(_MAGIC)
            else:
                continue
            pieces += [self._footer[at : field.start], _varint(2 * number)]
            at = field.stop
        return b"".join([*pieces, self._footer[at : group.stop]])


def _walk(data: bytes, at: int, kind: int, path: tuple[int, ...], found: list[_Field]) -> int:
    """List the numbers and lists of a value, and the row groups; return the end of the value."""
    start = at
    if _I16 <= kind <= _I64:
        at = _read_varint(data, at)[1]
        found.append(_Field(path, start, at))
    elif kind == _BINARY:
        size, at = _read_varint(data, at)
        at += size
    elif kind in (_LIST, _SET):
        count, element, at = data[at] >> 4, data[at] & 15, at + 1
        if count == 15:
            count, at = _read_varint(data, at)
        for _ in range(count):
            begin = at
            at = _walk(data, at, element, path, found)
            if path == _GROUPS:
                found.append(_Field((*path, 0), begin, at))
        found.append(_Field(path, start, at))
    elif kind == _STRUCT:
        number = 0
        while head := data[at]:
            number, at = number + (head >> 4), at + 1
            if not head >> 4:
                zigzag, at = _read_varint(data, at)
                number = zigzag >> 1
            at = _walk(data, at, head & 15, (*path, number), found)
        at += 1
    else:
        at += {_BYTE: 1, _DOUBLE: 8}.get(kind, 0)
    return at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
