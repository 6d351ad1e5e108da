"""A process that writes documents to a store until it is killed.

It reads lines of an address, and for each forks a process that writes, so that these start at once.
What they write follows from the row, so that a reader knows what must be there.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from neardup.candidates.lookups import Entries, Layout
from neardup.stores.addresses import open_store
from neardup.stores.base import Changes, Snapshot, Store
from neardup.stores.packed_rows import pack_table
from reference.store import document, table_of

LAYOUT = Layout((64, 64, 64), 0)


def change_at(row: int) -> Changes:
    """Return the change that is written when a store has so many rows: some documents, and one that
    is forgotten.
    """
    size = 1 + row * 7919 % 13
    documents = [document(row + i, random.Random(row + i), member=True) for i in range(size)]
    num_tables = len(LAYOUT.prefix_bits)
    at = np.repeat(np.arange(size), num_tables)
    entries = Entries(
        at,
        np.tile(np.arange(num_tables, dtype=np.uint16), size),
        (row + at).astype(np.uint64) << 40,
    )
    forgotten = np.array([row - 1] if row else [], np.int64)
    return Changes(table_of(documents), entries, seen=forgotten, seen_at=1, forgotten=forgotten)


def rows_after(num_rows: int) -> set[int]:
    """Return the rows that were not forgotten when a store has so many. Requires: no change is half
    there.
    """
    rows = set[int]()
    row = 0
    while row < num_rows:
        change = change_at(row)
        rows |= set(range(row, row + len(change.documents or ())))
        rows -= set(change.forgotten.tolist())
        row += len(change.documents or ())
    assert row == num_rows
    return rows


def assert_whole(snapshot: Snapshot, acknowledged: int) -> None:
    """Check that a store has what was acknowledged, and each change as a whole."""
    assert snapshot.num_rows >= acknowledged
    expected = sorted(rows_after(snapshot.num_rows))
    found = [document for table in snapshot.scan(["row", "id"]) for document in table.to_pylist()]
    assert found == [{"row": row, "id": f"document {row}"} for row in expected]
    for table in range(len(LAYOUT.prefix_bits)):
        keys = (np.arange(snapshot.num_rows, dtype=np.uint64)) << np.uint64(40)
        tables = np.full(len(keys), table, np.uint16)
        listed = snapshot.find(Entries(np.arange(len(keys)), tables, keys), 10)
        assert listed.row.tolist() == listed.entry.tolist() == expected


def write_forever(store: Store) -> Iterator[int]:
    """Write changes, and yield the number of rows that were acknowledged."""
    while True:
        with store.writing() as writer:
            writer.write(change_at(writer.num_rows))
            yield writer.num_rows


class StoreWriter:
    """Processes that write to stores, one at a time."""

    def __init__(self) -> None:
        paths = [str(Path(__file__).parent.parent), *sys.path]
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )

    def start(self, address: str) -> int:
        """Let a process write to a store; return its number."""
        assert self.process.stdin is not None
        print(address, file=self.process.stdin, flush=True)
        return int(self.line())

    def line(self) -> str:
        """Return the next line that a process wrote: the number of acknowledged rows, or
        "ended".
        """
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        self.process.wait()


def _main() -> None:
    pack_table(
        table_of([document(0, random.Random(0))]), compact=True
    )  # so that kernels are there already
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            print(os.getpid(), flush=True)
            if line.startswith(("redis", "valkey")):
                from neardup.stores.redis import connection

                connection.EXPIRY_MS = 1_000  # the next writer takes over soon
            for num_rows in write_forever(open_store(line.strip())):
                os.write(1, b"%d\n" % num_rows)  # a line or nothing, whenever it is killed
        os.waitpid(child, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    _main()
