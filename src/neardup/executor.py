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
_MIN_AHEAD = 8  # waiting items, enough to continue reading while the compiler is loaded
_MIN_BYTES_AHEAD = 64 << 20
_BYTES_AHEAD_PER_THREAD = 8 << 20
STREAM_BYTES = 32 << 20
"""The maximum of waiting bytes of each iterator that runs ahead, unless a single item is larger."""
_ENCODED_BYTES = 1 << 30  # data that waits for the writers of files, all writers together
_ITEM_BYTES = 4096  # memory of the objects around the data of an item
SMALL_BYTES = 1 << 20
"""The minimum size of a list of small items."""
_MAX_ITEMS = 4096  # items in such a list
# Maximum of results that a writer writes before it gives encoders another job: while it writes
# more, they may be idle.
_RESULTS_PER_JOB = 2


def count_processors() -> int:
    """Return the number of processors that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_threads(threads: int | None) -> int:
    """Return the number of worker threads: as requested, or one for each processor this process may
    use.
    """
    return count_processors() if threads is None else threads


def bytes_ahead(threads: int) -> int:
    """Return the maximum of bytes waiting for threads, enough to keep all of them busy."""
    return max(_MIN_BYTES_AHEAD, threads * _BYTES_AHEAD_PER_THREAD)


def map_ordered(
    items: Iterable[T],
    work: Callable[[T], Result],
    threads: int,
    *,
    bytes_of: Callable[[T], int] = lambda _: 0,
    min_bytes: int = 0,
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
    min_bytes : the calling thread works on smaller items, once all items before them are done: to
        start another thread takes longer.
    ahead : the maximum number of waiting items. Default: two for each thread, at least 8.

    Notes
    -----
    A result is yielded as soon as it and all earlier results are complete. An error of `work` or
    `items` is raised at its position in the order. Items that are not started are dropped then, and
    also if the caller stops early.
    """
    waiting: deque[tuple[T, Future[Result]]] = deque()
    errors: list[Exception] = []
    num_bytes = 0
    max_bytes = bytes_ahead(threads)
    max_waiting = max(_MIN_AHEAD, 2 * threads) if ahead is None else ahead
    with _Pool(threads) as pool:
        for item in _until_error(items, errors):
            size = bytes_of(item)
            if size < min_bytes:
                yield from _results(waiting)
                num_bytes = 0
                yield item, work(item)
                continue
            waiting.append((item, pool.submit(work, item)))
            num_bytes += size
            # Yield the first result once it is done, or wait for it if too much is waiting.
            while waiting:
                first, future = waiting[0]
                if not future.done() and len(waiting) <= max_waiting and num_bytes <= max_bytes:
                    break
                waiting.popleft()
                num_bytes -= bytes_of(first)
                yield first, future.result()
        yield from _results(waiting)
    for error in errors:
        raise error


class _Pool:
    """A pool of threads that is made when the first call is submitted, and ended by `with`."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> _Pool:
        return self

    def submit(self, work: Callable[[T], Result], item: T) -> Future[Result]:
        """Return the future of a call."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="neardup")
        return self._pool.submit(work, item)

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def _results(waiting: deque[tuple[T, Future[Result]]]) -> Iterator[tuple[T, Result]]:
    """Yield all waiting items with their results, in order."""
    while waiting:
        item, future = waiting.popleft()
        yield item, future.result()


