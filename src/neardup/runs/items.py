"""Read the items of benchmarks: short texts, of one column or of several."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.arrays import Floats, Int32s, arrow_of_strings
from neardup.documents.batch import DocumentBatch, RawLines, Reject, Rejected
from neardup.documents.nested import value_of
from neardup.errors import InputError
from neardup.files import JsonObject
from neardup.formats.reading import Task, read_tasks
from neardup.runs.columns import choose_item_columns
from neardup.runs.find import shown
from neardup.runs.run import Inputs, parts_of, tasks_of
from neardup.settings.constraints import ColumnNames
from neardup.settings.run import MAX_UNREADABLE


@dataclass
class Items:
    """The items of a search.

    tasks : their inputs. columns : those read, with the weight of each. text_columns : those of
    them that are strings; none of plain text. ids, benchmarks : by item. parts, rows : the input of
    each item and its row there. texts, owners, weights : of all columns that items have, the text,
    the item and the weight. rejected : rows that could not be read.
    """

    tasks: list[Task]
    columns: dict[str, float]
    text_columns: list[str]
    warnings: list[str]
    ids: list[str] = field(default_factory=list)
    benchmarks: list[str] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def fields(self) -> tuple[pa.LargeStringArray, Int32s, Floats]:
        """Return texts, owners and weights as arrays."""
        return (
            arrow_of_strings(self.texts),
            np.array(self.owners, np.int32),
            np.array(self.weights, np.float64),
        )


def read_items(
    inputs: Inputs,
    item_columns: ColumnNames,
    benchmark_column: str | None,
    use: Callable[[Reject], Reject],
    max_unreadable: float = MAX_UNREADABLE,
) -> Items:
    """Read all items.

    Parameters
    ----------
    inputs : the sources of the items; their text column is not used.
    item_columns : the columns of an item, as `choose_item_columns` takes them.
    benchmark_column : the column with the name of the benchmark. Default: the name of the input.
    use : returns how a rejected row is handled, from how it is listed.
    max_unreadable : as of `Task`.

    Raises
    ------
    ColumnError
        If an input has no such column, or no column that is recognised.
    InputError
        If there is no item.
    """
    warnings: list[str] = []
    parts = parts_of(inputs.source, inputs, "items", {})
    columns, text_columns = choose_item_columns(parts, item_columns, benchmark_column)
    tasks = tasks_of(
        inputs._replace(text_column=text_columns[0] if text_columns else None), "first", warnings
    )
    tasks = [task._replace(max_unreadable=max_unreadable) for task in tasks]
    items = Items(tasks, columns, text_columns, warnings)
    reject, benchmarks = use(items.rejected.append), _benchmarks(tasks)
    for number, entries in groupby(read_tasks(tasks, 1, with_payload=True), itemgetter(0)):
        for _, entry in entries:
            if isinstance(entry, Rejected):
                reject(entry)
            elif entry is not None:
                _add(items, number, entry, benchmarks[number], benchmark_column)
    if not items.ids:
        names = ", ".join(task.part.name for task in tasks[:3])
        raise InputError(
            "There is no item in "
            f"{': '.join([names, *(row.reason for row in items.rejected[:1])])}. Check the "
            "inputs."
        )
    return items


def _benchmarks(tasks: Sequence[Task]) -> list[str]:
    """Return the benchmark of each input: its name up to a point, or all of the name if another
    begins so, too.
    """
    parts = [task.part for task in tasks]
    short = [shown(part.relative_name).split("/")[-1].split(".")[0] for part in parts]
    shared, has_name = (
        Counter(short),
        [part.unit != "file" and part.name != "source" for part in parts],
    )
    names = [
        name if shared[name] == 1 else part.name for name, part in zip(short, parts, strict=True)
    ]
    return [name if named else "items" for named, name in zip(has_name, names, strict=True)]


def _add(
    items: Items,
    number: int,
    batch: DocumentBatch,
    benchmark: str | None,
    benchmark_column: str | None,
) -> None:
    """Add the items of a batch."""
    task, count = items.tasks[number], len(batch.rows)
    ids = [None] * count if batch.ids is None else batch.ids.to_pylist()
    items.parts += [number] * count
    items.rows += batch.rows.tolist()
    for identifier, record in zip(ids, _records(batch, task), strict=True):
        for column, weight in items.columns.items():
            text = _text(value_of(record, column))
            if text:
                items.texts.append(text)
                items.owners.append(len(items.ids))
                items.weights.append(weight)
        if benchmark_column is not None:
            benchmark = _text(value_of(record, benchmark_column))
        items.benchmarks.append(benchmark or "")
        items.ids.append(str(len(items.ids)) if identifier is None else identifier)


def _records(batch: DocumentBatch, task: Task) -> Iterator[JsonObject]:
    """Yield the columns of each row; items are few."""
    if isinstance(batch.payload, pa.RecordBatch):
        yield from batch.payload.to_pylist()
    elif isinstance(batch.payload, RawLines) and task.part.format == "jsonl":
        data = bytes(batch.payload.data)
        yield from (
            _parse(data[start:end]) for start, end in pairwise(batch.payload.offsets.tolist())
        )
    else:
        yield from ({task.columns.text: text} for text in batch.text.to_pylist())


def _parse(line: bytes) -> Any:
    with suppress(ValueError, RecursionError):  # Arrow reads what is nested deeper
        return json.loads(line.decode("utf-8", "replace").lstrip("\ufeff"))
    return {}


def _text(value: Any) -> str:
    """Return a value of a column as text: the strings in a list or a dictionary below each other,
    numbers as such.
    """
    if isinstance(value, str):
        return value
    pieces, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (list, tuple)):
            waiting += reversed(one)
        elif isinstance(one, Mapping):
            waiting += reversed([one["text"]] if "text" in one else list(one.values()))
        elif one is not None:
            pieces.append(one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one))
    return "\n".join(pieces)
