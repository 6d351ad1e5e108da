"""Writing what is kept of one input file, in the format it came in or another."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of
from neardup.errors import OutputError
from neardup.formats import (
    COMPRESSIONS,
    FILE_FORMATS,
    FORMATS,
    OUT_FORMATS,
    Lines,
    Pages,
    filter_rows,
    is_pages,
    select_lines,
)
from neardup.output.kept_arrow import ArrowSink, arrow_layout
from neardup.output.kept_convert import (
    JsonLinesToTable,
    bytes_of,
    joined_pages,
    json_lines_of,
    plain_rows,
    plain_schema,
    rows_of_file,
    rows_of_lines,
    rows_of_pages,
    text_lines_of,
    text_lines_of_json,
    unchanged,
)
from neardup.output.kept_parquet import ParquetSink, parquet_layout
from neardup.output.kept_sinks import DelimitedSink, LinesSink, Sink, SourcePart
from neardup.output.kept_warc import WarcSink

MakeSink = Callable[[str], Sink]
Convert = Callable[[Any], Any]

_DAMAGE = (pa.ArrowException, OSError)


class KeptWriter:
    """Writes the kept documents of one input file: `write` for each batch in order, then `close`.

    The file appears under `path` when it is whole; until then it has a temporary name beside it. As a context
    manager it closes itself, or discards what it has if an exception passes.
    """

    def __init__(self, path: Path, make_sink: MakeSink, convert: Convert, *, only_if_kept: bool) -> None:
        self.path = path
        self._temporary = path.with_name(f".{path.name}.partial")
        self._make_sink, self._convert = make_sink, convert
        self._sink: Sink | None = None
        if not only_if_kept:
            self._open()

    def __enter__(self) -> KeptWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def write(self, payload: pa.RecordBatch | Lines | Pages, keep_mask: np.ndarray) -> None:
        """Write the rows of a batch's payload where `keep_mask` (bool, shape (num_rows,)) is true."""
        if not keep_mask.any() and not (isinstance(payload, Pages) and payload.notes):
            return
        if isinstance(payload, Pages):
            chosen: Any = payload.select(keep_mask)
        elif isinstance(payload, pa.RecordBatch):
            chosen = payload if keep_mask.all() else filter_rows(payload, arrow_of(keep_mask))
        else:
            chosen = select_lines(payload.data, payload.offsets, keep_mask)
        try:
            self._open().write(self._convert(chosen))
        except _DAMAGE as error:
            self.discard()
            raise _cannot_write(self.path, error) from error

    def close(self) -> None:
        """Finish the file, move it to its name; where a file is a document, one not kept leaves none."""
        if self._sink is None:
            return
        try:
            self._sink.close()
            os.replace(self._temporary, self.path)
        except _DAMAGE as error:
            self.discard()
            raise _cannot_write(self.path, error) from error
        self._sink = None

    def discard(self) -> None:
        """Leave nothing behind; for a run that stops."""
        if self._sink is not None:
            with suppress(Exception):
                self._sink.discard()
            with suppress(OSError):
                self._temporary.unlink()
            self._sink = None

    def _open(self) -> Sink:
        if self._sink is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._sink = self._make_sink(str(self._temporary))
            except _DAMAGE as error:
                raise _cannot_write(self.path, error) from error
        return self._sink


def _cannot_write(path: Path, error: Exception) -> OutputError:
    if isinstance(error, OutputError):
        return error
    return OutputError(f"Cannot write {path}: {error}. Check the free space and the access rights, then run again.")


def open_kept(
    part: SourcePart,
    directory: str | os.PathLike[str],
    out_format: str | None = None,
    text_column: str = "text",
) -> KeptWriter:
    """Return a writer of what is kept of `part`, below `directory`.

    Parameters
    ----------
    part : the input file.
    directory : local folder; the file stands there under the part's `relative_name`, or its `stem` with the
        suffix of another format.
    out_format : "parquet", "arrow", "jsonl", "csv", "tsv" or "text"; default: the part's own, with its
        compression, schema and layout; lines stay as they stood. A table in memory becomes Parquet.
    text_column : the column written to "text"; line breaks in it become blanks, so that a line is a document.

    Raises
    ------
    OutputError
        If the file exists already, the format is unknown, or it cannot hold the columns.
    """
    if out_format is not None and out_format not in OUT_FORMATS:
        raise OutputError(
            f"Unknown output format {out_format!r}. Known are {', '.join(OUT_FORMATS)}. "
            "Leave it unset to keep each file's own format."
        )
    target = out_format or (part.format if part.format in FILE_FORMATS else "parquet")
    path = _path(part, Path(directory), target)
    if path.exists():
        raise OutputError(f"Output exists already: {path}. Choose another folder, or remove it first.")
    only_if_kept = part.unit == "file" and target in (part.format, "text")
    try:
        if target == part.format:
            make_sink, convert = _same(part)
        else:
            make_sink, convert = _converted(part, target, text_column)
    except _DAMAGE as error:
        if isinstance(error, OutputError):
            raise
        # A file whose schema cannot be read yields no document either; reading it reports the damage.
        make_sink, convert, only_if_kept = partial(LinesSink, compression=None), unchanged, True
    return KeptWriter(path, make_sink, convert, only_if_kept=only_if_kept)


