"""Process the documents of all parts in batches, on a pool of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from neardup.documents.batch import DocumentBatch, Rejected, concatenate
from neardup.executor import group_small, map_ordered
from neardup.formats.reading import Task
from neardup.progress import Progress

T = TypeVar("T")


def map_batches(
    tasks: list[Task],
    work: Callable[[pa.Array], T],
    threads: int,
    progress: Progress,
    reject: Callable[[Rejected], None],
) -> Iterator[tuple[DocumentBatch, T]]:
    """Yield batches with the result of `work` on their texts, in input order.

    Small batches are merged first, also across parts: each HTML file is a batch.
    """
    batches = (batch for task in tasks for batch in task.read(reject))
    grouped = map(concatenate, group_small(batches, bytes_of, fits=_same_columns))
    for batch, result in map_ordered(grouped, lambda batch: work(batch.text), threads, bytes_of=bytes_of):
        progress.advance(len(batch.rows), bytes_of(batch))
        yield batch, result


def bytes_of(batch: DocumentBatch) -> int:
    """Return the size of the texts of a batch."""
    return int(batch.text.nbytes)


def _same_columns(group: list[DocumentBatch], batch: DocumentBatch) -> bool:
    kinds = [(None if one.ids is None else one.ids.type, len(one.ranks), len(one.values)) for one in (group[0], batch)]
    return bool(kinds[0] == kinds[1])
