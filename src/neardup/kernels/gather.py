"""Gather rows of documents from chunks of Arrow arrays, column by column.

A chunk is described by addresses, so that one call reads any number of chunks, in memory and in
mapped files. The contents of a file may be damaged, so impossible rows and offsets are reported.
"""

import numpy as np

from neardup.kernels.compiled import I64, U8, U64, kernel
from neardup.kernels.intrinsics import load_at, load_byte_at, load_half_at, prefetch, store_u64

KIND, WIDTH, VALUES, NUM_BYTES, OFFSETS, VALID, FIRST = range(7)
"""The numbers of a field of a chunk: its kind, the bytes of a value if all have the same number,
the address of values and their bytes, the addresses of offsets and of the bits of values that are
not null (0 if none is), and the bit of the first value.
"""
MISSING, NUMBERED, FIXED, BITS, SHORT, LONG = range(6)
"""The kinds: nulls only; the number of the row; values of one width; bits; values between offsets
of 32, of 64 bits.
"""
START, ROWS, SIZE, FIELDS = range(4)
"""The numbers of a chunk: its first row, the address of its rows, uint32 (0 if they count on),
their number, and the address of the numbers of its fields, int64 (num_fields, 7).

    chunks[c] -> | START | ROWS | SIZE | FIELDS |
                             |             |
              rows, uint32 <-+             +-> | KIND | WIDTH | ... |   field 0
                                               | KIND | WIDTH | ... |   field 1
"""
NULLS, BEGIN, ENDS = range(3)
"""The numbers of a gathered column: its nulls, the begin of its bytes, and from there on its
offsets.
"""
CHUNK, POSITION = range(2)
"""The numbers of a row that was found: its chunk, and its position there."""

_FIELD_BYTES = 8 * 7
_FEW = 64  # rows whose values are prefetched: with more, the processor itself works ahead


@kernel(allocates=True)
def gather_rows(rows, chunks, wanted, widths):
    """Return columns of rows: their bytes, uint8; numbers of each, int64 (num_columns, 3 +
    num_rows); which are not null, bool (num_columns, num_rows); and -1.

    rows : int64. chunks : int64 (num_chunks, 4), by rows. wanted : int64 (num_columns,), of the
    fields. widths : int64, the bytes of a value as it is returned, 0 if they vary; a bit is a byte.
    Columns begin at multiples of 8 bytes; the bytes of a null are zero. If a chunk lacks a row or
    has damaged offsets, return its number as the last value, and empty arrays.
    """
    num_rows = len(rows)
    num_columns = len(wanted)
    found = np.empty((2, num_rows), I64)
    numbers = np.zeros((num_columns, ENDS + num_rows + 1), I64)
    is_valid = np.empty((num_columns, num_rows), np.bool_)
    damaged = _find_rows(rows, chunks, found)
    if damaged < 0:
        if num_rows <= _FEW:
            _fetch(found, chunks, wanted)
        damaged = _measure_columns(found, chunks, wanted, widths, numbers, is_valid)
    if damaged >= 0:
        return np.empty(0, U8), np.empty((0, 0), I64), np.empty((0, 0), np.bool_), damaged
    data = np.zeros(_total_bytes(numbers, widths), U8)
    for column in range(num_columns):
        _copy_column(rows, found, chunks, wanted, widths, column, (numbers, is_valid), data)
    return data, numbers, is_valid, -1


@kernel
def _chunk_of(chunks, row):
    """Return the last chunk that begins at a row or before it."""
    low = 0
    high = len(chunks)
    while high - low > 1:
        middle = (low + high) >> 1
        if chunks[middle, START] <= row:
            low = middle
        else:
            high = middle
    return low


@kernel
def _position_of(address, size, row):
    """Return the index of a row among rising rows, uint32, at an address; -1 if it is missing."""
    low = 0
    high = size
    while high - low > 1:
        middle = (low + high) >> 1
        if I64(load_half_at(address + 4 * middle)) <= row:
            low = middle
        else:
            high = middle
    return low if size > 0 and I64(load_half_at(address + 4 * low)) == row else -1


@kernel
def _find_rows(rows, chunks, found):
    """Set the chunk of each row and its position there; return a chunk that lacks a row, or
    -1.
    """
    chunk = 0  # of the last row: rows mostly rise, and most are in the same chunk
    for i in range(len(rows)):
        row = rows[i]
        if row < chunks[chunk, START] or (
            chunk + 1 < len(chunks) and row >= chunks[chunk + 1, START]
        ):
            chunk = _chunk_of(chunks, row)
        found[CHUNK, i] = chunk
        found[POSITION, i] = row - chunks[chunk, START]
        if chunks[chunk, ROWS] != 0:
            found[POSITION, i] = _position_of(chunks[chunk, ROWS], chunks[chunk, SIZE], row)
        if found[POSITION, i] < 0 or found[POSITION, i] >= chunks[chunk, SIZE]:
            return chunk
    return -1


@kernel
def _number(field, number):
    """Return a number of a field at an address."""
    return I64(load_at(field + 8 * number))


