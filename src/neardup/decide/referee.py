"""The referee: is a document that another tool removed similar to one that it kept?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from neardup.arrays import Floats, Ints, Mask, Positions
from neardup.decide.clusters import first_members
from neardup.decide.outcome import Pairs
from neardup.decide.rule import Decision, Found, Rule
from neardup.decide.sieve import Decisions, decide, decision_of_sieve

VERDICTS = ("kept", "copy", "near", "chain", "group", "alone", "empty")
"""The verdicts about documents, by number.

copy, near : removed, and a kept document has the same tokens, or reaches the threshold. chain :
removed, connected to a kept document by removed ones alone. group : removed, and connected to
removed documents only. alone : removed, and no document is similar. empty : removed, without
features, and not judged.
"""
KEPT, COPY, NEAR, CHAIN, GROUP, ALONE, EMPTY = map(np.uint8, range(len(VERDICTS)))


class Referee(Rule):
    """Decides as the sieve does, over pairs in which the documents that a tool kept come first.

    Buckets list their earliest members: a removed document meets the kept ones before all others.

    Parameters
    ----------
    is_kept : bool (num_documents,), the documents that the tool kept, in input order.
    """

    counts_values = False

    def __init__(self, is_kept: Mask) -> None:
        self._is_kept = is_kept

    def order(self, order: Positions, num_against: int, values: object) -> Positions:
        """Return the kept documents, then the others."""
        is_kept = self._is_kept[order]
        return np.concatenate([order[is_kept], order[~is_kept]])

    def decide(self, found: Found) -> Decision:
        """List the pairs, and remove nothing; `judge` reads them."""
        return decision_of_sieve(found, found.confirmed, found.confirmed.left_out)


@dataclass(frozen=True)
class Judgement:
    """The verdict about each document, in input order.

    verdicts : uint8 (num_documents,), numbers of VERDICTS. keepers : int64, the most similar kept
    document that was found, -1 for none. similarity : float64, of the two. earliest : int64, the
    first kept document that is similar to it, -1 for none. components : int64, the first position
    of the documents that pairs connect. checked : bool, whether a document without a similar kept
    one was compared with all kept ones.
    """

    verdicts: np.ndarray
    keepers: Ints
    similarity: Floats
    earliest: Ints
    components: Ints
    checked: Mask

    def where(self, *verdicts: np.uint8) -> Mask:
        """Return which documents have one of some verdicts."""
        mask: Mask = np.isin(self.verdicts, verdicts)
        return mask

    @cached_property
    def is_unfound(self) -> Mask:
        """The removed documents for which the search found no similar kept one."""
        return self.where(CHAIN, GROUP, ALONE)

    def with_nearest(
        self, documents: Ints, nearest: Ints, similarity: Floats, threshold: float
    ) -> Judgement:
        """Return the judgement with some documents compared with all kept ones.

        documents : int64, unfound documents. nearest, similarity : of each the most similar kept
        document, -1 for none.
        """
        verdicts = self.verdicts.copy()
        keepers = self.keepers.copy()
        similarities = self.similarity.copy()
        earliest = self.earliest.copy()
        checked = self.checked.copy()
        checked[documents] = True
        keepers[documents] = nearest
        similarities[documents] = similarity
        is_missed = similarity >= threshold
        verdicts[documents[is_missed]] = NEAR
        earliest[documents[is_missed]] = nearest[is_missed]
        return Judgement(
            verdicts=verdicts,
            keepers=keepers,
            similarity=similarities,
            earliest=earliest,
            components=self.components,
            checked=checked,
        )


class _Best(NamedTuple):
    """The kept documents that are similar to each position, among the pairs found.

    keepers : int64, the position of the most similar, -1 for none. similarity : float64. earliest :
    int64, the first of them in input order.
    """

    keepers: Ints
    similarity: Floats
    earliest: Ints


def judge(found: Found, is_kept: Mask) -> Judgement:
    """Judge all documents over the pairs that were found in the order of a `Referee`.

    is_kept : bool (num_documents,), in input order.
    """
    queue = found.queue
    order = queue.order.astype(np.int64)
    num_kept = int(np.count_nonzero(is_kept))
    best = _best_kept(found, num_kept)
    components = _connect(found)
    verdicts = _verdicts(found, best, components, num_kept)
    is_sound = np.isin(verdicts, (COPY, NEAR))
    return Judgement(
        verdicts=_by_document(order, verdicts),
        keepers=_by_document(order, np.where(is_sound, order[best.keepers], -1)),
        similarity=_by_document(order, np.where(is_sound, best.similarity, 0.0)),
        earliest=_by_document(order, np.where(is_sound, best.earliest, -1)),
        components=_by_document(order, components),
        checked=np.zeros(len(order), np.bool_),
    )


def _verdicts(found: Found, best: _Best, components: Ints, num_kept: int) -> np.ndarray:
    """Return the verdict about each position."""
    queue = found.queue
    positions = np.arange(len(components))
    sizes = np.bincount(components, minlength=len(components))
    # The kept documents come first, so the first member of a component shows whether it has one.
    conditions = {
        KEPT: positions < num_kept,
        EMPTY: ~queue.featured[queue.order],
        COPY: queue.representative < num_kept,
        NEAR: best.keepers >= 0,
        CHAIN: components < num_kept,
        GROUP: sizes[components] > 1,
    }
    return np.select(list(conditions.values()), list(conditions), ALONE).astype(np.uint8)


def _by_document(order: Ints, values: np.ndarray) -> np.ndarray:
    """Return values by position in the order of the input."""
    result = np.empty_like(values)
    result[order] = values
    return result


def _best_kept(found: Found, num_kept: int) -> _Best:
    """Return the similar kept documents of each position, its copies included."""
    order = found.queue.order.astype(np.int64)
    first = found.queue.representative.astype(np.int64)
    best = _best_of_contents(found, num_kept)
    # Pairs are of the first position with a content; copies have the same ones.
    is_copy = first < num_kept
    return _Best(
        keepers=np.where(is_copy, first, best.keepers[first]),
        similarity=np.where(is_copy, 1.0, best.similarity[first]),
        earliest=np.where(is_copy, order[first], best.earliest[first]),
    )


def _best_of_contents(found: Found, num_kept: int) -> _Best:
    """Return the similar kept documents of the first position with each content."""
    pairs = found.confirmed
    is_between = (pairs.left < num_kept) & (pairs.right >= num_kept)
    left = pairs.left[is_between].astype(np.int64)
    right = pairs.right[is_between].astype(np.int64)
    strength = found.method.strength(pairs.measured)[is_between]
    num_positions = len(found.queue.order)

    keepers = np.full(num_positions, -1, np.int64)
    similarity = np.zeros(num_positions)
    # The last assignment to a position stays: the strongest pair, of equal ones the earliest left.
    by_strength = np.lexsort((-left, strength))
    keepers[right[by_strength]] = left[by_strength]
    similarity[right[by_strength]] = strength[by_strength]
    earliest = np.full(num_positions, num_positions, np.int64)
    np.minimum.at(earliest, right, found.queue.order[left].astype(np.int64))
    return _Best(keepers, similarity, earliest)


def _connect(found: Found) -> Ints:
    """Return by position the first position that pairs and copies connect it to."""
    representative = found.queue.representative
    positions = np.arange(len(representative), dtype=np.uint32)
    left = np.append(representative, found.confirmed.left)
    right = np.append(positions, found.confirmed.right)
    return first_members(len(positions), left, right).astype(np.int64)


class Remaining(NamedTuple):
    """Duplicates among the kept documents.

    documents : int64, the kept documents that a sieve among them would remove. num_copies : the
    copies among these. pairs : the pairs of documents, without copies.
    """

    documents: Ints
    num_copies: int
    pairs: Pairs


def remaining_duplicates(found: Found, is_kept: Mask) -> Remaining:
    """Return the duplicates among the kept documents."""
    pairs = found.confirmed
    order = found.queue.order
    num_kept = int(np.count_nonzero(is_kept))
    # `left` is the earlier position, and kept documents come first.
    rows = np.flatnonzero(pairs.right < num_kept)
    measured = pairs.measured.take(rows)
    first = found.queue.representative[:num_kept]
    decided = decide(
        pairs.left[rows],
        pairs.right[rows],
        found.method.strength(measured),
        first,
    )
    is_copy = first != np.arange(num_kept)
    removed = ~_kept_contents(decided, first)
    return Remaining(
        documents=np.sort(order[:num_kept][removed].astype(np.int64)),
        num_copies=int(np.count_nonzero(is_copy)),
        pairs=Pairs(
            left=order[pairs.left[rows]],
            right=order[pairs.right[rows]],
            measured=measured,
        ),
    )


def _kept_contents(decided: Decisions, first: Positions) -> Mask:
    """Return the positions that a sieve keeps: the first of each content that it keeps.

    A copy of a removed document is similar to the same kept document, which comes before both.
    """
    is_first = first == np.arange(len(first))
    kept: Mask = is_first & decided.kept
    return kept


def sieve_in_order(found: Found) -> Mask:
    """Return the documents that the sieve of neardup would keep in input order, bool."""
    queue = found.queue
    order = queue.order.astype(np.int64)
    # The first document of each content in input order, by document.
    first = np.full(len(order), len(order), np.int64)
    np.minimum.at(first, queue.representative, order)
    representative = _by_document(order, first[queue.representative])
    left = representative[order[found.confirmed.left]]
    right = representative[order[found.confirmed.right]]
    decided = decide(
        np.minimum(left, right).astype(np.uint32),
        np.maximum(left, right).astype(np.uint32),
        found.method.strength(found.confirmed.measured),
        representative.astype(np.uint32),
    )
    return _kept_contents(decided, representative.astype(np.uint32))
