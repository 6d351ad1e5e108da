"""Read parts, files or tables, to their ends, and report unreadable rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from neardup.arrays import Integers, flatten_strings
from neardup.documents.batch import (
    Columns,
    DocumentBatch,
    Entry,
    Pages,
    Payload,
    Reject,
    Rejected,
    bytes_of,
    lost_file,
)
from neardup.documents.batch_cache import BatchCache
from neardup.documents.decompressed import compression_of
from neardup.documents.limits import FREE_BYTES, FREE_BYTES_OF_TABLE, check_expansion
from neardup.documents.lines import STREAM_ERRORS, why_wide, wide_encoding_of
from neardup.documents.nested import ColumnTypes, nested_types
from neardup.documents.sinks import Sink
from neardup.documents.sources import CannotOpen, Identity, Source, Stretch
from neardup.documents.texts import with_keys
from neardup.documents.turns import Turns, turns_of_rows
from neardup.errors import InputError
from neardup.executor import chain_ahead
from neardup.formats.registry import COMPRESSIONS, FORMATS, Handler, format_of_bytes
from neardup.formats.tables import TablePart
from neardup.settings.run import MAX_DOCUMENT_BYTES, MAX_UNREADABLE

_DAMAGE = (*STREAM_ERRORS, ValueError)  # also CannotOpen

DOCUMENT_BYTES = 64
"""Memory of a run for a document, however short: a compressed file of empty documents expands by as
much.
"""

_HEAD_BYTES = 1 << 16  # first bytes of a file, from which `_guess_format` guesses its format
_LEVEL = re.compile(r"folder:([1-9][0-9]?)")
_FREQUENT = "的，。"  # the most frequent characters of Chinese
_SPLIT_TABLE = "Pass its rows as a table in memory (Python) if you trust it"


@dataclass(frozen=True)
class InputFile(Source):
    """A file of documents.

    relative_name : unique among the inputs, below their common root; never absolute, never with
    `..`. below : the path below the searched folder, "" for standard input. version : replaces the
    time of last change if there is none (standard input).
    """

    relative_name: str = ""
    version: float | None = None
    below: str = ""

    def folder_values(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return the values of columns in the names of folders: of `year` in year=2024, and the
        folder itself for `folder:1`, the first one below the input.

        A file that is not so deep has no folder: null.
        """
        keys = self.keys
        *folders, _ = self.below.split("/")
        values: dict[str, str | None] = {}
        for name in names:
            level = _LEVEL.fullmatch(name)
            if name in keys:
                values[name] = keys[name]
            elif level is not None:
                values[name] = dict(enumerate(folders, start=1)).get(int(level[1]))
        return values

    @property
    def is_pages(self) -> bool:
        """True if the documents are web pages."""
        return FORMATS[self.format].contents == "pages"

    @property
    def handler(self) -> Handler:
        """The functions that read and write the file."""
        return FORMATS[self.format].handler

    def identity(self) -> Identity:
        """Return name, size in bytes and time of last change, read from the storage each time."""
        num_bytes, changed_at = self.stat()
        if self.version is not None:
            changed_at = self.version
        return Identity(name=self.name, num_bytes=num_bytes, changed_at=changed_at)

    def column_types(self) -> ColumnTypes | None:
        """Return name and type of each column and of the fields inside it.

        None for plain text, {} when empty or damaged, which `read` reports. A file is opened once,
        not for each call: there may be a hundred thousand files.
        """
        return self._column_types

    @cached_property
    def _column_types(self) -> ColumnTypes | None:
        with suppress(*_DAMAGE):
            types = self.handler.column_types(self)
            return None if types is None else nested_types(types)
        return {}

    def num_rows(self) -> int | None:
        """Return the number of rows if the metadata contains it (Parquet), or None."""
        with suppress(*_DAMAGE):
            return self.handler.num_rows(self)
        return None

    def is_bare(self) -> bool:
        """Return whether the file is a table without columns; False for a damaged file."""
        with suppress(*_DAMAGE):
            handler = self.handler
            return handler.num_rows(self) is not None and handler.column_types(self) == {}
        return False

    def stretches(self) -> list[InputFile]:
        """Return the stretches of the file, or the file itself if it is read whole."""
        found: list[Stretch] = []
        with suppress(*_DAMAGE):
            found = self.handler.stretches(self)
        if len(found) < 2:
            return [self]
        return [replace(self, stretch=stretch) for stretch in found]

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
        keys = self._keys_for(columns)
        if not keys:
            return self.handler.read(self, columns, reject, with_payload=with_payload)
        wanted = columns._replace(
            values=tuple(name for name in columns.values if name not in keys),
            ranks=tuple(name for name in columns.ranks if name not in keys),
        )
        batches = self.handler.read(self, wanted, reject, with_payload=with_payload)
        return (with_keys(batch, columns, keys, self.name) for batch in batches)

    def _keys_for(self, columns: Columns) -> dict[str, str | None]:
        """Return the values in folder names for columns that the file lacks."""
        keys = self.folder_values((*columns.values, *columns.ranks))
        if keys:
            types = self.column_types() or {}
            keys = {name: value for name, value in keys.items() if name not in types}
        return keys

    def turns_of(self, batch: DocumentBatch, columns: Columns, rows: Integers) -> Turns | None:
        """Return the turns of the texts of a batch that was read with its payload, of `rows` at
        least; None if its texts are not of turns.
        """
        read_turns = self.handler.turns_of
        if read_turns is not None:
            return read_turns(batch, columns.text, columns.roles, rows)
        return turns_of_rows(batch, columns)

    def replace_texts(
        self, batch: DocumentBatch, column: str, rows: Integers, texts: pa.LargeStringArray | Turns
    ) -> Payload:
        """Return the payload of a batch with other texts of some documents; all other bytes or
        columns are the same.

        Parameters
        ----------
        batch : read with its payload.
        column : the column of the text.
        rows : integers, rising, the rows of the batch with another text; neither text is null.
        texts : the texts of all rows, or their turns; where `turns_of` left a row out, it has none.
        """
        replace_in_payload = self.handler.replace_texts
        assert replace_in_payload is not None, "pages keep their texts"
        return replace_in_payload(batch, column, rows, texts)

    @property
    def takes_columns(self) -> bool:
        """True if columns can be added to the rows of the format."""
        return self.handler.widening is not None

    def append_columns(self, payload: Payload, added: pa.RecordBatch) -> Payload:
        """Return a payload with further columns, if the format takes columns."""
        widening = self.handler.widening
        assert widening is not None  # see `takes_columns`
        return widening.append(payload, added)

    def make_sink(self, added: pa.Schema | None = None) -> Callable[[str], Sink]:
        """Return the function that opens a local path to write payloads in the format, compression
        and layout of this file.

        added : the columns that are added to the payloads; None if there are none.
        """
        handler = self.handler
        if added is None:
            return handler.make_sink(self)
        assert handler.widening is not None  # see `takes_columns`
        return handler.widening.make_sink(self, added)


