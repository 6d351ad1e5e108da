"""Remove near-duplicates with rensa: full-set R-MinHash (every shingle hashed) and its LSH.

`RMinHash.from_token_sets` hashes every shingle. Its faster "rho" functions
(`digest_matrix_from_token_sets_rho`) sample token positions, so they measure another set and are
not used here.
"""

from __future__ import annotations

import os
from functools import partial

# Read when rensa first signs: the processes are the parallelism here.
os.environ["RAYON_NUM_THREADS"] = "1"

from rensa import RMinHash, RMinHashLSH
from shared import NGRAM, ExactCheck, arguments, floor, sign_in_processes, write
from words import shingles

_SEED = 1


def _sign(texts: list[str], hashes: int) -> list[RMinHash | None]:
    sets = [list(shingles(text, NGRAM)) for text in texts]
    signed = RMinHash.from_token_sets(sets, num_perm=hashes, seed=_SEED)
    return [one if tokens else None for one, tokens in zip(signed, sets, strict=True)]


def main() -> None:
    args = arguments(__doc__, ("estimate", "exact", "bands"))
    index = RMinHashLSH(threshold=0.8, num_perm=args.hashes, num_bands=args.bands)
    least = floor(args.hashes) if args.confirm == "estimate" else 0.0
    exact = ExactCheck(args.input) if args.confirm == "exact" else None
    kept: dict[int, RMinHash] = {}
    removed: dict[int, int | None] = {}
    row = 0
    for batch in sign_in_processes(args.input, args.threads, partial(_sign, hashes=args.hashes)):
        for one in batch:
            if one is not None:
                found = index.query(one)
                if exact is not None:
                    match = exact.best(row, found) if found else None
                else:
                    similarity, other = max(
                        ((one.jaccard(kept[k]), -k) for k in found), default=(-1.0, 0)
                    )
                    match = -other if similarity >= least else None
                if match is None:
                    index.insert(row, one)
                    kept[row] = one
                else:
                    removed[row] = match
            row += 1
    write(args, removed)


if __name__ == "__main__":
    main()
