"""Files that rows or lines are written to, whole at `close`."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv

from neardup.formats import open_compressed


class SourcePart(Protocol):
    """What writing asks of an input file; `documents.input_file.InputFile` is one."""

    @property
    def name(self) -> str:
        """The file as the user named it."""
        ...

    @property
    def format(self) -> str:
        """A key of `formats.FORMATS`."""
        ...

    @property
    def compression(self) -> str | None:
        """The compression of the whole file."""
        ...

    @property
    def unit(self) -> str:
        """What a document is: "row", "line" or "file"."""
        ...

    @property
    def relative_name(self) -> str:
        """Unique path below the output folder."""
        ...

    @property
    def stem(self) -> str:
        """Unique path below the output folder, to which a suffix is added."""
        ...

    def open_file(self) -> pa.NativeFile:
        """Open the input for random access."""
        ...

    def column_names(self) -> list[str] | None:
        """The columns of the input."""
        ...

    def column_types(self) -> dict[str, pa.DataType] | None:
        """The columns of the input with their types."""
        ...


class Sink(Protocol):
    """A file being written: `write` any number of times, then `close` or `discard`."""

    def write(self, rows: Any) -> None:
        """Write rows: a RecordBatch, or the bytes of lines."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...

    def discard(self) -> None:
        """Let go of what is open; the caller removes the file."""
        ...


class LinesSink:
    """A file of lines, written as they come."""

    def __init__(self, path: str, compression: str | None) -> None:
        self._stream = open_compressed(path, compression)

    def write(self, rows: Any) -> None:
        """Write the bytes of whole lines."""
        self._stream.write(rows)

    def close(self) -> None:
        """Finish the file."""
        self._stream.close()

    discard = close


class DelimitedSink:
    """A CSV or TSV file with a header."""

    def __init__(self, path: str, compression: str | None, schema: pa.Schema, delimiter: str) -> None:
        self._stream = open_compressed(path, compression)
        options = pa_csv.WriteOptions(delimiter=delimiter)
        self._writer = pa_csv.CSVWriter(self._stream, schema, write_options=options)
        self._schema = schema

    def write(self, rows: Any) -> None:
        """Write a RecordBatch."""
        self._writer.write_batch(rows.cast(self._schema) if rows.schema != self._schema else rows)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()
        self._stream.close()

    discard = close
