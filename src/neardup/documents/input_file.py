"""One input file, read by the reader of its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from neardup.documents import arrow_ipc, delimited, html_files, jsonl, parquet, plain, warc
from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.documents.pages import COLUMN_TYPES
from neardup.documents.sources import Source
from neardup.formats import is_pages, split_name

_DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class InputFile(Source):
    """A file that holds documents; a `Part`.

    format : a key of `formats.FORMATS`.
    unit : what a document is: "row", or for text files "line" or "file", for HTML files "file".
    relative_name : unique among the inputs, below their common root; never absolute, never with `..`.
    stem : `relative_name` without suffixes if that is unique too, else with them.
    version : replaces the time of last change where there is none to go by (standard input).
    """

    format: str = "text"
    unit: str = "row"
    relative_name: str = ""
    stem: str = ""
    version: float | None = None

    def identity(self) -> tuple[str, int, float]:
        """Return name, size in bytes and time of last change; asks the storage anew each time."""
        size, changed = self.stat()
        return self.name, size, changed if self.version is None else self.version

    def column_types(self) -> dict[str, pa.DataType] | None:
        """Return name and type of each column, None for plain text, {} when empty or damaged."""
        if self.format == "parquet":
            return parquet.column_types(self)
        if self.format == "arrow":
            return arrow_ipc.column_types(self)
        if self.format == "jsonl":
            return jsonl.column_types(self)
        if self.format in _DELIMITERS:
            return delimited.column_types(self, _DELIMITERS[self.format])
        return dict(COLUMN_TYPES[self.format]) if is_pages(self.format) else None

    def column_names(self) -> list[str] | None:
        """Return the columns that can be chosen, None for plain text, [] when empty or damaged."""
        types = self.column_types()
        return None if types is None else list(types)

    def num_rows(self) -> int | None:
        """Return how many rows a Parquet file says it has; None for other formats."""
        return parquet.num_rows(self) if self.format == "parquet" else None

    def read(
        self, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Yield the documents in order; call `reject` once for each row left out.

        Raises
        ------
        InputError
            If the file is no longer there. Damage inside it is no error: it is rejected.
        """
        if self.format == "parquet":
            return parquet.read(self, columns, reject, with_payload=with_payload)
        if self.format == "arrow":
            return arrow_ipc.read(self, columns, reject, with_payload=with_payload)
        if self.format == "jsonl":
            return jsonl.read(self, columns, reject, with_payload=with_payload)
        if self.format in _DELIMITERS:
            delimiter = _DELIMITERS[self.format]
            return delimited.read(self, columns, reject, delimiter=delimiter, with_payload=with_payload)
        if self.format == "html":
            return html_files.read(self, columns, reject, with_payload=with_payload)
        if self.format == "warc":
            return warc.read(self, columns, reject, with_payload=with_payload)
        if self.unit == "file":
            return plain.read_whole(self, reject, with_id=columns.id is not None, with_payload=with_payload)
        return plain.read_lines(self, reject, with_payload=with_payload)


def format_of(name: str) -> tuple[str | None, str | None]:
    """Return format and compression that a file's name stands for, less the query of a web address."""
    _, format_name, compression = split_name(name.split("?", 1)[0] if name.startswith("http") else name)
    return format_name, compression
