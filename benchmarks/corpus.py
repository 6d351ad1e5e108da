"""Build the corpora: make_bulk.py's shards as one Parquet file, JSON lines, and plain text, one
line a document.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "text", "lang", "source")])
_ROW_GROUP = 10_000


class Corpus(NamedTuple):
    """One corpus on disk. lines : of JSON. mb : as asked for; megabytes : of UTF-8 text, as it came
    out.
    """

    mb: int
    parquet: Path
    text: Path
    lines: Path
    num_rows: int
    megabytes: float


def build(mb: int, work: Path, make_bulk: Path) -> Corpus:
    """Return the corpus of about `mb` MB of text in `work`, built when it is not there.

    Each size is made by its own run of make_bulk.py, which keeps the share of Chinese and takes
    varied packages first; the packages are downloaded once. The same package versions give the same
    bytes.
    """
    parquet, text, lines = (work / f"bulk-{mb}.{kind}" for kind in ("parquet", "txt", "jsonl"))
    if not parquet.exists():
        shards = work / f"bulk-{mb}"
        if not (shards / "manifest.json").exists():
            if not make_bulk.exists():
                sys.exit(f"{make_bulk} is missing; say where it is with --make-bulk.")
            command = [sys.executable, str(make_bulk), "--out", str(shards), "--mb", str(mb)]
            subprocess.run([*command, "--cache", str(work / "packages")], check=True)
        _write(shards, parquet, text)
    if not lines.exists():
        unfinished = lines.with_suffix(".partial")
        with open(unfinished, "wb") as joined:
            for path in sorted((work / f"bulk-{mb}").glob("bulk-*.jsonl")):
                joined.write(path.read_bytes())
        unfinished.rename(lines)
    return Corpus(
        mb,
        parquet,
        text,
        lines,
        pq.ParquetFile(parquet).metadata.num_rows,
        text.stat().st_size / 1e6,
    )


def _documents(shards: Path) -> Iterator[dict[str, str]]:
    for path in sorted(shards.glob("bulk-*.jsonl")):
        with open(path, encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _write(shards: Path, parquet: Path, text: Path) -> None:
    unfinished = parquet.with_suffix(".partial")
    with (
        pq.ParquetWriter(unfinished, _SCHEMA) as writer,
        open(text, "w", encoding="utf-8") as plain,
    ):
        rows: list[dict[str, str]] = []
        for row in _documents(shards):
            plain.write(row["text"].replace("\n", " ") + "\n")
            rows.append(row)
            if len(rows) == _ROW_GROUP:
                writer.write_table(pa.Table.from_pylist(rows, _SCHEMA))
                rows.clear()
        writer.write_table(pa.Table.from_pylist(rows, _SCHEMA))
    unfinished.rename(parquet)


def is_chinese(corpus: Corpus) -> np.ndarray:
    """Return a mask of the Chinese documents."""
    column = pq.read_table(corpus.parquet, columns=["lang"]).column("lang")
    mask: np.ndarray = np.array(column.to_pylist()) == "zh"
    return mask
