"""The documents of a run in batches, with the payload to copy, and the counts of their reading.

A *part* is one input: a file or a table in memory. Reading a part twice yields the same documents
in the same order; the number of rows in a batch is the reader's choice and never changes an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import (
    Floats,
    Integers,
    Ints,
    Mask,
    Words,
    arrow_of,
    arrow_of_bytes,
    flatten_strings,
    offsets_from_lengths,
)
from neardup.documents.nested import ELEMENTS
from neardup.errors import InputError

BLOCK_BYTES = 4 << 20
"""Bytes of text in a batch: large enough for Arrow to be at full speed, small enough for the cache.
"""
MAX_UNREAD_NAMED = 100  # unreadable files that a report names


class Columns(NamedTuple):
    """The columns to read.

    text, more_text : the columns of the text of a document, in this order. id, more_ids : the
    columns of its id, None without ids. ranks : the columns of `keep="max:COLUMN"`. values : the
    columns of values, which are read as strings. vector_length : the length of documents that are
    vectors, 0 for any length; None if documents are texts. counted : the column among `values` by
    which documents are grouped or counted. described : the columns among `values` that describe
    documents in the output. roles : the roles whose turns are in a text of turns; all if there are
    none.
    """

    text: str
    id: str | None = None
    ranks: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    more_text: tuple[str, ...] = ()
    vector_length: int | None = None
    more_ids: tuple[str, ...] = ()
    counted: str | None = None
    described: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of the text."""
        return self.text, *self.more_text

    @property
    def sliced_by(self) -> str:
        """The column of the text by whose size rows are cut into batches: turns, if there are any,
        because a row of them may be as long as a dictionary can make it.
        """
        return next((name for name in self.texts if ELEMENTS in name), self.text)

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns of the id; none if documents have no id."""
        return () if self.id is None else (self.id, *self.more_ids)

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns whose values a run stores: the counted one first."""
        counted = () if self.counted is None else (self.counted,)
        return (*counted, *self.described)

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        return list(dict.fromkeys((*self.texts, *self.ids, *self.ranks, *self.values)))


@dataclass(frozen=True)
class DocumentBatch:
    """Consecutive documents of one part, in its order; rejected rows are left out of all fields.

    text : LargeStringArray, nulls allowed (an absent text is a document without features). Vectors
        are a LargeBinaryArray: float32 little-endian, no bytes for an absent vector.
    rows : int64 array, the row of each document in its part, rising.
    ids : StringArray or LargeStringArray, or None without an id column.
    ranks : float64 arrays of shape (num_rows, 2), one for each rank column; see
        neardup.documents.ranks.
    payload : if requested, the documents as in the file, to be copied.
    values : StringArrays or LargeStringArrays, one for each column of values; null without a value.
    """

    text: pa.LargeStringArray
    rows: Ints
    ids: pa.Array | None = None
    ranks: tuple[Floats, ...] = ()
    payload: Payload | None = None
    values: tuple[pa.Array, ...] = ()

    @cached_property
    def text_bytes(self) -> int:
        """The bytes of the texts; cached, as Arrow adds them up each time, which costs more than a
        small page.
        """
        return int(self.text.nbytes)

    def filter(self, mask: Mask) -> DocumentBatch:
        """Return the documents where `mask`, bool, is true."""
        arrow_mask = arrow_of(mask)
        payload = None if self.payload is None else select_payload(self.payload, mask)

        def choose(column: Any) -> Any:
            is_numpy = isinstance(column, np.ndarray)
            return column[mask] if is_numpy else column.filter(arrow_mask)

        return self._map(choose, payload)

    def slice(self, start: int, stop: int) -> DocumentBatch:
        """Return the documents in [start, stop), without their payload."""
        return self._map(lambda column: column[start:stop])

    def _map(self, change: Callable[[Any], Any], payload: Payload | None = None) -> DocumentBatch:
        """Return the documents with changed columns (NumPy or Arrow arrays) and another payload."""
        return DocumentBatch(
            text=change(self.text),
            rows=change(self.rows),
            ids=None if self.ids is None else change(self.ids),
            ranks=tuple(map(change, self.ranks)),
            payload=payload,
            values=tuple(map(change, self.values)),
        )


def concatenate(batches: Sequence[DocumentBatch]) -> DocumentBatch:
    """Return batches as one, without payload unless there is only one batch. Requires: their
    columns are the same.
    """
    first, *others = batches
    if not others:
        return first
    ranks_by_column = zip(*(batch.ranks for batch in batches), strict=True)
    values_by_column = zip(*(batch.values for batch in batches), strict=True)
    return DocumentBatch(
        text=pa.concat_arrays([batch.text for batch in batches]),
        rows=np.concatenate([batch.rows for batch in batches]),
        ids=None if first.ids is None else pa.concat_arrays([batch.ids for batch in batches]),
        ranks=tuple(map(np.concatenate, ranks_by_column)),
        values=tuple(map(pa.concat_arrays, values_by_column)),
    )


