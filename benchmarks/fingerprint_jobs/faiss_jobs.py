"""The jobs as faiss does them: brute force, or IndexBinaryMultiHash with settings whose recall is 1
at distance 3.
"""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
from shared import NEAR, Done, Words, as_matches, as_pairs, clock, main, memory

_SLICE = 100_000  # queries at once: what is found lies in memory
_RADIUS = NEAR + 1  # it finds what is nearer than that


def _filled(fingerprints: Words, options: dict[str, Any]) -> Any:
    """Return an index of fingerprints. hashes : number of hashes, bits of each, bits flipped; none
    for brute force.
    """
    faiss.omp_set_num_threads(options["threads"])
    if "hashes" in options:
        number, bits, flips = options["hashes"]
        index = faiss.IndexBinaryMultiHash(64, number, bits)
        index.nflip = flips
    else:
        index = faiss.IndexBinaryFlat(64)
    index.add(_bytes(fingerprints))
    return index


def _bytes(fingerprints: Words) -> Any:
    return np.ascontiguousarray(fingerprints).view(np.uint8).reshape(-1, 8)


def pairs(source: str, options: dict[str, Any]) -> Done:
    """Add all, and ask for what is near to each."""
    fingerprints = np.load(source)

    def work() -> Any:
        index = _filled(fingerprints, options)
        found = []
        for first in range(0, len(fingerprints), _SLICE):
            limits, _, rows = index.range_search(
                _bytes(fingerprints[first : first + _SLICE]), _RADIUS
            )
            matches = as_matches(limits, rows)
            asked = first + matches["query"]
            found.append(np.array([asked, rows])[:, asked < rows])
        return np.concatenate(found, axis=1)

    found, took = clock(work)
    return Done([took], as_pairs(*found), {})


def queries(source: str, options: dict[str, Any]) -> Done:
    """Fill an index, and query it in batches."""
    fingerprints = np.load(source)
    batches = np.load(options["queries"])[:, : options["ask"]]
    times = []
    before = memory()
    index, (built, _) = clock(lambda: _filled(fingerprints, options))
    facts = {"build": built, "bytes": float(memory() - before), "queries": batches.shape[1]}
    answers: dict[str, Any] = {}
    for batch in map(_bytes, batches):
        (limits, _, rows), took = clock(lambda batch=batch: index.range_search(batch, _RADIUS))
        times.append(took)
        answers = answers or as_matches(limits, rows)
    return Done(times, answers, facts)


if __name__ == "__main__":
    main(pairs=pairs, queries=queries)
