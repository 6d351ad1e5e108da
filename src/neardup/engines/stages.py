"""Time the stages of a run, and tell whoever watches how far it is."""

from __future__ import annotations

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
    """The stages of one run: their names and seconds, in order."""

    watcher: Watcher = field(default_factory=Nobody)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, total_documents: int | None = None) -> Iterator[Watcher]:
        """Time a stage while the watcher looks on."""
        begun = time.perf_counter()
        self.watcher.begin(name, total_documents)
        try:
            yield self.watcher
        finally:
            seconds = time.perf_counter() - begun
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.watcher.end(name, seconds)
