"""Keys on Redis as pickles, written and read without running code.

A server finds keys by their bytes, so `write_key` writes the bytes of `pickle.dumps`, with its
default protocol::

    PROTO  protocol  [FRAME  length of the rest]  value  [MEMOIZE]  STOP

FRAME begins a rest of four bytes or more; MEMOIZE follows a text or bytes, not a number.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Hashable
from contextlib import suppress
from pickletools import OpcodeInfo, genops, opcodes
from typing import Any, NamedTuple

from neardup.errors import InputError

_OPCODES = {opcode.name: opcode.code.encode("latin-1") for opcode in opcodes}
_PROTOCOL = 5 if sys.version_info >= (3, 14) else 4
_MIN_FRAME_BYTES = 4
_MAX_INTEGER_BYTES = 128
_INTEGERS = {"BININT1": "<B", "BININT2": "<H", "BININT": "<i"}
"""The opcodes of integers of a fixed length, the shortest first, and their bytes as in `struct`."""

# Names of the opcodes with a value that `read_key` accepts.
_VALUES = {
    "SHORT_BINUNICODE",
    "BINUNICODE",
    "SHORT_BINBYTES",
    "BINBYTES",
    "BININT1",
    "BININT2",
    "BININT",
    "LONG1",
}
# Names of the opcodes around the value; BINPUT is the MEMOIZE of older protocols.
_ENVELOPE = {"PROTO", "FRAME", "MEMOIZE", "BINPUT"}


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
        # As pickle: a text may have lone surrogates.
        content = key.encode("utf-8", "surrogatepass")
        value = _sized("SHORT_BINUNICODE", "BINUNICODE", content)
    elif isinstance(key, bytes):
        value = _sized("SHORT_BINBYTES", "BINBYTES", key)
    # Not bool, which pickle writes with other opcodes.
    elif type(key) is int and len(_bytes_of(key)) <= _MAX_INTEGER_BYTES:
        value = _integer(key)
    else:
        raise InputError(
            f"A key on Redis is a str, bytes or an int of at most 128 bytes: got {key!r}, a "
            f"{type(key).__name__}. Convert it to a str."
        )
    body = value + _OPCODES["STOP"]
    if len(body) >= _MIN_FRAME_BYTES:
        body = _OPCODES["FRAME"] + struct.pack("<Q", len(body)) + body
    return _OPCODES["PROTO"] + bytes([_PROTOCOL]) + body


def _sized(short: str, long: str, content: bytes) -> bytes:
    """Return the opcodes of a text or bytes.

    short : the opcode before a length of one byte. long : the opcode before a length of four bytes.
    """
    if len(content) < 256:
        head = _OPCODES[short] + bytes([len(content)])
    else:
        head = _OPCODES[long] + struct.pack("<I", len(content))
    return head + content + _OPCODES["MEMOIZE"]


def _integer(key: int) -> bytes:
    """Return the shortest opcode that fits an integer, and its bytes."""
    for opcode, layout in _INTEGERS.items():
        # An integer that does not fit is an error of `struct`.
        with suppress(struct.error):
            return _OPCODES[opcode] + struct.pack(layout, key)
    content = _bytes_of(key)
    return _OPCODES["LONG1"] + bytes([len(content)]) + content


def _bytes_of(key: int) -> bytes:
    """Return an integer in two's complement, the lowest byte first, in as few bytes as fit."""
    content = key.to_bytes(key.bit_length() // 8 + 1, "little", signed=True)
    # The bit length of a negative number does not count its sign: -128 would have two bytes.
    if len(content) > 1 and content[-1] == 0xFF and content[-2] & 0x80:
        return content[:-1]
    return content


def read_key(data: bytes) -> str | bytes | int:
    """Return the str, bytes or int of a pickle. Runs no code of the pickle.

    Raises
    ------
    InputError
        If the bytes are not a pickle of one str, bytes or int.
    """
    try:
        items = [_Item(*item) for item in genops(data)]
        # Unpacking checks the number: one value, and the opcode STOP as the last byte.
        value, stop = [item for item in items if item.opcode.name not in _ENVELOPE]
        if value.opcode.name not in _VALUES or stop.position != len(data) - 1:
            raise ValueError
    except (ValueError, IndexError):
        raise InputError(
            f"A key on Redis is not a pickled str, bytes or int: got {data[:40]!r}. Keep using "
            "datasketch for this index, or build it again with keys of these types."
        ) from None
    key: str | bytes | int = value.argument
    return key


class _Item(NamedTuple):
    """An item of `genops`: an opcode, its argument, and its position in bytes."""

    opcode: OpcodeInfo
    argument: Any
    position: int | None
