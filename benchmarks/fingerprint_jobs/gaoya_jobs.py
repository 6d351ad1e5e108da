"""The jobs as gaoya does them, which takes a set of tokens as the words of a text:
MinHashStringIndex.
"""

from __future__ import annotations

import os
from itertools import accumulate, chain
from typing import Any

import numpy as np
from shared import Done, Took, as_matches, clock, index_facts, main, memory, planted_rows, read_rows


def _texts(source: str) -> list[str]:
    return [" ".join(row) for row in read_rows(source, "tokens")]


def _index(bands: int, rows: int, threads: int) -> Any:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    from gaoya.minhash import MinHashStringIndex

    return MinHashStringIndex(32, 0.0, bands, rows, None, "word", False, (1, 1), "smallvec")


def sign_sets(source: str, options: dict[str, Any]) -> Done:
    """Sign texts of 100 words."""
    texts = _texts(source)
    signer = _index(16, 8, options["threads"])
    signed, took = clock(lambda: signer.minhash_index.bulk_hash_docs(texts))
    return Done([took], {"signatures": np.array(signed, np.uint32)[planted_rows(options)]}, {})


def index(source: str, options: dict[str, Any]) -> Done:
    """Fill an index, and query it for all: both sign, so what they take an index of one band is
    subtracted.
    """
    texts = _texts(source)
    ids = list(range(len(texts)))

    def run(bands: int, rows: int) -> tuple[Took, Took, int, list[list[int]]]:
        before = memory()
        filled = _index(bands, rows, options["threads"])
        _, add = clock(lambda: filled.par_bulk_insert_docs(ids, texts))
        size = memory() - before
        found, query = clock(lambda: filled.par_bulk_query(texts))
        return add, query, size, found

    one_add, one_query, _, _ = run(1, 128)
    add, query, size, found = run(options["bands"], options["rows"])
    limits = [0, *accumulate(map(len, found))]
    add = (add[0] - one_add[0], add[1] - one_add[1])
    query = (query[0] - one_query[0], query[1] - one_query[1])
    return index_facts(add, query, size, as_matches(limits, list(chain(*found))))


if __name__ == "__main__":
    main(sign_sets=sign_sets, index=index)
