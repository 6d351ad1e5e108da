"""Run work on a stream of items on threads, in order; read ahead on another thread."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Condition, Lock, Semaphore, Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Result = TypeVar("Result")
_AHEAD = 8  # waiting items, enough to continue reading while the compiler is loaded
_LEAST_BYTES_AHEAD, _BYTES_AHEAD_PER_THREAD = 64 << 20, 8 << 20
STREAM_BYTES = 32 << 20
"""How many bytes may wait of one of several iterators that run ahead, unless a single item is
larger.
"""
_ENCODED_BYTES = 1 << 30
_ITEM_BYTES = 4096  # of the objects around the data of an item
_SMALL_BYTES, _MAX_ITEMS = 1 << 20, 4096
# results of encoders, before they get a further job: writing all that is done would leave them idle
_TAKEN_AT_ONCE = 2


def count_processors() -> int:
    """Return the number of processors that this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_threads(threads: int | None) -> int:
    """Return the number of worker threads: as requested, or one for each processor this process may
    use.
    """
    return count_processors() if threads is None else threads


def bytes_ahead(threads: int) -> int:
    """Return how many bytes may wait for threads in order that none is idle, unless a single item
    is larger.
    """
    return max(_LEAST_BYTES_AHEAD, threads * _BYTES_AHEAD_PER_THREAD)


def map_ordered(
    items: Iterable[T],
    work: Callable[[T], Result],
    threads: int,
    *,
    bytes_of: Callable[[T], int] = lambda _: 0,
    ahead: int | None = None,
) -> Iterator[tuple[T, Result]]:
    """Yield each item with the result of `work`, in order, while a pool of threads works on the
    next items.

    Parameters
    ----------
    items : read on the calling thread.
    work : called on a thread of the pool.
    threads : the size of the pool.
    bytes_of : the memory of an item; it limits the number of waiting items.
    ahead : the greatest number of waiting items. Default: two for each thread, at least 8.

    Notes
    -----
    A result is yielded as soon as it and all earlier results are complete. An error of `work` or
    `items` is raised at its position in the order. Items that are not started are dropped then, and
    also if the caller stops early.
    """
    waiting: deque[tuple[T, Future[Result]]] = deque()
    errors: list[Exception] = []
    num_bytes, most_bytes = 0, bytes_ahead(threads)
    most = max(_AHEAD, 2 * threads) if ahead is None else ahead
    pool = ThreadPoolExecutor(threads, thread_name_prefix="neardup")
    try:
        for item in _until_error(items, errors):
            waiting.append((item, pool.submit(work, item)))
            num_bytes += bytes_of(item)
            while waiting and (
                len(waiting) > most or num_bytes > most_bytes or waiting[0][1].done()
            ):
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
    """Yield items; put an error of theirs into a list, so that it is raised when those before it
    are done.
    """
    try:
        yield from items
    except Exception as error:
        errors.append(error)


def map_all(items: Sequence[T], work: Callable[[T], Result], threads: int) -> list[Result]:
    """Return the result of `work` for each item, in order; one thread or one item starts no
    thread.
    """
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
    rows_of: Callable[[T], int] = lambda _: 0,
    most_rows: int | None = None,
) -> Iterator[list[T]]:
    """Yield items in lists of a mebibyte or more, except the last, because each batch has a fixed
    cost.

    An error of `items` is raised after those before it.

    Parameters
    ----------
    items : such as batches, of which each file starts a new one.
    bytes_of : the size of an item.
    least_bytes : of a list, instead of a mebibyte.
    fits : whether an item may join the list of earlier items; it must not look at all of them.
    rows_of, most_rows : the rows of an item, and the most of a list of several; no limit if None.
    """
    group: list[T] = []
    errors: list[Exception] = []
    num_bytes = num_rows = 0
    for item in _until_error(items, errors):
        rows = rows_of(item)
        is_full = most_rows is not None and num_rows + rows > most_rows
        if group and (is_full or not fits(group, item)):
            yield group
            group, num_bytes, num_rows = [], 0, 0
        group.append(item)
        num_bytes += bytes_of(item)
        num_rows += rows
        if num_bytes >= (least_bytes or _SMALL_BYTES) or len(group) >= _MAX_ITEMS:
            yield group
            group, num_bytes, num_rows = [], 0, 0
    if group:
        yield group
    for error in errors:
        raise error


class _Stream(Generic[T]):
    """An iterator of `chain_ahead`, and its items that wait. room : notified when there may be
    more.
    """

    def __init__(self, lock: Lock) -> None:
        self.items: deque[tuple[T, int]] = deque()
        self.num_bytes = 0
        self.room = Condition(lock)
        self.has_ended = False
        self.error: BaseException | None = None


