"""One input: a file, read and written by the handler of its format, or a table in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from neardup.documents.batch import Columns, DocumentBatch, Payload, Rejected
from neardup.documents.lines import STREAM_ERRORS
from neardup.documents.sinks import Sink
from neardup.documents.sources import Source, Stretch
from neardup.errors import OutputError
from neardup.formats.registry import FORMATS
from neardup.formats.tables import TablePart

_DAMAGE = (*STREAM_ERRORS, ValueError)  # also CannotOpen


@dataclass(frozen=True)
class InputFile(Source):
    """A file of documents.

    relative_name : unique among the inputs, below their common root; never absolute, never with `..`.
    version : replaces the time of last change if there is none (standard input).
    """

    relative_name: str = ""
    version: float | None = None

    @property
    def is_pages(self) -> bool:
        """Whether the documents are web pages."""
        return FORMATS[self.format].contents == "pages"

    def identity(self) -> tuple[str, int, float]:
        """Return name, size in bytes and time of last change; reads them from the storage each time."""
        size, changed = self.stat()
        return self.name, size, changed if self.version is None else self.version

    def column_types(self) -> dict[str, pa.DataType] | None:
        """Return name and type of each column, None for plain text, {} when empty or damaged, which `read` reports."""
        with suppress(*_DAMAGE):
            return FORMATS[self.format].handler.column_types(self)
        return {}

    def num_rows(self) -> int | None:
        """Return the number of rows if the metadata has it (Parquet), else None."""
        with suppress(*_DAMAGE):
            return FORMATS[self.format].handler.num_rows(self)
        return None

    def stretches(self) -> list[InputFile]:
        """Return the stretches in which the file can be read; itself if it is read whole."""
        found: list[Stretch] = []
        with suppress(*_DAMAGE):
            found = FORMATS[self.format].handler.stretches(self)
        return [replace(self, stretch=stretch) for stretch in found] if len(found) > 1 else [self]

    def read(
        self, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Yield the documents of the file, or of its stretch, in order; call `reject` once for each row left out.

        Raises
        ------
        InputError
            If the file is no longer there. Damage inside it is no error: it is rejected.
        """
        return FORMATS[self.format].handler.read(self, columns, reject, with_payload=with_payload)

    def replace_texts(self, batch: DocumentBatch, column: str, rows: np.ndarray, texts: pa.LargeStringArray) -> Payload:
        """Return the payload of a batch in which some documents have another text, and all else is as it was.

        Parameters
        ----------
        batch : read with its payload.
        column : of the text.
        rows : integers, rows of the batch, rising, that have another text than before; neither is null.
        texts : of all rows.

        Raises
        ------
        OutputError
            If the file is of web pages: their text is that of their HTML, which cannot be written back.
        """
        replace = FORMATS[self.format].handler.replace_texts
        if replace is None:
            raise OutputError(
                f"Parts of a text cannot be cut from {self.name}: {self.format} files are copied as they are. Write "
                "their documents to a table first (--write annotated), and read that."
            )
        return replace(batch, column, rows, texts)

    def make_sink(self) -> Callable[[str], Sink]:
        """Return how payloads are written to a local path in the format, compression and layout of this file."""
        return FORMATS[self.format].handler.make_sink(self)


Part: TypeAlias = InputFile | TablePart
"""One input. Both kinds have the same attributes and methods; reading one twice yields the same documents."""
