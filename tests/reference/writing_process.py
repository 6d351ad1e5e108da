"""A process that writes random documents to an index and prints what was acknowledged, until it is
killed.
"""

from __future__ import annotations

import os
import random
import sys

import numpy as np
import pyarrow as pa

from neardup.candidates.lookups import Entries, Layout
from neardup.stores import embedded
from neardup.stores.base import Changes
from reference.store import document, table_of

LAYOUT = Layout((64, 64), 0)


def keys_of(row: int) -> list[int]:
    """Return the keys of a row in both tables, from which a test finds it again."""
    return [random.Random(f"{row} {table}").randrange(2**64) for table in range(2)]


def changes_of(first: int, size: int, rng: random.Random) -> Changes:
    """Return new documents; those before the first are seen, sometimes one is forgotten."""
    rows = range(first, first + size)
    documents = table_of(
        [document(row, rng, member=True, content=row.to_bytes(16, "little")) for row in rows]
    )
    keys = np.array([keys_of(row) for row in range(first, first + size)], np.uint64)
    entries = Entries(
        np.repeat(np.arange(size), 2),
        np.tile(np.arange(2, dtype=np.uint16), size),
        keys.reshape(-1),
    )
    seen = np.array([first - 1] if first else [], np.int64)
    forgotten = np.array([first - 1] if first and rng.random() < 0.1 else [], np.int64)
    return Changes(documents, entries, seen, first, forgotten)


def write_until_killed(path: str, seed: int) -> None:
    """Write to an index; print what is acknowledged: the rows of a change, first and stop, and the
    row forgotten.
    """
    rng = random.Random(seed)
    store = embedded.open(path, memory_bytes=1 << rng.choice([10, 13, 17, 20]))
    with store.writing() as writer:
        print("open", flush=True)
        while True:
            first = writer.num_rows
            changes = changes_of(first, rng.choice([1, 1, 1, 40]), rng)
            writer.write(changes)
            line = " ".join(map(str, [first, writer.num_rows, *changes.forgotten.tolist()]))
            os.write(1, f"{line}\n".encode())  # a line or nothing, whenever it is killed
            if rng.random() < 0.05:
                writer.stage("monday", 1, pa.table({"text": ["a", "b"]}))
                print("staged", flush=True)
            if rng.random() < 0.03:
                store.compact()


if __name__ == "__main__":
    write_until_killed(sys.argv[1], int(sys.argv[2]))
