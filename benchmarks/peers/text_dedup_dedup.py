"""Remove near-duplicates with text-dedup: `python -m text_dedup.minhash` with a config.toml.

Its own tokeniser (lower-cased runs of word characters, a Chinese clause as one word), its clusters
(connected), its check of candidates (`check_false_positive`, exact Jaccard of all pairs within a
cluster). Its Arrow output is converted to Parquet, as the other peers leave it; the cache of
`datasets` starts empty in every run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from shared import NGRAM, THRESHOLD, arguments, write

_CONFIG = """\
[input]
input_type = "local_files"
file_type = "parquet"
[input.read_arguments]
path = "parquet"
data_files = "{input}"
split = "train"
[algorithm]
algorithm_name = "minhash"
text_column = "text"
num_perm = {hashes}
bands = {bands}
rows = {rows}
threshold = {threshold}
ngram_size = {ngram}
min_length = 1
check_false_positive = {check}
num_proc = {threads}
[output]
output_dir = "{output}"
keep_index_column = true
[debug]
enable_profiling = false
"""


def _run(args: argparse.Namespace, work: Path) -> Path:
    result = work / "result"
    (work / "config.toml").write_text(
        _CONFIG.format(
            input=args.input.resolve(),
            output=result,
            hashes=args.hashes,
            bands=args.bands,
            rows=args.rows,
            threshold=THRESHOLD,
            ngram=NGRAM,
            check="true" if args.confirm == "exact" else "false",
            threads=args.threads,
        )
    )
    environment = dict(
        os.environ, HF_HOME=str(work / "cache"), HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1"
    )
    environment["POLARS_MAX_THREADS"] = str(args.threads)
    with open(work / "log.txt", "w") as log:
        code = subprocess.call(
            [sys.executable, "-m", "text_dedup.minhash"],
            cwd=work,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    if code:
        sys.exit(f"text-dedup ended with {code}:\n" + (work / "log.txt").read_text()[-4000:])
    return result


def main() -> None:
    args = arguments(__doc__, ("exact", "bands"))
    work = (args.output / "work").resolve()
    work.mkdir()
    kept: list[np.ndarray] = []
    for path in sorted(_run(args, work).glob("*.arrow")):
        with pa.memory_map(str(path)) as source:
            kept.extend(b.column("__INDEX__").to_numpy() for b in pa.ipc.open_stream(source))
    num_rows = pq.ParquetFile(args.input).metadata.num_rows
    dropped = np.setdiff1d(np.arange(num_rows), np.concatenate(kept))
    # Documents without a word are filtered out by text-dedup before it starts; they are removed by
    # it all the same.
    write(args, dict.fromkeys(dropped.tolist()))
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
