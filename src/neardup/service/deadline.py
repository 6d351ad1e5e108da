"""A limit on the time of the current task."""

from __future__ import annotations

import asyncio
from types import TracebackType

from neardup.service.problems import Problem


class Deadline:
    """A block whose task is cancelled after some seconds; a Problem is raised then.

    `asyncio.timeout` needs Python 3.11; `asyncio.wait_for` makes a task each time, too slow for every request.
    """

    def __init__(self, seconds: float, problem: Problem) -> None:
        self._seconds = seconds
        self._problem = problem
        self._expired = False

    def __enter__(self) -> Deadline:
        self._task = asyncio.current_task()
        self._handle = asyncio.get_running_loop().call_later(self._seconds, self._expire)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._handle.cancel()
        if self._expired and kind is asyncio.CancelledError:
            uncancel = getattr(self._task, "uncancel", None)  # of Python 3.11
            if uncancel is not None:
                uncancel()
            raise self._problem

    def _expire(self) -> None:
        self._expired = True
        if self._task is not None:
            self._task.cancel()
