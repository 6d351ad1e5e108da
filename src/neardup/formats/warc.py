"""WARC files: each HTTP response with a page is a document."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import NamedTuple

import numpy as np

from neardup.documents.batch import BLOCK_BYTES, Columns, DocumentBatch, Pages, Reject, Rejected
from neardup.documents.page_charset import charset_parameter
from neardup.documents.pages import (
    COLUMN_TYPES,
    HTML_TYPES,
    MAX_PAGE_BYTES,
    NotAPage,
    Page,
    TooLongPage,
    check_media_type,
    looks_like_markup,
    page_documents,
    page_of,
    page_rows,
    too_long,
)
from neardup.documents.sinks import open_compressed
from neardup.documents.sources import Source, Stretch
from neardup.documents.stretches import cut, member_starts
from neardup.executor import group_small
from neardup.formats.http_response import BadResponse, TooLong, decoded_body, parse_response
from neardup.formats.registry import Handler
from neardup.formats.warc_bytes import GzipBytes, WarcBytes, begins_with_record
from neardup.formats.warc_records import Fields, Record, read_records

_TYPES = (
    "response",
    "warcinfo",
    "request",
    "metadata",
    "revisit",
    "resource",
    "conversion",
    "continuation",
)
_GZIP_MAGIC, _BLANK = b"\x1f\x8b", b"\r\n\r\n"
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?Z?")


class _Item(NamedTuple):
    """A page, with the record that it is from if it is requested; or a record about the file,
    without a page.
    """

    page: Page | None
    row: int
    record: bytes | None


def stretches(source: Source) -> list[Stretch]:
    """Return stretches that begin where a record seems to begin."""
    if not source.is_local or source.compression not in (None, "gzip"):
        return []
    with source.open_file() as file:
        if source.compression == "gzip":
            starts = member_starts(file, begins_with_record)
        else:
            starts = [byte + len(_BLANK) for byte in member_starts(file, bool, _BLANK + b"WARC/1.")]
        return cut(starts, file.size())


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the pages of a WARC file; a response without one is rejected, other records are no
    documents.
    """
    for items in group_small(_items(source, reject, with_payload), _bytes_of, BLOCK_BYTES):
        pages = [item.page for item in items if item.page is not None]
        rows = np.array([item.row for item in items if item.page is not None], np.int64)
        payload = _payload(items, pages) if with_payload else None
        yield page_documents(pages, rows, columns, source.name, "warc", reject, payload)


def _items(source: Source, reject: Reject, with_payload: bool) -> Iterator[_Item]:  # noqa: C901
    # Gzip members are handled here; other compressions apply to the whole file.
    is_gzip, stretch = source.compression == "gzip", source.stretch
    with (replace(source, compression=None) if is_gzip else source).open_stream() as stream:
        if stretch is not None:
            stream.seek(stretch.begin)
        data = (
            GzipBytes(stream, stretch, keep=with_payload) if is_gzip else WarcBytes(stream, stretch)
        )
        for record in read_records(data, _is_wanted, with_source=with_payload):
            if stretch is not None:
                stretch.rows = record.row + 1
            rejected = partial(Rejected, source.name, record.row, None, record.byte)
            if record.problem is not None:
                reject(
                    rejected(record.problem, record.is_last, record.is_too_long, record.is_too_long)
                )
            elif _is_response(record.fields):
                try:
                    yield _Item(_page(record), record.row, record.source)
                except (NotAPage, TooLong) as error:
                    is_too_long = isinstance(error, TooLongPage | TooLong)
                    reject(rejected(str(error), excluded=True, too_long=is_too_long))
                except BadResponse as error:
                    reject(rejected(str(error)))
            elif "warc-type" not in record.fields:
                reject(rejected("the record has no WARC-Type"))
            elif _is_text(record.fields) or record.fields["warc-type"].lower() not in _TYPES:
                kind = record.fields["warc-type"].lower()[:50]
                reason = (
                    f"the record is a {kind}: of an archive, records of the type response are read"
                )
                reject(rejected(reason, excluded=True))
            elif record.source is not None:
                yield _Item(None, record.row, record.source)
        if stretch is not None and not stretch.reached:
            stretch.reached = max(stretch.ends)


def _bytes_of(item: _Item) -> int:
    return len(item.page.html if item.page else b"") + len(item.record or b"")


def _payload(items: list[_Item], pages: list[Page]) -> Pages:
    records: list[bytes] = []
    about: list[tuple[int, bytes]] = []
    for page, _, record in items:
        assert record is not None  # it is requested
        if page is None:
            about.append((len(records), record))
        else:
            records.append(record)
    return Pages(records, about, lambda: page_rows(pages, "warc"))


def _is_wanted(fields: Fields) -> bool:
    return _is_response(fields) or fields.get("warc-type", "").lower() == "warcinfo"


def _is_text(fields: Fields) -> bool:
    """Return whether a record that is no response has a document: WET files, and pages that a
    program rendered.
    """
    kind = fields.get("warc-type", "").lower()
    media_type = fields.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "conversion" or (
        kind == "resource" and media_type in (*HTML_TYPES, "text/plain")
    )


def _is_response(fields: Fields) -> bool:
    """Return whether a record is an HTTP response; DNS and other responses have other content
    types.
    """
    content_type = fields.get("content-type", "application/http").lower()
    return fields.get("warc-type", "").lower() == "response" and content_type.startswith(
        "application/http"
    )


def _page(record: Record) -> Page:
    assert record.block is not None
    response = parse_response(record.block)
    if response.status != 200:
        raise NotAPage(f"HTTP status {response.status}")
    content_type = response.header.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    check_media_type(media_type)
    try:
        body = decoded_body(response, MAX_PAGE_BYTES)
    except TooLong:
        raise too_long() from None
    if not media_type and not looks_like_markup(body):
        raise NotAPage("not HTML: it has no content type and does not begin as a page does")
    origin = record.fields.get("warc-target-uri", "").strip("<>") or None
    date = _date(record.fields.get("warc-date", ""))
    return page_of(body, origin, date, charset=charset_parameter(content_type))


def _date(text: str) -> datetime | None:
    """Return a time as WARC writes it (W3C's profile of ISO 8601, UTC), to the microsecond; None if
    it is not one.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        date = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    return date.replace(microsecond=int((match[2] or "").ljust(6, "0")[:6]), tzinfo=timezone.utc)


class WarcSink:
    """A WARC file; under gzip, a member a record."""

    def __init__(self, path: str, compression: str | None) -> None:
        self._is_gzip = compression == "gzip"
        # Each record becomes a member; other compressions apply to the whole file.
        self._stream = open_compressed(path, None if self._is_gzip else compression)

    def write(self, pages: Pages) -> None:
        """Write the records of pages, and the metadata records between them."""
        metadata = list(pages.metadata_records)
        for index, record in enumerate(pages.records):
            while metadata and metadata[0][0] <= index:
                self._write(metadata.pop(0)[1])
            self._write(record)
        for _, record in metadata:
            self._write(record)

    def _write(self, record: bytes) -> None:
        if self._is_gzip and not record.startswith(_GZIP_MAGIC):
            record = gzip.compress(record, 6, mtime=0)
        self._stream.write(record)

    def close(self) -> None:
        """Finish the file."""
        self._stream.close()

    discard = close


def _make_sink(source: Source) -> Callable[[str], WarcSink]:
    return partial(WarcSink, compression=source.compression)


HANDLER = Handler(read, _make_sink, lambda _: dict(COLUMN_TYPES["warc"]), stretches=stretches)
