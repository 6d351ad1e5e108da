"""Read a part, a file or a table, to its end, and report what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from neardup.arrays import Integers, flatten_strings
from neardup.documents.batch import (
    BatchCache,
    Columns,
    DocumentBatch,
    Entry,
    Payload,
    Reject,
    Rejected,
    bytes_of,
    lost_file,
)
from neardup.documents.lines import STREAM_ERRORS, why_wide, wide_encoding_of
from neardup.documents.nested import ColumnTypes, nested_types
from neardup.documents.sinks import Sink
from neardup.documents.sources import (
    FREE_BYTES,
    FREE_BYTES_OF_TABLE,
    CannotOpen,
    Source,
    Stretch,
    check_expansion,
    compression_of,
)
from neardup.documents.texts import with_keys
from neardup.errors import InputError
from neardup.executor import chain_ahead
from neardup.formats.registry import COMPRESSIONS, FORMATS, Handler, format_of_bytes
from neardup.formats.tables import TablePart
from neardup.settings.run import MAX_DOCUMENT_BYTES, MAX_UNREADABLE

_DAMAGE = (*STREAM_ERRORS, ValueError)  # also CannotOpen


@dataclass(frozen=True)
class InputFile(Source):
    """A file of documents.

    relative_name : unique among the inputs, below their common root; never absolute, never with
    `..`. version : replaces the time of last change if there is none (standard input).
    """

    relative_name: str = ""
    version: float | None = None

    @property
    def is_pages(self) -> bool:
        """Whether the documents are web pages."""
        return FORMATS[self.format].contents == "pages"

    @property
    def handler(self) -> Handler:
        """The functions that read and write the file."""
        return FORMATS[self.format].handler

    def identity(self) -> tuple[str, int, float]:
        """Return name, size in bytes and time of last change; reads them from the storage each
        time.
        """
        size, changed = self.stat()
        return self.name, size, changed if self.version is None else self.version

    def column_types(self) -> ColumnTypes | None:
        """Return name and type of each column and of the fields inside it.

        None for plain text, {} when empty or damaged, which `read` reports. A file is looked at
        once, however often this is asked: there may be a hundred thousand of them.
        """
        return self._column_types

    @cached_property
    def _column_types(self) -> ColumnTypes | None:
        with suppress(*_DAMAGE):
            types = self.handler.column_types(self)
            return None if types is None else nested_types(types)
        return {}

    def num_rows(self) -> int | None:
        """Return the number of rows if the metadata has it (Parquet), else None."""
        with suppress(*_DAMAGE):
            return self.handler.num_rows(self)
        return None

    def is_bare(self) -> bool:
        """Return whether the file is a table without columns. One that is damaged is none, and is
        rejected.
        """
        with suppress(*_DAMAGE):
            handler = self.handler
            return handler.num_rows(self) is not None and handler.column_types(self) == {}
        return False

    def stretches(self) -> list[InputFile]:
        """Return the stretches in which the file can be read; itself if it is read whole."""
        found: list[Stretch] = []
        with suppress(*_DAMAGE):
            found = self.handler.stretches(self)
        return [replace(self, stretch=stretch) for stretch in found] if len(found) > 1 else [self]

    def read(
        self, columns: Columns, reject: Reject, *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Yield the documents of the file, or of its stretch, in order; call `reject` once for each
        row left out.

        Raises
        ------
        InputError
            If the file is no longer there. Damage inside it is no error: it is rejected.
        """
        keys = {
            name: self.keys[name] for name in (*columns.values, *columns.ranks) if name in self.keys
        }
        if keys:
            types = self.column_types() or {}
            keys = {name: value for name, value in keys.items() if name not in types}
        values = tuple(name for name in columns.values if name not in keys)
        ranks = tuple(name for name in columns.ranks if name not in keys)
        wanted = columns._replace(values=values, ranks=ranks)
        batches = self.handler.read(self, wanted, reject, with_payload=with_payload)
        return (
            (with_keys(batch, columns, keys, self.name) for batch in batches) if keys else batches
        )

    def replace_texts(
        self, batch: DocumentBatch, column: str, rows: Integers, texts: pa.LargeStringArray
    ) -> Payload:
        """Return the payload of a batch in which some documents have another text, and all else is
        as it was.

        Parameters
        ----------
        batch : read with its payload.
        column : of the text.
        rows : integers, rows of the batch, rising, that have another text than before; neither is
            null.
        texts : of all rows.
        """
        replace = self.handler.replace_texts
        assert replace is not None, "of web pages"
        return replace(batch, column, rows, texts)

    def make_sink(self) -> Callable[[str], Sink]:
        """Return how payloads are written to a local path in the format, compression and layout of
        this file.
        """
        return self.handler.make_sink(self)


