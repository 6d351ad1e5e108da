"""The tables of a search for items, and the copies without what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import (
    Array,
    Mask,
    Rows,
    arrow_of,
    begins_run,
    offsets_from_lengths,
    ranges,
    rank_in_run,
)
from neardup.candidates.items import WHOLE, ItemTable
from neardup.decide.items import RULES, Hits
from neardup.documents.batch import Corpus, Losses
from neardup.features.spans import word_ranges
from neardup.files import JsonObject
from neardup.formats.reading import Task
from neardup.output import write as writing
from neardup.output.kept import KeptWriter
from neardup.progress import Progress
from neardup.report.items import Example, Marker
from neardup.runs.items import Items
from neardup.runs.locations import DocumentLocations
from neardup.schemas import boilerplate_schema, found_items_schema, items_schema

STATUSES = CONTAMINATED, BOILERPLATE, SHORT, CLEAN = "contaminated", "boilerplate", "short", "clean"
_MOST_WORDS, _AT_ONCE = 30, 1 << 14


class Found(NamedTuple):
    """Items in a corpus.

    hits : all of them. further : (num_further, 2), further documents, and the item that each has
    whole. enough : int64 by item, the documents that have enough of it, boilerplate included.
    num_documents : int64 by place, the documents that have the words around it. is_rare : bool by
    place, whether these are few. excerpts : the text around an item in a document, by document and
    item.
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


