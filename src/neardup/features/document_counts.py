"""Count in one pass over a corpus, in bounded memory, how many documents hold each feature."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.features.idf import IdfTable, describe_features
from neardup.features.weights import DistinctFeatures
from neardup.settings.shingling import Shingling

MAX_FEATURES = 10_000_000
_FIRST_SLOTS = 1 << 16


class _Table(NamedTuple):
    """Open addressing: hashes uint64, counts uint32 (0: free), misses uint32, all of shape (a power of two,)."""

    hashes: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.uint32]
    misses: npt.NDArray[np.uint32]


class DocumentCounts:
    """Document counts of features while documents go by.

    Parameters
    ----------
    max_features : features to remember at most; 10 million take 256 MB, and as much again while the rarest are dropped.

    Notes
    -----
    Lossy counting (Manku and Motwani, VLDB 2002) with its bound on space for a given: when a document leaves more
    features than `max_features`, those that occurred least are dropped, and `max_undercount` says by how much a
    count can be too low since. A feature that was dropped counts 0, which is at most as wrong. The result depends on
    the documents and their order, not on how they are batched; and not on their order if nothing was dropped.
    """

    def __init__(self, max_features: int = MAX_FEATURES) -> None:
        self.max_features = max_features
        self.num_documents = self.max_undercount = self._size = 0
        self._table = _empty_table(_FIRST_SLOTS)

    def add(self, features: DistinctFeatures) -> None:
        """Add the distinct features of the next documents, as of `distinct_features`."""
        offsets = features.offsets
        document = 0
        while document < len(offsets) - 1:
            document, self._size = kernels.document_counts.add_documents(
                features.hashes, offsets, document, self.max_features, self.max_undercount, self._table, self._size
            )
            if self._size > self.max_features:
                self._drop_the_rarest()
            elif document < len(offsets) - 1:
                self._grow(int(offsets[document + 1] - offsets[document]))
        self.num_documents += len(offsets) - 1

    def _grow(self, num_more: int) -> None:
        slots = len(self._table.hashes)
        while 3 * (self._size + num_more) > 2 * slots:
            slots *= 2
        self._rebuild(slots)

    def _drop_the_rarest(self) -> None:
        """Drop the rarest until a quarter of the room is free again, so that the next time is not soon."""
        while self._size > self.max_features - self.max_features // 4:
            self.max_undercount += 1
            self._rebuild(len(self._table.hashes))

    def _rebuild(self, num_slots: int) -> None:
        target = _empty_table(num_slots)
        self._size = kernels.document_counts.move_entries(self._table, self.max_undercount, target)
        self._table = target

    def table(self, shingling: Shingling) -> IdfTable:
        """Return the counts as a table; shingling : the settings that the documents were described with."""
        used = np.flatnonzero(self._table.counts)
        hashes = self._table.hashes[used]
        order = np.argsort(hashes)
        scheme: dict[str, Any] = describe_features(shingling)
        return IdfTable(self.num_documents, hashes[order], self._table.counts[used][order], scheme, self.max_undercount)


def _empty_table(num_slots: int) -> _Table:
    return _Table(np.empty(num_slots, np.uint64), np.zeros(num_slots, np.uint32), np.zeros(num_slots, np.uint32))
