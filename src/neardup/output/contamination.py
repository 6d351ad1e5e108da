"""The tables of a search for items, and the copies without the items found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, compress, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import (
    Int32s,
    Mask,
    Positions,
    Rows,
    arrow_of,
    begins_run,
    offsets_from_lengths,
    ranges,
    rank_in_run,
)
from neardup.candidates.items import CommonShingles, ItemTable
from neardup.decide.hit_grades import CLEAR, POSSIBLE, are_possible
from neardup.decide.item_rules import RULES, WHOLE
from neardup.decide.items import Hits
from neardup.features.spans import TEXT_SEPARATOR, word_ranges
from neardup.files import JsonObject
from neardup.output import write as writing
from neardup.output.kept import KeptWriter
from neardup.progress import Progress
from neardup.report.items import Example, Marker
from neardup.runs.found_items import FoundItems
from neardup.runs.items import Items
from neardup.runs.locations import Place
from neardup.schemas import boilerplate_schema, found_items_schema, items_schema
from neardup.settings.contamination import ContaminationSettings

CONTAMINATED = "contaminated"
BOILERPLATE = "boilerplate"
SHORT = "short"
CLEAN = "clean"
STATUSES = (CONTAMINATED, BOILERPLATE, SHORT, CLEAN)
_MAX_WORDS = 30  # missing words of an item that the table of hits shows
# Hits whose words are in memory at once: a hit has a few numbers, but up to all words of its item.
_HITS_AT_ONCE = 1 << 14


class _Contained(NamedTuple):
    """Documents, and the item that each contains; both integers (num_found,)."""

    documents: Rows
    items: Rows


def _common_in_items(table: ItemTable) -> CommonShingles:
    """Return the shingles that too many items have."""
    return table.shared.take(table.has_words[table.shared.fields])


def _common_in_documents(table: ItemTable, found: FoundItems) -> CommonShingles:
    """Return the shingles whose words too many documents have."""
    entries = np.flatnonzero(~found.is_rare & table.has_words[table.fields])
    return CommonShingles(
        fields=table.fields[entries],
        positions=table.positions[entries],
        counts=found.num_documents[entries],
    )


class _Words(NamedTuple):
    """The words of the fields that tables show.

    text : the texts of these fields, joined by line feeds. ranges : int64 (num_words, 2), the
    characters of each word in `text`. first : int64 by field, its first row in `ranges`.
    """

    text: str
    ranges: Rows
    first: Rows

    def between(self, first_word: int, last_word: int) -> str:
        """Return the text from a word to another one."""
        return self.text[self.ranges[first_word, 0] : self.ranges[last_word, 1]]


def _words_of(table: ItemTable, found: FoundItems) -> _Words:
    """Return the words of the fields of hits, and of fields with boilerplate."""
    is_of_hits = np.isin(table.field_items, found.hits.items)
    fields_of_hits = np.flatnonzero(is_of_hits & table.has_words)
    fields = np.unique(
        np.concatenate(
            [
                _common_in_items(table).fields,
                _common_in_documents(table, found).fields,
                fields_of_hits,
            ]
        )
    )
    first = np.zeros(len(table.field_items), np.int64)
    first[fields] = offsets_from_lengths(table.num_tokens[fields])[:-1]
    text = TEXT_SEPARATOR.join(table.texts.take(arrow_of(fields)).to_pylist())
    return _Words(text=text, ranges=word_ranges(text, table.shingling), first=first)


class ItemTables:
    """The tables of a search, and the counts made from them.

    tables : hits, items and boilerplate, by name. between : whether the corpus is the items; an
    item is then not searched for in its own input.
    """

    def __init__(self, items: Items, table: ItemTable, found: FoundItems, *, between: bool) -> None:
        self.items = items
        self._table = table
        further = _further_documents(found)
        if between:
            found, further = self._without_own_input(found, further)
        self.found = found
        self._further = further
        self._contained = _distinct_pairs(found.hits, self._further)
        is_possible = self._are_possible()
        self._has_possible = self._items_with_possible(is_possible)
        listed = self._rows_to_list()
        self._listed = found.hits.take(listed)
        self._is_possible = is_possible[listed]
        # The tables need the names, the words and the counts by item and by listed hit.
        self._names = [pa.array(items.ids, pa.string()), pa.array(items.benchmarks, pa.string())]
        self._words = _words_of(table, found)
        self._num_documents = self._count_documents()
        num_documents_of_item = np.bincount(self._contained.items, minlength=table.num_items)
        self._status = self._statuses(num_documents_of_item)
        self.tables = {
            "hits": self._hits_table(),
            "items": self._items_table(num_documents_of_item),
            "boilerplate": self._boilerplate_table(),
        }

    def _without_own_input(
        self, found: FoundItems, further: _Contained
    ) -> tuple[FoundItems, _Contained]:
        """Return the hits and the further documents that are not in the input of the item."""
        parts = np.array(self.items.parts)
        hits = found.hits
        hits = hits.take(np.flatnonzero(found.parts(hits.documents) != parts[hits.items]))
        is_elsewhere = found.parts(further.documents) != parts[further.items]
        further = _Contained(
            documents=further.documents[is_elsewhere],
            items=further.items[is_elsewhere],
        )
        # The item itself is a document that has enough of the item.
        return found._replace(hits=hits, enough=found.enough - 1), further

    def _rows_to_list(self) -> Rows:
        """Return the hits that the table lists: the first ones of each item, which are the best."""
        ranks = rank_in_run(self.found.hits.items)
        return np.flatnonzero(ranks < self._table.settings.max_documents)

    def _count_documents(self) -> Rows:
        """Return by listed hit the number of documents with its words."""
        counts = [
            _documents_with_words(hits.found_in_view(self._table), self.found.num_documents)
            for hits in _blocks_of(self._listed)
        ]
        return np.concatenate([np.empty(0, np.int64), *counts])

    def _are_possible(self) -> Mask:
        """Return whether each hit, listed or not, is of the grade POSSIBLE."""
        masks = [
            are_possible(self._table, hits, self.found.is_rare)
            for hits in _blocks_of(self.found.hits)
        ]
        return np.concatenate([np.empty(0, np.bool_), *masks])

    def _items_with_possible(self, is_possible: Mask) -> Mask:
        """Return the items whose hits are all of the grade POSSIBLE. is_possible : by hit."""
        items = self.found.hits.items
        has_clear = np.zeros(self._table.num_items, np.bool_)
        has_clear[items[~is_possible]] = True
        has_hit = np.zeros_like(has_clear)
        has_hit[items] = True
        return has_hit & ~has_clear

    def _hits_table(self) -> pa.Table:
        """Return the hits; see schemas.found_items_schema."""
        hits = self._listed
        missing = chain.from_iterable(map(self._missing, _blocks_of(hits)))
        columns = [
            *(column.take(arrow_of(hits.items)) for column in self._names),
            *self.found.locations.columns(hits.documents),
            arrow_of(hits.starts),
            arrow_of(hits.ends),
            arrow_of(hits.containment),
            pa.array(RULES).take(arrow_of(hits.rules)),
            arrow_of(self._num_documents),
            _grades(self._is_possible, np.ones_like(self._is_possible)),
            pa.array(missing, pa.string()),
        ]
        return pa.Table.from_arrays(columns, schema=found_items_schema())

    def _items_table(self, num_documents: Rows) -> pa.Table:
        """Return the items; see schemas.items_schema. num_documents : as in `_statuses`."""
        items = self.items
        table = self._table
        best = np.zeros(table.num_items)
        np.maximum.at(best, self.found.hits.items, self.found.hits.containment)
        # The containment of a further document is not stored; it is at least WHOLE.
        np.maximum.at(best, self._further.items, WHOLE)
        shared = self._count_common(_common_in_items(table))
        common = self._count_common(_common_in_documents(table, self.found))
        parts = pa.array([task.part.name for task in items.tasks])
        columns = [
            *self._names,
            parts.take(pa.array(items.parts)),
            pa.array(items.rows, pa.int64()),
            pa.array(self._status),
            _grades(self._has_possible, num_documents > 0),
            arrow_of(best),
            arrow_of(num_documents),
            arrow_of(table.num_entries + shared),
            arrow_of(common + shared),
        ]
        return pa.Table.from_arrays(columns, schema=items_schema())

    def _count_common(self, common: CommonShingles) -> Rows:
        """Return the number of these shingles, by item."""
        table = self._table
        return np.bincount(table.field_items[common.fields], minlength=table.num_items)

    def _statuses(self, num_documents: Rows) -> list[str]:
        """Return the status of each item; num_documents : int64 by item, documents with a hit."""
        table = self._table
        conditions = [
            num_documents > 0,
            table.num_entries < table.settings.min_rare,
            self.found.enough > 0,
        ]
        status: list[str] = np.select(
            conditions, [CONTAMINATED, SHORT, BOILERPLATE], CLEAN
        ).tolist()
        return status

    def _boilerplate_table(self) -> pa.Table:
        """Return the words that did not count; see schemas.boilerplate_schema."""
        *in_documents, num_documents = self._boilerplate(
            _common_in_documents(self._table, self.found)
        )
        *in_items, num_items = self._boilerplate(_common_in_items(self._table))
        schema = boilerplate_schema()
        tables = [
            # Boilerplate of documents has no number of items, and the other way round.
            [*in_documents, num_documents, pa.nulls(len(num_documents), pa.int64())],
            [*in_items, pa.nulls(len(num_items), pa.int64()), num_items],
        ]
        return pa.concat_tables(
            [pa.Table.from_arrays(columns, schema=schema) for columns in tables]
        )

    def _boilerplate(self, common: CommonShingles) -> list[pa.Array]:
        """Return the stretches of overlapping shingles as columns: the names of the item, the
        words, and the smallest count of a shingle.
        """
        table = self._table
        words = self._words
        fields = common.fields
        begins = words.first[fields] + common.positions
        ends = begins + table.ngrams[fields]
        # A stretch ends with a shingle that does not overlap the next one.
        is_apart = begins > np.append(0, ends[:-1])
        first = np.flatnonzero(begins_run(fields) | is_apart)
        last = np.append(first[1:], len(fields))[: len(first)] - 1
        texts = map(words.between, begins[first].tolist(), (ends[last] - 1).tolist())
        items = arrow_of(table.field_items[fields[first]])
        # `reduceat` needs a stretch.
        min_counts = np.minimum.reduceat(common.counts, first) if len(first) else first
        names = [column.take(items) for column in self._names]
        return [*names, pa.array(texts, pa.string()), arrow_of(min_counts)]

    def _missing(self, hits: Hits) -> Iterator[str]:
        """Yield the words of the item of each hit that are in no shingle found.

        Words of a field without a shingle are not missing.
        """
        table = self._table
        first_field = np.searchsorted(table.field_items, hits.items)
        num_fields = np.searchsorted(table.field_items, hits.items + 1) - first_field
        first_word = table.words.offsets[first_field]
        num_words = table.words.offsets[first_field + num_fields] - first_word
        # The begin of the words of each hit, among the words of all hits.
        offsets = offsets_from_lengths(num_words)

        fields = ranges(first_field, num_fields)
        is_missing = self._is_missing(fields, hits, first_word - offsets[:-1])
        rows = ranges(self._words.first[first_field], num_words)[is_missing]
        spans = self._words.ranges[rows].tolist()
        limits = offsets_from_lengths(is_missing)[offsets].tolist()
        for start, stop in pairwise(limits):
            yield _joined(self._words.text, spans[start:stop])

    def _is_missing(self, fields: Rows, hits: Hits, shifts: Rows) -> Mask:
        """Return whether each word of some fields is in no shingle found, if there are shingles.

        fields : the fields of the items of hits, hit by hit. shifts : by hit, from words of the
        table to words of these fields.
        """
        table = self._table
        has_shingles = (table.num_tokens >= table.ngrams) & table.has_words
        is_missing: Mask = np.repeat(has_shingles[fields], table.num_tokens[fields])
        entries = np.concatenate(hits.found)
        words = (table.words.offsets[table.fields] + table.positions)[entries]
        words -= np.repeat(shifts, [len(found) for found in hits.found])
        is_missing[ranges(words, table.ngrams[table.fields[entries]])] = False
        return is_missing

    def counts(self) -> dict[str, int]:
        """Return the numbers of items by status, of hits, of documents with items, and of rows."""
        status = Counter(self._status)
        tally = self.found.corpus.tally
        return {
            "items": len(self._status),
            **{name: status[name] for name in STATUSES},
            POSSIBLE: int(np.count_nonzero(self._has_possible)),
            "hits": len(self.found.hits.items),
            "documents_with_items": len(self.documents_with_items()),
            "read": tally.documents,
            "rejected": tally.losses.rejected,
            "items_rejected": self.items.losses.rejected,
            "without_text": tally.without_features,
            "items_without_text": len(self.items.ids) - len(set(self.items.owners)),
        }

    def benchmarks(self) -> list[JsonObject]:
        """Return the numbers of items by benchmark, the most contaminated first."""
        counts = Counter(zip(self.items.benchmarks, self._status, strict=True))
        possible = Counter(compress(self.items.benchmarks, self._has_possible.tolist()))
        rows: list[JsonObject] = [
            {
                "benchmark": name,
                "items": total,
                **{status: counts[name, status] for status in STATUSES},
                POSSIBLE: possible[name],
                "rate": counts[name, CONTAMINATED] / total,
            }
            for name, total in Counter(self.items.benchmarks).items()
        ]
        # Stable: benchmarks of equal rates stay in the order of the inputs.
        return sorted(rows, key=lambda row: -row["rate"])

    def between(self) -> list[JsonObject]:
        """Return the number of items of each input that are in each input of the corpus."""
        found = self._contained
        parts_of_documents = self.found.parts(found.documents).tolist()
        pairs = set(zip(found.items.tolist(), parts_of_documents, strict=True))
        counted = Counter((self.items.parts[item], part) for item, part in sorted(pairs))
        return [
            {
                "items_of": self.items.tasks[items_part].part.name,
                "found_in": self.found.tasks[part].part.name,
                "items": count,
            }
            for (items_part, part), count in counted.most_common()
        ]

    @property
    def settings(self) -> ContaminationSettings:
        """The settings of the search."""
        return self._table.settings

    def documents_with_items(self) -> Positions:
        """Return the documents that contain items, each once, rising."""
        return np.unique(self._contained.documents)

    def write_copies(
        self, folder: Path, progress: Progress, threads: int, *, of_items: bool
    ) -> None:
        """Write copies in their formats: of the items without the ones found, or of the corpus
        without the documents that contain items.
        """
        items = np.unique(self._contained.items)
        left_out = items if of_items else self.documents_with_items()
        first = 0
        for task in self.items.tasks if of_items else self.found.tasks:
            # Rows are known by number: in a file that changed since, other rows would be left out.
            task.refuse_changed()
            with KeptWriter(task.part, folder) as writer:
                for batch in task.read(with_payload=True, threads=threads):
                    assert batch.payload is not None  # read with payload
                    numbers = np.arange(first, first + len(batch.rows))
                    writer.write(batch.payload, np.isin(numbers, left_out, invert=True))
                    progress.advance(len(numbers), batch.text_bytes)
                    first += len(numbers)

    def examples(self) -> list[Example]:
        """Return the hits to show, from the best to the weakest."""
        rows = np.array(self._rows_to_show(), np.int64)
        hits = self._listed.take(rows)
        items = hits.items.tolist()
        excerpts = self._excerpts_of(hits)
        # The marker knows texts by number: the excerpt of hit i is i, the item num_hits + i.
        num_hits = len(rows)
        texts = dict(enumerate([*excerpts, *map(self._text_of, items)]))
        # Excerpts are extracted texts, also of pages.
        marker = Marker(texts, replace(self._table.shingling, html=None))
        places = self.found.locations.places(hits.documents)
        return [
            Example(
                removed=self._place_of(items[i]),
                kept=place,
                pair=marker.mark(num_hits + i, i)._replace(truncated=True),
                similarity=float(hits.containment[i]),
                exact=False,
                family=int(self._num_documents[rows[i]]),
                is_possible=bool(self._is_possible[rows[i]]),
            )
            for i, place in enumerate(places)
        ]

    def _excerpts_of(self, hits: Hits) -> list[str]:
        """Return the text around each hit."""
        keys = zip(hits.documents.tolist(), hits.items.tolist(), strict=True)
        return [self.found.excerpts[document, item] for document, item in keys]

    def _rows_to_show(self) -> list[int]:
        """Return the rows of listed hits to show: of each item the best one with an excerpt."""
        best: dict[int, int] = {}
        keys = zip(self._listed.documents.tolist(), self._listed.items.tolist(), strict=True)
        for row, (document, item) in enumerate(keys):
            if (document, item) in self.found.excerpts:
                best.setdefault(item, row)
        rows = sorted(best.values(), key=lambda row: -self._listed.containment[row])
        count = min(len(rows), writing.MAX_EXAMPLES)
        # From the best to the weakest, evenly.
        return [rows[number] for number in np.linspace(0, len(rows) - 1, count).astype(int)]

    def _text_of(self, item: int) -> str:
        """Return the text of all fields of an item, a line each."""
        first, stop = np.searchsorted(self.items.owners, [item, item + 1]).tolist()
        return "\n".join(self.items.texts[first:stop])

    def _place_of(self, item: int) -> Place:
        """Return the id, the file and the row of an item."""
        items = self.items
        file = items.tasks[items.parts[item]].part.name
        return Place(id=items.ids[item], file=file, row=items.rows[item])


def _blocks_of(hits: Hits) -> Iterator[Hits]:
    """Yield hits, _HITS_AT_ONCE at a time."""
    rows = np.arange(len(hits.items))
    for first in range(0, len(rows), _HITS_AT_ONCE):
        yield hits.take(rows[first : first + _HITS_AT_ONCE])


def _further_documents(found: FoundItems) -> _Contained:
    """Return the further documents of items with a hit, and the item of each."""
    documents, items = found.further.T
    # Further documents of an item without a hit have it as boilerplate only.
    has_hit = np.isin(items, found.hits.items)
    return _Contained(documents=documents[has_hit], items=items[has_hit])


def _distinct_pairs(hits: Hits, further: _Contained) -> _Contained:
    """Return the documents and the items of hits and of further documents, each pair once."""
    pairs = np.column_stack([hits.documents, hits.items])
    documents, items = np.unique(np.vstack([pairs, np.column_stack(further)]), axis=0).T
    return _Contained(documents=documents, items=items)


def _grades(is_possible: Mask, is_found: Mask) -> pa.Array:
    """Return the grades of hits or items, null if they are not found."""
    numbers = pa.array(is_possible.astype(np.int64), mask=~is_found)
    return pa.array([CLEAR, POSSIBLE]).take(numbers)


def _joined(text: str, spans: list[list[int]]) -> str:
    """Return the first _MAX_WORDS words of a text; spans : the characters of each word."""
    words = " ".join(text[low:high] for low, high in spans[:_MAX_WORDS])
    return words + " …" if len(spans) > _MAX_WORDS else words


def _documents_with_words(found: list[Int32s], num_documents: Rows) -> Rows:
    """Return by hit the number of documents with its words: the lower median over the distinct
    shingles found, at least 1.

    The smallest count may belong to a word that one document happens to have beside a proverb of
    many, and the largest to a common phrase in an item of one document. If words are changed, it
    may be that no document has a sequence around a shingle, so 1 is the minimum.

    found : by hit, the entries found. num_documents : int64 by entry, as in `FoundItems`.
    """
    numbers = np.repeat(np.arange(len(found)), [len(entries) for entries in found])
    # A hit and an entry, or a hit and a count, are packed into one integer, which sorts faster.
    num_entries = len(num_documents)
    pairs = np.sort(numbers * num_entries + np.concatenate(found))
    pairs = pairs[begins_run(pairs)]
    of_hit, entries = np.divmod(pairs, num_entries)
    num_counts = int(num_documents.max()) + 1
    counts = np.sort(of_hit * num_counts + num_documents[entries]) % num_counts
    sizes = np.bincount(of_hit)
    # The lower of the two middle ones.
    middles = offsets_from_lengths(sizes)[:-1] + (sizes - 1) // 2
    medians: Rows = counts[middles]
    return np.maximum(1, medians, out=medians)