class _Chain(Generic[T]):
    """What the threads of `chain_ahead` share."""

    def __init__(
        self,
        streams: Iterable[Callable[[], Iterable[T]]],
        threads: int,
        bytes_of: Callable[[T], int],
    ) -> None:
        self._unopened, self._threads, self._bytes_of = iter(streams), threads, bytes_of
        self._most, self._num_bytes = bytes_ahead(threads), 0
        self._opening, self._lock = Lock(), Lock()
        self._filled, self._room = Condition(self._lock), Condition(self._lock)
        self._streams: deque[_Stream[T]] = deque()
        self._workers: list[Thread] = []
        self._stopped = self._exhausted = False

    def items(self) -> Iterator[T]:
        self._start()
        while True:
            with self._lock:
                while not (self._streams and self._streams[0].items):
                    if self._streams and self._streams[0].has_ended:
                        if error := self._streams.popleft().error:
                            raise error
                        self._room.notify()
                    elif self._exhausted and not self._streams:
                        return
                    else:
                        self._filled.wait()
                stream = self._streams[0]
                item, size = stream.items.popleft()
                stream.num_bytes -= size
                self._num_bytes -= size
                stream.room.notify()
                self._room.notify()
            yield item

    def stop(self) -> None:
        """End all threads."""
        with self._lock:
            self._stopped = True
            for room in (self._room, *(stream.room for stream in self._streams)):
                room.notify()
        while self._workers:
            self._workers.pop().join()

    def _start(self) -> None:
        self._workers.append(Thread(target=self._work, daemon=True, name="neardup-read-ahead"))
        self._workers[-1].start()

    def _work(self) -> None:
        while (opened := self._open()) is not None:
            stream, open_stream = opened
            try:
                for item in open_stream():
                    if not self._put(stream, item):
                        return
            except BaseException as error:  # raised in the caller, whatever it is
                stream.error = error
            with self._lock:
                stream.has_ended = True
                self._filled.notify()

    def _open(self) -> tuple[_Stream[T], Callable[[], Iterable[T]]] | None:
        with self._opening:
            with self._lock:
                while self._num_bytes >= self._most and self._streams and not self._stopped:
                    self._room.wait()
            try:
                open_stream = next(self._unopened, None)
            except BaseException as error:
                open_stream = partial(_fail, error)
            with self._lock:
                self._exhausted |= open_stream is None
                if open_stream is None or self._stopped:
                    self._filled.notify()
                    return None
                stream = _Stream[T](self._lock)
                self._streams.append(stream)
                if len(self._workers) < self._threads:
                    self._start()
        return stream, open_stream

    def _put(self, stream: _Stream[T], item: T) -> bool:
        """Add an item once there is room; return False if the caller has stopped."""
        size = self._bytes_of(item) + _ITEM_BYTES
        with self._lock:
            while stream.num_bytes >= STREAM_BYTES and not self._stopped:
                stream.room.wait()
            stream.items.append((item, size))
            stream.num_bytes += size
            self._num_bytes += size
            self._filled.notify()
            return not self._stopped


def _fail(error: BaseException) -> Iterator[Any]:
    raise error


def chain_ahead(
    streams: Iterable[Callable[[], Iterable[T]]], threads: int, *, bytes_of: Callable[[T], int]
) -> Generator[T, None, None]:
    """Yield the items of iterators, one iterator after the other, while threads run the next ones
    ahead.

    Parameters
    ----------
    streams : open the iterators, in order; a thread opens one and runs it to its end.
    threads : iterators at once; with 1, the caller's thread runs them.
    bytes_of : the memory of an item. An iterator pauses while STREAM_BYTES of its items wait, and
        none is opened while `bytes_ahead` of all items do.

    Notes
    -----
    An error of an iterator is raised at its position in the order. If the caller stops early, so do
    the threads.
    """
    if threads == 1:
        for open_stream in streams:
            yield from open_stream()
        return
    chain = _Chain(streams, threads, bytes_of)
    try:
        yield from chain.items()
    finally:
        chain.stop()


class Encoders:
    """Threads that encode for the writers of files, as many as the writers leave idle.

    Parameters
    ----------
    pool : of `threads` threads.
    threads : of the pool; writers and encoders at work together are no more.
    max_bytes : that each writer may have waiting, encoded or not.
    """

    def __init__(self, pool: Executor, threads: int, max_bytes: int) -> None:
        self._pool, self._idle, self.max_bytes = pool, Semaphore(threads), max_bytes

    def __enter__(self) -> None:
        self._idle.acquire()

    def __exit__(self, *_: object) -> None:
        self._idle.release()

    def start(self, job: Callable[[], Result]) -> Future[Result]:
        """Run a job on an idle thread, or on the caller's if there is none."""
        if self._idle.acquire(blocking=False):
            future = self._pool.submit(job)
            future.add_done_callback(lambda _: self._idle.release())
        else:
            future = Future()
            future.set_result(job())
        return future


@contextmanager
def open_encoders(threads: int, writers: int) -> Iterator[Encoders | None]:
    """Open the encoders of some writers at once; None for two threads, which a writer and its
    reader keep busy.
    """
    if threads <= 2:
        yield None
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="neardup-encode") as pool:
        yield Encoders(pool, threads, _ENCODED_BYTES // writers)


class InOrder(Generic[Result]):
    """Runs jobs of a writer on encoders, and passes their results to a function in the order of the
    jobs.

    Pattern: `put` any number of times, then `finish`. Both raise the errors of jobs.

    Parameters
    ----------
    take : called with each result, on the caller's thread.
    share : of the memory of a writer, what these jobs may take.

    Attributes
    ----------
    encoders : None, until set, to run each job at once.
    """

    def __init__(self, take: Callable[[Result], object], share: float = 1) -> None:
        self.encoders: Encoders | None = None
        self._take, self._share, self._num_bytes = take, share, 0
        self._waiting: deque[tuple[Future[Result], int]] = deque()

    def put(self, job: Callable[[], Result], num_bytes: int) -> None:
        """Run a job, whose data take some memory; wait for earlier ones if there is too little."""
        if self.encoders is None:
            self._take(job())
            return
        most = self.encoders.max_bytes * self._share - num_bytes
        while self._waiting and self._num_bytes > most:
            self._take_first()
        for _ in range(_TAKEN_AT_ONCE):
            if self._waiting and self._waiting[0][0].done():
                self._take_first()
        self._waiting.append((self.encoders.start(job), num_bytes))
        self._num_bytes += num_bytes

    def finish(self) -> None:
        """Wait for all jobs."""
        while self._waiting:
            self._take_first()

    def _take_first(self) -> None:
        future, num_bytes = self._waiting.popleft()
        self._num_bytes -= num_bytes
        self._take(future.result())
