"""The jobs as the package simhash-pybind does them: compute of hashed words, find_all. It has no
index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import simhash
from shared import NEAR, Done, as_pairs, clock, judged_rows, main, read_rows, spread, vote
from xxhash import xxh3_64_intdigest


def texts(source: str, options: dict[str, Any]) -> Done:
    """Fingerprint lists of words: hash these by a function faster than its own MD5, and let them
    vote.
    """

    def prepare(first: int, step: int) -> Callable[[], list[int]]:
        values = read_rows(source, "words", first, step)
        return lambda: [simhash.compute(_hashes(one)) for one in values]

    found, took = spread(prepare, options["threads"])
    values = read_rows(source, "words")
    rows = judged_rows(len(found))
    plain = [vote(_hashes(values[row])) for row in rows]
    return Done(
        [took],
        {"rows": np.array(rows), "fingerprints": found, "plain": np.array(plain, np.uint64)},
        {},
    )


def _hashes(words: list[str]) -> list[int]:
    return [xxh3_64_intdigest(word.encode()) for word in words]


def pairs(source: str, options: dict[str, Any]) -> Done:
    """Find all pairs of a set of integers; rows are looked up afterwards."""
    fingerprints = np.load(source)
    values = set(fingerprints.tolist())
    pairs, took = clock(lambda: simhash.find_all(values, options["blocks"], NEAR))
    order = np.argsort(fingerprints)
    found = np.array(list(pairs), np.uint64).reshape(-1, 2)
    rows = order[np.searchsorted(fingerprints, found, sorter=order)]
    return Done([took], as_pairs(rows[:, 0], rows[:, 1]), {})


if __name__ == "__main__":
    main(texts=texts, pairs=pairs)
