"""Read code points from UTF-8, and write them."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel


@kernel
def decode(data, position):
    """Return (code point, its length in bytes); (0, 1) where the bytes are not UTF-8."""
    lead, stop = np.uint32(data[position]), len(data)
    if lead >= 0xC2 and lead < 0xE0 and position + 1 < stop:
        second = np.uint32(data[position + 1])
        if second & 0xC0 == 0x80:
            return np.uint32((lead & 0x1F) << 6 | (second & 0x3F)), 2
    elif lead >= 0xE0 and lead < 0xF0 and position + 2 < stop:
        second, third = np.uint32(data[position + 1]), np.uint32(data[position + 2])
        if second & 0xC0 == 0x80 and third & 0xC0 == 0x80:
            return np.uint32((lead & 0x0F) << 12 | (second & 0x3F) << 6 | (third & 0x3F)), 3
    elif lead >= 0xF0 and lead < 0xF5 and position + 3 < stop:
        second, third = np.uint32(data[position + 1]), np.uint32(data[position + 2])
        fourth = np.uint32(data[position + 3])
        code = (lead & 0x07) << 18 | (second & 0x3F) << 12 | (third & 0x3F) << 6 | (fourth & 0x3F)
        if second & 0xC0 == 0x80 and third & 0xC0 == 0x80 and fourth & 0xC0 == 0x80 and code < 0x110000:
            return np.uint32(code), 4
    return np.uint32(0), 1


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
