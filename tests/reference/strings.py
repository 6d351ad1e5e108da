"""The hash of a string in the plainest Python: words of 8 bytes, multiplied in pairs and folded."""

from __future__ import annotations

START = 0x9E3779B97F4A7C15
FIRST = 0xA0761D6478BD642F
LAST = 0xE7037ED1A0B428DB


def hash_string(data: bytes) -> int:
    """Return the hash of bytes, of which there is one at least; 0 of none."""
    state = START
    position = 0
    size = len(data)
    if size == 0:
        return 0
    while position + 16 < size:
        first = word(data[position : position + 8])
        last = word(data[position + 8 : position + 16])
        state = fold(first ^ FIRST, last ^ state)
        position += 16
    ends = (data[-16:-8], data[-8:]) if size > 16 else (data[:8], data[-8:])
    return fold(fold(word(ends[0]) ^ FIRST, word(ends[1]) ^ state), LAST ^ size)


def word(data: bytes) -> int:
    return int.from_bytes(data, "little")


def fold(x: int, y: int) -> int:
    product = x * y
    return (product ^ product >> 64) % 2**64
