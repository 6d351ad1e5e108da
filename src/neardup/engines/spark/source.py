"""The documents of a run on Spark, as workers read them: from files, or from a DataFrame."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from neardup.arrays import Floats, Ints, arrow_of, begins_run
from neardup.documents.batch import BLOCK_BYTES, DocumentBatch, Rejected, rejecter
from neardup.documents.texts import as_documents, as_rank, slices_of
from neardup.engines.spark.blocks import gather
from neardup.errors import InputError
from neardup.formats.reading import Task
from neardup.methods.stages import Batches, Read
from neardup.schemas import NEEDED, READ

PART_SHIFT = 32
"""The key of a document of files: part << PART_SHIFT | its number in the part.

    key = |  part, 31 bits  |  number in the part, 32 bits  |

Parts are numbered in the order of the inputs, the earlier collection first.
"""

NEW = 1 << 61
"""Positions of new documents begin here; documents of the earlier collection are below."""
PART = f"cast(shiftright(document, {PART_SHIFT}) as int)"
"""The part of a document, in SQL."""
SLICES_PER_CORE = 64


@dataclass(frozen=True)
class Files:
    """Files, which workers open as the local engine does.

    tasks : the parts, the earlier collection first. on_error : the option of the run. within :
    whether documents are compared within the first column of values.
    """

    spark: SparkSession
    tasks: Broadcast[list[Task]]
    on_error: str = "reject"
    within: bool = False

    key_type = "long"
    """The type of the column `document`, in SQL."""
    in_order = True
    """Whether the keys of documents are integers in the order of the inputs."""

    @property
    def read(self) -> Read:
        """The function that reads documents in a worker, from rows of `all` or `chosen`."""
        return partial(read_files, tasks=self.tasks, on_error=self.on_error, within=self.within)

    @property
    def read_listed(self) -> Read:
        """The function that reads documents in a worker, from blocks of schemas.NEEDED.

        Requires: their positions are their keys.
        """
        return partial(read_listed, tasks=self.tasks, on_error=self.on_error, within=self.within)

    def all(self) -> DataFrame:
        """Return rows for all documents: their parts."""
        parts = self.spark.range(0, len(self.tasks.value), 1, self.num_slices)
        return parts.selectExpr("cast(id as int) as part")

    def chosen(self, documents: DataFrame, *, broadcast: bool = True) -> DataFrame:
        """Return rows for some documents: their parts, with lists of them.

        documents : the column document. Its other columns, except against, are added to the rows.
        """
        names = [name for name in documents.columns if name != "against"]
        # `collect_list` has no fixed order; structs sort by their first field, the document.
        entries = F.array_sort(F.collect_list(F.struct(*names))).alias("chosen")
        return self.spread(documents.groupBy(F.expr(PART).alias("part")).agg(entries))

    def spread(self, parts: DataFrame) -> DataFrame:
        """Return parts over many partitions.

        Spark would put the short lists together, and read all files in one task.
        """
        return parts.repartitionByRange(self.num_slices, "part")

    @property
    def num_slices(self) -> int:
        """The number of partitions of the parts."""
        max_slices = SLICES_PER_CORE * self.spark.sparkContext.defaultParallelism
        return int(min(len(self.tasks.value), max_slices))


def read_files(
    batches: Batches, tasks: Broadcast[list[Task]], on_error: str, within: bool
) -> Iterator[pa.RecordBatch]:
    """Read the documents of parts; of a part with a list in the column `chosen`, only these."""
    for batch in batches:
        parts = batch.column("part").to_pylist()
        lists = batch.column("chosen") if "chosen" in batch.schema.names else [None] * len(parts)
        for part, documents in zip(parts, lists, strict=True):
            entries = None if documents is None else documents.values
            yield from read_part(part, tasks.value[part], on_error, entries, within=within)


def read_listed(
    batches: Batches, tasks: Broadcast[list[Task]], on_error: str, within: bool
) -> Iterator[pa.RecordBatch]:
    """Read documents in blocks of schemas.NEEDED, each once, with the columns position, last and
    cells.
    """
    needed = pa.Table.from_batches(gather(batches, NEEDED), NEEDED)
    if not len(needed):
        return
    chosen = _list_cells(needed["position"].to_numpy(), needed["cell"].to_numpy())
    numbers = chosen.field("document").to_numpy() >> PART_SHIFT
    starts = np.flatnonzero(begins_run(numbers)).tolist()
    for start, stop in itertools.pairwise([*starts, len(numbers)]):
        part = int(numbers[start])
        entries = chosen.slice(start, stop - start)
        yield from read_part(part, tasks.value[part], on_error, entries, within=within)


def _list_cells(positions: Ints, cells: Ints) -> pa.StructArray:
    """Return each document once, rising, with the list of its cells: an argument of `read_part`.

    positions, cells : a cell of a document, in any order, perhaps several times.
    """
    order = np.lexsort((cells, positions))
    # A document may be listed several times for one cell.
    order = order[begins_run(positions[order], cells[order])]
    positions = positions[order]
    starts = np.flatnonzero(begins_run(positions))
    offsets = np.append(starts, len(order)).astype(np.int32)
    lists = pa.ListArray.from_arrays(arrow_of(offsets), arrow_of(cells[order]))
    distinct = arrow_of(positions[starts])
    # Without the bit of new documents, a position of files is the key.
    document = arrow_of(positions[starts] & NEW - 1)
    # Measuring does not use `last`.
    names = ["document", "position", "last", "cells"]
    return pa.StructArray.from_arrays([document, distinct, distinct, lists], names)


@dataclass(frozen=True)
class Frame:
    """The rows of a DataFrame.

    frame : the columns document, against, text, within, and the columns of `keep`: rank_0 and so
    on. vector_length : as of `Columns`.
    """

    frame: DataFrame
    vector_length: int | None = None

    in_order = False

    @property
    def read(self) -> Read:
        """The function that reads documents in a worker, from rows of `all` or `chosen`."""
        return partial(read_rows, vector_length=self.vector_length)

    @property
    def key_type(self) -> str:
        """The type of the column `document`, in SQL."""
        return str(self.frame.schema["document"].dataType.simpleString())

    def all(self) -> DataFrame:
        """Return all rows, with the columns of files that they lack."""
        types = {
            "id": "string",
            "row": "long",
            "count_by": "string",
            "rejected": "string",
            "described": "array<string>",
        }
        nulls = {name: F.lit(None).cast(kind) for name, kind in types.items()}
        return self.frame.withColumns(nulls)

    def chosen(self, documents: DataFrame, *, broadcast: bool = True) -> DataFrame:
        """Return the rows of some documents, with the other columns of `documents`.

        broadcast : whether `documents` are moved, and not the texts.
        """
        rows = self.frame.select("document", "against", "text", "within")
        return rows.join(
            F.broadcast(documents) if broadcast else documents, ["document", "against"]
        )


Corpus = Files | Frame


def read_part(
    part: int,
    task: Task,
    on_error: str,
    chosen: pa.StructArray | None = None,
    *,
    within: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a part, as schemas.READ, and the rows that could not be read.

    Parameters
    ----------
    part : the number of the part.
    on_error : the option of the run.
    chosen : structs with a field `document`, rising: the documents to read, and further columns to
        add to them. None for all documents.
    within : whether documents are compared within the first column of values.
    """
    rejected: list[Rejected] = []
    first = part << PART_SHIFT
    for batch in task.read(rejecter(on_error, rejected.append)):
        documents = _rows(batch, first, task, within)
        yield documents if chosen is None else _choose(documents, first, chosen)
        first += len(documents)
    # A second reading rejects the same rows again.
    if rejected and chosen is None:
        entry = {"document": part << PART_SHIFT, "against": task.against}
        lines = [json.dumps(row._asdict(), ensure_ascii=False) for row in rejected]
        yield pa.RecordBatch.from_pylist([entry | {"rejected": line} for line in lines], READ)