@dataclass(frozen=True)
class UnreachableInput(InputFile):
    """A folder that cannot be listed, or a broken link: a part without documents, rejected like a
    damaged file.
    """

    reason: str = ""

    @property
    def is_pages(self) -> bool:
        """False: nothing is known of its files."""
        return False

    def identity(self) -> Identity:
        """Return the name alone."""
        return Identity(name=self.name, num_bytes=0, changed_at=0.0)

    @property
    def handler(self) -> Handler:
        """Functions that find no columns, reject the whole part, and know no layout."""
        return Handler(read=self._reject, make_sink=self._refuse, column_types=lambda _: {})

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


class _Piece(NamedTuple):
    """A batch or rejected row, as a reader of a stretch yields it; without an entry, an end.

    The pieces of a part that is read in two stretches, A and B:

        stretch    A      A         A       B      B       None
        entry      batch  Rejected  None    batch  None    None
                                    end of A       end of B, and of the part

    A part that is read whole has one reader without a stretch, whose end is the end of the part.
    """

    stretch: Stretch | None
    entry: Entry | None


_END = _Piece(stretch=None, entry=None)


@dataclass
class _StopSignal:
    """Signal to the readers of a part, which may be far ahead: they check it after each batch.

    is_set : whether the rest of the part is not needed.
    """

    is_set: bool = False


