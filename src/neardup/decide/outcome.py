"""The decisions of a run as edits, and its measurements, from which the tables and reports are made."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of, arrow_of_bytes, flatten_strings, offsets_from_lengths
from neardup.documents.batch import Corpus
from neardup.verify.measured import Measured, Rows
from neardup.verify.recall import Recall


class Cuts(NamedTuple):
    """Ranges to cut from the texts of documents, none of which overlap.

    documents : uint32 (num_cuts,), rising; a document may have several cuts. starts, ends : int64 (num_cuts,), in bytes
    of its UTF-8 text, starts < ends, rising within a document.
    """

    documents: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


class Edits(NamedTuple):
    """The edits of consecutive documents: ranges of a text are cut, or all of it, which removes the document.

    kept : bool (num_documents,), whether the document stays. cuts : of kept documents; None if there are none.
    """

    kept: npt.NDArray[np.bool_]
    cuts: Cuts | None = None

    def between(self, start: int, stop: int) -> Edits:
        """Return the edits of the documents in [start, stop), which are then numbered from 0."""
        kept = self.kept[start:stop]
        if self.cuts is None:
            return Edits(kept)
        documents, starts, ends = self.cuts
        chosen = slice(*np.searchsorted(documents, [start, stop]))
        cuts = Cuts(documents[chosen] - np.uint32(start), starts[chosen], ends[chosen])
        return Edits(kept, cuts if len(cuts.documents) else None)


def cut_texts(texts: pa.LargeStringArray, cuts: Cuts) -> tuple[npt.NDArray[np.uint32], pa.LargeStringArray]:
    """Return the rows of the texts that have cuts, rising, and the rest of each of these texts.

    Raises
    ------
    ValueError
        If a range is empty, overlaps another, exceeds its text, or divides a character.
    """
    rows, first = np.unique(cuts.documents, return_index=True)
    data, offsets = flatten_strings(texts.take(arrow_of(rows)))
    text = np.searchsorted(rows, cuts.documents)
    bounds = np.stack([cuts.starts, cuts.ends], axis=1) + offsets[text][:, None]
    _check(bounds, data, offsets, text, cuts)
    edges = np.concatenate([[0], bounds.ravel(), [len(data)]])
    is_left = np.tile([True, False], len(edges) // 2)[: len(edges) - 1]
    left = data[np.repeat(is_left, np.diff(edges))]
    sizes = np.diff(offsets) - np.add.reduceat(cuts.ends - cuts.starts, first)
    return rows, arrow_of_bytes(left, offsets_from_lengths(sizes)).view(pa.large_string())


def _check(
    bounds: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    text: npt.NDArray[np.int64],
    cuts: Cuts,
) -> None:
    """Refuse a cut that is no range of characters. bounds : (num_cuts, 2), in `data`; text : of each cut."""
    starts, ends = bounds.T
    previous = np.maximum(offsets[text], np.append(0, np.where(text[1:] == text[:-1], ends[:-1], 0)))
    wrong = (starts < previous) | (starts >= ends) | (ends > offsets[text + 1])
    inside = np.append(data, np.uint8(0))[np.minimum(bounds, len(data))] & 0xC0 == 0x80  # continues a character
    wrong |= inside.any(axis=1)
    if wrong.any():
        number = int(np.argmax(wrong))
        document, start, end = (int(column[number]) for column in cuts)
        size = int(np.diff(offsets)[text[number]])
        raise ValueError(
            f"Bytes {start} to {end} cannot be cut from document {document}, a text of {size} bytes: cuts must be "
            "ranges of whole characters that rise and do not overlap."
        )


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
