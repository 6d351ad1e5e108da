"""Read, write and hash UTF-8 in place."""

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.intrinsics import (
    address_of,
    count_ones,
    count_trailing_zeros,
    fold_product,
    load_at,
    load_byte_at,
    load_half_at,
    load_u64,
)


@kernel
def decode(data, position):
    """Return (code point, its length in bytes); (0, 1) if the bytes have not one of these forms.

    bytes                                   code point       lead byte
    110..... 10......                       11 bits          C2 to DF: shorter ones would do
    1110.... 10...... 10......              16 bits          E0 to EF
    11110... 10...... 10...... 10......     up to 10FFFF     F0 to F4

    Surrogates, and longer forms than needed of three or four bytes, are decoded although they are
    not UTF-8.
    """
    lead = U32(data[position])
    stop = len(data)
    if lead >= 0xC2 and lead < 0xE0 and position + 1 < stop:
        second = U32(data[position + 1])
        if not is_lead(second):
            return _append_bits(lead & U32(0x1F), second), 2
    elif lead >= 0xE0 and lead < 0xF0 and position + 2 < stop:
        second = U32(data[position + 1])
        third = U32(data[position + 2])
        if not is_lead(second) and not is_lead(third):
            return _append_bits(_append_bits(lead & U32(0x0F), second), third), 3
    elif lead >= 0xF0 and lead < 0xF5 and position + 3 < stop:
        second = U32(data[position + 1])
        third = U32(data[position + 2])
        fourth = U32(data[position + 3])
        code = _append_bits(_append_bits(lead & U32(0x07), second), third)
        code = _append_bits(code, fourth)
        if not (is_lead(second) or is_lead(third) or is_lead(fourth)) and code < 0x110000:
            return code, 4
    return U32(0), 1


@kernel
def _append_bits(code, byte):
    """Return the bits of a code point with the lowest 6 bits of a byte after them."""
    return code << U32(6) | (byte & U32(0x3F))


@kernel
def encode(code, stream, length):
    """Append a code point in UTF-8; return the new length."""
    if code < 0x80:
        stream[length] = code
        return length + 1
    if code < 0x800:
        stream[length] = 0xC0 | code >> 6
        stream[length + 1] = 0x80 | (code & 0x3F)
        return length + 2
    if code < 0x10000:
        stream[length] = 0xE0 | code >> 12
        stream[length + 1] = 0x80 | ((code >> 6) & 0x3F)
        stream[length + 2] = 0x80 | (code & 0x3F)
        return length + 3
    stream[length] = 0xF0 | code >> 18
    stream[length + 1] = 0x80 | ((code >> 12) & 0x3F)
    stream[length + 2] = 0x80 | ((code >> 6) & 0x3F)
    stream[length + 3] = 0x80 | (code & 0x3F)
    return length + 4


_EIGHT_BYTES = U64(0x0101010101010101)


@kernel
def _count_leads(word):
    """Return how many of 8 bytes begin a character."""
    # A byte 10...... begins none: its bit 7 is set, and its bit 6 is not.
    return 8 - count_ones(word >> U64(7) & ~(word >> U64(6)) & _EIGHT_BYTES)


@kernel
def is_lead(byte):
    """Return whether a byte begins a character: it is not 10......."""
    return byte & 0xC0 != 0x80


@kernel
def count_characters(text, start, stop):
    """Return the number of characters that begin in the bytes from `start` to `stop`."""
    count = 0
    while start + 8 <= stop:
        count += _count_leads(load_u64(text, start))
        start += 8
    while start < stop:
        count += is_lead(text[start])
        start += 1
    return count


@kernel
def advance(text, position, stop, count):
    """Return the end of the next `count` characters, at most `stop`, and the number of characters
    that are missing.
    """
    while position + 8 <= stop:
        passed = _count_leads(load_u64(text, position))
        if passed > count:
            break
        count -= passed
        position += 8
    while position < stop:
        if is_lead(text[position]):
            if count == 0:
                return position, 0
            count -= 1
        position += 1
    return stop, count


@kernel
def retreat(text, position, begin, count):
    """Return the start of the `count` characters before a position, at least `begin`."""
    while position - 8 >= begin:
        passed = _count_leads(load_u64(text, position - 8))
        if passed >= count:
            break
        count -= passed
        position -= 8
    while position > begin and count > 0:
        position -= 1
        count -= is_lead(text[position])
    return position


@kernel
def common_after(text, left, right, max_length):
    """Return the number of bytes that agree from two positions on."""
    length = 0
    while length + 8 <= max_length:
        differ = load_u64(text, left + length) ^ load_u64(text, right + length)
        if differ != U64(0):
            return length + (count_trailing_zeros(differ) >> 3)
        length += 8
    while length < max_length and text[left + length] == text[right + length]:
        length += 1
    return length


@kernel
def code_at(text, position):
    """Return the code point at a position; 0 if the bytes there are none."""
    return U32(text[position]) if text[position] < 128 else decode(text, position)[0]


# Random constants that occur in no text in UTF-8. A word equal to one of them would make a factor
# of a product zero, so that the other factor would not count.
_START = U64(0x9E3779B97F4A7C15)
_FIRST = U64(0xA0761D6478BD642F)
_LAST = U64(0xE7037ED1A0B428DB)


# Inlined, so that the processor overlaps the arithmetic of one string with the next and with the
# caller's.
@kernel(inline=True)
def hash_at(start, size, margin):
    """Return the hash, uint64, of the `size` bytes at an address.

    Words of 8 bytes are multiplied in pairs, and the halves of the product folded (as Wang Yi's
    wyhash does, 2019): 16 bytes a product and one more at the end. The last two words may overlap,
    or be the same, so no byte is masked and nothing after the string is read.

    margin : the number of bytes before the string that may be read. With 7 or more, a string
    shorter than a word is read as the end of a word.

    Requires: size > 0.
    """
    state = _START
    end = start + size
    if size > 16:
        stop = end - 16
        while start < stop:
            state = fold_product(load_at(start) ^ _FIRST, load_at(start + 8) ^ state)
            start += 16
        first = load_at(stop)
        last = load_at(stop + 8)
    elif size + margin >= 8:
        beyond = U64(8 * max(8 - size, 0))  # bits of a word that are not of the string
        first = load_at(min(start, end - 8)) >> beyond
        last = load_at(end - 8) >> beyond
    else:
        first = _load_short(start, size)
        last = first
    return fold_product(fold_product(first ^ _FIRST, last ^ state), _LAST ^ U64(size))


@kernel(inline=True)
def _load_short(start, size):
    """Return the 1 to 7 bytes at an address as one integer. Bytes that are read twice fall on
    themselves.
    """
    end = start + size
    if size >= 4:
        word = load_half_at(start) | load_half_at(end - 4) << U64(8 * (size - 4))
    else:
        middle = size >> 1
        word = load_byte_at(start) | load_byte_at(start + middle) << U64(8 * middle)
        word |= load_byte_at(end - 1) << U64(8 * (size - 1))
    return word


@kernel
def hash_strings(data, offsets, hashes):
    """Fill hashes (uint64) with the hash of each string, 0 of an empty one.

    data : uint8; offsets : int32 or int64 (num_strings + 1,), inside the data.
    """
    base = address_of(data)
    for i in range(len(hashes)):
        start = I64(offsets[i])
        end = I64(offsets[i + 1])
        hashes[i] = hash_at(base + start, end - start, start) if end > start else U64(0)