@dataclass
class _Progress:
    """The stretches of a part that were read.

    rows, num_bytes : their sizes, by which positions in the next stretch are moved. reached : the
    end of the last stretch in the file, which may lie beyond the planned end.
    """

    rows: int = 0
    num_bytes: int = 0
    reached: int = 0

    def add(self, stretch: Stretch) -> None:
        """Add a stretch that was read."""
        self.rows += stretch.rows
        self.num_bytes += stretch.num_bytes
        self.reached = stretch.reached

    def move(self, rejected: Rejected) -> Rejected:
        """Return a rejected row of the next stretch with its position in the part."""
        row = rejected.row
        line = rejected.line
        byte = rejected.byte
        return rejected._replace(
            row=None if row is None else row + self.rows,
            line=None if line is None else line + self.rows,
            byte=None if byte is None else byte + self.num_bytes,
        )


@dataclass
class _Tally:
    """Counts over all stretches of a part.

    num_bytes : the texts, and DOCUMENT_BYTES for each document. is_lost : whether the rest of the
    part is not read. is_too_large : whether `num_bytes` is the reason. why : the reason of the
    first unreadable row, or of the first excluded row before it, as the end of a sentence.
    """

    num_documents: int = 0
    num_unreadable: int = 0
    num_excluded: int = 0
    num_bytes: int = 0
    is_lost: bool = False
    is_too_large: bool = False
    why: str = ""


def ignore(_: Rejected) -> None:
    """Ignore a rejected row, which the first reading has listed."""


