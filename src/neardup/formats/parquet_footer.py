"""Footers of Parquet files: find encrypted columns, and join files that were encoded apart to one
file, their row groups one after the other, and one footer.

Arrow encodes a file on one thread. With this module, each row group is encoded as a file of its own
on any thread: only positions and ordinals in its footer differ from the footer of a single writer.
The footer is a struct of Thrift's compact protocol; all other bytes are copied.

    file of one row group          PAR1 | pages | footer | length of the footer | PAR1
    joined file                    PAR1 | pages | pages | ... | footer | length | PAR1
"""

from __future__ import annotations

import re
from typing import BinaryIO, NamedTuple

import pyarrow as pa

_MAGIC = b"PAR1"
_TAIL = 8  # bytes: the length of the footer, and the magic bytes
_READ_BYTES = 1 << 16

# Types of Thrift's compact protocol. A field that is true or false has no further bytes.
_BYTE = 3
_I16 = 4
_I64 = 6
_DOUBLE = 7
_BINARY = 8
_LIST = 9
_SET = 10
_STRUCT = 12
_LONG_LIST = 15  # in the place of a count: the count follows as a varint

# Paths of field numbers in parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
_NUM_ROWS = (3,)
_GROUPS = (4,)
_GROUP = (4, 0)  # our own: an element of the list of row groups
_ORDINAL = (4, 7)
_POSITIONS = {(4, 5), (4, 1, 2), *((4, 1, 3, number) for number in (9, 10, 11, 14))}
_PAGE_INDEXES = {(4, 1, 4), (4, 1, 6)}
# The key of an encrypted column: ColumnMetaData, EncryptionWithColumnKey, its path in the schema.
_COLUMN_KEY = (4, 1, 8, 2, 1)
_MAY_BE_COLUMN_KEY = re.compile(rb"\x2c\x19")  # a struct, field 2; in it a list, field 1


def has_encrypted_columns(file: pa.NativeFile) -> bool:
    """Return whether columns of a file have keys of their own. Raises OSError for a damaged footer.

    Arrow (26.0) ends the process when it is asked for the metadata of such a column.
    """
    end = file.size() - _TAIL
    read_bytes = min(end, _READ_BYTES)
    # Most footers are read with their length: each read is a request to a remote storage.
    last_bytes = file.read_at(read_bytes + _TAIL, end - read_bytes)
    size = int.from_bytes(last_bytes[-_TAIL:-4], "little")
    fits = size <= read_bytes
    footer = last_bytes[read_bytes - size : -_TAIL] if fits else file.read_at(size, end - size)
    # To read a footer field by field is slow, and few footers have these two bytes.
    if not _MAY_BE_COLUMN_KEY.search(footer):
        return False
    try:
        fields = _FooterReader(footer).read()
    except (IndexError, RecursionError) as error:
        raise OSError("its footer is damaged") from error
    return any(field.path == _COLUMN_KEY for field in fields)


class _Field(NamedTuple):
    """A number, a list or a row group of a footer: the bytes in [start, stop)."""

    path: tuple[int, ...]
    start: int
    stop: int