class RawLines(NamedTuple):
    """The lines of a batch, line ends included.

    data : bytes (or an Arrow buffer) of all lines in order; offsets : int64 array of shape
    (num_rows + 1,), line i is data[offsets[i]:offsets[i + 1]].
    """

    data: bytes | pa.Buffer
    offsets: Ints


@dataclass(frozen=True)
class Pages:
    """Web pages as in their file, to be copied, and as rows of a table.

    records : the bytes of each page; in a WARC file, its record: the gzip member if the record is
    one, otherwise not compressed. metadata_records : records about the file, each with the number
    of pages of this batch before it. rows : returns a row for each page.
    """

    records: list[bytes]
    metadata_records: list[tuple[int, bytes]]
    rows: Callable[[], pa.RecordBatch]

    def select(self, mask: Mask) -> Pages:
        """Return the pages where `mask` is true, with all metadata records."""
        num_before = offsets_from_lengths(mask)  # chosen pages before each page
        records = [record for record, chosen in zip(self.records, mask, strict=True) if chosen]
        # All of them are kept, each before the chosen page that now follows it.
        metadata_records = [
            (int(num_before[index]), record) for index, record in self.metadata_records
        ]

        def rows() -> pa.RecordBatch:
            return filter_rows(self.rows(), pa.array(mask, "bool"))

        return Pages(records=records, metadata_records=metadata_records, rows=rows)


Payload: TypeAlias = "pa.RecordBatch | RawLines | Pages"
"""All columns of a table, or lines of a text format, or pages."""


def select_payload(payload: Payload, mask: Mask) -> Payload:
    """Return the documents of a payload where `mask` (bool, shape (num_rows,)) is true; the data of
    lines are contiguous.
    """
    if isinstance(payload, RawLines):
        return RawLines(*select_lines(payload.data, payload.offsets, mask))
    if isinstance(payload, Pages):
        return payload.select(mask)
    return payload if mask.all() else filter_rows(payload, arrow_of(mask))


def select_lines(data: bytes | pa.Buffer, offsets: Ints, mask: Mask) -> tuple[pa.Buffer, Ints]:
    """Return data and offsets of the lines where `mask` is true; the data are contiguous."""
    if bool(mask.all()):  # a view, no copy
        begin = int(offsets[0])
        num_bytes = int(offsets[-1]) - begin
        return pa.py_buffer(data).slice(begin, num_bytes), offsets - begin
    chosen = arrow_of_bytes(data, offsets).filter(arrow_of(mask))
    _, offset_buffer, data_buffer = chosen.buffers()
    # Arrow may allocate more than the offsets need.
    chosen_offsets = np.frombuffer(offset_buffer, dtype=np.int64)[: len(chosen) + 1]
    return (pa.py_buffer(b"") if data_buffer is None else data_buffer), chosen_offsets


def filter_rows(rows: Any, mask: Any) -> Any:
    """Return the rows of a RecordBatch or Table where `mask` is true.

    Arrow cannot filter run-end encoded columns: they are decoded and encoded again.
    """
    if not any(map(pa.types.is_run_end_encoded, rows.schema.types)):
        return rows.filter(mask)
    columns = [_filter_column(column, mask) for column in rows.columns]
    return type(rows).from_arrays(columns, schema=rows.schema)


def _filter_column(column: Any, mask: Any) -> Any:
    """Return the values of a column where `mask` is true, run-end encoded if the column is."""
    dtype = column.type
    if pa.types.is_run_end_encoded(dtype):
        plain = pc.run_end_decode(column).filter(mask)
        return pc.run_end_encode(plain, run_end_type=dtype.run_end_type)
    return column.filter(mask)


def replace_lines(
    batch: DocumentBatch, rows: Integers, change: Callable[[int, bytes], bytes]
) -> RawLines:
    """Return the payload of a batch of lines with other lines, line ends included, in some rows.

    rows : the numbers of the changed rows, rising. change : returns the new line, from the number
    and the old line.
    """
    lines = batch.payload
    assert isinstance(lines, RawLines)
    data = memoryview(lines.data)
    offsets = lines.offsets
    sizes = np.diff(offsets)
    pieces: list[bytes | memoryview] = []
    copied_to = int(offsets[0])
    for row in rows.tolist():
        begin = int(offsets[row])
        end = int(offsets[row + 1])
        new_line = change(row, bytes(data[begin:end]))
        # The lines between the last changed one and this one, as they were.
        pieces.append(data[copied_to:begin])
        pieces.append(new_line)
        sizes[row] = len(new_line)
        copied_to = end
    pieces.append(data[copied_to : int(offsets[-1])])
    return RawLines(b"".join(pieces), offsets_from_lengths(sizes))


