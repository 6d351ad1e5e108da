"""Find items in a corpus, whose documents are read once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from hashlib import sha256
from itertools import compress
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels, schemas
from neardup.arrays import (
    Int32s,
    Rows,
    arrow_of,
    begins_run,
    flatten_strings,
    join_arrays,
    offsets_from_lengths,
)
from neardup.candidates.items import Finder, ItemTable, Matches
from neardup.decide.items import ALL, ENOUGH, FURTHER, KEPT, Kept, decide_hits, keep_matches
from neardup.documents.batch import Corpus, DocumentBatch
from neardup.features.shingles import Workspaces, extract_text, shingle_documents
from neardup.features.spans import word_ranges
from neardup.files import json_lines
from neardup.formats.reading import known_total
from neardup.output.contamination import Found, ItemTables
from neardup.output.job import Job
from neardup.runs.items import Items
from neardup.runs.reading import Reading, locations, read_all
from neardup.runs.run import Found as Inputs
from neardup.runs.scratch import prepare

_MAX_EXCERPTS = 2  # excerpts of an item; the report shows the best one
_MAX_ITEMS = 5_000  # items with excerpts
_CONTEXT = 200  # characters before and after an item in an excerpt
_MAX_LENGTH = 2000  # characters of an excerpt

# A row of schemas.MATCHES. `characters` are the first character of the match and its end.
_MATCH = np.dtype(
    [("document", np.int64), ("entry", np.int64), ("token", np.int64), ("characters", np.int64, 2)]
)


class _Batch(NamedTuple):
    """The items that were found in a batch.

    keys : int32, the sequences around entries that its documents contain. kept : the items that its
    documents have enough of. matches : the matches of items that may be hits. ranges : int64
    (num_matches, 2), the characters of each match in its document. excerpts : the text around each
    of these items, in the order of the matches.
    """

    keys: Int32s
    kept: Kept
    matches: Matches
    ranges: Rows
    excerpts: list[str]


class _Excerpt(NamedTuple):
    """The text around an item in a document."""

    document: int
    item: int
    text: str


class _Search:
    """The search of one run: its columns in the scratch folder, and the counts of their values.

    The columns are the state of an interrupted run: the counts are taken from them at the start.
    """

    def __init__(self, table: ItemTable, reading: Reading) -> None:
        self._table = table
        self._reading = reading
        self._scratch = reading.scratch
        # The texts of pages are extracted before their words are cut.
        self._words = replace(table.shingling, ngram=1, html=None)
        self._finders = Workspaces(lambda: Finder(table))
        keys = self._scratch.column(schemas.FOUND_KEYS)
        num_keys = len(table.around.is_counted)
        self._num_documents = np.bincount(keys, minlength=num_keys)
        self._num_whole = self._count(ALL, ALL)
        self._num_excerpts = Counter(excerpt.item for excerpt in self._excerpts())

    def _count(self, min_state: int, max_state: int) -> Rows:
        """Return the number of documents with an item in the states from min_state to max_state."""
        items, states = self._scratch.column(schemas.FOUND_ITEMS).T
        is_counted = (states >= min_state) & (states <= max_state)
        return np.bincount(items[is_counted], minlength=self._table.num_items)

    def _excerpts(self) -> Iterator[_Excerpt]:
        """Return the excerpts in the scratch folder."""
        lines = json_lines(self._scratch.column(schemas.EXCERPTS).tobytes())
        return (_Excerpt(*line) for line in lines)

    def describe(self, batches: list[DocumentBatch]) -> _Batch:
        """Find the items in batches; called by threads."""
        table = self._table
        texts = extract_text(join_arrays([batch.text for batch in batches]), table.shingling)
        with self._finders.borrow() as finder:
            keys, matches = finder.find(texts)
        # The counts only grow: a sequence that is common now is common in the end, so the result
        # does not depend on the number of documents counted so far.
        num_documents = table.max_around(self._num_documents, matches.entries)
        is_common = num_documents > table.settings.common
        kept = keep_matches(table, matches, is_common)
        matches = matches.take(kept.matches)
        ranges, excerpts = self._locate(texts, matches)
        return _Batch(keys=keys, kept=kept, matches=matches, ranges=ranges, excerpts=excerpts)

    def _locate(self, texts: pa.Array, matches: Matches) -> tuple[Rows, list[str]]:
        """Return the characters of each match, and the text around each item in each document."""
        documents, text_numbers = np.unique(matches.documents, return_inverse=True)
        texts = texts.take(arrow_of(documents))
        strings = texts.to_pylist()
        edges = self._extend(texts, text_numbers, matches)
        ranges = self._characters(strings, text_numbers, edges)

        # The matches of one item in one document are a run of rows: one excerpt shows them all.
        items = self._table.items[matches.entries]
        run_starts = np.flatnonzero(begins_run(matches.documents, items))
        begins = ranges[run_starts, 0]
        # A later match may end earlier. `reduceat` needs a run.
        ends = np.maximum.reduceat(ranges[:, 1], run_starts) if len(run_starts) else run_starts
        excerpt_ranges = _add_context(begins, ends).tolist()
        excerpt_texts = text_numbers[run_starts].tolist()
        excerpts = [
            strings[text][begin:end]
            for text, (begin, end) in zip(excerpt_texts, excerpt_ranges, strict=True)
        ]
        return ranges, excerpts

    def _extend(self, texts: pa.Array, text_numbers: Rows, matches: Matches) -> Rows:
        """Extend each match over the words around it that text and item share (see the kernel).

        text_numbers : int64 (num_matches,), the text of each match. Returns int64 (num_matches, 2),
        the first and the last word of each match, numbered over all texts.
        """
        table = self._table
        fields = table.fields[matches.entries]
        words = shingle_documents(texts, self._words)
        item_words = table.words
        # The first word of the text or field of each match, and the end of its words: (2, n).
        limits = words.offsets[[text_numbers, text_numbers + 1]]
        item_limits = item_words.offsets[[fields, fields + 1]]
        edges = np.empty((len(fields), 2), np.int64)
        kernels.item_shingles.extend(
            words.hashes,
            limits,
            limits[0] + matches.positions,
            item_words.hashes,
            item_limits,
            item_limits[0] + table.positions[matches.entries],
            table.ngrams[fields],
            edges,
        )
        return edges

    def _characters(self, strings: list[str], text_numbers: Rows, edges: Rows) -> Rows:
        """Return the characters from the first to the last word of each match, in its text."""
        # All texts are cut as one string, with a line feed after each.
        text_starts = offsets_from_lengths([len(text) + 1 for text in strings])[text_numbers]
        words = word_ranges("\n".join(strings), self._table.shingling)
        ranges = np.column_stack([words[edges[:, 0], 0], words[edges[:, 1], 1]])
        return ranges - text_starts[:, None]

    def use(self, found: _Batch) -> None:
        """Count the items that were found in a batch, and store them."""
        np.add.at(self._num_documents, found.keys, 1)
        self._scratch.append(schemas.FOUND_KEYS, found.keys)
        self._mark_further(found.kept)
        self._scratch.append(
            schemas.FOUND_ITEMS, np.stack([found.kept.items, found.kept.states], axis=1)
        )
        self._store_matches(found)

    def _mark_further(self, kept: Kept) -> None:
        """Change the state of whole items from ALL to FURTHER if enough documents have them."""
        max_documents = self._table.settings.max_documents
        # Row by row: few documents have all of an item, and each changes the count of the next.
        for row in np.flatnonzero(kept.states == ALL).tolist():
            item = kept.items[row]
            if self._num_whole[item] >= max_documents:
                kept.states[row] = FURTHER
            else:
                self._num_whole[item] += 1

    def _store_matches(self, found: _Batch) -> None:
        """Append the matches and excerpts of listed items; for further documents, the items
        alone.
        """
        states = found.kept.states
        documents = found.matches.documents + self._reading.tally.documents
        items = self._table.items[found.matches.entries]

        # The matches of one item in one document are a run of rows, in the order of `found.kept`.
        begins = begins_run(documents, items)
        run = np.cumsum(begins) - 1
        # States rise from ENOUGH, which has no matches, over KEPT and ALL to FURTHER.
        is_listed = states[states >= KEPT] < FURTHER  # one value per run
        columns = (documents, found.matches.entries, found.matches.positions, found.ranges)
        matches = np.column_stack(columns).astype(np.int64)
        self._scratch.append(schemas.MATCHES, matches[is_listed[run]])

        runs = np.column_stack([documents[begins], items[begins]]).astype(np.int64)
        self._scratch.append(schemas.FURTHER, runs[~is_listed])
        excerpts = compress(found.excerpts, is_listed.tolist())
        self._store_excerpts(runs[is_listed], excerpts)

    def _store_excerpts(self, runs: Rows, texts: Iterable[str]) -> None:
        """Append the excerpts of items in documents. runs : int64 (num_runs, 2), document, item."""
        for (document, item), text in zip(runs.tolist(), texts, strict=True):
            self._store_excerpt(_Excerpt(document, item, text))

    def _store_excerpt(self, excerpt: _Excerpt) -> None:
        """Append an excerpt, unless there are enough of its item or of all items."""
        has_enough = self._num_excerpts[excerpt.item] >= _MAX_EXCERPTS
        if has_enough or len(self._num_excerpts) >= _MAX_ITEMS:
            return
        self._num_excerpts[excerpt.item] += 1
        line = json.dumps(excerpt) + "\n"
        self._scratch.append(schemas.EXCERPTS, np.frombuffer(line.encode(), np.uint8))

    def finish(self, corpus: Corpus) -> Found:
        """Decide, after all documents were read."""
        table = self._table
        rows = self._scratch.column(schemas.MATCHES).view(_MATCH)[:, 0]
        matches = Matches(
            documents=rows["document"],
            entries=rows["entry"].astype(np.int32),
            positions=rows["token"].astype(np.int32),
        )
        num_documents = table.max_around(self._num_documents, slice(None))
        is_rare = num_documents <= table.max_documents(self._num_whole > 0)
        excerpts = {(excerpt.document, excerpt.item): excerpt.text for excerpt in self._excerpts()}
        return Found(
            tasks=self._reading.tasks,
            corpus=corpus,
            locations=locations(self._reading.tasks, corpus, self._scratch),
            hits=decide_hits(table, matches, rows["characters"], is_rare),
            further=self._scratch.column(schemas.FURTHER),
            enough=self._count(ENOUGH, FURTHER),
            num_documents=num_documents,
            is_rare=is_rare,
            excerpts=excerpts,
        )


def _add_context(begins: Rows, ends: Rows) -> Rows:
    """Return the ranges of excerpts around ranges of characters, int64 (num_ranges, 2)."""
    wider_begins = np.maximum(0, begins - _CONTEXT)
    wider_ends = np.minimum(ends + _CONTEXT, wider_begins + _MAX_LENGTH)
    return np.column_stack([wider_begins, wider_ends])


def find_items(
    job: Job, inputs: Inputs, items: Items, table: ItemTable, *, between: bool
) -> ItemTables:
    """Read the corpus once, and decide which items it contains.

    inputs : the files of the corpus. between : see `ItemTables`.
    """
    run = job.run
    scratch = job.scratch
    tasks = [task.identified() for task in inputs.tasks]
    # The settings of a scratch folder: a run with other items must not continue this one.
    digest = sha256()
    for values in (*flatten_strings(table.texts), table.field_items, table.weights):
        digest.update(values.tobytes())
    settings = asdict(table.settings) | {"items": digest.hexdigest()}
    prepare(scratch, tasks, settings, run.resume, job.folder)
    reading = Reading(tasks, inputs.method, scratch, run.selection, run.settings, stores_sets=False)
    search = _Search(table, reading)
    with job.stages.stage("search", known_total(tasks)) as progress:
        corpus = read_all(reading, progress, search.describe, search.use)
    corpus.tally.without_features = int(np.count_nonzero(scratch.column(schemas.LENGTHS) == 0))
    with job.stages.stage("decide"):
        return ItemTables(items, table, search.finish(corpus), between=between)