@kernel
def _has_bit(address, bit):
    return (load_byte_at(address + (bit >> 3)) >> U64(bit & 7)) & U64(1) != U64(0)


@kernel
def _is_valid(field, position):
    """Return whether a value is not null."""
    valid = _number(field, VALID)
    return _number(field, KIND) != MISSING and (
        valid == 0 or _has_bit(valid, _number(field, FIRST) + position)
    )


@kernel
def _span_of(field, position):
    """Return the address of the bytes of a value, and their number, -1 if the offsets are
    damaged.
    """
    values = _number(field, VALUES)
    offsets = _number(field, OFFSETS)
    width = _number(field, WIDTH)
    kind = _number(field, KIND)
    if kind == FIXED:
        return values + width * position, width
    if kind == SHORT:
        at = offsets + 4 * position
        begin = I64(load_half_at(at))
        end = I64(load_half_at(at + 4))
    else:
        at = offsets + 8 * position
        begin = I64(load_at(at))
        end = I64(load_at(at + 8))
    # Offsets of a damaged file may point anywhere: nothing is read outside of the values.
    whole = begin >= 0 and end >= begin and end <= _number(field, NUM_BYTES)
    return values + begin, end - begin if whole else -1


@kernel
def _fetch(found, chunks, wanted):
    """Prefetch the first bytes that each value needs."""
    for i in range(found.shape[1]):
        for column in range(len(wanted)):
            field = chunks[found[CHUNK, i], FIELDS] + _FIELD_BYTES * wanted[column]
            position = found[POSITION, i]
            kind = _number(field, KIND)
            if kind == FIXED:
                prefetch(_number(field, VALUES) + _number(field, WIDTH) * position)
            elif kind == BITS:
                prefetch(_number(field, VALUES) + ((_number(field, FIRST) + position) >> 3))
            else:
                prefetch(_number(field, OFFSETS) + (4 if kind == SHORT else 8) * position)


@kernel
def _copy(address, length, data, at):
    """Copy bytes from an address to data, uint8, from `at` on."""
    done = 0
    # No byte after the last is read: the value may end where its file does.
    while done + 8 <= length:
        store_u64(data, at + done, load_at(address + done))
        done += 8
    while done < length:
        data[at + done] = U8(load_byte_at(address + done))
        done += 1


@kernel
def _copy_number(number, width, data, at):
    for byte in range(width):
        data[at + byte] = U8((number >> (8 * byte)) & 255)


@kernel
def _field_of(found, chunks, i, field):
    """Return the address of the numbers of a field of the i-th row's chunk."""
    return chunks[found[CHUNK, i], FIELDS] + _FIELD_BYTES * field


@kernel
def _measure_columns(found, chunks, wanted, widths, numbers, is_valid):
    """Fill the numbers of columns, and which values are not null; return a chunk with damaged
    offsets, or -1.
    """
    begin = 0
    for column in range(len(wanted)):
        used = 0
        for i in range(found.shape[1]):
            field = _field_of(found, chunks, i, wanted[column])
            position = found[POSITION, i]
            is_valid[column, i] = _is_valid(field, position)
            numbers[column, NULLS] += not is_valid[column, i]
            if widths[column] == 0 and is_valid[column, i]:
                address, length = _span_of(field, position)
                if length < 0:
                    return found[CHUNK, i]
                prefetch(address)  # for `_copy_column`
                used += length
            numbers[column, ENDS + i + 1] = used
        numbers[column, BEGIN] = begin
        begin = _round_up(begin + used + widths[column] * found.shape[1])
    return -1


@kernel
def _total_bytes(numbers, widths):
    """Return the bytes of all columns."""
    if len(widths) == 0:
        return 0
    num_rows = numbers.shape[1] - ENDS - 1
    last = len(widths) - 1
    return _round_up(
        numbers[last, BEGIN] + numbers[last, ENDS + num_rows] + widths[last] * num_rows
    )


@kernel
def _round_up(num_bytes):
    """Return the next multiple of 8."""
    return (num_bytes + 7) >> 3 << 3


@kernel
def _copy_column(rows, found, chunks, wanted, widths, column, gathered, data):
    """Write the bytes of one column. gathered : the numbers of all columns, and which values are
    not null.
    """
    numbers, is_valid = gathered
    width = widths[column]
    begin = numbers[column, BEGIN]
    for i in range(len(rows)):
        field = _field_of(found, chunks, i, wanted[column])
        position = found[POSITION, i]
        kind = _number(field, KIND)
        # A null leaves the zeros of its width, or no bytes.
        at = begin + (width * i if width else numbers[column, ENDS + i])
        if kind == NUMBERED:
            _copy_number(rows[i], width, data, at)
        elif kind == BITS:
            bit = _number(field, FIRST) + position
            data[at] = is_valid[column, i] and _has_bit(_number(field, VALUES), bit)
        elif is_valid[column, i]:
            address, length = _span_of(field, position)
            _copy(address, length, data, at)
