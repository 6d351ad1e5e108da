"""Time the stages of a run and report its progress."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from neardup.errors import SettingError


class Progress(Protocol):
    """An object that follows a run: a progress bar, a log. Any class with its methods is one.

    begin(stage, total_documents) : a stage begins; the number is None if it is unknown.
    advance(documents, num_bytes) : further documents and bytes of text were processed in this
    stage. end(stage, seconds) : the stage ends, after this time without compilation. tasks(done,
    total) : optional, the finished tasks and all tasks of a stage on Spark, called every second by
    another thread; the other calls come from one thread.
    """

    def begin(self, stage: str, total_documents: int | None) -> None:
        """Begin a stage; total_documents is None if the number is unknown."""

    def advance(self, documents: int, num_bytes: int) -> None:
        """Add documents and bytes of text to the progress of this stage."""

    def end(self, stage: str, seconds: float) -> None:
        """End a stage, after this many seconds without the time of compilation."""


class NullProgress:
    """Progress that is not shown."""

    def begin(self, *_: object, **__: object) -> None:
        """Do nothing."""

    advance = begin
    end = begin


_METHODS = ("begin", "advance", "end")


def check_progress(progress: object) -> None:
    """Raise SettingError if a value is neither True or False nor has the methods of Progress."""
    if isinstance(progress, bool) or all(
        callable(getattr(progress, name, None)) for name in _METHODS
    ):
        return
    raise SettingError(
        "progress must be True, False or an object with the methods begin, advance and end: got "
        f"{progress!r:.80}. Use True for progress bars on stderr; neardup.Progress documents the "
        "methods."
    )


@dataclass
class Stages:
    """The stages of one run: their names and seconds, in order; the time of compiling kernels is
    separate.
    """

    progress: Progress = field(default_factory=NullProgress)
    seconds: dict[str, float] = field(default_factory=dict)
    compile_seconds: float = 0.0

    @contextmanager
    def stage(self, name: str, total_documents: int | None = None) -> Iterator[Progress]:
        """Time a stage and report it. Memory that the stage before has freed is returned first."""
        trim_heap()
        begun = time.perf_counter()
        compiled_before = compile_seconds()
        self.progress.begin(name, total_documents)
        try:
            yield self.progress
        finally:
            compiling = compile_seconds() - compiled_before
            seconds = max(0.0, time.perf_counter() - begun - compiling)
            self.compile_seconds += compiling
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.progress.end(name, seconds)


def trim_heap() -> None:
    """Return freed memory to the system: the GNU C library keeps free memory between arrays that
    are in use.

    It takes a millisecond; a run of 2.4 million documents takes 70 MB less.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def compile_seconds() -> float:
    """Return how long this process has compiled kernels so far; loads nothing."""
    return float(_ask_compiler("compile_seconds"))


def is_compiling() -> bool:
    """Return whether a kernel is being compiled at this moment; loads nothing."""
    return bool(_ask_compiler("is_compiling"))


def _ask_compiler(function: str) -> float:
    """Call a function of kernels.compiled; 0 if that module is not loaded, or being loaded by
    another thread.
    """
    compiled = getattr(sys.modules.get("neardup.kernels.compiled"), function, None)
    return 0.0 if compiled is None else float(compiled())
