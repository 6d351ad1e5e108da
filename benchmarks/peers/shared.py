"""What every peer's adapter needs: arguments, the corpus, the files it leaves.

An adapter reads the `text` column of INPUT.parquet and writes, into an empty OUTPUT_DIR,
`kept.parquet` (the kept rows, all columns) and `removed.parquet` (row, kept_row; kept_row is null
where the peer does not tell).
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from words import shingles

NGRAM = 5
THRESHOLD = 0.8
_BATCH_ROWS = 512


def arguments(description: str, confirm: tuple[str, ...]) -> argparse.Namespace:
    """Parse the command line that all adapters share; the first of `confirm` is the default.

    bands : what shares a band is a duplicate; estimate : the signatures must agree in `floor()` of
    their values; exact : the Jaccard similarity of the shingle sets must reach the threshold.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bands", type=int, default=12)
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--confirm", choices=confirm, default=confirm[0])
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    args.hashes = args.bands * args.rows
    return args


def floor(hashes: int, similarity: float = THRESHOLD, miss: float = 0.005) -> float:
    """Return the highest share of equal hashes that a pair this similar misses with probability <=
    `miss`.

    A filter at the threshold itself would lose almost half of the pairs that just reach it.
    """
    tail = 0.0
    for equal in range(hashes + 1):
        tail += math.comb(hashes, equal) * similarity**equal * (1 - similarity) ** (hashes - equal)
        if tail > miss:
            return equal / hashes
    return 1.0


def texts(path: Path) -> list[str]:
    """Return the text column."""
    column: list[str] = pq.read_table(path, columns=["text"]).column("text").to_pylist()
    return column


def _batches(path: Path) -> Iterator[list[str]]:
    for batch in pq.ParquetFile(path).iter_batches(batch_size=_BATCH_ROWS, columns=["text"]):
        yield batch.column(0).to_pylist()


def sign_in_processes(path: Path, threads: int, sign: Callable[[list[str]], Any]) -> Iterator[Any]:
    """Yield sign(texts) of each batch of rows, in order, computed by `threads` processes."""
    with multiprocessing.get_context("fork").Pool(threads) as pool:
        yield from pool.imap(sign, _batches(path))


class ExactCheck:
    """Exact Jaccard similarity between rows, by Python sets; the sets of kept candidates are
    remembered.
    """

    def __init__(self, path: Path) -> None:
        self._texts = texts(path)
        self._sets: dict[int, frozenset[int]] = {}

    def _set(self, row: int) -> frozenset[int]:
        if row not in self._sets:
            self._sets[row] = frozenset(map(hash, shingles(self._texts[row], NGRAM)))
        return self._sets[row]

    def best(self, row: int, candidates: Iterable[int]) -> int | None:
        """Return the most similar candidate that reaches the threshold, the earlier of equals, or
        None.
        """
        own = self._set(row)
        found = None
        least = THRESHOLD
        for candidate in sorted(candidates):
            other = self._set(candidate)
            if min(len(own), len(other)) < least * max(len(own), len(other)):
                continue
            common = len(own & other)
            similarity = common / (len(own) + len(other) - common)
            if similarity > least or (similarity == least and found is None):
                found = candidate
                least = similarity
        return found


def write(args: argparse.Namespace, removed: dict[int, int | None]) -> None:
    """Write the kept rows, and the removed ones with the row each was removed for."""
    rows = sorted(removed)
    table = pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "kept_row": pa.array([removed[r] for r in rows], pa.int64()),
        }
    )
    pq.write_table(table, args.output / "removed.parquet")
    source = pq.ParquetFile(args.input)
    keep = np.ones(source.metadata.num_rows, dtype=bool)
    keep[rows] = False
    first = 0
    with pq.ParquetWriter(args.output / "kept.parquet", source.schema_arrow) as writer:
        for batch in source.iter_batches(batch_size=10_000):
            writer.write_batch(batch.filter(pa.array(keep[first : first + len(batch)])))
            first += len(batch)
    print(f"{keep.sum()} kept, {len(rows)} removed")
