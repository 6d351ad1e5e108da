"""Work on the documents of all parts, batch by batch, on a pool of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

from neardup.documents.batch import DocumentBatch, Rejected
from neardup.engines.describe import Task
from neardup.engines.stages import Watcher

T = TypeVar("T")
_AHEAD = 8


def map_batches(
    tasks: list[Task],
    work: Callable[[pa.Array], T],
    threads: int,
    watcher: Watcher,
    reject: Callable[[Rejected], None],
) -> Iterator[tuple[DocumentBatch, T]]:
    """Yield each batch with what `work` makes of its texts, in the order of the documents."""
    waiting: deque[tuple[DocumentBatch, Future[T]]] = deque()

    def take_one() -> tuple[DocumentBatch, T]:
        batch, future = waiting.popleft()
        made = future.result()
        watcher.advance(len(batch.rows), int(batch.text.nbytes))
        return batch, made

    with ThreadPoolExecutor(threads) as pool:
        try:
            for task in tasks:
                for batch in task.part.read(task.columns, reject):
                    waiting.append((batch, pool.submit(work, batch.text)))
                    if len(waiting) > _AHEAD:
                        yield take_one()
            while waiting:
                yield take_one()
        finally:
            pool.shutdown(cancel_futures=True)