class Rejected(NamedTuple):
    """A document that was left out: its position, and the reason.

    rest_of_file : whether the rest of the file, or all of it, is lost too. excluded : whether a
    stated rule leaves the document out, such as the status of a response; otherwise it could not be
    read. too_long : whether the rule is a limit of length.
    """

    file: str
    row: int | None
    line: int | None
    byte: int | None
    reason: str
    rest_of_file: bool = False
    excluded: bool = False
    too_long: bool = False


def lost_file(name: str, reason: str, row: int | None = None) -> Rejected:
    """Return the record of a file that cannot be read to its end.

    row : 0 for a file that is one document, otherwise None.
    """
    return Rejected(file=name, row=row, line=None, byte=None, reason=reason, rest_of_file=True)


Reject: TypeAlias = Callable[[Rejected], None]
"""Takes a rejected document: counts it, writes it down, or raises."""


def describe_rejected(row: Rejected) -> str:
    """Return a sentence about a rejected row: its position and the reason."""
    numbers = {"row": row.row, "line": row.line, "byte": row.byte}
    known = [f"{name} {value}" for name, value in numbers.items() if value is not None]
    return f"{', '.join([row.file, *known])}: {row.reason}"


def rejecter(on_error: str, use: Reject, before: str = "nothing is written") -> Reject:
    """Return the function to call with each unreadable row: `use`, or a function that raises
    InputError.

    Parameters
    ----------
    on_error : "stop" ends the run at the first unreadable row.
    use : takes the row otherwise.
    before : the fate of the documents before the row, for the error.
    """
    return partial(_stop, before) if on_error == "stop" else use


def _stop(before: str, row: Rejected) -> None:
    raise InputError(
        f"{describe_rejected(row)}. The run stops at the first such document because of "
        f"on_error='stop' (--on-error stop): {before}. Use on_error='reject' (--on-error reject) "
        "to leave such documents out and list them."
    )


@dataclass
class Losses:
    """Files that could not be read completely, and rows that a run left out.

    unread_files : the number of files, folders included. unread : the first files by name, each
    with the reason. excluded : rows left out by a stated rule. too_long : excluded rows above a
    limit of length. unreadable : rows that could not be read. first : a sentence about the first
    unreadable row, "" if there is none. textless_files : the number of PDF files without a text
    layer, which are read as empty documents. textless : the first ones by name.
    """

    unread_files: int = 0
    unread: dict[str, str] = field(default_factory=dict)
    excluded: int = 0
    too_long: int = 0
    unreadable: int = 0
    first: str = ""
    textless_files: int = 0
    textless: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, rejected: Iterable[Rejected]) -> Losses:
        """Count rejected rows and files."""
        losses = cls()
        for row in rejected:
            losses.add(row)
        return losses

    @property
    def rejected(self) -> int:
        """The number of rejected rows."""
        return self.excluded + self.unreadable

    def add(self, row: Rejected) -> None:
        """Count a rejected row or file."""
        if row.rest_of_file:
            self.unread_files += 1
            if len(self.unread) < MAX_UNREAD_NAMED:
                self.unread[row.file] = row.reason
        elif row.excluded:
            self.excluded += 1
            self.too_long += row.too_long
        else:
            self.unreadable += 1
            self.first = self.first or describe_rejected(row)

    def add_documents(self, name: str, format_name: str, text: pa.Array) -> None:
        """Count the file of some documents if it is a PDF file without a text layer."""
        if format_name == "pdf" and flatten_strings(text)[0].nbytes == 0:
            self.add_textless(name)

    def add_textless(self, name: str) -> None:
        """Count a PDF file without a text layer."""
        self.textless_files += 1
        if len(self.textless) < MAX_UNREAD_NAMED:
            self.textless.append(name)

    def __add__(self, other: Losses) -> Losses:
        """Return the losses of two readings."""
        unread = list((self.unread | other.unread).items())
        return Losses(
            unread_files=self.unread_files + other.unread_files,
            unread=dict(unread[:MAX_UNREAD_NAMED]),
            excluded=self.excluded + other.excluded,
            too_long=self.too_long + other.too_long,
            unreadable=self.unreadable + other.unreadable,
            first=self.first or other.first,
            textless_files=self.textless_files + other.textless_files,
            textless=(self.textless + other.textless)[:MAX_UNREAD_NAMED],
        )


