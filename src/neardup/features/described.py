"""The features of a batch of documents: what the stages after `describe` work on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import offsets_from_lengths, ranges


class Lists(NamedTuple):
    """A list of hashes for each document.

    hashes : uint64 (num_hashes,), repeats allowed. offsets : int64 (num_documents + 1,); list i is
    hashes[offsets[i] : offsets[i + 1]].
    """

    hashes: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the length of each list."""
        return np.diff(self.offsets)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Lists:
        """Return the lists of some documents."""
        starts = self.offsets[rows]
        sizes = self.offsets[rows + 1] - starts
        return Lists(self.hashes[ranges(starts, sizes)], offsets_from_lengths(sizes))


class Features(NamedTuple):
    """The features of a batch of documents.

    content : uint64 (num_documents, 2), equal where the features and their order are; undefined without features.
    sets : the hashes of the features of each document, in the order of the text, repeats included; none where a text
    has none, which is then in no pair. They may be in a workspace: see `Method.describe`.
    structure : the same of the structure of pages, where a method compares that too.
    weighed : what a method needs of the batch to summarise it, besides the sets; None where it needs nothing.
    """

    content: npt.NDArray[np.uint64]
    sets: Lists
    structure: Lists | None = None
    weighed: Any = None

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Features:
        """Return the features of some documents, without what only a summary needs."""
        structure = None if self.structure is None else self.structure.take(rows)
        return Features(self.content[rows], self.sets.take(rows), structure)


class Keys(NamedTuple):
    """The keys by which the documents of a batch are found.

    values : uint64 (num_documents, num_keys): a key for each band, or the words of a fingerprint; no column where
    documents are found by their sets. content, featured : of the features; bool, whether there are any.
    samples : the sets, where documents are found by samples of them.
    """

    values: npt.NDArray[np.uint64]
    content: npt.NDArray[np.uint64]
    featured: npt.NDArray[np.bool_]
    samples: Lists | None = None

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Keys:
        """Return the keys of some documents."""
        samples = None if self.samples is None else self.samples.take(rows)
        return Keys(self.values[rows], self.content[rows], self.featured[rows], samples)
