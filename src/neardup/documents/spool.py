"""Standard input, copied to a temporary file because documents are read more than once."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import sys
import tempfile
from contextlib import suppress
from typing import IO

from neardup.documents.lines import BYTE_ORDER_MARK, STREAM_ERRORS
from neardup.documents.sources import Source
from neardup.errors import InputError
from neardup.formats import BLOCK_BYTES, FORMATS

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}
_SNIFFED_BYTES = 4096
_HTML = re.compile(rb"\s*<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)


def spool(stream: IO[bytes] | None = None) -> tuple[Source, str, float]:
    """Copy a stream to a temporary file, removed when the process ends.

    Returns
    -------
    The copy; its format; and a number equal for equal content, as standard input has no time of change.
    """
    stream = sys.stdin.buffer if stream is None else stream
    handle, path = tempfile.mkstemp(prefix="neardup-stdin-")
    atexit.register(_remove, path)
    digest = hashlib.blake2b(digest_size=6)
    with os.fdopen(handle, "wb") as copy:
        while block := stream.read(BLOCK_BYTES):
            digest.update(block)
            copy.write(block)
    with open(path, "rb") as copied:
        head = copied.read(_SNIFFED_BYTES)
    compression = next((codec for magic, codec in _MAGIC.items() if head.startswith(magic)), None)
    source = Source("-", path, compression)
    return source, _sniff(source), float(int.from_bytes(digest.digest(), "big"))


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _sniff(source: Source) -> str:
    """Return the format that the first bytes stand for: Parquet, Arrow, JSON lines, WARC, HTML, else text."""
    try:
        with source.open_stream() as stream:
            head = bytes(stream.read(_SNIFFED_BYTES))
    except STREAM_ERRORS:
        return "text"
    found = "text"
    if head.startswith(b"PAR1"):
        found = "parquet"
    elif head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        found = "arrow"
    elif head.startswith(b"WARC/1."):
        found = "warc"
    elif head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"{"):
        found = "jsonl"
    elif _HTML.match(head.removeprefix(BYTE_ORDER_MARK)):
        found = "html"
    if source.compression and not FORMATS[found].compressible:
        raise InputError(
            f"Standard input is {found} inside {source.compression}. "
            f"Parquet and Arrow compress their own columns: pipe the file as it is, or name it as a path."
        )
    return found
