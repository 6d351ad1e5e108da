"""Sets of tokens of which some pairs are planted with a known Jaccard similarity: made from seeds,
kept on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq


class Planted(NamedTuple):
    """Sets on disk, a row each in the column `tokens`, list<string>.

    pairs : int64 (num_pairs, 2), the smaller row first; sets of different pairs share no token.
    similarity : float64 (num_pairs,), exact.
    """

    size: int
    sets: Path
    pairs: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float64]


def plant(size: int, tokens: int, shared: Sequence[int], num_pairs: int, work: Path) -> Planted:
    """Return sets of so many tokens, with pairs that share in turn as many of them as `shared`
    says.
    """
    sets = work / f"sets-{size}-{tokens}.parquet"
    truth = work / f"sets-{size}-{tokens}.npz"
    if not truth.exists():
        random = np.random.default_rng([size, tokens])
        values = random.integers(0, 2**63, (size, tokens))
        pairs = np.sort(random.choice(size, 2 * num_pairs, replace=False).reshape(-1, 2), axis=1)
        numbers = np.resize(shared, num_pairs)
        same = np.arange(tokens) < numbers[:, None]
        values[pairs[:, 1]] = np.where(same, values[pairs[:, 0]], values[pairs[:, 1]])
        strings = pa.array(values.reshape(-1)).cast(pa.string())
        lists = pa.ListArray.from_arrays(
            np.arange(0, size * tokens + 1, tokens, dtype=np.int32), strings
        )
        pq.write_table(pa.table({"tokens": lists}), sets)
        np.savez(truth, pairs=pairs, similarity=numbers / (2 * tokens - numbers))
    kept = np.load(truth)
    return Planted(size, sets, kept["pairs"], kept["similarity"])
