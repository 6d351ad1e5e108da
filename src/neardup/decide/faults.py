"""Name the faults of removals: numbers that are shifted, and removals just below the threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from neardup.arrays import Floats, Ints, Mask

_MAX_DOCUMENTS = 1 << 26  # a transform of more would need gigabytes
_MAX_PARTS = 64  # the parts with the most lost documents, whose shifts are looked for
_MIN_EXPLAINED = 5  # lost documents that a shift must explain
_MIN_SHARE = 0.5  # of the lost documents, the share that a shift must explain
_FALSE_ALARM = 1e-3  # probability that the best of all random shifts explains as many
_NEAR = 0.05  # below the threshold; two standard deviations of 256 hashes at 0.8
BELOW = 0.15
"""The distance below the threshold of a removal that an estimate may explain: four standard
deviations of 128 hashes at 0.8.
"""
_DECAY = 4.0  # ratio of the errors of an estimate in the nearest and the farthest third of BELOW


class Shift(NamedTuple):
    """A shift of document numbers that explains removals.

    part : the part whose removals it explains; None for the whole collection. offset : the number
    of the removed document minus the number of the one that should have been removed. explained,
    lost : the lost documents that it explains, and all of the part.
    """

    part: int | None
    offset: int
    explained: int
    lost: int


def find_shifts(is_lost: Mask, should_go: Mask, part_ends: Ints) -> list[Shift]:
    """Return the shift of all documents; if there is none, the shifts of parts.

    Parameters
    ----------
    is_lost : bool (num_documents,), removed documents without a similar kept one.
    should_go : bool (num_documents,), the kept documents that a correct run would have removed.
    part_ends : int64 (num_parts,), the end of the documents of each part.

    Notes
    -----
    The number of lost documents that a shift explains is a cross-correlation, which the fast
    Fourier transform computes for all shifts at once: O(n log n).
    """
    if not is_lost.any() or not should_go.any() or len(is_lost) > _MAX_DOCUMENTS:
        return []
    # Twice the documents, so that no shift wraps around.
    length = 1 << (2 * len(is_lost) - 1).bit_length()
    expected = _Expected(
        spectrum=np.conj(np.fft.rfft(should_go.astype(np.float32), length)),
        density=float(should_go.mean()),
    )
    whole = _best_shift(None, is_lost, expected)
    if whole is not None:
        return [whole]
    return list(_shifts_of_parts(is_lost, part_ends, expected))


class _Expected(NamedTuple):
    """The documents that a correct run would have removed.

    spectrum : the conjugate of their Fourier transform. density : their share of all documents.
    """

    spectrum: np.ndarray
    density: float


def _shifts_of_parts(is_lost: Mask, part_ends: Ints, expected: _Expected) -> Iterator[Shift]:
    """Yield the shifts of the parts with the most lost documents."""
    ends = part_ends.tolist()
    starts = [0, *ends[:-1]]
    lost = [int(is_lost[start:end].sum()) for start, end in zip(starts, ends, strict=True)]
    for part in np.argsort(lost)[::-1][:_MAX_PARTS].tolist():
        span = slice(starts[part], ends[part])
        is_lost_here = np.zeros_like(is_lost)
        is_lost_here[span] = is_lost[span]
        shift = _best_shift(part, is_lost_here, expected)
        if shift is not None:
            yield shift


def _best_shift(part: int | None, is_lost: Mask, expected: _Expected) -> Shift | None:
    """Return the shift that explains most lost documents; None if chance explains as many."""
    lost = int(is_lost.sum())
    if lost < _MIN_EXPLAINED:
        return None
    length = 2 * (len(expected.spectrum) - 1)
    transformed = np.fft.rfft(is_lost.astype(np.float32), length)
    explained = np.fft.irfft(transformed * expected.spectrum, length)  # by shift
    explained[0] = 0.0  # no shift
    best = int(np.argmax(explained))
    count = round(float(explained[best]))

    # A count exceeds its mean by z standard deviations with a probability of about exp(-z^2 / 2) or
    # less; the bound is for the best of as many shifts as there are documents.
    mean = lost * expected.density
    deviation = math.sqrt(mean * (1.0 - expected.density))
    max_deviations = math.sqrt(2.0 * math.log(len(is_lost) / _FALSE_ALARM))
    by_chance = mean + max_deviations * deviation
    if count < max(_MIN_EXPLAINED, _MIN_SHARE * lost, by_chance):
        return None

    # The second half of a transform has the negative shifts.
    offset = best if best < length // 2 else best - length
    return Shift(part=part, offset=offset, explained=count, lost=lost)


class Below(NamedTuple):
    """Removals just below the threshold.

    documents : their number. is_estimate : whether they get rare away from the threshold, as the
    errors of a signature do.
    """

    documents: int
    is_estimate: bool


def removals_below(similarity: Floats, threshold: float) -> Below:
    """Return the removals whose nearest kept document is just below the threshold.

    similarity : float64, of lost documents and their nearest kept ones.

    Notes
    -----
    A signature of k hashes estimates a similarity s with standard deviation sqrt(s (1 - s) / k), so
    that it rarely removes a pair more than 0.1 below the threshold. A lower threshold, another
    measure or a shared bucket alone remove such pairs as well.
    """
    gap = threshold - similarity
    gap = gap[(gap > 0) & (gap <= BELOW)]
    num_near = int(np.count_nonzero(gap <= _NEAR))
    num_far = int(np.count_nonzero(gap > BELOW - _NEAR))
    is_estimate = num_near > 0 and num_near >= _DECAY * num_far
    return Below(documents=len(gap), is_estimate=is_estimate)
