"""Reading WARC files: each HTTP response that holds a page is a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np

from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.documents.http_response import BadResponse, TooLong, decoded_body, parse_response
from neardup.documents.page_charset import charset_parameter
from neardup.documents.pages import (
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
from neardup.documents.warc_bytes import GzipBytes, WarcBytes
from neardup.documents.warc_records import Fields, Record, read_records
from neardup.formats import BLOCK_BYTES, Pages

_MAX_PAGES_AT_ONCE = 4096
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?Z?")


def read(
    source: Source, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the pages of a WARC file; a response that holds none is rejected, other records are no documents."""
    waiting = _Waiting(source.name, columns, with_payload)
    # Members of gzip are told apart here; other compressions are of the whole file.
    is_gzip = source.compression == "gzip"
    with (replace(source, compression=None) if is_gzip else source).open_stream() as stream:
        data = GzipBytes(stream, keep=with_payload) if is_gzip else WarcBytes(stream)
        for record in read_records(data, _is_wanted, with_source=with_payload):
            if record.problem is not None:
                reject(Rejected(source.name, record.row, None, record.byte, record.problem, record.is_last))
            elif _is_response(record.fields):
                try:
                    waiting.add(record, _page(record))
                except (NotAPage, BadResponse) as error:
                    reject(Rejected(source.name, record.row, None, record.byte, str(error)))
            elif record.source is not None:
                waiting.note(record.source)
            if waiting.is_full():
                yield waiting.batch()
    if not waiting.is_empty():
        yield waiting.batch()


class _Waiting:
    """Pages that wait to become a batch."""

    def __init__(self, name: str, columns: Columns, with_payload: bool) -> None:
        self._name, self._columns, self._with_payload = name, columns, with_payload
        self._clear()

    def _clear(self) -> None:
        self._pages: list[Page] = []
        self._rows: list[int] = []
        self._records: list[bytes] = []
        self._notes: list[tuple[int, bytes]] = []
        self._num_bytes = 0

    def add(self, record: Record, page: Page) -> None:
        self._pages.append(page)
        self._rows.append(record.row)
        self._num_bytes += len(page.html)
        if record.source is not None:
            self._records.append(record.source)
            self._num_bytes += len(record.source)

    def note(self, record: bytes) -> None:
        if self._with_payload:
            self._notes.append((len(self._pages), record))
            self._num_bytes += len(record)

    def is_full(self) -> bool:
        return self._num_bytes >= BLOCK_BYTES or len(self._pages) >= _MAX_PAGES_AT_ONCE

    def is_empty(self) -> bool:
        return not self._pages and not self._notes

    def batch(self) -> DocumentBatch:
        pages, rows = self._pages, np.array(self._rows, dtype=np.int64)
        payload = Pages(self._records, self._notes, lambda: page_rows(pages, "warc")) if self._with_payload else None
        self._clear()
        return page_documents(pages, rows, self._columns, self._name, "warc", payload)


def _is_wanted(fields: Fields) -> bool:
    return _is_response(fields) or fields.get("warc-type", "").lower() == "warcinfo"


def _is_response(fields: Fields) -> bool:
    """Return whether a record holds an HTTP response; those of DNS and others have content types of their own."""
    content_type = fields.get("content-type", "application/http").lower()
    return fields.get("warc-type", "").lower() == "response" and content_type.startswith("application/http")


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
    return page_of(
        body,
        record.fields.get("warc-target-uri", "").strip("<>") or None,
        _date(record.fields.get("warc-date", "")),
        charset=charset_parameter(content_type),
    )


def _date(text: str) -> datetime | None:
    """Return a time as WARC writes it (W3C's profile of ISO 8601, UTC), to the microsecond; None if it is not one."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        date = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    return date.replace(microsecond=int((match[2] or "").ljust(6, "0")[:6]), tzinfo=timezone.utc)
