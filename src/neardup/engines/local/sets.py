"""Write the shingles of the documents in candidate pairs as sorted sets to scratch columns.

The shingles come from scratch columns, if the first reading stored them, or from the texts, which
are read and cut again: see `stores_sets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels, schemas
from neardup.arrays import Ints, Mask, Uint32s, Words, arrow_of
from neardup.documents.batch import Corpus, DocumentBatch
from neardup.documents.batch_cache import BatchCache
from neardup.executor import map_ordered
from neardup.features.workspaces import Workspace, Workspaces
from neardup.formats.reading import Task, input_changed, read_tasks
from neardup.methods.base import Method
from neardup.progress import Progress
from neardup.runs.scratch import Scratch
from neardup.schemas import Column

if TYPE_CHECKING:
    from neardup.kernels.sorted_sets import Sets

_STRETCH = 1024  # documents whose sets a thread builds at a time
_RELEASE_EVERY = 8  # stretches between two releases of the mapped pages


class SetSource(NamedTuple):
    """The documents of a run, whose sets are built.

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

    The sets are in memory if the cache of the documents has enough left, or in a new scratch
    column.

    Parameters
    ----------
    wanted : bool array of shape (num_documents,).
    name : the name of the column.

    Raises
    ------
    InputError
        If texts are read again, and an input has changed since the first reading.
    """
    num_shingles = source.corpus.tally.shingles
    space = _SetSpace(
        source.scratch,
        schemas.SET_HASHES.of(name),
        np.diff(source.scratch.column(schemas.SHINGLE_STARTS), append=num_shingles),
        wanted,
        source.tasks[0].cache if source.tasks else None,
    )
    if source.stored or not wanted.any():
        columns = (schemas.SHINGLES, schemas.SHINGLE_STARTS)
        sets = _from_columns(source, space, threads, columns, num_shingles)
    else:
        sets = _from_texts(source, space, threads)
    return _collect(sets, space, progress, schemas.SET_STARTS.of(name))


def build_structure_sets(source: SetSource, wanted: Mask, threads: int, progress: Progress) -> Sets:
    """Write the runs of tags of the selected documents, which are always stored, as sorted sets to
    a scratch column.
    """
    name = "structure-sets"
    num_tags = source.corpus.tally.structure
    lengths = np.diff(source.scratch.column(schemas.TAG_STARTS), append=num_tags)
    space = _SetSpace(source.scratch, schemas.SET_HASHES.of(name), lengths, wanted)
    columns = (schemas.TAGS, schemas.TAG_STARTS)
    sets = _from_columns(source, space, threads, columns, num_tags)
    return _collect(sets, space, progress, schemas.SET_STARTS.of(name))


class _SetSpace:
    """Space for all sets, in a scratch column or in memory. Each stretch of documents has space for
    the longest sets that it may have.

    lengths : int64 by document, the length of its list. cache : lends its memory if it has enough
    left.
    """

    def __init__(
        self,
        scratch: Scratch,
        column: Column,
        lengths: Ints,
        wanted: Mask,
        cache: BatchCache | None = None,
    ) -> None:
        self.scratch = scratch
        self.column = column
        self.wanted = wanted
        self._lengths = lengths
        max_words = _max_words(lengths[wanted])
        # In memory if the cache has room: the scratch file is written and read otherwise.
        in_memory = cache is not None and cache.reserve(8 * max_words)
        self.memory = np.empty(max_words, np.uint64) if in_memory else None
        self._used = 0
        scratch.append(column, np.empty(0, column.dtype))  # `write` needs the file

    def take(self, documents: slice) -> slice:
        """Return the words for the next documents."""
        begin = self._used
        is_wanted = self.wanted[documents]
        self._used += _max_words(self._lengths[documents][is_wanted])
        return slice(begin, self._used)

    def sort(
        self, words: slice, shingles: Words, starts: Ints, stops: Ints, wanted: Mask
    ) -> _SetRanges:
        """Sort the shingles of wanted documents as sets into some words.

        starts, stops : document i has shingles[starts[i] : stops[i]].
        """
        if self.memory is None:
            hashes = np.empty(words.stop - words.start, np.uint64)
        else:
            hashes = self.memory[words]
        num_documents = len(wanted)
        set_starts = np.empty(num_documents, np.int64)
        sizes = np.zeros(num_documents, np.uint32)
        # The sets are written one after the other, and use a part of the words.
        used = kernels.sorted_sets.write_sets(
            shingles, starts, stops, wanted, hashes, set_starts, sizes
        )
        if self.memory is None:
            self.scratch.write(self.column, hashes[:used], words.start)
        return _SetRanges(set_starts + words.start, sizes)


class _SetRanges(NamedTuple):
    """The first word of the set of each document, and its size."""

    starts: Ints
    sizes: Uint32s


def _from_columns(
    source: SetSource,
    space: _SetSpace,
    threads: int,
    columns: tuple[Column, Column],
    num_shingles: int,
) -> Iterator[_SetRanges]:
    """Sort stored shingles, which stay unchanged, so that an interrupted run can resume."""
    hashes_column, starts_column = columns
    hashes = source.scratch.column(hashes_column)
    starts = source.scratch.column(starts_column)

    def build(item: tuple[slice, slice]) -> _SetRanges:
        documents, words = item
        # The last stretch has no start after it.
        end = starts[documents.stop] if documents.stop < len(starts) else num_shingles
        stops = np.append(starts[documents][1:], end)
        return space.sort(words, hashes, starts[documents], stops, space.wanted[documents])

    # The calling thread draws the items, so words are taken in the order of the documents.
    items = ((documents, space.take(documents)) for documents in stretches(len(starts), _STRETCH))
    return (ranges for _, ranges in map_ordered(items, build, threads))


def _from_texts(source: SetSource, space: _SetSpace, threads: int) -> Iterator[_SetRanges]:
    """Sort the shingles of texts that are read and cut again."""
    content = source.scratch.column(schemas.CONTENT)
    build = partial(_describe_again, source.method, content, space, Workspaces(Workspace))
    batches = numbered(source.tasks, source.corpus, threads)
    items = (_Texts(documents, space.take(documents), batch.text) for documents, batch in batches)
    done = map_ordered(items, build, threads, bytes_of=lambda item: int(item.texts.nbytes))
    return (ranges for _, ranges in done)


def _describe_again(
    method: Method,
    content: Words,
    space: _SetSpace,
    workspaces: Workspaces[Workspace],
    item: _Texts,
) -> _SetRanges:
    """Sort the shingles of some texts. Raises InputError if a text has changed.

    content : uint64 (num_documents, 2), the content of all documents when they were read first.
    """
    wanted = space.wanted[item.documents]
    expected = content[item.documents][wanted]
    # Only wanted texts are cut, so `features` has a row for each of them.
    texts = item.texts.filter(arrow_of(wanted))
    with workspaces.borrow() as workspace:
        features = method.describe(texts, workspace)
        featured = features.sets.sizes > 0
        # The file has changed since its shingles were counted: sets and keys would not fit.
        if not np.array_equal(features.content[featured], expected[featured]):
            raise input_changed("An input")
        starts = np.zeros(len(wanted), np.int64)
        stops = np.zeros(len(wanted), np.int64)
        starts[wanted] = features.sets.offsets[:-1]
        stops[wanted] = features.sets.offsets[1:]
        return space.sort(item.words, features.sets.hashes, starts, stops, wanted)


class _Texts(NamedTuple):
    """The texts of documents, and the words for their sets."""

    documents: slice
    words: slice
    texts: pa.Array


def numbered(
    tasks: list[Task], corpus: Corpus, threads: int
) -> Iterator[tuple[slice, DocumentBatch]]:
    """Yield all batches with the numbers of their documents.

    Raises InputError if a part has another number of documents than when it was read first.
    """
    first = 0
    part_ends = corpus.part_ends.tolist()
    for number, entry in read_tasks(tasks, threads):
        num_documents = len(entry.rows) if isinstance(entry, DocumentBatch) else 0
        has_more = first + num_documents > part_ends[number]
        has_fewer = entry is None and first < part_ends[number]
        if has_more or has_fewer:
            raise input_changed(tasks[number].part.name)
        if isinstance(entry, DocumentBatch):
            yield slice(first, first + num_documents), entry
        first += num_documents


def _max_words(lengths: Ints) -> int:
    """Return the maximum number of words of the sets, with their sketches, of lists of these
    lengths.
    """
    return int(lengths.sum() + np.maximum(1, lengths // 4 + 1).sum())


def _collect(
    results: Iterator[_SetRanges], space: _SetSpace, progress: Progress, set_starts: Column
) -> Sets:
    """Return all sets, once they are written."""
    scratch = space.scratch
    sizes = np.zeros(len(space.wanted), np.uint32)
    done = 0
    for number, ranges in enumerate(results, 1):
        scratch.append(set_starts, ranges.starts)
        sizes[done : done + len(ranges.sizes)] = ranges.sizes
        done += len(ranges.sizes)
        progress.advance(len(ranges.sizes), 0)
        if number % _RELEASE_EVERY == 0:
            scratch.release_pages()
    hashes = scratch.column(space.column) if space.memory is None else space.memory
    return kernels.sorted_sets.Sets(hashes, scratch.column(set_starts), sizes)


def stretches(count: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` that cover `count` rows."""
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))
