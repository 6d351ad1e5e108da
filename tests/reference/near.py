"""The sieve by Hamming distance, as DESIGN.md, section 2, states it: every fingerprint is held
against every other.

Documents stand in priority order here: their numbers are their positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reference import clusters
from reference.hamming import distance
from reference.sets import jaccard


class Document(NamedTuple):
    """One document. tokens : equal for exact copies. features : its set; none when it has none."""

    tokens: tuple[str, ...]
    features: frozenset
    fingerprint: int


class Rules(NamedTuple):
    """The settings. threshold : of the Jaccard similarity, or None where the distance alone
    decides.

    max_bucket_size : documents that one fingerprint lists. num_against : so many, the first, are
    kept whatever they resemble.
    """

    max_distance: int
    threshold: float | None = None
    max_bucket_size: int = 1000
    num_against: int = 0


class Pair(NamedTuple):
    """A pair of duplicates; `left` comes first. similarity : None where the distance alone
    decides.
    """

    left: int
    right: int
    distance: int
    similarity: float | None
    exact: bool


class Decisions(NamedTuple):
    """removals : by removed document, the pair that removed it. pairs : all that were confirmed.

    collisions : pairs of near fingerprints below the threshold. full : kept documents that met a
    list that leaves some out.
    """

    removals: dict[int, Pair]
    pairs: list[Pair]
    collisions: int
    full: int


class Lists:
    """The documents of each fingerprint: the earliest `max_bucket_size` are listed, whether they
    are kept or not.
    """

    def __init__(self, max_bucket_size: int) -> None:
        self.max_bucket_size = max_bucket_size
        self.members: dict[int, list[int]] = {}

    def add(self, number: int, fingerprint: int) -> None:
        """Make a document a member."""
        self.members.setdefault(fingerprint, []).append(number)

    def near(self, fingerprint: int, max_distance: int) -> tuple[list[int], bool]:
        """Return the documents listed within a distance, rising, and whether a list of them leaves
        some out.
        """
        lists = [
            members
            for value, members in self.members.items()
            if distance(value, fingerprint) <= max_distance
        ]
        listed = sorted(number for members in lists for number in members[: self.max_bucket_size])
        return listed, any(len(members) > self.max_bucket_size for members in lists)


def sieve(documents: Sequence[Document], rules: Rules) -> Decisions:
    """Let the documents pass in order; a kept one removes what is within `max_distance` of it, and
    alike enough.
    """
    # Where the distance alone decides, documents of one fingerprint are equally far from all: the
    # earliest stands for them.
    lists = Lists(rules.max_bucket_size if rules.threshold is not None else 1)
    first_of_text: dict[tuple[str, ...], int] = {}
    removals: dict[int, Pair] = {}
    pairs: list[Pair] = []
    collisions = full = 0
    for number, document in enumerate(documents):
        if not document.features:
            continue  # kept, and never compared
        first = first_of_text.setdefault(document.tokens, number)
        if first != number and first not in removals:  # exact copies of what is kept collapse first
            if number >= rules.num_against:
                removals[number] = _pair(first, number, documents, rules)
                pairs.append(removals[number])
            continue
        if number >= rules.num_against:
            listed, left_out = lists.near(document.fingerprint, rules.max_distance)
            candidates = [one for one in listed if one not in removals]
            confirmed = confirm(number, candidates, documents, rules)
            full += left_out and rules.threshold is not None and not confirmed
            collisions += len(candidates) - len(confirmed)
            pairs += confirmed
            if confirmed:
                removals[number] = min(confirmed, key=lambda pair: _unlikeness(pair, rules))
        if first == number:
            lists.add(number, document.fingerprint)
    return Decisions(removals, pairs, collisions, full)


def find_pairs(documents: Sequence[Document], rules: Rules) -> list[Pair]:
    """Return all pairs within the distance and alike enough, copies too."""
    lists = Lists(rules.max_bucket_size)
    pairs: list[Pair] = []
    for number, document in enumerate(documents):
        if document.features:
            candidates, _ = lists.near(document.fingerprint, rules.max_distance)
            pairs += confirm(number, candidates, documents, rules)
            lists.add(number, document.fingerprint)
    return pairs


def connected(documents: Sequence[Document], rules: Rules) -> dict[int, Pair]:
    """Return, for each new document that is not the first of its chain of resemblances, its pair
    with the first.
    """
    links = [(pair.left, pair.right) for pair in find_pairs(documents, rules)]
    first_copy: dict[tuple[str, ...], int] = {}
    for number, document in enumerate(documents):
        if document.features:
            links.append((first_copy.setdefault(document.tokens, number), number))
    first = clusters.first_members(len(documents), links)
    return {
        number: _pair(first[number], number, documents, rules)
        for number in range(rules.num_against, len(documents))
        if first[number] != number
    }


def confirm(
    number: int, candidates: Sequence[int], documents: Sequence[Document], rules: Rules
) -> list[Pair]:
    """Return the candidates that are alike enough."""
    pairs = [_pair(other, number, documents, rules) for other in candidates]
    return [
        pair
        for pair in pairs
        if pair.similarity is None or pair.similarity >= (rules.threshold or 0)
    ]


def _pair(left: int, right: int, documents: Sequence[Document], rules: Rules) -> Pair:
    one = documents[left]
    other = documents[right]
    similarity = None if rules.threshold is None else jaccard(other.features, one.features)
    return Pair(
        left,
        right,
        distance(one.fingerprint, other.fingerprint),
        similarity,
        one.tokens == other.tokens,
    )


def _unlikeness(pair: Pair, rules: Rules) -> tuple[float, int]:
    """Return what is least for the pair that removes: the most alike, ties to the earlier."""
    return (pair.distance if rules.threshold is None else -(pair.similarity or 0), pair.left)
