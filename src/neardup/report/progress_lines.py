"""Show the stages of a run as plain lines, outside a terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from neardup.progress import compile_seconds
from neardup.report.wording import duration, say, short

SECONDS_BETWEEN_LINES = 10.0
_LEAST_COMPILING = 0.5  # seconds


class StageLines:
    """Progress as plain lines: one every ten seconds, and one at the end of each stage.

    Parameters
    ----------
    file : a text file. Default: sys.stderr.
    patience_s : nothing is written before the run has taken this many seconds.
    """

    def __init__(self, file: TextIO | None = None, *, patience_s: float = 0.0) -> None:
        self._file = file or sys.stderr
        self._first = time.monotonic() + patience_s

    def begin(self, stage: str, total_documents: int | None) -> None:
        """Start counting."""
        self._label = stage_label(stage)
        self._total = total_documents
        self._documents = self._num_bytes = 0
        self._begun = self._printed = time.monotonic()
        self._compiled = compile_seconds()

    def advance(self, documents: int, num_bytes: int) -> None:
        """Count, and print a line if the last one is ten seconds old."""
        self._documents += documents
        self._num_bytes += num_bytes
        key = "progress.of" if self._total else "progress.documents"
        self._print_at_times(say(key, documents=self._documents, total=self._total))

    def tasks(self, done: int, total: int) -> None:
        """Print a line of the tasks of a cluster if the last one is ten seconds old."""
        self._print_at_times(say("progress.tasks", done=done, total=total))

    def end(self, stage: str, seconds: float) -> None:
        """Print the line of the stage; if it compiled, after a line with that time."""
        if time.monotonic() >= self._first:
            compiling = compile_seconds() - self._compiled
            if compiling >= _LEAST_COMPILING:
                print(say("progress.compiled", time=duration(round(compiling, 1))), file=self._file)
            key = "progress.documents" if self._documents else "progress.done"
            self._print(say(key, documents=self._documents), seconds)

    def _print_at_times(self, text: str) -> None:
        now = time.monotonic()
        if now - self._printed >= SECONDS_BETWEEN_LINES and now >= self._first:
            self._printed = now
            self._print(text, now - self._begun)

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
