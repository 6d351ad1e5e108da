"""The sieve over measured pairs, compared with a plain loop over positions."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.decide.rule import Found
from neardup.decide.sieve import Sieve, sift_distinct
from reference.found import found_of

SEEDS = range(40)


def expected(found: Found) -> tuple[list[int], dict[int, tuple[int, float]], list[tuple[int, int]]]:
    """Return the kept positions, the remover and the similarity of the others, and the pairs that
    are listed, by right and then by left position.
    """
    firsts = found.queue.representative.tolist()
    pairs = found.confirmed
    similarity = {
        frozenset(pair): value
        for *pair, value in zip(
            pairs.left.tolist(),
            pairs.right.tolist(),
            pairs.measured["similarity"].tolist(),
            strict=True,
        )
    }
    kept: list[int] = []
    removers: dict[int, tuple[int, float]] = {}
    listed: list[tuple[int, int]] = []
    for position, first in enumerate(firsts):
        if position < found.queue.num_against:
            kept.append(position)
            continue
        if first < position and first in kept:
            removers[position] = (first, 1.0)
            listed.append((first, position))
            continue
        # Copies of the earlier collection are as similar as the first, which comes before them.
        near = [other for other in kept if firsts[other] == other]
        near = [other for other in near if frozenset((other, first)) in similarity]
        listed += [(other, position) for other in near]
        if near:
            best = max(near, key=lambda other: (similarity[frozenset((other, first))], -other))
            removers[position] = (best, similarity[frozenset((best, first))])
        else:
            kept.append(position)
    return kept, removers, listed


@pytest.mark.parametrize("seed", SEEDS)
def test_a_kept_document_removes_the_later_ones_that_are_similar_to_it(seed):
    found = found_of(seed)
    order = found.queue.order.tolist()
    _, removers, listed = expected(found)
    decision = Sieve(keeps_pairs=True).decide(found)
    removals = decision.removals
    rows = zip(
        removals.documents.tolist(),
        removals.kept.tolist(),
        removals.measured["similarity"].tolist(),
        strict=True,
    )
    assert list(rows) == sorted(
        (order[position], order[remover], value) for position, (remover, value) in removers.items()
    )
    assert list(zip(decision.left.tolist(), decision.right.tolist(), strict=True)) == listed


@pytest.mark.parametrize("seed", SEEDS)
def test_kept_documents_that_full_buckets_hid_others_from_are_counted(seed):
    found = found_of(seed)
    kept, _, _ = expected(found)
    new = [position for position in kept if position >= found.queue.num_against]
    hidden = found.confirmed.left_out.tolist()
    assert Sieve(keeps_pairs=True).decide(found).num_hidden == sum(hidden[each] for each in new)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_pair_that_removed_a_document_is_marked(seed):
    found = found_of(seed)
    kept, removers, _ = expected(found)
    sifted = sift_distinct(found)
    assert np.flatnonzero(sifted.kept).tolist() == kept
    best = zip(sifted.left[sifted.best].tolist(), sifted.right[sifted.best].tolist(), strict=True)
    assert {right: left for left, right in best} == {
        position: remover for position, (remover, _) in removers.items()
    }


def test_the_made_up_cases_have_what_the_sieve_distinguishes():
    every = [found_of(seed) for seed in SEEDS]
    copies = [
        position
        for found in every
        for position, (remover, value) in expected(found)[1].items()
        if found.queue.representative[position] < position and value < 1
    ]
    assert len(copies) > 3  # copies of a removed document, which is compared for them
    assert any(len(expected(found)[2]) > len(expected(found)[1]) for found in every)
