"""Write the shingles of the documents in candidate pairs as sorted sets to scratch columns.

The shingles come from scratch columns, where the first reading stored them, or from the texts, which are read and cut
again: see `stores_sets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels, schemas
from neardup.arrays import arrow_of
from neardup.documents.batch import DocumentBatch
from neardup.documents.corpus import Corpus
from neardup.engines.local.scratch import Scratch
from neardup.executor import map_ordered
from neardup.features.shingles import Workspaces
from neardup.formats.reading import Task, changed, read_tasks
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
    lengths = np.diff(source.scratch.column(schemas.SHINGLE_STARTS), append=source.corpus.tally.shingles)
    cache = source.tasks[0].cache if source.tasks else None
    most = _most_words(lengths[wanted])
    memory = np.empty(most, np.uint64) if cache is not None and cache.take(8 * most) else None
    room = _Room(lengths, wanted, memory)
    if source.stored or not wanted.any():
        sets = _from_columns(source, room, threads, columns, source.corpus.tally.shingles)
    else:
        sets = _from_texts(source, room, threads)
    return _collect(source.scratch, sets, room, progress, name)


def build_structure_sets(source: SetSource, wanted: Mask, threads: int, progress: Progress) -> Sets:
    """Write the runs of tags of the selected documents as `build_sets` does shingles. They are always stored."""
    columns, room = (schemas.TAGS, schemas.TAG_STARTS), _Room(np.empty(0, np.int64), wanted, None)
    sets = _from_columns(source, room, threads, columns, source.corpus.tally.structure)
    return _collect(source.scratch, sets, room, progress, "structure-sets")


class _Place(NamedTuple):
    """Where the sets of a stretch of documents go: room for them in memory, from word `begin` on; or nowhere yet."""

    room: npt.NDArray[np.uint64] | None
    begin: int


class _Room:
    """The memory for all sets, if there is enough. lengths : of the lists, by document."""

    def __init__(self, lengths: npt.NDArray[np.int64], wanted: Mask, memory: npt.NDArray[np.uint64] | None) -> None:
        self.lengths, self.wanted, self.memory = lengths, wanted, memory
        self._used = 0

    def take(self, these: slice) -> _Place:
        """Return the place of the next documents."""
        begin = self._used
        if self.memory is None:
            return _Place(None, 0)
        self._used += _most_words(self.lengths[these][self.wanted[these]])
        return _Place(self.memory[begin : self._used], begin)


def _from_columns(
    source: SetSource, room: _Room, threads: int, columns: tuple[Column, Column], num_shingles: int
) -> Iterator[Sets]:
    """Yield the sets of stored shingles, which stay unchanged, so that an interrupted run can resume."""
    hashes, starts = (source.scratch.column(column) for column in columns)

    def build(item: tuple[slice, _Place]) -> Sets:
        these, place = item
        stops = np.append(starts[these][1:], starts[these.stop] if these.stop < len(starts) else num_shingles)
        return _sort(hashes, starts[these], stops, room.wanted[these], place)

    items = ((these, room.take(these)) for these in stretches(len(starts), _STRETCH))
    return (sets for _, sets in map_ordered(items, build, threads))


def _from_texts(source: SetSource, room: _Room, threads: int) -> Iterator[Sets]:
    """Yield the sets of texts that are read and cut again."""
    workspaces, content = Workspaces(), source.scratch.column(schemas.CONTENT)

    def build(item: tuple[slice, _Place, pa.Array]) -> Sets:
        these, place, texts = item
        chosen = room.wanted[these]
        starts, stops = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
        with workspaces.borrow() as workspace:
            features = source.method.describe(texts.filter(arrow_of(chosen)), workspace)
            starts[chosen], stops[chosen] = features.sets.offsets[:-1], features.sets.offsets[1:]
            featured = features.sets.sizes > 0
            if not np.array_equal(features.content[featured], content[these][chosen][featured]):
                raise changed("An input")
            return _sort(features.sets.hashes, starts, stops, chosen, place)

    numbered = _numbered(source.tasks, source.corpus, threads)
    items = ((these, room.take(these), batch.text) for these, batch in numbered)
    return (sets for _, sets in map_ordered(items, build, threads, bytes_of=lambda item: int(item[2].nbytes)))


def _numbered(tasks: list[Task], corpus: Corpus, threads: int) -> Iterator[tuple[slice, DocumentBatch]]:
    """Yield all batches with the numbers of their documents."""
    first, ends = 0, corpus.part_ends.tolist()
    for number, entry in read_tasks(tasks, threads):
        num_documents = len(entry.rows) if isinstance(entry, DocumentBatch) else 0
        if first + num_documents > ends[number] or (entry is None and first < ends[number]):
            raise changed(tasks[number].part.name)
        if isinstance(entry, DocumentBatch):
            yield slice(first, first + num_documents), entry
        first += num_documents


def _sort(
    shingles: npt.NDArray[np.uint64],
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    wanted: Mask,
    place: _Place,
) -> Sets:
    """Return the sets of wanted documents; the shingles of document i are shingles[starts[i] : stops[i]]."""
    hashes = np.empty(_most_words((stops - starts)[wanted]), np.uint64) if place.room is None else place.room
    out = np.empty(len(starts), np.int64), np.zeros(len(starts), np.uint32)
    used = kernels.sorted_sets.write_sets(shingles, starts, stops, wanted, hashes, *out)
    return kernels.sorted_sets.Sets(hashes[:used], out[0] + place.begin, out[1])


def _most_words(lengths: npt.NDArray[np.int64]) -> int:
    """Return how long sets and sketches of lists of these lengths can be."""
    return int(lengths.sum() + np.maximum(1, lengths // 4 + 1).sum())


def _collect(scratch: Scratch, results: Iterator[Sets], room: _Room, progress: Progress, name: str) -> Sets:
    """Return all sets: those in memory, or put one after the other in a scratch column."""
    set_hashes, set_starts = schemas.SET_HASHES.of(name), schemas.SET_STARTS.of(name)
    sizes = np.zeros(len(room.wanted), np.uint32)
    written = done = 0
    for number, sets in enumerate(results, 1):
        scratch.append(set_starts, sets.starts + written)
        if room.memory is None:
            scratch.append(set_hashes, sets.hashes)
            written += len(sets.hashes)
        sizes[done : done + len(sets.sizes)] = sets.sizes
        done += len(sets.sizes)
        progress.advance(len(sets.sizes), 0)
        if number % _RELEASE_EVERY == 0:
            scratch.release_pages()
    hashes = scratch.column(set_hashes) if room.memory is None else room.memory
    return kernels.sorted_sets.Sets(hashes, scratch.column(set_starts), sizes)


def stretches(count: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` that cover `count` rows."""
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))
