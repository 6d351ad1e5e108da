"""Remove near-duplicates with datatrove: signature, buckets, cluster and filter, each by local
executors.

datatrove gives one file to one task, so the input is first cut into as many files as there are
threads, as its users would. Words come from its default English tokeniser (spaCy) after its
normalisation, less the rewriting of numbers and diacritics, which would compare other sets.
Clusters are connected; candidates are not confirmed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
from shared import NGRAM, arguments, write

os.environ.setdefault("LOGURU_LEVEL", "WARNING")


def _cut(path: Path, folder: Path, parts: int) -> list[int]:
    """Write the rows as `parts` files; return the first row of each."""
    folder.mkdir()
    table = pq.read_table(path)
    size = -(-table.num_rows // parts)
    for part in range(parts):
        pq.write_table(table.slice(part * size, size), folder / f"{part:05d}.parquet")
    return [part * size for part in range(parts)]


def _stages(args: argparse.Namespace, work: Path) -> Iterator[object]:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
    )
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.text import TextNormConfig

    config = MinhashConfig(
        n_grams=NGRAM,
        num_buckets=args.bands,
        hashes_per_bucket=args.rows,
        norm_config=TextNormConfig(norm_numbers=False, norm_unicode_diacritics=False),
        hash_config=HashConfig(precision=64, hash_fc="xxhash"),
    )
    signatures, buckets, removals = (
        str(work / name) for name in ("signatures", "buckets", "removals")
    )

    def executor(name: str, tasks: int, pipeline: list[object]) -> LocalPipelineExecutor:
        return LocalPipelineExecutor(
            pipeline,
            tasks=tasks,
            workers=min(tasks, args.threads),
            logging_dir=str(work / "logs" / name),
        )

    reader = ParquetReader(str(work / "parts"))
    sign = MinhashDedupSignature(output_folder=signatures, config=config)
    match = MinhashDedupBuckets(input_folder=signatures, output_folder=buckets, config=config)
    cluster = MinhashDedupCluster(input_folder=buckets, output_folder=removals, config=config)
    keep = MinhashDedupFilter(input_folder=removals)
    yield executor("signature", args.threads, [reader, sign])
    yield executor("buckets", args.bands, [match])
    yield executor("cluster", 1, [cluster])
    yield executor("filter", args.threads, [reader, keep, ParquetWriter(str(args.output / "kept"))])


def main() -> None:
    args = arguments(__doc__, ("bands",))
    work = args.output / "work"
    work.mkdir()
    starts = _cut(args.input, work / "parts", args.threads)
    log = os.open(work / "log.txt", os.O_WRONLY | os.O_CREAT)
    screen = os.dup(2)
    os.dup2(log, 2)
    for stage in _stages(args, work):
        stage.run()
    os.dup2(screen, 2)
    removed: dict[int, int | None] = {}
    for part, first in enumerate(starts):
        path = work / "removals" / f"{part:06d}.remove"
        if path.exists():
            removed.update(
                (first + row, None) for (row,) in struct.iter_unpack("<I", path.read_bytes())
            )
    write(args, removed)
    shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
