"""Turn decisions into tables: removed documents and duplicate pairs, with their ids and places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of, arrow_of_strings
from neardup.documents.reading import Task
from neardup.engines.local.reading import Corpus
from neardup.engines.local.scratch import Scratch
from neardup.schemas import pairs_schema, removed_schema

_ROWS = 65_536

Rows = slice | npt.NDArray[np.int64]


class Measured(NamedTuple):
    """What was measured of pairs of documents, row by row.

    similarity : float64, Jaccard similarity or containment; where only fingerprints were compared, the share of
    their bits that agree. distance : uint16, differing bits of the fingerprints, 0 where there are none. exact : bool,
    whether both are the same text. structure : float64, how alike the structure of two pages is, where it counts.
    """

    similarity: npt.NDArray[np.float64]
    distance: npt.NDArray[np.uint16]
    exact: npt.NDArray[np.bool_]
    structure: npt.NDArray[np.float64] | None = None

    def take(self, rows: Rows) -> Measured:
        """Return some of the rows."""
        structure = None if self.structure is None else self.structure[rows]
        return Measured(self.similarity[rows], self.distance[rows], self.exact[rows], structure)

    def columns(self, names: Sequence[str]) -> list[pa.Array]:
        """Return some of the measures as Arrow columns."""
        return [arrow_of(getattr(self, name)) for name in names]


class Removals(NamedTuple):
    """Removed documents, rising, each with the kept document that removed it. documents, kept : uint32."""

    documents: npt.NDArray[np.uint32]
    kept: npt.NDArray[np.uint32]
    measured: Measured

    def take(self, rows: Rows) -> Removals:
        """Return some of the rows."""
        return Removals(self.documents[rows], self.kept[rows], self.measured.take(rows))


class Pairs(NamedTuple):
    """Pairs of documents at or above the threshold, each once. left, right : uint32, either may be the earlier."""

    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    measured: Measured


class Places:
    """Where each document came from: its id, its part and its row there."""

    def __init__(self, tasks: list[Task], corpus: Corpus, scratch: Scratch) -> None:
        self.part_ends = np.array(corpus.part_ends, np.int64)
        self.num_against = corpus.num_against
        self.names = [task.part.name for task in tasks]
        self._rows = scratch.column("rows", np.int64)
        self._ids: pa.LargeStringArray | None = None
        if any(task.columns.id is not None for task in tasks):
            offsets, data = scratch.column("id_offsets", np.int64), scratch.column("ids", np.uint8)
            self._ids = pa.LargeStringArray.from_buffers(
                corpus.num_documents, pa.py_buffer(offsets), pa.py_buffer(data)
            )

    def ids(self, documents: npt.NDArray[np.uint32]) -> pa.Array:
        """Return the ids of documents as strings; a running number where there is no id column."""
        if self._ids is None:
            return arrow_of(documents.astype(np.int64)).cast(pa.string())
        return self._ids.take(arrow_of(documents)).cast(pa.string())

    def rows(self, documents: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Return the row of each document in its part."""
        rows: npt.NDArray[np.int64] = self._rows[documents]
        return rows

    def parts(self, documents: npt.NDArray[np.uint32]) -> pa.Array:
        """Return the name of the part of each document."""
        index = np.searchsorted(self.part_ends, documents, side="right")
        return arrow_of_strings(self.names).take(arrow_of(index)).cast(pa.string())

    def roles(self, documents: npt.NDArray[np.uint32]) -> pa.Array:
        """Return "source" or, for documents of the earlier collection, "against"."""
        index = arrow_of((documents < self.num_against).astype(np.int8))
        return arrow_of_strings(["source", "against"]).take(index).cast(pa.string())


class Named:
    """The ids of fingerprints that came without their documents."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids

    def ids(self, documents: npt.NDArray[np.uint32]) -> pa.Array:
        """Return the ids of documents as strings."""
        return self._ids.take(arrow_of(documents)).cast(pa.string())


def removed_batches(removals: Removals, places: Places, measures: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the table of removed documents, in the order of the documents; see schemas.removed_schema."""
    for start in range(0, len(removals.documents), _ROWS):
        part = removals.take(slice(start, start + _ROWS))
        columns = [
            places.ids(part.documents),
            places.parts(part.documents),
            arrow_of(places.rows(part.documents)),
            places.ids(part.kept),
            places.parts(part.kept),
            arrow_of(places.rows(part.kept)),
            places.roles(part.kept),
            *part.measured.columns(measures),
            arrow_of(part.kept.astype(np.int64)),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=removed_schema(measures))


def pair_batches(pairs: Pairs, places: Places | Named, measures: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the table of duplicate pairs, left before right, by left and then by right; see schemas.pairs_schema."""
    first, second = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    order = np.lexsort((second, first))
    for start in range(0, len(order), _ROWS):
        part = order[start : start + _ROWS]
        columns = [
            places.ids(first[part]), places.ids(second[part]), *pairs.measured.take(part).columns(measures),
        ]  # fmt: skip
        yield pa.RecordBatch.from_arrays(columns, schema=pairs_schema(measures))
