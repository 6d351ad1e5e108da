"""Fingerprints with planted neighbours, their truth, and queries: made from seeds, kept in the work
folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NEAR = 3
_BATCHES = 3
_BATCH = 100_000
_BRUTE_FORCE = 100_000  # up to so many, each is compared with each
_WITHIN = 1 + 64 + 2016 + 41664  # fingerprints of 64 bits within distance 3 of one


class Planted(NamedTuple):
    """Fingerprints and queries on disk.

    pairs : int64 (num_pairs, 2), the smaller row first: all pairs within the distance up to 100,000
    fingerprints, above that those planted. asked : int64 (batches, queries), the row a query was
    made from, -1 for random bits.
    """

    size: int
    fingerprints: Path
    queries: Path
    pairs: npt.NDArray[np.int64]
    asked: npt.NDArray[np.int64]

    @property
    def by_chance(self) -> float:
        """How many pairs random bits are expected to have beside those in `pairs`."""
        return (
            0.0
            if self.size <= _BRUTE_FORCE
            else self.size * (self.size - 1) / 2 * _WITHIN / 2.0**64
        )


def plant(size: int, work: Path) -> Planted:
    """Return random fingerprints, 2 % of them planted neighbours, and batches of queries, half of
    them near one.
    """
    stem = work / f"fingerprints-{size}"
    fingerprints_file, queries_file, truth_file = (
        stem.with_suffix(end) for end in (".npy", ".queries.npy", ".npz")
    )
    if not truth_file.exists():
        random = np.random.default_rng(size)
        fingerprints = random.integers(0, 2**64, size, dtype=np.uint64)
        pairs = random.choice(size, 2 * (size // 100), replace=False).reshape(-1, 2)
        fingerprints[pairs[:, 1]] = _flip(fingerprints[pairs[:, 0]], random)
        rows = random.integers(0, size, _BATCHES * _BATCH)
        asked = np.where(random.random(len(rows)) < 0.5, rows, -1)
        queries = _flip(fingerprints[rows], random)
        queries[asked < 0] = random.integers(0, 2**64, np.count_nonzero(asked < 0), dtype=np.uint64)
        np.save(fingerprints_file, fingerprints)
        np.save(queries_file, queries.reshape(_BATCHES, _BATCH))
        pairs = _all_pairs(fingerprints) if size <= _BRUTE_FORCE else np.sort(pairs, axis=1)
        np.savez(truth_file, pairs=pairs, asked=asked.reshape(_BATCHES, _BATCH))
    truth = np.load(truth_file)
    return Planted(size, fingerprints_file, queries_file, truth["pairs"], truth["asked"])


def _flip(
    fingerprints: npt.NDArray[np.uint64], random: np.random.Generator
) -> npt.NDArray[np.uint64]:
    """Return fingerprints with one to three bits changed: each some way after the one before, so
    never the same.
    """
    changed = fingerprints.copy()
    numbers = random.integers(1, NEAR + 1, len(fingerprints))
    bits = random.integers(0, 64, len(changed), dtype=np.uint64)
    for place in range(NEAR):
        changed[numbers > place] ^= np.uint64(1) << bits[numbers > place]
        bits = (bits + random.integers(1, 32, len(bits), dtype=np.uint64)) % np.uint64(64)
    return changed


def _all_pairs(fingerprints: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return all pairs within the distance, by comparing each with each."""
    found = []
    for row in range(len(fingerprints) - 1):
        near = np.flatnonzero(np.bitwise_count(fingerprints[row + 1 :] ^ fingerprints[row]) <= NEAR)
        found += [(row, row + 1 + other) for other in near.tolist()]
    return np.array(found, np.int64).reshape(-1, 2)
