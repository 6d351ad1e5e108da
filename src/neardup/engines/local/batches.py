"""Work on the documents of all parts, batch by batch, on a pool of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import pyarrow as pa

from neardup.documents.batch import DocumentBatch, Rejected
from neardup.documents.reading import Task
from neardup.progress import Progress

T = TypeVar("T")
_AHEAD = 8
_SMALL_BYTES = 1 << 20


def map_batches(
    tasks: list[Task],
    work: Callable[[pa.Array], T],
    threads: int,
    progress: Progress,
    reject: Callable[[Rejected], None],
) -> Iterator[tuple[DocumentBatch, T]]:
    """Yield batches with what `work` makes of their texts, in the order of the documents.

    Small ones are put together first, also those of several parts: what a batch costs, whatever is in it, is more than
    the work on a page, and each HTML file is a batch.
    """
    waiting: deque[tuple[DocumentBatch, Future[T]]] = deque()

    def take_one() -> tuple[DocumentBatch, T]:
        batch, future = waiting.popleft()
        made = future.result()
        progress.advance(len(batch.rows), int(batch.text.nbytes))
        return batch, made

    with ThreadPoolExecutor(threads) as pool:
        try:
            for batch in _put_together(batch for task in tasks for batch in task.read(reject)):
                waiting.append((batch, pool.submit(work, batch.text)))
                if len(waiting) > _AHEAD:
                    yield take_one()
            while waiting:
                yield take_one()
        finally:
            pool.shutdown(cancel_futures=True)


def _put_together(batches: Iterator[DocumentBatch]) -> Iterator[DocumentBatch]:
    """Yield the same documents in batches that are not small, but for those before ids of another type and the end."""
    small: list[DocumentBatch] = []
    num_bytes = 0
    for batch in batches:
        if small and _id_type(batch) != _id_type(small[0]):
            yield _concatenated(small)
            small, num_bytes = [], 0
        small.append(batch)
        num_bytes += batch.text.nbytes
        if num_bytes >= _SMALL_BYTES:
            yield _concatenated(small)
            small, num_bytes = [], 0
    if small:
        yield _concatenated(small)


def _id_type(batch: DocumentBatch) -> pa.DataType | None:
    return None if batch.ids is None else batch.ids.type


def _concatenated(batches: list[DocumentBatch]) -> DocumentBatch:
    """Return the texts and ids of batches as one, without ranks; its rows are those in the parts."""
    if len(batches) == 1:
        return batches[0]
    ids = None if batches[0].ids is None else pa.concat_arrays([batch.ids for batch in batches])
    text = pa.concat_arrays([batch.text for batch in batches])
    return DocumentBatch(text, np.concatenate([batch.rows for batch in batches]), ids)
