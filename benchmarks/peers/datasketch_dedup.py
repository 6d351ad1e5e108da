"""Remove near-duplicates with datasketch: MinHash (affine32) signed in processes, one MinHashLSH.

The hash function is xxHash instead of the default SHA-1, as its documentation advises a faster
hash; candidates are filtered by `MinHash.jaccard`, as it advises for accuracy.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xxhash
from datasketch import MinHash, MinHashLSH
from shared import NGRAM, ExactCheck, arguments, floor, sign_in_processes, write
from words import shingles

_SEED = 1


def _sign(texts: list[str], hashes: int) -> np.ndarray:
    sets = ([shingle.encode() for shingle in shingles(text, NGRAM)] for text in texts)
    signed = MinHash.generator(sets, num_perm=hashes, seed=_SEED, hashfunc=xxhash.xxh32_intdigest)
    return np.stack([one.hashvalues for one in signed])


def main() -> None:
    args = arguments(__doc__, ("estimate", "exact", "bands"))
    index = MinHashLSH(num_perm=args.hashes, params=(args.bands, args.rows))
    permutations = MinHash(num_perm=args.hashes, seed=_SEED).permutations
    least = floor(args.hashes) if args.confirm == "estimate" else 0.0
    exact = ExactCheck(args.input) if args.confirm == "exact" else None
    kept: dict[int, MinHash] = {}
    removed: dict[int, int | None] = {}
    row = 0
    for batch in sign_in_processes(args.input, args.threads, partial(_sign, hashes=args.hashes)):
        for values in batch:
            one = MinHash(
                hashvalues=values, permutations=permutations, seed=_SEED, scheme="affine32"
            )
            found = [] if one.is_empty() else index.query(one)
            if exact is not None:
                match = exact.best(row, found) if found else None
            else:
                ranked = [(one.jaccard(kept[other]), -other) for other in found]
                similarity, other = max(ranked, default=(-1.0, 0))
                match = -other if similarity >= least else None
            if match is not None:
                removed[row] = match
            elif not one.is_empty():
                index.insert(row, one, check_duplication=False)
                kept[row] = one
            row += 1
    write(args, removed)


if __name__ == "__main__":
    main()
