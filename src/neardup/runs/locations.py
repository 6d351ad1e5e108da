"""The id of each document of a run, its input, and its row there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from neardup.arrays import Array, Ints, Positions, arrow_of, arrow_of_strings
from neardup.documents.batch import Corpus


def _release_nothing() -> None:
    """Do nothing: no memory is mapped. A function of its own, since results are pickled."""


class DocumentLocations:
    """The id of each document, its part of the input, and its row there.

    names : of the parts. rows : int64 by document, its row in its part. ids : large_string by
    document, or None if documents are numbered from 0. release : frees mapped memory between two
    batches of a table. known : int64, rising, the documents that `rows` and `ids` are of; None if
    they are of all documents.
    """

    def __init__(
        self,
        names: list[str],
        corpus: Corpus,
        rows: Ints,
        ids: pa.Array | None,
        release: Callable[[], None],
        known: Ints | None = None,
    ) -> None:
        self.names, self.part_ends, self.num_against = names, corpus.part_ends, corpus.num_against
        self._rows, self._ids, self.release, self._known = rows, ids, release, known

    def ids(self, documents: Positions) -> pa.Array:
        """Return the ids of documents as strings, or their numbers if there is no id column."""
        if self._ids is None:
            return arrow_of(documents.astype(np.int64)).cast(pa.string())
        return self._ids.take(arrow_of(self._at(documents))).cast(pa.string())

    def rows(self, documents: Positions) -> Ints:
        """Return the row of each document in its part."""
        return self._rows[self._at(documents)]

    def _at(self, documents: Array) -> Array:
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

    def places(self, documents: Positions) -> Iterator[tuple[str, str, int]]:
        """Return the id of each document, the name of its part, and its row there."""
        return zip(*(column.to_pylist() for column in self.columns(documents)), strict=True)

    def in_memory(self) -> DocumentLocations:
        """Return a copy that needs no mapped file."""
        copied = copy.copy(self)
        copied._rows, copied.release = self._rows.copy(), _release_nothing
        copied._ids = (
            None if self._ids is None else self._ids.take(arrow_of(np.arange(len(self._ids))))
        )
        return copied

    def roles(self, documents: Positions) -> pa.Array:
        """Return "source" or, for documents of the earlier collection, "against"."""
        index = arrow_of((documents < self.num_against).astype(np.int8))
        return arrow_of_strings(["source", "against"]).take(index).cast(pa.string())


class LocationsAfter(DocumentLocations):
    """The locations of the documents of a run behind those of others, which are few.

    names, corpus : of all documents. rows, ids : of the others, by document. rest : the documents
    of the run.
    """

    def __init__(
        self, names: list[str], corpus: Corpus, rows: Ints, ids: pa.Array, rest: DocumentLocations
    ) -> None:
        super().__init__(names, corpus, rows, ids, rest.release)
        self._rest = rest

    def ids(self, documents: Positions) -> pa.Array:
        """Return the ids of documents as strings."""
        is_other = documents < self.num_against
        others = super().ids(documents[is_other])
        rest = self._rest.ids(documents[~is_other] - np.uint32(self.num_against))
        order = np.empty(len(documents), np.int64)
        order[np.concatenate([np.flatnonzero(is_other), np.flatnonzero(~is_other)])] = np.arange(
            len(documents)
        )
        return pa.concat_arrays([others, rest]).take(arrow_of(order))

    def rows(self, documents: Positions) -> Ints:
        """Return the row of each document in its part."""
        is_other, rows = documents < self.num_against, np.empty(len(documents), np.int64)
        rows[is_other] = super().rows(documents[is_other])
        rows[~is_other] = self._rest.rows(documents[~is_other] - np.uint32(self.num_against))
        return rows
