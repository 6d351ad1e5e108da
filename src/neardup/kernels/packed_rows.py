"""Rows of fields as bytes, one row after the other, in the layouts of two servers."""

from neardup.kernels.compiled import I64, U8, kernel


@kernel
def size_rows(lengths, compact, sizes):
    """Set sizes (int64) to the bytes of each row. lengths : int64 (num_columns, num_rows); -1 for a
    null.

    compact : a field is its length + 1, as a varint (7 bits a byte, the lowest first), and its
    bytes; 0 for a null. Otherwise a row is that of PostgreSQL's COPY: uint16, the number of fields,
    then for each field int32, its length or -1, and its bytes; big-endian.
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
    """Write rows to packed, uint8, of the size that `size_rows` counts.

    data : uint8; field (column, row) is data[starts[column, row]:][:lengths[column, row]].
    """
    at = 0
    for row in range(lengths.shape[1]):
        if not compact:
            packed[at] = U8(len(lengths) >> 8)
            packed[at + 1] = U8(len(lengths) & 255)
            at += 2
        for column in range(len(lengths)):
            length = lengths[column, row]
            if compact:
                rest = length + 1
                while rest >= 128:
                    packed[at] = U8(rest & 127 | 128)
                    rest >>= 7
                    at += 1
                packed[at] = U8(rest)
                at += 1
            else:
                for shift in range(4):
                    packed[at + shift] = U8(length >> 8 * (3 - shift) & 255)
                at += 4
            start = starts[column, row]
            for i in range(length):
                packed[at + i] = data[start + i]
            at += max(length, 0)


@kernel
def _read_word(packed, at):
    """Return the int32 at a place, big-endian."""
    value = I64(0)
    for i in range(4):
        value = value << 8 | I64(packed[at + i])
    return value - (value >> 31 << 32)


@kernel
def _read_length(packed, at, compact):
    """Return the length of a field and where its bytes begin; a start beyond the end if the length
    is cut off.
    """
    if not compact:  # the number of the type comes first
        return (
            (_read_word(packed, at + 4), at + 8)
            if at + 8 <= len(packed)
            else (I64(0), len(packed) + 1)
        )
    value = I64(0)
    for shift in range(0, 56, 7):
        if at >= len(packed):
            break
        byte = I64(packed[at])
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value - 1, at
    return I64(0), len(packed) + 1


@kernel
def find_fields(packed, compact, starts, lengths):
    """Fill starts and lengths, int64 (num_columns, num_rows), with the fields of rows; -1 is the
    length of a null.

    compact : as `pack_rows` writes them. Otherwise as PostgreSQL's `record_send` does: int32, the
    number of fields, then of each int32, its type, int32, its length or -1, and its bytes;
    big-endian.

    Return the first row that is damaged; the number of rows if more bytes follow; -1 if nothing is
    damaged.
    """
    at = 0
    for row in range(lengths.shape[1]):
        if not compact:
            if at + 4 > len(packed) or _read_word(packed, at) != len(lengths):
                return row
            at += 4
        for column in range(len(lengths)):
            length, at = _read_length(packed, at, compact)
            if length < -1 or at + max(length, 0) > len(packed):
                return row
            starts[column, row] = at
            lengths[column, row] = length
            at += max(length, 0)
    return -1 if at == len(packed) else lengths.shape[1]


@kernel
def gather(packed, starts, lengths, data):
    """Write fields one after the other. starts, lengths : int64 (num_rows,); a null, of length -1,
    has no bytes.
    """
    at = 0
    for row in range(len(starts)):
        for i in range(lengths[row]):
            data[at + i] = packed[starts[row] + i]
        at += max(lengths[row], 0)
