"""Which level of blocks is cheapest for the records of a part, judged by a sample of them."""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel

U64 = np.uint64
_FIRST_FACTOR, _SECOND_FACTOR = U64(0x9E3779B97F4A7C15), U64(0xD6E8FEB86659FD93)
_SMALL = 64  # records that are compared without a look at their keys
_SAMPLE, _SAMPLE_BITS = 1024, 16
# Measured, in nanoseconds: to group one record by one key, and to compare one pair.
_GROUPING_COST, _COMPARISON_COST = 8.0, 0.7


@kernel
def _sample_cell(fingerprints, row, mask):
    """Return 16 bits from the bits of a fingerprint under a mask."""
    value = U64(0)
    for word in range(fingerprints.shape[1]):
        value += (fingerprints[row, word] & mask[word]) * (_FIRST_FACTOR + U64(word << 1))
    value ^= value >> U64(32)
    return np.int64((value * _SECOND_FACTOR) >> U64(64 - _SAMPLE_BITS))


@kernel
def _sampled_matches(fingerprints, mask, ends):
    """Return the estimated number of pairs of records with equal bits under a mask, from a sample."""
    count = len(fingerprints)
    stride = max(1, count // _SAMPLE)
    met, sampled = 0.0, 0
    for row in range(0, count, stride):
        cell = _sample_cell(fingerprints, row, mask)
        met += ends[cell]
        ends[cell] += np.uint32(1)
        sampled += 1
    for row in range(0, count, stride):
        ends[_sample_cell(fingerprints, row, mask)] = 0
    pairs = sampled * (sampled - 1) / 2
    share = max(0.0, met / pairs - 1.0 / (1 << _SAMPLE_BITS))  # less those that share a cell by chance
    return share * count * (count - 1) / 2


@kernel
def choose_level(fingerprints, nodes, ends):
    """Return the level whose grouping and comparisons cost least for these records.

    nodes, ends : as in kernels/blocks.py; `ends` holds zeros before and after.
    """
    count = len(fingerprints)
    if count <= _SMALL:
        return 0
    best, least = 0, np.inf
    for level in range(len(nodes.level_starts) - 1):
        first, stop = nodes.level_starts[level], nodes.level_starts[level + 1]
        cost = _GROUPING_COST * count * (stop - first)
        for node in range(first, stop):
            if cost >= least:
                break
            matches = _sampled_matches(fingerprints, nodes.agree[node], ends)
            cost += _COMPARISON_COST * (matches + count / 2)
        if cost < least:
            best, least = level, cost
    return best
