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

MAX_CODINGS = 4  # bounds the work: each coding may inflate the body up to the limit
_MAX_MEMBERS = 100  # bounds the work: the rest of the body is copied for each
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = (31,)  # window bits of zlib: 15, and 16 for gzip's header
# With zlib's header, as in the standard; without a header, as many servers send it.
_DEFLATE_WINDOWS = (15, -15)
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?:[ \t].*)?\Z", re.DOTALL)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]{0,1000})?\r?\n")
_LINE_END = re.compile(rb"\r?\n")


class BadResponse(Exception):
    """A response cannot be read; the message has the reason."""


class TooLong(BadResponse):
    """The decoded body of a response is longer than the limit."""


class HeaderEnd(NamedTuple):
    """The offsets of the end of a header and of the block after its empty line."""

    header_stop: int
    block_start: int


class Response(NamedTuple):
    """A response: its status, its header with names in lower case, and its body as sent."""

    status: int
    header: dict[str, str]
    body: bytes


def header_end(data: bytes | bytearray) -> HeaderEnd | None:
    """Return the end of a header, its first empty line; None if there is none."""
    end = data.find(b"\r\n\r\n")
    # Bare line feeds are searched up to there only: they may be far off in a long block.
    bare_end = data.find(b"\n\n", 0, end if end >= 0 else len(data))
    if bare_end >= 0:
        return HeaderEnd(header_stop=bare_end, block_start=bare_end + 2)
    if end >= 0:
        return HeaderEnd(header_stop=end, block_start=end + 4)
    return None


def fields_of(lines: list[bytes]) -> dict[str, str]:
    """Return the fields of a header, names in lower case. Of repeated fields the first counts;
    folded lines are joined.
    """
    fields: dict[str, str] = {}
    last_name = None  # of the field that a folded line continues; None for an ignored field
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            if last_name is not None:
                fields[last_name] = f"{fields[last_name]} {_text(line)}".strip()
            continue
        field, colon, value = line.partition(b":")
        name = _text(field).lower()
        is_new = bool(colon and name) and name not in fields
        last_name = name if is_new else None
        if is_new:
            fields[name] = _text(value)
    return fields


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace").strip()


def parse_response(block: bytes) -> Response:
    """Return the parts of a response.

    Raises
    ------
    BadResponse
        If the block does not begin with a status line, or its header is too long.
    """
    # The longest header, and the four bytes of the line end and the empty line after it.
    end = header_end(block[: MAX_HEADER_BYTES + 4])
    if end is None and len(block) > MAX_HEADER_BYTES:
        raise BadResponse(f"the HTTP header is longer than {MAX_HEADER_BYTES} bytes")
    if end is None:  # a response without a body
        end = HeaderEnd(header_stop=len(block), block_start=len(block))
    first_line, *lines = _LINE_END.split(block[: end.header_stop])
    status = _STATUS.match(first_line)
    if status is None:
        raise BadResponse(
            "the record contains no HTTP response: it does not begin with a status line"
        )
    return Response(status=int(status[1]), header=fields_of(lines), body=block[end.block_start :])


def decoded_body(response: Response, limit: int) -> bytes:
    """Return the body without chunks and compression.

    Raises
    ------
    TooLong
        If it has more than `limit` bytes.
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
    # The encoding that is listed last was applied last.
    for coding in reversed(codings):
        body = _decoded(body, coding, limit)
    if len(body) > limit:
        raise TooLong
    return body


def _codings(value: str) -> list[str]:
    """Return the encodings that a field lists, in lower case, without `identity`."""
    # Some servers name the charset, "utf-8", as an encoding.
    codings = [name.strip() for name in value.lower().split(",")]
    return [coding for coding in codings if coding not in ("", "identity", "utf-8")]


def _dechunked(body: bytes) -> bytes | None:
    """Return the contents of the chunks up to the last readable chunk; None without chunks."""
    pieces: list[bytes] = []
    position = 0
    while size := _CHUNK_SIZE.match(body, position):
        length = int(size[1], 16)
        if length == 0:  # the end of the body, or the first line of a body stored dechunked
            return b"".join(pieces) if pieces or not body[size.end() :].strip() else None
        start = size.end()
        position = start + length
        pieces.append(body[start:position])
        if body.startswith(b"\r\n", position):
            position += 2
        elif body.startswith(b"\n", position):
            position += 1
        elif position < len(body):
            # A body that was stored dechunked may begin with a line that looks like a size, so a
            # single chunk proves nothing.
            return b"".join(pieces) if len(pieces) > 1 else None
    if not pieces:
        return None
    if position < len(body):
        raise BadResponse("the chunks of the body are damaged")
    return b"".join(pieces)


def _decoded(body: bytes, coding: str, limit: int) -> bytes:
    """Return a body without one encoding; a body that is not in the encoding is not changed."""
    if coding in ("gzip", "x-gzip"):
        is_encoded = body.startswith(_GZIP_MAGIC)
        return _inflate(body, _GZIP_WINDOW, coding, limit) if is_encoded else body
    if not body or _is_markup(body):
        return body
    if coding == "deflate":
        return _inflate(body, _DEFLATE_WINDOWS, coding, limit)
    raise BadResponse(
        f"the body has the content encoding {coding:.50}, which is not supported (only gzip and "
        "deflate are)"
    )


def _is_markup(body: bytes) -> bool:
    """Return whether a body is a decoded page: it begins with a tag, after little white space."""
    return body[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _inflate(body: bytes, window_bits: tuple[int, ...], coding: str, limit: int) -> bytes:
    """Inflate a body with the first of several settings of zlib that accepts it."""
    first, *others = window_bits
    try:
        return _inflate_members(body, first, coding, limit)
    except zlib.error as error:
        if others:
            return _inflate(body, tuple(others), coding, limit)
        reason = f"the body is damaged in its content encoding {coding}: {error}"
        raise BadResponse(reason) from error


def _inflate_members(body: bytes, bits: int, coding: str, limit: int) -> bytes:
    """Inflate a body, which in gzip may be several members, one after the other (RFC 1952).

    Raises zlib.error for another setting of zlib.
    """
    pieces: list[bytes] = []
    for _ in range(_MAX_MEMBERS):
        inflater = zlib.decompressobj(bits)
        # One byte more shows that the body is too long.
        pieces.append(inflater.decompress(body, limit + 1))
        limit -= len(pieces[-1])
        if limit < 0:
            raise TooLong
        if not inflater.eof:
            raise BadResponse(f"the body is cut short inside its content encoding {coding}")
        body = inflater.unused_data
        # Other bytes after a member are padding, or of no use.
        if not body.startswith(_GZIP_MAGIC):
            return b"".join(pieces)
    raise BadResponse(
        f"the body has more than {_MAX_MEMBERS} members in its content encoding {coding}"
    )