@dataclass(frozen=True)
class UnreachableInput(InputFile):
    """A folder that cannot be listed, or a link to nothing: a part without documents, rejected as a
    damaged file is.
    """

    reason: str = ""

    @property
    def is_pages(self) -> bool:
        """False: nothing is known of its files."""
        return False

    def identity(self) -> tuple[str, int, float]:
        """Return the name alone."""
        return self.name, 0, 0.0

    @property
    def handler(self) -> Handler:
        """One that finds no columns, rejects all of it, and knows no layout."""
        return Handler(self._reject, self._refuse, lambda _: {})

    def _reject(
        self, _: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        reject(lost_file(self.name, self.reason))
        return iter(())

    def _refuse(self, _: Source) -> Callable[[str], Sink]:
        raise OSError(self.reason)


Part: TypeAlias = InputFile | TablePart
"""One input. Both kinds have the same attributes and methods; reading one twice yields the same
documents.
"""


"""Default length of the longest document; describing it takes many times its length in memory."""

_HEAD_BYTES = 1 << 16  # of a file that is looked at for its encoding

DOCUMENT_BYTES = 64
"""What a run keeps of a document, however short; a compressed file of empty ones expands by as
much.
"""

_FREQUENT = "的，。"
_SPLIT_TABLE = "Pass its rows as a table in memory (Python) if you trust it"
_IS_WIDE = ": it is UTF-"


_Raw: TypeAlias = tuple[Stretch | None, Entry | None]
_END: _Raw = None, None


@dataclass
class _Ending:
    """Whether the reading of a part ends early: its readers, which may be far ahead, look here
    after each batch.
    """

    is_early: bool = False


def ignore(_: Rejected) -> None:
    """Ignore a rejected row, which the first reading has listed."""


class Task(NamedTuple):
    """One part to read, and how: its columns, whether it belongs to the earlier corpus, the longest
    document.

    cache : keeps the documents in memory between two reads; None to decode the file each time.
    identity : what the part was when a run began that may not go on once it has changed; None
    otherwise. max_unreadable : the share of its rows above which the whole file counts as one that
    could not be read to its end.
    """

    part: Part
    columns: Columns
    against: bool
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    cache: BatchCache | None = None
    identity: tuple[str, int, float] | None = None
    max_unreadable: float = MAX_UNREADABLE

    def identified(self) -> Task:
        """Return the task with the identity that its part has now."""
        return self._replace(identity=self.part.identity())

    def refuse_changed(self) -> None:
        """Raise InputError if the part has another identity than when the run began."""
        if self.identity is not None and self.part.identity() != self.identity:
            raise changed(self.part.name)

    def read(
        self, reject: Reject = ignore, *, with_payload: bool = False, threads: int = 1
    ) -> Iterator[DocumentBatch]:
        """Yield the documents of the part; see `read_tasks`."""
        for _, entry in read_tasks([self], threads, with_payload=with_payload):
            if isinstance(entry, Rejected):
                reject(entry)
            elif entry is not None:
                yield entry

    @property
    def is_cached(self) -> bool:
        """Whether its documents are in memory, so that `read` yields them at once."""
        return self._stored() is not None

    @property
    def _key(self) -> Hashable:
        return self.part, self.against

    def _stored(self) -> list[Entry] | None:
        """Return the documents if they are in memory."""
        return (
            None
            if self.cache is None or isinstance(self.part, TablePart)
            else self.cache.stored(self._key)
        )

    def _decode(self, part: Part, ending: _Ending, *, with_payload: bool) -> Iterator[_Raw]:
        """Yield the documents and the rejected rows of a stretch as they are in it, and None in the
        end.
        """
        rejected: list[Rejected] = []
        lost: list[
            Rejected
        ] = []  # after what could be read: a reader may have found the damage ahead
        with_payload = with_payload or (
            self.cache is not None and self.cache.with_payload and not self.against
        )

        def reject(row: Rejected) -> None:
            (lost if row.rest_of_file else rejected).append(row)

        try:
            for batch in part.read(self.columns, reject, with_payload=with_payload):
                yield from ((part.stretch, row) for row in rejected)
                rejected.clear()
                yield part.stretch, batch
                if ending.is_early:
                    break
        except CannotOpen as error:
            lost.append(lost_file(self.part.name, str(error)))
        yield from ((part.stretch, row) for row in (*rejected, *lost))
        yield part.stretch, None

    def _joined(self, raw: Iterator[_Raw], ending: _Ending) -> Iterator[Entry]:
        """Yield the documents and the rejected rows of all stretches as those of the part; keep
        them in memory.
        """
        entries = self._join(raw, ending)
        return (
            entries
            if self.cache is None or isinstance(self.part, TablePart)
            else self.cache.store(self._key, entries)
        )

    def _join(self, raw: Iterator[_Raw], ending: _Ending) -> Iterator[Entry]:  # noqa: C901
        rows = num_bytes = reached = expanded = 0
        num_documents = num_unreadable = num_excluded = 0
        is_lost = False
        why = ""
        for stretch, entry in raw:
            if is_lost or (stretch is not None and stretch.begin < reached):
                continue  # the reader before went on into this stretch
            if entry is None:
                if stretch is not None:
                    rows, num_bytes, reached = (
                        rows + stretch.rows,
                        num_bytes + stretch.num_bytes,
                        stretch.reached,
                    )
                continue
            found: list[Rejected] = []
            if isinstance(entry, Rejected):
                found.append(_moved(entry, rows, num_bytes))
            else:
                batch = replace(entry, rows=entry.rows + rows) if rows else entry
                fitting = self._without_long(batch, found.append)
                num_documents += len(fitting.rows)
                expanded += fitting.text_bytes + DOCUMENT_BYTES * len(fitting.rows)
                reason = self._why_too_large(expanded)
                if reason is not None:
                    yield lost_file(self.part.name, reason)
                    is_lost = ending.is_early = True
                    continue
            for row in found:
                if row.excluded:
                    num_excluded += 1
                    why = why or f": {row.reason}"
                else:
                    num_unreadable += 1
                    if num_unreadable == 1:
                        hint = _hint(self.part)
                        why = hint or f": {row.reason}"
                        row = self._explained(row, hint)
                is_lost |= row.rest_of_file
                yield row
            if not isinstance(entry, Rejected) and (len(fitting.rows) or fitting is batch):
                yield fitting
        num_rows = num_documents + num_unreadable
        has_nothing = num_excluded > 0 and not num_rows and self.part.unit != "file"
        if not is_lost and (num_unreadable > self.max_unreadable * num_rows or has_nothing):
            share = f"{num_unreadable:,} of {num_rows:,} rows of the file cannot"
            yield lost_file(
                self.part.name,
                f"{share if num_documents else 'no row of the file can'} be read{why}",
            )

    def _explained(self, row: Rejected, hint: str) -> Rejected:
        """Return the first unreadable row; of a file that is lost as a whole, with the reason.

        hint : describes what the file is instead.
        """
        if _IS_WIDE in hint and row.byte == 0:  # its other lines would be read as text with zeros
            return lost_file(self.part.name, f"no row of the file can be read{hint}")
        is_document = self.part.unit == "file" and self.max_unreadable < 1
        if row.rest_of_file or is_document:
            return row._replace(reason=row.reason + hint, rest_of_file=True)
        return row._replace(reason=row.reason + hint) if hint else row

    def _why_too_large(self, num_bytes: int) -> str | None:
        """Return why no more is read of a file whose documents have so many bytes; None if they may
        be so many.

        The bytes that are decompressed say too little: a dictionary in a table may have a text once
        for all rows.
        """
        part = self.part
        if isinstance(part, TablePart) or num_bytes <= FREE_BYTES:
            return None
        is_table = FORMATS[part.format].contents == "binary"
        if part.compression is None and not is_table:
            return None
        try:
            if is_table:
                check_expansion(num_bytes, part.stat()[0], FREE_BYTES_OF_TABLE, advice=_SPLIT_TABLE)
            else:
                check_expansion(num_bytes, part.stat()[0], FREE_BYTES)
        except (OSError, CannotOpen) as error:
            return f"the rest of the file cannot be read: {error}"
        return None

    def _without_long(self, batch: DocumentBatch, reject: Reject) -> DocumentBatch:
        if batch.text_bytes <= self.max_document_bytes:
            return batch
        lengths = np.diff(flatten_strings(batch.text)[1])
        fits = lengths <= self.max_document_bytes
        if fits.all():
            return batch
        for row, length in zip(batch.rows[~fits].tolist(), lengths[~fits].tolist(), strict=True):
            reason = (
                f"the document has {length} bytes, more than "
                f"max_document_bytes={self.max_document_bytes} "
                "(--max-document-bytes)"
            )
            reject(Rejected(self.part.name, row, None, None, reason, excluded=True, too_long=True))
        return batch.filter(fits)


def _moved(row: Rejected, rows: int, num_bytes: int) -> Rejected:
    """Return a rejected row of a stretch that begins after so many rows and bytes."""
    return row._replace(
        row=None if row.row is None else row.row + rows,
        line=None if row.line is None else row.line + rows,
        byte=None if row.byte is None else row.byte + num_bytes,
    )


def read_tasks(
    tasks: Sequence[Task], threads: int, *, with_payload: bool = False
) -> Iterator[tuple[int, Entry | None]]:
    """Yield the documents and the rejected rows of parts in order, each with the number of its
    task; None ends a part.

    Documents that are too long are rejected. A part that cannot be opened is one rejection. If no
    row of a file of rows can be read, the file is not in its declared format, and is rejected as a
    whole besides its rows.

    Parameters
    ----------
    threads : parts, and stretches of large ones, that are read at once, ahead of those whose turn
        it is; up to 2, the caller's thread reads.
    with_payload : whether the documents are to be copied.
    """
    stored = [task._stored() for task in tasks]
    endings = [_Ending() for _ in tasks]

    def streams() -> Iterator[Callable[[], Iterator[_Raw]]]:
        for task, known, ending in zip(tasks, stored, endings, strict=True):
            parts = [] if known is not None else task.part.stretches()
            yield from (
                partial(task._decode, part, ending, with_payload=with_payload) for part in parts
            )
            if parts and parts[0].stretch is not None:
                yield partial(iter, [_END])

    # Two processors have enough to do with what is read: more threads cost 9 % of processor time
    # and earned nothing.
    readers = threads if threads > 2 else 1
    with closing(chain_ahead(streams(), readers, bytes_of=lambda raw: bytes_of(raw[1]))) as ahead:
        for number, (task, known) in enumerate(zip(tasks, stored, strict=True)):
            entries = (
                task._joined(iter(partial(next, ahead), _END), endings[number])
                if known is None
                else known
            )
            yield from ((number, entry) for entry in entries)
            yield number, None


def _hint(part: Part) -> str:
    """Describe what a file of text is instead, if its beginning shows it."""
    if (
        not isinstance(part, InputFile)
        or part.format not in FORMATS
        or FORMATS[part.format].contents != "text"
    ):
        return ""
    try:
        with part.open_stream() as stream:
            head = bytes(stream.read(_HEAD_BYTES))
    except (*STREAM_ERRORS, CannotOpen):
        return ""
    compression = compression_of(head)
    if compression is not None:
        suffix = next(suffix for suffix, name in COMPRESSIONS.items() if name == compression)
        return f": it is compressed. Add {suffix} to its name"
    encoding = wide_encoding_of(head)
    if encoding is not None:
        return why_wide(encoding)
    kind = format_of_bytes(head)
    if kind is not None and FORMATS[kind].contents == "binary":
        return (
            f": it is a file of {kind}. Rename it, or name its format with in_format (--in-format "
            f"{kind})"
        )
    if part.format == "jsonl" and head.lstrip().startswith(b"["):
        return ": it is a JSON array, not JSON lines. Convert it, for example by jq -c '.[]'"
    if b"\r" in head and b"\n" not in head:
        return (
            ": its lines end with a carriage return only. Convert it, for example by tr '\\r' '\\n'"
        )
    if not _is_utf8(head):
        # No other encoding than GB18030 has the most frequent characters of Chinese.
        is_chinese = any(letter in head.decode("gb18030", "replace") for letter in _FREQUENT)
        encoding = "GB18030" if is_chinese else "LATIN1"
        return f": it is not UTF-8. Convert it, for example by iconv -f {encoding} -t UTF-8"
    return ""


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def changed(name: str) -> InputError:
    """Return the error for an input that changed between two passes."""
    return InputError(
        f"{name} changed during the run. Run again while no other program writes to it."
    )


def identified(tasks: Sequence[Task], cache: BatchCache) -> list[Task]:
    """Return tasks with the identities of their inputs, and with a cache if their documents may fit
    into it.
    """
    tasks = [task.identified() for task in tasks]
    fits = cache.may_fit(sum(task.identity[1] for task in tasks if task.identity))
    return [task._replace(cache=cache) for task in tasks] if fits else tasks


def known_total(tasks: list[Task]) -> int | None:
    """Return how many documents there are, if every part knows it beforehand."""
    counts = [task.part.num_rows() for task in tasks]
    return None if None in counts else sum(count for count in counts if count is not None)
