"""The sieve over confirmed pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import Floats, Ints, Mask, Positions, Words, offsets_from_lengths
from neardup.verify.measured import Measured

NONE = np.uint32(0xFFFFFFFF)


class Decisions(NamedTuple):
    """The decisions, by position in the order of priority.

    kept : bool (num_positions,). remover : uint32 (num_positions,), the kept position that removed each, NONE if it is
    kept. pair : int64 (num_positions,), the row of the confirmed pair that removed it; -1 if it is kept, or is a copy
    of a kept document, which its representative removes without a pair.
    """

    kept: Mask
    remover: npt.NDArray[np.uint32]
    pair: Ints


def decide(
    left: npt.NDArray[np.uint32],
    right: npt.NDArray[np.uint32],
    strength: Floats,
    representative: npt.NDArray[np.uint32],
    num_against: int = 0,
) -> Decisions:
    """Decide in the order of priority: a kept document removes the later ones that are similar to it.

    Parameters
    ----------
    left, right : uint32 (num_pairs,), positions of the confirmed pairs, left < right, in any order.
    strength : float64 (num_pairs,), the similarity. Of several kept documents the most similar removes a document;
        of equally similar ones, the earliest.
    representative : uint32 (num_positions,), the first position with the same content.
    num_against : the number of positions, from the first, that are always kept.
    """
    by_right = np.lexsort((left, right))
    offsets = offsets_from_lengths(np.bincount(right, minlength=len(representative)))
    size = len(representative)
    decided = Decisions(np.ones(size, np.bool_), np.full(size, NONE, np.uint32), np.full(size, -1, np.int64))
    kernels.decisions.decide(left, strength, by_right, offsets, representative, num_against, *decided)
    return decided


class Sifted(NamedTuple):
    """The decisions with the pairs behind them, by right and then by left position.

    kept : bool (num_positions,). left, right : uint32 (num_pairs,), `left` is kept; a copy of a kept document has one
    pair, with the first of its content. measured : of the pairs. best : bool, whether the pair removed its right one.
    """

    kept: Mask
    left: Positions
    right: Positions
    measured: Measured
    best: Mask


class EveryPair(NamedTuple):
    """All pairs of a run at or above its limit, of documents with different contents, also of those it removes.

    order, representative : uint32 by position, the document, and the first position with the same content. left_out :
    bool by position, whether a bucket of a new document has an earlier one that it does not list. left, right
    : uint32 (num_pairs,), positions of which each is the first of its content, left < right. measured : of the pairs;
    no measure depends on the order. lengths, values : int64 and uint64 by document, the bytes of its text, and the hash
    of the value by which removals are counted, if they are.
    """

    order: Positions
    representative: Positions
    left_out: Mask
    left: Positions
    right: Positions
    measured: Measured
    lengths: Ints
    values: Words
