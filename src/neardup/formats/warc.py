"""WARC files: each HTTP response with a page is a document."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial

import numpy as np

from neardup.documents.batch import BLOCK_BYTES, Columns, DocumentBatch, Rejected
from neardup.documents.compression import open_compressed
from neardup.documents.page_charset import charset_parameter
from neardup.documents.pages import (
    COLUMN_TYPES,
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
from neardup.documents.payload import Pages
from neardup.documents.sources import Source
from neardup.formats.http_response import BadResponse, TooLong, decoded_body, parse_response
from neardup.formats.registry import Handler
from neardup.formats.warc_bytes import GzipBytes, WarcBytes
from neardup.formats.warc_records import Fields, Record, read_records

_MAX_PAGES_AT_ONCE = 4096
_GZIP_MAGIC = b"\x1f\x8b"
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?Z?")


def read(
    source: Source, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the pages of a WARC file; a response without one is rejected, other records are no documents."""
    buffer = _PageBuffer(source.name, columns, reject, with_payload)
    # Gzip members are handled here; other compressions apply to the whole file.
    is_gzip = source.compression == "gzip"
    with (replace(source, compression=None) if is_gzip else source).open_stream() as stream:
        data = GzipBytes(stream, keep=with_payload) if is_gzip else WarcBytes(stream)
        for record in read_records(data, _is_wanted, with_source=with_payload):
            if record.problem is not None:
                reject(Rejected(source.name, record.row, None, record.byte, record.problem, record.is_last))
            elif _is_response(record.fields):
                try:
                    buffer.add(record, _page(record))
                except (NotAPage, BadResponse) as error:
                    reject(Rejected(source.name, record.row, None, record.byte, str(error)))
            elif record.source is not None:
                buffer.add_metadata(record.source)
            if buffer.is_full():
                yield buffer.batch()
    if not buffer.is_empty():
        yield buffer.batch()


class _PageBuffer:
    """Pages that are collected into a batch."""

    def __init__(self, name: str, columns: Columns, reject: Callable[[Rejected], None], with_payload: bool) -> None:
        self._name, self._columns, self._reject, self._with_payload = name, columns, reject, with_payload
        self._clear()

    def _clear(self) -> None:
        self._pages: list[Page] = []
        self._rows: list[int] = []
        self._records: list[bytes] = []
        self._metadata_records: list[tuple[int, bytes]] = []
        self._num_bytes = 0

    def add(self, record: Record, page: Page) -> None:
        self._pages.append(page)
        self._rows.append(record.row)
        self._num_bytes += len(page.html)
        if record.source is not None:
            self._records.append(record.source)
            self._num_bytes += len(record.source)

    def add_metadata(self, record: bytes) -> None:
        if self._with_payload:
            self._metadata_records.append((len(self._pages), record))
            self._num_bytes += len(record)

    def is_full(self) -> bool:
        return self._num_bytes >= BLOCK_BYTES or len(self._pages) >= _MAX_PAGES_AT_ONCE

    def is_empty(self) -> bool:
        return not self._pages and not self._metadata_records

    def batch(self) -> DocumentBatch:
        pages, rows = self._pages, np.array(self._rows, dtype=np.int64)
        payload = None
        if self._with_payload:
            payload = Pages(self._records, self._metadata_records, lambda: page_rows(pages, "warc"))
        self._clear()
        return page_documents(pages, rows, self._columns, self._name, "warc", self._reject, payload)


def _is_wanted(fields: Fields) -> bool:
    return _is_response(fields) or fields.get("warc-type", "").lower() == "warcinfo"


def _is_response(fields: Fields) -> bool:
    """Return whether a record is an HTTP response; DNS and other responses have other content types."""
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


HANDLER = Handler(read, _make_sink, lambda _: dict(COLUMN_TYPES["warc"]))
