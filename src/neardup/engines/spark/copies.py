"""Find the copies of documents in blocks, where the order of the files is the order of priority."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schemas
from neardup.arrays import arrow_of, begins_run
from neardup.engines.spark.blocks import Integers
from neardup.engines.spark.source import NEW
from neardup.features.binary import rows_of
from neardup.methods.base import Method
from neardup.methods.stages import Batches, batch_of

LIGHT, PLACED = (table.insert(0, pa.field("document", pa.int64())) for table in (schemas.DESCRIBED, schemas.PLACED))


def list_contents(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the contents of documents that have features, as schemas.CONTENTS."""
    for rows in map(_featured, batches):
        yield batch_of(schemas.CONTENTS, rows["content"], _positions(rows))


def find_copies(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the documents that share a content with others, as schemas.COPIES. batches : of whole contents."""
    rows = pa.Table.from_batches(batches, schemas.CONTENTS).combine_chunks()
    words, position = rows_of(rows["content"].combine_chunks()), rows["position"].to_numpy()
    order = np.lexsort((position, *words.T))
    words, position = words[order], position[order]
    starts = np.flatnonzero(begins_run(*words.T)) if len(words) else np.empty(0, np.int64)
    sizes = np.diff(np.append(starts, len(words)))
    copied = np.repeat(sizes > 1, sizes)
    ends = (np.repeat(position[at], sizes)[copied] for at in (starts, starts + sizes - 1))
    yield batch_of(schemas.COPIES, position[copied], *ends)


def place_documents(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return documents that have features, as PLACED. batches : documents of files, LIGHT, and their schemas.COPIES."""
    tables = list(batches)
    copies = pa.Table.from_batches((table for table in tables if table.schema == schemas.COPIES), schemas.COPIES)
    copied, first, last = (column.to_numpy() for column in copies.columns)
    for rows in (_featured(table) for table in tables if table.schema != schemas.COPIES):
        position = _positions(rows)
        firsts, lasts = position.copy(), position.copy()
        if len(position):
            at = np.minimum(np.searchsorted(position, copied), len(position) - 1)
            here = position[at] == copied
            firsts[at[here]], lasts[at[here]] = first[here], last[here]
        columns = [*rows.columns, *map(arrow_of, (position, firsts, lasts))]
        yield pa.RecordBatch.from_arrays(columns, schema=PLACED)


def _featured(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.filter(pc.greater(rows["size"], 0))


def _positions(rows: pa.RecordBatch) -> Integers:
    """Return the positions of documents: their numbers, those of the earlier corpus first."""
    positions: Integers = rows["document"].to_numpy() + NEW * ~rows["against"].to_numpy(zero_copy_only=False)
    return positions
