"""Compare the removal of near-duplicate vectors by neardup, faiss and semhash: first the answers,
then the times.

    python run_vectors.py --peers-python PYTHON [--rows 100000] [--dimensions 256] [--tools neardup
    faiss-flat ...]

The vectors are random, and the last tenth of them are each near to one of the first: their cosines
are even from 0.85 to 0.99, so that some two thirds reach the threshold 0.9. Other pairs of random
vectors of 256 numbers never do. So the right answer is known, and is computed without any of the
tools. requirements-vectors.txt names the peers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import measure
import numpy as np
import vector_jobs
from environment import conditions

_TOOLS = (
    "neardup",
    "faiss-flat",
    "faiss-ivf:1024:1",
    "faiss-ivf:1024:8",
    "faiss-ivf:1024:32",
    "semhash",
)
# pairs so close to the threshold may be decided either way: faiss and semhash add up 32-bit floats
_MARGIN = 1e-6


def make(rows, dimensions, seed=0):
    """Return vectors of length 1, and the exact cosines of row rows - n + i with row i, n a tenth
    of the rows.
    """
    random = np.random.default_rng(seed)
    near = rows // 10
    vectors = random.standard_normal((rows, dimensions), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = random.uniform(0.85, 0.99, (near, 1)).astype(np.float32)
    first = vectors[:near]
    other = vectors[-near:]
    other -= (other * first).sum(1, keepdims=True) * first
    other *= np.sqrt(1 - cosines**2) / np.linalg.norm(other, axis=1, keepdims=True)
    other += cosines * first
    left = first.astype(np.float64)
    right = other.astype(np.float64)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return vectors, (left * right).sum(1) / lengths


def check(removed, rows, cosines):
    """Return the share of the pairs to find of which one row was removed, and the number of rows
    removed wrongly.
    """
    gone = np.zeros(rows, bool)
    gone[removed] = True
    near = len(cosines)
    count = gone[:near].astype(int) + gone[-near:]  # one of the two, whichever
    to_find = cosines >= vector_jobs.THRESHOLD + _MARGIN
    allowed = cosines >= vector_jobs.THRESHOLD - _MARGIN
    wrongly = int(gone[near:-near].sum() + count[~allowed].sum() + (count[allowed] > 1).sum())
    return (count[to_find] > 0).mean(), wrongly


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--tools", nargs="+", default=_TOOLS)
    given = parser.parse_args()
    vectors, cosines = make(given.rows, given.dimensions)
    job = Path(vector_jobs.__file__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "vectors.npy", vectors)
        del vectors
        print(
            "| tool | found | removed wrongly | s | processor s | peak MB |",
            "|---|" + "---:|" * 5,
            sep="\n",
            flush=True,
        )
        for tool in given.tools:
            python = sys.executable if tool == "neardup" else given.peers_python
            files = str(folder / "vectors.npy"), str(folder / "removed.npy")
            taken = measure.run([python, str(job), tool, *files], log=folder / "log.txt")
            if taken.code:
                sys.exit(f"{tool} failed: {(folder / 'log.txt').read_text()[-2000:]}")
            found, wrongly = check(np.load(files[1]), given.rows, cosines)
            times = f"{taken.wall_s:.1f} | {taken.cpu_s:.1f} | {taken.peak_mb:,.0f}"
            print(f"| {tool} | {found:.2%} | {wrongly} | {times} |", flush=True)
            if tool == "neardup" and (wrongly or found < 0.99):
                sys.exit("neardup removed a row wrongly, or found less than it must.")
    print(f"\n{conditions()}")


if __name__ == "__main__":
    main()
