"""Find words that a hyphen divides at the end of a line, and join their parts."""

from neardup.kernels.compiled import U32, U64, kernel
from neardup.kernels.intrinsics import count_trailing_zeros, load_u64
from neardup.kernels.strings import decode, is_lead

_CLASS_SHIFT = U32(21)
_WORD = U32(1)
_HYPHEN = 0x2D
_LINE_FEED = 0x0A
_RETURN = 0x0D
_ONES = U64(0x0101010101010101)
_HIGH_BITS = U64(0x8080808080808080)
_LINE_FEEDS = U64(0x0A0A0A0A0A0A0A0A)
_RETURNS = U64(0x0D0D0D0D0D0D0D0D)
_SPACE = 0x20
_TAB = 0x09


@kernel
def _is_blank(byte):
    """Return whether a byte is a space or a tab."""
    return byte in (_SPACE, _TAB)


@kernel
def _is_letter(data, position, entries):
    """Return whether the character at a position is a letter, a mark, or a digit beyond ASCII."""
    byte = data[position]
    if byte < 128:
        return 97 <= (byte | 0x20) <= 122
    code, _ = decode(data, position)
    return (entries[code] >> _CLASS_SHIFT) & U32(3) == _WORD


@kernel
def _ends_with_letter(data, stop, entries):
    """Return whether the character before a position is a letter."""
    if stop == 0:
        return False
    position = stop - 1
    while position > 0 and stop - position < 4 and not is_lead(data[position]):
        position -= 1
    return _is_letter(data, position, entries)


@kernel
def _hyphen_before(data, stop):
    """Return the start of a hyphen, with blanks after it, before a position; -1 if there is none.

    The hyphens are U+002D, U+2010 (E2 80 90) and the soft hyphen U+00AD (C2 AD).
    """
    while stop > 0 and _is_blank(data[stop - 1]):
        stop -= 1
    if stop >= 1 and data[stop - 1] == _HYPHEN:
        return stop - 1
    if stop >= 2 and data[stop - 2] == 0xC2 and data[stop - 1] == 0xAD:
        return stop - 2
    is_wide = stop >= 3 and data[stop - 3] == 0xE2 and data[stop - 2] == 0x80
    if is_wide and data[stop - 1] == 0x90:
        return stop - 3
    return -1


@kernel
def _zero_bytes(word):
    """Return a word whose lowest set bit is the high bit of the first zero byte; 0 if none is."""
    return (word - _ONES) & ~word & _HIGH_BITS


@kernel
def _next_line_end(data, position):
    """Return the position of the next line feed or carriage return, or the end."""
    while position + 8 <= len(data):
        word = load_u64(data, position)
        found = _zero_bytes(word ^ _LINE_FEEDS) | _zero_bytes(word ^ _RETURNS)
        if found != U64(0):
            return position + (count_trailing_zeros(found) >> 3)
        position += 8
    while position < len(data) and data[position] not in (_LINE_FEED, _RETURN):
        position += 1
    return position


@kernel
def _next_break(data, position, entries):
    """Return the range of the next hyphen and line end inside a word, with the blanks around the
    line end; (-1, -1) if there is none after `position`.
    """
    while position < len(data):
        position = _next_line_end(data, position)
        if position == len(data):
            break
        byte = data[position]
        position += 1
        start = _hyphen_before(data, position - 1)
        if byte == _RETURN and position < len(data) and data[position] == _LINE_FEED:
            position += 1
        if start < 0:
            continue
        while position < len(data) and _is_blank(data[position]):
            position += 1
        is_in_word = _ends_with_letter(data, start, entries) and position < len(data)
        if is_in_word and _is_letter(data, position, entries):
            return start, position
    return -1, -1


@kernel
def find_breaks(data, entries, breaks):
    """Write the ranges of bytes that divide words at the ends of lines; return their number.

    breaks : int64 (.., 2), with room for one more than the line ends. entries : the table without
    normalisation.
    """
    count = 0
    start, stop = _next_break(data, 0, entries)
    while start >= 0:
        breaks[count, 0] = start
        breaks[count, 1] = stop
        count += 1
        start, stop = _next_break(data, stop, entries)
    return count


@kernel
def _copy(data, start, stop, target, end):
    """Append a range of bytes to the first `end` bytes of the target; return the new end."""
    for i in range(start, stop):
        target[end + i - start] = data[i]
    return end + stop - start


@kernel
def join_lines(text, entries, joined):
    """Copy texts to `joined` without the ranges of `find_breaks`; return the number of bytes.

    Requires: joined.data as long as text.data.
    """
    end = 0
    joined.offsets[0] = 0
    for document in range(len(text.offsets) - 1):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        first = 0
        start, stop = _next_break(data, 0, entries)
        while start >= 0:
            end = _copy(data, first, start, joined.data, end)
            first = stop
            start, stop = _next_break(data, stop, entries)
        end = _copy(data, first, len(data), joined.data, end)
        joined.offsets[document + 1] = end
    return end


@kernel
def has_breaks(text, entries):
    """Return whether a hyphen and a line end divide a word of any text."""
    for document in range(len(text.offsets) - 1):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        if _next_break(data, 0, entries)[0] >= 0:
            return True
    return False


@kernel
def count_breaks(text, entries):
    """Return the number of hyphens and line ends inside the words of texts."""
    count = 0
    for document in range(len(text.offsets) - 1):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        start, stop = _next_break(data, 0, entries)
        while start >= 0:
            count += 1
            start, stop = _next_break(data, stop, entries)
    return count
