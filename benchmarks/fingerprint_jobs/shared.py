"""What every job of the run_*.py needs that measure in processes: its command line, a clock, the
files it leaves.

    python TOOL_jobs.py JOB INPUT OUTPUT OPTIONS

JOB is one of the functions that TOOL_jobs.py hands to `main`; OPTIONS are JSON. It leaves
OUTPUT.done.json (times and other numbers) and OUTPUT.npz (the answers, which are judged before any
time is shown).
"""

from __future__ import annotations

import ctypes
import gc
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

NEAR = 3  # the distance of all jobs
SHORT_REPEATS = 15  # of jobs of milliseconds: the first ones get their memory from the system
Took = tuple[float, float]  # wall and processor seconds
Words = npt.NDArray[np.uint64]


class Done(NamedTuple):
    """What a job did. times : of each repeat. answers : arrays to be judged. facts : other
    numbers.
    """

    times: list[Took]
    answers: dict[str, npt.NDArray[Any]]
    facts: dict[str, float]


def main(**jobs: Callable[[str, dict[str, Any]], Done]) -> None:
    """Do the job that the command line names."""
    name, source, output, told = sys.argv[1:]
    options = json.loads(told)
    if (
        options.get("threads") == 1
    ):  # also for tools that start more threads than they were asked for
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    done = jobs[name](source, options)
    np.savez(output + ".npz", **done.answers)
    with open(output + ".done.json", "w") as stream:
        json.dump({"times": done.times, "facts": done.facts}, stream)


def clock(work: Callable[[], Any]) -> tuple[Any, Took]:
    """Return what some work returns, and the wall and processor seconds it took."""
    wall = time.perf_counter()
    used = time.process_time()
    result = work()
    return result, (time.perf_counter() - wall, time.process_time() - used)


def memory() -> int:
    """Return the bytes of this process in memory, freed ones given back to the system first."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def spread(
    prepare: Callable[[int, int], Callable[[], list[int]]], processes: int
) -> tuple[Words, Took]:
    """Return the fingerprints of all rows, and what they took several processes that share nothing.

    prepare : takes a first row and a step, reads its rows, and returns what fingerprints them; that
    alone is timed.
    """
    context = multiprocessing.get_context("fork")
    pipes = []
    for first in range(processes):
        ours, theirs = context.Pipe()
        context.Process(
            target=_serve, args=(theirs, prepare, first, processes), daemon=True
        ).start()
        theirs.close()
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()
    began = time.perf_counter()
    for pipe in pipes:
        pipe.send(None)
    parts = [pipe.recv() for pipe in pipes]
    wall = time.perf_counter() - began
    fingerprints = np.zeros(sum(len(values) for values, _ in parts), np.uint64)
    for first, (values, _) in enumerate(parts):
        fingerprints[first::processes] = values
    return fingerprints, (wall, sum(used for _, used in parts))


def _serve(
    pipe: Connection, prepare: Callable[[int, int], Callable[[], list[int]]], first: int, step: int
) -> None:
    work = prepare(first, step)
    pipe.send(None)
    pipe.recv()
    used = time.process_time()
    values = np.array(work(), np.uint64)
    pipe.send((values, time.process_time() - used))


def read_rows(source: str, column: str, first: int = 0, step: int = 1) -> list[Any]:
    """Return every so many values of a column."""
    return pq.read_table(source, columns=[column])[column].to_pylist()[first::step]


def read_pairs(source: str) -> list[tuple[str, str]]:
    """Return pairs of pages."""
    return list(zip(read_rows(source, "left"), read_rows(source, "right"), strict=True))


def judged_rows(count: int) -> range:
    """Return some 20 rows whose fingerprints are held against a plain vote."""
    return range(0, count, max(1, count // 20))


def vote(hashes: Iterable[int]) -> int:
    """Return the fingerprint of the hashes of all features in the plainest way: a bit that most of
    them have is one.
    """
    hashes = list(hashes)
    return sum(
        (2 * sum(one >> bit & 1 for one in hashes) > len(hashes)) << bit for bit in range(64)
    )


def as_pairs(left: npt.ArrayLike, right: npt.ArrayLike) -> dict[str, npt.NDArray[Any]]:
    """Return pairs as answers, the smaller row first."""
    rows = np.array([left, right], np.int64).reshape(2, -1)
    return {"left": rows.min(axis=0), "right": rows.max(axis=0)}


def as_matches(limits: npt.ArrayLike, rows: npt.ArrayLike) -> dict[str, npt.NDArray[Any]]:
    """Return matches as answers: query i found rows[limits[i] : limits[i + 1]]."""
    counts = np.diff(np.asarray(limits, np.int64))
    return {"query": np.repeat(np.arange(len(counts)), counts), "row": np.asarray(rows, np.int64)}


def planted_rows(options: dict[str, Any]) -> npt.NDArray[np.int64]:
    """Return the rows of the planted pairs, one pair after the other: their signatures are
    judged.
    """
    rows: npt.NDArray[np.int64] = np.load(options["truth"])["pairs"].reshape(-1)
    return rows


def index_facts(add: Took, query: Took, size: int, answers: dict[str, npt.NDArray[Any]]) -> Done:
    """Return what filling an index and querying it for all took, together and apart. size : its
    bytes.
    """
    facts = {
        "add": add[0],
        "add_cpu": add[1],
        "query": query[0],
        "query_cpu": query[1],
        "bytes": float(size),
    }
    return Done([(add[0] + query[0], add[1] + query[1])], answers, facts)
