"""The tables of a search for items, and the copies without what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of, ranges
from neardup.candidates.items import ItemTable
from neardup.decide.items import RULES, Hits
from neardup.features.spans import token_spans, word_ranges
from neardup.formats.reading import Task
from neardup.output.kept import KeptWriter
from neardup.output.tables import DocumentLocations
from neardup.progress import Progress
from neardup.report.items import Example, MarkedPair
from neardup.runs.items import Items
from neardup.schemas import boilerplate_schema, found_items_schema, items_schema
from neardup.verify.alignment import mark_passages

STATUSES = CONTAMINATED, BOILERPLATE, SHORT, CLEAN = "contaminated", "boilerplate", "short", "clean"
_MOST_WORDS = 30
_MAX_SHOWN, _CHARACTERS = 100, 2000


class ItemTexts:
    """The words of all items, for tables."""

    def __init__(self, items: Items, table: ItemTable) -> None:
        self._table = table
        self._text = "\n".join(items.fields()[0].to_pylist())
        self._ranges = word_ranges(self._text, table.shingling)  # of the words of all fields, numbered through

    def runs(self, fields: npt.NDArray[Any], positions: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Return the first of each run of shingles that overlap, and its text. They rise by field and position."""
        begins = self._table.words.offsets[fields] + positions
        ends = begins + self._table.ngrams[fields]
        is_next = (np.diff(fields, prepend=-1) == 0) & (begins <= np.append(0, ends[:-1]))
        firsts = np.flatnonzero(~is_next)
        lasts = np.append(firsts[1:], len(fields))[: len(firsts)] - 1
        limits = zip(self._ranges[begins[firsts], 0].tolist(), self._ranges[ends[lasts] - 1, 1].tolist(), strict=True)
        return firsts, [self._text[start:end] for start, end in limits]

    def missing(self, item: int, found: npt.NDArray[np.int32]) -> str:
        """Return the words of an item in no shingle that was found; of fields without a shingle none."""
        table = self._table
        fields = np.arange(*np.searchsorted(table.field_items, [item, item + 1]))
        first, end = table.words.offsets[fields[0]], table.words.offsets[fields[-1] + 1]
        is_left = np.repeat(table.num_tokens[fields] >= table.ngrams[fields], table.num_tokens[fields])
        starts = table.words.offsets[table.fields[found]] - first + table.positions[found]
        sizes = table.ngrams[table.fields[found]]
        is_left[ranges(starts, sizes)] = False
        words = [self._text[begin:stop] for begin, stop in self._ranges[first:end][is_left][:_MOST_WORDS].tolist()]
        return " ".join(words) + (" …" if np.count_nonzero(is_left) > _MOST_WORDS else "")


