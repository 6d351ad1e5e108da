"""The sieve as DESIGN.md, section 2, states it: the oracle that every engine must equal.

Documents stand in priority order here: their numbers are their positions. Whom a document is compared with is
an `Index`: kept documents are listed under keys, and a candidate is listed under enough of a document's own.
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
    asks : keys it looks under; listed : keys it is listed under once kept; needed : hits that make a candidate.
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
    max_bucket: int = 1000
    num_against: int = 0


class Pair(NamedTuple):
    """A pair at or above the threshold; `left` comes first."""

    left: int
    right: int
    similarity: float
    exact: bool


class Decisions(NamedTuple):
    """removals : by removed document, the pair that removed it. pairs : all that were confirmed."""

    removals: dict[int, Pair]
    pairs: list[Pair]


class Index:
    """Lists of documents under keys, none longer than `max_bucket`."""

    def __init__(self, max_bucket: int) -> None:
        self.max_bucket = max_bucket
        self.lists: dict[Hashable, list[int]] = {}

    def add(self, number: int, document: Document) -> None:
        """List a document under its keys, where there is room."""
        for key in document.listed:
            members = self.lists.setdefault(key, [])
            if len(members) < self.max_bucket:
                members.append(number)

    def candidates(self, document: Document) -> list[int]:
        """Return the documents listed under enough of the keys, rising."""
        hits: dict[int, int] = {}
        for key in document.asks:
            for member in self.lists.get(key, []):
                hits[member] = hits.get(member, 0) + 1
        return sorted(member for member, count in hits.items() if count >= document.needed)


def sieve(documents: Sequence[Document], rules: Rules) -> Decisions:
    """Let the documents pass in order; a kept one removes what is measured at least `threshold` similar to it."""
    index = Index(rules.max_bucket)
    kept_texts: dict[tuple[str, ...], int] = {}
    removals: dict[int, Pair] = {}
    pairs: list[Pair] = []
    for number, document in enumerate(documents):
        if not document.shingles:
            continue  # kept, and never compared
        copy_of = kept_texts.get(document.tokens)
        if copy_of is not None:  # exact copies of what is kept collapse first
            if number >= rules.num_against:
                removals[number] = Pair(copy_of, number, 1.0, True)
                pairs.append(removals[number])
            continue
        if number >= rules.num_against:
            confirmed = confirm(number, index.candidates(document), documents, rules)
            pairs += confirmed
            if confirmed:
                removals[number] = max(confirmed, key=lambda pair: (pair.similarity, -pair.left))
                continue
        kept_texts[document.tokens] = number
        index.add(number, document)
    return Decisions(removals, pairs)


def find_pairs(documents: Sequence[Document], rules: Rules) -> list[Pair]:
    """Return all pairs of candidates at or above the threshold, copies too."""
    index = Index(rules.max_bucket)
    pairs: list[Pair] = []
    for number, document in enumerate(documents):
        if document.shingles:
            pairs += confirm(number, index.candidates(document), documents, rules)
            index.add(number, document)
    return pairs


def connected(documents: Sequence[Document], rules: Rules) -> dict[int, Pair]:
    """Return, for each new document that is not the first of its chain of resemblances, its pair with the first.

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
        left, document = documents[first[number]], documents[number]
        if first[number] != number:
            exact = left.tokens == document.tokens
            removals[number] = Pair(first[number], number, measure(document, left, rules), exact)
    return removals


def confirm(number: int, candidates: Sequence[int], documents: Sequence[Document], rules: Rules) -> list[Pair]:
    """Return the candidates that are similar enough."""
    pairs = []
    for other in candidates:
        similarity = measure(documents[number], documents[other], rules)
        if similarity >= rules.threshold:
            pairs.append(Pair(other, number, similarity, documents[other].tokens == documents[number].tokens))
    return pairs


def measure(document: Document, other: Document, rules: Rules) -> float:
    """Return how similar a document is to an earlier one."""
    return MEASURES[rules.similarity](document.shingles, other.shingles)


def count_full_buckets(documents: Sequence[Document], rules: Rules) -> int:
    """Return how many documents met a list that had no room for all of its bucket's originals."""
    bucket_sizes: dict[Hashable, int] = {}
    seen: set[tuple[str, ...]] = set()
    for document in documents:
        if document.shingles and document.tokens not in seen:
            seen.add(document.tokens)
            for key in document.asks:
                bucket_sizes[key] = bucket_sizes.get(key, 0) + 1
    index = Index(rules.max_bucket)
    removals = sieve(documents, rules).removals
    kept_texts: set[tuple[str, ...]] = set()
    count = 0
    for number, document in enumerate(documents):
        if not document.shingles or document.tokens in kept_texts:
            continue
        count += any(
            len(index.lists.get(key, [])) >= rules.max_bucket and bucket_sizes[key] > rules.max_bucket
            for key in document.asks
        )
        if number not in removals:
            kept_texts.add(document.tokens)
            index.add(number, document)
    return count
