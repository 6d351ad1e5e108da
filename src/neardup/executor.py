"""Run work on a stream of items on threads, in order; read ahead on another thread."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")
Result = TypeVar("Result")
_AHEAD = 8  # waiting items, enough to continue reading while the compiler is loaded
_BYTES_AHEAD = 64 << 20  # of waiting items, unless a single item is larger
_SMALL_BYTES, _MAX_ITEMS = 1 << 20, 4096
_WAIT_S = 0.1


def count_processors() -> int:
    """Return the number of processors that this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_threads(threads: int | None) -> int:
    """Return the number of worker threads: as requested, or one for each processor this process may use."""
    return count_processors() if threads is None else threads


def map_ordered(
    items: Iterable[T],
    work: Callable[[T], Result],
    threads: int,
    *,
    bytes_of: Callable[[T], int] = lambda _: 0,
    ahead: int = _AHEAD,
) -> Iterator[tuple[T, Result]]:
    """Yield each item with the result of `work`, in order, while a pool of threads works on the next items.

    Parameters
    ----------
    items : read on the calling thread.
    work : called on a thread of the pool.
    threads : the size of the pool.
    bytes_of : the memory of an item; it limits the number of waiting items.
    ahead : the greatest number of waiting items.

    Notes
    -----
    A result is yielded as soon as it and all earlier results are complete. An error of `work` or `items` is raised at
    its position in the order. Items that are not started are dropped then, and also if the caller stops early.
    """
    waiting: deque[tuple[T, Future[Result]]] = deque()
    errors: list[Exception] = []
    num_bytes = 0
    pool = ThreadPoolExecutor(threads, thread_name_prefix="neardup")
    try:
        for item in _until_error(items, errors):
            waiting.append((item, pool.submit(work, item)))
            num_bytes += bytes_of(item)
            while waiting and (len(waiting) > ahead or num_bytes > _BYTES_AHEAD or waiting[0][1].done()):
                first, future = waiting.popleft()
                num_bytes -= bytes_of(first)
                yield first, future.result()
        while waiting:
            first, future = waiting.popleft()
            yield first, future.result()
    finally:
        pool.shutdown(cancel_futures=True)
    for error in errors:
        raise error


def _until_error(items: Iterable[T], errors: list[Exception]) -> Iterator[T]:
    """Yield items; put an error of theirs into a list, so that it is raised when those before it are done."""
    try:
        yield from items
    except Exception as error:
        errors.append(error)


def map_all(items: Sequence[T], work: Callable[[T], Result], threads: int) -> list[Result]:
    """Return the result of `work` for each item, in order; one thread or one item starts no thread."""
    if threads == 1 or len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads, thread_name_prefix="neardup") as pool:
        return list(pool.map(work, items))


def group_small(
    items: Iterable[T],
    bytes_of: Callable[[T], int],
    least_bytes: int | None = None,
    *,
    fits: Callable[[list[T], T], bool] = lambda *_: True,
) -> Iterator[list[T]]:
    """Yield items in lists of a mebibyte or more, except the last, because each batch has a fixed cost.

    An error of `items` is raised after those before it.

    Parameters
    ----------
    items : such as batches, of which each file starts a new one.
    bytes_of : the size of an item.
    least_bytes : of a list, instead of a mebibyte.
    fits : whether an item may join the list of earlier items.
    """
    group: list[T] = []
    errors: list[Exception] = []
    num_bytes = 0
    for item in _until_error(items, errors):
        if group and not fits(group, item):
            yield group
            group, num_bytes = [], 0
        group.append(item)
        num_bytes += bytes_of(item)
        if num_bytes >= (least_bytes or _SMALL_BYTES) or len(group) >= _MAX_ITEMS:
            yield group
            group, num_bytes = [], 0
    if group:
        yield group
    for error in errors:
        raise error


def prefetch(items: Iterable[T], depth: int = 12) -> Iterator[T]:
    """Yield the items of an iterator that runs up to `depth` items ahead on another thread.

    An error of the iterator is raised at its position in the order. If the caller stops early, so does the thread.
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
        except BaseException as error:  # raised in the caller, whatever it is
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
