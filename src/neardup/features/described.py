"""The features of a batch of documents, weighed: what the stages after `describe` work on."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import (
    Floats,
    Integers,
    Ints,
    Mask,
    Uint32s,
    Words,
    begins_run,
    offsets_from_lengths,
    ranges,
    writable,
)


class DistinctFeatures(NamedTuple):
    """The distinct features of documents, in each document by rising hash.

    hashes : uint64; counts : uint32, occurrences in the document; firsts : int64, the place of the
    first occurrence among all features of the batch; offsets : int64 (num_documents + 1,).
    """

    hashes: Words
    counts: Uint32s
    firsts: Ints
    offsets: Ints


def distinct_features(hashes: Words, offsets: Ints) -> DistinctFeatures:
    """Return the distinct features of documents given as ranges of feature hashes in the order of
    the text.
    """
    size = len(hashes)
    distinct, counts, firsts = (
        np.empty(size, np.uint64),
        np.empty(size, np.uint32),
        np.empty(size, np.int64),
    )
    ends = np.empty_like(offsets)
    kernels.weights.distinct_features(
        writable(hashes), writable(offsets), distinct, counts, firsts, ends
    )
    return DistinctFeatures(distinct[: ends[-1]], counts[: ends[-1]], firsts[: ends[-1]], ends)


def distinct_lists(lists: Lists) -> Lists:
    """Return the distinct hashes of each list, rising."""
    found = distinct_features(*lists)
    return Lists(found.hashes, found.offsets)


def sum_weights(weights: Floats, hashes: Words, offsets: Ints) -> Floats:
    """Return the weight of each distinct feature: the sum over its occurrences, whatever their
    order.

    Parameters
    ----------
    weights : float64 array, of all occurrences.
    hashes : uint64 array as long, their hashes.
    offsets : int64 array of shape (num_documents + 1,).

    Returns
    -------
    float64 array, in the order of `distinct_features`.
    """
    if not len(weights):
        return np.empty(0)
    documents = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((weights, hashes, documents))
    documents, hashes = documents[order], hashes[order]
    return np.add.reduceat(weights[order], np.flatnonzero(begins_run(hashes, documents)))


def replicate_rare_features(
    features: DistinctFeatures, document_counts: Ints, num_documents: int
) -> tuple[Words, Ints]:
    """Return the features of documents with the rare ones twice or thrice, so that a plain set
    weighs them.

    Parameters
    ----------
    features : the distinct features of documents.
    document_counts : int64 array, how many of all documents hold each feature.
    num_documents : all documents. A feature of two or more, and of at most their square root, is
        there twice, of at most their fourth root thrice. One that no other document holds is there
        once.

    Returns
    -------
    uint64 array, no hash twice in a document, and int64 offsets of shape (num_documents of the
    batch + 1,).

    Notes
    -----
    The Jaccard similarity of the sets is the weighted one of integer weights (Haveliwala, Gionis
    and Indyk 2000). Weights in three steps stay apart by no more than 3: where one template fills
    half of a crawl, its shingles still count. A feature of a single document is shared with no
    other, so that its weight only lowers the similarities of that document, the more so the more
    such features it has (docs/accuracy.md, Web pages).
    """
    root = math.isqrt(num_documents)
    limits = np.array([root, math.isqrt(root)], np.int64)
    repeated, offsets = (
        np.empty(3 * len(features.hashes), np.uint64),
        np.empty_like(features.offsets),
    )
    distinct = features.hashes, features.offsets
    kernels.weights.replicate_rare_features(*distinct, document_counts, limits, repeated, offsets)
    return repeated[: offsets[-1]], offsets


class Weighed(NamedTuple):
    """DistinctFeatures that count, with their weights. places : which of the distinct ones they
    are, None for all.
    """

    weights: Floats
    offsets: Ints
    places: Ints | None


def choose(weights: Floats, offsets: Ints, *, top: int, levels: bool) -> Weighed:
    """Keep the weightiest features of each document, and put levels for their weights.

    Parameters
    ----------
    weights : float64 array, the weights of distinct features, in each document by rising hash.
    offsets : int64 array of shape (num_documents + 1,).
    top : features of a document to keep; 0 for all. Of equal weights those of least hash stay, so
        that the order of words does not matter.
    levels : whether weights become 1 to 5: one more than how many fifths of the kept features weigh
        less.
    """
    if not top and not levels:
        return Weighed(weights, offsets, None)
    weights, kept = weights.copy(), np.empty(len(weights), np.bool_)
    kernels.weights.choose(weights, offsets, top, levels, kept)
    return Weighed(weights[kept], offsets_from_lengths(kept)[offsets], np.flatnonzero(kept))


def line_frequencies(
    features: DistinctFeatures, lines: DistinctFeatures, line_offsets: Ints
) -> tuple[Ints, Ints]:
    """Return in how many lines of its document each feature occurs, and how many lines with
    features there are.

    Parameters
    ----------
    features : the distinct features of the documents.
    lines : the distinct features of every line of every document.
    line_offsets : int64 array of shape (num_documents + 1,), the range of lines of each document.

    Returns
    -------
    Two int64 arrays as long as the features.
    """
    table = distinct_features(lines.hashes, lines.offsets[line_offsets])
    found = np.empty(len(features.hashes), np.int64)
    kernels.weights.look_up_each(
        features.hashes, features.offsets, table.hashes, table.offsets, table.counts, found
    )
    num_lines = np.diff(offsets_from_lengths(np.diff(lines.offsets) > 0)[line_offsets])
    return found, np.repeat(num_lines, np.diff(features.offsets))


class Lists(NamedTuple):
    """A list of hashes for each document.

    hashes : uint64 (num_hashes,), repeats allowed. offsets : int64 (num_documents + 1,); list i is
    hashes[offsets[i] : offsets[i + 1]].
    """

    hashes: Words
    offsets: Ints

    @property
    def sizes(self) -> Ints:
        """Return the length of each list."""
        return np.diff(self.offsets)

    def take(self, rows: Integers) -> Lists:
        """Return the lists of some documents."""
        starts = self.offsets[rows]
        sizes = self.offsets[rows + 1] - starts
        return Lists(self.hashes[ranges(starts, sizes)], offsets_from_lengths(sizes))


def even_features(lists: Lists) -> Lists:
    """Return the distinct hashes of each list that occur in it an even number of times by chance,
    rising.

    Their number shows how much two unrelated texts share: see
    `kernels.sorted_sets.shared_above_chance`.

    Notes
    -----
    A text that repeats whole passages has many features twice, and few of them once or three times.
    If occurrences are independent, the numbers of features that occur once, twice and three times
    have the means sum(m e^-m), sum(m^2 e^-m) / 2 and sum(m^3 e^-m) / 6, so that by Cauchy and
    Schwarz the second is at most the root of 1.5 times the product of the others. Of the features
    that occur twice, no more than that count.
    """
    found = distinct_features(*lists)
    once, twice, thrice = (
        offsets_from_lengths(found.counts == times)[found.offsets] for times in (1, 2, 3)
    )
    most = np.floor(np.sqrt(1.5 * np.diff(once) * np.diff(thrice))).astype(np.int64)
    is_twice = found.counts == 2
    # The features that occur twice in a document are numbered from 1 on.
    number = np.cumsum(is_twice) - np.repeat(twice[:-1], np.diff(found.offsets))
    kept = found.counts % 2 == 0
    kept &= ~is_twice | (number <= np.repeat(most, np.diff(found.offsets)))
    return Lists(found.hashes[kept], offsets_from_lengths(kept)[found.offsets])


class Features(NamedTuple):
    """The features of a batch of documents.

    content : uint64 (num_documents, 2), equal where the features and their order are; undefined
    without features. sets : the hashes of the features of each document, in the order of the text,
    repeats included; none where a text has none, which is then in no pair. They may be in a
    workspace: see `Method.describe`. structure : a second list, where a method needs one: of the
    structure of pages, or `even_features` of the sets. weighed : what a method needs of the batch
    to summarise it, besides the sets; None where it needs nothing.
    """

    content: Words
    sets: Lists
    structure: Lists | None = None
    weighed: Any = None

    def take(self, rows: Integers) -> Features:
        """Return the features of some documents, without what only a summary needs."""
        structure = None if self.structure is None else self.structure.take(rows)
        return Features(self.content[rows], self.sets.take(rows), structure)


class Keys(NamedTuple):
    """The keys by which the documents of a batch are found.

    values : uint64 (num_documents, num_keys): a key for each band, or the words of a fingerprint;
    no column where documents are found by their sets. content, featured : of the features; bool,
    whether there are any. samples : the sets, where documents are found by samples of them.
    """

    values: Words
    content: Words
    featured: Mask
    samples: Lists | None = None

    def take(self, rows: Integers) -> Keys:
        """Return the keys of some documents."""
        samples = None if self.samples is None else self.samples.take(rows)
        return Keys(self.values[rows], self.content[rows], self.featured[rows], samples)
