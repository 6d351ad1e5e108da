"""Copy standard input to a temporary file, because documents are read more than once."""

from __future__ import annotations

import atexit
import csv
import hashlib
import io
import os
import select
import sys
import tempfile
from contextlib import suppress
from typing import IO, Any, NamedTuple
from weakref import WeakSet

from neardup.documents.batch import BLOCK_BYTES
from neardup.documents.decompressed import compression_of
from neardup.documents.lines import BYTE_ORDER_MARK, STREAM_ERRORS
from neardup.documents.sources import Source
from neardup.errors import InputError
from neardup.formats.registry import FORMATS, format_of_bytes

_SNIFFED_BYTES = 1 << 16  # the beginning that the format is recognised by
_MIN_ROWS = 3  # rows of equal width that look like CSV
_READ: WeakSet[IO[bytes]] = WeakSet()  # streams that were read to their end


class Spooled(NamedTuple):
    """A copy of standard input.

    version : a number that is equal for equal content, since standard input has no time of change.
    """

    source: Source
    format: str
    version: float


def standard_input() -> IO[bytes]:
    """Return the bytes of standard input. Raises InputError if it is closed."""
    # None without a standard input, and for a StringIO in its place.
    stdin: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if stdin is None or stdin.closed:
        raise InputError(
            "Standard input is closed, or has no bytes: got - as an input. Pipe a file in, or name "
            "it."
        )
    return stdin


def spool(format_name: str | None) -> Spooled:
    """Copy standard input to a temporary file, removed when the process ends.

    format_name : the format of the input; None to recognise it by the first bytes.

    Raises
    ------
    InputError
        If it is closed, or was read to its end before; if the format is ambiguous, or the input is
        compressed as a whole in a format that does not allow it.
    """
    stdin = standard_input()
    handle, path = tempfile.mkstemp(prefix="neardup-stdin-")
    # Documents are read again until the end of the run, so the copy must outlive this function.
    atexit.register(_remove, path)
    with os.fdopen(handle, "wb") as copy:
        version = _copy(stdin, copy)
    # A second read of a stream that was read to its end returns nothing.
    if stdin in _READ and not os.path.getsize(path):
        raise InputError(
            "Standard input is read only once: got - as two inputs. Name a file for one of them."
        )
    _READ.add(stdin)
    with open(path, "rb") as copied:
        head = copied.read(_SNIFFED_BYTES)
    compression = compression_of(head)
    source = Source("-", path, compression)
    format_name = format_name or _sniff(source)
    if compression and FORMATS[format_name].contents == "binary":
        raise InputError(
            f"Standard input is {format_name} inside {compression}. Files of {format_name} are "
            "compressed inside: pipe the file as it is, or name it as a path."
        )
    return Spooled(source, format_name, version)


def _copy(stdin: Any, copy: IO[bytes]) -> float:
    """Copy standard input to its end; return the version of its content."""
    digest = hashlib.blake2b(digest_size=6)
    while (block := stdin.read(BLOCK_BYTES)) != b"":
        # The parent may have made the pipe non-blocking, as Node does: no bytes yet, but no end.
        # The type IO denies that a stream returns None.
        if block is None:
            select.select([stdin], [], [])
            continue
        digest.update(block)
        copy.write(block)
    # Six bytes: a float represents integers of up to 53 bits exactly.
    return float(int.from_bytes(digest.digest(), "big"))


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _sniff(source: Source) -> str:
    """Return the format by the first bytes, "text" if none is recognised."""
    try:
        with source.open_stream() as stream:
            head = bytes(stream.read(_SNIFFED_BYTES))
    # A damaged compressed stream: reading it reports the error.
    except STREAM_ERRORS:
        return "text"
    recognised = format_of_bytes(head)
    if recognised is not None:
        return recognised
    for delimiter, name in ((",", "csv"), ("\t", "tsv")):
        if _is_delimited(head, delimiter):
            raise InputError(
                f"Standard input may be {name.upper()}, or lines of text. Choose the format: "
                f"in_format={name!r} (--in-format {name}), or 'text' for one document per line."
            )
    return "text"


def _is_delimited(head: bytes, delimiter: str) -> bool:
    """Return whether the first rows, three or more, have the same number of cells, two or more."""
    # As the module csv asks: a line end inside of quotes stays.
    content = head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    text = io.StringIO(content, newline="")
    try:
        rows = list(csv.reader(text, delimiter=delimiter))
    except csv.Error:
        return False
    if len(head) == _SNIFFED_BYTES:
        rows = rows[:-1]  # cut off
    # Empty lines are no rows.
    widths = {len(row) for row in rows if row}
    return len(rows) >= _MIN_ROWS and len(widths) == 1 and widths != {1}
