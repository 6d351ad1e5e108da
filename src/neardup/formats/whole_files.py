"""Read a file that is one document: its bytes within a limit, and its batch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of_strings
from neardup.documents.batch import DocumentBatch, RawLines, Reject, Rejected, lost_file
from neardup.documents.lines import STREAM_ERRORS
from neardup.documents.sources import Source


def read_data(source: Source, reject: Reject, max_bytes: int) -> bytes | None:
    """Return the bytes of a file; reject it and return None if it is too long or damaged."""
    try:
        # One byte more than the limit shows that the file is longer.
        data = source.read_bytes(max_bytes + 1)
    except STREAM_ERRORS as error:
        reject(lost_file(source.name, f"the file cannot be read: {error}", row=0))
        return None
    if len(data) > max_bytes:
        reason = f"the file is longer than {max_bytes} bytes, the longest file that is read"
        reject(rejected_file(source, reason)._replace(excluded=True, too_long=True))
        return None
    return data


def rejected_file(source: Source, reason: str) -> Rejected:
    """Return the record of a file whose only document cannot be read."""
    return Rejected(file=source.name, row=0, line=None, byte=None, reason=reason)


def batch_of_file(
    source: Source, data: bytes, text: pa.Array, *, with_id: bool, with_payload: bool
) -> DocumentBatch:
    """Return the only document of a file; its id, if wanted, is its path.

    data : the bytes of the file. text : its text, of length 1.
    """
    return DocumentBatch(
        text=text,
        rows=np.zeros(1, np.int64),
        ids=arrow_of_strings([source.name]) if with_id else None,
        payload=RawLines(data, np.array([0, len(data)], np.int64)) if with_payload else None,
    )