class Task(NamedTuple):
    """One part to read, and the way to read it.

    against : whether the part belongs to the earlier corpus. cache : keeps the documents in memory
    between two reads; None to decode the file each time. identity : the part at the beginning of a
    run that must not continue after it changed; None otherwise. max_unreadable : a file with a
    larger share of unreadable rows counts as a file that could not be read to its end.
    """

    part: Part
    columns: Columns
    against: bool
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    cache: BatchCache | None = None
    identity: Identity | None = None
    max_unreadable: float = MAX_UNREADABLE

    def identified(self) -> Task:
        """Return the task with the current identity of its part."""
        return self._replace(identity=self.part.identity())

    def refuse_changed(self) -> None:
        """Raise InputError if the part has another identity than when the run began."""
        if self.identity is not None and self.part.identity() != self.identity:
            raise input_changed(self.part.name)

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
        """True if the documents are in memory, so that `read` yields them at once."""
        return self._stored() is not None

    @property
    def _key(self) -> Hashable:
        # A part may be in both corpora; only the new documents have a payload in the cache.
        return self.part, self.against

    def _stored(self) -> list[Entry] | None:
        """Return the documents if they are in memory."""
        if self.cache is None or isinstance(self.part, TablePart):
            return None
        return self.cache.stored(self._key)

    def _readers(
        self, signal: _StopSignal, with_payload: bool
    ) -> Iterator[Callable[[], Iterator[_Piece]]]:
        """Yield a reader for each stretch; _END follows the last stretch."""
        parts = self.part.stretches()
        for part in parts:
            yield partial(self._read_stretch, part, signal, with_payload=with_payload)
        # A part that is read whole ends with _END already.
        if parts[0].stretch is not None:
            yield partial(iter, [_END])

    def _read_stretch(
        self, part: Part, signal: _StopSignal, *, with_payload: bool
    ) -> Iterator[_Piece]:
        """Yield the documents and the rejected rows of a stretch, and a piece that ends it."""
        rejected: list[Rejected] = []
        # Reported last: a reader may find damage ahead of the documents that it has read.
        lost: list[Rejected] = []
        # A later pass copies the new documents out of the cache.
        if self.cache is not None and self.cache.with_payload and not self.against:
            with_payload = True

        def reject(row: Rejected) -> None:
            if row.rest_of_file:
                lost.append(row)
            else:
                rejected.append(row)

        try:
            for batch in part.read(self.columns, reject, with_payload=with_payload):
                yield from (_Piece(part.stretch, row) for row in rejected)
                rejected.clear()
                yield _Piece(part.stretch, batch)
                if signal.is_set:
                    break
        except CannotOpen as error:
            lost.append(lost_file(self.part.name, str(error)))
        yield from (_Piece(part.stretch, row) for row in (*rejected, *lost))
        yield _Piece(part.stretch, None)

    def _entries(self, pieces: Iterator[_Piece], signal: _StopSignal) -> Iterator[Entry]:
        """Yield the documents and the rejected rows of all stretches; keep them in the cache."""
        entries = self._join_stretches(pieces, signal)
        if self.cache is None or isinstance(self.part, TablePart):
            return entries
        return self.cache.store(self._key, entries)

    def _join_stretches(self, pieces: Iterator[_Piece], signal: _StopSignal) -> Iterator[Entry]:
        """Yield the documents and the rejected rows of all stretches with their positions in the
        part.
        """
        progress = _Progress()
        tally = _Tally()
        for stretch, entry in pieces:
            # The planned end of a stretch is a guess: bytes inside a gzip member may look like the
            # beginning of one. A reader that finds no member there continues beyond the planned
            # end, and has then read the next stretch, too.
            was_read = stretch is not None and stretch.begin < progress.reached
            # No `break`: `pieces` must be read up to the end of the part, because the next part
            # follows in the same iterator.
            if tally.is_lost or was_read:
                continue
            if isinstance(entry, Rejected):
                yield self._count(progress.move(entry), tally)
            elif entry is not None:
                rows_before = progress.rows
                batch = replace(entry, rows=entry.rows + rows_before) if rows_before else entry
                yield from self._check_batch(batch, tally)
                # The readers that are ahead stop; their pieces are not used.
                signal.is_set |= tally.is_too_large
            elif stretch is not None:
                progress.add(stretch)
        reason = self._why_unreadable(tally)
        if reason is not None:
            yield lost_file(self.part.name, reason)

    def _check_batch(self, batch: DocumentBatch, tally: _Tally) -> Iterator[Entry]:
        """Yield the documents of a batch, and long documents as rejected rows. The rest of the part
        is lost if its documents are too large together.
        """
        too_long: list[Rejected] = []
        fitting = self._without_long(batch, too_long.append)
        tally.num_documents += len(fitting.rows)
        tally.num_bytes += fitting.text_bytes + DOCUMENT_BYTES * len(fitting.rows)
        reason = self._why_too_large(tally.num_bytes)
        if reason is not None:
            tally.is_lost = True
            tally.is_too_large = True
            yield lost_file(self.part.name, reason)
            return
        for row in too_long:
            yield self._count(row, tally)
        # A batch without documents may have records about its file, which the output repeats.
        payload = fitting.payload
        has_metadata = isinstance(payload, Pages) and len(payload.metadata_records) > 0
        if len(fitting.rows) or fitting is batch or has_metadata:
            yield fitting

    def _count(self, row: Rejected, tally: _Tally) -> Rejected:
        """Count a rejected row; return it, the first unreadable row with an explanation."""
        if row.excluded:
            tally.num_excluded += 1
            tally.why = tally.why or f": {row.reason}"
        else:
            tally.num_unreadable += 1
            if tally.num_unreadable == 1:
                guess = _guess_format(self.part)
                tally.why = guess.hint or f": {row.reason}"
                row = self._explain_first(row, guess)
        tally.is_lost |= row.rest_of_file
        return row

    def _why_unreadable(self, tally: _Tally) -> str | None:
        """Return the reason why the part as a whole counts as unreadable at its end, or None."""
        if tally.is_lost:  # reported already
            return None
        num_rows = tally.num_documents + tally.num_unreadable
        has_only_excluded = tally.num_excluded > 0 and not num_rows and self.part.unit != "file"
        is_readable = tally.num_unreadable <= self.max_unreadable * num_rows
        if is_readable and not has_only_excluded:
            return None
        if not tally.num_documents:
            return f"no row of the file can be read{tally.why}"
        share = f"{tally.num_unreadable:,} of {num_rows:,} rows of the file"
        return f"{share} cannot be read{tally.why}"

    def _explain_first(self, row: Rejected, guess: _Guess) -> Rejected:
        """Return the first unreadable row with the hint; the whole file if no row can be read."""
        hint = guess.hint
        # The other lines of UTF-16 would be read as text with null characters.
        if guess.is_wide and row.byte == 0:
            return lost_file(self.part.name, f"no row of the file can be read{hint}")
        is_document = self.part.unit == "file" and self.max_unreadable < 1
        if row.rest_of_file or is_document:
            return row._replace(reason=row.reason + hint, rest_of_file=True)
        return row._replace(reason=row.reason + hint) if hint else row

    def _why_too_large(self, num_bytes: int) -> str | None:
        """Return the reason to stop reading if the documents of a compressed file have too many
        bytes, or None.

        The decompressed bytes are no measure: in a table, a dictionary may contain a text once for
        all rows.
        """
        part = self.part
        # Most parts end here, without a look at the storage.
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
        """Return the documents of a batch within the limit of length; reject the others."""
        if batch.text_bytes <= self.max_document_bytes:
            return batch
        _, offsets = flatten_strings(batch.text)
        lengths = np.diff(offsets)
        fits = lengths <= self.max_document_bytes
        if fits.all():
            return batch
        for row, length in zip(batch.rows[~fits].tolist(), lengths[~fits].tolist(), strict=True):
            reason = (
                f"the document has {length} bytes, more than "
                f"max_document_bytes={self.max_document_bytes} (--max-document-bytes)"
            )
            reject(
                Rejected(
                    file=self.part.name,
                    row=row,
                    line=None,
                    byte=None,
                    reason=reason,
                    excluded=True,
                    too_long=True,
                )
            )
        return batch.filter(fits)


