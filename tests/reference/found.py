"""Searches as rules read them, made up at random."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import neardup
from neardup.decide.rule import Confirmed, Found, Queue
from neardup.methods.registry import method_of
from neardup.verify.measured import Measured

METHOD: Any = method_of(neardup.MinHash())


def similarity(kept: int, removed: int) -> float:
    """Return a value that names both documents, in their order."""
    return (kept * 100 + removed) / 10_000


def measure(kept: np.ndarray, documents: np.ndarray) -> Measured:
    values = [similarity(*pair) for pair in zip(kept.tolist(), documents.tolist(), strict=True)]
    return Measured({"similarity": np.array(values), "exact": np.zeros(len(values), np.bool_)})


def found_of(seed: int, *, pairs_of_copies: bool = False) -> Found:
    """Return random pairs, copies and full buckets; the earlier collection is first in any order.

    A bucket that lists all its members has a position beyond the last.
    """
    rng = random.Random(seed)
    size = rng.randint(1, 20)
    num_against = rng.choice([0, rng.randint(0, size)])
    known, new = list(range(num_against)), list(range(num_against, size))
    rng.shuffle(new)
    contents = [rng.randint(0, size // 4) if rng.random() < 0.4 else -i for i in range(size)]
    firsts = [contents.index(content) for content in contents]
    ends = [place for place in range(size) if pairs_of_copies or firsts[place] == place]
    pairs = {tuple(sorted(rng.choices(ends, k=2))) for _ in range(rng.randint(0, 2 * size))}
    distinct_pairs = [pair for pair in pairs if pair[0] < pair[1]]
    ordered = sorted(distinct_pairs, key=lambda pair: pair[::-1])
    left, right = (np.array([pair[side] for pair in ordered], np.uint32) for side in (0, 1))
    left_out = np.array([rng.random() < 0.2 for _ in range(size)], np.bool_)
    unlisted = [
        (
            np.array([rng.randint(0, size) for _ in range(count)], np.uint32),
            np.array(rng.choices(range(size), k=count), np.uint32),
        )
        for count in (rng.randint(0, 3), rng.randint(0, 3))
    ]
    confirmed = Confirmed(
        kept=np.ones(size, np.bool_),
        left=left,
        right=right,
        measured=measure(left, right),
        best=np.zeros(len(left), np.bool_),
        left_out=left_out,
        compared=None,
        collisions=None,
    )
    return Found(
        queue=Queue(
            order=np.array(known + new, np.uint32),
            representative=np.array(firsts, np.uint32),
            featured=np.ones(size, np.bool_),
            num_against=num_against,
        ),
        confirmed=confirmed,
        method=METHOD,
        lengths=np.zeros(size, np.int64),
        values=np.empty(0, np.uint64),
        unlisted=lambda: unlisted,
        measure=measure,
        sieved=False,
    )
