"""WARC files made by hand, so that the tests do not read what the code under test has written."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from base64 import b32encode
from pathlib import Path

from neardup.documents.batch import Rejected
from neardup.runs.columns import choose_columns
from neardup.runs.input_files import list_inputs

HTML = b"Content-Type: text/html; charset=utf-8\r\n"


def record(
    kind: str,
    block: bytes,
    url: str = "http://a.test/",
    *,
    content_type: str | None = None,
    length: int | None = None,
) -> bytes:
    """Return a record; `length` is a Content-Length that lies."""
    if content_type is None:
        content_type = (
            "application/http; msgtype=response"
            if kind == "response"
            else "application/warc-fields"
        )
    fields = [
        b"WARC/1.0",
        f"WARC-Type: {kind}".encode(),
        f"WARC-Target-URI: {url}".encode(),
        b"WARC-Date: 2024-05-06T07:08:09Z",
        f"WARC-Record-ID: <urn:uuid:{hashlib.md5(block + url.encode()).hexdigest()}>".encode(),
        b"WARC-Block-Digest: sha1:" + b32encode(hashlib.sha1(block).digest()),
        f"Content-Type: {content_type}".encode(),
        b"Content-Length: %d" % (len(block) if length is None else length),
    ]
    return b"\r\n".join(fields) + b"\r\n\r\n" + block + b"\r\n\r\n"


def http(body: bytes, *, status: str = "200 OK", header: bytes = HTML) -> bytes:
    """Return an HTTP response."""
    return b"HTTP/1.1 " + status.encode() + b"\r\n" + header + b"\r\n" + body


def page(
    body: bytes, url: str = "http://a.test/", *, status: str = "200 OK", header: bytes = HTML
) -> bytes:
    """Return the record of a response."""
    return record("response", http(body, status=status, header=header), url)


def info(text: bytes = b"software: a test\r\n") -> bytes:
    """Return a warcinfo record."""
    return record("warcinfo", text, "")


def members(*records: bytes) -> bytes:
    """Return records in a gzip member each."""
    return b"".join(gzip.compress(one, mtime=0) for one in records)


def zeros(head: bytes, megabytes: int, byte: bytes = b"\0") -> bytes:
    """Return a gzip member of a head and so many megabytes of one byte, a hundredth as long or
    less.
    """
    squeezer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = byte * (1 << 20)
    return b"".join(
        [
            squeezer.compress(head),
            *(squeezer.compress(block) for _ in range(megabytes)),
            squeezer.flush(),
        ]
    )


ONE, TWO, THREE = (
    page(b"<p>%s" % name, f"http://{name.decode()}.test/") for name in (b"one", b"two", b"three")
)
LIMIT = "longer than 16777216 bytes, the longest page that is read"
ALL = ["http://one.test/", "http://two.test/", "http://three.test/"]


def read(path: Path) -> tuple[dict[str, tuple[int, str]], list[Rejected]]:
    """Return row and text by URL, and what was rejected."""
    (part,) = list_inputs([str(path)])
    rejected: list[Rejected] = []
    found = {}
    for batch in part.read(choose_columns([part]), rejected.append):
        assert batch.ids is not None
        found |= zip(
            batch.ids.to_pylist(),
            zip(batch.rows.tolist(), batch.text.to_pylist(), strict=True),
            strict=True,
        )
    return found, rejected


def read_bytes(
    folder: Path, data: bytes, name: str = "a.warc"
) -> tuple[dict[str, tuple[int, str]], list[Rejected]]:
    """Write a file, and read it."""
    (folder / name).write_bytes(data)
    return read(folder / name)


def why(folder: Path, one: bytes) -> str:
    """Return why a record is rejected."""
    found, (rejected,) = read_bytes(folder, info() + one + TWO)
    assert list(found) == ["http://two.test/"]
    assert (rejected.row, rejected.byte) == (1, len(info()))
    return rejected.reason
