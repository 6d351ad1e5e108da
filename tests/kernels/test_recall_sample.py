"""A recall sample finds what a comparison of all with all finds."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.features.described import Lists
from neardup.kernels import recall_sample as kernel
from neardup.kernels.sieve import make_postings
from neardup.kernels.sorted_sets import Sets
from neardup.verify.nearest import NearestDocuments
from reference.sets import jaccard

SETS = st.sets(st.one_of(st.integers(0, 9), st.integers(2**64 - 4, 2**64 - 1)), max_size=8)
DOCUMENTS = st.lists(st.tuples(SETS, st.integers(0, 1)), min_size=1, max_size=10)


@given(DOCUMENTS, st.data(), st.sampled_from([0.3, 0.5, 2 / 3, 0.8, 1.0]), st.integers(1, 10))
@example([({0}, 0), ({0}, 0), ({0}, 1)], None, 1.0, 10)
def test_found_and_true_pairs_are_those_of_all_comparisons(
    documents, data, threshold, stretch_size
):
    sets = [document for document, _ in documents]
    # The same set may be two contents (another order of its shingles), never the other way round.
    contents = [(hash(frozenset(one)) & 0xFFFF, variant) for one, variant in documents]
    keys = [[min(one, default=-1) & 0xFF, len(one)] for one in sets]
    featured = [i for i, one in enumerate(sets) if one]
    sampled = (
        featured if data is None else sorted(data.draw(st.sets(st.sampled_from(featured or [0]))))
    )
    sampled = [number for number in sampled if sets[number]]
    counts = compare_all(sets, contents, keys, sampled, threshold, stretch_size)
    for place, number in enumerate(sampled):
        partners = [
            other
            for other in range(len(sets))
            if contents[other] != contents[number]
            and jaccard(sets[number], sets[other]) >= threshold
        ]
        shared = [
            other
            for other in partners
            if any(a == b for a, b in zip(keys[number], keys[other], strict=True))
        ]
        assert counts.true[place] == len(partners)
        assert counts.found[place] == len(shared)


def compare_all(sets, contents, keys, sampled, threshold, stretch_size) -> kernel.Counts:
    """Compare stretch by stretch."""
    sizes = np.array([len(one) for one in sets], np.uint32)
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)
    hashes = np.array([value for one in sets for value in sorted(one)], np.uint64)
    content = np.array(contents, np.uint64)
    columns = np.array(keys, np.uint64).T.copy()
    samples = np.array(sampled, np.int64)
    postings = make_postings(int(sizes[samples].sum()), int(sizes[samples].sum()))
    kernel.fill(postings, hashes, starts[samples], sizes[samples])
    sample = kernel.Sample(
        samples, sizes[samples], content[samples], np.ascontiguousarray(columns[:, samples])
    )
    counts = kernel.Counts(np.zeros(len(samples), np.int64), np.zeros(len(samples), np.int64))
    for first in range(0, len(sets), stretch_size):
        part = slice(first, first + stretch_size)
        stretch = kernel.Stretch(first, content[part], np.ascontiguousarray(columns[:, part]))
        kernel.compare(postings, sample, stretch, Sets(hashes, starts, sizes), threshold, counts)
    return counts


@given(DOCUMENTS, st.data(), st.integers(1, 10))
def test_the_nearest_document_is_that_of_all_comparisons(documents, data, stretch_size):
    sets = [sorted(document) for document, _ in documents]
    sampled = sorted(data.draw(st.sets(st.sampled_from(range(len(sets))), min_size=1)))
    nearest = NearestDocuments(lists_of([sets[number] for number in sampled]))
    for first in range(0, len(sets), stretch_size):
        part = sets[first : first + stretch_size]
        nearest.compare(np.arange(first, first + len(part)), lists_of(part))
    for place, number in enumerate(sampled):
        similarities = [jaccard(set(sets[number]), set(other)) for other in sets]
        best = max(similarities)
        assert nearest.similarity[place] == best
        # Of equally similar ones the first; a document that shares nothing is none.
        assert nearest.documents[place] == (similarities.index(best) if best else -1)


def lists_of(sets) -> Lists:
    offsets = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    return Lists(np.array([value for one in sets for value in one], np.uint64), offsets)
