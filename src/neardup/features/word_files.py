"""Files of words for a segmenter: user dictionaries and stop words.

A file is read once, and again after it changed. Its stamp (time and size) is a key of the caches.
"""

from __future__ import annotations

import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from neardup.errors import InputError

_MAX_FREQUENCY = 2**31 - 1  # the greatest int32
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")


class FileStamp(NamedTuple):
    """The state of a file, which differs after a change."""

    modified_ns: int
    num_bytes: int


class WordFile(NamedTuple):
    """A file as it was when it was read: the text of its lines, and the SHA-256 of its bytes."""

    lines: list[str]
    digest: str


class Entry(NamedTuple):
    """A line of a user dictionary. frequency, tag : None if the line has none."""

    word: str
    frequency: int | None
    tag: str | None


def stamp_of(path: str | None) -> FileStamp | None:
    """Return the stamp of a file, None without a file. An unreadable file has None too:
    `read_word_file` reports it.
    """
    if path is None:
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return FileStamp(modified_ns=status.st_mtime_ns, num_bytes=status.st_size)


@lru_cache(maxsize=8)
def read_word_file(path: str, stamp: FileStamp | None, parameter: str) -> WordFile:
    """Read a file of words.

    Parameters
    ----------
    path : the file.
    stamp : its stamp. It only makes this cache read a changed file again.
    parameter : the setting that names the file, for errors.

    Raises
    ------
    InputError
        If the file cannot be read or is not UTF-8.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"Cannot read {parameter} {path!r}: {reason}. It must be a text file in UTF-8. Check "
            "the path."
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"Line {line} of {parameter} {path} is not UTF-8: got the byte "
            f"0x{data[error.start]:02x}. Save the file as UTF-8, for example with: iconv -f "
            "GB18030 -t UTF-8."
        ) from error
    # Not splitlines(), which also splits at characters such as U+2028.
    return WordFile(lines=text.split("\n"), digest=sha256(data).hexdigest())


def read_user_dict(path: str, stamp: FileStamp | None) -> list[Entry]:
    """Return the entries of a user dictionary; blank lines are ignored."""
    lines = read_word_file(path, stamp, "user_dict").lines
    return [
        _parse_entry(line, number, path) for number, line in enumerate(lines, 1) if line.strip()
    ]


def read_stop_words(path: str, stamp: FileStamp | None) -> list[str]:
    """Return the words of a file with one word a line; blank lines are ignored."""
    lines = read_word_file(path, stamp, "stop_words").lines
    return [line.strip() for line in lines if line.strip()]


def _parse_entry(line: str, number: int, path: str) -> Entry:
    """Parse a line of a user dictionary: a word, then its frequency, its part of speech, or
    both.
    """
    word, *rest = line.split()
    # Each optional part is taken from the front of the rest: the frequency first, then the tag.
    digits = rest.pop(0) if rest and _DIGITS.issuperset(rest[0]) else None
    tag = rest.pop(0) if rest and _LETTERS.issuperset(rest[0]) else None
    # Eleven digits are enough to see that a number is too large; Python refuses to convert
    # thousands of them.
    frequency = None if digits is None else int(digits.lstrip("0")[:11] or "0")
    is_in_range = frequency is None or 1 <= frequency <= _MAX_FREQUENCY
    if rest or not is_in_range:
        raise InputError(
            f"Line {number} of the user dictionary {path} is not valid: got "
            f"{line.strip()[:100]!r}. A line holds a word without white space, then optionally its "
            f"frequency, a whole number from 1 to {_MAX_FREQUENCY}, and its part of speech in "
            "Latin letters: '云计算', '云计算 5', '云计算 n' or '云计算 5 n'. Correct the line, or "
            "remove it."
        )
    return Entry(word=word, frequency=frequency, tag=tag)
