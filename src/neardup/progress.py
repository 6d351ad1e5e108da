"""Time the stages of a run, and tell whoever watches how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol


class Watcher(Protocol):
    """Whoever watches a run: a terminal, a log, or nobody."""

    def begin(self, stage: str, total_documents: int | None) -> None:
        """A stage begins; total_documents is None where it is not known."""

    def advance(self, documents: int, num_bytes: int) -> None:
        """So many more documents and bytes of text are done."""

    def end(self, stage: str, seconds: float) -> None:
        """A stage is over."""


class Nobody:
    """A watcher that does nothing."""

    def begin(self, stage: str, total_documents: int | None) -> None:
        """Do nothing."""

    def advance(self, documents: int, num_bytes: int) -> None:
        """Do nothing."""

    def end(self, stage: str, seconds: float) -> None:
        """Do nothing."""


@dataclass
class Stages:
    """The stages of one run: their names and seconds, in order; the time in which kernels were compiled is apart."""

    watcher: Watcher = field(default_factory=Nobody)
    seconds: dict[str, float] = field(default_factory=dict)
    compile_seconds: float = 0.0

    @contextmanager
    def stage(self, name: str, total_documents: int | None = None) -> Iterator[Watcher]:
        """Time a stage while the watcher looks on."""
        begun, compiled = time.perf_counter(), compile_seconds()
        self.watcher.begin(name, total_documents)
        try:
            yield self.watcher
        finally:
            compiling = compile_seconds() - compiled
            seconds = max(0.0, time.perf_counter() - begun - compiling)
            self.compile_seconds += compiling
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.watcher.end(name, seconds)


def compile_seconds() -> float:
    """Return how long this process has compiled kernels so far; nothing is loaded to tell."""
    compiled = sys.modules.get("neardup.kernels.compiled")
    return 0.0 if compiled is None else float(compiled.compile_seconds())


def is_compiling() -> bool:
    """Return whether a kernel is being compiled at this moment."""
    compiled = sys.modules.get("neardup.kernels.compiled")
    return compiled is not None and bool(compiled.is_compiling())
