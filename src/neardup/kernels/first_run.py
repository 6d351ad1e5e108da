"""Compile the kernels of a run with the default method, the first time that any process requires
them.

Numba compiles in one thread of a process, so a second process compiles half of them at the same
time.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numba
import numpy as np

from neardup.kernels import (
    bands,
    compiled,
    decisions,
    line_ends,
    minhash,
    sieve,
    sorted_sets,
    strings,
    token_arrays,
    tokens,
)

_Kernels = Sequence[tuple[Any, tuple[Any, ...]]]
_MARK = "first-run"  # a file in the folder of compiled kernels
_MIN_WAIT_S = 60.0  # for the second process, whose half takes as long as ours
_KILL_WAIT_S = 10.0
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from neardup.kernels.first_run import main; main()"


def compile_kernels() -> None:
    """Compile the kernels of a default run, unless that was tried before; other kernels compile
    when they are called.

    The whole time, with waiting, counts as compilation. A second process that fails leaves its
    kernels to the run.
    """
    folder = None if compiled.config.DISABLE_JIT else compiled.cache_folder()
    if (
        folder is None
        or (folder / _MARK).exists()
        or not (os.access(folder, os.W_OK) and _runs_python())
    ):
        return
    compiled.internals.clock.on_start(None)
    try:
        _compile_in_two_processes()
    finally:
        compiled.internals.clock.on_end(None)
    with suppress(OSError):
        (folder / _MARK).touch()


def _runs_python() -> bool:
    """Return whether the executable is an interpreter: in a frozen app or uWSGI, it is the app."""
    name = os.path.basename(sys.executable or "").lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


def _compile_in_two_processes() -> None:
    began = time.monotonic()
    folders = [folder for folder in sys.path if folder]  # not the working directory
    command = [sys.executable, "-I", "-B", "-c", _CODE, *folders]
    try:
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError:  # no more processes are allowed, for instance
        return
    try:
        _compile(_of_text())
        with suppress(subprocess.TimeoutExpired):
            process.wait(_MIN_WAIT_S + 2 * (time.monotonic() - began))
    finally:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_WAIT_S)


def main() -> None:
    """Compile the half of the second process."""
    _compile(_of_search())


def _compile(kernels: _Kernels) -> None:
    collects = gc.isenabled()
    gc.disable()  # collections take a tenth of the time, and free little
    try:
        for function, arguments in kernels:
            function.compile(tuple(numba.typeof(argument) for argument in arguments))
    finally:
        if collects:
            gc.enable()


def _arrays(kinds: str) -> list[np.ndarray]:
    """Return empty arrays of these types."""
    return [np.zeros(0, kind) for kind in kinds]


def _of_text() -> _Kernels:
    """Return the kernels that this process compiles, each with arguments of the types that a run
    passes.
    """
    u8, i32, i64, u32, u64, flags = _arrays("BiqIQ?")
    u32_rows = np.zeros((0, 0), np.uint32)
    u64_rows = np.zeros((0, 0), np.uint64)
    text = token_arrays.Text(_frozen(u8), i64)
    tables = token_arrays.Tables(_frozen(u32), _frozen(u32), u8, None)
    buffers = token_arrays.Buffers(u8, i32, u64)
    shingles = token_arrays.Shingles(u64, i64, np.zeros((0, 0), np.uint64), flags)
    return [
        (strings.hash_strings, (_frozen(u8), i64, u64)),
        (
            tokens.write_tokens,
            (text, tables, 0, buffers, token_arrays.TokenStrings(u8, i64, i64), flags),
        ),
        (tokens.shingle_text, (text, tables, 0, 0, buffers, shingles)),
        (minhash.band_keys, (u32_rows, 0, u64_rows)),
        (minhash.sign, (u64, i64, u64, u32, u32_rows)),
    ]


def _of_search() -> _Kernels:
    """Return the kernels that the second process compiles; the sieve takes longest."""
    u8, i64, u32, u64, flags = _arrays("BqIQ?")
    u64_rows = np.zeros((0, 0), np.uint64)
    text = token_arrays.Text(_frozen(u8), i64)
    return [
        (sieve.sieve, _arguments_of_sieve()),
        (sorted_sets.write_sets, (u64, i64, i64, flags, u64, i64, u32)),
        (decisions.flatten, (u32,)),
        (decisions.connect, (u32, u32, u32)),
        (bands.list_members, (u64, 0, 0, u32, u32)),
        (bands.find_copies, (u64, 0, u64_rows, u32, u32)),
        (line_ends.count_breaks, (text, _frozen(u32))),
    ]


def _arguments_of_sieve() -> tuple[Any, ...]:
    u8, i64, u16, u32, u64, f64 = _arrays("BqHIQd")
    sets = sorted_sets.Sets(u64, i64, u32)
    order = sieve.Order(u32, u32, u8)
    buckets = sieve.Buckets(np.zeros((0, 0), np.uint32), u32, i64)
    found = sieve.Found(u32, u32, f64, u16, f64, u8, u8, i64)
    rules = sieve.Rules(0.0, 0, 0, 0, False)
    ahead = sieve.Ahead(0, 0, u8, i64, found)
    return 0, 0, order, sieve.Compared(sets, sets), buckets, rules, ahead, found


def _frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only copy of an array, like arrays of Arrow."""
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen
