"""Resolve the text of pages and extract their main content, in processes beside this one if threads
ask at once.

resiliparse 2.0 holds the interpreter's lock all the time, so threads that call it take turns:
docs/decisions/0033. Only the standard library and resiliparse are imported here, so that a process
starts in 30 milliseconds.
"""

from __future__ import annotations

import html
import os
import re
import struct
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import IO, NamedTuple

from neardup.errors import MissingExtraError

# Main content this short, in a page that shows five times as much, is mostly a line of the frame
# around an article that was missed ("Reader Interactions"), the same on all pages of a site.
# docs/decisions/0014 has the figures.
SHORT, SHARE = 500, 5

_LONG_NUMBER = re.compile("&#(?:[0-9]{32,}|[xX][0-9a-fA-F]{32,});?")
_PIPE_BYTES = (
    1 << 20
)  # as much as Linux allows: a transfer takes the interpreter's lock once, not sixteen times
_CODE = (
    "import sys; sys.path[:] = sys.argv[1:]; from neardup.documents.page_content import main; "
    "main()"
)


class PageParts(NamedTuple):
    """The parts of pages: the bytes of arrays.

    texts, text_offsets : all visible text in UTF-8, its character references as written; int64
    (num_pages + 1,). reduced, reduced_offsets : the pages in short, for resiliparse. is_main : bool
    (num_pages,), whether a page has the text that resiliparse finds, and not all visible text.
    """

    texts: bytes
    text_offsets: bytes
    reduced: bytes
    reduced_offsets: bytes
    is_main: bytes


def extractor() -> Callable[[str], str]:
    """Return the function that finds the main content of a page.

    Raises
    ------
    MissingExtraError
        If the package resiliparse is not installed.
    """
    try:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree
    except ImportError as error:
        raise MissingExtraError(
            "The main content of HTML pages needs the package resiliparse, which is not installed. "
            'Install it: pip install "neardup[web]". Or compare all text that pages show: '
            'html="all" (--html all).'
        ) from error

    def extract(page: str) -> str:
        text: str = extract_plain_text(
            HTMLTree.parse(page),
            main_content=True,
            preserve_formatting=True,
            list_bullets=False,
            alt_texts=False,
            comments=False,
            post_meta=False,
        )
        return text.strip()

    return extract


def contents_of(parts: PageParts) -> Sequence[bytes]:
    """Return the texts of pages, as the bytes of two arrays: UTF-8, and offsets (int64).

    A thread that is alone finds them itself; each of several at once has a process that does, as
    long as the thread lives. A process that fails, or is killed, leaves its work to its thread.
    """
    _callers.append(None)
    try:
        return (_ask(parts) if len(_callers) > 1 else None) or find_contents(parts)
    finally:
        _callers.pop()


def find_contents(parts: PageParts) -> Sequence[bytes]:
    """Return the same as `contents_of`, found by this thread."""
    extract = extractor() if any(parts.is_main) else str
    text_limits, reduced_limits = array("q", parts.text_offsets), array("q", parts.reduced_offsets)
    contents = []
    for row, is_main in enumerate(parts.is_main):
        text = _resolve(_string(parts.texts, text_limits, row))
        content = extract(_string(parts.reduced, reduced_limits, row)) if is_main else ""
        contents.append(_choose(content, text).encode())
    return b"".join(contents), array("q", accumulate(map(len, contents), initial=0)).tobytes()


def _string(data: bytes, limits: Sequence[int], row: int) -> str:
    return data[limits[row] : limits[row + 1]].decode("utf-8", "replace")


def _resolve(text: str) -> str:
    """Return a text with its character references resolved."""
    if "&" not in text:
        return text
    # Python refuses to read numbers of thousands of digits; no character has one of 32.
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))


def _choose(content: str, text: str) -> str:
    """Return the main content of a page, or all its text where that cannot be it."""
    return text if len(content) < SHORT and len(content) * SHARE < len(text) else content or text


_callers: list[None] = []
_local = threading.local()


def _forget() -> None:
    """Leave the processes of this thread to the process that was forked."""
    _callers.clear()
    _local.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _ask(parts: PageParts) -> Sequence[bytes] | None:
    """Return the answer of this thread's process; None if it cannot be started or has died."""
    try:
        if not hasattr(_local, "process"):
            _local.process = None  # if it fails, no other one is started for this thread
            _local.process = _Process()
        return None if _local.process is None else _local.process.ask(parts)
    except (OSError, EOFError):
        _local.process = None
        return None


class _Process:
    """A process that runs `main`. It ends with this object, or when its standard input does."""

    def __init__(self) -> None:
        folders = [folder for folder in sys.path if folder]  # not the working directory
        # In a session of its own, Ctrl-C does not reach it.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _CODE, *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        with suppress(ImportError, OSError):  # on Linux only, and if the user has not too many
            from fcntl import F_SETPIPE_SZ, fcntl

            for pipe in (self._input, self._output):
                fcntl(pipe, F_SETPIPE_SZ, _PIPE_BYTES)

    def ask(self, parts: PageParts) -> Sequence[bytes]:
        """Return the result of `find_contents` there. Raises OSError or EOFError if the process has
        ended.
        """
        _send(self._input, parts)
        return _receive(self._output, 2)

    def __del__(self) -> None:
        with (
            suppress(AttributeError, OSError),
            self._process,
        ):  # without the attribute it has not started
            self._process.kill()


def _send(stream: IO[bytes], parts: Sequence[bytes]) -> None:
    """Write byte strings, their lengths before them."""
    stream.write(struct.pack(f"{len(parts)}q", *map(len, parts)))
    for part in parts:
        stream.write(part)
    stream.flush()


def _receive(stream: IO[bytes], count: int) -> list[bytes]:
    """Read what `_send` has written. Raises EOFError if the stream ends."""
    lengths = struct.unpack(f"{count}q", _read(stream, 8 * count))
    return [_read(stream, length) for length in lengths]


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def main() -> None:
    """Answer what is asked on the standard input, to its end."""
    with suppress(EOFError):
        while True:
            parts = PageParts(*_receive(sys.stdin.buffer, len(PageParts._fields)))
            _send(sys.stdout.buffer, find_contents(parts))
