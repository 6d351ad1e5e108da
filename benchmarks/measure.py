"""Run one command as a whole process tree; say how long it took, on how much processor and memory.

    python measure.py REPORT.json TIMEOUT_S COMMAND [ARGUMENT ...]

`run` does the same from Python, through this command: the peak of a child counts the pages of the
process that forked it, so the measuring process must be small and imports only what it needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

_PR_SET_CHILD_SUBREAPER = 36
_SAMPLE_S = 0.2
_ORPHANS_S = 10.0


class Measurement(NamedTuple):
    """What one run took.

    wall_s : from start to end. cpu_s : user and system time of the process and all its descendants,
    also of those that outlive their parents. peak_mb : the larger of the biggest single process
    (kernel's count) and the biggest sum over all processes alive at once (proportional set size,
    sampled every 0.2 s, so that pages they share count once). code : exit code; 124 after the time
    limit.
    """

    wall_s: float
    user_s: float
    system_s: float
    peak_mb: float
    code: int

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s


def run(
    command: list[str], *, log: Path, env: dict[str, str] | None = None, timeout_s: float = 3600.0
) -> Measurement:
    """Run a command with its output in the file `log`; return what it took, whatever its exit
    code.
    """
    report = log.with_suffix(".json")
    with open(log, "wb") as output:
        helper = [
            sys.executable,
            "-S",
            str(Path(__file__).resolve()),
            str(report),
            str(timeout_s),
            *command,
        ]
        subprocess.run(
            helper,
            env={**os.environ, **(env or {})},
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            check=True,
        )
    return Measurement(**json.loads(report.read_text()))


def _descendants() -> list[int]:
    """Return the ids of all living descendants of this process."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry))
    found = list(children.get(os.getpid(), []))
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def _proportional_kb(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as rollup:
        for line in rollup:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


class _Sampler(threading.Thread):
    """Keeps the most memory that several processes had together; for one alone the kernel
    counts.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_kb = 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(_SAMPLE_S):
            pids = _descendants()
            if len(pids) > 1:
                self.peak_kb = max(self.peak_kb, sum(map(_proportional_kb, pids)))


def _measure(command: list[str], timeout_s: float) -> Measurement:
    # Orphans of the command (a fork server, say) become children of this process, which then learns
    # what they used.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    sampler = _Sampler()
    user = system = 0.0
    peak_kb = code = 0
    began = time.perf_counter()
    main = subprocess.Popen(command)
    sampler.start()
    deadline = began + timeout_s
    wall = None
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            if time.perf_counter() > deadline:
                if wall is None:
                    code = 124
                    wall = time.perf_counter() - began
                for left in _descendants():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(left, signal.SIGKILL)
            time.sleep(0.002)
            continue
        user = user + usage.ru_utime
        system = system + usage.ru_stime
        peak_kb = max(peak_kb, usage.ru_maxrss)
        if pid == main.pid:
            main.returncode = os.waitstatus_to_exitcode(status)
            if wall is None:
                code = main.returncode
                wall = time.perf_counter() - began
            deadline = time.perf_counter() + _ORPHANS_S
    sampler.ended.set()
    return Measurement(wall or 0.0, user, system, max(peak_kb, sampler.peak_kb) * 1024 / 1e6, code)


if __name__ == "__main__":
    result = _measure(sys.argv[3:], float(sys.argv[2]))
    with open(sys.argv[1], "w") as stream:
        json.dump(result._asdict(), stream)