class JoinedFile:
    """A Parquet file of row groups that arrive encoded: `append` for each in order, then `close`.

    file : contains the first magic bytes only.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._groups: list[bytes] = []  # metadata of the row groups so far
        self._num_rows = 0
        self._length = len(_MAGIC)

    def append(self, encoded: pa.Buffer) -> None:
        """Append the row groups, if any, of a Parquet file without page indexes."""
        data = memoryview(encoded)
        end = len(data) - _TAIL - int.from_bytes(data[-_TAIL:-4], "little")
        self._footer = bytes(data[end:-_TAIL])
        self._fields = _FooterReader(self._footer).read()
        for field in self._fields:
            assert field.path not in _PAGE_INDEXES
            if field.path == _NUM_ROWS:
                self._num_rows += self._number(field)
            elif field.path == _GROUP:
                self._groups.append(self._moved(field))
        self._file.write(data[len(_MAGIC) : end])
        self._length += end - len(_MAGIC)

    def close(self, empty: pa.Buffer) -> None:
        """Write the footer. empty : an encoded file without row groups, with all other fields of
        the footer.
        """
        # Its footer is the frame, in which the number of rows and the row groups are replaced.
        self.append(empty)
        num_rows = self._field(_NUM_ROWS)
        groups = self._field(_GROUPS)
        footer = b"".join(
            [
                self._footer[: num_rows.start],
                _varint(2 * self._num_rows),
                self._footer[num_rows.stop : groups.start],
                _list_head(len(self._groups)),
                *self._groups,
                self._footer[groups.stop :],
            ]
        )
        self._file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)

    def _field(self, path: tuple[int, ...]) -> _Field:
        return next(field for field in self._fields if field.path == path)

    def _number(self, field: _Field) -> int:
        number, _ = _read_varint(self._footer, field.start)
        return number >> 1  # zigzag: none is negative

    def _moved(self, group: _Field) -> bytes:
        """Return the metadata of a row group with its positions and its ordinal in this file."""
        pieces = []
        copied_to = group.start
        for field in self._fields:
            if not group.start <= field.start < group.stop:
                continue
            if field.path == _ORDINAL:
                number = len(self._groups)
            elif field.path in _POSITIONS and self._number(field):  # 0 is no position
                # Positions count from the first byte of a file, with its magic bytes.
                number = self._number(field) + self._length - len(_MAGIC)
            else:
                continue
            # The new number may have more bytes, so the rest is copied around it. Numbers have no
            # fields inside: they come by rising position.
            pieces.append(self._footer[copied_to : field.start])
            pieces.append(_varint(2 * number))
            copied_to = field.stop
        pieces.append(self._footer[copied_to : group.stop])
        return b"".join(pieces)


class _FooterReader:
    """Read a footer from its first byte to its last, and list its fields."""

    def __init__(self, footer: bytes) -> None:
        self._data = footer
        self._at = 0
        self._fields: list[_Field] = []

    def read(self) -> list[_Field]:
        """Return the numbers, lists and row groups, inner fields before the outer ones."""
        self._read_struct(())
        return self._fields

    def _read_value(self, kind: int, path: tuple[int, ...]) -> None:
        start = self._at
        if _I16 <= kind <= _I64:
            self._read_varint()
            self._fields.append(_Field(path, start, self._at))
        elif kind == _BINARY:
            size = self._read_varint()
            self._at += size
        elif kind in (_LIST, _SET):
            self._read_list(path)
            self._fields.append(_Field(path, start, self._at))
        elif kind == _STRUCT:
            self._read_struct(path)
        elif kind == _BYTE:
            self._at += 1
        elif kind == _DOUBLE:
            self._at += 8

    def _read_list(self, path: tuple[int, ...]) -> None:
        # Four bits for the count, then four for the type of the elements.
        head = self._data[self._at]
        self._at += 1
        count = head >> 4
        if count == _LONG_LIST:
            count = self._read_varint()
        for _ in range(count):
            # Lists of booleans, with a byte for each, do not occur in a footer.
            start = self._at
            self._read_value(head & 15, path)
            if path == _GROUPS:
                self._fields.append(_Field(_GROUP, start, self._at))

    def _read_struct(self, path: tuple[int, ...]) -> None:
        number = 0
        # A zero ends a struct.
        while head := self._data[self._at]:
            self._at += 1
            step = head >> 4  # from the number of the field before
            # In the long form, the number follows in zigzag.
            number = number + step if step else self._read_varint() >> 1
            self._read_value(head & 15, (*path, number))
        self._at += 1

    def _read_varint(self) -> int:
        value, self._at = _read_varint(self._data, self._at)
        return value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the lowest first, and the offset after it."""
    value = 0
    shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _list_head(num_structs: int) -> bytes:
    if num_structs < _LONG_LIST:
        return bytes([num_structs << 4 | _STRUCT])
    return bytes([_LONG_LIST << 4 | _STRUCT]) + _varint(num_structs)
