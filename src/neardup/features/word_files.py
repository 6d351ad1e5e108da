"""Read the files that a segmenter is given: a dictionary of the user's, and words to leave out."""

from __future__ import annotations

import os
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from neardup.errors import InputError

_MAX_FREQUENCY = 2**31 - 1
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")


class Entry(NamedTuple):
    """A line of a user dictionary."""

    word: str
    frequency: int | None
    tag: str | None


class WordFile(NamedTuple):
    """A file as it was when it was read: the text of its lines, and the SHA-256 of its bytes."""

    lines: list[str]
    digest: str


def parse_entry(line: str, number: int, path: str) -> Entry:
    """Return what a line of a user dictionary says: a word, then its frequency and its part of speech, or one."""
    word, *rest = line.split()
    frequency = rest.pop(0) if rest and _DIGITS.issuperset(rest[0]) else None
    tag = rest.pop(0) if rest and _LETTERS.issuperset(rest[0]) else None
    if rest or (frequency is not None and not 1 <= int(frequency[:12]) <= _MAX_FREQUENCY):
        raise InputError(
            f"Line {number} of the user dictionary {path} cannot be understood: got {line.strip()[:100]!r}. A line "
            f"holds a word without white space, then, if you like, its frequency, a whole number from 1 to "
            f"{_MAX_FREQUENCY}, and its part of speech in Latin letters: '云计算', '云计算 5', '云计算 n' or "
            "'云计算 5 n'. Correct the line, or remove it."
        )
    return Entry(word, None if frequency is None else int(frequency), tag)


def stamp_of(path: str | None) -> tuple[int, int] | None:
    """Return what changes when a file does; None where it cannot be read, which `read_lines` reports."""
    try:
        status = os.stat(path) if path is not None else None
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_size) if status is not None else None


@lru_cache(maxsize=8)
def read_lines(path: str, stamp: object, parameter: str) -> WordFile:
    """Return a file's lines; `stamp` makes a changed file be read again."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"Cannot read {parameter} {path!r}: {reason}. It must be a text file in UTF-8. Check the path."
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"Line {line} of {parameter} {path} is not UTF-8: got the byte 0x{data[error.start]:02x}. Save the file "
            "as UTF-8, for example with: iconv -f GB18030 -t UTF-8."
        ) from error
    return WordFile(text.split("\n"), sha256(data).hexdigest())
