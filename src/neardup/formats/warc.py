"""WARC files: each HTTP response with a page is a document, and each page stored as a resource."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from neardup.documents.batch import Columns, DocumentBatch, Reject
from neardup.documents.page_charset import charset_parameter
from neardup.documents.pages import (
    COLUMN_TYPES,
    HTML_TYPES,
    MAX_PAGE_BYTES,
    NotAPage,
    Page,
    check_media_type,
    looks_like_markup,
    page_documents,
    page_of,
    page_rows,
    too_long,
)
from neardup.documents.sources import Source
from neardup.formats.http_response import TooLong, decoded_body, parse_response
from neardup.formats.registry import Handler
from neardup.formats.warc_items import (
    Contents,
    date_of,
    describe_type,
    make_sink,
    media_type_of,
    origin_of,
    read_items,
    stretches,
)
from neardup.formats.warc_records import Fields, Record


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the pages of a WARC file. A response without a page is rejected; other records are no
    documents.
    """
    for items in read_items(source, _PAGES, reject, with_payload=with_payload):
        pages: list[Page] = items.documents
        rows = partial(page_rows, pages, "warc")
        payload = items.payload(rows) if with_payload else None
        yield page_documents(
            pages, items.rows, columns, source.name, "warc", reject=reject, payload=payload
        )


def _is_page(fields: Fields) -> bool:
    return _is_response(fields) or _is_resource(fields)


def _is_response(fields: Fields) -> bool:
    """Return whether a record is an HTTP response; DNS and other responses have other content
    types.
    """
    content_type = fields.get("content-type", "application/http").lower()
    is_http = content_type.startswith("application/http")
    return is_http and fields.get("warc-type", "").lower() == "response"


def _is_resource(fields: Fields) -> bool:
    """Return whether a record is a page as a program has stored it, without a response.

    Browsertrix adds the text and the picture of a page under addresses such as `urn:text:`; the
    page itself is in the same archive.
    """
    is_resource = fields.get("warc-type", "").lower() == "resource"
    is_derived = fields.get("warc-target-uri", "").strip("<>").startswith("urn:")
    is_html = media_type_of(fields.get("content-type", "")) in HTML_TYPES
    return is_resource and is_html and not is_derived


def _why_not(fields: Fields) -> str | None:
    """Return why a record is no page; None for responses of other protocols, images and the
    like.
    """
    kind = fields.get("warc-type", "").lower()
    media_type = media_type_of(fields.get("content-type", ""))
    if kind == "response" or (kind == "resource" and media_type not in (*HTML_TYPES, "text/plain")):
        return None
    return (
        f"{describe_type(fields)}: of a .warc, responses and resources with a page are read. For "
        "texts, end its name with .wet, or name the format with in_format (--in-format wet)"
    )


def _page(record: Record) -> Page:
    """Return the page of a record. Raises NotAPage or BadResponse if there is none."""
    assert record.block is not None
    if not _is_response(record.fields):
        return _page_of(record, record.block, record.fields["content-type"])
    response = parse_response(record.block)
    if response.status != 200:
        raise NotAPage(f"HTTP status {response.status}")
    content_type = response.header.get("content-type", "")
    media_type = media_type_of(content_type)
    check_media_type(media_type)
    try:
        body = decoded_body(response, MAX_PAGE_BYTES)
    except TooLong:
        raise too_long() from None
    if not media_type and not looks_like_markup(body):
        raise NotAPage("not HTML: it has no content type and does not begin as a page does")
    return _page_of(record, body, content_type)


def _page_of(record: Record, body: bytes, content_type: str) -> Page:
    origin = origin_of(record.fields)
    charset = charset_parameter(content_type)
    return page_of(
        body,
        origin,
        date_of(record.fields),
        charset=charset,
        media_type=media_type_of(content_type),
    )


def _size_of(page: Page) -> int:
    return len(page.html)


_PAGES = Contents(_is_page, _page, _size_of, _why_not)

HANDLER = Handler(read, make_sink, lambda _: dict(COLUMN_TYPES["warc"]), stretches=stretches)
