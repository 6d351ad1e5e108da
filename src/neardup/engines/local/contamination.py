"""Look for items in a corpus that streams past them once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from queue import Empty, LifoQueue
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels, schemas
from neardup.candidates.items import Finder, ItemTable, Matches
from neardup.decide.items import Hits, Kept, decide_hits, keep_matches
from neardup.documents.batch import Corpus, DocumentBatch
from neardup.engines.local.pipeline import locations
from neardup.engines.local.reading import Reading, read_all
from neardup.engines.local.scratch import Scratch, prepare
from neardup.features.shingles import extract_text, shingle_documents
from neardup.features.spans import word_ranges
from neardup.formats.reading import Task, known_total
from neardup.methods.base import Method
from neardup.output.directory import OutputDirectory
from neardup.output.tables import DocumentLocations
from neardup.progress import Stages
from neardup.runs.run import Run

_EXCERPTS = 2  # of an item; the report shows the best of them
_MOST_EXCERPTS = 10_000
_AROUND, _LONGEST = 200, 2000  # characters


class Excerpt(NamedTuple):
    """The text around an item in a document, from its character `start` on."""

    start: int
    text: str


class Found(NamedTuple):
    """Items in a corpus.

    num_documents : int64 by place, the documents that have the words around it. is_whole : bool by item, whether a
    document has all of it. hits : all of them. further : int64 by item, the documents that have all of it besides.
    enough : int64 by item, the documents that have enough of it, boilerplate included. excerpts : by document and item.
    """

    tasks: list[Task]
    corpus: Corpus
    locations: DocumentLocations
    num_documents: npt.NDArray[np.int64]
    is_whole: npt.NDArray[np.bool_]
    hits: Hits
    further: npt.NDArray[np.int64]
    enough: npt.NDArray[np.int64]
    excerpts: dict[tuple[int, int], Excerpt]


class _Batch(NamedTuple):
    """What was found in a batch.

    ranges : the characters of each match. excerpts : document, item, first character and text.
    """

    keys: npt.NDArray[np.int32]
    matches: Matches
    ranges: npt.NDArray[np.int64]
    kept: Kept
    excerpts: list[tuple[int, int, int, str]]


class _Search:
    """The search of one run: its columns in the scratch folder, and what it counts from them."""

    def __init__(self, table: ItemTable, reading: Reading) -> None:
        self._table, self._reading, self._scratch = table, reading, reading.scratch
        self._words = replace(table.shingling, ngram=1, html=None)
        self._free: LifoQueue[Finder] = LifoQueue()
        self._num_documents = self._count(schemas.FOUND_KEYS, table.num_keys)
        self._is_common = table.around(self._num_documents) > table.settings.common
        self._num_whole = self._count(schemas.WHOLE_ITEMS, table.num_items)
        excerpts = self._scratch.column(schemas.EXCERPTS)
        self._num_excerpts = np.bincount(excerpts[:, 1], minlength=table.num_items)
        self._left = _MOST_EXCERPTS - len(excerpts)

    def _count(self, column: schemas.Column, size: int) -> npt.NDArray[np.int64]:
        return np.bincount(self._scratch.column(column), minlength=size)

    @contextmanager
    def _borrow(self) -> Iterator[Finder]:
        try:
            finder = self._free.get_nowait()
        except Empty:
            finder = Finder(self._table)
        yield finder
        self._free.put(finder)

    def describe(self, batches: list[DocumentBatch]) -> _Batch:
        """Find the items in batches; called by threads."""
        table, texts = self._table, pa.concat_arrays([batch.text for batch in batches])
        texts = extract_text(texts, table.shingling)
        with self._borrow() as finder:
            keys, matches = finder.find(texts)
        matches = matches.take(np.lexsort((table.fields[matches.places], matches.documents)))
        # What is common stays so: an answer does not depend on how much is known to be.
        kept = keep_matches(table, matches, self._is_common)
        matches = matches.take(kept.matches)
        ranges, excerpts = np.empty((len(matches.places), 2), np.int64), []
        fields, places = table.fields[matches.places], matches.places
        starts, ends, ngrams = table.words.offsets[fields], table.words.offsets[fields + 1], table.ngrams[fields]
        for document in np.unique(matches.documents).tolist():
            low, high = np.searchsorted(matches.documents, [document, document + 1])
            text = texts[document].as_py()
            one, edges = slice(low, high), np.empty((high - low, 2), np.int64)
            words = shingle_documents(texts[document : document + 1], self._words).hashes
            at = matches.positions[one].astype(np.int64), table.positions[places[one]].astype(np.int64)
            kernels.item_shingles.extend(words, table.words.hashes, starts[one], ends[one], *at, ngrams[one], edges)
            found = word_ranges(text, table.shingling)
            ranges[one, 0], ranges[one, 1] = found[edges[:, 0], 0], found[edges[:, 1], 1]
            items = table.items[places[one]]
            firsts = low + np.flatnonzero(np.diff(items, prepend=-1))
            for first, end in pairwise([*firsts.tolist(), high]):
                start, stop = max(0, int(ranges[first, 0]) - _AROUND), int(ranges[first:end, 1].max()) + _AROUND
                item = int(table.items[places[first]])
                excerpts.append((document, item, start, text[start : min(stop, start + _LONGEST)]))
        return _Batch(keys, matches, ranges, kept, excerpts)

    def use(self, found: _Batch) -> None:
        """Count what was found in a batch, and store it."""
        append, first, table = self._scratch.append, self._reading.tally.documents, self._table
        np.add.at(self._num_documents, found.keys, 1)
        many = found.keys[self._num_documents[found.keys] > table.settings.common]
        self._is_common[table.covered_by(np.unique(many))] = True
        append(schemas.FOUND_KEYS, found.keys)
        append(schemas.ENOUGH_ITEMS, found.kept.enough)
        if not len(found.matches.places):
            return
        items = table.items[found.matches.places]
        group = np.cumsum((np.diff(items, prepend=-1) != 0) | (np.diff(found.matches.documents, prepend=-1) != 0)) - 1
        is_listed = np.ones(len(found.kept.items), np.bool_)
        for number in np.flatnonzero(found.kept.whole).tolist():
            item = found.kept.items[number]
            is_listed[number] = self._num_whole[item] < table.settings.max_documents
            self._num_whole[item] += is_listed[number]
        append(schemas.WHOLE_ITEMS, found.kept.items[found.kept.whole & is_listed])
        append(schemas.FURTHER_ITEMS, found.kept.items[~is_listed])
        rows = np.flatnonzero(is_listed[group])
        columns = (found.matches.documents.astype(np.int64) + first, found.matches.places, found.matches.positions)
        append(schemas.MATCHES, np.column_stack([*columns, found.ranges]).astype(np.int64)[rows])
        for number, (document, item, start, text) in enumerate(found.excerpts):
            if is_listed[number] and self._num_excerpts[item] < _EXCERPTS and self._left > 0:
                self._num_excerpts[item] += 1
                self._left -= 1
                data = np.frombuffer(text.encode(), np.uint8)
                append(schemas.EXCERPTS, np.array([[document + first, item, start, len(data)]], np.int64))
                append(schemas.EXCERPT_TEXTS, data)

    def finish(self, corpus: Corpus) -> Found:
        """Decide, after all documents were read."""
        rows, table = self._scratch.column(schemas.MATCHES), self._table
        matches = Matches(*(np.ascontiguousarray(column) for column in rows[:, :3].astype(np.int64).T))
        matches = Matches(matches.documents, *(column.astype(np.int32) for column in matches[1:]))
        num_documents = table.around(self._num_documents)
        hits = decide_hits(table, matches, rows[:, 3:], num_documents, self._num_whole > 0)
        excerpts, texts = self._scratch.column(schemas.EXCERPTS), self._scratch.column(schemas.EXCERPT_TEXTS).tobytes()
        shown, end = {}, 0
        for document, item, start, size in excerpts.tolist():
            shown[document, item] = Excerpt(start, texts[end : end + size].decode())
            end += size
        further, enough = (self._count(one, table.num_items) for one in (schemas.FURTHER_ITEMS, schemas.ENOUGH_ITEMS))
        tasks = self._reading.tasks
        located = locations(tasks, corpus, self._scratch)
        return Found(tasks, corpus, located, num_documents, self._num_whole > 0, hits, further, enough, shown)


def find_items(
    run: Run,
    tasks: list[Task],
    method: Method,
    table: ItemTable,
    identity: dict[str, Any],
    folder: OutputDirectory | None,
    scratch: Scratch,
    stages: Stages,
) -> Found:
    """Read the corpus once, and decide which items it contains.

    Parameters
    ----------
    tasks, method : of the corpus. identity : the settings that a run must have had to be resumed.
    """
    tasks = [task.identified() for task in tasks]
    resuming = prepare(scratch, tasks, identity, run.resume)
    if folder is not None:
        folder.begin(resume=resuming)
    reading = Reading(tasks, method, scratch, run.selection, run.settings.on_error, stores_sets=False)
    if resuming:
        reading.resume()
    search = _Search(table, reading)
    with stages.stage("search", known_total(tasks)) as progress:
        corpus = read_all(reading, run.threads, run.settings.batch_rows, progress, search.describe, search.use)
    with stages.stage("decide"):
        return search.finish(corpus)
