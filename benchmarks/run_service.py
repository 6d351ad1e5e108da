"""Measure the HTTP service: single check-and-add requests at a rate, on a large index, on one
processor.

`run_service.py --documents 1000000 --rate 3000 --load-seconds 60` makes an index of random texts,
starts the service on the first processor, and sends documents one by one from the others. The
decisions are compared with those of the sieve in the order of arrival before any figure is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

from environment import conditions

import neardup
from neardup.client import Client

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from reference.load import Load, texts

METHODS: dict[str, Any] = {"simhash": neardup.SimHash(), "minhash": neardup.MinHash()}


def main() -> None:
    """Run the benchmark."""
    arguments = parse()
    sent = texts(int(arguments.rate * arguments.load_seconds))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "an.index"
        begun = time.perf_counter()
        fill(path, METHODS[arguments.method], arguments.documents)
        print(
            f"an index of {arguments.documents:,} documents made in "
            f"{time.perf_counter() - begun:.0f} s"
        )
        process, url = start(path)
        load = Load(url, sent, arguments.rate, arguments.connections)
        figures = measure(load, url, process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        check(path, METHODS[arguments.method], sent, load.answers)
    for name, value in figures.items():
        print(f"{name:<44}{value:>12,.2f}")
    print(conditions())


def parse() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1_000_000, help="in the index before")
    parser.add_argument("--rate", type=float, default=3000, help="requests a second")
    parser.add_argument("--load-seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--method", choices=METHODS, default="simhash")
    parser.add_argument("--folder", help="for the index: a folder on the disk to measure")
    return parser.parse_args()


def fill(path: Path, method: Any, number: int) -> None:
    """Make an index of texts of random words."""
    choose = random.Random(2)
    vocabulary = [f"term{i}" for i in range(50_000)]
    with neardup.Index.create(path, method=method) as index:
        for begin in range(0, number, 20_000):
            size = min(20_000, number - begin)
            index.add_many([" ".join(choose.choices(vocabulary, k=60)) for _ in range(size)])
        index.compact()


def start(path: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the service on the first processor; leave the others to this process, which reads its
    log.

    A log in a file would be written to the disk that is measured.
    """
    processors = os.sched_getaffinity(0)
    first = min(processors)
    os.sched_setaffinity(0, {first})
    command = [sys.executable, "-m", "neardup", "serve", str(path), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    os.sched_setaffinity(0, (processors - {first}) or processors)
    assert process.stderr is not None
    address = json.loads(process.stderr.readline())["address"]
    threading.Thread(target=read_all, args=(process.stderr,), daemon=True).start()
    return process, address


def read_all(log: IO[bytes]) -> None:
    """Read a log to its end."""
    while os.read(log.fileno(), 1 << 16):
        pass


def measure(load: Load, url: str, process: int) -> dict[str, float]:
    """Run the load, and return its figures."""
    with Client(url, timeout_s=300) as client:
        before = metrics(client)
        thread = threading.Thread(target=lambda: asyncio.run(load.run()))
        thread.start()
        memory = [anonymous_mb(process)]
        while thread.is_alive():
            thread.join(5)
            memory.append(anonymous_mb(process))
        after = metrics(client)
    number = len(load.times)
    batches = after['neardup_batch_size_count{queue="writes"}']
    return {
        "requests/s": number / load.seconds,
        "p50, ms": 1000 * load.percentile(0.5),
        "p90, ms": 1000 * load.percentile(0.9),
        "p99, ms": 1000 * load.percentile(0.99),
        "p99.9, ms": 1000 * load.percentile(0.999),
        "greatest, ms": 1000 * max(load.times),
        "processor time of a request, ms": 1000
        * (after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"])
        / number,
        "documents in a batch": number / batches,
        "memory, not mapped files, at the start, MB": memory[0],
        "in the middle, MB": memory[len(memory) // 2],
        "at the end, MB": memory[-1],
        "at most, MB": max(memory),
    }


def anonymous_mb(process: int) -> float:
    """Return the memory of a process that is no mapped file, in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return (
        int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1])
        / 1024
    )


def metrics(client: Client) -> dict[str, float]:
    """Return the values of /metrics by name."""
    page = client._send("GET", "/metrics", None)[2].decode()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if line[0] != "#"
    }


def check(path: Path, method: Any, sent: list[str], answers: dict[str, dict[str, Any]]) -> None:
    """Compare the answers with the sieve in the order of arrival.

    The words of the documents that were there before are others, so that they remove none of those
    sent.
    """
    assert len(answers) == len(sent), "answers are missing"
    with neardup.Index.open(path, read_only=True) as index:
        order = [
            id
            for table in index.documents()
            for id in table["id"].to_pylist()
            if not id.startswith("#")
        ]
    assert len(order) == len(sent), "documents are missing"
    with neardup.Index.create("memory:", method=method) as sieve:
        found = sieve.add_many_if_new([sent[int(id)] for id in order])
    for id, kept in zip(order, found["kept"].to_pylist(), strict=True):
        assert answers[id]["kept"] == kept, f"{id} is decided in another way"


if __name__ == "__main__":
    main()
