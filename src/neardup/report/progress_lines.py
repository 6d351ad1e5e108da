"""Show the stages of a run as plain lines, outside a terminal."""

from __future__ import annotations

import sys
import time
from contextvars import copy_context
from functools import partial
from threading import Event, Thread
from typing import TextIO

from neardup.progress import compile_seconds, is_compiling
from neardup.report.wording import duration, say, short

SECONDS_BETWEEN_LINES = 10.0
_MIN_COMPILING = 0.5  # seconds; a kernel that was in the cache takes less
_TICK_S = 0.5


class StageLines:
    """Progress as plain lines: one every ten seconds, and one at the end of each stage.

    A thread writes the lines during a stage, so that a long step that counts no documents, such as
    a sort or the compilation of kernels, is not silent.

    Parameters
    ----------
    file : a text file. Default: sys.stderr.
    patience_s : nothing is written before the run has taken this many seconds, but for the line
        that kernels are being compiled.
    """

    def __init__(self, file: TextIO | None = None, *, patience_s: float = 0.0) -> None:
        self._file = file or sys.stderr
        self._first = time.monotonic() + patience_s

    def begin(self, stage: str, total_documents: int | None) -> None:
        """Start counting."""
        self._label = stage_label(stage)
        self._total = total_documents
        self._documents = self._num_bytes = 0
        self._tasks: tuple[int, int] | None = None
        self._begun = self._printed = time.monotonic()
        self._compiled = compile_seconds()
        self._says_compiling = False
        self._ended = Event()
        # The language of the caller is in its context, which a new thread does not have.
        watch = partial(copy_context().run, self._watch, self._ended)
        self._watcher = Thread(target=watch, daemon=True, name="neardup-progress")
        self._watcher.start()

    def advance(self, documents: int, num_bytes: int) -> None:
        """Count documents and bytes of text."""
        self._documents += documents
        self._num_bytes += num_bytes

    def tasks(self, done: int, total: int) -> None:
        """Set the numbers of finished and of all tasks of a cluster."""
        self._tasks = (done, total)

    def end(self, stage: str, seconds: float) -> None:
        """Print the line of the stage; if it compiled, after a line with that time."""
        self._ended.set()
        self._watcher.join()
        if time.monotonic() >= self._first:
            compiling = compile_seconds() - self._compiled
            if compiling >= _MIN_COMPILING:
                print(say("progress.compiled", time=duration(round(compiling, 1))), file=self._file)
            key = "progress.documents" if self._documents else "progress.done"
            self._print(say(key, documents=self._documents), seconds)

    def _watch(self, ended: Event) -> None:
        """Print the lines that are due until the stage ends."""
        while not ended.wait(_TICK_S):
            self.print_due()

    def print_due(self) -> None:
        """Print a line if the last one is ten seconds old, or if compilation has begun."""
        now = time.monotonic()
        begins_to_compile = not self._says_compiling and self._is_compiling()
        is_due = now - self._printed >= SECONDS_BETWEEN_LINES and now >= self._first
        if begins_to_compile or is_due:
            self._printed = now
            self._says_compiling = self._is_compiling()
            self._print(self._state(), now - self._begun)

    def _is_compiling(self) -> bool:
        """Return whether kernels have been compiled for a while in this stage, and still are."""
        return is_compiling() and compile_seconds() - self._compiled >= _MIN_COMPILING

    def _state(self) -> str:
        """Return the counts of the stage so far, as words."""
        if self._says_compiling:
            return say("progress.compiling")
        if self._tasks is not None:
            done, total = self._tasks
            return say("progress.tasks", done=done, total=total)
        if not self._documents:
            return say("progress.running")
        key = "progress.of" if self._total else "progress.documents"
        return say(key, documents=self._documents, total=self._total)

    def _print(self, text: str, seconds: float) -> None:
        if self._documents:
            text += f"{say('words.comma')}{short(self._documents / max(seconds, 1e-3))}/s"
        if self._num_bytes:
            text += f"{say('words.comma')}{self._num_bytes / 1e6 / max(seconds, 1e-3):,.0f} MB/s"
        text += say("words.comma") + duration(float(f"{seconds:.2f}"))
        print(self._label + say("words.colon") + text, file=self._file, flush=True)


def stage_label(stage: str) -> str:
    """Return the name of a stage as a line begins with it."""
    return say(f"stages.{stage}", stage).capitalize()
