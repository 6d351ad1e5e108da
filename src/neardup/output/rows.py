"""List the kept rows without a copy of their texts: a mask over all rows, or the ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of
from neardup.decide.outcome import Outcome
from neardup.formats.reading import Task
from neardup.output.tables import DocumentLocations
from neardup.schemas import ids_schema, mask_schema

_ROWS = 1 << 20


def row_masks(
    tasks: list[Task], outcome: Outcome, locations: DocumentLocations
) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield for each input its name, and for each of its rows whether it is kept; a rejected row is not."""
    corpus, kept = outcome.corpus, outcome.edits.kept
    start = 0
    for task, end, rejected in zip(tasks, corpus.part_ends.tolist(), corpus.part_rejected.tolist(), strict=True):
        documents = np.arange(start, end, dtype=np.uint32)
        start = end
        if task.against:
            continue
        last_row = int(locations.rows(documents[-1:]).max(initial=-1))
        mask = np.zeros(max(len(documents) + rejected, last_row + 1), np.bool_)
        rows = slice(None) if len(mask) == len(documents) else locations.rows(documents)
        mask[rows] = kept[documents]
        yield task.part.name, mask


def mask_batches(tasks: list[Task], outcome: Outcome, locations: DocumentLocations) -> Iterator[pa.RecordBatch]:
    """Yield the table of all rows of the inputs; see schemas.mask_schema."""
    for name, mask in row_masks(tasks, outcome, locations):
        for start in range(0, len(mask), _ROWS):
            part = mask[start : start + _ROWS]
            rows = np.arange(start, start + len(part), dtype=np.int64)
            columns = [pa.repeat(pa.scalar(name), len(part)), arrow_of(rows), arrow_of(part)]
            yield pa.RecordBatch.from_arrays(columns, schema=mask_schema())
    locations.release()


def id_batches(outcome: Outcome, locations: DocumentLocations) -> Iterator[pa.RecordBatch]:
    """Yield the table of kept documents; see schemas.ids_schema."""
    first, kept = outcome.corpus.num_against, outcome.edits.kept
    for start in range(first, len(kept), _ROWS):
        documents = (start + np.flatnonzero(kept[start : start + _ROWS])).astype(np.uint32)
        columns = [locations.ids(documents), locations.parts(documents), arrow_of(locations.rows(documents))]
        yield pa.RecordBatch.from_arrays(columns, schema=ids_schema())
        locations.release()