def _until_error(items: Iterable[T], errors: list[Exception]) -> Iterator[T]:
    """Yield items; append an error of the iterator to a list, to raise it after the items before
    it.
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
    min_bytes: int | None = None,
    *,
    fits: Callable[[list[T], T], bool] = lambda *_: True,
    rows_of: Callable[[T], int] = lambda _: 0,
    max_rows: int | None = None,
) -> Iterator[list[T]]:
    """Yield items in lists of a mebibyte or more, because the work on each list has a fixed cost.

    The last list, and a list that the next item does not fit, may be smaller. An error of `items`
    is raised after the items before it.

    Parameters
    ----------
    items : for example batches, which are small if the files are.
    bytes_of : the size of an item.
    min_bytes : the minimum size of a list. Default: a mebibyte.
    fits : whether an item may join the list of earlier items; it must not look at all of them.
    rows_of, max_rows : the rows of an item, and the maximum of a list of several; no limit if None.
    """
    group: list[T] = []
    errors: list[Exception] = []
    num_bytes = 0
    num_rows = 0
    for item in _until_error(items, errors):
        rows = rows_of(item)
        is_full = max_rows is not None and num_rows + rows > max_rows
        if group and (is_full or not fits(group, item)):
            yield group
            group = []
            num_bytes = 0
            num_rows = 0
        group.append(item)
        num_bytes += bytes_of(item)
        num_rows += rows
        if num_bytes >= (min_bytes or SMALL_BYTES) or len(group) >= _MAX_ITEMS:
            yield group
            group = []
            num_bytes = 0
            num_rows = 0
    if group:
        yield group
    for error in errors:
        raise error


class _Stream(Generic[T]):
    """An iterator of `chain_ahead`, and its waiting items.

    not_full : notified when there may be space for more items.
    """

    def __init__(self, lock: Lock) -> None:
        self.items: deque[tuple[T, int]] = deque()
        self.num_bytes = 0
        self.not_full = Condition(lock)
        self.has_ended = False
        self.error: BaseException | None = None


class _Chain(Generic[T]):
    """The state that the threads of `chain_ahead` share.

    `_lock` protects all of it; `_opening` lets one thread open the next iterator at a time.
    `_filled` is notified when the caller may have an item or the end, `_may_open` when an iterator
    may be opened.
    """

    def __init__(
        self,
        streams: Iterable[Callable[[], Iterable[T]]],
        threads: int,
        bytes_of: Callable[[T], int],
    ) -> None:
        self._unopened = iter(streams)
        self._threads = threads
        self._bytes_of = bytes_of
        self._max_bytes = bytes_ahead(threads)
        self._num_bytes = 0
        self._opening = Lock()
        self._lock = Lock()
        self._filled = Condition(self._lock)
        self._may_open = Condition(self._lock)
        self._streams: deque[_Stream[T]] = deque()  # opened and not exhausted by the caller
        self._workers: list[Thread] = []
        self._stopped = False  # by the caller
        self._exhausted = False  # no iterator is left to open

    def items(self) -> Iterator[T]:
        """Yield the items of all iterators, in order."""
        self._start_thread()
        while True:
            with self._lock:
                stream = self._first_filled()
                if stream is None:
                    return
                item, size = stream.items.popleft()
                stream.num_bytes -= size
                self._num_bytes -= size
                stream.not_full.notify()
                self._may_open.notify()
            yield item

    def _first_filled(self) -> _Stream[T] | None:
        """Wait for an item of the first iterator that has not ended; None if all have ended.

        Raises the error of an iterator that failed. Requires: the lock is held.
        """
        while True:
            if self._streams:
                first = self._streams[0]
                if first.items:
                    return first
                if first.has_ended:
                    self._streams.popleft()
                    if first.error:
                        raise first.error
                    self._may_open.notify()
                    continue
            elif self._exhausted:
                return None
            self._filled.wait()

    def stop(self) -> None:
        """End all threads."""
        with self._lock:
            self._stopped = True
            self._may_open.notify()
            for stream in self._streams:
                stream.not_full.notify()
        while self._workers:
            self._workers.pop().join()

    def _start_thread(self) -> None:
        self._workers.append(Thread(target=self._work, daemon=True, name="neardup-read-ahead"))
        self._workers[-1].start()

    def _work(self) -> None:
        """Open iterators and run them to their ends, until none is left."""
        while (opened := self._open()) is not None:
            stream, open_stream = opened
            try:
                for item in open_stream():
                    if not self._put(stream, item):
                        return
            except BaseException as error:  # any error is raised in the caller
                stream.error = error
            with self._lock:
                stream.has_ended = True
                self._filled.notify()

    def _open(self) -> tuple[_Stream[T], Callable[[], Iterable[T]]] | None:
        """Return the next iterator, not started, with its stream, which has the next position in
        the order; None if no iterator is left, or the caller has stopped.
        """
        with self._opening:
            with self._lock:
                while self._num_bytes >= self._max_bytes and self._streams and not self._stopped:
                    self._may_open.wait()
            try:
                open_stream = next(self._unopened, None)
            except BaseException as error:  # raised at its position in the order
                open_stream = partial(_fail, error)
            with self._lock:
                self._exhausted |= open_stream is None
                if open_stream is None or self._stopped:
                    self._filled.notify()
                    return None
                stream = _Stream[T](self._lock)
                self._streams.append(stream)
                if len(self._workers) < self._threads:  # another thread opens the next iterator
                    self._start_thread()
        return stream, open_stream

    def _put(self, stream: _Stream[T], item: T) -> bool:
        """Add an item once there is space; return False if the caller has stopped."""
        size = self._bytes_of(item) + _ITEM_BYTES
        with self._lock:
            while stream.num_bytes >= STREAM_BYTES and not self._stopped:
                stream.not_full.wait()
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
    threads : the number of iterators at once; with 1, the caller's thread runs them.
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

    Pattern: a writer works inside `with encoders:`, which takes one of the `threads` from them.

    Parameters
    ----------
    pool : a pool of `threads` threads.
    threads : the maximum number of writers and encoders at work together.
    max_bytes : the data that each writer may have waiting, encoded or not.
    """

    def __init__(self, pool: Executor, threads: int, max_bytes: int) -> None:
        self._pool = pool
        self._idle = Semaphore(threads)
        self.max_bytes = max_bytes

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
    """Open the encoders of several writers; None for two threads, since a writer and its reader
    keep them busy.
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
    share : the share of the memory of a writer that these jobs may take.

    Attributes
    ----------
    encoders : None, until set, to run each job at once.
    """

    def __init__(self, take: Callable[[Result], object], share: float = 1) -> None:
        self.encoders: Encoders | None = None
        self._take = take
        self._share = share
        self._num_bytes = 0
        self._waiting: deque[tuple[Future[Result], int]] = deque()

    def put(self, job: Callable[[], Result], num_bytes: int) -> None:
        """Run a job, whose data take some memory; wait for earlier jobs if there is too little."""
        if self.encoders is None:
            self._take(job())
            return
        free_at = self.encoders.max_bytes * self._share - num_bytes
        while self._waiting and self._num_bytes > free_at:
            self._take_first()
        for _ in range(_RESULTS_PER_JOB):
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
