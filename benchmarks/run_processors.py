"""Measure how much of a run only a few threads can share: a forecast for machines with more
processors than this one.

    python run_processors.py FILE ... [--threads 16] [--job dedup] [--runs 3]

A run with more threads than processors is sampled every two milliseconds: how many threads of its
processes could run at that moment (states R and D of /proc), and how much processor time passed
since the sample before. Time in which n threads could run takes max(n, 1) / min(n, p) as long on p
processors as its processor time on n, so the samples of a stage add up to its time on any number of
processors (Amdahl 1967), as far as memory and disk keep pace. Where the machine has 4 processors or
more, the same run is also timed on 1, 2, 4, ... of them.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from environment import conditions

_PROCESSORS = (1, 2, 4, 8, 16, 32, 64)
_EVERY_S = 0.002
_EVERY_TREE = 10
_CHILD = """
import sys
from neardup.cli.main import prepare

prepare()  # as the command does
import neardup

class Stages:
    def begin(self, stage, total_documents):
        print(stage, flush=True)
    def advance(self, documents, num_bytes):
        pass
    def end(self, stage, seconds):
        print("between stages", flush=True)

job, threads, output, *files = sys.argv[1:]
options = {"threads": int(threads), "progress": Stages()}
if job == "dedup":
    neardup.dedup(files, output=output, tables=False, **options)
elif job == "pairs":
    neardup.find_pairs(files, output=output + ".parquet", tables=False, **options)
elif job == "cluster":
    neardup.cluster(files, output=output, tables=False, **options)
else:
    neardup.sign(files, output=output + ".parquet", **options)
"""

Samples = dict[
    str, collections.Counter[int]
]  # nanoseconds of processor time, by stage and number of threads


def measure(job: str, files: list[str], threads: int) -> Samples:
    """Return the samples of one run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _CHILD, job, str(threads), f"{folder}/out", *files]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stages = ["start"]
        assert process.stdout is not None
        lines = process.stdout
        follower = threading.Thread(
            target=lambda: stages.extend(line.strip() for line in lines), daemon=True
        )
        follower.start()
        samples: Samples = collections.defaultdict(collections.Counter)
        used: dict[int, int] = {}  # nanoseconds of processor time, by process
        for number in itertools.count():
            if number % _EVERY_TREE == 0:
                used |= dict.fromkeys(_children(process.pid) - set(used), 0)
            looks = {process_id: _look(process_id) for process_id in (process.pid, *used)}
            running = sum(threads for threads, _ in looks.values())
            samples[stages[-1]][running] += sum(
                max(0, now - used.get(key, 0)) for key, (_, now) in looks.items()
            )
            used = {key: max(now, used.get(key, 0)) for key, (_, now) in looks.items()}
            if process.poll() is not None:
                break
            time.sleep(_EVERY_S)
        follower.join()
    if process.returncode:
        sys.exit(f"The run ended with exit code {process.returncode}.")
    return samples


def _children(parent: int) -> set[int]:
    """Return the processes that a process has started."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_bytes().rpartition(b")")[2].split(None, 2)[1]) == parent:
                found.add(int(stat.parent.name))
    return found


def _look(process_id: int) -> tuple[int, int]:
    """Return how many threads of a process could run, and its processor time so far in
    nanoseconds.
    """
    running = 0
    tasks = f"/proc/{process_id}/task"
    try:
        for name in os.listdir(tasks):
            with open(f"{tasks}/{name}/stat", "rb") as file:
                running += file.read().rpartition(b")")[2].split(None, 1)[0] in (b"R", b"D")
        return running, time.clock_gettime_ns(
            ~process_id << 3 | 2
        )  # the clock of clock_getcpuclockid
    except OSError:
        return 0, 0  # a thread, or the process, has just ended


def forecast(counts: collections.Counter[int], processors: int) -> float:
    """Return the seconds that the sampled processor time takes on some processors."""
    return sum(used / min(max(threads, 1), processors) for threads, used in counts.items()) / 1e9


def render(samples: Samples) -> str:
    """Return the table of the stages: processor time, the share of one thread at most, seconds by
    processors.
    """
    total: collections.Counter[int] = collections.Counter()
    for counts in samples.values():
        total.update(counts)
    head = ("stage", "processor s", "serial", *(f"{number}" for number in _PROCESSORS))
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for stage, counts in [*samples.items(), ("all", total)]:
        used = forecast(counts, 1)
        serial = (counts[0] + counts[1]) / 1e9
        share = serial / max(1e-9, forecast(total, 1))
        cells = [
            f"{used:.2f}",
            f"{share:.1%}",
            *(f"{forecast(counts, number):.2f}" for number in _PROCESSORS),
        ]
        lines.append(f"| {stage} | {' | '.join(cells)} |")
    return "\n".join(lines)


def time_pinned(job: str, files: list[str], processors: int) -> float:
    """Return the seconds of a run on some of the processors of this machine."""
    chosen = sorted(os.sched_getaffinity(0))[:processors]
    folder = tempfile.mkdtemp()
    command = [sys.executable, "-c", _CHILD, job, str(processors), f"{folder}/out", *files]
    began = time.perf_counter()
    try:
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, chosen),
        )
        return time.perf_counter() - began
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Print the table of the run whose processor time is the median, and what this machine measures
    itself.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--job", choices=["dedup", "pairs", "cluster", "sign"], default="dedup")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    measure(arguments.job, arguments.files[:1], arguments.threads)  # compiles the kernels
    runs = [
        measure(arguments.job, arguments.files, arguments.threads) for _ in range(arguments.runs)
    ]
    used = [sum(forecast(counts, 1) for counts in samples.values()) for samples in runs]
    print(f"{arguments.job}, {arguments.threads} threads; seconds on so many processors:\n")
    print(render(runs[used.index(statistics.median_low(used))]))
    available = len(os.sched_getaffinity(0))
    for number in (number for number in _PROCESSORS if 4 <= available >= number):
        seconds = statistics.median(
            time_pinned(arguments.job, arguments.files, number) for _ in range(arguments.runs)
        )
        print(f"\nmeasured on {number} processors: {seconds:.2f} s")
    print(f"\n{conditions()}")


if __name__ == "__main__":
    main()
