"""The sieve: a kept document removes the later ones that are similar to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Floats, Ints, Mask, Positions, offsets_from_lengths, ranges
from neardup.decide.outcome import Removals
from neardup.decide.rule import Confirmed, Decision, Found, Measuring, Rule
from neardup.files import JsonObject
from neardup.verify.measured import Measured, measured_of_copies

NONE = np.uint32(0xFFFFFFFF)


class Decisions(NamedTuple):
    """The decisions, by position in the order of priority.

    kept : bool (num_positions,). remover : uint32 (num_positions,), the kept position that removed
    each, NONE if it is kept. pair : int64 (num_positions,), the row of the confirmed pair that
    removed it; -1 if it is kept, or is a copy of a kept document, which its representative removes
    without a pair.
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
    by_right = np.lexsort((left, right))
    offsets = offsets_from_lengths(np.bincount(right, minlength=len(representative)))
    size = len(representative)
    decided = Decisions(
        np.ones(size, np.bool_), np.full(size, NONE, np.uint32), np.full(size, -1, np.int64)
    )
    kernels.decisions.decide(
        left, strength, by_right, offsets, representative, num_against, decided
    )
    return decided


class Sifted(NamedTuple):
    """The decisions with the pairs behind them, by right and then by left position.

    kept : bool (num_positions,). left, right : uint32 (num_pairs,), `left` is kept; a copy of a
    kept document has one pair, with the first of its content. measured : of the pairs. best : bool,
    whether the pair removed its right one.
    """

    kept: Mask
    left: Positions
    right: Positions
    measured: Measured
    best: Mask


def sift(
    method: Measuring,
    left: Positions,
    right: Positions,
    measured: Measured,
    first: Positions,
    num_against: int,
) -> Sifted:
    """Decide over pairs as `decide` does, and leave out those of removed documents.

    Parameters
    ----------
    left, right, num_against : as in `decide`. measured : of the pairs. first : the representatives
        of `decide`.
    """
    decided = decide(left, right, method.strength(measured), first, num_against)
    kept = decided.kept
    copies = np.flatnonzero(~kept & (decided.pair < 0)).astype(np.uint32)
    best = np.zeros(len(left), np.bool_)
    best[decided.pair[decided.pair >= 0]] = True
    selected = kept[left] & (right >= num_against) & ~np.isin(right, copies)
    left = np.concatenate([left[selected], first[copies]])
    right = np.concatenate([right[selected], copies])
    best = np.concatenate([best[selected], np.ones(len(copies), np.bool_)])
    of_copies = measured_of_copies(len(copies), method.measures).columns
    measured = Measured(
        {name: np.append(measured[name][selected], values) for name, values in of_copies.items()}
    )
    order = np.lexsort((left, right))
    return Sifted(kept, left[order], right[order], measured.take(order), best[order])


def sift_distinct(found: Found) -> Sifted:
    """Decide over all pairs of documents with different contents, as a search that decides while it
    measures.

    A pair whose `left` is the later one has the measure in that direction, if it depends on the
    direction.
    """
    first, num_against = found.queue.representative, found.queue.num_against
    pairs = found.distinct().confirmed
    strength = found.method.strength(pairs.measured)
    forward = np.flatnonzero(pairs.left < pairs.right)
    left, right = pairs.left[forward], pairs.right[forward]
    kept = decide(left, right, strength[forward], first, num_against).kept
    # A copy is compared with the kept documents before it if the first of its content is removed.
    copies = np.flatnonzero(~found.queue.is_first & ~kept[first])
    ends, others, rows = pairs.right, pairs.left, np.arange(len(pairs.left))
    if not found.method.directed:
        ends = np.append(ends, pairs.left)
        others = np.append(others, pairs.right)
        rows = np.append(rows, rows)
    sizes = np.bincount(ends, minlength=len(first))
    begin = (np.cumsum(sizes) - sizes)[first[copies]]
    count = sizes[first[copies]]
    of_copies = np.argsort(ends, kind="stable")[ranges(begin, count)]
    copies = np.repeat(copies, count)
    before = others[of_copies] < copies
    of_copies = of_copies[before]
    left = np.append(left, others[of_copies])
    right = np.append(right, copies[before].astype(np.uint32))
    measured = pairs.measured.take(np.append(forward, rows[of_copies]))
    return sift(found.method, left, right, measured, first, num_against)


class Sieve(Rule):
    """Remove each document that is similar to a kept one before it.

    A search may decide while it measures, which is faster: it then passes over the pairs of removed
    documents. Over all pairs of different contents, the same is decided here; tests hold both
    equal.

    Parameters
    ----------
    keeps_pairs : whether the pairs of removed documents are measured, too, to decide again at
        stricter limits.
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
    order = found.queue.order
    best = np.flatnonzero(sifted.best)
    best = best[np.argsort(order[sifted.right[best]], kind="stable")]
    measured = sifted.measured.select(found.method.measures).take(best)
    return Decision(
        removals=Removals(order[sifted.right[best]], order[sifted.left[best]], measured),
        left=sifted.left,
        right=sifted.right,
        measured=sifted.measured,
        num_hidden=int(np.count_nonzero(left_out)),
    )
