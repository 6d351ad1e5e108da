"""Join row groups that were encoded apart to one Parquet file: their bytes in turn, their metadata in one footer.

Arrow encodes a file on one thread. A row group can be encoded on any thread, as a file of its own; only the positions
in its footer then change. The footer is a struct of Thrift's compact protocol.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa

MAGIC = b"PAR1"
_TAIL = 8  # the length of the footer, and the magic bytes

# Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
_INTEGERS = (_I16, _I32, _I64)

# Numbers of fields in parquet.thrift.
_NUM_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_CHUNK_OFFSET, _CHUNK_METADATA, _OFFSET_INDEX, _COLUMN_INDEX = 2, 3, 4, 6
_POSITIONS = (9, 10, 11, 14)  # of the pages of data, of the index, of the dictionary, and of the Bloom filter

Struct = dict[int, tuple[int, Any]]
"""The type and the value of each field, by its number; a list is the type of its elements and the elements."""


class JoinedFile:
    """A Parquet file of row groups that arrive encoded: `append` for each in order, then `close`.

    Parameters
    ----------
    file : an empty file.
    empty : a Parquet file without rows, of which the footer is taken.
    """

    def __init__(self, file: BinaryIO, empty: pa.Buffer) -> None:
        self._file = file
        self._footer, _ = _split(empty)
        self._groups: list[Struct] = []
        self._file.write(MAGIC)
        self._length = len(MAGIC)

    def append(self, encoded: pa.Buffer) -> None:
        """Append the row groups of a Parquet file without page indexes."""
        footer, end = _split(encoded)
        for group in footer[_ROW_GROUPS][1][1]:
            _move(group, self._length - len(MAGIC))
            if _ORDINAL in group:
                group[_ORDINAL] = _I16, len(self._groups)
            self._groups.append(group)
        rows = self._footer[_NUM_ROWS][1] + footer[_NUM_ROWS][1]
        self._footer[_NUM_ROWS] = _I64, rows
        self._file.write(memoryview(encoded)[len(MAGIC) : end])
        self._length += end - len(MAGIC)

    def close(self) -> None:
        """Write the footer."""
        self._footer[_ROW_GROUPS] = _LIST, (_STRUCT, self._groups)
        out = bytearray()
        _write_struct(out, self._footer)
        self._file.write(out + len(out).to_bytes(4, "little") + MAGIC)


def _split(encoded: pa.Buffer) -> tuple[Struct, int]:
    """Return the footer of a Parquet file, and its position."""
    data = memoryview(encoded)
    end = len(data) - _TAIL - int.from_bytes(data[-_TAIL:-4], "little")
    footer: Struct = _Reader(bytes(data[end:-_TAIL])).struct()
    return footer, end


def _move(group: Struct, distance: int) -> None:
    """Add a distance to all positions of a row group."""
    _shift(group, (_GROUP_OFFSET,), distance)
    for chunk in group[_COLUMNS][1][1]:
        assert not chunk.keys() & {_OFFSET_INDEX, _COLUMN_INDEX}
        _shift(chunk, (_CHUNK_OFFSET,), distance)
        _shift(chunk[_CHUNK_METADATA][1], _POSITIONS, distance)


def _shift(fields: Struct, numbers: tuple[int, ...], distance: int) -> None:
    for number in numbers:
        if number in fields and fields[number][1]:  # 0 is no position
            fields[number] = _I64, fields[number][1] + distance


class _Reader:
    """Reads a struct of the compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else _unzigzag(self._varint())
            kind = head & 15
            fields[number] = kind, (None if kind in (_TRUE, _FALSE) else self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return _unzigzag(self._varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return head & 15, [self._value(head & 15) for _ in range(count)]
        width = self._varint() if kind == _BINARY else {_DOUBLE: 8, _TRUE: 1, _FALSE: 1, _BYTE: 1}[kind]
        self._at += width
        return self._data[self._at - width : self._at]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7


def _write_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for number in sorted(fields):
        kind, value = fields[number]
        if 0 < number - before < 16:
            out.append((number - before) << 4 | kind)
        else:
            out.append(kind)
            _write_varint(out, _zigzag(number))
        before = number
        if kind not in (_TRUE, _FALSE):
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_varint(out, _zigzag(value))
    elif kind == _STRUCT:
        _write_struct(out, value)
    elif kind in (_LIST, _SET):
        element, values = value
        out.append(min(len(values), 15) << 4 | element)
        if len(values) >= 15:
            _write_varint(out, len(values))
        for each in values:
            _write_value(out, element, each)
    else:
        if kind == _BINARY:
            _write_varint(out, len(value))
        out += value


def _write_varint(out: bytearray, value: int) -> None:
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _zigzag(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1


def _unzigzag(value: int) -> int:
    return value >> 1 if value & 1 == 0 else -(value >> 1) - 1
