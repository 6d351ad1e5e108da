"""Read ahead on a thread of its own, so that decoding and encoding overlap."""

from __future__ import annotations

import os
from collections.abc import Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")
_WAIT_S = 0.1


def read_ahead(items: Iterator[T], depth: int = 12) -> Iterator[T]:
    """Yield the items of an iterator that runs up to `depth` items ahead on another thread.

    An error raised there is raised here, in its place. When the caller stops early, so does the thread.
    """
    queue: Queue[tuple[T | None, BaseException | None]] = Queue(depth)
    stopped = Event()

    def put(entry: tuple[T | None, BaseException | None]) -> None:
        while not stopped.is_set():
            try:
                queue.put(entry, timeout=_WAIT_S)
                return
            except Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put((item, None))
                if stopped.is_set():
                    return
            put((None, StopIteration()))
        except BaseException as error:  # handed over, whatever it is
            put((None, error))

    thread = Thread(target=work, daemon=True, name="neardup-read-ahead")
    thread.start()
    try:
        while True:
            try:
                item, error = queue.get(timeout=_WAIT_S)
            except Empty:
                continue
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join()


def count_processors() -> int:
    """Return how many processors this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
