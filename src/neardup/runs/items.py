"""Read the items of benchmarks: short texts, of one column or of several."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of_strings
from neardup.documents.batch import DocumentBatch, Pages, RawLines, Rejected
from neardup.documents.texts import is_text
from neardup.errors import ColumnError, InputError
from neardup.formats.reading import Task, read_tasks
from neardup.runs.columns import listed
from neardup.runs.run import Inputs, parts_of, tasks_of

QUESTIONS = ("question", "problem", "prompt", "query", "instruction", "input", "text", "content", "sentence")
"""The recognised names of the first column of an item; the first that exists is used."""
ANSWERS = ("choices", "options", "answer", "answers", "solution", "target", "output", "canonical_solution")
"""The recognised names of further columns; all that exist are used."""


@dataclass
class Items:
    """The items of a search.

    tasks : their inputs. columns : those read, with the weight of each. text_columns : those of them that are strings;
    none of plain text. ids, benchmarks : by item. parts, rows : the
    input of each item and its row there. texts : of each column, None where there is none. rejected : rows that could
    not be read.
    """

    tasks: list[Task]
    columns: dict[str, float]
    text_columns: list[str]
    ids: list[str] = field(default_factory=list)
    benchmarks: list[str] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    texts: list[list[str | None]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def fields(self) -> tuple[pa.LargeStringArray, npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return the texts of all columns that items have, the item of each, and its weight."""
        found = [
            (text, item, weight)
            for item, texts in enumerate(self.texts)
            for text, weight in zip(texts, self.columns.values(), strict=True)
            if text
        ]
        texts, items, weights = zip(*found, strict=True) if found else ((), (), ())
        return arrow_of_strings(list(texts)), np.array(items, np.int32), np.array(weights, np.float64)

    def text(self, item: int) -> str:
        """Return an item as one text, its columns one below the other."""
        return "\n".join(text for text in self.texts[item] if text)


def read_items(
    inputs: Inputs,
    item_columns: str | Sequence[str] | None,
    benchmark_column: str | None,
    use: Callable[[Callable[[Rejected], None]], Callable[[Rejected], None]],
) -> Items:
    """Read all items.

    Parameters
    ----------
    inputs : the sources of the items; their text column is not used.
    item_columns : the columns of an item, each with its weight if it is not 1, such as "answer:0.5". Default: the first
        of QUESTIONS, and those of ANSWERS.
    benchmark_column : the column with the name of the benchmark. Default: the name of the input.
    use : returns how a rejected row is handled, from how it is listed.

    Raises
    ------
    ColumnError
        If an input has no such column, or no column that is recognised.
    InputError
        If there is no item.
    """
    warnings: list[str] = []
    skipped: dict[str, list[str]] = {}
    types = [part.column_types() for part in parts_of(inputs.source, inputs, "items", skipped)]
    shown = [one for one in types if one]
    columns = _choose(shown, item_columns)
    text_columns = [name for name in columns if shown and all(is_text(one[name]) for one in shown)]
    if shown and not text_columns:
        raise ColumnError(
            f"An item needs a column of strings: got {listed(list(columns))}. Name one of them first "
            "(item_columns, --item-columns)."
        )
    tasks = tasks_of(inputs._replace(text_column=text_columns[0] if shown else None), "first", warnings)
    items = Items(tasks, columns, text_columns, warnings=warnings)
    reject = use(items.rejected.append)
    for number, entries in groupby(read_tasks(tasks, 1, with_payload=True), itemgetter(0)):
        for _, entry in entries:
            if isinstance(entry, Rejected):
                reject(entry)
            elif entry is not None:
                _add(items, number, entry, benchmark_column)
    if not items.ids:
        raise InputError(f"There is no item in {', '.join(task.part.name for task in tasks[:3])}. Check the inputs.")
    return items


