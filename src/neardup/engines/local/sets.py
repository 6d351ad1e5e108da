"""Write the shingles of the documents in candidate pairs as sorted sets to scratch columns.

The shingles come from scratch columns, where the first reading stored them, or from the texts,
which are read and cut again: see `stores_sets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels, schemas
from neardup.arrays import Ints, Mask, Uint32s, Words, arrow_of
from neardup.documents.batch import BatchCache, Corpus, DocumentBatch
from neardup.executor import map_ordered
from neardup.features.shingles import Workspace, Workspaces
from neardup.formats.reading import Task, changed, read_tasks
from neardup.methods.base import Method
from neardup.progress import Progress
from neardup.runs.scratch import Scratch
from neardup.schemas import Column

if TYPE_CHECKING:
    from neardup.kernels.sorted_sets import Sets

_STRETCH = 1024  # documents at a time
_RELEASE_EVERY = 8  # stretches


class SetSource(NamedTuple):
    """The documents of a run, of which sets are built.

    stored : whether their shingles are in scratch columns.
    """

    tasks: list[Task]
    corpus: Corpus
    method: Method
    scratch: Scratch
    stored: bool


def build_sets(
    source: SetSource, wanted: Mask, threads: int, progress: Progress, name: str
) -> Sets:
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
    scratch, tally = source.scratch, source.corpus.tally
    lengths = np.diff(scratch.column(schemas.SHINGLE_STARTS), append=tally.shingles)
    room = _Room(
        scratch,
        schemas.SET_HASHES.of(name),
        lengths,
        wanted,
        source.tasks[0].cache if source.tasks else None,
    )
    if source.stored or not wanted.any():
        sets = _from_columns(
            source, room, threads, (schemas.SHINGLES, schemas.SHINGLE_STARTS), tally.shingles
        )
    else:
        sets = _from_texts(source, room, threads)
    return _collect(sets, room, progress, schemas.SET_STARTS.of(name))


def build_structure_sets(source: SetSource, wanted: Mask, threads: int, progress: Progress) -> Sets:
    """Write the runs of tags of the selected documents as `build_sets` does shingles. They are
    always stored.
    """
    scratch, total, name = source.scratch, source.corpus.tally.structure, "structure-sets"
    lengths = np.diff(scratch.column(schemas.TAG_STARTS), append=total)
    room = _Room(scratch, schemas.SET_HASHES.of(name), lengths, wanted)
    sets = _from_columns(source, room, threads, (schemas.TAGS, schemas.TAG_STARTS), total)
    return _collect(sets, room, progress, schemas.SET_STARTS.of(name))


class _Room:
    """Where all sets go: a scratch column, or memory. Each stretch of documents has room for the
    longest sets.

    lengths : of the lists, by document. cache : whose memory is used if it has enough left.
    """

    def __init__(
        self,
        scratch: Scratch,
        column: Column,
        lengths: Ints,
        wanted: Mask,
        cache: BatchCache | None = None,
    ) -> None:
        self.scratch, self.column, self.wanted, self._lengths = scratch, column, wanted, lengths
        most = _most_words(lengths[wanted])
        self.memory = (
            np.empty(most, np.uint64) if cache is not None and cache.take(8 * most) else None
        )
        self._used = 0
        scratch.append(column, np.empty(0, column.dtype))

    def take(self, these: slice) -> slice:
        """Return the words for the next documents."""
        begin = self._used
        self._used += _most_words(self._lengths[these][self.wanted[these]])
        return slice(begin, self._used)

    def sort(
        self, words: slice, shingles: Words, starts: Ints, stops: Ints, wanted: Mask
    ) -> _Places:
        """Put the sets of wanted documents there; the shingles of document i are shingles[starts[i]
        : stops[i]].
        """
        hashes = (
            np.empty(words.stop - words.start, np.uint64)
            if self.memory is None
            else self.memory[words]
        )
        out = _Places(np.empty(len(starts), np.int64), np.zeros(len(starts), np.uint32))
        used = kernels.sorted_sets.write_sets(shingles, starts, stops, wanted, hashes, *out)
        if self.memory is None:
            self.scratch.write(self.column, hashes[:used], words.start)
        return out._replace(starts=out.starts + words.start)


class _Places(NamedTuple):
    """Where the sets of documents begin, and their sizes."""

    starts: Ints
    sizes: Uint32s


def _from_columns(
    source: SetSource, room: _Room, threads: int, columns: tuple[Column, Column], num_shingles: int
) -> Iterator[_Places]:
    """Sort stored shingles, which stay unchanged, so that an interrupted run can resume."""
    hashes, starts = (source.scratch.column(column) for column in columns)

    def build(item: tuple[slice, slice]) -> _Places:
        these, words = item
        stops = np.append(
            starts[these][1:], starts[these.stop] if these.stop < len(starts) else num_shingles
        )
        return room.sort(words, hashes, starts[these], stops, room.wanted[these])

    items = ((these, room.take(these)) for these in stretches(len(starts), _STRETCH))
    return (places for _, places in map_ordered(items, build, threads))


def _from_texts(source: SetSource, room: _Room, threads: int) -> Iterator[_Places]:
    """Sort the shingles of texts that are read and cut again."""
    workspaces, content = Workspaces(Workspace), source.scratch.column(schemas.CONTENT)

    def build(item: tuple[slice, slice, pa.Array]) -> _Places:
        these, words, texts = item
        chosen = room.wanted[these]
        starts, stops = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
        with workspaces.borrow() as workspace:
            features = source.method.describe(texts.filter(arrow_of(chosen)), workspace)
            starts[chosen], stops[chosen] = features.sets.offsets[:-1], features.sets.offsets[1:]
            featured = features.sets.sizes > 0
            if not np.array_equal(features.content[featured], content[these][chosen][featured]):
                raise changed("An input")
            return room.sort(words, features.sets.hashes, starts, stops, chosen)

    batches = numbered(source.tasks, source.corpus, threads)
    items = ((these, room.take(these), batch.text) for these, batch in batches)
    done = map_ordered(items, build, threads, bytes_of=lambda item: int(item[2].nbytes))
    return (places for _, places in done)


def numbered(
    tasks: list[Task], corpus: Corpus, threads: int
) -> Iterator[tuple[slice, DocumentBatch]]:
    """Yield all batches with the numbers of their documents."""
    first, ends = 0, corpus.part_ends.tolist()
    for number, entry in read_tasks(tasks, threads):
        num_documents = len(entry.rows) if isinstance(entry, DocumentBatch) else 0
        if first + num_documents > ends[number] or (entry is None and first < ends[number]):
            raise changed(tasks[number].part.name)
        if isinstance(entry, DocumentBatch):
            yield slice(first, first + num_documents), entry
        first += num_documents


def _most_words(lengths: Ints) -> int:
    """Return how long sets and sketches of lists of these lengths can be."""
    return int(lengths.sum() + np.maximum(1, lengths // 4 + 1).sum())


def _collect(
    results: Iterator[_Places], room: _Room, progress: Progress, set_starts: Column
) -> Sets:
    """Return all sets, once they are where they go."""
    scratch, sizes = room.scratch, np.zeros(len(room.wanted), np.uint32)
    done = 0
    for number, places in enumerate(results, 1):
        scratch.append(set_starts, places.starts)
        sizes[done : done + len(places.sizes)] = places.sizes
        done += len(places.sizes)
        progress.advance(len(places.sizes), 0)
        if number % _RELEASE_EVERY == 0:
            scratch.release_pages()
    hashes = scratch.column(room.column) if room.memory is None else room.memory
    return kernels.sorted_sets.Sets(hashes, scratch.column(set_starts), sizes)


def stretches(count: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` that cover `count` rows."""
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))
