"""Compile the kernels of a default run in several processes, the first time that any process requires them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from neardup.candidates.bands import Bands
from neardup.methods.base import Method
from neardup.progress import Stages

_CODE = "import sys; sys.path[:] = sys.argv[1:-1]; from neardup.kernels.first_run import main; main()"


def compile_kernels(method: Method, stages: Stages) -> None:
    """Compile the kernels of a default run, unless that was done before; other kernels compile when they are called.

    Numba compiles in one thread of a process, so two processes take half of the time. A process that fails leaves its
    kernels to the run. Nothing is done for a method without bands.
    """
    if not isinstance(method.search, Bands):
        return
    from neardup.kernels import first_run  # loads Numba

    if first_run.is_needed() and sys.executable:
        with stages.compiling() as report:
            _compile_halves(first_run.NUM_HALVES, first_run.num_kernels(), report)
        first_run.mark()


def _compile_halves(num_halves: int, total: int, report: Callable[[int, int], None]) -> None:
    """Start the processes and wait for them; report the number of compiled kernels, and of all."""
    report(0, total)
    reader, writer = os.pipe()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with open(reader, "rb", buffering=0) as lines:
            try:
                processes.extend(_start(half, writer) for half in range(num_halves))
            except OSError:  # no more processes are allowed, for instance
                pass
            finally:
                os.close(writer)
            for done, _ in enumerate(lines, 1):
                report(done, total)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        report(total, total)


def _start(half: int, writer: int) -> subprocess.Popen[bytes]:
    """Start the process that compiles one half, with the modules and settings of this one."""
    folders = [folder for folder in sys.path if folder]  # not the working directory
    command = [sys.executable, "-I", "-B", "-c", _CODE, *folders, str(half)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL)
