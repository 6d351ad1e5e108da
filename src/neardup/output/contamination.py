"""The tables of a search for items, and the copies without what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of
from neardup.candidates.items import ItemTable
from neardup.decide.items import RULES, Hits
from neardup.features.spans import word_ranges
from neardup.formats.reading import Task
from neardup.output.kept import KeptWriter
from neardup.output.tables import DocumentLocations
from neardup.progress import Progress
from neardup.runs.items import Items
from neardup.schemas import boilerplate_schema, found_items_schema, items_schema

STATUSES = CONTAMINATED, BOILERPLATE, SHORT, CLEAN = "contaminated", "boilerplate", "short", "clean"
_MOST_WORDS = 30


class ItemTexts:
    """The words of items, field by field, for tables and reports."""

    def __init__(self, items: Items, table: ItemTable) -> None:
        self._table, self._texts = table, items.fields()[0]

    def words(self, field: int) -> tuple[str, npt.NDArray[np.int64]]:
        """Return the text of a field, and the ranges of its words."""
        text = self._texts[field].as_py()
        return text, word_ranges(text, self._table.shingling)

    def runs(self, fields: npt.NDArray[np.integer], positions: npt.NDArray[np.integer]) -> Iterator[tuple[int, str]]:
        """Yield the text of each run of shingles that overlap, with its first shingle; rising by field and position."""
        ngrams = self._table.ngrams[fields]
        is_next = (np.diff(fields, prepend=-1) == 0) & (np.diff(positions, prepend=0) <= np.append(0, ngrams[:-1]))
        limits = [*np.flatnonzero(~is_next).tolist(), len(fields)]
        for start, end in pairwise(limits):
            text, spans = self.words(int(fields[start]))
            last = min(len(spans), int(positions[end - 1] + ngrams[end - 1])) - 1
            yield start, text[spans[int(positions[start]), 0] : spans[last, 1]]

    def missing(self, item: int, found: npt.NDArray[np.int32]) -> str:
        """Return the words of an item in no shingle that was found."""
        table, words = self._table, []
        for field in range(*np.searchsorted(table.field_items, [item, item + 1]).tolist()):
            ngram = int(table.ngrams[field])
            if table.num_tokens[field] < ngram:
                continue
            places = found[table.fields[found] == field]
            covered = np.zeros(int(table.num_tokens[field]), np.bool_)
            covered[(table.positions[places][:, None] + np.arange(ngram)).ravel()] = True
            text, spans = self.words(field)
            words += [text[start:end] for start, end in spans[~covered].tolist()]
        return " ".join(words[:_MOST_WORDS]) + (" …" if len(words) > _MOST_WORDS else "")


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
    enough of it, boilerplate included. num_documents : int64 by key. is_whole : as of `decide_hits`.
    """
    count = table.num_items
    best = np.zeros(count)
    np.maximum.at(best, hits.items, hits.containment)
    shared = np.bincount(table.field_items[table.shared[:, 0]], minlength=count)
    is_common = num_documents[table.keys] > table.most_documents(is_whole)
    common = np.bincount(table.items[is_common], minlength=count) + shared
    conditions = [documents > 0, enough > 0, table.num_own + shared == 0]
    status = np.select(conditions, [CONTAMINATED, BOILERPLATE, SHORT], CLEAN)
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
    """Return what did not count; see schemas.boilerplate_schema."""
    common = np.flatnonzero(num_documents[table.keys] > table.most_documents(is_whole))
    shared = table.shared[np.lexsort((table.shared[:, 1], table.shared[:, 0]))]
    rows: list[dict[str, object]] = []
    for fields, positions, counts, name in (
        (table.fields[common], table.positions[common], num_documents[table.keys[common]], "documents"),
        (shared[:, 0], shared[:, 1], shared[:, 2], "items"),
    ):
        starts = [*texts.runs(fields, positions)]
        least = np.minimum.reduceat(counts, [start for start, _ in starts]).tolist() if starts else []
        for (start, text), number in zip(starts, least, strict=True):
            item = int(table.field_items[fields[start]])
            row = {"item_id": items.ids[item], "benchmark": items.benchmarks[item], "text": text, name: number}
            rows.append({"documents": None, "items": None} | row)
    return pa.Table.from_pylist(rows, boilerplate_schema())


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
