"""Writing WARC records as they stood."""

from __future__ import annotations

import gzip
from typing import Any

from neardup.formats import Pages, open_compressed

_GZIP_MAGIC = b"\x1f\x8b"


class WarcSink:
    """A WARC file; under gzip, a member a record."""

    def __init__(self, path: str, compression: str | None) -> None:
        self._is_gzip = compression == "gzip"
        # Records become members one by one; other compressions are of the whole file.
        self._stream = open_compressed(path, None if self._is_gzip else compression)

    def write(self, rows: Any) -> None:
        """Write Pages: their records, and the notes where they stood."""
        pages: Pages = rows
        notes = list(pages.notes)
        for place, record in enumerate(pages.records):
            while notes and notes[0][0] <= place:
                self._write(notes.pop(0)[1])
            self._write(record)
        for _, note in notes:
            self._write(note)

    def _write(self, record: bytes) -> None:
        if self._is_gzip and not record.startswith(_GZIP_MAGIC):
            record = gzip.compress(record, 6, mtime=0)
        self._stream.write(record)

    def close(self) -> None:
        """Finish the file."""
        self._stream.close()

    discard = close
