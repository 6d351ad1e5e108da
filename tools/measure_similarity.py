"""Measure the similarity of labelled texts by several kinds of shingles, for
benchmarks/results/accuracy-similarity.md.

    python tools/measure_similarity.py ../shared/data

A label says that two texts come from one original. For each set and each kind of shingle: the share
of labelled pairs that reach a threshold, and of all pairs that neardup finds at a threshold, the
share that has one label. Of en_licenses only whole licences are taken, without the notices that
refer to one.
"""

from __future__ import annotations

import re
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
from make_examples import Record, read_records

import neardup
from neardup.features.shingles import shingle_documents

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
SETS = {
    "en_licenses": (
        "data.jsonl.gz",
        (("words", 2), ("words", 3), ("words", 5), ("chars", 5), ("chars", 13)),
    ),
    "en_terms": ("data.jsonl.zst", (("words", 3), ("words", 5), ("chars", 13))),
    "zh_laws": ("data.jsonl.zst", (("words", 2), ("words", 3), ("words", 5), ("chars", 5))),
    "zh_poetry": (
        "data.jsonl.zst",
        (("words", 1), ("words", 2), ("words", 3), ("words", 5), ("chars", 3)),
    ),
}


def shingle_sets(texts: list[str], method: neardup.MinHash) -> list[np.ndarray]:
    """Return the sorted shingle set of each text."""
    shingles = shingle_documents(pa.array(texts, pa.large_string()), method)
    return [
        np.unique(shingles.hashes[a:b])
        for a, b in zip(shingles.offsets, shingles.offsets[1:], strict=False)
    ]


def jaccard(left: np.ndarray, right: np.ndarray) -> float:
    """Return the exact Jaccard similarity of two sets."""
    shared = len(np.intersect1d(left, right, assume_unique=True))
    return shared / max(1, len(left) + len(right) - shared)


def labelled_similarities(records: list[Record], method: neardup.MinHash) -> np.ndarray:
    """Return the similarity of every pair of texts under one label."""
    groups: dict[str, list[str]] = {}
    for record in records:
        if record["cluster"]:
            groups.setdefault(record["cluster"], []).append(record["text"])
    similarities = []
    for texts in groups.values():
        if len(texts) > 1:
            similarities += [
                jaccard(*pair) for pair in combinations(shingle_sets(texts, method), 2)
            ]
    return np.array(similarities)


def found_pairs(records: list[Record], method: neardup.MinHash) -> tuple[np.ndarray, np.ndarray]:
    """Return the similarity of each pair found whose labels are known, and whether they are the
    same.
    """
    labels = [record["cluster"] for record in records]
    pairs = neardup.find_pairs(
        [record["text"] for record in records], method=method, max_bucket_size=100_000
    ).pairs
    left, right = (pairs[name].to_numpy().astype(np.int64) for name in ("left_id", "right_id"))
    similarity = pairs["similarity"].to_numpy()
    same = np.array([labels[a] == labels[b] for a, b in zip(left, right, strict=True)], bool)
    known = np.array(
        [bool(labels[a] and labels[b]) for a, b in zip(left, right, strict=True)], bool
    )
    return similarity[known], same[known]


def measure_labels(sets: Path) -> None:
    """Print a table for each labelled set."""
    for name, (file, kinds) in SETS.items():
        records = [
            record
            for record in read_records(sets / name / file)
            if record.get("kind", "text") == "text"
        ]
        heads = " | ".join(f"≥ {t}" for t in THRESHOLDS)
        pairs = sum(n * (n - 1) // 2 for n in group_sizes(records))
        print(f"\n### {name}: {len(records):,} texts, {pairs:,} labelled pairs\n")
        print(
            f"| shingles | {heads} | median | found at 0.5: one label | found at 0.8: one label |"
        )
        print("|---|" + "---:|" * (len(THRESHOLDS) + 3))
        for tokens, ngram in kinds:
            method = neardup.MinHash(tokens=tokens, ngram=ngram, threshold=0.5, recall=0.99)
            labelled = labelled_similarities(records, method)
            cells = [f"{100 * np.mean(labelled >= t):.1f} %" for t in THRESHOLDS] + [
                f"{np.median(labelled):.2f}"
            ]
            similarity, same = found_pairs(records, method)
            for t in (0.5, 0.8):
                among = same[similarity >= t]
                cells.append(f"{100 * np.mean(among):.1f} % of {len(among):,}")
            print(f"| {ngram} {tokens} | " + " | ".join(cells) + " |", flush=True)


def group_sizes(records: list[Record]) -> list[int]:
    """Return how many texts each label has."""
    counts: dict[str, int] = {}
    for record in records:
        if record["cluster"]:
            counts[record["cluster"]] = counts.get(record["cluster"], 0) + 1
    return list(counts.values())


def measure_scripts(sets: Path) -> None:
    """Print how alike one text in simplified and in traditional characters is, with and without
    folding.
    """
    print("\n### zh_ts: one text in two scripts, Jaccard similarity\n")
    print(
        "| texts | pairs | shingles | median as they are | median folded | lowest 5 % folded | "
        "reach 0.8, folded |"
    )
    print("|---|---:|---|---:|---:|---:|---:|")
    folder = sets / "zh_ts"
    records = read_records(folder / "documents.jsonl.gz") + read_records(
        folder / "sentences.jsonl.gz"
    )
    sources: dict[str, dict[str, dict[str, str]]] = {}
    for record in records:
        scripts = sources.setdefault(record["source"], {}).setdefault(record["cluster"], {})
        scripts[record["script"]] = record["text"]
    for source, clusters in sources.items():
        pairs = [
            (scripts["hans"], scripts["hant"]) for scripts in clusters.values() if len(scripts) == 2
        ]
        letters = [(keep_letters(left), keep_letters(right)) for left, right in pairs]
        for kind, tokens, texts in (
            ("5 words", "words", pairs),
            ("5 chars", "chars", pairs),
            ("5 chars, letters and digits only", "chars", letters),
        ):
            plain, folded = (
                np.array([jaccard(*shingle_sets(list(pair), method)) for pair in texts])
                for method in (
                    neardup.MinHash(tokens=tokens, fold=fold) for fold in ((), ("chinese",))
                )
            )
            cells = (
                f"{np.median(plain):.2f}",
                f"{np.median(folded):.2f}",
                f"{np.quantile(folded, 0.05):.2f}",
            )
            reach = f"{100 * np.mean(folded >= 0.8):.0f} %"
            print(f"| {source} | {len(pairs):,} | {kind} | {' | '.join(cells)} | {reach} |")


def keep_letters(text: str) -> str:
    """Return a text without spaces and punctuation."""
    return re.sub(r"[\W_]+", "", text)


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    measure_scripts(folder)
    measure_labels(folder)
