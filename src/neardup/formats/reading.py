"""Read a part to its end, and report what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from neardup.arrays import flatten_strings
from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.documents.batch_cache import BatchCache
from neardup.documents.lines import STREAM_ERRORS
from neardup.documents.sources import CannotOpen
from neardup.errors import InputError
from neardup.formats.input_file import InputFile, Part
from neardup.formats.registry import FORMATS
from neardup.formats.tables import TablePart

MAX_DOCUMENT_BYTES = 64 << 20
"""Default length of the longest document; describing it takes many times its length in memory."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def ignore(_: Rejected) -> None:
    """Ignore a rejected row, which the first reading has listed."""


class Task(NamedTuple):
    """One part to read, and how: its columns, whether it belongs to the earlier corpus, the longest document.

    cache : keeps the documents in memory between two reads; None to decode the file each time. identity : what the part
    was when a run began that may not go on once it has changed; None otherwise.
    """

    part: Part
    columns: Columns
    against: bool
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    cache: BatchCache | None = None
    identity: tuple[str, int, float] | None = None

    def identified(self) -> Task:
        """Return the task with the identity that its part has now."""
        return self._replace(identity=self.part.identity())

    def refuse_changed(self) -> None:
        """Raise InputError if the part has another identity than when the run began."""
        if self.identity is not None and self.part.identity() != self.identity:
            raise changed(self.part.name)

    def read(
        self, reject: Callable[[Rejected], None] = ignore, *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Yield the documents of the part, as its own `read` does, but for those that are too long.

        A part that cannot be opened is one rejection. If no row of a file of rows can be read, the file is not in its
        declared format, and is rejected as a whole besides its rows.
        """
        if self.cache is None or isinstance(self.part, TablePart):
            return self._decode(reject, with_payload=with_payload)
        with_payload = with_payload or (self.cache.with_payload and not self.against)
        return self.cache.read((self.part, self.against), self._decode, reject, with_payload=with_payload)

    def _decode(self, reject: Callable[[Rejected], None], *, with_payload: bool) -> Iterator[DocumentBatch]:
        num_documents = num_rejected = 0
        is_lost = False

        def note(row: Rejected) -> None:
            nonlocal num_rejected, is_lost
            num_rejected += 1
            is_lost |= row.rest_of_file
            if row.rest_of_file and num_rejected == 1 and not num_documents:
                row = row._replace(reason=row.reason + _hint(self.part))
            reject(row)

        try:
            for batch in self.part.read(self.columns, note, with_payload=with_payload):
                fitting = self._without_long(batch, note)
                num_documents += len(fitting.rows)
                if len(fitting.rows) or fitting is batch:
                    yield fitting
        except CannotOpen as error:
            note(Rejected(self.part.name, None, None, None, str(error), rest_of_file=True))
        has_rows = isinstance(self.part, InputFile) and not self.part.is_pages
        if num_rejected and not num_documents and not is_lost and has_rows:
            reason = f"no row of the file can be read{_hint(self.part)}"
            reject(Rejected(self.part.name, None, None, None, reason, rest_of_file=True))

    def _without_long(self, batch: DocumentBatch, reject: Callable[[Rejected], None]) -> DocumentBatch:
        if batch.text.nbytes <= self.max_document_bytes:
            return batch
        lengths = np.diff(flatten_strings(batch.text)[1])
        fits = lengths <= self.max_document_bytes
        if fits.all():
            return batch
        for row, length in zip(batch.rows[~fits].tolist(), lengths[~fits].tolist(), strict=True):
            reason = (
                f"the document has {length} bytes, more than max_document_bytes={self.max_document_bytes} "
                "(--max-document-bytes)"
            )
            reject(Rejected(self.part.name, row, None, None, reason))
        return batch.filter(fits)


def _hint(part: Part) -> str:
    """Describe what a file of text is instead, if its beginning shows it."""
    if not isinstance(part, InputFile) or FORMATS[part.format].contents != "text":
        return ""
    try:
        with part.open_stream() as stream:
            head = bytes(stream.read(4096))
    except (*STREAM_ERRORS, CannotOpen):
        return ""
    if head.startswith(_UTF16):
        return ": it is UTF-16. Convert it to UTF-8, for example by iconv -f UTF-16 -t UTF-8"
    if part.format == "jsonl" and head.lstrip().startswith(b"["):
        return ": it is a JSON array, not JSON lines. Convert it, for example by jq -c '.[]'"
    if b"\r" in head and b"\n" not in head:
        return ": its lines end with a carriage return only. Convert it, for example by tr '\\r' '\\n'"
    if not _is_utf8(head):
        return ": it is not UTF-8. Convert it, for example by iconv -f LATIN1 -t UTF-8"
    return ""


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def changed(name: str) -> InputError:
    """Return the error for an input that changed between two passes."""
    return InputError(f"{name} changed during the run. Run again while no other program writes to it.")


def known_total(tasks: list[Task]) -> int | None:
    """Return how many documents there are, if every part knows it beforehand."""
    counts = [task.part.num_rows() for task in tasks]
    return None if None in counts else sum(count for count in counts if count is not None)
