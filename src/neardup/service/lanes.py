"""Queues of requests, each with one worker thread: neighbours of one kind become one call of the
library.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

from neardup.errors import NeardupError, StoreError
from neardup.service.problems import busy

Function = Callable[[list[Any]], Sequence[Any]]
T = TypeVar("T")


class _Job(NamedTuple):
    """Items of one request, the function that processes them, and where its results go."""

    function: Function
    items: list[Any]
    results: asyncio.Future[Sequence[Any]]


class Lane:
    """A queue with one worker thread, which decides in the order of arrival.

    Parameters
    ----------
    name : for metrics and threads.
    max_items : the greatest number of items that wait; a request of more is accepted if nothing
        waits.
    max_batch : the greatest number of items in a call; a larger request is one call.
    wait_s : the time that a request waits for others if the worker is idle, in seconds.
    on_batch : called with the number of items of each call.
    """

    def __init__(
        self,
        name: str,
        max_items: int,
        max_batch: int,
        wait_s: float,
        on_batch: Callable[[int], None],
    ) -> None:
        self.name = name
        self.num_queued = 0
        self._max_items = max_items
        self._max_batch = max_batch
        self._wait_s = wait_s
        self._on_batch = on_batch
        self._jobs: deque[_Job] = deque()
        # One thread: the index takes calls in the order of arrival, and two of them never at once.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"neardup-{name}")
        self._arrived = asyncio.Event()
        self._stopping = False
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def run(self, function: Function, items: list[Any]) -> Sequence[Any]:
        """Process items; return the result of each.

        Parameters
        ----------
        function : called in the worker thread with the items of this request, and of its neighbours
            in the queue that have an equal function; returns one result for each item, in order.
        items : of this request, at least one.

        Raises
        ------
        Problem
            429, if too many items wait.
        """
        # A request larger than the queue is accepted if the queue is empty: otherwise it could
        # never be.
        if self._jobs and self.num_queued + len(items) > self._max_items:
            raise busy(
                f"{self.num_queued:,} documents are waiting for the index, and "
                f"max_queued_documents={self._max_items:,}. Repeat the request later, with fewer "
                "clients at a time.",
                "max_queued_documents",
            )
        if self._stopping:
            raise busy(
                "The service is stopping. Repeat the request when it runs again.",
                "stop_timeout_s",
                status=503,
            )
        results: asyncio.Future[Sequence[Any]] = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(function, items, results))
        self.num_queued += len(items)
        self._arrived.set()
        return await results

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return the result of one call of a function in the worker thread, made once even if
        others are refused.
        """
        # A new function each time, which equals no other: the job is never joined with its
        # neighbours.
        [result] = await self.run(lambda _: [function(*arguments)], [None])
        return cast(T, result)

    async def close(self) -> None:
        """Refuse new requests, finish the waiting ones, and end the thread."""
        self._stopping = True
        # Wakes the worker if it waits, so that it ends.
        self._arrived.set()
        await self._worker
        self._thread.shutdown()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._jobs or not self._stopping:
            # The worker was idle: the first request waits a little for others to share its call.
            # While a call runs, they gather by themselves.
            if not self._jobs:
                self._arrived.clear()
                await self._arrived.wait()
                # At the end nothing more arrives.
                if self._wait_s and not self._stopping:
                    await asyncio.sleep(self._wait_s)
                continue
            batch = self._take()
            outcomes = await loop.run_in_executor(self._thread, _call, batch)
            num_items = sum(len(job.items) for job in batch)
            self.num_queued -= num_items
            self._on_batch(num_items)
            for job, outcome in zip(batch, outcomes, strict=True):
                # The call itself cannot be interrupted, so that its results come too late.
                if job.results.done():  # the request has timed out
                    continue
                if isinstance(outcome, Exception):
                    job.results.set_exception(outcome)
                else:
                    job.results.set_result(outcome)

    def _take(self) -> list[_Job]:
        """Return the next job, with the following jobs of the same function."""
        batch = [self._jobs.popleft()]
        size = len(batch[0].items)
        while (
            self._jobs
            # Bound methods are equal if object and function are: all requests of one operation
            # share calls.
            and self._jobs[0].function == batch[0].function
            and size + len(self._jobs[0].items) <= self._max_batch
        ):
            batch.append(self._jobs.popleft())
            size += len(batch[-1].items)
        return batch


def _call(batch: list[_Job]) -> Sequence[Sequence[Any] | Exception]:
    """Return the results of each job. If the library refuses an item, none took effect: each job is
    tried by itself.
    """
    function = batch[0].function
    try:
        results = function([item for job in batch for item in job.items])
    except Exception as error:
        # A failure of the store is no refusal of an item: each job by itself would fail again.
        if isinstance(error, NeardupError) and not isinstance(error, StoreError) and len(batch) > 1:
            return [outcome for job in batch for outcome in _call([job])]
        return [error] * len(batch)
    rest = iter(results)
    return [list(islice(rest, len(job.items))) for job in batch]
