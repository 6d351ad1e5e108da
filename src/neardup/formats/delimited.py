"""CSV and TSV: a header, then one document per row, every column as text.

Columns are read by their position: names may repeat or be empty, as in exports of spreadsheets. In
a file without quotes, as databases and bitexts have them, a quotation mark is a character like any
other, and a line is a row.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from neardup.arrays import Ints, flatten_strings
from neardup.documents.added_columns import append_columns, as_json
from neardup.documents.batch import (
    BLOCK_BYTES,
    Columns,
    DocumentBatch,
    Payload,
    Reject,
    Rejected,
    lost_file,
)
from neardup.documents.limits import check_columns
from neardup.documents.lines import BYTE_ORDER_MARK, STREAM_ERRORS, wide_encoding_of
from neardup.documents.nested import ColumnTypes
from neardup.documents.sinks import RowSink, open_compressed
from neardup.documents.sources import Source
from neardup.documents.texts import documents_of, replace_column
from neardup.errors import OutputError
from neardup.formats.registry import UNQUOTED, Handler, Widening

MAX_ROW_BYTES = 1 << 27
"""A file with a longer row is rejected from this row on."""


class _Dialect(NamedTuple):
    """The characters between values, and whether quotes may enclose delimiters and line ends."""

    delimiter: str
    is_quoted: bool = True

    def parse_options(self, on_bad: Callable[[object], str] | None = None) -> pa_csv.ParseOptions:
        """Return the options of Arrow. on_bad : called with each row that has another number of
        columns.
        """
        return pa_csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char='"' if self.is_quoted else False,
            newlines_in_values=self.is_quoted,
            invalid_row_handler=on_bad,
        )


_DIALECTS = {
    "csv": _Dialect(","),
    "tsv": _Dialect("\t"),
    UNQUOTED["csv"]: _Dialect(",", is_quoted=False),
    UNQUOTED["tsv"]: _Dialect("\t", is_quoted=False),
}
_NO_COLUMNS = pa.schema([])
_ERRORS = (*STREAM_ERRORS, UnicodeDecodeError)
_LINE_END = re.compile(rb"\r\n|\r|\n")
_LINE_ENDS = b"\r\n"
# Arrow's errors are told apart by their messages: a row that is longer than a block, and no header.
_STRADDLES = "straddling"
_EMPTY = "Empty CSV"


def column_types(file: Source) -> ColumnTypes:
    """Return name and type (string) of each column."""
    return dict.fromkeys(_header(file).names, pa.string())


class _Header(NamedTuple):
    """The names of the columns, and the number of blank lines before them."""

    names: list[str]
    num_blank: int


def _header(source: Source, block_bytes: int = BLOCK_BYTES) -> _Header:
    """Return the header of a file. Raises the errors of the stream and of its parser."""
    dialect = _DIALECTS[source.format]
    with source.open_stream() as stream:
        beginning = bytes(stream.read(block_bytes)).removeprefix(BYTE_ORDER_MARK)
    if wide_encoding_of(beginning):
        raise pa.ArrowInvalid("it is not UTF-8")
    head = beginning.lstrip(_LINE_ENDS)
    check_columns(_count_columns(head, dialect))
    num_blank = len(_LINE_END.findall(beginning, 0, len(beginning) - len(head)))
    with source.open_stream() as whole:
        stream = _UntilError(whole)
        try:
            names = _read_names(stream, dialect, block_bytes)
        except _ERRORS as error:
            if stream.error is not None:
                raise stream.error from error
            if _STRADDLES in str(error) and block_bytes < MAX_ROW_BYTES:
                return _header(source, MAX_ROW_BYTES)
            if _EMPTY not in str(error):
                raise
            # A header without a line end, or nothing.
            file = pa.BufferReader(beginning + b"\n")
            names = _read_names(file, dialect, block_bytes)
    return _Header(names=names, num_blank=num_blank)


def _read_names(file: object, dialect: _Dialect, block_bytes: int) -> list[str]:
    reader = pa_csv.open_csv(
        file,
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=block_bytes),
        # Rows with other numbers of columns do not matter for the names.
        parse_options=dialect.parse_options(lambda _: "skip"),
    )
    return list(reader.schema.names)


class _Wanted(NamedTuple):
    """The columns to read, by their positions, which rise."""

    header: _Header
    positions: list[int]

    @property
    def schema(self) -> pa.Schema:
        """The columns with their names, which may repeat."""
        names = self.header.names
        return pa.schema([pa.field(names[position], "string") for position in self.positions])


def _count_columns(head: bytes, dialect: _Dialect) -> int:
    """Return about the number of columns in the header, without Arrow, which takes seconds and
    gigabytes for a hundred thousand.
    """
    line_end = _LINE_END.search(head)
    line = head[: line_end.start()] if line_end else head
    if b'"' not in line or not dialect.is_quoted:
        return line.count(dialect.delimiter.encode()) + 1
    lines = io.StringIO(head.decode("utf-8", "replace"), newline="")
    with suppress(csv.Error):  # a very long name, which Arrow reads
        return len(next(csv.reader(lines, delimiter=dialect.delimiter), []))
    return 1


def _open(
    file: object,
    dialect: _Dialect,
    block_bytes: int,
    wanted: _Wanted,
    on_bad: Callable[[object], str],
) -> pa_csv.CSVStreamingReader:
    """Return a reader of the wanted columns, with names f0, f1, ... by their positions."""
    names = [f"f{position}" for position in wanted.positions]
    # Without threads, bad rows have numbers; the engine has threads of its own.
    return pa_csv.open_csv(
        file,
        read_options=pa_csv.ReadOptions(
            use_threads=False,
            block_size=block_bytes,
            autogenerate_column_names=True,
            # With generated names, the header is a row like any other.
            skip_rows_after_names=wanted.header.num_blank + 1,
        ),
        parse_options=dialect.parse_options(on_bad),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=names,
            strings_can_be_null=False,
            check_utf8=False,  # checked by row later, so that a bad row costs no other row
        ),
    )


class _BadRows:
    """The rows that pyarrow skipped, with their reasons, until the good rows before them are
    read.
    """

    def __init__(self, num_skipped: int) -> None:
        self._num_skipped = num_skipped
        self.waiting: dict[int, str] = {}
        self.next_row = 0

    def skip(self, row: pa_csv.InvalidRow) -> str:
        """Note a row. pyarrow counts from 1, and counts the header and the lines before it."""
        number = row.number - 1 - self._num_skipped
        if number >= self.next_row:  # not reported by an earlier attempt
            reason = f"expected {row.expected_columns} columns, got {row.actual_columns}"
            self.waiting[number] = reason
        return "skip"

    def number(self, num_good: int, source: Source, reject: Reject) -> Ints:
        """Return the numbers of the next good rows; report the bad rows among them."""
        bad = sorted(self.waiting)
        # Of this many rows, `num_good` at least are good.
        rows = np.arange(self.next_row, self.next_row + num_good + len(bad), dtype=np.int64)
        good = rows[~np.isin(rows, bad)][:num_good]
        if num_good:
            self.next_row = int(good[-1]) + 1
        self.report(source, reject, before=self.next_row)
        return good

    def report(self, source: Source, reject: Reject, before: int | None = None) -> None:
        """Report the bad rows before a row; all if `before` is None."""
        for row in sorted(self.waiting):
            if before is None or row < before:
                reject(Rejected(source.name, row, None, None, self.waiting.pop(row)))


class _UntilError(io.RawIOBase):
    """A stream that ends before its error, after the last whole line: Arrow drops the block with
    the error.

    error : the error of the stream, None before it is met.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._data = bytearray()
        self._end = 0  # of the last whole line
        self._is_done = False
        self.error: Exception | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = size if size >= 0 else MAX_ROW_BYTES
        while self._end < wanted and not self._is_done:
            self._fill()
        taken = bytes(self._data[: min(wanted, self._end)])
        del self._data[: len(taken)]
        self._end -= len(taken)
        return taken

    def _fill(self) -> None:
        try:
            piece = self._stream.read(BLOCK_BYTES)
        except _ERRORS as error:
            self.error = error
            self._is_done = True
            return
        line_end = piece.rfind(b"\n") + 1
        if line_end:
            self._end = len(self._data) + line_end
        self._data += piece
        # At the end of the file, and beyond the limit of a row, a row is passed on without its line
        # end: Arrow reads the last row, and refuses the long one.
        if not piece or len(self._data) > MAX_ROW_BYTES:
            self._end = len(self._data)
        self._is_done = not piece


