"""The documents of a run on Spark, as workers read them: from files, or from a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from neardup.arrays import arrow_of, flatten_strings
from neardup.documents.batch import BLOCK_BYTES, Rejected
from neardup.documents.reading import Task
from neardup.documents.texts import as_text, slices_of

PART_SHIFT = 32
"""A document of a file is known by part << PART_SHIFT | its number among the documents of the part."""
NEW = 1 << 61
"""Positions from here on are of new documents; those of the earlier corpus come before."""
_SLICES_PER_CORE = 64


class Texts(NamedTuple):
    """Documents that a worker has read, column by column; and rows that could not be read.

    document : the key, by which the earlier of two documents is known. id, row, value : null if there is none; value
    is what `keep` orders by. position, last : of the order of priority, if the documents were chosen by it.
    rejected : the part, and a line of JSON.
    """

    document: pa.Array
    text: pa.Array
    against: pa.Array
    id: pa.Array
    row: pa.Array
    value: pa.Array
    position: pa.Array | None
    last: pa.Array | None
    rejected: list[tuple[int, str]]


Read = Callable[[Iterable[pa.RecordBatch]], Iterator[Texts]]


class Corpus(Protocol):
    """The documents of a run.

    key_type : the type of the column `document`, in Spark's words. in_order : whether it is a number below NEW.
    """

    @property
    def key_type(self) -> str: ...

    @property
    def in_order(self) -> bool: ...

    def all(self) -> tuple[DataFrame, Read]:
        """Return rows of which workers read all documents, and how they do it."""

    def chosen(self, documents: DataFrame) -> tuple[DataFrame, Read]:
        """Return the same for some documents. documents : the columns document, position and last."""


@dataclass(frozen=True)
class Files:
    """Files, which workers open as the local engine does. tasks : the files of the earlier corpus come first."""

    spark: SparkSession
    tasks: Broadcast[list[Task]]
    by_length: bool
    on_error: str

    key_type = "long"
    in_order = True

    def all(self) -> tuple[DataFrame, Read]:
        parts = self.spark.range(0, len(self.tasks.value), 1, self._num_slices)
        return parts.select(F.col("id").cast("int").alias("part")), partial(read_files, files=self._reading)

    def chosen(self, documents: DataFrame) -> tuple[DataFrame, Read]:
        index = F.col("document").bitwiseAND((1 << PART_SHIFT) - 1).alias("index")
        part = F.shiftright("document", PART_SHIFT).cast("int").alias("part")
        entries = F.array_sort(F.collect_list(F.struct(index, "position", "last"))).alias("chosen")
        return self.spread(documents.groupBy(part).agg(entries)), partial(read_files, files=self._reading)

    def spread(self, parts: DataFrame) -> DataFrame:
        """Return parts over many partitions: Spark would put the short lists together, and read all files in a task."""
        return parts.repartitionByRange(self._num_slices, "part")

    @property
    def _num_slices(self) -> int:
        return int(min(len(self.tasks.value), _SLICES_PER_CORE * self.spark.sparkContext.defaultParallelism))

    @property
    def _reading(self) -> _Reading:
        return _Reading(self.tasks, self.by_length, self.on_error)


class _Reading(NamedTuple):
    tasks: Broadcast[list[Task]]
    by_length: bool
    on_error: str


def read_files(batches: Iterable[pa.RecordBatch], files: _Reading) -> Iterator[Texts]:
    """Read the documents of parts; of those with a column `chosen`, only the documents that it lists."""
    for batch in batches:
        lists = batch.column("chosen") if "chosen" in batch.schema.names else [None] * batch.num_rows
        for part, chosen in zip(batch.column("part").to_pylist(), lists, strict=True):
            yield from _read_part(part, files, None if chosen is None else chosen.values)


def _read_part(part: int, files: _Reading, chosen: pa.StructArray | None) -> Iterator[Texts]:
    task = files.tasks.value[part]
    rejected: list[tuple[int, str]] = []

    def reject(row: Rejected) -> None:
        if files.on_error == "stop":
            raise_rejected(row)
        rejected.append((part, json.dumps(row._asdict(), ensure_ascii=False)))

    first = 0
    for batch in task.read(reject):
        count = len(batch.rows)
        numbers = np.arange(first, first + count, dtype=np.int64)
        first += count
        position = last = None
        rows = batch.rows.astype(np.int64, copy=False)
        if chosen is not None:
            at = np.searchsorted(chosen.field("index").to_numpy(), [numbers[0], numbers[-1] + 1]) if count else [0, 0]
            entries = chosen.slice(at[0], at[1] - at[0])
            if not len(entries):
                continue
            mask = np.zeros(count, np.bool_)
            mask[entries.field("index").to_numpy() - numbers[0]] = True
            batch, numbers, rows = batch.filter(mask), numbers[mask], rows[mask]
            position, last = entries.field("position"), entries.field("last")
        if files.by_length:
            value = arrow_of(np.diff(flatten_strings(batch.text)[1]).astype(np.float64))
        else:
            value = pa.nulls(len(rows), pa.float64()) if not batch.ranks else arrow_of(batch.ranks[0])
        ids = pa.nulls(len(rows), pa.string()) if batch.ids is None else batch.ids.cast(pa.string())
        against = arrow_of(np.full(len(rows), task.against))
        document = arrow_of(numbers | part << PART_SHIFT)
        yield Texts(document, batch.text, against, ids, arrow_of(rows), value, position, last, list(rejected))
        rejected.clear()
    if rejected:
        none = pa.nulls(0, pa.int64())
        yield Texts(none, none.cast(pa.string()), none.cast(pa.bool_()), none.cast(pa.string()), none,
                    none.cast(pa.float64()), none, none, rejected)  # fmt: skip


def raise_rejected(row: Rejected) -> None:
    """Raise the error of a run that stops at the first document that cannot be read."""
    from neardup.documents.corpus import describe_rejected
    from neardup.errors import InputError

    raise InputError(
        f"{describe_rejected(row)} The run stops at the first such document because of on_error='stop'. Use "
        "on_error='reject' to list it in rejected.jsonl instead."
    )


@dataclass(frozen=True)
class Frame:
    """A DataFrame with the columns document, against, text and value."""

    frame: DataFrame
    by_length: bool

    in_order = False

    @property
    def key_type(self) -> str:
        return str(self.frame.schema["document"].dataType.simpleString())

    def all(self) -> tuple[DataFrame, Read]:
        return self.frame, partial(read_rows, by_length=self.by_length)

    def chosen(self, documents: DataFrame) -> tuple[DataFrame, Read]:
        # Broadcast, so that texts are not shuffled.
        rows = self.frame.join(F.broadcast(documents), ["document", "against"])
        return rows, partial(read_rows, by_length=self.by_length)


def read_rows(batches: Iterable[pa.RecordBatch], by_length: bool) -> Iterator[Texts]:
    """Read the documents of a DataFrame, in pieces of a few mebibytes."""
    for whole in batches:
        for batch in slices_of(whole, "text", BLOCK_BYTES):
            if not batch.num_rows:
                continue
            text, bad = as_text(batch.column("text"), "the text")
            if bad:  # a document without features, as a null
                valid = np.ones(len(text), np.bool_)
                valid[list(bad)] = False
                text = pc.if_else(arrow_of(valid), text, pa.scalar(None, text.type))
            value = batch.column("value")
            if by_length:
                value = arrow_of(np.diff(flatten_strings(text)[1]).astype(np.float64))
            names, none = batch.schema.names, pa.nulls(batch.num_rows, pa.int64())
            position, last = (batch.column(name) if name in names else None for name in ("position", "last"))
            yield Texts(
                batch.column("document"), text, batch.column("against"), none.cast(pa.string()), none, value,
                position, last, [],
            )  # fmt: skip