def _rows(batch: DocumentBatch, first: int, task: Task, within: bool) -> pa.RecordBatch:
    """Return the documents of a batch as schemas.READ. first : the key of the first of them."""
    count = len(batch.rows)
    none = pa.nulls(count, pa.string())
    names = task.columns.values
    texts = [column.cast(pa.string()).fill_null("") for column in batch.values]
    values = dict(zip(names, texts, strict=True))
    counted = None if task.against else task.columns.counted
    described = [values[name] for name in task.columns.described]
    columns = {
        "document": arrow_of(np.arange(first, first + count)),
        "against": arrow_of(np.full(count, task.against)),
        "text": batch.text,  # bytes, for a vector
        "id": none if batch.ids is None else batch.ids.cast(pa.string()),
        "row": arrow_of(batch.rows.astype(np.int64, copy=False)),
        "ranks": _list_ranks(batch.ranks, count),
        "within": texts[0] if within else none,
        "count_by": none if counted is None else values[counted],
        "described": _list_values(described, count),
        "rejected": none,
    }
    return pa.RecordBatch.from_pydict(columns)


def _list_ranks(ranks: Sequence[Floats], count: int) -> pa.ListArray:
    """Return the ranks of documents as lists: the two numbers of each rank, one after the other."""
    numbers = np.concatenate(ranks, axis=1).reshape(-1) if ranks else np.empty(0)
    offsets = np.arange(count + 1, dtype=np.int32) * 2 * len(ranks)
    return pa.ListArray.from_arrays(arrow_of(offsets), arrow_of(numbers))


