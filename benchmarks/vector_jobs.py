"""Find the near-duplicates of vectors with one tool, and save the rows that it removes.

    python vector_jobs.py TOOL VECTORS.npy REMOVED.npy

TOOL is neardup, faiss-flat, faiss-ivf:CELLS:PROBES, or semhash. Vectors have a length of 1; the
threshold is 0.9.
"""

from __future__ import annotations

import sys

import numpy as np

THRESHOLD = 0.9
_AT_ONCE = 4096


def by_neardup(vectors):
    """Return the removed rows. The first run of a machine compiles: run it once before."""
    import pyarrow as pa

    import neardup

    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    table = pa.table({"vector": column})
    result = neardup.dedup(table, method=neardup.Vectors(threshold=THRESHOLD))
    return [int(row) for row in result.removed["id"].to_pylist()]


def by_faiss(vectors, cells, probes):
    """Return the rows that a sieve removes, whose earlier neighbours a range search finds."""
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    if cells:
        index = faiss.IndexIVFFlat(index, vectors.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
        index.nprobe = probes
    index.add(vectors)
    removed = np.zeros(len(vectors), bool)
    for start in range(0, len(vectors), _AT_ONCE):
        limits, _, found = index.range_search(vectors[start : start + _AT_ONCE], THRESHOLD)
        for query in range(len(limits) - 1):
            earlier = [
                row for row in found[limits[query] : limits[query + 1]] if row < start + query
            ]
            removed[start + query] = any(not removed[row] for row in earlier)
    return np.flatnonzero(removed)


def by_semhash(vectors):
    """Return the rows that are not selected. The records are their numbers; no model is called."""
    from semhash import SemHash

    records = [str(row) for row in range(len(vectors))]
    hashed = SemHash.from_embeddings(vectors, records, model=None)
    selected = hashed.self_deduplicate(threshold=THRESHOLD).selected
    return sorted(set(range(len(vectors))) - set(map(int, selected)))


def main(tool, source, output):
    name, *numbers = tool.split(":")
    vectors = np.load(source)
    if name == "neardup":
        removed = by_neardup(vectors)
    elif name == "semhash":
        removed = by_semhash(vectors)
    else:
        removed = by_faiss(vectors, *(map(int, numbers) if numbers else (0, 0)))
    np.save(output, np.array(removed, np.int64))


if __name__ == "__main__":
    main(*sys.argv[1:])
