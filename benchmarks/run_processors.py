"""Measure how much of a run only a few threads can share: a forecast for machines with more processors than this one.

    python run_processors.py FILE ... [--threads 16] [--job dedup] [--runs 3]

A run with more threads than processors is sampled every two milliseconds: how many of its threads could run at that
moment (states R and D of /proc), and how much processor time passed since the sample before. Time in which n threads
could run takes max(n, 1) / min(n, p) as long on p processors as its processor time on n, so the samples of a stage add
up to its time on any number of processors (Amdahl 1967), as far as memory and disk keep pace. Where the machine has 4
processors or more, the same run is also timed on 1, 2, 4, ... of them.
"""

from __future__ import annotations

import argparse
import collections
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

_PROCESSORS = (1, 2, 4, 8, 16, 32, 64)
_EVERY_S = 0.002
_CHILD = """
import os, sys
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

Samples = dict[str, collections.Counter[int]]  # nanoseconds of processor time, by stage and number of threads


def measure(job: str, files: list[str], threads: int) -> Samples:
    """Return the samples of one run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _CHILD, job, str(threads), f"{folder}/out", *files]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stages = ["start"]
        assert process.stdout is not None
        lines = process.stdout
        follower = threading.Thread(target=lambda: stages.extend(line.strip() for line in lines), daemon=True)
        follower.start()
        samples: Samples = collections.defaultdict(collections.Counter)
        tasks, before = Path(f"/proc/{process.pid}/task"), 0
        while process.poll() is None:
            running, used = _look(tasks)
            samples[stages[-1]][running] += max(0, used - before)
            before = max(used, before)
            time.sleep(_EVERY_S)
        follower.join()
    if process.returncode:
        sys.exit(f"The run ended with exit code {process.returncode}.")
    return samples


def _look(tasks: Path) -> tuple[int, int]:
    """Return how many threads could run, and the processor time of the process so far in nanoseconds."""
    running = 0
    try:
        for name in os.listdir(tasks):
            state = (tasks / name / "stat").read_bytes().rpartition(b")")[2].split(None, 1)[0]
            running += state in (b"R", b"D")
        clock = ~int(tasks.parent.name) << 3 | 2  # that of clock_getcpuclockid
        return running, time.clock_gettime_ns(clock)
    except OSError:
        return 0, 0  # a thread, or the process, has just ended


def forecast(counts: collections.Counter[int], processors: int) -> float:
    """Return the seconds that the sampled processor time takes on some processors."""
    return sum(used / min(max(threads, 1), processors) for threads, used in counts.items()) / 1e9


def render(samples: Samples) -> str:
    """Return the table of the stages: processor time, the share of one thread at most, seconds by processors."""
    total: collections.Counter[int] = collections.Counter()
    for counts in samples.values():
        total.update(counts)
    head = ("stage", "processor s", "serial", *(f"{number}" for number in _PROCESSORS))
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for stage, counts in [*samples.items(), ("all", total)]:
        used = forecast(counts, 1)
        serial = (counts[0] + counts[1]) / 1e9
        share = serial / max(1e-9, forecast(total, 1))
        cells = [f"{used:.2f}", f"{share:.1%}", *(f"{forecast(counts, number):.2f}" for number in _PROCESSORS)]
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
            command, check=True, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, chosen)
        )
        return time.perf_counter() - began
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Print the table of the run whose processor time is the median, and what this machine measures itself."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--job", choices=["dedup", "pairs", "cluster", "sign"], default="dedup")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    measure(arguments.job, arguments.files[:1], arguments.threads)  # compiles the kernels
    runs = [measure(arguments.job, arguments.files, arguments.threads) for _ in range(arguments.runs)]
    used = [sum(forecast(counts, 1) for counts in samples.values()) for samples in runs]
    print(f"{arguments.job}, {arguments.threads} threads; seconds on so many processors:\n")
    print(render(runs[used.index(statistics.median_low(used))]))
    available = len(os.sched_getaffinity(0))
    for number in (number for number in _PROCESSORS if 4 <= available >= number):
        seconds = statistics.median(time_pinned(arguments.job, arguments.files, number) for _ in range(arguments.runs))
        print(f"\nmeasured on {number} processors: {seconds:.2f} s")


if __name__ == "__main__":
    main()