def _path(part: SourcePart, directory: Path, target: str) -> Path:
    if target == part.format:
        return directory / part.relative_name
    suffix = FORMATS[target].suffixes[0]
    if part.compression and FORMATS[target].compressible:
        suffix += next(ending for ending, codec in COMPRESSIONS.items() if codec == part.compression)
    return directory / (part.stem + suffix)


def _same(part: SourcePart) -> tuple[MakeSink, Convert]:
    """Return how a part is written in its own format."""
    if part.format == "parquet":
        return partial(ParquetSink, layout=parquet_layout(part)), unchanged
    if part.format == "arrow":
        return partial(ArrowSink, layout=arrow_layout(part)), unchanged
    if part.format in ("csv", "tsv"):
        return _table_sink(part, part.format, _schema_of(part)), unchanged
    if part.format == "warc":
        return partial(WarcSink, compression=part.compression), unchanged
    if part.format == "html":
        return partial(LinesSink, compression=part.compression), joined_pages
    return partial(LinesSink, compression=part.compression), bytes_of


def _converted(part: SourcePart, target: str, text_column: str) -> tuple[MakeSink, Convert]:
    """Return how a part is written in another format."""
    to_lines = partial(LinesSink, compression=part.compression if FORMATS[target].compressible else None)
    if part.format == "jsonl":
        if target == "text":
            return to_lines, partial(text_lines_of_json, text_column=text_column)
        return partial(JsonLinesToTable, make_sink=partial(_table_sink, part, target), name=part.name), bytes_of
    to_rows: Convert = plain_rows
    schema = plain_schema(_schema_of(part))
    if part.format == "text":
        to_rows = rows_of_file if part.unit == "file" else rows_of_lines
    elif is_pages(part.format):
        to_rows = rows_of_pages
        text_column = text_column if text_column in schema.names else "html"
    if target == "jsonl":
        return to_lines, partial(_chain, to_rows, json_lines_of)
    if target == "text":
        if text_column not in schema.names:
            raise OutputError(f"No column '{text_column}' in {part.name}: it has {', '.join(schema.names)}.")
        return to_lines, partial(_chain, to_rows, partial(text_lines_of, text_column=text_column))
    return _table_sink(part, target, schema), to_rows


def _chain(first: Convert, second: Convert, chosen: Any) -> Any:
    return second(first(chosen))


def _schema_of(part: SourcePart) -> pa.Schema:
    if part.format == "parquet":
        return parquet_layout(part).schema
    if part.format == "arrow":
        return arrow_layout(part).schema
    if part.format == "table" or is_pages(part.format):
        return pa.schema(list((part.column_types() or {}).items()))
    names = part.column_names()
    if names == []:
        raise pa.ArrowInvalid(f"{part.name} has no header")
    return pa.schema([(name, pa.string()) for name in names] if names else [("text", pa.large_string())])


def _table_sink(part: SourcePart, target: str, schema: pa.Schema) -> MakeSink:
    """Return how a table of a schema is written to Parquet, Arrow, CSV or TSV."""
    if target == "parquet":
        return partial(ParquetSink, schema=schema)
    if target == "arrow":
        return partial(ArrowSink, schema=schema)
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise OutputError(
            f"Columns {', '.join(nested)} of {part.name} are lists or structures, which {target} cannot hold. "
            "Use 'jsonl' or 'parquet'."
        )
    delimiter = _DELIMITERS[target]
    return partial(DelimitedSink, compression=part.compression, schema=schema, delimiter=delimiter)


_DELIMITERS = {"csv": ",", "tsv": "\t"}
