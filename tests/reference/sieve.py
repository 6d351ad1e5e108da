"""The sieve as DESIGN.md, section 2, states it: the oracle that every engine must equal.

Documents stand in priority order here: their numbers are their positions. Whom a document is
compared with is an `Index`: documents are listed under keys, and a candidate is a kept one listed
under enough of a document's own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from reference import clusters
from reference.sets import containment, cosine, jaccard

MEASURES: dict[str, Callable] = {"jaccard": jaccard, "containment": containment, "cosine": cosine}


class Document(NamedTuple):
    """One document: what it says, its set, and how it is looked up.

    tokens : equal for exact copies. shingles : its set; none when it has no features.
    asks : keys it looks under; listed : keys it is listed under once kept; needed : hits that make
    a candidate.
    """

    tokens: tuple[str, ...]
    shingles: frozenset
    asks: tuple[Hashable, ...]
    listed: tuple[Hashable, ...]
    needed: int = 1


class Rules(NamedTuple):
    """The settings. num_against : so many documents, the first, are kept whatever they resemble."""

    threshold: float
    similarity: str = "jaccard"
    max_bucket_size: int = 1000
    num_against: int = 0


class Pair(NamedTuple):
    """A pair at or above the threshold; `left` comes first."""

    left: int
    right: int
    similarity: float
    exact: bool


class Decisions(NamedTuple):
    """removals : by removed document, the pair that removed it. pairs : all that were confirmed.
    left_out : documents that are kept and have earlier ones in a bucket that does not list them.
    """

    removals: dict[int, Pair]
    pairs: list[Pair]
    left_out: int


class Index:
    """The documents under each key: the earliest `max_bucket_size` are listed, whether they are
    kept or not.
    """

    def __init__(self, max_bucket_size: int) -> None:
        self.max_bucket_size = max_bucket_size
        self.members: dict[Hashable, list[int]] = {}

    def add(self, number: int, document: Document) -> None:
        """Make a document a member of its buckets."""
        for key in document.listed:
            self.members.setdefault(key, []).append(number)

    def candidates(self, document: Document) -> list[int]:
        """Return the documents listed under enough of the keys, rising."""
        hits: dict[int, int] = {}
        for key in document.asks:
            for member in self.members.get(key, [])[: self.max_bucket_size]:
                hits[member] = hits.get(member, 0) + 1
        return sorted(member for member, count in hits.items() if count >= document.needed)

    def leaves_out(self, document: Document) -> bool:
        """Return whether one of a document's buckets has members that it does not list."""
        return any(len(self.members.get(key, [])) > self.max_bucket_size for key in document.asks)


def sieve(documents: Sequence[Document], rules: Rules) -> Decisions:
    """Let the documents pass in order; a kept one removes what is measured at least `threshold`
    similar to it.
    """
    index = Index(rules.max_bucket_size)
    first_of_text: dict[tuple[str, ...], int] = {}
    removals: dict[int, Pair] = {}
    pairs: list[Pair] = []
    left_out = 0
    for number, document in enumerate(documents):
        if not document.shingles:
            continue  # kept, and never compared
        first = first_of_text.setdefault(document.tokens, number)
        if first != number and first not in removals:  # exact copies of what is kept collapse first
            if number >= rules.num_against:
                removals[number] = Pair(first, number, 1.0, True)
                pairs.append(removals[number])
            continue
        if number >= rules.num_against:
            candidates = [one for one in index.candidates(document) if one not in removals]
            confirmed = confirm(number, candidates, documents, rules)
            pairs += confirmed
            if confirmed:
                removals[number] = max(confirmed, key=lambda pair: (pair.similarity, -pair.left))
            left_out += not confirmed and index.leaves_out(document)
        if first == number:
            index.add(number, document)
    return Decisions(removals, pairs, left_out)


def find_pairs(documents: Sequence[Document], rules: Rules) -> list[Pair]:
    """Return all pairs of candidates at or above the threshold, copies too."""
    index = Index(rules.max_bucket_size)
    pairs: list[Pair] = []
    for number, document in enumerate(documents):
        if document.shingles:
            pairs += confirm(number, index.candidates(document), documents, rules)
            index.add(number, document)
    return pairs


def connected(documents: Sequence[Document], rules: Rules) -> dict[int, Pair]:
    """Return, for each new document that is not the first of its chain of resemblances, its pair
    with the first.

    Documents of the earlier corpus are links of chains like all others; copies are of one cluster.
    """
    links = [(pair.left, pair.right) for pair in find_pairs(documents, rules)]
    first_copy: dict[tuple[str, ...], int] = {}
    for number, document in enumerate(documents):
        if document.shingles:
            links.append((first_copy.setdefault(document.tokens, number), number))
    first = clusters.first_members(len(documents), links)
    removals = {}
    for number in range(rules.num_against, len(documents)):
        left = documents[first[number]]
        document = documents[number]
        if first[number] != number:
            exact = left.tokens == document.tokens
            removals[number] = Pair(first[number], number, measure(document, left, rules), exact)
    return removals


def confirm(
    number: int, candidates: Sequence[int], documents: Sequence[Document], rules: Rules
) -> list[Pair]:
    """Return the candidates that are similar enough."""
    pairs = []
    for other in candidates:
        similarity = measure(documents[number], documents[other], rules)
        if similarity >= rules.threshold:
            pairs.append(
                Pair(other, number, similarity, documents[other].tokens == documents[number].tokens)
            )
    return pairs


def measure(document: Document, other: Document, rules: Rules) -> float:
    """Return how similar a document is to an earlier one."""
    return MEASURES[rules.similarity](document.shingles, other.shingles)
