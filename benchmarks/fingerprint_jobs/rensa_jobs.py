"""The jobs as rensa does them: RMinHash and CMinHash of every token, RMinHashLSH."""

from __future__ import annotations

import os
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rensa import CMinHash, RMinHash, RMinHashLSH
from shared import (
    SHORT_REPEATS,
    Done,
    as_matches,
    clock,
    index_facts,
    main,
    memory,
    planted_rows,
    read_rows,
)

_HASHES = 128
_SEED = 1
_AT_ONCE = 50_000


def sign_sets(source: str, options: dict[str, Any]) -> Done:
    """Sign sets of tokens, every one of which is hashed: into objects or a matrix."""
    os.environ["RAYON_NUM_THREADS"] = str(options["threads"])  # read when it first signs
    sets = read_rows(source, "tokens")
    form = options["form"]
    sign = CMinHash.from_token_sets if form == "circulant" else RMinHash.from_token_sets
    if form == "matrix":
        sign = RMinHash.digest_matrix_from_token_sets
    signed = None
    times = []
    for _ in range(SHORT_REPEATS):
        del signed
        signed, took = clock(lambda: sign(sets, num_perm=_HASHES, seed=_SEED))
        times.append(took)
    rows = signed.to_rows() if form == "matrix" else [one.digest() for one in signed]
    return Done(times, {"signatures": np.array(rows, np.uint32)[planted_rows(options)]}, {})


def index(source: str, options: dict[str, Any]) -> Done:
    """Fill an index with signatures that it made, which is not timed, and query it for all."""
    os.environ["RAYON_NUM_THREADS"] = str(options["threads"])
    column = pq.read_table(source)["tokens"]
    signed = []
    for first in range(0, len(column), _AT_ONCE):
        some = column.slice(first, _AT_ONCE).to_pylist()
        signed += RMinHash.from_token_sets(some, num_perm=_HASHES, seed=_SEED)
    before = memory()
    filled = RMinHashLSH(threshold=0.8, num_perm=_HASHES, num_bands=options["bands"])
    _, add = clock(lambda: filled.insert_many(signed))
    size = memory() - before
    found, query = clock(lambda: filled.query_all(signed))
    limits = [0, *accumulate(map(len, found))]
    return index_facts(add, query, size, as_matches(limits, list(chain(*found))))


if __name__ == "__main__":
    main(sign_sets=sign_sets, index=index)
