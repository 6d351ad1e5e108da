"""The decisions of a run, from which tables and reports are made: edits, removals, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    ranges,
)
from neardup.documents.batch import Corpus
from neardup.documents.turns import Turns
from neardup.verify.measured import Measured, Rows
from neardup.verify.recall import Recall

_DOCUMENTS_AT_ONCE = 65_536


class Cuts(NamedTuple):
    """Ranges to cut from the texts of documents, which do not overlap.

    documents : uint32 (num_cuts,), rising; a document may have several cuts. starts, ends : int64
    (num_cuts,), in bytes of its UTF-8 text, starts < ends, rising within a document.
    """

    documents: Positions
    starts: Ints
    ends: Ints


class Added(Protocol):
    """Columns that are added to consecutive documents that stay."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def between(self, start: int, stop: int) -> Added:
        """Return the columns of the documents in [start, stop), which are numbered from 0 then."""

    def rows(self) -> pa.RecordBatch:
        """Return the columns, with a row for each document; a removed document has any values."""


class Edits(NamedTuple):
    """The edits of consecutive documents: ranges of a text are cut, or all of it, which removes the
    document.

    kept : bool (num_documents,), whether the document stays. cuts : the cuts of kept documents;
    None if there are none. marked : whether the ranges stay in the text, between MARKS. added : the
    columns that are added to kept documents; None if there are none.
    """

    kept: Mask
    cuts: Cuts | None = None
    marked: bool = False
    added: Added | None = None

    def between(self, start: int, stop: int) -> Edits:
        """Return the edits of the documents in [start, stop), which are then numbered from 0."""
        added = None if self.added is None else self.added.between(start, stop)
        return self._of_texts(start, stop)._replace(added=added)

    def _of_texts(self, start: int, stop: int) -> Edits:
        """Return the edits of texts in [start, stop)."""
        kept = self.kept[start:stop]
        if self.cuts is None:
            return Edits(kept)
        documents, starts, ends = self.cuts
        # With bounds of another type, NumPy would convert all documents first.
        bounds = np.array([start, stop], documents.dtype)
        low, high = np.searchsorted(documents, bounds).tolist()
        if low == high:
            return Edits(kept, None, self.marked)
        cuts = Cuts(documents[low:high] - np.uint32(start), starts[low:high], ends[low:high])
        return Edits(kept, cuts, self.marked)


class Edited(Protocol):
    """A collection that was decided about: its documents, and the edits of them."""

    @property
    def corpus(self) -> Corpus:
        """The documents."""

    @property
    def edits(self) -> Edits:
        """The edits of all documents."""


MARKS = ("\u27e6", "\u27e7")
"""White square brackets, before and after a passage that is marked."""


class _Texts(NamedTuple):
    """The texts that have cuts, one after the other.

    data : uint8, the bytes of all. offsets : int64 (num_texts + 1,). text : int64 by cut, its text.
    first : int64 by text, its first cut. bounds : int64 (num_cuts, 2), each cut in `data`.
    """

    data: Bytes
    offsets: Ints
    text: Ints
    first: Ints
    bounds: Ints

    def resized(self, data: Bytes, change: Ints) -> pa.LargeStringArray:
        """Return the texts with other bytes; change : by cut, the bytes that it adds."""
        sizes = np.diff(self.offsets) + np.add.reduceat(change, self.first)
        return arrow_of_bytes(data, offsets_from_lengths(sizes)).view(pa.large_string())


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
    found = _Texts(data=data, offsets=offsets, text=text, first=first, bounds=bounds)
    _check(found, cuts)
    return rows, _mark(found) if marked else _cut(found)


def cut_turns(turns: Turns, cuts: Cuts, *, marked: bool = False) -> Turns:
    """Return turns after cuts of the texts that they make. A turn that is cut as a whole becomes
    empty; the line ends between turns are in none of them.

        text    hello there⏎how are you      cut: 6 to 15
        turns   [hello there] [how are you]
        cuts          ^^^^^    ^^^
    """
    numbers = np.flatnonzero(turns.is_text)
    values = turns.values.take(arrow_of(numbers)).cast(pa.large_string())
    sizes = pc.binary_length(values).to_numpy().astype(np.int64)
    first_turns = offsets_from_lengths(turns.is_text)[turns.offsets]
    cuts_inside = _cuts_of_turns(sizes, first_turns[cuts.documents], cuts)
    if not len(cuts_inside.documents):
        return turns
    rows, texts = cut_texts(values, cuts_inside, marked=marked)
    return turns.replaced(numbers[rows], texts)


