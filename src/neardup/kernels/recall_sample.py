"""Compare a sample of documents with all others exactly, by a table of the sample's shingles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, kernel
from neardup.kernels.matches import num_equal
from neardup.kernels.mixing import find_slot
from neardup.kernels.sieve import NONE
from neardup.kernels.sorted_sets import JACCARD, similarity


class Sample(NamedTuple):
    """The sampled documents: their numbers, rising, sizes of their sets, content hashes and band
    keys.
    """

    documents: np.ndarray
    sizes: np.ndarray
    content: np.ndarray
    keys: np.ndarray


class Stretch(NamedTuple):
    """Consecutive documents from `first` on: their content hashes and band keys."""

    first: int
    content: np.ndarray
    keys: np.ndarray


class Counts(NamedTuple):
    """Pairs of each sampled document: found by a band, and all. int64 (num_samples,)."""

    found: np.ndarray
    true: np.ndarray


class Nearest(NamedTuple):
    """The document most similar to each sampled one so far.

    documents : int64 (num_samples,), its number, -1 for none. similarity : float64, 0 for none.
    """

    documents: np.ndarray
    similarity: np.ndarray


@kernel
def fill(postings, hashes, starts, sizes):
    """Enter the sets of the sampled documents, hashes[starts[i]:starts[i] + sizes[i]]. postings :
    new.
    """
    entry = 0
    for sample in range(len(starts)):
        for i in range(starts[sample], starts[sample] + I64(sizes[sample])):
            slot = find_slot(postings.keys, postings.head, NONE, hashes[i])
            postings.keys[slot] = hashes[i]
            postings.member[entry] = sample
            postings.next[entry] = postings.head[slot]
            postings.head[slot] = entry
            entry += 1


@kernel(allocates=True)
def compare(postings, sample, stretch, sets, threshold, counts):
    """Compare every document of a stretch with every sampled one and count the pairs at or above
    the threshold.

    postings : as `fill` leaves them. Copies are not counted. Requires: `sets` sorted for all
    documents of the stretch.
    """
    # Postings list the sample, not the corpus: memory does not grow with the number of documents.
    shared = np.zeros(len(sample.documents), I64)
    touched = np.empty(len(sample.documents), I64)
    for column in range(stretch.content.shape[0]):
        document = stretch.first + column
        size = I64(sets.sizes[document])
        start = sets.starts[document]
        count = _count_shared(postings, sets.hashes[start : start + size], shared, touched)
        for i in range(count):
            other = touched[i]
            jaccard = similarity(shared[other], size, I64(sample.sizes[other]), JACCARD)
            shared[other] = 0  # for the next document; others are zero already
            if jaccard >= threshold and not _is_copy(sample, other, stretch, column):
                counts.true[other] += 1
                counts.found[other] += num_equal(sample.keys[:, other], stretch.keys[:, column]) > 0


@kernel(allocates=True)
def find_nearest(postings, sizes, hashes, offsets, documents, nearest):
    """Replace the nearest document of each sampled one where one of these is more similar.

    postings : as `fill` leaves them. sizes : of the sampled sets. hashes, offsets : the sets of the
    documents, each hash once. documents : their numbers; of equally similar ones the first stays.
    """
    shared = np.zeros(len(sizes), I64)
    touched = np.empty(len(sizes), I64)
    for row in range(len(documents)):
        size = offsets[row + 1] - offsets[row]
        count = _count_shared(postings, hashes[offsets[row] : offsets[row + 1]], shared, touched)
        for i in range(count):
            other = touched[i]
            jaccard = similarity(shared[other], size, I64(sizes[other]), JACCARD)
            shared[other] = 0  # for the next document; others are zero already
            if jaccard > nearest.similarity[other]:
                nearest.similarity[other] = jaccard
                nearest.documents[other] = documents[row]


@kernel
def _count_shared(postings, hashes, shared, touched):
    """Count the hashes that each sampled document shares; return the number of such documents.

    shared : int64 by sampled document, zeros before. touched : their numbers.
    """
    count = 0
    for value in hashes:
        entry = postings.head[find_slot(postings.keys, postings.head, NONE, value)]
        while entry != NONE:
            member = postings.member[entry]
            if shared[member] == 0:
                touched[count] = member
                count += 1
            shared[member] += 1
            entry = postings.next[entry]
    return count


@kernel
def _is_copy(sample, other, stretch, column):
    """Return whether a sampled document and one of the stretch have the same content."""
    return (
        sample.content[other, 0] == stretch.content[column, 0]
        and sample.content[other, 1] == stretch.content[column, 1]
    )
