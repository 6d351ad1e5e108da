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

# Types of Thrift's compact protocol. True and false have no further bytes as fields of a struct;
# as elements of a list they have one.
_BOOLEANS = (1, 2)  # true, false
_BYTE = 3
_I16 = 4
_I64 = 6
_DOUBLE = 7
_BINARY = 8
_LIST = 9
_SET = 10
_STRUCT = 12
_LONG_LIST = 15  # in the place of a count: the count follows as a varint
_MAX_VARINT_BITS = 70  # ten bytes, enough for 64 bits

# Paths of field numbers in parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
_NUM_ROWS = (3,)
_GROUPS = (4,)
_GROUP = (4, 0)  # an element of the list of row groups; numbers of fields begin at 1
_ORDINAL = (4, 7)
_POSITIONS = {(4, 5), (4, 1, 2), *((4, 1, 3, number) for number in (9, 10, 11, 14))}
_PAGE_INDEXES = {(4, 1, 4), (4, 1, 6)}
# The key of an encrypted column: RowGroup.columns, ColumnChunk.crypto_metadata,
# EncryptionWithColumnKey, its path in the schema.
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
    if size <= read_bytes:
        data = last_bytes[read_bytes - size : -_TAIL]
    else:
        data = file.read_at(size, end - size)
    # To read a footer field by field is slow, and few footers have these two bytes.
    if not _MAY_BE_COLUMN_KEY.search(data):
        return False
    try:
        footer = FooterReader(data).read()
    except (IndexError, ValueError, RecursionError) as error:
        raise OSError("its footer is damaged") from error
    return any(field.path == _COLUMN_KEY for field in footer.fields)


class JoinedFile:
    """A Parquet file of row groups that arrive encoded: `append` for each in order, then `close`.

    file : contains the first magic bytes only.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._groups: list[bytes] = []  # metadata of the row groups so far
        self._num_rows = 0
        self._length = len(_MAGIC)

    def append(self, encoded: pa.Buffer) -> Footer:
        """Append the row groups, if any, of a Parquet file without page indexes; return its
        footer.
        """
        data = memoryview(encoded)
        end = len(data) - _TAIL - int.from_bytes(data[-_TAIL:-4], "little")
        footer = FooterReader(bytes(data[end:-_TAIL])).read()
        for field in footer.fields:
            assert field.path not in _PAGE_INDEXES
            if field.path == _NUM_ROWS:
                self._num_rows += footer.number(field)
            elif field.path == _GROUP:
                self._groups.append(self._moved(footer, field))
        self._file.write(data[len(_MAGIC) : end])
        self._length += end - len(_MAGIC)
        return footer

    def close(self, frame: pa.Buffer) -> None:
        """Write the footer.

        frame : an encoded file without row groups. Its footer has all other fields.
        """
        footer = self.append(frame)
        num_rows = footer.field(_NUM_ROWS)
        groups = footer.field(_GROUPS)
        data = b"".join(
            [
                footer.data[: num_rows.start],
                _varint(2 * self._num_rows),
                footer.data[num_rows.stop : groups.start],
                _list_head(len(self._groups)),
                *self._groups,
                footer.data[groups.stop :],
            ]
        )
        self._file.write(data + len(data).to_bytes(4, "little") + _MAGIC)

    def _moved(self, footer: Footer, group: Field) -> bytes:
        """Return the metadata of a row group with its positions and its ordinal in this file."""
        pieces = []
        copied_to = group.start
        for field in footer.fields:
            if not group.start <= field.start < group.stop:
                continue
            if field.path == _ORDINAL:
                number = len(self._groups)
            elif field.path in _POSITIONS and footer.number(field):  # 0 is no position
                # Positions count from the first byte of a file, with its magic bytes.
                number = footer.number(field) + self._length - len(_MAGIC)
            else:
                continue
            # The new number may have more bytes, so the rest is copied around it. Numbers have no
            # fields inside: they come by rising position.
            pieces.append(footer.data[copied_to : field.start])
            pieces.append(_varint(2 * number))
            copied_to = field.stop
        pieces.append(footer.data[copied_to : group.stop])
        return b"".join(pieces)


class Field(NamedTuple):
    """A number, a list or a row group of a footer: the bytes in [start, stop)."""

    path: tuple[int, ...]
    start: int
    stop: int


class Footer(NamedTuple):
    """A footer, and its numbers, lists and row groups, inner fields before the outer ones."""

    data: bytes
    fields: list[Field]

    def field(self, path: tuple[int, ...]) -> Field:
        """Return the first field of a path."""
        return next(field for field in self.fields if field.path == path)

    def number(self, field: Field) -> int:
        """Return the number of a field. Requires: it is not negative."""
        zigzag, _ = _read_varint(self.data, field.start)
        return zigzag >> 1


class FooterReader:
    """Read a footer from its first byte to its last, in time linear in its length.

    Each value except true and false in a struct advances by a byte or more, and never beyond the
    end: counts and lengths of a crafted footer cannot keep the reader busy.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._fields: list[Field] = []

    def read(self) -> Footer:
        """Return the footer. Raises IndexError, ValueError or RecursionError if it is damaged."""
        self._read_struct(())
        return Footer(self._data, self._fields)

    def _read_value(self, kind: int, path: tuple[int, ...]) -> None:
        start = self._at
        if _I16 <= kind <= _I64:
            self._read_varint()
            self._fields.append(Field(path, start, self._at))
        elif kind == _BINARY:
            self._skip(self._read_varint())
        elif kind in (_LIST, _SET):
            self._read_list(path)
            self._fields.append(Field(path, start, self._at))
        elif kind == _STRUCT:
            self._read_struct(path)
        elif kind == _BYTE:
            self._skip(1)
        elif kind == _DOUBLE:
            self._skip(8)
        else:
            raise ValueError(f"type {kind} does not occur in a footer")

    def _read_list(self, path: tuple[int, ...]) -> None:
        # Four bits for the count, then four for the type of the elements.
        head = self._data[self._at]
        self._at += 1
        count = head >> 4
        kind = head & 15
        if count == _LONG_LIST:
            count = self._read_varint()
        if kind in _BOOLEANS:
            kind = _BYTE
        for _ in range(count):
            start = self._at
            self._read_value(kind, path)
            if path == _GROUPS:
                self._fields.append(Field(_GROUP, start, self._at))

    def _read_struct(self, path: tuple[int, ...]) -> None:
        number = 0
        # A zero ends a struct.
        while head := self._data[self._at]:
            self._at += 1
            step = head >> 4  # from the number of the field before
            # In the long form, the number follows in zigzag.
            number = number + step if step else self._read_varint() >> 1
            kind = head & 15
            if kind not in _BOOLEANS:
                self._read_value(kind, (*path, number))
        self._at += 1

    def _skip(self, num_bytes: int) -> None:
        self._at += num_bytes
        if self._at > len(self._data):
            raise IndexError(self._at)

    def _read_varint(self) -> int:
        value, self._at = _read_varint(self._data, self._at)
        return value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the lowest first, and the offset after it."""
    value = 0
    for shift in range(0, _MAX_VARINT_BITS, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number has more than 64 bits")


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