def read_tasks(
    tasks: Sequence[Task], threads: int, *, with_payload: bool = False
) -> Iterator[tuple[int, Entry | None]]:
    """Yield the documents and the rejected rows of parts in order, each with the number of its
    task; None ends a part.

    Documents that are too long are rejected. A part that cannot be opened is one rejection. If no
    row of a file of rows can be read, the file is not in its declared format, and is rejected as a
    whole in addition to its rows.

    Parameters
    ----------
    threads : the number of parts, and of stretches of large parts, to read ahead at once; with 1 or
        2, the caller's thread reads.
    with_payload : whether batches have the payload to copy.
    """
    stored = [task._stored() for task in tasks]
    signals = [_StopSignal() for _ in tasks]

    def readers() -> Iterator[Callable[[], Iterator[_Piece]]]:
        for task, known, signal in zip(tasks, stored, signals, strict=True):
            if known is None:
                yield from task._readers(signal, with_payload)

    # With two processors, threads that read ahead cost 9 % of processor time and saved nothing.
    num_readers = threads if threads > 2 else 1
    pieces = chain_ahead(readers(), num_readers, bytes_of=lambda piece: bytes_of(piece.entry))
    # Ends the threads that read ahead, also when the caller stops early.
    with closing(pieces):
        for number, (task, known) in enumerate(zip(tasks, stored, strict=True)):
            entries: Iterable[Entry] | None = known
            if entries is None:
                entries = task._entries(_pieces_of_part(pieces), signals[number])
            for entry in entries:
                yield number, entry
            yield number, None


def _pieces_of_part(pieces: Iterator[_Piece]) -> Iterator[_Piece]:
    """Yield the next pieces up to the end of their part."""
    for piece in pieces:
        if piece.stretch is None and piece.entry is None:
            return
        yield piece


