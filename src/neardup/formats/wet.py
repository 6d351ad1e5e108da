"""WET files: web archives of texts, as Common Crawl extracts them from its pages."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from neardup.arrays import Integers, arrow_of_optional, arrow_of_utf8
from neardup.documents.batch import Columns, DocumentBatch, Pages, Reject
from neardup.documents.nested import ColumnTypes
from neardup.documents.sources import Source
from neardup.documents.texts import documents_of
from neardup.formats.http_response import BadResponse, header_end
from neardup.formats.registry import Handler
from neardup.formats.warc_items import (
    GZIP_MAGIC,
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

_COLUMN_TYPES: ColumnTypes = {
    "url": pa.string(),
    "date": pa.timestamp("us", "UTC"),
    "language": pa.string(),
    "text": pa.large_string(),
}
_SCHEMA = pa.schema(list(_COLUMN_TYPES.items()))
_LENGTH = re.compile(rb"(?mi)^content-length[ \t]*:[^\r\n]*")
# A digest of the old text would be wrong. A line that begins with a blank continues the field.
_DIGESTS = re.compile(rb"(?mi)^warc-(?:block|payload)-digest[ \t]*:[^\n]*\n(?:[ \t][^\n]*\n)*")


class _Text(NamedTuple):
    """A text in UTF-8, the address and the time of its page, and its language."""

    text: bytes
    origin: str | None
    date: datetime | None
    language: str | None


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the texts of a WET file. Records that are no texts are rejected or passed over."""
    for items in read_items(source, _TEXTS, reject, with_payload=with_payload):
        rows = _rows(items.documents)
        payload = items.payload(partial(_rows, items.documents)) if with_payload else None
        yield documents_of(rows, items.rows, columns, source.name, reject, payload=payload)


def _rows(texts: list[_Text]) -> pa.RecordBatch:
    """Return texts as rows of all columns."""
    columns = {
        "url": arrow_of_optional([text.origin for text in texts]),
        "date": pa.array([text.date for text in texts], _COLUMN_TYPES["date"]),
        "language": arrow_of_optional([text.language for text in texts]),
        "text": arrow_of_utf8([text.text for text in texts]),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=_SCHEMA)


def _is_text(fields: Fields) -> bool:
    """Return whether a record is a text: made from a page, or stored as it is.

    A conversion of another type is a picture of the page, for instance.
    """
    media_type = media_type_of(fields.get("content-type", ""))
    kind = fields.get("warc-type", "").lower()
    if kind == "conversion":
        return media_type in ("text/plain", "")
    return kind == "resource" and media_type == "text/plain"


def _text(record: Record) -> _Text:
    """Return the text of a record. Raises BadResponse if it is not UTF-8."""
    assert record.block is not None
    try:
        record.block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadResponse(
            f"the text is not valid UTF-8: {error.reason} at byte {error.start} of the text"
        ) from None
    return _Text(
        text=record.block,
        origin=origin_of(record.fields),
        date=date_of(record.fields),
        language=record.fields.get("warc-identified-content-language"),
    )


def _why_not(fields: Fields) -> str:
    return (
        f"{describe_type(fields)}: of a .wet, conversions and resources of text/plain are read. "
        "For pages, end its name with .warc, or name the format with in_format (--in-format warc)"
    )


def _size_of(text: _Text) -> int:
    return len(text.text)


_TEXTS = Contents(_is_text, _text, _size_of, _why_not)


def _replace_texts(
    batch: DocumentBatch, _: str, rows: Integers, texts: pa.LargeStringArray
) -> Pages:
    """Return the records with other texts: their headers have the new length and no digest."""
    payload = batch.payload
    assert isinstance(payload, Pages)
    records = list(payload.records)
    for row in rows.tolist():
        records[row] = _with_text(records[row], texts[row].as_buffer().to_pybytes())

    def new_rows() -> pa.RecordBatch:
        old_rows = payload.rows()
        return old_rows.set_column(old_rows.schema.get_field_index("text"), "text", texts)

    return replace(payload, records=records, rows=new_rows)


def _with_text(record: bytes, text: bytes) -> bytes:
    """Return a record, which may be a gzip member, with another text. It is not compressed."""
    data = gzip.decompress(record) if record.startswith(GZIP_MAGIC) else record
    end = header_end(data)
    assert end is not None  # the reader has found it
    header = _DIGESTS.sub(b"", data[: end.block_start])
    header = _LENGTH.sub(b"Content-Length: %d" % len(text), header, count=1)
    return header + text + b"\r\n\r\n"


HANDLER = Handler(
    read,
    make_sink,
    lambda _: dict(_COLUMN_TYPES),
    replace_texts=_replace_texts,
    stretches=stretches,
)
