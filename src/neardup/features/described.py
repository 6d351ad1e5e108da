"""The features of a batch of documents with their weights: the input of all later stages.

Lists of hashes follow each other in one array, and offsets have one entry more than documents:

    hashes    | a b c | d | | e f |      of four documents, the third without features
    offsets   0       3   4 4     6
"""

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


class Features(NamedTuple):
    """The features of a batch of documents.

    content : uint64 (num_documents, 2), equal for equal features in equal order; undefined without
    features. sets : the hashes of the features of each document, in the order of the text, repeats
    included; a document with an empty list is in no pair. The hashes may be in a workspace, which
    the next batch overwrites: see `Method.describe`. structure : a second list, if a method needs
    it: the structure of pages, or `even_features` of the sets. weighed : data of the method from
    which it summarises the batch, None if it needs the sets alone; no other code reads it.
    """

    content: Words
    sets: Lists
    structure: Lists | None = None
    weighed: Any = None

    def take(self, rows: Integers) -> Features:
        """Return the features of some documents, to compare them: without `weighed`."""
        structure = None if self.structure is None else self.structure.take(rows)
        return Features(content=self.content[rows], sets=self.sets.take(rows), structure=structure)


class Keys(NamedTuple):
    """The keys by which the documents of a batch are found.

    values : uint64 (num_documents, num_keys): a key for each band, or the words of a fingerprint;
    no column if documents are found by their sets. content : the content hashes of the features.
    featured : bool, whether a document has features. samples : the sets, if documents are found by
    samples of them.
    """

    values: Words
    content: Words
    featured: Mask
    samples: Lists | None = None

    def take(self, rows: Integers) -> Keys:
        """Return the keys of some documents."""
        samples = None if self.samples is None else self.samples.take(rows)
        return Keys(
            values=self.values[rows],
            content=self.content[rows],
            featured=self.featured[rows],
            samples=samples,
        )


class Lists(NamedTuple):
    """A list of hashes for each document.

    hashes : uint64 (num_hashes,), repeats allowed. offsets : int64 (num_documents + 1,); list i is
    hashes[offsets[i] : offsets[i + 1]].
    """

    hashes: Words
    offsets: Ints

    @property
    def sizes(self) -> Ints:
        """The length of each list."""
        sizes: Ints = self.offsets[1:] - self.offsets[:-1]
        return sizes

    def take(self, rows: Integers) -> Lists:
        """Return the lists of some documents."""
        starts = self.offsets[rows]
        sizes = self.offsets[rows + 1] - starts
        return Lists(self.hashes[ranges(starts, sizes)], offsets_from_lengths(sizes))


class DistinctFeatures(NamedTuple):
    """The distinct features of documents, in each document by rising hash.

    hashes : uint64; counts : uint32, occurrences in the document; firsts : int64, the index of the
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
    max_distinct = len(hashes)
    distinct = np.empty(max_distinct, np.uint64)
    counts = np.empty(max_distinct, np.uint32)
    firsts = np.empty(max_distinct, np.int64)
    distinct_offsets = np.empty_like(offsets)
    kernels.weights.distinct_features(
        writable(hashes), writable(offsets), distinct, counts, firsts, distinct_offsets
    )
    num_distinct = distinct_offsets[-1]
    return DistinctFeatures(
        hashes=distinct[:num_distinct],
        counts=counts[:num_distinct],
        firsts=firsts[:num_distinct],
        offsets=distinct_offsets,
    )


def distinct_lists(lists: Lists) -> Lists:
    """Return the distinct hashes of each list, rising."""
    found = distinct_features(*lists)
    return Lists(found.hashes, found.offsets)


def even_features(lists: Lists) -> Lists:
    """Return the distinct hashes of each list that occur an even number of times by chance, rising.

    Their number estimates the number of features that two unrelated texts share: see
    `kernels.sorted_sets.shared_above_chance`.

    Notes
    -----
    A text that repeats whole passages has many features twice, and few of them once or three times.
    If occurrences are independent, the numbers of features that occur once, twice and three times
    have the means sum(m e^-m), sum(m^2 e^-m) / 2 and sum(m^3 e^-m) / 6. By the Cauchy-Schwarz
    inequality the second is at most the root of 1.5 times the product of the others. Of the
    features that occur twice, at most this number is returned.
    """
    features = distinct_features(*lists)
    offsets = features.offsets
    num_once = _count_in_lists(features.counts == 1, offsets)
    num_thrice = _count_in_lists(features.counts == 3, offsets)
    max_twice = np.floor(np.sqrt(1.5 * num_once * num_thrice)).astype(np.int64)

    # The features that occur twice are numbered from 1 on in each list, and the last are left out.
    is_twice = features.counts == 2
    twice_before = offsets_from_lengths(is_twice)[offsets[:-1]]
    sizes = np.diff(offsets)
    number = np.cumsum(is_twice) - np.repeat(twice_before, sizes)
    is_beyond = is_twice & (number > np.repeat(max_twice, sizes))
    is_kept = (features.counts % 2 == 0) & ~is_beyond
    return Lists(features.hashes[is_kept], offsets_from_lengths(is_kept)[offsets])


def _count_in_lists(mask: Mask, offsets: Ints) -> Ints:
    """Return the number of true values of each list."""
    # Offsets from a mask as lengths: the number of true values before each position.
    return np.diff(offsets_from_lengths(mask)[offsets])


def sum_weights(weights: Floats, hashes: Words, offsets: Ints) -> Floats:
    """Return the weight of each distinct feature: the sum over its occurrences, in an order that
    depends on the weights alone.

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
    # Sorted weights make the sum independent of the order of words: floats do not associate.
    order = np.lexsort((weights, hashes, documents))
    firsts = np.flatnonzero(begins_run(hashes[order], documents[order]))
    return np.add.reduceat(weights[order], firsts)


