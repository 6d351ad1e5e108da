"""Measure `neardup dedup` by input format, by number of files and by setting, on one corpus.

    python benchmarks/run_formats.py FILE.parquet [--documents 43000] [--results FILE]

FILE has the columns `id` and `text`, such as a file of scale_corpus.py. Each case is a whole
process, whose kernels are compiled before; processor time counts all threads. Every case must
remove as many documents as the first one with its settings, or it shows no time. Prints the tables
of docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
from environment import conditions
from measure import run

_RUNS = 3
_MAX_CHARACTERS = 4_000


class Case(NamedTuple):
    """A row: its name, how its input is written below a folder, and the options of the command.

    decides_alike : whether it must remove the documents that the default removes.
    """

    name: str
    write: Callable[[pa.Table, Path], None]
    options: tuple[str, ...] = ()
    decides_alike: bool = True


def parquet(codec: str, files: int = 1) -> Callable[[pa.Table, Path], None]:
    """Return a writer of Parquet files."""

    def write(table: pa.Table, folder: Path) -> None:
        rows = -(-len(table) // files)
        for number in range(files):
            part = table.slice(number * rows, rows)
            pq.write_table(part, folder / f"{number:05d}.parquet", compression=codec)

    return write


def arrow(table: pa.Table, folder: Path) -> None:
    """Write a file of Arrow IPC."""
    pa.feather.write_feather(table, folder / "a.arrow", compression="zstd")


def csv(table: pa.Table, folder: Path) -> None:
    """Write a CSV file."""
    pa.csv.write_csv(table, folder / "a.csv")


def lines(suffix: str, codec: str | None) -> Callable[[pa.Table, Path], None]:
    """Return a writer of JSON lines."""

    def write(table: pa.Table, folder: Path) -> None:
        with pa.output_stream(folder / f"a.jsonl{suffix}", compression=codec) as stream:
            for row in table.to_pylist():
                stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode())

    return write


def one_each(suffix: str, before: str = "", after: str = "") -> Callable[[pa.Table, Path], None]:
    """Return a writer of a file for each document, a thousand in a folder."""

    def write(table: pa.Table, folder: Path) -> None:
        for number, text in enumerate(table["text"].to_pylist()):
            inner = folder / f"{number // 1000:03d}"
            inner.mkdir(exist_ok=True)
            (inner / f"{number:06d}{suffix}").write_text(f"{before}{text}{after}", encoding="utf-8")

    return write


FORMATS = (
    Case("Parquet, zstd", parquet("zstd")),
    Case("Parquet, snappy", parquet("snappy")),
    Case("Arrow, zstd", arrow),
    Case("CSV", csv),
    Case("JSON lines", lines("", None)),
    Case("JSON lines, zstd", lines(".zst", "zstd")),
    Case("JSON lines, gzip", lines(".gz", "gzip")),
    Case("Parquet, zstd, in 2,000 files", parquet("zstd", 2000)),
    Case("a text file for each document", one_each(".txt")),
    Case(
        "a page for each document, its main text compared",
        one_each(".html", "<html><body><p>", "</p></body></html>"),
        decides_alike=False,
    ),
)
SETTINGS = (
    Case("default", parquet("zstd")),
    *(
        Case(f"`{' '.join(options)}`", parquet("zstd"), options, decides_alike=False)
        for options in (
            ("--threshold", "0.5"),
            ("--recall", "0.999"),
            ("--linkage", "connected"),
            ("--method", "simhash"),
            ("--similarity", "containment"),
            ("--tokens", "chars", "--ngram", "13"),
            ("--cache-bytes", "0"),
            ("--write", "removed"),
        )
    ),
)


def main() -> None:
    """Measure all cases and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--documents", type=int, default=43_000)
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    table = pq.read_table(arguments.file, columns=["id", "text"]).slice(0, arguments.documents)
    texts = [text[:_MAX_CHARACTERS] for text in table["text"].to_pylist()]
    table = pa.table({"id": table["id"].cast(pa.string()), "text": texts})
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        parts = [f"{len(table):,} documents, {megabytes:.0f} MB of text."]
        parts += [rows_of(title, cases, table, work) for title, cases in CASES.items()]
    page = f"# Formats, files and settings\n\n{_HEAD}\n\n- {conditions()}\n\n" + "\n\n".join(parts)
    print(page)
    if arguments.results:
        arguments.results.write_text(page + "\n", encoding="utf-8")


CASES = {"input, and output in the same format": FORMATS, "setting": SETTINGS}
_HEAD = (
    "Made by `benchmarks/run_formats.py FILE.parquet --results FILE`. Whole processes, medians of\n"
    f"{_RUNS} runs; processor time of all threads."
)


def rows_of(title: str, cases: tuple[Case, ...], table: pa.Table, work: Path) -> str:
    """Return the table of some cases."""
    rows = [
        f"| {title} | processor s | wall s | documents a processor second | peak MB | removed |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    expected = 0
    for case in cases:
        folder = work / "input"
        folder.mkdir()
        case.write(table, folder)
        out = work / "out"
        command = [sys.executable, "-m", "neardup", "dedup", str(folder), "-o", str(out)]
        command += ["--overwrite", "--quiet", *case.options]
        runs = [run(command, log=work / "log.txt") for _ in range(_RUNS + 1)][1:]
        assert not any(one.code for one in runs), (work / "log.txt").read_text()
        removed = json.loads((out / "report.json").read_text())["counts"]["removed"]
        expected = expected or removed
        cells = [case.name, "-", "-", "-", "-", f"{removed:,}"]
        if removed == expected or not case.decides_alike:
            cpu = statistics.median(one.cpu_s for one in runs)
            wall = statistics.median(one.wall_s for one in runs)
            peak = max(one.peak_mb for one in runs)
            cells[1:5] = [f"{cpu:.1f}", f"{wall:.1f}", f"{len(table) / cpu:,.0f}", f"{peak:,.0f}"]
        rows.append(f"| {' | '.join(cells)} |")
        print(rows[-1], file=sys.stderr, flush=True)
        shutil.rmtree(folder)
        shutil.rmtree(out)
    return "\n".join(rows)


if __name__ == "__main__":
    main()
