"""The kernels of a run with the default method, in two halves that two processes compile at once.

`engines/local/first_run.py` starts the processes.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numba
import numpy as np

from neardup.kernels import bands, clusters, compiled, minhash, sieve, sorted_sets, strings, token_arrays, tokens

NUM_HALVES = 2
_MARK = "first-run"  # a file in the folder of compiled kernels


def is_needed() -> bool:
    """Return whether no process has compiled the kernels of a default run, and whether this one can keep them."""
    if compiled.config.DISABLE_JIT:
        return False
    folder = compiled.cache_folder()
    return folder is not None and not (folder / _MARK).exists() and os.access(folder, os.W_OK)


def mark() -> None:
    """Record that the kernels of a default run were compiled, or that it was tried: it is not tried again."""
    folder = compiled.cache_folder()
    if folder is not None:
        with suppress(OSError):
            (folder / _MARK).touch()


def num_kernels() -> int:
    """Return the number of kernels in all halves."""
    return sum(len(half) for half in _halves())


def compile_half(half: int) -> Iterator[None]:
    """Compile the kernels of one half for the next process; yield after each."""
    for function, arguments in _halves()[half]:
        function.compile(tuple(numba.typeof(argument) for argument in arguments))
        yield


def main() -> None:
    """Compile the half that the last argument names; print a line after each kernel."""
    gc.disable()  # a tenth of the time; the process ends soon
    for _ in compile_half(int(sys.argv[-1])):
        print(flush=True)


def _halves() -> tuple[list[tuple[Any, tuple[Any, ...]]], ...]:
    """Return the kernels of each half, each with arguments of the types that a run passes."""
    u8, i32, i64, u16, u32, u64, f64 = (np.zeros(0, kind) for kind in ("B", "i", "q", "H", "I", "Q", "d"))
    flags, u32_rows, u64_rows = np.zeros(0, np.bool_), np.zeros((0, 0), np.uint32), np.zeros((0, 0), np.uint64)
    text = token_arrays.Text(_frozen(u8), i64)
    tables = token_arrays.Tables(_frozen(u32), _frozen(u32), u8)
    shingles = token_arrays.Shingles(u64, i64, u64_rows, flags)
    sets = sorted_sets.Sets(u64, i64, u32)
    order, buckets = sieve.Order(u32, u32, u8, u32), sieve.Buckets(u32_rows, u32, i64)
    found = sieve.Found(u32, u32, f64, u16, f64, u8, u8, i64)
    of_text: list[tuple[Any, tuple[Any, ...]]] = [
        (strings.hash_strings, (_frozen(u8), i64, u64)),
        (tokens.write_tokens, (text, tables, 0, u8, token_arrays.TokenStrings(u8, i64, i64), flags)),
        (tokens.shingle_text, (text, tables, 0, 0, token_arrays.Buffers(u8, i32, u64), shingles)),
    ]
    of_search: list[tuple[Any, tuple[Any, ...]]] = [
        (clusters.flatten, (u32,)),
        (clusters.connect, (u32, u32, u32)),
        (bands.count_members, (u64, 0, 0)),
        (bands.list_members, (u64, 0, 0, u32, u32)),
        (bands.find_copies, (u64, 0, u64_rows, u32, u32)),
        (minhash.band_keys, (u32_rows, 0, u64_rows)),
        (minhash.sign, (u64, i64, u64, u32, u32_rows)),
        (sorted_sets.write_sets, (u64, i64, i64, flags, u64, i64, u32)),
        (sieve.sieve, (0, 0, order, sieve.Compared(sets, sets), buckets, sieve.Rules(0.0, 0, 0, 0, False), found)),
    ]
    return of_text, of_search


def _frozen(array: np.ndarray) -> np.ndarray:
    """Return an array of the type of one that may not be written to, as those of Arrow."""
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen
