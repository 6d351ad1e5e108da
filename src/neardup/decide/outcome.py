"""The decisions of a run as edits, and its measurements, from which the tables and reports are
made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from neardup.arrays import (
    Array,
    Bytes,
    Ints,
    Mask,
    Positions,
    arrow_of,
    arrow_of_bytes,
    flatten_strings,
    offsets_from_lengths,
)
from neardup.documents.batch import Corpus
from neardup.verify.measured import Measured, Rows
from neardup.verify.recall import Recall


class Cuts(NamedTuple):
    """Ranges to cut from the texts of documents, none of which overlap.

    documents : uint32 (num_cuts,), rising; a document may have several cuts. starts, ends : int64
    (num_cuts,), in bytes of its UTF-8 text, starts < ends, rising within a document.
    """

    documents: Positions
    starts: Ints
    ends: Ints


class Edits(NamedTuple):
    """The edits of consecutive documents: ranges of a text are cut, or all of it, which removes the
    document.

    kept : bool (num_documents,), whether the document stays. cuts : of kept documents; None if
    there are none. marked : whether what is cut stays, between MARKS.
    """

    kept: Mask
    cuts: Cuts | None = None
    marked: bool = False

    def between(self, start: int, stop: int) -> Edits:
        """Return the edits of the documents in [start, stop), which are then numbered from 0."""
        kept = self.kept[start:stop]
        if self.cuts is None:
            return Edits(kept)
        documents, starts, ends = self.cuts
        # Of another type, all documents would be converted first.
        chosen = slice(*np.searchsorted(documents, np.array([start, stop], documents.dtype)))
        cuts = Cuts(documents[chosen] - np.uint32(start), starts[chosen], ends[chosen])
        return Edits(kept, cuts if len(cuts.documents) else None, self.marked)


class Edited(Protocol):
    """A collection that was decided about: its documents, and what is cut from them."""

    @property
    def corpus(self) -> Corpus:
        """The documents."""

    @property
    def edits(self) -> Edits:
        """The edits of all documents."""


MARKS = "\u27e6", "\u27e7"
"""Before and behind a passage that is marked: white square brackets."""


def cut_texts(
    texts: pa.LargeStringArray, cuts: Cuts, *, marked: bool = False
) -> tuple[Positions, pa.LargeStringArray]:
    """Return the rows of the texts that have cuts, rising, and the rest of each of these texts.

    marked : return the whole texts instead, with MARKS.

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
    if marked:
        marks = np.frombuffer("".join(MARKS).encode(), np.uint8)
        whole = np.insert(
            data, np.repeat(bounds.ravel(), len(marks) // 2), np.tile(marks, len(bounds))
        )
        sizes = np.diff(offsets) + np.add.reduceat(np.full(len(text), len(marks)), first)
        return rows, arrow_of_bytes(whole, offsets_from_lengths(sizes)).view(pa.large_string())
    edges = np.concatenate([[0], bounds.ravel(), [len(data)]])
    is_left = np.tile([True, False], len(edges) // 2)[: len(edges) - 1]
    left = data[np.repeat(is_left, np.diff(edges))]
    sizes = np.diff(offsets) - np.add.reduceat(cuts.ends - cuts.starts, first)
    return rows, arrow_of_bytes(left, offsets_from_lengths(sizes)).view(pa.large_string())


def _check(bounds: Ints, data: Bytes, offsets: Ints, text: Ints, cuts: Cuts) -> None:
    """Refuse a cut that is no range of characters. bounds : (num_cuts, 2), in `data`; text : of
    each cut.
    """
    starts, ends = bounds.T
    previous = np.maximum(
        offsets[text], np.append(0, np.where(text[1:] == text[:-1], ends[:-1], 0))
    )
    wrong = (starts < previous) | (starts >= ends) | (ends > offsets[text + 1])
    inside = (
        np.append(data, np.uint8(0))[np.minimum(bounds, len(data))] & 0xC0 == 0x80
    )  # continues a character
    wrong |= inside.any(axis=1)
    if wrong.any():
        number = int(np.argmax(wrong))
        document, start, end = (int(column[number]) for column in cuts)
        size = int(np.diff(offsets)[text[number]])
        raise ValueError(
            f"Bytes {start} to {end} cannot be cut from document {document}, a text of {size} "
            "bytes: cuts must be "
            "ranges of whole characters that rise and do not overlap."
        )


_STRETCH = 65_536
SHORT = 32  # features under which a text is short: SimHash is then unreliable, see docs/accuracy.md


class Removals(NamedTuple):
    """Removed documents in input order, each with the kept document that removed it. documents,
    kept : uint32.

    first : uint32, the first document of the cluster of each; None if it is the kept one.
    """

    documents: Positions
    kept: Positions
    measured: Measured
    first: Positions | None = None

    @property
    def clusters(self) -> Positions:
        """The number of the cluster of each, that of its first document."""
        return self.kept if self.first is None else self.first

    def take(self, rows: Rows) -> Removals:
        """Return some of the rows."""
        first = None if self.first is None else self.first[rows]
        return Removals(self.documents[rows], self.kept[rows], self.measured.take(rows), first)


class Pairs(NamedTuple):
    """Pairs of documents at or above the threshold, each once. left, right : uint32, either may be
    the earlier.
    """

    left: Positions
    right: Positions
    measured: Measured


@dataclass(frozen=True)
class Counts:
    """The decisions of a run, or of a part of it, as numbers, however many documents it had.

    removed, removed_exact : documents; those that are copies of a kept one. pairs, pairs_exact :
    the same of pairs measured at or above the threshold. near, repeats : the measures of the
    removed documents that are no exact copies, and int64, the number of documents with the measures
    of each row. cluster_sizes : pairs of a size, which includes the kept document, and the number
    of clusters of that size, rising. by_inputs : int64 (num_cells, 4), by the first two columns:
    the input of removed documents, that of the kept documents, how many, the bytes of their texts.
    """

    removed: int
    removed_exact: int
    pairs: int
    pairs_exact: int
    near: Measured
    repeats: Ints
    cluster_sizes: list[list[int]]
    by_inputs: Ints

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of two parts of a run. Requires: no document, pair or cluster is in
        both.
        """
        columns = {
            name: np.append(column, other.near[name]) for name, column in self.near.columns.items()
        }
        repeats = np.append(self.repeats, other.repeats)
        near, repeats = _add_up(np.stack(list(columns.values()), axis=1), repeats[:, None])
        measured = {
            name: near[:, at].astype(column.dtype)
            for at, (name, column) in enumerate(columns.items())
        }
        sizes, num_clusters = _add_up(
            *np.hsplit(_rows([*self.cluster_sizes, *other.cluster_sizes], 2), 2)
        )
        inputs, documents = _add_up(
            *np.hsplit(np.concatenate([self.by_inputs, other.by_inputs]), 2)
        )
        return Counts(
            removed=self.removed + other.removed,
            removed_exact=self.removed_exact + other.removed_exact,
            pairs=self.pairs + other.pairs,
            pairs_exact=self.pairs_exact + other.pairs_exact,
            near=Measured(measured),
            repeats=repeats[:, 0],
            cluster_sizes=np.append(sizes, num_clusters, axis=1).tolist(),
            by_inputs=np.append(inputs, documents, axis=1),
        )


def _rows(rows: list[list[int]], width: int) -> Ints:
    return np.array(rows, np.int64).reshape(-1, width)


def _add_up(keys: Array, numbers: Ints) -> tuple[Array, Ints]:
    """Return the distinct rows of keys, rising, and the sums of the numbers of each."""
    distinct, of_row = np.unique(keys, axis=0, return_inverse=True)
    sums = np.zeros((len(distinct), numbers.shape[1]), np.int64)
    np.add.at(sums, of_row.reshape(-1), numbers)
    return distinct, sums


def count_decisions(
    removals: Removals,
    pairs: Pairs,
    corpus: Corpus,
    bytes_of: Callable[[Positions], Ints],
    cluster_sizes: Ints | None = None,
) -> Counts:
    """Count decisions that are in memory.

    bytes_of : returns the bytes of the texts of removed documents, int64. cluster_sizes : the
    documents in each cluster. Default: those that were removed for each kept document, and itself.
    """
    exact = removals.measured.exact
    near = removals.measured.take(~exact)
    if cluster_sizes is None:
        cluster_sizes = np.unique(removals.kept, return_counts=True)[1] + 1
    sizes, repeats = np.unique(cluster_sizes, return_counts=True)
    return Counts(
        removed=len(exact),
        removed_exact=int(np.count_nonzero(exact)),
        pairs=len(pairs.left),
        pairs_exact=int(np.count_nonzero(pairs.measured.exact)),
        near=near,
        repeats=np.broadcast_to(np.int64(1), len(near.exact)),
        cluster_sizes=np.stack([sizes, repeats], axis=1).tolist(),
        by_inputs=_count_by_inputs(removals, corpus.part_ends, bytes_of),
    )


def _count_by_inputs(
    removals: Removals, part_ends: Ints, bytes_of: Callable[[Positions], Ints]
) -> Ints:
    """Return `Counts.by_inputs`, counted in stretches: the memory does not grow with the
    documents.
    """
    counts: Counter[int] = Counter()
    num_bytes: Counter[int] = Counter()
    for start in range(0, len(removals.documents), _STRETCH):
        stretch = slice(start, start + _STRETCH)
        sides = (side[stretch] for side in (removals.documents, removals.kept))
        removed, kept = (np.searchsorted(part_ends, side, "right") for side in sides)
        both = removed * len(part_ends) + kept
        cells, of_document, documents = np.unique(both, return_inverse=True, return_counts=True)
        sums = np.bincount(of_document, bytes_of(removals.documents[stretch])).astype(np.int64)
        counts.update(dict(zip(cells.tolist(), documents.tolist(), strict=True)))
        num_bytes.update(dict(zip(cells.tolist(), sums.tolist(), strict=True)))
    rows = [
        (*divmod(cell, len(part_ends)), documents, num_bytes[cell])
        for cell, documents in sorted(counts.items())
    ]
    return np.array(rows, np.int64).reshape(-1, 4)


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The totals of a run, as reported.

    compared : pairs measured. num_bucket_overflows : documents with an earlier one in a bucket that
    does not list it. collisions : pairs of near fingerprints whose features are below the
    threshold. num_fingerprints, num_near_pairs : the distinct fingerprints, and the pairs of them
    within the distance. Counts that an engine does not have are None. recall : the estimate; None
    if the search cannot miss a pair. audited : the recall measured on a sample. short : documents
    of fewer than SHORT features. others : uint32, documents that are removed without a keeper, such
    as the rest of a group.
    """

    corpus: Corpus
    counts: Counts
    short: int
    compared: int | None = None
    num_bucket_overflows: int = 0
    collisions: int | None = None
    num_fingerprints: int | None = None
    num_near_pairs: int | None = None
    recall: Recall | None = None
    audited: Recall | None = None
    others: Positions = field(default_factory=lambda: np.empty(0, np.uint32))


@dataclass(frozen=True, kw_only=True)
class Outcome(Totals):
    """The decisions and measurements of a run whose rows the driver has.

    removals : the removed documents. pairs : all pairs measured at or above the threshold. passages
    : what is cut from the kept documents; None if nothing was looked for.
    """

    removals: Removals
    pairs: Pairs
    passages: Edits | None = None

    @cached_property
    def edits(self) -> Edits:
        """The edits of all documents: those that are removed lose all of their text."""
        kept = np.ones(self.corpus.num_documents, np.bool_)
        kept[self.removals.documents] = False
        kept[self.others] = False
        return (
            Edits(kept)
            if self.passages is None
            else self.passages._replace(kept=kept & self.passages.kept)
        )
