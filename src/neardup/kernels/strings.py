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
    """Return (code point, its length in bytes); (0, 1) where the bytes are not UTF-8."""
    lead = U32(data[position])
    stop = len(data)
    if lead >= 0xC2 and lead < 0xE0 and position + 1 < stop:
        second = U32(data[position + 1])
        if second & 0xC0 == 0x80:
            return U32((lead & 0x1F) << 6 | (second & 0x3F)), 2
    elif lead >= 0xE0 and lead < 0xF0 and position + 2 < stop:
        second = U32(data[position + 1])
        third = U32(data[position + 2])
        if second & 0xC0 == 0x80 and third & 0xC0 == 0x80:
            return U32((lead & 0x0F) << 12 | (second & 0x3F) << 6 | (third & 0x3F)), 3
    elif lead >= 0xF0 and lead < 0xF5 and position + 3 < stop:
        second = U32(data[position + 1])
        third = U32(data[position + 2])
        fourth = U32(data[position + 3])
        code = (lead & 0x07) << 18 | (second & 0x3F) << 12 | (third & 0x3F) << 6 | (fourth & 0x3F)
        if (
            second & 0xC0 == 0x80
            and third & 0xC0 == 0x80
            and fourth & 0xC0 == 0x80
            and code < 0x110000
        ):
            return U32(code), 4
    return U32(0), 1


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
    return 8 - count_ones(word >> U64(7) & ~(word >> U64(6)) & _EIGHT_BYTES)


@kernel
def is_lead(byte):
    return byte & 0xC0 != 0x80


@kernel
def count_characters(text, start, stop):
    count = 0
    while start + 8 <= stop:
        count += _count_leads(load_u64(text, start))
        start += 8
    while start < stop:
        count += is_lead(text[start])
        start += 1
    return count


@kernel
def advance(text, place, stop, count):
    """Return where the next `count` characters end, at most `stop`, and how many of them are
    missing.
    """
    while place + 8 <= stop:
        passed = _count_leads(load_u64(text, place))
        if passed > count:
            break
        count -= passed
        place += 8
    while place < stop:
        if is_lead(text[place]):
            if count == 0:
                return place, 0
            count -= 1
        place += 1
    return stop, count


@kernel
def retreat(text, place, begin, count):
    """Return where the `count` characters before a place begin, at least `begin`."""
    while place - 8 >= begin:
        passed = _count_leads(load_u64(text, place - 8))
        if passed >= count:
            break
        count -= passed
        place -= 8
    while place > begin and count > 0:
        place -= 1
        count -= is_lead(text[place])
    return place


@kernel
def common_after(text, left, right, most):
    """Return how many bytes agree from two places on."""
    length = 0
    while length + 8 <= most:
        differ = load_u64(text, left + length) ^ load_u64(text, right + length)
        if differ != U64(0):
            return length + (count_trailing_zeros(differ) >> 3)
        length += 8
    while length < most and text[left + length] == text[right + length]:
        length += 1
    return length


@kernel
def code_at(text, place):
    return U32(text[place]) if text[place] < 128 else decode(text, place)[0]


# Random constants that occur in no text in UTF-8, so that no factor of a product below is zero for
# a short text.
_START = U64(0x9E3779B97F4A7C15)
_FIRST = U64(0xA0761D6478BD642F)
_LAST = U64(0xE7037ED1A0B428DB)


# Inlined by Numba, since arithmetic of the next string and of its caller then fill each other's
# gaps.
@kernel(inline="always")
def hash_at(start, size, margin):
    """Return the hash, uint64, of the `size` bytes at an address.

    Words of 8 bytes are multiplied in pairs, and the halves of the product folded (as Wang Yi's
    wyhash does, 2019): 16 bytes a product and one more at the end. The last two words may overlap,
    or be the same, so no byte is masked and nothing after the string is read.

    Requires: size > 0; `margin` bytes before it may be read: with 7 a short one is read like a
    longer one.
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
        if size >= 4:  # bytes that are read twice are the same
            first = load_half_at(start) | load_half_at(end - 4) << U64(8 * (size - 4))
        else:
            middle = size >> 1
            first = load_byte_at(start) | load_byte_at(start + middle) << U64(8 * middle)
            first |= load_byte_at(end - 1) << U64(8 * (size - 1))
        last = first
    return fold_product(fold_product(first ^ _FIRST, last ^ state), _LAST ^ U64(size))


@kernel
def hash_strings(data, offsets, hashes):
    """Fill hashes (uint64) with the hash of each string, 0 of an empty one.

    data : uint8; offsets : int32 or int64 (num_strings + 1,). Return the first string that lies
    outside of the data, where this ends; -1 if there is none.
    """
    base = address_of(data)
    for i in range(len(hashes)):
        start = I64(offsets[i])
        end = I64(offsets[i + 1])
        if U64(start) > U64(len(data)) or U64(end) > U64(len(data)):  # a negative one, too
            return i
        hashes[i] = hash_at(base + start, end - start, start) if end > start else U64(0)
    return -1
