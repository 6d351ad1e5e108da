"""Writing what is kept of one input file, in its own format."""

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
from neardup.formats import FILE_FORMATS, FORMATS, Lines, Pages, filter_rows, select_lines
from neardup.output.kept_arrow import ArrowSink, arrow_layout
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


def open_kept(part: SourcePart, directory: str | os.PathLike[str]) -> KeptWriter:
    """Return a writer of the kept documents of `part`, below `directory`.

    The file has the part's `relative_name`, format, compression, schema and layout; lines and pages are copied byte for
    byte. A table in memory becomes Parquet.

    Raises
    ------
    OutputError
        If the file exists already.
    """
    is_file = part.format in FILE_FORMATS
    path = Path(directory) / (part.relative_name if is_file else part.stem + FORMATS["parquet"].suffixes[0])
    if path.exists():
        raise OutputError(f"Output exists already: {path}. Choose another folder, or remove it first.")
    only_if_kept = part.unit == "file"
    try:
        make_sink, convert = _sink_of(part)
    except _DAMAGE:
        # A file whose schema cannot be read yields no document either; reading it reports the damage.
        make_sink, convert, only_if_kept = partial(LinesSink, compression=None), _unchanged, True
    return KeptWriter(path, make_sink, convert, only_if_kept=only_if_kept)


def _sink_of(part: SourcePart) -> tuple[MakeSink, Convert]:
    if part.format == "parquet":
        return partial(ParquetSink, layout=parquet_layout(part)), _unchanged
    if part.format == "table":
        return partial(ParquetSink, schema=pa.schema(list((part.column_types() or {}).items()))), _unchanged
    if part.format == "arrow":
        return partial(ArrowSink, layout=arrow_layout(part)), _unchanged
    if part.format in _DELIMITERS:
        names = part.column_names()
        if not names:
            raise pa.ArrowInvalid(f"{part.name} has no header")
        schema = pa.schema([(name, pa.string()) for name in names])
        delimiter = _DELIMITERS[part.format]
        return partial(DelimitedSink, compression=part.compression, schema=schema, delimiter=delimiter), _unchanged
    if part.format == "warc":
        return partial(WarcSink, compression=part.compression), _unchanged
    if part.format == "html":
        return partial(LinesSink, compression=part.compression), _joined_pages
    return partial(LinesSink, compression=part.compression), _bytes_of


def _unchanged(chosen: Any) -> Any:
    return chosen


def _bytes_of(chosen: tuple[pa.Buffer, np.ndarray]) -> pa.Buffer:
    return chosen[0]


def _joined_pages(pages: Pages) -> bytes:
    return b"".join(pages.records)


_DELIMITERS = {"csv": ",", "tsv": "\t"}
