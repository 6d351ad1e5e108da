"""Write the shingles of the documents in candidate pairs as sorted sets to scratch columns.

The shingles come from scratch columns, where the first reading stored them, or from the texts, which are read and cut
again: see `stores_sets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels, schemas
from neardup.arrays import arrow_of
from neardup.documents.batch import DocumentBatch
from neardup.documents.corpus import Corpus
from neardup.engines.local.scratch import Scratch
from neardup.executor import map_ordered
from neardup.features.shingles import Workspaces
from neardup.formats.reading import Task, changed
from neardup.methods.base import Method
from neardup.progress import Progress
from neardup.schemas import Column

if TYPE_CHECKING:
    from neardup.kernels.sorted_sets import Sets

_STRETCH = 1024  # documents at a time
_RELEASE_EVERY = 8  # stretches
Mask = npt.NDArray[np.bool_]


class SetSource(NamedTuple):
    """The documents of a run, of which sets are built.

    stored : whether their shingles are in scratch columns.
    """

    tasks: list[Task]
    corpus: Corpus
    method: Method
    scratch: Scratch
    stored: bool


def build_sets(source: SetSource, wanted: Mask, threads: int, progress: Progress, name: str) -> Sets:
    """Build sorted sets of the shingles of the selected documents, on a pool of threads.

    They are in memory if the cache of the documents has enough left, else in a new scratch column.

    Parameters
    ----------
    wanted : bool array of shape (num_documents,).
    name : of the column.

    Raises
    ------
    InputError
        If texts are read again, and an input has changed since the first reading.
    """
    columns = schemas.SHINGLES, schemas.SHINGLE_STARTS
    if source.stored or not wanted.any():
        sets = _from_columns(source, wanted, threads, columns, source.corpus.tally.shingles)
    else:
        sets = _from_texts(source, wanted, threads)
    lengths = np.diff(source.scratch.column(schemas.SHINGLE_STARTS), append=source.corpus.tally.shingles)
    cache = source.tasks[0].cache if source.tasks else None
    most = _most_words(lengths[wanted])
    memory = np.empty(most, np.uint64) if cache is not None and cache.take(8 * most) else None
    return _collect(source.scratch, sets, len(wanted), progress, name, memory)


def build_structure_sets(source: SetSource, wanted: Mask, threads: int, progress: Progress) -> Sets:
    """Write the runs of tags of the selected documents as `build_sets` does shingles. They are always stored."""
    columns = schemas.TAGS, schemas.TAG_STARTS
    sets = _from_columns(source, wanted, threads, columns, source.corpus.tally.structure)
    return _collect(source.scratch, sets, len(wanted), progress, "structure-sets", None)


def _from_columns(
    source: SetSource, wanted: Mask, threads: int, columns: tuple[Column, Column], num_shingles: int
) -> Iterator[Sets]:
    """Yield the sets of stored shingles, which stay unchanged, so that an interrupted run can resume."""
    hashes, starts = (source.scratch.column(column) for column in columns)

    def build(stretch: slice) -> Sets:
        stops = np.append(starts[stretch][1:], starts[stretch.stop] if stretch.stop < len(starts) else num_shingles)
        return _sort(hashes, starts[stretch], stops, wanted[stretch])

    return (sets for _, sets in map_ordered(stretches(len(starts), _STRETCH), build, threads))


def _from_texts(source: SetSource, wanted: Mask, threads: int) -> Iterator[Sets]:
    """Yield the sets of texts that are read and cut again."""
    workspaces, content = Workspaces(), source.scratch.column(schemas.CONTENT)

    def build(item: tuple[int, DocumentBatch]) -> Sets:
        first, batch = item
        chosen = wanted[first : first + len(batch.rows)]
        starts, stops = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
        with workspaces.borrow() as workspace:
            features = source.method.describe(batch.text.filter(arrow_of(chosen)), workspace)
            starts[chosen], stops[chosen] = features.sets.offsets[:-1], features.sets.offsets[1:]
            featured = features.sets.sizes > 0
            if not np.array_equal(features.content[featured], content[first : first + len(chosen)][chosen][featured]):
                raise changed("An input")
            return _sort(features.sets.hashes, starts, stops, chosen)

    numbered = _numbered(source.tasks, source.corpus)
    done = map_ordered(numbered, build, threads, bytes_of=lambda item: int(item[1].text.nbytes))
    return (sets for _, sets in done)


def _numbered(tasks: list[Task], corpus: Corpus) -> Iterator[tuple[int, DocumentBatch]]:
    """Yield all batches with the number of their first document."""
    first = 0
    for task, end in zip(tasks, corpus.part_ends.tolist(), strict=True):
        for batch in task.read():
            if first + len(batch.rows) > end:
                raise changed(task.part.name)
            yield first, batch
            first += len(batch.rows)
        if first < end:
            raise changed(task.part.name)


def _sort(
    shingles: npt.NDArray[np.uint64], starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64], wanted: Mask
) -> Sets:
    """Return the sets of wanted documents; the shingles of document i are shingles[starts[i] : stops[i]]."""
    hashes = np.empty(_most_words((stops - starts)[wanted]), np.uint64)
    out = np.empty(len(starts), np.int64), np.zeros(len(starts), np.uint32)
    used = kernels.sorted_sets.write_sets(shingles, starts, stops, wanted, hashes, *out)
    return kernels.sorted_sets.Sets(hashes[:used], *out)


def _most_words(lengths: npt.NDArray[np.int64]) -> int:
    """Return how long sets and sketches of lists of these lengths can be."""
    return int(lengths.sum() + np.maximum(1, lengths // 4 + 1).sum())


def _collect(
    scratch: Scratch,
    results: Iterator[Sets],
    num_documents: int,
    progress: Progress,
    name: str,
    memory: npt.NDArray[np.uint64] | None,
) -> Sets:
    """Put sets one after the other, in memory or in a scratch column."""
    set_hashes, set_starts = schemas.SET_HASHES.of(name), schemas.SET_STARTS.of(name)
    sizes = np.zeros(num_documents, np.uint32)
    written = done = 0
    for number, sets in enumerate(results, 1):
        if memory is None:
            scratch.append(set_hashes, sets.hashes)
        else:
            memory[written : written + len(sets.hashes)] = sets.hashes
        scratch.append(set_starts, sets.starts + written)
        sizes[done : done + len(sets.sizes)] = sets.sizes
        written += len(sets.hashes)
        done += len(sets.sizes)
        progress.advance(len(sets.sizes), 0)
        if number % _RELEASE_EVERY == 0:
            scratch.release_pages()
    hashes = scratch.column(set_hashes) if memory is None else memory[:written]
    return kernels.sorted_sets.Sets(hashes, scratch.column(set_starts), sizes)


def stretches(count: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` that cover `count` rows."""
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))