def hits_table(items: Items, texts: ItemTexts, hits: Hits, locations: DocumentLocations) -> pa.Table:
    """Return the hits; see schemas.found_items_schema."""
    found = hits.items.tolist()
    columns = [
        pa.array([items.ids[item] for item in found], pa.string()),
        pa.array([items.benchmarks[item] for item in found], pa.string()),
        *locations.columns(hits.documents),
        arrow_of(hits.starts),
        arrow_of(hits.ends),
        arrow_of(hits.containment),
        pa.array([RULES[rule] for rule in hits.rules.tolist()], pa.string()),
        pa.array([texts.missing(item, places) for item, places in zip(found, hits.found, strict=True)], pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=found_items_schema())


def items_table(
    items: Items,
    table: ItemTable,
    hits: Hits,
    documents: npt.NDArray[np.int64],
    enough: npt.NDArray[np.int64],
    num_documents: npt.NDArray[np.int64],
    is_whole: npt.NDArray[np.bool_],
) -> pa.Table:
    """Return the items; see schemas.items_schema.

    Parameters
    ----------
    hits : all of them. documents : int64 by item, those that contain it. enough : int64 by item, those that have
    enough of it, boilerplate included. num_documents : int64 by place. is_whole : as of `decide_hits`.
    """
    count = table.num_items
    best = np.zeros(count)
    np.maximum.at(best, hits.items, hits.containment)
    shared = np.bincount(table.field_items[table.shared[:, 0]], minlength=count)
    is_common = num_documents > table.most_documents(is_whole)
    common = np.bincount(table.items[is_common], minlength=count) + shared
    conditions = [documents > 0, ~table.is_decidable(table.num_own), enough > 0]
    status = np.select(conditions, [CONTAMINATED, SHORT, BOILERPLATE], CLEAN)
    names = [task.part.name for task in items.tasks]
    columns = [
        pa.array(items.ids, pa.string()),
        pa.array(items.benchmarks, pa.string()),
        pa.array([names[part] for part in items.parts], pa.string()),
        pa.array(items.rows, pa.int64()),
        pa.array(status.tolist(), pa.string()),
        arrow_of(best),
        arrow_of(documents),
        arrow_of(table.num_own + shared),
        arrow_of(common),
    ]
    return pa.Table.from_arrays(columns, schema=items_schema())


def boilerplate_table(
    items: Items,
    texts: ItemTexts,
    table: ItemTable,
    num_documents: npt.NDArray[np.int64],
    is_whole: npt.NDArray[np.bool_],
) -> pa.Table:
    """Return the words that did not count; see schemas.boilerplate_schema."""
    common = np.flatnonzero(num_documents > table.most_documents(is_whole))
    shared = table.shared[np.lexsort((table.shared[:, 1], table.shared[:, 0]))]
    rows: list[dict[str, object]] = []
    for fields, positions, counts, name in (
        (table.fields[common], table.positions[common], num_documents[common], "documents"),
        (shared[:, 0], shared[:, 1], shared[:, 2], "items"),
    ):
        firsts, found = texts.runs(fields, positions)
        least = np.minimum.reduceat(counts, firsts).tolist() if found else []
        for item, text, number in zip(table.field_items[fields[firsts]].tolist(), found, least, strict=True):
            row = {"item_id": items.ids[item], "benchmark": items.benchmarks[item], "text": text, name: number}
            rows.append({"documents": None, "items": None} | row)
    return pa.Table.from_pylist(rows, boilerplate_schema())


def examples_of(
    items: Items,
    table: ItemTable,
    hits: Hits,
    excerpts: Mapping[tuple[int, int], tuple[int, str]],
    locations: DocumentLocations,
) -> list[Example]:
    """Return the hits to show: the best of each item of which the text is at hand, from the best to the weakest."""
    _, first = np.unique(hits.items, return_index=True)
    chosen: list[int] = []
    for start, end in pairwise([*first.tolist(), len(hits.items)]):
        keys = ((int(hits.documents[row]), int(hits.items[row]), row) for row in range(start, end))
        chosen += [row for document, item, row in keys if (document, item) in excerpts][:1]
    chosen = sorted(chosen, key=lambda row: -hits.containment[row])
    if len(chosen) > _MAX_SHOWN:
        chosen = [chosen[place] for place in np.linspace(0, len(chosen) - 1, _MAX_SHOWN).astype(int).tolist()]
    places = locations.places(hits.documents[chosen]) if chosen else ()
    result = []
    for row, place in zip(chosen, places, strict=True):
        item, document = int(hits.items[row]), int(hits.documents[row])
        text, excerpt = items.text(item)[:_CHARACTERS], excerpts[document, item][1]
        spans = [token_spans(one, table.shingling) for one in (text, excerpt)]
        passages = mark_passages(text, spans[0], excerpt, spans[1], table.settings.ngram)
        part = items.tasks[items.parts[item]].part.name, items.rows[item]
        pair = MarkedPair(text, excerpt, *passages, truncated=True)
        containment = float(hits.containment[row])
        result.append(Example((items.ids[item], *part), place, pair, containment, exact=False))
    return result


def write_without(
    tasks: Sequence[Task],
    parts: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    directory: Path,
    progress: Progress,
    threads: int,
) -> None:
    """Copy inputs without some rows, in their formats.

    parts, rows : the input of each row that is left out, and its number there.
    """
    for number, task in enumerate(tasks):
        task.refuse_changed()
        left_out = rows[parts == number]
        with KeptWriter(task.part, directory) as writer:
            for batch in task.read(with_payload=True, threads=threads):
                assert batch.payload is not None  # read with payload
                writer.write(batch.payload, ~np.isin(batch.rows, left_out))
                progress.advance(len(batch.rows), batch.text.nbytes)
