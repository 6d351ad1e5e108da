"""Measure recall against brute force: the table of benchmarks/results/accuracy-recall.md.

    python tools/measure_recall.py ../shared/data

The truth: the exact Jaccard similarity of all pairs of texts that share a shingle, from postings,
without bands. Each run is held against it: of the pairs there are, how many `find_pairs` found;
what it estimated; whether any similarity differs; how many documents `dedup` kept although an
earlier kept one resembles them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from make_examples import read_records

import neardup
from neardup.features.shingles import shingle_documents

LOWEST = 0.5
SETS = {
    "en_licenses": ("data.jsonl.gz", 5),
    "en_doc_versions": ("data.jsonl.zst", 5),
    "en_terms": ("data.jsonl.zst", 5),
    "zh_laws": ("data.jsonl.zst", 5),
    "zh_poetry": ("data.jsonl.zst", 3),
}
SETTINGS = (
    {"threshold": 0.8, "recall": 0.99},
    {"threshold": 0.8, "recall": 0.9},
    {"threshold": 0.8, "recall": 0.5},
    {"threshold": 0.7, "recall": 0.99},
    {"threshold": 0.5, "recall": 0.95},
    {"threshold": 0.8, "num_bands": 20, "rows_per_band": 5},
    {"threshold": 0.8, "num_bands": 8, "rows_per_band": 16},
)
Pairs = dict[tuple[int, int], float]


def true_pairs(texts: list[str], ngram: int) -> tuple[Pairs, set[tuple[int, int]]]:
    """Return the similarity of every pair at LOWEST or more, and which of them are copies."""
    shingles = shingle_documents(pa.array(texts, pa.large_string()), neardup.MinHash(ngram=ngram))
    sets = [
        np.unique(shingles.hashes[a:b])
        for a, b in zip(shingles.offsets, shingles.offsets[1:], strict=False)
    ]
    sizes = np.array([len(one) for one in sets])
    hashes = np.concatenate(sets)
    owners = np.repeat(np.arange(len(sets), dtype=np.int32), sizes)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    owners = owners[order]
    _, first = np.unique(hashes, return_index=True)
    group = np.repeat(np.arange(len(first)), np.diff([*first, len(hashes)]))
    numbers = np.empty(len(hashes), np.int64)
    numbers[order] = group  # shingle number of each member of each set, in the order of the sets
    last = np.append(first[1:], len(hashes))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    similarity: Pairs = {}
    for document in range(len(sets)):
        mine = numbers[starts[document] : starts[document + 1]]
        postings = [owners[first[n] : last[n]] for n in mine]
        if not postings:
            continue
        partners, shared = np.unique(np.concatenate(postings), return_counts=True)
        later = partners > document
        partners = partners[later]
        shared = shared[later]
        values = shared / (sizes[document] + sizes[partners] - shared)
        for i in np.flatnonzero(values >= LOWEST):
            similarity[document, int(partners[i])] = float(values[i])
    content = shingles.content
    copies = {(a, b) for a, b in similarity if (content[a] == content[b]).all()}
    return similarity, copies


def missed_removals(kept: np.ndarray, truth: Pairs, threshold: float) -> int:
    """Return how many kept documents resemble an earlier kept one."""
    return len({b for (a, b), s in truth.items() if s >= threshold and kept[a] and kept[b]})


def measure(name: str, texts: list[str], ngram: int) -> None:
    """Print a row for each setting."""
    truth, copies = true_pairs(texts, ngram)
    for values in SETTINGS:
        method = neardup.MinHash(ngram=ngram, **values)
        result = neardup.find_pairs(texts, method=method, max_bucket_size=100_000)
        wanted = {pair for pair, s in truth.items() if s >= method.threshold and pair not in copies}
        rows = zip(
            *(result.pairs[column].to_pylist() for column in result.pairs.column_names), strict=True
        )
        found = {(int(a), int(b)): s for a, b, s, exact in rows if not exact}
        assert all(abs(truth[pair] - s) < 1e-12 for pair, s in found.items()), (
            "a similarity is not exact"
        )
        measured = len(wanted & found.keys()) / max(1, len(wanted))
        estimate = result.report["recall"]
        bands = result.report["bands"]
        run = neardup.dedup(texts, method=method, max_bucket_size=100_000, recall_sample=500)
        kept = np.ones(len(texts), bool)
        kept[run.removed["id"].to_numpy().astype(np.int64)] = False
        missed = missed_removals(kept, truth, method.threshold)
        sample = run.report["recall_sample"]
        cells = [
            name,
            f"{method.threshold:g}",
            f"{values['recall']:g}" if "recall" in values else "given",
            f"{bands['num_bands']} x {bands['rows_per_band']}",
            f"{len(wanted):,}",
            percent(measured),
            (
                f"{percent(estimate['estimated'])} ({percent(estimate['low'])} to "
                f"{percent(estimate['high'])})"
            ),
            f"{percent(sample['recall'])} ({percent(sample['low'])} to {percent(sample['high'])})",
            f"{missed:,} of {run.report['counts']['removed'] + missed:,}",
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


def percent(share: float) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.2f} %"


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    heads = (
        "set",
        "threshold",
        "recall asked",
        "bands x rows",
        "true pairs",
        "found",
        "estimated",
        "sample of 500",
    )
    print("| " + " | ".join((*heads, "missed removals")) + " |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, (file, ngram) in SETS.items():
        measure(name, [record["text"] for record in read_records(folder / name / file)], ngram)
