"""Measure the engine on Spark by size: time, shuffle bytes, and the local engine beside it on the
same files.

    python tools/measure_spark.py SHARDS... --documents 100000 300000 [--work DIR] [--partitions N]
    [--csv FILE]

SHARDS are files of JSON lines with a field `text`, such as those of make_bulk.py. The documents are
windows of 60 to 180 words of these texts, from random places, so that windows of one text overlap:
near-duplicates of every similarity.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FILES = 16
COLUMNS = (
    "documents",
    "text_bytes",
    "engine",
    "seconds",
    "cpu_seconds",
    "shuffle_bytes",
    "shuffle_bytes_per_document",
    "pairs",
    "removed",
)


def make_corpus(shards: list[Path], count: int, directory: Path) -> None:
    """Write the windows as Parquet files, always the same ones."""
    directory.mkdir(parents=True)
    texts = []
    for shard in shards:
        with shard.open(encoding="utf-8") as lines:
            texts += [
                words for line in lines if len(words := json.loads(line)["text"].split(" ")) > 60
            ]
    chosen = random.Random(count)
    rows = []
    for number in range(count):
        words = chosen.choice(texts)
        begin = chosen.randrange(len(words) - 40)
        length = chosen.randrange(60, 180)
        rows.append((f"d{number}", " ".join(words[begin : begin + length])))
        if len(rows) == -(-count // FILES) or number == count - 1:
            ids, windows = zip(*rows, strict=True)
            name = f"part-{number * FILES // count:03d}.parquet"
            pq.write_table(
                pa.table({"id": ids, "text": windows}), directory / name, compression="zstd"
            )
            rows.clear()


def shuffle_bytes(events: Path) -> dict[str, int]:
    """Return the shuffle bytes of an event log by stage of neardup."""
    stages: dict[int, str] = {}
    written: dict[str, int] = {}
    for file in sorted(events.rglob("*")):
        for line in file.open(encoding="utf-8") if file.is_file() and file.stat().st_size else ():
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                name = (event.get("Properties") or {}).get("spark.job.description") or "other"
                stages |= dict.fromkeys(event["Stage IDs"], name)
            elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                name = stages.get(event["Stage ID"], "other")
                moved = event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                written[name] = written.get(name, 0) + moved
    return written


def follow(process: subprocess.Popen) -> float:
    """Wait for a process; return the processor seconds of its session: of the JVM and the Python
    workers too.
    """
    ticks: dict[str, int] = {}
    while process.poll() is None:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(fields[3]) == process.pid:
                ticks[stat.parent.name] = int(fields[11]) + int(fields[12])
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"The run failed with exit code {process.returncode}.")
    return sum(ticks.values()) / os.sysconf("SC_CLK_TCK")


def run(engine: str, corpus: Path, work: Path, partitions: int | None) -> dict[str, Any]:
    """Run one engine as a process; return its report, its times and its shuffle bytes."""
    output = work / f"out-{engine}"
    events = work / f"events-{engine}"
    subprocess.run(["rm", "-rf", str(output), str(events)], check=True)
    events.mkdir(parents=True)
    command = [sys.executable, "-m", "neardup", "dedup", str(corpus), "-o", str(output), "--json"]
    confs = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.absolute().as_uri(),
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    if partitions is not None:
        confs["spark.sql.shuffle.partitions"] = str(partitions)
    options = " ".join(f"--conf {name}={value}" for name, value in confs.items())
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": f"--driver-memory 4g {options} pyspark-shell",
    }
    if engine == "spark":
        command += ["--engine", "spark", "--master", f"local[{os.cpu_count()}]"]
    begun = time.perf_counter()
    with (work / "report.json").open("w+") as file:
        process = subprocess.Popen(
            command, env=environment, stdout=file, stderr=subprocess.DEVNULL, start_new_session=True
        )
        cpu = follow(process)
        seconds = time.perf_counter() - begun
        file.seek(0)
        report = json.load(file)
    return {"report": report, "seconds": seconds, "cpu": cpu, "shuffle": shuffle_bytes(events)}


def main() -> None:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shards", nargs="+", type=Path)
    parser.add_argument("--documents", nargs="+", type=int, default=[100_000, 300_000])
    parser.add_argument("--work", type=Path, default=Path("out/spark"))
    parser.add_argument("--partitions", type=int, help="of a shuffle; default: chosen by the run")
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    for count in arguments.documents:
        corpus = arguments.work / str(count)
        if not corpus.exists():
            make_corpus(arguments.shards, count, corpus)
        for engine in ("local", "spark"):
            found = run(engine, corpus, arguments.work, arguments.partitions)
            report = found["report"]
            shuffle = found["shuffle"]
            total = sum(shuffle.values())
            row = {
                "documents": count,
                "text_bytes": report["bytes"],
                "engine": engine,
                "seconds": round(found["seconds"], 1),
                "cpu_seconds": round(found["cpu"], 1),
                "shuffle_bytes": total,
                "shuffle_bytes_per_document": round(total / count),
                "pairs": report["counts"]["compared"],
                "removed": report["counts"]["removed"],
            }
            rows.append(row)
            print(json.dumps(row | {"by_stage": shuffle, "timings": report["timings"]}), flush=True)
        same = [
            pq.read_table(arguments.work / f"out-{engine}" / "removed.parquet")
            for engine in ("local", "spark")
        ]
        print(
            (
                f"{count:,} documents: removed.parquet is "
                f"{'equal' if same[0].equals(same[1]) else 'DIFFERENT'}"
            ),
            flush=True,
        )
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
