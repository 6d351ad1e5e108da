"""Describe the two grades of a sweep: how many documents each removes, with pairs on both sides of
its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from neardup.arrays import Floats, Ints, Mask, arrow_of_strings
from neardup.features.described import Lists
from neardup.features.shingles import extract_text, shingle_documents
from neardup.report.items import MarkedPair, Marker
from neardup.settings.methods import MinHash
from neardup.settings.run import GradeName
from neardup.suggestion import Differences, Grade, Grades, SweepPair
from neardup.verify.asking import Sample
from neardup.verify.differences import Kind, Marked, kind_of_difference
from neardup.verify.measured import similarity_of_lists

_CLOSE = 3  # pairs on each side of a line
_COMPARED = 100  # pairs of a grade, to name their differences
_SEED = 20261128


class Drawn(NamedTuple):
    """A pair of the pool.

    documents : their numbers, the earlier first. similarity : as searched.
    """

    documents: tuple[int, int]
    ids: tuple[str, str]
    similarity: float


class ComparedPool(NamedTuple):
    """The pairs of a pool with their similarities of several lengths and their texts."""

    pairs: Sequence[Drawn]
    sample: Sample
    texts: Mapping[int, str]

    def similarity(self, ngram: int) -> Floats:
        """Return the similarity of each pair by shingles of a length."""
        return np.asarray(self.sample.similarity[self.sample.lengths.index(ngram)])


def compare_pool(
    pairs: Sequence[Drawn],
    weight: Floats,
    texts: Mapping[int, str],
    settings: MinHash,
    lengths: Mapping[int, MinHash],
) -> ComparedPool:
    """Return the pairs of a pool, compared by shingles of each length.

    weight : see Sample. settings : of the search. lengths : the settings of each length, by the
    number of words.
    """
    rows = {document: row for row, document in enumerate(texts)}
    left = np.array([rows[pair.documents[0]] for pair in pairs], np.int64)
    right = np.array([rows[pair.documents[1]] for pair in pairs], np.int64)
    extracted = extract_text(arrow_of_strings(list(texts.values())), settings)
    similarity = np.empty((len(lengths), len(pairs)))
    for row, method in enumerate(lengths.values()):
        shingles = shingle_documents(extracted, method)
        sets = Lists(shingles.hashes, shingles.offsets)
        similarity[row] = similarity_of_lists(sets, sets, left, right, "jaccard")
    sample = Sample(
        lengths=tuple(lengths),
        similarity=similarity,
        weight=weight,
        base=settings.ngram,
    )
    return ComparedPool(pairs, sample, texts)


class Counted(NamedTuple):
    """The settings of a grade, and the number of documents that they remove."""

    method: MinHash
    removed: int


def describe_grades(
    copies: Counted, versions: Counted, pool: ComparedPool | None, settings: MinHash
) -> Grades:
    """Return both grades with their pairs, of a pool if there is one.

    settings : of the search, whose shingles mark the differences.
    """
    if pool is None:
        return Grades(_bare("copies", copies), _bare("versions", versions))
    marker = Marker(pool.texts, settings)
    by_copies = pool.similarity(copies.method.ngram)
    is_found = pool.similarity(versions.method.ngram) >= versions.method.threshold
    is_copy = by_copies >= copies.method.threshold
    return Grades(
        copies=_describe("copies", copies, pool, marker, is_copy & (by_copies < 1)),
        versions=_describe("versions", versions, pool, marker, is_found & ~is_copy),
    )


def _bare(name: GradeName, counted: Counted) -> Grade:
    return Grade(name, counted.method, counted.removed)


def _describe(
    name: GradeName, counted: Counted, pool: ComparedPool, marker: Marker, inside: Mask
) -> Grade:
    """Return a grade with the pairs closest to its line.

    inside : bool by pair, whether its differences are counted.
    """
    similarity = pool.similarity(counted.method.ngram)
    order = np.argsort(similarity, kind="stable")
    first = int(np.searchsorted(similarity[order], counted.method.threshold))

    def shown(row: int) -> SweepPair:
        left_id, right_id = pool.pairs[row].ids
        return SweepPair(
            left_id=left_id,
            right_id=right_id,
            similarity=float(similarity[row]),
            pair=marker.mark(*pool.pairs[row].documents),
        )

    return Grade(
        name=name,
        method=counted.method,
        removed=counted.removed,
        above=list(map(shown, order[first : first + _CLOSE].tolist())),
        below=list(map(shown, order[max(0, first - _CLOSE) : first][::-1].tolist())),
        differences=_differences(pool, marker, np.flatnonzero(inside)),
    )


def _differences(pool: ComparedPool, marker: Marker, rows: Ints) -> Differences | None:
    """Return the differences in pairs of the pool, weighted by the pairs that they stand for."""
    drawn = np.random.default_rng(_SEED).permutation(rows)[:_COMPARED]
    total: dict[Kind, float] = {"names": 0.0, "passages": 0.0, "words": 0.0}
    num_pairs = 0
    for row in drawn.tolist():
        kind = _kind_of(marker.mark(*pool.pairs[row].documents))
        if kind is not None:
            total[kind] += float(pool.sample.weight[row])
            num_pairs += 1
    if not num_pairs:
        return None
    weight = sum(total.values())
    shares = {kind: value / weight for kind, value in total.items()}
    return Differences(pairs=num_pairs, **shares)


def _kind_of(pair: MarkedPair) -> Kind | None:
    """Return the kind of difference that a pair has, if it is one of the named ones."""
    left = Marked(pair.left, pair.left_passages)
    right = Marked(pair.right, pair.right_passages)
    return kind_of_difference(left, right)
