"""The decisions and measurements of a run, from which the tables and reports are made."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.decide.edits import Edits
from neardup.documents.corpus import Corpus
from neardup.verify.measured import Measured, Rows
from neardup.verify.recall import Recall

_STRETCH = 65_536
SHORT = 32  # features under which a text is short: SimHash is then unreliable, see docs/accuracy.md


class Removals(NamedTuple):
    """Removed documents in input order, each with the kept document that removed it. documents, kept : uint32."""

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


class Counts(NamedTuple):
    """The decisions of a run as numbers, however many documents it had.

    removed, removed_exact : documents; those that are copies of a kept one. pairs, pairs_exact : the same of
    pairs measured at or above the threshold. near, repeats : the measures of the removed documents that are no exact
    copies, and int64, the number of documents with the measures of each row. cluster_sizes : pairs of a size, which
    includes the kept document, and the number of clusters of that size, rising. by_inputs : int64 (num_cells, 4), by
    the first two columns: the input of removed documents, that of the kept documents, how many, the bytes of their
    texts.
    """

    removed: int
    removed_exact: int
    pairs: int
    pairs_exact: int
    near: Measured
    repeats: npt.NDArray[np.int64]
    cluster_sizes: list[list[int]]
    by_inputs: npt.NDArray[np.int64]


def count_decisions(removals: Removals, pairs: Pairs, corpus: Corpus, lengths: npt.NDArray[np.int64]) -> Counts:
    """Count decisions that are in memory; lengths : int64 by document, the bytes of its text."""
    exact = removals.measured.exact
    near = removals.measured.take(~exact)
    members = np.unique(removals.kept, return_counts=True)[1]
    sizes, repeats = np.unique(members + 1, return_counts=True)
    return Counts(
        len(exact),
        int(np.count_nonzero(exact)),
        len(pairs.left),
        int(np.count_nonzero(pairs.measured.exact)),
        near,
        np.broadcast_to(np.int64(1), len(near.exact)),
        np.stack([sizes, repeats], axis=1).tolist(),
        _count_by_inputs(removals, corpus.part_ends, lengths),
    )


def _count_by_inputs(
    removals: Removals, part_ends: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return `Counts.by_inputs`, counted in stretches: the memory does not grow with the documents."""
    counts: Counter[int] = Counter()
    num_bytes: Counter[int] = Counter()
    for start in range(0, len(removals.documents), _STRETCH):
        removed, kept = (
            np.searchsorted(part_ends, side[start : start + _STRETCH], "right")
            for side in (removals.documents, removals.kept)
        )
        cells, of_document, documents = np.unique(
            removed * len(part_ends) + kept, return_inverse=True, return_counts=True
        )
        sums = np.bincount(of_document, lengths[removals.documents[start : start + _STRETCH]]).astype(np.int64)
        counts.update(dict(zip(cells.tolist(), documents.tolist(), strict=True)))
        num_bytes.update(dict(zip(cells.tolist(), sums.tolist(), strict=True)))
    rows = [(*divmod(cell, len(part_ends)), documents, num_bytes[cell]) for cell, documents in sorted(counts.items())]
    return np.array(rows, np.int64).reshape(-1, 4)


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The totals of a run, as reported.

    compared : pairs measured. num_bucket_overflows : documents with an earlier one in a bucket that does not list it.
    collisions : pairs of near fingerprints whose features are below the threshold. num_fingerprints, num_near_pairs :
    the distinct fingerprints, and the pairs of them within the distance; 0 without fingerprints. recall : the estimate;
    None if the search cannot miss a pair. audited : the recall measured on a sample. short : documents of fewer than
    SHORT features.
    """

    corpus: Corpus
    counts: Counts
    short: int
    compared: int = 0
    num_bucket_overflows: int = 0
    collisions: int = 0
    num_fingerprints: int = 0
    num_near_pairs: int = 0
    recall: Recall | None = None
    audited: Recall | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome(Totals):
    """The decisions and measurements of a run on this machine.

    removals : the removed documents. pairs : all pairs measured at or above the threshold.
    """

    removals: Removals
    pairs: Pairs

    @cached_property
    def edits(self) -> Edits:
        """The edits of all documents: those that are removed lose all of their text."""
        kept = np.ones(self.corpus.num_documents, np.bool_)
        kept[self.removals.documents] = False
        return Edits(kept)