class _Guess(NamedTuple):
    """The actual format of a file of text, if its beginning shows another one than its name.

    hint : the format and the advice, as the end of a sentence; "" if the format is as named.
    is_wide : whether it is UTF-16 or UTF-32.
    """

    hint: str = ""
    is_wide: bool = False


def _guess_format(part: Part) -> _Guess:
    """Guess the actual format of a file of text from its beginning."""
    if not isinstance(part, InputFile) or part.format not in FORMATS:
        return _Guess()
    if FORMATS[part.format].contents != "text":
        return _Guess()
    try:
        with part.open_stream() as stream:
            head = bytes(stream.read(_HEAD_BYTES))
    except (*STREAM_ERRORS, CannotOpen):
        return _Guess()
    if compression_of(head) is None:
        encoding = wide_encoding_of(head)
        if encoding is not None:
            return _Guess(hint=why_wide(encoding), is_wide=True)
    return _Guess(hint=_hint_of(head, part.format))


def _hint_of(head: bytes, format_name: str) -> str:
    """Describe the actual format of a file, except for UTF-16 and UTF-32, from its first bytes."""
    compression = compression_of(head)
    if compression is not None:
        suffix = next(suffix for suffix, name in COMPRESSIONS.items() if name == compression)
        return f": it is compressed. Add {suffix} to its name"
    kind = format_of_bytes(head)
    if kind is not None and FORMATS[kind].contents == "binary":
        return (
            f": it is a file of {kind}. Rename it, or name its format with in_format (--in-format "
            f"{kind})"
        )
    if format_name == "jsonl" and head.lstrip().startswith(b"["):
        return ": it is a JSON array, not JSON lines. Convert it, for example by jq -c '.[]'"
    if format_name == "jsonl" and _has_other_lines(head):
        option = " --seq" if b"\x1e" in head else ""
        return (
            f": it does not have one object a line. Convert it, for example by jq{option} -c . FILE"
        )
    if b"\r" in head and b"\n" not in head:
        return (
            ": its lines end with a carriage return only. Convert it, for example by tr '\\r' '\\n'"
        )
    if not _is_utf8(head):
        # Decoded as GB18030, no other encoding has the most frequent characters of Chinese.
        is_chinese = any(letter in head.decode("gb18030", "replace") for letter in _FREQUENT)
        encoding = "GB18030" if is_chinese else "LATIN1"
        return f": it is not UTF-8. Convert it, for example by iconv -f {encoding} -t UTF-8"
    return ""


def _has_other_lines(head: bytes) -> bool:
    """Return whether the first object of a file of JSON has several lines, or another object on its
    last line.
    """
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n\x1e")
    if not text.startswith("{"):
        return False
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except RecursionError:
        return False
    except ValueError:
        is_cut = len(head) == _HEAD_BYTES  # inside a long object, for example
        return is_cut and text.partition("\n")[0].strip() == "{"
    return "\n" in text[:end] or text[end:].lstrip(" \t\x1e").startswith("{")


def _is_utf8(head: bytes) -> bool:
    """Return whether bytes are UTF-8, except for a character that is cut off at their end."""
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def input_changed(name: str) -> InputError:
    """Return the error for an input that changed between two passes."""
    return InputError(
        f"{name} changed during the run. Run again while no other program writes to it."
    )


def identified(tasks: Sequence[Task], cache: BatchCache) -> list[Task]:
    """Return tasks with their identities, and with the cache if their documents may fit into it."""
    tasks = [task.identified() for task in tasks]
    num_bytes = sum(task.identity.num_bytes for task in tasks if task.identity)
    if not cache.may_fit(num_bytes):
        return tasks
    return [task._replace(cache=cache) for task in tasks]


def known_total(tasks: list[Task]) -> int | None:
    """Return the number of documents; None if a part does not know it before it is read."""
    counts = [task.part.num_rows() for task in tasks]
    return None if None in counts else sum(count for count in counts if count is not None)
