"""Measure whose text `neardup passages` cuts, for benchmarks/results/accuracy-passages.md.

    python tools/measure_passages.py ../shared/data [DOCUMENTATION.parquet]

A label says that two texts come from one original. A passage is cut from a text and kept in another
one: of the same original, so it is a version of the text, or of another original, so it is
boilerplate or a quotation. The second table has the passages of each set that occur most, without
those of one original. DOCUMENTATION.parquet, from ../shared/data/make_bulk.py, has the columns text
and source: the source, a package, counts as the label.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from make_examples import read_records

import neardup

SETS = {
    "en_licenses": "data.jsonl.gz",
    "en_terms": "data.jsonl.zst",
    "en_doc_versions": "data.jsonl.zst",
    "en_bible": "data.jsonl.zst",
    "zh_laws": "data.jsonl.zst",
    "zh_poetry": "data.jsonl.zst",
}
_SHOWN = 3  # passages of each set
_OPENING = 70  # characters of each


def collections(folder: Path, bulk: Path | None) -> dict[str, tuple[list[str], list[str]]]:
    """Return the texts and the labels of each set."""
    found = {}
    for name, file in SETS.items():
        records = read_records(folder / name / file)
        found[name] = [one["text"] for one in records], [str(one["cluster"]) for one in records]
    if bulk is not None and bulk.exists():
        table = pq.read_table(bulk, columns=["text", "source"])
        found[bulk.stem] = table["text"].to_pylist(), table["source"].to_pylist()
    return found


def measure(
    name: str, texts: list[str], labels: list[str], *, duplicates_first: bool
) -> tuple[str, Counter[str]]:
    """Return a row of the table, and the passages from other originals by how often they were
    cut.
    """
    table = pa.table({"text": texts})
    if duplicates_first:
        result = neardup.dedup(table, passages=200)
        passages = result.passages
        kept = [text for text, stays in zip(texts, result.mask, strict=True) if stays]
    else:
        passages = neardup.remove_passages(table).passages
        kept = texts
    characters: dict[bool, int] = defaultdict(int)
    often: Counter[str] = Counter()
    lost: Counter[int] = Counter()
    for row in passages.to_pylist():
        size = row["end"] - row["start"]
        lost[row["row"]] += size
        if row["kept_row"] is None:
            continue
        other = labels[row["row"]] != labels[row["kept_row"]]
        characters[other] += size
        if other:
            begin = row["kept_start"]
            often[texts[row["kept_row"]][begin : begin + _OPENING].replace("\n", " ").strip()] += 1
    half = sum(size > len(texts[row]) / 2 for row, size in lost.items())
    total = sum(map(len, kept)) or 1
    shares = (f"{100 * characters[other] / total:.1f} %" for other in (False, True))
    first = "duplicates removed first" if duplicates_first else "all documents"
    cut = f"{100 * sum(lost.values()) / total:.1f} %"
    return f"| {name} | {first} | {len(kept):,} | {cut} | " + " | ".join(
        shares
    ) + f" | {half:,} |", often


def main() -> None:
    folder, *bulk = (Path(argument) for argument in sys.argv[1:])
    rows = []
    listed = []
    for name, (texts, labels) in collections(folder, bulk[0] if bulk else None).items():
        for duplicates_first in (False, True):
            row, often = measure(name, texts, labels, duplicates_first=duplicates_first)
            rows.append(row)
        listed += [
            f"| {name} | {count:,} | {passage.replace('|', ' ')} |"
            for passage, count in often.most_common(_SHOWN)
        ]
    print(
        "| set | | documents | cut | kept in the same original | kept in another | lost over half |"
    )
    print("|---|---|---:|---:|---:|---:|---:|", *rows, sep="\n", end="\n\n")
    print("| set | cut from | begins with |\n|---|---:|---|", *listed, sep="\n")


if __name__ == "__main__":
    main()
