"""The order of documents, the choice of a rule, and the parts that all rules share."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.decide.chains import Chains
from neardup.decide.copies import Copies
from neardup.decide.groups import ByGroup
from neardup.decide.outcome import Removals
from neardup.decide.priority import SortKey, priority_order, rank_columns, sort_keys
from neardup.decide.rule import Decision, Found, Rule
from neardup.decide.rules import Every, rule_of
from neardup.decide.sieve import Sieve
from neardup.settings.run import GroupSettings, SelectionSettings
from neardup.verify.measured import Measured
from reference.found import found_of

KEYS = ["first", "last", "longest", "shortest", "source", "max:stars", "min:stars", "max:age"]
NUMBERS = st.sampled_from([0.0, 1.0, 2.5, math.nan])


@given(
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True),
    st.sampled_from(["", ":2"]),
    st.lists(st.tuples(st.integers(0, 2), NUMBERS, NUMBERS, NUMBERS), max_size=9),
    st.integers(0, 9),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_documents_are_in_the_order_of_plain_keys(words, copies, rows, num_against, cuts):
    num_against = min(num_against, len(rows))
    part_ends = [*sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    columns = {"stars": (1, 2), "age": (3, 3)}  # each has a double and the rest

    def rank(document: int) -> list[float]:
        """Return the keys of a document; nan comes last in both directions."""
        keys: list[float] = []
        for word in words:
            name, _, column = word.partition(":")
            if column:
                for value in (rows[document][place] for place in columns[column]):
                    signed = -value if name == "max" else value
                    keys += [math.isnan(value), 0.0 if math.isnan(value) else signed]
            else:
                source = next(i for i, end in enumerate(part_ends) if document < end)
                keys.append(
                    {
                        "first": document,
                        "last": -document,
                        "longest": -rows[document][0],
                        "shortest": rows[document][0],
                        "source": source,
                    }[name]
                )
        return keys

    keep = ",".join(words) + copies
    known = list(dict.fromkeys(word[4:] for word in words if ":" in word))
    assert rank_columns(keep) == known
    ranks = [
        np.array([[row[place] for place in columns[name]] for row in rows]).reshape(-1, 2)
        for name in known
    ]
    corpus: Any = SimpleNamespace(
        num_documents=len(rows), num_against=num_against, part_ends=np.array(part_ends)
    )
    lengths = np.array([row[0] for row in rows], np.int64)
    found = priority_order(keep, corpus, lengths, ranks)
    assert found.dtype == np.uint32
    expected = sorted(range(num_against, len(rows)), key=rank)
    assert found.tolist() == [*range(num_against), *expected]


@pytest.mark.parametrize(
    ("keep", "keys"),
    [
        ("first", []),
        ("last", [SortKey("position", True, 0)]),
        ("longest,last:2", [SortKey("length", True, 0), SortKey("position", True, 0)]),
        ("shortest,first,source", [SortKey("length", False, 0)]),
        ("last,source", [SortKey("position", True, 0)]),
        ("source,min:age", [SortKey("source", False, 0), SortKey("column", False, 0)]),
        (
            "max:a,min:b,min:a",
            [SortKey("column", True, 0), SortKey("column", False, 1), SortKey("column", False, 0)],
        ),
        ("none", []),
    ],
)
def test_keys_end_where_no_two_documents_are_equal(keep, keys):
    assert sort_keys(keep) == keys


@pytest.mark.parametrize(
    ("selection", "groups", "expected"),
    [
        ({}, {}, "Sieve"),
        ({"linkage": "connected"}, {}, "Chains"),
        ({"keep": "longest:2"}, {}, "Copies(Sieve, 2)"),
        ({"keep": "none", "linkage": "connected"}, {}, "Copies(Chains, 0)"),
        ({}, {"group_by": "repo", "group_share": 0.25}, "ByGroup(repo, 0.25)"),
    ],
    ids=["sieve", "chains", "two copies", "no copy", "groups"],
)
def test_settings_name_the_rule(selection, groups, expected):
    rule = rule_of(SelectionSettings(**selection), GroupSettings(**groups))
    assert name_of(rule) == expected
    assert rule.pairs == ("sieve" if "Sieve" in expected else "distinct")


def test_a_rule_that_decides_again_needs_the_pairs_of_removed_documents():
    again = rule_of(SelectionSettings(), keeps_pairs=True)
    assert (name_of(again), again.pairs) == ("Sieve", "distinct")
    assert again.options == {"rethreshold": True}
    assert rule_of(SelectionSettings()).options == {"rethreshold": False}


def name_of(rule: Rule) -> str:
    if isinstance(rule, Copies):
        return f"Copies({name_of(rule.rule)}, {rule.copies})"
    if isinstance(rule, ByGroup):
        return f"ByGroup({rule.column}, {rule.share})"
    return type(rule).__name__


@pytest.mark.parametrize("seed", range(20))
def test_pairs_of_distinct_documents_are_those_of_first_contents(seed):
    found = found_of(seed, pairs_of_copies=True)
    firsts = found.queue.representative.tolist()
    expected = [
        (left, right, similarity)
        for left, right, similarity in rows_of(found)
        if firsts[left] == left and firsts[right] == right
    ]
    assert rows_of(found.distinct()) == expected
    assert rows_of(found.in_memory()) == expected


def rows_of(found: Found) -> list[tuple[int, int, float]]:
    pairs = found.confirmed
    columns = [pairs.left, pairs.right, pairs.measured["similarity"]]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_nothing_is_measured_or_looked_up_after_the_decision():
    found = found_of(1).decided()
    assert list(found.unlisted()) == []
    with pytest.raises(RuntimeError, match="No pairs are measured for a rule after it has decided"):
        found.measure(np.zeros(1, np.uint32), np.zeros(1, np.uint32))


class Nothing(Rule):
    """Decide nothing, with the declarations of every rule."""

    def decide(self, found: Found) -> Decision:
        none = np.empty(0, np.uint32)
        measured = Measured({})
        return Decision(
            removals=Removals(none, none, measured), left=none, right=none, measured=measured
        )


def test_a_rule_declares_nothing_unless_it_says_so():
    rule = Nothing()
    assert (rule.pairs, rule.compares_more, rule.counts_values) == ("distinct", False, True)
    assert (rule.tables, rule.both_ways, rule.reorders, rule.options) == ((), None, False, {})
    decision = rule.decide(found_of(1))
    assert (decision.num_hidden, decision.cluster_sizes, decision.tables) == (0, None, ())
    assert (decision.others.tolist(), decision.facts) == ([], {})


@pytest.mark.parametrize(
    ("rule", "reorders"),
    [(Sieve(), False), (Chains(), False), (Every(), False), (ByGroup("repo", 0.5), True)],
    ids=["sieve", "chains", "every", "groups"],
)
def test_groups_alone_change_the_order(rule, reorders):
    assert rule.reorders is reorders
    assert Copies(rule, 2).reorders is reorders
    order = np.array([0, 1, 3, 2, 4], np.uint32)
    values = np.array([7, 7, 7, 8, 8], np.uint64)
    expected = [0, 1, 3, 4, 2] if reorders else [0, 1, 3, 2, 4]
    assert Copies(rule, 2).order(order, 2, values).tolist() == expected
