"""The table of the passages that were cut, and the examples of the report."""

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
from neardup.runs.locations import DocumentLocations
from neardup.schemas import passages_schema
from neardup.verify.alignment import Passage

if TYPE_CHECKING:
    from neardup.kernels.passages import Pieces

_ROWS = 65_536
_MAX_SHOWN = 50
_MAX_BYTES = 2000  # of a passage
_BYTES_AROUND = 200  # before and after a passage


def passages_table(found: Passages, locations: DocumentLocations) -> Table:
    """Return passages.parquet; see schemas.passages_schema."""
    return Table("passages", passages_schema(), partial(_batches, found, locations))


def _batches(found: Passages, locations: DocumentLocations) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(found.documents), _ROWS):
        rows = slice(start, start + _ROWS)
        kept = found.kept[rows]
        kept_at = [
            *locations.columns(kept),
            locations.roles(kept),
            arrow_of(found.kept_first[rows]),
            arrow_of(found.kept_starts[rows]),
        ]
        is_kept = arrow_of(found.is_kept[rows])
        columns = [
            *locations.columns(found.documents[rows]),
            arrow_of(found.first[rows]),
            arrow_of(found.last[rows]),
            arrow_of(found.starts[rows]),
            arrow_of(found.ends[rows]),
            *(pc.if_else(is_kept, column, pa.scalar(None, column.type)) for column in kept_at),
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
    for row, removed_at, kept_at in zip(chosen.tolist(), removed, kept, strict=True):
        is_kept = bool(found.is_kept[row])
        example = Example(
            removed_at,
            kept_at if is_kept else ("", "", 0),
            _mark(found.in_pieces, row, pieces, is_kept=is_kept),
            1.0,
            exact=False,
            family=int(found.occurrences[row]),
        )
        examples.append((example, int(found.last[row] - found.first[row])))
    return examples


def _most_repeated(found: Passages) -> Ints:
    """Return up to _MAX_SHOWN passages, the first of each kept text."""
    rows = np.flatnonzero(~found.is_bridge)
    length = (found.last - found.first)[rows]
    occurrences = found.occurrences[rows]
    is_kept = found.is_kept[rows]
    # Without a kept text, passages of one length that are found equally often count as one.
    copy = np.where(is_kept, found.kept[rows], -occurrences)
    copy_start = np.where(is_kept, found.kept_starts[rows], length)
    order = np.lexsort((copy_start, copy))
    first = order[begins_run(copy[order], copy_start[order])]
    by_text = np.argsort(-(occurrences * length)[first], kind="stable")
    return rows[first[by_text[:_MAX_SHOWN]]]


def _mark(places: InPieces, row: int, pieces: Pieces, *, is_kept: bool) -> MarkedPair:
    """Return the text around a passage and around its kept copy, with both marked."""
    start = int(places.starts[row])
    size = int(places.stops[row]) - start
    text, passage = _around(pieces, int(places.pieces[row]), start, size)
    is_long = size > _MAX_BYTES
    if not is_kept:
        nothing = Passage(0, 0, shared=True)
        return MarkedPair(text, "", [passage], [nothing], truncated=is_long)
    kept_piece = int(places.kept_pieces[row])
    kept_text, kept_passage = _around(pieces, kept_piece, int(places.kept_starts[row]), size)
    return MarkedPair(text, kept_text, [passage], [kept_passage], truncated=is_long)


def _around(pieces: Pieces, piece: int, start: int, size: int) -> tuple[str, Passage]:
    """Return the text around a passage of a piece, and the passage within it."""
    stop = start + size
    begin, end = pieces.starts[piece : piece + 2].tolist()
    parts = (
        pieces.text[max(begin, start - _BYTES_AROUND) : start],
        # A unit of equal words may be shorter.
        pieces.text[start : min(stop, start + _MAX_BYTES, end)],
        pieces.text[stop : min(end, stop + _BYTES_AROUND)],
    )
    before, passage, after = (part.tobytes().decode(errors="ignore") for part in parts)
    if size > _MAX_BYTES:
        passage += " …"
    return before + passage + after, Passage(len(before), len(before) + len(passage), shared=False)
