"""The text of a message (RFC 5322, MIME): its subject and its body, without attachments.

The body is plain text if the message has any, otherwise the visible text of its HTML. Python's
package email reads headers and decodes parts. The parts are separated here: Python's parser takes a
call for each line, and for each level of parts inside parts, which a message may have by thousands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from typing import NamedTuple

from neardup.arrays import arrow_of_utf8
from neardup.documents.page_charset import decode_page
from neardup.documents.page_text import texts_of_pages

MAX_PARTS = 1000
MAX_DEPTH = 20
"""Levels of parts inside parts."""
MAX_HEADER_BYTES = 256 << 10
_MAX_FIELD_CHARACTERS = 4096  # Python reads the parameters of a field in quadratic time

_WITH_HIDDEN_TEXT = (
    "multipart/encrypted",
    "application/pkcs7-mime",
    "application/x-pkcs7-mime",
)
_OF_ASCII = ("utf-8", "windows-1252")
"""The encodings of texts that are ASCII, and show nothing about the subject."""
_HEADER_END = re.compile(rb"\A\r?\n|\r?\n\r?\n")
_FIELD = re.compile(rb"[!-9;-~]+[ \t]*:")
_FOLD = re.compile(r"\r?\n(?=[ \t])")
_ENCODED_WORD = r"=\?[^?]*?\?[qQbB]\?.*?\?="
_BACKSLASH = re.compile(rf"({_ENCODED_WORD})|\\")
"""An encoded word, or a backslash outside of one."""


class BadMessage(Exception):
    """A message cannot be read; the text of the error has the reason."""


class _Range(NamedTuple):
    """The bytes of a part in its message, [begin, end)."""

    begin: int
    end: int


class _Text(NamedTuple):
    """A text of a message, in UTF-8.

    charset : the encoding that it had; None if all of it is ASCII, and none is declared.
    """

    data: bytes
    is_html: bool
    charset: str | None


@dataclass
class _Part:
    """A part of a message, which may have parts.

    depth : levels of parts around it. inside : the parts in it, in order. texts : the chosen texts,
    once all parts inside it have theirs.
    """

    header: Message
    body: _Range
    depth: int
    inside: list[_Part] = field(default_factory=list)
    texts: list[_Text] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Its media type, text/plain by default."""
        return self.header.get_content_type()


def text_of_message(data: bytes) -> str:
    """Return the subject and the body of a message, on lines of their own.

    Raises
    ------
    BadMessage
        If the bytes are no message, or its text is encrypted.
    """
    if not _FIELD.match(data):
        raise BadMessage("it is no message: it does not begin with a field such as 'From: '")
    parts = _parts_of(data)
    # The parts inside a part follow it in the list.
    for part in reversed(parts):
        part.texts = _texts_of(data, part)
    whole = parts[0]
    if not whole.texts and any(part.kind in _WITH_HIDDEN_TEXT for part in parts):
        raise BadMessage("its text is encrypted, or inside a signature (S/MIME)")
    charset = next((text.charset for text in whole.texts if text.charset), None)
    lines = [_subject(whole.header, charset), *_decoded(whole.texts)]
    return "\n".join(line for line in lines if line).replace("\r\n", "\n")


def _parts_of(data: bytes) -> list[_Part]:
    """Return all parts of a message, the message itself first, each before the parts inside it."""
    root = _part_of(data, _Range(0, len(data)), depth=0)
    parts = [root]
    # The list grows in the loop, a queue, because parts may be nested deeper than Python calls.
    for part in parts:
        if not part.kind.startswith("multipart/"):
            continue
        if part.depth == MAX_DEPTH:
            raise BadMessage(f"it has parts inside parts in more than {MAX_DEPTH} levels")
        for found in _split(data, part):
            part.inside.append(_part_of(data, found, part.depth + 1))
            parts.append(part.inside[-1])
            if len(parts) > MAX_PARTS:
                raise BadMessage(f"it has more than {MAX_PARTS:,} parts")
    return parts


def _part_of(data: bytes, part: _Range, depth: int) -> _Part:
    limit = min(part.end, part.begin + MAX_HEADER_BYTES)
    found = _HEADER_END.search(data[part.begin : limit])
    if found is None and limit < part.end:
        raise BadMessage(f"a header is longer than {MAX_HEADER_BYTES} bytes")
    header_end = part.end if found is None else part.begin + found.end()
    header = BytesHeaderParser().parsebytes(data[part.begin : header_end])
    if len(str(header.get("content-type", ""))) > _MAX_FIELD_CHARACTERS:
        raise BadMessage(f"a content type has more than {_MAX_FIELD_CHARACTERS} characters")
    return _Part(header, _Range(header_end, part.end), depth)


