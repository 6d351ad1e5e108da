"""Resolve the text of pages and extract their main content, in a process per thread if several
threads ask at once.

resiliparse 2.0 holds the interpreter's lock all the time, so threads that call it take turns:
docs/decisions/0033. Only the standard library and resiliparse are imported here, so that a process
starts in 30 milliseconds.

    thread 1  ── PageParts ──> process 1 (`main`)      one process per thread,
              <── contents ──                          as long as the thread lives
    thread 2  ── PageParts ──> process 2
              <── contents ──
    a thread that is alone, or has lost its process, calls `find_contents` itself
"""

from __future__ import annotations

import html
import os
import re
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

from neardup.documents.child_process import ChildProcess, receive, send
from neardup.errors import MissingExtraError

# Main content of fewer characters, in a page with SHARE times as many, is mostly a line of the
# frame around a missed article ("Reader Interactions"), the same on all pages of a site.
# docs/decisions/0014 has the figures.
SHORT = 500
SHARE = 5

_LONG_NUMBER = re.compile("&#(?:[0-9]{32,}|[xX][0-9a-fA-F]{32,});?")
_CODE = "from neardup.documents.page_content import main; main()"


class PageParts(NamedTuple):
    """The parts of pages, as the bytes of arrays.

    texts, text_offsets : all visible text in UTF-8, with unresolved character references; int64
    (num_pages + 1,). reduced, reduced_offsets : the pages in short, for resiliparse. is_main : bool
    (num_pages,), whether to return the main content of a page, not all visible text.
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

    A single thread finds them itself; each of several threads at once asks its process. If the
    process fails or is killed, the thread does the work.
    """
    # Added before it counts: of two threads that begin at once, one at least sees the other.
    _callers.append(None)
    try:
        contents = _ask(parts) if len(_callers) > 1 else None
        return contents or find_contents(parts)
    finally:
        _callers.pop()


def find_contents(parts: PageParts) -> Sequence[bytes]:
    """Return the same as `contents_of`, found by this thread."""
    # Without main content, resiliparse is not needed and may be missing.
    extract = extractor() if any(parts.is_main) else str
    text_offsets = array("q", parts.text_offsets)
    reduced_offsets = array("q", parts.reduced_offsets)
    contents = []
    for row, is_main in enumerate(parts.is_main):
        text = resolve(_string(parts.texts, text_offsets, row))
        content = extract(_string(parts.reduced, reduced_offsets, row)) if is_main else ""
        contents.append(_choose(content, text).encode())
    content_offsets = array("q", accumulate(map(len, contents), initial=0))
    return b"".join(contents), content_offsets.tobytes()


def _string(data: bytes, offsets: Sequence[int], row: int) -> str:
    return data[offsets[row] : offsets[row + 1]].decode("utf-8", "replace")


def resolve(text: str) -> str:
    """Return a text with its character references resolved."""
    if "&" not in text:
        return text
    # Python refuses to convert thousands of digits; no character has a number of 32 digits.
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))


def _choose(content: str, text: str) -> str:
    """Return the main content of a page, or all its text if the content is empty or improbable."""
    is_improbable = len(content) < SHORT and len(content) * SHARE < len(text)
    return text if is_improbable or not content else content


_callers: list[None] = []  # one entry per thread in `contents_of`; a list, as `append` is atomic
_local = threading.local()  # process : of this thread; None if it failed


def _forget() -> None:
    """Forget the processes after a fork: they belong to the parent."""
    _callers.clear()
    _local.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _ask(parts: PageParts) -> Sequence[bytes] | None:
    """Return the answer of this thread's process; None if it cannot be started or has died."""
    try:
        if not hasattr(_local, "process"):
            _local.process = None  # if the start fails, this thread tries no other
            _local.process = ChildProcess(_CODE)
        return None if _local.process is None else _local.process.ask(parts, num_answers=2)
    except (OSError, EOFError):
        _local.process = None
        return None


def main() -> None:
    """Answer the requests on the standard input, to its end."""
    with suppress(EOFError):
        while True:
            parts = PageParts(*receive(sys.stdin.buffer, len(PageParts._fields)))
            send(sys.stdout.buffer, find_contents(parts))
