"""Rows of fields as bytes, one row after the other, in three layouts.

    compact  | varint | bytes | varint | bytes | ...                   Redis
    COPY     | u16 | i32 | bytes | i32 | bytes | ...                   PostgreSQL, written
    record   | i32 | i32 type | i32 | bytes | i32 type | i32 | ...     PostgreSQL, read

A varint is the length of a field plus 1, or 0 for a null: 7 bits a byte, the lowest first. Rows of
PostgreSQL begin with the number of fields, and their integers are big-endian. An i32 before bytes
is their length, or -1 for a null. A record is the result of `record_send`.
"""

from neardup.kernels.compiled import I64, U8, kernel


@kernel
def size_rows(lengths, compact, sizes):
    """Set sizes (int64) to the number of bytes of each row.

    lengths : int64 (num_columns, num_rows), -1 for a null. compact : the layout is compact,
    otherwise COPY.
    """
    for row in range(len(sizes)):
        size = 0 if compact else 2
        for column in range(len(lengths)):
            length = lengths[column, row]
            if compact:
                rest = length + 1
                while rest >= 128:
                    rest >>= 7
                    size += 1
                size += 1
            else:
                size += 4
            size += max(length, 0)
        sizes[row] = size


@kernel
def pack_rows(data, starts, lengths, compact, packed):
    """Write rows to `packed`, uint8, of the size that `size_rows` counts, and in its layouts.

    data : uint8; field (column, row) is data[starts[column, row]:][:lengths[column, row]].
    """
    offset = 0
    for row in range(lengths.shape[1]):
        if not compact:
            packed[offset] = U8(len(lengths) >> 8)
            packed[offset + 1] = U8(len(lengths) & 255)
            offset += 2
        for column in range(len(lengths)):
            length = lengths[column, row]
            if compact:
                rest = length + 1
                while rest >= 128:
                    packed[offset] = U8(rest & 127 | 128)
                    rest >>= 7
                    offset += 1
                packed[offset] = U8(rest)
                offset += 1
            else:
                for shift in range(4):
                    packed[offset + shift] = U8(length >> 8 * (3 - shift) & 255)
                offset += 4
            start = starts[column, row]
            for i in range(length):
                packed[offset + i] = data[start + i]
            offset += max(length, 0)


@kernel
def _read_word(packed, offset):
    """Return the big-endian int32 at an offset."""
    value = I64(0)
    for i in range(4):
        value = value << 8 | I64(packed[offset + i])
    return value - (value >> 31 << 32)  # with the sign of bit 31


@kernel
def _read_length(packed, offset, compact):
    """Return the length of a field and the offset of its bytes; an offset beyond the end if the
    length is incomplete.
    """
    if not compact:  # the type (int32) comes first
        return (
            (_read_word(packed, offset + 4), offset + 8)
            if offset + 8 <= len(packed)
            else (I64(0), len(packed) + 1)
        )
    value = I64(0)
    for shift in range(0, 56, 7):  # a length has at most 8 bytes of 7 bits, more are damage
        if offset >= len(packed):
            break
        byte = I64(packed[offset])
        value |= (byte & 127) << shift
        offset += 1
        if byte < 128:
            return value - 1, offset
    return I64(0), len(packed) + 1


@kernel
def find_fields(packed, compact, starts, lengths):
    """Fill starts and lengths, int64 (num_columns, num_rows), with the fields of rows; -1 is the
    length of a null.

    compact : the layout is compact, otherwise rows are records.

    Return the first row that is damaged; the number of rows if more bytes follow; -1 if nothing is
    damaged.
    """
    offset = 0
    for row in range(lengths.shape[1]):
        if not compact:
            if offset + 4 > len(packed) or _read_word(packed, offset) != len(lengths):
                return row
            offset += 4
        for column in range(len(lengths)):
            length, offset = _read_length(packed, offset, compact)
            if length < -1 or offset + max(length, 0) > len(packed):
                return row
            starts[column, row] = offset
            lengths[column, row] = length
            offset += max(length, 0)
    return -1 if offset == len(packed) else lengths.shape[1]


@kernel
def gather(packed, starts, lengths, data):
    """Write the bytes of fields to `data`, one after the other.

    starts, lengths : int64 (num_rows,); a null, of length -1, has no bytes.
    """
    offset = 0
    for row in range(len(starts)):
        for i in range(lengths[row]):
            data[offset + i] = packed[starts[row] + i]
        offset += max(lengths[row], 0)
