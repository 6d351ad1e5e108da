"""Measure the same index in every store: documents added, asked one by one, and their bytes.

    python tools/measure_stores.py ../shared/data

Prints the table of docs/index.md. Starts PostgreSQL and Redis, which must be installed, on free
ports of the loopback interface.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from neardup import Index

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import servers

WORDS = 100
DOCUMENTS = 20_000
BATCH = 1_000
SINGLE = 500


def main() -> None:
    """Print the table."""
    print(
        "| store | add-if-new, batches of 1,000 | one by one | query, median | bytes a document |"
    )
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for name, address in addresses(Path(folder), stack):
            print(f"| {name} | " + " | ".join(measure(address)) + " |", flush=True)


def addresses(folder: Path, stack: ExitStack) -> Iterator[tuple[str, str]]:
    """Yield the stores, each with the address of a new index; the servers run until the stack
    closes.
    """
    yield "memory", "memory:"
    yield "folder", str(folder / "an.index")
    yield "PostgreSQL", stack.enter_context(servers.Postgres(servers.postgres_program())).address()
    for policy in ("always", "everysec"):
        server = servers.Redis(
            servers.redis_program(), "--appendonly", "yes", "--appendfsync", policy
        )
        yield f"Redis, `appendfsync {policy}`", stack.enter_context(server).address()


def measure(address: str) -> tuple[str, ...]:
    """Return documents a second in batches and one by one, the median time of a query, and bytes a
    document.
    """
    draw = random.Random(1)
    vocabulary = [f"{a}{b}" for a in "bcdfghjklm" for b in map(str, range(1000))]
    texts = [" ".join(draw.choices(vocabulary, k=WORDS)) for _ in range(DOCUMENTS)]
    documents = pa.table(
        {"id": [f"document-{number}" for number in range(DOCUMENTS)], "text": texts}
    )
    with Index.create(address) as index:
        index.add_many_if_new(documents.slice(0, BATCH))  # compiles
        begun = time.perf_counter()
        for start in range(BATCH, DOCUMENTS, BATCH):
            index.add_many_if_new(documents.slice(start, BATCH))
        batched = (DOCUMENTS - BATCH) / (time.perf_counter() - begun)
        begun = time.perf_counter()
        for number in range(SINGLE):
            assert index.add_if_new(
                " ".join(draw.choices(vocabulary, k=WORDS)), id=f"single-{number}"
            ).kept
        single = SINGLE / (time.perf_counter() - begun)
        times = []
        for text in draw.sample(texts, SINGLE):
            begun = time.perf_counter()
            assert index.query(text)
            times.append(time.perf_counter() - begun)
        index.compact()
        size = index.info()["bytes_per_document"]
    return (
        f"{batched:,.0f}/s",
        f"{single:,.0f}/s",
        f"{statistics.median(times) * 1000:.2f} ms",
        f"{size:,.0f}",
    )


if __name__ == "__main__":
    main()