@dataclass
class DividedWords:
    """The words that hyphens divide at the ends of lines, in the first documents."""

    words: int = 0
    documents: int = 0
    text_bytes: int = 0


@dataclass
class Tally:
    """Progress of the reading, the state in a checkpoint.

    part : the index of the current part; part_documents and part_rejected count its rows, the other
    fields count all parts. against_bytes : the share of text_bytes in the earlier corpus.
    """

    part: int = 0
    part_documents: int = 0
    part_rejected: int = 0
    documents: int = 0
    without_features: int = 0
    shingles: int = 0
    structure: int = 0
    text_bytes: int = 0
    against_bytes: int = 0
    id_bytes: int = 0
    short: int = 0
    divided: DividedWords = field(default_factory=DividedWords)
    losses: Losses = field(default_factory=Losses)

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Tally:
        """Return the tally of a checkpoint."""
        losses = Losses(**state["losses"])
        return cls(**state | {"losses": losses, "divided": DividedWords(**state["divided"])})


class ValueNames(NamedTuple):
    """The values of the stored columns with their hashes, unordered, with repeats.

    hashes : uint64 (n,). texts : large_string (n,).
    """

    hashes: Words
    texts: pa.Array

    @classmethod
    def join(cls, names: Sequence[ValueNames]) -> ValueNames:
        """Return the values of several columns; equal values have equal hashes."""
        return cls(
            hashes=np.concatenate([part.hashes for part in names]),
            texts=pa.concat_arrays([part.texts.cast(pa.large_string()) for part in names]),
        )

    def find(self, hashes: Words) -> list[str]:
        """Return the value of each hash. Requires: all hashes are known."""
        names: list[str] = self.texts_of(hashes).to_pylist()
        return names

    def texts_of(self, hashes: Words) -> pa.Array:
        """Return the same as `find`, as an Arrow array of large strings."""
        if not len(hashes):
            return pa.nulls(0, "large_string")
        distinct, index = np.unique(hashes, return_inverse=True)
        # One row for each requested hash. Rows of one hash have one value, so any of them will do.
        known_rows = np.flatnonzero(np.isin(self.hashes, distinct))
        row_of_distinct = np.empty(len(distinct), np.int64)
        row_of_distinct[np.searchsorted(distinct, self.hashes[known_rows])] = known_rows
        return self.texts.take(arrow_of(row_of_distinct[index]))


# `pa.nulls`, because `pa.array` would load pandas.
NO_NAMES = ValueNames(hashes=np.empty(0, np.uint64), texts=pa.nulls(0, "large_string"))


@dataclass(frozen=True)
class Corpus:
    """Counts and names after reading; the documents themselves are in the scratch columns.

    part_ends : int64 (num_parts,), the number of documents up to the end of each part.
    part_rejected : int64 (num_parts,), the rejected rows of each part. names : the values of the
    stored columns.
    """

    part_ends: Ints
    part_rejected: Ints
    num_against: int
    tally: Tally
    names: ValueNames = NO_NAMES

    @property
    def num_documents(self) -> int:
        """All documents, with the earlier corpus."""
        return self.tally.documents


Entry: TypeAlias = DocumentBatch | Rejected


def bytes_of(entry: Entry | None) -> int:
    """Return the memory of the columns and the payload of a batch; 0 for another entry."""
    if not isinstance(entry, DocumentBatch):
        return 0
    columns = [*entry.ranks, *entry.values]
    if entry.ids is not None:
        columns.append(entry.ids)
    num_bytes = sum(int(column.nbytes) for column in columns)
    num_bytes += entry.text_bytes + entry.rows.nbytes
    return num_bytes + _payload_bytes(entry.payload, entry.text)


def _payload_bytes(payload: Payload | None, text: pa.Array) -> int:
    """Return the memory of a payload without the text, which most tables share with the batch."""
    if payload is None:
        return 0
    if isinstance(payload, RawLines):
        return len(payload.data) + payload.offsets.nbytes
    if isinstance(payload, Pages):
        return sum(map(len, payload.records))
    # A cast to large_string has new offsets, but shares the buffer of the bytes.
    text_addresses = _addresses(text)
    others = [column for column in payload.columns if not _addresses(column) & text_addresses]
    return sum(column.nbytes for column in others)


def _addresses(array: pa.Array) -> set[int]:
    return {buffer.address for buffer in array.buffers() if buffer is not None and buffer.size}
