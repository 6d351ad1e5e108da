"""WARC files: each HTTP response with a page is a document."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, NamedTuple

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
_GZIP_MAGIC = b"\x1f\x8b"
_BLANK = b"\r\n\r\n"  # ends a record
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?Z?")


class _Item(NamedTuple):
    """A page with the bytes of its record, if requested; or a record about the file, without a
    page.
    """

    page: Page | None
    row: int
    record: bytes | None


def stretches(source: Source) -> list[Stretch]:
    """Return stretches that begin at probable records."""
    if not source.is_local or source.compression not in (None, "gzip"):
        return []
    with source.open_file() as file:
        if source.compression == "gzip":
            starts = member_starts(file, begins_with_record)
        else:
            # `bool`: after this mark, any bytes begin a record.
            ends = member_starts(file, bool, _BLANK + b"WARC/1.")
            starts = [byte + len(_BLANK) for byte in ends]
        return cut(starts, file.size())


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the pages of a WARC file. A response without a page is rejected; other records are no
    documents.
    """
    for items in group_small(_items(source, reject, with_payload), _bytes_of, BLOCK_BYTES):
        pages = [item.page for item in items if item.page is not None]
        rows = np.array([item.row for item in items if item.page is not None], np.int64)
        payload = _payload(items, pages) if with_payload else None
        yield page_documents(
            pages, rows, columns, source.name, "warc", reject=reject, payload=payload
        )


def _items(source: Source, reject: Reject, with_payload: bool) -> Iterator[_Item]:
    """Yield the pages of a stretch, and its records about the file if they are copied."""
    stretch = source.stretch
    with _open(source) as stream:
        if stretch is not None:
            stream.seek(stretch.begin)
        data = (
            GzipBytes(stream, stretch, keep=with_payload)
            if source.compression == "gzip"
            else WarcBytes(stream, stretch)
        )
        for record in read_records(data, _is_wanted, with_source=with_payload):
            if stretch is not None:
                stretch.rows = record.row + 1
            item = _item_of(record, source.name, reject)
            if item is not None:
                yield item
        # The end of the file was reached before the end of any stretch.
        if stretch is not None and not stretch.reached:
            stretch.reached = max(stretch.ends)


def _open(source: Source) -> Any:
    """Open a file. `GzipBytes` inflates gzip members; other compressions are of the whole file."""
    if source.compression == "gzip":
        source = replace(source, compression=None)
    return source.open_stream()


def _item_of(record: Record, name: str, reject: Reject) -> _Item | None:
    """Return the item of a record; None if it is rejected or not needed."""
    rejected = partial(Rejected, name, record.row, None, record.byte)
    if record.problem is not None:
        reject(
            rejected(
                record.problem,
                rest_of_file=record.is_last,
                excluded=record.is_too_long,
                too_long=record.is_too_long,
            )
        )
        return None
    if _is_response(record.fields):
        try:
            return _Item(page=_page(record), row=record.row, record=record.source)
        except (NotAPage, TooLong) as error:
            is_too_long = isinstance(error, TooLongPage | TooLong)
            reject(rejected(str(error), excluded=True, too_long=is_too_long))
        except BadResponse as error:
            reject(rejected(str(error)))
        return None
    if "warc-type" not in record.fields:
        reject(rejected("the record has no WARC-Type"))
        return None
    kind = record.fields["warc-type"].lower()
    if _is_text(record.fields) or kind not in _TYPES:
        reason = (
            f"the record is a {kind[:50]}: of an archive, records of the type response are read"
        )
        reject(rejected(reason, excluded=True))
        return None
    if record.source is None:
        return None
    return _Item(page=None, row=record.row, record=record.source)


def _bytes_of(item: _Item) -> int:
    return len(item.page.html if item.page else b"") + len(item.record or b"")


def _payload(items: list[_Item], pages: list[Page]) -> Pages:
    records: list[bytes] = []
    metadata_records: list[tuple[int, bytes]] = []  # with the number of records before
    for item in items:
        assert item.record is not None  # it is requested
        if item.page is None:
            metadata_records.append((len(records), item.record))
        else:
            records.append(item.record)
    return Pages(records, metadata_records, lambda: page_rows(pages, "warc"))


def _is_wanted(fields: Fields) -> bool:
    return _is_response(fields) or fields.get("warc-type", "").lower() == "warcinfo"


def _is_text(fields: Fields) -> bool:
    """Return whether a record that is no response contains a text: WET files, and pages that a
    program rendered.
    """
    kind = fields.get("warc-type", "").lower()
    if kind == "resource":
        return _media_type(fields.get("content-type", "")) in (*HTML_TYPES, "text/plain")
    return kind == "conversion"


def _is_response(fields: Fields) -> bool:
    """Return whether a record is an HTTP response; DNS and other responses have other content
    types.
    """
    content_type = fields.get("content-type", "application/http").lower()
    is_http = content_type.startswith("application/http")
    return is_http and fields.get("warc-type", "").lower() == "response"


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _page(record: Record) -> Page:
    """Return the page of a response. Raises NotAPage or BadResponse if there is none."""
    assert record.block is not None
    response = parse_response(record.block)
    if response.status != 200:
        raise NotAPage(f"HTTP status {response.status}")
    content_type = response.header.get("content-type", "")
    media_type = _media_type(content_type)
    check_media_type(media_type)
    try:
        body = decoded_body(response, MAX_PAGE_BYTES)
    except TooLong:
        raise too_long() from None
    if not media_type and not looks_like_markup(body):
        raise NotAPage("not HTML: it has no content type and does not begin as a page does")
    # Some writers put the address in angle brackets.
    origin = record.fields.get("warc-target-uri", "").strip("<>") or None
    date = _date(record.fields.get("warc-date", ""))
    return page_of(body, origin, date, charset=charset_parameter(content_type))


def _date(text: str) -> datetime | None:
    """Parse a time of WARC (W3C's profile of ISO 8601, UTC), to the microsecond; None if it is not
    valid.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        # Python 3.10 parses neither a Z nor fractions of any length.
        date = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    fraction = match[2] or ""
    microsecond = int(fraction.ljust(6, "0")[:6])
    return date.replace(microsecond=microsecond, tzinfo=timezone.utc)


class WarcSink:
    """A WARC file to write; with gzip, each record is a member."""

    def __init__(self, path: str, compression: str | None) -> None:
        self._is_gzip = compression == "gzip"
        # Each record becomes a member; other compressions apply to the whole file.
        self._stream = open_compressed(path, None if self._is_gzip else compression)

    def write(self, pages: Pages) -> None:
        """Write the records of pages, and the metadata records between them."""
        metadata = list(pages.metadata_records)
        for index, record in enumerate(pages.records):
            while metadata and metadata[0][0] <= index:
                _, metadata_record = metadata.pop(0)
                self._write(metadata_record)
            self._write(record)
        for _, metadata_record in metadata:
            self._write(metadata_record)

    def _write(self, record: bytes) -> None:
        if self._is_gzip and not record.startswith(_GZIP_MAGIC):
            # Without the time, the same pages give the same bytes in every run.
            record = gzip.compress(record, 6, mtime=0)
        self._stream.write(record)

    def close(self) -> None:
        """Finish the file."""
        self._stream.close()

    discard = close


def _make_sink(source: Source) -> Callable[[str], WarcSink]:
    return partial(WarcSink, compression=source.compression)


HANDLER = Handler(read, _make_sink, lambda _: dict(COLUMN_TYPES["warc"]), stretches=stretches)
