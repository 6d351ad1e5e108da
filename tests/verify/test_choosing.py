"""A threshold is chosen from the graph of pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from neardup.verify import choosing


def graph_at(
    pairs: dict[tuple[int, int], float], threshold: float, num_documents: int
) -> tuple[int, float]:
    """Return the documents with a neighbour at a threshold, and their mean agreement, from sets."""
    near = {document: {document} for document in range(num_documents)}
    for (left, right), similarity in pairs.items():
        if similarity >= threshold:
            near[left].add(right)
            near[right].add(left)
    means = [
        np.mean(
            [
                len(near[one] & near[other]) / len(near[one] | near[other])
                for other in near[one] - {one}
            ]
        )
        for one in near
        if len(near[one]) > 1
    ]
    return len(means), float(np.mean(means))


def columns(pairs: dict[tuple[int, int], float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    left, right = np.array(list(pairs), np.uint32).T
    return left, right, np.array(list(pairs.values()))


@pytest.mark.parametrize("seed", range(5))
def test_the_graphs_are_those_of_sets_of_neighbours(seed):
    draw = np.random.default_rng(seed)
    pairs = {
        pair: draw.uniform(0.1, 1) for pair in combinations(range(30), 2) if draw.random() < 0.09
    }
    levels = choosing.levels_of(*columns(pairs), 30)
    assert len(levels) > 10
    for level in levels:
        documents, agreement = graph_at(pairs, level.threshold, 30)
        found, higher = (
            sum(s >= level.threshold + more for s in pairs.values()) for more in (0, 0.05)
        )
        assert (level.pairs, level.documents) == (found, documents)
        assert level.agreement == pytest.approx(agreement)
        assert level.stability == pytest.approx(higher / found)


def test_graphs_are_at_steps_from_01_to_09_the_highest_to_see_what_remains_of_the_one_below():
    copies = dict.fromkeys(combinations(range(6), 2), 1.0)
    levels = choosing.levels_of(*columns(copies), 100)
    assert [level.threshold for level in levels] == pytest.approx(np.arange(2, 18) / 20)


def test_no_pairs_have_no_graph():
    none = np.empty(0, np.uint32)
    assert choosing.levels_of(none, none, np.empty(0), 100) == []


def test_complete_groups_agree_and_a_chain_does_not():
    group = dict.fromkeys(combinations(range(6), 2), 0.5)
    assert {level.agreement for level in choosing.levels_of(*columns(group), 100)} == {1.0}
    chain = {(i, i + 1): 0.5 for i in range(5)}
    assert max(level.agreement for level in choosing.levels_of(*columns(chain), 100)) < 0.7


def test_a_threshold_with_more_than_a_tenth_of_all_pairs_is_left_out():
    pairs = dict.fromkeys(combinations(range(10), 2), 0.3) | {(0, 1): 0.6}
    assert next(
        level.threshold for level in choosing.levels_of(*columns(pairs), 10)
    ) == pytest.approx(0.35)
    assert choosing.levels_of(*columns(dict.fromkeys(pairs, 0.9)), 10) == []


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        ({"documents": 29}, "29 documents have a neighbour, and fewer than 30 show no pattern"),
        ({"agreement": 0.94}, "94.0 % of their neighbours in common, below 95 %"),
        ({"stability": 0.89}, "89.0 % of the pairs remain at 0.55, fewer than 90 %"),
        ({}, None),
    ],
)
def test_a_threshold_is_suggested_within_three_limits(change, doubt):
    level = choosing.Level(0.5, 100, 30, 0.95, 0.90)._replace(**change)
    found = level.doubts([level])
    assert found is None if doubt is None else doubt in found


@pytest.mark.parametrize(
    ("change", "quiet"),
    [
        ({}, True),
        ({"documents": 80}, False),  # a fifth of the documents less, and not more
        ({"stability": 0.95}, False),  # 71.3 is less than four fifths of the score, 90.4
    ],
)
def test_nothing_is_suggested_if_a_stricter_graph_is_nearly_as_good_without_a_fifth_of_the_documents(  # noqa: E501
    change, quiet
):
    chosen = choosing.Level(0.5, 100, 100, 0.98, 0.97)
    rival = choosing.Level(0.7, 60, 79, 1.0, 1.0)._replace(**change)
    assert (chosen.doubts([chosen, rival]) is not None) == quiet


def test_of_several_rivals_the_best_is_named():
    chosen = choosing.Level(0.5, 100, 100, 0.98, 0.97)
    rivals = [choosing.Level(0.7, 60, 79, 1.0, 1.0), choosing.Level(0.8, 50, 75, 1.0, 1.0)]
    assert chosen.doubts([chosen, *rivals]) == (
        "the groups at 0.7 are clearer, without 21.0 % of these documents, more than 20 %: there "
        "is a second grade of similarity"
    )
