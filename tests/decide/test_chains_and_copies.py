"""Chains and the copies that stay of them, compared with plain loops over positions."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import neardup
from neardup.decide.chains import Chains
from neardup.decide.copies import Copies
from neardup.decide.rule import Decision, Found
from neardup.decide.sieve import Sieve
from neardup.errors import SettingError
from neardup.methods.registry import method_of
from reference.clusters import first_members
from reference.found import found_of, similarity

SEEDS = range(40)


def clusters_of(found: Found) -> list[int]:
    """Return by position the first member of its cluster."""
    pairs = zip(found.confirmed.left.tolist(), found.confirmed.right.tolist(), strict=True)
    copies = enumerate(found.queue.representative.tolist())
    return first_members(len(found.queue.order), [*pairs, *copies])


def removals_of(decision: Decision) -> list[tuple[int, int, int, float]]:
    removals = decision.removals
    columns = [removals.documents, removals.kept, removals.clusters]
    return list(
        zip(
            *(column.tolist() for column in [*columns, removals.measured["similarity"]]),
            strict=True,
        )
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_all_but_the_first_new_documents_of_a_chain_are_removed(seed):
    found = found_of(seed)
    order = found.queue.order.tolist()
    expected = []
    for position, first in enumerate(clusters_of(found)):
        if position != first and position >= found.queue.num_against:
            kept, removed = order[first], order[position]
            expected.append((removed, kept, kept, similarity(kept, removed)))
    decision = Chains().decide(found)
    assert removals_of(decision) == sorted(expected)
    assert decision.cluster_sizes is None
    assert decision.left is found.confirmed.left
    assert decision.right is found.confirmed.right


@pytest.mark.parametrize("seed", SEEDS)
def test_documents_of_another_chain_that_full_buckets_hid_are_counted(seed):
    found = found_of(seed)
    first = clusters_of(found)
    hidden = set()
    for unlisted, positions in found.unlisted():
        for earlier, position in zip(unlisted.tolist(), positions.tolist(), strict=True):
            if earlier < position and first[earlier] != first[position]:
                hidden.add(position)
    expected = len(hidden) if found.confirmed.left_out.any() else 0
    assert Chains().decide(found).num_hidden == expected


def families(found: Found) -> list[list[int]]:
    """Return the documents of each chain with a removed document, by position: the kept one, then
    the removed ones.
    """
    order = found.queue.order.tolist()
    first = clusters_of(found)
    members = defaultdict(list)
    for position in range(found.queue.num_against, len(order)):
        if first[position] != position:
            members[first[position]].append(order[position])
    return [[order[position], *removed] for position, removed in members.items()]


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_copies_of_a_chain_stay(seed, copies):
    found = found_of(seed)
    expected = [
        (removed, family[0], family[0], similarity(family[0], removed))
        for family in families(found)
        for removed in family[copies:]
    ]
    decision = Copies(Chains(), copies).decide(found)
    assert removals_of(decision) == sorted(expected)
    assert sorted(decision.cluster_sizes.tolist()) == sorted(map(len, families(found)))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_document_of_a_chain_stays_but_those_of_the_earlier_collection(seed):
    found = found_of(seed)
    expected = []
    for kept, *removed in families(found):
        expected += [(each, kept, kept, similarity(kept, each)) for each in removed]
        if kept >= found.queue.num_against:
            expected.append((kept, removed[0], kept, similarity(kept, removed[0])))
    decision = Copies(Chains(), 0).decide(found)
    assert removals_of(decision) == sorted(expected)
    assert sorted(decision.cluster_sizes.tolist()) == sorted(map(len, families(found)))


def test_the_made_up_cases_have_what_the_rules_distinguish():
    every = [found_of(seed) for seed in SEEDS]
    assert any(len(family) > 3 for found in every for family in families(found))
    assert any(found.queue.num_against > family[0] for found in every for family in families(found))
    assert any((np.diff(found.queue.order.astype(int)) < 0).any() for found in every)
    assert any(Chains().decide(found).num_hidden for found in every)


@pytest.mark.parametrize(
    ("rule", "option"),
    [
        (Copies(Sieve(), 0), "keep='none'"),
        (Copies(Sieve(keeps_pairs=True), 0), "keep='none'"),
        (Copies(Sieve(keeps_pairs=True), 2), "rethreshold=True"),
    ],
    ids=["none", "none again", "two again"],
)
def test_rules_that_compare_in_both_directions_refuse_containment(rule, option):
    method: Any = method_of(neardup.MinHash(similarity="containment"))
    with pytest.raises(SettingError, match=f"{option} compares documents in both directions"):
        rule.refuse(method)


@pytest.mark.parametrize("rule", [Copies(Sieve(), 2), Sieve()], ids=["two", "sieve"])
def test_rules_that_compare_in_one_direction_take_containment(rule):
    method: Any = method_of(neardup.MinHash(similarity="containment"))
    rule.refuse(method)


@pytest.mark.parametrize("copies", [0, 2])
@pytest.mark.parametrize("rule", [Chains(), Sieve(keeps_pairs=True)], ids=["chains", "sieve"])
def test_copies_need_what_their_rule_needs(rule, copies):
    outer = Copies(rule, copies)
    assert (outer.pairs, outer.compares_more) == (rule.pairs, rule.compares_more)
    assert (outer.options, outer.reorders) == (rule.options, rule.reorders)
