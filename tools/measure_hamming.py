"""Measure all pairs of fingerprints within a Hamming distance, and an index of them: seconds and memory by number.

    python tools/measure_hamming.py            # 1e5 to 1e7
    python tools/measure_hamming.py --to 1e8 --distance 3 --bits 64

The data are random bits, and one in a hundred fingerprints is a copy of another with 0 to 4 bits flipped. Every such
pair within the distance must be found, and none twice; a run that misses one stops with an error. Each row is a
process of its own, so that its memory is its own: the largest of the whole process, Python and compiler included. What
is compiled is compiled before.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from neardup import HammingIndex
from neardup.engines.hamming import join

_MOST_FLIPPED = 4
_MOST_QUERIES = 200_000


def make_fingerprints(count: int, bits: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return fingerprints uint64 (count, num_words), and the originals, the copies and the distances planted."""
    chance = np.random.default_rng(seed)
    fingerprints = chance.integers(0, 2 ** min(bits, 64), (count, -(-bits // 64)), np.uint64)
    chosen = chance.choice(count, 2 * (count // 200), replace=False)
    originals, copies = chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]
    flipped = chance.integers(0, _MOST_FLIPPED + 1, len(copies))
    fingerprints[copies] = fingerprints[originals]
    start, step = chance.integers(0, bits, len(copies)), 2 * chance.integers(0, bits // 2, len(copies)) + 1
    for number in range(_MOST_FLIPPED):  # an odd step through a power of two meets no bit twice
        rows, bit = copies[flipped > number], ((start + number * step) % bits)[flipped > number]
        fingerprints[rows, bit // 64] ^= np.uint64(1) << (bit % 64).astype(np.uint64)
    return fingerprints, originals, copies, flipped


def pack(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return pairs as single integers, the smaller position first."""
    return np.minimum(left, right).astype(np.uint64) << np.uint64(32) | np.maximum(left, right).astype(np.uint64)


def peak_mb() -> float:
    """Return the most memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_join(count: int, bits: int, distance: int, threads: int) -> dict[str, Any]:
    """Join once; return seconds, peak memory and what was found."""
    warm, *_ = make_fingerprints(300_000 if distance <= 4 else 3000, bits)
    list(join(warm, bits, distance, None, threads))
    fingerprints, originals, copies, flipped = make_fingerprints(count, bits)
    begun, processor = time.perf_counter(), time.process_time()
    parts = [(pack(part.left, part.right), part.distance) for part in join(fingerprints, bits, distance, None, threads)]
    seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    peak = peak_mb()
    pairs = np.concatenate([pair for pair, _ in parts]) if parts else np.empty(0, np.uint64)
    near = flipped <= distance
    wanted = pack(originals, copies)[near]
    missed = int((~np.isin(wanted, pairs)).sum())
    if missed or len(np.unique(pairs)) != len(pairs):
        sys.exit(f"{missed} of {len(wanted)} planted pairs missed, {len(pairs)} pairs found, some perhaps twice.")
    return {"seconds": seconds, "processor": processor, "peak_mb": peak, "pairs": len(pairs), "planted": len(wanted)}


def measure_index(count: int, bits: int, distance: int, threads: int) -> dict[str, Any]:
    """Build an index, query it in one batch and one by one; return seconds and peak memory."""
    warm = HammingIndex(bits, distance, threads=threads)
    words, *_ = make_fingerprints(20_000, bits)
    warm.add_many(np.arange(len(words)), words)
    warm.query_many(words[:20])
    fingerprints, originals, copies, flipped = make_fingerprints(count, bits)
    index = HammingIndex(bits, distance, threads=threads)
    begun = time.perf_counter()
    index.add_many(np.arange(count), fingerprints)
    built = time.perf_counter() - begun
    chance = np.random.default_rng(2)
    planted = copies[: _MOST_QUERIES // 4]
    asked = np.concatenate([planted, chance.integers(0, count, min(_MOST_QUERIES, count) - len(planted))])
    begun = time.perf_counter()
    found = index.query_many(fingerprints[asked])
    queried = time.perf_counter() - begun
    peak = peak_mb()
    begun = time.perf_counter()
    for words in fingerprints[asked[:1000]]:
        index.query(sum(int(word) << 64 * place for place, word in enumerate(words)))
    singly = time.perf_counter() - begun
    pairs = pack(asked[found["query"].to_numpy()], found["id"].to_numpy())
    near = flipped[: len(planted)] <= distance
    missed = int((~np.isin(pack(originals[: len(planted)], planted)[near], pairs)).sum())
    alone = int((~np.isin(pack(asked, asked), pairs)).sum())
    if missed or alone:
        sys.exit(f"{missed} planted neighbours and {alone} fingerprints themselves were not found.")
    return {
        "build": built,
        "query_us": queried / len(asked) * 1e6,
        "single_us": singly / 1000 * 1e6,
        "peak_mb": peak,
        "planted": int(near.sum()),
    }


def run(kind: str, count: int, options: argparse.Namespace) -> dict[str, Any]:
    """Return the row that another process measures."""
    asked = [kind, count, options.bits, options.distance, options.threads]
    environment = os.environ | {"MEASURE_HAMMING": json.dumps(asked)}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=float, default=1e7, help="the largest number of fingerprints")
    parser.add_argument("--index-to", type=float, default=1e7, help="the same for the index")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    counts = [10**power for power in range(5, 10)]
    print(f"All pairs of {options.bits} bits within {options.distance}, {options.threads} threads\n")
    print(
        "| fingerprints | seconds | processor s | peak MB | pairs | planted, all found |\n"
        "|---:|---:|---:|---:|---:|---:|"
    )
    for count in (count for count in counts if count <= options.to):
        row = run("join", count, options)
        print(
            f"| {count:,} | {row['seconds']:.2f} | {row['processor']:.2f} | {row['peak_mb']:.0f} | {row['pairs']:,} "
            f"| {row['planted']:,} |",
            flush=True,
        )
    print(
        "\nIndex\n\n| fingerprints | build s | query in a batch, us | query alone, us | peak MB |\n"
        "|---:|---:|---:|---:|---:|"
    )
    for count in (count for count in counts if count <= options.index_to):
        row = run("index", count, options)
        print(
            f"| {count:,} | {row['build']:.2f} | {row['query_us']:.2f} | {row['single_us']:.0f} "
            f"| {row['peak_mb']:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    if "MEASURE_HAMMING" in os.environ:
        name, *asked = json.loads(os.environ["MEASURE_HAMMING"])
        print(json.dumps({"join": measure_join, "index": measure_index}[name](*asked)))
    else:
        main()
