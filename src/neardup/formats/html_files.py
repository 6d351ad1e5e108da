"""HTML files: each file is a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from neardup.documents.batch import Columns, DocumentBatch, Pages, Reject, lost_file
from neardup.documents.lines import STREAM_ERRORS
from neardup.documents.pages import (
    COLUMN_TYPES,
    MAX_PAGE_BYTES,
    NoElement,
    NotAPage,
    TooLongPage,
    media_type_of_name,
    page_documents,
    page_of,
    page_rows,
)
from neardup.documents.sinks import ByteSink
from neardup.documents.sources import Source
from neardup.formats.registry import Handler
from neardup.formats.whole_files import rejected_file


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the file as one document, or reject it."""
    try:
        # One byte more than the limit shows that the page is longer.
        data = source.read_bytes(MAX_PAGE_BYTES + 1)
        page = page_of(data, source.name, media_type=media_type_of_name(source.name))
    except NotAPage as error:
        is_too_long = isinstance(error, TooLongPage)
        is_excluded = not isinstance(error, NoElement)
        rejected = rejected_file(source, str(error))
        reject(rejected._replace(excluded=is_excluded, too_long=is_too_long))
        return
    except STREAM_ERRORS as error:
        reason = f"the file cannot be read: {error}"
        reject(lost_file(source.name, reason, row=0))
        return
    payload = Pages([data], [], lambda: page_rows([page], "html")) if with_payload else None
    rows = np.zeros(1, np.int64)
    yield page_documents([page], rows, columns, source.name, "html", reject=reject, payload=payload)


def _make_sink(source: Source) -> Callable[[str], ByteSink]:
    def to_bytes(pages: Pages) -> bytes:
        return b"".join(pages.records)

    return partial(ByteSink, compression=source.compression, to_bytes=to_bytes)


HANDLER = Handler(read, _make_sink, lambda _: dict(COLUMN_TYPES["html"]))
