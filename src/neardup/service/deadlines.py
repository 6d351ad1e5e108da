"""Limits of time for blocks of requests, which share a timer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from neardup.service.problems import Problem


class Deadline:
    """A limit of time for blocks of requests, which share one timer.

    `asyncio.timeout` needs Python 3.11, `asyncio.wait_for` makes a task, and a timer for each block
    takes five microseconds.

    Parameters
    ----------
    seconds : the greatest duration of a block; its task is cancelled then.
    problem : returns the problem that the block raises then.
    """

    def __init__(self, seconds: float, problem: Callable[[], Problem]) -> None:
        self.problem = problem
        self._seconds = seconds
        # The blocks under way, in the order of their ends.
        self._blocks: dict[_Block, None] = {}
        self._armed_loop: asyncio.AbstractEventLoop | None = None  # has the timer

    def block(self) -> _Block:
        """Return a context whose block must end in time."""
        return _Block(self)

    def add(self, block: _Block) -> None:
        """Begin a block."""
        loop = asyncio.get_running_loop()
        block.end = loop.time() + self._seconds
        if self._armed_loop is not loop:
            # The timer and the tasks of a loop that has ended are gone: programs may serve an
            # application by one loop after the other.
            self._blocks.clear()
            self._armed_loop = loop
            loop.call_at(block.end, self._expire, loop)
        self._blocks[block] = None

    def remove(self, block: _Block) -> None:
        """End a block."""
        self._blocks.pop(block, None)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the blocks that are late, and wait for the end of the next one."""
        while self._blocks:
            block = next(iter(self._blocks))
            if block.end > loop.time():
                loop.call_at(block.end, self._expire, loop)
                return
            self.remove(block)
            block.cancel()
        self._armed_loop = None


class _Block:
    """A block of one task, as a context manager.

    end : the time of the event loop at which it is cancelled.
    """

    __slots__ = ("_is_late", "_limit", "_task", "end")

    def __init__(self, limit: Deadline) -> None:
        self._limit = limit
        self._is_late = False
        self.end = 0.0

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._limit.add(self)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._limit.remove(self)
        if self._is_late and kind is asyncio.CancelledError:
            # From Python 3.11 a task counts its cancellations; one that is not taken back would
            # count for `asyncio.timeout` outside.
            if sys.version_info >= (3, 11):
                self._task.uncancel()
            raise self._limit.problem() from None

    def cancel(self) -> None:
        """Cancel the task of the block."""
        self._is_late = True
        self._task.cancel()
