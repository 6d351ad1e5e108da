"""Measure what a run leaves in its scratch files, and whether that is cheaper than reading the
texts again.

    python tools/measure_costs.py ../shared/data

For each set: bytes of scratch files for a byte of text, at their largest; the seconds to decode the
source again and to cut its texts into shingles, both on one thread, against those to write the
hashes to a file and to read them back; the seconds of each stage. Medians of three.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from make_examples import read_records

import neardup
from neardup.documents.batch import Columns
from neardup.features.shingles import shingle_documents
from neardup.runs.input_files import list_inputs

SETS = {"en_terms": "data.jsonl.zst", "en_licenses": "data.jsonl.gz", "zh_laws": "data.jsonl.zst"}


class DiskUse:
    """A progress that measures a folder at the end of each stage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.most = 0

    def begin(self, stage: str, total_documents: int | None) -> None:
        """Do nothing."""

    def advance(self, documents: int, num_bytes: int) -> None:
        """Do nothing."""

    def end(self, stage: str, seconds: float) -> None:
        """Measure."""
        size = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
        self.most = max(self.most, size)


def median_seconds(work: Callable[[], object]) -> float:
    """Return the median of three times that some work takes."""
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return median(seconds)


def store(hashes: np.ndarray, path: Path) -> int:
    """Write hashes to a file and read all of it back."""
    hashes.tofile(path)
    return int(np.fromfile(path, np.uint64).sum())


def measure(name: str, path: Path) -> None:
    """Print a row."""
    texts = [record["text"] for record in read_records(path)]
    size = sum(len(text.encode()) for text in texts)
    array = pa.array(texts, pa.large_string())
    method = neardup.MinHash()
    shingle_documents(array.slice(0, 10), method)  # compiled
    shingles = shingle_documents(array, method)
    (part,) = list_inputs([str(path)])
    decoding = median_seconds(
        lambda: sum(len(batch.rows) for batch in part.read(Columns("text"), print))
    )
    shingling = median_seconds(lambda: shingle_documents(array, method))
    with tempfile.TemporaryDirectory() as folder:
        storing = median_seconds(lambda: store(shingles.hashes, Path(folder) / "hashes"))
        progress = DiskUse(Path(folder) / "out.partial" / "scratch")
        report = neardup.dedup(path, output=Path(folder) / "out", progress=progress).report
    stages = ", ".join(f"{timing['stage']} {timing['seconds']:.2f}" for timing in report["timings"])
    print(
        f"| {name} | {size / 1e6:.1f} MB | {progress.most / size:.2f} | "
        f"{8 * len(shingles.hashes) / size:.2f} | {decoding:.2f} | {shingling:.2f} | {storing:.2f} "
        f"| {stages} |",
        flush=True,
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    print(
        "| set | text | scratch / text | hashes / text | decode, s | shingle, s | write + read "
        "back, s | stages, s |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for name, file in SETS.items():
        measure(name, folder / name / file)
