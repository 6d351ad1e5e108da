"""Corpora made up of random words, of which some texts are near-duplicates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WORDS = [
    "river",
    "stone",
    "cloud",
    "maple",
    "amber",
    "coral",
    "ember",
    "flint",
    "grove",
    "heath",
    "ivory",
    "jade",
]


def texts(count: int, seed: int = 0) -> list[str]:
    """Return texts of 30 words; every third one is a copy of an earlier one with a word changed."""
    rng = np.random.default_rng(seed)
    result: list[str] = []
    for number in range(count):
        words = [f"{WORDS[i]}{rng.integers(0, 50)}" for i in rng.integers(0, len(WORDS), 30)]
        if number % 3 == 2:
            words = result[int(rng.integers(0, number))].split()
            words[int(rng.integers(0, 30))] = f"changed{number}"
        result.append(" ".join(words))
    return result


def corpus(path: Path, count: int, seed: int = 0) -> Path:
    """Write a Parquet file of texts with ids and a number, in small row groups."""
    ids = [f"doc-{number}" for number in range(count)]
    table = pa.table({"id": ids, "text": texts(count, seed), "n": range(count)})
    pq.write_table(table, path, row_group_size=100)
    return path
