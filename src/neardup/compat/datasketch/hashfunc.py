"""The hash functions of datasketch: the first bytes of SHA-1, the least significant first."""

from __future__ import annotations

import hashlib


def sha1_hash32(data: bytes) -> int:
    """Return the first 4 bytes of the SHA-1 of some bytes, an integer below 2^32.

    >>> sha1_hash32(b"Hello")
    2342453239
    """
    # A hash of data, not of secrets: a system in FIPS mode refuses SHA-1 otherwise.
    return int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest()[:4], "little")


def sha1_hash64(data: bytes) -> int:
    """Return the first 8 bytes of the SHA-1 of some bytes, an integer below 2^64."""
    return int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest()[:8], "little")
