"""Find items in the texts of a corpus, and collect them: the parts that engines share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels, schemas
from neardup.arrays import (
    Array,
    Int32s,
    Mask,
    Rows,
    arrow_of,
    begins_run,
    flatten_strings,
)
from neardup.candidates.items import Finder, ItemTable, Matches
from neardup.decide.item_rules import min_entries_of, rules_of
from neardup.decide.items import ALL, ENOUGH, FURTHER, KEPT, Hits, decide_hits, keep_matches
from neardup.documents.batch import Corpus
from neardup.features.shingles import extract_text, shingle_documents
from neardup.features.workspaces import Workspaces
from neardup.files import json_lines
from neardup.formats.reading import Task
from neardup.kernels.token_arrays import Shingles
from neardup.runs.locations import DocumentLocations
from neardup.runs.scratch import Scratch

_MAX_EXCERPTS = 2  # excerpts of an item; the report shows the best one
_MAX_ITEMS = 5_000  # items with excerpts
_CONTEXT = 200  # characters before and after an item in an excerpt
_MAX_LENGTH = 2000  # characters of an excerpt

# A row of schemas.MATCHES. `characters` are the first character of the match and its end.
_MATCH = np.dtype(
    [("document", np.int64), ("entry", np.int64), ("token", np.int64), ("characters", np.int64, 2)]
)


class ItemsInTexts(NamedTuple):
    """The items that were found in a batch of texts.

    keys : int32, the sequences around entries that the texts contain. items, states : int32, the
    items that the texts have enough of, see `Kept`. matches : the matches of items that may be
    hits, their documents by number in the batch. ranges : int64 (num_matches, 2), the characters of
    each match in its text. excerpts : the text around each of these items, in the order of the
    matches. num_textless : the texts without a character, such as pages of pictures.
    """

    keys: Int32s
    items: Int32s
    states: Int32s
    matches: Matches
    ranges: Rows
    excerpts: list[str]
    num_textless: int

    def without_further_excerpts(
        self, table: ItemTable, num_excerpts: Counter[int]
    ) -> ItemsInTexts:
        """Return a copy in which excerpts that a collection would not store are empty.

        num_excerpts : by item, the excerpts in earlier batches; these are added.
        """
        items = table.items[self.matches.entries]
        is_first = begins_run(self.matches.documents, items)
        excerpts = []
        for item, text in zip(items[is_first].tolist(), self.excerpts, strict=True):
            num_excerpts[item] += 1
            excerpts.append(text if num_excerpts[item] <= _MAX_EXCERPTS else "")
        return self._replace(excerpts=excerpts)


class ItemSearch:
    """Finds items in texts; several threads may use it.

    num_documents : int64 by key, the documents that are known to have it. The counts only grow: a
    sequence that is common now is common in the end, so the result does not depend on the number of
    documents counted so far.
    """

    def __init__(self, table: ItemTable, num_documents: Rows) -> None:
        self._table = table
        self._num_documents = num_documents
        self._rules = rules_of(table)
        min_entries = min_entries_of(self._rules)
        # Each thread borrows a finder, whose arrays it fills.
        self._finders = Workspaces(lambda: Finder(table, min_entries))

    def find(self, texts: pa.Array) -> ItemsInTexts:
        """Find the items in texts."""
        table = self._table
        texts = extract_text(texts, table.shingling)
        with self._finders.borrow() as finder:
            keys, matches = finder.find(texts)
        is_common = table.max_around(self._num_documents, matches.entries) > table.settings.common
        kept = keep_matches(self._rules, matches, is_common)
        # Only matches of kept items are located.
        matches = matches.take(kept.matches)
        ranges, excerpts = self._locate(texts, matches)
        return ItemsInTexts(
            keys=keys,
            items=kept.items,
            states=kept.states,
            matches=matches,
            ranges=ranges,
            excerpts=excerpts,
            num_textless=int(np.count_nonzero(np.diff(flatten_strings(texts)[1]) == 0)),
        )

    def _locate(self, texts: pa.Array, matches: Matches) -> tuple[Rows, list[str]]:
        """Return the characters of each match, and the text around each item in each document."""
        documents, text_numbers = np.unique(matches.documents, return_inverse=True)
        texts = texts.take(arrow_of(documents))
        strings = texts.to_pylist()
        ranges = self._find_ranges(texts, text_numbers, matches)

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

    def _find_ranges(self, texts: pa.Array, text_numbers: Rows, matches: Matches) -> Rows:
        """Return the characters of each match, with the words around it that text and item share.

        text_numbers : int64 (num_matches,), the text of each match.
        """
        table = self._table
        view_numbers = table.view_numbers[table.fields[matches.entries]]
        ranges = np.empty((len(text_numbers), 2), np.int64)
        for number, view in enumerate(table.views):
            rows = np.flatnonzero(view_numbers == number)
            # Only texts with matches in this view: to locate the tokens of code is slow.
            viewed, viewed_numbers = np.unique(text_numbers[rows], return_inverse=True)
            located = view.locate(texts.take(arrow_of(viewed)))
            words = shingle_documents(located.cut, replace(view.shingling, ngram=1))
            edges = self._extend(words, viewed_numbers, matches.take(rows))
            ranges[rows, 0] = located.words[edges[:, 0], 0]
            ranges[rows, 1] = located.words[edges[:, 1], 1]
        return ranges

    def _extend(self, words: Shingles, text_numbers: Rows, matches: Matches) -> Rows:
        """Extend each match over the words around it that text and item share (see the kernel).

        text_numbers : int64 (num_matches,), the text of each match. Returns int64 (num_matches, 2),
        the first and the last word of each match, numbered over all texts.
        """
        table = self._table
        fields = table.fields[matches.entries]
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


class FoundItems(NamedTuple):
    """Items in a corpus.

    hits : all hits. further : (num_further, 2), further documents, and the item that each has
    whole. enough : int64 by item, the number of documents that have enough of it, boilerplate
    included. num_documents : int64 by entry, the number of documents that have the words around it.
    is_rare : bool by entry, whether these are few. excerpts : the text around an item in a
    document, by document and item.
    """

    tasks: list[Task]
    corpus: Corpus
    locations: DocumentLocations
    hits: Hits
    further: Rows
    enough: Rows
    num_documents: Rows
    is_rare: Mask
    excerpts: dict[tuple[int, int], str]

    def parts(self, documents: Array) -> Rows:
        """Return the number of the input of each document."""
        return np.searchsorted(self.corpus.part_ends, documents, "right")


class _Excerpt(NamedTuple):
    """The text around an item in a document."""

    document: int
    item: int
    text: str


class ItemCollection:
    """Collects the items of batches in the order of the documents, in scratch columns.

    The columns are the state of an interrupted run: the counts are taken from them at the start.

    num_documents : int64 by key, the documents that have it.
    """

    def __init__(self, table: ItemTable, scratch: Scratch) -> None:
        self._table = table
        self._scratch = scratch
        keys = scratch.column(schemas.FOUND_KEYS)
        self.num_documents = np.bincount(keys, minlength=len(table.around.is_counted))
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

    def add(self, found: ItemsInTexts, first: int) -> None:
        """Count the items that were found in a batch, and store them.

        first : the number of the first document of the batch.
        """
        # `add.at`, because keys repeat in a batch.
        np.add.at(self.num_documents, found.keys, 1)
        self._scratch.append(schemas.FOUND_KEYS, found.keys)
        self._scratch.append(schemas.NUM_TEXTLESS, np.array([found.num_textless]))
        states = self._mark_further(found.items, found.states)
        self._scratch.append(schemas.FOUND_ITEMS, np.stack([found.items, states], axis=1))
        self._store_matches(found, states, first)

    def _mark_further(self, items: Int32s, states: Int32s) -> Int32s:
        """Return the states of items, FURTHER in place of ALL if enough documents have them."""
        states = states.copy()
        max_documents = self._table.settings.max_documents
        # Row by row: few documents have all of an item, and each changes the count of the next.
        for row in np.flatnonzero(states == ALL).tolist():
            item = items[row]
            if self._num_whole[item] >= max_documents:
                states[row] = FURTHER
            else:
                self._num_whole[item] += 1
        return states

    def _store_matches(self, found: ItemsInTexts, states: Int32s, first: int) -> None:
        """Append the matches and excerpts of listed items; for further documents, the items
        alone.
        """
        documents = found.matches.documents + first
        items = self._table.items[found.matches.entries]

        # The matches of one item in one document are a run of rows, in the order of `states`.
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
        """Append the excerpts of items in documents, unless there are enough of an item or of all.

        runs : int64 (num_runs, 2), document, item.
        """
        for (document, item), text in zip(runs.tolist(), texts, strict=True):
            has_enough = self._num_excerpts[item] >= _MAX_EXCERPTS
            if not has_enough and len(self._num_excerpts) < _MAX_ITEMS:
                self._num_excerpts[item] += 1
                line = json.dumps(_Excerpt(document, item, text)) + "\n"
                self._scratch.append(schemas.EXCERPTS, np.frombuffer(line.encode(), np.uint8))

    def finish(self, tasks: list[Task], corpus: Corpus, locations: DocumentLocations) -> FoundItems:
        """Decide, after all documents were added. locations : of the documents with matches."""
        table = self._table
        # The five int64 of a row become one record, on an axis of length 1.
        rows = self._scratch.column(schemas.MATCHES).view(_MATCH)[:, 0]
        matches = Matches(
            documents=rows["document"],
            entries=rows["entry"].astype(np.int32),
            positions=rows["token"].astype(np.int32),
        )
        num_documents = table.max_around(self.num_documents, slice(None))
        is_rare = num_documents <= table.max_documents(self._num_whole > 0)
        excerpts = {(excerpt.document, excerpt.item): excerpt.text for excerpt in self._excerpts()}
        return FoundItems(
            tasks=tasks,
            corpus=corpus,
            locations=locations,
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
