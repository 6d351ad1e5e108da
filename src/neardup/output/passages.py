"""The table of the passages that were cut, and those that the report shows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of, begins_run
from neardup.decide.passages import Passages
from neardup.output.job import Table
from neardup.report.items import Example, MarkedPair
from neardup.runs.locations import DocumentLocations
from neardup.schemas import passages_schema
from neardup.verify.alignment import Passage

if TYPE_CHECKING:
    from neardup.kernels.passages import Pieces

_ROWS = 65_536
_MAX_SHOWN, _AROUND, _LONGEST = 50, 200, 2000  # passages; bytes before and after, and of a passage


def passages_table(found: Passages, locations: DocumentLocations) -> Table:
    """Return passages.parquet; see schemas.passages_schema."""
    return Table("passages", passages_schema(), partial(_batches, found, locations))


def _batches(found: Passages, locations: DocumentLocations) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(found.documents), _ROWS):
        these = slice(start, start + _ROWS)
        columns = [
            arrow_of(column[these])
            for column in (found.first, found.last, found.starts, found.ends)
        ]
        kept = found.kept[these]
        is_kept = arrow_of(found.is_kept[these])
        sources = [*locations.columns(kept), locations.roles(kept)]
        sources += [arrow_of(column[these]) for column in (found.kept_first, found.kept_starts)]
        nothing = pa.scalar(None)
        columns = [
            *locations.columns(found.documents[these]),
            *columns,
            *(pa.compute.if_else(is_kept, column, nothing.cast(column.type)) for column in sources),
            arrow_of(found.occurrences[these]),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=passages_schema())
        locations.release()


def examples_of(
    found: Passages, pieces: Pieces, locations: DocumentLocations
) -> list[tuple[Example, int]]:
    """Return the passages to show, with their lengths: one of each kept place, those of most text
    in all first.
    """
    rows = np.flatnonzero(~found.is_bridge)
    weight = (found.occurrences * (found.last - found.first))[rows]
    copy = np.where(found.is_kept, found.kept, -found.occurrences)[rows]
    copy_starts = np.where(found.is_kept, found.kept_starts, found.last - found.first)[rows]
    first = np.lexsort((copy_starts, copy))
    first = first[begins_run(copy[first], copy_starts[first])]
    chosen = rows[first[np.argsort(-weight[first], kind="stable")[:_MAX_SHOWN]]]
    places = locations.places(found.documents[chosen]), locations.places(found.kept[chosen])
    examples = []
    for row, removed, kept in zip(chosen.tolist(), *places, strict=True):
        piece, start, stop, kept_piece, kept_start = found.places[row].tolist()
        texts = [
            _around(pieces, owner, at, at + stop - start)
            for owner, at in ((piece, start), (kept_piece, kept_start))
        ]
        is_long = stop - start > _LONGEST
        if not found.is_kept[row]:
            kept, texts[1] = ("", "", 0), ("", Passage(0, 0, shared=True))
        pair = MarkedPair(texts[0][0], texts[1][0], [texts[0][1]], [texts[1][1]], truncated=is_long)
        occurrences = int(found.occurrences[row])
        example = Example(removed, kept, pair, 1.0, exact=False, family=occurrences)
        examples.append((example, int(found.last[row] - found.first[row])))
    return examples


def _around(pieces: Pieces, piece: int, start: int, stop: int) -> tuple[str, Passage]:
    """Return the text around a passage, and the passage within it."""
    begin, end = int(pieces.starts[piece]), int(pieces.starts[piece + 1])
    parts = (
        pieces.text[max(begin, start - _AROUND) : start],
        pieces.text[
            start : min(stop, start + _LONGEST, end)
        ],  # a unit of equal words may be shorter
        pieces.text[stop : min(end, stop + _AROUND)],
    )
    before, passage, after = (part.tobytes().decode(errors="ignore") for part in parts)
    if stop - start > _LONGEST:
        passage += " …"
    return before + passage + after, Passage(len(before), len(before) + len(passage), shared=False)
