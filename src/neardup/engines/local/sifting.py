"""Decide over confirmed pairs that are in memory, and keep those that the sieve measures."""

from __future__ import annotations

import numpy as np

from neardup.arrays import Positions, ranges
from neardup.decide.sieve import EveryPair, Sifted, decide
from neardup.methods.base import Method
from neardup.verify.measured import Measured, measured_of_copies


def sift(
    method: Method, left: Positions, right: Positions, measured: Measured, first: Positions, num_against: int
) -> Sifted:
    """Decide over pairs as `decide` does, and leave out those of removed documents.

    Parameters
    ----------
    left, right, num_against : as in `decide`. measured : of the pairs. first : the representatives of `decide`.
    """
    decided = decide(left, right, method.strength(measured), first, num_against)
    kept, plain = decided.kept, np.flatnonzero(~decided.kept & (decided.pair < 0)).astype(np.uint32)
    best = np.zeros(len(left), np.bool_)
    best[decided.pair[decided.pair >= 0]] = True
    selected = kept[left] & (right >= num_against) & ~np.isin(right, plain)
    left = np.concatenate([left[selected], first[plain]])
    right = np.concatenate([right[selected], plain])
    best = np.concatenate([best[selected], np.ones(len(plain), np.bool_)])
    copies = measured_of_copies(len(plain), method.measures).columns
    measured = Measured({name: np.append(measured[name][selected], values) for name, values in copies.items()})
    order = np.lexsort((left, right))
    return Sifted(kept, left[order], right[order], measured.take(order), best[order])


def sift_every(method: Method, every: EveryPair, num_against: int) -> Sifted:
    """Decide over the pairs of a run that are duplicates by the limit of a method, as a run with this limit does."""
    chosen, first = method.is_duplicate(every.measured), every.representative
    left, right, measured = every.left[chosen], every.right[chosen], every.measured.take(chosen)
    kept = decide(left, right, method.strength(measured), first, num_against).kept
    # A copy is compared with the kept documents before it if the first of its content is removed.
    copies = np.flatnonzero((first != np.arange(len(first))) & ~kept[first])
    ends, others = np.concatenate([right, left]), np.concatenate([left, right])
    sizes = np.bincount(ends, minlength=len(first))
    begin, count = (np.cumsum(sizes) - sizes)[first[copies]], sizes[first[copies]]
    rows, copies = np.argsort(ends, kind="stable")[ranges(begin, count)], np.repeat(copies, count)
    before = others[rows] < copies
    rows, copies = rows[before], copies[before].astype(np.uint32)
    pairs = np.append(np.arange(len(left)), rows % max(1, len(left)))
    left, right = np.append(left, others[rows]), np.append(right, copies)
    return sift(method, left, right, measured.take(pairs), first, num_against)
