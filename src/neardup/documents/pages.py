"""Read pages from bytes: recognise HTML, decode it to UTF-8, extract the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa

from neardup.arrays import Ints, arrow_of_optional, arrow_of_utf8
from neardup.documents.batch import Columns, DocumentBatch, Pages, Reject
from neardup.documents.nested import ColumnTypes
from neardup.documents.page_charset import Decoded, decode_page
from neardup.documents.page_head import COMMENT_END, HEAD_CHARACTERS, language_of, title_of
from neardup.documents.texts import documents_of
from neardup.documents.xhtml import MEDIA_TYPE as XHTML_TYPE
from neardup.documents.xhtml import begins_as_xhtml, html_of_xhtml

MAX_PAGE_BYTES = 16 << 20
"""Largest size of a decompressed page: browsers give up long before, and a bomb must be stopped."""

HTML_TYPES = ("text/html", XHTML_TYPE)
"""The media types of pages."""

TEXT_COLUMN = "html"

_PAGE_TYPES: ColumnTypes = {
    "charset": pa.string(),
    "title": pa.string(),
    "language": pa.string(),
    TEXT_COLUMN: pa.large_string(),
}
COLUMN_TYPES: dict[str, ColumnTypes] = {
    "html": {"file": pa.string(), **_PAGE_TYPES},
    "warc": {"url": pa.string(), "date": pa.timestamp("us", "UTC"), **_PAGE_TYPES},
}
"""The columns of pages, by format."""

PREFIX_BYTES = 1024
"""Bytes at the beginning of a file that show its kind."""

_SIGNATURES = (
    (b"%PDF-", "PDF"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"wOFF", "a font"),
    (b"wOF2", "a font"),
    (b"\x1aE\xdf\xa3", "a video"),
    (b"ID3", "audio"),
)
_XHTML_NAME = re.compile(r"\.xhtml(?:\.(?:gz|zst|bz2|xz))?\Z", re.IGNORECASE)
# An object, or an array: of a single number or word it is no page either, but may be the beginning
# of one, as in `[1] <p>` or `[note] <p>`.
_JSON = re.compile(rb"""\{\s*["}]|\[\s*(?:[\[\]{"]|(?:-?[0-9][0-9.eE+-]*|true|false|null)\s*,)""")
_ELEMENT_OR_COMMENT = re.compile(rb"<(?:(!--)|[A-Za-z])")
_COMMENT_END = re.compile(COMMENT_END.encode())
_MARKUP = re.compile(rb"<[A-Za-z!?]")
# Bytes before the first character: of the byte order marks of UTF-8 and UTF-16, and of blanks,
# beside which UTF-16 has zeros.
_BLANK_AND_MARK = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n\f"


class NotAPage(Exception):
    """Bytes are not a page; the message has the reason."""


class TooLongPage(NotAPage):
    """A page is longer than the limit."""


class NoElement(NotAPage):
    """Bytes that no rule excludes have no HTML element."""


class Page(NamedTuple):
    """A page: its HTML in UTF-8, its original encoding, its origin (URL or file), and the time when
    it was fetched.
    """

    html: bytes
    charset: str
    origin: str | None
    date: datetime | None = None


def too_long() -> TooLongPage:
    """Return the error for content longer than the limit."""
    return TooLongPage(
        f"the page is longer than {MAX_PAGE_BYTES} bytes, the longest page that is read"
    )


def check_media_type(media_type: str) -> None:
    """Raise NotAPage if a type other than HTML is declared; "" declares nothing."""
    if media_type and media_type not in HTML_TYPES:
        raise NotAPage(f"not HTML: its content type is {media_type:.100}")


def media_type_of_name(name: str) -> str:
    """Return XHTML for a file of its suffix, "" for other names."""
    return XHTML_TYPE if _XHTML_NAME.search(name) else ""


def html_of(data: bytes, charset: str | None = None, media_type: str = "") -> Decoded:
    """Return the HTML in the bytes of a page.

    Parameters
    ----------
    data : the bytes, decompressed.
    charset : the encoding that the HTTP header declares.
    media_type : XHTML is read as XML; without a type, so is a page that begins as XHTML.
    """
    is_xml = media_type == XHTML_TYPE
    decoded = decode_page(data, charset, is_xml=is_xml)
    if is_xml or (not media_type and begins_as_xhtml(decoded.html)):
        written = html_of_xhtml(decoded.html.decode("utf-8", "replace"))
        return decoded._replace(html=written.encode())
    return decoded


def page_of(
    data: bytes,
    origin: str | None,
    date: datetime | None = None,
    *,
    charset: str | None = None,
    media_type: str = "",
) -> Page:
    """Return the page in some bytes.

    Parameters
    ----------
    data : the bytes, decompressed.
    origin, date : the URL or file, and the time when it was fetched.
    charset, media_type : see `html_of`.

    Raises
    ------
    NotAPage
        If the bytes are not HTML, longer than `MAX_PAGE_BYTES`, or without any element.
    """
    if len(data) > MAX_PAGE_BYTES:
        raise too_long()
    begin = data[:PREFIX_BYTES].lstrip(_BLANK_AND_MARK)
    kind = _other_kind(data, begin)
    if kind is not None:
        raise NotAPage(f"not HTML: it begins as {kind} does")
    decoded = html_of(data, charset, media_type)
    if not has_element(decoded.html):
        raise (NoElement if begin else NotAPage)("no HTML element")
    return Page(html=decoded.html, charset=decoded.charset, origin=origin, date=date)


def _other_kind(data: bytes, begin: bytes) -> str | None:
    """Return the kind of content that is not HTML; begin : the first bytes without blanks."""
    for magic, kind in _SIGNATURES:
        if data.startswith(magic) or begin.startswith(magic):
            return kind
    return "JSON" if _JSON.match(begin) else None


def looks_like_markup(data: bytes) -> bool:
    """Return whether content without a declared type begins like a page."""
    # UTF-16 has a zero beside each Latin letter.
    begin = data[:PREFIX_BYTES].lstrip(_BLANK_AND_MARK).replace(b"\x00", b"")
    return _MARKUP.match(begin) is not None


def has_element(html: bytes) -> bool:
    """Return whether there is a start tag, `<` and a letter, outside comments."""
    position = 0
    while match := _ELEMENT_OR_COMMENT.search(html, position):
        is_comment = match[1] is not None
        if not is_comment:
            return True
        close = _COMMENT_END.search(html, match.end())
        if close is None:
            return False
        position = close.end()
    return False


def page_rows(
    pages: Sequence[Page], format_name: str, wanted: Sequence[str] | None = None
) -> pa.RecordBatch:
    """Return pages as rows, with some of the columns of their format, or all."""
    types = COLUMN_TYPES[format_name]
    names = [name for name in types if wanted is None or name in wanted]
    heads: list[str] = []
    if {"title", "language"} & set(names):
        # A character has four bytes at most. "ignore" drops the part of a character at the cut.
        heads = [page.html[: 4 * HEAD_CHARACTERS].decode("utf-8", "ignore") for page in pages]
    columns = [_column(name, pages, heads) for name in names]
    schema = pa.schema([(name, types[name]) for name in names])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def page_documents(
    pages: Sequence[Page],
    rows: Ints,
    columns: Columns,
    file: str,
    format_name: str,
    *,
    reject: Reject,
    payload: Pages | None,
) -> DocumentBatch:
    """Return pages as a batch of documents; their text is their HTML, unless another of their
    columns is named.
    """
    names = columns.names
    html = None
    if columns.text == TEXT_COLUMN or columns.text not in COLUMN_TYPES[format_name]:
        html = arrow_of_utf8([page.html for page in pages])
        names = [name for name in names if name != columns.text]
    batch = page_rows(pages, format_name, names)
    return documents_of(batch, rows, columns, file, reject, payload=payload, valid_text=html)


def _column(name: str, pages: Sequence[Page], heads: list[str]) -> pa.Array:
    if name == TEXT_COLUMN:
        return arrow_of_utf8([page.html for page in pages])
    if name == "date":
        return pa.array([page.date for page in pages], COLUMN_TYPES["warc"][name])
    if name == "title":
        return arrow_of_optional([title_of(head) for head in heads])
    if name == "language":
        return arrow_of_optional([language_of(head) for head in heads])
    if name == "charset":
        return arrow_of_optional([page.charset for page in pages])
    return arrow_of_optional([page.origin for page in pages])