def _split(data: bytes, part: _Part) -> Iterator[_Range]:
    """Yield the ranges of the parts inside a part.

    The text before the first boundary and after the last one is no part (RFC 2046, section 5.1.1).
    """
    boundary = _boundary_of(part.header).encode("utf-8", "surrogateescape")
    line = re.compile(b"--" + re.escape(boundary) + rb"(--)?[ \t]*(?:\r?\n|\Z)")
    begin = None
    for match in line.finditer(data, part.body.begin, part.body.end):
        is_line = match.start() == part.body.begin or data[match.start() - 1] == ord("\n")
        if not boundary or not is_line:
            continue
        if begin is not None:
            yield _Range(begin, max(begin, _before_line_end(data, match.start())))
        begin = match.end()
        if match[1]:
            return
    if begin is None:
        raise BadMessage("its parts cannot be found: no line has the boundary of its header")
    # Of a message that is cut off, the last part has no boundary after it.
    yield _Range(begin, part.body.end)


def _boundary_of(header: Message) -> str:
    """Return the boundary of the parts, "" without one."""
    try:
        return header.get_boundary("")
    except ValueError:  # its charset (RFC 2231) has a null character
        return ""


def _before_line_end(data: bytes, position: int) -> int:
    """Return the end of the line before a position: the line end belongs to the boundary."""
    return position - 2 if data[position - 2 : position] == b"\r\n" else position - 1


def _texts_of(data: bytes, part: _Part) -> list[_Text]:
    """Return the texts to read of a part. Requires: the parts in it have theirs."""
    kind = part.kind
    if not kind.startswith("multipart/"):
        is_attached = part.header.get_content_disposition() == "attachment"
        if kind not in ("text/plain", "text/html") or is_attached:
            return []
        return [_body_of(data, part)]
    inside = [inner.texts for inner in part.inside]
    with_text = [texts for texts in inside if any(text.data.strip() for text in texts)]
    if kind == "multipart/alternative":
        is_plain = [not all(text.is_html for text in texts) for texts in with_text]
        return with_text[is_plain.index(True) if True in is_plain else 0] if with_text else []
    # The first part is the page, the others are its images and styles.
    if kind == "multipart/related":
        return with_text[0] if with_text else []
    return [text for texts in with_text for text in texts]


def _body_of(data: bytes, part: _Part) -> _Text:
    """Return the body of a part that is a text."""
    body = data[part.body.begin : part.body.end]
    # The form in which Python's parser hands over bytes.
    part.header.set_payload(body.decode("ascii", "surrogateescape"))
    decoded = part.header.get_payload(decode=True)
    assert isinstance(decoded, bytes)
    part.header.set_payload("")
    page = decode_page(decoded, _charset_of(part.header))
    is_known = not decoded.isascii() or page.charset not in _OF_ASCII
    return _Text(page.html, part.kind == "text/html", page.charset if is_known else None)


def _charset_of(header: Message) -> str | None:
    """Return the declared encoding of a part."""
    try:
        return header.get_content_charset()
    except ValueError:  # as of a boundary
        return None


def _decoded(texts: Sequence[_Text]) -> list[str]:
    """Return texts as strings, HTML without its tags."""
    pages = arrow_of_utf8([text.data for text in texts if text.is_html])
    visible = iter(texts_of_pages(pages, main=False).to_pylist() if len(pages) else ())
    return [
        next(visible) if text.is_html else text.data.decode("utf-8", "replace") for text in texts
    ]


def _subject(header: Message, charset: str | None) -> str:
    """Return the subject on one line, with its encoded words (RFC 2047) decoded.

    charset : the encoding of the body, in which old programs write the bytes of a subject, too.
    """
    # The values of other methods have lost bytes that are not ASCII.
    values = [value for name, value in header.raw_items() if name.lower() == "subject"]
    raw = str(values[0]) if values else ""
    encoded = raw.encode("ascii", "surrogateescape")
    value = _FOLD.sub("", _decoded_subject(encoded, charset))
    if len(value) > _MAX_FIELD_CHARACTERS:
        return value
    if not re.search(_ENCODED_WORD, value):
        return value.strip()
    try:
        # Beside encoded words, Python writes escapes, from which a backslash must differ.
        words = decode_header(_BACKSLASH.sub(lambda found: found[1] or r"\u005c", value))
    except (MessageError, ValueError):
        return value
    # Damaged words may have no letter.
    return "".join(_word(word, charset) for word, charset in words).strip() or value


def _decoded_subject(data: bytes, charset: str | None) -> str:
    """Return the bytes of a subject as text: UTF-8 (RFC 6532), or in the encoding of the body."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return decode_page(data, charset).html.decode("utf-8", "replace")


def _word(word: str | bytes, charset: str | None) -> str:
    """Return a word as `decode_header` returns it: bytes without a charset are Python's escapes."""
    if isinstance(word, str):
        return word
    if charset is None:
        return word.decode("raw-unicode-escape", "replace")
    return decode_page(word, charset).html.decode("utf-8", "replace")