class ItemTables:
    """The tables of a search, and what is counted from them.

    tables : hits, items and boilerplate, by name. between : whether the corpus is the items, and an
    item is not looked for in its own input.
    """

    def __init__(self, items: Items, table: ItemTable, found: Found, *, between: bool) -> None:
        self.items, self.found, self._table = items, found, table
        hits = found.hits
        further = found.further[
            np.isin(found.further[:, 1], hits.items)
        ]  # else it is boilerplate in all of them
        if between:
            parts = np.array(items.parts)
            hits = hits.take(np.flatnonzero(found.parts(hits.documents) != parts[hits.items]))
            further = further[found.parts(further[:, 0]) != parts[further[:, 1]]]
            found = found._replace(enough=found.enough - 1)
        self._hits, self._further = hits, further
        self._all = np.unique(
            np.vstack([np.stack([hits.documents, hits.items], axis=1), further]), axis=0
        )
        self._listed = hits.take(
            np.flatnonzero(rank_in_run(hits.items) < table.settings.max_documents)
        )
        self._num_documents = np.zeros(len(self._listed.items), np.int64)
        for first in range(0, len(self._num_documents), _AT_ONCE):
            part = np.arange(first, min(first + _AT_ONCE, len(self._num_documents)))
            self._num_documents[part] = _documents_with_words(
                self._listed.take(part), found.num_documents
            )
        shown = (
            table.shared[:, 0],
            table.fields[~found.is_rare],
            np.flatnonzero(np.isin(table.field_items, hits.items)),
        )
        fields, self._first = (
            np.unique(np.concatenate(shown)),
            np.zeros(len(table.field_items), np.int64),
        )
        self._first[fields] = offsets_from_lengths(table.num_tokens[fields])[:-1]
        self._text = "\n".join(table.texts.take(arrow_of(fields)).to_pylist())
        self._ranges = word_ranges(
            self._text, table.shingling
        )  # of the words of fields to be shown, from `_first` on
        self._names = pa.array(items.ids, pa.string()), pa.array(items.benchmarks, pa.string())
        self._status, items_table = self._items_table(found.enough)
        self.tables = {
            "hits": self._hits_table(),
            "items": items_table,
            "boilerplate": self._boilerplate_table(),
        }

    def _hits_table(self) -> pa.Table:
        """Return the hits; see schemas.found_items_schema."""
        hits = self._listed
        rows = np.arange(len(hits.items))
        parts = (
            hits.take(rows[first : first + _AT_ONCE]) for first in range(0, len(rows), _AT_ONCE)
        )
        columns = [
            *(column.take(arrow_of(hits.items)) for column in self._names),
            *self.found.locations.columns(hits.documents),
            *map(arrow_of, (hits.starts, hits.ends, hits.containment)),
            pa.array(RULES).take(arrow_of(hits.rules)),
            arrow_of(self._num_documents),
            pa.array(chain.from_iterable(map(self._missing, parts)), pa.string()),
        ]
        return pa.Table.from_arrays(columns, schema=found_items_schema())

    def _items_table(self, enough: Rows) -> tuple[list[str], pa.Table]:
        """Return the state of each item, and the items; see schemas.items_schema."""
        items, table, best = self.items, self._table, np.zeros(self._table.num_items)
        np.maximum.at(best, self._hits.items, self._hits.containment)
        np.maximum.at(best, self._further[:, 1], WHOLE)  # at least
        documents = np.bincount(self._all[:, 1], minlength=table.num_items)
        shared = np.bincount(table.field_items[table.shared[:, 0]], minlength=table.num_items)
        common = np.bincount(table.items[~self.found.is_rare], minlength=table.num_items) + shared
        conditions = [documents > 0, table.num_own < table.settings.min_rare, enough > 0]
        status = np.select(conditions, [CONTAMINATED, SHORT, BOILERPLATE], CLEAN).tolist()
        parts = pa.array([task.part.name for task in items.tasks]).take(pa.array(items.parts))
        columns = [*self._names, parts, pa.array(items.rows, pa.int64()), pa.array(status)]
        columns += map(arrow_of, (best, documents, table.num_own + shared, common))
        return status, pa.Table.from_arrays(columns, schema=items_schema())

    def _boilerplate_table(self) -> pa.Table:
        """Return the words that did not count; see schemas.boilerplate_schema."""
        table, tables = self._table, []
        common = np.flatnonzero(~self.found.is_rare)
        places = table.fields[common], table.positions[common], self.found.num_documents[common]
        for step, (fields, positions, counts) in ((1, places), (-1, table.shared.T)):
            begins = self._first[fields] + positions
            ends = begins + table.ngrams[fields]
            first = np.flatnonzero(
                begins_run(fields) | (begins > np.append(0, ends[:-1]))
            )  # of those that overlap
            last = np.append(first[1:], len(fields))[: len(first)] - 1
            limits = zip(
                self._ranges[begins[first], 0].tolist(),
                self._ranges[ends[last] - 1, 1].tolist(),
                strict=True,
            )
            least = np.minimum.reduceat(counts, first) if len(first) else first
            columns = [
                column.take(arrow_of(table.field_items[fields[first]])) for column in self._names
            ]
            columns.append(pa.array([self._text[start:end] for start, end in limits], pa.string()))
            columns += [arrow_of(least), pa.nulls(len(least), pa.int64())][::step]
            tables.append(pa.Table.from_arrays(columns, schema=boilerplate_schema()))
        return pa.concat_tables(tables)

    def _missing(self, hits: Hits) -> Iterator[str]:
        """Yield the words of each item in no shingle that was found; of fields without a shingle
        none.
        """
        table, (first, end) = (
            self._table,
            np.searchsorted(self._table.field_items, [hits.items, hits.items + 1]),
        )
        begins, places, of_hit = (
            table.words.offsets[first],
            np.concatenate(hits.found),
            list(map(len, hits.found)),
        )
        sizes, fields = table.words.offsets[end] - begins, ranges(first, end - first)
        offsets = offsets_from_lengths(sizes)
        is_left = np.repeat((table.num_tokens >= table.ngrams)[fields], table.num_tokens[fields])
        starts = (table.words.offsets[table.fields] + table.positions)[places]
        starts -= np.repeat(begins - offsets[:-1], of_hit)
        is_left[ranges(starts, table.ngrams[table.fields[places]])] = False
        left = self._ranges[ranges(self._first[first], sizes)[is_left]].tolist()
        for start, stop in pairwise(offsets_from_lengths(is_left)[offsets].tolist()):
            shown = " ".join(
                self._text[low:high] for low, high in left[start : min(stop, start + _MOST_WORDS)]
            )
            yield shown + (" …" if stop - start > _MOST_WORDS else "")

    def counts(self) -> dict[str, int]:
        """Return the numbers of items by status, of hits, of documents that have some, and of
        rows.
        """
        status, tally = Counter(self._status), self.found.corpus.tally
        counts = {"items": len(self._status), **{name: status[name] for name in STATUSES}}
        counts |= {
            "hits": len(self._hits.items),
            "documents_with_items": len(np.unique(self._all[:, 0])),
        }
        rejected = Losses.of(self.items.rejected).rejected
        counts |= {
            "read": tally.documents,
            "rejected": tally.losses.rejected,
            "items_rejected": rejected,
        }
        counts |= {"without_text": tally.without_features}
        counts |= {"items_without_text": len(self.items.ids) - len(set(self.items.owners))}
        return counts

    def benchmarks(self) -> list[JsonObject]:
        """Return the numbers of items by benchmark, the most contaminated first."""
        counts = Counter(zip(self.items.benchmarks, self._status, strict=True))
        rows: list[JsonObject] = [
            {"benchmark": name, "items": total}
            | {status: counts[name, status] for status in STATUSES}
            | {"rate": counts[name, CONTAMINATED] / total}
            for name, total in Counter(self.items.benchmarks).items()
        ]
        return sorted(rows, key=lambda row: -row["rate"])

    def between(self) -> list[JsonObject]:
        """Return how many items of each input are in each input of the corpus."""
        tasks = self.found.tasks
        found = set(
            zip(self._all[:, 1].tolist(), self.found.parts(self._all[:, 0]).tolist(), strict=True)
        )
        counted = Counter((self.items.parts[item], part) for item, part in sorted(found))
        return [
            {
                "items_of": self.items.tasks[of].part.name,
                "found_in": tasks[part].part.name,
                "items": count,
            }
            for (of, part), count in counted.most_common()
        ]

    def write_copies(
        self, folder: Path, progress: Progress, threads: int, *, of_items: bool
    ) -> None:
        """Write copies of the items, or of the corpus, without what was found, in their formats."""
        left_out = np.unique(self._all[:, 1 if of_items else 0])
        first = 0
        for task in self.items.tasks if of_items else self.found.tasks:
            task.refuse_changed()
            with KeptWriter(task.part, folder) as writer:
                for batch in task.read(with_payload=True, threads=threads):
                    assert batch.payload is not None  # read with payload
                    numbers = np.arange(first, first + len(batch.rows))
                    writer.write(batch.payload, np.isin(numbers, left_out, invert=True))
                    progress.advance(len(numbers), batch.text_bytes)
                    first += len(numbers)

    def examples(self) -> list[Example]:
        """Return the hits to show: the best of each item of which the text is at hand, from the
        best to the weakest.
        """
        items, table, hits, texts, best = (
            self.items,
            self._table,
            self._listed,
            dict[int, str](),
            dict[int, int](),
        )
        for row, key in enumerate(zip(hits.documents.tolist(), hits.items.tolist(), strict=True)):
            if key in self.found.excerpts and key[1] not in best:
                best[key[1]], texts[2 * row] = row, self.found.excerpts[key]
        rows = np.array(sorted(best.values(), key=lambda row: -hits.containment[row]), np.int64)
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), writing.MAX_EXAMPLES)).astype(int)]
        for row in rows.tolist():
            limits = np.searchsorted(table.field_items, [hits.items[row], hits.items[row] + 1])
            texts[2 * row + 1] = "\n".join(table.texts[slice(*limits.tolist())].to_pylist())
        marker, result = Marker(texts, replace(table.shingling, html=None)), []
        for row, place in zip(
            rows.tolist(), self.found.locations.places(hits.documents[rows]), strict=True
        ):
            item, pair = (
                int(hits.items[row]),
                marker.mark(2 * row + 1, 2 * row)._replace(truncated=True),
            )
            shown = items.ids[item], items.tasks[items.parts[item]].part.name, items.rows[item]
            documents = int(self._num_documents[row])
            result.append(
                Example(
                    shown, place, pair, float(hits.containment[row]), exact=False, family=documents
                )
            )
        return result


def _documents_with_words(hits: Hits, num_documents: Rows) -> Rows:
    """Return by hit how many documents have its words: the lower median over the distinct shingles
    found.

    The least count may be that of a word that one document happens to have beside a proverb of
    many, and the greatest that of a common phrase in an item of one document. No document may have
    a sequence around a shingle if words are changed, so 1 is the least.

    num_documents : by place, as in `Found`.
    """
    numbers = np.repeat(np.arange(len(hits.items)), [len(places) for places in hits.found])
    # Pairs of a hit and a place, and of a hit and a count, are one integer each: these are sorted
    # faster.
    pairs = np.sort(numbers * len(num_documents) + np.concatenate(hits.found))
    pairs = pairs[begins_run(pairs)]
    of_hit, places = np.divmod(pairs, len(num_documents))
    most = int(num_documents.max()) + 1
    counts = np.sort(of_hit * most + num_documents[places]) % most
    sizes = np.bincount(of_hit)
    middles = offsets_from_lengths(sizes)[:-1] + (sizes - 1) // 2
    medians: Rows = counts[middles]
    return np.maximum(1, medians, out=medians)