class _Attempt:
    """A reading of the file with some block size.

    last : the last batch so far. It is held back, because its last row may be damaged.
    """

    def __init__(self, source: Source, wanted: _Wanted, bad: _BadRows, block_bytes: int) -> None:
        self._source = source
        self._wanted = wanted
        self._bad = bad
        self._block_bytes = block_bytes
        self.last: pa.RecordBatch | None = None

    def batches(self, num_skipped: int) -> Iterator[pa.RecordBatch]:
        """Yield the good rows after the first `num_skipped`, without the last batch."""
        source = self._source
        schema = self._wanted.schema
        with source.open_stream() as stream:
            lines = _UntilError(stream)
            # A local file without compression does not break off, and needs no other copy.
            is_plain = source.is_local and source.compression is None
            reader = _open(
                stream if is_plain else lines,
                _DIALECTS[source.format],
                self._block_bytes,
                self._wanted,
                self._bad.skip,
            )
            for batch in reader:
                # The rows before were yielded by an attempt with smaller blocks.
                fresh = batch.slice(min(num_skipped, batch.num_rows))
                num_skipped -= batch.num_rows - fresh.num_rows
                # A batch waits for the next one, since an error may cut its last row.
                if self.last is not None:
                    yield self.last
                self.last = pa.RecordBatch.from_arrays(fresh.columns, schema=schema)
        if lines.error is not None:
            if self.last is not None:  # the last row may be cut inside its quotes
                self.last = self.last.slice(0, max(0, self.last.num_rows - 1))
            raise lines.error


