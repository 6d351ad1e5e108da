"""The batch of documents that every reader yields.

A *part* is one input: a file or a table in memory. Reading a part twice yields the same documents in the same
order; the number of rows in a batch is the reader's choice and never changes an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of
from neardup.formats import Pages, filter_rows, select_lines


class Columns(NamedTuple):
    """The columns to read: `text` always; `id` and `rank` (the column of `keep="max:COLUMN"`) or None."""

    text: str
    id: str | None = None
    rank: str | None = None


class Rejected(NamedTuple):
    """A document that could not be read: where it stood, and why.

    rest_of_file : whether all that follows in the file is lost with it, or the whole file.
    """

    file: str
    row: int | None
    line: int | None
    byte: int | None
    reason: str
    rest_of_file: bool = False


class RawLines(NamedTuple):
    """The lines of a batch as they stood in the file, line ends included, so that they can be copied.

    data : bytes (or an Arrow buffer) of the lines, one after the other; offsets : int64 array of shape
    (num_rows + 1,); line i is data[offsets[i]:offsets[i + 1]].
    """

    data: bytes | pa.Buffer
    offsets: np.ndarray


@dataclass(frozen=True)
class DocumentBatch:
    """Consecutive documents of one part, in its order; rejected rows are left out of all fields alike.

    text : LargeStringArray, nulls allowed (an absent text is a document without features).
    rows : int64 array, the row of each document in its part, rising.
    ids : StringArray or LargeStringArray, or None when there is no id column.
    rank : float64 array (nan where null), or None unless asked for.
    payload : all columns, when asked for, to be written again: a RecordBatch, RawLines for a line format, Pages for
    web pages.
    """

    text: pa.LargeStringArray
    rows: np.ndarray
    ids: pa.Array | None = None
    rank: np.ndarray | None = None
    payload: pa.RecordBatch | RawLines | Pages | None = None

    def filter(self, mask: np.ndarray) -> DocumentBatch:
        """Return the documents where `mask`, bool, is true."""
        chosen, payload = arrow_of(mask), self.payload
        if isinstance(payload, RawLines):
            payload = RawLines(*select_lines(payload.data, payload.offsets, mask))
        elif isinstance(payload, Pages):
            payload = payload.select(mask)
        elif payload is not None:
            payload = filter_rows(payload, chosen)
        return DocumentBatch(
            self.text.filter(chosen),
            self.rows[mask],
            None if self.ids is None else self.ids.filter(chosen),
            None if self.rank is None else self.rank[mask],
            payload,
        )


class Part(Protocol):
    """One input: a file or a table in memory."""

    @property
    def name(self) -> str:
        """The part as the user named it; stands in `source_file`."""
        ...

    @property
    def format(self) -> str:
        """One of the keys of `formats.FORMATS`."""
        ...

    @property
    def unit(self) -> str:
        """What a document is: "row", "line" or "file"."""
        ...

    def identity(self) -> tuple[str, int, float]:
        """Name, size in bytes and time of last change: equal as long as the part has not changed."""
        ...

    def column_names(self) -> list[str] | None:
        """The columns that can be chosen; None for plain text, [] when the part is empty or damaged."""
        ...

    def column_types(self) -> dict[str, pa.DataType] | None:
        """The same columns with their types, for `choose_columns`."""
        ...

    def num_rows(self) -> int | None:
        """How many rows it has, where that is known without reading it."""
        ...

    def read(
        self, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Yield the part's documents in order; call `reject` once for each row left out."""
        ...
