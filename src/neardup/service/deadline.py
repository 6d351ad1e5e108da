"""A limit on the time of the current task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from neardup.service.problems import Problem


@contextmanager
def deadline(seconds: float, problem: Problem) -> Iterator[None]:
    """Cancel the task of the block after some seconds, and raise the problem then.

    `asyncio.timeout` needs Python 3.11; `asyncio.wait_for` makes a task each time, too slow for every request.
    """
    task, expired = asyncio.current_task(), False
    assert task is not None

    def expire() -> None:
        nonlocal expired
        expired = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(seconds, expire)
    try:
        yield
    except asyncio.CancelledError:
        if not expired:
            raise
        getattr(task, "uncancel", int)()  # of Python 3.11
        raise problem from None
    finally:
        timer.cancel()
