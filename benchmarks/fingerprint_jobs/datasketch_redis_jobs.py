"""The index of datasketch with its storage in Redis: fill it, and ask it one by one."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from datasketch import MinHash, MinHashLSH
from shared import Done, main

_HASHES = 60
_SINGLE = 2_000


def redis(source: str, options: dict[str, Any]) -> Done:
    """Insert random signatures through an insertion session, then query stored ones with five
    hashes changed.
    """
    rng = np.random.default_rng(3)
    size = int(options["size"])
    values = rng.integers(0, 2**32, (size, _HASHES), np.uint32)
    storage = {
        "type": "redis",
        "basename": b"bench",
        "redis": {"host": "127.0.0.1", "port": options["port"]},
    }
    lsh = MinHashLSH(num_perm=_HASHES, params=(12, 5), storage_config=storage)
    permutations = MinHash(num_perm=_HASHES, seed=1).permutations

    def made(row: Any) -> MinHash:
        return MinHash(hashvalues=row, permutations=permutations, seed=1, scheme="affine32")

    begun = time.perf_counter()
    with lsh.insertion_session(buffer_size=20_000) as session:
        for number, row in enumerate(values):
            session.insert(f"f{number}", made(row), check_duplication=False)
    facts = {"add_per_s": size / (time.perf_counter() - begun)}
    asked = rng.integers(0, size, _SINGLE)
    took = []
    found = 0
    for row in asked.tolist():
        changed = values[row].copy()
        changed[:5] ^= np.uint32(1)
        query = made(changed)
        begun = time.perf_counter()
        hits = lsh.query(query)
        took.append(time.perf_counter() - begun)
        found += f"f{row}" in hits
    facts |= dict(
        zip(
            ("query_p50_us", "query_p99_us"),
            (np.percentile(took, [50, 99]) * 1e6).tolist(),
            strict=True,
        )
    )
    facts["found"] = found / _SINGLE
    return Done([(sum(took), sum(took))], {}, facts)


if __name__ == "__main__":
    main(redis=redis)
