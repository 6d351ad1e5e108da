"""Remove near-duplicates with gaoya: all documents inserted into a MinHashStringIndex, then all
queried.

The built-in analyser (words cut at ASCII spaces and punctuation, in native threads) is the fast
path its documentation recommends; a callable would tokenise on one thread. gaoya always filters by
the estimated similarity, so `jaccard_threshold` is set below the threshold, where a true pair is
rarely lost.
"""

from __future__ import annotations

import os

from shared import NGRAM, ExactCheck, arguments, floor, texts, write


def main() -> None:
    args = arguments(__doc__, ("estimate", "exact", "bands"))
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    from gaoya.minhash import MinHashStringIndex

    documents = texts(args.input)
    index = MinHashStringIndex(
        hash_size=32,
        jaccard_threshold=floor(args.hashes) if args.confirm == "estimate" else 0.0,
        num_bands=args.bands,
        band_size=args.rows,
        analyzer="word",
        lowercase=True,
        ngram_range=(NGRAM, NGRAM),
        id_container="smallvec",
    )
    index.par_bulk_insert_docs(list(range(len(documents))), documents)
    # Documents of fewer than five words have no n-gram, so their signatures are those of the empty
    # text, all alike.
    without_shingles = set(index.query(""))
    exact = ExactCheck(args.input) if args.confirm == "exact" else None
    removed: dict[int, int | None] = {}
    for row, found in enumerate(index.par_bulk_query(documents)):
        if row in without_shingles:
            continue
        earlier = [other for other in found if other < row and other not in removed]
        match = exact.best(row, earlier) if exact is not None else min(earlier, default=None)
        if match is not None:
            removed[row] = match
    write(args, removed)


if __name__ == "__main__":
    main()
