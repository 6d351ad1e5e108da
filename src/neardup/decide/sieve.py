"""The sieve: a kept document removes the later ones that are similar to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Floats, Ints, Mask, Positions, offsets_from_lengths, ranges
from neardup.decide.rule import Confirmed, Decision, Found, Measuring, Queue, Rule
from neardup.files import JsonObject
from neardup.verify.measured import Measured, measured_of_copies

NONE = np.uint32(0xFFFFFFFF)


class Decisions(NamedTuple):
    """The decisions, by position in the order of priority.

    kept : bool (num_positions,). remover : uint32 (num_positions,), the kept position that removed
    the document, NONE if it is kept. pair : int64 (num_positions,), the row of the confirmed pair
    that removed it; -1 if it is kept, or if it is a copy, which its representative removes without
    a pair.
    """

    kept: Mask
    remover: Positions
    pair: Ints


def decide(
    left: Positions,
    right: Positions,
    strength: Floats,
    representative: Positions,
    num_against: int = 0,
) -> Decisions:
    """Decide in the order of priority: a kept document removes the later ones that are similar to
    it.

    Parameters
    ----------
    left, right : uint32 (num_pairs,), positions of the confirmed pairs, left < right, in any order.
    strength : float64 (num_pairs,), the similarity. Of several kept documents the most similar
        removes a document; of equally similar ones, the earliest.
    representative : uint32 (num_positions,), the first position with the same content.
    num_against : the number of positions, from the first, that are always kept.
    """
    num_positions = len(representative)
    by_right = np.lexsort((left, right))
    offsets = offsets_from_lengths(np.bincount(right, minlength=num_positions))
    decided = Decisions(
        kept=np.ones(num_positions, np.bool_),
        remover=np.full(num_positions, NONE, np.uint32),
        pair=np.full(num_positions, -1, np.int64),
    )
    kernels.decisions.decide(
        left, strength, by_right, offsets, representative, num_against, decided
    )
    return decided


class Sifted(NamedTuple):
    """The decisions with the pairs of kept documents, by right and then by left position.

    kept : bool (num_positions,). left, right : uint32 (num_pairs,), `left` is kept; a copy of a
    kept document has one pair, with the first of its content. measured : the measures of the pairs.
    best : bool, whether the pair removed its right document.
    """

    kept: Mask
    left: Positions
    right: Positions
    measured: Measured
    best: Mask


def sift(
    method: Measuring, left: Positions, right: Positions, measured: Measured, queue: Queue
) -> Sifted:
    """Decide over pairs as `decide` does, and leave out the pairs of removed documents.

    Parameters
    ----------
    left, right : as in `decide`.
    measured : the measures of the pairs.
    """
    first = queue.representative
    decided = decide(left, right, method.strength(measured), first, queue.num_against)
    is_best = np.zeros(len(left), np.bool_)
    is_best[decided.pair[decided.pair >= 0]] = True

    # The first of its content removed a copy; the other pairs of the copy do not matter.
    is_copy = ~decided.kept & (decided.pair < 0)
    stays = decided.kept[left] & (right >= queue.num_against) & ~is_copy[right]
    sifted = Sifted(
        kept=decided.kept,
        left=left[stays],
        right=right[stays],
        measured=measured.take(stays),
        best=is_best[stays],
    )
    return _with_copies(sifted, np.flatnonzero(is_copy).astype(np.uint32), first, method)


def _with_copies(sifted: Sifted, copies: Positions, first: Positions, method: Measuring) -> Sifted:
    """Return decisions with a pair for each copy, by right and then by left position."""
    left = np.append(sifted.left, first[copies])
    right = np.append(sifted.right, copies)
    is_best = np.append(sifted.best, np.ones(len(copies), np.bool_))
    of_copies = measured_of_copies(len(copies), method.measures).columns
    measured = Measured(
        {name: np.append(sifted.measured[name], values) for name, values in of_copies.items()}
    )
    order = np.lexsort((left, right))
    return Sifted(
        kept=sifted.kept,
        left=left[order],
        right=right[order],
        measured=measured.take(order),
        best=is_best[order],
    )


def sift_distinct(found: Found) -> Sifted:
    """Decide over all pairs of documents with different contents, as a search that decides while it
    measures.

    A pair whose `left` is the later document has the measure in that direction, if it depends on
    the direction.
    """
    queue = found.queue
    pairs = found.distinct().confirmed
    strength = found.method.strength(pairs.measured)
    forward = np.flatnonzero(pairs.left < pairs.right)
    left = pairs.left[forward]
    right = pairs.right[forward]
    first_round = decide(left, right, strength[forward], queue.representative, queue.num_against)

    # A copy of a kept document is removed by it. Any other copy is a document like others, so it
    # needs the pairs of its content.
    is_copied = ~queue.is_first & ~first_round.kept[queue.representative]
    copied = _pairs_of_copies(np.flatnonzero(is_copied), found, pairs)
    return sift(
        found.method,
        np.append(left, copied.left),
        np.append(right, copied.right),
        pairs.measured.take(np.append(forward, copied.rows)),
        queue,
    )


class _CopiedPairs(NamedTuple):
    """The pairs of copies. left, right : uint32, positions, `right` a copy. rows : int64, the
    measured pair of the first document of its content.
    """

    left: Positions
    right: Positions
    rows: Ints


def _pairs_of_copies(copies: Ints, found: Found, pairs: Confirmed) -> _CopiedPairs:
    """Return the pairs of copies with the documents before them."""
    ends = pairs.right
    others = pairs.left
    rows = np.arange(len(pairs.left))
    if not found.method.directed:  # a pair compares each document with the other
        ends = np.append(ends, pairs.left)
        others = np.append(others, pairs.right)
        rows = np.append(rows, rows)
    by_end = np.argsort(ends, kind="stable")
    num_pairs = np.bincount(ends, minlength=len(found.queue.order))
    starts = np.cumsum(num_pairs) - num_pairs

    first = found.queue.representative[copies]
    of_first = by_end[ranges(starts[first], num_pairs[first])]
    copy = np.repeat(copies, num_pairs[first]).astype(np.uint32)
    is_before = others[of_first] < copy
    of_first = of_first[is_before]
    return _CopiedPairs(left=others[of_first], right=copy[is_before], rows=rows[of_first])


class Sieve(Rule):
    """Remove each document that is similar to a kept one before it.

    A search may decide while it measures, which is faster, because it then skips the pairs of
    removed documents. Over all pairs of different contents, this rule decides the same; tests hold
    both equal.

    Parameters
    ----------
    keeps_pairs : also measure the pairs of removed documents, to decide again at stricter limits.
    """

    def __init__(self, *, keeps_pairs: bool = False) -> None:
        self.pairs = "distinct" if keeps_pairs else "sieve"
        self.both_ways = ("rethreshold", True) if keeps_pairs else None

    @property
    def options(self) -> JsonObject:
        """The option rethreshold."""
        return {"rethreshold": self.pairs == "distinct"}

    def decide(self, found: Found) -> Decision:
        """Decide in the order of priority."""
        if found.sieved:
            return decision_of_sieve(found, found.confirmed, found.confirmed.left_out)
        sifted = sift_distinct(found)
        left_out = found.confirmed.left_out & sifted.kept
        left_out[: found.queue.num_against] = False
        return decision_of_sieve(found, sifted, left_out)


def decision_of_sieve(found: Found, sifted: Confirmed | Sifted, left_out: Mask) -> Decision:
    """Return the decision of a sieve, which has marked the pair that removed each document."""
    best = np.flatnonzero(sifted.best)
    best = best[found.queue.by_document(sifted.right[best])]
    return Decision(
        removals=found.queue.removals(
            sifted.right[best],
            sifted.left[best],
            sifted.measured.select(found.method.measures).take(best),
        ),
        left=sifted.left,
        right=sifted.right,
        measured=sifted.measured,
        num_hidden=int(np.count_nonzero(left_out)),
    )