def _list_values(columns: list[pa.Array], count: int) -> pa.ListArray:
    """Return the values of each document in several columns as a list; null without columns."""
    if not columns:
        return pa.nulls(count, pa.list_(pa.string()))
    by_column = np.arange(count * len(columns)).reshape(len(columns), count)
    values = pa.concat_arrays(columns).take(arrow_of(by_column.T.reshape(-1)))
    offsets = np.arange(count + 1, dtype=np.int32) * len(columns)
    return pa.ListArray.from_arrays(arrow_of(offsets), values)


def _choose(documents: pa.RecordBatch, first: int, chosen: pa.StructArray) -> pa.RecordBatch:
    """Return the documents that are in a list, with the other columns of the list.

    first : the key of the first of the documents, which are consecutive.
    """
    keys = chosen.field("document").to_numpy()
    # Both are in the order of keys.
    low, high = np.searchsorted(keys, [first, first + len(documents)])
    entries = chosen.slice(low, high - low)
    documents = documents.take(arrow_of(keys[low:high] - first))
    for number, field in enumerate(entries.type):
        if field.name != "document":
            documents = documents.append_column(field.name, entries.field(number))
    return documents


def read_rows(batches: Batches, vector_length: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a DataFrame in pieces of a few mebibytes, with a column `ranks`.

    A text that is not UTF-8 becomes a null.

    Raises
    ------
    InputError
        If a vector has another length, or a number that is not finite.
    """
    for whole in batches:
        for batch in slices_of(whole, "text", BLOCK_BYTES):
            text, bad = as_documents(batch.column("text"), vector_length)
            if bad and vector_length is not None:
                row, reason = next(iter(bad.items()))
                raise InputError(
                    f"Document {batch['document'][row].as_py()}: {reason}. Correct it, or leave it "
                    "out."
                )
            if bad:
                is_valid = np.ones(len(text), np.bool_)
                is_valid[list(bad)] = False
                text = pc.if_else(arrow_of(is_valid), text, pa.scalar(None, text.type))
            names = [name for name in batch.schema.names if name.startswith("rank_")]
            ranks = [_rank(batch[name]) for name in names]
            batch = batch.set_column(batch.schema.get_field_index("text"), "text", text)
            yield batch.append_column("ranks", _list_ranks(ranks, len(batch)))


def _rank(column: pa.Array) -> Floats:
    """Return the ranks of a column; for a decimal of too many digits, the nearest double."""
    ranks, too_precise = as_rank(column)
    for row in too_precise:
        ranks[row] = float(column[row].as_py()), 0.0
    return ranks
