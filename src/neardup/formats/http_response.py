"""Parse the HTTP responses of archives: status, header, and decoded body.

Archives often keep the header of a response but store its body dechunked or inflated (Common Crawl
renames such a header, others do not). So an encoding is decoded if the body is in it, and ignored
if it is not.
"""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

MAX_HEADER_BYTES = 64 << 10
"""A response or record with a longer header is rejected."""

MAX_CODINGS = 4
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?:[ \t].*)?\Z", re.DOTALL)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]{0,1000})?\r?\n")
_LINE_END = re.compile(rb"\r?\n")


class BadResponse(Exception):
    """A response cannot be read; the message has the reason."""


class TooLong(BadResponse):
    """The decoded body of a response is longer than the limit."""


class Response(NamedTuple):
    """A response: its status, its header with names in lower case, and its body as it was sent."""

    status: int
    header: dict[str, str]
    body: bytes


def header_end(data: bytes | bytearray) -> tuple[int, int] | None:
    """Return the end of a header and the start of the body, after the first empty line; None if
    there is none.
    """
    end = data.find(b"\r\n\r\n")
    # Not searched after that: it can be far off, or nowhere in a long block.
    bare = data.find(b"\n\n", 0, end if end >= 0 else len(data))
    if bare >= 0:
        return bare, bare + 2
    return (end, end + 4) if end >= 0 else None


def fields_of(lines: list[bytes]) -> dict[str, str]:
    """Return the fields of a header, names in lower case; of a repeated one the first, a folded one
    unfolded.
    """
    fields: dict[str, str] = {}
    name = None
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            if name is not None:
                fields[name] = f"{fields[name]} {_text(line)}".strip()
            continue
        field, colon, value = line.partition(b":")
        new = _text(field).lower()
        name = new if colon and new and new not in fields else None
        if name is not None:
            fields[name] = _text(value)
    return fields


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace").strip()


def parse_response(block: bytes) -> Response:
    """Return the parts of a response.

    Raises
    ------
    BadResponse
        If it does not begin with a status line, or its header is too long.
    """
    end = header_end(block[: MAX_HEADER_BYTES + 4])
    if end is None and len(block) > MAX_HEADER_BYTES:
        raise BadResponse(f"the HTTP header is longer than {MAX_HEADER_BYTES} bytes")
    stop, begin = end or (len(block), len(block))
    first, *lines = _LINE_END.split(block[:stop])
    status = _STATUS.match(first)
    if status is None:
        raise BadResponse(
            "the record contains no HTTP response: it does not begin with a status line"
        )
    return Response(int(status[1]), fields_of(lines), block[begin:])


def decoded_body(response: Response, limit: int) -> bytes:
    """Return the body without chunks and compression, at most `limit` bytes of it.

    Raises
    ------
    TooLong
        If it has more.
    BadResponse
        If its compression is unknown, or it is damaged.
    """
    body = response.body
    transfer = _codings(response.header.get("transfer-encoding", ""))
    if "chunked" in transfer:
        dechunked = _dechunked(body)
        body = body if dechunked is None else dechunked
    codings = _codings(response.header.get("content-encoding", ""))
    codings += [coding for coding in transfer if coding != "chunked"]
    if len(codings) > MAX_CODINGS:
        raise BadResponse(
            f"the body is encoded {len(codings)} times; at most {MAX_CODINGS} are decoded"
        )
    for coding in reversed(codings):
        body = _inflated(body, coding, limit)
    if len(body) > limit:
        raise TooLong
    return body


def _codings(value: str) -> list[str]:
    return [
        coding
        for name in value.lower().split(",")
        if (coding := name.strip()) not in ("", "identity", "utf-8")
    ]


def _dechunked(body: bytes) -> bytes | None:
    """Return the contents of the chunks, as far as they go; None if there are none."""
    pieces: list[bytes] = []
    position = 0
    while size := _CHUNK_SIZE.match(body, position):
        length = int(size[1], 16)
        if length == 0:
            return b"".join(pieces)
        pieces.append(body[size.end() : size.end() + length])
        position = size.end() + length
        if body.startswith(b"\r\n", position):
            position += 2
        elif body.startswith(b"\n", position):
            position += 1
        elif position < len(body):
            return b"".join(pieces) if len(pieces) > 1 else None
    if not pieces:
        return None
    if position < len(body):
        raise BadResponse("the chunks of the body are damaged")
    return b"".join(pieces)


def _inflated(body: bytes, coding: str, limit: int) -> bytes:
    if coding in ("gzip", "x-gzip"):
        return _inflate(body, (31,), coding, limit) if body.startswith(b"\x1f\x8b") else body
    if coding == "deflate":
        # With the header of zlib by the standard, without it by many servers.
        return body if _is_markup(body) else _inflate(body, (15, -15), coding, limit)
    if _is_markup(body):
        return body
    raise BadResponse(
        f"the body has the content encoding {coding:.50}, which is not supported (only gzip "
        "and deflate are)"
    )


def _is_markup(body: bytes) -> bool:
    return body[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _inflate(body: bytes, window_bits: tuple[int, ...], coding: str, limit: int) -> bytes:
    for bits in window_bits:
        inflater = zlib.decompressobj(bits)
        try:
            data = inflater.decompress(body, limit + 1)
        except zlib.error as error:
            reason = str(error)
            continue
        if len(data) > limit:
            raise TooLong
        if not inflater.eof:
            raise BadResponse(f"the body is cut short inside its content encoding {coding}")
        return data
    raise BadResponse(f"the body is damaged in its content encoding {coding}: {reason}")
