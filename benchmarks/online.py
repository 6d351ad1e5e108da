"""Measure an index that decides about a few documents at a time: in this process, and as a service.

`online.py` adds texts of 120 words, one in ten a near-duplicate of the one before, to an index in a
folder: 1, 12 and 60 in a call, each call synced to disk, and asks for them one by one. datasketch
(in memory and on Redis) and band keys in RocksDB do the same, one by one. Then the service gets
single documents at a rate on one processor (run_service.py). Every answer is checked before a
figure is shown. The table is in results/online.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import online_parts
import run_service
from environment import HERE, commit, machine, peers_python, versions

import neardup
from neardup.methods.registry import method_of

sys.path.append(str(HERE.parent / "tests"))
from reference.load import Load, texts
from servers import Redis, redis_program

CALLS = (1, 12, 60)
METHOD = neardup.MinHash()
TITLES = {
    "memory": "datasketch MinHashLSH in memory",
    "redis": "datasketch MinHashLSH on Redis",
    "rocksdb": "band keys in RocksDB, synced",
}


class Times(NamedTuple):
    """Milliseconds of a call: medians of the wall clock and of the processor, and the 99th
    percentile of the wall clock.
    """

    wall: float
    processor: float
    late: float

    @classmethod
    def of(cls, clocks: list[tuple[float, float]]) -> Times:
        """Return the times of calls in seconds."""
        walls = sorted(wall for wall, _ in clocks)
        return cls(
            wall=1000 * statistics.median(walls),
            processor=1000 * statistics.median(processor for _, processor in clocks),
            late=1000 * walls[int(0.99 * (len(walls) - 1))],
        )


def parse() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=int, default=10_000, help="documents in the index before")
    parser.add_argument("--texts", type=int, default=1_200, help="texts to add in each way")
    parser.add_argument("--rates", type=float, nargs="*", default=[1000.0, 3000.0, 5000.0])
    parser.add_argument("--load-seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument(
        "--peers-base", default=sys.executable, help="Python of the peers; '' for none"
    )
    parser.add_argument("--folder", help="for the indexes: a folder on the disk to measure")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    return parser.parse_args()


def timed(work: Callable[[], Any], clocks: list[tuple[float, float]]) -> Any:
    """Return what a function returns; append its seconds of wall and of processor time."""
    wall = time.perf_counter()
    processor = time.process_time()
    result = work()
    clocks.append((time.perf_counter() - wall, time.process_time() - processor))
    return result


def measure_library(arguments: argparse.Namespace, sent: list[str]) -> dict[str, Times]:
    """Add the texts in calls of each size, and ask for them; return the times by name."""
    found = {}
    with neardup.Index.create("memory:", method=METHOD) as index:
        expected = index.add_many_if_new(sent)["kept"].to_pylist()
    for size in CALLS:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            path = Path(folder) / "an.index"
            run_service.fill(path, METHOD, arguments.before)
            adding: list[tuple[float, float]] = []
            kept = []
            with neardup.Index.open(path) as index:
                index.add_many_if_new(["a first text", "a first text"])
                for begin in range(0, len(sent), size):
                    part = sent[begin : begin + size]
                    answers = timed(lambda part=part: index.add_many_if_new(part), adding)
                    kept += answers["kept"].to_pylist()
                assert kept == expected, f"{size} in a call are decided in another way"
                found[f"add, {size} in a call"] = Times.of(adding[len(adding) // 10 :])
                if size == 1:
                    found |= measure_queries(index, sent)
    return found


def measure_queries(index: neardup.Index, sent: list[str]) -> dict[str, Times]:
    """Ask for texts that the index has, and for texts that it has not."""
    hitting: list[tuple[float, float]] = []
    missing: list[tuple[float, float]] = []
    for text, other in zip(sent, texts(len(sent), seed=9), strict=True):
        assert timed(lambda text=text: index.query(text), hitting), "a text is not found"
        assert not timed(lambda other=other: index.query(other), missing), "another one is found"
    return {"query, found": Times.of(hitting), "query, not found": Times.of(missing)}


def measure_parts(arguments: argparse.Namespace, sent: list[str]) -> dict[str, dict[str, float]]:
    """Return the milliseconds of each part of a call, by the kind of the call."""
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "an.index"
        run_service.fill(path, METHOD, arguments.before)
        with neardup.Index.open(path) as index, online_parts.clocked() as clock:
            index.add_many_if_new(["a first text", "a first text"])
            # The first of ten texts is similar to the one before it.
            new = [text for number, text in enumerate(sent) if number % 10]
            near = sent[10::10]

            def add(text: str) -> None:
                index.add_many_if_new([text])

            return {
                "add, new": online_parts.measure(clock, add, new),
                "add, near-duplicate": online_parts.measure(clock, add, near),
                "query, found": online_parts.measure(clock, index.query, new),
                "query, not found": online_parts.measure(
                    clock, index.query, texts(len(sent), seed=9)
                ),
            }


def lines_of_parts(parts: dict[str, dict[str, float]]) -> list[str]:
    """Return the table of the parts of a call."""
    lines = [
        f"| processor, ms | {' | '.join(parts)} |",
        f"|---|{'---:|' * len(parts)}",
    ]
    names = next(iter(parts.values()))
    for name in names:
        cells = [f"{times[name]:.3f}" if times[name] else "" for times in parts.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    sums = [f"{sum(times.values()):.3f}" for times in parts.values()]
    return [*lines, f"| **together** | {' | '.join(sums)} |"]


def measure_peers(
    arguments: argparse.Namespace, sent: list[str], python: str
) -> dict[str, dict[str, Times]]:
    """Let the peers add the texts one by one; return their times by name."""
    bands = method_of(METHOD).lookup.bands
    assert bands is not None
    found = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name, redis_server() as port:
        folder = Path(name)
        (folder / "texts.json").write_text(json.dumps(sent))
        options = {
            "bands": bands.num_bands,
            "rows": bands.rows_per_band,
            "ngram": METHOD.ngram,
            "before": arguments.before,
            "folder": name,
            "port": port,
        }
        for tool in TITLES if port else [tool for tool in TITLES if tool != "redis"]:
            files = [str(folder / "texts.json"), str(folder / "answers.json")]
            job = [python, str(HERE / "online_jobs.py"), tool, *files, json.dumps(options)]
            subprocess.run(job, check=True)
            done = json.loads((folder / "answers.json").read_text())
            check_peer(tool, done["answers"])
            found[tool] = {
                part: Times.of(done[part][len(sent) // 10 :])
                for part in ("signing", "adding", "asking")
            }
    return found


def check_peer(tool: str, answers: list[str | None]) -> None:
    """Exit unless 95 % of the near-duplicates are found, and 99 % of the others are not."""
    near = [
        answer is not None for number, answer in enumerate(answers) if number and number % 10 == 0
    ]
    others = [answer is None for number, answer in enumerate(answers) if number % 10]
    if sum(near) < 0.95 * len(near) or sum(others) < 0.99 * len(others):
        sys.exit(f"{tool} found {sum(near)} of {len(near)}, and took {others.count(False)} others.")


@contextmanager
def redis_server() -> Iterator[int]:
    """Run Redis, and return its port; 0 if it is not installed."""
    if shutil.which("redis-server") is None:
        yield 0
        return
    server = Redis(redis_program())
    server.start()
    try:
        yield server.port
    finally:
        server.process.send_signal(server.stop)
        server.process.wait()


def measure_service(arguments: argparse.Namespace, rate: float) -> dict[str, float]:
    """Send single documents to the service at a rate, check the answers, and return the figures."""
    sent = texts(int(rate * arguments.load_seconds))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "an.index"
        run_service.fill(path, METHOD, arguments.before)
        process, url = run_service.start(path)
        load = Load(url, sent, rate, arguments.connections)
        figures = run_service.measure(load, url, process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        run_service.check(path, METHOD, sent, load.answers)
    return figures


def lines_of(times: dict[str, Times], peers: dict[str, dict[str, Times]]) -> list[str]:
    """Return the table of calls."""
    one = times[f"add, {CALLS[0]} in a call"]
    lines = [
        "| | processor, ms | wall, ms | p99, ms | processor, of one document in neardup |",
        "|---|---:|---:|---:|---:|",
    ]

    def line(title: str, each: Times) -> str:
        ratio = each.processor / one.processor
        cells = f"{each.processor:.2f} | {each.wall:.2f} | {each.late:.2f} | {ratio:.2f}"
        return f"| {title} | {cells} |"

    lines += [line(f"neardup, {name}", each) for name, each in times.items()]
    for tool, parts in peers.items():
        lines.append(line(f"{TITLES[tool]}: signature", parts["signing"]))
        lines.append(line(f"{TITLES[tool]}: query, then insert", parts["adding"]))
        lines.append(line(f"{TITLES[tool]}: query", parts["asking"]))
    return lines


def main() -> None:
    """Run the benchmark, and write its page."""
    arguments = parse()
    load = os.getloadavg()[0]
    sent = texts(arguments.texts)
    times = measure_library(arguments, sent)
    parts = measure_parts(arguments, sent)
    peers: dict[str, dict[str, Times]] = {}
    names = versions(
        sys.executable, ["numpy", "numba", "pyarrow", "uvicorn", "uvloop", "httptools"]
    )
    if arguments.peers_base:
        requirements = HERE / "requirements-online.txt"
        python = peers_python(HERE / ".venv-peers-online", arguments.peers_base, requirements)
        peers = measure_peers(arguments, sent, python)
        names |= versions(python, ["datasketch", "redis", "rocksdict"])
    facts = machine()
    lines = [
        "# A few documents at a time",
        "",
        "Made by `python benchmarks/online.py`. Read this first:",
        "",
        f"- Commit {commit()}; {facts['processor']}, {facts['cores']} cores, {facts['memory']}; "
        f"Python {facts['python']}; load average {load:.1f} at the begin.",
        f"- {', '.join(f'{name} {version}' for name, version in names.items())}.",
        f"- {arguments.before:,} documents are in the index before. {arguments.texts:,} texts of "
        "120 words, one in ten a near-duplicate. Medians of calls, from the text to the answer; "
        "those of neardup are synced to disk, and confirm each duplicate by its shingles.",
        "- The peers do not confirm candidates. datasketch in memory is lost with the process, and "
        "Redis writes as its default does, not at each call.",
        "",
        *lines_of(times, peers),
        "",
        "## Where the time of one document goes",
        "",
        "Medians of each part without the parts inside it, in a run of its own, clocks included. "
        "A sync leaves the caches of the processor cold, so that adding a document takes more time "
        "for the same parts than a query.",
        "",
        *lines_of_parts(parts),
        "",
        "## The service on one processor",
        "",
        f"Single documents on {arguments.connections} connections, {arguments.load_seconds:g} s at "
        "each rate; a time begins when the request was due.",
        "",
        "| sent/s | answered/s | p50, ms | p99, ms | processor of a request, ms | in a batch |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for rate in arguments.rates:
        figures = measure_service(arguments, rate)
        names_of_figures = ("requests/s", "p50, ms", "p99, ms")
        shown = " | ".join(f"{figures[name]:,.1f}" for name in names_of_figures)
        cost = figures["processor time of a request, ms"]
        batch = figures["documents in a batch"]
        lines.append(f"| {rate:,.0f} | {shown} | {cost:.3f} | {batch:.0f} |")
    page = "\n".join([*lines, ""])
    (arguments.results / "online.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
