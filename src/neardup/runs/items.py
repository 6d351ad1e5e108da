"""Read the items of benchmarks: short texts of one or several columns."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Bytes, Floats, Int32s, arrow_of, arrow_of_strings
from neardup.candidates.item_views import has_code
from neardup.candidates.items import ANSWER, STRUCTURE, WORDS
from neardup.documents.batch import DocumentBatch, Losses, RawLines, Rejected, rejecter
from neardup.documents.nested import value_of
from neardup.errors import InputError
from neardup.files import JsonObject
from neardup.formats.reading import Task, read_tasks
from neardup.runs.columns import choose_item_columns, is_answer
from neardup.runs.find import LeftOut, shown
from neardup.runs.run import Inputs, names_of_roles, parts_of, tasks_of
from neardup.settings.constraints import ColumnNames
from neardup.settings.run import MAX_UNREADABLE

_HALF_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class Items:
    """The items of a search, and their texts, each as lists of the same length.

    Item i has ids[i], benchmarks[i], and the row rows[i] of the input tasks[parts[i]]. Text j, of
    one column of one item, is texts[j], belongs to the item owners[j], weighs weights[j], and is of
    the kind kinds[j], see candidates.items. An item has as many texts as columns that are not
    empty.

    columns : the columns of an item, with their weights. text_columns : the columns that are
    strings; of plain text, the first column. roles : see `value_of`. rejected : rows that could
    not be read. losses : their counts.
    """

    tasks: list[Task]
    columns: dict[str, float]
    text_columns: list[str]
    warnings: list[str]
    roles: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    benchmarks: list[str] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    losses: Losses = field(default_factory=Losses)

    def reject(self, row: Rejected) -> None:
        """Take a row that could not be read."""
        self.rejected.append(row)
        self.losses.add(row)

    def fields(self, *, with_structure: bool = False) -> ItemTexts:
        """Return the texts of all items as arrays, sorted by item.

        with_structure : add a text of all code of each item that has code, as its last.
        """
        fields = ItemTexts(
            texts=arrow_of_strings(self.texts),
            owners=np.array(self.owners, np.int32),
            weights=np.array(self.weights, np.float64),
            kinds=np.array(self.kinds, np.uint8),
        )
        return fields.with_structure() if with_structure else fields


class ItemTexts(NamedTuple):
    """The texts of items. owners : int32 (num_texts,), the item of each. weights : float64. kinds :
    uint8.
    """

    texts: pa.LargeStringArray
    owners: Int32s
    weights: Floats
    kinds: Bytes

    def with_structure(self) -> ItemTexts:
        """Return the texts, and after the texts of each item with code a text of all of it."""
        rows = np.flatnonzero(has_code(self.texts))
        code: dict[int, list[str]] = {}
        for owner, text in zip(
            self.owners[rows].tolist(), self.texts.take(arrow_of(rows)).to_pylist(), strict=True
        ):
            code.setdefault(owner, []).append(text)
        texts = arrow_of_strings(["\n".join(parts) for parts in code.values()])
        owners = np.append(self.owners, np.array(list(code), np.int32))
        order = np.argsort(owners, kind="stable")
        return ItemTexts(
            texts=pa.concat_arrays([self.texts, texts]).take(arrow_of(order)),
            owners=owners[order],
            weights=np.append(self.weights, np.ones(len(code)))[order],
            kinds=np.append(self.kinds, np.full(len(code), STRUCTURE, np.uint8))[order],
        )


def read_items(
    inputs: Inputs,
    item_columns: ColumnNames,
    benchmark_column: str | None,
    on_error: str,
    max_unreadable: float = MAX_UNREADABLE,
) -> Items:
    """Read all items.

    Parameters
    ----------
    inputs : the sources of the items; their text column is not used.
    item_columns : the columns of an item, as in `choose_item_columns`.
    benchmark_column : the column with the name of the benchmark. Default: the name of the input.
    on_error : whether the first row that cannot be read stops the run, or is rejected.
    max_unreadable : see `Task`.

    Raises
    ------
    ColumnError
        If an input has no such column, or no column that is recognised.
    InputError
        If there is no item.
    """
    warnings: list[str] = []
    parts = parts_of(inputs.source, inputs, "items", LeftOut())
    columns, text_columns = choose_item_columns(parts, item_columns, benchmark_column)
    # A text column must be named for the reading; the values are taken from the payload.
    inputs_to_read = inputs._replace(text_column=text_columns[0], roles=None)
    tasks = [
        task._replace(max_unreadable=max_unreadable)
        for task in tasks_of(inputs_to_read, "first", warnings)
    ]
    items = Items(tasks, columns, text_columns, warnings, roles=names_of_roles(inputs.roles))
    reject = rejecter(on_error, items.reject)
    benchmarks = _benchmarks(tasks)
    # One thread: items are few.
    for part, entry in read_tasks(tasks, 1, with_payload=True):
        if isinstance(entry, Rejected):
            reject(entry)
        elif entry is not None:
            _add(items, part, entry, benchmarks[part], benchmark_column)
    if not items.ids:
        raise _no_item(items)
    return items


def _no_item(items: Items) -> InputError:
    names = ", ".join(task.part.name for task in items.tasks[:3])
    reasons = [row.reason for row in items.rejected[:1]]
    return InputError(f"There is no item in {': '.join([names, *reasons])}. Check the inputs.")


def _benchmarks(tasks: Sequence[Task]) -> list[str]:
    """Return the benchmark of each input: its file name up to the first point, or its whole name
    if several file names begin alike.
    """
    parts = [task.part for task in tasks]
    stems = [shown(part.relative_name).split("/")[-1].split(".")[0] for part in parts]
    shared = Counter(stems)
    names = []
    for part, stem in zip(parts, stems, strict=True):
        # Files that are one item each, and objects without a name, have no name of a benchmark.
        if part.unit == "file" or part.name == "source":
            names.append("items")
        elif shared[stem] == 1:
            names.append(stem)
        else:
            names.append(part.name)
    return names


def _add(
    items: Items,
    part: int,
    batch: DocumentBatch,
    benchmark: str,
    benchmark_column: str | None,
) -> None:
    """Add the items of a batch."""
    file = items.tasks[part].part
    items.losses.add_documents(file.name, file.format, batch.text)
    num_rows = len(batch.rows)
    ids = [None] * num_rows if batch.ids is None else batch.ids.to_pylist()
    items.parts += [part] * num_rows
    items.rows += batch.rows.tolist()
    for identifier, record in zip(ids, _records(batch, items.tasks[part]), strict=True):
        number = len(items.ids)
        _add_texts(items, number, record)
        if benchmark_column is not None:
            benchmark = _text(value_of(record, benchmark_column))
        items.benchmarks.append(benchmark)
        # Without an id column, numbers over all inputs.
        items.ids.append(str(number) if identifier is None else identifier)


def _add_texts(items: Items, number: int, record: JsonObject) -> None:
    """Add the texts of the columns of an item."""
    for column, weight in items.columns.items():
        text = _text(value_of(record, column, items.roles))
        # An empty column has no text to find; `owners` tells to which item the others belong.
        if text:
            items.texts.append(text)
            items.owners.append(number)
            items.weights.append(weight)
            items.kinds.append(ANSWER if is_answer(column) else WORDS)


def _records(batch: DocumentBatch, task: Task) -> Iterator[JsonObject]:
    """Yield the columns of each row. A dictionary per row is fine, since items are few."""
    payload = batch.payload
    if isinstance(payload, pa.RecordBatch):
        yield from payload.to_pylist()
    elif isinstance(payload, RawLines) and task.part.format == "jsonl":
        data = bytes(payload.data)
        ranges = pairwise(payload.offsets.tolist())
        for text, (start, end) in zip(batch.text.to_pylist(), ranges, strict=True):
            # The whole object again: the batch has the text column alone.
            yield _parse(data[start:end]) or {task.columns.text: text}
    else:
        for text in batch.text.to_pylist():
            yield {task.columns.text: text}


def _parse(line: bytes) -> Any:
    with suppress(ValueError, RecursionError):  # Arrow reads lines that are nested deeper
        # A number is compared by its digits. Python limits the digits of an integer.
        return json.loads(line.decode("utf-8", "replace").lstrip("\ufeff"), parse_int=str)
    return None


def _text(value: Any) -> str:
    """Return a value of a column as text: the strings in a list or a dictionary as lines, numbers
    as their digits. Half of a surrogate pair, which JSON can have, is no text.
    """
    lines = []
    waiting = [value]  # a stack, so its items are pushed in reverse
    while waiting:
        part = waiting.pop()
        if isinstance(part, (list, tuple)):
            waiting += reversed(part)
        elif isinstance(part, Mapping):
            # Choices of some benchmarks are {"text": [...], "label": [...]}.
            inner = [part["text"]] if "text" in part else list(part.values())
            waiting += reversed(inner)
        elif isinstance(part, bytes):
            lines.append(part.decode("utf-8", "replace"))
        elif part is not None:
            lines.append(str(part))
    return _HALF_SURROGATE.sub("\ufffd", "\n".join(lines))
