"""Try the limit of `neardup sweep` for a second grade of similarity on draws of labelled sets, with
and without it.

    python tools/measure_second_grade.py ../shared/data [kinds/readmes.jsonl ...]

A draw has the texts of a share of the labelled groups, about as many as tools/measure_choosing.py
takes, and at most 40 % of the groups. Each suggestion is scored within the draw, against the best
threshold of 2 words. Seeds are fixed.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from make_examples import read_records
from measure_methods import CHINESE, ENGLISH

import neardup
from neardup.features.normalise import normalise
from neardup.verify import choosing

# The share of the groups that a draw has.
SHARES = {
    "zh_laws": 0.2,
    "en_terms": 0.1,
    "en_doc_versions": 0.4,
    "en_bible": 0.4,
    "zh_poetry": 0.025,
    "zh_ts, documents": 0.4,
    "zh_ts, sentences": 0.4,
    "en_licenses, whole": 0.4,
}
DRAWS = 100
ENOUGH = 0.9
SHARE_OF_KIND = 0.4  # of a file
Ints = npt.NDArray[np.int64]


class Graph(NamedTuple):
    """The pairs of a set. groups : the label of each text as a number, one of its own where there
    is none.
    """

    groups: Ints
    labelled: npt.NDArray[np.bool_]
    left: Ints
    right: Ints
    similarity: npt.NDArray[np.float64]


def read(folder: Path, name: str) -> Graph:
    """Return the pairs of a known set, or of a file, from similarity 0.1 on."""
    file, picked = {**ENGLISH, **CHINESE}.get(name, (name, bool))
    records = [record for record in read_records(folder / file) if picked(record)]
    texts = [record["text"] for record in records]
    if name.startswith("zh_ts"):
        texts = [normalise(text, neardup.MinHash(fold="chinese")) for text in texts]
    numbers: dict[object, int] = {}  # in the order of the texts
    groups = [
        numbers.setdefault(one["cluster"] or place, len(numbers))
        for place, one in enumerate(records)
    ]
    labelled = np.array([bool(record["cluster"]) for record in records])
    method = neardup.MinHash(ngram=2, threshold=choosing.LOWEST, recall=0.9)
    pairs = neardup.find_pairs(
        pa.table({"text": texts}), method=method, max_bucket_size=100_000
    ).pairs
    left, right = (pairs[side].cast(pa.int64()).to_numpy() for side in ("left_id", "right_id"))
    return Graph(
        np.array(groups), labelled, left, right, pairs["similarity"].to_numpy().astype(np.float64)
    )


def draw(graph: Graph, share: float, seed: int) -> Counter[str]:
    """Return whether a draw has a suggestion without and with the limit, and whether it is below 90
    % of the best.
    """
    kept = (np.random.default_rng(seed).random(int(graph.groups.max()) + 1) < share)[graph.groups]
    numbers = np.cumsum(kept) - 1
    near = kept[graph.left] & kept[graph.right]
    left = graph.left[near]
    right = graph.right[near]
    similarity = graph.similarity[near]
    left_numbers = numbers[left].astype(np.uint32)
    right_numbers = numbers[right].astype(np.uint32)
    levels = choosing.levels_of(left_numbers, right_numbers, similarity, int(kept.sum()))
    if not levels:
        return Counter()
    sizes = np.bincount(graph.groups[kept & graph.labelled])
    positives = int((sizes * (sizes - 1) // 2).sum())
    known = graph.labelled[left] & graph.labelled[right]
    same = graph.groups[left] == graph.groups[right]
    f1 = {}
    for threshold in choosing.STEPS.tolist():
        found = known & (similarity >= threshold)
        f1[threshold] = 2 * int((found & same).sum()) / max(1, int(found.sum()) + positives)
    level = max(reversed(levels), key=lambda each: each.score)
    is_short = f1[level.threshold] < ENOUGH * max(f1.values())
    spoken = {"without": level.doubts([]) is None, "with": level.doubts(levels) is None}
    found_names = [name for name, speaks in spoken.items() if speaks]
    return Counter(found_names + [f"{name} short" for name in found_names if is_short])


def main() -> None:
    """Print a row for each set."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    files = sys.argv[2:]
    print(
        "| drawn | texts in a draw | without the limit: suggestions, short | with it: suggestions, "
        "short |"
    )
    print("|---|---:|---:|---:|")
    for name in (*SHARES, *(str(Path(file).resolve()) for file in files)):
        graph = read(folder, name)
        share = SHARES.get(name, SHARE_OF_KIND)
        total: Counter[str] = sum((draw(graph, share, seed) for seed in range(DRAWS)), Counter())
        cells = [f"{total[which]}, {total[f'{which} short']}" for which in ("without", "with")]
        size = round(share * len(graph.groups), -1)
        print(f"| {Path(name).stem} | {size:.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