def _choose(shown: Sequence[Mapping[str, pa.DataType]], named: str | Sequence[str] | None) -> dict[str, float]:
    """Return the columns of an item with their weights."""
    if named is not None:
        listed_names = [named] if isinstance(named, str) else named
        if not isinstance(listed_names, (list, tuple)) or not all(isinstance(name, str) for name in listed_names):
            raise ColumnError(
                f"item_columns is a name or a list of names: got {named!r:.80}. Name columns of the items."
            )
        names = [one for name in listed_names for one in name.split(",")]
        columns = {}
        for name in names:
            column, colon, weight = name.rpartition(":")
            try:
                columns[column if colon else name] = float(weight) if colon else 1.0
            except ValueError:
                columns[name] = 1.0
        missing = next((name for name in columns for one in shown if name not in one), None)
        if missing is not None or not columns:
            has = listed(list(shown[0])) if shown else "no column"
            raise ColumnError(
                f"No column {missing!r} in the items: they have {has}. Name one of these (--item-columns)."
            )
        return columns
    if not shown:
        return {"text": 1.0}
    common = [name for name in shown[0] if all(name in one for one in shown)]
    by_name = {name.casefold(): name for name in reversed(common)}
    questions = [by_name[name] for name in QUESTIONS if name in by_name][:1]
    if not questions:
        raise ColumnError(
            f"No column of items is recognised: got {listed(common)}. Looked for {', '.join(QUESTIONS)}. Name the "
            "columns (item_columns, --item-columns)."
        )
    return dict.fromkeys([*questions, *(by_name[name] for name in ANSWERS if name in by_name)], 1.0)


def _add(items: Items, number: int, batch: DocumentBatch, benchmark_column: str | None) -> None:
    """Add the items of a batch."""
    task = items.tasks[number]
    name = task.part.relative_name.split("/")[-1].split(".")[0]
    if task.part.unit == "file" or task.part.name == "source":
        name = "items"
    ids = batch.ids.to_pylist() if batch.ids is not None else [None] * len(batch.rows)
    for row, (identifier, record) in enumerate(zip(ids, _records(batch, task), strict=True)):
        benchmark = name
        if benchmark_column is not None:
            if benchmark_column not in record:
                raise ColumnError(
                    f"No column '{benchmark_column}' in {task.part.name}: it has {listed(list(record))}. Name one of "
                    "these (benchmark_column, --benchmark-column)."
                )
            benchmark = _text(record[benchmark_column]) or ""
        items.ids.append(str(len(items.ids)) if identifier is None else identifier)
        items.benchmarks.append(benchmark)
        items.parts.append(number)
        items.rows.append(int(batch.rows[row]))
        items.texts.append([_text(record.get(column)) for column in items.columns])


def _records(batch: DocumentBatch, task: Task) -> Iterator[Mapping[str, Any]]:
    """Yield the columns of each row; items are few."""
    payload = batch.payload
    if isinstance(payload, pa.RecordBatch):
        yield from payload.to_pylist()
    elif isinstance(payload, RawLines) and task.part.format == "jsonl":
        data = memoryview(payload.data)
        for start, end in zip(payload.offsets[:-1].tolist(), payload.offsets[1:].tolist(), strict=True):
            record: Mapping[str, Any] = {}
            with suppress(ValueError, RecursionError):  # Arrow reads what is nested deeper
                record = json.loads(bytes(data[start:end]).decode("utf-8-sig", "replace"))
            yield record
    else:
        assert payload is None or isinstance(payload, (RawLines, Pages))
        yield from ({task.columns.text: text} for text in batch.text.to_pylist())


def _text(value: Any) -> str | None:
    """Return a value of a column as text: the strings in a list or a dictionary below each other, numbers as such."""
    pieces: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (list, tuple)):
            waiting += reversed(one)
        elif isinstance(one, Mapping):
            waiting += reversed([one["text"]] if "text" in one else list(one.values()))
        elif isinstance(one, bytes):
            pieces.append(one.decode("utf-8", "replace"))
        elif one is not None:
            pieces.append(str(one))
    return "\n".join(pieces) if pieces else None
