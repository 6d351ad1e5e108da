"""Keys as datasketch writes them to Redis: Python's pickle format, of str, bytes and int alone.

Pickles are programs, and those of a shared server come from strangers. This module writes and reads the few forms that
plain keys have and runs nothing: `pickletools` lists the opcodes of a pickle. Source: its opcodes, protocols 2 to 5.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Hashable
from pickletools import genops
from typing import Any

from neardup.errors import InputError

_PROTOCOL = 5 if sys.version_info >= (3, 14) else 4  # of pickle.dumps: keys are found by their bytes
_FRAME = b"\x95"
_MEMOIZE = b"\x94"  # behind a text or bytes, which pickle could refer to again
_NUMBERS = {b"K": ("<B", range(2**8)), b"M": ("<H", range(2**16)), b"J": ("<i", range(-(2**31), 2**31))}
_VALUES = {"SHORT_BINUNICODE", "BINUNICODE", "SHORT_BINBYTES", "BINBYTES", "BININT1", "BININT2", "BININT", "LONG1"}
_AROUND = {"PROTO", "FRAME", "MEMOIZE", "BINPUT"}  # opcodes beside that of a value and the end


def write_key(key: Hashable) -> bytes:
    """Return the bytes of `pickle.dumps(key)` for a str, bytes or int.

    Raises
    ------
    InputError
        If the key has another type.

    Examples
    --------
    >>> read_key(write_key("page 1"))
    'page 1'
    """
    if isinstance(key, str):
        content = key.encode("utf-8", "surrogatepass")
        body = _sized(b"\x8c", b"X", content) + _MEMOIZE
    elif isinstance(key, bytes):
        body = _sized(b"C", b"B", key) + _MEMOIZE
    elif type(key) is int and -(2**1023) < key < 2**1023:
        body = _number(key)
    else:
        raise InputError(
            f"A key on Redis is a str, bytes or an int of at most 128 bytes: got {key!r}, a {type(key).__name__}. "
            "Convert it to a str."
        )
    body += b"."
    framed = _FRAME + struct.pack("<Q", len(body)) + body if len(body) >= 4 else body
    return bytes([0x80, _PROTOCOL]) + framed


def _sized(short: bytes, long: bytes, content: bytes) -> bytes:
    few = len(content) < 256
    return (short + bytes([len(content)]) if few else long + struct.pack("<I", len(content))) + content


def _number(key: int) -> bytes:
    for opcode, (layout, numbers) in _NUMBERS.items():
        if key in numbers:
            return opcode + struct.pack(layout, key)
    content = key.to_bytes(key.bit_length() // 8 + 1, "little", signed=True)
    if len(content) > 1 and content[-1] == 0xFF and content[-2] & 0x80:
        content = content[:-1]
    return b"\x8a" + bytes([len(content)]) + content


def read_key(data: bytes) -> str | bytes | int:
    """Return the str, bytes or int of a pickle; nothing in it is run.

    Raises
    ------
    InputError
        If the bytes are no pickle of one str, bytes or int.
    """
    key: str | bytes | int
    try:
        opcodes: list[tuple[str, Any, Any]] = [(opcode.name, value, place) for opcode, value, place in genops(data)]
        [(name, key, _), (_, _, end)] = [item for item in opcodes if item[0] not in _AROUND]
        if name not in _VALUES or end != len(data) - 1:
            raise ValueError
    except (ValueError, IndexError):
        raise InputError(
            f"A key on Redis is not a pickled str, bytes or int: got {data[:40]!r}. Keep using datasketch for this "
            "index, or build it again with keys of these types."
        ) from None
    return key