def _record_batches(
    source: Source, wanted: _Wanted, bad: _BadRows, reject: Reject
) -> Iterator[pa.RecordBatch]:
    """Yield the good rows; after a row that is longer than a block, the file is read again with
    larger blocks.
    """
    block_bytes = BLOCK_BYTES
    num_done = 0
    while True:
        attempt = _Attempt(source, wanted, bad, block_bytes)
        reason = None
        try:
            for batch in attempt.batches(num_done):
                num_done += batch.num_rows
                yield batch
        except _ERRORS as error:
            if _EMPTY in str(error):
                return
            is_long_row = _STRADDLES in str(error)
            if is_long_row and block_bytes < MAX_ROW_BYTES:
                block_bytes = min(MAX_ROW_BYTES, block_bytes * 16)
                continue
            reason = f"the rest of the file cannot be read: {error}"
            if is_long_row:
                reason = f"a row is longer than {MAX_ROW_BYTES} bytes, the longest that is read"
        if attempt.last is not None:
            yield attempt.last
        if reason is not None:
            bad.report(source, reject)
            reject(lost_file(source.name, reason))
        return


def read(
    file: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of a CSV or TSV file; a row with too many or too few columns is
    rejected.
    """
    try:
        header = _header(file)
    except _ERRORS as error:
        if _EMPTY not in str(error):
            reason = f"the header of the file cannot be read: {error}"
            reject(lost_file(file.name, reason))
        return
    bad = _BadRows(header.num_blank + 1)
    named = [index for index, name in enumerate(header.names) if name in columns.names]
    needs_all = with_payload or not named
    wanted = _Wanted(header, list(range(len(header.names))) if needs_all else named)
    for batch in _record_batches(file, wanted, bad, reject):
        rows = bad.number(batch.num_rows, file, reject)
        payload = batch if with_payload else None
        yield documents_of(batch, rows, columns, file.name, reject, payload=payload)
    bad.report(file, reject)


def _make_sink(file: Source, added: pa.Schema = _NO_COLUMNS) -> Callable[[str], RowSink]:
    try:
        names = _header(file).names
    except _ERRORS as error:
        raise pa.ArrowInvalid(f"{file.name} has no header") from error
    with file.open_stream() as stream:
        is_marked = bytes(stream.read(len(BYTE_ORDER_MARK))) == BYTE_ORDER_MARK
    schema = pa.schema([pa.field(name, "string") for name in [*names, *added.names]])
    make_writer = _writer_of(_DIALECTS[file.format])

    def make_sink(path: str) -> RowSink:
        stream = open_compressed(path, file.compression)
        # Without the mark, spreadsheets take UTF-8 for another encoding.
        stream.write(BYTE_ORDER_MARK if is_marked else b"")
        return RowSink(stream, schema, make_writer)

    return make_sink


def _writer_of(dialect: _Dialect) -> Callable[[Any, pa.Schema], Any]:
    """Return the function that makes a writer of rows from a stream and the schema."""
    if not dialect.is_quoted:
        return partial(_UnquotedWriter, dialect.delimiter)
    options = pa_csv.WriteOptions(delimiter=dialect.delimiter)
    return partial(pa_csv.CSVWriter, write_options=options)


class _UnquotedWriter:
    """Write values as they are, which Arrow does not if they have a quotation mark."""

    def __init__(self, delimiter: str, stream: Any, schema: pa.Schema) -> None:
        self._delimiter = delimiter
        self._stream = stream
        names = pa.record_batch([[name] for name in schema.names], names=schema.names)
        self.write_batch(names)

    def write_batch(self, rows: pa.RecordBatch) -> None:
        """Append rows of strings. Raises OutputError if a value needs quotes."""
        columns = [pc.fill_null(column, "") for column in rows.columns]
        values = pc.binary_join_element_wise(*columns, self._delimiter)
        data, _ = flatten_strings(pc.binary_join_element_wise(values, "", "\n"))
        num_delimiters = (rows.num_columns - 1) * rows.num_rows
        # Beyond these, a delimiter or a line end is inside a value.
        if (
            np.count_nonzero(data == ord(self._delimiter)) != num_delimiters
            or np.count_nonzero(data == ord("\n")) != rows.num_rows
            or np.any(data == ord("\r"))
        ):
            raise OutputError(
                f"A value of the columns {', '.join(rows.schema.names)} has {self._delimiter!r} or "
                "a line end, so it cannot be written without quotes. Convert the input to a file "
                "with quotes, or to JSON lines, and leave quote (--quote none) out."
            )
        self._stream.write(data)

    def close(self) -> None:
        """Leave the stream, which its owner closes."""


def _append_texts(rows: Payload, added: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with further columns as text; a list is written as JSON."""
    texts = [
        as_json(column) if pa.types.is_list(column.type) else column for column in added.columns
    ]
    columns = [column.cast(pa.string()) for column in texts]
    return append_columns(rows, pa.RecordBatch.from_arrays(columns, added.schema.names))


def _read_table(file: Source, text_columns: Sequence[str]) -> pa.Table:
    with file.open_stream() as stream:
        return pa_csv.read_csv(
            stream,
            parse_options=_DIALECTS[file.format].parse_options(),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(text_columns, pa.string())
            ),
        )


HANDLER = Handler(
    read,
    _make_sink,
    column_types,
    read_table=_read_table,
    replace_texts=replace_column,
    widening=Widening(_make_sink, _append_texts),
)