def _cuts_of_turns(sizes: Ints, first_turns: Ints, cuts: Cuts) -> Cuts:
    """Return the cuts of texts as cuts of their turns.

    sizes : the bytes of each turn of all texts. first_turns : by cut, the first turn of its text.
    """
    # Where each turn begins if all texts follow each other, each turn with a line end.
    begins = offsets_from_lengths(sizes + 1)
    starts = cuts.starts + begins[first_turns]
    ends = cuts.ends + begins[first_turns]
    first = np.searchsorted(begins, starts, "right") - 1
    last = np.searchsorted(begins, ends, "left") - 1

    # A cut in each turn that it reaches.
    num_turns = last - first + 1
    turns = ranges(first, num_turns)
    starts_in_turn = np.maximum(np.repeat(starts, num_turns) - begins[turns], 0)
    ends_in_turn = np.minimum(np.repeat(ends, num_turns) - begins[turns], sizes[turns])
    is_inside = starts_in_turn < ends_in_turn  # not the line end alone
    return Cuts(
        documents=turns[is_inside].astype(np.uint32),
        starts=starts_in_turn[is_inside],
        ends=ends_in_turn[is_inside],
    )


def _mark(texts: _Texts) -> pa.LargeStringArray:
    marks = np.frombuffer("".join(MARKS).encode(), np.uint8)  # both of one size
    num_bounds = texts.bounds.size
    positions = np.repeat(texts.bounds.ravel(), len(marks) // 2)
    data = np.insert(texts.data, positions, np.tile(marks, num_bounds // 2))
    return texts.resized(data, np.full(len(texts.text), len(marks)))


def _cut(texts: _Texts) -> pa.LargeStringArray:
    # From edge to edge, bytes stay and are cut by turns.
    edges = np.concatenate([[0], texts.bounds.ravel(), [len(texts.data)]])
    stays = np.arange(len(edges) - 1) % 2 == 0
    data = texts.data[np.repeat(stays, np.diff(edges))]
    return texts.resized(data, -np.diff(texts.bounds, axis=1)[:, 0])


def _check(texts: _Texts, cuts: Cuts) -> None:
    """Raise ValueError if a cut is no range of whole characters."""
    starts, ends = texts.bounds.T
    is_next = texts.text[1:] == texts.text[:-1]  # a further cut of the same text
    end_before = np.append(0, np.where(is_next, ends[:-1], 0))
    is_wrong = starts < np.maximum(texts.offsets[texts.text], end_before)
    is_wrong |= starts >= ends
    is_wrong |= ends > texts.offsets[texts.text + 1]
    is_wrong |= _divides_character(texts).any(axis=1)
    if not is_wrong.any():
        return
    number = int(np.argmax(is_wrong))
    document, start, end = (int(column[number]) for column in cuts)
    size = int(np.diff(texts.offsets)[texts.text[number]])
    raise ValueError(
        f"Bytes {start} to {end} cannot be cut from document {document}, a text of {size} bytes: "
        "cuts must be ranges of whole characters that rise and do not overlap."
    )


def _divides_character(texts: _Texts) -> Mask:
    """Return for each bound whether the byte there continues a character."""
    padded = np.append(texts.data, np.uint8(0))
    at_bounds = padded[np.minimum(texts.bounds, len(texts.data))]
    continues: Mask = at_bounds & 0xC0 == 0x80
    return continues


SHORT = 32
"""The number of features below which a text is short: SimHash is then unreliable, see
docs/accuracy.md.
"""


class Removals(NamedTuple):
    """Removed documents in input order.

    documents : uint32. kept : uint32, the kept document that removed each. measured : the measures
    of the two. first : uint32, the first document of the cluster; None if it is the kept one.
    """

    documents: Positions
    kept: Positions
    measured: Measured
    first: Positions | None = None

    @property
    def clusters(self) -> Positions:
        """The cluster of each, by its first document."""
        return self.kept if self.first is None else self.first

    def take(self, rows: Rows) -> Removals:
        """Return some of the rows."""
        return Removals(
            documents=self.documents[rows],
            kept=self.kept[rows],
            measured=self.measured.take(rows),
            first=None if self.first is None else self.first[rows],
        )


class Pairs(NamedTuple):
    """Pairs of documents at or above the threshold, each once.

    left, right : uint32, documents in either order.
    """

    left: Positions
    right: Positions
    measured: Measured


@dataclass(frozen=True)
class Counts:
    """The decisions of a run, or of a part of it, as numbers, however many documents it had.

    removed, removed_exact : removed documents, and the copies of a kept document among them. pairs,
    pairs_exact : the pairs measured at or above the threshold, and the copies among them. near :
    the measures of removed documents that are no copies. repeats : int64, the number of documents
    with the measures of each row. cluster_sizes : pairs of a size, which includes the kept
    document, and the number of clusters of this size, rising. by_inputs : int64 (num_cells, 4),
    sorted by the first two columns:

        input of the removed | input of the kept | removed documents | bytes of their texts
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
        near, repeats = self._add_near(other)
        by_inputs = np.concatenate([self.by_inputs, other.by_inputs])
        inputs, numbers = _add_up(by_inputs[:, :2], by_inputs[:, 2:])
        num_clusters: Counter[int] = Counter()
        for size, number in self.cluster_sizes + other.cluster_sizes:
            num_clusters[size] += number
        return Counts(
            removed=self.removed + other.removed,
            removed_exact=self.removed_exact + other.removed_exact,
            pairs=self.pairs + other.pairs,
            pairs_exact=self.pairs_exact + other.pairs_exact,
            near=near,
            repeats=repeats,
            cluster_sizes=[[size, num_clusters[size]] for size in sorted(num_clusters)],
            by_inputs=np.append(inputs, numbers, axis=1),
        )

    def _add_near(self, other: Counts) -> tuple[Measured, Ints]:
        """Return `near` and `repeats` of two parts of a run, with each row of measures once."""
        names = list(self.near.columns)
        measures = [np.append(self.near[name], other.near[name]) for name in names]
        repeats = np.append(self.repeats, other.repeats)
        rows, sums = _add_up(np.stack(measures, axis=1), repeats[:, None])
        columns = {
            name: column.astype(self.near[name].dtype)
            for name, column in zip(names, rows.T, strict=True)
        }
        return Measured(columns), sums[:, 0]


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
    number of documents of each cluster. Default: a cluster is a kept document and the documents
    that were removed for it.
    """
    exact = removals.measured.exact
    near = removals.measured.take(~exact)
    if cluster_sizes is None:
        _, num_removed = np.unique(removals.kept, return_counts=True)
        cluster_sizes = 1 + num_removed
    sizes, num_clusters = np.unique(cluster_sizes, return_counts=True)
    return Counts(
        removed=len(exact),
        removed_exact=int(np.count_nonzero(exact)),
        pairs=len(pairs.left),
        pairs_exact=int(np.count_nonzero(pairs.measured.exact)),
        near=near,
        repeats=np.broadcast_to(np.int64(1), len(near.exact)),
        cluster_sizes=np.column_stack([sizes, num_clusters]).tolist(),
        by_inputs=_count_by_inputs(removals, corpus.part_ends, bytes_of),
    )


def _count_by_inputs(
    removals: Removals, part_ends: Ints, bytes_of: Callable[[Positions], Ints]
) -> Ints:
    """Return `Counts.by_inputs`, counted in stretches: memory does not grow with documents."""
    num_parts = len(part_ends)
    num_documents: Counter[int] = Counter()  # by cell: the two inputs as one number
    num_bytes: Counter[int] = Counter()
    for start in range(0, len(removals.documents), _DOCUMENTS_AT_ONCE):
        stretch = removals.take(slice(start, start + _DOCUMENTS_AT_ONCE))
        sizes = bytes_of(stretch.documents)
        for cell, count, size in _count_cells(stretch, part_ends, sizes).tolist():
            num_documents[cell] += count
            num_bytes[cell] += size
    rows = [
        (*divmod(cell, num_parts), num_documents[cell], num_bytes[cell])
        for cell in sorted(num_documents)
    ]
    return np.array(rows, np.int64).reshape(-1, 4)


def _count_cells(removals: Removals, part_ends: Ints, sizes: Ints) -> Ints:
    """Return the cells of some removals, the removed documents and their bytes: (num_cells, 3).

    sizes : int64, the bytes of each removed text.
    """
    removed_from = np.searchsorted(part_ends, removals.documents, "right")
    kept_in = np.searchsorted(part_ends, removals.kept, "right")
    cells, cell_of, counts = np.unique(
        removed_from * len(part_ends) + kept_in, return_inverse=True, return_counts=True
    )
    num_bytes = np.bincount(cell_of, sizes).astype(np.int64)
    return np.column_stack([cells, counts, num_bytes])


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The totals of a run, as reported.

    compared : pairs measured. num_bucket_overflows : documents with an earlier one in a bucket that
    does not list it. collisions : pairs of near fingerprints whose features are below the
    threshold. num_fingerprints, num_near_pairs : the distinct fingerprints, and the pairs of them
    within the distance. Counts that an engine does not have are None. recall : the estimate; None
    if the search cannot miss a pair. sampled_recall : the recall measured on a sample. short :
    documents of fewer than SHORT features. others : uint32, documents that are removed without a
    keeper, such as the rest of a group. added : the columns that are added to kept documents.
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
    sampled_recall: Recall | None = None
    others: Positions = field(default_factory=lambda: np.empty(0, np.uint32))
    added: Added | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome(Totals):
    """The decisions and measurements of a run whose rows the driver has.

    removals : the removed documents. pairs : all pairs measured at or above the threshold. passages
    : the edits of the kept documents; None if no passages were looked for.
    """

    removals: Removals
    pairs: Pairs
    passages: Edits | None = None

    @cached_property
    def edits(self) -> Edits:
        """The edits of all documents; a removed document loses all of its text."""
        kept = np.ones(self.corpus.num_documents, np.bool_)
        kept[self.removals.documents] = False
        kept[self.others] = False
        if self.passages is None:
            return Edits(kept, added=self.added)
        return self.passages._replace(kept=kept & self.passages.kept, added=self.added)
