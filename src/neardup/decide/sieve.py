"""The sieve over confirmed pairs: what DESIGN calls decide, for whoever has the pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NONE = np.uint32(0xFFFFFFFF)


class Decisions(NamedTuple):
    """What is kept, by position in the order of priority.

    kept : bool (num_positions,). remover : uint32 (num_positions,), the kept position that removed it, NONE for those
    kept. pair : int64 (num_positions,), the row of the confirmed pair that did; -1 for those kept, and for copies of a
    kept document, which are removed by their representative without a pair.
    """

    kept: npt.NDArray[np.bool_]
    remover: npt.NDArray[np.uint32]
    pair: npt.NDArray[np.int64]


def decide(
    left: npt.NDArray[np.uint32],
    right: npt.NDArray[np.uint32],
    strength: npt.NDArray[np.float64],
    representative: npt.NDArray[np.uint32],
    num_against: int = 0,
) -> Decisions:
    """Let documents pass in the order of priority; a kept one removes those that resemble it.

    Parameters
    ----------
    left, right : uint32 (num_pairs,), positions of the confirmed pairs, left < right, in any order.
    strength : float64 (num_pairs,), how similar they are: of several kept documents the most similar removes a
        document, the earlier one where they are equal.
    representative : uint32 (num_positions,), the first position of equal content.
    num_against : so many positions, the first, are kept whatever they resemble.
    """
    from neardup.kernels import decisions as kernel

    by_right = np.lexsort((left, right))
    offsets = np.zeros(len(representative) + 1, np.int64)
    np.cumsum(np.bincount(right, minlength=len(representative)), out=offsets[1:])
    decided = Decisions(
        np.ones(len(representative), np.bool_),
        np.full(len(representative), NONE, np.uint32),
        np.full(len(representative), -1, np.int64),
    )
    kernel.decide(left, strength, by_right, offsets, representative, num_against, *decided)
    return decided
