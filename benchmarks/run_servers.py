"""Measure the stores of an index on PostgreSQL and on Redis: how fast they write and find, and
bytes for each document.

Run: python benchmarks/run_servers.py redis simhash 500000. It starts a server of its own, as the
tests do. The keys are random; each query looks up a document that is there, and is counted as
missed if it is not found.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from environment import conditions

import servers
from neardup.candidates.lookups import Entries, Layout
from neardup.schemas import DISTANCE, EXACT, SIMILARITY, indexed_schema
from neardup.stores.addresses import create_store
from neardup.stores.base import Changes, Store, StoreSettings

SCHEMA = indexed_schema((SIMILARITY, DISTANCE, EXACT))
SERVERS = {
    "postgres": (servers.Postgres, servers.postgres_program),
    "redis": (servers.Redis, servers.redis_program),
}
BATCH_ROWS = 10_000
LIMIT = 1_000


def make_keys(
    kind: str, size: int, rng: np.random.Generator
) -> tuple[Layout, np.ndarray, np.ndarray]:
    """Return the layout, the keys of documents in its tables, and their sketches as bytes."""
    if kind == "minhash":
        keys = rng.integers(0, 2**64, (size, 12), np.uint64)
        return Layout((64,) * 12, 0), keys, rng.integers(0, 256, (size, 192), np.uint8)
    fingerprints = rng.integers(0, 2**64, size, np.uint64)
    turned = [
        fingerprints << np.uint64(16 * i) | fingerprints >> np.uint64(64 - 16 * i)
        for i in range(1, 4)
    ]
    return (
        Layout((16,) * 4, 3),
        np.stack([fingerprints, *turned], 1),
        fingerprints.view(np.uint8).reshape(size, 8),
    )


def make_documents(first: int, sketches: np.ndarray, rng: np.random.Generator) -> pa.Table:
    size = len(sketches)
    known = {
        "row": np.arange(first, first + size),
        "id": [f"document-{row:09d}" for row in range(first, first + size)],
        "state": np.ones(size, np.uint8),
        "member": np.ones(size, bool),
        "featured": np.ones(size, bool),
        "truncated": np.zeros(size, bool),
        "content": [rng.bytes(16) for _ in range(size)],
        "sketch": [sketch.tobytes() for sketch in sketches],
        "first_seen": np.full(size, 10**15),
        "last_seen": np.full(size, 10**15),
    }
    return pa.table(
        [pa.array(known.get(field.name, [None] * size), field.type) for field in SCHEMA],
        schema=SCHEMA,
    )


def make_entries(keys: np.ndarray) -> Entries:
    size, tables = keys.shape
    return Entries(
        np.repeat(np.arange(size), tables),
        np.tile(np.arange(tables, dtype=np.uint16), size),
        keys.reshape(-1),
    )


def write(store: Store, keys: np.ndarray, sketches: np.ndarray, rng: np.random.Generator) -> float:
    """Write documents in batches; return how many a second."""
    spent = 0.0
    for first in range(0, len(keys), BATCH_ROWS):
        documents = make_documents(first, sketches[first : first + BATCH_ROWS], rng)
        changes = Changes(documents, make_entries(keys[first : first + BATCH_ROWS]))
        begun = time.perf_counter()
        with store.writing() as writer:
            writer.write(changes)
        spent += time.perf_counter() - begun
    return len(keys) / spent


def query(
    store: Store, keys: np.ndarray, size: int, times: int, rng: np.random.Generator
) -> tuple[float, float, int]:
    """Look documents up, so many at once; return how many a second, the median in microseconds, and
    how many missed.
    """
    spent = []
    missed = 0
    for _ in range(times):
        rows = rng.integers(0, len(keys), size)
        lookups = make_entries(keys[rows])
        begun = time.perf_counter()
        with store.reading() as snapshot:
            found = snapshot.find(lookups, LIMIT)
        spent.append(time.perf_counter() - begun)
        pairs = set(zip(lookups.document[found.entry].tolist(), found.row.tolist(), strict=True))
        missed += sum((i, row) not in pairs for i, row in enumerate(rows.tolist()))
    return size * times / sum(spent), float(np.median(spent)) * 1e6, missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", choices=SERVERS)
    parser.add_argument("method", choices=("simhash", "minhash"))
    parser.add_argument("documents", type=int)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    layout, keys, sketches = make_keys(options.method, options.documents, rng)
    make, program = SERVERS[options.server]
    with make(program()) as server:
        store = create_store(server.address(), StoreSettings({}, layout, SCHEMA))
        print(f"documents written a second: {write(store, keys, sketches, rng):,.0f}")
        for size, times in ((1, 2_000), (100, 60)):
            rate, median, missed = query(store, keys, size, times, rng)
            print(
                f"queries a second, {size} at once: {rate:,.0f}; median {median:,.0f} "
                f"microseconds; missed {missed}"
            )
        sizes = {name: value for name, value in store.describe().items() if name.endswith("bytes")}
        print(
            "bytes a document:",
            {name: round(value / options.documents) for name, value in sizes.items()},
        )
        print("damage:", store.verify() or "none")
        store.close()
    print(conditions())


if __name__ == "__main__":
    main()
