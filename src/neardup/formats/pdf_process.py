"""The program of a process that reads the text layers of PDF files.

Only the standard library and pypdfium2 are imported here, so that a process starts in less than
0.1 seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress

from neardup.documents.child_process import receive, send

MAX_CPU_S = 60
"""Processor time for a file; PDFium reads a thousand pages in one second."""
MAX_MEMORY_BYTES = 2 << 30
"""Address space of a process, its libraries included."""
MAX_TEXT_BYTES = 64 << 20
"""Bytes of the text of a file, as many as a document may have by default."""

_ENCRYPTED = 4  # the error of PDFium for a missing or wrong password


class _Unreadable(Exception):
    """A file cannot be read; the message has the reason."""


def main() -> None:
    """Answer each file on the standard input by its text and the reason that it has none."""
    _limit_memory()
    # The end of the input is the end of the program.
    with suppress(EOFError):
        while True:
            (data,) = receive(sys.stdin.buffer, 1)
            _limit_time()
            text = b""
            error = b""
            try:
                text = "\n".join(_pages_of(data)).strip().encode("utf-8", "replace")
            except _Unreadable as reason:
                error = str(reason).encode()
            send(sys.stdout.buffer, [text, error])


def _pages_of(data: bytes) -> Iterator[str]:
    """Yield the text of each page."""
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        if getattr(error, "err_code", None) == _ENCRYPTED or "password" in str(error).lower():
            raise _Unreadable("it is encrypted. Save it without a password") from error
        reason = str(error).rstrip(".")
        # PDFium loads no file without pages, and has no error for it.
        if "Success" in reason:
            raise _Unreadable("it is damaged, or has no pages") from error
        raise _Unreadable(f"it is damaged, or no PDF file: {reason}") from error
    num_bytes = 0
    for number in range(len(document)):
        try:
            page = document[number]
            layer = page.get_textpage()
            text = layer.get_text_range()
            layer.close()
            page.close()
        except PdfiumError as error:
            raise _Unreadable(f"page {number + 1} is damaged: {error}") from error
        num_bytes += len(text.encode("utf-8", "replace"))
        if num_bytes > MAX_TEXT_BYTES:
            raise _Unreadable(f"it has more than {MAX_TEXT_BYTES} bytes of text")
        yield _clean(text)


def _clean(text: str) -> str:
    """Return the text of a page with line feeds; a word that is divided at a line end is joined.

    PDFium marks the hyphen of such a word by U+FFFE, without the line end.
    """
    return text.replace("\ufffe", "").replace("\r\n", "\n").replace("\0", "")


def _limit_memory() -> None:
    # Not on Windows; macOS ignores the limit.
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, hard))


def _limit_time() -> None:
    """Let the system end this process after MAX_CPU_S seconds from now."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = int(usage.ru_utime + usage.ru_stime) + 1
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (used + MAX_CPU_S, hard))
