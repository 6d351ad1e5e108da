"""The id of each document of a run, its input, and its row there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Array, Ints, Positions, arrow_of, arrow_of_strings
from neardup.documents.batch import Corpus


def release_nothing() -> None:
    """Release nothing, because no memory is mapped; a lambda could not be pickled with a result."""


class Place(NamedTuple):
    """The id, the file and the row of a document."""

    id: str
    file: str
    row: int


NO_PLACE = Place(id="", file="", row=0)
"""The place of a document or a copy that there is none of."""


class DocumentLocations:
    """The id of each document, its part of the input, and its row there.

    names : the names of the parts. rows : int64, the row of each document in its part. ids :
    large_string, or None if documents are numbered from 0. release : frees mapped memory between
    two batches of a table. known : int64, rising, the documents that `rows` and `ids` contain; None
    if they contain all documents.
    """

    def __init__(
        self,
        names: list[str],
        corpus: Corpus,
        rows: Ints,
        ids: pa.Array | None,
        release: Callable[[], None],
        *,
        known: Ints | None = None,
    ) -> None:
        self.names = names
        self.part_ends = corpus.part_ends
        self.num_against = corpus.num_against
        self.release = release
        self._rows = rows
        self._ids = ids
        self._known = known

    def ids(self, documents: Positions) -> pa.Array:
        """Return the ids of documents as strings, or their numbers if there is no id column."""
        if self._ids is None:
            return arrow_of(documents.astype(np.int64)).cast(pa.string())
        return self._ids.take(arrow_of(self._index_of(documents))).cast(pa.string())

    def rows(self, documents: Positions) -> Ints:
        """Return the row of each document in its part."""
        return self._rows[self._index_of(documents)]

    def _index_of(self, documents: Array) -> Array:
        """Return the index of each document in `_rows` and `_ids`."""
        return documents if self._known is None else np.searchsorted(self._known, documents)

    def parts(self, documents: Positions) -> pa.Array:
        """Return the name of the part of each document."""
        index = np.searchsorted(self.part_ends, documents, side="right")
        return arrow_of_strings(self.names).take(arrow_of(index)).cast(pa.string())

    def columns(self, documents: Positions) -> list[pa.Array]:
        """Return the id of each document, the name of its part, and its row there, as columns of a
        table.
        """
        return [self.ids(documents), self.parts(documents), arrow_of(self.rows(documents))]

    def places(self, documents: Positions) -> Iterator[Place]:
        """Yield the place of each document."""
        columns = [column.to_pylist() for column in self.columns(documents)]
        return map(Place, *columns)

    def in_memory(self) -> DocumentLocations:
        """Return a copy that needs no mapped file."""
        copied = copy.copy(self)
        copied.release = release_nothing
        copied._rows = self._rows.copy()
        if self._ids is not None:
            # `take` copies the values out of the mapped file.
            copied._ids = self._ids.take(arrow_of(np.arange(len(self._ids))))
        return copied

    def roles(self, documents: Positions) -> pa.Array:
        """Return "source" or, for documents of the earlier collection, "against"."""
        index = arrow_of((documents < self.num_against).astype(np.int8))
        return arrow_of_strings(["source", "against"]).take(index).cast(pa.string())


class LocationsAfter(DocumentLocations):
    """The locations of the documents of a run that are numbered after earlier documents.

    names, corpus : the parts and the corpus of all documents. rows, ids : the rows and the ids of
    the earlier documents, the first `corpus.num_against`. run : the locations of the documents of
    the run, numbered from 0.
    """

    def __init__(
        self, names: list[str], corpus: Corpus, rows: Ints, ids: pa.Array, run: DocumentLocations
    ) -> None:
        super().__init__(names, corpus, rows, ids, run.release)
        self._run = run

    def ids(self, documents: Positions) -> pa.Array:
        """Return the ids of documents as strings."""
        is_earlier = documents < self.num_against
        earlier_ids = super().ids(documents[is_earlier])
        run_ids = self._run.ids(documents[~is_earlier] - np.uint32(self.num_against))
        # Row i of the joined ids belongs to documents[positions[i]]; the inverse permutation puts
        # them back into the order of `documents`.
        positions = np.concatenate([np.flatnonzero(is_earlier), np.flatnonzero(~is_earlier)])
        order = np.argsort(positions)
        return pa.concat_arrays([earlier_ids, run_ids]).take(arrow_of(order))

    def rows(self, documents: Positions) -> Ints:
        """Return the row of each document in its part."""
        is_earlier = documents < self.num_against
        rows = np.empty(len(documents), np.int64)
        rows[is_earlier] = super().rows(documents[is_earlier])
        rows[~is_earlier] = self._run.rows(documents[~is_earlier] - np.uint32(self.num_against))
        return rows
