"""Look for items in a corpus that streams past them once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from hashlib import sha256
from itertools import compress
from typing import Any, NamedTuple

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

_EXCERPTS, _MOST_ITEMS = (
    2,
    5_000,
)  # of an item, of which the report shows the best; and the items with some
_AROUND, _LONGEST = 200, 2000  # characters


class _Batch(NamedTuple):
    """What was found in a batch.

    ranges : the characters of each match. excerpts : by document and item that is kept.
    """

    keys: Int32s
    kept: Kept
    matches: Matches
    ranges: Rows
    excerpts: list[str]


class _Search:
    """The search of one run: its columns in the scratch folder, and what it counts from them."""

    def __init__(self, table: ItemTable, reading: Reading) -> None:
        self._table, self._reading, self._scratch = table, reading, reading.scratch
        self._words = replace(table.shingling, ngram=1, html=None)
        self._finders = Workspaces(lambda: Finder(table))
        keys, num_keys = self._scratch.column(schemas.FOUND_KEYS), len(table.around.is_counted)
        self._num_documents = np.bincount(keys, minlength=num_keys)
        self._num_whole, self._num_excerpts = (
            self._count(ALL),
            Counter(item for _, item, _ in self._excerpts()),
        )

    def _count(self, least: int, most: int = ALL) -> Rows:
        """Return by item the documents that have so much of it."""
        items, states = self._scratch.column(schemas.FOUND_ITEMS).T
        return np.bincount(
            items[(states >= least) & (states <= most)], minlength=self._table.num_items
        )

    def _excerpts(self) -> Iterator[list[Any]]:
        return json_lines(self._scratch.column(schemas.EXCERPTS).tobytes())

    def describe(self, batches: list[DocumentBatch]) -> _Batch:
        """Find the items in batches; called by threads."""
        table = self._table
        texts = extract_text(join_arrays([batch.text for batch in batches]), table.shingling)
        with self._finders.borrow() as finder:
            keys, matches = finder.find(texts)
        # What is common stays so: an answer does not depend on how much is known to be.
        is_common = table.most_around(self._num_documents, matches.places) > table.settings.common
        kept = keep_matches(table, matches, is_common)
        matches = matches.take(kept.matches)
        return _Batch(keys, kept, matches, *self._locate(texts, matches))

    def _locate(self, texts: pa.Array, matches: Matches) -> tuple[Rows, list[str]]:
        """Return the characters of each match, and the text around each item in each document."""
        table, fields = self._table, self._table.fields[matches.places]
        documents, which = np.unique(matches.documents, return_inverse=True)
        texts = texts.take(arrow_of(documents))
        words, item_words = shingle_documents(texts, self._words), table.words
        limits, item_limits = (
            words.offsets[[which, which + 1]],
            item_words.offsets[[fields, fields + 1]],
        )
        edges, ngrams = np.empty((len(fields), 2), np.int64), table.ngrams[fields]
        here, there = (
            limits[0] + matches.positions,
            item_limits[0] + table.positions[matches.places],
        )
        kernels.item_shingles.extend(
            words.hashes, limits, here, item_words.hashes, item_limits, there, ngrams, edges
        )
        strings = texts.to_pylist()
        starts = offsets_from_lengths([len(text) + 1 for text in strings])[which]
        found = word_ranges("\n".join(strings), table.shingling)
        ranges = found[edges, [0, 1]] - starts[:, None]
        first = np.flatnonzero(begins_run(matches.documents, table.items[matches.places]))
        ends = np.maximum.reduceat(ranges[:, 1], first) if len(first) else first
        begins = np.maximum(0, ranges[first, 0] - _AROUND)
        limits = np.stack(
            [which[first], begins, np.minimum(ends + _AROUND, begins + _LONGEST)], axis=1
        )
        return ranges, [strings[document][begin:end] for document, begin, end in limits.tolist()]

    def use(self, found: _Batch) -> None:
        """Count what was found in a batch, and store it."""
        append, first, table, kept = (
            self._scratch.append,
            self._reading.tally.documents,
            self._table,
            found.kept,
        )
        np.add.at(self._num_documents, found.keys, 1)
        append(schemas.FOUND_KEYS, found.keys)
        for number in np.flatnonzero(kept.states == ALL).tolist():
            is_further = self._num_whole[kept.items[number]] >= table.settings.max_documents
            self._num_whole[kept.items[number]] += not is_further
            kept.states[number] += is_further
        append(schemas.FOUND_ITEMS, np.stack([kept.items, kept.states], axis=1))
        is_listed = kept.states[kept.states >= KEPT] < FURTHER
        documents, items = found.matches.documents + first, table.items[found.matches.places]
        begins = begins_run(documents, items)
        columns = documents, found.matches.places, found.matches.positions, found.ranges
        append(
            schemas.MATCHES,
            np.column_stack(columns).astype(np.int64)[is_listed[np.cumsum(begins) - 1]],
        )
        append(
            schemas.FURTHER,
            np.column_stack([documents, items]).astype(np.int64)[begins][~is_listed],
        )
        groups = zip(
            documents[begins].tolist(), items[begins].tolist(), found.excerpts, strict=True
        )
        for document, item, text in compress(groups, is_listed.tolist()):
            if self._num_excerpts[item] < _EXCERPTS and len(self._num_excerpts) < _MOST_ITEMS:
                self._num_excerpts[item] += 1
                line = json.dumps([document, item, text]) + "\n"
                append(schemas.EXCERPTS, np.frombuffer(line.encode(), np.uint8))

    def finish(self, corpus: Corpus) -> Found:
        """Decide, after all documents were read."""
        rows, table, tasks = self._scratch.column(schemas.MATCHES), self._table, self._reading.tasks
        matches = Matches(rows[:, 0], *(column.astype(np.int32) for column in rows[:, 1:3].T))
        num_documents = table.most_around(self._num_documents, slice(None))
        is_rare = num_documents <= table.most_documents(self._num_whole > 0)
        hits = decide_hits(table, matches, rows[:, 3:], is_rare)
        excerpts = {(document, item): text for document, item, text in self._excerpts()}
        further, enough = self._scratch.column(schemas.FURTHER), self._count(ENOUGH, FURTHER)
        located = locations(tasks, corpus, self._scratch)
        return Found(
            tasks, corpus, located, hits, further, enough, num_documents, is_rare, excerpts
        )


def find_items(
    job: Job, inputs: Inputs, items: Items, table: ItemTable, *, between: bool
) -> ItemTables:
    """Read the corpus, of which these are the inputs, once, and decide which items it contains.

    between : as of `ItemTables`.
    """
    run = job.run
    scratch = job.scratch
    tasks = [task.identified() for task in inputs.tasks]
    digest = sha256()
    for part in (*flatten_strings(table.texts), table.field_items, table.weights):
        digest.update(part.tobytes())
    prepare(
        scratch,
        tasks,
        asdict(table.settings) | {"items": digest.hexdigest()},
        run.resume,
        job.folder,
    )
    reading = Reading(tasks, inputs.method, scratch, run.selection, run.settings, stores_sets=False)
    search = _Search(table, reading)
    with job.stages.stage("search", known_total(tasks)) as progress:
        corpus = read_all(reading, progress, search.describe, search.use)
    corpus.tally.without_features = int(np.count_nonzero(scratch.column(schemas.LENGTHS) == 0))
    with job.stages.stage("decide"):
        return ItemTables(items, table, search.finish(corpus), between=between)
