"""The batch of documents that every reader yields.

A *part* is one input: a file or a table in memory. Reading a part twice yields the same documents in the same
order; the number of rows in a batch is the reader's choice and never changes an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of, offsets_from_lengths
from neardup.documents.payload import Payload, RawLines, select_payload

BLOCK_BYTES = 4 << 20
"""Bytes of text in a batch: large enough for Arrow to be at full speed, small enough for the cache."""


class Columns(NamedTuple):
    """The columns to read: `text` always, followed by those of `more_text` in the text of a document; `id` or None.

    ranks : the columns of `keep="max:COLUMN"`. values : columns whose values, as strings, group documents.
    vector_length : the numbers in a document that is a vector, 0 for any number; None if documents are texts.
    """

    text: str
    id: str | None = None
    ranks: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    more_text: tuple[str, ...] = ()
    vector_length: int | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of the text."""
        return self.text, *self.more_text

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        identifier = () if self.id is None else (self.id,)
        return list(dict.fromkeys((*self.texts, *identifier, *self.ranks, *self.values)))


class Rejected(NamedTuple):
    """A document that could not be read: its position, and the reason.

    rest_of_file : whether the rest of the file, or all of it, is lost too.
    """

    file: str
    row: int | None
    line: int | None
    byte: int | None
    reason: str
    rest_of_file: bool = False


@dataclass(frozen=True)
class DocumentBatch:
    """Consecutive documents of one part, in its order; rejected rows are left out of all fields.

    text : LargeStringArray, nulls allowed (an absent text is a document without features); of vectors,
        LargeBinaryArray: float32 little-endian, no bytes where a vector is absent.
    rows : int64 array, the row of each document in its part, rising.
    ids : StringArray or LargeStringArray, or None when there is no id column.
    ranks : float64 arrays (nan where null), one for each rank column.
    payload : if requested, the documents as they are in the file, to be copied.
    values : StringArrays or LargeStringArrays, one for each column of values; null where there is no value.
    """

    text: pa.LargeStringArray
    rows: np.ndarray
    ids: pa.Array | None = None
    ranks: tuple[np.ndarray, ...] = ()
    payload: Payload | None = None
    values: tuple[pa.Array, ...] = ()

    def filter(self, mask: np.ndarray) -> DocumentBatch:
        """Return the documents where `mask`, bool, is true."""
        chosen = arrow_of(mask)
        return DocumentBatch(
            self.text.filter(chosen),
            self.rows[mask],
            None if self.ids is None else self.ids.filter(chosen),
            tuple(rank[mask] for rank in self.ranks),
            None if self.payload is None else select_payload(self.payload, mask),
            tuple(values.filter(chosen) for values in self.values),
        )

    def slice(self, start: int, stop: int) -> DocumentBatch:
        """Return the documents in [start, stop), without their payload."""
        return DocumentBatch(
            self.text[start:stop],
            self.rows[start:stop],
            None if self.ids is None else self.ids[start:stop],
            tuple(rank[start:stop] for rank in self.ranks),
            values=tuple(values[start:stop] for values in self.values),
        )


def concatenate(batches: Sequence[DocumentBatch]) -> DocumentBatch:
    """Return batches as one, without their payloads unless there is but one. Requires: their columns are the same."""
    first, *others = batches
    if not others:
        return first
    return DocumentBatch(
        pa.concat_arrays([batch.text for batch in batches]),
        np.concatenate([batch.rows for batch in batches]),
        None if first.ids is None else pa.concat_arrays([batch.ids for batch in batches]),
        tuple(np.concatenate(ranks) for ranks in zip(*(batch.ranks for batch in batches), strict=True)),
        values=tuple(pa.concat_arrays(values) for values in zip(*(batch.values for batch in batches), strict=True)),
    )


def replace_lines(batch: DocumentBatch, rows: np.ndarray, change: Callable[[int, bytes], bytes]) -> RawLines:
    """Return the payload of a batch of lines with others, line ends included, in the place of some.

    rows : the numbers of these, rising. change : returns the other line, from the number and the line.
    """
    lines = batch.payload
    assert isinstance(lines, RawLines)
    pieces: list[bytes | memoryview] = []
    data, sizes, end = memoryview(lines.data), np.diff(lines.offsets), int(lines.offsets[0])
    for row in rows.tolist():
        begin, stop = lines.offsets[row : row + 2].tolist()
        other = change(row, bytes(data[begin:stop]))
        pieces += [data[end:begin], other]
        sizes[row], end = len(other), stop
    pieces.append(data[end : int(lines.offsets[-1])])
    return RawLines(b"".join(pieces), offsets_from_lengths(sizes))
