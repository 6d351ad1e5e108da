"""The jobs as datasketch does them: MinHash.bulk, MinHashLSH."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Any

import numpy as np
import xxhash
from datasketch import MinHash, MinHashLSH
from shared import Done, Took, as_matches, clock, index_facts, main, memory, planted_rows, read_rows

_HASHES = 128
_SEED = 1
_AT_ONCE = 10_000


def sign_sets(source: str, options: dict[str, Any]) -> Done:
    """Sign sets of tokens, encoded beforehand."""
    sets = [[token.encode() for token in row] for row in read_rows(source, "tokens")]
    hashing = {"hashfunc": xxhash.xxh32_intdigest} if options["hash"] == "xxhash" else {}
    signed, took = clock(lambda: MinHash.bulk(sets, num_perm=_HASHES, seed=_SEED, **hashing))
    return Done(
        [took],
        {"signatures": np.stack([signed[row].hashvalues for row in planted_rows(options)])},
        {},
    )


def index(source: str, options: dict[str, Any]) -> Done:
    """Fill an index with the signatures of neardup, and query it: some at once become objects,
    which is not timed.
    """
    values = np.load(options["signatures"])
    permutations = MinHash(num_perm=_HASHES, seed=_SEED).permutations

    def objects() -> Iterator[tuple[int, list[MinHash]]]:
        for first in range(0, len(values), _AT_ONCE):
            given = values[first : first + _AT_ONCE]
            made = {"permutations": permutations, "seed": _SEED, "scheme": "affine32"}
            yield first, [MinHash(hashvalues=one, **made) for one in given]

    before = memory()
    filled = MinHashLSH(num_perm=_HASHES, params=(options["bands"], options["rows"]))

    def insert(first: int, some: list[MinHash]) -> None:
        for row, one in enumerate(some, first):
            filled.insert(row, one, check_duplication=False)

    def total(parts: list[Took]) -> Took:
        return sum(wall for wall, _ in parts), sum(used for _, used in parts)

    add = total(
        [clock(lambda first=first, some=some: insert(first, some))[1] for first, some in objects()]
    )
    size = memory() - before
    found = []
    times = []
    for _, some in objects():
        rows, took = clock(lambda some=some: [filled.query(one) for one in some])
        found += rows
        times.append(took)
    limits = [0, *accumulate(map(len, found))]
    return index_facts(add, total(times), size, as_matches(limits, list(chain(*found))))


if __name__ == "__main__":
    main(sign_sets=sign_sets, index=index)
