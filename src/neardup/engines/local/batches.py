"""Process the documents of all parts in batches, on a pool of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa

from neardup.documents.batch import DocumentBatch, Rejected
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
    grouped = map(concatenate, group_small(batches, bytes_of, fits=_same_ids))
    for batch, result in map_ordered(grouped, lambda batch: work(batch.text), threads, bytes_of=bytes_of):
        progress.advance(len(batch.rows), bytes_of(batch))
        yield batch, result


def bytes_of(batch: DocumentBatch) -> int:
    """Return the size of the texts of a batch."""
    return int(batch.text.nbytes)


def _same_ids(group: list[DocumentBatch], batch: DocumentBatch) -> bool:
    kinds = [None if each.ids is None else each.ids.type for each in (group[0], batch)]
    return bool(kinds[0] == kinds[1])


def concatenate(batches: list[DocumentBatch]) -> DocumentBatch:
    """Return batches as one batch of texts and ids, without ranks; `rows` are the rows in the parts."""
    if len(batches) == 1:
        return batches[0]
    ids = None if batches[0].ids is None else pa.concat_arrays([batch.ids for batch in batches])
    text = pa.concat_arrays([batch.text for batch in batches])
    return DocumentBatch(text, np.concatenate([batch.rows for batch in batches]), ids)
