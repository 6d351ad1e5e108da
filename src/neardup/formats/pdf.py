"""PDF files: each file is a document, the text layer of its pages. Needs the extra `office`.

PDFium reads them in a process per thread: a file may crash it, or take any memory or time, and only
the process with its limits is lost. `pdf_process` is the program of the process.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator

from neardup.documents.batch import Columns, DocumentBatch, Reject
from neardup.documents.child_process import ChildProcess
from neardup.documents.sinks import sink_of_lines
from neardup.documents.sources import Source
from neardup.formats.packages import Unreadable, read_file
from neardup.formats.pdf_process import MAX_CPU_S, MAX_MEMORY_BYTES
from neardup.formats.registry import FORMATS, Handler

_CODE = "from neardup.formats.pdf_process import main; main()"
_MAX_S = 10 * MAX_CPU_S  # where the system has no limit of processor time, or is busy

_local = threading.local()  # process : of this thread, once it has read a file
_failures: set[bytes] = set()
"""Digests of the files that ended their process: a run reads each file up to three times."""


def _forget() -> None:
    """Forget the process of this thread after a fork: it belongs to the parent."""
    _local.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the file as one document, or reject it.

    Raises
    ------
    MissingExtraError
        If the package pypdfium2 is not installed.
    """
    FORMATS["pdf"].require(source.name)
    return read_file(source, columns, reject, text_of=text_of, with_payload=with_payload)


def text_of(data: bytes) -> str:
    """Return the text of a PDF file, page after page; "" if it has no text layer.

    Raises
    ------
    Unreadable
        If it is damaged or encrypted, or takes more than the limits.
    """
    digest = hashlib.blake2b(data).digest()
    answer = None
    if digest not in _failures:
        # A process that has read other files may have been killed since.
        had_process = getattr(_local, "process", None) is not None
        answer = _ask(data)
        if answer is None and had_process:
            answer = _ask(data)
    if answer is None:
        _failures.add(digest)
        raise Unreadable(
            f"PDFium failed: the file is damaged, or takes more than {MAX_CPU_S} seconds or "
            f"{MAX_MEMORY_BYTES >> 20} MiB"
        )
    text, error = answer
    if error:
        raise Unreadable(error.decode())
    return text.decode("utf-8", "replace")


def _ask(data: bytes) -> list[bytes] | None:
    """Return text and error from the process of this thread; None if the process has ended."""
    try:
        if getattr(_local, "process", None) is None:
            _local.process = ChildProcess(_CODE)
        process: ChildProcess = _local.process
        return process.ask([data], num_answers=2, timeout_s=_MAX_S)
    except (OSError, EOFError):
        _local.process = None
        return None


HANDLER = Handler(read, sink_of_lines)
