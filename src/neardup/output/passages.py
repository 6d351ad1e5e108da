"""Write the table of the passages that were cut, and choose the examples of the report."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Ints, arrow_of, begins_run
from neardup.decide.passages import InPieces, Passages
from neardup.output.job import Table
from neardup.report.items import Example, MarkedPair
from neardup.runs.locations import NO_PLACE, DocumentLocations
from neardup.schemas import passages_schema
from neardup.verify.alignment import Passage

if TYPE_CHECKING:
    from neardup.kernels.passages import Pieces

_BATCH_ROWS = 65_536
_MAX_SHOWN = 50  # passages in the report
_MAX_BYTES = 2000  # bytes of a passage that are shown
_BYTES_AROUND = 200  # bytes shown before and after a passage


def passages_table(found: Passages, locations: DocumentLocations) -> Table:
    """Return passages.parquet; see schemas.passages_schema."""
    return Table("passages", passages_schema(), partial(_batches, found, locations))


def _batches(found: Passages, locations: DocumentLocations) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the table, in the order of its columns."""
    for start in range(0, len(found.documents), _BATCH_ROWS):
        rows = slice(start, start + _BATCH_ROWS)
        kept = found.kept[rows]
        copy_columns = [
            *locations.columns(kept),
            locations.roles(kept),
            arrow_of(found.kept_first[rows]),
            arrow_of(found.kept_starts[rows]),
        ]
        # Without a copy that stays, the columns of the copy are null.
        is_kept = arrow_of(found.is_kept[rows])
        columns = [
            *locations.columns(found.documents[rows]),
            arrow_of(found.first[rows]),
            arrow_of(found.last[rows]),
            arrow_of(found.starts[rows]),
            arrow_of(found.ends[rows]),
            *(pc.if_else(is_kept, column, pa.scalar(None, column.type)) for column in copy_columns),
            arrow_of(found.occurrences[rows]),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=passages_schema())
        locations.release()


def examples_of(
    found: Passages, pieces: Pieces, locations: DocumentLocations
) -> list[tuple[Example, int]]:
    """Return the passages to show, with their lengths in characters: one of each kept text, the
    passages with most text in all their copies first.
    """
    chosen = _most_repeated(found)
    removed = locations.places(found.documents[chosen])
    kept = locations.places(found.kept[chosen])
    examples = []
    for row, removed_place, kept_place in zip(chosen.tolist(), removed, kept, strict=True):
        is_kept = bool(found.is_kept[row])
        example = Example(
            removed=removed_place,
            kept=kept_place if is_kept else NO_PLACE,
            pair=_mark(found.in_pieces, row, pieces, is_kept=is_kept),
            similarity=1.0,
            exact=False,
            family=int(found.occurrences[row]),
        )
        length = int(found.last[row] - found.first[row])
        examples.append((example, length))
    return examples


def _most_repeated(found: Passages) -> Ints:
    """Return up to _MAX_SHOWN passages, the first of each kept text."""
    rows = np.flatnonzero(~found.is_bridge)
    lengths = (found.last - found.first)[rows]
    occurrences = found.occurrences[rows]
    is_kept = found.is_kept[rows]
    # Passages with the same kept copy are one text: a document, and a byte in it. Without a copy,
    # passages of one length that are found equally often count as one text: a negative number, so
    # that it is no document, and the length.
    text_document = np.where(is_kept, found.kept[rows], -occurrences)
    text_start = np.where(is_kept, found.kept_starts[rows], lengths)
    order = np.lexsort((text_start, text_document))
    firsts = order[begins_run(text_document[order], text_start[order])]
    by_volume = np.argsort(-(occurrences * lengths)[firsts], kind="stable")
    return rows[firsts[by_volume[:_MAX_SHOWN]]]


def _mark(passages: InPieces, row: int, pieces: Pieces, *, is_kept: bool) -> MarkedPair:
    """Return the text around a passage and around its kept copy, with both marked."""
    start = int(passages.starts[row])
    size = int(passages.stops[row]) - start
    text, passage = _around(pieces, int(passages.pieces[row]), start, size)
    kept_text = ""
    kept_passage = Passage(0, 0, shared=True)
    if is_kept:
        kept_piece = int(passages.kept_pieces[row])
        kept_start = int(passages.kept_starts[row])
        kept_text, kept_passage = _around(pieces, kept_piece, kept_start, size)
    return MarkedPair(
        left=text,
        right=kept_text,
        left_passages=[passage],
        right_passages=[kept_passage],
        truncated=size > _MAX_BYTES,
    )


def _around(pieces: Pieces, piece: int, start: int, size: int) -> tuple[str, Passage]:
    """Return the text around a passage of a piece, and the passage within it."""
    stop = start + size
    begin, end = pieces.starts[piece : piece + 2].tolist()
    parts = (
        pieces.text[max(begin, start - _BYTES_AROUND) : start],
        # With units of equal words, the copy may have fewer bytes than the passage: it ends with
        # its piece at the latest.
        pieces.text[start : min(stop, start + _MAX_BYTES, end)],
        pieces.text[stop : min(end, stop + _BYTES_AROUND)],
    )
    # Limits in bytes may cut a character in two: its bytes are ignored.
    before, passage, after = (part.tobytes().decode(errors="ignore") for part in parts)
    if size > _MAX_BYTES:
        passage += " …"
    return before + passage + after, Passage(len(before), len(before) + len(passage), shared=False)