class Weighed(NamedTuple):
    """Weights of the chosen features.

    weights : float64, the weight of each chosen feature. offsets : int64 (num_documents + 1,).
    indices : int64, the chosen features among the distinct features; None for all.
    """

    weights: Floats
    offsets: Ints
    indices: Ints | None


def choose(weights: Floats, offsets: Ints, *, top: int, levels: bool) -> Weighed:
    """Keep the heaviest features of each document, and replace weights by levels.

    Parameters
    ----------
    weights : float64 array, the weights of distinct features, in each document by rising hash.
    offsets : int64 array of shape (num_documents + 1,).
    top : features of a document to keep; 0 for all. Of equal weights the smallest hashes stay, so
        that the order of words does not matter.
    levels : whether weights become 1 to 5: 1 for the lightest fifth of the kept features, 5 for the
        heaviest.
    """
    if not top and not levels:
        return Weighed(weights=weights, offsets=offsets, indices=None)
    weights = weights.copy()
    is_kept = np.empty(len(weights), np.bool_)
    kernels.weights.choose(weights, offsets, top, levels, is_kept)
    return Weighed(
        weights=weights[is_kept],
        offsets=offsets_from_lengths(is_kept)[offsets],
        indices=np.flatnonzero(is_kept),
    )


def replicate_rare_features(
    features: DistinctFeatures, document_counts: Ints, num_documents: int
) -> tuple[Words, Ints]:
    """Return the features of documents, with two or three copies of rare features, so that plain
    sets are weighted.

    Parameters
    ----------
    features : the distinct features of documents.
    document_counts : int64 array, the number of all documents that contain each feature.
    num_documents : all documents. A feature that at most their square root contain has two copies,
        at most their fourth root three copies. A feature of a single document has one.

    Returns
    -------
    hashes : uint64 array; no hash occurs twice in a document.
    offsets : int64 array of shape (num_documents of the batch + 1,).

    Notes
    -----
    The Jaccard similarity of the sets is the weighted similarity with integer weights (Haveliwala,
    Gionis and Indyk 2000). Three steps of weight differ by a factor of at most 3: if one template
    fills half of a crawl, its shingles still count. A feature of a single document is shared with
    no other: a weight would only lower the similarities of this document, most of all if it has
    many such features (docs/accuracy.md, Web pages).
    """
    square_root = math.isqrt(num_documents)
    limits = np.array([square_root, math.isqrt(square_root)], np.int64)
    repeated = np.empty(3 * len(features.hashes), np.uint64)
    offsets = np.empty_like(features.offsets)
    kernels.weights.replicate_rare_features(
        features.hashes, features.offsets, document_counts, limits, repeated, offsets
    )
    return repeated[: offsets[-1]], offsets


def line_frequencies(
    features: DistinctFeatures, lines: DistinctFeatures, line_offsets: Ints
) -> tuple[Ints, Ints]:
    """Return the number of lines with each feature, and of all lines with features, per document.

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
    line_counts = np.empty(len(features.hashes), np.int64)
    kernels.weights.look_up_each(
        features.hashes, features.offsets, table.hashes, table.offsets, table.counts, line_counts
    )
    has_features = np.diff(lines.offsets) > 0
    num_lines = np.diff(offsets_from_lengths(has_features)[line_offsets])
    return line_counts, np.repeat(num_lines, np.diff(features.offsets))
