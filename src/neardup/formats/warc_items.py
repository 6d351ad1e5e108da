"""Read and write the documents of web archives, which are pages or texts (`Contents`)."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Ints
from neardup.documents.batch import BLOCK_BYTES, Pages, Reject, Rejected, lost_file
from neardup.documents.pages import NotAPage, TooLongPage
from neardup.documents.sinks import open_compressed
from neardup.documents.sources import Source, Stretch
from neardup.documents.stretches import cut, member_starts
from neardup.executor import group_small
from neardup.formats.http_response import BadResponse, TooLong
from neardup.formats.warc_bytes import GzipBytes, WarcBytes, begins_with_record
from neardup.formats.warc_records import Fields, Record, read_records

_ABOUT_THE_FILE = "warcinfo"
_SILENT_TYPES = (_ABOUT_THE_FILE, "request", "metadata", "revisit", "continuation")
"""The types of records that never are documents, and are skipped silently."""

GZIP_MAGIC = b"\x1f\x8b"
_BLANK = b"\r\n\r\n"  # ends a record
# A year, a day or a time: WARC 1.1 allows any of the precisions of W3C's profile.
_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?Z?)?)?)?"
)


class Contents(NamedTuple):
    """The documents of a kind of archive.

    is_document : whether a record with this header is a document. document_of : returns the
    document of such a record; raises NotAPage, TooLong or BadResponse. size_of : the bytes of a
    document. why_not : returns the reason why another record is no document; None to skip it
    silently.
    """

    is_document: Callable[[Fields], bool]
    document_of: Callable[[Record], Any]
    size_of: Callable[[Any], int]
    why_not: Callable[[Fields], str | None]


class Items(NamedTuple):
    """Successive documents of an archive, with their rows; and their records as in the file, if
    requested, for `payload`.
    """

    documents: list[Any]
    rows: Ints
    records: list[bytes]
    metadata_records: list[tuple[int, bytes]]

    def payload(self, rows: Callable[[], pa.RecordBatch]) -> Pages:
        """Return the records to be copied. rows : returns the documents as a table."""
        return Pages(self.records, self.metadata_records, rows)


class _Item(NamedTuple):
    """A document with the bytes of its record, if requested; or a record about the file, without a
    document.
    """

    document: Any
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


def read_items(
    source: Source, contents: Contents, reject: Reject, *, with_payload: bool
) -> Iterator[Items]:
    """Yield the documents of an archive, or of its stretch, in order; call `reject` once for each
    document that cannot be read.
    """

    def bytes_of(item: _Item) -> int:
        document_bytes = 0 if item.document is None else contents.size_of(item.document)
        return document_bytes + len(item.record or b"")

    found = _items(source, contents, reject, with_payload)
    for items in group_small(found, bytes_of, BLOCK_BYTES):
        records: list[bytes] = []
        metadata_records: list[tuple[int, bytes]] = []  # after the number of documents before it
        for item in items:
            if item.record is None:  # no payload is requested
                continue
            if item.document is None:
                metadata_records.append((len(records), item.record))
            else:
                records.append(item.record)
        documents = [item for item in items if item.document is not None]
        yield Items(
            documents=[item.document for item in documents],
            rows=np.array([item.row for item in documents], np.int64),
            records=records,
            metadata_records=metadata_records,
        )


def _items(
    source: Source, contents: Contents, reject: Reject, with_payload: bool
) -> Iterator[_Item]:
    """Yield the documents of a stretch, and its records about the file if they are copied."""

    def is_wanted(fields: Fields) -> bool:
        return contents.is_document(fields) or _type_of(fields) == _ABOUT_THE_FILE

    stretch = source.stretch
    with _open(source) as stream:
        if stretch is not None:
            stream.seek(stretch.begin)
        data = (
            GzipBytes(stream, stretch, keep=with_payload)
            if source.compression == "gzip"
            else WarcBytes(stream, stretch)
        )
        seen = _Seen()
        for record in read_records(data, is_wanted, with_source=with_payload):
            if stretch is not None:
                stretch.rows = record.row + 1
            seen.add(record, contents)
            item = _item_of(record, contents, source.name, reject)
            if item is not None:
                yield item
        # The end of the file was reached before the end of any stretch.
        if stretch is not None and not stretch.reached:
            stretch.reached = max(stretch.ends)
    # Other stretches may have documents.
    if stretch is None and seen.is_all_silent():
        reject(lost_file(source.name, seen.describe()))


class _Seen:
    """The records of an archive so far.

    silent_types : the types of the silent records; num_others : how many others there were.
    """

    def __init__(self) -> None:
        self.silent_types: Counter[str] = Counter()
        self.num_others = 0

    def add(self, record: Record, contents: Contents) -> None:
        """Count a record."""
        if _is_silent(record, contents):
            self.silent_types[_type_of(record.fields)] += 1
        else:
            self.num_others += 1

    def is_all_silent(self) -> bool:
        """Return whether there were records, but neither a document nor a word about one."""
        return self.num_others == 0 and bool(self.silent_types)

    def describe(self) -> str:
        """Return why the archive as a whole is not read."""
        types = self.silent_types.most_common()
        counts = ", ".join(f"{count} {kind[:50]}" for kind, count in types)
        return f"the archive has no document: its records are {counts}"


def _is_silent(record: Record, contents: Contents) -> bool:
    """Return whether a record is neither a document nor named as one that is left out."""
    if record.problem is not None or "warc-type" not in record.fields:
        return False
    if _type_of(record.fields) in _SILENT_TYPES:
        return True
    return not contents.is_document(record.fields) and contents.why_not(record.fields) is None


def _open(source: Source) -> Any:
    """Open a file, decompressed unless it is gzip, whose members `GzipBytes` inflates."""
    if source.compression == "gzip":
        source = replace(source, compression=None)
    return source.open_stream()


def _item_of(record: Record, contents: Contents, name: str, reject: Reject) -> _Item | None:
    """Return the item of a record; None if it is rejected or not needed."""
    rejected = partial(Rejected, file=name, row=record.row, line=None, byte=record.byte)
    if record.problem is not None:
        reject(
            rejected(
                reason=record.problem,
                rest_of_file=record.is_last,
                excluded=record.is_too_long,
                too_long=record.is_too_long,
            )
        )
        return None
    if contents.is_document(record.fields):
        try:
            document = contents.document_of(record)
            return _Item(document=document, row=record.row, record=record.source)
        except (NotAPage, TooLong) as error:
            is_too_long = isinstance(error, TooLongPage | TooLong)
            reject(rejected(reason=str(error), excluded=True, too_long=is_too_long))
        except BadResponse as error:
            reject(rejected(reason=str(error)))
        return None
    if "warc-type" not in record.fields:
        reject(rejected(reason="the record has no WARC-Type"))
        return None
    if not _is_silent(record, contents):
        why_not = contents.why_not(record.fields)
        assert why_not is not None  # it is no document, and not silent
        reject(rejected(reason=why_not, excluded=True))
        return None
    if record.source is None:
        return None
    return _Item(document=None, row=record.row, record=record.source)


def _type_of(fields: Fields) -> str:
    return fields.get("warc-type", "").lower()


def describe_type(fields: Fields) -> str:
    """Return the type of a record and of its content, as the beginning of a reason."""
    media_type = media_type_of(fields.get("content-type", ""))
    content = f" of {media_type:.50}" if media_type else ""
    return f"the record is a {_type_of(fields)[:50]}{content}"


def media_type_of(content_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def origin_of(fields: Fields) -> str | None:
    """Return the address of a record."""
    # Some writers put the address in angle brackets.
    return fields.get("warc-target-uri", "").strip("<>") or None


def date_of(fields: Fields) -> datetime | None:
    """Return the time of a record (W3C's profile of ISO 8601, UTC), to the microsecond; None if it
    is not valid.
    """
    match = _DATE.fullmatch(fields.get("warc-date", ""))
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction = match.groups(default="")
    try:
        return datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int(fraction.ljust(6, "0")[:6]),
            tzinfo=timezone.utc,
        )
    except ValueError:
        return None


_RECORD_COMPRESSORS: dict[str | None, Callable[[bytes], bytes]] = {
    "gzip": lambda record: gzip.compress(record, 6, mtime=0),
    "zstd": lambda record: pa.compress(record, "zstd", asbytes=True),
}


class WarcSink:
    """A WARC file to write; with gzip or zstd, each record is a member or a frame."""

    def __init__(self, path: str, compression: str | None) -> None:
        self._compress = _RECORD_COMPRESSORS.get(compression)
        # Other compressions apply to the file.
        self._stream = open_compressed(path, compression if self._compress is None else None)

    def write(self, pages: Pages) -> None:
        """Write the records of documents, and the metadata records between them."""
        metadata = list(pages.metadata_records)
        for index, record in enumerate(pages.records):
            while metadata and metadata[0][0] <= index:
                _, metadata_record = metadata.pop(0)
                self._write(metadata_record)
            self._write(record)
        for _, metadata_record in metadata:
            self._write(metadata_record)

    def _write(self, record: bytes) -> None:
        # A record that was a gzip member is copied as it is.
        if self._compress is not None and not record.startswith(GZIP_MAGIC):
            record = self._compress(record)
        self._stream.write(record)

    def close(self) -> None:
        """Finish the file."""
        self._stream.close()

    discard = close  # the caller removes the unfinished file


def make_sink(source: Source) -> Callable[[str], WarcSink]:
    """Return the function that opens a local path to write records in the layout of a file."""
    return partial(WarcSink, compression=source.compression)
